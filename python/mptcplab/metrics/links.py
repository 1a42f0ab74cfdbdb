"""Utilisation, loss and queueing delay of links."""

from __future__ import annotations

import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import LINK, Window, ratio, weighted_mean, with_valid

# A link with this utilisation is a bottleneck even if it drops nothing.
_FULL_PERCENT = 90
_ARRIVED = pl.col("arrived_pkts")
_RANDOM = pl.col("dropped_random_pkts")
_QUEUE = pl.col("dropped_queue_pkts")


@metric("utilisation", "Utilisation", "%", ("link",), digits=1)
def utilisation(window: Window) -> pl.DataFrame:
    """Bytes that left the link times 8, over its rate (the mean if it changes) times the window.

    The rate of a delivery trace is the mean of the whole trace while the link is up, so that more than 100 % is
    possible where the window has more than its share of the trace's opportunities.
    """
    offered = pl.col("rate_bps") * pl.col("seconds")
    return window.link_delta.select(*LINK, value=100 * ratio(8 * pl.col("departed_bytes"), offered))


@metric("loss", "Packet loss", "%", ("link",), digits=3)
def loss(window: Window) -> pl.DataFrame:
    """Random losses and queue drops over packets that arrived at the link."""
    return window.link_delta.select(*LINK, value=100 * ratio(_RANDOM + _QUEUE, _ARRIVED))


@metric("loss_random", "Random loss", "%", ("link",), digits=3)
def loss_random(window: Window) -> pl.DataFrame:
    """Random losses, outages included, over packets that arrived at the link."""
    return window.link_delta.select(*LINK, value=100 * ratio(_RANDOM, _ARRIVED))


@metric("loss_queue", "Queue loss", "%", ("link",), digits=3)
def loss_queue(window: Window) -> pl.DataFrame:
    """Drops by a full queue or an AQM over packets that arrived at the link."""
    return window.link_delta.select(*LINK, value=100 * ratio(_QUEUE, _ARRIVED))


@metric("marked", "ECN marks", "%", ("link",), digits=3)
def marked(window: Window) -> pl.DataFrame:
    """ECN marks over packets that arrived at the link."""
    return window.link_delta.select(*LINK, value=100 * ratio(pl.col("marked_pkts"), _ARRIVED))


@metric("queue_delay_mean", "Mean queueing delay", "ms", ("link",), digits=2)
def queue_delay_mean(window: Window) -> pl.DataFrame:
    """Mean over accepted packets of the time from arrival to the start of service."""
    accepted = _ARRIVED - _RANDOM - _QUEUE
    return window.link_delta.select(*LINK, value=ratio(pl.col("queue_delay_sum_ns") * 1e-6, accepted))


@metric("queue_delay_max", "Largest queueing delay", "ms", ("link",), digits=1, needs_samples=True)
def queue_delay_max(window: Window) -> pl.DataFrame:
    """Largest queueing delay of a packet accepted in the window; absent on links that carry only ACKs."""
    # A sample's maximum covers the interval before it, so the one at the window's start does not belong.
    inside = pl.when(pl.col("t_ns") > pl.col("t0")).then("queue_delay_max_ns")
    return window.samples("link").per_entity(value=inside.max() * 1e-6)


@metric("queue_mean", "Mean queue", "packets", ("link",), digits=1, needs_samples=True)
def queue_mean(window: Window) -> pl.DataFrame:
    """Time-weighted mean of the packets waiting, without the one in service; absent on links that carry only ACKs."""
    return window.samples("link").changed(with_valid).per_entity(value=weighted_mean("queue_pkts"))


@metric("cbi", "Balance of congestion", "", ("run",), digits=3)
def cbi(window: Window) -> pl.DataFrame:
    """Smallest packet loss over largest packet loss among the bottlenecks of the run; 1 is perfectly balanced.

    A bottleneck is a link that carries data and that dropped a packet in the window or had a utilisation of at least
    90 %. Null if there are fewer than two of them, or if nothing was lost.
    """
    carrying = [(run, link.name) for run, topology in window.topologies.items() for link in topology.data_links]
    links = pl.DataFrame(carrying, schema={"run": pl.UInt32, "link": pl.String}, orient="row")
    lost = pl.col("value")
    used = utilisation(window).select(*LINK, used="value")
    measured = (
        loss(window).join(links, on=LINK, how="semi", maintain_order="left").join(used, on=LINK, maintain_order="left")
    )
    bottlenecks = measured.filter((lost > 0) | (pl.col("used") >= _FULL_PERCENT))
    several = pl.when(lost.count() > 1).then(ratio(lost.min(), lost.max()))
    return bottlenecks.group_by("run", maintain_order=True).agg(value=several)
