"""Claims judged: each in its paper's own profile, and claims about order in today's, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mptcplab.capabilities import ENGINES
from mptcplab.studies.papers.book import Book, NotTestableError, Shelf, Source, Tally, Wishes
from mptcplab.studies.papers.bootstrap import decided
from mptcplab.studies.papers.catalog import TODAY, Claim, Experiment
from mptcplab.studies.papers.cells import Cell, Kitchen
from mptcplab.studies.papers.execute import Executor
from mptcplab.studies.papers.predicate import Evaluation, Fact, evaluate, parse
from mptcplab.studies.papers.predicate.evaluate import Sweepable

HOLDS, FAILS, INCONCLUSIVE, NOT_TESTABLE = "holds", "fails", "inconclusive", "not testable"


@dataclass(frozen=True)
class Judgement:
    """A claim in one profile: its verdict, the repetitions and comparisons behind it, or why there are none."""

    profile: str
    verdict: str
    share: float | None
    repetitions: int
    facts: tuple[Fact, ...]
    reason: str


@dataclass(frozen=True)
class Verdict:
    """A claim with its judgements; the first is that of the paper's own profile, and decides."""

    claim: Claim
    judgements: tuple[Judgement, ...]

    @property
    def verdict(self) -> str:
        """holds, fails, inconclusive or not testable."""
        return self.judgements[0].verdict

    @property
    def profile_dependent(self) -> bool:
        """Whether another way to count ACKs gives another answer."""
        decided = {j.verdict for j in self.judgements if j.verdict in (HOLDS, FAILS)}
        return len(decided) > 1

    @property
    def unexpected(self) -> bool:
        """Whether a claim that is expected to hold fails."""
        return self.claim.expect == HOLDS and self.verdict == FAILS


@dataclass(frozen=True)
class Court:
    """Judges claims of one engine's results, and has more made where they do not decide."""

    kitchen: Kitchen
    executor: Executor
    # By the number of blocks: what one claim has read, another need not read again.
    _shelves: dict[int, Shelf] = field(default_factory=dict)

    def wishes(self, claim: Claim) -> set[Cell]:
        """The cells that a claim needs, of block 0."""
        return {cell for profile in self._profiles(claim) for cell in self._cells(claim, profile)}

    def _cells(self, claim: Claim, profile: str | None) -> set[Cell]:
        found = Wishes()
        self._evaluate(claim, found, profile)
        return found.cells

    def judge(self, claims: Iterable[Claim]) -> list[Verdict]:
        """The verdicts. Claims that stay open get further repetitions, in their paper's profile, all together."""
        chosen = list(claims)
        found = {claim.id: self._judged(claim, 1) for claim in chosen}
        blocks = 1
        while True:
            open_claims = [
                claim
                for claim in chosen
                if found[claim.id].verdict == INCONCLUSIVE and blocks <= self._more_blocks(claim)
            ]
            if not open_claims:
                return [found[claim.id] for claim in chosen]
            wanted = {cell for claim in open_claims for cell in self._cells(claim, None)}
            self.executor.make(
                Cell(c.experiment, c.label, c.point, c.profile, c.variant, blocks) for c in sorted(wanted)
            )
            blocks += 1
            found |= {claim.id: self._judged(claim, blocks) for claim in open_claims}

    def _more_blocks(self, claim: Claim) -> int:
        """As many as each experiment of the claim may have."""
        experiments = {cell.experiment for cell in self._cells(claim, None)}
        more = [self.kitchen.more_blocks(self.kitchen.library.experiments[name]) for name in experiments]
        return min(more, default=0)

    def _judged(self, claim: Claim, blocks: int) -> Verdict:
        """In the paper's own profile on so many blocks, in others on the first."""
        own, *others = self._profiles(claim)
        judgements = [self._judgement(claim, own, blocks), *(self._judgement(claim, other, 1) for other in others)]
        return Verdict(claim, tuple(judgements))

    def _judgement(self, claim: Claim, profile: str | None, blocks: int) -> Judgement:
        shelf = self._shelves.setdefault(blocks, Shelf(self.executor.store, self.executor.outcome, blocks))
        shown = profile or (self._experiment(claim).profile if claim.experiment else "")
        tally = Tally(shelf)
        try:
            evaluation = self._evaluate(claim, tally, profile)
        except NotTestableError as error:
            return Judgement(shown, NOT_TESTABLE, None, 0, (), str(error).partition("\n")[0])
        return Judgement(shown, _verdict(evaluation), evaluation.share, tally.repetitions, evaluation.facts, "")

    def _evaluate(self, claim: Claim, source: Source, profile: str | None) -> Evaluation:
        tree = parse(claim.predicate)
        if claim.experiment is None:
            return evaluate(tree, _nothing, Sweepable((), ()), claim.tolerance)
        experiment = self._experiment(claim)
        points = [(point.label, point.x) for point in experiment.sweep.points] if experiment.sweep else []
        book = Book(self.kitchen, source, experiment, profile)
        return evaluate(tree, book, Sweepable(experiment.algorithms, points), claim.tolerance)

    def _experiment(self, claim: Claim) -> Experiment:
        assert claim.experiment is not None
        return self.kitchen.library.experiments[claim.experiment]

    def _profiles(self, claim: Claim) -> list[str | None]:
        """None stands for the paper's own; the fluid engine has no ACKs to count."""
        if claim.experiment is None or claim.kind != "shape" or not ENGINES[self.kitchen.engine].has_packets:
            return [None]
        own = self._experiment(claim).profile
        if own == TODAY or "profile=" in claim.predicate:
            return [None]
        return [None, TODAY]


def _verdict(evaluation: Evaluation) -> str:
    return {True: HOLDS, False: FAILS, None: INCONCLUSIVE}[decided(evaluation.share)]


def _nothing(metric: str, _: object) -> object:
    raise NotTestableError(f"{metric}: a claim about printed numbers needs no metric")
