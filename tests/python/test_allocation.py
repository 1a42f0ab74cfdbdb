"""Fair shares against published tables, and their properties."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import synthetic as s
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mptcplab.metrics import allocation, presence, proportional
from mptcplab.metrics.allocation import max_min, max_min_subflows
from mptcplab.metrics.fairness import aggregate_benefit
from mptcplab.metrics.ideals import equal_shares, fair_shares, path_rates, subflow_shares
from mptcplab.metrics.proportional import proportional_fair
from mptcplab.trace.topology import Topology

Network = tuple[dict[str, float], dict[str, list[tuple[str, ...]]]]


def torus(small: float) -> Network:
    """Five flows on five links in a ring, one of which is small."""
    ring = "ABCDE"
    links = dict.fromkeys(ring, 1000.0) | {"C": small}
    return links, {f"f{n + 1}": [(ring[n],), (ring[(n + 1) % 5],)] for n in range(5)}


def adw(
    n1: float, n2: float, shared: float, access: float, *, leave_early: bool = False, more: bool = False
) -> Network:
    """Two links with a TCP each, then one for everybody (all but h3 and h5, if they leave before it)."""
    links = {"N1": n1, "N2": n2, "SB": shared} | dict.fromkeys(("m1", "m2", "c3", "c5", "c7", "c9", "x2"), access)
    rest: tuple[str, ...] = () if leave_early else ("SB",)
    network: dict[str, list[tuple[str, ...]]] = {
        "mp": [("m1", "N1", "SB", "x2"), ("m2", "N2", "SB", "x2")],
        "h3": [("c3", "N1", *rest)],
        "h5": [("c5", "N2", *rest)],
    }
    if more:
        network |= {"h7": [("c7", "SB")], "h9": [("c9", "SB")]}
    return links, network


TRIANGLE: Network = (
    dict.fromkeys(("F1", "F2", "F3", "G1", "G2", "G3"), 12.0),
    {
        "f12": [("F1",), ("G3", "G2")],
        "f23": [("F2",), ("G1", "G3")],
        "f31": [("F3",), ("G2", "G1")],
        "f21": [("G1",), ("F2", "F3")],
        "f32": [("G2",), ("F3", "F1")],
        "f13": [("G3",), ("F1", "F2")],
    },
)
MIX: Network = (
    {"K1": 5, "K2": 12, "K3": 10, "K4": 3},
    {"A": [("K1",), ("K2",)], "B": [("K2",), ("K3",)], "C": [("K3",), ("K4",)]},
)
SERVER: Network = (
    {"L1": 100, "L2": 100},
    {f"ta{n}": [("L1",)] for n in range(5)}
    | {f"tb{n}": [("L2",)] for n in range(15)}
    | {f"m{n}": [("L1",), ("L2",)] for n in range(10)},
)
LAST_HOP: Network = ({"a1": 50, "b1": 50, "d": 50, "c": 10}, {"mp": [("a1", "c"), ("b1", "c")], "tcp": [("d", "c")]})
# D-OLIA, scenarios 2, 3 and the last with five TCP flows.
PAIR: Network = ({"B1": 10, "B2": 10}, {"mp": [("B1",), ("B2",)], "tcp": [("B1",)]})
FOUR: Network = ({"B1": 10, "B2": 10}, {"mp": [("B1",), ("B1",), ("B2",), ("B2",)], "tcp": [("B1",)]})
FIVE: Network = (FOUR[0], {"mp": FOUR[1]["mp"]} | {f"tcp{n}": [("B1",)] for n in range(5)})
DUMBBELL: Network = ({"shared": 1.5}, {"mp": [("shared",), ("shared",)], "tcp": [("shared",)]})
# ADW-BALIA, scenario 5a: 5 p^2 - 300 p + 2400 = 0 for the multipath flow's rate 2 p is where the product is largest.
P5A = (300 - math.sqrt(42_000)) / 10


def of_groups(network: Network, **rates: float) -> dict[str, float]:
    """The same rate for all connections whose name begins with the key; the longest key counts."""
    return {name: rates[max((k for k in rates if name.startswith(k)), key=len)] for name in network[1]}


@pytest.mark.parametrize(
    ("network", "connection", "subflow", "proportional"),
    [
        pytest.param(TRIANGLE, {"f": 12}, {"f": 8}, {"f": 12}, id="triangle"),
        pytest.param(MIX, dict.fromkeys("ABC", 10), {"A": 11, "B": 11, "C": 8}, dict.fromkeys("ABC", 10), id="mix"),
        pytest.param(torus(1000), {"f": 1000}, {"f": 1000}, {"f": 1000}, id="torus"),
        pytest.param(torus(100), {"f": 820}, {"f": 1000, "f2": 550, "f3": 550}, {"f": 820}, id="torus-small"),
        pytest.param(
            SERVER,
            {"t": 20 / 3, "m": 20 / 3},
            {"ta": 20 / 3, "tb": 4, "m": 32 / 3},
            {"t": 20 / 3, "m": 20 / 3},
            id="server",
        ),
        pytest.param(LAST_HOP, {"mp": 5, "tcp": 5}, {"mp": 20 / 3, "tcp": 10 / 3}, {"mp": 5, "tcp": 5}, id="last-hop"),
        pytest.param(PAIR, {"mp": 10, "tcp": 10}, {"mp": 15, "tcp": 5}, {"mp": 10, "tcp": 10}, id="dolia-2"),
        pytest.param(FOUR, {"mp": 10, "tcp": 10}, {"mp": 50 / 3, "tcp": 10 / 3}, {"mp": 10, "tcp": 10}, id="dolia-3"),
        pytest.param(
            FIVE, {"mp": 10, "tcp": 2}, {"mp": 10 + 20 / 7, "tcp": 10 / 7}, {"mp": 10, "tcp": 2}, id="dolia-scale"
        ),
        pytest.param(
            DUMBBELL, {"mp": 0.75, "tcp": 0.75}, {"mp": 1, "tcp": 0.5}, {"mp": 0.75, "tcp": 0.75}, id="dumbbell"
        ),
        # One link of 60 for all: the links before it are no limit.
        pytest.param(adw(100, 100, 60, 100), {"mp": 20, "h": 20}, {"mp": 30, "h": 15}, {"mp": 20, "h": 20}, id="adw-1"),
        pytest.param(adw(60, 60, 200, 100), {"mp": 40, "h": 40}, {"mp": 60, "h": 30}, {"mp": 40, "h": 40}, id="adw-2"),
        pytest.param(adw(60, 60, 60, 100), {"mp": 20, "h": 20}, {"mp": 30, "h": 15}, {"mp": 20, "h": 20}, id="adw-3"),
        pytest.param(
            adw(40, 40, 150, 150),
            {"mp": 80 / 3, "h": 80 / 3},
            {"mp": 40, "h": 20},
            {"mp": 80 / 3, "h": 80 / 3},
            id="adw-4",
        ),
        pytest.param(
            adw(40, 40, 120, 120, leave_early=True, more=True),
            {"mp": 80 / 3, "h": 80 / 3, "h7": 140 / 3, "h9": 140 / 3},
            {"mp": 40, "h": 20, "h7": 40, "h9": 40},
            {"mp": 2 * P5A, "h": 40 - P5A, "h7": 60 - P5A, "h9": 60 - P5A},
            id="adw-5a",
        ),
        pytest.param(
            adw(40, 40, 120, 120, more=True), {"mp": 24, "h": 24}, {"mp": 40, "h": 20}, {"mp": 24, "h": 24}, id="adw-5b"
        ),
    ],
)
def test_ideals_are_those_of_the_published_networks(
    network: Network, connection: dict[str, float], subflow: dict[str, float], proportional: dict[str, float]
) -> None:
    links, connections = network
    assert max_min(links, connections) == pytest.approx(of_groups(network, **connection), rel=1e-6)
    sums = {name: sum(rates) for name, rates in max_min_subflows(links, connections).items()}
    assert sums == pytest.approx(of_groups(network, **subflow), rel=1e-6)
    assert proportional_fair(links, connections) == pytest.approx(of_groups(network, **proportional), rel=1e-6)


@pytest.mark.parametrize(
    ("links", "connections", "expected"),
    [
        # Lexicographic: the one behind the small link is frozen first, the others share the rest.
        ({"x": 9, "y": 1}, {"p": [("x", "y")], "q": [("x",)], "r": [("x",)]}, {"p": 1, "q": 4, "r": 4}),
        ({"dead": 0, "x": 6}, {"p": [("dead",)], "q": [("x",)]}, {"p": 0, "q": 6}),
    ],
)
def test_max_min_freezes_connections_that_cannot_rise(
    links: dict[str, float], connections: dict[str, list[tuple[str, ...]]], expected: dict[str, float]
) -> None:
    assert max_min(links, connections) == pytest.approx(expected, abs=1e-6)
    assert proportional_fair(links, connections)["p"] <= expected["p"] + 1e-9


@pytest.mark.parametrize("slow", [1e6, 1e3, 320.0, 1e-5, 2e-9])
def test_max_min_is_exact_where_links_differ_by_many_orders_of_magnitude(slow: float) -> None:
    """With 1 kbit/s the program was infeasible, below that its tolerance decided, and with 1e-5 all rates were 0."""
    links = {"core": 1e10, "s": slow, "t": 3 * slow, "fast": 7e9}
    connections = {
        "x": [("s", "core")],
        "y": [("t", "core")],
        "z": [("core",)],
        "mp": [("s",), ("t", "core")],
        "w": [("fast", "core")],
    }
    # x leaves the connection with two paths none of its link, so that it shares that of y.
    few = {"x": slow, "y": 1.5 * slow, "mp": 1.5 * slow}
    expected = few | dict.fromkeys("zw", 5e9 - 2 * slow)
    assert max_min(links, connections) == pytest.approx(expected, rel=1e-6)
    assert proportional_fair(links, connections) == pytest.approx(expected, rel=1e-6)


@given(st.lists(st.lists(st.floats(1e5, 1e9), min_size=1, max_size=3), min_size=1, max_size=4), st.integers(1, 9))
@example([[100001.0, 100000.0, 1e7]], 1)
def test_connections_alone_have_the_rates_that_the_solver_finds(paths: list[list[float]], count: int) -> None:
    room = tuple(rate for path in paths for rate in path)
    links = iter(range(len(room)))
    shape = (tuple(tuple(next(links) for _ in path) for path in paths),)
    # HiGHS takes a link for full enough, or not too full, within 1e-7 of the unit of rates.
    found = pytest.approx(allocation._iterated(room, shape, (count,), max(room)), abs=1e-7 * len(paths) * max(room))
    assert allocation._lexicographic(room, shape, (count,)) == found


def test_a_connection_alone_on_paths_that_share_a_link_gets_that_link_once() -> None:
    rates = max_min({"a": 7.0, "b": 3.0, "c": 9.0}, {"mp": [("a", "b"), ("a", "c")]})
    assert rates == pytest.approx({"mp": 7.0})


def test_subflows_have_their_own_rates_in_the_order_of_their_paths() -> None:
    found = max_min_subflows({"a": 6, "b": 10}, {"mp": [("b",), ("a",)], "t": [("a",)]})
    assert found == {"mp": pytest.approx((10, 3)), "t": pytest.approx((3,))}


@pytest.mark.parametrize(
    "capacities", [[5.0], [3.0, 3000.0], [1e6, 7e6, 1e9, 4e8], [10.0 * 1.26**n for n in range(30)]]
)
def test_a_line_of_links_is_shared_in_proportion(capacities: list[float]) -> None:
    """One flow over all links and one on each: 1 / x = sum of 1 / (c - x), solved to the last digit."""
    links = {f"l{n}": rate for n, rate in enumerate(capacities)}
    line = {"long": [tuple(links)]} | {name: [(name,)] for name in links}
    low, high = 0.0, min(capacities)
    for _ in range(200):
        x = (low + high) / 2
        low, high = (x, high) if 1 / x > sum(1 / (rate - x) for rate in capacities) else (low, x)
    expected = {"long": low} | {name: rate - low for name, rate in links.items()}
    assert proportional_fair(links, line) == pytest.approx(expected, rel=1e-9)


def test_connections_on_the_same_paths_are_one_for_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred connections that begin one after the other took a minute."""
    seen = []
    solve = proportional._interior_point

    def watched(usage: np.ndarray, belongs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        seen.append((usage.shape, belongs.shape, weights.tolist()))
        return solve(usage, belongs, weights)

    monkeypatch.setattr(proportional, "_interior_point", watched)
    tcp: dict[str, list[tuple[str, ...]]] = {f"t{n}": [("a",)] for n in range(5)}
    found = proportional_fair({"a": 11.0, "b": 33.0}, tcp | {f"m{n}": [("a",), ("b",)] for n in range(3)})
    # Three connections have b for themselves, and leave a to the five.
    assert found == pytest.approx({f"t{n}": 2.2 for n in range(5)} | {f"m{n}": 11 for n in range(3)})
    assert seen == [((2, 3), (2, 3), [1.0, 0.6])]


def test_many_connections_on_the_same_paths_are_one_for_the_linear_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand at one bottleneck took gigabytes."""
    seen = []
    solve = allocation._iterated

    def watched(*asked: object) -> tuple[float, ...]:
        seen.append(asked[1:3])
        return solve(*asked)

    monkeypatch.setattr(allocation, "_iterated", watched)
    connections: dict[str, list[tuple[str, ...]]] = {f"t{n}": [("a",)] for n in range(4000)}
    connections |= {f"m{n}": [("a",), ("b",)] for n in range(3000)}
    # The three thousand leave a as much as makes all rates equal, or have b for themselves.
    equal = max_min({"a": 5e9, "b": 2e9}, connections)
    assert equal == pytest.approx(dict.fromkeys(connections, 1e6), rel=1e-6)
    apart = max_min({"a": 2e9, "b": 6e9}, connections)
    assert apart == pytest.approx({name: 5e5 if name.startswith("t") else 2e6 for name in connections}, rel=1e-6)
    assert seen == [((((0,),), ((0,), (1,))), (4000, 3000))] * 2


def test_a_connection_without_capacity_does_not_change_the_rates_of_others() -> None:
    links = {"dead": 0.0, "a": 4.0, "b": 4.0}
    network = {"mp": [("a",), ("dead", "b")], "gone": [("dead",)], "t": [("a",)], "u": [("b",)]}
    assert proportional_fair(links, network) == pytest.approx({"mp": 2, "gone": 0, "t": 2, "u": 4})
    # There is nothing to share at all.
    assert proportional_fair({"dead": 0.0}, {"p": [("dead",)], "q": [("dead",)]}) == {"p": 0, "q": 0}


names = st.sampled_from(["a", "b", "c", "d"])
paths = st.lists(st.lists(names, min_size=1, max_size=3, unique=True).map(tuple), min_size=1, max_size=3, unique=True)
networks = st.dictionaries(st.sampled_from(["p", "q", "r", "s"]), paths, min_size=1)
capacities = st.fixed_dictionaries({name: st.integers(1, 100).map(float) for name in "abcd"})


@settings(max_examples=60, deadline=None)
@given(room=capacities, network=networks, factor=st.integers(2, 1000))
def test_max_min_scales_with_the_links(
    room: dict[str, float], network: dict[str, list[tuple[str, ...]]], factor: int
) -> None:
    base = max_min(room, network)
    scaled = max_min({name: rate * factor for name, rate in room.items()}, network)
    assert scaled == pytest.approx({name: rate * factor for name, rate in base.items()}, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(room=capacities, network=networks)
def test_max_min_is_independent_of_the_order_of_connections(
    room: dict[str, float], network: dict[str, list[tuple[str, ...]]]
) -> None:
    turned = dict(reversed(network.items()))
    assert max_min(room, turned) == pytest.approx(max_min(room, network), rel=1e-6)


wide = st.fixed_dictionaries({name: st.floats(1, 1000) for name in "abcd"})


@settings(max_examples=60, deadline=None)
@given(room=wide, network=networks)
def test_no_other_rates_are_proportionally_better(
    room: dict[str, float], network: dict[str, list[tuple[str, ...]]]
) -> None:
    """Kelly's criterion: of all feasible rates z none has sum z / x above the number of connections."""
    found = proportional_fair(room, network)
    columns = [(name, path) for name, paths in network.items() for path in paths]
    usage = np.array([[path.count(link) for _, path in columns] for link in room], dtype=float)
    gain = [-1 / found[name] for name, _ in columns]
    best = linprog(gain, A_ub=usage, b_ub=list(room.values()))
    assert -best.fun == pytest.approx(len(network), rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(room=wide, network=networks, factor=st.floats(1e-3, 1e9))
def test_proportional_rates_scale_and_do_not_depend_on_order(
    room: dict[str, float], network: dict[str, list[tuple[str, ...]]], factor: float
) -> None:
    base = proportional_fair(room, network)
    turned = {name: paths[::-1] for name, paths in reversed(network.items())}
    scaled = proportional_fair({name: rate * factor for name, rate in room.items()}, turned)
    assert {name: rate / factor for name, rate in scaled.items()} == pytest.approx(base, rel=1e-6)


def topology(*flows: dict, links: list[dict] | None = None, duration_s: float = 10, warmup_s: float = 0) -> Topology:
    links = links or [s.link("a", "S", "D", 12), s.link("b", "S", "D", 30)]
    return Topology.from_json(json.dumps(s.resolved(links, list(flows), duration_s=duration_s, warmup_s=warmup_s)))


def udp(name: str, path: str, mbps: float, **changes: object) -> dict:
    return {
        "name": name,
        "transport": "udp",
        "start_ns": 0,
        "stop_ns": None,
        "rate_bps": int(mbps * 1e6),
        "packet_bytes": 1000,
        "path": [path],
        "on_off": None,
    } | changes


def test_udp_takes_its_load_first() -> None:
    on_off = {"on_ns": 10_000_000, "off_ns": {"uniform_ns": [0, 60_000_000]}}  # a quarter of the time on average
    found = fair_shares(topology(udp("cbr", "a", 8, on_off=on_off), s.tcp("t", s.subflow("p", "a"))), max_min)
    assert found == pytest.approx({"t": 10e6})


def test_a_flow_that_stops_leaves_its_share_to_the_others() -> None:
    leaver = s.tcp("leaver", s.subflow("p", "a"), stop_ns=4 * s.NS)
    stayer = s.tcp("stayer", s.subflow("p", "a"))
    # 6 each for 4 s, then 12 for 6 s.
    assert fair_shares(topology(leaver, stayer), max_min) == pytest.approx({"leaver": 6e6, "stayer": 9.6e6})


def test_shares_are_unknown_where_too_many_flows_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand random starts inside the window took a minute, and ten thousand more memory than there is."""
    mp = s.tcp("mp", s.subflow("sf1", "a"), s.subflow("sf2", "b"), stop_ns=4 * s.NS)
    found = topology(mp, s.tcp("stayer", s.subflow("p", "a")))
    # Three edges, two flows.
    monkeypatch.setattr(presence, "_MOST", 6)
    assert fair_shares(found, max_min)
    assert equal_shares(found)
    assert path_rates(found, found.flows[0], fair=True)
    monkeypatch.setattr(presence, "_MOST", 5)
    assert fair_shares(found, max_min) == {}
    assert equal_shares(found) == {}
    assert path_rates(found, found.flows[0], fair=True) == []
    assert aggregate_benefit(5e6, []) is None


def test_a_stream_that_ends_leaves_its_load_to_the_others() -> None:
    stream = udp("cbr", "a", 8) | {"stop_ns": 4 * s.NS}
    # 4 of 12 for 4 s, then 12 for 6 s.
    assert fair_shares(topology(stream, s.tcp("t", s.subflow("p", "a"))), max_min) == pytest.approx({"t": 8.8e6})


def test_every_definition_of_fairness_uses_the_same_periods_and_udp_load() -> None:
    mp = s.tcp("mp", s.subflow("sf1", "a"), s.subflow("sf2", "b"))
    leaver = s.tcp("leaver", s.subflow("p", "b"), stop_ns=4 * s.NS)
    found = topology(udp("cbr", "a", 3), mp, leaver)
    # 9 are left of a; 30 of b are shared for 4 s of 10. Subflows: 9 and 15, then 30. Proportional: 39 / 2, then 39.
    assert subflow_shares(found) == pytest.approx({("mp", 0): 9e6, ("mp", 1): 24e6, ("leaver", 0): 15e6})
    assert fair_shares(found, proportional_fair) == pytest.approx({"mp": 31.2e6, "leaver": 19.5e6})


def test_shares_are_unknown_beside_a_link_of_unknown_rate() -> None:
    trace = {"name": "cell.trace", "opportunities": 500, "period_ns": 0}
    links = [s.link("a", "S", "D", 1, trace=trace), s.link("b", "S", "D", 4)]
    found = topology(s.tcp("t", s.subflow("p", "a")), s.tcp("u", s.subflow("q", "b")), links=links)
    assert fair_shares(found, max_min) == {} == subflow_shares(found)
    assert equal_shares(found) == {("t", "a"): None, ("u", "b"): 4e6}


def test_shares_are_unknown_beside_a_connection_that_is_switched_on_and_off() -> None:
    """It counted as always active: the others' share was what a bulk connection would have left them."""
    bursts = s.tcp("bursts", s.subflow("q", "a"), traffic={"on_ns": 2 * s.NS, "off_ns": {"uniform_ns": [0, 6 * s.NS]}})
    mp = s.tcp("mp", s.subflow("sf1", "a"), s.subflow("sf2", "b"))
    found = topology(bursts, mp)
    assert [flow.is_greedy for flow in found.flows] == [False, True]
    assert fair_shares(found, max_min) == {} == subflow_shares(found)
    assert equal_shares(found) == {}
    assert path_rates(found, found.flows[1], fair=True) == []
    assert len(path_rates(found, found.flows[1], fair=False)) == 2


def test_a_changing_link_counts_with_its_mean_rate_in_the_window() -> None:
    schedule = [
        {"at_ns": 3 * s.NS, "rate_bps": 6_000_000},
        {"at_ns": 7 * s.NS, "up": False},
        {"at_ns": 8 * s.NS, "up": True},
    ]
    links = [s.link("a", "S", "D", 12, schedule=schedule)]
    # Window 1..10 s: 2 s at 12, 4 s at 6, 1 s down, 2 s at 6 Mbit/s.
    found = fair_shares(topology(s.tcp("t", s.subflow("p", "a")), links=links, warmup_s=1), max_min)
    assert found == pytest.approx({"t": (2 * 12 + 6 * 6) / 9 * 1e6})


def test_a_delivery_trace_counts_with_its_opportunities() -> None:
    trace = {"name": "cell.trace", "opportunities": 500, "period_ns": 2 * s.NS}
    links = [s.link("a", "S", "D", 1, trace=trace)]
    found = fair_shares(topology(s.tcp("t", s.subflow("p", "a")), links=links), max_min)
    assert found == pytest.approx({"t": 250 * 1504 * 8})


def test_a_delivery_trace_does_not_count_while_its_link_is_down() -> None:
    """The share was that of a link that is always up."""
    trace = {"name": "cell.trace", "opportunities": 500, "period_ns": 2 * s.NS}
    schedule = [
        {"at_ns": 0, "delay_ns": 7_000_000},
        {"at_ns": 3 * s.NS, "up": False},
        {"at_ns": 7 * s.NS, "up": True},
        {"at_ns": 9 * s.NS, "up": False},
    ]
    links = [s.link("a", "S", "D", 1, trace=trace, schedule=schedule)]
    # Window 1..10 s: 2 s up, 4 s down, 2 s up, 1 s down.
    found = fair_shares(topology(s.tcp("t", s.subflow("p", "a")), links=links, warmup_s=1), max_min)
    assert found == pytest.approx({"t": 250 * 1504 * 8 * 4 / 9})
    unknown = [s.link("a", "S", "D", 1, trace={**trace, "period_ns": 0}, schedule=schedule)]
    assert fair_shares(topology(s.tcp("t", s.subflow("p", "a")), links=unknown, warmup_s=1), max_min) == {}


def test_a_path_offers_the_payload_rate_of_its_smallest_link() -> None:
    links = [s.link("a", "S", "M", 10), s.link("b", "S", "M", 6), s.link("c", "M", "D", 9, overhead_bytes=0)]
    mp = s.tcp("mp", s.subflow("sf1", "a", "c"), s.subflow("sf2", "b", "c"))
    other = s.tcp("t", s.subflow("p", "c"))
    found = topology(mp, other, links=links)
    # Fair: a 10, b 6, c 9 / 2 connections / 2 own subflows = 2.25 without layer-2 overhead: 1428 of 1500.
    assert path_rates(found, found.flows[0], fair=True) == pytest.approx([2.25e6 * 1428 / 1500] * 2)
    assert path_rates(found, found.flows[0], fair=False) == pytest.approx([4.5e6 * 1428 / 1500] * 2)


@given(
    paths_bps=st.lists(st.floats(1, 1e9), min_size=2, max_size=5),
    low=st.floats(0, 1),
    high=st.floats(0, 1),
    scale=st.floats(1e-3, 1e3),
)
def test_aggregate_benefit_is_monotone_bounded_and_scale_free(
    paths_bps: list[float], low: float, high: float, scale: float
) -> None:
    total = sum(paths_bps)
    few, many = sorted((low * total, high * total))
    one, two = aggregate_benefit(few, paths_bps), aggregate_benefit(many, paths_bps)
    assert one is not None and two is not None
    assert -1 <= one <= two <= 1 + 1e-9
    scaled = aggregate_benefit(few * scale, [rate * scale for rate in paths_bps])
    assert scaled == pytest.approx(one, abs=1e-6)


@pytest.mark.parametrize(
    ("goodput_bps", "paths_bps", "benefit"),
    [
        # Exactly as much as the best path alone, all paths, half of the best one, and nothing.
        (8.0, [8.0, 4.0], 0.0),
        (12.0, [4.0, 8.0], 1.0),
        (4.0, [8.0, 4.0], -0.5),
        (0.0, [8.0, 4.0], -1.0),
        # In other units a path may offer less than 1.
        (0.375, [0.25, 0.25], 0.5),
        # There is nothing to gain where no path, or only one of them, offers anything.
        (3.0, [], None),
        (3.0, [0.0, 0.0], None),
        (3.0, [8.0, 0.0], None),
    ],
)
def test_the_aggregate_benefit_is_exact_at_its_limits(
    goodput_bps: float, paths_bps: list[float], benefit: float | None
) -> None:
    assert aggregate_benefit(goodput_bps, paths_bps) == benefit


def test_a_udp_stream_takes_no_more_than_there_is_on_any_of_its_links() -> None:
    """12 are on a, of which the stream would take 20, and of the 30 of b 10 are left."""
    stream = udp("cbr", "a", 20) | {"path": ["a", "b"]}
    found = fair_shares(topology(stream, s.tcp("t", s.subflow("p", "a")), s.tcp("u", s.subflow("q", "b"))), max_min)
    assert found == {"t": 0.0, "u": pytest.approx(10e6)}
