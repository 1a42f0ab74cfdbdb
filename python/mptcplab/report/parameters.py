"""Metrics over the parameters of a sweep: curves of every algorithm, and maps of two parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab import axes as sweep_axes
from mptcplab.axes import Axis
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.metrics import REGISTRY
from mptcplab.plots.styles import Style, style
from mptcplab.report import tables
from mptcplab.report.drawn_values import drawn_metrics, drawn_values
from mptcplab.text import evenly

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mptcplab.trace.reader import Trace

# An axis with fewer values is not drawn as a curve: two bars say more.
LEAST_VALUES = 3
# The most panels side by side or below each other; a second parameter has more values than that in its map.
MOST_PANELS = 6


@dataclass(frozen=True)
class Point:
    """The mean over repetitions at a value of the parameter, and half of its 95 % interval."""

    x: float
    mean: float
    half: float | None


@dataclass(frozen=True)
class Curve:
    """One algorithm."""

    label: str
    style: Style
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Plot:
    """The curves of one flow, subflow or link at one value of the second parameter."""

    row: str
    column: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Parameters:
    """A metric over one parameter, in a grid of plots.

    Rows are flows, subflows or links, columns values of a second parameter.
    """

    metric: str
    title: str
    unit: str
    x: Axis
    second: Axis | None
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    plots: tuple[Plot, ...]
    # What the figure does not show, and how to see it.
    notes: tuple[str, ...]

    @property
    def axis(self) -> str:
        """The label of the axis of the metric."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True)
class Map:
    """The means of a metric over two parameters, for one algorithm and flow; None where no run counts."""

    label: str
    values: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Maps:
    """A metric over two parameters: a map per algorithm and flow, with the same colours."""

    title: str
    unit: str
    digits: int
    x: Axis
    y: Axis
    maps: tuple[Map, ...]


def numeric_axes(trace: Trace) -> list[Axis]:
    """The parameters whose values are numbers, that with the most values first."""
    numeric = [axis for axis in sweep_axes.axes(trace) if axis.numbers is not None]
    return sorted(numeric, key=lambda axis: -len(axis.texts))


def is_drawn_over_parameter(trace: Trace) -> bool:
    """Whether a report draws curves over a parameter instead of bars."""
    found = numeric_axes(trace)
    return bool(found) and len(found[0].texts) >= LEAST_VALUES


def over_parameter(
    trace: Trace,
    metric: str = "goodput",
    parameter: str | None = None,
    flows: Iterable[str] | None = None,
    links: Iterable[str] | None = None,
) -> Parameters:
    """A metric over `parameter` (without it, the numeric axis with the most values)."""
    x = _axis(trace, parameter)
    others = [axis for axis in sweep_axes.axes(trace) if axis.key != x.key]
    second = next(iter(_by_size(others)), None)
    series = [axis for axis in others if second is None or axis.key != second.key]
    places = _places(trace)
    frame = _with_axes(drawn_values(trace, metric, flows, links), places, x)
    names = list(dict.fromkeys(_series(place, series, trace) for place in places.values()))
    looks = {name: style(index) for index, name in enumerate(names)}
    grid: dict[tuple[str, str], dict[str, list[Point]]] = {}
    shown = evenly(second.texts, MOST_PANELS) if second is not None else []
    for config, entity, mean, half in frame.iter_rows():
        place = places[config]
        if second is not None and place.get(second.key, shown[0]) not in shown:
            continue
        column = f"{second.key} = {place[second.key]}" if second is not None and second.key in place else ""
        curves = grid.setdefault((entity, column), {})
        point = Point(x.place(place[x.key]), mean, half)
        curves.setdefault(_series(place, series, trace), []).append(point)
    plots = tuple(
        Plot(row, column, tuple(_curve(name, looks[name], curves[name]) for name in names if name in curves))
        for (row, column), curves in grid.items()
    )
    about = REGISTRY[metric]
    return Parameters(
        metric,
        about.title,
        about.unit,
        x,
        second,
        tuple(dict.fromkeys(plot.row for plot in plots)),
        tuple(dict.fromkeys(plot.column for plot in plots)),
        plots,
        (*_left_out(trace, frame), *_not_shown(metric, second, shown)),
    )


def _not_shown(metric: str, second: Axis | None, shown: Sequence[str]) -> tuple[str, ...]:
    if second is None or len(shown) == len(second.texts):
        return ()
    others = ", ".join(text for text in second.texts if text not in shown)
    call = f"results.plot.over({second.key!r}, {metric!r})"
    return (f"{second.key}: {len(shown)} of {len(second.texts)} values are shown; {call} draws {others} as well",)


def maps(
    trace: Trace,
    metric: str = "goodput",
    x: str | None = None,
    y: str | None = None,
    flows: Iterable[str] | None = None,
    links: Iterable[str] | None = None,
) -> Maps:
    """A metric over two parameters (without names, the numeric ones with the most values)."""
    numeric = numeric_axes(trace)
    across = _axis(trace, x)
    rest = [axis for axis in numeric if axis.key != across.key]
    up = _axis(trace, y) if y is not None else rest[0] if rest else None
    if up is None or up.key == across.key:
        hint = f"the sweep has {len(numeric)}: " + ", ".join(axis.key for axis in numeric)
        raise MptcplabError(with_hint("a map needs two parameters with numbers", hint))
    others = [axis for axis in sweep_axes.axes(trace) if axis.key not in (across.key, up.key)]
    places = _places(trace)
    frame = _with_axes(drawn_values(trace, metric, flows, links), places, across, up)
    several = frame["entity"].n_unique() > 1
    cells: dict[str, dict[tuple[str, str], float]] = {}
    for config, entity, mean, _ in frame.iter_rows():
        place = places[config]
        series = _series(place, others, trace)
        label = f"{series}: {entity}" if several else series
        cells.setdefault(label, {})[place[across.key], place[up.key]] = mean
    found = tuple(
        Map(label, tuple(tuple(values.get((a, b)) for a in across.texts) for b in up.texts))
        for label, values in cells.items()
    )
    about = REGISTRY[metric]
    return Maps(about.title, about.unit, about.digits, across, up, found)


def nothing_to_draw(trace: Trace, metric: str, names: object) -> MptcplabError:
    """The error for a metric of which no value can be drawn; `names` are those of chosen flows or links."""
    if names is not None and not isinstance(names, str):
        return MptcplabError(with_hint(f"no values of {metric} for these: {names!r}", "leave them out for all"))
    hint = "others have values, such as " + ", ".join(drawn_metrics(trace))
    return MptcplabError(with_hint(f"{metric} has no value here", hint))


def _axis(trace: Trace, key: str | None) -> Axis:
    if key is None:
        numeric = numeric_axes(trace)
        if not numeric:
            hint = 'such as sweep={"links.B1.loss": "0.01 %..5 % log 7"}'
            raise MptcplabError(with_hint("these results have no parameter with several numbers", hint))
        return numeric[0]
    found = sweep_axes.axes(trace)
    for axis in found:
        if axis.key == key:
            return axis
    names = ", ".join(axis.key for axis in found) or "none"
    raise MptcplabError(with_hint(f"no such parameter with several values: {key!r}", f"there are: {names}"))


def _by_size(axes: list[Axis]) -> list[Axis]:
    """Numeric axes first, then those with more values."""
    return sorted(axes, key=lambda axis: (axis.numbers is None, -len(axis.texts)))


def _places(trace: Trace) -> dict[str, dict[str, Any]]:
    """The values of the axes of every configuration as texts, with its algorithm and engine."""
    from mptcplab.trace.reader import axes_of

    rows = trace.configs.select("run", "config").join(
        trace.runs.select("run", "axes", "cc", "engine"), on="run", maintain_order="left"
    )
    return {config: axes_of(texts) | {"cc": cc, "engine": engine} for _, config, texts, cc, engine in rows.iter_rows()}


def _series(place: dict[str, Any], others: list[Axis], trace: Trace) -> str:
    """What a curve stands for: the algorithm, other parameters, and the engine if there are several."""
    parts = [place["cc"], *(f"{axis.key} = {place[axis.key]}" for axis in others if axis.key in place)]
    label = ", ".join(parts)
    return f"{label} ({place['engine']})" if len(trace.engines) > 1 else label


def _curve(label: str, look: Style, points: list[Point]) -> Curve:
    return Curve(label, look, tuple(sorted(points, key=lambda point: point.x)))


def _with_axes(frame: pl.DataFrame, places: dict[str, dict[str, Any]], *drawn: Axis) -> pl.DataFrame:
    """Without the configurations that have no value on an axis: results that were joined may be of other sweeps."""
    known = [name for name, place in places.items() if all(axis.key in place for axis in drawn)]
    return frame.filter(pl.col("config").is_in(known))


def _left_out(trace: Trace, frame: pl.DataFrame) -> tuple[str, ...]:
    """Configurations without a single value."""
    missing = [name for name in tables.config_names(trace) if name not in set(frame["config"])]
    return (f"no value: {', '.join(missing)}",) if missing else ()
