"""The verdicts as the terminal and programs see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.studies.papers.verdict import FAILS, HOLDS, INCONCLUSIVE, NOT_TESTABLE, Verdict
from mptcplab.text import Table

ORDER = (HOLDS, FAILS, INCONCLUSIVE, NOT_TESTABLE)


def verdict_table(found: Sequence[Reproduction]) -> Table:
    """How many claims of each paper hold, fail, stay open or cannot be tested."""
    rows = []
    for one in found:
        counts = Counter(verdict.verdict for verdict in one.verdicts)
        dependent = sum(verdict.profile_dependent for verdict in one.verdicts)
        made, kept = one.outcome.made, one.outcome.found
        rows.append((one.paper.id, *(str(counts[word]) for word in ORDER), str(dependent), f"{made} + {kept}"))
    heads = [("Paper", ""), *((word.capitalize(), "claims") for word in ORDER), ("Profile-\ndependent", "claims")]
    return Table((*heads, ("Results", "new + kept")), tuple(rows), ())


def verdict_lines(found: Sequence[Reproduction]) -> list[str]:
    """One line per headline claim."""
    return [line(verdict) for one in found for verdict in one.verdicts if verdict.claim.headline]


def line(verdict: Verdict) -> str:
    """A claim and its verdict, for people."""
    dependent = ", profile-dependent" if verdict.profile_dependent else ""
    return f"{verdict.claim.id}  {verdict.verdict}{dependent}: {verdict.claim.statement}"


def as_data(found: Sequence[Reproduction]) -> dict[str, Any]:
    """The same for programs: every claim with its judgements."""
    return {one.paper.id: [_claim(verdict) for verdict in one.verdicts] for one in found}


def _claim(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    judgements = [
        {
            "profile": j.profile or None,
            "verdict": j.verdict,
            "share": j.share,
            "repetitions": j.repetitions,
            "reason": j.reason or None,
            "facts": [f"{f.left} {f.operator} {f.right}: {f.left_value} {f.operator} {f.right_value}" for f in j.facts],
        }
        for j in verdict.judgements
    ]
    return {
        "claim": claim.id,
        "experiment": claim.experiment,
        "kind": claim.kind,
        "statement": claim.statement,
        "verdict": verdict.verdict,
        "expect": claim.expect,
        "profile_dependent": verdict.profile_dependent,
        "judgements": judgements,
    }
