"""Times until a flow has converged, responded or recovered, against curves drawn by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import synthetic as s
from test_metrics import has, value

from mptcplab.metrics import compute, dynamics
from mptcplab.report import tables
from mptcplab.results import Results

STEP_S = 0.5


def curve(flow: str, part: str, kbytes_per_s: Callable[[float], float], **columns: Any) -> list[dict[str, Any]]:
    """Samples every half a second; the rate holds from each one to the next. Columns may depend on the time."""
    rows, arrived = [], 0.0
    for n in range(61):
        t = n * STEP_S
        given = {name: column(t) if callable(column) else column for name, column in columns.items()}
        rows.append({"flow": flow, "subflow": part, "t": t, "rx_wire_bytes": round(arrived), **given})
        arrived += 1000 * kbytes_per_s(t) * STEP_S
    return rows


def began(flow: str, t: float) -> dict[str, Any]:
    return {"kind": "flow_started", "flow": flow, "t": t}


def ended(flow: str, t: float) -> dict[str, Any]:
    return {"kind": "flow_stopped", "flow": flow, "t": t}


LINKS = [s.link("A", "S", "D", 8), s.link("B", "S", "D", 4), s.link("C", "S", "D", 2)]
MP = s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """30 s, 2 s of warm-up. `gone` leaves A at 10 s, `late` comes to B at 24 s; `far` is alone on C, and `udp` on A."""
    flows = [
        MP,
        s.tcp("gone", s.subflow("p", "A"), stop_ns=10 * s.NS),
        s.tcp("late", s.subflow("p", "B"), start_ns=23 * s.NS),
        s.tcp("far", s.subflow("p", "C")),
        s.tcp("saw", s.subflow("p", "A")),
    ]
    # sf1 has what is free from 13 s on, its window from 12 s on; sf2 does not change.
    subflow = curve("mp", "sf1", lambda t: 100 if t < 13 else 190, cwnd_pkts=lambda t: 10 if t < 12 else 20)
    subflow += curve("mp", "sf2", lambda _: 10, cwnd_pkts=7)
    subflow += curve("gone", "p", lambda t: 300 if t < 10 else 0, cwnd_pkts=30)
    # In slow start until 25.5 s.
    subflow += curve("late", "p", lambda t: 0 if t < 24 else 5 if t < 25.5 else 60, cwnd_pkts=lambda t: 5 + t)
    subflow += curve("far", "p", lambda t: 50 * (t // 10), cwnd_pkts=9)
    # Two seconds all, two seconds nothing; its window is at 14 at 14 s and at 17 from 15.5 s on.
    subflow += curve(
        "saw", "p", lambda t: 400 if t % 4 < 2 else 0, cwnd_pkts=lambda t: min(2 * t - 14, 17) if t > 8 else 1
    )
    event = [began("mp", 0.0), began("gone", 0.5), began("late", 24), began("far", 1), began("saw", 1.5)]
    event.append(ended("gone", 10))
    scenario = s.resolved(LINKS, flows, duration_s=30, warmup_s=2)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow, event=event)
    return Results.open(tmp_path)


def test_convergence_is_the_time_until_every_average_stays_in_the_band(results: Results) -> None:
    m = results.metrics(["convergence"])
    # After 10 s: the mean of 17 .. 24 s is 200 kB/s. The average that begins at 12.5 s has 155, at 13 s 200.
    # After 24 s nothing changes for mp: 0. The mean is 1.5.
    assert value(m, "convergence", flow="mp") == pytest.approx(1.5)
    # Averages reach 60 kB/s from 25.5 s on, and the last of them begins at 29 s: not yet 5 s.
    assert value(m, "convergence", flow="late") is None


def test_a_flow_that_never_settles_has_null_and_one_without_changes_has_no_row(results: Results) -> None:
    m = results.metrics(["convergence"])
    assert value(m, "convergence", flow="saw") is None
    assert not has(m, "convergence", flow="far")
    # Its only change is its own end.
    assert not has(m, "convergence", flow="gone")


def test_starts_count_if_they_are_in_the_window(results: Results) -> None:
    m = compute(results, ["convergence"], (0, 10 * s.NS))
    # Between 0 and 1.5 s three flows begin, too soon after one another; from 1.5 s on all is steady but `saw`.
    assert value(m, "convergence", flow="mp") == pytest.approx(0)
    assert value(m, "convergence", flow="gone") == pytest.approx(0)
    # Alone on C since 1 s, with nothing there until 10 s.
    assert value(m, "convergence", flow="far") is None


def test_responsiveness_is_the_time_until_most_of_the_new_window(results: Results) -> None:
    m = results.metrics(["responsiveness"])
    # The mean of 17 .. 24 s is 20, and 16 is exceeded at 12 s.
    assert value(m, "responsiveness", flow="mp", subflow="sf1") == pytest.approx(2)
    assert value(m, "responsiveness", flow="mp") == pytest.approx(2)
    # 2 t - 14, at most 17: 13.6 is exceeded at 14 s.
    assert value(m, "responsiveness", flow="saw", subflow="p") == pytest.approx(4)
    # sf2 shares no link with the flow that stopped, late started afterwards, and far is on other links.
    assert not has(m, "responsiveness", subflow="sf2")
    assert not has(m, "responsiveness", flow="late")
    assert not has(m, "responsiveness", flow="far")


def test_the_end_of_a_file_and_of_a_udp_stream_is_the_end_of_a_competitor(tmp_path: Path) -> None:
    stream = {"name": "udp", "transport": "udp", "start_ns": 0, "stop_ns": 20 * s.NS, "rate_bps": 1_000_000}
    stream |= {"packet_bytes": 1000, "path": ["A"], "on_off": None}
    flows = [MP, s.tcp("file", s.subflow("p", "A"), traffic={"size_bytes": 90_000}), stream]
    # 10, 20 from 11 s, 40 from 24.5 s.
    subflow = curve("mp", "sf1", lambda _: 50, cwnd_pkts=lambda t: 10 if t < 11 else 20 if t < 24.5 else 40)
    event = [began("mp", 0), began("file", 3), {"kind": "flow_completed", "flow": "file", "t": 8}, ended("udp", 20)]
    event += [began("udp", 0.5), ended("file", 9)]
    scenario = s.resolved(LINKS, flows, duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow, event=event)
    m = Results.open(tmp_path).metrics(["responsiveness"])
    # 3 s after the file, 4.5 s after the stream; the end of the file's application is no second end.
    assert value(m, "responsiveness", flow="mp", subflow="sf1") == pytest.approx(3.75)


def test_recovery_counts_from_the_end_of_the_whole_path_s_outage(tmp_path: Path) -> None:
    b = [{"at_ns": 8 * s.NS, "rate_bps": 0}, {"at_ns": 11 * s.NS, "rate_bps": 3_000_000}]
    b += [{"at_ns": 21 * s.NS, "up": False}, {"at_ns": 23 * s.NS, "up": True}, {"at_ns": 29 * s.NS, "up": False}]
    x = [{"at_ns": 10 * s.NS, "up": False}, {"at_ns": 11_500_000_000, "up": True}]
    links = [s.link("A", "S", "D", 8), s.link("B", "S", "M", 4, schedule=b), s.link("X", "M", "D", 9, schedule=x)]
    flows = [
        s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B", "X")),
        s.tcp("t", s.subflow("p", "X")),
        s.tcp("dead", s.subflow("p", "B")),
    ]
    # 80 kB/s before; nothing from 8 s to 13 s; 30 until 14.5 s, then 100; nothing from 21 s to 24 s, then 60 of 100.
    steps = [(8, 80), (13, 0), (14.5, 30), (21, 100), (24, 0), (31, 60)]
    subflow = curve("mp", "sf2", lambda t: next(rate for until, rate in steps if t < until))
    subflow += curve("mp", "sf1", lambda _: 70)
    subflow += curve("t", "p", lambda t: 20 if t < 10 or t >= 12 else 0)
    subflow += curve("dead", "p", lambda t: 20 if t < 8 else 0)
    scenario = s.resolved(links, flows, duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow)
    m = Results.open(tmp_path).metrics(["recovery_time"])
    # B and X together are dead from 8 to 11.5 s: the second from 14 s has (30 + 100) / 2 = 65 of 80, that from 13.5 s
    # 30. After 23 s: that from 23.5 s has 30 of 100, that from 24 s 60. The last outage does not end.
    assert value(m, "recovery_time", flow="mp", subflow="sf2") == pytest.approx((2.5 + 1) / 2)
    # The second from 11.5 s has half of it, which is not more than half.
    assert value(m, "recovery_time", flow="t", subflow="p") == pytest.approx(0.5)
    assert value(m, "recovery_time", flow="dead", subflow="p") is None
    assert not has(m, "recovery_time", subflow="sf1")


def test_outages_without_recovery_are_counted_and_the_mean_time_says_that_it_leaves_them_out(tmp_path: Path) -> None:
    """The mean recovery time of OLIA had two of four runs, those that recovered, and nothing said so."""
    a = [{"at_ns": 8 * s.NS, "up": False}, {"at_ns": 10 * s.NS, "up": True}]
    a += [{"at_ns": 17 * s.NS, "up": False}, {"at_ns": 18 * s.NS, "up": True}]
    b = [{"at_ns": 12 * s.NS, "up": False}, {"at_ns": 13 * s.NS, "up": True}]
    links = [s.link("A", "S", "D", 8, schedule=a), s.link("B", "S", "D", 4, schedule=b), s.link("C", "S", "D", 2)]
    mp = s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"), s.subflow("sf3", "C"), cc="lia")
    flows = [mp, s.tcp("gone", s.subflow("p", "B"), stop_ns=12_500_000_000), s.tcp("idle", s.subflow("p", "B"))]
    scenario = s.resolved(links, flows, duration_s=30, warmup_s=1)
    subflow, event = [], []
    # sf1 recovers 2 s after each outage in run 0 and only from the first in run 1. In run 2 it never does, so that
    # nothing arrives before its second outage; run 3 is the same and does not count. sf2 recovers in run 1 only.
    from_first, from_second, from_b = (12, 12, 99, 99), (20, 99, 99, 99), (99, 14, 99, 99)
    for run in range(4):
        first, second, other = from_first[run], from_second[run], from_b[run]
        rows = curve("mp", "sf1", lambda t, at=first, to=second: 100 if t < 8 or at <= t < 17 or t >= to else 0)
        rows += curve("mp", "sf2", lambda t, at=other: 50 if t < 12 or t >= at else 1)
        rows += curve("mp", "sf3", lambda _: 30) + curve("gone", "p", lambda t: 40 if t < 12 else 0)
        rows += curve("idle", "p", lambda _: 0)
        subflow += [{**row, "run": run} for row in rows]
        event += [{**one, "run": run} for one in (began("mp", 0), began("gone", 0.5), ended("gone", 12.5))]
    runs = [s.run_row(run, scenario, rep=run, sample_ms=500) for run in range(4)]
    status = ["complete"] * 3 + ["invalid"]
    runs = [{**row, "status": one, "status_reason": "late"} for row, one in zip(runs, status, strict=True)]
    s.write(tmp_path, runs, subflow=subflow, event=event)
    results = Results.open(tmp_path)
    m = results.metrics(["not_recovered", "recovery_time"])
    for run, missed in enumerate((0, 1, 1, 1)):
        assert value(m, "not_recovered", run=run, flow="mp", subflow="sf1") == missed
        assert value(m, "not_recovered", run=run, flow="mp", subflow="sf2") == (run != 1)
        assert value(m, "not_recovered", run=run, flow="mp", subflow=None) == missed + (run != 1)
        assert not has(m, "not_recovered", run=run, subflow="sf3")
        # Its connection ended in the outage, and nothing of the other arrived before it.
        assert not has(m, "not_recovered", run=run, flow="gone")
        assert not has(m, "not_recovered", run=run, flow="idle")
    assert value(m, "recovery_time", run=1, flow="mp", subflow="sf1") == pytest.approx(2)
    assert value(m, "recovery_time", run=2, flow="mp", subflow="sf1") is None
    mean = "the metric 'Recovery after an outage' is a mean over those from which it did"
    expected = [
        f"lia: in 2 of 3 runs, subflow mp sf1 did not recover from every outage; {mean}",
        f"lia: in 2 of 3 runs, subflow mp sf2 did not recover from every outage; {mean}",
    ]
    for table in (tables.headline(results, results.summary()), tables.all_metrics(results, results.summary())):
        assert [note for note in table.notes if "did not recover" in note] == expected


def test_a_subflow_that_may_not_send_after_an_outage_is_not_said_not_to_recover(tmp_path: Path) -> None:
    """A is down from 8 to 10 s, B from 14 to 16 s, and nothing comes after. The regular subflow on C always works."""
    a, b = ([{"at_ns": down * s.NS, "up": False}, {"at_ns": up * s.NS, "up": True}] for down, up in ((8, 10), (14, 16)))
    links = [s.link("A", "S", "D", 8, schedule=a), s.link("B", "S", "D", 4, schedule=b), s.link("C", "S", "D", 2)]
    backup = [{"at_ns": 15 * s.NS, "backup": True}]
    flows = [
        s.tcp("kept", s.subflow("sf1", "A"), s.subflow("sf2", "B")),
        s.tcp("stops", {**s.subflow("sf1", "A"), "stop_ns": 9 * s.NS}, s.subflow("sf2", "B"), stop_ns=16_500_000_000),
        s.tcp("backup", {**s.subflow("sf1", "B"), "priority": backup}, s.subflow("sf2", "C")),
        s.tcp("first", {**s.subflow("sf1", "B"), "priority": backup}, {**s.subflow("sf2", "C"), "backup": True}),
    ]
    subflow = []
    for number, flow in enumerate(flows):
        for part, down in (("sf1", 8 if number < 2 else 14), ("sf2", 14 if number < 2 else 99)):
            subflow += curve(flow["name"], part, lambda t, at=down, rate=40 + 10 * number: rate if t < at else 0)
    s.write(
        tmp_path, [s.run_row(0, s.resolved(links, flows, duration_s=30, warmup_s=1), sample_ms=500)], subflow=subflow
    )
    m = Results.open(tmp_path).metrics(["not_recovered"])
    assert value(m, "not_recovered", flow="kept", subflow="sf1") == 1
    assert value(m, "not_recovered", flow="kept", subflow=None) == 2
    assert not has(m, "not_recovered", flow="stops")
    assert not has(m, "not_recovered", flow="backup")
    # Both are backups then, so that both may send.
    assert value(m, "not_recovered", flow="first", subflow="sf1") == 1


def test_the_new_window_is_that_of_the_second_half_and_four_fifths_are_enough(tmp_path: Path) -> None:
    """`gone` leaves at 10 s, so that the second half of the time to the end is from 20 s on."""
    flows = [MP, s.tcp("gone", s.subflow("p", "A", "B"))]
    # The new mean is 20, of which 16 are four fifths: reached at 12 s.
    subflow = curve("mp", "sf1", lambda _: 50, cwnd_pkts=lambda t: 10 if t < 12 else 16 if t < 20 else 20)
    # The sample at 20 s belongs to the second half, and makes the new mean of 21 samples 21: 16 are not enough.
    subflow += curve("mp", "sf2", lambda _: 50, cwnd_pkts=lambda t: 16 if t < 20 else 41 if t == 20 else 20)
    event = [began("mp", 0), began("gone", 0.5), ended("gone", 10)]
    scenario = s.resolved(LINKS, flows, duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow, event=event)
    m = Results.open(tmp_path).metrics(["responsiveness"])
    assert value(m, "responsiveness", flow="mp", subflow="sf1") == pytest.approx(2)
    assert value(m, "responsiveness", flow="mp", subflow="sf2") == pytest.approx(10)


def test_the_responsiveness_of_a_flow_is_the_mean_of_its_subflows(tmp_path: Path) -> None:
    """Two competitors leave A and one leaves B, so that the mean of all three times is another one."""
    flows = [MP, s.tcp("both", s.subflow("p", "A", "B")), s.tcp("second", s.subflow("p", "A"))]
    subflow = curve("mp", "sf1", lambda _: 50, cwnd_pkts=lambda t: 10 if t < 12 else 20 if t < 24 else 40)
    subflow += curve("mp", "sf2", lambda _: 50, cwnd_pkts=lambda t: 10 if t < 16 else 30)
    event = [began("mp", 0), began("both", 0.5), began("second", 0.5), ended("both", 10), ended("second", 20)]
    scenario = s.resolved(LINKS, flows, duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow, event=event)
    m = Results.open(tmp_path).metrics(["responsiveness"])
    assert value(m, "responsiveness", flow="mp", subflow="sf1") == pytest.approx((2 + 4) / 2)
    assert value(m, "responsiveness", flow="mp", subflow="sf2") == pytest.approx(6)
    assert value(m, "responsiveness", flow="mp") == pytest.approx(4.5)


def test_a_flow_has_settled_only_if_it_stays_in_the_band_for_five_seconds(tmp_path: Path) -> None:
    """Averages from 11 to 15.5 s are in the band, which is half a second too short; then those from 17 s on."""
    flows = [s.tcp("brief", s.subflow("p", "A")), s.tcp("gone", s.subflow("p", "A"))]
    subflow = curve("brief", "p", lambda t: 0 if t < 11 or t == 16.5 else 100)
    event = [began("brief", 0), began("gone", 0.5), ended("gone", 10)]
    scenario = s.resolved(LINKS, flows, duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow, event=event)
    m = Results.open(tmp_path).metrics(["convergence"])
    assert value(m, "convergence", flow="brief") == pytest.approx(7)


def test_the_throughput_before_an_outage_is_that_of_five_seconds(tmp_path: Path) -> None:
    """Two outages, each of two that overlap. Before both, 100 kB/s for four seconds and 900 for the one before."""
    b = [{"at_ns": 8 * s.NS, "up": False}, {"at_ns": 9 * s.NS, "up": True}]
    b += [{"at_ns": 20 * s.NS, "up": False}, {"at_ns": 23 * s.NS, "up": True}]
    x = [{"at_ns": 8_500_000_000, "up": False}, {"at_ns": 10 * s.NS, "up": True}]
    x += [{"at_ns": 21 * s.NS, "up": False}, {"at_ns": 22 * s.NS, "up": True}]
    links = [s.link("B", "S", "M", 4, schedule=b), s.link("X", "M", "D", 9, schedule=x)]
    # Half of (4 * 100 + 900) / 5 = 260 is 130: more than the 120 of two seconds after each outage.
    steps = [(3, 100), (4, 900), (8, 100), (10, 0), (12, 120), (15, 200), (16, 900), (20, 100), (23, 0), (25, 120)]
    subflow = curve("mp", "p", lambda t: next((rate for until, rate in steps if t < until), 200))
    scenario = s.resolved(links, [s.tcp("mp", s.subflow("p", "B", "X"))], duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow)
    m = Results.open(tmp_path).metrics(["recovery_time"])
    # The second from 11.5 s has 160 after the first outage, and so has that from 24.5 s after the second.
    assert value(m, "recovery_time", flow="mp", subflow="p") == pytest.approx(1.5)


def test_outages_that_touch_or_overlap_are_one() -> None:
    # The third lies within the second, and the last begins where the one before it ends.
    assert dynamics._union([(20, 26), (1, 3), (21, 22), (8, 9), (9, 12)]) == [(1, 3), (8, 12), (20, 26)]
    assert dynamics._union([(4, 7), (2, 5), (6, 6), (9, 10)]) == [(2, 7), (9, 10)]
    assert dynamics._union([]) == []


@pytest.mark.parametrize(("down_s", "up_s", "counts"), [(2, 5, False), (3, 5, True), (25, 30, False), (25, 29, True)])
def test_an_outage_counts_if_it_begins_and_ends_within_the_window(
    tmp_path: Path, down_s: int, up_s: int, counts: bool
) -> None:
    """The window is from 2 to 30 s. Without time in it before the outage, or after it, nothing can be compared."""
    schedule = [{"at_ns": down_s * s.NS, "up": False}, {"at_ns": up_s * s.NS, "up": True}]
    links = [s.link("A", "S", "D", 8, schedule=schedule)]
    scenario = s.resolved(links, [s.tcp("t", s.subflow("p", "A"))], duration_s=30, warmup_s=2)
    subflow = curve("t", "p", lambda t: 0 if down_s <= t < up_s else 100)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow)
    assert has(Results.open(tmp_path).metrics(["recovery_time"]), "recovery_time", flow="t") == counts


def test_with_rare_samples_an_average_is_from_one_sample_to_the_next(tmp_path: Path) -> None:
    """A sample every three seconds, and 50 kB/s from 12 s on: the average that begins then is the first of them."""
    flows = [s.tcp("stays", s.subflow("p", "A")), s.tcp("gone", s.subflow("p", "A"))]
    subflow = [
        {"flow": "stays", "subflow": "p", "t": t, "rx_wire_bytes": 10_000 * min(t, 12) + 50_000 * max(t - 12, 0)}
        for t in range(0, 61, 3)
    ]
    event = [began("stays", 0), began("gone", 0.5), ended("gone", 9)]
    scenario = s.resolved(LINKS, flows, duration_s=60, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=3000)], subflow=subflow, event=event)
    m = Results.open(tmp_path).metrics(["convergence"])
    assert value(m, "convergence", flow="stays") == pytest.approx(3)


def test_a_flow_that_others_left_at_the_end_of_the_warm_up_is_measured_and_the_next_run_as_well(tmp_path: Path) -> None:
    """In the first run nothing changes in the window; in the second, `gone` leaves exactly when the window begins."""
    flows = [s.tcp("stays", s.subflow("p", "A")), s.tcp("gone", s.subflow("p", "A"))]
    scenario = s.resolved(LINKS, flows, duration_s=30, warmup_s=2)
    event = [began("stays", 0), began("gone", 0.5), {**ended("gone", 1), "run": 0}]
    event += [{**began("stays", 0), "run": 1}, {**began("gone", 0.5), "run": 1}, {**ended("gone", 2), "run": 1}]
    subflow = [{**row, "run": run} for run in (0, 1) for row in curve("stays", "p", lambda t: 20 if t < 6 else 100)]
    s.write(
        tmp_path, [s.run_row(run, scenario, rep=run, sample_ms=500) for run in (0, 1)], subflow=subflow, event=event
    )
    m = Results.open(tmp_path).metrics(["convergence"])
    assert m.select("run", "flow").rows() == [(1, "stays")]
    # The second that begins at 6 s is the first with 100; that from 5.5 s has 60.
    assert value(m, "convergence", run=1, flow="stays") == pytest.approx(4)


def test_only_flows_that_are_there_respond_to_the_end_of_a_competitor(tmp_path: Path) -> None:
    """At 10 s `gone` and `twin` leave A, and `next` begins there; `later` comes at 20 s."""
    names = ("stays", "gone", "twin", "next", "later")
    flows = [s.tcp(name, s.subflow("p", "A")) for name in names]
    subflow = [row for name in names for row in curve(name, "p", lambda _: 50, cwnd_pkts=9)]
    event = [began("stays", 0), began("gone", 0.5), began("twin", 0.5), began("next", 10), began("later", 20)]
    event += [ended("gone", 10), ended("twin", 10)]
    scenario = s.resolved(LINKS, flows, duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow, event=event)
    m = Results.open(tmp_path).metrics(["responsiveness", "convergence"])
    for metric in ("responsiveness", "convergence"):
        assert value(m, metric, flow="stays") == pytest.approx(0)
        assert value(m, metric, flow="next") == pytest.approx(0)
        assert not has(m, metric, flow="gone")
        assert not has(m, metric, flow="twin")
    assert not has(m, "responsiveness", flow="later")


def test_the_final_throughput_begins_with_the_second_half(tmp_path: Path) -> None:
    """What arrives from 20 s on counts, and 900 kB/s for half a second there are more than the band around it."""
    flows = [s.tcp("peak", s.subflow("p", "A")), s.tcp("gone", s.subflow("p", "A"))]
    subflow = curve("peak", "p", lambda t: 900 if t == 20 else 100)
    event = [began("peak", 0), began("gone", 0.5), ended("gone", 10)]
    scenario = s.resolved(LINKS, flows, duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow, event=event)
    # The mean is 140, and all averages but those with the peak are 100.
    assert value(Results.open(tmp_path).metrics(["convergence"]), "convergence", flow="peak") is None


def test_a_path_recovers_only_if_something_arrived_before_its_outage(tmp_path: Path) -> None:
    """Samples every second, so that an average is that of one; X is down from 8 to 10 s."""
    x = [{"at_ns": 8 * s.NS, "up": False}, {"at_ns": 10 * s.NS, "up": True}]
    flows = [s.tcp("new", s.subflow("p", "X")), s.tcp("old", s.subflow("p", "X"))]
    subflow = [row for row in curve("new", "p", lambda t: 0 if t < 12 else 70) if row["t"] % 1 == 0]
    subflow += [row for row in curve("old", "p", lambda t: 100 if t < 8 else 0 if t < 12 else 120) if row["t"] % 1 == 0]
    scenario = s.resolved([s.link("X", "S", "D", 9, schedule=x)], flows, duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=1000)], subflow=subflow)
    m = Results.open(tmp_path).metrics(["recovery_time"])
    # Over two seconds the average from 11 s on would be 60 of 100.
    assert value(m, "recovery_time", flow="old", subflow="p") == pytest.approx(2)
    assert value(m, "recovery_time", flow="new", subflow="p") is None


def test_changes_count_in_a_run_whose_flows_all_come_and_go_in_the_window(tmp_path: Path) -> None:
    flows = [s.tcp("one", s.subflow("p", "A")), s.tcp("two", s.subflow("p", "A"))]
    subflow = curve("one", "p", lambda t: 80 if 3 <= t < 20 else 0)
    subflow += curve("two", "p", lambda t: 60 if 7 <= t < 25 else 0)
    event = [began("one", 3), began("two", 5), ended("one", 20), ended("two", 25)]
    scenario = s.resolved(LINKS, flows, duration_s=30, warmup_s=1)
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=500)], subflow=subflow, event=event)
    m = Results.open(tmp_path).metrics(["convergence"])
    # Two seconds after 5 s. The 5 s after 20 s are too short to settle in, and do not count in the mean.
    assert value(m, "convergence", flow="two") == pytest.approx(2)
    assert value(m, "convergence", flow="one") == pytest.approx(0)
