"""The fair share: connection-level max-min, and what each path has to offer.

Max-min is lexicographic over connections, and a multipath connection may split as it likes: iterated linear
programs, each of which raises the smallest rate as far as it goes and freezes the connections that cannot rise.
Rates are raw link rates (a receiver sees at most 0.943 of them as goodput with full MPTCP frames on Ethernet).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import Window
from mptcplab.topology import Flow, Topology

MEGA = 1e6
# Relative size below which a dual value counts as zero.
_SLACK = 1e-7

Paths = Sequence[tuple[str, ...]]


def max_min(capacities: Mapping[str, float], connections: Mapping[str, Paths]) -> dict[str, float]:
    """Max-min fair rate of every connection, in the unit of the capacities.

    `connections` gives each one the paths (tuples of link names) over which it may split.

    >>> rates = max_min({"a": 10.0, "b": 10.0}, {"mp": [("a",), ("b",)], "tcp": [("a",)]})
    >>> {name: round(rate, 6) for name, rate in rates.items()}
    {'mp': 10.0, 'tcp': 10.0}
    """
    rates: dict[str, float] = {}
    known: dict[tuple[object, ...], list[float]] = {}
    for names in _components(connections):
        links = sorted({link for name in names for path in connections[name] for link in path})
        index = {link: position for position, link in enumerate(links)}
        room = tuple(capacities[link] for link in links)
        shape = tuple(tuple(tuple(index[link] for link in path) for path in connections[name]) for name in names)
        if (room, shape) not in known:
            known[room, shape] = _solve(room, shape)
        rates.update(zip(names, known[room, shape], strict=True))
    return rates


def _components(connections: Mapping[str, Paths]) -> list[list[str]]:
    """Connections grouped by shared links: groups do not influence one another."""
    parent = {name: name for name in connections}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    owner: dict[str, str] = {}
    for name, paths in connections.items():
        for path in paths:
            for link in path:
                parent[root(name)] = root(owner.setdefault(link, name))
    groups: dict[str, list[str]] = {}
    for name in connections:
        groups.setdefault(root(name), []).append(name)
    return list(groups.values())


def _solve(room: tuple[float, ...], shape: tuple[tuple[tuple[int, ...], ...], ...]) -> list[float]:
    """Iterated linear program for one group; `shape` lists the paths (link positions) of every connection."""
    import numpy as np
    from scipy.optimize import linprog

    owners = [who for who, paths in enumerate(shape) for _ in paths]
    paths = [path for paths in shape for path in paths]
    scale = max(room) or 1.0
    usage = np.zeros((len(room), len(paths) + 1))
    for column, path in enumerate(paths):
        for link in path:
            usage[link, column] += 1
    belongs = np.zeros((len(shape), len(paths) + 1))
    belongs[owners, range(len(paths))] = 1
    cost = np.zeros(len(paths) + 1)
    cost[-1] = -1.0
    frozen: dict[int, float] = {}
    while len(frozen) < len(shape):
        free = [who for who in range(len(shape)) if who not in frozen]
        at_least = -belongs[free]
        at_least[:, -1] = 1.0
        solution = linprog(
            cost,
            A_ub=np.vstack([usage, at_least]),
            b_ub=np.concatenate([np.array(room) / scale, np.zeros(len(free))]),
            A_eq=belongs[list(frozen)] if frozen else None,
            b_eq=list(frozen.values()) or None,
        )
        if not solution.success:
            raise ArithmeticError(f"max-min linear program failed: {solution.message}")
        # A positive dual value proves that the connection cannot rise; the duals of a round add up to 1.
        duals = -solution.ineqlin.marginals[len(room) :]
        stuck = [who for who, dual in zip(free, duals, strict=True) if dual > _SLACK]
        frozen |= dict.fromkeys(stuck or free, float(solution.x[-1]))
    return [frozen[who] * scale for who in range(len(shape))]


def fair_shares(topology: Topology) -> dict[str, float]:
    """Max-min fair rate (bit/s) of every TCP and MPTCP connection, averaged over its own window.

    Links count with their mean rate over the run's window; UDP streams do not yield, so their mean load is taken off
    first. Where flows start or stop inside the window the allocation is computed for each period and averaged.
    """
    if not all(flow.is_greedy for flow in topology.flows):
        return {}
    edges = sorted({t for flow in topology.flows for t in _life(topology, flow)})
    gained = {flow.name: 0.0 for flow in topology.connections}
    for begin, end in pairwise(edges):
        alive = {
            flow.name
            for flow in topology.flows
            if _life(topology, flow)[0] <= begin and end <= _life(topology, flow)[1]
        }
        for name, rate in _static_shares(topology, alive).items():
            gained[name] += rate * (end - begin)
    lengths = {flow.name: _measured(topology, flow) for flow in topology.connections}
    return {name: gained[name] / length for name, length in lengths.items() if length > 0}


def _life(topology: Topology, flow: Flow) -> tuple[int, int]:
    """When the flow is there, within the run's window."""
    end = topology.duration_ns if flow.stop_ns is None else min(flow.stop_ns, topology.duration_ns)
    return max(flow.start_ns, topology.warmup_ns), max(end, topology.warmup_ns)


def _measured(topology: Topology, flow: Flow) -> int:
    begin, end = _life(topology, flow)
    return end - begin


def _static_shares(topology: Topology, alive: set[str]) -> dict[str, float]:
    room = {name: link.mean_rate_bps(topology.warmup_ns, topology.duration_ns) for name, link in topology.links.items()}
    for flow in topology.flows:
        if flow.transport == "udp" and flow.name in alive:
            for link in flow.paths[0]:
                rate = room[link]
                room[link] = None if rate is None else max(0.0, rate - flow.udp_load_bps)
    connections = {flow.name: flow.paths for flow in topology.connections if flow.name in alive}
    used = {link for paths in connections.values() for path in paths for link in path}
    if any(room[link] is None for link in used):
        return {}
    return max_min({link: room[link] or 0.0 for link in used}, connections)


def path_rates(topology: Topology, flow: Flow, *, fair: bool) -> list[float]:
    """B_x of the aggregate benefit: what each path has to offer, in bit/s of payload.

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


@metric("ideal", "Fair share (connection max-min)", "Mbit/s", ("flow",))
def ideal(window: Window) -> pl.DataFrame:
    """Max-min fair rate of the connection over the scenario's links, with multipath connections free to split.

    In raw link rate, headers included. Links that change count with their mean rate, UDP load is taken off first, and
    where flows come and go the allocation of each period is averaged. Absent beside short transfers and video: nobody
    can say beforehand how much they take.
    """
    rows = []
    known: dict[object, dict[str, float]] = {}
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
            known[key] = fair_shares(topology)
        rows += [(run, name, rate / MEGA) for name, rate in known[key].items()]
    return pl.DataFrame(rows, schema={"run": pl.UInt32, "flow": pl.String, "value": pl.Float64}, orient="row")
