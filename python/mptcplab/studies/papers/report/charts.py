"""The numbers behind each figure of a paper; `draw.py` turns them into a drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mptcplab.plots.over_time import CWND, SMOOTHED_RTT, THROUGHPUT, Column, Series
from mptcplab.plots.styles import subflow_labels, subflow_styles
from mptcplab.studies.papers.catalog import FigureSpec
from mptcplab.studies.papers.report.reader import (
    RATIOS,
    Quantity,
    Reader,
    axis_label,
    flow_label,
    flows_of,
    metric_label,
    sorted_by,
)
from mptcplab.study.statistics import Estimate
from mptcplab.study.values import NotTestableError

# Rows of a table of numbers: who, where, and the estimate.
Row = tuple[str, str, Estimate]
# Metrics that have a value for every subflow, which can be stacked.
_STACKABLE = ("throughput", "goodput", "pps")
# Of the figures over time; the names are columns of `study.measure.time_series`.
PANELS = (CWND, SMOOTHED_RTT, THROUGHPUT)
# What part of a run is left out of the scales of figures over time.
_UNSETTLED = 0.2


@dataclass(frozen=True)
class Mark:
    """One box or bar: `place` of its algorithm, one value per repetition, parts of the mean, the paper's value."""

    label: str
    algorithm: str
    place: int
    values: np.ndarray | None
    parts: tuple[tuple[str, float], ...] = ()
    published: float | None = None


@dataclass(frozen=True)
class Grouped:
    """Boxes or bars in groups. Each mark has a label of its own, unless a legend names the algorithms."""

    kind: str
    axis: str
    groups: tuple[tuple[str, tuple[Mark, ...]], ...]
    reference: float | None
    legend: bool = False

    def rows(self) -> list[Row]:
        """The numbers as a table."""
        return [
            (mark.algorithm, label if self.legend else mark.label, Estimate.of(mark.values))
            for label, marks in self.groups
            for mark in marks
            if mark.values is not None
        ]


@dataclass(frozen=True)
class Line:
    """One algorithm over x: a value per repetition at each point."""

    algorithm: str
    place: int
    x: tuple[float, ...]
    values: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Panel:
    """Lines of one flow; the paper's values as points, and which algorithm they are of."""

    title: str
    lines: tuple[Line, ...]
    published: tuple[tuple[float, float], ...] = ()
    published_of: str = ""


@dataclass(frozen=True)
class Lines:
    """Panels with common axes; `ticks` are the points of x with their labels."""

    panels: tuple[Panel, ...]
    x_axis: str
    axis: str
    ticks: tuple[tuple[float, str], ...]
    scale: str
    reference: float | None
    # How a point is named in the table of numbers.
    names: Mapping[float, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers as a table."""
        found = []
        for panel in self.panels:
            for line in panel.lines:
                for x, values in zip(line.x, line.values, strict=True):
                    where = ", ".join(part for part in (panel.title, self.names.get(x, f"{x:g}")) if part)
                    found.append((line.algorithm, where, Estimate.of(values)))
        return found


@dataclass(frozen=True)
class OverTime:
    """One repetition over time: a column per algorithm."""

    columns: tuple[Column, ...]

    def rows(self) -> list[Row]:
        """There is no table of values over time."""
        return []


Chart = Grouped | Lines | OverTime


@dataclass(frozen=True)
class Figure:
    """A chart with its title and caption, and notes on what is missing; no chart if nothing was measured."""

    experiment: str
    spec: FigureSpec
    title: str
    caption: str
    chart: Chart | None
    notes: tuple[str, ...]


def figure(reader: Reader, spec: FigureSpec, places: Mapping[str, int]) -> Figure:
    """A figure of a paper from our data."""
    return _Maker(reader, spec, places).make()


def combined(readers: Sequence[tuple[Reader, FigureSpec]], places: Mapping[str, int]) -> Figure:
    """One figure over several experiments, with the first flow that each of them shows."""
    spec = readers[0][1]
    makers = [_Maker(reader, one, places) for reader, one in readers]
    chart = _joined_lines(makers) if spec.kind == "sweep" else _joined_groups(makers)
    notes = tuple(dict.fromkeys(f"{m.reader.experiment.id}: {note}" for m in makers for note in m.notes))
    flow = flow_label(flows_of(spec)[0])
    what = metric_label(spec.metric)[0] + (f" of {flow}" if flow else "")
    title = f"{common_name(spec)}, all experiments: {what}"
    return Figure("", spec, title, _caption(spec, chart), chart, notes)


def common_name(spec: FigureSpec) -> str:
    """The number of a figure without the letter of its part."""
    return spec.of[:-1] if spec.of[-2:-1].isdigit() and spec.of[-1:].isalpha() else spec.of


def _joined_groups(makers: Sequence[_Maker]) -> Chart | None:
    groups = []
    for maker in makers:
        flow = flows_of(maker.spec)[0]
        marks = tuple(maker.mark(cc, flow) for cc in maker.algorithms)
        groups.append((maker.reader.experiment.id, marks))
    spec = makers[0].spec
    return _grouped(spec, groups, legend=True)


def _joined_lines(makers: Sequence[_Maker]) -> Chart | None:
    panels: list[Panel] = []
    for maker in makers:
        one = maker.panel(flows_of(maker.spec)[0], *maker.points())
        if one.lines:
            panels.append(Panel(maker.reader.experiment.id, one.lines, one.published, one.published_of))
    return makers[0].over_sweep(panels)


@dataclass
class _Maker:
    """Reads the values of one figure, and notes what is missing."""

    reader: Reader
    spec: FigureSpec
    places: Mapping[str, int]
    notes: list[str] = field(default_factory=list)

    def make(self) -> Figure:
        makers: dict[str, Callable[[], Chart | None]] = {
            "box": self._groups,
            "bars": self._groups,
            "time": self._over_time,
            "sweep": self._sweep,
            "spans": self._spans,
        }
        chart = makers[self.spec.kind]()
        alone = isinstance(chart, Grouped) and not chart.legend and not any(mark.label for mark in _marks(chart))
        flow = flow_label(flows_of(self.spec)[0]) if alone else ""
        title = f"{self.spec.of}: {self.spec.title or self._subject()}" + (f", {flow}" if flow else "")
        return Figure(
            self.reader.experiment.id,
            self.spec,
            title[0].upper() + title[1:],
            _caption(self.spec, chart) + self._at(),
            chart,
            tuple(dict.fromkeys(self.notes)),
        )

    @property
    def algorithms(self) -> list[str]:
        return sorted_by(self.places, self.reader.algorithms(self.spec))

    def _subject(self) -> str:
        return "window, RTT and throughput over time" if self.spec.kind == "time" else metric_label(self.spec.metric)[0]

    def _at(self) -> str:
        """The point of a sweep that is shown, if there is only one."""
        sweep = self.reader.own.sweep
        if sweep is None or self.spec.kind == "sweep":
            return ""
        return f" Shown at the first point of the sweep, {sweep.points[0].label} ({sweep.axis}: {sweep.points[0].x:g})."

    def read(self, quantity: Quantity) -> np.ndarray | None:
        """The values, or None and a note why there are none."""
        try:
            return self.reader.values(self.spec.metric, quantity)
        except NotTestableError as error:
            what = " ".join(part for part in (quantity.cc, flow_label(quantity.flow), quantity.point) if part)
            self.notes.append(f"{what} is left out: {str(error).partition(chr(10))[0]}")
            return None

    def _groups(self) -> Chart | None:
        flows = flows_of(self.spec)
        groups = [(cc, tuple(self.mark(cc, flow) for flow in flows)) for cc in self.algorithms]
        if len(flows) == 1:
            # The title names the only flow.
            groups = [(cc, tuple(replace(mark, label="") for mark in marks)) for cc, marks in groups]
        return _grouped(self.spec, groups, legend=False)

    def mark(self, cc: str, flow: str | None) -> Mark:
        quantity = Quantity(cc, flow)
        values = self.read(quantity)
        parts = self._parts(cc, flow) if self.spec.stack and values is not None else ()
        published = self.reader.published(self.spec).get(quantity)
        return Mark(flow_label(flow), cc, self.places[cc], values, parts, published)

    def _parts(self, cc: str, flow: str | None) -> tuple[tuple[str, float], ...]:
        """Means of the subflows of a flow that has several; for a set of flows, of the names that all of them share."""
        if flow is None or "/" in flow or self.spec.metric not in _STACKABLE:
            return ()
        cell_flows = self.reader.reproduction.planner.spec(self.reader.cell(cc)).topology.connections
        names = [{part.name for part in one.subflows} for one in cell_flows if flow in ("*", one.name)]
        shared = [part.name for one in cell_flows if flow in ("*", one.name) for part in one.subflows]
        common = [name for name in dict.fromkeys(shared) if all(name in some for some in names)]
        if len(common) < 2:
            return ()
        found = []
        for name in common:
            try:
                mean = float(self.reader.values(self.spec.metric, Quantity(cc, f"{flow}/{name}")).mean())
            except NotTestableError:
                return ()
            found.append((name, mean))
        return tuple(found)

    def points(self) -> tuple[list[float], list[Quantity]]:
        """The x of every point of the sweep, and the quantity to read there."""
        sweep = self.reader.own.sweep
        points = sweep.points if sweep else ()
        return [point.x for point in points], [Quantity("", None, point.label) for point in points]

    def panel(self, flow: str | None, xs: Sequence[float], where: Sequence[Quantity]) -> Panel:
        """The lines of a flow over points or spans."""
        lines = []
        for cc in self.algorithms:
            measured = []
            for x, one in zip(xs, where, strict=True):
                values = self.read(Quantity(cc, flow, one.point, one.span))
                if values is not None:
                    measured.append((x, values))
            if measured:
                lines.append(Line(cc, self.places[cc], tuple(x for x, _ in measured), tuple(v for _, v in measured)))
        printed = {q: value for q, value in self.reader.published(self.spec).items() if q.flow == flow}
        spots = {(one.point, one.span): x for x, one in zip(xs, where, strict=True)}
        marks = tuple((spots[q.point, q.span], value) for q, value in printed.items() if (q.point, q.span) in spots)
        owners = ", ".join(dict.fromkeys(q.cc for q in printed))
        return Panel(flow_label(flow), tuple(lines), marks, owners)

    def _sweep(self) -> Chart | None:
        panels = [self.panel(flow, *self.points()) for flow in flows_of(self.spec)]
        return self.over_sweep(panels)

    def over_sweep(self, panels: Iterable[Panel]) -> Lines | None:
        measured = tuple(panel for panel in panels if panel.lines)
        sweep = self.reader.own.sweep
        if not measured or sweep is None:
            return None
        ticks = tuple((point.x, f"{point.x:g}") for point in sweep.points)
        scale = x_scale([point.x for point in sweep.points])
        names = {point.x: point.label for point in sweep.points}
        return Lines(measured, sweep.axis, axis_label(self.spec.metric), ticks, scale, _reference(self.spec), names)

    def _spans(self) -> Chart | None:
        spans = self.reader.experiment.spans
        middle = [(begin + end) / 2 for begin, end in spans.values()]
        where = [Quantity("", None, "", span) for span in spans]
        panels = tuple(self.panel(flow, middle, where) for flow in flows_of(self.spec))
        measured = tuple(panel for panel in panels if panel.lines)
        if not measured:
            return None
        edges = sorted({edge for span in spans.values() for edge in span})
        ticks = tuple((edge, f"{edge:g}") for edge in edges)
        names = {x: f"{begin:g} to {end:g} s" for x, (begin, end) in zip(middle, spans.values(), strict=True)}
        return Lines(measured, "Time (s)", axis_label(self.spec.metric), ticks, "linear", _reference(self.spec), names)

    def _over_time(self) -> Chart | None:
        columns = []
        # Styles are those of the experiment, so that an algorithm with fewer subflows does not change them.
        styles, labels = subflow_styles(self.reader.topology), subflow_labels(self.reader.topology)
        shown = [key for key in styles if not self.spec.flows or key[0] in self.spec.flows]
        for cc in self.algorithms:
            try:
                table = self.reader.time_series(cc)
            except NotTestableError as error:
                self.notes.append(f"{cc} is left out: {str(error).partition(chr(10))[0]}")
                continue
            series = [
                Series(panel, labels[key], styles[key], mine["t_s"].to_numpy(), mine[panel.name].to_numpy())
                for key in shown
                if not (mine := table.filter(flow=key[0], subflow=key[1])).is_empty()
                for panel in PANELS
            ]
            if series:
                begin, end = min(s.times_s[0] for s in series), max(s.times_s[-1] for s in series)
                columns.append(Column(cc, tuple(series), begin, end, _UNSETTLED * end))
        return OverTime(tuple(columns)) if columns else None


def _grouped(spec: FigureSpec, groups: Sequence[tuple[str, tuple[Mark, ...]]], *, legend: bool) -> Grouped | None:
    """The groups that have a value; None if there is no such group."""
    measured = tuple((label, marks) for label, marks in groups if any(mark.values is not None for mark in marks))
    return Grouped(spec.kind, axis_label(spec.metric), measured, _reference(spec), legend) if measured else None


def _reference(spec: FigureSpec) -> float | None:
    return 1.0 if spec.metric in RATIOS else None


def x_scale(xs: Sequence[float]) -> str:
    """The scale of an axis: logarithmic if its points span more than a decade and are spaced more evenly then.

    >>> x_scale([1000, 100, 12]), x_scale([1000, 750, 500, 250, 100]), x_scale([0, 0.01, 0.05, 0.1, 0.5])
    ('log', 'linear', 'symlog')
    """
    points = sorted(xs)
    positive = [x for x in points if x > 0]
    if len(positive) < 2 or points[0] < 0 or positive[-1] <= 10 * positive[0]:
        return "linear"
    if _unevenness(np.log(positive)) >= _unevenness(np.array(points)):
        return "linear"
    return "log" if len(positive) == len(points) else "symlog"


def _unevenness(points: np.ndarray) -> float:
    steps = np.diff(points)
    return float(steps.max() / steps.min())


_CAPTIONS = {
    "box": "Boxes show the median and quartiles over repetitions, whiskers reach to the last value within 1.5 times "
    "the interquartile range, and every dot is a repetition.",
    "bars": "Bars show the mean over repetitions with its 95 % confidence interval; every dot is a repetition.",
    "time": "The first repetition of each algorithm; every point is the mean over 1/400 of the run. "
    "Scales fit the values after the first fifth of the run.",
    "sweep": "Lines show the mean over repetitions, and bands its 95 % confidence interval.",
    "spans": "Points show the mean over repetitions of the time between two marks of the axis, and bands its "
    "95 % confidence interval.",
}


def _caption(spec: FigureSpec, chart: Chart | None) -> str:
    if chart is None:
        return ""
    text = _CAPTIONS[spec.kind]
    if any(mark.parts for mark in _marks(chart)):
        text += " Bars are split by subflow."
    if isinstance(chart, Grouped) and chart.legend:
        text += " Within a group, algorithms are in the order of the legend."
    if spec.published:
        text += " Hollow diamonds mark the values that the paper prints."
    if spec.metric == "ratio":
        text += (
            " The line at 1 is the ideal at link rate; a connection that gets exactly its ideal on the wire is at "
            "0.943 (MPTCP) or 0.956 (TCP)."
        )
    elif spec.metric in RATIOS:
        text += " The line at 1 is the ideal."
    return text


def _marks(chart: Chart) -> list[Mark]:
    return [mark for _, marks in chart.groups for mark in marks] if isinstance(chart, Grouped) else []
