"""Requests with their responses, and messages, on connections that last.

Those count that were sent in the window [warm-up end, stop), whenever they completed. The response time of a request is
the time until the last byte of its response is at the client. The delay of a message is the time until its last byte is
delivered, or, where messages are answered, until the last byte of the answer is back.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, Window

Kind = Literal["requests", "messages"]
_DONE = pl.col("completion_ns").is_not_null()
_MS = pl.col("completion_ns") * 1e-6


@metric("requests", "Requests completed", "", ("flow",), digits=0)
def requests(window: Window) -> pl.DataFrame:
    """Requests that were sent in the window and whose response was complete before the end of the run."""
    return _of(window, "requests", _DONE.sum())


@metric("requests_open", "Requests outstanding", "", ("flow",), digits=0)
def requests_open(window: Window) -> pl.DataFrame:
    """Requests that were sent in the window and whose response was not complete at the end of the run."""
    return _of(window, "requests", (~_DONE).sum())


@metric("response_mean", "Response time, mean", "ms", ("flow",), digits=1)
def response_mean(window: Window) -> pl.DataFrame:
    """Mean time from a request to the last byte of its response at the client; of completed requests only."""
    return _of(window, "requests", _MS.mean())


@metric("response_p50", "Response time, median", "ms", ("flow",), digits=1)
def response_p50(window: Window) -> pl.DataFrame:
    """Median time from a request to the last byte of its response at the client; of completed requests only."""
    return _of(window, "requests", _MS.quantile(0.5, "linear"))


@metric("response_p95", "Response time, 95th percentile", "ms", ("flow",), digits=1)
def response_p95(window: Window) -> pl.DataFrame:
    """95th percentile of the time from a request to the last byte of its response; of completed requests only."""
    return _of(window, "requests", _MS.quantile(0.95, "linear"))


@metric("response_p99", "Response time, 99th percentile", "ms", ("flow",), digits=1)
def response_p99(window: Window) -> pl.DataFrame:
    """99th percentile of the time from a request to the last byte of its response; of completed requests only."""
    return _of(window, "requests", _MS.quantile(0.99, "linear"))


@metric("response_max", "Response time, maximum", "ms", ("flow",), digits=1)
def response_max(window: Window) -> pl.DataFrame:
    """Largest time from a request to the last byte of its response at the client; of completed requests only."""
    return _of(window, "requests", _MS.max())


@metric("response_late", "Late responses", "%", ("flow",), digits=1)
def response_late(window: Window) -> pl.DataFrame:
    """Share of the requests whose response took longer than the flow's `bound`, or was not complete by then.

    Requests that were sent less than `bound` before the end of the run and are not complete are left out. Absent
    without a `bound`.
    """
    return _late(window, "requests")


@metric("messages", "Messages completed", "", ("flow",), digits=0)
def messages(window: Window) -> pl.DataFrame:
    """Messages that were sent in the window and were delivered, or answered, before the end of the run."""
    return _of(window, "messages", _DONE.sum())


@metric("messages_open", "Messages outstanding", "", ("flow",), digits=0)
def messages_open(window: Window) -> pl.DataFrame:
    """Messages that were sent in the window and were not delivered, or not answered, at the end of the run."""
    return _of(window, "messages", (~_DONE).sum())


@metric("message_mean", "Message delay, mean", "ms", ("flow",), digits=1)
def message_mean(window: Window) -> pl.DataFrame:
    """Mean time from sending a message to its delivery, or to its answer if it has one; of completed ones only."""
    return _of(window, "messages", _MS.mean())


@metric("message_p50", "Message delay, median", "ms", ("flow",), digits=1)
def message_p50(window: Window) -> pl.DataFrame:
    """Median time from sending a message to its delivery, or to its answer if it has one; of completed ones only."""
    return _of(window, "messages", _MS.quantile(0.5, "linear"))


@metric("message_p95", "Message delay, 95th percentile", "ms", ("flow",), digits=1)
def message_p95(window: Window) -> pl.DataFrame:
    """95th percentile of the time from sending a message to its delivery, or to its answer; of completed ones only."""
    return _of(window, "messages", _MS.quantile(0.95, "linear"))


@metric("message_p99", "Message delay, 99th percentile", "ms", ("flow",), digits=1)
def message_p99(window: Window) -> pl.DataFrame:
    """99th percentile of the time from sending a message to its delivery, or to its answer; of completed ones only."""
    return _of(window, "messages", _MS.quantile(0.99, "linear"))


@metric("message_max", "Message delay, maximum", "ms", ("flow",), digits=1)
def message_max(window: Window) -> pl.DataFrame:
    """Largest time from sending a message to its delivery, or to its answer if it has one; of completed ones only."""
    return _of(window, "messages", _MS.max())


@metric("message_late", "Late messages", "%", ("flow",), digits=1)
def message_late(window: Window) -> pl.DataFrame:
    """Share of the messages whose delay was longer than the flow's `bound`, or that were not complete by then.

    Messages that were sent less than `bound` before the end of the run and are not complete are left out.
    """
    return _late(window, "messages")


@metric("message_gap", "Longest gap between deliveries", "ms", ("flow",), digits=1)
def message_gap(window: Window) -> pl.DataFrame:
    """Longest time in which no message was delivered, or no answer came back.

    From one delivery to the next that is in the window; also from the last delivery to the end of the run if messages
    that were sent in the window were outstanding then.
    """
    rows = _rows(window, "messages").with_columns(at=pl.col("t_ns") + pl.col("completion_ns")).sort(*FLOW, "at")
    began = pl.col("t_ns").is_between("t0", "t1", closed="left")
    until_end = pl.when((~_DONE & began).any()).then(pl.col("end_ns").first() - pl.col("at").max())
    inside = pl.col("at").is_between("t0", "t1", closed="left")
    gap = pl.col("at").diff().filter(inside).max()
    found = rows.group_by(FLOW, maintain_order=True).agg(value=pl.max_horizontal(gap, until_end) * 1e-6)
    return found.drop_nulls("value")


def _of(window: Window, kind: Kind, value: pl.Expr) -> pl.DataFrame:
    """A value per flow, over what was sent in its window."""
    return _sent(window, kind).group_by(FLOW, maintain_order=True).agg(value=value)


def _late(window: Window, kind: Kind) -> pl.DataFrame:
    known = _sent(window, kind).drop_nulls("bound_ns")
    waited = pl.col("completion_ns").fill_null(pl.col("end_ns") - pl.col("t_ns"))
    is_late = waited > pl.col("bound_ns")
    decided = known.filter(_DONE | is_late)
    return decided.group_by(FLOW, maintain_order=True).agg(value=100 * is_late.mean())


def _sent(window: Window, kind: Kind) -> pl.DataFrame:
    return _rows(window, kind).filter(pl.col("t_ns").is_between("t0", "t1", closed="left"))


def _rows(window: Window, kind: Kind) -> pl.DataFrame:
    """The requests, or the messages, of all runs, with the windows and the bounds of their flows."""
    flows = [
        (run, flow.name, flow.bound_ns, topology.duration_ns)
        for run, topology in window.topologies.items()
        for flow in topology.flows
        if flow.kind == kind
    ]
    schema = {"run": pl.UInt32, "flow": pl.String, "bound_ns": pl.Int64, "end_ns": pl.Int64}
    kinds = pl.DataFrame(flows, schema=schema, orient="row")
    if kinds.is_empty():
        return _nothing(kinds)
    columns = [pl.col(name).cast(pl.Int64) for name in ("request", "t_ns", "completion_ns")]
    rows = window.trace.scan("request", window.run_ids).select("run", pl.col("flow").cast(pl.String), *columns)
    spans = kinds.join(window.flows.select(*FLOW, "t0", "t1"), on=FLOW, maintain_order="left")
    return rows.collect().join(spans, on=FLOW, maintain_order="left")


def _nothing(kinds: pl.DataFrame) -> pl.DataFrame:
    names = ("request", "t_ns", "completion_ns", "t0", "t1")
    return kinds.with_columns(pl.lit(None, pl.Int64).alias(name) for name in names)
