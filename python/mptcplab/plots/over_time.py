"""Quantities over time: a column per run, a row per quantity, the same axes in all columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from mptcplab.plots.figure import (
    BAND,
    LEFT,
    LEGEND_LINE,
    LINE,
    NOTE,
    RIGHT,
    WIDEST,
    Canvas,
    about,
    broken,
    grid,
    line_handle,
    lines_in,
    note_lines,
    styled,
    text_width,
)
from mptcplab.plots.styles import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAP, _BETWEEN, _TITLE, _UNDER = 0.2, 0.14, 0.28, 0.5
# From the axes to their labels, with room for numbers of six digits. Matplotlib would measure all ticks to find a place
# for them, which takes a quarter of the time of a figure.
_TO_X_LABEL, _TO_Y_LABEL = 0.27, 0.52
# The widest and the highest single plot.
_WIDE, _HIGH, _LOW = 4.4, 1.6, 1.2
# The distance that two labels at the ends of lines need, as a fraction of the height of a plot.
_LABEL_GAP = 0.11
# Between the number at the end of one time axis and the one where the next begins, at least.
_SPACE = 0.08
# Below this length, steps between the numbers of an axis may be fractions of a second.
_SHORT_S = 30
# With more lines than this their labels would overlap at their ends, and stand in a legend.
_MOST_END_LABELS = 8


# A value this many times higher than the usual ones of all lines is an outlier. Usual are all but the highest hundredth
# of a line.
_FAR, _USUAL = 5.0, 0.99


@dataclass(frozen=True)
class Panel:
    """A quantity, with its unit; if it `has_outliers`, single values may be far above all others."""

    name: str
    title: str
    unit: str
    has_outliers: bool = False

    @property
    def axis(self) -> str:
        """The label of its axis."""
        return f"{self.title} ({self.unit})"


CWND = Panel("cwnd", "Congestion window", "packets")
# What a failed path held back arrives with the length of the failure as its round-trip time.
RTT = Panel("rtt", "Round-trip time", "ms", has_outliers=True)
SMOOTHED_RTT = Panel("srtt", "Smoothed RTT", "ms", has_outliers=True)
THROUGHPUT = Panel("throughput", "Throughput", "Mbit/s")
PAYLOAD = Panel("payload", "Payload received", "Mbit/s")
QUEUE = Panel("queue", "Queue", "packets")


PANELS = (CWND, RTT, PAYLOAD, QUEUE)


@dataclass(frozen=True)
class Series:
    """One line of a panel; a value is NaN where there is nothing to draw."""

    panel: Panel
    label: str
    style: Style
    times_s: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Column:
    """The lines of one run from `begin_s` to `end_s`; scales fit what comes after `settled_s`."""

    title: str
    series: tuple[Series, ...]
    begin_s: float
    end_s: float
    settled_s: float

    def of(self, panel: Panel) -> list[Series]:
        """The lines of a panel."""
        return [series for series in self.series if series.panel == panel]


def axis_top(columns: Iterable[Column], panel: Panel) -> float:
    """End of a panel's axis: the overshoot of slow start would flatten the rest, so it may leave the plot.

    Outliers of a panel that has them may leave it as well.
    """
    lines = [_seen(series, column.settled_s, column.end_s) for column in columns for series in column.of(panel)]
    values = [line for line in lines if line.size]
    if not values:
        return 1.0
    highest = _highest(values)
    if panel.has_outliers:
        usual = max(float(np.quantile(line, _USUAL, method="lower")) for line in values)
        highest = _highest(line[line <= _FAR * usual] for line in values)
    return 1.05 * highest or 1.0


def cut_off(columns: Sequence[Column], panel: Panel, top: float) -> str | None:
    """A note on values above the end of an axis; None if there are none."""
    early = _highest(_seen(series, one.begin_s, one.settled_s) for one in columns for series in one.of(panel))
    later = _highest(_seen(series, one.settled_s, one.end_s) for one in columns for series in one.of(panel))
    highest = max(early, later)
    if highest <= top:
        return None
    when = "" if later > top else f" before {max(one.settled_s for one in columns):g} s"
    return f"{panel.title}: values of up to {about(highest)} {panel.unit}{when} are above the axis"


def _highest(lines: Iterable[np.ndarray]) -> float:
    return max((float(line.max(initial=0.0)) for line in lines), default=0.0)


def _seen(series: Series, begin_s: float, end_s: float) -> np.ndarray:
    """The values of a line in a span of time that are drawn."""
    inside = (series.times_s >= begin_s) & (series.times_s <= end_s) & np.isfinite(series.values)
    found: np.ndarray = series.values[inside]
    return found


def label_heights(lines: Sequence[Series], top: float) -> list[float]:
    """Where the labels at the right ends of lines stand, as fractions of the panel's height, far enough apart."""
    return _apart([_tail(series.values) / top for series in lines])


def _tail(values: np.ndarray) -> float:
    """Where a line ends: the mean of its last twentieth."""
    seen = values[np.isfinite(values)]
    return float(seen[-max(1, seen.size // 20) :].mean()) if seen.size else 0.0


def _apart(heights: list[float]) -> list[float]:
    """Push labels that would overlap apart, upwards, and all of them down if the highest left the plot."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed = list(heights)
    for lower, upper in pairwise(order):
        placed[upper] = max(placed[upper], placed[lower] + _LABEL_GAP)
    over = max(0.0, placed[order[-1]] - 1) if order else 0.0
    return [height - over for height in placed]


@styled
def over_time(
    columns: Sequence[Column],
    panels: Sequence[Panel],
    *,
    most_columns: int,
    shade: bool = False,
    alone: bool = False,
    note: str | None = None,
    widest: float = WIDEST,
) -> Figure:
    """The figure; `shade` marks the time before the scales count, `alone` is for one run over the whole width.

    With `alone`, lines have their labels at their ends, otherwise in a legend. `note` is a line below the plots,
    `widest` the width in inches.
    """
    layout = _Layout.of(columns, panels, most_columns, widest, alone=alone)
    tops = {panel: axis_top(columns, panel) for panel in panels}
    cut = [cut_off(columns, panel, top) for panel, top in tops.items()]
    notes = note_lines(filter(None, [note, *cut]), layout.width)
    # A flow and a link may have one name and different styles.
    drawn = sorted(_drawn(columns, panels), key=lambda series: series.style.index)
    looks = [] if alone else list(dict.fromkeys((one.label, one.style) for one in drawn))
    handles = [(_handle(look), label) for label, look in looks]
    canvas = Canvas(layout.width, layout.height + NOTE * len(notes), handles, (look for _, look in looks))
    canvas.write_notes(notes)
    for index, column in enumerate(columns):
        for number, panel in enumerate(panels):
            axes = canvas.axes(*layout.place(index, number))
            _draw(axes, column, panel, shade=shade)
            # Set explicitly: a quantity without values at first must not be stretched over the whole run.
            axes.set(xlim=layout.span, ylim=(0, tops[panel]))
            _write(axes, panel, layout, index, number)
            if alone:
                _label_ends(axes, column.of(panel), tops[panel])
    return canvas.figure


def _drawn(columns: Sequence[Column], panels: Sequence[Panel]) -> list[Series]:
    return [series for column in columns for panel in panels for series in column.of(panel)]


def _handle(look: Style) -> Any:
    return line_handle(color=look.colour, linestyle=look.mpl_dash, linewidth=LEGEND_LINE)


@dataclass(frozen=True)
class _Layout:
    """Where the plots of all columns are, in inches, and what stands above them."""

    span: tuple[float, float]
    rows: int
    per_row: int
    panels: int
    titles: tuple[str, ...]
    # Between two plots side by side, to the right of the last one, and the size of a plot.
    gap: float
    right: float
    inside: float
    high: float

    @classmethod
    def of(
        cls, columns: Sequence[Column], panels: Sequence[Panel], most_columns: int, widest: float, *, alone: bool
    ) -> _Layout:
        """At most so many columns beside one another, in a figure of at most that width."""
        rows = -(-len(columns) // most_columns)
        per_row = -(-len(columns) // rows)
        span = min(column.begin_s for column in columns), max(column.end_s for column in columns)
        at_begin, at_end = _half_widths(*span)
        gap = max(_GAP, at_end + _SPACE + at_begin)
        right = max(RIGHT, at_end + _SPACE / 2)
        if alone:
            right = RIGHT + 0.1 + max(text_width(series.label) for series in _drawn(columns, panels))
        room = (widest - LEFT - right - gap * (per_row - 1)) / per_row
        inside, high = (room, _HIGH) if alone else (min(_WIDE, room), _LOW)
        titles = tuple(broken(column.title, inside) for column in columns)
        return cls(span, rows, per_row, len(panels), titles, gap, right, inside, high)

    @property
    def width(self) -> float:
        return LEFT + self.per_row * self.inside + self.gap * (self.per_row - 1) + self.right

    @property
    def height(self) -> float:
        return self.rows * self._row

    @property
    def _title(self) -> float:
        return _TITLE + LINE * (max(map(lines_in, self.titles)) - 1) if any(self.titles) else 0.1

    @property
    def _row(self) -> float:
        return self._title + self.panels * self.high + (self.panels - 1) * _BETWEEN + _UNDER

    def place(self, column: int, panel: int) -> tuple[float, float, float, float]:
        """Left, top, width and height of the plot of a panel."""
        row, across = divmod(column, self.per_row)
        top = row * self._row + self._title + panel * (self.high + _BETWEEN)
        return LEFT + across * (self.inside + self.gap), top, self.inside, self.high

    def is_first(self, column: int) -> bool:
        """Whether the column is the leftmost of its row."""
        return column % self.per_row == 0


def _write(axes: Axes, panel: Panel, layout: _Layout, column: int, number: int) -> None:
    """The texts around a plot: those of its axes only at the edges of its column and row."""
    first, last = layout.is_first(column), number == layout.panels - 1
    axes.tick_params(labelleft=first, labelbottom=last)
    axes.xaxis.set_label_coords(0.5, -_TO_X_LABEL / layout.high)
    axes.yaxis.set_label_coords(-_TO_Y_LABEL / layout.inside, 0.5)
    if first:
        axes.set_ylabel(panel.axis.replace(" (", "\n("))
    if number == 0:
        axes.set_title(layout.titles[column], loc="left", fontweight="bold")
    if last:
        axes.set_xlabel("Time (s)")


def whole_run(column: Column) -> Figure:
    """All quantities of one run, over the whole width of the page."""
    alone = max((len(column.of(panel)) for panel in PANELS), default=0) <= _MOST_END_LABELS
    return over_time([column], [panel for panel in PANELS if column.of(panel)], most_columns=1, shade=True, alone=alone)


def _half_widths(*times_s: float) -> list[float]:
    """How far the numbers at the ends of a time axis reach beyond it, in inches."""
    decimals = 1 if max(times_s) - min(times_s) < _SHORT_S else 0
    return [text_width(f"{time_s:.{decimals}f}") / 2 for time_s in times_s]


def _draw(axes: Axes, column: Column, panel: Panel, *, shade: bool) -> None:
    grid(axes, "both")
    if shade and column.settled_s > column.begin_s:
        axes.axvspan(column.begin_s, column.settled_s, **BAND)
    for series in column.of(panel):
        look = series.style
        axes.plot(series.times_s, series.values, linewidth=0.9, color=look.colour, linestyle=look.mpl_dash)


def _label_ends(axes: Axes, lines: Sequence[Series], top: float) -> None:
    for series, height in zip(lines, label_heights(lines, top), strict=True):
        axes.text(
            1.008, height, series.label, transform=axes.transAxes, color=series.style.colour, va="center", fontsize=8.5
        )
