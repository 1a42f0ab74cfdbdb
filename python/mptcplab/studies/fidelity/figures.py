"""Figures of the fidelity page. Colour is never the only difference: every series has its own marker or line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from mptcplab.plots.figure import BAND, constrained, styled
from mptcplab.plots.over_time import CWND, Column, Series, over_time
from mptcplab.plots.styles import INK, SOFT, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from mptcplab.results import Results
    from mptcplab.studies.fidelity.cubic import Epoch
    from mptcplab.studies.fidelity.statement import Case

Band = tuple[float, float]

# With the dash of the line.
_THEORY: tuple[tuple[float, str, str | tuple[float, tuple[float, ...]]], ...] = (
    (np.sqrt(1.5), "periodic losses: 1.22", ":"),
    (1.31, "independent losses: 1.31", (0, (6, 2, 1, 2, 1, 2))),
)
_WINDOW_TICKS = (20, 30, 50, 100, 150)
_NS = 1_000_000_000


def plain(text: str) -> str:
    """The name of an algorithm without parentheses, for an axis.

    >>> plain("ewtcp(weight=fair)")
    'ewtcp fair'
    """
    return re.sub(r"\((?:\w+=)?(\w+)\)", r" \1", text)


@styled
def square_root_law(windows: pl.DataFrame, bounds: Band) -> Figure:
    """Mean window against p on logarithmic axes, and the constant C against p; `windows` has profile, p, value."""
    figure = constrained(8.0, 3.4)
    left, right = figure.subplots(1, 2)
    low, high = windows.select(low=pl.col("p").min(), high=pl.col("p").max()).row(0)
    p = np.geomspace(low / 1.5, high * 1.5, 50)
    left.fill_between(p, bounds[0] / np.sqrt(p), bounds[1] / np.sqrt(p), **BAND)
    right.axhspan(*bounds, **BAND)
    for c, dash in zip(bounds, ("--", "-."), strict=True):
        left.plot(p, c / np.sqrt(p), color=SOFT, linestyle=dash, linewidth=0.9, label=f"bound: {c}")
    for c, label, line in _THEORY:
        right.axhline(c, color=INK, linewidth=0.9, linestyle=line, label=label)
    for index, ((profile,), part) in enumerate(windows.group_by("profile", maintain_order=True)):
        look = _look(index) | {"mfc": "none"}
        means = part.group_by("p", maintain_order=True).agg(pl.col("value").mean())
        left.plot(means["p"], means["value"], label=profile, **look)
        # Side by side, so that both can be seen.
        at = part["p"] * (0.95 + 0.1 * index)
        right.plot(at, part["value"] * part["p"].sqrt(), ms=3.5, label=profile, **look)
    left.set(xscale="log", yscale="log", xlabel="Loss probability p", ylabel="Mean window (packets)")
    right.set(xscale="log", xlabel="Loss probability p", ylabel="C = mean window · √p", ylim=(1.1, 1.55))
    left.set_yticks(_WINDOW_TICKS, [str(tick) for tick in _WINDOW_TICKS])
    left.tick_params(axis="y", which="minor", left=False, labelleft=False)
    left.legend()
    right.legend(loc="upper center", ncols=2)
    return figure


def two_equal_flows(results: Results) -> Figure:
    """Windows of both flows over one minute of the first run."""
    rows = results.scan("subflow").filter(pl.col("run") == 0).select("t_ns", "flow", "cwnd_pkts")
    rows = rows.filter(pl.col("t_ns").is_between(60 * _NS, 120 * _NS)).with_columns(pl.col("flow").cast(pl.String))
    series = tuple(
        Series(CWND, str(flow), style(index), part["t_ns"].to_numpy() / _NS, part["cwnd_pkts"].to_numpy())
        for index, ((flow,), part) in enumerate(rows.collect().group_by("flow", maintain_order=True))
    )
    return over_time([Column("", series, 60, 120, 60)], [CWND], most_columns=1, alone=True)


@styled
def cubic_epochs(epochs: Mapping[str, Epoch], flows: Sequence[str]) -> Figure:
    """Window and reference of one epoch per flow, and below how far they are apart."""
    figure = constrained(8.4, 4.2)
    grid = figure.subplots(2, len(flows), sharex="col", squeeze=False, gridspec_kw={"height_ratios": (2.2, 1)})
    for column, flow in enumerate(flows):
        epoch = epochs[flow]
        above, below = grid[:, column]
        above.step(epoch.seconds, epoch.cwnd, where="post", color=style(0).colour, lw=1.6, label="cwnd in the trace")
        above.plot(epoch.seconds, epoch.curve, color=style(1).colour, ls=style(1).mpl_dash, lw=1, label="W_cubic(t)")
        above.plot(epoch.seconds, epoch.estimate, color=INK, ls=style(2).mpl_dash, lw=1, label="W_est")
        below.axhspan(-1, 1, **BAND)
        below.plot(epoch.seconds, epoch.residual, color=style(0).colour, lw=0.7)
        top, bottom = epoch.cwnd.max(), epoch.cwnd.min()
        above.set(title=flow, ylim=(bottom - 0.08 * (top - bottom), top + 0.08 * (top - bottom)))
        below.set(xlabel="Time since recovery (s)", ylim=(-1.5, 1.5))
    grid[0, 0].set_ylabel(CWND.axis)
    grid[1, 0].set_ylabel("Distance (packets)")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _points(axes: Axes, at: float, case: Case, look: Mapping[str, Any]) -> None:
    """Every repetition faintly, the mean with its interval on top."""
    axes.plot(case.values, np.full(len(case.values), at), ".", color=look["color"], ms=4, alpha=0.4, mew=0)
    axes.errorbar(case.mean, at, xerr=case.half, ms=5, lw=1.2, capsize=2.5, **look)


def _look(index: int) -> dict[str, Any]:
    return {"color": style(index).colour, "marker": style(index).marker, "mfc": "white", "linestyle": "none"}


def _handles(axes: Axes, looks: Mapping[str, Mapping[str, Any]]) -> list[Line2D]:
    return [axes.plot([], [], label=label, **look)[0] for label, look in looks.items()]


def _looks(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {label: _look(index) for index, label in enumerate(labels)}


@styled
def shares(cases: Sequence[Case], bands: Sequence[tuple[str, Band]]) -> Figure:
    """Dot plot of the ratios: a row per algorithm, a marker per profile, the bands shaded."""
    names = list(dict.fromkeys(case.labels[0] for case in cases))
    looks = _looks(list(dict.fromkeys(case.labels[1] for case in cases)))
    figure = constrained(7.6, 0.9 + 0.5 * len(names))
    axes = figure.subplots()
    for label, band in bands:
        axes.axvspan(*band, **BAND)
        axes.annotate(
            label, (sum(band) / 2, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=8
        )
    order = list(looks)
    for case in cases:
        shift = (order.index(case.labels[1]) - (len(order) - 1) / 2) * 0.18
        _points(axes, names.index(case.labels[0]) + shift, case, looks[case.labels[1]])
    axes.axvline(1, color=INK, lw=0.8, ls=":")
    axes.set_yticks(range(len(names)), [plain(name) for name in names])
    axes.set(xlabel="Goodput of two subflows over that of one Reno flow", xlim=(0, None), ylim=(len(names) - 0.5, -0.5))
    figure.legend(handles=_handles(axes, looks), loc="outside lower center", ncols=len(looks))
    return figure


@styled
def phases(cases: Sequence[Case], special: Mapping[str, Band], usual: Band) -> Figure:
    """One small plot per profile and algorithm: the ratio with and without random starts and jitter."""
    names = list(dict.fromkeys(case.labels[0] for case in cases))
    profiles = list(dict.fromkeys(case.labels[1] for case in cases))
    ways = list(dict.fromkeys(case.labels[2:] for case in cases))
    looks = _looks(profiles)
    figure = constrained(9.0, 0.9 + 0.45 * len(ways))
    grid = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(grid, names, strict=True):
        axes.axvspan(*special.get(name, usual), **BAND)
        for case in (case for case in cases if case.labels[0] == name):
            shift = (profiles.index(case.labels[1]) - (len(profiles) - 1) / 2) * 0.3
            _points(axes, ways.index(case.labels[2:]) + shift, case, looks[case.labels[1]])
        axes.set_title(plain(name))
    grid[0].set_yticks(range(len(ways)), [f"start {start}, jitter {jitter}" for start, jitter in ways])
    grid[0].set_ylim(len(ways) - 0.5, -0.5)
    figure.supxlabel("Goodput of two subflows over that of one Reno flow")
    figure.legend(handles=_handles(grid[0], looks), loc="outside upper center", ncols=len(looks))
    return figure


@styled
def equal_flows(cases: Sequence[Case], bound: Band) -> Figure:
    """One small plot per algorithm and profile: the ratio at every bottleneck, a marker per noise."""
    names = list(dict.fromkeys(case.labels[0] for case in cases))
    columns = list(dict.fromkeys((case.labels[1], case.labels[3]) for case in cases))
    looks = _looks(list(dict.fromkeys(case.labels[-1] for case in cases)))
    figure = constrained(1.2 + 2.0 * len(columns), 1.0 + 0.4 * len(names))
    grid = figure.subplots(1, len(columns), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (cc, profile) in zip(grid, columns, strict=True):
        axes.axvspan(*bound, **BAND)
        axes.axvline(1, color=INK, lw=0.8, ls=":")
        for case in (case for case in cases if (case.labels[1], case.labels[3]) == (cc, profile)):
            shift = (list(looks).index(case.labels[-1]) - (len(looks) - 1) / 2) * 0.3
            _points(axes, names.index(case.labels[0]) + shift, case, looks[case.labels[-1]])
        axes.set_title(f"{plain(cc)}\n{profile}")
    grid[0].set_yticks(range(len(names)), names)
    grid[0].set_ylim(len(names) - 0.5, -0.5)
    figure.supxlabel("Ratio of losses")
    figure.legend(handles=_handles(grid[0], looks), loc="outside upper center", ncols=len(looks))
    return figure
