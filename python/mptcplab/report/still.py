"""What the page shows before (or without) its script: the same plots as still pictures that fit any width.

Text is HTML and keeps its size; only the drawing between the axes stretches. So positions are in percent of the
drawing, except for the curves, which have units of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mptcplab.report.series import PANELS, Panel, RunPlots, Series, counted_peak
from mptcplab.report.styles import Style

# Units of a curve's drawing: finer than a pixel of a wide screen, and few digits.
WIDTH, HEIGHT = 2000, 300
# Plotly's fill patterns, as paths in a tile of 8 by 8 that joins its neighbours.
HATCHES = {
    "": "",
    "/": "M-2 2 2-2M0 8 8 0M6 10 10 6",
    ".": "M3 4h2",
    "x": "M0 0 8 8M0 8 8 0",
    "-": "M0 4H8",
    "+": "M0 4H8M4 0V8",
}
# Distance that two labels need, in percent of the smallest height of a panel (see page.css).
_LABEL_GAP = 11.0
# A part of a bar that is narrower than this part of its row has no room for its label.
_LABELLED = 0.14


@dataclass(frozen=True)
class Tick:
    """A mark of an axis at `at` percent."""

    at: float
    text: str


@dataclass(frozen=True)
class Curve:
    """One series: its path in drawing units, and the height of its label in percent."""

    label: str
    style: Style
    path: str
    label_at: float


@dataclass(frozen=True)
class Plot:
    """One quantity over time."""

    panel: Panel
    ticks: tuple[Tick, ...]
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class TimePlots:
    """All quantities of one run; `warmup` in percent of its length."""

    config: str
    rep: int
    warmup: float
    ticks: tuple[Tick, ...]
    plots: tuple[Plot, ...]


@dataclass(frozen=True)
class Fill:
    """The look of a subflow's bars, and the name of it in the page."""

    name: str
    light: str
    dark: str
    pattern: str


@dataclass(frozen=True)
class Part:
    """The share of one subflow in a bar."""

    at: float
    width: float
    label: str
    fill: Fill


@dataclass(frozen=True)
class Bar:
    """One row of the goodput plot, positions in percent."""

    label: str
    parts: tuple[Part, ...]
    points: tuple[float, ...]
    mean: float
    interval: tuple[float, float] | None
    ideal: float | None


@dataclass(frozen=True)
class GoodputPlot:
    """Bars per configuration (and flow)."""

    unit: str
    ticks: tuple[Tick, ...]
    bars: tuple[Bar, ...]
    fills: tuple[Fill, ...]


def ticks(top: float, most: int) -> tuple[Tick, ...]:
    """At most `most` + 1 round values from 0 to `top`.

    >>> [tick.text for tick in ticks(15.7, 4)], [tick.text for tick in ticks(0.8, 5)]
    (['0', '5', '10', '15'], ['0', '0.2', '0.4', '0.6', '0.8'])
    """
    rough = top / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * part for part in (1, 2, 5, 10) if power * part >= rough * (1 - 1e-9))
    count = math.floor(top / step * (1 + 1e-9))
    return tuple(Tick(round(100 * i * step / top, 2), f"{i * step:,.10g}") for i in range(count + 1))


def time_plots(run: RunPlots) -> TimePlots:
    """The plots over time of one run."""
    drawn = [panel for panel in PANELS if any(series.panel == panel.name for series in run.series)]
    warmup = round(100 * run.warmup_s / run.duration_s, 2)
    return TimePlots(run.config, run.rep, warmup, ticks(run.duration_s, 6), tuple(_plot(run, panel) for panel in drawn))


def _plot(run: RunPlots, panel: Panel) -> Plot:
    chosen = [series for series in run.series if series.panel == panel.name]
    top = 1.05 * counted_peak([run], panel) or 1.0
    heights = _apart([100 * _tail(series) / top for series in chosen])
    curves = [
        Curve(series.label, series.style, _path(series, run.duration_s, top), round(height, 1))
        for series, height in zip(chosen, heights, strict=True)
    ]
    return Plot(panel, ticks(top, 5), tuple(curves))


def _tail(series: Series) -> float:
    """Where a curve ends: the mean of its last twentieth."""
    seen = series.values[np.isfinite(series.values)]
    return float(seen[-max(1, seen.size // 20) :].mean()) if seen.size else 0.0


def _apart(heights: list[float]) -> list[float]:
    """Push labels that would overlap apart, upwards, and all of them down if the highest left the plot."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed = list(heights)
    for lower, upper in pairwise(order):
        placed[upper] = max(placed[upper], placed[lower] + _LABEL_GAP)
    over = max(0.0, placed[order[-1]] - 100) if order else 0.0
    return [height - over for height in placed]


def _path(series: Series, duration_s: float, top: float) -> str:
    """The curve in whole drawing units, each step relative to the one before; a gap begins anew."""
    at = series.start_s + series.step_s * np.arange(series.values.size)
    seen = np.isfinite(series.values)
    x = np.round(at[seen] / duration_s * WIDTH).astype(int)
    # What rises above the scale is cut off by the frame; here it only must not grow without bound.
    y = np.round(HEIGHT * (1 - np.minimum(series.values[seen] / top, 4.0))).astype(int)
    begins = np.diff(np.flatnonzero(seen), prepend=-2) > 1
    moves = zip(
        x.tolist(), y.tolist(), np.diff(x, prepend=0).tolist(), np.diff(y, prepend=0).tolist(), begins, strict=True
    )
    return "".join(f"M{x} {y}" if new else f"l{dx} {dy}" for x, y, dx, dy, new in moves)


def goodput_plot(data: dict[str, Any]) -> GoodputPlot | None:
    """The goodput plot of the rows that the page's script draws; None where there are none."""
    rows = data["rows"]
    if not rows:
        return None
    top = goodput_top(rows)
    looks = {(part["light"], part["dark"], part["pattern"]): None for row in rows for part in row["parts"]}
    fills = {look: Fill(f"fill-{number}", *look) for number, look in enumerate(looks)}
    return GoodputPlot(data["unit"], ticks(top, 5), tuple(_bar(row, top, fills) for row in rows), tuple(fills.values()))


def goodput_top(rows: list[dict[str, Any]]) -> float:
    """End of the axis. Intervals of few repetitions can be far wider than the data; it follows the data."""
    seen = max(value for row in rows for value in (row["mean"], row["ideal"] or 0.0, *row["points"]))
    widest = max(row["mean"] + (row["half"] or 0.0) for row in rows)
    return 1.05 * max(seen, min(widest, 1.4 * seen)) or 1.0


def _bar(row: dict[str, Any], top: float, fills: dict[tuple[str, str, str], Fill]) -> Bar:
    def place(value: float) -> float:
        return round(100 * value / top, 2)

    parts, left = [], 0.0
    for part in row["parts"]:
        named = len(row["parts"]) > 1 and part["mean"] > _LABELLED * row["mean"]
        fill = fills[part["light"], part["dark"], part["pattern"]]
        parts.append(Part(place(left), place(part["mean"]), part["label"] if named else "", fill))
        left += part["mean"]
    mean, half = row["mean"], row["half"]
    return Bar(
        row["label"],
        tuple(parts),
        tuple(place(value) for value in row["points"]),
        place(mean),
        None if half is None else (place(max(0.0, mean - half)), place(mean + half)),
        None if row["ideal"] is None else place(row["ideal"]),
    )
