"""Short transfers and video: completion times, bitrates and stalls.

Of a flow of many transfers, those count that began in the window [warm-up end, stop), whenever they completed; of a
video, the chunks that completed in it. The time of a single file is `ftt`.
"""

from __future__ import annotations

import polars as pl

from mptcplab.metrics.completion import DONE, count, of_every, register, times
from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, Window

register(
    (
        count(
            "transfers",
            "Transfers completed",
            "Transfers that began in the window and completed before the end of the run.",
            DONE,
        ),
        count(
            "transfers_open",
            "Transfers not completed",
            "Transfers that began in the window and had not completed at the end of the run.",
            ~DONE,
        ),
        *times(
            "transfer",
            "Transfer time",
            "s",
            "from a transfer's SYN to its last byte, delivered in order; of completed transfers only.",
            maximum=False,
        ),
    ),
    lambda window, value: _of_transfers(window, value),
)


@metric("media_rate", "Video bitrate", "Mbit/s", ("flow",))
def media_rate(window: Window) -> pl.DataFrame:
    """Mean encoding rate of the chunks that completed in the window."""
    return _of_chunks(window, pl.col("media_bps").mean() * 1e-6)


@metric("switches", "Changes of the bitrate", "", ("flow",), digits=1)
def switches(window: Window) -> pl.DataFrame:
    """Number of chunks that completed in the window with another rate than the chunk before."""
    return _of_chunks(window, pl.col("changed").sum())


@metric("stalls", "Stalls", "", ("flow",), digits=1)
def stalls(window: Window) -> pl.DataFrame:
    """Number of times that the video stalled until a chunk arrived; a stall at the end of the run is not counted."""
    return _of_chunks(window, (pl.col("stall_ns") > 0).sum())


@metric("stall_time", "Stall time", "s", ("flow",))
def stall_time(window: Window) -> pl.DataFrame:
    """Time for which the video stalled, after it had begun, before chunks that arrived in the window."""
    return _of_chunks(window, pl.col("stall_ns").sum() * 1e-9)


@metric("startup_delay", "Start-up delay", "s", ("flow",), digits=3)
def startup_delay(window: Window) -> pl.DataFrame:
    """Time from the flow's start to its first complete chunk, when the video begins, possibly before the window."""
    started = window.flow_events.filter(kind="flow_started").select(*FLOW, begun="t_ns")
    first = _rows(window).filter(DONE, pl.col("media_bps").is_not_null(), transfer=0)
    timed = first.join(started, on=FLOW, maintain_order="left")
    return timed.select(*FLOW, value=(pl.col("t_ns") + pl.col("completion_ns") - pl.col("begun")) * 1e-9)


def _of_transfers(window: Window, value: pl.Expr) -> pl.DataFrame:
    """A value per flow of many transfers."""
    flows = _flows(window, "transfers")
    begun = _rows(window).join(flows, on=FLOW, how="semi").filter(pl.col("t_ns").is_between("t0", "t1", closed="left"))
    return of_every(flows, begun, value)


def _of_chunks(window: Window, value: pl.Expr) -> pl.DataFrame:
    """A value per video."""
    chunks = _rows(window).filter(DONE, pl.col("media_bps").is_not_null())
    # The chunk before may have arrived before the window.
    before = pl.col("media_bps").shift(1).over(FLOW, order_by="transfer")
    chunks = chunks.with_columns(changed=pl.col("media_bps").ne(before).fill_null(False))
    at = pl.col("t_ns") + pl.col("completion_ns")
    return of_every(_flows(window, "video"), chunks.filter(at.is_between("t0", "t1", closed="left")), value)


def _flows(window: Window, kind: str) -> pl.DataFrame:
    """run, flow: the flows of a kind that are there in the window."""
    names = [
        (run, flow.name) for run, topology in window.topologies.items() for flow in topology.flows if flow.kind == kind
    ]
    found = pl.DataFrame(names, schema={"run": pl.UInt32, "flow": pl.String}, orient="row")
    return found.join(window.flows, on=FLOW, how="semi", maintain_order="left")


def _rows(window: Window) -> pl.DataFrame:
    """The transfers of all runs with the windows of their flows."""
    columns = [_whole(name) for name in ("transfer", "t_ns", "completion_ns", "stall_ns", "media_bps")]
    rows = window.trace.scan("transfer", window.run_ids).select("run", pl.col("flow").cast(pl.String), *columns)
    return rows.collect().join(window.flows.select(*FLOW, "t0", "t1"), on=FLOW, maintain_order="left")


def _whole(name: str) -> pl.Expr:
    """Signed, so that differences may be below 0."""
    return pl.col(name).cast(pl.Int64)
