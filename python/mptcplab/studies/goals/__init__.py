"""The design goals of RFC 6356: does one algorithm meet them on a grid of networks? (`mptcplab.api.goals`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mptcplab import kept, output
from mptcplab.algorithm import in_file_name
from mptcplab.capabilities import directory_of
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.scenario import Overrides, as_names, check
from mptcplab.scratch import Scratch
from mptcplab.studies.goals.grid import FULL, QUICK, Grid, Network
from mptcplab.studies.goals.judge import GoalFinding, Judged, judge
from mptcplab.studies.goals.measure import Measured, measure
from mptcplab.studies.goals.scenarios import Setting, commands, scenario
from mptcplab.study.store import Store
from mptcplab.study.verdict import counts
from mptcplab.terminal import note
from mptcplab.text import counted

if TYPE_CHECKING:
    from mptcplab.cluster.connect import Cluster
    from mptcplab.sweep import PathArg, Progress

__all__ = ["FULL", "GOALS", "QUICK", "Goal", "Grid", "NetworkResult", "Study", "write_study"]


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
class NetworkResult:
    """A network with its measurements and findings."""

    network: Network
    measured: Measured
    judged: Judged

    def finding(self, goal: Goal) -> GoalFinding:
        """The finding on a goal."""
        return self.judged.goals[goal.number - 1]


@dataclass(frozen=True)
class Study:
    """The results of one algorithm on a grid, and the directory that they are written to."""

    directory: Path
    setting: Setting
    grid: Grid
    results: tuple[NetworkResult, ...]

    @property
    def page(self) -> Path:
        """The HTML page."""
        return self.directory / "goals.html"

    def counts(self, goal: Goal) -> dict[str, int]:
        """The number of networks with each verdict."""
        return counts(result.finding(goal).verdict for result in self.results)

    def worst(self, goal: Goal) -> NetworkResult | None:
        """The network with the smallest margin, the first of equals; None where the goal is testable nowhere."""
        margins = ((result, result.finding(goal).margin) for result in self.results)
        asked = [(result, margin) for result, margin in margins if margin is not None]
        return min(asked, key=lambda one: one[1])[0] if asked else None

    def worst_file(self, goal: Goal) -> Path:
        """The scenario file of the worst network."""
        return self.directory / f"worst-goal-{goal.number}.toml"

    def worst_commands(self, goal: Goal, file: str | None = None) -> tuple[str, ...]:
        """The commands that run the worst network again, if there is one.

        They name the scenario by its path, or as `file`; then they are for its directory.
        """
        worst = self.worst(goal)
        if worst is None:
            return ()
        name = file or str(self.worst_file(goal))
        return commands(worst.network, name, self.setting, absolute=file is not None)


def write_study(
    cc: str,
    out: PathArg | None,
    *,
    engine: str,
    quick: bool,
    grid: Grid | None,
    seed: int | None,
    profile: str | None,
    jobs: int,
    cluster: Cluster | None = None,
    force: bool,
    progress: Progress | None,
) -> Study:
    """Measure, judge and write everything down; see `mptcplab.api.goals`."""
    from mptcplab.studies.goals import page

    chosen = grid or (QUICK if quick else FULL)
    setting = _resolved(chosen, Setting(cc, seed, profile, engine))
    command = None if grid is not None else page.command(setting, quick=quick)
    studies: list[Study] = []

    def write(directory: Path) -> None:
        with _store(result) as store:
            measured = measure(chosen, setting, store, jobs, progress, cluster)
        results = tuple(NetworkResult(network, found, judge(network, found)) for network, found in measured.items())
        studies.append(Study(directory, setting, chosen, results))
        page.write(studies[0], command)

    result = output.fresh_directory(Path(f"{_name(setting)}.toml")) if out is None else output.place(out)
    # Around the runs as well, so that a path that cannot be written is refused before minutes of them.
    output.write_into(result, write, force=force, is_former=page.is_former)
    kept.discard_store(result)
    return replace(studies[0], directory=result)


@contextmanager
def _store(result: Path) -> Iterator[Store]:
    """Where measurements are kept until the page is written; says so if it is not."""
    with kept.stored(result) as directory:
        store = Store(directory)
        try:
            yield store
        except BaseException:
            if found := store.digests():
                place = directory.parent
                are, them = ("is", "it") if len(found) == 1 else ("are", "them")
                kept_there = f"{counted(len(found), 'measurement')} {are} kept in {place}"
                note(f"{kept_there}; the same command goes on with {them}")
            raise


def _resolved(grid: Grid, setting: Setting) -> Setting:
    """The setting with the format's defaults filled in.

    The engine refuses what it does not know here, before anything runs and in terms of the command line.
    """
    first = grid.networks[0]
    if setting.profile is not None and len(as_names(setting.profile, "profile", "rfc")) > 1:
        raise MptcplabError(with_hint(f"profile: more than one: {setting.profile!r}", "make a study with each of them"))
    with Scratch("goals") as scratch:
        file = Path(scratch) / "network.toml"
        output.write_text(file, scenario(first, grid, Setting(first.competitor)))
        profile = () if setting.profile is None else (setting.profile,)
        found = check(file, Overrides(cc=(setting.cc,), seed=setting.seed, profile=profile))
    resolved = found["resolved"]["combinations"][0]["scenario"]
    return replace(setting, seed=resolved["seed"], profile=resolved["profile"])


def _name(setting: Setting) -> str:
    """The name of a study's directory, if the caller gives none.

    >>> _name(Setting("lia")), _name(Setting("ewtcp(weight=0.5)", engine="vm:bookworm"))
    ('goals-lia', 'goals-ewtcp-weight-0-5-vm-bookworm')
    """
    place = f"-{directory_of(setting.engine)}" if setting.engine_options else ""
    return f"goals-{in_file_name(setting.cc)}{place}"
