"""Runs what the store does not have: cells that differ only in the algorithm as one sweep, sweeps on all cores."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self

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
class _Work:
    """What was asked for, and what of it is done: of runs, and of their work."""

    runs: int = 0
    finished: int = 0
    total: float = 0.0
    done: float = 0.0


@dataclass
class Executor:
    """Makes results of cells on one engine and stores them; `spec` maps a cell to its runs.

    While it is entered, what was added is run, whatever the caller does meanwhile.
    """

    spec: Callable[[Cell], RunSpec]
    engine: str
    store: Store
    jobs: int
    progress: Progress | None
    outcome: Outcome = field(default_factory=Outcome)
    _known: dict[str, Task] = field(default_factory=dict, repr=False)
    _work: _Work = field(default_factory=_Work, repr=False)
    # Since the caller was last given a chance to add more.
    _was_added: bool = field(default=False, repr=False)
    _tasks: workers.Tasks[list[Task], dict[str, str]] | None = field(default=None, repr=False)

    def make(self, cells: Iterable[Cell]) -> None:
        """Have results of all cells, stored before or new; `outcome` tells which."""
        with self:
            self.add(cells)
            for _ in self.finished():
                pass

    def __enter__(self) -> Self:
        engine = engine_of(self.engine)
        jobs = 1 if engine.real_time else self.jobs or os.cpu_count() or 1
        task = partial(_run_sweep, engine=self.engine, store=self.store)
        # The simulator and the data frames work without the interpreter's lock; the fluid's equations are Python.
        self._tasks = workers.Tasks(task, jobs, processes=engine.in_python)
        self._was_added = True
        return self

    def __exit__(self, *_: object) -> None:
        assert self._tasks is not None
        self._tasks.__exit__()
        self._tasks = None

    def add(self, cells: Iterable[Cell], *, first: bool = False) -> None:
        """Have results of all cells made that are not stored; with `first`, before those of others that wait."""
        tasks: dict[str, Task] = {}
        for cell in cells:
            if cell in self.outcome.digests:
                continue
            self._was_added = True
            spec = self.spec(cell)
            digest = self.outcome.digests[cell] = spec.digest(self.engine)
            if digest in self.outcome.refused:
                continue
            known = tasks.get(digest) or self._known.get(digest)
            if known is not None and (known.spec.time_series or not spec.time_series):
                continue
            if self.store.has(digest, VALUES, *([TIME_SERIES] if spec.time_series else [])):
                self.outcome.reused |= {digest} - self.outcome.made
            else:
                tasks[digest] = Task(digest, spec, spec.work(self.engine))
        self._known |= tasks
        self._work.total += sum(task.work for task in tasks.values())
        self._work.runs += sum(task.spec.repetitions for task in tasks.values())
        assert self._tasks is not None
        self._tasks.add(_sweeps(tasks.values()), first=first)

    def has(self, cells: Iterable[Cell]) -> bool:
        """Whether all of some cells that were added have a result, or were refused."""
        found = self.outcome
        digests = (found.digests.get(cell) for cell in cells)
        return all(one in found.made or one in found.reused or one in found.refused for one in digests)

    def finished(self) -> Iterator[None]:
        """Give the caller a chance to add more, at once and whenever results were made, until nothing was added."""
        assert self._tasks is not None
        while self._was_added:
            self._was_added = False
            yield
            for sweep, refused in self._tasks.results():
                self._note(sweep, refused)
                yield

    def _note(self, sweep: list[Task], refused: dict[str, str]) -> None:
        """A sweep has ended."""
        self._work.done += sum(task.work for task in sweep)
        self._work.finished += sum(task.spec.repetitions for task in sweep)
        self.outcome.made |= {task.digest for task in sweep} - set(refused)
        self.outcome.refused |= refused
        if self.progress is not None:
            self.progress(self._work.finished, self._work.runs, self._work.done, self._work.total)


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
