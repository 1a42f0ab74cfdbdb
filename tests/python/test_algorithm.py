"""Algorithms that are compiled while the program runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mptcplab
from mptcplab import Algorithm, MptcplabError, ScenarioError
from mptcplab.scenario import Overrides

ROOT = Path(__file__).resolve().parents[2]


def source(name: str, template: str = "template-coupled") -> str:
    text = (ROOT / "algorithms" / f"{template}.c").read_text()
    stem = template.replace("-", "_")
    return text.replace(stem, name).replace(stem.upper(), name.upper())


def windows(results: mptcplab.Results, cc: str) -> list[float]:
    runs = results.runs.filter(results.runs["cc"] == cc)["run"].to_list()
    return results.subflow.filter(results.subflow["run"].is_in(runs))["cwnd_pkts"].to_list()


def test_a_file_runs_as_the_same_file_of_the_build(scenario: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text(source("mine"))
    cc = [f"{file}(least_share=0.25)", "template-coupled(least_share=0.25)"]
    results = mptcplab.run(scenario, cc=cc, reps=1, out=tmp_path / "out")
    mine, builtin = results.runs["cc"].to_list()
    assert (mine, builtin) == ("mine(least_share=0.25)", "template-coupled(least_share=0.25)")
    assert windows(results, mine) == windows(results, builtin)
    # The record tells this file from any other of its name; the build says what the others are.
    records = {row["cc"]: json.loads(row["resolved"])["flows"][0]["cc"] for row in results.runs.iter_rows(named=True)}
    assert len(records[mine]["source"]) == 64
    assert "source" not in records[builtin]


def test_the_command_of_a_report_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text(source("mine"))
    changes = Overrides.of([f"{file}(least_share=0.5)", "lia"], None, None, None, None, None)
    assert changes.cc == ("mine(least_share=0.5)", "lia")
    assert changes.to_options() == ["--cc", f"{file}(least_share=0.5),lia"]
    assert Overrides.from_json(changes.to_json()) == changes


def test_a_source_in_python_is_compiled_and_replaced(scenario: Path) -> None:
    halver = Algorithm.from_source(source("halver", "template"))
    assert str(halver) == "halver"
    first = mptcplab.run(scenario, cc=halver, reps=1)
    # At a loss four fifths of the window remain, instead of half of it.
    gentle = source("halver", "template").replace(
        "CC_PARAM(decrease, .initial = 0.5", "CC_PARAM(decrease, .initial = 0.8"
    )
    assert gentle != source("halver", "template")
    second = mptcplab.run(scenario, cc=[Algorithm.from_source(gentle)], reps=1)
    assert first.subflow["cwnd_pkts"].to_list() != second.subflow["cwnd_pkts"].to_list()


def test_what_is_wrong_is_said_with_the_line(scenario: Path, tmp_path: Path) -> None:
    text = source("mine").replace("u64 sum = 0;", "u64 sum = nothing;")
    line = 1 + next(i for i, line in enumerate(text.splitlines()) if "nothing" in line)
    with pytest.raises(ScenarioError, match=rf"mine\.c:{line}:.*nothing"):
        Algorithm.from_source(text)
    with pytest.raises(ScenarioError, match="the source registers no algorithm"):
        Algorithm.from_source('#include "cc.h"\n')
    with pytest.raises(ScenarioError, match=r"lia\.c: lia is an algorithm of this build"):
        Algorithm.from_source(source("lia"))
    with pytest.raises(MptcplabError, match="not an algorithm: 3"):
        mptcplab.run(scenario, cc=[3])  # type: ignore[list-item]
    missing = tmp_path / "missing.c"
    command = [sys.executable, "-m", "mptcplab", "run", str(scenario), "--cc", str(missing)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {missing}: No such file or directory\n\nhint: ")


def test_other_engines_refuse_it(scenario: Path) -> None:
    mine = Algorithm.from_source(source("mine"))
    with pytest.raises(MptcplabError, match="no fluid model"):
        mptcplab.run(scenario, cc=mine, engine="fluid")
    from mptcplab.engines import kernel

    overrides = Overrides.of(mine, None, None, None, None, None).to_json()
    with pytest.raises(ScenarioError, match=r"runs only algorithms of the build: mine, from mine\.c"):
        kernel.run(str(scenario), scenario.parent / "out", overrides)


def test_a_compiler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(mptcplab.EngineError, match=r"no-such-compiler: .*\n\nhint: install a C compiler"):
        Algorithm.from_source(source("mine"))
