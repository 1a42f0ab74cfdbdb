"""Run a sweep: every run of a scenario on one engine, or on several, one after the other."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike, fspath
from pathlib import Path

from mptcplab import output
from mptcplab.capabilities import ENGINES, KERNEL, OWN_TRAFFIC, SEND_JITTER, SIM
from mptcplab.engines import kernel, sim
from mptcplab.errors import MptcplabError, UnfinishedError, with_hint
from mptcplab.results import Results
from mptcplab.scenario import Overrides, resolved_runs
from mptcplab.trace.checksums import seal
from mptcplab.trace.reader import OVERRIDES, tables_in

PathArg = str | PathLike[str]
Progress = Callable[[int, int, float, float], None]
# The weight of a simulated second in the progress of several engines: a kernel runs in real time, others are faster.
_WEIGHT_BESIDE_REAL_TIME = 0.01


def run(
    scenario: PathArg,
    cc: str | Iterable[str] | None = None,
    reps: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    out: PathArg | None = None,
    *,
    engine: str | Iterable[str] = SIM.name,
    traffic: str = OWN_TRAFFIC,
    profile: str | Iterable[str] | None = None,
    duration: str | None = None,
    settings: Mapping[str, str] | None = None,
    sim_reps: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Run every run of a scenario and return its traces.

    `engine` is "sim" (the simulator), "kernel" (real sockets on this machine's kernel; needs root), "fluid" (the
    published differential equations), or several, such as ["sim", "kernel"]: then the results hold the traces of all.
    `traffic` is the program that sends on the kernel: "own" or "iperf3". `sim_reps` are the repetitions of
    the simulator beside another engine, if not `reps`; it needs less time for them. `jobs` is the number of the
    simulator's threads (0: all cores). Without `out` the trace is in a temporary directory that disappears with the
    returned object.
    `progress` is called with (finished runs, all runs, seconds done, all seconds) about five times a second.

    A run that ended early raises `UnfinishedError`, whose `results` hold what was recorded until then. Runs that do not
    count are in `Results.excluded_runs`.

    >>> import mptcplab
    >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="lia", reps=1, duration="12 s")
    >>> results.runs["cc"].to_list()
    ['lia']
    """
    engines = parse_engines(engine, traffic)
    overrides = Overrides.of(cc, reps, seed, profile, duration, settings)
    return Sweep(fspath(scenario), overrides, engines, traffic, sim_reps, jobs, progress).run(out, force=force)


def parse_engines(asked: str | Iterable[str], traffic: str = OWN_TRAFFIC) -> tuple[str, ...]:
    """Names of engines, in the order in which they run.

    Raises an error for names and traffic that do not exist, and for engines that this machine cannot run.
    """
    names = asked.split(",") if isinstance(asked, str) else list(asked)
    names = [name.strip() for name in names if name.strip()]
    known = ", ".join(ENGINES)
    for name in names:
        if name not in ENGINES:
            raise MptcplabError(with_hint(f"no such engine: {name!r}", f"one of {known}, or several: sim,fluid"))
    if not names:
        raise MptcplabError(with_hint(f"no engine in this list: {asked!r}", f"one of {known}, or several: sim,fluid"))
    if len(set(names)) < len(names):
        raise MptcplabError(with_hint(f"an engine is named twice: {','.join(names)}", f"each once, such as {known}"))
    if traffic not in KERNEL.traffic:
        raise MptcplabError(with_hint(f"no such traffic: {traffic!r}", f"one of {', '.join(KERNEL.traffic)}"))
    if not any(traffic in ENGINES[name].traffic for name in names):
        raise MptcplabError(
            with_hint(f"only the kernel engine has other traffic than its own: {traffic!r}", "add --engine kernel")
        )
    if KERNEL.name in names:
        kernel.require_available()
    return tuple(name for name in ENGINES if name in names)


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
    # The kernel runs first, and the simulator gets `send_jitter` as large as the lateness of the kernel's links.
    same_noise: bool = False

    def __post_init__(self) -> None:
        if self.sim_reps is not None and (SIM.name not in self.engines or len(self.engines) < 2):
            names = ",".join(self.engines)
            raise MptcplabError(
                with_hint(
                    f"repetitions of the simulator, which runs beside no other engine in {names}: {self.sim_reps}",
                    "give the repetitions as --reps, or more engines, such as sim,kernel",
                )
            )

    def run(self, out: PathArg | None = None, *, force: bool = False) -> Results:
        """Run all engines and return their traces, which are in `out` or in a temporary directory."""
        if out is None:
            temporary = tempfile.TemporaryDirectory(prefix="mptcplab-")
            results = Results(Path(temporary.name) / "results", temporary)
            write = partial(self._write, results.directory)
        else:
            results = Results(Path(out))
            write = partial(output.write_into, results.directory, self._write, force=force)
        try:
            write()
        except output.PartialOutputError as partial_output:
            if out is not None:
                results = Results(partial_output.directory)
            raise UnfinishedError(str(partial_output.__cause__), results) from partial_output.__cause__
        return results

    def _write(self, directory: Path) -> None:
        """Create `directory`: with the tables of the only engine, or with a directory of tables for each."""
        several = len(self.engines) > 1
        if several:
            directory.mkdir()
        try:
            for engine in self._order:
                self._run_engine(engine, directory / engine if several else directory)
        finally:
            # Also with the trace of a run that ended early.
            if directory.is_dir():
                with output.writing(f"write to {directory}", "make room there, or name another directory"):
                    output.write_text(directory / OVERRIDES, json.dumps(self._asked()) + "\n")
                    for part in tables_in(directory):
                        seal(part)

    def _asked(self) -> dict[str, object]:
        """The caller's arguments, from which the report reconstructs the command."""
        asked = json.loads(self.overrides.to_json())
        if self.traffic != OWN_TRAFFIC:
            asked["traffic"] = self.traffic
        if self.sim_reps is not None:
            asked["sim_reps"] = self.sim_reps
        if self.same_noise:
            asked["same_noise"] = True
        return asked

    def _run_engine(self, engine: str, directory: Path) -> None:
        progress, overrides = self._progress(engine), self._overrides(engine)
        if engine == SIM.name:
            beside_kernel = self._order[0] == KERNEL.name
            if beside_kernel:
                overrides = self._with_noise_of(directory.with_name(KERNEL.name), overrides)
            asked = overrides.to_json()
            sim.run(self.scenario, directory, asked, jobs=self.jobs, progress=progress, low_priority=beside_kernel)
        elif engine == KERNEL.name:
            try:
                kernel.run(self.scenario, directory, overrides.to_json(), traffic=self.traffic, progress=progress)
            except MptcplabError as error:
                if (directory / "run.parquet").is_file():
                    raise output.PartialOutputError from error
                raise
        else:
            from mptcplab.engines.fluid import engine as fluid

            fluid.run(self.scenario, directory, overrides.to_json(), progress)

    def _overrides(self, engine: str) -> Overrides:
        """The overrides that one engine runs with.

        Beside another engine, an engine leaves out the overrides that it would refuse; alone, it refuses them. The run
        table has the settings of every run. The simulator may have more repetitions.
        """
        overrides = self.overrides
        if engine == SIM.name and self.sim_reps is not None:
            overrides = replace(overrides, reps=self.sim_reps)
        if len(self.engines) > 1:
            missing = {key: value for key, value in ENGINES[engine].requires.items() if key not in overrides.settings}
            overrides = replace(overrides, settings={**overrides.settings, **missing})
        return overrides

    @property
    def _order(self) -> tuple[str, ...]:
        """The engines in the order in which they run."""
        if self.same_noise and {SIM.name, KERNEL.name} <= set(self.engines):
            return (KERNEL.name, *(name for name in self.engines if name != KERNEL.name))
        return self.engines

    def _with_noise_of(self, kernel_runs: Path, overrides: Overrides) -> Overrides:
        """The same with the kernel's noise, unless the caller says how much, or the scenario asks for more."""
        from mptcplab.metrics.emulation import jitter_ns

        if SEND_JITTER in overrides.settings:
            return overrides
        runs = resolved_runs(self.scenario, overrides)
        own = max((flow.get("send_jitter_ns") or 0 for run in runs for flow in run["flows"]), default=0)
        noise = jitter_ns(Results.open(kernel_runs), own)
        return replace(overrides, settings={**overrides.settings, SEND_JITTER: f'"{noise} ns"'})

    def _progress(self, engine: str) -> Progress | None:
        """The progress of one engine as progress of all."""
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
        """The number of runs and their weighted seconds, per engine in the order in which they run."""
        sizes = []
        for engine in self._order:
            runs = resolved_runs(self.scenario, self._overrides(engine))
            seconds = sum(run["duration_ns"] for run in runs) / 1e9
            sizes.append((len(runs), self._weight(engine) * seconds))
        return sizes

    def _weight(self, engine: str) -> float:
        beside = any(ENGINES[other].real_time for other in self.engines) and not ENGINES[engine].real_time
        return _WEIGHT_BESIDE_REAL_TIME if beside else 1.0


def _sum(sizes: list[tuple[int, float]]) -> tuple[int, float]:
    return sum(runs for runs, _ in sizes), sum(seconds for _, seconds in sizes)
