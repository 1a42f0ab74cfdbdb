"""One paper, or all: run what is missing, judge the claims, and gather what the report needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from mptcplab.capabilities import engine_of
from mptcplab.cluster.connect import Cluster
from mptcplab.studies.papers.catalog import Claim, Experiment, Library, Paper
from mptcplab.studies.papers.claims import ClaimJudge, JudgedClaim
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.selectors import check_figures
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
    cluster: Cluster | None = None,
    announce: Announce = silent,
    finished: Callable[[Reproduction], None] = lambda _: None,
) -> list[Reproduction]:
    """Run the experiments of papers and judge their claims; what `out` has already is not run again.

    With `claim` only what this claim needs is run, and no figure has its data. With `sensitivity` every claim is judged
    again under one other choice at a time. `finished` is called with each paper that is done, while others are run.
    """
    # A shorter run is as much work for the fluid.
    planner = Planner(library, engine, quick and engine_of(engine).has_packets)
    executor = Executor(planner.spec, engine, Store(out / "store"), jobs, None, cluster=cluster)
    judge = ClaimJudge(planner, executor)
    plans = [_plan(judge, paper, experiment, claim) for paper in papers]
    executor.store.prepare()
    with announce(_title(papers)) as executor.progress, executor:
        for plan in sorted(plans, key=lambda one: -one.work(planner)):
            judge.ask(plan.claims)
            executor.add(sorted(plan.cells))
        made: dict[str, Reproduction] = {}
        # All papers together: while the last runs of one end, those of others use the cores.
        for _ in executor.finished():
            judge.look()
            for plan in plans:
                if plan.paper.id not in made and executor.has(plan.cells) and judge.is_settled(plan.claims, plan.cells):
                    made[plan.paper.id] = found = plan.reproduction(judge)
                    if not sensitivity:
                        finished(found)
    return [
        _with_sensitivity(made[paper.id], jobs, cluster, announce, finished) if sensitivity else made[paper.id]
        for paper in papers
    ]


def _with_sensitivity(
    one: Reproduction,
    jobs: int,
    cluster: Cluster | None,
    announce: Announce,
    finished: Callable[[Reproduction], None],
) -> Reproduction:
    study = judge_again(one.planner, one.paper, one.claims, one.store, jobs, announce, cluster)
    found = replace(one, sensitivity=study)
    finished(found)
    return found


def _title(papers: list[Paper]) -> str:
    if len(papers) == 1:
        return f"{papers[0].id}: {papers[0].title}"
    return f"{len(papers)} papers: {', '.join(paper.id for paper in papers)}"


@dataclass(frozen=True)
class _Plan:
    """What is drawn and judged of a paper, and the cells of the first block of repetitions that this needs."""

    paper: Paper
    experiments: tuple[Experiment, ...]
    claims: tuple[Claim, ...]
    cells: frozenset[Cell]

    def work(self, planner: Planner) -> float:
        """About how long the cells take."""
        return sum(planner.spec(cell).work(planner.engine) for cell in self.cells)

    def reproduction(self, judge: ClaimJudge) -> Reproduction:
        """What was found; everything is settled."""
        claims = tuple(judge.judged(one) for one in self.claims)
        executor = judge.executor
        outcome = executor.outcome.of(self.cells)
        return Reproduction(
            self.paper, self.experiments, claims, judge.planner, executor.store, outcome, read=judge.read
        )


def _plan(judge: ClaimJudge, paper: Paper, experiment: str | None, claim: str | None) -> _Plan:
    """One claim, one experiment, or all of a paper."""
    experiments: tuple[Experiment, ...] = tuple(paper.experiments.values())
    claims: tuple[Claim, ...] = paper.claims
    if claim is not None:
        experiments, claims = (), (paper.claim(claim),)
    elif experiment is not None:
        chosen = paper.experiment(experiment)
        experiments, claims = (chosen,), tuple(one for one in paper.claims if one.experiment == chosen.id)
    for one in experiments:
        check_figures(judge.planner, one)
    drawn = {cell for one in experiments for cell in judge.planner.drawn_cells(one)}
    return _Plan(paper, experiments, claims, frozenset(drawn.union(*(judge.cells(one) for one in claims))))
