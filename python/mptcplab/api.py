"""The Python API: every command of the command line is one of these functions."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mptcplab import _core, kernel, output
from mptcplab.errors import MptcplabError, UnfinishedError, with_hint
from mptcplab.results import OVERRIDES, Results

if TYPE_CHECKING:
    from mptcplab.agreement.judge import Agreement
    from mptcplab.goals.grid import Grid
    from mptcplab.goals.study import Study
    from mptcplab.papers.reproduce import Announce, Reproduction

PathArg = str | PathLike[str]
Progress = Callable[[int, int, float, float], None]


@dataclass(frozen=True)
class Overrides:
    """What a caller changes in a scenario without editing the file.

    `settings` maps key paths to values as they would be written in the file, such as
    `{"links.B1.queue": "1 BDP"}`.
    """

    cc: tuple[str, ...] = ()
    reps: int | None = None
    seed: int | None = None
    profile: tuple[str, ...] = ()
    duration: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Serialise for the engine; what is not overridden is absent."""
        given = {
            "cc": list(self.cc) or None,
            "reps": self.reps,
            "seed": self.seed,
            "profile": list(self.profile) or None,
            "duration": self.duration,
            "set": [list(item) for item in self.settings.items()] or None,
        }
        return json.dumps({key: value for key, value in given.items() if value is not None})

    @classmethod
    def from_json(cls, text: str) -> Overrides:
        """The inverse of `to_json`."""
        given = json.loads(text)
        return cls(
            cc=tuple(given.get("cc", ())),
            reps=given.get("reps"),
            seed=given.get("seed"),
            profile=tuple(given.get("profile", ())),
            duration=given.get("duration"),
            settings=dict(given.get("set", ())),
        )

    def to_options(self) -> list[str]:
        """The same as options of the command line."""
        options: list[str] = []
        for name, value in (
            ("--cc", ",".join(self.cc)),
            ("--reps", self.reps),
            ("--seed", self.seed),
            ("--profile", ",".join(self.profile)),
            ("--duration", self.duration),
        ):
            if value not in (None, ""):
                options += [name, str(value)]
        for key, value in self.settings.items():
            options += ["--set", f"{key}={value}"]
        return options


def _names(value: str | Iterable[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def run(
    scenario: PathArg,
    cc: str | Iterable[str] | None = None,
    reps: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    out: PathArg | None = None,
    *,
    engine: str | Iterable[str] = "sim",
    traffic: str = "own",
    profile: str | Iterable[str] | None = None,
    duration: str | None = None,
    settings: Mapping[str, str] | None = None,
    sim_reps: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Run every run of a scenario and return its traces.

    `engine` is "sim" (the simulator), "kernel" (real sockets on this machine's kernel; needs root), "fluid" (the
    published differential equations), or several, such as ["sim", "kernel"]: the results hold the traces of all then.
    `traffic` is who sends on the kernel: "own" or
    "iperf3". `sim_reps` are the repetitions of the simulator beside another engine, if other than `reps`: it has them
    in less time. `jobs` is the number of the simulator's threads (0: all cores). Without `out` the trace lives in a
    temporary directory that disappears with the returned object. `progress` is called with (finished runs, all runs,
    seconds done, all seconds) about five times a second.

    A run that ended early raises `UnfinishedError`, whose `results` hold what was recorded until then. Whether every
    run counts, the results tell (`Results.problems`).

    >>> import mptcplab
    >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="lia", reps=1, duration="12 s")
    >>> results.runs["cc"].to_list()
    ['lia']
    """
    engines, traffic = _engines(engine, traffic)
    _refuse_alone(sim_reps, engines)
    overrides = Overrides(_names(cc), reps, seed, _names(profile), duration, settings or {})
    return _traces(_Sweep(fspath(scenario), overrides, engines, traffic, sim_reps, jobs, progress), out, force=force)


def _traces(sweep: _Sweep, out: PathArg | None, *, force: bool) -> Results:
    """What a sweep writes, in a directory of its own."""
    if out is None:
        holder = tempfile.TemporaryDirectory(prefix="mptcplab-")
        directory = Path(holder.name) / "results"
        results = Results(directory, holder)
        write = partial(sweep.write, directory)
    else:
        directory = Path(out)
        results = Results(directory)
        write = partial(output.write_into, directory, sweep.write, force=force)
    try:
        write()
    except output.Kept as kept:
        raise UnfinishedError(str(kept.__cause__), results) from kept.__cause__
    return results


def _refuse_alone(sim_reps: int | None, engines: tuple[str, ...]) -> None:
    """Raise that nothing but the simulator has repetitions of its own."""
    if sim_reps is not None and ("sim" not in engines or len(engines) < 2):
        raise MptcplabError(
            with_hint(
                f"repetitions of the simulator, which runs beside no other engine in {','.join(engines)}: {sim_reps}",
                "give the repetitions as --reps, or more engines, such as sim,kernel",
            )
        )


def _engines(engine: str | Iterable[str], traffic: str) -> tuple[tuple[str, ...], str]:
    """The engines and the traffic as asked for, or what is wrong with them: before anything runs."""
    names = engine.split(",") if isinstance(engine, str) else list(engine)
    names = [name.strip() for name in names if name.strip()]
    known = ", ".join(output.ENGINES)
    for name in names:
        if name not in output.ENGINES:
            raise MptcplabError(with_hint(f"no such engine: {name!r}", f"one of {known}, or several: sim,fluid"))
    if not names:
        raise MptcplabError(with_hint(f"no engine in this list: {engine!r}", f"one of {known}, or several: sim,fluid"))
    if len(set(names)) < len(names):
        raise MptcplabError(with_hint(f"an engine is named twice: {','.join(names)}", f"each once, such as {known}"))
    if traffic not in kernel.TRAFFIC:
        raise MptcplabError(with_hint(f"no such traffic: {traffic!r}", f"one of {', '.join(kernel.TRAFFIC)}"))
    if traffic != "own" and "kernel" not in names:
        raise MptcplabError(
            with_hint(f"only the kernel engine has other traffic than its own: {traffic!r}", "add --engine kernel")
        )
    if "kernel" in names:
        kernel.program()
        kernel.require_privileges()
    return tuple(name for name in output.ENGINES if name in names), traffic


@dataclass(frozen=True)
class _Sweep:
    """One call of `run`: the same scenario on one engine after the other."""

    scenario: str
    overrides: Overrides
    engines: tuple[str, ...]
    traffic: str
    sim_reps: int | None
    jobs: int
    progress: Progress | None
    # The kernel runs first, and the simulator's senders are as late at random as its links were.
    same_noise: bool = False

    def write(self, directory: Path) -> None:
        """Create `directory`: with the tables of the only engine, or with a directory of tables for each."""
        asked = json.loads(self.overrides.to_json())
        if self.traffic != "own":
            asked["traffic"] = self.traffic
        if self.sim_reps is not None:
            asked["sim_reps"] = self.sim_reps
        if self.same_noise:
            asked["same_noise"] = True
        several = len(self.engines) > 1
        if several:
            directory.mkdir()
        try:
            for engine in self._order:
                self._run(engine, directory / engine if several else directory)
        finally:
            # Also beside a trace that is kept although its run ended early.
            if directory.is_dir():
                with output.writing(f"write {directory / OVERRIDES}", "make room there, or name another directory"):
                    output.write_text(directory / OVERRIDES, json.dumps(asked) + "\n")

    def _run(self, engine: str, directory: Path) -> None:
        progress = self._progress(engine)
        if engine == "sim":
            self._simulate(directory, progress)
            return
        asked = self._overrides(engine).to_json()
        if engine == "fluid":
            from mptcplab.fluid import engine as fluid

            fluid.run(self.scenario, directory, asked, progress)
            return
        try:
            kernel.run(self.scenario, directory, asked, traffic=self.traffic, progress=progress)
        except MptcplabError as error:
            if (directory / "run.parquet").is_file():
                raise output.Kept from error
            raise

    def _simulate(self, directory: Path, progress: Progress | None) -> None:
        asked, manner = self._overrides("sim"), nullcontext()
        if self._order[0] == "kernel":
            asked, manner = self._as_noisy_as(asked, directory.with_name("kernel")), _aside()
        with manner:
            _core.run(self.scenario, fspath(directory), asked.to_json(), self.jobs, progress)

    def _overrides(self, engine: str) -> Overrides:
        """What one engine runs with. The simulator may have more repetitions.

        Beside another engine the kernel leaves a scenario's jitter to that one: it has noise of its own. Alone it
        refuses jitter, because it cannot add any. What it ran with is in the run table.
        """
        if engine == "sim" and self.sim_reps is not None:
            return replace(self.overrides, reps=self.sim_reps)
        if engine != "kernel" or len(self.engines) == 1 or "tcp.send_jitter" in self.overrides.settings:
            return self.overrides
        return replace(self.overrides, settings={**self.overrides.settings, "tcp.send_jitter": '"0 s"'})

    @property
    def _order(self) -> tuple[str, ...]:
        """The engines as they run."""
        if self.same_noise and {"sim", "kernel"} <= set(self.engines):
            return ("kernel", *(name for name in self.engines if name != "kernel"))
        return self.engines

    def _as_noisy_as(self, asked: Overrides, kernel_runs: Path) -> Overrides:
        """The same with the kernel's noise, unless the caller says how much, or the scenario asks for more."""
        from mptcplab.agreement.noise import JITTER, jitter_ns

        if JITTER in asked.settings:
            return asked
        plan = json.loads(_core.runs_json(self.scenario, asked.to_json()))
        own = max((flow.get("send_jitter_ns", 0) for run in plan for flow in run["flows"]), default=0)
        noise = jitter_ns(Results.open(kernel_runs), own)
        return replace(asked, settings={**asked.settings, JITTER: f'"{noise} ns"'})

    def _progress(self, engine: str) -> Progress | None:
        """Progress of one engine as progress of all."""
        report = self.progress
        if report is None or len(self.engines) == 1:
            return report
        position, sizes = self._order.index(engine), self._sizes
        (runs_before, seconds_before), (all_runs, all_seconds) = (_sum(part) for part in (sizes[:position], sizes))
        weight = self._weight(engine)

        def of_all(done: int, _runs: int, seconds: float, _seconds: float) -> None:
            report(runs_before + done, all_runs, seconds_before + weight * seconds, all_seconds)

        return of_all

    @cached_property
    def _sizes(self) -> list[tuple[int, float]]:
        """Runs and their seconds of every engine, as they run."""
        sizes = []
        for engine in self._order:
            plan = json.loads(_core.runs_json(self.scenario, self._overrides(engine).to_json()))
            seconds = sum(run["duration_ns"] for run in plan) / 1e9
            sizes.append((len(plan), self._weight(engine) * seconds))
        return sizes

    def _weight(self, engine: str) -> float:
        """What a second of a run is in progress: beside a kernel, which takes real time, others take next to none."""
        return 1.0 if engine == "kernel" or "kernel" not in self.engines else 0.01


@contextmanager
def _aside() -> Iterator[None]:
    """Let everybody else go first: another scenario may be on the kernel now, in real time."""
    thread = threading.get_native_id()
    before = os.getpriority(os.PRIO_PROCESS, thread)
    os.setpriority(os.PRIO_PROCESS, thread, 19)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, thread, before)


def _sum(sizes: list[tuple[int, float]]) -> tuple[int, float]:
    return sum(runs for runs, _ in sizes), sum(seconds for _, seconds in sizes)


def reproduce(
    paper: str,
    engine: str = "sim",
    experiment: str | None = None,
    *,
    quick: bool = False,
    out: PathArg = Path("results") / "reproduce",
    docs: PathArg | None = None,
    jobs: int = 0,
    announce: Announce | None = None,
) -> list[Reproduction]:
    """Run the experiments of a paper of `papers/` ("all": of all) and judge its claims; write the report to `out`.

    Results are kept in `out`/store by a digest of what decides them, so that a reproduction that was stopped goes on
    where it was, and a changed input makes only what it touches anew. `quick` gives a first answer: few and short
    repetitions, none added; the fluid, which is quick anyhow, gives all of it. `docs` is a directory for a shorter
    report in Markdown, as the documentation has it. `announce` is called with what is being done and gives a context
    that reports progress. The fluid takes processes for several jobs: a script needs `if __name__ == "__main__":`
    around the call, or `jobs=1`.
    """
    from mptcplab.papers import catalog, report
    from mptcplab.papers.reproduce import reproduce as run_papers
    from mptcplab.papers.reproduce import silent

    engines, _ = _engines(engine, "own")
    if len(engines) > 1:
        raise MptcplabError(with_hint(f"one engine at a time: {engine!r}", "`mptcplab agree` compares engines"))
    library = catalog.load()
    chosen = library.choose(paper)
    if experiment is not None and paper == "all":
        raise MptcplabError(with_hint(f"an experiment is one of a paper's: {experiment!r}", "name the paper, not all"))
    found = run_papers(
        library,
        chosen,
        engines[0],
        Path(out),
        experiment=experiment,
        quick=quick,
        jobs=jobs,
        announce=announce or silent,
    )
    words = ["mptcplab", "reproduce", paper, *(["--engine", engine] if engine != "sim" else [])]
    words += [*(["--experiment", experiment] if experiment else []), *(["--quick"] if quick else [])]
    report.write(found, Path(out), shlex.join(words))
    if docs is not None:
        report.docs_page(found, Path(docs))
    return found


def load(directory: PathArg) -> Results:
    """Open the results that an earlier run left in a directory."""
    return Results.open(Path(directory))


def agree(
    scenario: PathArg,
    engines: str | Iterable[str] | None = None,
    cc: str | Iterable[str] | None = None,
    reps: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    out: PathArg | None = None,
    *,
    profile: str | Iterable[str] | None = None,
    duration: str | None = None,
    settings: Mapping[str, str] | None = None,
    sim_reps: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Agreement:
    """Run a scenario on several engines, and say how near the others come to the first, and what may be why not.

    `engines` is "sim,kernel", "sim,fluid", "sim,kernel,fluid" or a list; without it sim and kernel where the kernel
    engine can run here, else sim and fluid. Everything else is as in `run`, whose errors these are, too, but that the
    kernel runs first and its noise is the simulator's `send_jitter`: how late its links were, at the median over all
    round trips (99th percentiles in sum), unless `settings` or the scenario ask for more. Goodput of a
    flow may differ by 15 % and by 5 % at the median (the fluid's median has no bound), Jain's index by 0.03.

    >>> import mptcplab
    >>> found = mptcplab.agree("scenarios/dolia-scenario-1.toml", "sim,fluid", cc="reno", reps=1, duration="12 s")
    >>> [verdict.engine for verdict in found.verdicts]
    ['fluid']
    """
    from mptcplab.agreement import choose, judge

    names, why = choose.engines(engines)
    names, _ = _engines(names, "own")
    overrides = Overrides(_names(cc), reps, seed, _names(profile), duration, settings or {})
    choose.refuse_early(fspath(scenario), overrides.to_json(), names)
    _refuse_alone(sim_reps, names)
    sweep = _Sweep(fspath(scenario), overrides, names, "own", sim_reps, jobs, progress, same_noise=True)
    return judge.judged(_traces(sweep, out, force=force), why)


def check(scenario: PathArg, overrides: Overrides | None = None) -> dict[str, Any]:
    """Validate a scenario; return `text` (for people) and `resolved` (every unit explicit, defaults filled in)."""
    return json.loads(_core.check(fspath(scenario), (overrides or Overrides()).to_json()))


def goals(
    cc: str,
    out: PathArg | None = None,
    *,
    quick: bool = False,
    grid: Grid | None = None,
    seed: int | None = None,
    profile: str | None = None,
    jobs: int = 0,
    force: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Hold one algorithm against the three design goals of RFC 6356 on a grid of networks; write the page.

    `out` is the directory of the page, its pictures and its numbers (default: results/goals-<cc>, with a number behind
    it if that exists); `force` replaces a former study there. `quick` measures fewer networks, for a shorter time;
    `grid` gives them itself. `jobs` and `progress` are as in `run`.
    """
    from mptcplab.goals import write_study

    return write_study(
        cc, out, quick=quick, grid=grid, seed=seed, profile=profile, jobs=jobs, force=force, progress=progress
    )


def algorithms() -> list[dict[str, Any]]:
    """All congestion control algorithms of this build, with their parameters and documentation."""
    return json.loads(_core.algorithms_json())


def schedulers() -> list[dict[str, Any]]:
    """All packet schedulers of the simulator, with their parameters and documentation."""
    return json.loads(_core.schedulers_json())


def vectors(path: PathArg) -> dict[str, Any]:
    """Run a file of test vectors against the native build; return passed, failed, skipped and worst error."""
    return json.loads(_core.vectors_json(fspath(path)))


def doctor(
    pid: int | None = None, connection: str | None = None, rate: str | None = None, rtt: str | None = None
) -> dict[str, Any]:
    """What this machine can do and what stands in the way: `ready`, and one entry of `findings` per check.

    With `pid`, or with `connection` such as "10.0.0.1:40000-10.0.0.2:443", also the live MPTCP connections of that
    process or that connection. `rate` and `rtt` (such as "100 Mbit/s" and "50 ms") ask whether the buffers carry them.
    """
    return kernel.ask("doctor", "--json", *doctor_options(pid, connection, rate, rtt), accept=(0, 1))


def doctor_options(pid: int | None, connection: str | None, rate: str | None, rtt: str | None) -> list[str]:
    """What `doctor` was asked, as options of the program."""
    asked = {"--pid": pid, "--connection": connection, "--rate": rate, "--rtt": rtt}
    return [word for name, value in asked.items() if value is not None for word in (name, str(value))]


def cc_load(names: str | Iterable[str], params: Mapping[str, Any] | None = None, profile: str | None = None) -> Any:
    """Load algorithms into this machine's kernel as lab_<name>, until `cc_unload` or a restart; needs root.

    `profile` says how ACKs are counted, as in a scenario.
    """
    return kernel.ask("cc", "load", *_names(names), *_setting(params, profile), "--pin", "--json")


def cc_list() -> Any:
    """What is loaded: name, by whom, how many sockets use it, what it counts, parameters that are not the default."""
    return kernel.ask("cc", "list", "--json")


def cc_unload(names: str | Iterable[str] | None = None) -> Any:
    """Take algorithms out of the kernel again (without names: all of ours); needs root."""
    return kernel.ask("cc", "unload", *(_names(names) or ("--all",)), "--json")


def cc_persist(names: str | Iterable[str], params: Mapping[str, Any] | None = None, profile: str | None = None) -> Any:
    """Install a systemd unit that loads algorithms at boot, as `cc_load` does; needs root."""
    return kernel.ask("cc", "persist", *_names(names), *_setting(params, profile), "--json")


def _setting(params: Mapping[str, Any] | None, profile: str | None) -> list[str]:
    """How algorithms are loaded, as options of the program."""
    options = [word for name, value in (params or {}).items() for word in ("--param", f"{name}={value}")]
    return options if profile is None else [*options, "--profile", profile]
