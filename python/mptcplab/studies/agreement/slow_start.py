"""The end of slow start, from samples: when a subflow first has a threshold, and whether a loss set it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from mptcplab.trace.topology import Flow, Subflow, Topology


def ends(subflows: pl.LazyFrame) -> pl.DataFrame:
    """run, flow, subflow, t_s, lost, ssthresh_pkts, srtt_s of every subflow's first sample with a threshold, if any.

    `lost` tells whether the sender had reacted to anything until then; within one sampling interval (10 ms by default)
    a loss right after an end without loss counts as its reason. Only the simulator's events tell them apart.
    """
    words = [pl.col(key).cast(pl.String) for key in ("flow", "subflow")]
    reactions = pl.sum_horizontal(pl.col(name).fill_null(0) for name in ("loss_events", "rto_count", "ecn_events"))
    # The kernel engine writes 0 for a socket that is not there yet.
    settled = subflows.filter(pl.col("ssthresh_pkts") > 0).sort("t_ns", maintain_order=True)
    firsts = settled.select(
        "run",
        *words,
        t_s=pl.col("t_ns") / 1e9,
        lost=reactions > 0,
        ssthresh_pkts=pl.col("ssthresh_pkts").cast(pl.Float64),
        srtt_s=pl.col("srtt_us") / 1e6,
    )
    keys = ["run", "flow", "subflow"]
    return firsts.group_by(keys, maintain_order=True).first().sort(keys).collect()


def bdp_pkts(topology: Topology, flow: Flow, subflow: Subflow) -> float | None:
    """Bandwidth-delay product of a path in full packets: its smallest rate times its base RTT, if that is known."""
    if subflow.base_rtt_ns is None:
        return None
    links = [topology.links[name] for name in subflow.path]
    return min(
        link.rate_bps * subflow.base_rtt_ns / 1e9 / 8 / (flow.frame_bytes + link.overhead_bytes) for link in links
    )
