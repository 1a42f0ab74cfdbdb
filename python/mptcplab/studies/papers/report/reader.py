"""Reads what figures and tables show from the results of one experiment, and names its quantities for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.metrics import REGISTRY
from mptcplab.studies.papers.catalog import Experiment, FigureSpec
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.studies.papers.selectors import SelectorResolver
from mptcplab.study.cell import Cell
from mptcplab.study.measure import TIME_SERIES
from mptcplab.study.values import StoreSource
from mptcplab.trace.topology import Topology

# Quantities of the papers that the resolver derives from metrics: title and unit.
_DERIVED = {
    "ratio": ("Goodput / the paper's ideal", ""),
    "ratio_wire": ("Throughput / the paper's ideal", ""),
    "share": ("Part of the connection's throughput", ""),
    "pkt_share": ("Part of the connection's packets", ""),
    "loss_ratio": ("Ratio of the loss rates", ""),
    "throughput_kBps": ("Throughput", "kB/s"),
}
RATIOS = ("ratio", "ratio_wire")
_FLOWS = {"*": "mean of all flows", "tcp_active": "each active TCP"}


@dataclass(frozen=True)
class Quantity:
    """One value that is asked for: of an algorithm, a flow (None: of the whole run), a sweep point and a span."""

    cc: str
    flow: str | None
    point: str = ""
    span: str = ""

    @property
    def keys(self) -> dict[str, str]:
        """As the keys of a selector."""
        keys = {"cc": self.cc}
        if self.flow is not None:
            flow, _, subflow = self.flow.partition("/")
            keys |= {"flow": flow} | ({"sf": subflow} if subflow else {})
        if self.point:
            keys["sweep"] = self.point
        if self.span:
            kind, _, number = self.span.partition(" ")
            keys[kind] = number
        return keys


@dataclass(frozen=True)
class Reader:
    """The results of one experiment."""

    reproduction: Reproduction
    experiment: Experiment

    @cached_property
    def own(self) -> Experiment:
        """The experiment whose runs are looked at."""
        return self.reproduction.planner.library.source(self.experiment)

    @cached_property
    def topology(self) -> Topology:
        """The network and the flows of the scenario."""
        return self.reproduction.planner.topology(self.experiment)

    @property
    def stored(self) -> StoreSource:
        """Where the results of the cells are."""
        return self.reproduction.results

    @cached_property
    def _resolver(self) -> SelectorResolver:
        return SelectorResolver(self.reproduction.planner, self.stored, self.experiment)

    def values(self, metric: str, quantity: Quantity) -> np.ndarray:
        """One value per repetition. Raises `NotTestableError` where there are none."""
        name, _, links = metric.partition(" ")
        return self._resolver(name, quantity.keys | ({"links": links} if links else {}))

    def ideal(self, kind: str, flow: str) -> float:
        """An allocation that theory gives a flow, in Mbit/s of link rate. Raises `NotTestableError`."""
        keys = {"cc": self.own.algorithms[0], "flow": flow, "kind": kind}
        return float(self._resolver("ideal", keys).mean())

    def cell(self, cc: str) -> Cell:
        """The cell of an algorithm, at the first point of a sweep."""
        return Cell(self.own.id, cc, self.own.labels[0], self.own.profile)

    def cells(self) -> list[Cell]:
        """All cells that the figures show."""
        return self.reproduction.planner.drawn_cells(self.experiment)

    def record(self, cell: Cell) -> dict[str, Any]:
        """The record of a cell's runs. Raises `NotTestableError` if the engine refused it."""
        return self.reproduction.store.record(self.stored.digest(cell))

    def time_series(self, cc: str) -> pl.DataFrame:
        """The first repetition of an algorithm over time. Raises `NotTestableError` if the engine refused it."""
        return self.reproduction.store.table(self.stored.digest(self.cell(cc)), TIME_SERIES)

    def asked(self, spec: FigureSpec, key: str) -> Quantity:
        """The quantity of a published value, from words such as ALGORITHM, FLOW, POINT or "bin 2" in any order."""
        spans = [span for span in self.experiment.spans if re.search(rf"(^| ){re.escape(span)}( |$)", key)]
        words = key.replace(spans[0], " ").split() if spans else key.split()
        points = [point.label for point in self.own.points]
        algorithms, flows = self.algorithms(spec), flows_of(spec)
        cc, flow, point = algorithms[0], flows[0], ""
        for word in words:
            if word in algorithms:
                cc = word
            elif word in flows:
                flow = word
            elif word in points:
                point = word
            else:
                where = f"{self.experiment.id}: figure of {spec.of}: published"
                hint = f"it consists of algorithms, flows, sweep points and spans: {', '.join([*algorithms, *points])}"
                raise MptcplabError(with_hint(f"{where}: not right: {key!r} ({word!r})", hint))
        return Quantity(cc, flow, point, spans[0] if spans else "")

    def published(self, spec: FigureSpec) -> dict[Quantity, float]:
        """The values that the paper prints, by what they are about."""
        return {self.asked(spec, key): value for key, value in spec.published.items()}

    def algorithms(self, spec: FigureSpec) -> tuple[str, ...]:
        """The algorithms that a figure shows."""
        return spec.algorithms or self.own.algorithms


def flows_of(spec: FigureSpec) -> tuple[str | None, ...]:
    """The flows that a figure shows; None stands for the whole run."""
    return spec.flows or (None,)


def flow_label(flow: str | None) -> str:
    """A flow for people.

    >>> flow_label("mp/sf1+sf2"), flow_label("tcp_active"), flow_label(None)
    ('mp sf1 + sf2', 'each active TCP', '')
    """
    if flow is None:
        return ""
    return _FLOWS.get(flow, flow.replace("/", " ").replace("+", " + "))


def metric_label(metric: str) -> tuple[str, str]:
    """Title and unit of a metric of a figure.

    >>> metric_label("loss_ratio A/C"), metric_label("goodput")
    (('Ratio of the loss rates of A and C', ''), ('Goodput', 'Mbit/s'))
    """
    name, _, links = metric.partition(" ")
    if name in _DERIVED:
        title, unit = _DERIVED[name]
        return (f"{title} of {links.replace('/', ' and ')}" if links else title), unit
    return REGISTRY[name].title, REGISTRY[name].unit


def axis_label(metric: str) -> str:
    """Title with unit, for an axis."""
    title, unit = metric_label(metric)
    return f"{title} ({unit})" if unit else title


def order(reproduction: Reproduction) -> dict[str, int]:
    """The place of every algorithm of a paper: it decides order and looks in all of its figures."""
    labels: Iterable[str] = (cc for one in reproduction.paper.experiments.values() for cc in one.algorithms)
    return {label: place for place, label in enumerate(dict.fromkeys(labels))}


def sorted_by(places: Mapping[str, int], algorithms: Iterable[str]) -> list[str]:
    """Algorithms in the order of their paper."""
    return sorted(algorithms, key=lambda cc: places[cc])
