"""Whether a difference from a kernel is put down to the phase of packets: on a link where phases lock a flow out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import synthetic as s

import mptcplab
from mptcplab.results import Results
from mptcplab.scenario import Overrides
from mptcplab.studies.agreement import phases
from mptcplab.studies.agreement.judge import GOODPUT, Agreement
from mptcplab.sweep import Sweep

# Two connections with packets of 1514 bytes (0.9 ms at 13.5 Mbit/s) on the wire and nearly the same RTT, and a third
# that is alone on one of several links of a kind.
SCENARIO = """
name = "phases"
duration = "24 s"
warmup = "4 s"
cc = "reno"
profile = "rfc"

[links.a]
from = "x"
to = "m"
rate = "100 Mbit/s"
delay = "1 ms"

[links.b]
from = "y"
to = "m"
rate = "100 Mbit/s"
delay = "1.3 ms"

[links.neck]
from = "m"
to = "n"
rate = "13.5 Mbit/s"
delay = "9 ms"
queue = "14 packets"

[links.many]
count = 2
from = "v"
to = "w"
rate = "5 Mbit/s"
delay = "7 ms"
queue = "5 packets"

[flows.one]
path = ["a", "neck"]

[flows.two]
path = ["b", "neck"]
start = "0.4 s"

[flows.three]
path = ["many-2"]
"""


@pytest.fixture
def runs(tmp_path: Path) -> Sweep:
    """Regular packets: the simulator adds no noise."""
    file = tmp_path / "phases.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    return Sweep(str(file), Overrides(reps=2, settings={"tcp.send_jitter": '"0 s"'}), ("sim",))


def goodputs(results: Results) -> dict[str, float]:
    """Mean goodput of every flow, Mbit/s."""
    values = results.metrics([GOODPUT]).filter(pl.col("subflow").is_null() & pl.col("link").is_null())
    return dict(values.group_by("flow").agg(pl.col("value").mean()).iter_rows())


def outside(runs: Sweep, engine: str = "kernel", verdict: str = "fails") -> Agreement:
    """The simulator's results, in which every flow got 9 Mbit/s there and 3 on another engine."""
    results = runs.run()
    goodput = {"metric": GOODPUT, "reference": 9.0, "mean": 3.0, "difference": -66.7, "verdict": verdict}
    rows = [{"base": "reno", "engine": engine, "flow": flow, **goodput} for flow in ("one", "two", "three")]
    return Agreement(results, pl.DataFrame(rows), (), ())


def write_again(home: Path, goodput: dict[str, dict[str, tuple[float, ...]]]) -> Results:
    """What engines give in a second try: Mbit/s of flows in each repetition, over 8 s."""
    links = [s.link("neck", "m", "n", 13.5, 9), s.link("back", "n", "m", 13.5, 9)]
    for engine, flows in goodput.items():
        names = [s.tcp(flow, s.subflow("only", "neck"), cc="reno") for flow in flows]
        scenario = s.resolved(links, names, duration_s=10, warmup_s=2)
        runs = [{**s.run_row(rep, scenario, rep=rep, cc="reno"), "engine": engine} for rep in range(2)]
        rows = [
            {"run": rep, "t": t, "flow": flow, "delivered_bytes": round(bytes_per_mbps * mbps)}
            for flow, values in flows.items()
            for rep, mbps in enumerate(values)
            for t, bytes_per_mbps in ((2, 0), (10, 1e6))
        ]
        s.write(home / engine, runs, flow=rows, subflow=[], link=[], event=[])
    return mptcplab.load(home)


def test_random_delays_are_as_long_as_a_packet_takes_and_only_behind_full_links(runs: Sweep) -> None:
    results = runs.run()
    found = phases.random_delays(results, runs)
    # 1500 + 14 bytes; `neck` and one of `many` drop packets, the links before `neck` do not.
    assert found == {"neck": 897_185, "many": 2_422_400}


def test_a_link_that_reorders_by_itself_keeps_its_delays(runs: Sweep, tmp_path: Path) -> None:
    file = tmp_path / "phases.toml"
    reorder = 'queue = "14 packets"\nreorder = { probability = "1 %", delay = "2 ms" }'
    file.write_text(SCENARIO.replace('queue = "14 packets"', reorder), encoding="utf-8")
    assert list(phases.random_delays(runs.run(), runs)) == ["many"]


def test_a_link_that_an_option_makes_reorder_keeps_its_delays(runs: Sweep) -> None:
    reorder = {"links.many.reorder": '{ probability = "1 %", delay = "2 ms" }'}
    reordering = replace(runs, overrides=replace(runs.overrides, settings=runs.overrides.settings | reorder))
    assert list(phases.random_delays(reordering.run(), reordering)) == ["neck"]


def test_goodputs_that_move_with_random_phases_are_named_with_both_engines(
    runs: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulator moves on the first flow, the kernel on the second, and none by 5 % on the third."""
    agreement = outside(runs)
    mbps = {
        "sim": {"one": (4.5, 4.5), "two": (9.1, 9.1), "three": (9.2, 9.2)},
        "kernel": {"one": (3.1, 3.1), "two": (8.5, 8.5), "three": (3.1, 3.1)},
    }
    again, asked, said = write_again(tmp_path / "again", mbps), [], []

    def run(sweep: Sweep) -> Results:
        asked.append(sweep)
        return again

    monkeypatch.setattr(Sweep, "run", run)
    found = {cause.who: cause for cause in phases.find_causes(replace(runs, say=said.append), agreement)}
    assert {(cause.base, cause.engine, cause.cause) for cause in found.values()} == {("reno", "kernel", phases.PHASES)}
    delayed = "packet phases: with a random delay of up to one packet behind every full link"
    where = "(neck 897.2 µs, many 2.422 ms)"
    assert {who: cause.text for who, cause in found.items()} == {
        "one": f"{delayed} {where}, one gets 4.5 Mbit/s on sim and 3.1 on kernel (-31.1 ± 0.0 %), instead of 9 and 3",
        "two": f"{delayed} {where}, two gets 9.1 Mbit/s on sim and 8.5 on kernel (-6.6 ± 0.0 %), instead of 9 and 3",
    }
    assert said == ["sim and kernel run again, with random packet phases"]
    [sweep] = asked
    assert (sweep.engines, sweep.same_noise) == (("sim", "kernel"), True)
    assert sweep.overrides.settings == {
        "tcp.send_jitter": '"0 s"',
        "links.neck.reorder": '{ probability = "100 %", delay = "uniform(0 ms, 897185 ns)" }',
        "links.many.reorder": '{ probability = "100 %", delay = "uniform(0 ms, 2422400 ns)" }',
    }


def test_random_delays_change_who_gets_what_at_a_full_link(runs: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the engines are asked to run takes away much of the advantage that one of two flows has by its phase."""
    before, agreement = goodputs(runs.run()), outside(runs)
    asked = []

    def run(sweep: Sweep) -> Results:
        asked.append(sweep)
        return agreement.results

    with monkeypatch.context() as patched:
        patched.setattr(Sweep, "run", run)
        assert list(phases.find_causes(runs, agreement)) == []
    after = goodputs(replace(asked[0], engines=("sim",), same_noise=False).run())
    assert abs(after["one"] - after["two"]) < abs(before["one"] - before["two"]) * 2 / 3
    assert after["three"] == pytest.approx(before["three"], rel=0.05)


@pytest.mark.parametrize(("engine", "verdict"), [("fluid", "fails"), ("kernel", "holds")])
def test_only_what_is_outside_on_a_kernel_is_looked_into(runs: Sweep, engine: str, verdict: str) -> None:
    assert list(phases.find_causes(runs, outside(runs, engine, verdict))) == []
