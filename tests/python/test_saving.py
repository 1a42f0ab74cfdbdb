"""Figures over time that a process of its own draws."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mptcplab.plots import saving
from mptcplab.plots.over_time import CWND, RTT, Column, Series
from mptcplab.plots.saving import Drawing, FiguresOverTime
from mptcplab.plots.styles import style


def _figures(directory: Path) -> FiguresOverTime:
    columns = []
    for run in range(3):
        times = np.linspace(0, 20 + run, 50 + run)
        lines = [
            Series(panel, f"path {k}", style(k), times, (3 + k + run) * (2 + np.sin(times / (1 + k))))
            for panel in (CWND, RTT)[: 2 - run % 2]
            for k in range(2)
        ]
        columns.append(Column(f"cc {run}", tuple(lines), 0.0, 20.0 + run, 2.0 + run))
    directory.mkdir()
    return FiguresOverTime(columns, (CWND, RTT), "one is left out", directory)


def _files(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "_processors", lambda: 2)


@pytest.fixture
def expected(tmp_path: Path) -> dict[str, bytes]:
    figures = _figures(tmp_path / "expected")
    figures.save()
    found = _files(figures.directory)
    assert sorted(found) == ["cwnd.png", "cwnd.svg", "rtt.png", "rtt.svg"]
    return found


@pytest.mark.usefixtures("two_processors")
def test_another_process_draws_the_same_bytes(
    tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = _figures(tmp_path / "drawn")
    with Drawing(3) as drawing:
        # Only the other process saves them.
        monkeypatch.setattr(FiguresOverTime, "save", lambda _: pytest.fail("drawn by the parent"))
        drawing.begin(figures)
        drawing.finish()
    assert _files(figures.directory) == expected


@pytest.mark.usefixtures("two_processors")
def test_settings_of_the_caller_hold_in_the_other_process(tmp_path: Path, expected: dict[str, bytes]) -> None:
    import matplotlib as mpl

    figures = _figures(tmp_path / "drawn")
    with mpl.rc_context({"lines.dash_capstyle": "round", "axes.linewidth": 3.0}):
        figures.save()
        here = _files(figures.directory)
        assert here != expected
        with Drawing(3) as drawing:
            drawing.begin(figures)
            drawing.finish()
    assert _files(figures.directory) == here


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("when", ["before", "after"])
def test_figures_are_drawn_even_if_the_other_process_is_killed(
    tmp_path: Path, expected: dict[str, bytes], when: str
) -> None:
    figures = _figures(tmp_path / "drawn")
    with Drawing(3) as drawing:
        assert drawing._child is not None
        if when == "before":
            drawing._child.kill()
            drawing._child.wait()
        drawing.begin(figures)
        drawing._child.kill()
        drawing.finish()
    assert {name: content for name, content in _files(figures.directory).items() if "partial" not in name} == expected


@pytest.mark.usefixtures("two_processors")
def test_an_error_ends_the_other_process_and_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    figures = _figures(tmp_path / "drawn")

    def fail(drawing: Drawing) -> None:
        drawing.begin(figures)
        # It has begun, and the others are still to be drawn.
        while not list(figures.directory.iterdir()):
            pass
        raise KeyboardInterrupt

    with Drawing(3) as drawing, pytest.raises(KeyboardInterrupt):
        child = drawing._child
        with drawing:
            fail(drawing)
    assert child is not None
    assert child.poll() is not None
    assert [file.name for file in figures.directory.iterdir() if "partial" in file.name] == []


def test_nothing_is_started_for_few_runs_or_on_one_processor(
    tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(saving, "_start", lambda: started.append(1))
    monkeypatch.setattr(saving, "_processors", lambda: 2)
    Drawing(2)
    monkeypatch.setattr(saving, "_processors", lambda: 1)
    figures = _figures(tmp_path / "drawn")
    with Drawing(3) as drawing:
        drawing.begin(figures)
        drawing.finish()
    assert started == []
    assert _files(figures.directory) == expected


def test_a_process_without_figures_ends_quietly() -> None:
    done = subprocess.run([sys.executable, "-c", saving._CHILD, *sys.path], input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
