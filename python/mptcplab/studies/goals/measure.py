"""What a cell's runs are reduced to: one number per repetition of everything that the goals are about."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mptcplab.output import write_text
from mptcplab.results import Results
from mptcplab.scenario import Overrides
from mptcplab.studies.goals.grid import Cell, Grid
from mptcplab.studies.goals.scenarios import MULTIPATH, Setting, algorithms, network, replacement, scenario

# Per repetition.
Values = np.ndarray


@dataclass(frozen=True)
class Measured:
    """A cell's measurements, each an array over repetitions.

    `goodput` of the multipath connection, `single_paths` of the TCP that replaces it, by path; `beside_mp` of every
    competitor beside the connection and `beside_tcp`, by path, beside that TCP (all Mbit/s). By bottleneck: `losses`
    (%) beside the connection, `loads`, what the connection sends through it (Mbit/s on the wire), and
    `uncoupled_loads`, the same of the uncoupled connection.
    """

    goodput: Values
    single_paths: Mapping[str, Values]
    beside_mp: Mapping[str, Values]
    beside_tcp: Mapping[str, Mapping[str, Values]]
    losses: Mapping[str, Values]
    loads: Mapping[str, Values]
    uncoupled_loads: Mapping[str, Values]


# Runs one variant of a scenario: the file, what the command line changes, and where the trace goes.
Runner = Callable[[Path, Overrides, Path], Results]


def measure(cell: Cell, grid: Grid, setting: Setting, run: Runner) -> Measured:
    """Simulate a cell under all algorithms that it needs; the traces are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mptcplab-goals-") as scratch:
        file = Path(scratch) / "cell.toml"
        write_text(file, scenario(cell, grid, setting))
        multipath = run(file, Overrides(), Path(scratch) / "mp")
        single = {
            path: run(file, replacement(cell, path), Path(scratch) / f"tcp-{number}")
            for number, path in enumerate(network(cell).paths, 1)
        }
        return reduce(cell, setting, multipath, single)


def reduce(cell: Cell, setting: Setting, multipath: Results, single: Mapping[str, Results]) -> Measured:
    """The measurements of a cell from the traces of its connection and, by path, of the TCP in its place."""
    where = network(cell)
    competitors = tuple(where.competitors.values())
    runs = len(algorithms(cell, setting.cc))
    beside = _Table.of(multipath, ("goodput", "throughput", "loss"), runs)
    alone = {path: _Table.of(results, ("goodput",), 1) for path, results in single.items()}
    # The file's axis begins with the algorithm in question and ends with the uncoupled one, which may be the same.
    mine, uncoupled = 0, runs - 1
    return Measured(
        beside.flow("goodput", MULTIPATH)[mine],
        {path: table.flow("goodput", MULTIPATH)[0] for path, table in alone.items()},
        {name: beside.flow("goodput", name)[mine] for name in competitors},
        {path: {name: table.flow("goodput", name)[0] for name in competitors} for path, table in alone.items()},
        {link: beside.link("loss", link)[mine] for link in where.competitors},
        {link: load[mine] for link, load in _loads(cell, beside).items()},
        {link: load[uncoupled] for link, load in _loads(cell, beside).items()},
    )


def _loads(cell: Cell, table: _Table) -> dict[str, Values]:
    """Throughput of the connection at each bottleneck: the sum over the subflows that cross it."""
    loads: dict[str, Values] = {}
    for number, link in enumerate(network(cell).bottlenecks.values(), 1):
        load = table.subflow("throughput", MULTIPATH, f"sf{number}")
        loads[link] = loads[link] + load if link in loads else load
    return loads


@dataclass(frozen=True)
class _Table:
    """Metrics of a sweep as arrays: one row per algorithm, one column per repetition."""

    frame: pl.DataFrame
    rows: int

    @classmethod
    def of(cls, results: Results, metrics: tuple[str, ...], rows: int) -> _Table:
        return cls(results.metrics(metrics), rows)

    def flow(self, metric: str, flow: str) -> Values:
        return self._values(metric, flow=flow, subflow=None, link=None)

    def subflow(self, metric: str, flow: str, subflow: str) -> Values:
        return self._values(metric, flow=flow, subflow=subflow, link=None)

    def link(self, metric: str, link: str) -> Values:
        return self._values(metric, flow=None, subflow=None, link=link)

    def _values(self, metric: str, **entity: str | None) -> Values:
        wanted = [pl.col(key).eq_missing(value) for key, value in entity.items()]
        rows = self.frame.filter(pl.col("metric") == metric, *wanted).sort("run")
        # Repetitions change fastest in the numbering of runs.
        return rows["value"].to_numpy().reshape(self.rows, -1)
