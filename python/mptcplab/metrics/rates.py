"""Rates of packets, of bytes on the wire and of application data."""

from __future__ import annotations

import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, SUBFLOW, Window, both_levels, ratio, total

# A factor, because Polars divides one value, but multiplies several by the reciprocal, which has another last digit.
_MEGA = 1 / 1e6
NS = 1_000_000_000


@metric("goodput", "Goodput", "Mbit/s", ("flow", "subflow"))
def goodput(window: Window) -> pl.DataFrame:
    """Application bytes handed over in order at connection level, times 8, over the flow's window.

    This is what an iperf3 receiver shows. The window is the part of the measured time in which the flow is there: from
    its start until it stops or its file is complete. Absent if it is over before the warm-up ends. Only the connection
    delivers in order; the value of a subflow is its share of the payload that arrived, times the connection's goodput,
    so that the subflows add up to the flow.
    """
    flows = window.flow_delta.select(
        *FLOW, "transport", value=_MEGA * (8 * pl.col("delivered_bytes") / pl.col("seconds"))
    )
    arrived = window.subflow_delta.select(*SUBFLOW, "rx_payload_bytes")
    part = ratio(pl.col("rx_payload_bytes"), pl.col("rx_payload_bytes").sum().over(FLOW))
    # Of nothing, every subflow has nothing.
    subflows = arrived.with_columns(part=part.fill_null(0.0)).join(flows, on=FLOW, maintain_order="left")
    subflows = subflows.select(*SUBFLOW, value=pl.col("part") * pl.col("value"))
    return pl.concat([subflows, flows.select(*FLOW, subflow=pl.lit(None, pl.String), value="value")])


@metric("throughput", "Throughput on the wire", "Mbit/s", ("flow", "subflow"))
def throughput(window: Window) -> pl.DataFrame:
    """Frame bytes of data packets that reached the receiving host, times 8, over the flow's window.

    Includes retransmissions, duplicates and layer-2 headers, like `ifstat` at the client.
    """
    value = 8 * total("rx_wire_bytes") / pl.col("seconds").first() * _MEGA
    return both_levels(window.subflow_delta, value)


@metric("pps", "Packet rate", "packets/s", ("flow", "subflow"), digits=1)
def pps(window: Window) -> pl.DataFrame:
    """Data packets that reached the receiving host, over the flow's window."""
    return both_levels(window.subflow_delta, total("rx_pkts") / pl.col("seconds").first())


@metric("share", "Share of the flow", "", ("subflow",), digits=3)
def share(window: Window) -> pl.DataFrame:
    """Throughput of the subflow over the throughput of its flow."""
    wire = pl.col("rx_wire_bytes")
    return window.subflow_delta.select(*SUBFLOW, value=ratio(wire, wire.sum().over(FLOW)))


@metric("pkt_share", "Share of the flow's packets", "", ("subflow",), digits=3)
def pkt_share(window: Window) -> pl.DataFrame:
    """Data packets of the subflow that reached the receiving host, over those of its flow."""
    packets = pl.col("rx_pkts")
    return window.subflow_delta.select(*SUBFLOW, value=ratio(packets, packets.sum().over(FLOW)))


@metric("std_1s", "Variation of throughput", "Mbit/s", ("flow",), needs_samples=True)
def std_1s(window: Window) -> pl.DataFrame:
    """Standard deviation over the one-second throughput values of one run."""
    bins = throughput_bins(window).group_by(*FLOW, "second", maintain_order=True).agg(pl.col("mbps").sum())
    return bins.group_by(FLOW, maintain_order=True).agg(value=pl.col("mbps").std())


def throughput_bins(window: Window) -> pl.DataFrame:
    """Throughput per subflow in whole seconds of the window: run, flow, subflow, second, mbps."""
    samples = window.samples("subflow")
    # The counter at a second's start is the first sample in it; the difference to the next one is what arrived.
    _, starts = samples.bins((pl.col("t_ns") - pl.col("t0")) // NS)
    wire = pl.col("rx_wire_bytes").cast(pl.Float64)
    mbps = 8e3 * wire.diff().shift(-1) / pl.col("t_ns").diff().shift(-1)
    found = samples.with_rows(starts).per_entity(second=pl.col("at"), mbps=mbps)
    return found.explode("second", "mbps").drop_nulls("mbps")


@metric("ftt", "Transfer time", "s", ("flow",), digits=4)
def ftt(window: Window) -> pl.DataFrame:
    """Time from the first SYN to the last application byte delivered in order; only for transfers that finished."""
    when = pl.col("t_ns").cast(pl.Float64)
    opened = when.filter(pl.col("kind") == "flow_started").first()
    done = when.filter(pl.col("kind") == "flow_completed").last()
    times = window.flow_events.filter(pl.col("kind") != "flow_stopped")
    return times.group_by(FLOW, maintain_order=True).agg(value=(done - opened) * 1e-9).drop_nulls("value")


@metric("receiver_rate", "Rate at the receiver", "Mbit/s", ("flow",), needs_samples=True)
def receiver_rate(window: Window) -> pl.DataFrame:
    """All bytes that a connection delivered in order in the whole run, times 8, over the time from start to last byte.

    This is the receiver's line of iperf3. It includes the warm-up and the data that was still in flight when the
    application stopped. The time of the last byte is that of the first sample after it.
    """
    got = pl.col("delivered_bytes").cast(pl.Int64)
    # The first of the rows that have all bytes.
    end = pl.col("t_ns").filter(got == got.max()).min()
    last = window.all_samples("flow").per_entity(all=got.max(), end=end)
    sampled = window.flows.filter("sampled", pl.col("transport") != "udp").select(FLOW)
    timed = sampled.join(last, on=FLOW, maintain_order="left").join(_lifetimes(window), on=FLOW, maintain_order="left")
    return timed.select(*FLOW, value=8e3 * ratio(pl.col("all"), pl.col("end") - pl.col("began")))


@metric("sender_rate", "Rate at the sender", "Mbit/s", ("flow",))
def sender_rate(window: Window) -> pl.DataFrame:
    """Application bytes sent for the first time from a connection's start to its stop, times 8, over that time.

    This is the sender's line of iperf3 without the data in the socket's buffer, which no trace records. It exceeds the
    receiver's rate by the data in flight at the stop. It includes the warm-up.
    """
    connections = window.flows.filter(pl.col("transport") != "udp").select(*FLOW, "slack")
    lives = connections.join(_lifetimes(window), on=FLOW, how="inner", maintain_order="left")
    bounds = lives.select(*FLOW, "slack", "began", "ended", t0=pl.lit(0), t1=_next_sample(window))
    sent = window.growth("flow", ("sent_bytes",), bounds)
    return sent.select(*FLOW, value=8e3 * ratio(pl.col("sent_bytes"), pl.col("ended") - pl.col("began")))


def _next_sample(window: Window) -> pl.Expr:
    """When a sample is due that has all that a flow sent: the first after its end, or that at the end of its run."""
    ends = {run: window.trace.topologies[run].duration_ns for run in window.run_ids}
    end = pl.col("run").replace_strict(list(ends), list(ends.values()), return_dtype=pl.Int64)
    return pl.min_horizontal((pl.col("ended") + pl.col("slack") - 1) // pl.col("slack") * pl.col("slack"), end)


def _lifetimes(window: Window) -> pl.DataFrame:
    rows = [(*key, *life) for key, life in window.lifetimes.items()]
    schema = {"run": pl.UInt32, "flow": pl.String, "began": pl.Int64, "ended": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")
