"""The runs that measure every network, reduced to one number per repetition of each quantity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mptcplab.cluster.connect import Cluster
from mptcplab.errors import RefusedError
from mptcplab.output import write_text
from mptcplab.scenario import Overrides
from mptcplab.scratch import Scratch
from mptcplab.studies.goals.grid import Grid, Network
from mptcplab.studies.goals.scenarios import MULTIPATH, Setting, algorithms, layout, replacement, scenario
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.study.execute import Executor
from mptcplab.study.store import Store
from mptcplab.study.values import CellValues, StoreSource
from mptcplab.sweep import Progress

# One value per repetition.
Values = np.ndarray

_METRICS = ("goodput", "throughput", "loss")
# Label of the cells in which one TCP takes the place of the connection, before the name of its path.
_ONE_TCP = "tcp@"


@dataclass(frozen=True)
class Measured:
    """The measurements of a network, each an array over repetitions, NaN for one that does not count.

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

    @property
    def missing(self) -> str | None:
        """The first quantity without a value in some repetitions, because a run does not count; None without one."""
        for name, values in self._named():
            lost = int(np.isnan(values).sum())
            if lost:
                return f"{name} is missing in {lost} of {values.size} repetitions"
        return None

    def _named(self) -> Iterator[tuple[str, Values]]:
        yield "goodput of the connection", self.goodput
        yield from ((f"goodput of one TCP on {path}", values) for path, values in self.single_paths.items())
        yield from ((f"goodput of {name} beside the connection", values) for name, values in self.beside_mp.items())
        for path, rivals in self.beside_tcp.items():
            yield from ((f"goodput of {name} beside one TCP on {path}", values) for name, values in rivals.items())
        yield from ((f"loss of {link}", values) for link, values in self.losses.items())
        yield from ((f"load of {link}", values) for link, values in self.loads.items())
        yield from ((f"uncoupled load of {link}", values) for link, values in self.uncoupled_loads.items())


@dataclass(frozen=True)
class Planner:
    """Maps cells to runs; the scenario files are in `directory`."""

    grid: Grid
    setting: Setting
    directory: Path

    @cached_property
    def _networks(self) -> dict[str, tuple[Network, Path]]:
        """The networks with their scenario files, which are written here."""
        found = {}
        for number, network in enumerate(self.grid.networks):
            found[network.text] = network, self.directory / f"{number}.toml"
            write_text(found[network.text][1], scenario(network, self.grid, self.setting))
        return found

    def cells(self, network: Network) -> list[Cell]:
        """The connection under every algorithm, and one TCP on every path."""
        labels = [*algorithms(network, self.setting.cc), *(_ONE_TCP + path for path in layout(network).paths)]
        return [Cell(network.text, label) for label in labels]

    def spec(self, cell: Cell) -> RunSpec:
        """The runs of a cell."""
        network, file = self._networks[cell.experiment]
        changes = Overrides(cc=(cell.label,))
        if cell.label.startswith(_ONE_TCP):
            changes = replacement(network, cell.label.removeprefix(_ONE_TCP))
        assert self.setting.seed is not None
        settings = tuple(changes.settings.items())
        return RunSpec(
            file, changes.cc[0], self.setting.profile, self.grid.repetitions, self.setting.seed, settings, _METRICS
        )


def measure(
    grid: Grid,
    setting: Setting,
    store: Store,
    jobs: int,
    progress: Progress | None,
    cluster: Cluster | None = None,
) -> dict[Network, Measured]:
    """Run every network of a grid that the store lacks, perhaps on a cluster; the traces are deleted.

    Raises `RefusedError` where the engine refuses a network or the algorithm.
    """
    with Scratch("goals") as scratch:
        store.prepare()
        planner = Planner(grid, setting, Path(scratch))
        executor = Executor(planner.spec, setting.engine, store, jobs, progress, cluster=cluster)
        executor.make([cell for network in grid.networks for cell in planner.cells(network)])
        refused = next(iter(executor.outcome.refused.values()), None)
        if refused is not None:
            raise RefusedError(refused)
        source = StoreSource(store, executor.outcome)
        return {network: _measured(network, setting, source) for network in grid.networks}


def _measured(network: Network, setting: Setting, source: StoreSource) -> Measured:
    where = layout(network)
    competitors = tuple(where.competitors.values())
    mine, uncoupled = (source.values(Cell(network.text, cc)) for cc in (setting.cc, network.competitor))
    alone = {path: source.values(Cell(network.text, _ONE_TCP + path)) for path in where.paths}
    return Measured(
        mine.get("goodput", flow=MULTIPATH),
        {path: values.get("goodput", flow=MULTIPATH) for path, values in alone.items()},
        {name: mine.get("goodput", flow=name) for name in competitors},
        {path: {name: values.get("goodput", flow=name) for name in competitors} for path, values in alone.items()},
        {link: mine.get("loss", link=link) for link in where.competitors},
        _loads(network, mine),
        _loads(network, uncoupled),
    )


def _loads(network: Network, values: CellValues) -> dict[str, Values]:
    """Throughput of the connection at each bottleneck: the sum over the subflows that cross it."""
    loads: dict[str, Values] = {}
    for number, link in enumerate(layout(network).bottlenecks.values(), 1):
        load = values.get("throughput", flow=MULTIPATH, subflow=f"sf{number}")
        loads[link] = loads[link] + load if link in loads else load
    return loads
