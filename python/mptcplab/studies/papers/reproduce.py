"""One paper, or all: run what is missing, judge the claims, and gather what the report needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from mptcplab.capabilities import engine_of
from mptcplab.studies.papers.catalog import Claim, Experiment, Library, Paper
from mptcplab.studies.papers.claims import ClaimJudge, JudgedClaim
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.sensitivity import Study, judge_again
from mptcplab.study.cell import Cell
from mptcplab.study.execute import Executor, Outcome
from mptcplab.study.progress import Announce, silent
from mptcplab.study.store import Store
from mptcplab.study.values import CellValues, StoreSource


@dataclass(frozen=True)
class Reproduction:
    """The reproduction of one paper: its judged claims, and where the results of its experiments are."""

    paper: Paper
    experiments: tuple[Experiment, ...]
    claims: tuple[JudgedClaim, ...]
    planner: Planner
    store: Store
    outcome: Outcome
    # The verdicts under other choices; without claims where they were not asked for.
    sensitivity: Study = field(default_factory=Study)
    # The results by digest that were read for the verdicts.
    read: dict[str, CellValues] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def results(self) -> StoreSource:
        """The results of the first block of repetitions, read once for all figures and tables."""
        return StoreSource(self.store, self.outcome, read=self.read)

    @property
    def is_reference(self) -> bool:
        """Whether this is what expected verdicts are about: a full reproduction in the simulator."""
        return self.planner.engine == "sim" and not self.planner.quick

    @property
    def unexpected(self) -> list[JudgedClaim]:
        """Claims with another verdict than expected; of quick runs and other engines, those with the opposite one."""
        return [judged for judged in self.claims if (judged.changed if self.is_reference else judged.reversed)]

    @property
    def failed(self) -> bool:
        """Whether something is not as it should be: on other engines, whose verdicts may differ, nothing is."""
        return self.planner.engine == "sim" and bool(self.unexpected or (self.is_reference and self.unfit))

    @property
    def unfit(self) -> list[JudgedClaim]:
        """Claims whose reason is in words that the numbers do not bear out."""
        return [judged for judged in self.claims if not judged.why_fits and not judged.changed]

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
    claim: str | None = None,
    quick: bool = False,
    sensitivity: bool = False,
    jobs: int = 0,
    announce: Announce = silent,
) -> list[Reproduction]:
    """Run the experiments of papers and judge their claims; what `out` has already is not run again.

    With `claim` only what this claim needs is run, and no figure has its data. With `sensitivity` every claim is judged
    again under one other choice at a time.
    """
    # A shorter run is as much work for the fluid.
    planner = Planner(library, engine, quick and engine_of(engine).has_packets)
    plans = [_plan(paper, experiment, claim) for paper in papers]
    store = Store(out / "store")
    store.prepare()
    # All papers together: while the last runs of one end, those of others use the cores.
    with announce(_title(papers)) as progress:
        executor = Executor(planner.spec, engine, store, jobs, progress)
        judge = ClaimJudge(planner, executor)
        wanted = [_cells(planner, judge, chosen, claims) for _, chosen, claims in plans]
        executor.make(sorted(set().union(*wanted)))
        judged = {one.claim.id: one for one in judge.judge(claim for *_, claims in plans for claim in claims)}
    found = []
    for (paper, chosen, claims), cells in zip(plans, wanted, strict=True):
        mine = tuple(judged[one.id] for one in claims)
        study = judge_again(planner, paper, mine, store, jobs, announce) if sensitivity else Study()
        found.append(Reproduction(paper, chosen, mine, planner, store, executor.outcome.of(cells), study, judge.read))
    return found


def _title(papers: list[Paper]) -> str:
    if len(papers) == 1:
        return f"{papers[0].id}: {papers[0].title}"
    return f"{len(papers)} papers: {', '.join(paper.id for paper in papers)}"


def _cells(
    planner: Planner, judge: ClaimJudge, experiments: tuple[Experiment, ...], claims: tuple[Claim, ...]
) -> set[Cell]:
    """The cells that some claims and the figures of some experiments need, without further repetitions."""
    drawn = {cell for one in experiments for cell in planner.drawn_cells(one)}
    return drawn.union(*(judge.cells(one) for one in claims))


_Plan = tuple[Paper, tuple[Experiment, ...], tuple[Claim, ...]]


def _plan(paper: Paper, experiment: str | None, claim: str | None) -> _Plan:
    """What is drawn and judged of a paper: one claim, one experiment, or all."""
    if claim is not None:
        return paper, (), (paper.claim(claim),)
    if experiment is not None:
        chosen = paper.experiment(experiment)
        return paper, (chosen,), tuple(one for one in paper.claims if one.experiment == chosen.id)
    return paper, tuple(paper.experiments.values()), paper.claims
