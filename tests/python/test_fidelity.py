"""The fidelity page: its verdicts hold, its parts fit together, and what should fail does."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import ROOT

from mptcplab import fidelity
from mptcplab.errors import MptcplabError
from mptcplab.fidelity import cubic, page
from mptcplab.fidelity.evidence import Bound, Case, Judge, Statement


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """The page as the command writes it, with less simulated time."""
    out = tmp_path_factory.mktemp("fidelity") / "docs"
    command = [sys.executable, "-m", "mptcplab", "fidelity", "--quick", "--json", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out, json.loads(done.stdout)


def test_every_statement_holds(quick: tuple[Path, dict]) -> None:
    verdicts = quick[1]["verdicts"]
    assert list(verdicts) == [plan.name for plan in fidelity.PLANS]
    assert [name for name, verdict in verdicts.items() if verdict != "holds"] == ["drop-tail-phase"]
    assert verdicts["drop-tail-phase"] == "shown"


def test_the_page_shows_what_the_tables_say(quick: tuple[Path, dict]) -> None:
    out, _ = quick
    text = (out / page.PAGE).read_text()
    assert "does not hold" not in text
    cases = list(csv.DictReader((out / page.NUMBERS).open()))
    values = list(csv.DictReader((out / page.VALUES).open()))
    for plan in fidelity.PLANS:
        assert f"\n## {plan.title}\n" in text
        assert f"(#{page.anchor(plan.title)})" in text
        assert f"mptcplab run scenarios/fidelity/{plan.scenario}" in text
        mine = [case for case in cases if case["statement"] == plan.name]
        assert mine, plan.name
        for case in mine:
            same = [v for v in values if (v["statement"], v["case"]) == (plan.name, case["case"])]
            assert len(same) == int(case["n"])
            assert np.mean([float(v["value"]) for v in same]) == pytest.approx(float(case["mean"]), rel=1e-6)


def test_every_figure_of_the_page_is_there(quick: tuple[Path, dict]) -> None:
    out, _ = quick
    named = set(re.findall(r"\((figures/[^)]+)\)", (out / page.PAGE).read_text()))
    assert {str(path.relative_to(out)) for path in (out / page.FIGURES).iterdir()} == named
    assert len(named) >= 8
    assert all((out / name).stat().st_size > 2000 for name in named)


def test_a_scenario_for_every_plan_and_a_plan_for_every_scenario() -> None:
    found = {path.name for path in (ROOT / fidelity.SCENARIOS).glob("*.toml")}
    assert found == {plan.scenario for plan in fidelity.PLANS}


def test_without_the_scenarios_the_error_names_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    with pytest.raises(MptcplabError, match=rf"no fidelity scenarios: {re.escape(str(tmp_path))}"):
        fidelity.scenario_directory(tmp_path)


def test_a_mean_may_hold_where_a_repetition_does_not() -> None:
    values = (0.6, 0.9, 1.2)
    assert Case(("a",), values, "", Bound(0.7, 1.15)).verdict == "holds"
    assert Case(("a",), values, "", Bound(0.7, 1.15, Judge.EVERY)).verdict == "does not hold"
    assert Case(("a",), values, "", Bound(1.0, 1.15)).verdict == "does not hold"
    assert Case(("a",), values, "", Bound(1.0, 1.15, shown=True)).verdict == "outside"
    # Student's t with two degrees of freedom: 4.303 x 0.3 / sqrt(3).
    assert Case(("a",), values, "").half == pytest.approx(0.745, abs=1e-3)
    assert Case(("a",), (0.9, 0.9), "").half is None


def test_one_failing_case_makes_the_statement_fail() -> None:
    good, bad = (Case((name,), (value,), "", Bound(high=1)) for name, value in (("a", 1.0), ("b", 1.01)))
    shown = Case(("c",), (5.0,), "", Bound(high=1, shown=True))
    assert _statement(good, shown).verdict == "holds"
    failed = _statement(good, bad)
    assert failed.verdict == "does not hold"
    assert "| b |  | 1.010 |  | 1 | at most 1 | does not hold |" in page.markdown([failed], "x")


def _statement(*cases: Case) -> Statement:
    return Statement("s", "Title", "Claim.", "Method.", "s.toml", "mptcplab run s.toml", ("case",), cases)


def climbing(losses: list[int], *, c: float = 0.4) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A trace with a loss at each of these windows, and the curve of RFC 9438 (with another C) for 12 s after each."""
    t = np.arange(0.0, 12.0, 0.005)
    windows, cuts, former = [], [], 0.0
    for prior in losses:
        maximum = 0.85 * prior if prior < former else float(prior)
        k = np.cbrt((maximum - 0.7 * prior) / c)
        cuts.append(sum(map(len, windows)) + 1)
        windows += [np.array([float(prior)]), c * (t - k) ** 3 + maximum]
        former = maximum
    window = np.concatenate(windows)
    at_ns = np.arange(window.size) * 5_000_000
    rows = pl.DataFrame(
        {
            "t_ns": at_ns,
            "cwnd_pkts": np.floor(window).astype(np.uint32),
            # Few ACKs, so that W_est stays below the curve.
            "acked_pkts": np.arange(window.size),
            "state": ["open"] * window.size,
        }
    )
    times = [*(int(at_ns[cut]) for cut in cuts), int(at_ns[-1]) + 1]
    return rows, pl.DataFrame({"t_ns": times, "kind": ["loss_event"] * len(times)})


def test_the_curve_is_recognised_after_growth_and_after_fast_convergence() -> None:
    found, undecided = cubic.epochs(*climbing([400, 700, 500]))
    # Of the maximum before the first loss nothing is known.
    assert (len(found), undecided) == (2, 1)
    # The row of the next loss still belongs to the epoch, but to no curve.
    assert [epoch.cwnd.size for epoch in found] == [2401, 2400]
    assert max(np.abs(epoch.residual[:2400]).max() for epoch in found) < 0.05
    assert found[1].reference[0] == pytest.approx(0.7 * 500, abs=1)


def test_another_curve_is_told_apart() -> None:
    found, _ = cubic.epochs(*climbing([400, 700, 500], c=0.42))
    assert min(np.abs(epoch.residual[:2400]).max() for epoch in found) > 2


def test_windows_too_close_to_tell_whether_fast_convergence_acted_are_left_out() -> None:
    found, undecided = cubic.epochs(*climbing([400, 700, 700]))
    assert (len(found), undecided) == (1, 2)
