"""The samples that a page holds: every one where there is room, otherwise the extremes of short bins.

A page has a budget. Each run first gets an overview. Then the first repetitions get finer bins or every sample, then
the second ones, and so on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mptcplab.plots.over_time import CWND, PAYLOAD, QUEUE, RTT, Panel
from mptcplab.plots.styles import Style
from mptcplab.report.columns import Points, packed
from mptcplab.report.extremes import extremes
from mptcplab.report.series import PlotData, looks_of, meant, samples_of
from mptcplab.text import duration

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace
    from mptcplab.trace.samples import Samples

# What the samples of all runs may add to a page, in bytes of base64.
BUDGET_BYTES = 4_000_000
# The most subflows, and the most links, of a run.
MOST_LINES = 64
# The overview of a run has at most so many bins; every finer level has four times as many.
OVERVIEW_BINS, _FINER = 500, 4
# Runs that are compressed at once, which leaves Python to others.
_AT_ONCE = 2
# The table and column of every quantity, and what turns its integers into the unit of the panel. A counter becomes a
# rate: bytes per microsecond times 8 are Mbit/s.
_SOURCES: dict[Panel, tuple[str, str, float]] = {
    CWND: ("subflow", "cwnd_pkts", 1),
    RTT: ("subflow", "rtt_us", 1e-3),
    PAYLOAD: ("subflow", "rx_payload_bytes", 8),
    QUEUE: ("link", "queue_pkts", 1),
}


@dataclass(frozen=True)
class Line:
    """Every sample of one quantity of a subflow or link."""

    panel: Panel
    names: tuple[str, ...]
    label: str
    style: Style
    samples: Points


# The lines of every run.
Lines = dict[int, list[Line]]
# Times of lines by their number, the first and the last.
_Times = dict[tuple[int, int, int], np.ndarray]


@dataclass(frozen=True)
class _Packed:
    """A run at one level: its bins have `factor` samples."""

    factor: int
    text: str
    about: list[dict[str, object]]


@dataclass(frozen=True)
class Embedded:
    """What the page's script gets: a description of every run, the texts with their samples, and what is missing."""

    runs: tuple[dict[str, Any], ...]
    texts: tuple[str, ...]
    notes: tuple[str, ...]


def embedded(trace: Trace, plots: PlotData, lines: Lines, budget_bytes: int = BUDGET_BYTES) -> Embedded:
    """The samples of the runs that are drawn; `lines` has those of all of them."""
    drawn = [one for one in plots.runs if lines[one.run]]
    intervals = dict(trace.runs.select("run", "sample_ns").iter_rows())
    rounds: dict[int, list[int]] = defaultdict(list)
    for one in drawn:
        rounds[one.rep].append(one.run)
    overview = {one.run: _overview(one.column.end_s * 1e9 / intervals[one.run]) for one in drawn}
    found = _pack_each(overview, lines, intervals)
    dropped = _drop_last(found, rounds, budget_bytes)
    _refine(found, lines, intervals, rounds, budget_bytes)
    kept = [one for one in drawn if one.run in found]
    runs = tuple(
        {
            "config": one.column.title,
            "rep": one.rep,
            "duration": one.column.end_s,
            "warmup": one.column.settled_s,
            "step": intervals[one.run] * found[one.run].factor / 1e9,
            "exact": found[one.run].factor == 1,
            "panels": _panels(lines[one.run], found[one.run], set(looks_of(trace, trace.topologies[one.run]))),
        }
        for one in kept
    )
    notes = [*_first_shown(trace, plots), *_coarse(runs)]
    if dropped:
        notes.append(f"the page has room for the samples of {len(kept)} of {len(drawn)} runs; Results.plot draws all")
    return Embedded(runs, tuple(found[one.run].text for one in kept), tuple(notes))


def lines_of(trace: Trace, runs: Sequence[int]) -> Lines:
    """The lines of runs whose samples fit in memory together: panel by panel, and in the order of the file."""
    looks = {run: looks_of(trace, trace.topologies[run], MOST_LINES) for run in runs}
    found: Lines = {run: [] for run in runs}
    tables = samples_of(trace, looks)
    times: _Times = {}
    for panel, (table, column, _) in _SOURCES.items():
        drawn: Lines = defaultdict(list)
        for run, who, points in _points(meant(panel, tables[table]), column):
            look = looks[run].get(who)
            # A link without a queue would be a line at zero.
            if look is not None and (panel != QUEUE or points.values.any()):
                drawn[run].append(Line(panel, who, *look, _compact(points, times)))
        for run, some in drawn.items():
            found[run] += sorted(some, key=lambda line: line.style.index)
    return found


def _compact(points: Points, known: _Times) -> Points:
    """The same points in less memory: most lines have the same times, which `known` collects, and few digits."""
    key = points.times_us.size, int(points.times_us[0]), int(points.times_us[-1])
    times = known.get(key)
    if times is None or not np.array_equal(times, points.times_us):
        times = known[key] = points.times_us.copy()
    low, high = points.values.min(initial=0), points.values.max(initial=0)
    kind = next((kind for kind in ("u1", "u2", "u4") if low >= 0 and high <= np.iinfo(kind).max), "i8")
    return Points(times, points.values.astype(kind))


def _points(samples: Samples, column: str) -> Iterator[tuple[int, tuple[str, ...], Points]]:
    """The samples of every entity, with its run and names."""
    known = samples.only(samples.rows[column].is_not_null())
    times_us, values = known.rows["t_ns"].to_numpy() // 1000, known.rows[column].to_numpy()
    for run, names, part in known.parts(known.rows["entity"]):
        yield run, names, Points(times_us[part], values[part])


def _overview(samples: float) -> int:
    """The samples per bin of the overview of a run with so many samples."""
    factor = 1
    while samples / factor > OVERVIEW_BINS:
        factor *= _FINER
    return factor


def _pack_each(factors: Mapping[int, int], lines: Lines, intervals: dict[int, int]) -> dict[int, _Packed]:
    """Several runs, each at its level."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        each = pool.map(lambda run: _pack(lines[run], factors[run], intervals[run]), factors)
        return dict(zip(factors, each, strict=True))


def _pack(lines: Iterable[Line], factor: int, interval_ns: int) -> _Packed:
    width_us = factor * interval_ns // 1000
    if factor == 1:
        return _Packed(factor, *packed([line.samples for line in lines]))
    thinned = ((_firsts if line.panel == PAYLOAD else _extremes)(line.samples, width_us) for line in lines)
    return _Packed(factor, *packed(list(thinned)))


def _extremes(samples: Points, width_us: int) -> Points:
    """The smallest and the largest value of every bin, at a quarter and three quarters of it, as they occurred."""
    at, starts = _bins(samples, width_us)
    low, high, low_first = extremes(samples.values, starts)
    values = np.column_stack([np.where(low_first, low, high), np.where(low_first, high, low)]).ravel()
    times = (at[:, None] * width_us + np.array([width_us // 4, 3 * width_us // 4])).ravel()
    return Points(times, values)


def _bins(samples: Points, width_us: int) -> tuple[np.ndarray, np.ndarray]:
    """The bins that have samples, and the place of the first sample of each; times grow."""
    at = samples.times_us // width_us
    starts = np.flatnonzero(np.diff(at, prepend=-1))
    return at[starts], starts


def _firsts(samples: Points, width_us: int) -> Points:
    """The first sample of every bin: between two of them a counter has grown as it did between all."""
    _, starts = _bins(samples, width_us)
    return Points(samples.times_us[starts], samples.values[starts])


def _size(found: dict[int, _Packed]) -> int:
    return sum(len(one.text) for one in found.values())


def _drop_last(found: dict[int, _Packed], rounds: dict[int, list[int]], budget_bytes: int) -> int:
    """Drop runs of the last repetitions until the overviews fit; return their number."""
    order = [run for rep in sorted(rounds) for run in rounds[rep]]
    dropped = 0
    while _size(found) > budget_bytes and len(order) > 1:
        del found[order.pop()]
        dropped += 1
    return dropped


def _refine(
    found: dict[int, _Packed],
    lines: Lines,
    intervals: dict[int, int],
    rounds: dict[int, list[int]],
    budget_bytes: int,
) -> None:
    """Give the runs of one repetition after the other the finest level for which all of them have room."""
    finest = 1
    for rep in sorted(rounds):
        before = {run: found[run] for run in rounds[rep] if run in found}
        room = budget_bytes - _size(found) + _size(before)
        while finest < max((one.factor for one in before.values()), default=0):
            finer = _packed_within(room, before, lines, intervals, finest)
            if finer is not None:
                found.update(finer)
                break
            finest *= _FINER


def _packed_within(
    room: int, before: dict[int, _Packed], lines: Lines, intervals: dict[int, int], finest: int
) -> dict[int, _Packed] | None:
    """The same runs at a finer level; None as soon as they need more room."""
    finer: dict[int, _Packed] = {}
    runs = list(before)
    for begin in range(0, len(runs), _AT_ONCE):
        some = {run: min(finest, before[run].factor) for run in runs[begin : begin + _AT_ONCE]}
        finer |= _pack_each(some, lines, intervals)
        if _size(finer) > room:
            return None
    return finer


def _panels(lines: list[Line], run: _Packed, shown: set[tuple[str, ...]]) -> list[dict[str, Any]]:
    """The panels of a run, with a description of their lines in the order of the columns."""
    panels: dict[str, dict[str, Any]] = {}
    for line, about in zip(lines, run.about, strict=True):
        _, _, scale = _SOURCES[line.panel]
        named = {"name": line.panel.name, "title": line.panel.title, "unit": line.panel.unit, "scale": scale}
        kind = {"rate": line.panel == PAYLOAD, "outliers": line.panel.has_outliers}
        panel = panels.setdefault(line.panel.name, {**named, **kind, "series": []})
        look = {"label": line.label, "index": line.style.index, **line.style.for_page()}
        panel["series"].append({**look, "shown": line.names in shown, **about})
    return list(panels.values())


def _first_shown(trace: Trace, plots: PlotData) -> Iterator[str]:
    """A line that says how many lines are drawn at first, and where the others are."""
    if plots.lines:
        subflows = max(sum(len(flow.subflows) for flow in one.flows) for one in trace.topologies.values())
        rest = "the others can be chosen there"
        if subflows > MOST_LINES:
            rest = f"{MOST_LINES} can be chosen there, and Results.subflow and Results.link have all"
        yield f"plots over time first show {' and '.join(plots.lines)}; {rest}"


def _coarse(runs: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line that says which repetitions do not have every sample."""
    steps: dict[int, float] = {}
    for run in runs:
        if not run["exact"]:
            steps[run["rep"]] = max(steps.get(run["rep"], 0.0), run["step"])
    if steps:
        parts = [f"repetition {rep + 1}: {duration(step * 1e9)}" for rep, step in sorted(steps.items())]
        some = parts if len(parts) <= 6 else [*parts[:3], "...", parts[-1]]
        yield (
            f"the page holds at most {BUDGET_BYTES // 1_000_000} MB of samples, so these have the smallest and the "
            f"largest value of every bin instead of every sample: {', '.join(some)}; Results.subflow "
            "and Results.link have all"
        )
