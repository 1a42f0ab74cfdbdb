"""Metrics against numbers worked by hand. Each flow, subflow, link and run has its own, so that a mix-up shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import synthetic as s

import mptcplab
from mptcplab.errors import MptcplabError
from mptcplab.metrics import REGISTRY, binned, compute, pieces, summary, values_of
from mptcplab.metrics.stats import summarise
from mptcplab.results import Results


def value(frame: pl.DataFrame, metric: str, run: int = 0, **entity: str) -> float | None:
    """The single value of a metric; the entity's other names must be null."""
    for name in ("flow", "subflow", "link"):
        wanted = entity.get(name)
        frame = frame.filter(pl.col(name).is_null() if wanted is None else pl.col(name) == wanted)
    return frame.filter((pl.col("metric") == metric) & (pl.col("run") == run))["value"].item()


def has(frame: pl.DataFrame, metric: str, **entity: str) -> bool:
    return not frame.filter(pl.col("metric") == metric, **entity).is_empty()


def counting(names: dict[str, Any], rates: dict[str, float], times: list[float]) -> list[dict[str, Any]]:
    """Rows of counters that grow by `rates` per second."""
    return [{**names, "t": t, **{key: round(rate * t) for key, rate in rates.items()}} for t in times]


LINKS = [s.link("A", "S", "D", 8), s.link("B", "S", "D", 2), s.link("A~", "D", "S", 8), s.link("B~", "D", "S", 2)]


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """An MPTCP flow over A and B next to a TCP flow on A, 10 s with 2 s of warm-up, a sample every second."""
    scenario = s.resolved(
        LINKS,
        [s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"), cc="lia"), s.tcp("tcp", s.subflow("only", "A"))],
        duration_s=10,
        warmup_s=2,
    )
    times = [float(t) for t in range(11)]
    sf1 = {"rx_wire_bytes": 500_000, "rx_payload_bytes": 450_000, "rx_pkts": 330, "sent_pkts": 400, "retx_pkts": 4}
    sf2 = {"rx_wire_bytes": 125_000, "rx_payload_bytes": 150_000, "rx_pkts": 80, "sent_pkts": 100, "retx_pkts": 3}
    only = {"rx_wire_bytes": 250_000, "rx_payload_bytes": 240_000, "rx_pkts": 166, "sent_pkts": 200, "retx_pkts": 1}
    sf1 |= {"rtt_count": 10, "rtt_sum_us": 200_000, "lost_pkts": 8, "rto_count": 1, "rto_wait_ns": 250_000_000}
    sf2 |= {"rtt_count": 30, "rtt_sum_us": 1_200_000, "lost_pkts": 5, "loss_events": 2, "undo_count": 1}
    subflow = counting({"flow": "mp", "subflow": "sf1"}, sf1, times) + counting(
        {"flow": "mp", "subflow": "sf2"}, sf2, times
    )
    subflow += counting({"flow": "tcp", "subflow": "only"}, only, times)
    for row in subflow:
        # 20 packets in the first half of the window, 40 in the second: 20 until 6 s, then 40.
        row["cwnd_pkts"] = {"sf1": 20 if row["t"] < 6 else 40, "sf2": 7, "only": 11}[row["subflow"]]
        row["rtt_us"] = {"sf1": 1000 * (10 + row["t"]), "sf2": 50_000, "only": None}[row["subflow"]]
    mp = {"delivered_bytes": 550_000, "reinjected_pkts": 2, "blocked_ns": 30_000_000}
    mp |= {"ooo_pkts": 41, "ooo_delay_sum_ns": 41 * 6_000_000, "reorder_depth_sum_pkts": 123}
    flow = counting({"flow": "mp"}, mp, times)
    flow += counting({"flow": "tcp"}, {"delivered_bytes": 225_000, "duplicate_pkts": 6}, times)
    for row in flow:
        row["ooo_bytes"] = 900 if row["flow"] == "mp" and row["t"] >= 8 else 0
        row["ooo_delay_max_ns"] = {2: 77_000_000, 5: 31_000_000}.get(row["t"], 12_000_000) if row["flow"] == "mp" else 0
        row["reorder_depth_max_pkts"] = {2: 50, 7: 17}.get(row["t"], 4) if row["flow"] == "mp" else 0
    a = {
        "departed_bytes": 750_000,
        "arrived_pkts": 600,
        "dropped_random_pkts": 6,
        "dropped_queue_pkts": 94,
        "marked_pkts": 30,
    }
    b = {"departed_bytes": 125_000, "arrived_pkts": 90, "dropped_queue_pkts": 9}
    link = counting({"link": "A"}, a | {"queue_delay_sum_ns": 2_000_000_000}, times)
    link += counting({"link": "B"}, b | {"queue_delay_sum_ns": 81_000_000}, times)
    link += counting({"link": "A~"}, {"departed_bytes": 40_000, "arrived_pkts": 466}, times)
    for row in link:
        row["queue_delay_max_ns"] = {2: 99_000_000, 3: 7_000_000}.get(row["t"], 1_000_000) if row["link"] == "A" else 0
        row["queue_pkts"] = {"A": 12 if row["t"] >= 4 else 0, "B": 5, "A~": 1}[row["link"]]
    event = [
        {"t": 0.5, "kind": "flow_started", "flow": "mp"},
        {"t": 9.25, "kind": "flow_completed", "flow": "mp"},
        {"t": 0.25, "kind": "flow_started", "flow": "tcp"},
    ]
    s.write(tmp_path / "r", [s.run_row(0, scenario)], flow=flow, subflow=subflow, link=link, event=event)
    return Results.open(tmp_path / "r")


def test_rates_are_differences_over_the_window(results: Results) -> None:
    m = results.metrics()
    assert value(m, "goodput", flow="mp") == pytest.approx(4.4)  # 8 x 550,000 byte/s
    assert value(m, "goodput", flow="tcp") == pytest.approx(1.8)
    # sf1 brought 450 of 600 payload bytes, sf2 150 of 600.
    assert value(m, "goodput", flow="mp", subflow="sf1") == pytest.approx(3.3)
    assert value(m, "goodput", flow="mp", subflow="sf2") == pytest.approx(1.1)
    assert value(m, "throughput", flow="mp", subflow="sf1") == pytest.approx(4.0)
    assert value(m, "throughput", flow="mp") == pytest.approx(5.0)
    assert value(m, "pps", flow="mp") == pytest.approx(410)
    assert value(m, "share", flow="mp", subflow="sf2") == pytest.approx(0.2)
    assert value(m, "pkt_share", flow="mp", subflow="sf2") == pytest.approx(80 / 410)
    # All 5.5 MB from the start at 0.5 s to the last sample that brought some, warm-up included.
    assert value(m, "receiver_rate", flow="mp") == pytest.approx(44 / 9.5)
    assert value(m, "receiver_rate", flow="tcp") == pytest.approx(18 / 9.75)
    assert value(m, "std_1s", flow="mp") == pytest.approx(0.0, abs=1e-9)
    assert value(m, "total_goodput") == pytest.approx(6.2)


def test_losses_and_retransmissions_count_in_the_window_only(results: Results) -> None:
    m = results.metrics()
    assert value(m, "retx", flow="mp", subflow="sf1") == 32  # 4 a second for 8 s
    assert value(m, "retx", flow="mp") == 56
    assert value(m, "retx_rate", flow="mp") == pytest.approx(100 * 7 / 500)
    assert value(m, "plr", flow="mp", subflow="sf2") == pytest.approx(5.0)
    assert value(m, "rto_count", flow="mp") == 8
    assert value(m, "rto_time", flow="mp", subflow="sf1") == pytest.approx(2.0)
    assert value(m, "loss_events", flow="mp", subflow="sf2") == 16
    assert value(m, "undo", flow="mp") == 8
    assert value(m, "reinjected", flow="mp") == 16
    assert value(m, "duplicates", flow="tcp") == 48
    assert value(m, "blk_time", flow="mp") == pytest.approx(0.24)


def test_reordering_counts_delivered_segments(results: Results) -> None:
    m = results.metrics()
    assert value(m, "ooo_delay", flow="mp") == pytest.approx(6)
    assert value(m, "reorder_depth", flow="mp") == pytest.approx(3)
    assert value(m, "ooo_share", flow="mp") == pytest.approx(10)  # 41 of 330 + 80
    # The maxima of the sample at 2 s belong to the interval before the window.
    assert value(m, "ooo_delay_max", flow="mp") == pytest.approx(31)
    assert value(m, "reorder_depth_max", flow="mp") == 17
    # A flow without reordering has no delay of it.
    assert value(m, "ooo_share", flow="tcp") == 0
    for metric in ("ooo_delay", "ooo_delay_max", "reorder_depth", "reorder_depth_max"):
        assert value(m, metric, flow="tcp") is None, metric


def test_windows_and_rtts_are_weighted_as_defined(results: Results) -> None:
    m = results.metrics()
    assert value(m, "cwnd_mean", flow="mp", subflow="sf1") == pytest.approx(30)  # 20 for 4 s, 40 for 4 s
    assert value(m, "cwnd_mean", flow="mp", subflow="sf2") == pytest.approx(7)
    assert value(m, "rtt_mean", flow="mp", subflow="sf1") == pytest.approx(20)
    assert value(m, "rtt_mean", flow="mp", subflow="sf2") == pytest.approx(40)
    assert value(m, "rtt_mean", flow="mp") == pytest.approx(35)  # 10 samples of 20 ms, 30 of 40 ms
    assert value(m, "rtt_p50", flow="mp", subflow="sf1") == pytest.approx(16)  # 12 .. 20 ms
    assert value(m, "rtt_p95", flow="mp", subflow="sf1") == pytest.approx(19.6)
    assert value(m, "rtt_p50", flow="tcp") is None  # never a sample
    assert value(m, "hol_bytes", flow="mp") == pytest.approx(900 * 2 / 8)


def test_links_are_measured_by_what_arrived_and_left(results: Results) -> None:
    m = results.metrics()
    assert value(m, "utilisation", link="A") == pytest.approx(75)  # 6 of 8 Mbit/s
    assert value(m, "utilisation", link="B") == pytest.approx(50)
    assert value(m, "utilisation", link="A~") == pytest.approx(4)
    assert value(m, "loss", link="A") == pytest.approx(100 * 100 / 600)
    assert value(m, "loss_random", link="A") == pytest.approx(1)
    assert value(m, "loss_queue", link="B") == pytest.approx(10)
    assert value(m, "marked", link="A") == pytest.approx(5)
    assert value(m, "queue_delay_mean", link="A") == pytest.approx(4)  # 2 s over 500 accepted packets, every second
    assert value(m, "queue_delay_mean", link="B") == pytest.approx(1)
    # The maximum of the sample at 2 s belongs to the interval before the window.
    assert value(m, "queue_delay_max", link="A") == pytest.approx(7)
    assert value(m, "queue_mean", link="A") == pytest.approx(12 * 6 / 8)
    assert not has(m, "queue_mean", link="A~")


def test_the_sender_s_rate_ends_with_its_application_the_receiver_s_with_the_last_byte(tmp_path: Path) -> None:
    flows = [s.tcp("stops", s.subflow("p", "A"), stop_ns=6 * s.NS), s.tcp("stays", s.subflow("p", "B"))]
    # Sent until 6 s, delivered until 8 s.
    rows = [
        {"flow": "stops", "t": t, "sent_bytes": 400_000 * min(t, 6), "delivered_bytes": 300_000 * min(t, 8)}
        for t in range(11)
    ]
    rows += [{"flow": "stays", "t": t, "sent_bytes": 90_000 * t, "delivered_bytes": 80_000 * t} for t in range(11)]
    event = [{"t": 1, "kind": "flow_started", "flow": "stops"}, {"t": 6, "kind": "flow_stopped", "flow": "stops"}]
    event.append({"t": 2, "kind": "flow_started", "flow": "stays"})
    s.write(tmp_path, [s.run_row(0, s.resolved(LINKS, flows, duration_s=10, warmup_s=3))], flow=rows, event=event)
    m = Results.open(tmp_path).metrics(["sender_rate", "receiver_rate"])
    assert value(m, "sender_rate", flow="stops") == pytest.approx(8 * 2.4 / 5)
    assert value(m, "receiver_rate", flow="stops") == pytest.approx(8 * 2.4 / 7)
    assert value(m, "sender_rate", flow="stays") == pytest.approx(8 * 0.9 / 8)
    assert value(m, "receiver_rate", flow="stays") == pytest.approx(8 * 0.8 / 8)


def test_the_sender_s_rate_has_all_that_was_sent_between_two_samples(tmp_path: Path) -> None:
    """Until 6.5 s, with samples every second: the one at 7 s has all of it."""
    flows = [s.tcp("stops", s.subflow("p", "A"), stop_ns=6_500_000_000)]
    rows = [{"flow": "stops", "t": t, "sent_bytes": 400_000 * min(t, 6.5)} for t in range(11)]
    event = [{"t": 1, "kind": "flow_started", "flow": "stops"}, {"t": 6.5, "kind": "flow_stopped", "flow": "stops"}]
    s.write(tmp_path, [s.run_row(0, s.resolved(LINKS, flows, duration_s=10))], flow=rows, event=event)
    m = Results.open(tmp_path).metrics(["sender_rate"])
    assert value(m, "sender_rate", flow="stops") == pytest.approx(8 * 2.6 / 5.5)


def test_subflows_of_a_flow_that_delivers_nothing_have_a_goodput_of_0(tmp_path: Path) -> None:
    scenario = s.resolved(LINKS, [s.tcp("one", s.subflow("p", "A"), s.subflow("q", "B"))], duration_s=10, warmup_s=2)
    times = [float(t) for t in range(11)]
    subflow = [row for k in "pq" for row in counting({"flow": "one", "subflow": k}, {"rx_payload_bytes": 0}, times)]
    flow = counting({"flow": "one"}, {"delivered_bytes": 0}, times)
    s.write(tmp_path, [s.run_row(0, scenario)], flow=flow, subflow=subflow)
    m = Results.open(tmp_path).metrics(["goodput", "goodput"])
    assert m.select("subflow", "value").rows() == [("p", 0.0), ("q", 0.0), (None, 0.0)]


def test_congestion_is_compared_among_the_bottlenecks(results: Results) -> None:
    # 100 of 600 on A, 9 of 90 on B; A~ carries no data.
    assert value(results.metrics(["cbi"]), "cbi") == pytest.approx(0.6)


def test_a_link_that_loses_nothing_is_a_bottleneck_only_if_it_is_full(tmp_path: Path) -> None:
    links = [s.link("A", "S", "D", 8), s.link("B", "S", "D", 2), s.link("C", "S", "D", 4)]
    flows = [s.tcp(name.lower(), s.subflow("only", name)) for name in "ABC"]
    times = [float(t) for t in range(5)]
    link = counting({"link": "A"}, {"departed_bytes": 800_000, "arrived_pkts": 600, "dropped_queue_pkts": 30}, times)
    link += counting({"link": "B"}, {"departed_bytes": 230_000, "arrived_pkts": 150}, times)  # 92 %
    link += counting({"link": "C"}, {"departed_bytes": 440_000, "arrived_pkts": 300}, times)  # 88 %
    s.write(tmp_path / "full", [s.run_row(0, s.resolved(links, flows, duration_s=4))], link=link)
    assert value(Results.open(tmp_path / "full").metrics(["cbi"]), "cbi") == 0
    # Exactly 90 % is full, and a little less is not.
    for departed, cbi in ((225_000, 0), (224_990, None)):
        almost = [row | {"departed_bytes": round(departed * row["t"])} if row["link"] == "B" else row for row in link]
        place = s.write(tmp_path / str(departed), [s.run_row(0, s.resolved(links, flows, duration_s=4))], link=almost)
        assert value(Results.open(place).metrics(["cbi"]), "cbi") == cbi
    emptier = [row | {"departed_bytes": row["departed_bytes"] // 2} for row in link]
    s.write(tmp_path / "one", [s.run_row(0, s.resolved(links, flows, duration_s=4))], link=emptier)
    assert value(Results.open(tmp_path / "one").metrics(["cbi"]), "cbi") is None


def test_friendliness_compares_the_whole_multipath_flow_with_the_mean_tcp(tmp_path: Path) -> None:
    links = [s.link("A", "S", "M", 8), s.link("B", "S", "M", 10), s.link("C", "M", "D", 100), s.link("E", "S", "D", 9)]
    flows = [
        s.tcp("mp", s.subflow("sf1", "A", "C"), s.subflow("sf2", "A", "C"), s.subflow("sf3", "B", "C")),
        s.tcp("x", s.subflow("p", "A")),
        s.tcp("y", s.subflow("p", "A")),
        s.tcp("z", s.subflow("p", "B", "C")),
        # Two TCP flows by themselves, on a link that no multipath flow uses.
        s.tcp("v", s.subflow("p", "E")),
        s.tcp("w", s.subflow("p", "E")),
    ]
    rates = {("mp", "sf1"): 100, ("mp", "sf2"): 150, ("mp", "sf3"): 375, ("x", "p"): 500, ("y", "p"): 125}
    rates |= {("z", "p"): 250, ("v", "p"): 300, ("w", "p"): 700}
    subflow = [
        row
        for (flow, part), rate in rates.items()
        for row in counting({"flow": flow, "subflow": part}, {"rx_wire_bytes": 1000 * rate}, [0.0, 1.0, 2.0, 3.0])
    ]
    s.write(tmp_path, [s.run_row(0, s.resolved(links, flows, duration_s=3))], subflow=subflow)
    m = Results.open(tmp_path).metrics(["friendliness", "equal_share"])
    assert value(m, "friendliness", link="A") == pytest.approx(250 / 312.5)
    assert value(m, "friendliness", link="B") == pytest.approx(1.5)
    assert value(m, "friendliness", link="C") == pytest.approx(625 / 250)
    assert not has(m, "friendliness", link="E")
    # A gives 8 / 3 = 2.67 Mbit/s to each of three connections, B 10 / 2 = 5, C 50.
    assert value(m, "equal_share", flow="mp") == pytest.approx(2 / (8 / 3))
    assert value(m, "equal_share", flow="x") == pytest.approx(4 / (8 / 3))
    assert value(m, "equal_share", flow="z") == pytest.approx(2 / 5)


def rtt_rows(flow: str, part: str, millis: list[float | None], step_s: float) -> list[dict[str, Any]]:
    return [
        {"flow": flow, "subflow": part, "t": n * step_s, "rtt_us": None if rtt is None else 1000 * rtt}
        for n, rtt in enumerate(millis)
    ]


def test_rtts_are_correlated_by_the_smallest_of_each_tenth_of_a_second(tmp_path: Path) -> None:
    flows = [
        s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B")),
        s.tcp("half", s.subflow("sf1", "A"), s.subflow("sf2", "B")),
        s.tcp("still", s.subflow("sf1", "A"), s.subflow("sf2", "B")),
        s.tcp("three", s.subflow("sf1", "A"), s.subflow("sf2", "B"), s.subflow("sf3", "B")),
    ]
    # Two samples a bin; the smallest are 1, 2, 3, 4 and 2, 1, 4, 3: r = 3 / 5. Bins where one has none do not count.
    one = [1, 9, 8, 2, 3, 3.5, 4, 7, 50, None]
    other = [2, 2, 1, 30, 4, 6, 3, 5, None, None]
    subflow = rtt_rows("mp", "sf1", one, 0.05) + rtt_rows("mp", "sf2", other, 0.05)
    subflow += rtt_rows("half", "sf1", one, 0.05) + rtt_rows("half", "sf2", [None] * 10, 0.05)
    subflow += rtt_rows("still", "sf1", [5] * 10, 0.05) + rtt_rows("still", "sf2", other, 0.05)
    for part in ("sf1", "sf2", "sf3"):
        subflow += rtt_rows("three", part, one, 0.05)
    scenario = s.resolved(LINKS, flows, duration_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=50)], subflow=subflow)
    m = Results.open(tmp_path).metrics(["rtt_correlation"])
    assert value(m, "rtt_correlation", flow="mp") == pytest.approx(0.6)
    assert not has(m, "rtt_correlation", flow="half")
    assert not has(m, "rtt_correlation", flow="three")
    assert value(m, "rtt_correlation", flow="still") is None


def test_three_tenths_of_a_second_are_enough_and_begin_with_the_window(tmp_path: Path) -> None:
    """From 0.07 s on; the smallest are 1, 2, 4 and 1, 3, 2."""
    flows = [s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"))]
    subflow = rtt_rows("mp", "sf1", [99, 98, 1, 9, 8, 2, 4, 7], 0.05)
    subflow += rtt_rows("mp", "sf2", [97, 96, 6, 1, 3, 5, 9, 2], 0.05)
    scenario = s.resolved(LINKS, flows, duration_s=0.37, warmup_s=0.07)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=50)], subflow=subflow)
    m = Results.open(tmp_path).metrics(["rtt_correlation"])
    assert value(m, "rtt_correlation", flow="mp") == pytest.approx(1 / (42 / 9 * 2) ** 0.5)


def test_a_tenth_of_a_second_ends_just_before_the_next_one(tmp_path: Path) -> None:
    """The smallest of the first flow are 1, 7, 4; the other one has a sample in two tenths only."""
    times = [0.0, 0.099999999, 0.1, 0.2]
    subflow = list[dict[str, Any]]()
    for flow, part, rtts in (
        ("mp", "sf1", [5, 1, 7, 4]), ("mp", "sf2", [2, 6, 3, 9]), ("few", "sf1", [5, 4, 7]), ("few", "sf2", [2, 6, 3]),
    ):  # fmt: skip
        subflow += [{"flow": flow, "subflow": part, "t": t, "rtt_us": rtt} for t, rtt in zip(times, rtts, strict=False)]
    flows = [s.tcp(name, s.subflow("sf1", "A"), s.subflow("sf2", "B")) for name in ("mp", "few")]
    s.write(tmp_path, [s.run_row(0, s.resolved(LINKS, flows, duration_s=1))], subflow=subflow)
    m = Results.open(tmp_path).metrics(["rtt_correlation"])
    # Deviations -3, 3, 0 and -8/3, -5/3, 13/3: their products add up to 3, their squares to 18 and 86/3.
    assert value(m, "rtt_correlation", flow="mp") == pytest.approx(3 / (18 * 86 / 3) ** 0.5)
    assert value(m, "rtt_correlation", flow="few") is None


def test_a_decrease_is_mild_if_it_leaves_more_than_half_and_a_packet(tmp_path: Path) -> None:
    flows = [s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"))]
    steady = {"ssthresh_pkts": 10, "rtt_us": 100_000}
    subflow = [{"flow": "mp", "subflow": "sf1", "t": float(t), "cwnd_pkts": 40, **steady} for t in range(10)]
    subflow += [{"flow": "mp", "subflow": "sf2", "t": float(t), "cwnd_pkts": 24, **steady} for t in range(10)]
    subflow[6] |= {"state": "recovery"}
    subflow[7] |= {"ssthresh_pkts": None}
    subflow[8] |= {"ssthresh_pkts": 41}
    # The last of sf2, whose RTT reaches to the end of the window.
    subflow[18] |= {"rtt_us": 1_000_000}
    lost = [
        # Half and a packet is 21: 25 (0.625) is mild, 21 and 20 are not.
        ("sf1", 2.05, 25), ("sf1", 3.1, 21), ("sf1", 4.1, 20), ("sf1", 4.05, 22),
        # Before the window, too long after the sample, in recovery, in slow start, after the window.
        ("sf1", 0.05, 39), ("sf1", 5.11, 39), ("sf1", 6.05, 39), ("sf1", 7.05, 39), ("sf1", 8.05, 39),
        ("sf1", 9.05, 39), ("sf1", 9, 39), ("sf1", 5.100_05, 39),
        # Half and a packet is 13.
        ("sf2", 3.05, 18), ("sf2", 2.0, 18), ("sf2", 9, 18),
    ]  # fmt: skip
    event = [{"t": t, "kind": "loss_event", "flow": "mp", "subflow": part, "value": left} for part, t, left in lost]
    event.append({"t": 2.06, "kind": "recovery_ended", "flow": "mp", "subflow": "sf1", "value": 39})
    scenario = s.resolved(LINKS, flows, duration_s=9, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario)], subflow=subflow, event=event)
    m = Results.open(tmp_path).metrics(["decrease_mild"])
    assert value(m, "decrease_mild", flow="mp", subflow="sf1") == pytest.approx(50)
    assert value(m, "decrease_mild", flow="mp", subflow="sf2") == pytest.approx(100)
    assert value(m, "decrease_mild", flow="mp") == pytest.approx(60)


def test_throughput_varies_between_the_seconds_of_the_window(tmp_path: Path) -> None:
    """The window begins at a quarter, 1.25 s; its seconds have 1, 3 and 8 Mbit/s."""
    flows = [s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"))]
    subflow, arrived = list[dict[str, Any]](), 0
    for quarter in range(18):
        t = quarter / 4
        subflow += [{"flow": "mp", "subflow": "sf1", "t": t, "rx_wire_bytes": arrived}]
        subflow += [{"flow": "mp", "subflow": "sf2", "t": t, "rx_wire_bytes": 7 * quarter}]
        mbps = 9 if t < 1.25 else 1 if t < 2.25 else 3 if t < 3.25 else 8
        arrived += round(mbps * 1e6 / 8 / 4)
    scenario = s.resolved(LINKS, flows, duration_s=4.25, warmup_s=1.25)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=250)], subflow=subflow)
    # The mean is 4, and the squares of the differences are 9, 1 and 16.
    found = value(Results.open(tmp_path).metrics(["std_1s"]), "std_1s", flow="mp")
    assert found == pytest.approx(13**0.5)


def test_one_segment_that_waited_is_the_largest_depth(tmp_path: Path) -> None:
    flow = [{"flow": "t", "t": float(t), "reorder_depth_max_pkts": int(t == 3)} for t in range(6)]
    flow += [{"flow": "u", "t": float(t), "reorder_depth_max_pkts": 0} for t in range(6)]
    flows = [s.tcp("t", s.subflow("p", "A")), s.tcp("u", s.subflow("p", "B"))]
    s.write(tmp_path, [s.run_row(0, s.resolved(LINKS, flows, duration_s=5, warmup_s=1))], flow=flow)
    m = Results.open(tmp_path).metrics(["reorder_depth_max"])
    assert value(m, "reorder_depth_max", flow="t") == 1
    assert value(m, "reorder_depth_max", flow="u") is None


def test_the_state_of_a_closed_subflow_counts_no_more(tmp_path: Path) -> None:
    """Window 1 to 9 s. sf1 is established from 2 to 6 s, and its last state stands in all later samples."""
    subflow = []
    for t in range(10):
        state = "handshake" if t < 2 else "open" if t < 4 else "recovery" if t < 6 else "closed"
        seen = {"cwnd_pkts": 90, "rtt_us": 80_000, "srtt_us": 60_000}
        seen = {2: {"cwnd_pkts": 10, "rtt_us": 20_000, "srtt_us": 20_000}, 3: {"cwnd_pkts": 10}}.get(t, {}) or seen
        subflow += [{"flow": "mp", "subflow": "sf1", "t": float(t), "state": state, **seen}]
        live = {"cwnd_pkts": 4 + t, "rtt_us": 30_000 + 1000 * t, "srtt_us": 33_000}
        subflow += [{"flow": "mp", "subflow": "sf2", "t": float(t), "state": "open", **live}]
    for row in subflow:
        if row["subflow"] == "sf1" and row["t"] == 3:
            row |= {"rtt_us": 24_000, "srtt_us": 22_000}
    scenario = s.resolved(LINKS, [s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"))], duration_s=9, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=1000)], subflow=subflow)
    m = Results.open(tmp_path).metrics(["cwnd_mean", "srtt_mean", "rtt_p50", "rtt_p95"])
    assert value(m, "cwnd_mean", flow="mp", subflow="sf1") == pytest.approx((10 + 10 + 90 + 90) / 4)
    assert value(m, "srtt_mean", flow="mp", subflow="sf1") == pytest.approx((20 + 22 + 60 + 60) / 4)
    assert value(m, "rtt_p50", flow="mp", subflow="sf1") == pytest.approx((24 + 80) / 2)
    assert value(m, "rtt_p95", flow="mp", subflow="sf1") == pytest.approx(80)
    assert value(m, "cwnd_mean", flow="mp", subflow="sf2") == pytest.approx(8.5)
    assert value(m, "rtt_p50", flow="mp", subflow="sf2") == pytest.approx(35)
    # Of both subflows: 20, 24, 31 to 39, 80 and 80 ms.
    assert value(m, "rtt_p50", flow="mp") == pytest.approx(35)


def test_a_span_of_time_stands_for_the_window(results: Results) -> None:
    m = compute(results, span=(4 * s.NS, 7 * s.NS))
    assert value(m, "goodput", flow="mp") == pytest.approx(4.4)
    assert value(m, "retx", flow="mp", subflow="sf1") == 12  # 4 a second for 3 s
    assert value(m, "cwnd_mean", flow="mp", subflow="sf1") == pytest.approx(80 / 3)  # 20 for 2 s, 40 for 1 s
    assert value(m, "rtt_p50", flow="mp", subflow="sf1") == pytest.approx(15.5)  # 14 .. 17 ms
    assert value(m, "ideal", flow="tcp") == pytest.approx(5)
    # The whole run's, whatever the span.
    assert value(m, "ftt", flow="mp") == pytest.approx(8.75)
    assert compute(results, span=(2 * s.NS, 10 * s.NS)).equals(compute(results))


def test_a_flow_counts_in_a_bin_for_as_long_as_it_exists(tmp_path: Path) -> None:
    schedule = [{"at_ns": 4 * s.NS, "rate_bps": 2_000_000}]
    links = [s.link("A", "S", "D", 8, schedule=schedule)]
    flows = [
        s.tcp("whole", s.subflow("p", "A")),
        s.tcp("part", s.subflow("p", "A"), start_ns=3 * s.NS, stop_ns=6 * s.NS),
    ]
    rows = [{"flow": "whole", "t": float(t), "delivered_bytes": 125_000 * t * t} for t in range(9)]
    rows += [{"flow": "part", "t": float(t), "delivered_bytes": 250_000 * min(max(t - 3, 0), 3)} for t in range(9)]
    s.write(tmp_path, [s.run_row(0, s.resolved(links, flows, duration_s=8, warmup_s=7))], flow=rows)
    results = Results.open(tmp_path)
    m = binned(results, ["goodput", "ideal"], [(0, 4 * s.NS), (4 * s.NS, 8 * s.NS), (6 * s.NS, 7 * s.NS)])
    bins = [m.filter(bin=at) for at in range(3)]
    assert [value(b, "goodput", flow="whole") for b in bins] == pytest.approx([4, 12, 13])
    assert [value(b, "goodput", flow="part") for b in bins[:2]] == pytest.approx([2, 2])
    assert not has(bins[2], "goodput", flow="part")
    # Alone on 8 for 3 s, then half; half of 2 for 2 s, then alone.
    assert [value(b, "ideal", flow="whole") for b in bins] == pytest.approx([7, 1.5, 2])
    assert binned(results, ["goodput"], []).columns == m.columns


@pytest.mark.parametrize("span", [(-1, 5), (5, 5), (7, 3), (2, 11)])
def test_a_span_outside_of_the_run_is_refused(results: Results, span: tuple[int, int]) -> None:
    with pytest.raises(MptcplabError, match=r"(?s)not a span of run 0: .*within 0 s and 10 s"):
        compute(results, ["goodput"], (span[0] * s.NS, span[1] * s.NS))


def test_fair_share_and_benefit(results: Results) -> None:
    m = results.metrics()
    # Max-min over connections: 8 + 2 Mbit/s for two connections, and A alone can give tcp its 5.
    assert value(m, "ideal", flow="mp") == pytest.approx(5)
    assert value(m, "ideal", flow="tcp") == pytest.approx(5)
    # By subflow A is shared by two, and B is sf2's; in proportion as by max-min.
    assert value(m, "ideal_subflow", flow="mp", subflow="sf1") == pytest.approx(4)
    assert value(m, "ideal_subflow", flow="mp", subflow="sf2") == pytest.approx(2)
    assert value(m, "ideal_subflow", flow="mp") == pytest.approx(6)
    assert value(m, "ideal_subflow", flow="tcp") == pytest.approx(4)
    assert value(m, "ideal_propfair", flow="mp") == pytest.approx(5)
    assert value(m, "ratio", flow="mp") == pytest.approx(4.4 / 5)
    assert value(m, "ratio_wire", flow="tcp") == pytest.approx(2.0 / 5)
    # Throughputs 5 and 2 Mbit/s: 49 / (2 x 29).
    assert value(m, "jain") == pytest.approx(49 / 58)
    assert value(m, "jain_weighted") == pytest.approx(49 / 58)
    # Each path offers its fair part in payload: A 8 / 2 connections, B 2; frames of 1514 carry 1428.
    best, both = 4 * 1428 / 1514, 6 * 1428 / 1514
    assert value(m, "agr_bf", flow="mp") == pytest.approx((4.4 - best) / (both - best))
    # By capacity A alone offers 8: 4.4 is less than the best path.
    assert value(m, "agr_bf_capacity", flow="mp") == pytest.approx((4.4 - 2 * best) / (2 * best))
    assert not has(m, "agr_bf", flow="tcp")


def test_a_connection_on_two_paths_benefits_also_behind_one_on_a_single_path(tmp_path: Path) -> None:
    flows = [s.tcp("first", s.subflow("p", "A")), s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"))]
    flow = [{"flow": f["name"], "t": float(t), "delivered_bytes": 250_000 * t} for f in flows for t in range(6)]
    subflow = [{"flow": "first", "subflow": "p", "t": float(t)} for t in range(6)]
    subflow += [{"flow": "mp", "subflow": part, "t": float(t)} for part in ("sf1", "sf2") for t in range(6)]
    scenario = s.resolved(LINKS, flows, duration_s=5, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario)], flow=flow, subflow=subflow)
    m = Results.open(tmp_path).metrics(["agr_bf_capacity"])
    # 2 Mbit/s; A alone offers 8 in frames of 1514 bytes with 1428 of payload.
    best = 8 * 1428 / 1514
    assert value(m, "agr_bf_capacity", flow="mp") == pytest.approx((2 - best) / best)
    assert not has(m, "agr_bf_capacity", flow="first")


def test_only_finished_transfers_have_a_time(results: Results) -> None:
    m = results.metrics()
    assert value(m, "ftt", flow="mp") == pytest.approx(8.75)
    assert not has(m, "ftt", flow="tcp")


def test_a_socket_is_measured_by_what_it_showed_in_the_whole_run(tmp_path: Path) -> None:
    """Warm-up included, and apart for each flow and run; the value of a flow that showed nothing is absent."""
    flows = [s.tcp(name, s.subflow("x", "A"), s.subflow("y", "B")) for name in ("f", "g", "h")]
    scenario = s.resolved(LINKS, flows, duration_s=10, warmup_s=5)
    shown = [
        (0, 1.0, "socket_cwnd", "f", 14_480),
        (0, 1.0, "socket_retx", "f", 0),
        (0, 2.0, "socket_cwnd", "f", 57_920),
        (0, 3.0, "socket_cwnd", "f", 28_960),
        (0, 7.0, "socket_retx", "f", 6),
        (0, 2.0, "socket_cwnd", "g", 14_480),
        (0, 2.0, "socket_retx", "g", 2),
        (0, 4.0, "flow_completed", "h", 99),
        (1, 1.0, "socket_cwnd", "f", 20_000),
        (1, 9.0, "socket_cwnd", "f", 21_000),
    ]
    event = [{"run": run, "t": t, "kind": kind, "flow": flow, "value": value} for run, t, kind, flow, value in shown]
    s.write(tmp_path, [s.run_row(run, scenario, rep=run) for run in (0, 1)], event=event)
    found = compute(Results.open(tmp_path), ["iperf_cwnd_range", "iperf_retr"])
    assert value(found, "iperf_cwnd_range", flow="f") == pytest.approx(43.44)
    assert value(found, "iperf_cwnd_range", flow="g") == 0
    assert value(found, "iperf_cwnd_range", run=1, flow="f") == pytest.approx(1)
    assert (value(found, "iperf_retr", flow="f"), value(found, "iperf_retr", flow="g")) == (6, 2)
    assert found.height == 5


def test_every_metric_has_documentation_and_levels() -> None:
    for metric in REGISTRY.values():
        assert metric.doc.endswith("."), metric.name
        assert set(metric.levels) <= {"run", "flow", "subflow", "link"}, metric.name


def test_values_come_only_at_declared_levels(results: Results) -> None:
    entity = pl.coalesce(
        pl.when(pl.col("link").is_not_null()).then(pl.lit("link")),
        pl.when(pl.col("subflow").is_not_null()).then(pl.lit("subflow")),
        pl.when(pl.col("flow").is_not_null()).then(pl.lit("flow")),
        pl.lit("run"),
    )
    found = results.metrics().group_by("metric").agg(level=entity.unique())
    for name, levels in found.iter_rows():
        assert set(levels) <= set(REGISTRY[name].levels), name


def test_without_samples_counters_work_and_the_rest_is_absent(tmp_path: Path) -> None:
    scenario = s.resolved(LINKS, [s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"))], duration_s=10, warmup_s=2)
    rows = [0.0, 2.0, 10.0]
    flow = counting({"flow": "mp"}, {"delivered_bytes": 300_000}, rows)
    subflow = counting({"flow": "mp", "subflow": "sf1"}, {"rx_wire_bytes": 100_000}, rows)
    subflow += counting({"flow": "mp", "subflow": "sf2"}, {"rx_wire_bytes": 50_000}, rows)
    link = counting({"link": "A"}, {"departed_bytes": 100_000}, rows)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=None)], flow=flow, subflow=subflow, link=link)
    m = Results.open(tmp_path).metrics()
    assert value(m, "goodput", flow="mp") == pytest.approx(2.4)
    assert value(m, "utilisation", link="A") == pytest.approx(10)
    for metric in REGISTRY.values():
        if metric.needs_samples:
            assert not has(m, metric.name), metric.name


def test_rows_are_in_the_order_of_the_trace_whatever_names_were_met_before(tmp_path: Path) -> None:
    def metrics_of(*names: str) -> pl.DataFrame:
        scenario = s.resolved(LINKS, [s.tcp(name, s.subflow("only", "A")) for name in names], duration_s=10)
        rows = [
            {"flow": name, "subflow": "only", "t": float(t), "rx_wire_bytes": 1000 * (k + 1) * t * t}
            for k, name in enumerate(names)
            for t in range(11)
        ]
        directory = tmp_path / "-".join(names)
        s.write(directory, [s.run_row(0, scenario)], subflow=rows)
        results.append(Results.open(directory))
        return results[-1].metrics(["std_1s", "cwnd_mean"])

    # Names that no other test has; whoever holds the first trace keeps them numbered.
    results: list[Results] = []
    for order in (("met-early", "met-late"), ("met-late", "met-early")):
        found = metrics_of(*order)
        for metric in ("std_1s", "cwnd_mean"):
            assert tuple(found.filter(metric=metric)["flow"]) == order


def test_a_flow_that_stops_early_is_measured_until_then(tmp_path: Path) -> None:
    scenario = s.resolved(LINKS, [s.tcp("one", s.subflow("only", "A"), stop_ns=6 * s.NS)], duration_s=10, warmup_s=2)
    rows = [{"flow": "one", "t": float(t), "delivered_bytes": 200_000 * min(t, 6)} for t in range(11)]
    s.write(tmp_path, [s.run_row(0, scenario)], flow=rows)
    m = Results.open(tmp_path).metrics(["goodput"])
    assert value(m, "goodput", flow="one") == pytest.approx(1.6)


def test_a_flow_that_stops_between_two_samples_is_measured_until_the_first(tmp_path: Path) -> None:
    """Samples every second: until 6.5 s, and a file that is complete at 4.5 s although it might take until 7.5 s."""
    flows = [
        s.tcp("stops", s.subflow("p", "A"), stop_ns=6_500_000_000),
        s.tcp("file", s.subflow("p", "B"), traffic={"size_bytes": 450_000}, stop_ns=7_500_000_000),
    ]
    scenario = s.resolved(LINKS, flows, duration_s=10, warmup_s=2)
    flow, subflow = [], []
    for t in range(11):
        for name, rate, end in (("stops", 200_000, 6.5), ("file", 100_000, 4.5)):
            flow.append({"flow": name, "t": t, "delivered_bytes": round(rate * min(t, end))})
            subflow.append({"flow": name, "subflow": "p", "t": t, "rx_wire_bytes": round(1.1 * rate * min(t, end))})
    event = [{"t": 0, "kind": "flow_started", "flow": name} for name in ("stops", "file")]
    event.append({"t": 4.5, "kind": "flow_completed", "flow": "file"})
    s.write(tmp_path, [s.run_row(0, scenario)], flow=flow, subflow=subflow, event=event)
    m = Results.open(tmp_path).metrics(["goodput", "throughput"])
    assert value(m, "goodput", flow="stops") == pytest.approx(1.6)
    assert value(m, "throughput", flow="stops", subflow="p") == pytest.approx(1.76)
    assert value(m, "goodput", flow="file") == pytest.approx(0.8)


def test_a_row_too_old_for_the_edge_gives_null(tmp_path: Path) -> None:
    scenario = s.resolved(LINKS, [s.tcp("one", s.subflow("only", "A"))], duration_s=10, warmup_s=2)
    rows = counting({"flow": "one"}, {"delivered_bytes": 1000}, [0.0, 2.0, 7.0])
    s.write(tmp_path, [s.run_row(0, scenario)], flow=rows)
    assert value(Results.open(tmp_path).metrics(["goodput"]), "goodput", flow="one") is None


def test_runs_keep_their_own_numbers(tmp_path: Path) -> None:
    """Two runs of different length, warm-up and rate: the values of one do not affect those of the other."""
    first = s.resolved(LINKS, [s.tcp("f", s.subflow("p", "A"))], duration_s=4, warmup_s=1)
    second = s.resolved(LINKS, [s.tcp("f", s.subflow("q", "B"))], duration_s=8, warmup_s=3)
    flow = [{**r, "run": 0} for r in counting({"flow": "f"}, {"delivered_bytes": 125_000}, [0.0, 1, 2, 3, 4])]
    flow += [
        {**r, "run": 1} for r in counting({"flow": "f"}, {"delivered_bytes": 250_000}, [float(t) for t in range(9)])
    ]
    subflow = [{"run": 0, "flow": "f", "subflow": "p", "t": float(t), "cwnd_pkts": 5} for t in range(5)]
    subflow += [{"run": 1, "flow": "f", "subflow": "q", "t": float(t), "cwnd_pkts": t} for t in range(9)]
    s.write(tmp_path, [s.run_row(0, first), s.run_row(1, second, cc="olia")], flow=flow, subflow=subflow)
    m = Results.open(tmp_path).metrics()
    assert value(m, "goodput", run=0, flow="f") == pytest.approx(1.0)
    assert value(m, "goodput", run=1, flow="f") == pytest.approx(2.0)
    assert value(m, "cwnd_mean", run=0, flow="f", subflow="p") == pytest.approx(5)
    assert value(m, "cwnd_mean", run=1, flow="f", subflow="q") == pytest.approx(5)  # 3, 4, 5, 6, 7


@pytest.mark.parametrize("rows", [1, 30, 100])
def test_batches_of_runs_and_parts_of_a_run_give_the_same_as_all_at_once(
    results: Results, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one row, every flow and every link of a run is measured by itself."""
    order = ("metric", "run", "flow", "subflow", "link")
    at_once = results.metrics(REGISTRY).sort(order)
    monkeypatch.setattr("mptcplab.trace.samples.BATCH_ROWS", rows)
    assert results.metrics(REGISTRY).sort(order).equals(at_once)


def test_values_in_pieces_are_those_of_the_whole(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two algorithms with two repetitions, each run a batch: tables of many runs are made from pieces."""
    monkeypatch.setattr("mptcplab.trace.samples.BATCH_ROWS", 1)
    results = mptcplab.run(scenario, duration="1500 ms", settings={"warmup": "500 ms"}, progress=False)
    whole = compute(results)
    assert pl.concat(pieces(results)).equals(whole)
    assert whole["run"].n_unique() == 4
    for name in ("goodput", "cwnd_mean", "utilisation"):
        values = values_of(results, name)
        assert values.equals(whole.filter(pl.col("metric") == name)), name
        assert values["run"].unique().to_list() == [0, 1, 2, 3], name
    assert summary(results).equals(summarise(whole, results.configs))
    assert results.report(figures=False).with_name("metrics.csv").read_text() == results.metrics().write_csv()


def test_batches_do_not_repeat_what_comes_from_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch gave the transfer times of all runs."""
    scenario = s.resolved(LINKS, [s.tcp("f", s.subflow("p", "A"))], duration_s=9)
    event = [{"run": run, "t": 1.0, "kind": "flow_started", "flow": "f"} for run in (0, 1)]
    event += [{"run": run, "t": 4.0 + run, "kind": "flow_completed", "flow": "f"} for run in (0, 1)]
    flow = [{"run": run, "flow": "f", "t": 0.0} for run in (0, 1)]
    s.write(
        tmp_path,
        [s.run_row(run, scenario, rep=run) for run in (0, 1)],
        event=event,
        flow=flow,
        subflow=[{"run": run, "flow": "f", "subflow": "p", "t": 0.0} for run in (0, 1)],
    )
    monkeypatch.setattr("mptcplab.trace.samples.BATCH_ROWS", 1)
    m = Results.open(tmp_path).metrics(["ftt"])
    assert m["value"].to_list() == [3, 4]


def test_an_unknown_metric_is_named_with_the_nearest_one(results: Results) -> None:
    with pytest.raises(MptcplabError, match=r"no such metric: 'goodputt'\n\nhint: did you mean 'goodput'\?"):
        results.metrics(["goodputt"])
