"""The figures of a report: goodput per configuration, and quantities over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mptcplab.metrics import REGISTRY
from mptcplab.plots.figure import (
    KINDS,
    LEFT,
    REFERENCE_MARK,
    RIGHT,
    WIDEST,
    Canvas,
    filled,
    filled_handle,
    grid,
    hatch,
    line_handle,
    save,
    styled,
    text_width,
)
from mptcplab.plots.over_time import Column, over_time
from mptcplab.plots.saving import FiguresOverTime
from mptcplab.plots.styles import INK, SOFT
from mptcplab.report.goodput import GoodputData
from mptcplab.report.parameter_figures import curves_figure, maps_figure
from mptcplab.report.parameters import (
    drawn_metrics,
    evenly,
    is_drawn_over_parameter,
    maps,
    numeric_axes,
    over_parameter,
)
from mptcplab.report.request_figures import request_figures
from mptcplab.report.series import PANELS, PlotData

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mptcplab.trace.reader import Trace

MAX_COLUMNS = 12
# With more lines than this their labels would overlap at their ends, and stand in a legend.
MOST_END_LABELS = 8
_ROW, _UNDER, _BAR = 0.34, 0.5, 0.62
# The part of the width that bars take beside the flows of families, and the gap between them.
_BARS_BESIDE_MEMBERS, _BESIDE = 0.56, 0.25
_REPETITION: dict[str, Any] = {
    "marker": "o",
    "markerfacecolor": "none",
    "markeredgecolor": INK,
    "markersize": 3.5,
    "linestyle": "none",
}
_FAIR_SHARE = REFERENCE_MARK | {"markeredgecolor": SOFT}


@dataclass(frozen=True)
class MetricFigure:
    """A figure of a metric, or of requests; its name is that of its file."""

    name: str
    title: str
    figure: Figure


def figures_over_time(plots: PlotData, directory: Path) -> FiguresOverTime:
    """The figures over time that belong into `directory`."""
    columns, left_out = first_repetitions(plots)
    return FiguresOverTime(columns, PANELS, left_out, directory)


def write_figures(drawn: Sequence[MetricFigure], directory: Path) -> None:
    """Write the figures of metrics."""
    for one in drawn:
        save(one.figure, directory / one.name, KINDS)


def metric_figures(trace: Trace, goodput: GoodputData) -> list[MetricFigure]:
    """The figures of metrics, over the parameter of a sweep or else goodput as bars, and those of requests."""
    found = []
    for name, figure in _of_metrics(trace, goodput):
        metric, dash, _ = name.partition("-")
        found.append(MetricFigure(name, REGISTRY[metric].title + (" over two parameters" if dash else ""), figure))
    return found + [MetricFigure(*one) for one in request_figures(trace)]


def _of_metrics(trace: Trace, goodput: GoodputData) -> Iterator[tuple[str, Figure]]:
    if not is_drawn_over_parameter(trace):
        if goodput.rows:
            yield "goodput", goodput_figure(goodput)
        return
    for metric in drawn_metrics(trace):
        yield metric, curves_figure(over_parameter(trace, metric))
    if len(numeric_axes(trace)) > 1:
        yield "goodput-map", maps_figure(maps(trace))


def first_repetitions(plots: PlotData) -> tuple[list[Column], str | None]:
    """The first run of every configuration, and what is left out where a figure has no room for all.

    Then every algorithm keeps some: the first, the last and others between them.
    """
    firsts = {run.column.title: run.column for run in reversed(plots.runs)}
    columns = list(firsts.values())[::-1]
    lines = lines_left_out(plots)
    if len(columns) <= MAX_COLUMNS:
        return columns, lines
    by_algorithm: dict[str, list[Column]] = {}
    for column in columns:
        by_algorithm.setdefault(column.title.partition(",")[0], []).append(column)
    each = max(1, MAX_COLUMNS // len(by_algorithm))
    kept = [one for group in by_algorithm.values() for one in evenly(group, each)]
    how = "the page and results.plot.over_time(CONFIGURATION) show each of them"
    note = f"{len(kept)} of {len(columns)} configurations; {how}"
    return kept, f"{note}; {lines}" if lines else note


def lines_left_out(plots: PlotData) -> str | None:
    """A note if the figures over time do not have every line."""
    return f"{', '.join(plots.lines)}: the page and Results.subflow have the others" if plots.lines else None


def time_figure(column: Column) -> Figure:
    """All quantities of one run, over the whole width of the page."""
    alone = max((len(column.of(panel)) for panel in PANELS), default=0) <= MOST_END_LABELS
    return over_time([column], [panel for panel in PANELS if column.of(panel)], most_columns=1, shade=True, alone=alone)


@styled
def goodput_figure(goodput: GoodputData, width: float = WIDEST) -> Figure:
    """Bars split by subflow, every repetition as a circle, the 95 % interval of the total, and the fair share."""
    rows = goodput.rows
    looks = {part.label: part.style for row in rows for part in row.parts}
    handles = [(filled_handle(look.colour, hatch(look)), label) for label, look in looks.items()]
    handles.append((line_handle(**_REPETITION), "one repetition"))
    if any(row.fair_share is not None for row in rows):
        handles.append((line_handle(**_FAIR_SHARE), "fair share"))
    left = max(LEFT, 0.2 + max(text_width(row.label) for row in rows))
    high = _ROW * len(rows)
    canvas = Canvas(width, high + _UNDER, handles)
    across = width - left - RIGHT
    whole = across * _BARS_BESIDE_MEMBERS if goodput.has_members else across
    axes = canvas.axes(left, 0, whole, high)
    if goodput.has_members:
        _draw_members(canvas.axes(left + whole + _BESIDE, 0, across - whole - _BESIDE, high), goodput)
    grid(axes, "x")
    for y, row in enumerate(rows):
        edge = 0.0
        for part in row.parts:
            filled(partial(axes.barh, y, part.mean, left=edge, height=_BAR), part.style.colour, hatch(part.style))
            edge += part.mean
        axes.plot(row.points, np.full(len(row.points), y), alpha=0.7, **_REPETITION)
        axes.errorbar(row.mean, y, xerr=row.half, fmt="|", color=INK, capsize=3)
        if row.fair_share is not None:
            axes.plot([row.fair_share], [y], **_FAIR_SHARE)
    axes.set(xlim=(0, goodput.top), ylim=(len(rows) - 0.5, -0.5), xlabel=goodput.axis)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    return canvas.figure


def _draw_members(axes: Axes, goodput: GoodputData) -> None:
    """A circle per flow of a family, their mean, and Jain's index."""
    grid(axes, "x")
    rows = goodput.rows
    top = 1.35 * max(value for row in rows for value in (*row.members, 0.0)) or 1.0
    for y, row in enumerate(rows):
        if not row.members:
            continue
        values = np.array(row.members)
        axes.plot(values, np.full(values.size, y), alpha=0.45, **_REPETITION)
        axes.plot([values.mean()], [y], marker="|", markersize=12, color=INK, markeredgewidth=1.6)
        if row.jain is not None:
            axes.text(top, y, f"Jain {row.jain:.3f}", ha="right", va="center", fontsize=8, color=SOFT)
    axes.set(xlim=(0, top), ylim=(len(rows) - 0.5, -0.5), xlabel=f"Each flow ({goodput.unit})")
    axes.set_yticks(range(len(rows)), [""] * len(rows))
