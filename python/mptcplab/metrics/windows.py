"""Congestion windows and round-trip times."""

from __future__ import annotations

import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, SUBFLOW, Window, both_levels, ratio, total, weighted_mean

MS_PER_US = 1e-3
# States in which a subflow carries no data: its window means nothing.
_SILENT = ["closed", "handshake"]


@metric("cwnd_mean", "Mean congestion window", "packets", ("subflow",), digits=1, needs_samples=True)
def cwnd_mean(window: Window) -> pl.DataFrame:
    """Time-weighted mean of the congestion window while the subflow is established."""
    samples = window.samples("subflow")
    silent = pl.col("state").cast(pl.Categorical).is_in(_SILENT)
    return samples.with_rows(samples.rows.filter(~silent)).per_entity(value=weighted_mean("cwnd_pkts"))


@metric("rtt_mean", "Mean RTT", "ms", ("flow", "subflow"), digits=1)
def rtt_mean(window: Window) -> pl.DataFrame:
    """Mean of all raw RTT samples in the window; subflows weigh by their number of samples."""
    return both_levels(window.subflow_delta, MS_PER_US * ratio(total("rtt_sum_us"), total("rtt_count")))


@metric("srtt_mean", "Mean smoothed RTT", "ms", ("flow", "subflow"), digits=1, needs_samples=True)
def srtt_mean(window: Window) -> pl.DataFrame:
    """Time-weighted mean of the sender's smoothed RTT; a flow's is that of its subflows by payload that arrived.

    What the engines are compared by: both sample it, however an engine counts single RTT samples.
    """
    samples = window.samples("subflow")
    known = samples.with_rows(samples.rows.drop_nulls("srtt_us"))
    subflows = known.per_entity(value=MS_PER_US * weighted_mean("srtt_us"))
    arrived = window.subflow_delta.select(*SUBFLOW, payload="rx_payload_bytes")
    weighed = subflows.join(arrived, on=SUBFLOW, maintain_order="left").drop_nulls("value")
    mean = ratio((pl.col("value") * pl.col("payload")).sum(), pl.col("payload").sum())
    flows = weighed.group_by(FLOW, maintain_order=True).agg(value=mean)
    return pl.concat([subflows, flows.select(*FLOW, subflow=pl.lit(None, pl.String), value="value")])


def _rtt_quantile(window: Window, quantile: float) -> pl.DataFrame:
    samples = window.samples("subflow")
    value = MS_PER_US * pl.col("rtt_us").cast(pl.Float64).quantile(quantile, "linear")
    per_flow = samples.per_owner(value=value).select(*FLOW, subflow=pl.lit(None, pl.String), value="value")
    return pl.concat([samples.per_entity(value=value), per_flow])


@metric("rtt_p50", "Median RTT", "ms", ("flow", "subflow"), digits=1, needs_samples=True)
def rtt_p50(window: Window) -> pl.DataFrame:
    """Median of the latest RTT sample, seen at every trace sample."""
    return _rtt_quantile(window, 0.5)


@metric("rtt_p95", "95th percentile of RTT", "ms", ("flow", "subflow"), digits=1, needs_samples=True)
def rtt_p95(window: Window) -> pl.DataFrame:
    """95th percentile of the latest RTT sample, seen at every trace sample."""
    return _rtt_quantile(window, 0.95)


@metric("hol_bytes", "Head-of-line blocking", "bytes", ("flow",), digits=0, needs_samples=True)
def hol_bytes(window: Window) -> pl.DataFrame:
    """Time-weighted mean of the bytes that wait out of order in the receive buffer."""
    return window.samples("flow").per_entity(value=weighted_mean("ooo_bytes"))
