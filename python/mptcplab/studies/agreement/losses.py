"""Losses in two traces: how many packets per loss event, and how often a full queue hits everybody at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from mptcplab.trace.topology import Topology

Who = tuple[str, str]


def per_event(growth: pl.DataFrame, least: int) -> dict[Who, float]:
    """Packets lost per reaction, (flow, subflow) by (flow, subflow), over all runs; left out below `least` reactions.

    `growth` is `Window.subflow_delta`. A timeout is also a reaction: it marks a whole window lost.
    """
    events = pl.col("loss_events").sum() + pl.col("rto_count").fill_null(0).sum()
    sums = growth.group_by("flow", "subflow").agg(lost=pl.col("lost_pkts").sum(), events=events)
    enough = sums.filter(pl.col("events") >= least)
    return {(flow, subflow): lost / events for flow, subflow, lost, events in enough.iter_rows()}


@dataclass(frozen=True)
class Episodes:
    """Overflows of a queue: how many, and in how many every subflow that crosses it lost something."""

    number: int
    of_all: int


def shared_queues(topology: Topology) -> dict[str, tuple[Who, ...]]:
    """The links that two or more subflows send data over, with these, in file order."""
    users: dict[str, list[Who]] = {link.name: [] for link in topology.data_links}
    for flow in topology.connections:
        for subflow in flow.subflows:
            for link in subflow.path:
                users[link].append((flow.name, subflow.name))
    return {link: tuple(who) for link, who in users.items() if len(who) > 1}


def episodes(
    events: pl.LazyFrame, topology: Topology, shared: Mapping[str, tuple[Who, ...]], full: Collection[str]
) -> dict[str, Episodes]:
    """Episodes of loss at shared links in the window, over all runs of `events`.

    A loss event counts for the only link of its path whose queue overflowed (`full`): where there are several, or the
    path also loses at random, nobody can tell which it was, and such links are left out. Events that follow one another
    within the largest base RTT of the link's subflows are one episode: that long a drop takes to be noticed.
    """
    rows = _loss_events(events, topology.warmup_ns)
    return {
        link: found
        for link, who in shared.items()
        if _only_reason(topology, link, who, full) and (found := _episodes(rows, who, _span_ns(topology, who)))
    }


def _only_reason(topology: Topology, link: str, who: tuple[Who, ...], full: Collection[str]) -> bool:
    paths = [
        subflow.path for flow in topology.connections for subflow in flow.subflows if (flow.name, subflow.name) in who
    ]
    lossy = {name for name, entry in topology.links.items() if entry.loss > 0} | set(full)
    clean = topology.links[link].loss == 0
    return link in full and clean and all(lossy & set(path) == {link} for path in paths)


def _span_ns(topology: Topology, who: tuple[Who, ...]) -> int:
    subflows = ((flow.name, subflow) for flow in topology.connections for subflow in flow.subflows)
    return max((subflow.base_rtt_ns or 0 for flow, subflow in subflows if (flow, subflow.name) in who), default=0)


def _loss_events(events: pl.LazyFrame, warmup_ns: int) -> pl.DataFrame:
    words = [pl.col(key).cast(pl.String) for key in ("kind", "flow", "subflow")]
    named = events.select("run", pl.col("t_ns").cast(pl.Int64), *words)
    chosen = named.filter((pl.col("kind") == "loss_event") & (pl.col("t_ns") >= warmup_ns))
    return chosen.collect().sort("run", "t_ns", "flow", "subflow")


def _episodes(rows: pl.DataFrame, who: tuple[Who, ...], span_ns: int) -> Episodes | None:
    crossing = pl.DataFrame(who, {"flow": pl.String, "subflow": pl.String}, orient="row")
    mine = rows.join(crossing, on=["flow", "subflow"], how="semi", maintain_order="left")
    if mine.is_empty():
        return None
    first = (pl.col("t_ns").diff().fill_null(span_ns + 1) > span_ns) | (pl.col("run") != pl.col("run").shift(1))
    hit = (
        mine.with_columns(episode=first.fill_null(True).cum_sum())
        .group_by("episode")
        .agg(hit=pl.struct("flow", "subflow").n_unique())
    )
    return Episodes(hit.height, hit.filter(pl.col("hit") == len(who)).height)
