"""Runs what the store does not have: cells that differ only in the algorithm as one sweep, sweeps on all cores."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import polars as pl

from mptcplab.capabilities import engine_of
from mptcplab.errors import EngineError, ScenarioError
from mptcplab.study import workers
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.study.measure import TIME_SERIES, VALUES, metric_values, record, time_series
from mptcplab.study.store import Store
from mptcplab.sweep import Progress, run

# Work of one sweep: small enough to be stored often, large enough to be worth starting.
_SWEEP_WORK = 60.0


@dataclass(frozen=True)
class Task:
    """One result to be made."""

    digest: str
    spec: RunSpec
    work: float


@dataclass
class Outcome:
    """The outcome of some cells: digests by cell, the reasons of refusals, and the digests of new and old results."""

    digests: dict[Cell, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    reused: set[str] = field(default_factory=set)

    def of(self, cells: Container[Cell]) -> Outcome:
        """The outcome of some cells (of block 0) with all of their further blocks."""
        digests = {cell: digest for cell, digest in self.digests.items() if replace(cell, block=0) in cells}
        found = set(digests.values())
        refused = {digest: why for digest, why in self.refused.items() if digest in found}
        return Outcome(digests, refused, self.made & found, self.reused & found)


@dataclass
class Executor:
    """Makes results of cells on one engine and stores them; `spec` maps a cell to its runs."""

    spec: Callable[[Cell], RunSpec]
    engine: str
    store: Store
    jobs: int
    progress: Progress | None
    outcome: Outcome = field(default_factory=Outcome)

    def make(self, cells: Iterable[Cell]) -> None:
        """Have results of all cells, stored before or new; `outcome` tells which."""
        tasks: dict[str, Task] = {}
        for cell in cells:
            if cell in self.outcome.digests:
                continue
            spec = self.spec(cell)
            digest = self.outcome.digests[cell] = spec.digest(self.engine)
            if digest in self.outcome.refused:
                continue
            if self.store.has(digest, VALUES, *([TIME_SERIES] if spec.time_series else [])):
                self.outcome.reused |= {digest} - self.outcome.made
            elif digest not in tasks or spec.time_series:
                tasks[digest] = Task(digest, spec, spec.work(self.engine))
        self._run(_sweeps(tasks.values()))

    def _run(self, sweeps: list[list[Task]]) -> None:
        tasks = [task for sweep in sweeps for task in sweep]
        total, runs = sum(task.work for task in tasks), sum(task.spec.repetitions for task in tasks)
        done, finished = 0.0, 0
        for sweep, refused in self._results(sweeps):
            done += sum(task.work for task in sweep)
            finished += sum(task.spec.repetitions for task in sweep)
            self.outcome.made |= {task.digest for task in sweep} - set(refused)
            self.outcome.refused |= refused
            if self.progress is not None:
                self.progress(finished, runs, done, total)

    def _results(self, sweeps: list[list[Task]]) -> Iterator[tuple[list[Task], dict[str, str]]]:
        task = partial(_run_sweep, engine=self.engine, store=self.store)
        jobs = 1 if engine_of(self.engine).real_time else min(self.jobs or os.cpu_count() or 1, len(sweeps))
        if jobs <= 1:
            return ((sweep, task(sweep)) for sweep in sweeps)
        # The simulator and the data frames work without the interpreter's lock; the fluid's equations are Python.
        return workers.each(task, sweeps, jobs, processes=engine_of(self.engine).in_python)


def _sweeps(tasks: Iterable[Task]) -> list[list[Task]]:
    """Tasks that differ in the algorithm only, together; the largest first, so that the last ones end together."""
    groups: dict[object, list[Task]] = {}
    for task in tasks:
        alone = task.digest if task.spec.cc is None else ""
        groups.setdefault((replace(task.spec, cc=None), alone), []).append(task)
    sweeps = []
    for group in groups.values():
        size = max(1, int(_SWEEP_WORK / group[0].work))
        sweeps += [group[i : i + size] for i in range(0, len(group), size)]
    return sorted(sweeps, key=lambda sweep: -sum(task.work for task in sweep))


def _run_sweep(sweep: Sequence[Task], engine: str, store: Store) -> dict[str, str]:
    """Run one sweep and store its results; return why the engine refused a digest."""
    try:
        _run_together(sweep, engine, store)
    except (ScenarioError, EngineError) as error:
        if len(sweep) == 1:
            return {sweep[0].digest: str(error)}
        refused: dict[str, str] = {}
        for task in sweep:
            refused |= _run_sweep([task], engine, store)
        return refused
    return {}


def _run_together(sweep: Sequence[Task], engine: str, store: Store) -> None:
    first = sweep[0].spec
    asked = first.overrides(*(task.spec.cc for task in sweep if task.spec.cc is not None))
    with tempfile.TemporaryDirectory(prefix="mptcplab-study-") as scratch:
        results = run(
            first.scenario,
            cc=asked.cc or None,
            reps=asked.reps,
            seed=asked.seed,
            jobs=1,
            out=Path(scratch) / "results",
            engine=engine,
            profile=asked.profile or None,
            settings=asked.settings,
        )
        values = metric_values(results, first.metrics, first.spans)
        for position, task in enumerate(sweep):
            # The algorithm is the only axis: its runs stand together, in the order asked for.
            runs = range(position * first.repetitions, (position + 1) * first.repetitions)
            mine = values.filter(pl.col("run").is_in(list(runs))).drop("run")
            series = time_series(results, runs[0]) if first.time_series else None
            store.put(task.digest, record(results, runs), **{VALUES: mine, TIME_SERIES: series})
