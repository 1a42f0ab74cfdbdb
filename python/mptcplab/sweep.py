"""Run a sweep: every run of a scenario on one engine, or on several, one after the other."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

from mptcplab import kept, output
from mptcplab.algorithm import Algorithms
from mptcplab.arguments import named_in_errors, whole_number
from mptcplab.builder import ScenarioArg, source
from mptcplab.capabilities import (
    ENGINES,
    FLUID,
    HOST_DELAY,
    KERNEL,
    OWN_TRAFFIC,
    SEND_JITTER,
    SIM,
    VM,
    directory_of,
    engine_of,
    full_name,
    in_order,
    is_machine,
    kernel_of,
)
from mptcplab.cluster.connect import ClientArg, Cluster, connected
from mptcplab.engines import kernel
from mptcplab.engines.compiled import compiled
from mptcplab.engines.vm import host
from mptcplab.errors import MptcplabError, OutputError, UnfinishedError, with_hint
from mptcplab.making import Part
from mptcplab.merging import setup, setup_differences
from mptcplab.output import Numbered
from mptcplab.paths import path_of
from mptcplab.results import Results
from mptcplab.scenario import Overrides, Values, check, resolved_runs
from mptcplab.scratch import Scratch, remove_abandoned
from mptcplab.settings import Setting
from mptcplab.terminal import note, shown
from mptcplab.text import counted
from mptcplab.trace.reader import OVERRIDES, tables_in

PathArg = str | PathLike[str]
Progress = Callable[[int, int, float, float], None]
# The weight of a simulated second in the progress of several engines: a kernel runs in real time, others are faster.
_WEIGHT_BESIDE_REAL_TIME = 0.01
# So many settings that differ are listed.
_SHOWN = 3


def run(
    scenario: ScenarioArg,
    cc: Algorithms | None = None,
    reps: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    out: PathArg | Numbered | None = None,
    *,
    engine: str | Iterable[str] = SIM.name,
    traffic: str = OWN_TRAFFIC,
    profile: str | Iterable[str] | None = None,
    duration: str | float | timedelta | None = None,
    settings: Mapping[str, Setting] | None = None,
    sweep: Mapping[str, Values] | None = None,
    sim_reps: int | None = None,
    client: ClientArg | None = None,
    store: str | None = None,
    force: bool = False,
    progress: Progress | bool | None = None,
) -> Results:
    """Run every run of a scenario and return its traces.

    `scenario` is the path of a file, the name of one that comes with the package (`scenarios`), a `Scenario`, or a
    dictionary of its keys. `cc` is "lia,olia" or a list, each item a name, the path of a C file or an `Algorithm`.
    `settings` changes keys of the scenario: `{"tcp.tso": True, "links.B1.queue": "1 BDP"}`; a list of values is a
    sweep, None takes a key out, and a number for a duration counts seconds. `sweep` has ranges and lists as texts:
    `{"links.B1.loss": "0.01 %..5 % log 7"}`.

    `engine` is "sim" (the simulator), "kernel" (real sockets on this machine's kernel; needs root), "vm" (the same on a
    stock kernel in an emulated machine: no root, and the same bytes every time), "fluid" (the published differential
    equations), or several, such as ["sim", "vm:bookworm"]: then the results hold the traces of all. "vm:SUITE" is the
    kernel of a Debian suite, "vm:PATH" a kernel image with its modules in modules/ beside it; "vm" alone the newest in
    the backports of Debian's stable release. `traffic` is the program that sends on the kernel: "own" or "iperf3".
    `sim_reps` are the repetitions of the simulator beside another engine, if not `reps`; it needs less time for them.
    `jobs` is the number of the simulator's threads or of machines at a time (0: all cores). Without `out` the trace is
    in a temporary directory that disappears with the returned object.

    `client` is a client of Dask whose workers make the runs, "dask" for a cluster on this machine with `jobs` workers,
    or "dask:ADDRESS" of a scheduler. `store` is a path or a URL (s3://..., sftp://...) that all workers reach: finished
    runs go there first, and what is there is not made again (docs/cluster.md).

    Finished runs are kept in `out`.partial until the result is complete: after an interrupt, an error or a crash, the
    same call continues from them. If `out` already has some of these runs, and no others, only the missing ones are
    made: `reps=20` after `reps=5` makes 15 runs. With `force` the result is replaced, and all runs are made again.

    `progress` is called with (finished runs, all runs, seconds done, all seconds) about five times a second. Without
    it a terminal or a notebook shows a bar; False shows none.

    A run that ended early raises `UnfinishedError`, whose `results` hold what was recorded until then. Runs that do not
    count are in `Results.excluded_runs`.

    >>> import mptcplab
    >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="lia", reps=1, duration="12 s")
    >>> results.runs["cc"].to_list()
    ['lia']
    """
    engines = parse_engines(engine, traffic)
    overrides = Overrides.of(cc, reps, seed, profile, duration, settings, sweep)
    say = _silent if progress is False else note
    check_jobs(jobs)
    if out is not None and not isinstance(out, Numbered):
        path_of(out, "out")
    with named_in_errors(settings, sweep), source(scenario) as path:
        if client is not None:
            # Before a cluster is asked for anything.
            check(path, overrides)
        with connected(client, store, engines, jobs=jobs, say=say) as cluster, shown(progress) as update:
            sweep_of_all = Sweep(path, overrides, engines, traffic, sim_reps, jobs, update, cluster=cluster, say=say)
            return sweep_of_all.run(out, force=force)


def _silent(_: str) -> None:
    pass


def parse_engines(asked: str | Iterable[str], traffic: str = OWN_TRAFFIC) -> tuple[str, ...]:
    """Names of engines, in the order in which they run.

    Raises an error for names and traffic that do not exist, and for engines that this machine cannot run.
    """
    names = engine_names(asked)
    if traffic not in KERNEL.traffic:
        raise MptcplabError(with_hint(f"no such traffic: {traffic!r}", f"one of {', '.join(KERNEL.traffic)}"))
    machines = [name for name in names if is_machine(name)]
    if machines and traffic not in VM.traffic:
        hint = "leave it out, or use --engine kernel, which runs programs of this machine"
        raise MptcplabError(
            with_hint(f"a machine has no other traffic than its own: {traffic!r} on {machines[0]}", hint)
        )
    if not any(traffic in engine_of(name).traffic for name in names):
        raise MptcplabError(
            with_hint(f"only the kernel engine has other traffic than its own: {traffic!r}", "add --engine kernel")
        )
    if KERNEL.name in names:
        kernel.require_available()
    for name in machines:
        host.require_available(name)
    return tuple(in_order(names))


def engine_names(asked: str | Iterable[str]) -> list[str]:
    """Names of engines as they are given. Raises an error for what names none, and for one that is named twice."""
    if not isinstance(asked, str | Iterable):
        raise MptcplabError(with_hint(f"not an engine: {asked!r}", 'engine="sim", or several: "sim,fluid"'))
    names = asked.split(",") if isinstance(asked, str) else [str(name) for name in asked]
    names = [full_name(name.strip()) for name in names if name.strip()]
    known = ", ".join(ENGINES)
    for name in names:
        if name not in ENGINES and not (is_machine(name) and kernel_of(name)):
            hint = f"one of {known}, or several: sim,fluid; vm:SUITE is a kernel of Debian, vm:PATH a kernel image"
            raise MptcplabError(with_hint(f"no such engine: {name!r}", hint))
    if not names:
        raise MptcplabError(with_hint(f"no engine in this list: {asked!r}", f"one of {known}, or several: sim,fluid"))
    if len(set(names)) < len(names):
        raise MptcplabError(with_hint(f"an engine is named twice: {','.join(names)}", f"each once, such as {known}"))
    return names


# More threads or processes than machines have cores.
MOST_JOBS = 4096


def check_jobs(jobs: int) -> None:
    """Refuse a number of threads or processes that is not one."""
    if not isinstance(jobs, Integral) or isinstance(jobs, bool) or jobs < 0:
        raise MptcplabError(with_hint(f"not a number of jobs: {jobs!r}", "0 is one per core, 1 is one at a time"))
    if jobs > MOST_JOBS:
        raise MptcplabError(with_hint(f"jobs: {jobs} is out of range", f"0, one per core, or up to {MOST_JOBS}"))


@dataclass(frozen=True)
class Sweep:
    """The same scenario on one engine after the other."""

    scenario: str
    overrides: Overrides
    engines: tuple[str, ...]
    traffic: str = OWN_TRAFFIC
    # Repetitions of the simulator beside another engine.
    sim_reps: int | None = None
    jobs: int = 0
    progress: Progress | None = None
    # A kernel runs first, and the simulator's hosts take as long as the kernel's (`host_delay` and `send_jitter`).
    same_noise: bool = False
    cluster: Cluster | None = None
    # Without a named result: where the runs of emulated machines stay, and are found by later sweeps.
    lasting: Path | None = None
    # Whether other runs are removed from there.
    prunes: bool = True
    # Called with a line about runs that are taken from earlier results, or kept for later.
    say: Callable[[str], None] = note

    def __post_init__(self) -> None:
        check_jobs(self.jobs)
        if self.sim_reps is not None:
            whole_number("sim_reps", self.sim_reps, 1, 100_000)
        if self.sim_reps is not None and (SIM.name not in self.engines or len(self.engines) < 2):
            names = ",".join(self.engines)
            raise MptcplabError(
                with_hint(
                    f"repetitions of the simulator, which runs beside no other engine in {names}: {self.sim_reps}",
                    "give the repetitions as --reps, or more engines, such as sim,kernel",
                )
            )

    def run(self, out: PathArg | Numbered | None = None, *, force: bool = False) -> Results:
        """Run all engines and return their traces, which are in `out` or in a temporary directory.

        Finished runs are kept beside `out` until the result is complete, and are found there again. A result in `out`
        whose runs are all part of this sweep is extended, unless `force` says that they are to be made again.
        """
        remove_abandoned()
        self._refuse_early()
        if out is None:
            temporary = Scratch("results")
            results = Results(Path(temporary.name) / "results", temporary)
            unnamed = Path(temporary.name) / "runs"
            also: list[Path] | None = None if self.lasting is None else []
            _finished(partial(self._write, unnamed, results.directory, {}, also), results)
            if self.lasting is None:
                self._clear(unnamed, results.directory, [])
            return results
        also = []
        if isinstance(out, Numbered):
            directory = self._choose(out)
            # A run that is under way removes what it keeps when it has ended.
            others = (place for place in kept.numbered(directory) if place != kept.beside(directory))
            also = [place for place in others if not kept.is_in_use(kept.result_of(place))]
        else:
            directory = output.place(out)
        output.require_name(directory)
        output.put_right(directory)
        wanted = [] if force else self._wanted(directory)
        former = kept.extendable(directory, wanted)
        if former is not None and self._is_complete(directory, former, wanted):
            self._clear(directory, directory, also)
            again = "it" if len(former) == 1 else "them"
            self.say(f"nothing to make: {directory} has {kept.all_of(former)}; --force makes {again} again")
            return Results.open(directory)
        if former is not None and self._late is not None:
            # The simulator's runs depend on what the other engine would measure now.
            former = None
        if former is None and not force:
            self._refuse_to_lose(directory)
        write = partial(self._write, directory, finished=kept.usable(former or []), also=also)
        replace = force or former is not None
        results = _finished(partial(output.write_into, directory, write, force=replace), Results(directory))
        # Until the result has its name, a kill must not lose what is kept.
        self._clear(directory, directory, also)
        return results

    def _choose(self, out: Numbered) -> Path:
        """The first directory that does not exist, or whose runs are all of this sweep, and that no other run uses."""
        for directory in out.candidates():
            free = not directory.exists() or kept.extendable(directory, self._digests) is not None
            if free and not kept.is_in_use(directory):
                return directory
        raise AssertionError("there are always further candidates")

    def _refuse_early(self) -> None:
        """Raise what one engine refuses, such as a mistake in a C file, before the others have taken their time."""
        for name in self.engines:
            overrides = self._overrides(name).to_json()
            if engine_of(name).has_sockets:
                compiled(self.scenario, overrides)
            elif name == FLUID.name and len(self.engines) > 1:
                from mptcplab.engines.fluid.engine import reject_unsupported

                reject_unsupported(self.scenario, overrides)

    @cached_property
    def _digests(self) -> list[str]:
        """The digests of all runs; none where they depend on what an engine measures."""
        return [] if self._late else [digest for name in self.engines for digest in self._part(name).digests]

    def _part(self, engine: str, overrides: Overrides | None = None) -> Part:
        late = self._late
        return Part(
            self.scenario,
            engine,
            (overrides or self._overrides(engine)).for_engines(),
            self.traffic if engine == KERNEL.name else OWN_TRAFFIC,
            self.jobs,
            low_priority=engine == SIM.name and late is not None and engine_of(late).real_time,
            cluster=self.cluster,
        )

    def _wanted(self, directory: Path) -> list[str]:
        """The digests of all runs; where the simulator has the noise of an engine, that of its runs in `directory`."""
        late = self._late
        if late is None:
            return self._digests
        found: list[str] = []
        # What is no whole result has no noise.
        with suppress(MptcplabError):
            for name in self.engines:
                overrides = self._overrides(name)
                if name == SIM.name:
                    overrides = self._with_noise_of(directory / directory_of(late), overrides)
                found += self._part(name, overrides).digests
            return found
        return []

    def _is_complete(self, directory: Path, former: Sequence[kept.Run], wanted: Sequence[str]) -> bool:
        """Whether a result is just what this sweep would write."""
        again = self._late is None and not all(run.counts for run in former)
        if [run.digest for run in former] != wanted or again:
            return False
        results = Results.open(directory)
        text = Path(self.scenario).read_text(encoding="utf-8")
        return results.overrides == self._asked() and set(results.runs["scenario_toml"]) == {text}

    def _refuse_to_lose(self, directory: Path) -> None:
        """Say why an earlier result is not extended."""
        if damage := kept.damage(directory):
            hint = "choose another --out, or --force to make it again"
            raise OutputError(with_hint(f"output directory has a damaged result: {damage}", hint))
        runs = kept.former_runs(directory)
        if runs and self._digests:
            known, wanted = {run.digest for run in runs}, set(self._digests)
            others = known - wanted
            are = "is" if len(others) == 1 else "are"
            if wanted <= known:
                hint = f"it has all {counted(len(wanted), 'run')} of this sweep; {len(others)} more would be lost\n"
                hint += f"      `mptcplab report {shlex.quote(str(directory))}` shows what is there\n"
            else:
                hint = f"{counted(len(others), 'run')} of it {are} not of this sweep, because of "
                hint += f"{kept.why_not(others, wanted)}{self._what_differs(directory, others)}\n"
            hint += "      choose another --out, or --force to replace it; `mptcplab merge` joins results"
            raise OutputError(with_hint(f"output directory has an earlier result: {directory}", hint))

    def _what_differs(self, directory: Path, others: Container[str]) -> str:
        """What is set differently in one of the `others` there and in its counterpart here; empty if nothing is.

        The counterpart has the same algorithm, and as far as possible the same repetition and axes: repetitions may
        have files of their own, and axes differ within a sweep.
        """
        runs = Results.open(directory).runs
        rows = [row for row in runs.iter_rows(named=True) if row["digest"] in others]
        known = {json.dumps(json.loads(axes), sort_keys=True) for axes in runs["axes"].unique()}
        wanted: set[str] = set()
        # What is new here says more than what is there as well.
        resolved = resolved_runs(self.scenario, self.overrides)
        for run in sorted(resolved, key=lambda run: json.dumps(run["axes"], sort_keys=True) in known):
            names = {flow["cc"]["text"] for flow in run["flows"] if isinstance(flow.get("cc"), dict)}
            wanted.add(run["axes"].get("cc") or "+".join(sorted(names)))
            there = [row for row in rows if names & set(row["cc"].split("+"))]
            if there:
                near = min(there, key=lambda row: (row["rep"] != run["rep"], json.loads(row["axes"]) != run["axes"]))
                own = {**setup(json.dumps(run)), "seed": run["seed"]}
                other = {**setup(near["resolved"]), "seed": json.loads(near["resolved"])["seed"]}
                # What an engine fills in is not in the sweep's.
                texts = [text for text in setup_differences(other, own) if "null" not in text]
                more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
                return f" ({'; '.join([*texts[:_SHOWN], *more])})" if texts else ""
        return f" (cc: {rows[0]['cc']} and {', '.join(sorted(wanted))})" if rows and wanted else ""

    def _write(
        self, result: Path, directory: Path, finished: Mapping[str, kept.Run], also: Sequence[Path] | None
    ) -> None:
        """Create `directory`, which becomes `result`: the tables of the only engine, or a directory for each.

        `also` are directories with finished runs of other results; None if nothing is kept.
        """
        several = len(self.engines) > 1
        with kept.workspace(result) if self.lasting is None else kept.lasting(self.lasting) as workspace:
            places = [workspace.directory, *(also or ())]
            held = kept.runs_of(trace for place in places for trace in kept.traces_in(place))
            finished = {**finished, **kept.usable(held)}
            if several:
                directory.mkdir()
            try:
                for engine in self._order:
                    target = directory / directory_of(engine) if several else directory
                    self._run_engine(engine, target, workspace, finished)
                if self.lasting is not None and self.prunes:
                    machines = [name for name in self.engines if is_machine(name)]
                    workspace.keep_only(digest for name in machines for digest in self._part(name).digests)
            except BaseException as error:
                runs = workspace.runs()
                if runs and also is not None and not isinstance(error, output.PartialOutputError):
                    place = workspace.directory
                    self.say(f"{place} keeps {kept.all_of(runs)}, with which the same command goes on")
                raise
            finally:
                # Also with the trace of a run that ended early.
                if directory.is_dir():
                    with output.writing(f"write to {directory}", "make room there, or name another directory"):
                        output.write_text(directory / OVERRIDES, self._asked())

    def _clear(self, result: Path, directory: Path, also: Iterable[Path]) -> None:
        """Remove the runs kept for `result` that `directory` has now, and so in `also`; say what is left."""
        used = {run.digest for part in tables_in(directory) for run in kept.runs_of([part], checked=())}
        for place in dict.fromkeys([kept.beside(result), *also]):
            if not place.is_dir():
                continue
            # Another run that has begun meanwhile goes on with them.
            with suppress(OutputError), kept.workspace(kept.result_of(place)) as held:
                left = held.clear(used)
                if left and place == kept.beside(result):
                    self.say(f"{place} still has {kept.all_of(left)} of another sweep")

    def _asked(self) -> str:
        """The caller's arguments as JSON, from which the report reconstructs the command."""
        asked = json.loads(self.overrides.to_json())
        if self.traffic != OWN_TRAFFIC:
            asked["traffic"] = self.traffic
        if self.sim_reps is not None:
            asked["sim_reps"] = self.sim_reps
        if self.same_noise:
            asked["same_noise"] = True
        machines = [directory_of(name) for name in self.engines if is_machine(name)]
        if len(machines) > 1:
            asked["machines"] = machines
        return json.dumps(asked) + "\n"

    def _run_engine(
        self, engine: str, directory: Path, workspace: kept.Workspace, finished: Mapping[str, kept.Run]
    ) -> None:
        overrides, late = self._overrides(engine), self._late
        if engine == SIM.name and late is not None:
            overrides = self._with_noise_of(directory.with_name(directory_of(late)), overrides)
        part = self._part(engine, overrides)
        part.finished.update({digest: finished[digest] for digest in part.digests if digest in finished})
        self._say_what_is_found(part, workspace)
        part.make(directory, workspace, self._progress(engine, part))

    def _say_what_is_found(self, part: Part, workspace: kept.Workspace) -> None:
        """One line about runs that are not made again, and one about kept runs that are of no use."""
        total, missing = len(part.digests), len(part.missing)
        of = f" on {part.engine}" if len(self.engines) > 1 else ""
        if missing < total:
            places = {kept.place_of(run.trace) for run in part.finished.values()}
            where = " and ".join(sorted(str(place) for place in places))
            self.say(f"found {total - missing:,} of {counted(total, 'run')}{of} in {where}; making {missing:,}")
        others = [run for run in workspace.runs() if run.engine == part.engine and run.digest not in part.digests]
        if others:
            why = kept.why_not({run.digest for run in others}, part.digests)
            self.say(f"{kept.all_of(others)} in {workspace.directory}{of} cannot be used, because of {why}")

    def _overrides(self, engine: str) -> Overrides:
        """The overrides that one engine runs with.

        Beside another engine, an engine leaves out the overrides that it would refuse; alone, it refuses them. The run
        table has the settings of every run. The simulator may have more repetitions.
        """
        overrides = self.overrides
        if engine == SIM.name and self.sim_reps is not None:
            overrides = replace(overrides, reps=self.sim_reps)
        if len(self.engines) > 1:
            missing = {key: value for key, value in engine_of(engine).requires.items() if key not in overrides.settings}
            overrides = replace(overrides, settings={**overrides.settings, **missing})
        return overrides

    @property
    def _order(self) -> tuple[str, ...]:
        """The engines in the order in which they run."""
        late = self._late
        return self.engines if late is None else (late, *(name for name in self.engines if name != late))

    @property
    def _late(self) -> str | None:
        """The engine that gives the simulator its noise: the first whose links are late by themselves."""
        if not self.same_noise or SIM.name not in self.engines:
            return None
        return next((name for name in self.engines if engine_of(name).has_sockets), None)

    def _with_noise_of(self, kernel_runs: Path, overrides: Overrides) -> Overrides:
        """The same with what the kernel's hosts took, unless the caller says how much or the scenario asks for more."""
        from mptcplab.metrics.emulation import host_times

        runs = resolved_runs(self.scenario, overrides)
        times = host_times(Results.open(kernel_runs))
        noise = {
            HOST_DELAY: max(times.delay_ns, _largest("host_delay_ns", runs)),
            SEND_JITTER: max(times.jitter_ns, _largest("send_jitter_ns", runs)),
        }
        settings = {key: f'"{ns} ns"' for key, ns in noise.items()}
        return replace(overrides, settings={**settings, **overrides.settings})

    def _progress(self, engine: str, part: Part) -> Progress | None:
        """The progress of one engine as progress of all."""
        report = self.progress
        if report is None or len(self.engines) == 1:
            return report
        position, sizes = self._order.index(engine), self._sizes
        (runs_before, seconds_before), (all_runs, all_seconds) = (_sum(part) for part in (sizes[:position], sizes))
        runs, seconds = sizes[position]
        finished = runs - len(part.missing)
        runs_before, seconds_before = runs_before + finished, seconds_before + seconds * finished / runs
        weight = self._weight(engine)

        def of_all(done: int, _runs: int, seconds: float, _seconds: float) -> None:
            report(runs_before + done, all_runs, seconds_before + weight * seconds, all_seconds)

        return of_all

    @cached_property
    def _sizes(self) -> list[tuple[int, float]]:
        """The number of runs and their weighted seconds, per engine in the order in which they run."""
        sizes = []
        for engine in self._order:
            runs = resolved_runs(self.scenario, self._overrides(engine))
            seconds = sum(run["duration_ns"] for run in runs) / 1e9
            sizes.append((len(runs), self._weight(engine) * seconds))
        return sizes

    def _weight(self, engine: str) -> float:
        beside = any(engine_of(other).real_time for other in self.engines) and not engine_of(engine).real_time
        return _WEIGHT_BESIDE_REAL_TIME if beside else 1.0


def _largest(key: str, runs: Iterable[dict[str, Any]]) -> int:
    """The largest value of a setting over all flows; 0 where none has it."""
    return max((flow.get(key) or 0 for run in runs for flow in run["flows"]), default=0)


def _finished(write: Callable[[], None], results: Results) -> Results:
    """The results after `write`; an error that has them if a run ended early."""
    try:
        write()
    except output.PartialOutputError as partial_output:
        if results.temporary is None:
            results = Results(partial_output.directory)
        raise UnfinishedError(str(partial_output.__cause__), results) from partial_output.__cause__
    return results


def _sum(sizes: list[tuple[int, float]]) -> tuple[int, float]:
    return sum(runs for runs, _ in sizes), sum(seconds for _, seconds in sizes)
