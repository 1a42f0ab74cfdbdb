"""The ideal allocations of a scenario, computed from its topology: max-min by connection and by subflow, proportional.

A definition of fairness (`Fairness`) is a function of capacities and paths. The lifetimes of flows, the load of UDP and
the mean rates of links that change are common to all. Rates are raw link rates (with full MPTCP frames on Ethernet, at
most 0.943 of them is goodput).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import pairwise

import polars as pl

from mptcplab.metrics.allocation import Key, Paths, max_min, split
from mptcplab.metrics.proportional import proportional_fair
from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import Window
from mptcplab.trace.topology import Flow, Topology

MEGA = 1e6

# Fair rates of users, given the capacities of links and the paths of connections.
Fairness = Callable[[Mapping[str, float], Mapping[str, Paths]], dict[Key, float]]


def fair_shares(topology: Topology, fairness: Fairness[Key]) -> dict[Key, float]:
    """Fair rate (bit/s) of every user (TCP or MPTCP connection, or subflow), averaged over its own window.

    Links count with their mean rate over the run's window; UDP streams do not react, so their mean load is subtracted
    first. Where flows start or stop inside the window the allocation is computed for each period and averaged. Empty
    if the shares are unknown: beside flows that do not use all the capacity they can get, and on links of unknown rate.
    """
    if not all(flow.is_greedy for flow in topology.flows):
        return {}
    edges = sorted({t for flow in topology.flows for t in _lifetime(topology, flow)})
    gained: dict[Key, float] = defaultdict(float)
    lasted: dict[Key, int] = defaultdict(int)
    for begin, end in pairwise(edges):
        alive = {
            flow.name
            for flow in topology.flows
            if _lifetime(topology, flow)[0] <= begin and end <= _lifetime(topology, flow)[1]
        }
        rates = _period(topology, alive, fairness)
        if rates is None:
            return {}
        for user, rate in rates.items():
            gained[user] += rate * (end - begin)
            lasted[user] += end - begin
    return {user: gained[user] / lasted[user] for user in gained}


def subflow_shares(topology: Topology) -> dict[tuple[str, int], float]:
    """Max-min fair rate (bit/s) of every subflow as a flow of its own, by flow and position; see `fair_shares`."""
    return fair_shares(topology, lambda capacities, connections: max_min(capacities, split(connections)))


def _lifetime(topology: Topology, flow: Flow) -> tuple[int, int]:
    """Begin and end of the flow within the run's window."""
    end = topology.duration_ns if flow.stop_ns is None else min(flow.stop_ns, topology.duration_ns)
    return max(flow.start_ns, topology.warmup_ns), max(end, topology.warmup_ns)


def _period(topology: Topology, alive: set[str], fairness: Fairness[Key]) -> dict[Key, float] | None:
    """Fair rates while these flows are there; None where the rate of a link they use is unknown."""
    room = {name: link.mean_rate_bps(topology.warmup_ns, topology.duration_ns) for name, link in topology.links.items()}
    for flow in topology.flows:
        if flow.transport == "udp" and flow.name in alive:
            for link in flow.paths[0]:
                rate = room[link]
                room[link] = None if rate is None else max(0.0, rate - flow.udp_load_bps)
    connections = {flow.name: flow.paths for flow in topology.connections if flow.name in alive}
    used = {link for paths in connections.values() for path in paths for link in path}
    if any(room[link] is None for link in used):
        return None
    return fairness({link: room[link] or 0.0 for link in used}, connections)


def path_rates(topology: Topology, flow: Flow, *, fair: bool) -> list[float]:
    """B_x of the aggregate benefit: the rate that each path offers, in bit/s of payload.

    The smallest rate along the path, divided among the flow's own subflows on that link; in the fair variant the link
    is first divided among the connections that use it.
    """
    offers = []
    if fair and not all(other.is_greedy for other in topology.flows):
        return []
    for path in flow.paths:
        offer = []
        for name in path:
            rate = topology.links[name].mean_rate_bps(topology.warmup_ns, topology.duration_ns)
            if rate is None:
                return []
            own = sum(name in other for other in flow.paths)
            sharers = sum(any(name in p for p in c.paths) for c in topology.connections) if fair else 1
            frame = flow.frame_bytes + topology.links[name].overhead_bytes
            offer.append(rate / sharers / own * flow.mss_bytes / frame)
        offers.append(min(offer))
    return offers


def equal_shares(topology: Topology) -> dict[str, float]:
    """Rate per connection (bit/s) of every link that connections use and whose rate is known.

    Empty beside flows that do not use all the capacity they can get.
    """
    if not all(flow.is_greedy for flow in topology.flows):
        return {}
    sharers = Counter(link for flow in topology.connections for link in {name for p in flow.paths for name in p})
    rates = {link: topology.links[link].mean_rate_bps(topology.warmup_ns, topology.duration_ns) for link in sharers}
    return {link: rate / sharers[link] for link, rate in rates.items() if rate is not None}


@metric("ideal", "Fair share (connection max-min)", "Mbit/s", ("flow",))
def ideal(window: Window) -> pl.DataFrame:
    """Max-min fair rate of the connection over the scenario's links, with multipath connections free to split.

    In raw link rate, including headers. Links that change count with their mean rate, UDP load is subtracted first, and
    if flows start or stop, the allocations of the periods are averaged. Absent beside on/off connections, short
    transfers and video, whose load is not known beforehand.
    """
    return _per_run(window, _of_connections(max_min))


@metric("ideal_subflow", "Fair share (subflow max-min)", "Mbit/s", ("flow", "subflow"))
def ideal_subflow(window: Window) -> pl.DataFrame:
    """Max-min fair rate with every subflow a flow of its own; a connection's is the sum of its subflows'.

    This is the share of a connection if fairness is among subflows: on a link shared with one TCP, two subflows get
    twice as much as the TCP. Otherwise like `ideal`.
    """
    return _per_run(window, _of_subflows)


@metric("ideal_propfair", "Fair share (proportional)", "Mbit/s", ("flow",))
def ideal_propfair(window: Window) -> pl.DataFrame:
    """Proportionally fair rate of the connection: the sum of the logarithms of all connections' rates is largest.

    A connection that takes much from others for little gain gets less than with max-min. Otherwise like `ideal`.
    """
    return _per_run(window, _of_connections(proportional_fair))


# Rows of one run: flow, subflow (None: the whole flow), Mbit/s.
Shares = list[tuple[str, str | None, float]]


def _of_connections(fairness: Fairness[str]) -> Callable[[Topology], Shares]:
    return lambda topology: [(name, None, rate / MEGA) for name, rate in fair_shares(topology, fairness).items()]


def _of_subflows(topology: Topology) -> Shares:
    rates = subflow_shares(topology)
    rows: Shares = []
    for flow in topology.connections:
        parts = [rates[flow.name, index] / MEGA for index in range(len(flow.subflows)) if (flow.name, index) in rates]
        rows += [(flow.name, part.name, rate) for part, rate in zip(flow.subflows, parts, strict=False)]
        rows += [(flow.name, None, sum(parts))] if parts else []
    return rows


def _per_run(window: Window, shares: Callable[[Topology], Shares]) -> pl.DataFrame:
    rows = []
    known: dict[object, Shares] = {}
    for run, topology in window.topologies.items():
        # Runs that differ only in algorithm, repetition or seed have the same fair shares.
        key = (
            tuple(topology.links.values()),
            tuple(
                (f.name, f.transport, f.paths, f.start_ns, f.stop_ns, f.udp_load_bps, f.kind) for f in topology.flows
            ),
            topology.warmup_ns,
            topology.duration_ns,
        )
        if key not in known:
            known[key] = shares(topology)
        rows += [(run, *row) for row in known[key]]
    schema = {"run": pl.UInt32, "flow": pl.String, "subflow": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
