"""What a figure or a table asks of the results of one experiment, and how its quantities are named for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.metrics import REGISTRY
from mptcplab.metrics.stats import t_quantile
from mptcplab.studies.papers.book import Book, NotTestableError, Shelf
from mptcplab.studies.papers.catalog import Experiment, FigureSpec
from mptcplab.studies.papers.cells import Cell
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.trace.topology import Topology

# Quantities of the papers that the book derives from metrics: title and unit.
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
class Estimate:
    """A mean over `n` repetitions; `half` is half of its 95 % interval (Student's t), None where there is none."""

    mean: float
    half: float | None
    n: int

    @classmethod
    def of(cls, values: np.ndarray) -> Estimate:
        """From one value per repetition.

        >>> Estimate.of(np.array([1.0, 3.0])).mean, round(Estimate.of(np.array([1.0, 3.0])).half, 3)
        (2.0, 12.706)
        """
        n = len(values)
        if n < 2:
            return cls(float(values.mean()), None, n)
        quantile = float(t_quantile(np.array([n - 1.0]))[0])
        return cls(float(values.mean()), quantile * float(values.std(ddof=1)) / n**0.5, n)

    def __str__(self) -> str:
        digits = decimals(self.mean if self.half is None else max(abs(self.mean), self.half))
        return f"{self.mean:.{digits}f}" + ("" if self.half is None else f" ± {self.half:.{digits}f}")


def decimals(value: float) -> int:
    """Decimals that show a number with three digits.

    >>> decimals(0.0123), decimals(9.87), decimals(424.0)
    (4, 2, 0)
    """
    return 2 if value == 0 or not np.isfinite(value) else max(0, 2 - int(np.floor(np.log10(abs(value)))))


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
        library = self.reproduction.kitchen.library
        return library.experiments[self.experiment.view_of] if self.experiment.view_of else self.experiment

    @cached_property
    def topology(self) -> Topology:
        """The network and the flows of the scenario."""
        return self.reproduction.kitchen.topology(self.experiment)

    def values(self, metric: str, quantity: Quantity) -> np.ndarray:
        """One value per repetition. Raises `NotTestableError` where there are none."""
        name, _, links = metric.partition(" ")
        return self._book(name, quantity.keys | ({"links": links} if links else {}))

    def ideal(self, kind: str, flow: str) -> float:
        """An allocation that theory gives a flow, in Mbit/s of link rate. Raises `NotTestableError`."""
        keys = {"cc": self.own.algorithms[0], "flow": flow, "kind": kind}
        return float(self._book("ideal", keys).mean())

    def cell(self, cc: str, point: str = "") -> Cell:
        """The cell of an algorithm at a point of the sweep (the first, if none is named)."""
        point = point or (self.own.points[0].label if self.own.sweep else "")  # type: ignore[union-attr]
        return Cell(self.own.id, cc, point, self.own.profile, "")

    def cells(self) -> list[Cell]:
        """All cells that the figures show."""
        points = [point.label for point in self.own.sweep.points] if self.own.sweep else [""]
        return [self.cell(cc, point) for cc in self.own.algorithms for point in points]

    def digest(self, cell: Cell) -> str:
        """Where the store has a cell. Raises `NotTestableError` if the engine refused it."""
        outcome = self.reproduction.outcome
        digest = outcome.digests.get(cell)
        if digest is None:
            raise NotTestableError(f"{cell.label}: not run")
        if digest in outcome.refused:
            raise NotTestableError(outcome.refused[digest])
        return digest

    @cached_property
    def _book(self) -> Book:
        reproduction = self.reproduction
        return Book(reproduction.kitchen, Shelf(reproduction.store, reproduction.outcome), self.experiment)

    def asked(self, spec: FigureSpec, key: str) -> Quantity:
        """What a published value is about: words such as ALGORITHM, FLOW, POINT or "bin 2", in any order."""
        spans = [span for span in self.experiment.spans if re.search(rf"(^| ){re.escape(span)}( |$)", key)]
        words = key.replace(spans[0], " ").split() if spans else key.split()
        points = [point.label for point in self.own.sweep.points] if self.own.sweep else []
        algorithms, flows = self.algorithms(spec), flows_of(spec)
        found = {"cc": algorithms[0], "flow": flows[0], "point": ""}
        for word in words:
            for part, known in (("cc", algorithms), ("flow", flows), ("point", points)):
                if word in known:
                    found[part] = word
                    break
            else:
                where = f"{self.experiment.id}: figure of {spec.of}: published"
                hint = f"it is made of algorithms, flows, sweep points and spans: {', '.join([*algorithms, *points])}"
                raise MptcplabError(with_hint(f"{where}: not right: {key!r} ({word!r})", hint))
        return Quantity(found["cc"], found["flow"], found["point"] or "", spans[0] if spans else "")

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
