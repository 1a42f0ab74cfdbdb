"""Sweeps of cells: those that are run and measured together, from a call of the engine to the store."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from threading import Event

import polars as pl

from mptcplab.capabilities import SIM, engine_of
from mptcplab.engines import sim
from mptcplab.errors import REFUSALS
from mptcplab.results import Results
from mptcplab.scenario import Overrides
from mptcplab.scratch import Scratch
from mptcplab.study.cell import RunSpec
from mptcplab.study.measure import TIME_SERIES, VALUES, metric_values, record, time_series
from mptcplab.study.store import Store
from mptcplab.sweep import run

# Work of one sweep: small enough to be stored often, large enough to be worth starting.
_SWEEP_WORK = 120.0


@dataclass(frozen=True)
class Task:
    """One result to be made."""

    digest: str
    spec: RunSpec
    work: float


def sweeps(tasks: Iterable[Task], engine: str) -> list[list[Task]]:
    """Tasks that are run and measured together; the largest first, so that the last ones end together.

    They have a scenario file and what is measured in common, and on the fluid differ in the algorithm only. On a kernel
    each task is a sweep of its own: it takes long, and what was measured is stored.
    """
    groups: dict[object, dict[object, list[Task]]] = {}
    for task in tasks:
        together = groups.setdefault(_together(task, engine), {})
        together.setdefault(_call(task), []).append(task)
    found = []
    for group in groups.values():
        # Those of one call are neighbours.
        found += _of_size([task for same in group.values() for task in same], _SWEEP_WORK)
    return sorted(found, key=lambda sweep: -sum(task.work for task in sweep))


def _together(task: Task, engine: str) -> object:
    """What the tasks of a sweep have in common."""
    if engine == SIM.name:
        return task.spec.scenario, task.spec.metrics, task.spec.spans
    return task.digest if engine_of(engine).has_sockets else _call(task)


def _call(task: Task) -> object:
    """What tasks have in common that one set of overrides describes."""
    return replace(task.spec, cc=None, time_series=False), task.digest if task.spec.cc is None else ""


def _of_size(tasks: Iterable[Task], work: float) -> list[list[Task]]:
    """Tasks in lists, each of which ends as soon as it has so much work."""
    found: list[list[Task]] = []
    room = 0.0
    for task in tasks:
        if room <= 0:
            found.append([])
            room = work
        found[-1].append(task)
        room -= task.work
    return found


def run_sweep(sweep: Sequence[Task], engine: str, store: Store, stop: Event | None = None) -> dict[str, str]:
    """Run one sweep and store its results; return why the engine refused a digest.

    Other errors, such as a run that ended early, are raised: they say nothing about what the engine can do. A kernel's
    runs end with `KeyboardInterrupt` as soon as `stop` is set, because Ctrl-C reaches the main thread only.
    """
    try:
        run_together(sweep, engine, store, stop)
    except REFUSALS as error:
        if len(sweep) == 1:
            return {sweep[0].digest: str(error)}
        refused: dict[str, str] = {}
        for task in sweep:
            refused |= run_sweep([task], engine, store, stop)
        return refused
    return {}


def run_together(sweep: Sequence[Task], engine: str, store: Store, stop: Event | None = None) -> None:
    """Run one sweep and store its results; `stop` as in `run_sweep`. Raises what the engine refuses."""
    first = sweep[0].spec
    with _traces(sweep, engine, store) as directory:
        results = _results(first.scenario, _overrides(sweep), engine, directory, stop)
        values = metric_values(results, first.metrics, first.spans)
        begin = 0
        for task in sweep:
            # Runs stand in the order in which they were asked for.
            runs = range(begin, begin + task.spec.repetitions)
            begin = runs.stop
            mine = values.filter(pl.col("run").is_in(list(runs))).drop("run")
            series = time_series(results, runs[0]) if task.spec.time_series else None
            store.put(task.digest, record(results, runs), **{VALUES: mine, TIME_SERIES: series})


def _overrides(sweep: Sequence[Task]) -> list[Overrides]:
    """What is asked of the engine: the algorithm is the only axis of each call."""
    calls = [[task.spec for task in same] for _, same in groupby(sweep, _call)]
    return [specs[0].overrides(*(spec.cc for spec in specs if spec.cc is not None)) for specs in calls]


@contextmanager
def _traces(sweep: Sequence[Task], engine: str, store: Store) -> Iterator[Path]:
    """A directory for traces that are measured at once and then removed.

    Runs on a kernel outlive the process, so that after an interrupt or a crash the next call goes on with them.
    """
    if not engine_of(engine).has_sockets:
        with Scratch("study") as scratch:
            yield Path(scratch) / "results"
        return
    directory = store.unfinished / sweep[0].digest
    try:
        yield directory
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        with suppress(OSError):
            store.unfinished.rmdir()


def _results(scenario: Path, calls: Sequence[Overrides], engine: str, directory: Path, stop: Event | None) -> Results:
    if engine == SIM.name:
        sim.run_scratch(str(scenario), directory, [asked.to_json() for asked in calls])
        return Results.open(directory)
    (asked,) = calls

    def go_on(*_: float) -> None:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt

    return run(
        scenario,
        cc=asked.cc or None,
        reps=asked.reps,
        seed=asked.seed,
        jobs=1,
        out=directory,
        engine=engine,
        profile=asked.profile or None,
        settings=asked.settings,
        progress=go_on,
    )
