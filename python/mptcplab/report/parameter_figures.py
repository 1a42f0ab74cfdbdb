"""The figures of a metric over one parameter, and of two parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mptcplab.axes import Axis
from mptcplab.plots.figure import (
    LEFT,
    LINE,
    NOTE,
    RIGHT,
    WIDEST,
    Canvas,
    broken,
    constrained,
    grid,
    intervals_beyond,
    line_handle,
    lines_in,
    note_lines,
    styled,
    text_width,
    tick_text,
)
from mptcplab.plots.styles import PAPER, SOFT, Style
from mptcplab.report.multiples import Multiples
from mptcplab.report.parameters import Curve, Maps, Parameters
from mptcplab.text import decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UNDER = 0.52
# The narrowest plot of several side by side, and the room of a value that is no number. Points of several algorithms at
# such a value take this part of it.
_NARROWEST, _SLOT, _BESIDE = 1.0, 0.6, 0.6
# The least distance of two tick labels, from middle to middle, and the least room between them (inches).
_TICKS_APART, _BETWEEN_TICKS = 0.59, 0.08
# Distances of ticks may be smaller by this factor.
_ROUNDED = 0.99
# Sizes of a map's cell and of what is around it, inches; the most maps side by side.
_CELL, _AROUND, _MAPS = (0.62, 0.32), (1.1, 0.95), 3
# Digits on a light and on a dark cell. A dark page replaces INK and PAPER by each other, but not the colours of cells.
_DARK_DIGITS, _LIGHT_DIGITS = "#111111", "#fefefe"


@styled
def curves_figure(data: Parameters, width: float = WIDEST) -> Figure:
    """A line with its interval per algorithm; small multiples for flows and a second parameter."""
    layout = Multiples.of(data.rows, data.columns, width, _tick_texts(data.x), _narrowest(data.x))
    looks = {curve.label: curve.style for plot in data.plots for curve in plot.curves}
    top, low = _top(data), _bottom(data)
    cut = intervals_beyond(low, top, _all_ends(data), data.unit)
    notes = note_lines([*data.notes, *([cut] if cut else [])], width)
    label = broken(data.x.label, layout.inside)
    fits = "\n" not in label
    label = label if fits else broken(data.x.label, width - LEFT)
    slot = layout.inside / len(data.x.texts)
    values = None if data.x.numbers else [broken(text, slot) for text in data.x.texts]
    under = _UNDER + LINE * (lines_in(label) - 1 + max(map(lines_in, values or [""])) - 1)
    height = layout.down * layout.row_height + under + NOTE * len(notes)
    canvas = Canvas(width, height, [(line_handle(**_look(look)), name) for name, look in looks.items()], looks.values())
    canvas.write_notes(notes)
    if not fits:
        # Wider than a plot: it stands once, in the middle of all of them.
        x, y = (LEFT + width - RIGHT) / 2 / width, (NOTE * len(notes) + 0.06) / canvas.figure.get_figheight()
        canvas.figure.supxlabel(label, x=x, y=y, va="bottom")
    for plot in data.plots:
        place = layout.place(plot.row, plot.column)
        left = LEFT + place.across * (layout.inside + layout.gap)
        axes = canvas.axes(left, place.down * layout.row_height + layout.titled, layout.inside, layout.high)
        grid(axes, "both")
        if values is None:
            _scale(axes, data.x, layout.inside)
        else:
            axes.set_xlim(-0.5, len(values) - 0.5)
            axes.set_xticks(range(len(values)), values)
        for curve in plot.curves:
            if values is None:
                _draw(axes, curve)
            else:
                _draw_apart(axes, curve, list(looks).index(curve.label), len(looks))
        axes.set_ylim(low, top)
        axes.set_title(layout.titles[plot.row, plot.column], loc="left", fontweight="bold")
        axes.tick_params(labelleft=place.across == 0, labelbottom=place.is_lowest)
        if place.across == 0:
            axes.set_ylabel(broken(data.axis, layout.high))
        if place.is_lowest and fits:
            axes.set_xlabel(label)
    return canvas.figure


def _look(style: Style) -> dict[str, Any]:
    return {
        "color": style.colour,
        "linestyle": style.mpl_dash,
        "marker": style.marker,
        "markersize": 4.5,
        "linewidth": 1.3,
    }


def _draw(axes: Axes, curve: Curve) -> None:
    x = np.array([point.x for point in curve.points])
    mean = np.array([point.mean for point in curve.points])
    half = np.array([np.nan if point.half is None else point.half for point in curve.points])
    if np.isfinite(half).any():
        axes.fill_between(x, mean - half, mean + half, color=curve.style.colour, alpha=0.13, linewidth=0)
    axes.plot(x, mean, **_look(curve.style))


def _draw_apart(axes: Axes, curve: Curve, number: int, count: int) -> None:
    """The points of values between which nothing lies, with the `count` curves beside one another."""
    shift = _BESIDE * ((number + 0.5) / count - 0.5)
    x = [point.x + shift for point in curve.points]
    half = [np.nan if point.half is None else point.half for point in curve.points]
    look = _look(curve.style) | {"linestyle": "none"}
    axes.errorbar(x, [point.mean for point in curve.points], yerr=half, capsize=2.5, elinewidth=1.1, **look)


def _scale(axes: Axes, axis: Axis, width: float) -> None:
    """The horizontal axis, with a tick at every value, or at some of them where there is no room for all."""
    from matplotlib.ticker import NullLocator

    values = sorted(set(axis.numbers or ()))
    if axis.is_logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        margin = (values[-1] / values[0]) ** 0.03
        axes.set_xlim(values[0] / margin, values[-1] * margin)
    else:
        margin = 0.03 * (values[-1] - values[0])
        axes.set_xlim(values[0] - margin, values[-1] + margin)
    apart = max(_TICKS_APART, max(map(text_width, _tick_texts(axis))) + _BETWEEN_TICKS)
    ticks = _ticks(values, logarithmic=axis.is_logarithmic, most=max(2, int(width / apart)))
    axes.set_xticks(ticks, [tick_text(value) for value in ticks])


def _tick_texts(axis: Axis) -> list[str]:
    """The numbers of an axis as texts, in their order; those that are no numbers stay within their plot."""
    return [tick_text(value) for value in sorted(set(axis.numbers or ()))] or [""]


def _narrowest(axis: Axis) -> float:
    """The width that a plot needs at least, in inches."""
    return _NARROWEST if axis.numbers else max(_NARROWEST, _SLOT * len(axis.texts))


def _ticks(values: list[float], *, logarithmic: bool, most: int) -> list[float]:
    """Values that are far enough apart for their labels, among them the smallest and the largest.

    >>> _ticks([0.01, 0.0473, 0.224, 1.06, 5.0], logarithmic=True, most=4)
    [0.01, 0.0473, 0.224, 1.06, 5.0]
    >>> _ticks([0.0, 4.0, 8.0, 10.0], logarithmic=False, most=3)
    [0.0, 4.0, 10.0]
    """
    at = np.log(values) if logarithmic else np.array(values)
    # Values of a range are rounded to three digits, so that their distances differ a little.
    least = _ROUNDED * (at[-1] - at[0]) / most
    chosen = [0]
    for index in range(1, len(values)):
        if at[index] - at[chosen[-1]] >= least:
            chosen.append(index)
    chosen[-1] = len(values) - 1
    return [values[index] for index in chosen]


def _ends(data: Parameters) -> tuple[list[float], list[float]]:
    points = [point for plot in data.plots for curve in plot.curves for point in curve.points]
    means = [point.mean for point in points]
    return means, [point.mean + (point.half or 0.0) for point in points]


def _all_ends(data: Parameters) -> list[float]:
    """Both ends of every interval."""
    points = [point for plot in data.plots for curve in plot.curves for point in curve.points]
    return [point.mean + sign * (point.half or 0.0) for point in points for sign in (-1, 1)]


def _top(data: Parameters) -> float:
    """End of the axis: intervals of few repetitions can be far wider than the data; it follows the data."""
    means, ends = _ends(data)
    highest = max(means, default=1.0)
    return 1.06 * max(highest, min(max(ends, default=1.0), highest + 0.5 * abs(highest))) or 1.0


def _bottom(data: Parameters) -> float:
    lowest = min(_ends(data)[0], default=0.0)
    return min(0.0, 1.15 * lowest)


@styled
def maps_figure(data: Maps, width: float = WIDEST) -> Figure:
    """A map per algorithm with the mean in every cell; all have the same colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    cell = max(_CELL[0], 0 if data.x.numbers else min(2 * _CELL[0], max(map(text_width, data.x.texts)) + 0.1))
    across = min(_MAPS, len(data.maps), max(1, int(width / (cell * len(data.x.texts) + 0.3))))
    down = -(-len(data.maps) // across)
    size = (
        min(width, _AROUND[0] + 0.9 + across * cell * len(data.x.texts)),
        down * (_AROUND[1] + _CELL[1] * len(data.y.texts)),
    )
    figure = constrained(*size)
    grid_of_axes = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    seen = [value for one in data.maps for row in one.values for value in row if value is not None]
    scale = ScalarMappable(Normalize(min(seen, default=0.0), max(seen, default=1.0)), "viridis")
    room = (size[0] - _AROUND[0] - 0.9) / across / len(data.x.texts)
    level = room > max(map(text_width, _values(data.x)))
    for axes, one in zip(grid_of_axes.flat, data.maps, strict=False):
        _draw_map(axes, one.values, scale, data, text=room > 0.36)
        axes.set_title(broken(one.label, room * len(data.x.texts)), loc="left", fontweight="bold")
        axes.set_xticks(range(len(data.x.texts)), _values(data.x), rotation=0 if level else 60)
        axes.set_yticks(range(len(data.y.texts)), _values(data.y))
        axes.tick_params(length=0, labelbottom=True)
        axes.spines[:].set_visible(False)
    for axes in grid_of_axes.flat[len(data.maps) :]:
        axes.set_visible(False)
    figure.supxlabel(broken(data.x.label, size[0]))
    figure.supylabel(broken(data.y.label, size[1]))
    bar = figure.colorbar(scale, ax=grid_of_axes.ravel().tolist(), pad=0.02, fraction=0.03)
    bar.set_label(broken(f"{data.title} ({data.unit})" if data.unit else data.title, size[1] - 0.4))
    bar.outline.set_visible(False)
    return figure


def _values(axis: Axis) -> list[str]:
    """The values of an axis as texts; numbers have their unit beside the axis."""
    return [tick_text(number) for number in axis.numbers] if axis.numbers else list(axis.texts)


def _draw_map(
    axes: Axes, values: tuple[tuple[float | None, ...], ...], scale: object, data: Maps, *, text: bool
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.patches import Rectangle

    assert isinstance(scale, ScalarMappable)
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            corner = (x - 0.5, y - 0.5)
            if value is None:
                axes.add_patch(Rectangle(corner, 1, 1, facecolor=PAPER, edgecolor=SOFT, linewidth=0.4, hatch="//"))
                continue
            face = scale.to_rgba(np.array(value))
            axes.add_patch(Rectangle(corner, 1, 1, facecolor=face, edgecolor=PAPER, linewidth=0.8))
            if text:
                light = 0.299 * face[0] + 0.587 * face[1] + 0.114 * face[2] > 0.5
                colour = _DARK_DIGITS if light else _LIGHT_DIGITS
                shown = f"{value:.{decimals(value, data.digits, data.unit)}f}"
                axes.text(x, y, shown, ha="center", va="center", fontsize=8, color=colour)
    axes.set(xlim=(-0.5, len(values[0]) - 0.5), ylim=(-0.5, len(values) - 0.5))
