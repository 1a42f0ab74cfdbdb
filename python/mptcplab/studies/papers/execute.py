"""Runs what the store does not have yet: cells that differ only in the algorithm as one sweep, sweeps on all cores."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from mptcplab.capabilities import ENGINES
from mptcplab.errors import EngineError, ScenarioError
from mptcplab.studies.papers import pool
from mptcplab.studies.papers.cells import Cell, Digests, Kitchen, Recipe
from mptcplab.studies.papers.measure import VALUES, course, recorded, values
from mptcplab.studies.papers.store import Store
from mptcplab.sweep import run
from mptcplab.trace.topology import Topology

# Cells done, all cells, work done, all work: a million packets times links, about, is one; of the fluid, a second.
Progress = Callable[[int, int, float, float], None]
# Work of one sweep: small enough to be stored often, large enough to be worth starting.
_SWEEP_WORK = 60.0


@dataclass(frozen=True)
class Task:
    """One result to be made."""

    digest: str
    recipe: Recipe
    course: bool
    work: float
    spans: tuple[tuple[str, float, float], ...]


@dataclass
class Outcome:
    """What became of the cells: digests by cell, and why an engine refused some (by digest)."""

    digests: dict[Cell, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    made: int = 0
    found: int = 0


@dataclass
class Executor:
    """Makes results of cells on one engine and keeps them in a store."""

    kitchen: Kitchen
    store: Store
    jobs: int
    progress: Progress | None
    outcome: Outcome = field(default_factory=Outcome)
    _failed: set[Cell] = field(default_factory=set)

    def make(self, cells: Iterable[Cell]) -> None:
        """Have results of all cells, of the store or new; `outcome` tells which."""
        tasks: dict[str, Task] = {}
        for cell in cells:
            if cell in self.outcome.digests:
                continue
            task = self._task(cell)
            self.outcome.digests[cell] = task.digest
            if task.digest in self.outcome.refused:
                continue
            if self.store.has(task.digest, course=task.course):
                self.outcome.found += 1
            elif task.digest not in tasks or task.course:
                tasks[task.digest] = task
        self._run(_sweeps(tasks.values()))

    def _task(self, cell: Cell) -> Task:
        experiment = self.kitchen.library.experiments[cell.experiment]
        recipe = self.kitchen.recipe(cell)
        wants_course = cell.block == 0 and any(figure.kind == "time" for figure in experiment.figures)
        spans = tuple((name, *edges) for name, edges in experiment.spans.items())
        digest = Digests(self.kitchen.engine, experiment.spans).of(recipe)
        work = self._work(cell) * recipe.repetitions
        return Task(digest, recipe, wants_course, work, spans)

    def _work(self, cell: Cell) -> float:
        """Of one repetition: the fluid does not mind how many packets flow in its seconds."""
        topology = self.kitchen.cell_topology(cell)
        return _packet_hops(topology) if ENGINES[self.kitchen.engine].has_packets else topology.duration_ns / 1e9

    def _run(self, sweeps: list[list[Task]]) -> None:
        total, cells = sum(t.work for sweep in sweeps for t in sweep), sum(map(len, sweeps))
        done, finished = 0.0, 0
        for sweep, refused in self._results(sweeps):
            done += sum(task.work for task in sweep)
            finished += len(sweep)
            self.outcome.made += len(sweep) - len(refused)
            self.outcome.refused |= refused
            if self.progress is not None:
                self.progress(finished, cells, done, total)

    def _results(self, sweeps: list[list[Task]]) -> Iterable[tuple[list[Task], dict[str, str]]]:
        engine = self.kitchen.engine
        simulate = partial(_simulate, engine=engine, store=self.store)
        workers = 1 if ENGINES[engine].real_time else min(self.jobs or os.cpu_count() or 1, len(sweeps))
        if workers <= 1:
            return ((sweep, simulate(sweep)) for sweep in sweeps)
        # The simulator and the data frames work without the interpreter's lock; the fluid's equations are Python.
        return pool.each(simulate, sweeps, workers, processes=ENGINES[engine].in_python)


def _packet_hops(topology: Topology) -> float:
    """About how much there is to simulate in one repetition: packets times links, in millions."""
    seconds = topology.duration_ns / 1e9
    total = 0.0
    narrow: dict[str, float] = {}
    for flow in topology.flows:
        for path in flow.paths:
            link = min((topology.links[name] for name in path), key=lambda link: link.rate_bps)
            narrow[link.name] = max(narrow.get(link.name, 0.0), link.rate_bps * len(path))
    for name, rate in narrow.items():
        # A link that never fills carries what loss allows, some thousand packets a second at most.
        busy = min(rate, 20e6) if topology.links[name].loss >= 0.005 else rate
        total += busy * seconds * 1.5 / 12_000 / 1e6
    return max(total, 0.01)


def _sweeps(tasks: Iterable[Task]) -> list[list[Task]]:
    """Tasks that differ in the algorithm only, together; the largest first, so that the last ones end together."""
    groups: dict[tuple[object, ...], list[Task]] = {}
    for task in tasks:
        r = task.recipe
        key = (
            r.scenario,
            r.profile,
            r.repetitions,
            r.seed,
            r.settings,
            r.cc is None and task.digest,
            task.course,
            task.spans,
        )
        groups.setdefault(key, []).append(task)
    sweeps = []
    for group in groups.values():
        size = max(1, int(_SWEEP_WORK / group[0].work))
        sweeps += [group[i : i + size] for i in range(0, len(group), size)]
    return sorted(sweeps, key=lambda sweep: -sum(task.work for task in sweep))


def _simulate(sweep: Sequence[Task], engine: str, store: Store) -> dict[str, str]:
    """Run one sweep and keep its results; returns why the engine refused a digest."""
    try:
        _run_together(sweep, engine, store)
    except (ScenarioError, EngineError) as error:
        if len(sweep) == 1:
            return {sweep[0].digest: str(error)}
        refused: dict[str, str] = {}
        for task in sweep:
            refused |= _simulate([task], engine, store)
        return refused
    return {}


def _run_together(sweep: Sequence[Task], engine: str, store: Store) -> None:
    first = sweep[0].recipe
    cc = [task.recipe.cc for task in sweep if task.recipe.cc is not None]
    asked = first.overrides(*cc)
    with tempfile.TemporaryDirectory(prefix="mptcplab-reproduce-") as scratch:
        results = run(
            first.scenario,
            cc=asked.cc or None,
            reps=asked.reps,
            seed=asked.seed,
            jobs=1,
            out=Path(scratch) / "results",
            engine=engine,
            profile=asked.profile,
            settings=asked.settings,
        )
        spans = {name: (begin, end) for name, begin, end in sweep[0].spans}
        table = values(results, spans)
        for position, task in enumerate(sweep):
            # The algorithm is the only axis: its runs stand together, in the order asked for.
            runs = range(position * first.repetitions, (position + 1) * first.repetitions)
            mine = table.filter(pl.col("run").is_in(list(runs))).select(*VALUES)
            path = course(results, runs[0]) if task.course else None
            store.put(task.digest, mine, path, recorded(results, runs))
