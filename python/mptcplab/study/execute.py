"""Runs what the store does not have: sweeps of cells on all cores, or cells on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Self

from mptcplab.capabilities import engine_of
from mptcplab.cluster.connect import Cluster
from mptcplab.scratch import remove_abandoned
from mptcplab.study import elsewhere, workers
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.study.measure import TIME_SERIES, VALUES
from mptcplab.study.store import Store
from mptcplab.study.sweeps import Task, run_sweep, sweeps
from mptcplab.sweep import Progress


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

    With a `cluster`, its workers make them, each cell as a task of its own. While it is entered, what was added is run,
    whatever the caller does meanwhile.
    """

    spec: Callable[[Cell], RunSpec]
    engine: str
    store: Store
    jobs: int
    progress: Progress | None
    outcome: Outcome = field(default_factory=Outcome)
    cluster: Cluster | None = None
    # Set when nobody waits for results any more.
    _stop: Event = field(default_factory=Event)
    _known: dict[str, Task] = field(default_factory=dict)
    _work: _Work = field(default_factory=_Work)
    # Since the caller was last given a chance to add more.
    _was_added: bool = False
    _tasks: workers.Tasks[list[Task], dict[str, str]] | elsewhere.Tasks | None = None

    def make(self, cells: Iterable[Cell]) -> None:
        """Have results of all cells, stored before or new; `outcome` tells which."""
        with self:
            self.add(cells)
            for _ in self.finished():
                pass

    def __enter__(self) -> Self:
        remove_abandoned()
        self._stop.clear()
        self._was_added = True
        if self.cluster is not None:
            self._tasks = elsewhere.Tasks(self.cluster, self.engine, self.store)
            return self
        engine = engine_of(self.engine)
        jobs = 1 if engine.real_time else self.jobs or os.cpu_count() or 1
        # The simulator and the data frames work without the interpreter's lock; the fluid's equations are Python.
        stop = None if engine.in_python else self._stop
        task = partial(run_sweep, engine=self.engine, store=self.store, stop=stop)
        self._tasks = workers.Tasks(task, jobs, processes=engine.in_python)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._tasks is not None
        self._stop.set()
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
        self._tasks.add(sweeps(tasks.values(), self.engine), first=first)

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
