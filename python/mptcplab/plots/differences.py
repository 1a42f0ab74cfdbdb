"""The figure of a comparison: the values of both sides, repetition by repetition, and beside them their difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mptcplab.plots.figure import (
    LEFT,
    LINE,
    NOTE,
    REFERENCE_LINE,
    RIGHT,
    WIDEST,
    Canvas,
    broken,
    grid,
    line_handle,
    lines_in,
    note_lines,
    styled,
    text_width,
)
from mptcplab.plots.styles import INK, PAPER, SOFT, Style, style
from mptcplab.text import evenly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The height of a row, what is below all rows, and how far the two sides are from the middle of their row.
_ROW, _UNDER, _APART = 0.5, 0.5, 0.19
# The most of the width that the names of rows take, the part of the rest that the values take, and the gap behind them.
_NAMES, _VALUES, _GAP = 0.4, 0.56, 0.3
_BEFORE_NAME = 0.2
# An interval may make an axis so much longer than the values do.
_LONGER = 1.5
# Beyond the ends, so that no mark is cut.
_MARGIN = 0.05
# More repetitions of a row hide one another.
_MOST_POINTS = 60
_FAINT = 0.5


@dataclass(frozen=True)
class Side:
    """One side of a row: the mean, half of its 95 % interval, and every repetition."""

    mean: float
    half: float | None
    points: tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """A metric of one entity in one configuration. With `paired`, the points of both sides belong together."""

    label: str
    a: Side
    b: Side
    difference: float | None
    half: float | None
    paired: bool

    @property
    def is_certain(self) -> bool:
        """Whether the interval of the difference does not contain 0."""
        return self.difference is not None and self.half is not None and abs(self.difference) > self.half

    @property
    def numbers(self) -> tuple[object, ...]:
        """All that is drawn of it."""
        return self.a, self.b, self.difference, self.half


@dataclass(frozen=True)
class DifferenceData:
    """A metric of both sides: its title, its unit, the unit of differences, and the names of the sides."""

    metric: str
    title: str
    unit: str
    unit_of_difference: str
    names: tuple[str, str]
    rows: tuple[Row, ...]

    @property
    def differ(self) -> bool:
        """Whether any repetition of one side is not as all others are."""
        return any(len({row.a.mean, row.b.mean, *row.a.points, *row.b.points}) > 1 for row in self.rows)


@styled
def differences_figure(data: DifferenceData, width: float = WIDEST) -> Figure:
    """Both sides of every row with their 95 % intervals and repetitions; beside them the difference with its own."""
    looks = style(0), style(1)
    most = width * _NAMES
    names = [broken(row.label, max(LEFT, most) - _BEFORE_NAME) for row in data.rows]
    left = max(LEFT, _BEFORE_NAME + max(map(text_width, names)))
    high = len(names) * max(_ROW, 0.06 + LINE * max(map(lines_in, names)))
    across = width - left - RIGHT - _GAP
    whole = across * _VALUES
    beside = across - whole
    titles = [broken(_with_unit(data.title, data.unit), whole)]
    titles.append(broken(_with_unit("Difference", data.unit_of_difference), beside))
    sides = [side for row in data.rows for side in (row.a, row.b)]
    ends, cut = _ends([value for side in sides for value in (side.mean, *side.points)], map(_interval, sides))
    differences = [(row.difference, row.half) for row in data.rows if row.difference is not None]
    of_difference = ((value - (half or 0.0), value + (half or 0.0)) for value, half in differences)
    ends_of_difference, cut_as_well = _ends([0.0, *(value for value, _ in differences)], of_difference)
    said = ["95 % intervals reach beyond the axis"] if cut or cut_as_well else []
    notes = note_lines(said, width)
    below = _UNDER + LINE * (max(map(lines_in, titles)) - 1) + NOTE * len(notes)
    canvas = Canvas(width, high + below, _handles(data, looks))
    canvas.write_notes(notes)
    axes = canvas.axes(left, 0, whole, high)
    for y, row in enumerate(data.rows):
        _draw_values(axes, y, row, looks)
    _finish(axes, ends, titles[0], len(names))
    axes.set_yticks(range(len(names)), names)
    axes = canvas.axes(left + whole + _GAP, 0, beside, high)
    axes.axvline(0.0, **REFERENCE_LINE)
    for y, row in enumerate(data.rows):
        if row.difference is not None:
            face = INK if row.is_certain else PAPER
            axes.errorbar(row.difference, y, xerr=row.half, fmt="o", color=INK, markerfacecolor=face, capsize=3)
    _finish(axes, ends_of_difference, titles[1], len(names))
    axes.set_yticks(range(len(names)), [""] * len(names))
    return canvas.figure


def _handles(data: DifferenceData, looks: Sequence[Style]) -> list[tuple[Any, str]]:
    found = [(line_handle(**_mean(look), linewidth=1.4), name) for look, name in zip(looks, data.names, strict=True)]
    if any(len(side.points) > 1 for row in data.rows for side in (row.a, row.b)):
        found.append((line_handle(**_REPETITION, markeredgecolor=SOFT), "one repetition"))
    return found


_REPETITION: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markersize": 3.5, "linestyle": "none"}


def _mean(look: Style) -> dict[str, Any]:
    return {"marker": look.marker, "color": look.colour, "markersize": 6}


def _draw_values(axes: Axes, y: int, row: Row, looks: Sequence[Style]) -> None:
    if row.paired:
        pairs = evenly(list(zip(row.a.points, row.b.points, strict=True)), _MOST_POINTS)
        for pair in pairs if len(pairs) > 1 else ():
            axes.plot(pair, (y - _APART, y + _APART), color=SOFT, alpha=_FAINT, linewidth=0.7)
    for side, at, look in ((row.a, y - _APART, looks[0]), (row.b, y + _APART, looks[1])):
        points = evenly(side.points, _MOST_POINTS) if len(side.points) > 1 else []
        axes.plot(points, [at] * len(points), alpha=_FAINT, markeredgecolor=look.colour, **_REPETITION)
        axes.errorbar(side.mean, at, xerr=side.half, capsize=3, linestyle="none", **_mean(look))


def _finish(axes: Axes, ends: tuple[float, float], title: str, rows: int) -> None:
    grid(axes, "x")
    axes.set(xlim=ends, ylim=(rows - 0.5, -0.5), xlabel=title)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.tick_params(axis="y", length=0)
    # Rows are told apart by more than their distance.
    for edge in range(1, rows):
        axes.axhline(edge - 0.5, color=SOFT, alpha=0.25, linewidth=0.6)


def _interval(side: Side) -> tuple[float, float]:
    return side.mean - (side.half or 0.0), side.mean + (side.half or 0.0)


def _ends(seen: Sequence[float], intervals: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], bool]:
    """The ends of an axis that follows the values, and whether intervals leave it: some are far wider.

    >>> _ends([0.0, 10.0], [(-1.0, 12.0)]), _ends([0.0, 10.0], [(-100.0, 12.0)])
    (((-1.65, 12.65), False), ((-16.35, 13.35), True))
    """
    low, high = min(seen), max(seen)
    size = high - low or abs(high) or 1.0
    edges = [edge for interval in intervals for edge in interval]
    lowest, highest = min([low, *edges]), max([high, *edges])
    start, end = max(lowest, low - _LONGER * size), min(highest, high + _LONGER * size)
    margin = _MARGIN * (end - start or size)
    is_cut = lowest < start - margin or highest > end + margin
    return (round(start - margin, 12), round(end + margin, 12)), is_cut


def _with_unit(title: str, unit: str) -> str:
    return f"{title} ({unit})" if unit else title
