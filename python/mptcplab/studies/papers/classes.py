"""The class of a judged claim: what its verdict says about the paper, which the bare verdict leaves open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from mptcplab.studies.papers.catalog import Claim
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.study.verdict import Verdict


class ClaimClass(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    REFUTED = "refuted"
    OPEN = "open"
    INCONSISTENT = "inconsistent in the paper"
    CANNOT_FAIL = "by construction or calibrated"
    NOT_TESTABLE = "not testable"

    @property
    def mark(self) -> str:
        """A symbol for each class, so that colour alone never carries it."""
        marks = {"reproduced": "✓", "refuted": "✕", "open": "?", "inconsistent in the paper": "≠"}
        return marks.get(self, "=" if self == ClaimClass.CANNOT_FAIL else "\N{EN DASH}")

    @property
    def meaning(self) -> str:
        """The class in a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    ClaimClass.REPRODUCED: "The comparison is true of what was measured here.",
    ClaimClass.REFUTED: "It is not true of what was measured here.",
    ClaimClass.OPEN: "The repetitions do not decide.",
    ClaimClass.INCONSISTENT: "Numbers or words that the paper prints contradict each other; no run is needed.",
    ClaimClass.CANNOT_FAIL: "It is true, but could not have been otherwise: by the construction of the scenario, or "
    "because an assumption was calibrated for it.",
    ClaimClass.NOT_TESTABLE: "No run of this engine can test it; the entry says why.",
}
_OF_VERDICT = {
    Verdict.HOLDS: ClaimClass.REPRODUCED,
    Verdict.FAILS: ClaimClass.REFUTED,
    Verdict.OPEN: ClaimClass.OPEN,
    Verdict.NOT_TESTABLE: ClaimClass.NOT_TESTABLE,
}
# The groups in which claims are counted.
PAPERS, OURS, CONTRADICTIONS = "the papers' claims", "the lab's own claims", "contradictions in the papers"


def class_of(judged: JudgedClaim) -> ClaimClass:
    """The class of a claim. One that was said to be unable to fail, and fails, is refuted."""
    claim, verdict = judged.claim, judged.verdict
    if group_of(judged) == CONTRADICTIONS and verdict == Verdict.FAILS:
        return ClaimClass.INCONSISTENT
    if claim.cannot_fail and verdict == Verdict.HOLDS:
        return ClaimClass.CANNOT_FAIL
    return _OF_VERDICT[verdict]


def group_of(judged: JudgedClaim) -> str:
    """The group in which a claim is counted: the lab's own say nothing about a paper's results."""
    return group_of_claim(judged.claim)


def group_of_claim(claim: Claim) -> str:
    """The group of a claim that need not have been judged."""
    if claim.origin == "lab":
        return OURS
    return CONTRADICTIONS if claim.kind == "consistency" else PAPERS


def class_counts(claims: Iterable[JudgedClaim]) -> dict[ClaimClass, int]:
    """The number of claims of each class."""
    found = Counter(map(class_of, claims))
    return {one: found[one] for one in ClaimClass}


def grouped_counts(claims: Iterable[JudgedClaim]) -> dict[str, dict[ClaimClass, int]]:
    """The same by group; groups without a claim are left out."""
    by_group: dict[str, list[JudgedClaim]] = {PAPERS: [], OURS: [], CONTRADICTIONS: []}
    for judged in claims:
        by_group[group_of(judged)].append(judged)
    return {group: class_counts(some) for group, some in by_group.items() if some}
