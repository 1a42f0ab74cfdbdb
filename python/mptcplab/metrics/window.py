"""The measurement window: counters at its two edges, and the samples inside it.

The window of a flow is the part of the time from the end of the warm-up to the end of the run in which the flow is
there: it begins at the flow's start and ends when the flow stops or its file is complete. A span of time may be given
instead of the time from the warm-up to the end. Counters are cumulative, so a window is the difference of two rows. The
counters at an edge are those of a row that is less than one sampling interval older; without such a row the value is
null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING

import polars as pl

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.trace.samples import KEYS, Samples, batches, read, scan

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace
    from mptcplab.trace.topology import Flow, Topology

FLOW, SUBFLOW, LINK = KEYS["flow"], KEYS["subflow"], KEYS["link"]

_FLOW_COUNTERS = (
    "delivered_bytes",
    "reinjected_pkts",
    "duplicate_pkts",
    "blocked_ns",
    "ooo_pkts",
    "ooo_delay_sum_ns",
    "reorder_depth_sum_pkts",
)
_SUBFLOW_COUNTERS = (
    "rtt_sum_us",
    "rtt_count",
    "sent_pkts",
    "retx_pkts",
    "lost_pkts",
    "loss_events",
    "ecn_events",
    "rto_count",
    "rto_wait_ns",
    "undo_count",
    "rx_pkts",
    "rx_wire_bytes",
    "rx_payload_bytes",
)
_LINK_COUNTERS = (
    "arrived_pkts",
    "dropped_random_pkts",
    "dropped_queue_pkts",
    "marked_pkts",
    "departed_pkts",
    "departed_bytes",
    "queue_delay_sum_ns",
)


_FLOW_EVENTS = ("flow_started", "flow_stopped", "flow_completed")
# Columns that the sample-based metrics and the plots need; read together, once.
_SAMPLED = {
    "flow": ("delivered_bytes", "ooo_bytes", "ooo_delay_max_ns", "reorder_depth_max_pkts"),
    "subflow": ("state", "cwnd_pkts", "ssthresh_pkts", "srtt_us", "rtt_us", "rx_wire_bytes", "rx_payload_bytes"),
    "link": ("queue_pkts", "queue_delay_max_ns"),
}
_time = pl.col("t_ns")
# A place in time relative to t0, t1 and slack of a window, which are columns or numbers.
_Number = pl.Expr | int
_Where = Callable[[_Number, _Number, _Number], pl.Expr]
_BOUNDS = (pl.col("t0"), pl.col("t1"), pl.col("slack"))
# With more different windows than this, a filter on time would cost more than it saves, and rows need memory.
_MAX_WINDOWS = 8


@dataclass(frozen=True)
class Part:
    """Some of the flows and links of a run, whose samples fit in memory together."""

    flows: tuple[str, ...]
    links: tuple[str, ...]

    def of(self, table: str) -> tuple[str, ...]:
        """The names in a table."""
        return self.links if table == "link" else self.flows


class Window:
    """Everything that metrics need of the traces of some runs, each part computed once.

    `span` (begin and end in ns since the start of the run) replaces [warm-up end, end of the run).
    """

    # Which flows and links there are; without it, all of the runs.
    part: Part | None = None

    def __init__(self, trace: Trace, runs: Sequence[int] | None = None, span: tuple[int, int] | None = None) -> None:
        self.trace = trace
        self.run_ids = trace.runs["run"].to_list() if runs is None else list(runs)
        self.span = span
        self._reading = Lock()

    def of_runs(self, runs: Sequence[int]) -> Window:
        """The window of some of the runs."""
        return _Some(self, runs)

    def parts(self, count: int) -> Iterator[Window]:
        """Windows of at most so many parts, each with some of the flows and links; none is kept here."""
        flows = list(dict.fromkeys(flow.name for topology in self.topologies.values() for flow in topology.flows))
        links = list(dict.fromkeys(name for topology in self.topologies.values() for name in topology.links))
        count = min(count, max(len(flows), len(links)))
        cuts = [(at * len(flows) // count, at * len(links) // count) for at in range(count + 1)]
        parts = (
            Part(tuple(flows[flow:flow_end]), tuple(links[link:link_end]))
            for (flow, link), (flow_end, link_end) in pairwise(cuts)
        )
        return (_Some(self, self.run_ids, part) for part in parts)

    def in_part(self, frame: pl.DataFrame, key: str) -> pl.DataFrame:
        """The rows of the part's flows or links, which `key` (flow or link) names."""
        names = self._names(key)
        return frame if names is None else frame.filter(pl.col(key).is_in(names))

    def _names(self, table: str) -> Sequence[str] | None:
        return None if self.part is None else self.part.of(table)

    @cached_property
    def topologies(self) -> dict[int, Topology]:
        """The resolved scenario of every run; only what lies in the span counts."""
        found = {run: self.trace.topologies[run] for run in self.run_ids}
        if self.span is None:
            return found
        for run, topology in found.items():
            _check_span(self.span, run, topology.duration_ns)
        begin, end = self.span
        return {run: replace(topology, warmup_ns=begin, duration_ns=end) for run, topology in found.items()}

    @cached_property
    def shares(self) -> dict[str, pl.DataFrame]:
        """The fair shares that were computed, by the name of their definition; see `ideals`."""
        return {}

    @cached_property
    def runs(self) -> pl.DataFrame:
        """run, t0, t1 (ns), slack (ns): the window of a whole run."""
        bounds = [(run, topology.warmup_ns, topology.duration_ns) for run, topology in self.topologies.items()]
        schema = {"run": pl.UInt32, "t0": pl.Int64, "t1": pl.Int64}
        windows = pl.DataFrame(bounds, schema=schema, orient="row")
        return windows.join(self.trace.runs, on="run", maintain_order="left").select(
            "run",
            "t0",
            "t1",
            slack=pl.col("sample_ns").cast(pl.Int64).fill_null(1),
            sampled=pl.col("sample_ns").is_not_null(),
        )

    @cached_property
    def flows(self) -> pl.DataFrame:
        """run, flow, transport, greedy, t0, t1, slack, seconds, part, from, until, stops: the window of every flow.

        `part` is the fraction of the run's window that it has. Counters grow in it by as much as between `from` and
        `until`, where every trace has rows: before its start a flow counts nothing, and after its end no data. `stops`:
        it was told to stop within the window, with more to send, where there need not be a row.
        """
        rows = [
            (run, flow.name, flow.transport, flow.is_greedy, lived.start_ns, lived.stop_ns, flow.stop_ns)
            for run, topology in self.topologies.items()
            for flow, lived in zip(topology.flows, self.lived[run].flows, strict=True)
        ]
        names = {"run": pl.UInt32, "flow": pl.String, "transport": pl.String, "greedy": pl.Boolean}
        schema = names | dict.fromkeys(("start", "end", "stop"), pl.Int64)
        seconds = (pl.col("t1") - pl.col("t0")) * 1e-9
        return (
            pl.DataFrame(rows, schema=schema, orient="row")
            .join(self.runs, on="run", maintain_order="left")
            .with_columns(
                pl.col("t0").alias("from"),
                until=pl.min_horizontal("t1", "stop"),
                stops=(pl.col("stop") < pl.col("t1")) & (pl.col("stop") <= pl.col("end")),
                whole=seconds,
            )
            .with_columns(t0=pl.max_horizontal("t0", "start"), t1=pl.min_horizontal("t1", "end"))
            .with_columns(seconds=seconds, part=seconds / pl.col("whole"))
            .drop("start", "end", "stop", "whole")
            .filter(pl.col("seconds") > 0)
        )

    @cached_property
    def links(self) -> pl.DataFrame:
        """run, link, rate_bps (mean over the window; null if unknown), t0, t1, slack, seconds."""
        rows = [
            (run, link.name, link.mean_rate_bps(topology.warmup_ns, topology.duration_ns))
            for run, topology in self.topologies.items()
            for link in topology.links.values()
        ]
        schema = {"run": pl.UInt32, "link": pl.String, "rate_bps": pl.Float64}
        links = pl.DataFrame(rows, schema=schema, orient="row").join(self.runs, on="run", maintain_order="left")
        return links.with_columns(seconds=(pl.col("t1") - pl.col("t0")) * 1e-9)

    @cached_property
    def flow_delta(self) -> pl.DataFrame:
        """Growth of every flow counter over the flow's window."""
        return _until_last_row(self.growth("flow", _FLOW_COUNTERS, self._counted))

    @cached_property
    def subflow_delta(self) -> pl.DataFrame:
        """Growth of every subflow counter over its flow's window."""
        return _until_last_row(self.growth("subflow", _SUBFLOW_COUNTERS, self._counted))

    @cached_property
    def _counted(self) -> pl.DataFrame:
        """The windows of flows with the bounds between which their counters grow."""
        return self.flows.select(
            *FLOW, "transport", "seconds", "slack", "stops", pl.col("t0").alias("begin"), t0="from", t1="until"
        )

    @cached_property
    def link_delta(self) -> pl.DataFrame:
        """Growth of every link counter over the run's window, with the link's mean rate."""
        return self.growth("link", _LINK_COUNTERS, self.links)

    @cached_property
    def flow_events(self) -> pl.DataFrame:
        """run, t_ns, kind, flow: when flows started, stopped and completed, in the whole of each run."""
        found = self.events(*_FLOW_EVENTS).select("run", "t_ns", "kind", "flow")
        return found.filter(pl.col("flow").is_not_null())

    def events(self, *kinds: str) -> pl.DataFrame:
        """run, t_ns, kind, flow, subflow, value: the events of some kinds in the whole of each run."""
        names = pl.col("kind", "flow", "subflow").cast(pl.String)
        rows = self.trace.scan("event", self.run_ids).select("run", pl.col("t_ns").cast(pl.Int64), names, "value")
        return rows.filter(pl.col("kind").is_in(kinds)).collect()

    @cached_property
    def lived(self) -> dict[int, Topology]:
        """`topologies` with the times at which the flows of each run began and ended.

        A start that is drawn at random is that of the run, and a file ends when it is complete.
        """
        drawn = [flow for topology in self.topologies.values() for flow in topology.flows if _depends_on_run(flow)]
        times: dict[tuple[int, str, str], int] = {}
        for run, t_ns, kind, flow in self.flow_events.iter_rows() if drawn else ():
            times.setdefault((run, flow, kind), t_ns)
        return {run: _as_it_was(run, topology, times) for run, topology in self.topologies.items()}

    @cached_property
    def lifetimes(self) -> dict[tuple[int, str], tuple[int, int]]:
        """When each flow of a run started, and when its application, its file or the run ended.

        In ns, in the whole run. Flows that never started are absent.
        """
        whole = {run: self.trace.topologies[run] for run in self.run_ids}
        files = {(run, flow.name) for run, topology in whole.items() for flow in topology.flows if flow.ends_by_itself}
        began: dict[tuple[int, str], int] = {}
        ended: dict[tuple[int, str], int] = {}
        for run, t_ns, kind, flow in self.flow_events.iter_rows():
            if kind == "flow_started":
                began.setdefault((run, flow), t_ns)
            elif kind == "flow_stopped" or (run, flow) in files:
                ended[run, flow] = min(t_ns, ended.get((run, flow), t_ns))
        return {key: (t_ns, ended.get(key, whole[key[0]].duration_ns)) for key, t_ns in began.items()}

    def growth(self, table: str, counters: tuple[str, ...], bounds: pl.DataFrame) -> pl.DataFrame:
        """Growth of counters between t0 and t1 (ns) of `bounds`, which has one row per run and flow, or link.

        `last_ns` is the time of the row that stands for t1.
        """
        few = _windows(bounds).height <= _MAX_WINDOWS
        groups = [self.run_ids] if few else batches(self.trace, self.run_ids, len(self.run_ids))
        return pl.concat(self._growth(table, counters, bounds, runs) for runs in groups)

    def _growth(self, table: str, counters: tuple[str, ...], bounds: pl.DataFrame, runs: Sequence[int]) -> pl.DataFrame:
        keys = list(KEYS[table])
        bounds = bounds.filter(pl.col("run").is_in(runs))
        on = [key for key in keys if key in bounds.columns]

        def rows(where: _Where, *columns: str) -> pl.LazyFrame:
            return (
                scan(self.trace, table, runs, self._names(table))
                .filter(_in_any(where, bounds))
                .select("run", _time.cast(pl.Int64), *keys[1:], *columns)
                .with_columns([pl.col(key).cast(pl.String) for key in keys[1:]])
                .join(bounds.lazy(), on=on, maintain_order="left")
                .filter(where(*_BOUNDS))
            )

        earlier = rows(_before).select(keys).unique(maintain_order=True).collect()
        edges = {"at_start": _at_start(*_BOUNDS), "at_end": _at_end(*_BOUNDS)}
        floats = rows(_at_edges, *counters).with_columns(pl.col(counters).cast(pl.Float64), **edges).collect()
        last = [pl.col(counters).filter(edge).last().name.suffix(edge) for edge in edges]
        when = pl.col("t_ns").filter("at_end").last().alias("last_ns")
        found = floats.group_by(keys, maintain_order=True).agg(*last, when)
        new = found.join(earlier, on=keys, how="anti", maintain_order="left").with_columns(is_new=True)
        old = earlier.with_columns(is_new=False).join(found, on=keys, how="left", maintain_order="left")
        both = pl.concat([old, new.select(old.columns)]).join(bounds, on=on, how="left", maintain_order="left")
        growth = []
        for name in counters:
            # An entity that appears after the window opened had counted nothing before.
            begin = pl.when("is_new").then(0.0).otherwise(pl.col(f"{name}at_start"))
            growth.append((pl.col(f"{name}at_end") - begin).alias(name))
        extra = [name for name in bounds.columns if name not in keys]
        # As whole columns: Polars divides a column that it keeps as one number another way, with another last digit.
        return pl.DataFrame(both.select(*keys, *growth, "last_ns", *extra).get_columns())

    def of_flows(self, make: Callable[[Window], pl.DataFrame]) -> pl.DataFrame:
        """A table about flows that follows from topologies and events: `make` is called once for all runs."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    @cached_property
    def _made(self) -> dict[Callable[[Window], pl.DataFrame], pl.DataFrame]:
        return {}

    def samples(self, table: str) -> Samples:
        """The samples inside the windows, with t0 and t1. Links that carry only ACKs are left out."""
        # Metrics that are computed at once read a table once.
        with self._reading:
            if table not in self._samples:
                self._samples[table] = self._read(table)
            return self._samples[table]

    @cached_property
    def _samples(self) -> dict[str, Samples]:
        return {}

    def all_samples(self, table: str) -> Samples:
        """The samples of the whole runs, as far as `samples` has those inside the windows."""
        with self._reading:
            return self._read_all(table)

    def _read_all(self, table: str) -> Samples:
        names = self._names(table)
        if table == "link":
            carrying = {link.name for topology in self.topologies.values() for link in topology.data_links}
            names = sorted(carrying if names is None else carrying.intersection(names))
        return read(self.trace, table, _SAMPLED[table], self.run_ids, names)

    def _read(self, table: str) -> Samples:
        everything = self._read_all(table)
        bounds = (self.links if table == "link" else self.flows).filter("sampled")
        on = [key for key in KEYS[table] if key in bounds.columns]
        # An entity without a window has an empty one.
        empty = pl.col("t0").fill_null(1), pl.col("t1").fill_null(0)
        windows = everything.entities.join(bounds, on=on, how="left", maintain_order="left").select(empty)
        rows = everything.rows.drop("delivered_bytes", strict=False).with_columns(
            everything.spread(edge) for edge in windows
        )
        return everything.with_rows(rows.filter(pl.col("t_ns").is_between("t0", "t1")))


def _of_whole(name: str, key: str) -> cached_property[pl.DataFrame]:
    """A table of a window of fewer runs, flows or links: its rows of the whole window's table."""

    def rows(self: _Some) -> pl.DataFrame:
        return self.own(getattr(self.whole, name), key)

    return cached_property(rows)


class _Some(Window):
    """Some runs of a window, or a part of them; what does not depend on samples comes from the whole window.

    With `part`, flows and links are only those of the part, but topologies and events are those of whole runs.
    """

    def __init__(self, whole: Window, runs: Sequence[int], part: Part | None = None) -> None:
        super().__init__(whole.trace, runs, whole.span)
        self.whole, self.part = whole, part

    @cached_property
    def topologies(self) -> dict[int, Topology]:
        return {run: self.whole.topologies[run] for run in self.run_ids}

    @cached_property
    def lived(self) -> dict[int, Topology]:
        return {run: self.whole.lived[run] for run in self.run_ids}

    def own(self, rows: pl.DataFrame, key: str) -> pl.DataFrame:
        """The rows about these runs and flows, or links, of a table of the whole window; `key` is flow or link."""
        return self.in_part(rows.filter(pl.col("run").is_in(self.run_ids)), key)

    def of_flows(self, make: Callable[[Window], pl.DataFrame]) -> pl.DataFrame:
        return self.own(self.whole.of_flows(make), "flow")

    @cached_property
    def flow_events(self) -> pl.DataFrame:
        return self.whole.flow_events.filter(pl.col("run").is_in(self.run_ids))

    flows, links = _of_whole("flows", "flow"), _of_whole("links", "link")
    flow_delta, subflow_delta = _of_whole("flow_delta", "flow"), _of_whole("subflow_delta", "flow")
    link_delta = _of_whole("link_delta", "link")


def _depends_on_run(flow: Flow) -> bool:
    return flow.ends_by_itself or flow.latest_start_ns not in (None, flow.start_ns)


def _as_it_was(run: int, topology: Topology, times: Mapping[tuple[int, str, str], int]) -> Topology:
    """A scenario with the times of a run's events: by run, flow and kind."""
    if not any(map(_depends_on_run, topology.flows)):
        return topology
    flows = []
    for flow in topology.flows:
        began, complete = times.get((run, flow.name, "flow_started")), times.get((run, flow.name, "flow_completed"))
        # On a kernel, the first packet of a flow is later than its start.
        latest = flow.start_ns if flow.latest_start_ns is None else flow.latest_start_ns
        start = flow.start_ns if began is None else min(max(began, flow.start_ns), latest)
        ends = [t_ns for t_ns in (flow.stop_ns, complete if flow.ends_by_itself else None) if t_ns is not None]
        flows.append(replace(flow, start_ns=start, latest_start_ns=start, stop_ns=min(ends, default=None)))
    return replace(topology, flows=tuple(flows))


def _until_last_row(grown: pl.DataFrame) -> pl.DataFrame:
    """Give flows that stop between two samples as many `seconds` as their counters grew."""
    grew_ns = pl.col("last_ns") - pl.col("begin")
    ends_early = pl.col("stops") & (grew_ns > 0)
    return grown.with_columns(seconds=pl.when(ends_early).then(grew_ns * 1e-9).otherwise("seconds"))


def _check_span(span: tuple[int, int], run: int, duration_ns: int) -> None:
    begin, end = span
    if not 0 <= begin < end <= duration_ns:
        raise MptcplabError(
            with_hint(
                f"not a span of run {run}: {begin / 1e9:g} s to {end / 1e9:g} s",
                f"begin before the end, and within 0 s and {duration_ns / 1e9:g} s",
            )
        )


def _before(t0: _Number, _t1: _Number, _slack: _Number) -> pl.Expr:
    return _time <= t0


def _at_start(t0: _Number, _t1: _Number, slack: _Number) -> pl.Expr:
    return (_time <= t0) & (_time >= _first(t0, slack))


def _at_end(_t0: _Number, t1: _Number, slack: _Number) -> pl.Expr:
    return (_time <= t1) & (_time >= _first(t1, slack))


def _at_edges(t0: _Number, t1: _Number, slack: _Number) -> pl.Expr:
    return _at_start(t0, t1, slack) | _at_end(t0, t1, slack)


def _windows(bounds: pl.DataFrame) -> pl.DataFrame:
    return bounds.select("t0", "t1", "slack").unique(maintain_order=True)


def _first(edge: _Number, slack: _Number) -> _Number:
    """The earliest time of a row that stands for an edge; a number is not negative, as times in a table are not."""
    earliest = edge - slack + 1
    return max(earliest, 0) if isinstance(earliest, int) else earliest


def _in_any(where: _Where, bounds: pl.DataFrame) -> pl.Expr:
    """A cheap filter that drops most rows before the join: only those remain that lie there in some window.

    It compares times as they are stored, so that row groups of other times are not read.
    """
    windows = _windows(bounds)
    if windows.is_empty() or windows.height > _MAX_WINDOWS:
        return pl.lit(True)
    return pl.any_horizontal(where(*window) for window in windows.iter_rows())


def both_levels(frame: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """Evaluate an aggregating expression per subflow and per flow."""
    per_subflow = frame.group_by(SUBFLOW, maintain_order=True).agg(value=value)
    per_flow = frame.group_by(FLOW, maintain_order=True).agg(value=value)
    return pl.concat([per_subflow, per_flow.select("run", "flow", subflow=pl.lit(None, pl.String), value="value")])


def per_connection(window: Window, value: pl.Expr) -> pl.DataFrame:
    """Evaluate an expression on the counters of every TCP and MPTCP connection."""
    return window.flow_delta.filter(pl.col("transport") != "udp").select(*FLOW, value=value)


def total(name: str) -> pl.Expr:
    """Sum that stays null when any part is unknown (a plain sum would call it 0)."""
    return pl.when(pl.col(name).is_null().any()).then(None).otherwise(pl.col(name).sum())


def ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    """Quotient; null instead of infinite."""
    return pl.when(denominator > 0).then(numerator / denominator)


def with_valid(rows: pl.DataFrame) -> pl.DataFrame:
    """Samples of a window with `valid_ns`, for how long each counts: until the entity's next, or the window's end."""
    is_last = (pl.col("entity") != pl.col("entity").shift(-1)).fill_null(value=True)
    until = pl.when(is_last).then("t1").otherwise(pl.col("t_ns").shift(-1))
    return rows.with_columns(valid_ns=until - pl.col("t_ns"))


def weighted_mean(name: str) -> pl.Expr:
    """Time-weighted mean of an entity's samples, which have `valid_ns`.

    Null if a sample is null: the mean is unknown if a part of the window was not measured.
    """
    valid = pl.col("valid_ns")
    mean = ratio((pl.col(name).cast(pl.Float64) * valid).sum(), valid.sum())
    return pl.when(pl.col(name).null_count() == 0).then(mean)
