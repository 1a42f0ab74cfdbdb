"""How engines are compared: differences and verdicts against numbers worked by hand, causes on hand-made traces."""

from __future__ import annotations

import json
import platform
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kernel_program as k
import polars as pl
import pytest
import synthetic as s
from command_line import lab
from conftest import ROOT
from scipy.stats import ttest_ind

import mptcplab
from mptcplab import cli
from mptcplab.capabilities import KERNEL
from mptcplab.engines import kernel
from mptcplab.errors import EngineError, MptcplabError, RefusedError, ScenarioError
from mptcplab.metrics import certainty, emulation
from mptcplab.metrics.differences import compared, differences, of_means, of_pairs
from mptcplab.report import tables
from mptcplab.report.html import command
from mptcplab.results import Results
from mptcplab.studies.agreement import alike, causes, compare, figure, judge, losses, matrix, page, text
from mptcplab.study import workers
from mptcplab.study.store import Store
from mptcplab.study.verdict import Verdict

MP = s.tcp("mp", s.subflow("sf1", "a", "c"), s.subflow("sf2", "b", "c"), cc="lia")
TCP = s.tcp("tcp", s.subflow("only", "d", "c"))
LINKS = [
    s.link("a", "x", "m", 50, 4),
    s.link("b", "y", "m", 70, 7),
    s.link("d", "z", "m", 90, 2),
    s.link("c", "m", "n", 30, 3),
    *(s.link(f"{name}~", "n", "m", 1000, 1) for name in "abcd"),
]
# Base RTTs of 20, 30 and 10 ms: the largest at the shared link c is 30 ms.
BASE_RTT_MS = {"sf1": 20, "sf2": 30, "only": 10}
DURATION_S, WARMUP_S = 10, 2
# The second of three repetitions does not count.
COUNTS = ("complete", "invalid", "complete")


def scenario(**changes: Any) -> dict[str, Any]:
    flows = json.loads(json.dumps([MP, TCP]))
    for flow in flows:
        for part in flow["subflows"]:
            part["base_rtt_ns"] = BASE_RTT_MS[part["name"]] * 1_000_000
    return s.resolved(LINKS, flows, duration_s=DURATION_S, warmup_s=WARMUP_S) | changes


class Traces:
    """The tables of one engine; rows of repetition `rep` are made of growth in the window of 8 s."""

    def __init__(self, engine: str, reps: int = 1, **columns: Any) -> None:
        self.engine = engine
        self.runs = [{**s.run_row(rep, scenario(), rep=rep), "engine": engine, **columns} for rep in range(reps)]
        self.tables: dict[str, list[dict[str, Any]]] = {"flow": [], "subflow": [], "link": [], "event": []}

    def grows(self, table: str, rep: int = 0, **row: Any) -> Traces:
        """Counters are 0 when the window begins, and what is given when it ends."""
        keys = {name: row.pop(name) for name in ("flow", "subflow", "link") if name in row}
        self.tables[table] += [{"run": rep, "t": WARMUP_S, **keys}, {"run": rep, "t": DURATION_S, **keys, **row}]
        return self

    def row(self, table: str, t: float, rep: int = 0, **row: Any) -> Traces:
        self.tables[table].append({"run": rep, "t": t, **row})
        return self

    def goodput(self, flow: str, *mbps: float) -> Traces:
        """One value per repetition: over 8 s a megabit per second is a million bytes."""
        for rep, value in enumerate(mbps):
            self.grows("flow", rep, flow=flow, delivered_bytes=round(value * 1e6))
        return self

    def wire(self, flow: str, subflow: str, mbps: float) -> Traces:
        size = round(mbps * 1e6)
        return self.grows("subflow", flow=flow, subflow=subflow, rx_wire_bytes=size, rx_payload_bytes=size)


def results(home: Path, *engines: Traces) -> Results:
    for traces in engines:
        s.write(home / traces.engine.replace(":", "-"), traces.runs, **traces.tables)
    return mptcplab.load(home)


def pair_of(home: Path, one: Traces, other: Traces) -> causes.Pair:
    found = results(home, one, other)
    sides = {
        name: causes.Side(found, name, tuple(found.runs.filter(engine=name)["run"]))
        for name in (one.engine, other.engine)
    }
    return causes.Pair(sides[one.engine], sides[other.engine], pl.DataFrame({"verdict": []}))


def told(home: Path, cause: causes.Check, one: Traces, other: Traces) -> dict[str, str]:
    return dict(cause(pair_of(home, one, other)))


def three(home: Path) -> Results:
    """mp gets 10 and 12 Mbit/s simulated, 11 and 15.4 on the kernel, 10.5 and 12.6 in the fluid."""
    return results(
        home,
        Traces("sim", 2).goodput("mp", 10, 12).goodput("tcp", 7, 9),
        Traces("kernel", 2).goodput("mp", 11, 15.4).goodput("tcp", 7.3, 9.3),
        Traces("fluid", 2).goodput("mp", 10.5, 12.6).goodput("tcp", 6, 8),
    )


def test_differences_are_taken_in_pairs(tmp_path: Path) -> None:
    """kernel: R = 26.4 / 22 = 1.2, residuals y - R x = -1 and 1, so 12.706 sqrt(2) / sqrt(2) / 11 = 115.5 %.

    fluid: exactly 1.05 times in both repetitions, so there is no spread, although the repetitions differ by a fifth.
    """
    found = three(tmp_path)
    rows = differences(found, found.metrics(["goodput"]), ["goodput"]).filter(pl.col("subflow").is_null())
    assert rows.select("flow", "engine").rows() == [
        (flow, engine) for flow in ("mp", "tcp") for engine in ("kernel", "fluid")
    ]
    mp = rows.filter(flow="mp")
    assert mp["reference"].to_list() == pytest.approx([11, 11])
    assert mp["mean"].to_list() == pytest.approx([13.2, 11.55])
    assert mp["difference"].to_list() == pytest.approx([20, 5])
    assert mp["half"].to_list() == pytest.approx([100 * 12.7062 / 11, 0], rel=1e-4, abs=1e-9)
    assert mp["n"].to_list() == [2, 2]
    assert rows.filter(flow="tcp")["difference"].to_list() == pytest.approx([100 * 0.3 / 8, -12.5])


@pytest.mark.parametrize("real", [(8, 10), (8, 10, 9)])
def test_the_spread_of_repetitions_is_told_by_engine(tmp_path: Path, real: tuple[float, ...]) -> None:
    """Of 8 and 10 it is sqrt(2) of 9, of 8, 10 and 9 it is 1 of 9; of 6 and 10 it is sqrt(8) of 8, in percent."""
    found = results(tmp_path, Traces("sim", 2).goodput("mp", 6, 10), Traces("kernel", len(real)).goodput("mp", *real))
    [row] = differences(found, found.metrics(["goodput"]), ["goodput"]).filter(flow="mp").rows(named=True)
    assert row["spread_reference"] == pytest.approx(100 * 8**0.5 / 8)
    assert row["spread"] == pytest.approx(100 * (2**0.5 if len(real) == 2 else 1) / 9)


def test_a_mean_of_zero_and_one_repetition_have_no_spread(tmp_path: Path) -> None:
    zeros = Traces("sim", 2).goodput("mp", 0, 0).goodput("tcp", 7, 9)
    found = results(tmp_path, zeros, Traces("kernel").goodput("mp", 3).goodput("tcp", 8))
    rows = differences(found, found.metrics(["goodput"]), ["goodput"]).filter(pl.col("subflow").is_null())
    assert rows.select("flow", "spread").rows() == [("mp", None), ("tcp", None)]
    assert rows["spread_reference"].to_list() == [None, pytest.approx(100 * 2**0.5 / 8)]


@pytest.mark.parametrize(
    ("reference", "mean", "spreads", "one"),
    [
        # Ten times the same beside others that spread, on either engine.
        (10.0, 8.0, (13.0, 0.0), True),
        (10.0, 8.0, (0.0, 13.0), True),
        # 0.09 % is little beside 1 %, not beside 0.8 %; 0.1 % is not little.
        (10.0, 10.1, (0.5, 0.09), True),
        (10.0, 10.08, (0.5, 0.09), False),
        (10.0, 10.08, (0.9, 0.09), True),
        (10.0, 8.0, (13.0, 0.1), False),
        # Nothing varies on either engine: one trajectory on each.
        (10.0, 9.9, (0.0, 0.0), True),
        (0.0, 3.0, (None, 0.05), True),
        (10.0, 8.0, (None, None), False),
        (10.0, 8.0, (13.0, None), False),
    ],
)
def test_repetitions_that_all_but_coincide_are_one_trajectory(
    reference: float, mean: float, spreads: tuple[float | None, float | None], one: bool
) -> None:
    assert certainty.is_one_trajectory(reference, mean, *spreads) == one


def test_a_fluid_has_no_trajectory(tmp_path: Path) -> None:
    """It gives the same in every repetition, and would in any other."""
    same = (Traces(name, 2).goodput("mp", 8, 8) for name in ("kernel", "fluid"))
    found = judge.judge(results(tmp_path, Traces("sim", 2).goodput("mp", 9, 11), *same))
    rows = matrix._rows_of(found.rows.filter(pl.col("subflow").is_null(), metric="goodput", flow="mp"))
    assert [(row.spread, row.one_trajectory) for row in rows] == [(0.0, True), (None, False)]


def test_a_difference_of_one_trajectory_has_no_interval_on_the_page() -> None:
    """Before, ten equal repetitions were shown as "± 0.0 %", or with an interval of the simulator's spread alone."""
    told = {"lia": (0.0, "-21.0 %, one trajectory"), "olia": (0.3, "-21.0 ± 0.0 %")}
    rows = tuple(
        matrix.Row(cc, "goodput", "mp", 10.0, 7.9, -21.0, 0.04, 20, 10, Verdict.FAILS, None, spread)
        for cc, (spread, _) in told.items()
    )
    entry = matrix.Entry("papers/x/one.toml", Verdict.FAILS, rows, title="One")
    found = matrix.Matrix(("sim", "kernel"), "mptcplab agree --all", (entry,))
    text = page.page(found, with_figure=False)
    for cc, (_, difference) in told.items():
        assert f"| {cc} | goodput of `mp` | 10.00 Mbit/s | 7.90 Mbit/s | {difference} | 20, 10 | fails |" in text
    # Of one draw nobody knows whether all of its interval is outside.
    assert "0 of 2 flows within 15 %; 2 outside, 1 with the whole interval; 1 without one; median" in text
    assert matrix.Matrix.from_json(found.to_json()) == found


def test_a_difference_of_one_trajectory_has_no_interval_in_a_table(tmp_path: Path) -> None:
    """The terminal and the report showed ± 0.0, or an interval of the simulator's spread alone."""
    same = (Traces(name, 3).goodput("mp", 8, 8, 8).goodput("tcp", *tcp) for name, tcp in ENGINES_WITH_TCP.items())
    found = results(tmp_path, Traces("sim", 3).goodput("mp", 9, 10, 11).goodput("tcp", 5, 5, 5), *same)
    whole, of_goodput = tables.engine_comparison(found), text.tables(judge.judge(found))
    assert whole is not None
    for table in (whole, of_goodput[0]):
        heads = [" ".join(name.split()) for name, _ in table.head]
        shown = {row[1]: [row[heads.index(f"Difference {name}")] for name in ENGINES_WITH_TCP] for row in table.rows}
        # mp: one trajectory of the kernel; a fluid has none, and 4.303 * 0.8 / sqrt(3) is 1.99 of 10. tcp: one
        # trajectory of the simulator beside either.
        assert shown == {"mp": ["-20.0", "-20.0 ± 19.9"], "tcp": ["-16.0", "+20.0"]}
    for table in (whole, of_goodput[-1]):
        assert table.notes[1:] == (
            "a difference has no interval where the repetitions of an engine all but coincide: one trajectory; a "
            "random delay behind full links (the key `reorder`, with a probability of 100 %) makes them differ",
        )
    rows = tables.comparison_frame(found)
    assert rows is not None
    with_fluid = tables.engine_table(rows.filter(pl.col("engine") == "fluid"), ["sim", "fluid"])
    assert with_fluid.notes[1].endswith("all but coincide: one trajectory")


ENGINES_WITH_TCP = {"kernel": (4.0, 4.2, 4.4), "fluid": (6.0, 6.0, 6.0)}


def test_udp_flows_are_not_compared(tmp_path: Path) -> None:
    """A stream of 3 Mbit/s on both engines would only make the median look better."""
    udp = {"name": "noise", "transport": "udp", "path": ["d", "c"], "rate_bps": 3e6, "on_off": None}
    made = scenario()
    made["flows"].append(udp | {"start_ns": 0, "stop_ns": None})
    engines = Traces("sim").goodput("mp", 10).goodput("noise", 3), Traces("kernel").goodput("mp", 8).goodput("noise", 3)
    for traces in engines:
        traces.runs = [row | {"resolved": json.dumps(made)} for row in traces.runs]
    found = results(tmp_path, *engines)
    rows = differences(found, found.metrics(["goodput"]), ["goodput"])
    assert rows.select("flow", "difference").rows() == [("mp", pytest.approx(-20))]


def test_differences_of_fractions_are_in_their_own_unit(tmp_path: Path) -> None:
    """Shares of 3/4 and 3/5 are 0.15 apart, not 20 %; losses of 2 and 5 % three points."""
    sim, real = Traces("sim"), Traces("kernel")
    for traces, shares, lost in ((sim, (9, 3), 20), (real, (6, 4), 50)):
        for name, mbps in zip(("sf1", "sf2"), shares, strict=True):
            size = mbps * 1_000_000
            mine = {"sent_pkts": 1000, "lost_pkts": lost} if name == "sf1" else {"sent_pkts": 400, "lost_pkts": 4}
            traces.grows("subflow", flow="mp", subflow=name, rx_wire_bytes=size, rx_payload_bytes=size, **mine)
    found = results(tmp_path, sim, real)
    rows = differences(found, found.metrics(["share", "plr"]), ["share", "plr"])
    share = rows.filter(metric="share", subflow="sf1").row(0, named=True)
    assert (share["reference"], share["mean"]) == (0.75, 0.6)
    assert share["difference"] == pytest.approx(-0.15)
    plr = rows.filter(metric="plr", subflow="sf1").row(0, named=True)
    assert plr["difference"] == pytest.approx(3)
    # What holds for the whole flow stands before what holds for its subflows.
    assert rows.filter(metric="plr")["subflow"].to_list() == [None, "sf1", "sf2"]


def test_only_repetitions_that_count_on_all_engines_are_compared(tmp_path: Path) -> None:
    """The kernel's first repetition is invalid: of all three engines only the second is left."""
    real = Traces("kernel", 2).goodput("mp", 99, 9)
    real.runs = [row | {"status": status} for row, status in zip(real.runs, ("invalid", "complete"), strict=True)]
    for row in real.runs:
        row["status_reason"] = ""
    others = [Traces("sim", 2).goodput("mp", 10, 12), Traces("fluid", 2).goodput("mp", 50, 15)]
    for traces in others:
        traces.runs = [row | {"status": "complete", "status_reason": ""} for row in traces.runs]
    found = results(tmp_path, others[0], real, others[1])
    rows = differences(found, found.metrics(["goodput"]), ["goodput"]).filter(pl.col("subflow").is_null())
    assert rows.select("engine", "n", "reference", "mean").rows() == [
        ("kernel", 1, 12.0, 9.0),
        ("fluid", 1, 12.0, 15.0),
    ]
    assert rows["half"].to_list() == [None, None]


def test_unequal_numbers_of_repetitions_are_compared_by_their_means(tmp_path: Path) -> None:
    """Four simulated repetitions beside three on the kernel, of which one does not count: SciPy's Welch interval."""
    real = Traces("kernel", 3).goodput("mp", 9, 99, 15)
    real.runs = [row | {"status": status, "status_reason": ""} for row, status in zip(real.runs, COUNTS, strict=True)]
    sim = Traces("sim", 4).goodput("mp", 10, 12, 11, 13)
    sim.runs = [row | {"status": "complete", "status_reason": ""} for row in sim.runs]
    found = results(tmp_path, sim, real)
    rows = differences(found, found.metrics(["goodput"]), ["goodput"]).filter(pl.col("subflow").is_null())
    assert rows.select("n_reference", "n", "reference", "mean").row(0) == (4, 2, 11.5, 12.0)
    assert rows["difference"][0] == pytest.approx(100 * 0.5 / 11.5)
    scaled = [value * 12 / 11.5 for value in (10, 12, 11, 13)]
    interval = ttest_ind([9, 15], scaled, equal_var=False).confidence_interval()
    assert rows["half"][0] == pytest.approx(100 * (interval.high - interval.low) / 2 / 11.5)


@pytest.mark.parametrize(
    ("metric", "simulated", "real", "error", "degrees"),
    [
        # The means are 1 and 2.5, so the simulator's variance counts 2.5^2 times: 0.25 / 3 + 6.25 * 0.208333 / 4.
        ("goodput", [0.5, 1.5, 0.75, 1.25], [2.0, 2.5, 3.0], 0.639417, 4.30902),
        # It counts once where the difference is one of fractions: 0.25 / 3 + 0.208333 / 4.
        ("jain", [0.5, 1.5, 0.75, 1.25], [2.0, 2.5, 3.0], 0.367990, 4.19011),
        # How many times the simulator's mean the other one is cannot be said.
        ("goodput", [0.0, 0.0], [1.0, 3.0], None, 1.0),
    ],
)
def test_the_error_of_independent_repetitions_is_welchs(
    metric: str, simulated: list[float], real: list[float], error: float | None, degrees: float
) -> None:
    values = {"sim": simulated, "vm": real}
    rows = [(metric, engine, value) for engine, of in values.items() for value in of]
    found = pl.DataFrame(rows, schema=["metric", "engine", "value"], orient="row")
    [row] = of_means(found, "sim", ["metric", "engine"]).rows(named=True)
    assert row["error"] == (None if error is None else pytest.approx(error, rel=1e-5))
    assert row["degrees"] == pytest.approx(degrees, rel=1e-5)


@pytest.mark.parametrize("error", [of_pairs, of_means])
def test_nothing_in_percent_of_what_may_be_nothing_has_no_interval(error: Callable[..., pl.DataFrame]) -> None:
    """None, against 0.4 ± 1.1 packets that were sent again, and against 7.6 ± 1.4."""
    for reference, half in (([2, 0, 0, 0, 0], None), ([7, 8, 9, 6, 8], 0.0)):
        sides = {"sim": reference, "kernel": [0] * 5}
        rows = [("retx", engine, str(rep), float(v)) for engine, side in sides.items() for rep, v in enumerate(side)]
        found = pl.DataFrame(rows, schema=["metric", "engine", "rep", "value"], orient="row")
        [row] = compared(error(found, "sim", ["metric", "engine"])).rows(named=True)
        assert (row["difference"], row["half"]) == (-100, half)


def test_equal_repetitions_on_each_engine_have_no_interval_to_widen(tmp_path: Path) -> None:
    """Nothing varies on either engine: the difference is exact, and its interval empty, not unknown."""
    found = results(tmp_path, Traces("sim", 3).goodput("mp", 8, 8, 8), Traces("kernel", 2).goodput("mp", 10, 10))
    [row] = differences(found, found.metrics(["goodput"]), ["goodput"]).filter(flow="mp").rows(named=True)
    assert (row["difference"], row["half"], row["n_reference"], row["n"]) == (25.0, 0.0, 3, 2)


def test_the_simulator_may_have_more_repetitions(scenario: Path, tmp_path: Path) -> None:
    """Five of them beside two of the fluid; the first two draw what the fluid's draw; the report has the command."""
    seen: list[tuple[int, int, float, float]] = []
    found = mptcplab.agree(
        scenario,
        "sim,fluid",
        cc="lia",
        reps=2,
        sim_reps=5,
        duration="4 s",
        settings={"warmup": '"1 s"'},
        out=tmp_path / "out",
        progress=lambda *now: seen.append(now),
    )
    assert {runs for _, runs, _, _ in seen} == {7}
    assert seen[-1] == (7, 7, 28.0, 28.0)
    assert found.results.configs.group_by("engine").len().sort("engine").rows() == [("fluid", 2), ("sim", 5)]
    rows = found.rows.filter(pl.col("subflow").is_null()).filter(metric="goodput")
    assert rows.select("n_reference", "n").unique().rows() == [(5, 2)]
    repeated = command(found.results)
    assert repeated.startswith("mptcplab agree ")
    assert "--engines sim,fluid --sim-reps 5" in repeated
    seeds = found.results.runs.filter(pl.col("rep") < 2).group_by("rep").agg(pl.col("seed").n_unique())
    assert seeds["seed"].to_list() == [1, 1]


def test_more_repetitions_of_the_simulator_need_another_engine(scenario: Path) -> None:
    with pytest.raises(mptcplab.MptcplabError, match=r"no other engine in sim: 5\n\n.*--reps"):
        mptcplab.run(scenario, sim_reps=5)


def test_every_engine_is_judged_by_its_own_bounds(tmp_path: Path) -> None:
    """kernel: +20 % and +3.75 %, median 11.9 %. fluid: +5 % and -12.5 %, median 8.75 %, which nobody asks for."""
    found = judge.judge(three(tmp_path))
    real, fluid = found.findings
    assert real.worst_percent == pytest.approx(20)
    assert real.median_percent == pytest.approx((20 + 3.75) / 2)
    assert (real.engine, real.outside, real.verdict) == ("kernel", 1, "fails")
    assert fluid.median_percent == pytest.approx(8.75)
    assert (fluid.engine, fluid.outside, fluid.verdict) == ("fluid", 0, "holds")
    assert found.verdict == "fails"
    [(base, engine, rows)] = found.outside()
    assert (base, engine, rows["flow"].to_list()) == ("lia", "kernel", ["mp"])
    assert "15.0 % at the median" not in real.text
    assert re.search(r"fails: kernel against sim: 1 of 2 outside .* 20\.0 % at most; 11\.9 %", real.text)


def test_a_median_alone_can_fail(tmp_path: Path) -> None:
    """Both flows are 10 % off: within 15 %, but the median is beyond 5 %."""
    sim = Traces("sim").goodput("mp", 10).goodput("tcp", 20)
    found = judge.judge(results(tmp_path, sim, Traces("kernel").goodput("mp", 11).goodput("tcp", 18)))
    assert (found.findings[0].outside, found.findings[0].verdict) == (0, "fails")


def test_the_page_judges_a_section_as_the_command_that_repeats_it(tmp_path: Path) -> None:
    """Before, the page left out the median of a section: it held there, and the command said that it fails."""
    sim = Traces("sim").goodput("mp", 10).goodput("tcp", 20)
    found = judge.judge(results(tmp_path, sim, Traces("kernel").goodput("mp", 11).goodput("tcp", 18)))
    entry = matrix._with_numbers(matrix.Entry("x.toml", Verdict.NOT_TESTABLE), found, ("sim", "kernel"))
    assert entry.verdict == found.findings[0].verdict == "fails"
    told = "fails: all 2 flows within 15 %, but their median 10.0 % is beyond 5 %"
    # One repetition has no interval.
    assert entry.summary(judge.PACKETS) == told
    # A fluid's median has no bound.
    assert entry.judged(judge.FLUID).verdict == "holds"


whole = "the whole interval"


@pytest.mark.parametrize(
    ("percent", "jain", "told"),
    [
        ((5.0,), 0.01, "holds: its flow is within 15 % (with the whole interval)"),
        ((-7.5,), 0.01, f"fails: its flow is within 15 % (with {whole}), but its distance of 7.5 % is beyond 5 %"),
        ((14.8,), 0.01, f"fails: its flow is within 15 % (not with {whole}), but its distance of 14.8 % is beyond 5 %"),
        ((4.0, 4.0, 14.7), 0.04, f"fails: all 3 flows within 15 % (2 with {whole}), but Jain's index is outside"),
        (
            (2.0, -9.0),
            0.04,
            f"fails: all 2 flows within 15 % (2 with {whole}), but Jain's index is outside and their median 5.5 % is "
            "beyond 5 %",
        ),
        (
            (-19.0, 1.0),
            0.04,
            f"fails: 1 of 2 flows outside 15 % (1 with {whole}), Jain's index is outside, and the median of 10.0 % is "
            "beyond 5 %",
        ),
        ((1.0, 15.4, -2.0), 0.03, f"fails: 1 of 3 flows outside 15 % (0 with {whole})"),
        ((3.0, 4.0, 16.0), -0.04, f"fails: 1 of 3 flows outside 15 % (1 with {whole}), and Jain's index is outside"),
        (
            (16.0, 4.0, 6.0),
            0.03,
            f"fails: 1 of 3 flows outside 15 % (1 with {whole}), and the median of 6.0 % is beyond 5 %",
        ),
    ],
)
def test_the_outcome_of_a_section_says_what_is_outside(percent: tuple[float, ...], jain: float, told: str) -> None:
    rows = [
        matrix.Row("lia", "goodput", f"f{at}", 10.0, 10.0 + d / 10, d, 0.5, 9, 8, Verdict.of(abs(d) <= 15))
        for at, d in enumerate(percent)
    ]
    rows.append(matrix.Row("lia", "jain", None, 0.9, 0.9 + jain, jain, 0.001, 9, 8, Verdict.of(abs(jain) <= 0.03)))
    entry = matrix.Entry("x.toml", Verdict.HOLDS, tuple(rows)).judged(judge.PACKETS)
    assert entry.summary(judge.PACKETS) == told


def counted(*rows: tuple[float, float | None, float | None], metric: str = "goodput") -> list[matrix.Row]:
    """Rows of differences with half of their intervals and the spread of the other engine."""
    bound = {"goodput": 15, "jain": 0.03}[metric]
    return [
        matrix.Row("lia", metric, f"f{at}", 10.0, 9.0, d, half, 9, 8, Verdict.of(abs(d) <= bound), None, spread)
        for at, (d, half, spread) in enumerate(rows)
    ]


def test_the_page_counts_the_differences_whose_whole_interval_is_inside_or_outside() -> None:
    """Before, it said of how many flows the whole interval is outside, and not of how many it is inside."""
    several = counted((2, 13, 5), (-2, 13.1, 5), (15, 0, 5), (-16, 0.9, 5), (16, 1, 5), (17, 2.1, 5), (3, 1, 0))
    indices = counted((0.01, 0.019, 5), (-0.02, 0.02, 5), (0.05, 0.01, 5), (0.04, None, None), metric="jain")
    simple = matrix.Entry("papers/x/near.toml", Verdict.HOLDS, tuple(counted((3, 2, 5))), title="Near")
    entry = matrix.Entry("papers/x/many.toml", Verdict.FAILS, (*several, *indices), title="Many")
    found = matrix.Matrix(("sim", "kernel"), "mptcplab agree --all", (entry, simple))
    flows = (
        "4 of 7 flows within 15 %, 2 with the whole 95 % interval; 3 outside, 1 with the whole interval; 1 without one"
    )
    index = (
        "Jain's index: 2 of 4 comparisons within 0.03, 1 with the whole 95 % interval; 2 outside, 1 with the whole "
        "interval; 1 without one."
    )
    text = page.page(found, with_figure=False)
    assert f"\n\n{flows}. {index}\n\n" in text
    all_flows = flows.replace("4 of 7", "5 of 8").replace("2 with", "3 with")
    total = f"2 of 2 scenarios ran on both engines; 1 of them fails. {all_flows}; median distance 9.0 %. {index}"
    assert f"**Verdict: fails.** {total}" in text
    assert found.lines()[-1] == f"fails: {total}"
    # Where all intervals are inside, the verdict needs no addition.
    assert "1 of 1 flow" not in text
    assert "A verdict rests on the point estimate alone" in text


def test_the_command_counts_the_differences_whose_whole_interval_is_inside_or_outside(tmp_path: Path) -> None:
    """mp: 2 % more, by an interval that is wider than 15 %; tcp: 30 % more, by two repetitions that are the same."""
    sim = Traces("sim", 3).goodput("mp", 8, 9, 10).goodput("tcp", 19, 20, 21)
    real = Traces("kernel", 2).goodput("mp", 9.1, 9.3).goodput("tcp", 26, 26)
    [finding] = judge.judge(results(tmp_path, sim, real)).findings
    assert finding.as_dict()["counts"] == {
        "inside": 1,
        "whole_inside": 0,
        "outside": 1,
        "whole_outside": 0,
        "unknown": 1,
    }
    assert finding.text.startswith(
        "fails: kernel against sim: 1 of 2 outside the bounds of 15 % and 0.03 by the point estimate; "
        "with the whole 95 % interval 0 outside and 0 inside, 1 without an interval; goodput of a flow differs by 30.0"
    )


def test_sections_of_an_earlier_page_are_judged_anew() -> None:
    """The median of all flows is 2 %, that of one section 9 %: before, it held, and so did the page."""
    far, near = (
        matrix.Entry(
            f"papers/{name}.toml",
            Verdict.HOLDS,
            tuple(
                matrix.Row("lia", "goodput", f"f{at}", 10.0, 10.0 + d / 10, d, None, 1, 1, Verdict.HOLDS)
                for at, d in enumerate(percent)
            ),
        )
        for name, percent in (("far", (8.0, -10.0)), ("near", (1.0, 2.0, -2.0)))
    )
    written = matrix.Matrix(("sim", "kernel"), "mptcplab agree --all", (far, near)).to_json()
    found = matrix.Matrix.from_json(written)
    assert [entry.verdict for entry in found.entries] == ["fails", "holds"]
    assert (found.median_percent, found.verdict) == (2.0, "fails")


def test_jain_is_judged_by_its_distance(tmp_path: Path) -> None:
    """(10, 10) and (16, 4): indices of 1 and 400 / (2 * 272) = 0.735, 0.265 apart; goodput is the same on both."""
    sim = Traces("sim").wire("mp", "sf1", 10).wire("tcp", "only", 10).goodput("mp", 9).goodput("tcp", 8)
    real = Traces("kernel").wire("mp", "sf1", 16).wire("tcp", "only", 4).goodput("mp", 9).goodput("tcp", 8)
    found = judge.judge(results(tmp_path, sim, real))
    row = found.rows.filter(metric="jain").row(0, named=True)
    assert (row["difference"], row["verdict"]) == (pytest.approx(400 / 544 - 1), "fails")
    assert found.rows.filter(metric="goodput", verdict="fails").is_empty()


def test_zero_against_a_value_is_outside_and_two_zeros_do_not_differ(tmp_path: Path) -> None:
    sim = Traces("sim").goodput("mp", 0).goodput("tcp", 0)
    found = judge.judge(results(tmp_path, sim, Traces("kernel").goodput("mp", 3).goodput("tcp", 0)))
    goodput = found.rows.filter(metric="goodput").select("flow", "difference", "verdict").rows()
    assert goodput == [("mp", None, "fails"), ("tcp", 0.0, "holds")]


def test_without_a_pair_of_runs_the_verdict_is_not_testable(tmp_path: Path) -> None:
    sim, real = Traces("sim").goodput("mp", 5), Traces("kernel").goodput("mp", 6)
    for traces, status in ((sim, "complete"), (real, "invalid")):
        traces.runs = [row | {"status": status, "status_reason": "late"} for row in traces.runs]
    found = judge.judge(results(tmp_path, sim, real))
    assert found.verdict == "not testable"
    assert "nothing to compare" in found.findings[0].text
    assert json.loads(json.dumps(found.as_dict()))["rows"] == []


def test_unequal_numbers_of_repetitions_of_which_none_counts_on_one_engine_are_not_testable(tmp_path: Path) -> None:
    sim, real = Traces("sim", 3).goodput("mp", 5, 6, 7), Traces("kernel", 2).goodput("mp", 6, 9)
    for traces, status in ((sim, "complete"), (real, "invalid")):
        traces.runs = [row | {"status": status, "status_reason": "late"} for row in traces.runs]
    assert judge.judge(results(tmp_path, sim, real)).verdict == "not testable"


def test_late_emulation_is_reported_as_a_fraction_of_the_round_trip(tmp_path: Path) -> None:
    """sf1 (20 ms): 300 + 500 + 100 + 200 us = 1.1 ms, 5.5 %; sf2 (30 ms): 0.9 ms, 3 %; tcp (10 ms): 0.7 ms, 7 %."""
    late = {"a": 300, "a~": 100, "c": 500, "c~": 200, "b": 150, "b~": 50}
    emulator = {"links": [{"link": name, "late_p99_ns": 1000 * us} for name, us in late.items()]}
    real = Traces("kernel", host=json.dumps({"emulator": emulator}))
    found = told(tmp_path, causes.lateness, Traces("sim", host="{}"), real)
    assert set(found) == {"mp sf1", "tcp only"}
    assert "1.1 ms in sum (99th percentiles), 6 % of its base RTT" in found["mp sf1"]
    assert "700 µs in sum (99th percentiles), 7 %" in found["tcp only"]


def with_links(traces: Traces, *of_runs: dict[str, dict[str, int]]) -> Traces:
    """What the emulator recorded of every link, for each run."""
    for row, links in zip(traces.runs, of_runs, strict=True):
        recorded = [{"link": name, **values} for name, values in links.items()]
        row["host"] = json.dumps({"emulator": {"links": recorded}})
    return traces


def test_without_answers_the_simulators_jitter_is_the_median_lateness_of_round_trips(tmp_path: Path) -> None:
    """Sums of 1100, 900 and 700 us as above, and twice as much in the other repetition: the median is 1250 us."""
    late = {"a": 300, "a~": 100, "c": 500, "c~": 200, "b": 150, "b~": 50}
    runs = [{name: {"late_p99_ns": 1000 * us * factor} for name, us in late.items()} for factor in (1, 2)]
    real = with_links(Traces("kernel", 2), *runs)
    s.write(tmp_path / "kernel", real.runs, **real.tables)
    assert emulation.host_times(mptcplab.load(tmp_path / "kernel")) == emulation.HostTimes(0, 1_250_000)
    s.write(tmp_path / "none", Traces("kernel").runs, **real.tables)
    assert emulation.host_times(mptcplab.load(tmp_path / "none")) == emulation.HostTimes(0, 0)


def test_the_simulators_hosts_take_what_the_kernels_do(tmp_path: Path) -> None:
    """sf1 (a, c), sf2 (b, c) and tcp (d, c) end at c and, on their ways back, at a~, b~ and d~.

    c takes 4 to 9 us, a~ 5 to 12, b~ 7 to 8, d~ 6 to 20: sf1 9 and 12 more, sf2 11 and 6, tcp 10 and 19. The other
    repetition has twice as much, so that the medians of six are (11 + 18) / 2 and (12 + 19) / 2.
    """
    took = {"a": None, "a~": (5, 12), "c": (4, 9), "c~": None, "d": None, "d~": (6, 20), "b": None, "b~": (7, 8)}
    runs = []
    for factor in (1, 2):
        links = {}
        for name, answer in took.items():
            least, most = answer or (0, 0)
            links[name] = {
                "late_p99_ns": 1000,
                "answers": 77 if answer else 0,
                "answer_p1_ns": 1000 * factor * least,
                "answer_p99_ns": 1000 * factor * most,
            }
        runs.append(links)
    real = with_links(Traces("kernel", 2), *runs)
    s.write(tmp_path / "kernel", real.runs, **real.tables)
    assert emulation.host_times(mptcplab.load(tmp_path / "kernel")) == emulation.HostTimes(14_500, 15_500)


def jittered(engine: str, *jitters_ns: int | None) -> Traces:
    """A repetition for each `send_jitter`, which is that of sf2; None leaves it out."""
    traces = Traces(engine, len(jitters_ns))
    for row, jitter_ns in zip(traces.runs, jitters_ns, strict=True):
        made = scenario()
        made["flows"][0]["subflows"][1] |= {} if jitter_ns is None else {"send_jitter_ns": jitter_ns}
        row["resolved"] = json.dumps(made)
    return traces


def test_the_jitter_of_the_simulator_is_named_beside_the_engine_that_needs_none(tmp_path: Path) -> None:
    """Of two repetitions the larger one counts. Without a kernel, or without jitter, there is nothing to say."""
    both = results(tmp_path / "both", jittered("sim", 250_000, 400_000), jittered("kernel", 900_000))
    sentence = "noise: sim delayed every packet at random by up to 400 µs; kernel was late by itself"
    assert emulation.noise_note(both) == sentence
    two = results(tmp_path / "two", jittered("sim", 1), jittered("kernel", None), jittered("vm:bookworm", None))
    assert (
        emulation.noise_note(two)
        == "noise: sim delayed every packet at random by up to 1 ns; kernel was late by itself"
    )
    assert emulation.noise_note(results(tmp_path / "sim", jittered("sim", 250_000), jittered("fluid", None))) is None
    assert emulation.noise_note(results(tmp_path / "none", jittered("sim", None), jittered("kernel", None))) is None
    assert emulation.noise_note(results(tmp_path / "kernel", jittered("kernel", 900_000))) is None
    assert emulation.simulated_host_times(mptcplab.load(tmp_path / "kernel")) == emulation.HostTimes(0, 0)


def test_what_the_simulators_hosts_took_is_named_beside_the_jitter(tmp_path: Path) -> None:
    sim = jittered("sim", 9_000, 7_000)
    for row, delay_ns in zip(sim.runs, (11_000, 12_000), strict=True):
        made = json.loads(row["resolved"])
        made["flows"][1]["host_delay_ns"] = delay_ns
        row["resolved"] = json.dumps(made)
    found = emulation.noise_note(results(tmp_path, sim, jittered("kernel", None)))
    told = "noise: sim delayed every packet by 12 µs and at random by up to 9 µs more; kernel was late by itself"
    assert found == told


def test_waiting_for_the_receive_window_is_reported_as_a_fraction_of_time(tmp_path: Path) -> None:
    """0.2 of 8 s is 2.5 %; 0.04 s is half a percent and too little."""
    one = Traces("sim").grows("flow", flow="mp", blocked_ns=40_000_000).grows("flow", flow="tcp", blocked_ns=0)
    two = Traces("kernel").grows("flow", flow="mp", blocked_ns=200_000_000).grows("flow", flow="tcp", blocked_ns=9)
    found = told(tmp_path, causes.receive_window, one, two)
    assert found == {
        "mp": "receive window: mp had to wait for it 0.5 % of the time on sim and 2.5 % of the time on kernel"
    }


def test_what_an_engine_cannot_measure_is_called_unknown(tmp_path: Path) -> None:
    one = Traces("sim").grows("flow", flow="mp", blocked_ns=800_000_000)
    two = Traces("kernel").grows("flow", flow="mp", blocked_ns=None)
    text = told(tmp_path, causes.receive_window, one, two)["mp"]
    assert "10.0 % of the time on sim and an unknown part of the time on kernel" in text


def slow_start(engine: str, **samples: tuple[float, int, int]) -> Traces:
    """Subflows with (time of the first threshold, threshold, loss events until then); no threshold before."""
    traces = Traces(engine)
    for name, (at, threshold, events) in samples.items():
        flow = "tcp" if name == "only" else "mp"
        who = {"flow": flow, "subflow": name, "srtt_us": 40_000}
        traces.row("subflow", at - 0.01, ssthresh_pkts=None, **who)
        traces.row("subflow", at, ssthresh_pkts=threshold, loss_events=events, **who)
        traces.row("subflow", at + 4, ssthresh_pkts=threshold // 2, loss_events=events + 3, **who)
    return traces


def test_an_end_of_slow_start_without_loss_is_reported_with_its_window(tmp_path: Path) -> None:
    """sf1 leaves at 60 packets without a loss in the simulator only; sf2 quietly on both, at 50 and 80: 1.6 times.

    tcp ends by a loss on both. sf1's path holds 30 Mbit/s * 20 ms / 8 / 1514 bytes = 49.5 packets.
    """
    one = slow_start("sim", sf1=(0.5, 60, 0), sf2=(0.6, 50, 0), only=(0.7, 90, 1))
    two = slow_start("kernel", sf1=(0.5, 35, 1), sf2=(0.8, 80, 0), only=(0.9, 20, 2))
    found = told(tmp_path, causes.slow_start_exit, one, two)
    assert set(found) == {"mp sf1", "mp sf2"}
    assert "1 of 1 runs on sim (at 60 packets) and 0 of 1 runs on kernel; the path holds 50 packets" in found["mp sf1"]
    assert "on sim (at 50 packets) and 1 of 1 runs on kernel (at 80 packets)" in found["mp sf2"]


def test_a_warm_up_that_ends_soon_after_slow_start_is_reported(tmp_path: Path) -> None:
    """The window begins at 2 s, srtt is 40 ms: from 1 s 25 round trips, from -0.5 s more than 50, from 3 s none."""
    one = slow_start("sim", sf1=(1.0, 60, 0), only=(0.02, 90, 1))
    two = slow_start("kernel", sf1=(3.0, 35, 1))
    for rows in (one.tables["subflow"], two.tables["subflow"]):
        for row in rows:
            row["srtt_us"] = 40_000 if row["subflow"] == "sf1" else 30_000
    found = told(tmp_path, causes.short_warmup, one, two)
    assert found == {
        "mp sf1": "short warm-up: the window begins at 2 s, and slow start of mp sf1 ended 25 round trips earlier, at "
        "1.0 s, on sim and later, at 3.0 s, on kernel"
    }


def test_bursts_are_recognised_by_the_packets_lost_per_event(tmp_path: Path) -> None:
    """sf1: 30 / 20 and 60 / 20, twice as many; sf2: 30 / 20 and 44 / 22, a third more; tcp: 9 events are too few."""
    counts = {"sim": ((30, 20), (30, 20), (9, 9)), "kernel": ((60, 20), (44, 22), (90, 30))}
    sides = []
    for engine, rows in counts.items():
        traces = Traces(engine)
        for name, (lost, events) in zip(("sf1", "sf2", "only"), rows, strict=True):
            # A timeout is a reaction, too.
            flow = "tcp" if name == "only" else "mp"
            traces.grows("subflow", flow=flow, subflow=name, lost_pkts=lost, loss_events=events - 1, rto_count=1)
        sides.append(traces)
    found = told(tmp_path, causes.bursts, *sides)
    assert found == {"mp sf1": "bursts: mp sf1 lost 1.5 on sim and 3.0 on kernel packets per loss event"}


def overflows(engine: str, together: int, apart: int) -> Traces:
    """Overflows of c, half a second apart; of those `together` hit all three subflows, 25 ms from one to the next."""
    traces = Traces(engine).grows("link", link="c", dropped_queue_pkts=99)
    for number in range(together + apart):
        at = WARMUP_S + 0.1 + 0.5 * number
        hit = (("mp", "sf1"), ("tcp", "only"), ("mp", "sf2"))
        for position, (flow, name) in enumerate(hit if number < together else hit[:2]):
            traces.row("event", at + 0.025 * position, kind="loss_event", flow=flow, subflow=name, link=None, value=7)
    # Before the window: not counted.
    return traces.row("event", 0.5, kind="loss_event", flow="mp", subflow="sf1", link=None, value=7)


def test_loss_synchronisation_is_recognised_by_overflows_that_hit_all_flows(tmp_path: Path) -> None:
    """9 of 10 against 5 of 10. Base RTTs of 30 ms at most tie events that are 25 ms apart, also through 50 ms."""
    found = told(tmp_path, causes.synchronisation, overflows("sim", 9, 1), overflows("kernel", 5, 5))
    assert found == {
        "c": "loss synchronisation: at c all 3 subflows lost together in 9 of 10 overflows on sim and in 5 of 10 "
        "overflows on kernel"
    }


def test_loss_events_that_may_be_of_another_link_are_ignored(tmp_path: Path) -> None:
    one, two = overflows("sim", 9, 1), overflows("kernel", 5, 5).grows("link", link="a", dropped_queue_pkts=1)
    pair = pair_of(tmp_path, one, two)
    assert dict(causes.synchronisation(pair)) == {}
    shared = losses.shared_queues(pair.one.topology)
    assert shared == {"c": (("mp", "sf1"), ("mp", "sf2"), ("tcp", "only"))}
    sure = losses.episodes(pair.other.rows("event"), pair.other.topology, shared, {"c"})
    assert sure == {"c": losses.Episodes(10, 5)}


def test_different_schedulers_are_reported(tmp_path: Path) -> None:
    one, two = (
        Traces(engine, scheduler=json.dumps({"mp": name})) for engine, name in (("sim", "minrtt"), ("kernel", "linger"))
    )
    found = told(tmp_path, causes.schedulers, one, two)
    assert "scheduler of mp: minrtt on sim and linger on kernel" in found["mp"]


def test_a_simulator_that_sends_segment_by_segment_is_reported(tmp_path: Path) -> None:
    def side(engine: str, tso: bool | None) -> Traces:
        flows = [{**flow, "tso": tso} for flow in scenario()["flows"]]
        return Traces(engine, resolved=json.dumps({**scenario(), "flows": flows}))

    found = told(tmp_path / "one", causes.segmentation, side("sim", None), side("kernel", None))
    assert list(found) == ["mp, tcp"]
    assert found["mp, tcp"].startswith("TSO: the kernel sends segments in groups")
    assert not told(tmp_path / "two", causes.segmentation, side("sim", True), side("kernel", True))
    assert not told(tmp_path / "three", causes.segmentation, side("sim", None), side("fluid", None))


def test_a_difference_smaller_than_its_interval_may_be_chance(tmp_path: Path) -> None:
    """As in the first test: +20 % with an interval of ± 115.5 %; one repetition has no interval at all."""
    found = judge.judge(three(tmp_path / "two"))
    [text] = [cause.text for cause in found.causes_of("lia", "kernel") if cause.cause == "chance"]
    assert text == "chance: the interval of mp contains 0: +20.0 ± 115.5 % over 2 repetitions (--reps)"
    once = judge.judge(results(tmp_path / "one", Traces("sim").goodput("mp", 10), Traces("kernel").goodput("mp", 4)))
    assert [cause.text for cause in once.causes] == [
        "chance: one repetition tells nothing about the spread of mp (--reps)"
    ]


def test_a_difference_of_one_trajectory_is_not_called_chance(tmp_path: Path) -> None:
    """Its interval was that of the simulator's spread alone: 10 and 20 against 9 and 9 are -40 ± 254 %."""
    one, two = Traces("sim", 2).goodput("mp", 10, 20), Traces("kernel", 2).goodput("mp", 9, 9)
    assert [cause for cause in judge.judge(results(tmp_path, one, two)).causes if cause.cause == "chance"] == []


def test_a_difference_without_a_known_cause_is_reported_as_such(tmp_path: Path) -> None:
    """10 and 10.2 against 7 and 7.1: a clear difference, and nothing in the traces that says why."""
    one, two = Traces("sim", 2).goodput("mp", 10, 10.2), Traces("kernel", 2).goodput("mp", 7, 7.1)
    lines = list(text.lines(judge.judge(results(tmp_path, one, two))))
    assert lines[1:] == ["lia, kernel: mp -30.2 %", f"  {text.NO_CAUSE}"]


def test_the_report_compares_three_engines(tmp_path: Path) -> None:
    from mptcplab.report.tables import engine_comparison

    table = engine_comparison(three(tmp_path))
    assert table is not None
    heads = [" ".join(name.split()) for name, _ in table.head]
    goodput = ["Goodput sim", "Goodput kernel", "Difference kernel", "Goodput fluid", "Difference fluid"]
    assert heads == ["Algorithm", "Flow", *goodput]
    assert table.rows[0] == ("lia", "mp", "11.00", "13.20", "+20.0 ± 115.5", "11.55", "+5.0 ± 0.0")


def test_the_page_has_the_verdicts_bounds_differences_and_causes(tmp_path: Path) -> None:
    """Before, the page compared the engines without a bound, a verdict or a cause.

    mp as in the first test; tcp of the fluid: R = 14 / 16, residuals of 1/8, so 12.706 / 8 / 8 = 19.9 %.
    """
    found = three(tmp_path)
    page = text.report(judge.judge(found, "asked for"), tmp_path / "page.html", figures=False).read_text()
    told = judgement(page)
    assert told["verdict"] == ["Agreement of engines: fails"]
    of_kernel, of_fluid = told["findings"]
    assert of_kernel.startswith("Fails : kernel against sim: 1 of 2 outside the bounds of 15 % and 0.03 by the point")
    assert of_fluid.startswith("Holds : fluid against sim: 0 of 2 outside the bounds of 15 % and 0.03 by the point")
    assert told["captions"][:2] == [
        "Goodput of a flow may differ by 15 % and by 5 % at the median over all flows, Jain&#39;s index by 0.03.",
        "Goodput of a flow may differ by 15 % (the median over all flows has no bound), Jain&#39;s index by 0.03.",
    ]
    assert told["captions"][2].startswith(
        "Differences from sim: means over the repetitions that count on all engines, ±"
    )
    assert "Asked for." in told["captions"]
    of_each = "Difference {0} %", "Bound {0} %", "Repetitions {0}", "Verdict {0}"
    assert told["heads"] == [
        *("Algorithm", "Flow", "Goodput sim Mbit/s"),
        *("Goodput kernel Mbit/s", *(one.format("kernel") for one in of_each)),
        *("Goodput fluid Mbit/s", *(one.format("fluid") for one in of_each)),
    ]
    kernel, fluid = ["13.20", "+20.0 ± 115.5", "15", "2", "fails"], ["11.55", "+5.0 ± 0.0", "15", "2", "holds"]
    assert told["rows"][0] == ["lia", "mp", "11.00", *kernel, *fluid]
    assert told["rows"][1][-5:] == ["7.00", "-12.5 ± 19.9", "15", "2", "holds"]
    assert told["titles"] == ["Goodput", "Outside the bounds"]
    assert told["outside"] == ["lia, kernel: mp +20.0 %"]
    assert told["causes"] == [
        "perhaps chance: the interval of mp contains 0: +20.0 ± 115.5 % over 2 repetitions (--reps)"
    ]
    assert told["command"] == [command(found).replace("'", "&#39;")]
    assert "Comparison of engines" not in page
    # Words are on the left, numbers on the right.
    assert page.count('<th scope="col" class="text">Verdict') == 2
    assert page.count('<td class="text">holds</td>') == 3
    assert '<td class="text">mp</td><td>11.00</td><td>13.20</td>' in page
    plain = found.report(tmp_path / "plain.html", figures=False).read_text()
    assert "Agreement of engines" not in plain
    assert "Comparison of engines" in plain


def test_the_page_has_the_repetitions_of_each_engine_where_their_numbers_differ(tmp_path: Path) -> None:
    """Jain's index: (8, 12) of the simulator is 400 / 416, (16, 4) of the kernel 400 / 544."""
    sim = Traces("sim", 3).goodput("mp", 9, 10, 11)
    real = Traces("kernel", 2).goodput("mp", 10.1, 10.3)
    for traces, reps, mbps in ((sim, 3, (8, 12)), (real, 2, (16, 4))):
        for rep in range(reps):
            for flow, subflow, rate in (("mp", "sf1", mbps[0]), ("tcp", "only", mbps[1])):
                size = round(rate * 1e6)
                traces.grows("subflow", rep, flow=flow, subflow=subflow, rx_wire_bytes=size, rx_payload_bytes=size)
    page = text.report(judge.judge(results(tmp_path, sim, real)), tmp_path / "page.html", figures=False).read_text()
    told = judgement(page)
    assert told["rows"][0][-4:] == [told["rows"][0][-4], "15", "3, 2", "holds"]
    assert told["titles"][:2] == ["Goodput", "Jain&#39;s index"]
    assert told["outside"] == ["lia, kernel: Jain&#39;s index -0.226"]


def test_the_kernel_is_chosen_where_it_can_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel, "program", lambda: tmp_path)
    monkeypatch.setattr(kernel, "require_privileges", lambda: None)
    assert compare.chosen_or_default(None) == (
        ["sim", "kernel"],
        "comparing sim and kernel, because kernel can run here",
    )

    def refuse() -> None:
        raise EngineError("the kernel engine needs root\n\nhint: sudo")

    monkeypatch.setattr(kernel, "require_privileges", refuse)
    names, why = compare.chosen_or_default(None)
    assert names == ["sim", "fluid"]
    assert why is not None
    assert why.endswith("out of reach: the kernel engine needs root")
    assert compare.chosen_or_default(" sim , fluid ") == (["sim", "fluid"], None)


@pytest.mark.parametrize("engines", ["sim", "sim,sim", "", ["fluid"]])
def test_one_engine_cannot_agree(scenario: Path, engines: str | list[str]) -> None:
    with pytest.raises(MptcplabError, match="nothing to compare with: engines"):
        mptcplab.agree(scenario, engines)


def test_the_fluid_refuses_before_the_others_run(scenario: Path, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="bbr"):
        mptcplab.agree(scenario, "sim,fluid", cc="bbr", out=tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_the_command_compares_and_its_exit_code_says_whether_it_agrees(scenario: Path, tmp_path: Path) -> None:
    short = ("--engines", "sim,fluid", "--cc", "reno", "--reps", "2", "--duration", "4 s", "--out", "o")
    done = lab("agree", scenario, *short, cwd=tmp_path)
    data = json.loads((tmp_path / "o" / "agreement.json").read_text())
    assert done.returncode == (0 if data["verdict"] == "holds" else 1), done.stderr
    rows = [row for row in data["rows"] if row["metric"] == "goodput" and row["subflow"] is None]
    assert [row["flow"] for row in rows] == ["mp", "tcp"]
    for row in rows:
        assert row["verdict"] == ("holds" if abs(row["difference"]) <= 15 else "fails")
        assert re.search(rf"^reno +{row['flow']} .*{row['verdict']} *$", done.stdout, re.M)
    summary = pl.read_csv(tmp_path / "o" / "summary.csv").filter(metric="goodput", flow="tcp", config="reno (sim)")
    assert rows[1]["reference"] == pytest.approx(summary.filter(pl.col("subflow").is_null())["mean"][0])
    assert "fluid against sim" in done.stdout
    page = (tmp_path / "o" / "report.html").read_text()
    assert f'<h2 id="agreement">Agreement of engines: {data["verdict"]}</h2>' in page
    assert "Comparison of engines" not in page
    assert "<summary>Without bounds: Mean smoothed RTT, Packets marked lost, Share of the flow</summary>" in page


def test_a_report_that_is_written_again_judges_the_engines_again(scenario: Path, tmp_path: Path) -> None:
    """Causes come from the numbers beside the report: those of packet phases need runs of their own."""
    lossy = ("--set", "links.A.loss=4 %")
    short = ("--engines", "fluid,sim", "--cc", "lia", "--reps", "2", "--duration", "4 s", "--out", "o", *lossy)
    lab("agree", scenario, *short, cwd=tmp_path)
    page, numbers = tmp_path / "o" / "report.html", tmp_path / "o" / "agreement.json"
    first = judgement(page.read_text())
    assert first["heads"][:2] == ["Algorithm", "Flow"]
    lab("report", "o", cwd=tmp_path)
    assert judgement(page.read_text()) == first
    assert first["outside"]
    data = json.loads(numbers.read_text())
    cause = {"base": "lia", "engine": "fluid", "cause": "phase", "who": "tcp", "text": "the 7th phase"}
    numbers.write_text(json.dumps(data | {"causes": [cause], "engines_because": "asked <twice>"}))
    lab("report", "o", cwd=tmp_path)
    again = judgement(page.read_text())
    assert (again["verdict"], again["rows"]) == (first["verdict"], first["rows"])
    assert "Asked &lt;twice&gt;." in page.read_text()
    assert "perhaps the 7th phase" in again["causes"]
    # The causes of other differences are none of these.
    rows = [*data["rows"][1:], data["rows"][0] | {"n": 7}]
    numbers.write_text(json.dumps(data | {"rows": rows, "causes": [cause]}))
    lab("report", "o", cwd=tmp_path)
    assert judgement(page.read_text())["rows"] == first["rows"]
    assert "the 7th phase" not in page.read_text()
    numbers.write_text('{"causes": [{"base": "lia"}]}')
    failed = lab("report", "o", cwd=tmp_path)
    assert failed.returncode == 2
    assert failed.stderr.startswith("error: not the numbers of a comparison: o/agreement.json: ")
    assert "hint: remove o/agreement.json" in failed.stderr


def judgement(page: str) -> dict[str, Any]:
    """What the section about the agreement of engines says."""
    section = page.partition('<section aria-labelledby="agreement">')[2].partition("</section>")[0]

    def texts(pattern: str) -> list[str]:
        found = re.findall(pattern, section, re.DOTALL)
        return [" ".join(re.sub("<[^>]*>", " ", one).split()) for one in found]

    table = section.partition("</table>")[0]
    rows = [
        re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    ]
    return {
        "verdict": texts("<h2[^>]*>(.*?)</h2>"),
        "titles": texts("<h3>(.*?)</h3>"),
        "heads": [
            " ".join(re.sub("<[^>]*>", " ", one).split())
            for one in re.findall("<th scope=.col.[^>]*>(.*?)</th>", table, re.S)
        ],
        "rows": rows[1:],
        "findings": texts("<p>(<strong>.*?)</p>"),
        "captions": texts('<p class="caption">(.*?)</p>'),
        "outside": texts("<dt>(.*?)</dt>"),
        "causes": texts("<dd>(.*?)</dd>"),
        "command": texts("<code>(.*?)</code>"),
    }


def test_the_command_prints_the_same_as_json(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["agree", str(scenario), "--engines", "sim,fluid", "--cc", "olia", "--reps", "1", "--duration", "3 s"]
    code = cli.app([*words, "--json"], standalone_mode=False) or 0
    data = json.loads(capsys.readouterr().out)
    assert code == (0 if data["verdict"] == "holds" else 1)
    kept = tmp_path / "results" / "two-paths" / "agreement.json"
    assert json.loads(kept.read_text()) == data
    assert data["engines"] == ["sim", "fluid"]


def test_a_comparison_that_was_killed_before_its_page_goes_on(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "o"
    words = ["agree", str(scenario), "--engines", "sim,fluid", "--cc", "olia", "--reps", "1", "--duration", "3 s"]
    first = cli.app([*words, "--out", str(out), "--json"], standalone_mode=False)
    data = json.loads(capsys.readouterr().out)
    (out / "agreement.json").unlink()
    (out / "report.html").unlink()
    assert cli.app([*words, "--out", str(out), "--json"], standalone_mode=False) == first
    found = capsys.readouterr()
    assert "nothing to make" in found.err
    assert json.loads(found.out) == data
    assert (out / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["scenario.toml", "--all"], "--all chooses what it runs: SCENARIO"),
        (["--all", "--reps", "3"], "--all chooses what it runs: --reps"),
        ([], "no scenario"),
        (["scenario.toml", "--quick"], "--quick is for --all"),
    ],
)
def test_options_that_exclude_each_other_are_refused(words: list[str], complaint: str) -> None:
    with pytest.raises(MptcplabError, match=complaint):
        cli.app(["agree", *words], standalone_mode=False)


LATE = """
[flows.late]
path = ["B"]
cc = "reno"
start = "9 s"
"""


def test_a_shortened_scenario_runs_on_after_its_last_start(scenario: Path, tmp_path: Path) -> None:
    """Starts within the first quarter are waited for; a start at 9 s moves the window, or leaves the scenario out."""
    size = matrix.Size(seconds=4, repetitions=2, simulated=5, algorithms=2, latest_start_s=10)
    third = tmp_path / "third.toml"
    third.write_text(scenario.read_text().replace('"lia", "reno"', '"lia", "reno", "balia"'))
    for algorithms, names in ((1, ("lia",)), (2, ("lia", "reno")), (None, ("lia", "reno", "balia"))):
        first = matrix.short(third, replace(size, algorithms=algorithms), ("sim", "kernel"))
        assert first is not None
        assert first.cc == names
    usual = matrix.short(scenario, size, ("sim", "kernel"))
    assert usual is not None
    assert (usual.cc, usual.reps, usual.duration) == (("lia", "reno"), 2, "4 s")
    assert usual.settings == {
        "warmup": '"1000 ms"',
        **KERNEL.behaves_as,
        "tcp.like": f'"{alike.like(platform.release())}"',
    }
    server = matrix.short(
        Path("papers/wischik2011/server.toml"), matrix.Size(4, 2, 5, 2, latest_start_s=100), ("sim", "kernel")
    )
    assert server is not None
    assert server.settings["flows.m.count"] == "2"
    late = tmp_path / "late.toml"
    late.write_text(scenario.read_text().replace('"3 s"', '"30 s"') + LATE)
    longer = matrix.short(late, size, ("sim", "fluid"))
    assert longer is not None
    assert (longer.cc, longer.reps, longer.duration) == (("lia", "reno"), 2, "13 s")
    assert longer.settings == {"warmup": '"10000 ms"'}
    assert matrix.short(late, matrix.Size(4, 2, 5, 2, latest_start_s=8), ("sim", "kernel")) is None


def test_random_walks_are_compared_in_pairs() -> None:
    """Every repetition of `moving` has a walk of its own; all of `static` have the same links."""
    of_paper = Path("papers/zuhairi2022")
    assert not matrix.is_one_network(of_paper / "moving.toml", mptcplab.Overrides(reps=3))
    assert matrix.is_one_network(of_paper / "static.toml", mptcplab.Overrides(reps=3))


def test_the_matrix_lists_what_an_engine_refuses_with_its_reason(scenario: Path, tmp_path: Path) -> None:
    codel = tmp_path / "aqm.toml"
    codel.write_text(scenario.read_text().replace('queue = "25 packets"', 'queue = "25 packets"\naqm = "codel"'))
    late = tmp_path / "late.toml"
    late.write_text(scenario.read_text().replace('"3 s"', '"30 s"') + LATE.replace("9 s", "19 s"))
    found = matrix.measure(quick=True, scenarios=[scenario, codel, late], engines=("sim", "fluid"))
    assert [entry.verdict == "not testable" for entry in found.entries] == [False, True, True]
    assert found.entries[1].reason.startswith("refused: ")
    assert re.search(r"aqm\.toml:\d+:\d+: links\.B\.aqm", found.entries[1].reason)
    assert found.entries[2].reason == "left out, because its last flow starts later than 15 s"
    rows = {(row.base, row.metric, row.flow): row for row in found.entries[0].evidence}
    assert set(rows) == {("lia", *row) for row in (("goodput", "mp"), ("goodput", "tcp"), ("jain", None))}
    assert "--engines sim,fluid --cc lia --reps 1 --duration '6 s'" in found.entries[0].command
    assert (found.verdict == "holds") == all(row.verdict == "holds" for row in rows.values())
    delays = {row.flow: row for row in found.entries[0].delays}
    assert set(delays) == {"mp", "tcp"}
    assert all(row.verdict is None and 20 < row.reference < 200 for row in delays.values())
    written = page.write(found, tmp_path / "page")
    assert [path.name for path in written] == ["agreement.md", "agreement.json", "goodput.png"]
    assert matrix.Matrix.from_json(written[1].read_text()) == found
    text = written[0].read_text()
    assert "1 of 3 scenarios ran on both engines" in text
    assert "refused: " in text


def test_the_matrix_tells_what_an_engine_refuses_from_its_failure(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, an engine that was killed had "refused" the scenario, and the page said so."""
    errors: list[Exception] = [RefusedError("run 3: too steep\n\nhint: less"), EngineError("signal 9 ended it")]

    def run(*_: Any, **__: Any) -> Results:
        raise errors.pop(0)

    monkeypatch.setattr(matrix.Sweep, "run", run)
    found = matrix.measure(quick=True, scenarios=[scenario], engines=("sim", "fluid"))
    assert [entry.reason for entry in found.entries] == ["refused: run 3: too steep"]
    with pytest.raises(EngineError, match="signal 9 ended it"):
        matrix.measure(quick=True, scenarios=[scenario], engines=("sim", "fluid"))


@pytest.mark.parametrize("one_draw", [True, False])
def test_machines_that_repeat_one_trajectory_run_with_random_delays(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, one_draw: bool
) -> None:
    engines, first, whole = ("sim", "vm:bookworm"), [], []

    def run(sweep: matrix.Sweep) -> SimpleNamespace:
        first.append(sweep)
        return SimpleNamespace(of=sweep)

    def judged(sweep: matrix.Sweep) -> None:
        whole.append(sweep)
        raise RefusedError("too steep")

    monkeypatch.setattr(matrix.Sweep, "run", run)
    monkeypatch.setattr(matrix, "judge", lambda results: SimpleNamespace(results=results))
    monkeypatch.setattr(matrix.phases, "is_one_draw", lambda found: found.results.of is first[0] and one_draw)
    monkeypatch.setattr(matrix.phases, "random_delays", lambda *_: {"neck": 880_000})
    monkeypatch.setattr(matrix, "judged", judged)
    found = matrix.measure(scenarios=[scenario], engines=engines, machine_runs=tmp_path)
    assert [sweep.overrides.reps for sweep in (*first, *whole)] == [3, 10]
    delay = 'links.neck.reorder={ probability = "100 %", delay = "uniform(0 ms, 880000 ns)" }'
    [entry] = found.entries
    assert (delay in entry.command) == one_draw
    assert entry.random_delays == ({"neck": 880_000} if one_draw else {})
    assert ("links.neck.reorder" in whole[0].overrides.settings) == one_draw
    assert "links.neck.reorder" not in first[0].overrides.settings
    # The first repetitions belong to the others, unless those have other settings.
    assert (whole[0].lasting == first[0].lasting) != one_draw
    assert whole[0].lasting.parent == tmp_path
    assert (first[0].prunes, whole[0].prunes) == (False, True)
    text = page.page(replace(found, entries=(replace(entry, verdict=Verdict.HOLDS),)), with_figure=False)
    assert ("on the link before: behind `neck` (880 µs)." in text) == one_draw
    # One repetition is no draw of several.
    first.clear()
    matrix.measure(scenarios=[scenario], engines=engines, quick=True)
    assert first == []


def test_small_goodputs_are_not_zero_on_the_page(scenario: Path) -> None:
    row = matrix.Row("lia", "goodput", "mp", 0.00351, 0.00362, 2.9, None, 1, 1, Verdict.HOLDS)
    entry = matrix.Entry(scenario.as_posix(), Verdict.HOLDS, (row,), title="A", builds={"sim": "abc", "fluid": "def"})
    text = page.page(matrix.Matrix(("sim", "fluid"), "mptcplab agree --all", (entry,)), with_figure=False)
    assert "| 0.0035 Mbit/s | 0.0036 Mbit/s |" in text


def test_one_scenario_is_measured_anew_and_the_page_keeps_the_others(scenario: Path, tmp_path: Path) -> None:
    """Of three, the second is run; the first is what the page had, and the third was never run."""
    paths = [tmp_path / f"{name}.toml" for name in ("a", "b", "c")]
    for at, path in enumerate(paths):
        path.write_text(scenario.read_text().replace("17 ms", f"{17 + at} ms"))
    row = matrix.Row("lia+cubic", "goodput", "mp", 3.5, 3.6, 2.9, None, 1, 1, Verdict.HOLDS)
    first = matrix.Entry(paths[0].as_posix(), Verdict.HOLDS, (row,), title="A", builds={"sim": "abc", "fluid": "def"})
    engines = ("sim", "fluid")
    command = matrix.command_of(engines, quick=True)
    page.write(matrix.Matrix(engines, command, (first,)), tmp_path / "page")
    numbers = tmp_path / "page" / page.NUMBERS
    # As pages were before round-trip times came to them.
    old = json.loads(numbers.read_text())
    for entry in old["entries"]:
        del entry["delays"]
    numbers.write_text(json.dumps(old))
    former = page.read(tmp_path / "page", command)
    found = matrix.measure(
        quick=True, scenarios=paths, engines=engines, only=[f"{tmp_path.name}/./b.toml"], former=former
    )
    assert found.entries[0] == first
    assert [entry.verdict == "not testable" for entry in found.entries] == [False, False, True]
    assert found.entries[2].summary(found.bounds) == "not testable: not run yet"
    assert {name: len(build) for name, build in found.entries[1].builds.items()} == {"sim": 12, "fluid": 12}
    assert len(set(found.entries[1].builds.values())) == 2
    text = page.page(found, with_figure=False)
    assert "Builds: `sim` abc, `fluid` def." in text
    assert f"Builds: `sim` {found.entries[1].builds['sim']}, " in text
    with pytest.raises(MptcplabError, match=r"not a scenario of the papers: .*d\.toml\n\nhint: did you mean "):
        matrix.measure(quick=True, scenarios=paths, engines=engines, only=[f"{tmp_path}/d.toml"])


@pytest.mark.parametrize("folder", [".", "docs"])
def test_the_page_keeps_its_other_sections_in_any_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """Before, entries had absolute names outside of the repository, and nothing of the page was found again."""
    monkeypatch.chdir(ROOT / folder)
    files = ("papers/kim2021/shared-60.toml", "papers/lubna2021/private-paths.toml")
    monkeypatch.setattr(
        "mptcplab.studies.papers.catalog.load",
        lambda: SimpleNamespace(experiments={name: SimpleNamespace(scenario=ROOT / name) for name in files}),
    )
    row = matrix.Row("lia", "goodput", "mp", 3.5, 3.6, 2.9, None, 1, 1, Verdict.HOLDS)
    first = matrix.Entry(files[0], Verdict.HOLDS, (row,), title="A", builds={"sim": "abc", "fluid": "def"})
    former = matrix.Matrix(("sim", "fluid"), matrix.command_of(("sim", "fluid"), quick=True), (first,))
    checkpoint = Store(tmp_path / "unfinished")

    def measured() -> tuple[matrix.Entry, ...]:
        engines = ("sim", "fluid")
        only = ["lubna2021/private-paths.toml"]
        return matrix.measure(quick=True, engines=engines, only=only, former=former, checkpoint=checkpoint).entries

    kept, new = measured()
    assert kept == first
    assert (new.name, bool(new.evidence)) == (files[1], True)
    assert f"mptcplab agree {files[1]} --engines" in new.command
    # What an interrupted call left is found from another directory.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(matrix, "_entry", None)
    assert measured() == (first, new)


@pytest.mark.parametrize(
    ("engines", "quick", "other"),
    [
        (("sim", "fluid"), False, "mptcplab agree --all --engines sim,fluid"),
        (("sim", "kernel"), True, "mptcplab agree --all --quick"),
    ],
)
def test_a_page_of_other_engines_or_shorter_runs_keeps_nothing(
    tmp_path: Path, engines: tuple[str, str], quick: bool, other: str
) -> None:
    asked = matrix.command_of(engines, quick=quick)
    assert (asked, page.read(tmp_path, asked)) == (other, None)
    page.write(matrix.Matrix(("sim", "kernel"), "mptcplab agree --all", ()), tmp_path)
    with pytest.raises(MptcplabError, match=rf"agreement\.json is of `mptcplab agree --all`, not of `{other}`"):
        page.read(tmp_path, asked)


def test_a_damaged_page_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / page.NUMBERS).write_text("{}")
    with pytest.raises(MptcplabError, match=r"agreement\.json: not right: 'engines'"):
        page.read(tmp_path, "mptcplab agree --all")


def test_a_few_scenarios_leave_what_an_interrupted_call_over_all_left(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "_of_papers", lambda: [scenario])
    out = tmp_path / "page"
    interrupted = Store(out / "unfinished-quick")
    interrupted.prepare()
    interrupted.put("a", {"of": "hours"})
    mptcplab.agree_all(out, engines="sim,fluid", quick=True, only=scenario.name)
    assert interrupted.record("a") == {"of": "hours"}
    assert not (out / "unfinished-quick-only").exists()


def test_the_page_is_generated_from_the_numbers_alone() -> None:
    """Three flows, 2, 4 and 21 % off: the median is 4 %, the verdict that one flow is outside."""
    rows = tuple(
        matrix.Row("lia", "goodput", flow, 10.0, 10.0 * (1 + d / 100), float(d), 1.5, 20, 2, Verdict(verdict))
        for flow, d, verdict in (("mp", 2, "holds"), ("h3", -4, "holds"), ("h5", 21, "fails"))
    )
    jain = matrix.Row("lia", "jain", None, 0.98, 0.97, -0.01, None, 2, 2, Verdict.HOLDS)
    entry = matrix.Entry(
        "papers/x/two.toml",
        Verdict.FAILS,
        (*rows, jain),
        title="Two",
        command="mptcplab agree two",
        causes={"lia": ["perhaps bursts: 3 against 1"]},
        kernels=("Linux 9.9",),
        delays=tuple(
            matrix.Row(base, "srtt_mean", "mp", 40.0, 40.0 * (1 + d / 100), float(d), 0.5, 20, 2, None)
            for base, d in (("lia", -3), ("olia", 9))
        ),
    )
    other = matrix.Entry("papers/y/one.toml", Verdict.NOT_TESTABLE, reason="refused: AQM | not here", title="One")
    found = matrix.Matrix(("sim", "kernel"), "mptcplab agree --all", (entry, other))
    assert found.verdict == "fails"
    assert found.median_percent == pytest.approx(4)
    text = page.page(found, with_figure=False)
    assert "**Verdict: fails.** 1 of 2 scenarios ran on both engines; 1 of them fails. 2 of 3 flows within 15 %" in text
    # 4 + 1.5 < 15 and 21 - 1.5 > 15.
    assert "2 with the whole 95 % interval; 1 outside, 1 with the whole interval; median distance 4.0 %." in text
    assert "Jain's index: 1 of 1 comparison within 0.03; 1 without an interval." in text
    assert "| lia | goodput of `h3` | 10.00 Mbit/s | 9.60 Mbit/s | -4.0 ± 1.5 % | 20, 2 | holds |" in text
    assert "| lia | Jain's index | 0.980 | 0.970 | -0.010 | 2 | holds |" in text
    assert (
        "| lia | mean srtt of `mp` | 40.0 ms | 38.8 ms | -3.0 ± 0.5 % | 20, 2 | not judged |\n| olia | mean srtt"
        in text
    )
    near = "1 of 2 flows are within 5 %; median distance 6.0 %, largest 9.0 %. Sections that have it: 1 of 1."
    assert near in text
    assert matrix.Matrix.from_json(found.to_json()) == found
    assert "| fails: 1 of 3 flows outside 15 % (1 with the whole interval) | 21.0 % | 4.0 % |" in text
    assert "refused: AQM \\| not here" in text
    assert "- perhaps bursts: 3 against 1" in text
    assert "Linux 9.9" in text
    drawn = figure.points(found)
    assert [(point.group, point.one, round(point.other, 6)) for point in drawn] == [
        ("x", 10.0, 10.2),
        ("x", 10.0, 9.6),
        ("x", 10.0, 12.1),
    ]


@pytest.mark.kernel
def test_the_real_kernel_is_compared(scenario: Path) -> None:
    """Three seconds on real sockets: what matters is that both engines are there, and judged or said not to count."""
    k.program()
    k.need_root()
    changes = {"scheduler": '"linger"'}
    found = mptcplab.agree(scenario, "sim,kernel", cc="lia", reps=1, duration="3 s", settings=changes)
    assert found.results.engines == ["sim", "kernel"]
    if found.results.excluded_runs:
        assert found.rows.is_empty()
        pytest.skip(f"SKIPPED, NOT TESTED: {found.results.excluded_runs[0].text}")
    rows = found.rows.filter(pl.col("subflow").is_null()).filter(metric="goodput")
    assert rows["flow"].to_list() == ["mp", "tcp"]
    assert (rows["mean"] > 0.5).all()
    assert (rows["reference"] > 0.5).all()
    [sim, real] = (
        json.loads(found.results.runs.filter(engine=engine)["resolved"][0])["flows"][0] for engine in ("sim", "kernel")
    )
    assert (sim["send_jitter_ns"] > 0, real["send_jitter_ns"]) == (True, 0)
    # The hosts of a kernel take time; the simulator's take as much.
    assert (sim["host_delay_ns"] > 1000, "host_delay_ns" in real) == (True, False)
    noise = r"noise: sim delayed every packet by [\d.]+ [µm]s and at random by up to [\d.]+ [µm]s more; kernel was late"
    assert any(re.match(noise, line) for line in text.lines(found))


def test_a_disturbed_scenario_is_run_again_by_itself(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three scenarios, of which the second is late in company; the order is kept and only that one runs twice."""
    ran: list[tuple[str, bool]] = []

    def entry(path: Path, *_: Any) -> matrix.Entry:
        again = any(name == path.stem for name, _ in ran)
        ran.append((path.stem, again))
        late = path.stem == "late" and not again
        verdict = Verdict.NOT_TESTABLE if late else Verdict.HOLDS
        return matrix.Entry(path.as_posix(), verdict, disturbed=late, kernels=("Linux 9.9",))

    monkeypatch.setattr(matrix, "_entry", entry)
    paths = [scenario.with_name(name) for name in ("a.toml", "late.toml", "b.toml")]
    found = matrix.measure(quick=True, scenarios=paths, engines=("sim", "fluid"))
    assert [Path(one.name).stem for one in found.entries] == ["a", "late", "b"]
    assert [one.verdict for one in found.entries] == [Verdict.HOLDS] * 3
    assert [name for name, again in ran if again] == ["late"]
    assert found.host == "Linux 9.9"


def test_an_interrupted_run_over_all_scenarios_continues(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of three is ended by Ctrl-C: the first is not run again, unless its file has changed."""
    paths = [tmp_path / f"{name}.toml" for name in ("a", "b", "c")]
    for at, path in enumerate(paths):
        path.write_text(scenario.read_text().replace("17 ms", f"{17 + at} ms"))
    entry, ran, ended = matrix._entry, [], [True]
    checkpoint = Store(tmp_path / "unfinished")

    def counted(path: Path, *rest: Any) -> matrix.Entry:
        if path.stem == "b" and ended:
            raise KeyboardInterrupt
        ran.append(path.stem)
        return entry(path, *rest)

    def measured() -> matrix.Matrix:
        ran.clear()
        return matrix.measure(quick=True, scenarios=paths, engines=("sim", "fluid"), checkpoint=checkpoint)

    monkeypatch.setattr(matrix, "_entry", counted)
    monkeypatch.setattr(matrix, "MOST_AT_ONCE", 1)
    with pytest.raises(KeyboardInterrupt):
        measured()
    assert ran == ["a"]
    ended.clear()
    whole = measured()
    assert ran == ["b", "c"]
    paths[0].write_text(scenario.read_text().replace("17 ms", "23 ms"))
    assert measured().entries[1:] == whole.entries[1:]
    assert ran == ["a"]
    checkpoint.clear()
    measured()
    assert ran == ["a", "b", "c"]


def test_scenarios_run_together_up_to_the_load_that_a_machine_can_emulate() -> None:
    """Loads of 90, 40, 30, 20, 10 and 5 thousand: the first alone, then 40, 20 and 5; never more than 65 thousand."""
    loads = [10_000.0, 90_000.0, 30_000.0, 5_000.0, 40_000.0, 20_000.0]
    lock, begun, inside, most = threading.Lock(), [], [0.0], []

    def task(load: float) -> float:
        with lock:
            begun.append(load)
            inside[0] += load
            most.append(inside[0])
        time.sleep(0.1)
        with lock:
            inside[0] -= load
        return 2 * load

    done = workers.each(task, loads, matrix.MOST_AT_ONCE, load=float, capacity=matrix.MOST_HOPS_PER_S)
    assert sorted(done) == [(load, 2 * load) for load in sorted(loads)]
    assert begun[0] == 90_000
    assert set(begun[1:4]) == {40_000, 20_000, 5_000}
    assert max(most) == 90_000
    assert 40_000 < sorted(most)[-2] <= 65_000


def test_the_load_of_a_scenario_that_names_its_algorithms_by_flow_is_known() -> None:
    poisson = Path("papers/wischik2011/poisson.toml")
    assert "\ncc = " not in poisson.read_text(encoding="utf-8").split("[", 1)[0]
    assert matrix._load(poisson, matrix.QUICK, matrix.ENGINES, 1) > 1000


def test_after_an_interrupt_nothing_new_begins() -> None:
    begun: list[int] = []

    def task(i: int) -> None:
        begun.append(i)
        if i == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(workers.each(task, range(20), 6, load=lambda _: 90_000.0, capacity=65_000))
    assert begun == [0]
