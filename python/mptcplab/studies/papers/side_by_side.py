"""The verdicts that several engines give on the same claims, side by side."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from mptcplab.studies.papers.catalog import Claim
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.study.cell import Cell
from mptcplab.study.verdict import Verdict

# By cell and flow, the packet scheduler that was read back; null for what has none.
_Schedulers = Mapping[Cell, Mapping[str, str | None]]


class Relation(StrEnum):
    """How the verdicts of several engines on one claim are related."""

    SAME = "the same"
    OPPOSITE = "opposite"
    UNDECIDED = "open on some engine"
    UNTESTED = "not testable on some engine"

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Relation:
        """The relation of some verdicts.

        >>> Relation.of([Verdict.HOLDS, Verdict.OPEN]).value, Relation.of([Verdict.OPEN, Verdict.OPEN]).value
        ('open on some engine', 'the same')
        """
        found = set(verdicts)
        if {Verdict.HOLDS, Verdict.FAILS} <= found:
            return cls.OPPOSITE
        if len(found) == 1:
            return cls.SAME
        return cls.UNTESTED if Verdict.NOT_TESTABLE in found else cls.UNDECIDED


@dataclass(frozen=True)
class Compared:
    """One claim, judged on every engine."""

    judged: tuple[JudgedClaim, ...]

    @property
    def claim(self) -> Claim:
        """The claim."""
        return self.judged[0].claim

    @property
    def relation(self) -> Relation:
        """How its verdicts under the paper's rules are related."""
        return Relation.of(one.verdict for one in self.judged)


@dataclass(frozen=True)
class SideBySide:
    """One paper, reproduced on several engines.

    Claims about what the paper prints need no run, and are left out: no engine has a say in them.
    """

    reproductions: tuple[Reproduction, ...]
    claims: tuple[Compared, ...]

    @classmethod
    def of(cls, reproductions: Sequence[Reproduction]) -> SideBySide:
        """The reproductions of one paper, an engine each."""
        pairs = zip(*(one.claims for one in reproductions), strict=True)
        return cls(tuple(reproductions), tuple(Compared(judged) for judged in pairs if judged[0].claim.experiment))

    @property
    def engines(self) -> list[str]:
        """The names of the engines."""
        return [one.planner.engine for one in self.reproductions]

    def schedulers(self, claim: Compared) -> dict[str, dict[str, str]]:
        """The packet schedulers of a claim's flows by engine, for flows whose scheduler is not the same on all.

        An engine that has no scheduler, or refused the runs, is left out.
        """
        pairs = zip(self.engines, self._recorded, claim.judged, strict=True)
        found = {engine: _of_cells(recorded, judged.cells) for engine, recorded, judged in pairs}
        flows = sorted(set[str]().union(*found.values()))
        by_flow = {
            flow: {engine: ", ".join(sorted(of[flow])) for engine, of in found.items() if flow in of} for flow in flows
        }
        return {flow: names for flow, names in by_flow.items() if len(set(names.values())) > 1}

    @cached_property
    def _recorded(self) -> list[_Schedulers]:
        """What each engine recorded, read once for all claims."""
        return [_recorded(one) for one in self.reproductions]

    def with_relation(self, relation: Relation) -> list[Compared]:
        """The claims whose verdicts are so related."""
        return [one for one in self.claims if one.relation == relation]


def _recorded(reproduction: Reproduction) -> _Schedulers:
    """The scheduler that each flow of every cell had."""
    outcome, store = reproduction.outcome, reproduction.store
    run = {cell: digest for cell, digest in outcome.digests.items() if digest not in outcome.refused}
    return {cell: store.record(digest).get("scheduler") or {} for cell, digest in run.items()}


def _of_cells(recorded: _Schedulers, cells: Container[Cell]) -> dict[str, set[str]]:
    """The schedulers of each flow in some cells and their further repetitions."""
    found: dict[str, set[str]] = {}
    for cell, schedulers in recorded.items():
        if replace(cell, block=0) in cells:
            for flow, name in schedulers.items():
                if name:
                    found.setdefault(flow, set()).add(name)
    return found


def side_by_side(found: Iterable[Reproduction]) -> list[SideBySide]:
    """Papers that were reproduced on several engines, each with its reproductions."""
    by_paper: dict[str, list[Reproduction]] = {}
    for one in found:
        by_paper.setdefault(one.paper.id, []).append(one)
    return [SideBySide.of(some) for some in by_paper.values()]
