"""How fast a flow adapts: after other flows start or end, and after an outage.

A change is the start or end of a flow in the window, including UDP streams (of a flow of many transfers, only the first
start and the last end). It affects every flow that shares links with it, directly or through other flows. The period
after a change lasts until the next change that affects the same flow, or until the flow or the window ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import polars as pl

from mptcplab.metrics.allocation import components
from mptcplab.metrics.presence import periods
from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, SUBFLOW, Window, both_levels, ratio
from mptcplab.trace.topology import Flow, Link, Topology

NS = 1_000_000_000

# Convergence: averages over _AVERAGE_NS come within _BAND of the final throughput and stay there for _HOLD_NS.
_AVERAGE_NS, _HOLD_NS, _BAND = NS, 5 * NS, 0.2
# Responsiveness: the fraction of the new mean window that has to be reached.
_REACHED = 0.8
# Recovery: the fraction of the old throughput that has to be exceeded, and the time over which the old one is taken.
_RECOVERED, _BEFORE_NS = 0.5, 5 * NS

_T, _BEGIN, _END = pl.col("t_ns"), pl.col("begin").first(), pl.col("end").first()
_WIRE = pl.col("rx_wire_bytes").cast(pl.Int64)
_CWND = pl.col("cwnd_pkts").cast(pl.Float64)
_SCHEMA = {"run": pl.UInt32, "flow": pl.String, "subflow": pl.String, "begin": pl.Int64, "end": pl.Int64}

# A value per span, given the sampling interval (ns).
_Measure = Callable[[int], pl.Expr]


@metric("convergence", "Convergence time", "s", ("flow",), needs_samples=True)
def convergence(window: Window) -> pl.DataFrame:
    """Time from a change until the throughput has settled; the mean over the changes after which it did.

    A change is the start or end of a flow, including this one, that shares links with it directly or through others; a
    change of a link is none. The throughput has settled when every one-second average that begins in the next 5 s is
    within 20 % of the mean throughput over the second half of the time to the next change. Null if it never did; absent
    if nothing changed.
    """
    delays = _measured(window, window.of_flows(_after_changes), FLOW, _settled)
    return delays.group_by(FLOW, maintain_order=True).agg(value=pl.col("value").mean())


@metric("responsiveness", "Responsiveness", "s", ("flow", "subflow"), needs_samples=True)
def responsiveness(window: Window) -> pl.DataFrame:
    """Time from the end of a competitor until the congestion window first reaches 80 % of its new mean.

    After Peng, Walid, Hwang, Low (2016). A competitor is a flow that shares a link with the subflow's path; the new
    mean is taken over the second half of the time to the next change. A subflow's value is the mean over the
    competitors that leave, a flow's is the mean over its subflows. Absent if none leaves.
    """
    delays = _measured(window, window.of_flows(_after_competitors), SUBFLOW, _reached)
    mean = pl.col("value").mean()
    subflows = delays.group_by(SUBFLOW, maintain_order=True).agg(value=mean)
    flows = subflows.group_by(FLOW, maintain_order=True).agg(value=mean)
    return pl.concat([subflows, flows.select(*FLOW, subflow=pl.lit(None, pl.String), value="value")])


@metric("recovery_time", "Recovery after an outage", "s", ("subflow",), needs_samples=True)
def recovery_time(window: Window) -> pl.DataFrame:
    """Time from the end of an outage of the path until the subflow exceeds half of its throughput before the outage.

    In an outage the schedule of a link on the path sets it down or its rate to 0. The throughput before is the mean
    over 5 s (less after another outage or the window's start). The time ends at the first second whose mean exceeds
    half of that, so that packets left in the link's queue do not count as recovery, unless they are enough for half a
    second. The value is the mean over the outages from which the subflow recovered before the next one; null if it
    never did. `not_recovered` counts those from which it did not.
    """
    return _recoveries(window).group_by(SUBFLOW, maintain_order=True).agg(value=pl.col("value").mean())


@metric("not_recovered", "Outages without recovery", "", ("flow", "subflow"), digits=1, needs_samples=True)
def not_recovered(window: Window) -> pl.DataFrame:
    """Number of outages of the path from which the subflow did not recover before the next one or the end of the run.

    What an outage and a recovery are is as in `recovery_time`, whose mean leaves these outages out. An outage does not
    count if nothing arrived before it, or if the subflow may not send in the second after it: because it or the
    connection has ended, or because it is a backup and a regular subflow may send. A flow's value is the sum over its
    subflows.
    """
    judged = _recoveries(window).filter(pl.col("before") > 0)
    counts = [_sends_after(window.lived[run], *who) for run, *who in judged.select(*SUBFLOW, "begin").iter_rows()]
    return both_levels(judged.filter(pl.Series(counts, dtype=pl.Boolean)), pl.col("value").is_null().sum())


def _sends_after(topology: Topology, name: str, part: str, at_ns: int) -> bool:
    """Whether a subflow may send during the whole second after a time, or until the run ends."""
    flow = next(flow for flow in topology.connections if flow.name == name)
    at = [subflow.name for subflow in flow.subflows].index(part)
    until = min(at_ns + _AVERAGE_NS, topology.duration_ns)
    during = [period for period in periods(topology, [flow]) if period.begin_ns < until and at_ns < period.end_ns]
    ends = max((period.end_ns for period in during), default=0)
    return until <= ends and all(period.sends.get(name, ())[at : at + 1] == (True,) for period in during)


def _recoveries(window: Window) -> pl.DataFrame:
    """Per subflow and outage: the throughput before, and the time until half of it is exceeded; null if never."""
    outages = window.of_flows(_outages)
    before = _measured(window, outages.select(*SUBFLOW, "up", "until", begin="since", end="down"), SUBFLOW, _rate)
    after = before.select(*SUBFLOW, begin="up", end="until", before="value")
    return _measured(window, after, SUBFLOW, _recovered)


def _settled(sample_ns: int) -> pl.Expr:
    average = _average(sample_ns)
    late = (_BEGIN + _END) / 2 <= _T
    final = ratio(_WIRE.last() - _WIRE.filter(late).first(), _T.last() - _T.filter(late).first())
    inside = ((average - final).abs() <= _BAND * final) & (final > 0)
    # A rolling minimum looks back, so the rows are reversed to look ahead.
    stays = inside.cast(pl.Int8).reverse().rolling_min(_rows(_HOLD_NS, sample_ns) + 1).reverse()
    return (_T.filter(stays == 1).first() - _BEGIN) * 1e-9


def _reached(_sample_ns: int) -> pl.Expr:
    new_mean = _CWND.filter((_BEGIN + _END) / 2 <= _T).mean()
    return (_T.filter(_REACHED * new_mean <= _CWND).first() - _BEGIN) * 1e-9


def _rate(_sample_ns: int) -> pl.Expr:
    """Mean throughput, bytes per ns."""
    return ratio(_WIRE.last() - _WIRE.first(), _T.last() - _T.first())


def _recovered(sample_ns: int) -> pl.Expr:
    before = pl.col("before").first()
    return (_T.filter((_average(sample_ns) > _RECOVERED * before) & (before > 0)).first() - _BEGIN) * 1e-9


def _average(sample_ns: int) -> pl.Expr:
    """Throughput over the second that begins with each row, bytes per ns; null where the span ends before."""
    rows = _rows(_AVERAGE_NS, sample_ns)
    return ratio(_WIRE.shift(-rows) - _WIRE, _T.shift(-rows) - _T)


def _rows(time_ns: int, sample_ns: int) -> int:
    return max(1, round(time_ns / sample_ns))


def _measured(window: Window, spans: pl.DataFrame, keys: tuple[str, ...], measure: _Measure) -> pl.DataFrame:
    """The spans with a value each (possibly null), from the samples of each flow or subflow inside them.

    A span has `begin` and `end`; spans of one flow or subflow do not overlap.
    """
    if spans.is_empty():
        return spans.with_columns(value=pl.lit(None, pl.Float64))
    sampled = window.runs.filter("sampled").select("run", "slack")
    spans = spans.join(sampled, on="run", how="inner", maintain_order="left").with_row_index("span")
    if spans.is_empty():
        return spans.with_columns(value=pl.lit(None, pl.Float64))
    found = []
    for sample_ns in spans["slack"].unique().sort():
        rows = _inside(window, spans.filter(slack=sample_ns), keys)
        found.append(rows.group_by("span", maintain_order=True).agg(value=measure(sample_ns)))
    return spans.join(pl.concat(found), on="span", how="left", maintain_order="left").drop("span", "slack")


def _inside(window: Window, spans: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """The samples in the spans, in time order, with the columns of their span."""
    samples = window.samples("subflow")
    key = "entity" if keys == SUBFLOW else "owner"
    numbers = samples.labels(key, keys)
    numbered = spans.join(numbers, on=keys, how="inner", maintain_order="left").drop(keys).sort(key, "begin")
    rows = samples.rows.filter(pl.col(key).is_in(numbered[key].unique().to_list()))
    if key == "owner":
        rows = rows.group_by("owner", "t_ns", maintain_order=True).agg(pl.col("rx_wire_bytes").sum())
    rows = rows.select(key, "t_ns", "rx_wire_bytes", *(["cwnd_pkts"] if key == "entity" else [])).sort(key, "t_ns")
    joined = rows.join_asof(numbered, left_on="t_ns", right_on="begin", by=key, coalesce=False, check_sortedness=False)
    return joined.filter(pl.col("end") >= _T)


def _after_changes(window: Window) -> pl.DataFrame:
    """For every flow, the spans between the changes that affect it."""
    rows = [
        (run, flow.name, None, begin, min(end, life[1]))
        for run, flows, begin, end in _periods(window)
        for flow, life in flows
        if life[0] <= begin < life[1] and flow.transport != "udp"
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row").drop("subflow")


def _after_competitors(window: Window) -> pl.DataFrame:
    """For every subflow, the spans that begin when a flow ends that shared a link with it."""
    rows = []
    for run, flows, begin, end in _periods(window):
        freed = {link for flow, life in flows if life[1] == begin for path in flow.paths for link in path}
        rows += [
            (run, flow.name, subflow.name, begin, min(end, life[1]))
            for flow, life in flows
            if life[0] <= begin < life[1] and flow.transport != "udp"
            for subflow in flow.subflows
            if not freed.isdisjoint(subflow.path)
        ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _periods(window: Window) -> Iterator[tuple[int, list[tuple[Flow, tuple[int, int]]], int, int]]:
    """Run, connected flows with their lifetimes, and begin and end (ns) of each period between two changes."""
    for run, topology in window.topologies.items():
        there = [
            (flow, window.lifetimes[run, flow.name]) for flow in topology.flows if (run, flow.name) in window.lifetimes
        ]
        edges = {flow.name: life for flow, life in there}
        if not any(topology.warmup_ns <= t < topology.duration_ns for life in edges.values() for t in life):
            continue
        for names in components({flow.name: flow.paths for flow, _ in there}):
            times = {t for name in names for t in edges[name] if topology.warmup_ns <= t < topology.duration_ns}
            group = [(flow, life) for flow, life in there if flow.name in names]
            for begin, end in pairwise([*sorted(times), topology.duration_ns]):
                yield run, group, begin, end


def _outages(window: Window) -> pl.DataFrame:
    """Per subflow and outage (ns): the path works from `since` to `down`, fails until `up`, and works until `until`."""
    rows = []
    for run, topology in window.topologies.items():
        for flow in topology.connections:
            for subflow in flow.subflows:
                away = _union([span for name in subflow.path for span in _outages_of(topology.links[name])])
                ends = [topology.warmup_ns, *(up for _, up in away)]
                begins = [*(down for down, _ in away), topology.duration_ns]
                rows += [
                    (run, flow.name, subflow.name, max(down - _BEFORE_NS, last, topology.warmup_ns), down, up, until)
                    for (down, up), last, until in zip(away, ends, begins[1:], strict=False)
                    if topology.warmup_ns < down and up < topology.duration_ns
                ]
    times: dict[str, type[pl.DataType]] = dict.fromkeys(("since", "down", "up", "until"), pl.Int64)
    return pl.DataFrame(rows, schema={**{key: _SCHEMA[key] for key in SUBFLOW}, **times}, orient="row")


def _outages_of(link: Link) -> list[tuple[int, int]]:
    """The times in which the schedule lets nothing through, if they end."""
    return [(since, until) for (since, closed), (until, _) in pairwise(link.closings) if closed]


def _union(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of time in order, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
