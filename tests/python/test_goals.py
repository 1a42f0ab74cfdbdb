"""`mptcplab goals`: the grid, the judgement with its confidence, and a study from end to end on two networks."""

from __future__ import annotations

import csv
import html
import json
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command_line import in_process
from conftest import ROOT

import mptcplab
from mptcplab import api, cli
from mptcplab.algorithm import Algorithm
from mptcplab.errors import MptcplabError, OutputError, RefusedError, ScenarioError
from mptcplab.studies import goals
from mptcplab.studies.goals import GOALS, Study, figures, page
from mptcplab.studies.goals.grid import FULL, QUICK, Grid, Network
from mptcplab.studies.goals.judge import judge
from mptcplab.studies.goals.measure import Measured
from mptcplab.studies.goals.scenarios import Setting, commands, layout, scenario
from mptcplab.study import sweeps
from mptcplab.study.cell import RunSpec
from mptcplab.study.verdict import Verdict

# One shared and one disjoint network, long enough for a verdict on uncoupled Reno.
TINY = Grid(("shared", "disjoint"), (2,), (0.2,), (1.5,), ("reno",), repetitions=3, duration_s=60, warmup_s=10)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return api.goals("ewtcp(weight=1)", tmp_path_factory.mktemp("goals") / "out", grid=TINY, seed=7, profile="rfc")


def test_uncoupled_subflows_harm_the_competitor_where_they_share_a_bottleneck(study: Study) -> None:
    shared, disjoint = study.results
    first, second, third = shared.judged.goals
    assert (first.verdict, second.verdict, third.verdict) == (Verdict.HOLDS, Verdict.FAILS, Verdict.NOT_TESTABLE)
    # Two Renos beside one leave it less than one does: far more than chance, and than the tolerance.
    assert second.high < 0
    # The weight 1 makes EWTCP Reno on each subflow: the uncoupled twin, so nothing is shifted.
    assert disjoint.judged.goals[1].verdict != Verdict.FAILS
    assert disjoint.judged.shift is None or disjoint.judged.shift == pytest.approx(0, abs=0.05)
    assert sum(study.counts(GOALS[1]).values()) == 2
    assert study.counts(GOALS[1])[Verdict.FAILS] == 1
    assert study.worst(GOALS[1]) is shared


def test_the_worst_scenario_reproduces_the_numbers_by_the_commands_in_it(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = GOALS[1]
    worst, file = study.worst(goal), study.worst_file(goal)
    assert worst is not None
    in_file = [line[1:].strip() for line in file.read_text().splitlines() if line.startswith("#     mptcplab run")]
    assert in_file == list(study.worst_commands(goal, file.name))
    alone = {}
    for number, command in enumerate(study.worst_commands(goal)):
        words = shlex.split(command)
        assert words[:2] == ["mptcplab", "run"]
        assert words[2] == str(file)
        assert _command(monkeypatch, *words[1:], "--no-report", "--out", str(tmp_path / str(number))) == 0
        goodput = mptcplab.load(tmp_path / str(number)).metrics(["goodput"])
        runs = goodput.filter(goodput["subflow"].is_null()).pivot("flow", index="run", values="value").sort("run")
        alone[number] = runs.head(TINY.repetitions)
    measured = worst.measured
    assert alone[0]["mp"].to_list() == measured.goodput.tolist()
    assert alone[0]["tcp"].to_list() == measured.beside_mp["tcp"].tolist()
    for number, path in enumerate(("path 1", "path 2"), 1):
        assert alone[number]["mp"].to_list() == measured.single_paths[path].tolist()
        assert alone[number]["tcp"].to_list() == measured.beside_tcp[path]["tcp"].tolist()
    best = max(("path 1", "path 2"), key=lambda path: measured.single_paths[path].mean())
    margin = alone[0]["tcp"].mean() / measured.beside_tcp[best]["tcp"].mean() - 0.95
    assert worst.finding(goal).margin == pytest.approx(margin, rel=1e-9)


def test_the_networks_and_the_page_say_what_was_measured(study: Study) -> None:
    rows = list(csv.DictReader((study.directory / "networks.csv").open()))
    assert [(row["kind"], row["competitor"]) for row in rows] == [("shared", "reno"), ("disjoint", "reno")]
    text = study.page.read_text()
    for row, result in zip(rows, study.results, strict=True):
        assert result.network.text in text
        assert float(row["goodput_mbps"]) == pytest.approx(result.measured.goodput.mean())
        for number, found in enumerate(result.judged.goals, 1):
            assert row[f"goal_{number}"] == found.verdict
            assert (row[f"goal_{number}_margin"] == "") == (found.margin is None)
        ratio = float(row["competitor_1_mbps"]) / float(row["competitor_1_beside_tcp_mbps"])
        assert ratio - 0.95 >= result.judged.goals[1].margin - 1e-9
    assert rows[0]["bottleneck_2_loss_percent"] == ""
    assert float(rows[1]["bottleneck_2_loss_percent"]) > 0.1
    names = {path.name for path in study.directory.iterdir()}
    asked = {f"worst-goal-{goal.number}.toml" for goal in GOALS if study.worst(goal) is not None}
    assert names == {"goals.html", "networks.csv", "figures"} | asked
    assert text.count("data:image/png;base64,") == len(asked)
    # Nothing is fetched from anywhere.
    assert "http" not in text.replace("http-equiv", "")


def test_every_network_of_the_heat_map_shows_its_margin_and_its_verdict(study: Study) -> None:
    axes = figures.heat_map(study, GOALS[1]).axes[0]
    shown = [text.get_text() for text in axes.texts if not text.get_text().startswith("loss")]
    found = [result.judged.goals[1] for result in study.results]
    assert shown == [figures.signed(100 * one.margin) + ("?" if one.verdict == Verdict.OPEN else "") for one in found]
    assert [text.get_text() for text in axes.get_yticklabels()] == [result.network.row for result in study.results]
    assert sum(patch.get_hatch() is not None for patch in axes.patches) == 1


def test_another_engine_is_in_every_command() -> None:
    setting = Setting("lia", 3, "rfc", "vm:bookworm")
    assert page.command(setting, quick=True) == "mptcplab goals lia --engine vm:bookworm --seed 3 --profile rfc --quick"
    for network in QUICK.networks:
        assert all(line.endswith(" --engine vm:bookworm") for line in commands(network, "x.toml", setting))
        assert not any("--engine" in line for line in commands(network, "x.toml", Setting("lia")))


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (
            "fluid",
            "engine: it has no packets: 'fluid'\n\nhint: sim, vm or kernel: repetitions on the fluid engine are ",
        ),
        ("sim,vm", "engine: more than one: 'sim,vm'\n\nhint: make a study on each of them"),
        ("ns3", "no such engine: 'ns3'\n\nhint: "),
    ],
)
def test_a_study_needs_one_engine_whose_repetitions_differ(engine: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(MptcplabError, match=re.escape(said)):
        api.goals("lia", tmp_path / "out", engine=engine, grid=TINY)
    assert not list(tmp_path.iterdir())


def test_what_an_engine_refuses_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RefusedError("no such link here")

    monkeypatch.setattr(sweeps, "run_together", refuse)
    with pytest.raises(RefusedError, match="no such link here"):
        api.goals("lia", tmp_path / "out", grid=TINY)
    assert not (tmp_path / "out").exists()


def test_the_same_study_gives_the_same_bytes(study: Study, tmp_path: Path) -> None:
    again = api.goals("ewtcp(weight=1)", tmp_path / "again", grid=TINY, seed=7, profile="rfc", jobs=1)
    for path in sorted(path for path in study.directory.rglob("*") if path.is_file()):
        assert (again.directory / path.relative_to(study.directory)).read_bytes() == path.read_bytes(), path.name


def test_an_interrupted_study_goes_on_with_what_it_has_measured(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, asked = tmp_path / "out", []
    # Every result is a sweep of its own, so that there is something to interrupt.
    monkeypatch.setattr(sweeps, "_SWEEP_WORK", 0.0)

    def interrupt(_: int, runs: int, *__: float) -> None:
        asked.append(runs)
        if len(asked) == 3:
            raise KeyboardInterrupt

    again = partial(api.goals, "ewtcp(weight=1)", out, grid=TINY, seed=7, profile="rfc", jobs=1, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        again()
    assert [path.name for path in tmp_path.iterdir()] == ["out.partial"]
    held = list((tmp_path / "out.partial" / "store").glob("*.json"))
    assert f"{len(held)} measurements are kept in {out}.partial; the same" in " ".join(capsys.readouterr().err.split())
    again()
    # What is stored is not asked for again.
    assert asked[-1] == asked[0] - len(held) * TINY.repetitions
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (out / "networks.csv").read_bytes() == (study.directory / "networks.csv").read_bytes()


def test_the_grid_is_complete_and_every_network_is_a_scenario(tmp_path: Path) -> None:
    assert len(FULL.networks) == len(set(FULL.networks)) == 2 * 3 * 3 * 3 * 2
    assert set(QUICK.networks) < set(FULL.networks)
    for network in (Network("shared", 5, 0.1, 0.5, "cubic"), Network("disjoint", 3, 1, 4, "reno")):
        file = tmp_path / f"{network.kind}.toml"
        file.write_text(scenario(network, FULL, Setting("lia")))
        found = api.check(file)["resolved"]["combinations"]
        assert [combination["axes"]["cc"] for combination in found] == ["lia", network.competitor]
        links = {link["name"]: link for link in found[0]["scenario"]["links"]}
        for path, names in layout(network).paths.items():
            # The base RTT: the first path's is 20 ms, the second's the ratio times that.
            rtt_ns = 2 * sum(links[name]["delay_ns"] for name in names)
            assert rtt_ns == 20_000_000 * (network.rtt_ratio if path == "path 2" else 1)
        queues = {name: links[name]["queue"]["bytes"] for name in layout(network).competitors}
        # 0.5 BDP of 20 Mbit/s and 20 ms; 4 BDP of 20 Mbit/s and 20 ms, and of 10 Mbit/s and 60 ms.
        assert queues == ({"neck": 25_000} if network.kind == "shared" else {"neck1": 200_000, "neck2": 300_000})
        assert len(commands(network, "x.toml", Setting("lia"))) == 3


def _measured(**changes: object) -> Measured:
    """Five repetitions on two disjoint paths: goals 1 and 2 met with room, path 2 twice as lossy and relieved."""
    wiggle = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])
    values = {
        "goodput": 13 * (1 + wiggle),
        "single_paths": {"path 1": 10 * (1 + wiggle), "path 2": 5 * (1 - wiggle)},
        "beside_mp": {"tcp1": 9 * (1 + wiggle), "tcp2": 6 * (1 - wiggle)},
        "beside_tcp": {
            "path 1": {"tcp1": 9 * (1 + wiggle), "tcp2": 9.5 * (1 + wiggle)},
            "path 2": {"tcp1": 19 * (1 + wiggle), "tcp2": 5 * (1 - wiggle)},
        },
        "losses": {"neck1": 0.5 * (1 + wiggle), "neck2": 1.0 * (1 + wiggle)},
        "loads": {"neck1": 10 * (1 + wiggle), "neck2": 3 * (1 + wiggle)},
        "uncoupled_loads": {"neck1": 10 * (1 + wiggle), "neck2": 4 * (1 + wiggle)},
    }
    return Measured(**(values | changes))


DISJOINT = Network("disjoint", 2, 1, 4, "reno")
SHARED = Network("shared", 2, 1, 4, "reno")


def test_margins_are_those_of_the_means_and_resampling_keeps_repetitions_together() -> None:
    judged = judge(DISJOINT, _measured())
    first, second, third = judged.goals
    assert [found.verdict for found in judged.goals] == [Verdict.HOLDS] * 3
    # 13/10 - 0.95 in every repetition, so in every resample.
    assert (first.margin, first.low, first.high) == pytest.approx((0.35, 0.35, 0.35))
    # tcp1 gets as much as beside one TCP, tcp2 1.2 times as much; what each gets beside a TCP elsewhere does not count.
    assert (second.margin, second.low, second.high) == pytest.approx((0.05, 0.05, 0.05))
    # The load is 3/4 of the uncoupled one, but goal 2 has less room.
    assert judged.shift == pytest.approx(0.25)
    assert third.margin == pytest.approx(0.05)
    assert judged.balance == pytest.approx(0.5)


def test_a_goal_missed_in_some_repetitions_only_is_open_and_in_all_fails() -> None:
    mixed = np.array([8.0, 8.5, 9.5, 10.5, 11.0])
    single = {"path 1": np.full(5, 10.0), "path 2": np.full(5, 4.0)}
    undecided = judge(DISJOINT, _measured(goodput=mixed, single_paths=single)).goals[0]
    # Mean 9.5: exactly the tolerance.
    assert undecided.verdict == Verdict.OPEN
    assert undecided.margin == pytest.approx(0, abs=1e-12)
    assert undecided.low < -0.05 < 0.05 < undecided.high
    failing = judge(DISJOINT, _measured(goodput=mixed - 3.5, single_paths=single))
    assert failing.goals[0].verdict == Verdict.FAILS
    assert failing.goals[0].margin == pytest.approx(-0.35)
    # Goal 3 asks for goals 1 and 2 as well: at the same margin it has more comparisons that may fail by chance.
    assert failing.goals[2].verdict == Verdict.FAILS
    assert failing.goals[2].margin == pytest.approx(-0.35)
    assert failing.goals[2].high > failing.goals[0].high


def test_balanced_losses_ask_for_nothing() -> None:
    even = {"neck1": np.full(5, 0.8), "neck2": np.full(5, 0.9)}
    third = judge(DISJOINT, _measured(losses=even)).goals[2]
    assert (third.verdict, third.margin, third.low, third.high) == (Verdict.NOT_TESTABLE, None, None, None)


def _without(values: np.ndarray, repetition: int) -> np.ndarray:
    """The values, of which one repetition did not count."""
    return np.where(np.arange(values.size) == repetition, np.nan, values)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: {"goodput": _without(m.goodput, 1)}, "goodput of the connection"),
        (
            lambda m: {"single_paths": m.single_paths | {"path 2": _without(m.single_paths["path 2"], 0)}},
            "goodput of one TCP on path 2",
        ),
        (
            lambda m: {"beside_mp": m.beside_mp | {"tcp2": _without(m.beside_mp["tcp2"], 4)}},
            "goodput of tcp2 beside the connection",
        ),
        (
            lambda m: {
                "beside_tcp": m.beside_tcp
                | {"path 1": m.beside_tcp["path 1"] | {"tcp1": _without(m.beside_tcp["path 1"]["tcp1"], 3)}}
            },
            "goodput of tcp1 beside one TCP on path 1",
        ),
        (lambda m: {"losses": m.losses | {"neck2": _without(m.losses["neck2"], 2)}}, "loss of neck2"),
        (lambda m: {"loads": m.loads | {"neck1": _without(m.loads["neck1"], 2)}}, "load of neck1"),
        (
            lambda m: {"uncoupled_loads": m.uncoupled_loads | {"neck2": _without(m.uncoupled_loads["neck2"], 0)}},
            "uncoupled load of neck2",
        ),
    ],
)
def test_goals_are_not_testable_where_a_run_did_not_count(
    change: Callable[[Measured], dict[str, object]], said: str
) -> None:
    """A competitor or a bottleneck without a number was left out, and a goal that failed seemed to ask for nothing."""
    judged = judge(DISJOINT, _measured(**change(_measured())))
    for found in judged.goals:
        assert (found.verdict, found.margin, found.low, found.high) == (Verdict.NOT_TESTABLE, None, None, None)
        assert found.reason == f"{said} is missing in 1 of 5 repetitions"
    assert (judged.every_path, judged.balance, judged.shift) == (None, None, None)


def test_a_network_with_runs_that_did_not_count_has_no_means_of_them(study: Study, tmp_path: Path) -> None:
    whole, other = study.results
    measured = replace(whole.measured, goodput=_without(whole.measured.goodput, 1))
    results = (replace(whole, measured=measured, judged=judge(whole.network, measured)), other)
    part = replace(study, directory=tmp_path, results=results)
    rows = page.networks(part).to_dicts()
    assert (rows[0]["goodput_mbps"], rows[0]["goal_1"]) == (None, Verdict.NOT_TESTABLE)
    assert rows[0]["competitor_1_mbps"] == pytest.approx(whole.measured.beside_mp["tcp"].mean())
    assert rows[1]["goodput_mbps"] == pytest.approx(other.measured.goodput.mean())
    page.write(part, None)
    text = part.page.read_text()
    assert "goodput of the connection is missing in 1 of 3 repetitions" in text
    assert "nan" not in page.networks(part).write_csv().lower()
    assert "<td>nan</td>" not in text


def test_at_a_shared_bottleneck_the_better_path_is_the_reference_and_the_stricter_margin_is_kept() -> None:
    fill = {name: np.full(5, value) for name, value in {"mp": 9.8, "p1": 10.0, "p2": 6.0, "tcp": 9.0}.items()}
    measured = Measured(
        fill["mp"],
        {"path 1": fill["p1"], "path 2": fill["p2"]},
        {"tcp": fill["tcp"]},
        {"path 1": {"tcp": np.full(5, 9.0)}, "path 2": {"tcp": np.full(5, 12.0)}},
        {"neck": np.full(5, 0.4)},
        {"neck": np.full(5, 10.2)},
        {"neck": np.full(5, 13.0)},
    )
    judged = judge(SHARED, measured)
    assert judged.goals[1].margin == pytest.approx(1 - 0.95)
    assert judged.every_path == pytest.approx(9 / 12 - 0.95)
    assert judged.goals[2].verdict == Verdict.NOT_TESTABLE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kinds": ("shard",)}, "kind = 'shard'"),
        ({"rtt_ratios": (0.5,)}, "rtt_ratio = 0.5"),
        ({"losses_percent": (-0.1,)}, "loss_percent = -0.1"),
        ({"buffers_bdp": (0,)}, "buffer_bdp = 0"),
        ({"competitors": ()}, r"competitors = \(\)"),
        ({"competitors": ("vegas",)}, "competitor = 'vegas'"),
        ({"buffers_bdp": (2, 2)}, r"buffers_bdp = \(2, 2\)"),
        ({"repetitions": 1}, "repetitions = 1"),
        ({"warmup_s": 60}, "warmup_s = 60"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused_by_name_and_value(change: dict, message: str) -> None:
    with pytest.raises(MptcplabError, match=f"grid of the goals: {message}\n\nhint: "):
        Grid(**(vars(TINY) | change))


def test_what_is_asked_wrongly_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match='no algorithm "lai"'):
        api.goals("lai", tmp_path / "a", quick=True)
    with pytest.raises(ScenarioError, match="profile"):
        api.goals("lia", tmp_path / "b", quick=True, profile="linux-new")
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="not empty"):
        api.goals("lia", full, quick=True)
    with pytest.raises(OutputError, match="files other than an earlier result"):
        api.goals("lia", full, quick=True, force=True)
    with pytest.raises(OutputError, match="cannot create output directory"):
        api.goals("lia", full / "notes.txt" / "x", quick=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["full", "notes.txt"]


def test_the_command_refuses_an_unknown_algorithm_and_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for given, said in (
        ("lai", 'error: command line: cc: no algorithm "lai"\n\nhint: did you mean "lia"?'),
        ("lia,olia", "error: one algorithm at a time: 'lia,olia'\n\nhint: such as lia"),
    ):
        assert _command(monkeypatch, "goals", given, "--quick", "--out", str(tmp_path / "x")) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert said in told.err


def test_the_command_prints_a_line_per_goal_or_json(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(goals, "QUICK", replace(TINY, kinds=("shared",)))
    words = ["goals", "ewtcp(weight=1)", "--quick", "--seed", "7", "--profile", "rfc", "--out", str(tmp_path / "out")]
    assert _command(monkeypatch, *words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"goal {goal.number}, {goal.name}" for goal in GOALS]
    assert "0 holds, 1 fails, 0 open, 0 not testable; worst: " in lines[1]
    assert lines[1].endswith(study.results[0].network.text)
    assert _command(monkeypatch, *words, "--force", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    worst = told["goals"][1]["worst"]
    assert worst["margin"] == study.results[0].judged.goals[1].margin
    assert worst["network"] == vars(study.results[0].network) | {}
    assert Path(worst["scenario"]).is_file()
    page = html.unescape(Path(told["page"]).read_text())
    assert "mptcplab goals 'ewtcp(weight=1)' --seed 7 --profile rfc --quick<" in page


def _command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command line in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["mptcplab", *words])
    with pytest.raises(SystemExit) as left:
        cli.main()
    return left.value.code


# A window that never grows.
OWN = """
#include "cc.h"
static void own_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
}
CC_UNCOUPLED(own);
CC_REGISTER(own, .ssthresh = cc_reno_ssthresh, .cong_avoid = own_cong_avoid, .undo_cwnd = cc_reno_undo_cwnd);
"""


def test_the_algorithm_of_a_file_is_judged(tmp_path: Path) -> None:
    file = tmp_path / "own.c"
    file.write_text(OWN)
    measured = api.goals(str(file), tmp_path / "first", grid=TINY, seed=7, profile="rfc")
    assert measured.results[0].judged.goals[0].verdict == Verdict.FAILS
    command = page.command(Setting("own", 7, "rfc"), quick=True)
    assert command == f"mptcplab goals {file} --seed 7 --profile rfc --quick"
    with pytest.raises(MptcplabError, match="a cluster runs algorithms of the build only"):
        api.goals(str(file), tmp_path / "second", client="dask", grid=TINY)


def test_a_file_that_was_changed_is_another_algorithm(tmp_path: Path) -> None:
    file = tmp_path / "own.c"
    spec = RunSpec(ROOT / "scenarios" / "disjoint-paths-aggregate.toml", "own", "rfc", 2, 3, (), ("goodput",))
    digests = []
    for text in (OWN, OWN.replace("{\n}", "{\n\tcc_reno_cong_avoid(sk, ack, acked);\n}"), OWN):
        file.write_text(text)
        Algorithm.from_file(file)
        digests.append(spec.digest("sim"))
    assert digests[0] == digests[2] != digests[1]


def test_the_commands_of_a_worst_network_name_the_c_file(tmp_path: Path) -> None:
    """They named the algorithm, which no build knows, so that none of the first kind ran."""
    file = tmp_path / "my files" / "rising.c"
    file.parent.mkdir()
    file.write_text((ROOT / "algorithms" / "template.c").read_text().replace("template", "rising"))
    grid = replace(TINY, kinds=("disjoint",), duration_s=12, warmup_s=2, repetitions=2)
    with chdir(tmp_path):
        study = api.goals("my files/rising.c(decrease=0.6)", "out", grid=grid, seed=7)
        goal = GOALS[0]
        printed, written = study.worst_commands(goal), study.worst_commands(goal, study.worst_file(goal).name)
        assert page.command(study.setting, quick=True).startswith(
            "mptcplab goals 'my files/rising.c(decrease=0.6)' --seed 7"
        )
    assert "--cc 'my files/rising.c(decrease=0.6),reno'" in printed[0]
    worst = tmp_path / "out" / "worst-goal-1.toml"
    assert f"#     {written[0]}\n" in worst.read_text()
    # By itself, the file named the algorithm of the C file, which no build has.
    assert in_process("check", worst, cwd=tmp_path).returncode == 0
    for number, (command, place) in enumerate(
        ((printed[0], tmp_path), (written[0], tmp_path / "out"), (printed[1], tmp_path))
    ):
        # In a process of its own, which has not compiled the file.
        words = [*shlex.split(command)[1:], "--no-report", "--out", tmp_path / str(number)]
        done = in_process(*words, cwd=place)
        assert done.returncode == 0, done.stderr
    first, second, tcp = (
        mptcplab.load(tmp_path / str(number)).runs["cc"].unique().sort().to_list() for number in range(3)
    )
    assert first == second == ["reno", "rising(decrease=0.6)"]
    assert tcp == ["reno"]
