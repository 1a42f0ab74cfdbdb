"""Terminal output: tables on stdout; progress, notes and errors on stderr."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unicodedata import category

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID
    from rich.table import Table as RichTable

    from mptcplab.text import Table

# Called with finished runs, all runs, seconds done and all seconds.
Update = Callable[[int, int, float, float], None]
# Unit of the rate of progress: how much of the scenario's time passes in a second.
REAL_TIME = "\N{MULTIPLICATION SIGN} real time"

# A progress bar appears after this time.
_BAR_AFTER_S = 1.0
# Time between two lines of progress where there is no terminal.
_LINE_EVERY_S = 10.0
# Time over which the rate of progress is measured.
_RATE_OVER_S = 15.0


def printable(text: str) -> str:
    """Text of others, such as a scenario's title, with control characters that a terminal would obey written out."""
    return "".join(_escaped(one) if category(one).startswith("C") and one not in "\n\t" else one for one in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that prints text as it is: no markup, and no emoji for `:100:`."""
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=stderr)


def error(message: str) -> None:
    """`error: what failed`, and the hint if there is one."""
    console = _console(stderr=True)
    console.print("error:", style="bold red", end=" ")
    console.print(printable(message.rstrip("\n")))


def warning(message: str) -> None:
    """An important message of a command that succeeded."""
    console = _console(stderr=True)
    console.print("warning:", style="bold yellow", end=" ")
    console.print(printable(message))


def note(message: str) -> None:
    """A message that is not data."""
    _console(stderr=True).print(printable(message))


def print_table(table: Table) -> None:
    """A table on stdout: in a terminal the columns that fit, in a file or pipe all of them; prose is broken."""
    console = _console()
    shown = len(table.head)
    if not console.is_terminal:
        width = max(_PAGE, _least_width(console, _rich(table, shown)))
        console = _console(width=width)
    while shown > 2 and _least_width(console, _rich(table, shown)) > console.width:
        shown -= 1
    console.print(_rich(table, shown))
    remarks = list(table.notes)
    if shown < len(table.head):
        hidden = ", ".join(" ".join(name.split()) for name, _ in table.head[shown:])
        remarks.append(f"the terminal is too narrow for: {hidden}")
    for remark in remarks:
        note(f"note: {remark}")


def _least_width(console: Console, table: RichTable) -> int:
    """The smallest width at which no cell is cut; prose can be broken between words."""
    from rich.measure import Measurement

    needed = Measurement.get(console, console.options.update(width=_WIDE), table)
    return needed.maximum if all(column.no_wrap for column in table.columns) else needed.minimum


def _rich(table: Table, columns: int) -> RichTable:
    """The first columns of a table; only prose is broken into lines."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    rich = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, unit in table.head[:columns]:
        head = printable(f"{name}\n{unit}" if unit else name)
        rich.add_column(head, justify="left" if name in _LEFT else "right", no_wrap=name not in _PROSE)
    for row in table.rows:
        rich.add_row(*map(printable, row[:columns]))
    return rich


# Width at which prose is broken outside a terminal; numbers never are, so that a table can be wider.
_PAGE = 100
# More than any table needs.
_WIDE = 1000
# Columns with words; all others have numbers.
_PROSE = frozenset({"Title", "Parameters"})
_LEFT = _PROSE | {
    "Algorithm",
    "Build",
    "Directory",
    "Engines",
    "Metric",
    "Scenario",
    "Name",
    "Flow",
    "Kind",
    "Scheduler",
    "Status",
    "Subflow",
    "Verdict",
    "Paper",
}


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a status line while something is done (in terminals only)."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def progress(of: str = "runs", unit: str = REAL_TIME) -> Iterator[Callable[[int, int, float, float], None]]:
    """A progress callback for engines: a bar in a terminal, otherwise a line every few seconds.

    `of` is the plural noun for what is counted, `unit` the unit of the rate of work.
    """
    global _reporting
    console = Console(stderr=True, highlight=False)
    live = console.is_terminal or console.is_jupyter
    reporter = _Terminal(console, of, unit) if live else _Lines(of, unit)
    before, _reporting = _reporting, True
    try:
        yield reporter.update
    finally:
        _reporting = before
        reporter.close()


# Whether something reports its progress, so that what it calls does not.
_reporting = False


@contextmanager
def shown(asked: Update | bool | None) -> Iterator[Update | None]:
    """The progress of a call from Python: that of the caller, a bar in a terminal or notebook, or none (False)."""
    if asked is None:
        console = Console(stderr=True)
        asked = (console.is_terminal or console.is_jupyter) and not _reporting
    if not isinstance(asked, bool):
        yield asked
    elif asked:
        with progress() as update:
            yield update
    else:
        yield None


@contextmanager
def step(what: str, of: str = "runs", unit: str = REAL_TIME) -> Iterator[Callable[[int, int, float, float], None]]:
    """Name one of several steps, and show its progress."""
    note(what)
    with progress(of, unit) as update:
        yield update


class _Lines:
    """Progress for logs."""

    def __init__(self, of: str, unit: str) -> None:
        self.of, self.unit = of, unit
        self.last = time.monotonic()
        self.rate_of_work = _RateOfWork(self.last)

    def update(self, done: int, runs: int, simulated_s: float, total_s: float) -> None:
        now = time.monotonic()
        if now - self.last < _LINE_EVERY_S:
            return
        self.last = now
        rate = self.rate_of_work.at(now, simulated_s)
        left = f"{(total_s - simulated_s) / rate:.0f} s left" if rate > 0 else "time left unknown"
        print(f"{done} of {runs} {self.of}, {rate:,.0f} {self.unit}, {left}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class _RateOfWork:
    """The present rate of work, which changes when a kernel follows a simulator."""

    def __init__(self, now: float) -> None:
        self.seen = deque([(now, 0.0)])

    def at(self, now: float, simulated_s: float) -> float:
        """The rate over the last `_RATE_OVER_S`, or since the work began; it starts again when the work does."""
        if simulated_s < self.seen[-1][1]:
            self.seen = deque([(now, 0.0)])
        self.seen.append((now, simulated_s))
        while len(self.seen) > 2 and now - self.seen[1][0] >= _RATE_OVER_S:
            self.seen.popleft()
        then, before = self.seen[0]
        return (simulated_s - before) / (now - then) if now > then else 0.0


class _Terminal:
    """A bar that appears after `_BAR_AFTER_S`."""

    def __init__(self, console: Console, of: str, unit: str) -> None:
        self.console, self.of, self.unit = console, of, unit
        self.started = time.monotonic()
        self.rate_of_work = _RateOfWork(self.started)
        self.bar: Bar | None = None
        self.task: TaskID | None = None

    def update(self, done: int, runs: int, simulated_s: float, total_s: float) -> None:
        now = time.monotonic()
        rate = self.rate_of_work.at(now, simulated_s)
        if self.bar is None or self.task is None:
            if now - self.started < _BAR_AFTER_S:
                return
            self.bar = self._open()
            self.task = self.bar.add_task("running", total=total_s, rate="", runs="")
        per_second, of_all = f"{rate:,.0f} {self.unit}", f"{done}/{runs} {self.of}"
        self.bar.update(self.task, completed=simulated_s, total=total_s, rate=per_second, runs=of_all)

    def _open(self) -> Bar:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[runs]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=self.console,
            transient=True,
        )
        bar.start()
        return bar

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()
