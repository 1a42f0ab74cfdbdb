"""From what a predicate or a figure asks for to numbers: one per repetition, of the cells that were run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.studies.papers.catalog import Experiment, Library
from mptcplab.studies.papers.cells import Cell, Kitchen
from mptcplab.studies.papers.execute import Outcome
from mptcplab.studies.papers.measure import MEASURED
from mptcplab.studies.papers.store import Store
from mptcplab.studies.papers.treatments import MULTIPATH
from mptcplab.trace.topology import Flow, Topology

_KINDS = {"maxmin_connection": "ideal", "maxmin_subflow": "ideal_subflow", "propfair": "ideal_propfair"}
# Names of predicates whose metric has another, and what one of the metric is in the predicate's unit.
_PERCENT = 0.01
_RENAMED = {"pearson": ("rtt_correlation", 1.0), "region_bc_share": ("decrease_mild", _PERCENT)}
_KBPS_PER_MBPS = 125.0
# What iperf3 shows is known, and in no trace.
_ELSEWHERE = ("iperf_cwnd_range", "iperf_retr")
_KNOWN = {*MEASURED, *_RENAMED, *_ELSEWHERE, "jain", "loss_ratio", "ratio", "ratio_wire", "share", "pkt_share"}
_KNOWN |= {"throughput_kBps"}


class NotTestableError(MptcplabError):
    """A predicate cannot be evaluated on this engine; the text says why."""


@dataclass(frozen=True)
class CellValues:
    """The values of one cell's repetitions by (span, metric, flow, subflow, link)."""

    repetitions: int
    by_key: Mapping[tuple[str, str, str | None, str | None, str | None], np.ndarray]

    @classmethod
    def of(cls, frames: Sequence[pl.DataFrame]) -> CellValues:
        """From the stored tables of one or more blocks of repetitions."""
        blocks = [0 if frame.is_empty() else int(frame["rep"].max()) + 1 for frame in frames]
        repetitions, first = sum(blocks), 0
        found: dict[tuple[str, str, str | None, str | None, str | None], np.ndarray] = {}
        for frame, count in zip(frames, blocks, strict=True):
            rows = frame.select("span", "metric", "flow", "subflow", "link", "rep", "value").drop_nulls("value")
            for *key, rep, value in rows.iter_rows():
                column = found.setdefault(tuple(key), np.full(repetitions, np.nan))
                column[first + rep] = value
            first += count
        return cls(repetitions, found)

    def get(
        self,
        metric: str,
        *,
        flow: str | None = None,
        subflow: str | None = None,
        link: str | None = None,
        span: str = "",
    ) -> np.ndarray:
        """One value per repetition; NaN where a repetition has none."""
        try:
            return self.by_key[span, metric, flow, subflow, link]
        except KeyError:
            return np.full(self.repetitions, np.nan)


class Source(Protocol):
    """Where the values of cells come from."""

    def values(self, cell: Cell) -> CellValues | None:
        """The values of a cell (of block 0 and its further blocks); None where they are only wished for."""


@dataclass
class Wishes:
    """A source that has nothing, and remembers what was asked of it."""

    cells: set[Cell] = field(default_factory=set)

    def values(self, cell: Cell) -> CellValues | None:
        """Nothing but a wish."""
        self.cells.add(cell)
        return None


@dataclass
class Shelf:
    """A source over the store, for a number of blocks of repetitions."""

    store: Store
    outcome: Outcome
    blocks: int = 1
    _known: dict[Cell, CellValues] = field(default_factory=dict)

    def values(self, cell: Cell) -> CellValues | None:
        """From the store; raises `NotTestableError` where the engine refused the cell."""
        if cell not in self._known:
            digests = [self._digest(cell, block) for block in range(self.blocks)]
            self._known[cell] = CellValues.of([self.store.values(digest) for digest in digests])
        return self._known[cell]

    def _digest(self, cell: Cell, block: int) -> str:
        digest = self.outcome.digests[Cell(cell.experiment, cell.label, cell.point, cell.profile, cell.variant, block)]
        if digest in self.outcome.refused:
            raise NotTestableError(self.outcome.refused[digest])
        return digest


@dataclass
class Tally:
    """A source that counts the repetitions behind what was asked of another."""

    source: Source
    repetitions: int = 0

    def values(self, cell: Cell) -> CellValues | None:
        """As of the other source."""
        found = self.source.values(cell)
        self.repetitions = max(self.repetitions, found.repetitions if found else 0)
        return found


@dataclass(frozen=True)
class Book:
    """Answers selectors such as `goodput{cc=lia,flow=mp}` for one experiment in one profile."""

    kitchen: Kitchen
    source: Source
    experiment: Experiment
    # Instead of each experiment's own profile; None leaves it.
    profile: str | None = None

    def __call__(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        """The values of a selector, one per repetition. Raises `NotTestableError` where there are none."""
        if metric not in _KNOWN:
            raise MptcplabError(
                with_hint(f"no such metric in claims: {metric!r}", f"one of {', '.join(sorted(_KNOWN))}")
            )
        page = self._page(keys)
        if page.values is None:
            return np.ones(2)
        found = page.select(metric, keys)
        if np.isnan(found).all():
            raise NotTestableError(f"{metric} has no value in {page.experiment.id} ({_described(keys)})")
        # A repetition without a value (an invalid run, a file that did not arrive) must not decide by being left out.
        if np.isnan(found).any():
            missing = f"{int(np.isnan(found).sum())} of {len(found)} repetitions"
            raise NotTestableError(f"{metric} is missing in {missing} of {page.experiment.id} ({_described(keys)})")
        return found

    def _page(self, keys: Mapping[str, str]) -> _Page:
        library: Library = self.kitchen.library
        named = library.experiments[keys["exp"]] if "exp" in keys else self.experiment
        own = library.experiments[named.view_of] if named.view_of else named
        label = keys.get("cc") or own.algorithms[0]
        point = keys.get("sweep") or (own.points[0].label if own.sweep else "")
        profile = keys.get("profile") or self.profile or own.profile
        cell = Cell(own.id, label, point, profile, keys.get("variant", ""))
        return _Page(own, self.kitchen.cell_topology(cell), self.source.values(cell))


def _described(keys: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in keys.items())


@dataclass(frozen=True)
class _Page:
    """One cell with what its flows and subflows are."""

    experiment: Experiment
    topology: Topology
    values: CellValues | None

    def select(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        if metric in _RENAMED:
            name, scale = _RENAMED[metric]
            return scale * self._get(name, keys)
        if metric in _ELSEWHERE:
            raise NotTestableError(f"{metric}: what iperf3 shows of the connection's socket is in no trace")
        if metric == "ideal":
            return self._get(_KINDS[keys["kind"]], keys)
        if metric == "jain":
            return self._jain(keys)
        if metric == "loss_ratio":
            one, other = (self._value("loss", link=link) for link in keys["links"].split("/"))
            return np.divide(one, other, out=np.full_like(one, np.nan), where=other > 0)
        if metric == "utilisation":
            return _PERCENT * self._value(metric, link=keys["link"])
        if metric == "loss":
            return self._value(metric, link=keys["link"])
        if metric in ("ratio", "ratio_wire"):
            return self._ratio("goodput" if metric == "ratio" else "throughput", keys)
        if metric in ("share", "pkt_share"):
            return self._share("throughput" if metric == "share" else "pps", keys)
        if metric == "throughput_kBps":
            return _KBPS_PER_MBPS * self._get("throughput", keys)
        return self._get(metric, keys)

    def _get(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        """The mean over the flows that are meant; subflows joined by + add up."""
        span = _span(keys)
        parts = keys["sf"].split("+") if "sf" in keys and "/" not in keys["sf"] else [None]
        columns = [
            np.sum([self._value(metric, flow=flow.name, subflow=part, span=span) for part in parts], axis=0)
            for flow in self._flows(keys)
        ]
        return np.mean(columns, axis=0)

    def _value(self, metric: str, **keys: str | None) -> np.ndarray:
        assert self.values is not None
        return self.values.get(metric, **keys)  # type: ignore[arg-type]

    def _ratio(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        columns = []
        for flow in self._flows(keys):
            ideal = self.experiment.ideal.get(flow.name)
            if ideal is None:
                raise NotTestableError(f"{self.experiment.id}: the paper names no ideal for {flow.name}")
            columns.append(self._value(metric, flow=flow.name) / ideal)
        return np.mean(columns, axis=0)

    def _share(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        whole = {key: value for key, value in keys.items() if key != "sf"}
        return self._get(metric, keys) / self._get(metric, whole)

    def _jain(self, keys: Mapping[str, str]) -> np.ndarray:
        """Jain's index of throughputs, the mean over the groups of the set that is named."""
        named = keys.get("flows", "default")
        if named.startswith("["):
            groups: tuple[tuple[str, ...], ...] = (tuple(name.strip() for name in named[1:-1].split(",")),)
        elif named in self.experiment.fairness:
            groups = self.experiment.fairness[named]
        else:
            groups = (tuple(flow.name for flow in self.topology.connections),)
        columns = []
        for group in groups:
            rates = np.stack([self._rate(name, _span(keys)) for name in group])
            columns.append(rates.sum(axis=0) ** 2 / (len(group) * (rates**2).sum(axis=0)))
        return np.mean(columns, axis=0)

    def _rate(self, name: str, span: str) -> np.ndarray:
        """Throughput of a flow, of FLOW/SUBFLOW, or of a subflow of the multipath connection."""
        flow, _, subflow = name.partition("/")
        if subflow:
            return self._value("throughput", flow=flow, subflow=subflow, span=span)
        if any(one.name == name for one in self.topology.flows):
            return self._value("throughput", flow=name, span=span)
        return self._value("throughput", flow=MULTIPATH, subflow=name, span=span)

    def _flows(self, keys: Mapping[str, str]) -> list[Flow]:
        """The flows that are meant: one, all of a group NAME-1, NAME-2, ..., or all of a kind."""
        name = keys.get("flow", MULTIPATH)
        flows = list(self.topology.connections)
        if name == "*":
            chosen = flows
        elif name == "tcp_active":
            chosen = [flow for flow in flows if len(flow.subflows) == 1 and self._lives(flow, _span(keys))]
        else:
            chosen = [flow for flow in flows if flow.name == name]
            chosen = chosen or [flow for flow in flows if flow.name.rpartition("-")[0] == name]
            if not chosen and "flow" not in keys:
                chosen = [flow for flow in flows if len(flow.subflows) > 1]
        if not chosen:
            raise NotTestableError(f"{self.experiment.id} has no flow {name!r}")
        return chosen

    def _lives(self, flow: Flow, span: str) -> bool:
        """Whether a flow is there during the whole span."""
        begin, end = self.experiment.spans[span]
        stop = self.topology.duration_ns if flow.stop_ns is None else flow.stop_ns
        return flow.start_ns <= begin * 1e9 and end * 1e9 <= stop


def _span(keys: Mapping[str, str]) -> str:
    for key in ("bin", "phase"):
        if key in keys:
            return f"{key} {keys[key]}"
    return ""
