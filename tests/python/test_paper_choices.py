"""What each choice changes in an experiment: queues, noise, ACK profile, dialect, scheduler, delays and readings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mptcplab.studies.papers.catalog import Experiment, Paper, Point, Reading, Sweep
from mptcplab.studies.papers.choices import Choice, bottlenecks, choices, one_per_axis
from mptcplab.trace.topology import Flow, Link, Subflow, Topology

EXPERIMENT = Experiment(
    "E-1", "doe2024", "One", "section 1", Path("one.toml"), "rfc", algorithms=("lia", "dlia"), settings={"sack": "true"}
)
READINGS = (
    Reading(("dlia", "olia"), "D-LIA", "its step is not given", ("gamma=text", "gamma=2")),
    Reading(("adw",), "ADW", "one of two windows"),
    Reading(("ewtcp",), "EWTCP", "its weight is not given", ("weight=fair",)),
)
PAPER = Paper("doe2024", "A rule", "Doe 2024", "A rule.", Path("doe2024"), {"E-1": EXPERIMENT}, (), readings=READINGS)


def link(name: str, rate_bps: float, delay_ns: int, overhead_bytes: int = 0, trace_bps: float | None = None) -> Link:
    trace = None if trace_bps is None else "lte.trace"
    return Link(name, "S", "D", rate_bps, delay_ns, overhead_bytes, "9 packets", "none", 0.0, (), trace, trace_bps)


def subflow(rtt_ns: int | None, *path: str) -> Subflow:
    return Subflow("-".join(path), path, tuple(f"{name}~" for name in reversed(path)), rtt_ns, False)


def flow(name: str, transport: str, mss_bytes: int, *subflows: Subflow) -> Flow:
    kind = "udp" if transport == "udp" else "bulk"
    return Flow(name, transport, "lia", "", "", kind, subflows, 0, None, mss_bytes, 0.0)


def network(links: list[Link], *flows: Flow) -> Topology:
    return Topology(("S", "D"), {one.name: one for one in links}, flows, 10, 0)


# Links for data, two of them with a back direction that is slower or has another delay, and one that only ACKs use.
LINKS = [
    link("wide", 50e6, 1_000_000),
    link("wide~", 50e6, 1_000_000),
    link("left", 12e6, 5_000_000),
    link("left~", 6e6, 5_000_000),
    link("right", 2e6, 7_000_000, overhead_bytes=38),
    link("right~", 2e6, 4_000_000),
    link("end", 2e6, 3_000_000),
    link("end~", 2e6, 3_000_000),
    link("flat", 9e6, 0),
    link("flat~", 9e6, 0),
    link("radio", 8e6, 2_000_000, trace_bps=1e6),
    link("acks", 1e5, 2_000_000),
    link("acks~", 1e5, 2_000_000),
]
FLOWS = (
    # The frames of these have 1428 + 72 and 1288 + 52 bytes.
    flow("mp", "mptcp", 1428, subflow(100_000_000, "wide", "left"), subflow(40_000_000, "wide", "right", "end")),
    flow("tcp", "tcp", 1288, subflow(60_000_000, "wide", "left")),
    flow("up", "tcp", 1288, subflow(80_000_000, "left~", "flat~")),
    flow("udp", "udp", 1448, subflow(None, "wide")),
)
NETWORK = network(LINKS, *FLOWS)


def changed(text: str, experiment: Experiment = EXPERIMENT, topology: Topology = NETWORK) -> Experiment:
    (found,) = (one for one in choices(PAPER) if str(one) == text)
    return found.change(experiment, topology)


def settings(text: str, experiment: Experiment = EXPERIMENT, topology: Topology = NETWORK) -> dict[str, str]:
    """The settings that a choice adds; it leaves all others, and all else of the experiment, as they are."""
    after = changed(text, experiment, topology)
    assert replace(after, settings=experiment.settings) == experiment
    assert experiment.settings.items() <= after.settings.items()
    return {key: value for key, value in after.settings.items() if key not in experiment.settings}


def test_a_papers_choices_are_those_of_every_axis_and_its_own_readings() -> None:
    assert [str(one) for one in choices(PAPER)] == [
        "queue 1 BDP",
        "queue 100 packets",
        "queue 1000 packets",
        "noise none",
        "noise a packet's time",
        "noise 1 ms",
        "ACK profile rfc",
        "ACK profile linux-acked",
        "ACK profile linux-legacy",
        "ACK profile linux-pre4",
        "dialect spec",
        "dialect mptcp-0.95",
        "scheduler roundrobin",
        "scheduler linger",
        "delay towards the receiver only",
        "delay of ACKs only",
        "reading of D-LIA gamma=text",
        "reading of D-LIA gamma=2",
        "reading of EWTCP weight=fair",
    ]


def test_one_per_axis_is_the_first_of_each_in_their_order() -> None:
    some = [Choice(axis, value, lambda one, _: one) for axis, value in ("b1", "a1", "b2", "c1", "a2", "a3")]
    assert [str(one) for one in one_per_axis(some)] == ["b 1", "a 1", "c 1"]
    assert one_per_axis([]) == []


# Bottlenecks and queues


def test_the_bottlenecks_are_the_slowest_links_of_the_connections_paths() -> None:
    """`right` and `end` are as slow; UDP has no window that `wide` would limit, and `acks` carries no data."""
    assert [one.name for one in bottlenecks(NETWORK)] == ["left", "right", "end", "left~"]


def test_a_delivery_trace_limits_by_its_own_rate() -> None:
    there = network(LINKS, flow("tcp", "tcp", 1448, subflow(1, "radio", "end")))
    assert [one.name for one in bottlenecks(there)] == ["radio"]
    assert settings("queue 1000 packets", topology=there) == {"links.radio.queue": '"1000 packets"'}


def test_all_bottlenecks_get_the_queue_of_a_fixed_size() -> None:
    names = ("left", "right", "end", "left.reverse")
    assert settings("queue 100 packets") == {f"links.{name}.queue": '"100 packets"' for name in names}


def test_a_bandwidth_delay_product_is_that_of_the_longest_rtt_in_whole_packets() -> None:
    """A frame has 1500 bytes of IP and what layer 2 adds."""
    assert settings("queue 1 BDP") == {
        # 12 Mbit/s * 100 ms = 150,000 bytes: 100 packets. The RTT of `tcp` is shorter.
        "links.left.queue": '"100 packets"',
        # 2 Mbit/s * 40 ms = 10,000 bytes: 6.502 packets of 1538 bytes, or 6.67 of 1500.
        "links.right.queue": '"7 packets"',
        "links.end.queue": '"7 packets"',
        # 6 Mbit/s * 80 ms = 60,000 bytes.
        "links.left.reverse.queue": '"40 packets"',
    }


@pytest.mark.parametrize(
    ("rate_bps", "overhead_bytes", "packets"),
    # With an RTT of 100 ms: 15,000,000 bytes are 10,000 packets of 1500 bytes or 7500 of 2000.
    [(1.2e9, 0, 10_000), (1.2e9, 500, 7500), (1.2e9 + 1, 0, 10_001)],
)
def test_a_bandwidth_delay_product_is_exact_for_large_ones(rate_bps: float, overhead_bytes: int, packets: int) -> None:
    fast = network([link("A", rate_bps, 1, overhead_bytes)], flow("tcp", "tcp", 1448, subflow(100_000_000, "A")))
    assert settings("queue 1 BDP", topology=fast) == {"links.A.queue": f'"{packets} packets"'}


def test_where_a_sweep_may_vary_the_rate_a_bandwidth_delay_product_is_a_time() -> None:
    swept = replace(EXPERIMENT, sweep=Sweep("Rate", (Point("r1", 1.0),)))
    names = {"left": 100_000_000, "right": 40_000_000, "end": 40_000_000, "left.reverse": 80_000_000}
    assert settings("queue 1 BDP", swept) == {f"links.{name}.queue": f'"{ns} ns"' for name, ns in names.items()}
    assert settings("queue 100 packets", swept) == settings("queue 100 packets")


# Noise


@pytest.mark.parametrize(
    ("choice", "jitter"),
    [
        ("noise none", '"0 s"'),
        ("noise 1 ms", '"1 ms"'),
        # The largest frame, 1500 bytes, with an Ethernet header of 14 at 2 Mbit/s.
        ("noise a packet's time", '"6056000 ns"'),
    ],
)
def test_noise_is_a_delay_of_every_packet_that_is_sent(choice: str, jitter: str) -> None:
    assert settings(choice) == {"tcp.send_jitter": jitter}


def test_the_frame_and_the_rate_behind_a_packets_time_are_those_of_connections() -> None:
    """8 * (1288 + 52 + 14) bits at 6 Mbit/s; the UDP stream's packets are larger, and its link is slower."""
    there = network(LINKS, flow("up", "tcp", 1288, subflow(8, "left~")), flow("u", "udp", 1448, subflow(None, "end")))
    assert settings("noise a packet's time", topology=there) == {"tcp.send_jitter": '"1805333 ns"'}


# Rules


def test_profile_dialect_and_scheduler_are_properties_of_the_experiment() -> None:
    assert changed("ACK profile linux-pre4") == replace(EXPERIMENT, profile="linux-pre4")
    assert changed("dialect mptcp-0.95") == replace(EXPERIMENT, dialect="mptcp-0.95")
    assert changed("scheduler linger") == replace(EXPERIMENT, scheduler="linger")


def test_a_reading_is_a_parameter_of_its_treatments_in_its_paper() -> None:
    after = changed("reading of D-LIA gamma=2")
    assert after == replace(EXPERIMENT, parameters={"dlia": "gamma=2", "olia": "gamma=2"})
    other = replace(EXPERIMENT, paper="roe2023")
    assert changed("reading of D-LIA gamma=2", other) == other


# Delays


@pytest.mark.parametrize(
    ("choice", "forward", "backward"), [("delay towards the receiver only", 2, 0), ("delay of ACKs only", 0, 2)]
)
def test_a_link_of_equal_delays_has_both_in_one_direction(choice: str, forward: int, backward: int) -> None:
    """`right` has two delays, `flat` none, `radio` one direction only, and `acks` carries no data."""
    there = network(LINKS, *FLOWS, flow("more", "tcp", 1448, subflow(1, "flat"), subflow(1, "radio")))
    delays_ns = {"wide": 1_000_000, "left": 5_000_000, "end": 3_000_000}
    expected = {f"links.{name}.delay": f'"{forward * delay} ns"' for name, delay in delays_ns.items()}
    expected |= {f"links.{name}.reverse.delay": f'"{backward * delay} ns"' for name, delay in delays_ns.items()}
    assert settings(choice, topology=there) == expected


def test_a_link_whose_delay_is_a_nanosecond_is_moved() -> None:
    there = network([link("A", 1e6, 1), link("A~", 1e6, 1)], flow("tcp", "tcp", 1448, subflow(2, "A")))
    expected = {"links.A.delay": '"0 ns"', "links.A.reverse.delay": '"2 ns"'}
    assert settings("delay of ACKs only", topology=there) == expected


@pytest.mark.parametrize(
    ("key", "moved"),
    [
        ("links.left.delay", {"wide", "end"}),
        ("links.left", {"wide", "end"}),
        ("links.left.rate", {"wide", "left", "end"}),
        ("links.end.delay", {"wide", "left"}),
    ],
)
def test_a_delay_that_the_experiment_varies_stays_in_both_directions(key: str, moved: set[str]) -> None:
    swept = replace(EXPERIMENT, sweep=Sweep("Delay", (Point("a", 1.0), Point("b", 2.0, {key: '"1 ms"'}))))
    varied = replace(EXPERIMENT, variants={"same": {}, "other": {key: '"1 ms"'}})
    for experiment in (swept, varied):
        found = settings("delay of ACKs only", experiment)
        assert {name.split(".")[1] for name in found} == moved
