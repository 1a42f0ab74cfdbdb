"""Time series for plots: reduced to what a screen can show, without losing a peak.

Window, RTT and queue keep the smallest and largest value of every time bin, in the order in which they occurred;
the payload rate is a mean over bins of a second, longer where the run is long and shorter where it is short. No bin is
shorter than what samples need: an empty one would be a gap in a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mptcplab.metrics.window_sizes import established
from mptcplab.plots.over_time import CWND, PAYLOAD, QUEUE, RTT, Column, Panel, Series
from mptcplab.plots.styles import Style, link_styles, subflow_labels
from mptcplab.report import families
from mptcplab.report.extremes import extremes
from mptcplab.text import evenly
from mptcplab.trace.samples import Samples, batches, read

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace
    from mptcplab.trace.topology import Topology

NS = 1_000_000_000
BINS = 500
MAX_RUNS = 60
MAX_SERIES = 12
# The most and the fewest bins of a payload rate, if samples are frequent enough.
MAX_RATE_BINS, _FEWEST_RATE_BINS = 400, 10
# Samples in a bin: some engines do not take them at exactly equal distances.
_SAMPLES_IN_BIN = 2
# A subflow that measures no round-trip time for longer than this is silent. An ACK of a lasting transfer comes sooner.
SILENT_NS = NS
# The run, the names of a flow and subflow or of a link, and times (in seconds) with values.
_Line = tuple[int, tuple[str, ...], tuple[np.ndarray, np.ndarray]]
# Label and style of what is drawn, by the names of a flow and a subflow, or of a link.
Looks = dict[tuple[str, ...], tuple[str, Style]]


@dataclass(frozen=True)
class RunPlots:
    """All series of one run; its title is the configuration."""

    run: int
    column: Column
    rep: int


@dataclass(frozen=True)
class PlotData:
    """The runs that are drawn, and what was left out: which runs, and which lines of a run.

    `repetitions` is how many there are of each configuration, or of the one with the most.
    """

    runs: tuple[RunPlots, ...]
    notes: tuple[str, ...]
    lines: tuple[str, ...] = ()
    repetitions: int = 1


def plot_data(trace: Trace, runs: Sequence[int] | None = None) -> PlotData:
    """Reduce the traces of a sweep to series for plots: of these runs, or of as many as a page has room for."""
    plots = PlotBuilder(trace, runs)
    for some in batches(trace, plots.runs, MAX_RUNS):
        plots.add(some)
    return plots.data()


class PlotBuilder:
    """Series for plots of the chosen `runs`, which are added some at a time."""

    def __init__(self, trace: Trace, runs: Sequence[int] | None = None) -> None:
        self.trace = trace
        self.runs, self._notes = _choose_runs(trace)
        if runs is not None:
            sampled = trace.runs.filter(pl.col("sample_ns").is_not_null())["run"].to_list()
            self.runs, self._notes = [run for run in runs if run in sampled], []
        # A run that does not count is drawn, but its name says that it does not count.
        states = {problem.run: f", {problem.status}" for problem in trace.excluded_runs}
        named = trace.configs.select("run", "rep", "config").rows()
        self._titles = {run: config + states.get(run, "") for run, _, config in named}
        self._reps = {run: rep for run, rep, _ in named}
        self._topologies = {run: trace.topologies[run] for run in self.runs}
        self._looks = {run: looks_of(trace, topology) for run, topology in self._topologies.items()}
        self._builder = _SeriesBuilder(trace, self._topologies, self._looks)
        self._series: dict[int, list[Series]] = {}

    def add(self, runs: Sequence[int]) -> None:
        """Reduce the samples of some of the runs."""
        self._series |= self._builder.some(runs)

    @property
    def firsts(self) -> list[int]:
        """The first run of every title."""
        firsts: dict[str, int] = {}
        for run in self.runs:
            firsts.setdefault(self._titles[run], run)
        return list(firsts.values())

    def has_lines(self, runs: Iterable[int]) -> bool:
        """Whether each of these runs was added, and has something to draw."""
        return all(self._series.get(run) for run in runs)

    def data(self) -> PlotData:
        """What is drawn of all that was added."""
        if not self.runs:
            return PlotData((), tuple(self._notes))
        drawn = [
            RunPlots(
                run,
                Column(self._titles[run], tuple(found), 0.0, t.duration_ns / NS, t.warmup_ns / NS),
                self._reps[run],
            )
            for run, t in self._topologies.items()
            if (found := self._series.get(run))
        ]
        most = max(self.trace.configs.group_by("config").len()["len"])
        return PlotData(tuple(drawn), tuple(self._notes), tuple(_left_out(self._topologies, self._looks)), most)


def _choose_runs(trace: Trace) -> tuple[list[int], list[str]]:
    """Runs to draw: all, or the first repetitions of every configuration, or of some configurations per algorithm."""
    sampled = trace.runs.filter(pl.col("sample_ns").is_not_null())["run"]
    if sampled.is_empty():
        return [], ["sampling was off: there are no plots over time"]
    runs = trace.configs.filter(pl.col("run").is_in(sampled.implode()))
    if runs.height <= MAX_RUNS:
        return runs["run"].to_list(), []
    algorithms = runs.join(trace.runs.select("run", "cc"), on="run", maintain_order="left")
    by_algorithm = algorithms.group_by("cc", maintain_order=True).agg(pl.col("config").unique(maintain_order=True))
    most = max(1, MAX_RUNS // by_algorithm.height)
    kept = [config for _, configs in by_algorithm.iter_rows() for config in evenly(configs, most)][:MAX_RUNS]
    rank = pl.col("rep").rank("dense").over("config")
    chosen = runs.filter(pl.col("config").is_in(kept) & (rank <= max(1, MAX_RUNS // len(kept))))["run"].to_list()
    how = "Results.plot.over_time(CONFIGURATION, REPETITION) draws each of them"
    of_configs = "" if len(kept) == runs["config"].n_unique() else f", and {len(kept)} of {runs['config'].n_unique()}"
    of_configs += " configurations" if of_configs else ""
    return chosen, [f"plots over time show {len(chosen)} of {runs.height} runs{of_configs}; {how}"]


def _subflows(topology: Topology) -> int:
    return sum(len(flow.subflows) for flow in topology.flows)


class _SeriesBuilder:
    """Queries over the traces of the chosen runs."""

    def __init__(self, trace: Trace, topologies: dict[int, Topology], looks: dict[int, Looks]) -> None:
        self.trace = trace
        self.topologies = topologies
        sampled = trace.runs.filter(pl.col("run").is_in(list(topologies)))
        self.intervals: dict[int, int] = dict(sampled.select("run", "sample_ns").iter_rows())
        # Runs of a sweep may differ in length; each has about the same number of bins.
        self.widths = {
            run: max(_SAMPLES_IN_BIN * self.intervals[run], -(-topology.duration_ns // BINS))
            for run, topology in topologies.items()
        }
        self.looks = looks

    def some(self, runs: Sequence[int]) -> dict[int, list[Series]]:
        """The series of some runs, panel by panel."""
        tables = samples_of(self.trace, {run: self.looks[run] for run in runs})
        subflows, links = tables["subflow"], tables["link"]
        # Links without queues would be lines at zero.
        queues = (
            (run, name, line) for run, name, line in self._extremes(links, "queue_pkts") if np.nanmax(line[1]) > 0
        )
        panels = (
            (CWND, self._extremes(meant(CWND, subflows), "cwnd_pkts")),
            (RTT, self._extremes(meant(RTT, subflows), "rtt_us", 1e-3)),
            (PAYLOAD, self._payload_rates(subflows)),
            (QUEUE, queues),
        )
        found: dict[int, list[Series]] = {run: [] for run in runs}
        for panel, lines in panels:
            drawn: dict[int, list[Series]] = {run: [] for run in runs}
            for run, name, line in lines:
                if name in self.looks[run]:
                    drawn[run].append(Series(panel, *self.looks[run][name], *line))
            for run, series in drawn.items():
                found[run] += sorted(series, key=lambda one: one.style.index)
        return found

    def _payload_rates(self, samples: Samples) -> Iterator[_Line]:
        longest = max(t.duration_ns for t in self.topologies.values())
        width = _rate_width(longest, max(self.intervals.values()))
        _, first = samples.bins(pl.col("t_ns") // width)
        columns = first.select("at", "t_ns", pl.col("rx_payload_bytes").cast(pl.Float64))
        for run, name, part in samples.parts(first["entity"]):
            at, times_ns, got = (column.to_numpy()[part] for column in columns)
            # Rates lie between two starts, so the last start has none.
            values = np.full(at[-1], np.nan)
            values[at[:-1]] = np.diff(got) * 8e3 / np.diff(times_ns)
            yield run, name, (width / NS * (0.5 + np.arange(values.size)), values)

    def _extremes(self, samples: Samples, column: str, scale: float = 1.0) -> Iterator[_Line]:
        """Per entity the smallest and largest value of every time bin, in the order in which they occurred."""
        widths = samples.entities["run"].replace_strict(self.widths, return_dtype=pl.Int64).alias("width")
        known = samples.only(samples.rows[column].is_not_null())
        starts, bins = known.bins(pl.col("t_ns") // known.spread(widths))
        low, high, low_first = extremes(known.rows[column].to_numpy(), starts)
        pairs = np.column_stack([np.where(low_first, low, high), np.where(low_first, high, low)]) * scale
        place = np.minimum(bins["at"].to_numpy(), BINS - 1)
        for run, name, part in samples.parts(bins["entity"]):
            values = np.full((BINS, 2), np.nan)
            values[place[part]] = pairs[part]
            yield run, name, (self.widths[run] / NS / 2 * (0.5 + np.arange(values.size)), values.ravel())


def _rate_width(longest_ns: int, sample_ns: int) -> int:
    """The length of the bins of a payload rate, whole seconds where the run is long enough for them."""
    seconds = NS * max(1, -(-longest_ns // (NS * MAX_RATE_BINS)))
    return max(min(seconds, longest_ns // _FEWEST_RATE_BINS), _SAMPLES_IN_BIN * sample_ns)


def samples_of(trace: Trace, looks: dict[int, Looks]) -> dict[str, Samples]:
    """The samples of `subflow` and `link` that plots need: of flows that are drawn, and of links that carry data."""
    runs = list(looks)
    carrying = sorted({link.name for run in runs for link in trace.topologies[run].data_links})
    drawn = {name[0] for run in runs for name in looks[run] if len(name) == 2}
    is_all = all(flow.name in drawn for run in runs for flow in trace.topologies[run].flows)
    columns = ("state", "cwnd_pkts", "rtt_us", "rtt_count", "rx_payload_bytes")
    return {
        "subflow": read(trace, "subflow", columns, runs, None if is_all else sorted(drawn)),
        "link": read(trace, "link", ("queue_pkts",), runs, carrying),
    }


def meant(panel: Panel, samples: Samples) -> Samples:
    """The samples of which a panel's quantity means something: a window and a round-trip time do not always."""
    if panel == CWND:
        return established(samples)
    return _heard(samples) if panel == RTT else samples


def _heard(samples: Samples) -> Samples:
    """The samples of subflows without those that only repeat the round-trip time from before a long silence.

    A subflow is silent when it is closed, when its path is down, and when it has nothing to send.
    """
    columns = ("entity", "t_ns", "rtt_count")
    entity, t_ns, count = (samples.rows[name].to_numpy() for name in columns)
    new = np.ones(entity.size, dtype=bool)
    new[1:] = (entity[1:] != entity[:-1]) | (count[1:] != count[:-1])
    starts = np.flatnonzero(new)
    sizes = np.diff(starts, append=entity.size)
    lasts = starts + sizes - 1
    # What is measured next ends a silence, also where the trace has no sample in it.
    follows = np.append(entity[starts[1:]] == entity[starts[:-1]], [False] * min(1, starts.size))
    ends = np.where(follows, t_ns[np.minimum(lasts + 1, entity.size - 1)], t_ns[lasts])
    silent = np.repeat(ends - t_ns[starts] > SILENT_NS, sizes)
    # An engine that does not count them has no silence.
    return samples.only(pl.Series(new | ~silent | (count == 0)))


def looks_of(trace: Trace, topology: Topology, most: int = MAX_SERIES) -> Looks:
    """Label and style of the subflows that are drawn, by the names of their flow and their own, and of the links."""
    labels, styles = subflow_labels(topology), families.line_styles(trace, topology)
    subflows = {name: (labels[name], styles[name]) for name in _chosen(trace, topology, most)}
    spare = 1 + max((look.index for look in families.styles(trace, topology).values()), default=-1)
    links = dict(list(link_styles(topology, styles, spare).items())[:most])
    return subflows | {(name,): (name, style) for name, style in links.items()}


def _chosen(trace: Trace, topology: Topology, most: int) -> list[tuple[str, str]]:
    """All subflows, or as many as plots have room for: the first flow of every family, then the second, ..."""
    subflows = {flow.name: [(flow.name, one.name) for one in flow.subflows] for flow in topology.flows}
    if sum(map(len, subflows.values())) <= most:
        return [name for names in subflows.values() for name in names]
    owner = {name: entity.name for entity in families.entities(trace) for name in entity.members}
    place: dict[str, int] = {}
    ranked = []
    for flow in subflows:
        family = owner.get(flow, flow)
        place[family] = place.get(family, -1) + 1
        ranked.append((place[family], flow))
    ranked.sort(key=lambda pair: pair[0])
    chosen = [name for _, flow in ranked for name in subflows[flow]][:most]
    order = {name: at for at, name in enumerate(name for names in subflows.values() for name in names)}
    return sorted(chosen, key=order.__getitem__)


def _left_out(topologies: dict[int, Topology], looks: dict[int, Looks]) -> list[str]:
    """What plots over time do not show of the largest run."""
    notes = []
    run, topology = max(topologies.items(), key=lambda item: _subflows(item[1]))
    drawn = sum(len(name) == 2 for name in looks[run])
    if drawn < _subflows(topology):
        notes.append(f"{drawn} of {_subflows(topology)} subflows")
    links = max(len(one.data_links) for one in topologies.values())
    if links > MAX_SERIES:
        notes.append(f"the queues of {MAX_SERIES} of {links} links")
    return notes
