"""Fairness between flows, and the gain of using several paths."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from mptcplab.metrics.ideals import equal_shares, ideal, rates_of_paths
from mptcplab.metrics.presence import Period, lifetime, periods
from mptcplab.metrics.rates import goodput, throughput
from mptcplab.metrics.registry import Compute, metric
from mptcplab.metrics.window import FLOW, LINK, SUBFLOW, Window, ratio, total

MEGA = 1e6


def _flow_values(compute: Compute, window: Window, name: str) -> pl.DataFrame:
    """A metric's values of the TCP and MPTCP connections."""
    frame = compute(window)
    if "subflow" in frame.columns:
        frame = frame.filter(pl.col("subflow").is_null())
    elastic = window.flows.filter(pl.col("transport") != "udp").select(FLOW)
    return elastic.join(frame.select(*FLOW, pl.col("value").alias(name)), on=FLOW, how="inner", maintain_order="left")


def _over_ideal(window: Window, compute: Compute) -> pl.DataFrame:
    values = _flow_values(compute, window, "got").join(
        _flow_values(ideal, window, "ideal"), on=FLOW, maintain_order="left"
    )
    return values.select(*FLOW, value=ratio(pl.col("got"), pl.col("ideal")))


@metric("ratio", "Goodput over fair share", "", ("flow",))
def ratio_to_ideal(window: Window) -> pl.DataFrame:
    """Goodput over the connection's max-min fair share in raw link rate.

    Both are averages over the connection's own window. With full packets on Ethernet, a connection that gets exactly
    its share on the wire reaches 0.943 (MPTCP) or 0.956 (TCP). More means that it takes more than its share, or that
    data that waited out of order at the end of the warm-up was delivered afterwards; see `ratio_wire`.
    """
    return _over_ideal(window, goodput)


@metric("ratio_wire", "Throughput over fair share", "", ("flow",), digits=3)
def ratio_wire(window: Window) -> pl.DataFrame:
    """Throughput on the wire over the connection's max-min fair share; at most 1 where the share is a limit."""
    return _over_ideal(window, throughput)


def jain_index(value: pl.Expr) -> pl.Expr:
    """Jain's index (sum x)^2 / (n sum x^2) of the values of a group."""
    return ratio(value.sum().pow(2), value.count() * value.pow(2).sum())


@metric("jain", "Jain's index", "", ("run",), digits=3)
def jain(window: Window) -> pl.DataFrame:
    """Jain's fairness index (sum x)^2 / (n sum x^2) over the throughputs of all TCP and MPTCP connections.

    1 when all are equal, 1/n when one has everything; not applicable to a single connection. On/off connections, flows
    of many transfers, video, requests and messages are left out, because they do not use all the capacity they can get.
    """
    greedy = window.flows.filter("greedy").select(FLOW)
    return _jain(_flow_values(throughput, window, "x").join(greedy, on=FLOW, how="semi", maintain_order="left"))


@metric("jain_weighted", "Jain's index, relative to fair shares", "", ("run",), digits=3)
def jain_weighted(window: Window) -> pl.DataFrame:
    """Jain's index over throughput divided by fair share: 1 when every connection has the same part of its share.

    Absent where fair shares are (see `ideal`).
    """
    return _jain(ratio_wire(window).rename({"value": "x"}))


def _jain(values: pl.DataFrame) -> pl.DataFrame:
    complete = values.filter((pl.len().over("run") > 1) & ~pl.col("x").is_null().any().over("run"))
    return complete.group_by("run", maintain_order=True).agg(value=jain_index(pl.col("x")))


@metric("friendliness", "Friendliness", "", ("link",))
def friendliness(window: Window) -> pl.DataFrame:
    """Throughput of a multipath flow on the link over the mean throughput of the TCP flows there.

    The flow's subflows on the link count together; with several multipath flows their mean is taken. RFC 6356 asks for
    1 on a shared bottleneck. A flow counts if it is ever there together with one of the other kind; null if none is,
    because flows that follow one another have nothing to share. Absent on links that only one kind of flow uses; on/off
    connections, flows of many transfers, video, requests and messages are left out.
    """
    times = pl.col("t0").min(), pl.col("t1").max()
    on_link = (
        _on_links(window).group_by(*LINK, "flow", "transport", maintain_order=True).agg(*times, mbps=total("mbps"))
    )
    alone = pl.col("transport") == "tcp"
    shared = on_link.with_columns(alone=alone).filter(alone.any().over(LINK) & (~alone).any().over(LINK))
    kinds = (
        shared.join(_together(shared), on=[*LINK, "alone", "t0", "t1"], how="semi", maintain_order="left")
        .group_by(*LINK, "alone", maintain_order=True)
        .agg(mbps=total("mbps") / pl.len())
    )
    value = ratio(pl.col("mbps").filter(~pl.col("alone")).first(), pl.col("mbps").filter("alone").first())
    found = kinds.group_by(LINK, maintain_order=True).agg(value=value)
    return shared.select(LINK).unique(maintain_order=True).join(found, on=LINK, how="left", maintain_order="left")


def _together(shared: pl.DataFrame) -> pl.DataFrame:
    """The times t0 to t1, by link and kind of flow, in which there is at some time a flow of the other kind."""
    times = shared.select(*LINK, "alone", "t0", "t1").unique(maintain_order=True)
    pairs = times.join(times, on=LINK, maintain_order="left").filter(pl.col("alone") != pl.col("alone_right"))
    return pairs.filter((pl.col("t0") < pl.col("t1_right")) & (pl.col("t0_right") < pl.col("t1")))


@metric("equal_share", "Throughput over equal share", "", ("flow",))
def equal_share(window: Window) -> pl.DataFrame:
    """Throughput on the flow's most loaded link over the link's rate divided by the connections that use it.

    The most loaded link is the one with the lowest rate per connection (if equal, the first on the flow's paths); the
    throughput is that of the flow's subflows on it. A connection counts once, however many subflows it has there. Where
    connections come and go, the rate per connection is averaged over the flow's own window, and is 0 while the flow may
    not send over the link. Absent beside on/off connections, flows of many transfers, video, requests and messages, and
    where a rate is unknown.
    """
    rows = []
    for run, topology in window.lived.items():
        shares = equal_shares(topology)
        for flow in topology.connections:
            links = dict.fromkeys(link for path in flow.paths for link in path)
            used = [link for link in links if (flow.name, link) in shares]
            offers = {link: share for link in used if (share := shares[flow.name, link]) is not None}
            if used and len(offers) == len(used):
                link = min(offers, key=lambda name: offers[name])
                rows.append((run, flow.name, link, offers[link] / MEGA))
    schema = {"run": pl.UInt32, "flow": pl.String, "link": pl.String, "share": pl.Float64}
    loaded = pl.DataFrame(rows, schema=schema, orient="row")
    on_link = _on_links(window).group_by(*LINK, "flow", maintain_order=True).agg(mbps=total("mbps"))
    joined = loaded.join(on_link, on=[*LINK, "flow"], how="inner", maintain_order="left")
    return joined.select(*FLOW, value=ratio(pl.col("mbps"), pl.col("share")))


def _on_links(window: Window) -> pl.DataFrame:
    """Throughput of every greedy TCP or multipath subflow, for each link of its path, and when it was there."""
    rows = []
    for run, topology in window.lived.items():
        for flow in topology.connections:
            begin, end = lifetime(topology, flow)
            for subflow in flow.subflows if flow.is_greedy else ():
                t0 = max(begin, subflow.start_ns or 0)
                t1 = end if subflow.stop_ns is None else min(end, subflow.stop_ns)
                key = (run, flow.name, subflow.name, flow.transport, t0, t1)
                rows += [(*key, link) for link in dict.fromkeys(subflow.path)]
    names = dict.fromkeys(("flow", "subflow", "transport"), pl.String)
    times = dict.fromkeys(("t0", "t1"), pl.Int64)
    crossed = pl.DataFrame(rows, schema={"run": pl.UInt32, **names, **times, "link": pl.String}, orient="row")
    measured = throughput(window).drop_nulls("subflow").rename({"value": "mbps"})
    return crossed.join(measured, on=SUBFLOW, how="inner", maintain_order="left")


@metric("total_goodput", "Total goodput", "Mbit/s", ("run",))
def total_goodput(window: Window) -> pl.DataFrame:
    """Application bytes that all TCP and MPTCP connections delivered, times 8, over the whole window of the run.

    While every connection is there, this is the sum of their goodputs.
    """
    parts = window.flows.select(*FLOW, "part")
    values = _flow_values(goodput, window, "x").join(parts, on=FLOW, how="left", maintain_order="left")
    values = values.with_columns(x=pl.col("x") * pl.col("part"))
    return values.group_by("run", maintain_order=True).agg(
        value=pl.when(pl.col("x").is_null().any()).then(None).otherwise(pl.col("x").sum())
    )


def aggregate_benefit(goodput_bps: float, paths_bps: list[float]) -> float | None:
    """Aggregate benefit (Paasch, Khalili, Bonaventure 2013) of a goodput, given the rate that each path offers.

    >>> aggregate_benefit(15.0, [10.0, 5.0]), aggregate_benefit(10.0, [10.0, 5.0]), aggregate_benefit(5.0, [10.0, 5.0])
    (1.0, 0.0, -0.5)
    """
    best, everything = max(paths_bps, default=0.0), sum(paths_bps)
    if best <= 0 or everything <= best:
        return None
    if goodput_bps >= best:
        return (goodput_bps - best) / (everything - best)
    return (goodput_bps - best) / best


def _benefit(window: Window, *, fair: bool) -> pl.DataFrame:
    rows = []
    of_run: dict[int, list[Period]] = {}
    flows = {
        run: {flow.name: flow for flow in topology.connections if len(flow.subflows) > 1}
        for run, topology in window.lived.items()
    }
    for run, flow, got in _flow_values(goodput, window, "got").iter_rows():
        topology, multipath = window.lived[run], flows[run].get(flow)
        if got is None or multipath is None:
            continue
        if not fair:
            # Nothing of other flows matters.
            during = periods(replace(topology, flows=(multipath,)), [multipath])
        elif run in of_run:
            during = of_run[run]
        else:
            during = of_run[run] = periods(topology, topology.connections)
        rows.append((run, flow, aggregate_benefit(got * MEGA, rates_of_paths(multipath, during, fair=fair))))
    return pl.DataFrame(rows, schema={"run": pl.UInt32, "flow": pl.String, "value": pl.Float64}, orient="row")


@metric("agr_bf", "Aggregate benefit", "", ("flow",))
def agr_bf(window: Window) -> pl.DataFrame:
    """Gain of using several paths (Paasch, Khalili, Bonaventure 2013): 0 is the best path alone, 1 is all paths full.

    With G the goodput and B_x the rate that path x offers: (G - max B) / (sum B - max B) if G >= max B, else
    (G - max B) / max B. B_x is the rate of the path's smallest link, divided equally among the connections that use
    it and then among the flow's own subflows, times the payload's part of a full frame. It is averaged over the flow's
    window, and a path offers nothing while its subflow may not send (see `ideal`). Not applicable to one path.
    """
    return _benefit(window, fair=True)


@metric("agr_bf_capacity", "Aggregate benefit, by capacity", "", ("flow",), digits=3)
def agr_bf_capacity(window: Window) -> pl.DataFrame:
    """Aggregate benefit with B_x from the whole link rates, not divided among the connections that use them."""
    return _benefit(window, fair=False)
