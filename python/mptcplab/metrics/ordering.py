"""Reordering at the receiver: segments that overtook other data of their connection, and how long they waited."""

from __future__ import annotations

import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, Window, per_connection, ratio, total

_WAITED = pl.col("ooo_pkts")


@metric("ooo_delay", "Out-of-order delay", "ms", ("flow",), digits=1)
def ooo_delay(window: Window) -> pl.DataFrame:
    """Mean time from arrival to delivery of the segments that overtook others of their connection.

    A segment counts when it is delivered; null if there was none. On one path, only loss and reordering links cause
    them; on several paths, also different delays.
    """
    return per_connection(window, ratio(pl.col("ooo_delay_sum_ns") * 1e-6, _WAITED))


@metric("ooo_delay_max", "Largest out-of-order delay", "ms", ("flow",), digits=1, needs_samples=True)
def ooo_delay_max(window: Window) -> pl.DataFrame:
    """Longest time that a segment delivered in the window had waited for those it overtook; null if none had."""
    return _largest(window, pl.col("ooo_delay_max_ns") * 1e-6)


@metric("ooo_share", "Out-of-order segments", "%", ("flow",), digits=2)
def ooo_share(window: Window) -> pl.DataFrame:
    """Segments that overtook others of their connection, over data packets that arrived."""
    arrived = window.subflow_delta.group_by(FLOW, maintain_order=True).agg(arrived=total("rx_pkts"))
    joined = window.flow_delta.join(arrived, on=FLOW, maintain_order="left")
    return joined.filter(pl.col("transport") != "udp").select(*FLOW, value=100 * ratio(_WAITED, pl.col("arrived")))


@metric("reorder_depth", "Reordering depth", "packets", ("flow",), digits=1)
def reorder_depth(window: Window) -> pl.DataFrame:
    """Mean number of segments that waited when one that overtook others arrived, itself included.

    This is the occupancy of the reordering buffer (RFC 5236, section 4) as arriving segments see it; null if there were
    none.
    """
    return per_connection(window, ratio(pl.col("reorder_depth_sum_pkts"), _WAITED))


@metric("reorder_depth_max", "Largest reordering depth", "packets", ("flow",), digits=0, needs_samples=True)
def reorder_depth_max(window: Window) -> pl.DataFrame:
    """Most segments that waited when a segment delivered in the window had arrived; null if none waited."""
    return _largest(window, pl.col("reorder_depth_max_pkts"))


def _largest(window: Window, value: pl.Expr) -> pl.DataFrame:
    # A sample's maximum covers the interval before it, so the one at the window's start does not belong.
    largest = pl.when(pl.col("t_ns") > pl.col("t0")).then(value).max()
    return window.samples("flow").per_entity(value=pl.when(largest > 0).then(largest))
