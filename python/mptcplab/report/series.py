"""Time series for plots: reduced to what a screen can show, without losing a peak.

Window, RTT and queue keep the smallest and largest value of every time bin, in the order in which they occurred;
the payload rate is a mean over bins of a second (longer where the run is long).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mptcplab.plots.over_time import CWND, PAYLOAD, QUEUE, RTT, Column, Panel, Series
from mptcplab.plots.styles import Style, link_styles, subflow_labels, subflow_styles
from mptcplab.trace.samples import Samples, read

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace
    from mptcplab.trace.topology import Topology

NS = 1_000_000_000
MAX_BINS = 500
MIN_BINS = 120
MAX_RUNS = 60
MAX_SERIES = 12
# Values in all embedded series together: keeps the page below a few megabytes.
_BUDGET = 900_000
MAX_RATE_BINS = 400
PANELS = (CWND, RTT, PAYLOAD, QUEUE)


@dataclass(frozen=True)
class RunPlots:
    """All series of one run; its title is the configuration."""

    column: Column
    rep: int


@dataclass(frozen=True)
class PlotData:
    """The runs that are drawn, and what was left out."""

    runs: tuple[RunPlots, ...]
    notes: tuple[str, ...]


def plot_data(results: Trace) -> PlotData:
    """Reduce the traces of a sweep to series for plots."""
    chosen, notes = _choose_runs(results)
    if not chosen:
        return PlotData((), tuple(notes))
    topologies = {run: results.topologies[run] for run in chosen}
    entities = sum(2 * min(_subflows(t), MAX_SERIES) + min(len(t.data_links), MAX_SERIES) for t in topologies.values())
    bins = int(np.clip(_BUDGET / (2 * max(entities, 1)), MIN_BINS, MAX_BINS))
    if max(_subflows(t) for t in topologies.values()) > MAX_SERIES:
        notes.append(f"plots show the first {MAX_SERIES} subflows of each run")
    builder = _SeriesBuilder(results, topologies, bins)
    found: dict[int, list[Series]] = {run: [] for run in chosen}
    for part in (builder.subflows(), builder.queue()):
        for run, series in part:
            found[run].append(series)
    # A run that does not count is drawn, but never under the name of those that do.
    states = {problem.run: f", {problem.status}" for problem in results.excluded_runs}
    named = results.configs.select("run", "rep", "config").rows()
    labels = {run: config + states.get(run, "") for run, _, config in named}
    reps = {run: rep for run, rep, _ in named}
    runs = [
        RunPlots(Column(labels[run], tuple(found[run]), 0.0, t.duration_ns / NS, t.warmup_ns / NS), reps[run])
        for run, t in topologies.items()
        if found[run]
    ]
    return PlotData(tuple(runs), tuple(notes))


def _choose_runs(results: Trace) -> tuple[list[int], list[str]]:
    """Runs to draw: all, or the first repetitions of every configuration, or the first configurations."""
    sampled = results.runs.filter(pl.col("sample_ns").is_not_null())["run"]
    if sampled.is_empty():
        return [], ["sampling was off: there are no plots over time"]
    runs = results.configs.filter(pl.col("run").is_in(sampled.implode()))
    if runs.height <= MAX_RUNS:
        return runs["run"].to_list(), []
    configs = runs["config"].n_unique()
    reps = max(1, MAX_RUNS // configs)
    rank = pl.col("rep").rank("dense").over("config")
    chosen = runs.filter(rank <= reps)["run"].to_list()[:MAX_RUNS]
    return chosen, [f"plots show {len(chosen)} of {runs.height} runs"]


def _subflows(topology: Topology) -> int:
    return sum(len(flow.subflows) for flow in topology.flows)


class _SeriesBuilder:
    """Queries over the traces of the chosen runs."""

    def __init__(self, results: Trace, topologies: dict[int, Topology], bins: int) -> None:
        self.results = results
        self.topologies = topologies
        self.bins = bins
        # Runs of a sweep may differ in length; each has the same number of bins.
        self.widths = {run: max(1, -(-topology.duration_ns // bins)) for run, topology in topologies.items()}
        self.names = {run: (subflow_styles(t), subflow_labels(t), link_styles(t)) for run, t in topologies.items()}

    def queue(self) -> list[tuple[int, Series]]:
        """Queues of the links that ever queue; the rest would be lines at zero."""
        carrying = sorted({link.name for t in self.topologies.values() for link in t.data_links})
        samples = read(self.results, "link", ("queue_pkts",), list(self.topologies), carrying)
        found = []
        for run, link, values in self._extremes(samples, "queue_pkts").iter_rows():
            style = self.names[run][2].get(link)
            if style is not None and max(values["high"]):
                found.append((run, self._series(QUEUE, run, link, style, values, 1.0)))
        return _first_per_run(found)

    def subflows(self) -> list[tuple[int, Series]]:
        """Window, RTT and payload rate of every subflow."""
        samples = read(self.results, "subflow", ("cwnd_pkts", "rtt_us", "rx_payload_bytes"), list(self.topologies))
        found = []
        for panel, column, scale in ((CWND, "cwnd_pkts", 1.0), (RTT, "rtt_us", 1e-3)):
            part = []
            for run, flow, subflow, values in self._extremes(samples, column).iter_rows():
                style, label = self._style_and_label(run, flow, subflow)
                if style is not None:
                    part.append((run, self._series(panel, run, label, style, values, scale)))
            found += _first_per_run(part)
        return found + self._payload(samples)

    def _style_and_label(self, run: int, flow: str, subflow: str) -> tuple[Style | None, str]:
        styles, labels, _ = self.names[run]
        return styles.get((flow, subflow)), labels.get((flow, subflow), subflow)

    def _payload(self, samples: Samples) -> list[tuple[int, Series]]:
        longest = max(t.duration_ns for t in self.topologies.values())
        width = NS * max(1, -(-longest // (NS * MAX_RATE_BINS)))
        at, entity = pl.col("t_ns") // width, pl.col("entity")
        first = (at != at.shift(1)).fill_null(True) | (entity != entity.shift(1))
        grown = pl.col("rx_payload_bytes").cast(pl.Float64).diff().shift(-1)
        starts = samples.with_rows(samples.rows.filter(first))
        frame = starts.per_entity(at=at, mbps=grown * 8e3 / pl.col("t_ns").diff().shift(-1))
        found = []
        for run, flow, subflow, at_bins, mbps in frame.iter_rows():
            style, label = self._style_and_label(run, flow, subflow)
            if style is None:
                continue
            # Rates lie between two starts, so the last start has none.
            values = np.full(max(at_bins), np.nan)
            values[at_bins[:-1]] = mbps[:-1]
            times_s = width / NS * (0.5 + np.arange(values.size))
            found.append((run, Series(PAYLOAD, label, style, times_s, values)))
        return _first_per_run(found)

    def _extremes(self, samples: Samples, column: str) -> pl.DataFrame:
        """Per entity a structure of lists: bin, smallest and largest value, and which came first."""
        widths = pl.DataFrame(
            {"run": list(self.widths), "width": list(self.widths.values())},
            schema={"run": pl.UInt32, "width": pl.Int64},
        )
        width = (
            samples.entities.select("entity", "run")
            .join(widths, on="run", maintain_order="left")
            .select("entity", "width")
        )
        rows = samples.rows.select("entity", "t_ns", column).drop_nulls(column)
        rows = rows.join(width, on="entity", maintain_order="left")
        # Entities are sorted and times grow, so bins are runs of equal values and one number identifies each.
        place = pl.struct("entity", at=pl.col("t_ns") // pl.col("width")).rle_id()
        value = pl.col(column)
        bins = (
            rows.select("entity", column, at=pl.col("t_ns") // pl.col("width"), place=place)
            .with_columns(pl.col("place").set_sorted())
            .group_by("place", maintain_order=True)
            .agg(
                pl.col("entity", "at").first(),
                low=value.min().cast(pl.Float64),
                high=value.max().cast(pl.Float64),
                low_first=value.arg_min() < value.arg_max(),
            )
        )
        lists = bins.group_by("entity", maintain_order=True).agg("at", "low", "high", "low_first")
        named = samples.entities.drop("owner").join(lists, on="entity", maintain_order="left").drop("entity")
        fields = ("at", "low", "high", "low_first")
        return named.drop_nulls("at").select(pl.exclude(*fields), values=pl.struct(*fields))

    def _series(
        self, panel: Panel, run: int, label: str, style: Style, extremes: dict[str, list[float]], scale: float
    ) -> Series:
        """Two values per bin, in the order in which they occurred."""
        at = np.minimum(np.array(extremes["at"], dtype=np.int64), self.bins - 1)
        low, high = np.array(extremes["low"]) * scale, np.array(extremes["high"]) * scale
        rising = np.array(extremes["low_first"])
        values = np.full(2 * self.bins, np.nan)
        values[2 * at] = np.where(rising, low, high)
        values[2 * at + 1] = np.where(rising, high, low)
        times_s = self.widths[run] / NS / 2 * (0.5 + np.arange(values.size))
        return Series(panel, label, style, times_s, values)


def _first_per_run(found: list[tuple[int, Series]]) -> list[tuple[int, Series]]:
    """At most MAX_SERIES series per run, in style order (which is file order)."""
    counts: dict[int, int] = {}
    chosen = []
    for run, series in sorted(found, key=lambda item: (item[0], item[1].style.index)):
        counts[run] = counts.get(run, 0) + 1
        if counts[run] <= MAX_SERIES:
            chosen.append((run, series))
    return chosen
