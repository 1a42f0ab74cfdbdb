"""What comes with the package is found from any directory, by name or by its path in the repository."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import ROOT
from test_cli import lab

import mptcplab
from mptcplab import bundle

DEMO = "dolia-scenario-1"


@pytest.mark.parametrize(
    ("given", "file"),
    [
        (DEMO, "scenarios/dolia-scenario-1.toml"),
        ("scenarios/dolia-scenario-1.toml", "scenarios/dolia-scenario-1.toml"),
        ("fidelity/equal-flows", "scenarios/fidelity/equal-flows.toml"),
        ("kim2021/shared-60", "papers/kim2021/shared-60.toml"),
        ("papers/zuhairi2022/moving.toml", "papers/zuhairi2022/moving.toml"),
    ],
)
def test_a_scenario_has_a_name_and_a_path(given: str, file: str) -> None:
    assert bundle.scenario(given) == ROOT / file


@pytest.mark.parametrize("given", ["kim2021/claims", "../scenarios/dolia-scenario-1", "shared-60", "nowhere"])
def test_nothing_else_is_a_scenario(given: str) -> None:
    assert bundle.scenario(given) is None


def test_every_scenario_of_the_repository_is_listed_with_its_title() -> None:
    known = {entry["name"]: entry for entry in mptcplab.scenarios()}
    files = {*ROOT.glob("scenarios/**/*.toml"), *ROOT.glob("papers/*/*.toml")}
    described = {"paper.toml", "claims.toml", "changes.toml"}
    assert {Path(entry["path"]) for entry in known.values()} == {file for file in files if file.name not in described}
    assert all(entry["title"] for entry in known.values())


def test_names_are_taken_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    by_name = mptcplab.check(DEMO)
    assert by_name == mptcplab.check(f"scenarios/{DEMO}.toml")
    assert mptcplab.Scenario.from_file(DEMO).name == DEMO
    # A file of one's own comes first.
    (tmp_path / "scenarios").mkdir()
    (tmp_path / f"scenarios/{DEMO}.toml").write_text((ROOT / "scenarios/wifi-handover.toml").read_text())
    assert mptcplab.check(f"scenarios/{DEMO}.toml") != by_name


def test_the_command_prints_a_file(tmp_path: Path) -> None:
    assert lab("scenarios", DEMO, cwd=tmp_path).stdout == (ROOT / f"scenarios/{DEMO}.toml").read_text()


@pytest.mark.parametrize(
    ("name", "folder", "files"),
    [
        ("wifi-walk", "scenarios", "traces/walk/wifi-{rep}.csv, traces/walk/cellular-{rep}.csv"),
        ("zuhairi2022/moving", "papers/zuhairi2022", "walk/wifi-{rep}.csv, walk/cellular-{rep}.csv"),
    ],
)
def test_the_command_says_which_files_a_copy_needs(name: str, folder: str, files: str, tmp_path: Path) -> None:
    """A copy, the way to a scenario of one's own, could not be run, and nothing said where its files are."""
    done = lab("scenarios", name, cwd=tmp_path)
    assert done.stderr == (
        f"note: it names these files, which a copy needs beside it: {files}\nfrom: {ROOT / folder}\n"
    )
    assert lab("scenarios", DEMO, cwd=tmp_path).stderr == ""


def test_an_unknown_name_is_an_error_with_the_closest() -> None:
    with pytest.raises(
        mptcplab.ScenarioError, match=r"no such scenario: 'dolia-scenario'\n\nhint: did you mean 'dolia"
    ):
        mptcplab.check("dolia-scenario")
    with pytest.raises(mptcplab.ScenarioError, match="cannot be read"):
        mptcplab.check("dolia-scenario.toml")


def test_an_installed_package_uses_its_own_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share = tmp_path / "_share"
    shutil.copytree(ROOT / "scenarios/fidelity", share / "scenarios")
    monkeypatch.setattr(bundle, "_SHARE", share)
    assert bundle.root() == share
    assert bundle.scenario("equal-flows") == share / "scenarios/equal-flows.toml"
    assert bundle.scenario(DEMO) is None
