"""Output directories: a good result is never destroyed, and what killed processes leave is put right."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import program

import mptcplab
from mptcplab import output
from mptcplab.errors import LeftoverWarning, ResultsError

SCENARIO = "scenarios/dolia-scenario-1.toml"
SHORT = {"cc": "lia", "reps": 1, "duration": "12 s"}


def _result(content: str = "new", error: BaseException | None = None) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        directory.mkdir()
        (directory / "run.parquet").write_text(content)
        if error is not None:
            raise error

    return write


def _dead() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_complete_result_replaces_the_former(tmp_path: Path) -> None:
    place = tmp_path / "x"
    output.write_into(place, _result("old"), force=False)
    output.write_into(place, _result("new"), force=True)
    assert (place / "run.parquet").read_text() == "new"
    assert _names(tmp_path) == ["x"]


def test_the_former_result_stays_while_the_new_one_is_written(tmp_path: Path) -> None:
    place = tmp_path / "x"
    output.write_into(place, _result("old"), force=False)

    def write(directory: Path) -> None:
        assert (place / "run.parquet").read_text() == "old"
        _result()(directory)

    output.write_into(place, write, force=True)
    with pytest.raises(ValueError, match="no"):
        output.write_into(place, _result("bad", ValueError("no")), force=True)
    assert (place / "run.parquet").read_text() == "new"
    assert _names(tmp_path) == ["x"]


def test_an_unfinished_result_does_not_replace_a_good_one(tmp_path: Path) -> None:
    place = tmp_path / "x"
    output.write_into(place, _result("good"), force=False)
    for number in ("", "-2"):
        with pytest.raises(output.PartialOutputError) as caught:
            output.write_into(place, _result(f"half{number}", output.PartialOutputError()), force=True)
        assert caught.value.directory == tmp_path / f"x.unfinished{number}"
        assert (caught.value.directory / "run.parquet").read_text() == f"half{number}"
    assert (place / "run.parquet").read_text() == "good"
    with pytest.raises(output.PartialOutputError) as caught:
        output.write_into(tmp_path / "y", _result("half", output.PartialOutputError()), force=False)
    assert caught.value.directory == tmp_path / "y"
    assert _names(tmp_path) == ["x", "x.unfinished", "x.unfinished-2", "y"]


def test_the_former_result_of_a_killed_run_comes_back(tmp_path: Path) -> None:
    place, dead = tmp_path / "x", _dead()
    former = tmp_path / f"x.former-{dead}"
    _result("good")(former)
    _result("half")(tmp_path / f"x.new-{dead}")
    with pytest.warns(LeftoverWarning) as said, pytest.raises(mptcplab.MptcplabError, match="not empty"):
        output.write_into(place, _result(), force=False)
    assert (place / "run.parquet").read_text() == "good"
    assert [str(one.message) for one in said] == [
        f"a run was killed; its former result is back: {place}",
        f"a run was killed; what it left is removed: {tmp_path / f'x.new-{dead}'}",
    ]
    assert _names(tmp_path) == ["x"]


def test_an_interrupt_while_the_former_result_is_removed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output.write_into(tmp_path / "x", _result("old"), force=False)
    remove, calls = output.shutil.rmtree, []

    def interrupted(path: Path, **named: bool) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        remove(path, **named)

    monkeypatch.setattr(output.shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        output.write_into(tmp_path / "x", _result(), force=True)
    assert _names(tmp_path) == ["x"]
    assert (tmp_path / "x" / "run.parquet").read_text() == "new"


def test_what_a_killed_process_had_begun_to_derive_makes_no_result_unknown(tmp_path: Path) -> None:
    output.write_into(tmp_path / "x", _result("old"), force=False)
    (tmp_path / "x" / "metrics.csv.partial").touch()
    assert output.is_former_result(tmp_path / "x")
    for stranger in ("notes.partial", "metrics.csv.partial.partial", "metrics.txt"):
        (tmp_path / "x" / stranger).touch()
        assert not output.is_former_result(tmp_path / "x")
        (tmp_path / "x" / stranger).unlink()


def test_what_a_running_process_or_somebody_else_has_there_stays(tmp_path: Path) -> None:
    living, dead, elsewhere = os.getppid(), _dead(), "nffffffff"
    stay = [f"x.new-{living}", f"x.former-{living}", "x.former-notes", "x.new-7z", f"xy.new-{dead}"]
    # The same identifiers in another container, or on another host that has the directory as well.
    stay += [f"x.new-{dead}-7-{elsewhere}", f"x.former-{dead}-{elsewhere}"]
    for name in stay:
        _result()(tmp_path / name)
    with warnings.catch_warnings(action="error"):
        output.write_into(tmp_path / "x", _result(), force=False)
    assert _names(tmp_path) == sorted(["x", *stay])


@pytest.mark.parametrize("is_link", [False, True])
def test_what_somebody_else_planted_becomes_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_link: bool
) -> None:
    planted, own = tmp_path / f"x.former-{_dead()}", tmp_path / "elsewhere"
    if is_link:
        _result("bad")(own)
        planted.symlink_to(own)
    else:
        _result("bad")(planted)
        monkeypatch.setattr(output.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(LeftoverWarning) as said:
        output.write_into(tmp_path / "x", _result("good"), force=True)
    assert [str(one.message) for one in said] == [f"not what a run of this user left, and left alone: {planted}"]
    assert (tmp_path / "x" / "run.parquet").read_text() == "good"
    assert (planted / "run.parquet").read_text() == "bad"


def test_a_new_process_with_the_identifier_of_a_killed_one_keeps_nothing_from_being_removed(tmp_path: Path) -> None:
    before = f"x.new-{os.getppid()}-1"
    mine = f"x.new-{output._process()}"
    for name in (before, mine):
        _result()(tmp_path / name)
    with pytest.warns(LeftoverWarning, match="what it left is removed: .*-1$"):
        output.put_right(tmp_path / "x")
    assert _names(tmp_path) == [mine]


def test_a_killed_run_leaves_the_former_result_as_it_was(tmp_path: Path) -> None:
    """SIGKILL in the middle of a real run with --force, and the same command again."""
    place = tmp_path / "x"
    mptcplab.run(SCENARIO, out=place, **SHORT)
    good = {path.name: path.read_bytes() for path in place.iterdir()}
    command = program("run", SCENARIO, "--out", place, "--force", "--reps", "500")
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not any(tmp_path.glob("x.partial/sim/000001/run.parquet")):
        assert child.poll() is None
    child.kill()
    child.wait()
    assert {path.name: path.read_bytes() for path in place.iterdir()} == good
    mptcplab.run(SCENARIO, out=place, force=True, **SHORT)
    # Runs that are not part of this one stay for the one that was killed.
    assert _names(tmp_path) == ["x", "x.partial"]
    assert {path.name: path.read_bytes() for path in place.iterdir()} == good


@pytest.mark.parametrize("table", output.TABLES)
def test_a_changed_bit_in_a_trace_is_an_error(tmp_path: Path, table: str) -> None:
    place = tmp_path / "x"
    mptcplab.run(SCENARIO, out=place, **SHORT)
    path = place / f"{table}.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(ResultsError, match=rf"trace is damaged: .*{table}\.parquet does not match.*\n\nhint: run"):
        results = mptcplab.load(place)
        getattr(results, "runs" if table == "run" else table)


def test_damaged_or_missing_checksums(tmp_path: Path) -> None:
    place = tmp_path / "x"
    mptcplab.run(SCENARIO, out=place, **SHORT)
    sums = place / "checksums.json"
    for text, said in (
        ("", r"cannot read the checksums of a trace: .*checksums\.json: Expecting value"),
        ("[]", r"no checksum of run\.parquet in .*checksums\.json"),
        ("{}", r"no checksum of run\.parquet in .*checksums\.json"),
    ):
        sums.write_text(text)
        with pytest.raises(ResultsError, match=said):
            mptcplab.load(place)
    # As traces of earlier versions are.
    sums.unlink()
    results = mptcplab.load(place)
    assert results.runs.height == 1
    assert any("without checksums.json" in remark for remark in results.remarks)
    (place / "link.parquet").write_bytes((place / "flow.parquet").read_bytes())
    with pytest.raises(ResultsError, match=r"cannot read results: .*link\.parquet: it has no column link"):
        mptcplab.load(place)


def test_what_is_kept_of_an_interrupted_command_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "x.partial" / "sim").mkdir(parents=True)
    with pytest.raises(ResultsError, match=r"run\.parquet is missing\n\nhint: it keeps finished runs of a command"):
        mptcplab.load(tmp_path / "x.partial")


def test_a_link_stays_and_its_directory_gets_the_result(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    for name, to in (("link", "large"), ("dangling", "not-yet")):
        (tmp_path / name).symlink_to(tmp_path / to)
        for seed in (1, 2):
            mptcplab.run(SCENARIO, **SHORT, seed=seed, out=tmp_path / name, force=seed == 2)  # type: ignore[arg-type]
        assert (tmp_path / name).readlink() == tmp_path / to
        assert (tmp_path / to / "run.parquet").is_file()
    assert _names(tmp_path) == ["dangling", "large", "link", "not-yet"]
    (tmp_path / "merged").symlink_to(tmp_path / "both")
    mptcplab.merge(tmp_path / "large", tmp_path / "not-yet", out=tmp_path / "merged", force=True)
    assert (tmp_path / "merged").is_symlink()
    assert (tmp_path / "both" / "run.parquet").is_file()
