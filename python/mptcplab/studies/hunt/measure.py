"""Runs networks and says how much a property is violated in each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mptcplab.capabilities import SIM, engine_of
from mptcplab.cluster.connect import Cluster
from mptcplab.output import write_text
from mptcplab.scratch import Scratch
from mptcplab.studies.hunt.network import AFTER, DURATION_S, MULTIPATH, SETTLED_S, Network, scenario
from mptcplab.studies.hunt.properties import CHANGED, OWN, PATHS, TCP, Property
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.study.execute import Executor
from mptcplab.study.store import Store
from mptcplab.study.values import NotTestableError, StoreSource

_METRICS = ("goodput", "std_1s", "rto_time")
_SPANS = ((AFTER, float(SETTLED_S), float(DURATION_S)),)


@dataclass
class Laboratory:
    """Measures networks on an engine, with one algorithm; the files are in `directory`."""

    cc: str
    property: Property
    directory: Path
    jobs: int = 0
    engine: str = SIM.name
    cluster: Cluster | None = None
    # The networks that were measured, by their names.
    _files: dict[str, tuple[Network, Path]] = field(default_factory=dict)

    def scores(self, networks: Sequence[Network], *, seed: int, repetitions: int = 1) -> list[np.ndarray | None]:
        """How much each network violates the property, by repetition; None where a run is refused or does not count."""
        store = Store(self.directory / "store", durable=False)
        store.prepare()
        executor = Executor(self._spec, self.engine, store, self.jobs, None, cluster=self.cluster)
        cells = [self._cells(one, seed, repetitions) for one in networks]
        executor.make(cell for some in cells for cell in some.values())
        source = StoreSource(store, executor.outcome)
        return [self._score(one, some, source) for one, some in zip(networks, cells, strict=True)]

    def _score(self, network: Network, cells: dict[str, Cell], source: StoreSource) -> np.ndarray | None:
        try:
            return self.property.score(network, {run: source.values(cell) for run, cell in cells.items()})
        except NotTestableError:
            return None

    def _cells(self, network: Network, seed: int, repetitions: int) -> dict[str, Cell]:
        """The cell of every run that the property compares."""
        found = {}
        for run in self.property.runs:
            what = network.changed() if run == CHANGED else network
            text = scenario(what, self.cc, seed, repetitions)
            name = hashlib.sha256(text.encode()).hexdigest()[:16]
            if name not in self._files:
                file = self.directory / f"{name}.toml"
                write_text(file, text)
                self._files[name] = (what, file)
            found[run] = Cell(name, run, f"{seed} {repetitions}")
        return found

    def _spec(self, cell: Cell) -> RunSpec:
        network, file = self._files[cell.experiment]
        settings = {**changes(network, self.cc, cell.label), **engine_of(self.engine).requires}
        seed, repetitions = (int(word) for word in cell.point.split())
        spans = _SPANS if self.property.changes else ()
        return RunSpec(file, None, None, repetitions, seed, tuple(settings.items()), _METRICS, spans)


def changes(network: Network, cc: str, run: str) -> dict[str, str]:
    """The settings that make a scenario one of the runs that properties compare."""
    for path in PATHS:
        links = json.dumps([list(network.paths()[path - 1])])
        if run in (TCP.format(path), OWN.format(path)):
            algorithm = network.competitor if run == TCP.format(path) else cc
            return {
                f"flows.{MULTIPATH}.transport": '"tcp"',
                f"flows.{MULTIPATH}.paths": links,
                f"flows.{MULTIPATH}.cc": json.dumps(algorithm),
            }
    return {}


@contextmanager
def laboratories(
    cc: str, properties: Iterable[Property], jobs: int, cluster: Cluster | None
) -> Iterator[list[Laboratory]]:
    """One for each property; their files disappear at the end."""
    with Scratch("hunt") as scratch:
        yield [Laboratory(cc, one, Path(scratch), jobs, cluster=cluster) for one in properties]
