"""One paper, or all: run what is missing, judge the claims, and hold what the report needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from mptcplab.capabilities import ENGINES
from mptcplab.studies.papers.catalog import Claim, Experiment, Library, Paper
from mptcplab.studies.papers.cells import Cell, Kitchen
from mptcplab.studies.papers.execute import Executor, Outcome, Progress
from mptcplab.studies.papers.store import Store
from mptcplab.studies.papers.verdict import Court, Verdict

# Called with what is being done; gives what reports its progress.
Announce = Callable[[str], AbstractContextManager[Progress | None]]


def silent(_: str) -> AbstractContextManager[None]:
    """Says nothing."""
    return nullcontext()


@dataclass(frozen=True)
class Reproduction:
    """What became of one paper: verdicts of its claims, and where the results of its experiments are."""

    paper: Paper
    experiments: tuple[Experiment, ...]
    verdicts: tuple[Verdict, ...]
    kitchen: Kitchen
    store: Store
    outcome: Outcome

    @property
    def unexpected(self) -> list[Verdict]:
        """Claims that are expected to hold, and fail."""
        return [verdict for verdict in self.verdicts if verdict.unexpected]


def reproduce(
    library: Library,
    papers: list[Paper],
    engine: str,
    out: Path,
    *,
    experiment: str | None = None,
    quick: bool = False,
    jobs: int = 0,
    announce: Announce = silent,
) -> list[Reproduction]:
    """Run the experiments of papers and judge their claims; what `out` has already is not run again."""
    # A shorter run is as much work for the fluid.
    kitchen = Kitchen(library, engine, quick and ENGINES[engine].has_packets)
    plans = [
        (paper, tuple(paper.experiments.values()) if experiment is None else (paper.experiment(experiment),))
        for paper in papers
    ]
    store = Store(out / "store")
    store.prepare()
    found = []
    for paper, chosen in plans:
        with announce(f"{paper.id}: {paper.title}") as progress:
            executor = Executor(kitchen, store, jobs, progress)
            found.append(_reproduced(paper, chosen, _claims(paper, chosen, experiment), executor))
    return found


def _claims(paper: Paper, chosen: tuple[Experiment, ...], experiment: str | None) -> list[Claim]:
    """The claims about some experiments; those that need no run belong to the whole paper."""
    names = {one.id for one in chosen}
    return [c for c in paper.claims if c.experiment in names or (c.experiment is None and experiment is None)]


def _reproduced(paper: Paper, chosen: tuple[Experiment, ...], claims: list[Claim], executor: Executor) -> Reproduction:
    court = Court(executor.kitchen, executor)
    wanted = {cell for claim in claims for cell in court.wishes(claim)}
    wanted |= {cell for one in chosen for cell in _drawn(executor.kitchen, one)}
    executor.make(sorted(wanted))
    verdicts = court.judge(claims)
    return Reproduction(paper, chosen, tuple(verdicts), executor.kitchen, executor.store, executor.outcome)


def _drawn(kitchen: Kitchen, experiment: Experiment) -> list[Cell]:
    """The cells that the figures of an experiment show: every algorithm at every point, in the paper's profile."""
    own = kitchen.library.experiments[experiment.view_of] if experiment.view_of else experiment
    points = [point.label for point in own.sweep.points] if own.sweep else [""]
    return [Cell(own.id, label, point, own.profile, "") for label in own.algorithms for point in points]
