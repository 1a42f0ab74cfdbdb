"""Claims judged: each in its paper's own ACK profile, and claims about order in today's as well.

An ACK profile stands for all the rules of a kernel: the dialect of the algorithms goes with it
(`catalog.Experiment.dialect_in`).
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from mptcplab.capabilities import engine_of
from mptcplab.errors import within
from mptcplab.studies.papers.catalog import TODAY, Claim, Experiment
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.predicate import Domain, Lookup, evaluate, look_up, parse
from mptcplab.studies.papers.selectors import SelectorResolver
from mptcplab.study.cell import Cell
from mptcplab.study.decision import Rule
from mptcplab.study.execute import Executor
from mptcplab.study.values import CellValues, DependencyRecorder, NotTestableError, Source, StoreSource
from mptcplab.study.verdict import Finding, Verdict


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with a finding per ACK profile; the first, in the paper's own profile, decides.

    `why` explains the verdict that is expected, with the numbers of this run; `why_fits` says whether they bear out its
    words. `cells` are those behind the verdict in the paper's own profile.
    """

    claim: Claim
    findings: tuple[Finding, ...]
    why: str = ""
    why_fits: bool = True
    cells: frozenset[Cell] = frozenset()

    @property
    def verdict(self) -> Verdict:
        """The verdict in the paper's own profile."""
        return self.findings[0].verdict

    @property
    def profile_dependent(self) -> bool:
        """Whether another way to count ACKs gives another answer."""
        return {Verdict.HOLDS, Verdict.FAILS} <= {finding.verdict for finding in self.findings}

    @property
    def changed(self) -> bool:
        """Whether the verdict is another one than the last full reproduction in the simulator found."""
        return self.verdict != self.claim.expect

    @property
    def reversed(self) -> bool:
        """Whether a claim fails that is expected to hold, or the other way round."""
        return {self.verdict, self.claim.expect} == {Verdict.HOLDS, Verdict.FAILS}

    @property
    def provisional(self) -> bool:
        """Whether it was judged on a quick reproduction's runs."""
        return self.findings[0].provisional


@dataclass(frozen=True)
class _Look:
    """A claim that is judged on so many blocks of repetitions; `own` is what was found there, if that is final."""

    claim: Claim
    blocks: int
    own: Finding | None = None


@dataclass(frozen=True)
class _ReasonSource:
    """The values from which a reason's numbers are computed, as many of each cell as the verdict has."""

    judge: ClaimJudge
    claim: Claim
    blocks: int

    def values(self, cell: Cell) -> CellValues:
        return self.judge.source_of(cell, self.claim, self.blocks).values(cell)


@dataclass(frozen=True)
class ClaimJudge:
    """Judges claims on one engine's results, and has more made where they do not decide."""

    planner: Planner
    executor: Executor
    # What one claim has read, another need not read again: blocks of repetitions by digest.
    read: dict[str, CellValues] = field(default_factory=dict)
    # By the number of blocks.
    _sources: dict[int, StoreSource] = field(default_factory=dict)
    # By claim and profile, and the first look's by claim.
    _cells_of: dict[tuple[str, str | None], frozenset[Cell]] = field(default_factory=dict)
    _needed_of: dict[str, set[Cell]] = field(default_factory=dict)
    # By claim.
    _looks: dict[str, _Look] = field(default_factory=dict)

    def cells(self, claim: Claim) -> set[Cell]:
        """The cells that a claim and its reason need, without further repetitions."""
        if claim.id not in self._needed_of:
            self._needed_of[claim.id] = self.judged_cells(claim) | self._reason_cells(claim)
        return self._needed_of[claim.id]

    def judged_cells(self, claim: Claim) -> set[Cell]:
        """The cells that the verdict needs."""
        return {cell for profile in self._profiles(claim) for cell in self._cells(claim, profile)}

    def own_cells(self, claim: Claim) -> frozenset[Cell]:
        """The cells that the verdict in the paper's own profile needs."""
        return self._cells(claim, None)

    def own_finding(self, claim: Claim) -> Finding:
        """The finding in the paper's own profile, without further repetitions."""
        return self._finding(claim, None, 1)

    def _cells(self, claim: Claim, profile: str | None) -> frozenset[Cell]:
        key = claim.id, profile
        if key not in self._cells_of:
            recorder = DependencyRecorder()
            with within(self._place(claim), NotTestableError):
                look_up(parse(claim.predicate), *self._asked(claim, recorder, profile))
            self._cells_of[key] = frozenset(recorder.cells)
        return self._cells_of[key]

    def ask(self, claims: Iterable[Claim]) -> None:
        """Claims that are to be judged. The executor makes the cells of their first block of repetitions."""
        self._looks.update((claim.id, _Look(claim, 1)) for claim in claims)

    def look(self) -> None:
        """Judge what can be judged now. Claims that stay open get further repetitions, in their paper's profile."""
        more: set[Cell] = set()
        for name, one in self._looks.items():
            if one.own is None and self.executor.has(self._needed(one)):
                own = self._finding(one.claim, self._profiles(one.claim)[0], one.blocks)
                if own.verdict == Verdict.OPEN and one.blocks < self._rule(one.claim, None).looks:
                    more |= self._further(one)
                    self._looks[name] = replace(one, blocks=one.blocks + 1)
                else:
                    self._looks[name] = replace(one, own=own)
        self.executor.add(sorted(more), first=True)

    def is_settled(self, claims: Iterable[Claim], cells: Container[Cell]) -> bool:
        """Whether claims are decided, and no other claim that is not may ask for more repetitions of these cells."""
        if any(self._looks[claim.id].own is None for claim in claims):
            return False
        others = (one.claim for one in self._looks.values() if one.own is None)
        return not any(cell in cells for claim in others for cell in self._cells(claim, None))

    def judged(self, claim: Claim) -> JudgedClaim:
        """A settled claim: in its paper's own profile on as many blocks as decided, in others on the first."""
        one = self._looks[claim.id]
        assert one.own is not None
        own, *others = self._profiles(claim)
        findings = (one.own, *(self._finding(claim, other, 1) for other in others))
        why, fits = self._reason(claim, _ReasonSource(self, claim, one.blocks))
        return JudgedClaim(claim, findings, why, fits, self._cells(claim, own))

    def _needed(self, one: _Look) -> Collection[Cell]:
        """The cells that a look needs and the one before did not."""
        return self.cells(one.claim) if one.blocks == 1 else self._further(replace(one, blocks=one.blocks - 1))

    def _further(self, one: _Look) -> set[Cell]:
        """The cells of the next block of repetitions."""
        return {replace(cell, block=one.blocks) for cell in self._cells(one.claim, None)}

    def _finding(self, claim: Claim, profile: str | None, blocks: int) -> Finding:
        source = self._source(blocks)
        name = profile or (self._experiment(claim).profile if claim.experiment else "")
        rule = self._rule(claim, profile)
        try:
            asked = self._asked(claim, source, profile)
            found = evaluate(parse(claim.predicate), *asked, claim.tolerance, rule)
        except NotTestableError as error:
            return Finding(name, Verdict.NOT_TESTABLE, reason=str(error).partition("\n")[0])
        return Finding(name, found.verdict, found.facts, "", found.repetitions, rule.provisional, held=found.held)

    def _rule(self, claim: Claim, profile: str | None) -> Rule:
        """Only what decides, in the paper's own profile, may be judged again on more repetitions."""
        experiments = {cell.experiment for cell in self._cells(claim, profile)}
        rule = self.planner.rule(experiments)
        return rule if profile is None else replace(rule, looks=1)

    def _source(self, blocks: int) -> StoreSource:
        if blocks not in self._sources:
            self._sources[blocks] = StoreSource(self.executor.store, self.executor.outcome, blocks, self.read)
        return self._sources[blocks]

    def source_of(self, cell: Cell, claim: Claim, blocks: int) -> StoreSource:
        """The repetitions that a reason has of a cell: those of the finding that needs it, else as many as there are.

        A claim decides on so many `blocks` in its paper's own profile, and in others on the first.
        """
        if cell in self._cells(claim, None):
            return self._source(blocks)
        return self._source(1 if cell in self.judged_cells(claim) else self._blocks_of([cell], blocks))

    def _blocks_of(self, some: Iterable[Cell], most: int) -> int:
        """The blocks that all of some cells have, up to `most`."""
        known = self.executor.outcome.digests
        return next((n for n in range(most, 1, -1) if all(replace(cell, block=n - 1) in known for cell in some)), 1)

    def _reason(self, claim: Claim, source: Source) -> tuple[str, bool]:
        """The reason with its numbers, and whether these bear out its words."""
        lookup, domain = self._asked(claim, source, None)
        try:
            fits = not claim.why_if or evaluate(parse(claim.why_if), lookup, domain, in_common=True).held
        except NotTestableError:
            fits = True
        return claim.why.shown(lookup, domain), fits

    def _reason_cells(self, claim: Claim) -> set[Cell]:
        recorder = DependencyRecorder()
        lookup, domain = self._asked(claim, recorder, None)
        with within(f"{self._place(claim)}: why"):
            claim.why.shown(lookup, domain)
        if claim.why_if:
            with suppress(NotTestableError), within(f"{self._place(claim)}: why_if", NotTestableError):
                look_up(parse(claim.why_if), lookup, domain)
        return recorder.cells

    def _place(self, claim: Claim) -> str:
        """Where a claim is, for errors."""
        papers = self.planner.library.papers.values()
        found = next((paper.directory / "claims.toml" for paper in papers if claim in paper.claims), None)
        return claim.id if found is None else f"{found}: {claim.id}"

    def _asked(self, claim: Claim, source: Source, profile: str | None) -> tuple[Lookup, Domain]:
        """What answers the selectors of a claim, and what its functions run over."""
        if claim.experiment is None:
            return _no_metric, Domain((), ())
        experiment = self._experiment(claim)
        return SelectorResolver(self.planner, source, experiment, profile), Domain.of(experiment)

    def _experiment(self, claim: Claim) -> Experiment:
        assert claim.experiment is not None
        return self.planner.library.experiments[claim.experiment]

    def _profiles(self, claim: Claim) -> list[str | None]:
        """None stands for the paper's own; the fluid engine has no ACKs to count."""
        if claim.experiment is None or claim.kind != "shape" or not engine_of(self.planner.engine).has_packets:
            return [None]
        own = self._experiment(claim).profile
        if own == TODAY or "profile=" in claim.predicate:
            return [None]
        return [None, TODAY]


def _no_metric(metric: str, _: object) -> np.ndarray:
    raise NotTestableError(f"{metric}: a claim about printed numbers needs no metric")
