"""A study: one algorithm in every cell of a grid, judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mptcplab import sweep
from mptcplab.output import write_text
from mptcplab.results import Results
from mptcplab.scenario import Overrides, check
from mptcplab.studies.goals.grid import Cell, Grid
from mptcplab.studies.goals.judge import VERDICTS, Judged, Judgement, judge
from mptcplab.studies.goals.measure import Measured, measure
from mptcplab.studies.goals.scenarios import Setting, algorithms, commands, network, scenario


@dataclass(frozen=True)
class Goal:
    """A goal: its number in RFC 6356, a name, and what it asks for."""

    number: int
    name: str
    rule: str


GOALS = (
    Goal(
        1,
        "improve throughput",
        "The connection gets at least 95 % of what one TCP in its place would get on the best of its paths. "
        "Margin: its goodput over that of this TCP, minus 0.95.",
    ),
    Goal(
        2,
        "do no harm",
        "At each bottleneck the competitor gets at least 95 % of what it would get beside one TCP in the connection's "
        "place. Where both paths share the bottleneck, that TCP takes the path on which it gets more. Margin: the "
        "smallest quotient of the competitor's goodputs, minus 0.95.",
    ),
    Goal(
        3,
        "balance congestion",
        "Where one bottleneck loses more than 1.5 times as many packets in a hundred as the other, the connection puts "
        "no more load on it than its uncoupled twin does, and goals 1 and 2 are met. Margin: 1 minus the quotient of "
        "the two loads, or the margin of goal 1 or 2 where that is smaller.",
    ),
)


@dataclass(frozen=True)
class CellResult:
    """A cell with its measurements and verdicts."""

    cell: Cell
    measured: Measured
    judged: Judged


@dataclass(frozen=True)
class Study:
    """What one algorithm did on the grid, and where it is written down."""

    directory: Path
    setting: Setting
    grid: Grid
    results: tuple[CellResult, ...]

    @property
    def page(self) -> Path:
        """The page for people."""
        return self.directory / "goals.html"

    def counts(self, goal: Goal) -> dict[str, int]:
        """How many cells had each verdict."""
        verdicts = [judgement(result, goal).verdict for result in self.results]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS}

    def worst(self, goal: Goal) -> CellResult | None:
        """The cell with the smallest margin, the first of equals; None where the goal asks for nothing anywhere."""
        asked = [result for result in self.results if judgement(result, goal).margin is not None]
        return min(asked, key=lambda result: judgement(result, goal).margin, default=None)

    def worst_file(self, goal: Goal) -> Path:
        """The scenario file of the worst cell."""
        return self.directory / f"worst-goal-{goal.number}.toml"

    def worst_commands(self, goal: Goal, file: str | None = None) -> tuple[str, ...]:
        """The commands that simulate the worst cell again; none where there is no such cell.

        They name the scenario by its path, or as `file`.
        """
        worst = self.worst(goal)
        return () if worst is None else commands(worst.cell, file or str(self.worst_file(goal)))


def judgement(result: CellResult, goal: Goal) -> Judgement:
    """The verdict on a goal in a cell."""
    return result.judged.goals[goal.number - 1]


def simulate(
    directory: Path, grid: Grid, setting: Setting, *, jobs: int = 0, progress: sweep.Progress | None = None
) -> Study:
    """Measure and judge every cell; nothing is written to `directory`, which the study only remembers."""
    done = _Done(grid, setting, progress)
    results = []
    for cell in grid.cells:

        def run(file: Path, changes: Overrides, out: Path) -> Results:
            found = sweep.run(
                file, cc=changes.cc, settings=changes.settings, jobs=jobs, out=out, progress=done.progress()
            )
            done.add(found.runs.height)
            return found

        measured = measure(cell, grid, setting, run)
        results.append(CellResult(cell, measured, judge(cell, measured)))
    return Study(directory, setting, grid, tuple(results))


def resolve(grid: Grid, setting: Setting) -> Setting:
    """The setting with the format's defaults filled in.

    The engine refuses what it does not know here, before anything runs and in terms of the command line.
    """
    with TemporaryDirectory(prefix="mptcplab-goals-") as scratch:
        file = Path(scratch) / "cell.toml"
        write_text(file, scenario(grid.cells[0], grid, Setting(grid.cells[0].competitor)))
        profile = () if setting.profile is None else (setting.profile,)
        found = check(file, Overrides(cc=(setting.cc,), seed=setting.seed, profile=profile))
    first = found["resolved"]["combinations"][0]["scenario"]
    return Setting(setting.cc, first["seed"], first["profile"])


class _Done:
    """Progress of one sweep as progress of all."""

    def __init__(self, grid: Grid, setting: Setting, report: sweep.Progress | None) -> None:
        sweeps = (len(algorithms(cell, setting.cc)) + len(network(cell).paths) for cell in grid.cells)
        self.runs = grid.repetitions * sum(sweeps)
        self.seconds = float(grid.duration_s)
        self.report = report
        self.finished = 0

    def add(self, runs: int) -> None:
        self.finished += runs

    def progress(self) -> Callable[[int, int, float, float], None] | None:
        if self.report is None:
            return None
        before, report = self.finished, self.report

        def of_all(done: int, _runs: int, seconds: float, _all: float) -> None:
            report(before + done, self.runs, before * self.seconds + seconds, self.runs * self.seconds)

        return of_all
