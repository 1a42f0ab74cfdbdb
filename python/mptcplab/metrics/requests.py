"""Requests with their responses, and messages, on connections that last.

Those count that were sent in the window [warm-up end, stop), whenever they completed. The response time of a request is
the time until the last byte of its response is at the client. The delay of a message is the time until its last byte is
delivered, or, where messages are answered, until the last byte of the answer is back.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from mptcplab.metrics.completion import DONE, count, of_every, register, times
from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, Window

Kind = Literal["requests", "messages"]

register(
    (
        count(
            "requests",
            "Requests completed",
            "Requests that were sent in the window and whose response was complete before the end of the run.",
            DONE,
        ),
        count(
            "requests_open",
            "Requests outstanding",
            "Requests that were sent in the window and whose response was not complete at the end of the run.",
            ~DONE,
        ),
        *times(
            "response",
            "Response time",
            "ms",
            "from a request to the last byte of its response at the client; of completed requests only.",
        ),
    ),
    lambda window, value: _of(window, "requests", value),
)


@metric("response_late", "Late responses", "%", ("flow",), digits=1)
def response_late(window: Window) -> pl.DataFrame:
    """Share of the requests whose response took longer than the flow's `bound`, or was not complete by then.

    Requests that were sent less than `bound` before the end of the run and are not complete are left out. Absent
    without a `bound`.
    """
    return _late(window, "requests")


register(
    (
        count(
            "messages",
            "Messages completed",
            "Messages that were sent in the window and were delivered, or answered, before the end of the run.",
            DONE,
        ),
        count(
            "messages_open",
            "Messages outstanding",
            "Messages that were sent in the window and were not delivered, or not answered, at the end of the run.",
            ~DONE,
        ),
        *times(
            "message",
            "Message delay",
            "ms",
            "from sending a message to its delivery, or its answer if it has one; of completed ones only.",
        ),
    ),
    lambda window, value: _of(window, "messages", value),
)


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
    until_end = pl.when((~DONE & began).any()).then(pl.col("end_ns").first() - pl.col("at").max())
    inside = pl.col("at").is_between("t0", "t1", closed="left")
    gap = pl.col("at").diff().filter(inside).max()
    found = rows.group_by(FLOW, maintain_order=True).agg(value=pl.max_horizontal(gap, until_end) * 1e-6)
    return found.drop_nulls("value")


def _of(window: Window, kind: Kind, value: pl.Expr) -> pl.DataFrame:
    """A value per flow, over what was sent in its window."""
    return of_every(_spans(window, kind), _sent(window, kind), value)


def _late(window: Window, kind: Kind) -> pl.DataFrame:
    known = _sent(window, kind).drop_nulls("bound_ns")
    waited = pl.col("completion_ns").fill_null(pl.col("end_ns") - pl.col("t_ns"))
    is_late = waited > pl.col("bound_ns")
    decided = known.filter(DONE | is_late)
    return decided.group_by(FLOW, maintain_order=True).agg(value=100 * is_late.mean())


def _sent(window: Window, kind: Kind) -> pl.DataFrame:
    return _rows(window, kind).filter(pl.col("t_ns").is_between("t0", "t1", closed="left"))


def _rows(window: Window, kind: Kind) -> pl.DataFrame:
    """The requests, or the messages, of all runs, with the windows and the bounds of their flows."""
    spans = _spans(window, kind)
    if spans.is_empty():
        return _nothing(spans)
    columns = [pl.col(name).cast(pl.Int64) for name in ("request", "t_ns", "completion_ns")]
    rows = window.trace.scan("request", window.run_ids).select("run", pl.col("flow").cast(pl.String), *columns)
    return rows.collect().join(spans, on=FLOW, maintain_order="left")


def _spans(window: Window, kind: Kind) -> pl.DataFrame:
    """run, flow, bound_ns, end_ns, t0, t1: the flows with requests, or with messages, that are there in the window."""
    flows = [
        (run, flow.name, flow.bound_ns, topology.duration_ns)
        for run, topology in window.topologies.items()
        for flow in topology.flows
        if flow.kind == kind
    ]
    schema = {"run": pl.UInt32, "flow": pl.String, "bound_ns": pl.Int64, "end_ns": pl.Int64}
    kinds = pl.DataFrame(flows, schema=schema, orient="row")
    return kinds.join(window.flows.select(*FLOW, "t0", "t1"), on=FLOW, maintain_order="left")


def _nothing(spans: pl.DataFrame) -> pl.DataFrame:
    names = ("request", "t_ns", "completion_ns")
    return spans.with_columns(pl.lit(None, pl.Int64).alias(name) for name in names)
