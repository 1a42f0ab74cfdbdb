"""Losses, retransmissions, timeouts, and what the connection level had to repair."""

from __future__ import annotations

import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, Window, both_levels, ratio, total

_LEVELS = ("flow", "subflow")


@metric("retx", "Retransmissions", "packets", _LEVELS, digits=1)
def retx(window: Window) -> pl.DataFrame:
    """Data segments sent again by TCP on their own subflow. MPTCP reinjections are counted apart (`reinjected`)."""
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
    return both_levels(window.subflow_delta, total("rto_wait_ns") / 1e9)


@metric("undo", "Spurious reductions undone", "", _LEVELS, digits=1)
def undo(window: Window) -> pl.DataFrame:
    """Reductions that were undone because the loss turned out to be none."""
    return both_levels(window.subflow_delta, total("undo_count"))


@metric("reinjected", "Reinjections", "packets", ("flow",), digits=1)
def reinjected(window: Window) -> pl.DataFrame:
    """Segments sent again on another subflow than their first."""
    return _multipath(window, pl.col("reinjected_pkts"))


@metric("duplicates", "Duplicates at connection level", "packets", ("flow",), digits=1)
def duplicates(window: Window) -> pl.DataFrame:
    """Segments that arrived although the connection already had their data."""
    return _multipath(window, pl.col("duplicate_pkts"))


@metric("blk_time", "Receive-buffer blocking", "s", ("flow",), digits=3)
def blk_time(window: Window) -> pl.DataFrame:
    """Time in which data and congestion window were there but the receive window forbade to send."""
    return _multipath(window, pl.col("blocked_ns") / 1e9)


def _multipath(window: Window, value: pl.Expr) -> pl.DataFrame:
    return window.flow_delta.filter(pl.col("transport") != "udp").select(*FLOW, value=value)
