"""Fair shares against published tables, and their properties."""

from __future__ import annotations

import json

import pytest
import synthetic as s
from hypothesis import given, settings
from hypothesis import strategies as st

from mptcplab.metrics.allocation import max_min
from mptcplab.metrics.fairness import aggregate_benefit
from mptcplab.metrics.ideals import fair_shares, path_rates
from mptcplab.topology import Topology


@pytest.mark.parametrize(
    ("links", "connections", "expected"),
    [
        # D-OLIA scenario 2: the resource-pooling optimum leaves bottleneck 1 to the TCP flow.
        ({"b1": 10, "b2": 10}, {"mp": [("b1",), ("b2",)], "tcp": [("b1",)]}, {"mp": 10, "tcp": 10}),
        # ADW scenario 1: all on one link.
        ({"s": 60}, {"mp": [("s",), ("s",)], "h3": [("s",)], "h5": [("s",)]}, {"mp": 20, "h3": 20, "h5": 20}),
        # ADW scenario 2: 60 + 60 with a TCP flow on each.
        ({"a": 60, "b": 60}, {"mp": [("a",), ("b",)], "h3": [("a",)], "h5": [("b",)]}, {"mp": 40, "h3": 40, "h5": 40}),
        # ADW scenario 5a: 40 + 40, then 120 shared with h7 and h9.
        (
            {"a": 40, "b": 40, "s": 120},
            {"mp": [("a", "s"), ("b", "s")], "h3": [("a",)], "h5": [("b",)], "h7": [("s",)], "h9": [("s",)]},
            {"mp": 80 / 3, "h3": 80 / 3, "h5": 80 / 3, "h7": 140 / 3, "h9": 140 / 3},
        ),
        # WIS-MIX: four links 5/12/10/3.
        (
            {"l1": 5, "l2": 12, "l3": 10, "l4": 3},
            {"A": [("l1",), ("l2",)], "B": [("l2",), ("l3",)], "C": [("l3",), ("l4",)]},
            {"A": 10, "B": 10, "C": 10},
        ),
        # Lexicographic: the one behind the small link is frozen first, the others share the rest.
        ({"x": 9, "y": 1}, {"p": [("x", "y")], "q": [("x",)], "r": [("x",)]}, {"p": 1, "q": 4, "r": 4}),
        ({"dead": 0, "x": 6}, {"p": [("dead",)], "q": [("x",)]}, {"p": 0, "q": 6}),
    ],
)
def test_max_min_gives_the_published_ideals(
    links: dict[str, float], connections: dict[str, list[tuple[str, ...]]], expected: dict[str, float]
) -> None:
    assert max_min(links, connections) == pytest.approx(expected, abs=1e-6)


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
    found = fair_shares(topology(udp("cbr", "a", 8, on_off=on_off), s.tcp("t", s.subflow("p", "a"))))
    assert found == pytest.approx({"t": 10e6})


def test_a_flow_that_leaves_makes_room_for_the_rest_of_the_time() -> None:
    leaver = s.tcp("leaver", s.subflow("p", "a"), stop_ns=4 * s.NS)
    stayer = s.tcp("stayer", s.subflow("p", "a"))
    # 6 each for 4 s, then 12 for 6 s.
    assert fair_shares(topology(leaver, stayer)) == pytest.approx({"leaver": 6e6, "stayer": 9.6e6})


def test_a_changing_link_counts_with_its_mean_rate_in_the_window() -> None:
    schedule = [
        {"at_ns": 3 * s.NS, "rate_bps": 6_000_000},
        {"at_ns": 7 * s.NS, "up": False},
        {"at_ns": 8 * s.NS, "up": True},
    ]
    links = [s.link("a", "S", "D", 12, schedule=schedule)]
    # Window 1..10 s: 2 s at 12, 4 s at 6, 1 s down, 2 s at 6 Mbit/s.
    found = fair_shares(topology(s.tcp("t", s.subflow("p", "a")), links=links, warmup_s=1))
    assert found == pytest.approx({"t": (2 * 12 + 6 * 6) / 9 * 1e6})


def test_a_delivery_trace_counts_with_its_opportunities() -> None:
    trace = {"name": "cell.trace", "opportunities": 500, "period_ns": 2 * s.NS}
    links = [s.link("a", "S", "D", 1, trace=trace)]
    found = fair_shares(topology(s.tcp("t", s.subflow("p", "a")), links=links))
    assert found == pytest.approx({"t": 250 * 1504 * 8})


def test_paths_offer_their_smallest_link_in_payload() -> None:
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
