"""Temporary directories: what a killed process left goes with the next call, and nothing that is in use."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mptcplab.scratch import Scratch, remove_abandoned

HOLD = "import mptcplab.scratch, sys; s = mptcplab.scratch.Scratch('held'); print(s.name, flush=True); sys.stdin.read()"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_it_goes_with_its_context_and_with_its_object(place: Path) -> None:
    with Scratch("study") as directory:
        assert Path(directory).name.startswith("mptcplab-study-")
        assert [str(path) for path in place.iterdir()] == [directory]
    held = Scratch("results")
    assert len(list(place.iterdir())) == 1
    del held
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next_call_and_what_is_in_use_stays(place: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=-1, stdout=-1, text=True) as child:
        assert child.stdout is not None
        name = Path(child.stdout.readline().strip())
        (name / "file").write_text("half")
        remove_abandoned()
        assert (name / "file").is_file()
        child.kill()
        child.wait()
    assert name.is_dir()
    with Scratch("other") as directory:
        assert [str(path) for path in place.iterdir()] == [directory]


def test_what_others_have_in_the_temporary_folder_stays(place: Path) -> None:
    (place / "mptcplab-thesis").mkdir()
    (place / "target.scratch").mkdir()
    (place / "mptcplab-link.scratch").symlink_to(place / "target.scratch")
    (place / "mptcplab-file.scratch").write_text("a file")
    remove_abandoned()
    names = {"mptcplab-thesis", "target.scratch", "mptcplab-link.scratch", "mptcplab-file.scratch"}
    assert {path.name for path in place.iterdir()} == names
