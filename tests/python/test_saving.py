"""Figures that a process of its own draws."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from mptcplab.plots import saving
from mptcplab.plots.over_time import CWND, RTT, Column, Series, over_time, whole_run
from mptcplab.plots.saving import Drawing, FigureOverTime, PageFigure
from mptcplab.plots.styles import style


def _columns() -> list[Column]:
    columns = []
    for run in range(3):
        times = np.linspace(0, 20 + run, 50 + run)
        lines = [
            Series(panel, f"path {k}", style(k), times, (3 + k + run) * (2 + np.sin(times / (1 + k))))
            for panel in (CWND, RTT)[: 2 - run % 2]
            for k in range(2)
        ]
        columns.append(Column(f"cc {run}", tuple(lines), 0.0, 20.0 + run, 2.0 + run))
    return columns


def _figures(directory: Path) -> list[FigureOverTime]:
    return [FigureOverTime.of(_columns(), panel, "one is left out", directory) for panel in (CWND, RTT)]


def _page_figure(directory: Path | None) -> PageFigure:
    return PageFigure("whole", "A run & its lines", partial(whole_run, _columns()[0]), directory)


def _draw(drawing: Drawing, directory: Path) -> str:
    """Draw all of them, the one of the page before what waits; what belongs into the page."""
    waits = [drawing.begin(one.save) for one in _figures(directory)]
    page = drawing.begin(_page_figure(directory).svg, soon=True)
    text = page()
    for wait in waits:
        wait()
    return text


def _files(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def _numbers(axes: Axes) -> list[Bbox]:
    """Where the numbers of a time axis are; a tick beyond its end is not drawn."""
    low, high = axes.get_xlim()
    return [
        label.get_window_extent()
        for x, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        if low <= x <= high
    ]


@pytest.mark.parametrize("end_s", [8.0, 1200.0, 30000.0])
def test_the_numbers_of_neighbouring_time_axes_do_not_touch(end_s: float) -> None:
    """1200 at the end of one axis and 0 at the beginning of the next were read as 12000."""
    line = Series(CWND, "path", style(0), np.array([0.0, end_s]), np.array([1.0, 2.0]))
    figure = over_time([Column(f"cc {k}", (line,), 0.0, end_s, 0.0) for k in range(3)], [CWND], most_columns=3)
    figure.draw_without_rendering()
    boxes = [_numbers(axes) for axes in figure.axes]
    for one, other in pairwise(boxes):
        assert max(box.x1 for box in one) + 0.04 * figure.dpi < min(box.x0 for box in other)
    assert max(box.x1 for box in boxes[-1]) <= figure.bbox.x1


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "_processors", lambda: 2)


@pytest.fixture
def expected(tmp_path: Path) -> tuple[str, dict[str, bytes]]:
    directory = tmp_path / "expected"
    for one in _figures(directory):
        one.save()
    text = _page_figure(directory).svg()
    found = _files(directory)
    assert sorted(found) == ["cwnd.png", "cwnd.svg", "rtt.png", "rtt.svg", "whole.png", "whole.svg"]
    assert text.startswith("<svg ")
    assert "A run &amp; its lines" in text
    return text, found


@pytest.mark.usefixtures("two_processors")
def test_another_process_draws_the_same_bytes(
    tmp_path: Path, expected: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Drawing(3) as drawing:
        # Only the other process draws them.
        monkeypatch.setattr(saving, "save", lambda *_: pytest.fail("drawn by the parent"))
        text = _draw(drawing, tmp_path / "drawn")
    assert (text, _files(tmp_path / "drawn")) == expected


@pytest.mark.usefixtures("two_processors")
def test_what_is_wanted_soon_comes_before_what_waits() -> None:
    with Drawing(3) as drawing:
        drawing.begin(partial(time.sleep, 0.2))
        later = drawing.begin(time.monotonic_ns)
        soon = drawing.begin(time.monotonic_ns, soon=True)
        # If this process had to call both, it would call the later one first.
        at = later()
        assert soon() < at


def test_settings_of_the_caller_hold_in_the_other_process(
    tmp_path: Path, expected: tuple[str, dict[str, bytes]]
) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"lines.dash_capstyle": "round", "axes.linewidth": 3.0}):
        for one in _figures(tmp_path / "here"):
            one.save()
        text = _page_figure(tmp_path / "here").svg()
        here = _files(tmp_path / "here")
        assert all(expected[1][name] != content for name, content in here.items())
        with Drawing(3) as drawing:
            assert _draw(drawing, tmp_path / "drawn") == text
    assert _files(tmp_path / "drawn") == here


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("when", ["before", "after"])
def test_figures_are_drawn_even_if_the_other_process_is_killed(
    tmp_path: Path, expected: tuple[str, dict[str, bytes]], when: str
) -> None:
    directory = tmp_path / "drawn"
    with Drawing(3) as drawing:
        assert drawing._child is not None
        if when == "before":
            drawing._child.process.kill()
            drawing._child.process.wait()
        waits = [drawing.begin(one.save) for one in _figures(directory)]
        page = drawing.begin(_page_figure(directory).svg)
        drawing._child.process.kill()
        for wait in waits:
            wait()
        text = page()
    found = {name: content for name, content in _files(directory).items() if "partial" not in name}
    assert (text, found) == expected


@pytest.mark.usefixtures("two_processors")
def test_what_fails_in_the_other_process_fails_here(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with Drawing(3) as drawing:
        wait = drawing.begin(_figures(tmp_path / "file")[0].save)
        page = drawing.begin(_page_figure(None).svg)
        with pytest.raises(FileExistsError):
            wait()
        # The other process is gone.
        assert page().startswith("<svg ")


class _Unpicklable:
    def __reduce__(self) -> str:
        raise RuntimeError("no pickle")

    def __call__(self) -> str:
        return "called here"


@pytest.mark.usefixtures("two_processors")
def test_what_cannot_be_pickled_is_called_here_and_the_next_elsewhere() -> None:
    with Drawing(3) as drawing:
        here, elsewhere = drawing.begin(_Unpicklable()), drawing.begin(os.getpid)
        assert here() == "called here"
        assert elsewhere() != os.getpid()


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("text", ["The cache is cold", "note: hello"])
def test_what_the_other_process_prints_is_no_answer(text: str) -> None:
    """The first one reads like the beginning of a long pickle."""
    with Drawing(3) as drawing:
        drawing.begin(partial(print, text, flush=True))()
        assert drawing.begin(os.getpid)() != os.getpid()


@pytest.mark.usefixtures("two_processors")
def test_an_error_ends_the_other_process_and_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    directory = tmp_path / "drawn"
    directory.mkdir()

    def fail(drawing: Drawing) -> None:
        for one in _figures(directory):
            drawing.begin(one.save)
        # It has begun, and the others are still to be drawn.
        while not list(directory.iterdir()):
            pass
        raise KeyboardInterrupt

    with Drawing(3) as drawing, pytest.raises(KeyboardInterrupt):
        child = drawing._child
        with drawing:
            fail(drawing)
    assert child is not None
    assert child.process.poll() is not None
    assert [file.name for file in directory.iterdir() if "partial" in file.name] == []


def test_nothing_is_started_for_few_runs_or_on_one_processor(
    tmp_path: Path, expected: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(saving._Child, "start", lambda: started.append(1))
    monkeypatch.setattr(saving, "_processors", lambda: 2)
    Drawing(2)
    monkeypatch.setattr(saving, "_processors", lambda: 1)
    with Drawing(3) as drawing:
        text = _draw(drawing, tmp_path / "drawn")
    assert started == []
    assert (text, _files(tmp_path / "drawn")) == expected


def test_a_process_without_figures_ends_quietly() -> None:
    command = [sys.executable, "-c", saving._CHILD, "1", *sys.path]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
