"""Claims judged: each in its paper's own ACK profile, and claims about order in today's as well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from mptcplab.capabilities import ENGINES
from mptcplab.studies.papers.catalog import TODAY, Claim, Experiment
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.predicate import Domain, Evaluation, evaluate, parse
from mptcplab.studies.papers.selectors import SelectorResolver
from mptcplab.study.cell import Cell
from mptcplab.study.execute import Executor
from mptcplab.study.statistics import verdict_of_share
from mptcplab.study.values import DependencyRecorder, NotTestableError, Source, StoreSource
from mptcplab.study.verdict import Finding, Verdict


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with a finding per ACK profile; the first, in the paper's own profile, decides."""

    claim: Claim
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict in the paper's own profile."""
        return self.findings[0].verdict

    @property
    def profile_dependent(self) -> bool:
        """Whether another way to count ACKs gives another answer."""
        return {Verdict.HOLDS, Verdict.FAILS} <= {finding.verdict for finding in self.findings}

    @property
    def unexpected(self) -> bool:
        """Whether a claim that is expected to hold fails."""
        return self.claim.expect == Verdict.HOLDS and self.verdict == Verdict.FAILS


@dataclass(frozen=True)
class ClaimJudge:
    """Judges claims on one engine's results, and has more made where they do not decide."""

    planner: Planner
    executor: Executor
    # By the number of blocks: what one claim has read, another need not read again.
    _sources: dict[int, StoreSource] = field(default_factory=dict)

    def cells(self, claim: Claim) -> set[Cell]:
        """The cells that a claim needs, without further repetitions."""
        return {cell for profile in self._profiles(claim) for cell in self._cells(claim, profile)}

    def _cells(self, claim: Claim, profile: str | None) -> set[Cell]:
        recorder = DependencyRecorder()
        self._evaluate(claim, recorder, profile)
        return recorder.cells

    def judge(self, claims: Iterable[Claim]) -> list[JudgedClaim]:
        """Judge claims. Those that stay open get further repetitions, in their paper's profile, all together."""
        chosen = {claim.id: claim for claim in claims}
        judged = {name: self._judged(claim, 1) for name, claim in chosen.items()}
        blocks = 1
        while True:
            undecided = [name for name, one in judged.items() if one.verdict == Verdict.OPEN]
            cells = {name: self._cells(chosen[name], None) for name in undecided}
            more = {name: self.planner.more_blocks({cell.experiment for cell in some}) for name, some in cells.items()}
            again = [name for name in cells if blocks <= more[name]]
            if not again:
                return list(judged.values())
            self.executor.make(sorted({replace(cell, block=blocks) for name in again for cell in cells[name]}))
            blocks += 1
            judged |= {name: self._judged(chosen[name], blocks) for name in again}

    def _judged(self, claim: Claim, blocks: int) -> JudgedClaim:
        """In the paper's own profile on so many blocks, in others on the first."""
        own, *others = self._profiles(claim)
        findings = [self._finding(claim, own, blocks), *(self._finding(claim, other, 1) for other in others)]
        return JudgedClaim(claim, tuple(findings))

    def _finding(self, claim: Claim, profile: str | None, blocks: int) -> Finding:
        source = self._sources.setdefault(blocks, StoreSource(self.executor.store, self.executor.outcome, blocks))
        name = profile or (self._experiment(claim).profile if claim.experiment else "")
        try:
            found = self._evaluate(claim, source, profile)
            repetitions = max((source.values(cell).repetitions for cell in self._cells(claim, profile)), default=0)
        except NotTestableError as error:
            return Finding(name, Verdict.NOT_TESTABLE, reason=str(error).partition("\n")[0])
        verdict = verdict_of_share(found.share)
        return Finding(name, verdict, found.facts, share=found.share, repetitions=repetitions)

    def _evaluate(self, claim: Claim, source: Source, profile: str | None) -> Evaluation:
        tree = parse(claim.predicate)
        if claim.experiment is None:
            return evaluate(tree, _no_metric, Domain((), ()), claim.tolerance)
        experiment = self._experiment(claim)
        resolver = SelectorResolver(self.planner, source, experiment, profile)
        return evaluate(tree, resolver, Domain.of(experiment), claim.tolerance)

    def _experiment(self, claim: Claim) -> Experiment:
        assert claim.experiment is not None
        return self.planner.library.experiments[claim.experiment]

    def _profiles(self, claim: Claim) -> list[str | None]:
        """None stands for the paper's own; the fluid engine has no ACKs to count."""
        if claim.experiment is None or claim.kind != "shape" or not ENGINES[self.planner.engine].has_packets:
            return [None]
        own = self._experiment(claim).profile
        if own == TODAY or "profile=" in claim.predicate:
            return [None]
        return [None, TODAY]


def _no_metric(metric: str, _: object) -> object:
    raise NotTestableError(f"{metric}: a claim about printed numbers needs no metric")
