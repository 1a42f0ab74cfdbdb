"""Charts of papers as Matplotlib figures: boxes, bars, lines over the points of a sweep, and quantities over time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mptcplab.plots.figure import (
    LEFT,
    REFERENCE_LINE,
    REFERENCE_MARK,
    RIGHT,
    WIDEST,
    Canvas,
    filled,
    filled_handle,
    grid,
    hatch,
    line_handle,
    styled,
    text_width,
)
from mptcplab.plots.over_time import over_time
from mptcplab.plots.styles import INK, SOFT, style
from mptcplab.studies.papers.report.charts import PANELS, Chart, Grouped, Line, Lines, Mark, OverTime, Panel
from mptcplab.study.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Plots over time side by side.
_MOST_COLUMNS = 5
_PAPER_MARK = REFERENCE_MARK | {"markeredgecolor": INK}


@styled
def draw(chart: Chart) -> Figure:
    """The figure of a chart."""
    if isinstance(chart, OverTime):
        return over_time(chart.columns, PANELS, most_columns=_MOST_COLUMNS)
    return _lines(chart) if isinstance(chart, Lines) else _Groups(chart).draw()


def wrapped(label: str, most: int = 10) -> str:
    """A long name over several lines, broken at punctuation.

    >>> print(wrapped("ewtcp(weight=fair)"))
    ewtcp
    (weight=
    fair)
    """
    lines = [""]
    for part in re.findall(r"\(?[^-(@=_ ]*[-@=_ ]?", label):
        if lines[-1] and part and len(lines[-1] + part) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip(" ") for line in lines)


class _Groups:
    """Boxes or bars in groups side by side, in as many rows as the page needs; x is in inches."""

    _GAP, _HEIGHT, _TOP = 0.2, 2.2, 0.12

    def __init__(self, chart: Grouped) -> None:
        self.chart = chart
        self.names = [] if chart.legend else [mark.label for _, marks in chart.groups for mark in marks]
        self.upright = any(len(name) > 4 for name in self.names)
        self.slot = max(0.24, 0 if self.upright else 0.05 + max(map(text_width, self.names), default=0.0))
        self.rows = self._rows()
        widest = max(sum(self._group_width(group) for group in row) for row in self.rows)
        room = WIDEST - LEFT - RIGHT
        self.stretch = min(max(1.5, 1.8 / widest), room / widest)
        self.inside = widest * self.stretch

    def _group_width(self, group: tuple[str, tuple[Mark, ...]]) -> float:
        return max(len(group[1]) * self.slot, text_width(wrapped(group[0])) + 0.05) + self._GAP

    def _rows(self) -> list[list[tuple[str, tuple[Mark, ...]]]]:
        rows: list[list[tuple[str, tuple[Mark, ...]]]] = [[]]
        room, used = WIDEST - LEFT - RIGHT, 0.0
        for group in self.chart.groups:
            width = self._group_width(group)
            if rows[-1] and used + width > room:
                rows.append([])
                used = 0.0
            rows[-1].append(group)
            used += width
        return rows

    def _under(self) -> float:
        """Room below the axes for the names of marks and groups."""
        marks = 0.0 if not any(self.names) else (max(map(text_width, self.names)) if self.upright else 0.16)
        groups = 0.16 * max(wrapped(label).count("\n") + 1 for label, _ in self.chart.groups)
        return 0.1 + marks + groups + 0.06

    def draw(self) -> Figure:
        """All rows with the same scale of y."""
        row_height = self._TOP + self._HEIGHT + self._under()
        canvas = Canvas(LEFT + self.inside + RIGHT, len(self.rows) * row_height, self._handles())
        low, high = self._range()
        for index, row in enumerate(self.rows):
            axes = canvas.axes(LEFT, index * row_height + self._TOP, self.inside, self._HEIGHT)
            axes.set(xlim=(0, self.inside), ylim=(low, high))
            axes.set_ylabel(self.chart.axis)
            self._fill(axes, row)
        return canvas.figure

    def _range(self) -> tuple[float, float]:
        values: list[float] = [self.chart.reference] if self.chart.reference is not None else []
        for _, marks in self.chart.groups:
            for mark in marks:
                values += [] if mark.values is None else mark.values.tolist()
                values += [] if mark.published is None else [mark.published]
                if mark.values is not None and self.chart.kind == "bars":
                    estimate = Estimate.of(mark.values)
                    values.append(estimate.mean + (estimate.half or 0.0))
        return _axis_range(values, from_zero=self.chart.kind == "bars")

    def _fill(self, axes: Axes, row: Sequence[tuple[str, tuple[Mark, ...]]]) -> None:
        grid(axes, "y")
        if self.chart.reference is not None:
            axes.axhline(self.chart.reference, zorder=1, **REFERENCE_LINE)
        ticks, left = [], 0.0
        for label, marks in row:
            width = self._group_width((label, marks)) * self.stretch
            step = self.slot * self.stretch
            first = left + (width - step * len(marks)) / 2 + step / 2
            for index, mark in enumerate(marks):
                self._mark(axes, first + index * step, mark, 0.72 * step)
                ticks.append((first + index * step, mark.label))
            self._group_name(axes, left + width / 2, label)
            left += width
            if label != row[-1][0]:
                axes.axvline(left, color=SOFT, linewidth=0.5, alpha=0.5)
        if any(self.names):
            axes.set_xticks([x for x, _ in ticks], [name for _, name in ticks], rotation=90 if self.upright else 0)
        else:
            axes.set_xticks([])
        axes.tick_params(axis="x", length=0, pad=3)

    def _group_name(self, axes: Axes, x: float, label: str) -> None:
        names = self._under() - 0.16 * max(wrapped(text).count("\n") + 1 for text, _ in self.chart.groups) - 0.06
        axes.annotate(
            wrapped(label),
            (x, 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -72 * names),
            textcoords="offset points",
            ha="center",
            va="top",
            fontweight="bold",
            annotation_clip=False,
        )

    def _mark(self, axes: Axes, x: float, mark: Mark, width: float) -> None:
        look = style(mark.place)
        if mark.values is not None and self.chart.kind == "box":
            _box(axes, x, mark.values, width, look.colour)
        elif mark.values is not None:
            pattern = hatch(look) if self.chart.legend else ""
            _bar(axes, x, mark, width, look.colour, pattern, self._parts())
        if mark.values is not None:
            spread = np.linspace(-0.22, 0.22, len(mark.values)) * width if len(mark.values) > 1 else [0.0]
            axes.plot(
                x + np.asarray(spread),
                mark.values,
                linestyle="none",
                marker="o",
                markersize=2.6,
                markerfacecolor=INK,
                markeredgewidth=0,
                alpha=0.6,
                zorder=4,
            )
        if mark.published is not None:
            axes.plot([x], [mark.published], zorder=5, **_PAPER_MARK)

    def _parts(self) -> list[str]:
        """The names of the subflows that bars are made of, each once."""
        return list(dict.fromkeys(name for _, marks in self.chart.groups for mark in marks for name, _ in mark.parts))

    def _handles(self) -> list[tuple[Any, str]]:
        marks = [mark for _, some in self.chart.groups for mark in some]
        handles: list[tuple[Any, str]] = []
        if self.chart.legend:
            for mark in {mark.algorithm: mark for mark in marks}.values():
                look = style(mark.place)
                pattern = hatch(look) if self.chart.kind == "bars" else ""
                handles.append((filled_handle(look.colour, pattern), mark.algorithm))
        handles += [(filled_handle(SOFT, hatch(style(i))), name) for i, name in enumerate(self._parts())]
        if any(mark.published is not None for mark in marks):
            handles.append((line_handle(**_PAPER_MARK), "paper"))
        return handles


def _box(axes: Axes, x: float, values: np.ndarray, width: float, colour: str) -> None:
    line = {"color": colour, "linewidth": 1.2}
    axes.boxplot(
        [values],
        positions=[x],
        widths=[width],
        manage_ticks=False,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": colour + "40", "edgecolor": colour, "linewidth": 1.2},
        medianprops={"color": colour, "linewidth": 2.2},
        whiskerprops=line,
        capprops=line,
        zorder=3,
    )


def _bar(axes: Axes, x: float, mark: Mark, width: float, colour: str, pattern: str, names: Sequence[str]) -> None:
    assert mark.values is not None
    estimate = Estimate.of(mark.values)
    bottom = 0.0
    for name, mean in mark.parts or (("", estimate.mean),):
        part_pattern = hatch(style(names.index(name))) if name else pattern
        filled(partial(axes.bar, x, mean, bottom=bottom, width=width, zorder=2), colour, part_pattern)
        bottom += mean
    if estimate.half is not None:
        axes.errorbar(x, estimate.mean, yerr=estimate.half, color=INK, capsize=3, linewidth=1.3, zorder=5)


def _lines(chart: Lines) -> Figure:
    """Panels side by side with the same scale of y."""
    columns = min(len(chart.panels), 3)
    rows = -(-len(chart.panels) // columns)
    inside = min(5.0, (WIDEST - LEFT - RIGHT - 0.2 * (columns - 1)) / columns)
    width = LEFT + columns * inside + 0.2 * (columns - 1) + RIGHT
    title = 0.26 if any(panel.title for panel in chart.panels) else 0.1
    inner, under = 2.4, 0.5
    looks = [style(line.place) for panel in chart.panels for line in panel.lines]
    canvas = Canvas(width, rows * (title + inner + under), _line_handles(chart), looks)
    low, high = _line_range(chart)
    for index, panel in enumerate(chart.panels):
        row, column = divmod(index, columns)
        axes = canvas.axes(LEFT + column * (inside + 0.2), row * (title + inner + under) + title, inside, inner)
        _fill_panel(axes, chart, panel)
        axes.set_ylim(low, high)
        _ticks(axes, chart, inside)
        axes.set_xlabel(chart.x_axis)
        if column == 0:
            axes.set_ylabel(chart.axis)
        else:
            axes.tick_params(axis="y", labelleft=False)
    return canvas.figure


def _fill_panel(axes: Axes, chart: Lines, panel: Panel) -> None:
    grid(axes, "both")
    if chart.reference is not None:
        axes.axhline(chart.reference, **REFERENCE_LINE)
    for line in panel.lines:
        estimates = [Estimate.of(values) for values in line.values]
        means = np.array([one.mean for one in estimates])
        halves = np.array([one.half or 0.0 for one in estimates])
        look = _line_look(line)
        axes.fill_between(line.x, means - halves, means + halves, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(line.x, means, **look)
    if panel.published:
        axes.plot([x for x, _ in panel.published], [y for _, y in panel.published], zorder=5, **_PAPER_MARK)
    axes.set_title(panel.title, loc="left", fontweight="bold")


def _line_look(line: Line) -> dict[str, Any]:
    look = style(line.place)
    return {
        "color": look.colour,
        "linestyle": look.mpl_dash,
        "linewidth": 1.4,
        "marker": look.marker,
        "markersize": 4.5,
    }


def _line_handles(chart: Lines) -> list[tuple[Any, str]]:
    lines = {line.algorithm: line for panel in chart.panels for line in panel.lines}
    ordered = sorted(lines.values(), key=lambda line: line.place)
    handles: list[tuple[Any, str]] = [(line_handle(**_line_look(line)), line.algorithm) for line in ordered]
    owners = list(dict.fromkeys(panel.published_of for panel in chart.panels if panel.published))
    if owners:
        handles.append((line_handle(**_PAPER_MARK), f"paper ({', '.join(owners)})"))
    return handles


def _line_range(chart: Lines) -> tuple[float, float]:
    values = [chart.reference] if chart.reference is not None else []
    for panel in chart.panels:
        values += [value for _, value in panel.published]
        for line in panel.lines:
            for estimate in map(Estimate.of, line.values):
                # A band that is far wider than its line must not squeeze all others.
                half = min(estimate.half or 0.0, abs(estimate.mean))
                values += [estimate.mean - half, estimate.mean + half]
    return _axis_range(values)


def _axis_range(values: Sequence[float], *, from_zero: bool = False) -> tuple[float, float]:
    """From zero, except where that would leave no room for the differences of all values."""
    low, high = min(values), max(values)
    if from_zero or low < 0.5 * high:
        return min(0.0, 1.05 * low), 1.06 * high or 1.0
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _ticks(axes: Axes, chart: Lines, inches: float) -> None:
    """A label at every point, except where two would overlap."""
    xs = [x for x, _ in chart.ticks]
    if chart.scale == "symlog":
        axes.set_xscale("symlog", linthresh=min(x for x in xs if x > 0), linscale=0.5)
    elif chart.scale == "log":
        axes.set_xscale("log")
    pad = 0.04
    shown = _scaled(axes, np.array(xs, dtype=float))
    first, last = shown.min(), shown.max()
    span = (last - first) or 1.0
    limits = axes.transScale.inverted().transform([(first - pad * span, 1), (last + pad * span, 1)])
    axes.set_xlim(limits[0, 0], limits[1, 0])
    axes.minorticks_off()
    labelled: list[tuple[float, str]] = []
    taken = -np.inf
    for position, (x, label) in sorted(zip(shown, chart.ticks, strict=True)):
        at = (position - first) / span * inches / (1 + 2 * pad)
        if at - text_width(label) / 2 >= taken:
            labelled.append((x, label))
            taken = at + text_width(label) / 2 + 0.04
    axes.set_xticks([x for x, _ in labelled], [label for _, label in labelled])


def _scaled(axes: Axes, xs: np.ndarray) -> np.ndarray:
    return axes.transScale.transform(np.column_stack([xs, np.ones_like(xs)]))[:, 0]
