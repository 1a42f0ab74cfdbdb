"""Whether a difference from a kernel is put down to the phase of packets: on a link where phases lock a flow out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import synthetic as s
from scipy.stats import ttest_ind_from_stats

import mptcplab
from mptcplab.results import Results
from mptcplab.scenario import Overrides
from mptcplab.studies.agreement import phases
from mptcplab.studies.agreement.judge import GOODPUT, Agreement
from mptcplab.study.cell import resolved_runs
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
    """The simulator's results, in which every flow got 9 ± 0.09 Mbit/s there and 3 ± 0.03 on another engine."""
    results = runs.run()
    goodput = {"metric": GOODPUT, "reference": 9.0, "mean": 3.0, "difference": -66.7, "verdict": verdict}
    goodput |= {"n_reference": 20, "n": 10, "spread_reference": 1.0, "spread": 1.0}
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
    """The simulator moves on the first flow, the kernel on the second, and none by 5 % on the third.

    Two repetitions 0.02 apart have a mean with an interval of 12.706 * 0.01, and the first tries ones of 0.04 and less.
    """
    agreement = outside(runs)
    mbps = {
        "sim": {"one": (4.49, 4.51), "two": (9.09, 9.11), "three": (9.19, 9.21)},
        "kernel": {"one": (3.09, 3.11), "two": (8.49, 8.51), "three": (3.09, 3.11)},
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
    back = "running again also brings an extreme difference back"
    assert {who: cause.text for who, cause in found.items()} == {
        "one": f"{delayed} {where}, one gets 4.5 Mbit/s on sim and 3.1 on kernel (-31.1 ± 0.9 %), instead of 9 and 3, "
        f"a change beyond its 95 % interval on sim; {back}",
        "two": f"{delayed} {where}, two gets 9.1 Mbit/s on sim and 8.5 on kernel (-6.6 ± 0.1 %), instead of 9 and 3, "
        f"a change beyond its 95 % interval on kernel; {back}",
    }
    assert said == [
        "sim and kernel run again, with random packet phases",
        "reno: with random packet phases, three gets 9.2 Mbit/s on sim and 3.1 on kernel (-66.3 ± 0.9 %), instead of 9 "
        "and 3, no change beyond what chance explains",
    ]
    [sweep] = asked
    assert (sweep.engines, sweep.same_noise) == (("sim", "kernel"), True)
    assert sweep.overrides.settings == {
        "tcp.send_jitter": '"0 s"',
        "links.neck.reorder": '{ probability = "100 %", delay = "uniform(0 ms, 897185 ns)" }',
        "links.many.reorder": '{ probability = "100 %", delay = "uniform(0 ms, 2422400 ns)" }',
    }


def sample(mean: float, deviation: float | None, n: int) -> phases._Sample:
    return phases._Sample(mean, deviation, n)


@pytest.mark.parametrize(("before", "after"), [((1.5, 20), (2.0, 10)), ((0.5, 10), (0.1, 4))])
def test_the_interval_of_a_change_is_welchs(before: tuple[float, int], after: tuple[float, int]) -> None:
    """As SciPy has it from deviations and numbers of repetitions: p is 5 % of a change as large as its interval."""
    half = phases._half(sample(9.0, *before), sample(7.0, *after))
    assert half is not None
    assert ttest_ind_from_stats(half, *before, 0, *after, equal_var=False).pvalue == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        # The deviation of a mean is 0.25 of 16 repetitions of 1, so the interval is 2.042 * sqrt(2) * 0.25 = 0.722.
        ((9.0, 1.0, 16), (8.27, 1.0, 16), True),
        ((9.0, 1.0, 16), (8.29, 1.0, 16), False),
        ((8.29, 1.0, 16), (9.0, 1.0, 16), False),
        # Beyond its interval, but less than 5 %.
        ((9.0, 0.01, 16), (8.6, 0.01, 16), False),
        ((9.0, 0.01, 16), (8.5, 0.01, 16), True),
        # One draw beside 16 of 1: 2.131 * sqrt(1 + 1 / 16) = 2.197, in either order.
        ((9.0, 0.0, 10), (6.9, 1.0, 16), False),
        ((9.0, 0.0, 10), (6.7, 1.0, 16), True),
        ((6.7, 1.0, 16), (9.0, 0.0, 10), True),
        # Nothing says how far another draw would be.
        ((9.0, 0.0, 10), (3.0, 0.0, 10), False),
        ((9.0, 1.0, 16), (3.0, None, 1), False),
    ],
)
def test_a_goodput_moves_by_more_than_chance_explains(
    before: tuple[float, float | None, int], after: tuple[float, float | None, int], moves: bool
) -> None:
    """Before, a change of the means by 5 % was enough, which two runs of the same often differ by."""
    assert phases._moves(sample(*before), sample(*after)) == moves


def test_chance_is_not_put_down_to_phases(runs: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator's mean is 28 % lower in the second try, of two repetitions that are far from each other."""
    agreement = outside(runs)
    again = write_again(tmp_path / "again", {"sim": {"one": (3.5, 9.5)}, "kernel": {"one": (2.0, 4.2)}})
    monkeypatch.setattr(Sweep, "run", lambda _: again)
    assert list(phases.find_causes(runs, agreement)) == []


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


def test_only_the_algorithms_that_are_outside_run_again(runs: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = replace(runs.overrides, cc=("reno", "cubic", "lia"), reps=1, duration="6 s")
    several = replace(runs, overrides=overrides)
    agreement = outside(several)
    rows = agreement.rows.with_columns(pl.Series("base", ["cubic", "reno", "reno"]))
    verdicts = pl.Series("verdict", ["fails", "holds", "holds"])
    agreement = replace(agreement, rows=rows.with_columns(verdicts))
    asked = []

    def run(sweep: Sweep) -> Results:
        asked.append(sweep)
        return agreement.results

    monkeypatch.setattr(Sweep, "run", run)
    assert list(phases.find_causes(several, agreement)) == []
    assert [sweep.overrides.cc for sweep in asked] == [("cubic",)]


@pytest.mark.parametrize(
    ("engine", "spreads", "one"),
    [
        ("vm:bookworm", (4.0, 0.02), True),
        ("vm:bookworm", (4.0, 0.7), False),
        # Without a queue that decides anything, both engines agree on one goodput.
        ("vm:bookworm", (0.03, 0.02), False),
        ("fluid", (4.0, 0.0), False),
    ],
)
def test_a_machines_repetitions_that_coincide_are_one_draw(
    runs: Sweep, engine: str, spreads: tuple[float, float], one: bool
) -> None:
    difference = 0.01 if max(spreads) < 0.1 else 11.0
    rows = [
        {**row, "reference": 9.0, "mean": 9.0 * (1 + difference / 100), "difference": difference}
        for row in outside(runs, engine).rows.to_dicts()
    ]
    # The other flows have repetitions of their own.
    rows = [{**row, "spread_reference": 4.0, "spread": 3.0, "subflow": None} for row in rows]
    rows[1] |= {"spread_reference": spreads[0], "spread": spreads[1]}
    found = replace(outside(runs, engine), rows=pl.DataFrame(rows, schema_overrides={"subflow": pl.String}))
    assert phases.is_one_draw(found) is one


def test_the_settings_of_random_delays_are_those_of_the_links(runs: Sweep) -> None:
    overrides = phases.delayed(runs.overrides, {"neck": 1_200_000, "a": 830})
    [run] = resolved_runs(Path(runs.scenario), replace(overrides, reps=1))
    reorder = {link["name"]: link["reorder"] for link in run["links"] if link["reorder"] is not None}
    found = {name: (one["min_extra_delay_ns"], one["max_extra_delay_ns"]) for name, one in reorder.items()}
    assert found == {
        "neck": (0, 1_200_000),
        "a": (0, 830),
    }
