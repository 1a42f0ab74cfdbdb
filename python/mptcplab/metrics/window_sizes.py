"""Congestion windows and round-trip times."""

from __future__ import annotations

import numpy as np
import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, SUBFLOW, Window, both_levels, ratio, total, weighted_mean, with_valid
from mptcplab.trace.samples import Samples

MS_PER_US = 1e-3
# Bins of round-trip times that are compared.
_BIN_NS = 100_000_000
_MIN_BINS = 3
# States in which a subflow carries no data, so that its window and its round-trip time have no meaning.
NOT_ESTABLISHED = ["closed", "handshake"]


def established(samples: Samples) -> Samples:
    """The samples while their subflow was established: when it closes, its last state stands in all that follow."""
    return samples.only(~samples.rows["state"].cast(pl.Categorical).is_in(NOT_ESTABLISHED))


@metric("cwnd_mean", "Mean congestion window", "packets", ("subflow",), digits=1, needs_samples=True)
def cwnd_mean(window: Window) -> pl.DataFrame:
    """Time-weighted mean of the congestion window while the subflow is established."""
    samples = established(window.samples("subflow").changed(with_valid))
    return samples.per_entity(value=weighted_mean("cwnd_pkts"))


@metric("rtt_mean", "Mean RTT", "ms", ("flow", "subflow"), digits=1)
def rtt_mean(window: Window) -> pl.DataFrame:
    """Mean of all raw RTT samples in the window; subflows weigh by their number of samples."""
    return both_levels(window.subflow_delta, MS_PER_US * ratio(total("rtt_sum_us"), total("rtt_count")))


@metric("srtt_mean", "Mean smoothed RTT", "ms", ("flow", "subflow"), digits=1, needs_samples=True)
def srtt_mean(window: Window) -> pl.DataFrame:
    """Time-weighted mean of the sender's smoothed RTT while the subflow is established.

    A flow's is that of its subflows by payload that arrived. Engines are compared by this metric, because all of them
    sample it in the same way.
    """
    samples = established(window.samples("subflow").changed(with_valid))
    known = samples.only(samples.rows["srtt_us"].is_not_null())
    subflows = known.per_entity(value=MS_PER_US * weighted_mean("srtt_us"))
    arrived = window.subflow_delta.select(*SUBFLOW, payload="rx_payload_bytes")
    weighed = subflows.join(arrived, on=SUBFLOW, maintain_order="left").drop_nulls("value")
    mean = ratio((pl.col("value") * pl.col("payload")).sum(), pl.col("payload").sum())
    flows = weighed.group_by(FLOW, maintain_order=True).agg(value=mean)
    return pl.concat([subflows, flows.select(*FLOW, subflow=pl.lit(None, pl.String), value="value")])


def _rtt_quantile(window: Window, quantile: float) -> pl.DataFrame:
    samples = established(window.samples("subflow"))
    value = MS_PER_US * pl.col("rtt_us").cast(pl.Float64).quantile(quantile, "linear")
    per_flow = samples.per_owner(value=value).select(*FLOW, subflow=pl.lit(None, pl.String), value="value")
    return pl.concat([samples.per_entity(value=value), per_flow])


@metric("rtt_p50", "Median RTT", "ms", ("flow", "subflow"), digits=1, needs_samples=True)
def rtt_p50(window: Window) -> pl.DataFrame:
    """Median of the latest RTT sample, taken at every trace sample while the subflow is established."""
    return _rtt_quantile(window, 0.5)


@metric("rtt_p95", "95th percentile of RTT", "ms", ("flow", "subflow"), digits=1, needs_samples=True)
def rtt_p95(window: Window) -> pl.DataFrame:
    """95th percentile of the latest RTT sample, taken at every trace sample while the subflow is established."""
    return _rtt_quantile(window, 0.95)


@metric("rtt_correlation", "Correlation of the subflows' RTTs", "", ("flow",), digits=2, needs_samples=True)
def rtt_correlation(window: Window) -> pl.DataFrame:
    """Pearson correlation of the RTTs of two subflows over the window: near 1 where they share a bottleneck.

    Computed from the smallest RTT sample in each 100 ms in which both have one; for flows with exactly two established
    subflows. Null if one RTT does not change or if there are fewer than three such bins.
    """
    samples = established(window.samples("subflow"))
    known = samples.only(samples.rows["rtt_us"].is_not_null())
    starts, bins = known.bins((pl.col("t_ns") - pl.col("t0")) // _BIN_NS)
    smallest = np.minimum.reduceat(known.rows["rtt_us"].to_numpy(), starts)
    bins = bins.select("entity", "owner", "at", rtt_us=smallest)
    bins = bins.filter(pl.col("entity").n_unique().over("owner") == 2)
    first = bins.filter(pl.col("entity") == pl.col("entity").min().over("owner"))
    other = bins.join(first, on="entity", how="anti", maintain_order="left")
    both = first.join(other, on=("owner", "at"), how="inner", maintain_order="left")
    value = pl.when(pl.len() >= _MIN_BINS).then(pl.corr("rtt_us", "rtt_us_right"))
    return samples.with_rows(both).per_owner(value=value.fill_nan(None))


@metric("hol_bytes", "Head-of-line blocking", "bytes", ("flow",), digits=0, needs_samples=True)
def hol_bytes(window: Window) -> pl.DataFrame:
    """Time-weighted mean of the bytes that wait out of order in the receive buffer."""
    return window.samples("flow").changed(with_valid).per_entity(value=weighted_mean("ooo_bytes"))
