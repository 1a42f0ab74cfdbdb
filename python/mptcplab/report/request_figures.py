"""The figures of requests and messages: the distribution of response times or delays, and their course over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from mptcplab.plots.figure import (
    BAND,
    LEFT,
    LINE,
    NOTE,
    RIGHT,
    WIDEST,
    Canvas,
    broken,
    grid,
    line_handle,
    lines_in,
    note_lines,
    styled,
    tick_text,
)
from mptcplab.plots.styles import INK, Style, style
from mptcplab.report import tables
from mptcplab.text import evenly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mptcplab.trace.reader import Trace

_GAP, _BETWEEN, _TITLE, _UNDER = 0.3, 0.12, 0.28, 0.52
_HIGH, _ROW = 2.6, 0.85
# More curves than this cannot be told apart, and more flows have no room side by side.
MAX_CONFIGS, MAX_FLOWS = 12, 3
_TITLES = {"requests": "Response time", "messages": "Message delay"}
_BOUND: dict[str, Any] = {"color": INK, "linewidth": 0.9, "linestyle": (0, (5, 3))}


@dataclass(frozen=True)
class Times:
    """What was measured of one flow in one configuration."""

    config: str
    flow: str
    # All counted runs, after the warm-up, in order of size.
    sorted_ms: np.ndarray
    # How many were not complete at the end of their run.
    outstanding: int
    # The first run: when requests were sent, and how long they took.
    sent_s: np.ndarray
    took_ms: np.ndarray


@dataclass(frozen=True)
class RequestData:
    """The times of all flows of one kind, "requests" or "messages"."""

    kind: str
    times: tuple[Times, ...]
    bounds_ms: dict[str, float]
    warmup_s: float
    end_s: float
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """What is measured."""
        return _TITLES[self.kind]

    @property
    def flows(self) -> list[str]:
        """Names of the flows, in file order."""
        return list(dict.fromkeys(one.flow for one in self.times))

    @property
    def styles(self) -> dict[str, Style]:
        """The style of every configuration."""
        return {config: style(i) for i, config in enumerate(dict.fromkeys(one.config for one in self.times))}

    @property
    def span_ms(self) -> tuple[float, float]:
        """The axis of all times."""
        every = np.concatenate([one.sorted_ms for one in self.times])
        return 0.8 * max(float(every.min()), 1e-3), 1.25 * float(every.max())

    @property
    def drawn_bounds_ms(self) -> dict[str, float]:
        """The bounds that lie within the axis."""
        _, high = self.span_ms
        return {flow: bound for flow, bound in self.bounds_ms.items() if bound <= high}


def request_data(trace: Trace) -> list[RequestData]:
    """The data of the figures, one per kind that the runs have."""
    if trace.requests.is_empty():
        return []
    rows = tables.counted(trace, trace.requests).with_columns(pl.col("flow").cast(pl.String))
    rows = rows.join(trace.configs.select("run", "config"), on="run", maintain_order="left")
    found = []
    for kind in _TITLES:
        # Runs of a sweep have the same flows.
        topology = next(iter(trace.topologies.values()))
        flows = [flow for flow in topology.flows if flow.kind == kind]
        shown, notes = flows[:MAX_FLOWS], []
        if len(flows) > MAX_FLOWS:
            notes.append(f"{MAX_FLOWS} of {len(flows)} flows; Results.requests has all of them")
        configs = tables.config_names(trace)
        if len(configs) > MAX_CONFIGS:
            notes.append(f"{MAX_CONFIGS} of {len(configs)} configurations; Results.requests has all of them")
            configs = evenly(configs, MAX_CONFIGS)
        times = [one for flow in shown for config in configs if (one := _times(trace, rows, config, flow.name))]
        drawn = {(one.config, one.flow) for one in times}
        notes += [
            f"{config}: none of the {settled.height} {kind} of {flow.name} completed"
            for flow in shown
            for config in configs
            if (config, flow.name) not in drawn and (settled := _settled(trace, rows, config, flow.name)).height
        ]
        if times:
            bounds = {flow.name: flow.bound_ns / 1e6 for flow in shown if flow.bound_ns is not None}
            warmup_s, end_s = topology.warmup_ns / 1e9, topology.duration_ns / 1e9
            found.append(RequestData(kind, tuple(times), bounds, warmup_s, end_s, tuple(notes)))
    return found


def _settled(trace: Trace, rows: pl.DataFrame, config: str, flow: str) -> pl.DataFrame:
    """What one flow sent after the warm-up."""
    warmups = {run: topology.warmup_ns for run, topology in trace.topologies.items()}
    after = pl.col("t_ns") >= pl.col("run").replace_strict(warmups, return_dtype=pl.UInt64)
    return rows.filter(pl.col("config") == config, pl.col("flow") == flow, after)


def _times(trace: Trace, rows: pl.DataFrame, config: str, flow: str) -> Times | None:
    mine = rows.filter((pl.col("config") == config) & (pl.col("flow") == flow))
    settled = _settled(trace, rows, config, flow)
    done = settled["completion_ns"].drop_nulls().sort().to_numpy() / 1e6
    if done.size == 0:
        return None
    first = mine.filter(pl.col("run") == pl.col("run").min()).drop_nulls("completion_ns").sort("t_ns")
    sent_s, took_ms = first["t_ns"].to_numpy() / 1e9, first["completion_ns"].to_numpy() / 1e6
    return Times(config, flow, done, settled["completion_ns"].null_count(), sent_s, took_ms)


def request_figures(trace: Trace) -> Iterator[tuple[str, str, Callable[[], Figure]]]:
    """The name and the title of each, and what draws it."""
    for data in request_data(trace):
        stem = "response-time" if data.kind == "requests" else "message-delay"
        yield stem, f"{data.title}: distribution", partial(distribution_figure, data)
        yield f"{stem}-over-time", f"{data.title} over time", partial(course_figure, data)


@styled
def distribution_figure(data: RequestData, width: float = WIDEST) -> Figure:
    """The share of requests or messages that took at most so long (ECDF), a curve per configuration.

    Those that were outstanding at the end never completed, so that a curve with such ends below 1. A note names a
    configuration in which none completed.
    """
    flows, styles = data.flows, data.styles
    inside = (width - LEFT - RIGHT - _GAP * (len(flows) - 1)) / len(flows)
    handles = [(line_handle(**_line(look)), name) for name, look in styles.items()]
    if data.drawn_bounds_ms:
        handles.append((line_handle(**_BOUND), "bound"))
    titled = _TITLE if len(flows) > 1 else 0.1
    notes = note_lines(data.notes, width)
    canvas = Canvas(width, titled + _HIGH + _UNDER + NOTE * len(notes), handles, styles.values())
    canvas.write_notes(notes)
    for place, flow in enumerate(flows):
        axes = canvas.axes(LEFT + place * (inside + _GAP), titled, inside, _HIGH)
        grid(axes, "both")
        for one in data.times:
            if one.flow == flow:
                count = one.sorted_ms.size
                shares = np.arange(1, count + 1) / (count + one.outstanding)
                # The first step begins at zero.
                x = np.concatenate([one.sorted_ms[:1], one.sorted_ms])
                axes.step(x, np.concatenate([[0.0], shares]), where="post", **_line(styles[one.config]))
        if flow in data.drawn_bounds_ms:
            axes.axvline(data.drawn_bounds_ms[flow], **_BOUND)
        _time_axis(axes, data, "x")
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(f"{data.title} (ms)")
        axes.tick_params(labelleft=place == 0)
        if place == 0:
            axes.set_ylabel(f"Share of {data.kind} (ECDF)")
        if len(flows) > 1:
            axes.set_title(flow, loc="left", fontweight="bold")
    return canvas.figure


@styled
def course_figure(data: RequestData, width: float = WIDEST) -> Figure:
    """A point per request or message of the first run: when it was sent, how long it took; rows are configurations."""
    flows, styles = data.flows, data.styles
    inside = (width - LEFT - RIGHT - _GAP * (len(flows) - 1)) / len(flows)
    names = [f"{one.config} · {one.flow}" if len(flows) > 1 else one.config for one in data.times]
    titles = [broken(name, inside) for name in names]
    title = _TITLE + LINE * (max(map(lines_in, titles)) - 1)
    titled = title + (_TITLE if len(flows) > 1 else 0.0)
    step = _ROW + _BETWEEN + title
    notes = note_lines(data.notes, width)
    canvas = Canvas(width, titled + len(styles) * step - title + _UNDER + NOTE * len(notes))
    canvas.write_notes(notes)
    for one, name in zip(data.times, titles, strict=True):
        row, place = list(styles).index(one.config), flows.index(one.flow)
        axes = canvas.axes(LEFT + place * (inside + _GAP), titled + row * step, inside, _ROW)
        grid(axes, "both")
        if data.warmup_s > 0:
            axes.axvspan(0, data.warmup_s, **BAND)
        if one.flow in data.drawn_bounds_ms:
            axes.axhline(data.drawn_bounds_ms[one.flow], **_BOUND)
        axes.plot(one.sent_s, one.took_ms, ".", color=styles[one.config].colour, markersize=3, alpha=0.7)
        _time_axis(axes, data, "y")
        axes.set_xlim(0, data.end_s)
        last = row == len(styles) - 1
        axes.tick_params(labelleft=place == 0, labelbottom=last)
        axes.set_title(name, loc="left", fontweight="bold")
        if last:
            axes.set_xlabel("Time (s)")
    canvas.figure.text(0.012, 0.55, f"{data.title} (ms)", rotation=90, va="center", ha="left")
    return canvas.figure


def _line(look: Style) -> dict[str, Any]:
    return {"color": look.colour, "linestyle": look.mpl_dash, "linewidth": 1.3}


def _time_axis(axes: Axes, data: RequestData, which: str) -> None:
    """A logarithmic axis of times, the same in all plots; linear where all are within a factor of three."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = data.span_ms
    is_wide = high > 5 * low
    axis = axes.xaxis if which == "x" else axes.yaxis
    limits = (low, high) if is_wide else (0.0, high)
    (axes.set_xlim if which == "x" else axes.set_ylim)(*limits)
    if is_wide:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        # Few decades have labels between them; a row over time has room for three labels.
        subs: tuple[float, ...] = (1.0, 2.0, 5.0) if high < (300 if which == "x" else 8) * low else (1.0,)
        subs = (1.0, 3.0) if which == "y" and 8 * low <= high < 100 * low else subs
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
        axis.set_minor_formatter(NullFormatter())
