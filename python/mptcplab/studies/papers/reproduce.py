"""One paper, or all: run what is missing, judge the claims, and gather what the report needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mptcplab.capabilities import ENGINES
from mptcplab.studies.papers.catalog import Claim, Experiment, Library, Paper
from mptcplab.studies.papers.claims import ClaimJudge, JudgedClaim
from mptcplab.studies.papers.planner import Planner
from mptcplab.study.execute import Executor, Outcome
from mptcplab.study.progress import Announce, silent
from mptcplab.study.store import Store


@dataclass(frozen=True)
class Reproduction:
    """The reproduction of one paper: its judged claims, and where the results of its experiments are."""

    paper: Paper
    experiments: tuple[Experiment, ...]
    claims: tuple[JudgedClaim, ...]
    planner: Planner
    store: Store
    outcome: Outcome

    @property
    def unexpected(self) -> list[JudgedClaim]:
        """Claims that are expected to hold, and fail."""
        return [judged for judged in self.claims if judged.unexpected]

    def claims_about(self, experiment: Experiment) -> list[JudgedClaim]:
        """The claims about one experiment."""
        return [judged for judged in self.claims if judged.claim.experiment == experiment.id]


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
    planner = Planner(library, engine, quick and ENGINES[engine].has_packets)
    plans = [
        (paper, tuple(paper.experiments.values()) if experiment is None else (paper.experiment(experiment),))
        for paper in papers
    ]
    store = Store(out / "store")
    store.prepare()
    found = []
    for paper, chosen in plans:
        with announce(f"{paper.id}: {paper.title}") as progress:
            executor = Executor(planner.spec, engine, store, jobs, progress)
            judge = ClaimJudge(planner, executor)
            claims = _claims(paper, chosen, experiment)
            wanted = {cell for claim in claims for cell in judge.cells(claim)}
            wanted |= {cell for one in chosen for cell in planner.drawn_cells(one)}
            executor.make(sorted(wanted))
            found.append(Reproduction(paper, chosen, tuple(judge.judge(claims)), planner, store, executor.outcome))
    return found


def _claims(paper: Paper, chosen: tuple[Experiment, ...], experiment: str | None) -> list[Claim]:
    """The claims about some experiments; those that need no run belong to the whole paper."""
    names = {one.id for one in chosen}
    return [c for c in paper.claims if c.experiment in names or (c.experiment is None and experiment is None)]
