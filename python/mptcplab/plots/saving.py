"""Figures over time as files, which a process of their own can draw while this one goes on.

Matplotlib takes half a second for a figure of six runs, and holds Python's lock meanwhile.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mptcplab.plots.figure import KINDS, save
from mptcplab.plots.over_time import Column, Panel, over_time

# With fewer runs in a figure, a process takes longer to start than to draw.
_FEWEST_RUNS = 3
_GRACE_S = 5.0
_DONE = b"drawn"
# The arguments are this process's search path, so that both import the same package.
_CHILD = "import sys; sys.path[:] = sys.argv[1:]; from mptcplab.plots.saving import draw_for_parent; draw_for_parent()"


@dataclass(frozen=True)
class FiguresOverTime:
    """One figure per quantity, with a column per run; `note` says what is left out."""

    columns: Sequence[Column]
    panels: Sequence[Panel]
    note: str | None
    directory: Path

    def save(self) -> None:
        """Write them into the directory, named after their quantities."""
        for panel in self.panels:
            if any(column.of(panel) for column in self.columns):
                figure = over_time(self.columns, [panel], most_columns=3, shade=True, note=self.note)
                save(figure, self.directory / panel.name, KINDS)


class Drawing:
    """Saves figures over time in a process of its own if that is quicker; the files are the same in any case.

    The process starts at once, so that it has imported Matplotlib when the figures are known.
    """

    def __init__(self, runs: int) -> None:
        """Prepare for figures with so many runs."""
        self._figures: FiguresOverTime | None = None
        self._child = _start() if runs >= _FEWEST_RUNS and _processors() > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._child is not None:
            _end(self._child)

    def begin(self, figures: FiguresOverTime) -> None:
        """Draw these figures, whose directory exists."""
        self._figures = figures
        if self._child is not None:
            assert self._child.stdin is not None
            # If the process is gone or cannot be told, `finish` notices it.
            with suppress(BrokenPipeError, pickle.PicklingError, TypeError, AttributeError), self._child.stdin as pipe:
                pipe.write(pickle.dumps((figures, _settings())))

    def finish(self) -> None:
        """Wait until the figures are there; raises what saving them raises."""
        assert self._figures is not None
        if self._child is None or not _has_drawn(self._child):
            self._figures.save()


def draw_for_parent() -> None:
    """Draw the figures that arrive on the standard input."""
    # Unlike the default action, this removes the file that is being written.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    import matplotlib as mpl
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.figure

    try:
        figures, settings = pickle.load(sys.stdin.buffer)
    except EOFError:
        # Nothing is to be drawn, because the parent has failed.
        sys.exit(1)
    dict.update(mpl.rcParams, settings)
    figures.save()
    sys.stdout.buffer.write(_DONE)
    sys.stdout.buffer.flush()


def _has_drawn(child: subprocess.Popen[bytes]) -> bool:
    """Whether the process says so: its exit code is lost where something else waits for all children."""
    assert child.stdout is not None
    return child.stdout.read() == _DONE


def _start() -> subprocess.Popen[bytes] | None:
    """The process that draws; None if none can be started."""
    if not sys.executable:
        return None
    try:
        # In its own process group, because this process decides what Ctrl-C means.
        return subprocess.Popen(
            [sys.executable, "-c", _CHILD, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
    except (OSError, ValueError, TypeError):
        return None


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_GRACE_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill()
        child.wait()
    finally:
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                # What could not be written is not needed any more.
                with suppress(OSError):
                    pipe.close()


def _settings() -> dict[str, Any]:
    """What this process has changed in Matplotlib's settings, except for windows."""
    if "matplotlib" not in sys.modules:
        return {}
    import matplotlib as mpl

    return {key: value for key, value in dict.items(mpl.rcParams) if not key.startswith("backend")}


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
