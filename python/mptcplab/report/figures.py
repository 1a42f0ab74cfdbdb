"""The figures of a report: goodput per configuration, and quantities over time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mptcplab.plots.figure import (
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
from mptcplab.plots.styles import INK, SOFT
from mptcplab.report.goodput import GoodputData
from mptcplab.report.series import PANELS, PlotData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_COLUMNS = 12
_KINDS = ("png", "svg")
_ROW, _UNDER, _BAR = 0.34, 0.5, 0.62
_REPETITION = {"marker": "o", "markerfacecolor": "none", "markeredgecolor": INK, "markersize": 3.5, "linestyle": "none"}
_FAIR_SHARE = REFERENCE_MARK | {"markeredgecolor": SOFT}


def write_figures(goodput: GoodputData, plots: PlotData, directory: Path) -> list[Path]:
    """Write goodput.{png,svg} and one figure over time per quantity; return their paths."""
    directory.mkdir(exist_ok=True)
    written: list[Path] = []
    if goodput.rows:
        written += save(goodput_figure(goodput), directory / "goodput", _KINDS)
    columns = first_repetitions(plots)
    for panel in PANELS:
        if any(column.of(panel) for column in columns):
            figure = over_time(columns, [panel], most_columns=3, shade=True)
            written += save(figure, directory / panel.name, _KINDS)
    return written


def first_repetitions(plots: PlotData) -> list[Column]:
    """The first run of every configuration, for as many configurations as a figure has room for."""
    firsts = {run.column.title: run.column for run in reversed(plots.runs)}
    return list(firsts.values())[::-1][:MAX_COLUMNS]


def time_figure(column: Column) -> Figure:
    """All quantities of one run, over the whole width of the page."""
    return over_time([column], [panel for panel in PANELS if column.of(panel)], most_columns=1, shade=True, alone=True)


@styled
def goodput_figure(goodput: GoodputData) -> Figure:
    """Bars split by subflow, every repetition as a circle, the 95 % interval of the total, and the fair share."""
    rows = goodput.rows
    looks = {part.label: part.style for row in rows for part in row.parts}
    handles = [(filled_handle(look.colour, hatch(look)), label) for label, look in looks.items()]
    handles.append((line_handle(**_REPETITION), "one repetition"))
    if any(row.fair_share is not None for row in rows):
        handles.append((line_handle(**_FAIR_SHARE), "fair share"))
    left = max(LEFT, 0.2 + max(text_width(row.label) for row in rows))
    high = _ROW * len(rows)
    canvas = Canvas(WIDEST, high + _UNDER, handles)
    axes = canvas.axes(left, 0, WIDEST - left - RIGHT, high)
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
