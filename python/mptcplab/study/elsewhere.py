"""Cells that the workers of a cluster run: each is a task, whose key is the digest of its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mptcplab.cluster import tasks
from mptcplab.cluster.connect import Cluster
from mptcplab.cluster.inputs import Inputs, other_work
from mptcplab.errors import REFUSALS
from mptcplab.scratch import Scratch
from mptcplab.study.store import Store
from mptcplab.study.sweeps import Task, run_together


@dataclass(frozen=True)
class Order:
    """A cell for a worker."""

    task: Task
    engine: str
    inputs: Inputs

    @property
    def key(self) -> str:
        """The key of its files, which are more where the samples are asked for as well."""
        return f"{self.task.digest}-series" if self.task.spec.time_series else self.task.digest


class Tasks:
    """As `workers.Tasks`, for sweeps of cells, whose results come into the store of this machine."""

    def __init__(self, cluster: Cluster, engine: str, store: Store) -> None:
        self._engine, self._store = engine, store
        self._tasks = tasks.Tasks(cluster, make, lambda order: order.key)

    def __exit__(self, *_: object) -> None:
        self._tasks.__exit__()

    def add(self, sweeps: Iterable[list[Task]], *, first: bool = False) -> None:
        """More cells; with `first`, before others that wait."""
        self._tasks.add((self._order(task) for sweep in sweeps for task in sweep), first=first)

    def results(self) -> Iterator[tuple[list[Task], dict[str, str]]]:
        """Every cell, stored, or with the reason of a refusal by its digest; raises any other error of a worker."""
        for order, result in self._tasks.results():
            if result.files is not None:
                self._store.take_over(result.files)
            if result.error is not None and not isinstance(result.error, REFUSALS):
                raise result.error
            yield [order.task], {} if result.error is None else {order.task.digest: str(result.error)}

    def _order(self, task: Task) -> Order:
        return Order(task, self._engine, Inputs.of(task.spec.scenario, task.spec.overrides().to_json()))


def make(order: Order) -> dict[str, bytes]:
    """Run a cell on a worker; return the files that a store has of it."""
    with order.inputs.unpacked() as scenario, Scratch("cell") as scratch:
        spec = replace(order.task.spec, scenario=scenario)
        if spec.digest(order.engine) != order.task.digest:
            raise other_work(order.task.digest)
        store = Store(Path(scratch) / "store", durable=False)
        store.prepare()
        run_together([replace(order.task, spec=spec)], order.engine, store)
        return store.files()
