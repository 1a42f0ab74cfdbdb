"""Run a sweep: every run of a scenario on one engine or on several, one after the other."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike, fspath
from pathlib import Path

from mptcplab import _core, output
from mptcplab.engines import kernel
from mptcplab.errors import MptcplabError, UnfinishedError, with_hint
from mptcplab.metrics.emulation import JITTER, jitter_ns
from mptcplab.results import Results
from mptcplab.scenario import Overrides
from mptcplab.trace.reader import OVERRIDES

PathArg = str | PathLike[str]
Progress = Callable[[int, int, float, float], None]


def names_of(value: str | Iterable[str] | None) -> tuple[str, ...]:
    """One name, several or none as a tuple."""
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
    run counts, the results tell (`Results.excluded_runs`).

    >>> import mptcplab
    >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="lia", reps=1, duration="12 s")
    >>> results.runs["cc"].to_list()
    ['lia']
    """
    engines, traffic = chosen_engines(engine, traffic)
    refuse_lone_sim_reps(sim_reps, engines)
    overrides = Overrides(names_of(cc), reps, seed, names_of(profile), duration, settings or {})
    return results_of(Sweep(fspath(scenario), overrides, engines, traffic, sim_reps, jobs, progress), out, force=force)


def results_of(sweep: Sweep, out: PathArg | None, *, force: bool) -> Results:
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


def refuse_lone_sim_reps(sim_reps: int | None, engines: tuple[str, ...]) -> None:
    """Raise that nothing but the simulator has repetitions of its own."""
    if sim_reps is not None and ("sim" not in engines or len(engines) < 2):
        raise MptcplabError(
            with_hint(
                f"repetitions of the simulator, which runs beside no other engine in {','.join(engines)}: {sim_reps}",
                "give the repetitions as --reps, or more engines, such as sim,kernel",
            )
        )


def chosen_engines(engine: str | Iterable[str], traffic: str) -> tuple[tuple[str, ...], str]:
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
class Sweep:
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
            from mptcplab.engines.fluid import engine as fluid

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
