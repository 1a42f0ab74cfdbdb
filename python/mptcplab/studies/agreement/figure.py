"""The figure of the page: every flow's goodput on one engine against that on the other, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mptcplab.plots.figure import constrained, save, styled
from mptcplab.plots.styles import SOFT, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mptcplab.studies.agreement.matrix import Matrix

# Half widths in percent and how dark they are.
BANDS = ((15, 0.15), (5, 0.35))


@dataclass(frozen=True)
class Point:
    """One flow: which folder of scenarios it is of, and its goodput on both engines in Mbit/s."""

    group: str
    one: float
    other: float


def points(matrix: Matrix) -> list[Point]:
    """The flows that both engines gave something; logarithmic axes have no place for others."""
    return [
        Point(Path(entry.name).parent.name, row.reference, row.mean)
        for entry, row in matrix.flows()
        if row.reference > 0 and row.mean > 0
    ]


def write(drawn: Sequence[Point], engines: tuple[str, str], stem: Path) -> list[Path]:
    """Draw and write the figure; return its path."""
    return save(draw(drawn, engines), stem)


@styled
def draw(drawn: Sequence[Point], engines: tuple[str, str]) -> Figure:
    """A marker and colour per paper, the line of equality, and the bands around it."""
    from matplotlib.ticker import LogLocator, NullLocator

    figure = constrained(5.6, 5.2)
    axes = figure.subplots()
    values = [value for point in drawn for value in (point.one, point.other)]
    edges = np.array([min(values) / 1.4, max(values) * 1.4])
    for percent, alpha in BANDS:
        low, high = edges * (1 - percent / 100), edges * (1 + percent / 100)
        axes.fill_between(edges, low, high, color=SOFT, alpha=alpha, lw=0, label=f"± {percent} %")
    axes.plot(edges, edges, color=SOFT, lw=0.8)
    for index, group in enumerate(dict.fromkeys(point.group for point in drawn)):
        mine = [point for point in drawn if point.group == group]
        look: dict[str, Any] = {"marker": style(index).marker, "color": style(index).colour, "mfc": "none", "ms": 4.5}
        axes.plot([p.one for p in mine], [p.other for p in mine], ls="none", label=group, **look)
    one, other = (f"Goodput on {engine} (Mbit/s)" for engine in engines)
    axes.set(xscale="log", yscale="log", xlabel=one, ylabel=other, xlim=edges, ylim=edges, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    axes.legend(loc="upper left")
    return figure
