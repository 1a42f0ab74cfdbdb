"""The goodput plot: its rows, for the figure and for the page's script alike, and the figure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mptcplab.plots.figure import (
    LEFT,
    LINE,
    NOTE,
    REFERENCE_MARK,
    RIGHT,
    WIDEST,
    Canvas,
    broken,
    filled,
    filled_handle,
    grid,
    hatch,
    intervals_beyond,
    line_handle,
    lines_in,
    note_lines,
    styled,
    text_width,
)
from mptcplab.plots.styles import INK, SOFT, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW, _UNDER, _BAR = 0.34, 0.5, 0.62
# The most of the width that the names of rows take, without the flows of families beside the bars, and with them.
_NAMES, _NAMES_OF_FAMILIES = 0.45, 0.35
# Where the circles have less room (inches), Jain's index stands above them.
_ROOM_FOR_JAIN = 2.0
# Between the edge of the figure and the names, and between the names and the axis.
_BEFORE_NAME = 0.2
# The part of the width that bars take beside the flows of families, and the gap between them.
_BARS_BESIDE_MEMBERS, _BESIDE = 0.56, 0.25
_REPETITION: dict[str, Any] = {
    "marker": "o",
    "markerfacecolor": "none",
    "markeredgecolor": INK,
    "markersize": 3.5,
    "linestyle": "none",
}
# Circles of more flows of a family than this hide one another; strokes are as wide as a line, and shine through.
_CROWD, _SHADE, _FAINTEST = 60, 0.45, 0.1
_STROKE: dict[str, Any] = {"marker": "|", "color": INK, "markersize": 9, "markeredgewidth": 0.8, "linestyle": "none"}
_FAIR_SHARE = REFERENCE_MARK | {"markeredgecolor": SOFT}


@dataclass(frozen=True)
class Part:
    """The mean of one subflow."""

    label: str
    mean: float
    style: Style


@dataclass(frozen=True)
class Row:
    """One connection in one configuration: its mean, half of the 95 % interval, every repetition, the fair share."""

    label: str
    mean: float
    half: float | None
    points: tuple[float, ...]
    parts: tuple[Part, ...]
    fair_share: float | None
    # The mean goodput of every flow of a family.
    members: tuple[float, ...] = ()
    # Jain's index of a family, the mean over the repetitions.
    jain: float | None = None

    @property
    def repetitions(self) -> tuple[float, ...]:
        """The repetitions that are drawn: a single one is the mean."""
        return self.points if len(self.points) > 1 else ()


@dataclass(frozen=True)
class GoodputData:
    """All rows; `title` and `unit` are those of the metric."""

    rows: tuple[Row, ...]
    title: str
    unit: str

    @property
    def has_members(self) -> bool:
        """Whether some rows are families."""
        return any(row.members for row in self.rows)

    @property
    def is_crowded(self) -> bool:
        """Whether some family has so many flows that they are strokes instead of circles."""
        return any(len(row.members) > _CROWD for row in self.rows)

    @property
    def axis(self) -> str:
        """The label of the axis."""
        return f"{self.title} ({self.unit})"

    @property
    def axis_of_members(self) -> str:
        """The label of the axis of the flows of families."""
        return f"Each flow ({self.unit})"

    @property
    def top(self) -> float:
        """End of the axis. Intervals of few repetitions can be far wider than the data; it follows the data."""
        seen = max(value for row in self.rows for value in (row.mean, row.fair_share or 0.0, *row.points))
        widest = max(row.mean + (row.half or 0.0) for row in self.rows)
        return 1.05 * max(seen, min(widest, 1.4 * seen)) or 1.0

    @property
    def cut_off(self) -> str | None:
        """A note on intervals that end beyond the axis; None if there are none."""
        widest = max((row.mean + (row.half or 0.0) for row in self.rows), default=0.0)
        return intervals_beyond(0.0, self.top, [0.0, widest], self.unit) if self.rows else None

    def for_page(self) -> dict[str, Any]:
        """The data that the page's script needs."""
        rows = [
            {key: value for key, value in vars(row).items() if key not in ("members", "jain")}
            | {"points": row.repetitions}
            | {"parts": [{"label": p.label, "mean": p.mean, **p.style.for_page()} for p in row.parts]}
            for row in self.rows
        ]
        return {"rows": rows, "unit": self.unit, "axis": self.axis, "top": self.top if rows else 1.0}


@styled
def goodput_figure(goodput: GoodputData, width: float = WIDEST) -> Figure:
    """Bars split by subflow, every repetition as a circle, the 95 % interval of the total, and the fair share."""
    rows = goodput.rows
    looks = {part.label: part.style for row in rows for part in row.parts}
    handles = [(filled_handle(look.colour, hatch(look)), label) for label, look in looks.items()]
    if any(row.repetitions for row in rows):
        handles.append((line_handle(**_REPETITION), "one repetition"))
    if any(row.fair_share is not None for row in rows):
        handles.append((line_handle(**_FAIR_SHARE), "fair share"))
    most = width * (_NAMES_OF_FAMILIES if goodput.has_members else _NAMES)
    names = [broken(row.label, max(LEFT, most) - _BEFORE_NAME) for row in rows]
    left = max(LEFT, _BEFORE_NAME + max(map(text_width, names)))
    high = len(rows) * max(_ROW, 0.06 + LINE * max(map(lines_in, names)))
    across = width - left - RIGHT
    whole = across * _BARS_BESIDE_MEMBERS if goodput.has_members else across
    beside = across - whole - _BESIDE
    titles = [broken(goodput.axis, whole), broken(goodput.axis_of_members, beside) if goodput.has_members else ""]
    notes = note_lines(filter(None, [goodput.cut_off]), width)
    canvas = Canvas(width, high + _UNDER + LINE * (max(map(lines_in, titles)) - 1) + NOTE * len(notes), handles)
    canvas.write_notes(notes)
    axes = canvas.axes(left, 0, whole, high)
    if goodput.has_members:
        _draw_members(canvas.axes(left + whole + _BESIDE, 0, beside, high), goodput, titles[1], beside)
    grid(axes, "x")
    for y, row in enumerate(rows):
        edge = 0.0
        for part in row.parts:
            filled(partial(axes.barh, y, part.mean, left=edge, height=_BAR), part.style.colour, hatch(part.style))
            edge += part.mean
        axes.plot(row.repetitions, np.full(len(row.repetitions), y), alpha=0.7, **_REPETITION)
        axes.errorbar(row.mean, y, xerr=row.half, fmt="|", color=INK, capsize=3)
        if row.fair_share is not None:
            axes.plot([row.fair_share], [y], **_FAIR_SHARE)
    axes.set(xlim=(0, goodput.top), ylim=(len(rows) - 0.5, -0.5), xlabel=titles[0])
    axes.set_yticks(range(len(rows)), names)
    return canvas.figure


def _draw_members(axes: Axes, goodput: GoodputData, title: str, room: float) -> None:
    """A circle per flow of a family, their mean, and Jain's index."""
    grid(axes, "x")
    rows = goodput.rows
    top = 1.35 * max(value for row in rows for value in (*row.members, 0.0)) or 1.0
    for y, row in enumerate(rows):
        if not row.members:
            continue
        values = np.array(row.members)
        if goodput.is_crowded:
            # Together the strokes of a row are as dark as those of _CROWD, so that the darkest place has most flows.
            shown = max(_FAINTEST, _CROWD / values.size) * _SHADE
            axes.plot(values, np.full(values.size, y), alpha=min(shown, _SHADE), **_STROKE)
        else:
            axes.plot(values, np.full(values.size, y), alpha=_SHADE, **_REPETITION)
        # Above the strokes, which are as dark.
        axes.plot([values.mean()], [y], marker="|", markersize=16, color=INK, markeredgewidth=1.6)
        if row.jain is not None:
            axes.text(
                top,
                y if room > _ROOM_FOR_JAIN else y - 0.35,
                f"Jain {row.jain:.3f}",
                ha="right",
                va="center",
                fontsize=8,
                color=SOFT,
            )
    axes.set(xlim=(0, top), ylim=(len(rows) - 0.5, -0.5), xlabel=title)
    axes.set_yticks(range(len(rows)), [""] * len(rows))
