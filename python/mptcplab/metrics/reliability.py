"""Losses, retransmissions, timeouts, and repairs at connection level."""

from __future__ import annotations

import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import SUBFLOW, Window, both_levels, per_connection, ratio, total

# States in which the window is not reduced temporarily.
_AVOIDING = ["open", "disorder"]
_LEVELS = ("flow", "subflow")


@metric("retx", "Retransmissions", "packets", _LEVELS, digits=1)
def retx(window: Window) -> pl.DataFrame:
    """Data segments sent again by TCP on their own subflow. MPTCP reinjections are separate (`reinjected`)."""
    return both_levels(window.subflow_delta, total("retx_pkts"))


@metric("retx_rate", "Retransmission rate", "%", _LEVELS)
def retx_rate(window: Window) -> pl.DataFrame:
    """Retransmissions over data segments sent."""
    return both_levels(window.subflow_delta, 100 * ratio(total("retx_pkts"), total("sent_pkts")))


@metric("plr", "Packets marked lost", "%", _LEVELS, digits=3)
def plr(window: Window) -> pl.DataFrame:
    """Data packets that the sender marked lost over data packets sent."""
    return both_levels(window.subflow_delta, 100 * ratio(total("lost_pkts"), total("sent_pkts")))


@metric("loss_events", "Loss events", "", _LEVELS, digits=1)
def loss_events(window: Window) -> pl.DataFrame:
    """Entries into fast recovery: one reaction per window, however many packets were lost."""
    return both_levels(window.subflow_delta, total("loss_events"))


@metric("decrease_mild", "Mild decreases", "%", _LEVELS, digits=1, needs_samples=True)
def decrease_mild(window: Window) -> pl.DataFrame:
    """Loss events that left more than half of the congestion window and a packet, over loss events that can be judged.

    Reno leaves half. The window before a loss is that of the last sample. An event can be judged if that sample is at
    most one RTT older, so that the window grew by no more than a packet, and was taken in congestion avoidance.
    """
    lost = window.events("loss_event").select("run", "t_ns", "flow", "subflow", left="value")
    samples = window.samples("subflow")
    events = lost.join(samples.entities.select("entity", *SUBFLOW), on=SUBFLOW, how="inner", maintain_order="left")
    before = samples.rows.select("entity", "t_ns", "t1", "state", "cwnd_pkts", "ssthresh_pkts", "rtt_us", at="t_ns")
    judged = events.sort("entity", "t_ns", maintain_order=True).join_asof(
        before, on="t_ns", by="entity", allow_exact_matches=False, check_sortedness=False
    )
    age = pl.col("t_ns") - pl.col("at")
    avoiding = (pl.col("ssthresh_pkts") <= pl.col("cwnd_pkts")) & pl.col("state").cast(pl.String).is_in(_AVOIDING)
    near = (age <= 1000 * pl.col("rtt_us").cast(pl.Int64)) & (pl.col("t_ns") < pl.col("t1"))
    mild = pl.col("left") > pl.col("cwnd_pkts") / 2 + 1
    return both_levels(judged.filter(avoiding & near), 100 * mild.mean())


@metric("ecn_events", "ECN reductions", "", _LEVELS, digits=1)
def ecn_events(window: Window) -> pl.DataFrame:
    """Reductions because of an ECN echo."""
    return both_levels(window.subflow_delta, total("ecn_events"))


@metric("rto_count", "Timeouts", "", _LEVELS, digits=1)
def rto_count(window: Window) -> pl.DataFrame:
    """Retransmission timeouts that led to a retransmission; a tail-loss probe is not one."""
    return both_levels(window.subflow_delta, total("rto_count"))


@metric("rto_time", "Time lost to timeouts", "s", _LEVELS, digits=3)
def rto_time(window: Window) -> pl.DataFrame:
    """Sum over timeouts of the time since the last ACK that advanced on that subflow."""
    return both_levels(window.subflow_delta, total("rto_wait_ns") * 1e-9)


@metric("undo", "Spurious reductions undone", "", _LEVELS, digits=1)
def undo(window: Window) -> pl.DataFrame:
    """Reductions that were undone because nothing had been lost."""
    return both_levels(window.subflow_delta, total("undo_count"))


@metric("reinjected", "Reinjections", "packets", ("flow",), digits=1)
def reinjected(window: Window) -> pl.DataFrame:
    """Segments sent again on a subflow other than their first."""
    return per_connection(window, pl.col("reinjected_pkts"))


@metric("duplicates", "Duplicates at connection level", "packets", ("flow",), digits=1)
def duplicates(window: Window) -> pl.DataFrame:
    """Segments that arrived although the connection already had their data."""
    return per_connection(window, pl.col("duplicate_pkts"))


@metric("blk_time", "Receive-buffer blocking", "s", ("flow",), digits=3)
def blk_time(window: Window) -> pl.DataFrame:
    """Time in which data and congestion window were available but the receive window did not allow sending."""
    return per_connection(window, pl.col("blocked_ns") * 1e-9)
