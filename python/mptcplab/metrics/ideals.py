"""The ideal allocations of a scenario, computed from its topology: max-min by connection and by subflow, proportional.

A definition of fairness (`Fairness`) is a function of capacities and paths. The periods in which flows and subflows are
there, the load of UDP and the mean rates of links that change are common to all. Rates are raw link rates (with full
MPTCP frames on Ethernet, at most 0.943 of them is goodput).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from mptcplab.metrics.allocation import Key, Paths, max_min, split
from mptcplab.metrics.presence import Period, periods
from mptcplab.metrics.proportional import proportional_fair
from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import Window
from mptcplab.trace.topology import Flow, Topology

MEGA = 1e6

# Fair rates of users, given the capacities of links and the paths of connections.
Fairness = Callable[[Mapping[str, float], Mapping[str, Paths]], dict[Key, float]]


def fair_shares(topology: Topology, fairness: Fairness[Key]) -> dict[Key, float]:
    """Fair rate (bit/s) of every user (TCP or MPTCP connection, or subflow), averaged over its own window.

    Where flows or subflows start or stop inside the run's window, the allocation is computed for each period and
    averaged. In a period links count with their mean rate; UDP streams do not react, so their mean load is subtracted
    first. Empty if the shares are unknown: beside flows that do not use all the capacity they can get, on links of
    unknown rate, and where there are too many periods.
    """
    if not topology.is_greedy:
        return {}
    gained: dict[Key, float] = defaultdict(float)
    lasted: dict[Key, int] = defaultdict(int)
    for period in periods(topology, topology.flows):
        rates = _in_period(period, fairness)
        if rates is None:
            return {}
        for user, rate in rates.items():
            gained[user] += rate * period.lasts_ns
            lasted[user] += period.lasts_ns
    return {user: gained[user] / lasted[user] for user in gained}


def subflow_shares(topology: Topology) -> dict[tuple[str, int], float]:
    """Max-min fair rate (bit/s) of every subflow as a flow of its own, by flow and position; see `fair_shares`."""
    return fair_shares(topology, lambda capacities, connections: max_min(capacities, split(connections)))


def _in_period(period: Period, fairness: Fairness[Key]) -> dict[Key, float] | None:
    """Fair rates in a period; None where the rate of a link that is used is unknown."""
    there = [flow for flow in period.topology.flows if flow.name in period.sends]
    room = {name: period.rate_bps(name) for name in period.topology.links}
    for flow in there:
        if flow.transport == "udp":
            for link in flow.paths[0]:
                rate = room[link]
                room[link] = None if rate is None else max(0.0, rate - flow.udp_load_bps)
    connections = {flow.name: _paths(period, flow) for flow in there if flow.transport != "udp"}
    used = {link for paths in connections.values() for path in paths for link in path}
    if any(room.get(link, 0.0) is None for link in used):
        return None
    return fairness({link: room.get(link) or 0.0 for link in used}, connections)


def _paths(period: Period, flow: Flow) -> Paths:
    """The paths of a connection; in place of one on which it may not send, a link of its own without capacity."""
    return tuple(
        subflow.path if sends else (f"closed: {flow.name} {subflow.name}",)
        for subflow, sends in zip(flow.subflows, period.sends[flow.name], strict=True)
    )


def path_rates(topology: Topology, flow: Flow, *, fair: bool) -> list[float]:
    """B_x of the aggregate benefit: the rate that each path offers, in bit/s of payload, averaged over the window.

    The smallest rate along the path, divided among the flow's own subflows on that link; in the fair variant the link
    is first divided among the connections that use it. A path offers nothing while its subflow may not send. Empty if
    the rates are unknown.
    """
    return rates_of_paths(flow, periods(topology, topology.connections if fair else (flow,)), fair=fair)


def rates_of_paths(flow: Flow, during: Sequence[Period], *, fair: bool) -> list[float]:
    """The same from the periods of a scenario, which many flows share."""
    there = [period for period in during if flow.name in period.sends]
    if fair and there and not there[0].topology.is_greedy:
        return []
    offers = [_offers(flow, period, fair=fair) for period in there]
    known = [offer for offer in offers if offer is not None]
    if len(known) < len(there):
        return []
    lasted = [period.lasts_ns for period in there]
    return [_mean_over_time(list(zip(lasted, path, strict=True))) for path in zip(*known, strict=True)]


def _offers(flow: Flow, period: Period, *, fair: bool) -> list[float] | None:
    """What the paths of a connection offer in a period; None where a rate is unknown."""
    own = Counter(link for path in period.open_paths(flow) for link in set(path))
    offers = []
    for path, sends in zip(flow.paths, period.sends[flow.name], strict=True):
        offer = [0.0] if not sends else []
        for name in path:
            rate = period.rate_bps(name)
            if rate is None:
                return None
            if sends:
                frame = flow.frame_bytes + period.topology.links[name].overhead_bytes
                sharers = period.users[name] if fair else 1
                offer.append(rate / sharers / own[name] * flow.mss_bytes / frame)
        offers.append(min(offer))
    return offers


def equal_shares(topology: Topology) -> dict[tuple[str, str], float | None]:
    """Rate per connection (bit/s) of every link, by the connection's name and the link's; None if it is unknown.

    Averaged over the connection's window, and 0 while it may not send over the link. Links over which it never may are
    left out. Empty beside flows that do not use all the capacity they can get.
    """
    if not topology.is_greedy:
        return {}
    during = periods(topology, topology.connections)
    shares: dict[tuple[str, str], float | None] = {}
    for flow in topology.connections:
        there = [period for period in during if flow.name in period.sends]
        for link in dict.fromkeys(name for path in flow.paths for name in path):
            used = [any(link in path for path in period.open_paths(flow)) for period in there]
            rates = [period.rate_bps(link) for period in there]
            if any(used):
                parts = [
                    (period.lasts_ns, rate / period.users[link] if uses else 0.0)
                    for period, rate, uses in zip(there, rates, used, strict=True)
                    if rate is not None
                ]
                shares[flow.name, link] = _mean_over_time(parts) if len(parts) == len(there) else None
    return shares


def _mean_over_time(parts: Sequence[tuple[int, float]]) -> float:
    """Mean of values that last for some time each; exactly the value if it is always the same."""
    values = {value for _, value in parts}
    if len(values) <= 1:
        return next(iter(values), 0.0)
    return sum(lasted * value for lasted, value in parts) / sum(lasted for lasted, _ in parts)


@metric("ideal", "Fair share (connection max-min)", "Mbit/s", ("flow",))
def ideal(window: Window) -> pl.DataFrame:
    """Max-min fair rate of the connection over the scenario's links, with multipath connections free to split.

    In raw link rate, including headers. Links that change count with their mean rate, delivery traces with that of the
    whole trace while the link is up. UDP load is subtracted first, and if flows or subflows start or stop, the
    allocations of the periods are averaged over the connection's own window. A subflow counts while it may send:
    between its start and its stop, and a backup only while no regular subflow of its connection is there with a path
    that lets something through. Absent beside on/off connections, flows of many transfers, video, requests and
    messages, whose load is not known beforehand, where the rate of a link is not known, and where thousands of flows
    come and go inside the window at times of their own (more than 2,000,000 periods times flows).
    """
    return _per_run(window, "max-min", _of_connections(max_min))


@metric("ideal_subflow", "Fair share (subflow max-min)", "Mbit/s", ("flow", "subflow"))
def ideal_subflow(window: Window) -> pl.DataFrame:
    """Max-min fair rate with every subflow a flow of its own; a connection's is the sum of its subflows'.

    This is the share of a connection if fairness is among subflows: on a link shared with one TCP, two subflows get
    twice as much as the TCP. Otherwise like `ideal`.
    """
    return _per_run(window, "max-min of subflows", _of_subflows)


@metric("ideal_propfair", "Fair share (proportional)", "Mbit/s", ("flow",))
def ideal_propfair(window: Window) -> pl.DataFrame:
    """Proportionally fair rate of the connection: the sum of the logarithms of all connections' rates is largest.

    A connection that takes much from others for little gain gets less than with max-min. Otherwise like `ideal`.
    """
    return _per_run(window, "proportional", _of_connections(proportional_fair))


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


def _per_run(window: Window, name: str, shares: Callable[[Topology], Shares]) -> pl.DataFrame:
    """The shares in all runs of a window, by the definition with this name: several metrics compare with them."""
    if name not in window.shares:
        window.shares[name] = _computed(window, shares)
    return window.shares[name]


def _computed(window: Window, shares: Callable[[Topology], Shares]) -> pl.DataFrame:
    rows = []
    known: dict[object, Shares] = {}
    for run, topology in window.lived.items():
        # Runs that differ only in algorithm, repetition or seed have the same fair shares.
        key = (
            tuple(topology.links.values()),
            tuple(
                (f.name, f.transport, f.subflows, f.start_ns, f.stop_ns, f.udp_load_bps, f.kind) for f in topology.flows
            ),
            topology.warmup_ns,
            topology.duration_ns,
        )
        if key not in known:
            known[key] = shares(topology)
        rows += [(run, *row) for row in known[key]]
    schema = {"run": pl.UInt32, "flow": pl.String, "subflow": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
