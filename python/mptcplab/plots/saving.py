"""Figures of a report, which a process of their own can draw while this one goes on.

Matplotlib takes half a second for a figure of six runs, and holds Python's lock meanwhile.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar, cast

from mptcplab.engines.process import end
from mptcplab.plots.figure import KINDS, save
from mptcplab.plots.over_time import Column, Panel, over_time
from mptcplab.plots.svg import inline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# With fewer runs in a figure over time, a process takes longer to start than to draw all figures.
_FEWEST_RUNS = 3
_GRACE_S = 5.0
Result = TypeVar("Result")
# The result in a tuple, or None if there is none; what draws; Matplotlib's settings.
_Asked = tuple["Future[tuple[object] | None]", Callable[[], object], dict[str, Any]]
# The arguments are the descriptor for answers, and this process's search path, so that both import the same package.
_CHILD = """import os, sys
answers, *sys.path[:] = sys.argv[1:]
try:
    from mptcplab.plots.saving import draw_for_parent
    draw_for_parent(int(answers))
finally:
    # The parent waits for the end, and taking Matplotlib down would take a fifth of a second.
    os._exit(0)"""


@dataclass(frozen=True)
class FigureOverTime:
    """A quantity, with a column per run; `note` says what is left out, and `directory` may not exist yet."""

    columns: Sequence[Column]
    panel: Panel
    note: str | None
    directory: Path

    @classmethod
    def of(cls, columns: Sequence[Column], panel: Panel, note: str | None, directory: Path) -> Self:
        """The figure of columns that may have other quantities as well."""
        return cls([replace(one, series=tuple(one.of(panel))) for one in columns], panel, note, directory)

    def save(self) -> None:
        """Write the files into the directory, named after the quantity."""
        figure = over_time(self.columns, [self.panel], most_columns=3, shade=True, note=self.note)
        _save(figure, self.directory, self.panel.name)


@dataclass(frozen=True)
class PageFigure:
    """A figure that a page shows, and of which `directory` gets files; None for none. The directory may not exist yet.

    `draw` returns the figure, and can be pickled.
    """

    name: str
    title: str
    draw: Callable[[], Figure]
    directory: Path | None

    def svg(self) -> str:
        """Draw it and write the files; the `svg` element for the page."""
        figure = self.draw()
        text = inline(figure, self.name, self.title)
        if self.directory is not None:
            _save(figure, self.directory, self.name)
        return text


def _save(figure: Figure, directory: Path, name: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    save(figure, directory / name, KINDS)


class Drawing:
    """Draws figures in a process of its own if that is quicker; what comes of it is the same in any case.

    The process starts at once, so that it has imported Matplotlib when the first figures are known.
    """

    def __init__(self, runs: int) -> None:
        """Prepare for figures over time with so many runs."""
        self._child = _Child.start() if runs >= _FEWEST_RUNS and _processors() > 1 else None
        # Talks to the process about one figure after the other, so that nobody has to wait for it.
        self._talk = ThreadPoolExecutor(1)
        self._soon: deque[_Asked] = deque()
        self._later: deque[_Asked] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._child is not None:
            self._child.end()
        self._talk.shutdown(cancel_futures=True)
        if self._child is not None:
            self._child.close()

    def begin(self, draw: Callable[[], Result], *, soon: bool = False) -> Callable[[], Result]:
        """Have `draw`, which can be pickled, called; with `soon` before what was begun without it and has not started.

        The function that this returns gives the result, and raises what `draw` raises. Without another process, it
        calls `draw` then.
        """
        if self._child is None:
            return draw
        answer: Future[tuple[object] | None] = Future()
        (self._soon if soon else self._later).append((answer, draw, _settings()))
        self._talk.submit(self._answer_next, self._child)

        def result() -> Result:
            # A process that is gone, or that failed, has not answered.
            found = answer.result()
            return draw() if found is None else cast("Result", found[0])

        return result

    def _answer_next(self, child: _Child) -> None:
        answer, *request = (self._soon or self._later).popleft()
        answer.set_result(child.ask(request))


def draw_for_parent(answers: int) -> None:
    """Call what arrives on the standard input, and write the results to a file descriptor."""
    # Unlike the default action, this removes the file that is being written.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    import matplotlib as mpl
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.figure

    while True:
        try:
            draw, settings = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        with mpl.rc_context():
            dict.update(mpl.rcParams, settings)
            result = draw()
        with os.fdopen(answers, "wb", closefd=False) as pipe:
            pickle.dump((result,), pipe)


@dataclass(frozen=True)
class _Child:
    """The process that draws. Answers have a pipe of their own: what else it prints is none."""

    process: subprocess.Popen[bytes]
    requests: IO[bytes]
    answers: IO[bytes]

    @classmethod
    def start(cls) -> Self | None:
        """The process; None if none can be started."""
        with suppress(OSError, ValueError, TypeError):
            return cls._started() if sys.executable else None
        return None

    @classmethod
    def _started(cls) -> Self:
        reading, writing = os.pipe()
        answers = os.fdopen(reading, "rb")
        try:
            # In its own process group, because this process decides what Ctrl-C means.
            process = subprocess.Popen(
                [sys.executable, "-c", _CHILD, str(writing), *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[writing],
                process_group=0,
                # NumPy's threads for matrices would spin for a tenth of a second each when it is imported.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        except BaseException:
            answers.close()
            raise
        finally:
            os.close(writing)
        assert process.stdin is not None
        return cls(process, process.stdin, answers)

    def ask(self, request: object) -> tuple[object] | None:
        """The result in a tuple; None if there is none, whatever the reason: nobody waits in vain."""
        try:
            text = pickle.dumps(request)
        except Exception:
            # A value raises whatever it likes when it is pickled; called here, it may work.
            return None
        try:
            self.requests.write(text)
            self.requests.flush()
            found: tuple[object] = pickle.load(self.answers)
        except Exception:
            # A part of a pickle raises anything. If the process went on, both processes would write the same files.
            self.process.kill()
            self.process.wait()
            return None
        return found

    def end(self) -> None:
        """Stop it, with time to remove what it was writing."""
        end(self.process, signal.SIGTERM, _GRACE_S)

    def close(self) -> None:
        """Close the pipes."""
        for pipe in (self.requests, self.answers):
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
