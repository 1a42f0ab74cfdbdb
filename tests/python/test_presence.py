"""Flows and subflows that are there for a part of the measured time only: their rates, and what these are compared to.

Every flow has a rate of its own. Counters grow from a flow's start to its end; in between, rows are at whole seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic as s
from test_allocation import topology, udp
from test_metrics import has, value

from mptcplab.metrics import compute, ideals
from mptcplab.metrics.allocation import max_min
from mptcplab.metrics.ideals import equal_shares, fair_shares, path_rates, subflow_shares
from mptcplab.report import families
from mptcplab.report.goodput import goodput_data
from mptcplab.report.tables import headline
from mptcplab.results import Results
from mptcplab.trace.topology import Topology

LINKS = [s.link("A", "S", "D", 8), s.link("B", "S", "D", 4), s.link("C", "S", "D", 2)]
FILE = {"size_bytes": 10_000_000}


def life(flow: str, rate: float, begin: float, end: float, *, part: str = "p", run: int = 0, times: Any = None) -> Any:
    """Rows of a flow and its subflow: `rate` kB/s from `begin` to `end`, from the beginning of the run to 12 s."""
    rows = []
    for t in range(13) if times is None else times:
        got = round(1000 * rate * (min(max(t, begin), end) - begin))
        rows.append({"run": run, "flow": flow, "t": float(t), "delivered_bytes": got, "ooo_bytes": got and 70})
    arrived = [(row["t"], row["delivered_bytes"]) for row in rows]
    parts = [
        {"run": run, "flow": flow, "subflow": part, "t": t, "rx_wire_bytes": got, "rx_payload_bytes": got}
        for t, got in arrived
    ]
    return rows, parts


def written(directory: Path, scenario: dict[str, Any], lives: list[Any], **changes: Any) -> Results:
    """A run of a scenario, or several, with flows as `life` makes them."""
    runs = changes.pop("runs", None) or [s.run_row(0, scenario, sample_ms=changes.pop("sample_ms", 1000))]
    flow, subflow = ([row for one in lives for row in one[table]] for table in (0, 1))
    return Results.open(s.write(directory, runs, flow=flow, subflow=subflow, **changes))


def test_fair_shares_are_computed_once_for_all_metrics_that_need_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four metrics compare with the max-min share, which takes half a minute if a thousand flows come and go."""
    asked = []

    def watched(topology: Topology, fairness: ideals.Fairness[str]) -> dict[str, float]:
        asked.append(fairness)
        return fair_shares(topology, fairness)

    monkeypatch.setattr(ideals, "fair_shares", watched)
    flows = [s.tcp("one", s.subflow("p", "A")), s.tcp("two", s.subflow("p", "A"), s.subflow("q", "C"))]
    lives = [life("one", 300, 0, 12), life("two", 400, 0, 12)]
    m = written(tmp_path, s.resolved(LINKS, flows, duration_s=12, warmup_s=2), lives).metrics()
    assert value(m, "ratio", flow="one") == pytest.approx(2.4 / 5)
    assert has(m, "jain_weighted")
    assert has(m, "ideal_subflow", flow="two", subflow="q")
    assert (len(asked), asked.count(max_min)) == (3, 1)


@pytest.mark.parametrize("sample_ms", [1000, None])
def test_a_rate_is_over_the_time_in_which_its_flow_was_there(tmp_path: Path, sample_ms: float | None) -> None:
    """What a flow got was divided by the whole window, and its fair share only by the time since its start."""
    flows = [
        s.tcp("early", s.subflow("p", "A")),
        s.tcp("stopper", s.subflow("p", "B"), stop_ns=7 * s.NS),
        s.tcp("late", s.subflow("p", "B"), start_ns=7 * s.NS),
        s.tcp("random", s.subflow("p", "C"), start_ns={"uniform_ns": [8 * s.NS, 10 * s.NS]}),
    ]
    times = None if sample_ms else (0, 2, 7, 12)
    lives = [
        life("early", 900, 0, 12, times=times),
        life("stopper", 440, 0, 7, times=times),
        life("late", 470, 7, 12, times=times),
        life("random", 240, 9, 12, times=times),
    ]
    event = [{"kind": "flow_started", "flow": "random", "t": 9.0}, {"kind": "flow_started", "flow": "late", "t": 7.1}]
    scenario = s.resolved(LINKS, flows, duration_s=12, warmup_s=2)
    m = written(tmp_path, scenario, lives, event=event, sample_ms=sample_ms).metrics()
    rates = {"early": 7.2, "stopper": 3.52, "late": 3.76, "random": 1.92}
    shares = {"early": 8, "stopper": 4, "late": 4, "random": 2}
    for flow, rate in rates.items():
        for metric in ("goodput", "throughput"):
            assert value(m, metric, flow=flow, subflow=None) == pytest.approx(rate)
            assert value(m, metric, flow=flow, subflow="p") == pytest.approx(rate)
        assert value(m, "ideal", flow=flow) == pytest.approx(shares[flow])
        for metric in ("ratio", "ratio_wire", "equal_share"):
            assert value(m, metric, flow=flow) == pytest.approx(rate / shares[flow])
    # 900 kB/s for 10 s, 440 and 470 for 5 s each, and 240 for 3 s.
    assert value(m, "total_goodput") == pytest.approx(8 * (9000 + 2200 + 2350 + 720) / 10_000)
    squares = 0.9**2 + 0.88**2 + 0.94**2 + 0.96**2
    assert value(m, "jain_weighted") == pytest.approx((0.9 + 0.88 + 0.94 + 0.96) ** 2 / (4 * squares))
    if sample_ms:
        # Nothing waited out of order before the start, and at the start itself nothing had arrived.
        assert value(m, "hol_bytes", flow="late") == pytest.approx(70 * 4 / 5)
        assert value(m, "std_1s", flow="random") == pytest.approx(0)


def test_a_span_has_the_part_of_it_in_which_a_flow_was_there(tmp_path: Path) -> None:
    flows = [
        s.tcp("late", s.subflow("p", "A"), start_ns={"uniform_ns": [s.NS, 9 * s.NS]}),
        s.tcp("file", s.subflow("p", "B"), traffic=FILE),
    ]
    event = [{"kind": "flow_started", "flow": "late", "t": 5.0}, {"kind": "flow_completed", "flow": "file", "t": 7.0}]
    lives = [life("late", 900, 5, 12), life("file", 300, 0, 7)]
    results = written(tmp_path, s.resolved(LINKS, flows, duration_s=12), lives, event=event)
    m = compute(results, ["goodput"], (4 * s.NS, 8 * s.NS))
    assert value(m, "goodput", flow="late", subflow=None) == pytest.approx(7.2)
    assert value(m, "goodput", flow="file", subflow=None) == pytest.approx(2.4)
    assert not has(compute(results, ["goodput"], (8 * s.NS, 9 * s.NS)), "goodput", flow="file")
    assert not has(compute(results, ["goodput"], (0, 5 * s.NS)), "goodput", flow="late")


def test_a_file_is_measured_until_it_is_complete_and_its_share_is_then_that_of_others(tmp_path: Path) -> None:
    """A file of 11.5 s in a run of 60 s had a seventh of its rate. In each run, the files end at times of their own."""
    flows = [
        s.tcp("bulk", s.subflow("p", "A")),
        s.tcp("file", s.subflow("p", "A"), traffic=FILE),
        s.tcp("stopped", s.subflow("p", "B"), traffic=FILE, stop_ns=6 * s.NS),
        s.tcp("early", s.subflow("p", "C"), traffic=FILE),
    ]
    scenario = s.resolved(LINKS, flows, duration_s=12, warmup_s=2)
    ends = {0: {"file": 5.0, "early": 1.5}, 1: {"file": 8.0, "early": 2.5}, 2: {"early": 2.0}}
    lives = [
        one
        for run, end in ends.items()
        for one in (
            life("bulk", 400, 0, 12, run=run),
            life("file", 450, 0, end.get("file", 12), run=run),
            life("stopped", 350, 0, 6, run=run),
            life("early", 200, 0, end["early"], run=run),
        )
    ]
    event = [
        {"run": run, "kind": "flow_completed", "flow": flow, "t": t}
        for run, end in ends.items()
        for flow, t in end.items()
    ]
    event = [{"run": run, "kind": "flow_started", "flow": "file", "t": 0.0} for run in ends] + event
    runs = [s.run_row(run, scenario, rep=run) for run in ends]
    results = written(tmp_path, scenario, lives, event=event, runs=runs)
    m = results.metrics()
    for run in ends:
        assert value(m, "goodput", run=run, flow="file", subflow=None) == pytest.approx(3.6)
        assert value(m, "ideal", run=run, flow="file") == pytest.approx(4)
        assert value(m, "goodput", run=run, flow="stopped", subflow=None) == pytest.approx(2.8)
        assert value(m, "ideal", run=run, flow="stopped") == pytest.approx(4)
        assert has(m, "goodput", run=run, flow="early") == (run == 1)
    # Half of 8 Mbit/s for 3 s, 6 s and 10 s of ten, then all of it.
    for run, share in enumerate((4 * 0.3 + 8 * 0.7, 4 * 0.6 + 8 * 0.4, 4)):
        assert value(m, "ideal", run=run, flow="bulk") == pytest.approx(share)
        assert value(m, "equal_share", run=run, flow="bulk") == pytest.approx(3.2 / share)
    # 200 kB/s for half a second.
    assert value(m, "goodput", run=1, flow="early", subflow=None) == pytest.approx(1.6)
    notes = [one for one in headline(results, results.summary()).notes if "complete" in one]
    early = "the file of early is complete before the warm-up ends at 2 s, so that its goodput has no value"
    some = "only 2 of 3 runs have a transfer time of file; the mean is over these"
    assert notes == [
        f"lia: in 2 of 3 runs, {early}",
        f"lia: {some}, because nothing was complete before the others ended",
    ]


def test_only_flows_that_are_there_together_are_friendly(tmp_path: Path) -> None:
    """On A one TCP is there beside the connection and one is not; on B none is, and on C it leaves before the other."""
    mp = s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B"), {**s.subflow("sf3", "C"), "stop_ns": 8 * s.NS})
    flows = [
        mp | {"start_ns": 6 * s.NS},
        s.tcp("beside", s.subflow("p", "A")),
        s.tcp("before", s.subflow("p", "A"), stop_ns=6 * s.NS),
        s.tcp("gone", s.subflow("p", "B"), stop_ns=5 * s.NS),
        s.tcp("after", s.subflow("p", "C"), start_ns=9 * s.NS),
    ]
    lives = [life("mp", rate, 6, 12, part=part) for part, rate in (("sf1", 300), ("sf2", 410), ("sf3", 100))]
    lives += [life("beside", 400, 0, 12), life("before", 550, 0, 6), life("gone", 450, 0, 5), life("after", 90, 9, 12)]
    m = written(tmp_path, s.resolved(LINKS, flows, duration_s=12, warmup_s=2), lives).metrics(["friendliness"])
    assert value(m, "friendliness", link="A") == pytest.approx(300 / 400)
    assert value(m, "friendliness", link="B") is None
    assert value(m, "friendliness", link="C") is None


def test_the_flows_of_a_family_that_take_turns_are_added_over_the_whole_window(tmp_path: Path) -> None:
    """Two flows of 450 and 350 kB/s, one after the other, were said to get the sum of both."""
    flows = [
        s.tcp("f-1", s.subflow("p", "B"), stop_ns=6 * s.NS),
        s.tcp("f-2", s.subflow("p", "B"), start_ns=6 * s.NS),
        s.tcp("g", s.subflow("p", "A"), start_ns=7 * s.NS),
    ]
    scenario = s.resolved(LINKS, flows, duration_s=12, warmup_s=2)
    lives = [life("f-1", 450, 0, 6), life("f-2", 350, 6, 12), life("g", 900, 7, 12)]
    run = s.run_row(0, scenario) | {"scenario_toml": "[flows.f]\ncount = 2\n[flows.g]\n"}
    results = written(tmp_path, scenario, lives, runs=[run])
    found = families.per_run(results)
    # 450 kB/s for 4 s of ten, and 350 for 6 s.
    total = 8 * (0.45 * 4 + 0.35 * 6) / 10
    assert value(found, "family_total", flow="f") == pytest.approx(total)
    assert value(found, "family_mean", flow="f") == pytest.approx(8 * (0.45 + 0.35) / 2)
    family, single = goodput_data(results, results.summary()).rows
    assert (family.mean, *family.points, family.fair_share) == pytest.approx((total, total, 4))
    assert sum(part.mean for part in family.parts) == pytest.approx(total)
    assert family.members == pytest.approx((3.6, 2.8))
    assert (single.mean, *single.points, single.fair_share) == pytest.approx((7.2, 7.2, 8))


# Ideals


def test_a_share_has_the_rates_that_links_have_while_the_flow_is_there() -> None:
    """A link of 12 Mbit/s has 30 from 6 s on, where one flow is left. The mean of both was that of each."""
    links = [s.link("a", "S", "D", 12, schedule=[{"at_ns": 6 * s.NS, "rate_bps": 30_000_000}])]
    found = topology(
        s.tcp("early", s.subflow("p", "a"), stop_ns=4 * s.NS),
        s.tcp("late", s.subflow("p", "a"), start_ns=4 * s.NS),
        links=links,
    )
    # 12 for 2 s and 30 for 4 s.
    assert fair_shares(found, max_min) == pytest.approx({"early": 12e6, "late": 24e6})
    assert equal_shares(found) == pytest.approx({("early", "a"): 12e6, ("late", "a"): 24e6})


def handover(**of_flow: Any) -> dict[str, Any]:
    """A connection on a until 4 s and on b from 3 s on."""
    wifi = {**s.subflow("wifi", "a"), "stop_ns": 4 * s.NS}
    return s.tcp("mp", wifi, {**s.subflow("lte", "b"), "start_ns": 3 * s.NS}, **of_flow)


def test_a_subflow_counts_in_the_ideal_between_its_start_and_its_stop() -> None:
    """The fair share of a handover was that of both paths all the time: 42 Mbit/s."""
    found = topology(handover())
    payload = 1428 / 1514
    # 12 for 4 s of ten, and 30 for 7 s.
    assert fair_shares(found, max_min) == pytest.approx({"mp": 25.8e6})
    assert subflow_shares(found) == pytest.approx({("mp", 0): 4.8e6, ("mp", 1): 21e6})
    for fair in (True, False):
        rates = path_rates(found, found.flows[0], fair=fair)
        assert rates == pytest.approx([4.8e6 * payload, 21e6 * payload])
    assert equal_shares(found) == pytest.approx({("mp", "a"): 4.8e6, ("mp", "b"): 21e6})


def test_others_have_a_link_to_themselves_while_a_subflow_is_not_there() -> None:
    found = topology(handover(start_ns=s.NS), s.tcp("t", s.subflow("p", "b")), udp("cbr", "a", 2))
    # From 1 to 3 s mp has 10 of a and t 30; until 4 s both have half of 40, then half of 30.
    assert fair_shares(found, max_min) == pytest.approx(
        {"mp": (20 + 20 + 90) / 9 * 1e6, "t": (90 + 20 + 90) / 10 * 1e6}
    )
    # mp's window is 9 s long. On b it is there for 7 s, beside t.
    assert equal_shares(found) == pytest.approx(
        {("mp", "a"): 12e6 * 3 / 9, ("mp", "b"): 15e6 * 7 / 9, ("t", "b"): (30 * 3 + 15 * 7) / 10 * 1e6}
    )
    rates = path_rates(found, found.flows[0], fair=True)
    assert rates == pytest.approx([12e6 * 3 / 9 * 1428 / 1514, 15e6 * 7 / 9 * 1428 / 1514])


def test_a_backup_counts_while_no_regular_subflow_may_send() -> None:
    """It counted as a second path all the time. a is down from 2 to 3 s; the regular subflow is removed at 8 s."""
    schedule = [{"at_ns": 2 * s.NS, "up": False}, {"at_ns": 3 * s.NS, "rate_bps": 18_000_000, "up": True}]
    links = [s.link("a", "S", "D", 12, schedule=schedule), s.link("b", "S", "D", 30)]
    regular, backup = {**s.subflow("sf1", "a"), "stop_ns": 8 * s.NS}, {**s.subflow("sf2", "b"), "backup": True}
    found = topology(s.tcp("mp", regular, backup), links=links)
    # 12 for 2 s and 18 for 5 s; 30 for 1 s and 2 s.
    assert subflow_shares(found) == pytest.approx({("mp", 0): 11.4e6, ("mp", 1): 9e6})
    assert fair_shares(found, max_min) == pytest.approx({"mp": 20.4e6})
    # A connection with backups alone uses them.
    alone = topology(s.tcp("mp", {**regular, "backup": True}, backup), links=links)
    assert subflow_shares(alone) == pytest.approx({("mp", 0): 11.4e6, ("mp", 1): 30e6})
    # A regular path that works leaves nothing to gain.
    steady = topology(s.tcp("mp", s.subflow("sf1", "b"), {**s.subflow("sf2", "a"), "backup": True}))
    assert path_rates(steady, steady.flows[0], fair=True) == pytest.approx([30e6 * 1428 / 1514, 0])
    assert equal_shares(steady) == {("mp", "b"): 30e6}


def test_a_change_of_priority_makes_a_backup_a_regular_subflow() -> None:
    change = [{"at_ns": 4 * s.NS, "backup": False}, {"at_ns": 7 * s.NS, "backup": True}]
    backup = {**s.subflow("sf2", "b"), "backup": True, "priority": change}
    found = topology(s.tcp("mp", s.subflow("sf1", "a"), backup), warmup_s=2)
    assert subflow_shares(found) == pytest.approx({("mp", 0): 12e6, ("mp", 1): 30e6 * 3 / 8})


def test_a_path_that_may_never_be_used_does_not_join_its_link_to_others() -> None:
    """Without it, two connections share nothing, and a link of unknown rate behind it makes nothing unknown."""
    trace = {"name": "cell.trace", "opportunities": 500, "period_ns": 0}
    links = [s.link("a", "S", "D", 12), s.link("b", "S", "D", 30), s.link("c", "S", "D", 1, trace=trace)]
    late = {**s.subflow("sf2", "c"), "start_ns": 10 * s.NS}
    found = topology(s.tcp("mp", s.subflow("sf1", "a"), late), s.tcp("t", s.subflow("p", "b")), links=links)
    assert fair_shares(found, max_min) == pytest.approx({"mp": 12e6, "t": 30e6})
    assert equal_shares(found) == {("mp", "a"): 12e6, ("t", "b"): 30e6}
