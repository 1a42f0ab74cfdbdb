"""The verdicts on claims as the terminal and programs see them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.study.page import csv_text
from mptcplab.study.verdict import Finding, Verdict, counts
from mptcplab.text import Table

DEPENDENT = "profile-dependent"
_COLUMNS = (
    *("paper", "claim", "experiment", "kind", "statement"),
    *("profile", "verdict", "share", "repetitions", "measured", "published", "expect"),
)


def claim_counts(claims: Sequence[JudgedClaim]) -> dict[str, int]:
    """The number of claims with each verdict, and of those that depend on the ACK profile."""
    dependent = sum(judged.profile_dependent for judged in claims)
    return {**counts(judged.verdict for judged in claims), DEPENDENT: dependent}


def verdict_table(found: Sequence[Reproduction]) -> Table:
    """The numbers of claims of each paper that hold, fail, stay open or cannot be tested."""
    rows = []
    for one in found:
        ran = f"{one.outcome.made} + {one.outcome.reused}"
        rows.append((one.paper.id, *map(str, claim_counts(one.claims).values()), ran))
    heads = [("Paper", ""), *((verdict.capitalize(), "claims") for verdict in Verdict)]
    return Table((*heads, ("Profile-\ndependent", "claims"), ("Results", "new + stored")), tuple(rows), ())


def headline(judged: JudgedClaim) -> str:
    """A claim and its verdict in a line."""
    dependent = f", {DEPENDENT}" if judged.profile_dependent else ""
    return f"{judged.claim.id}  {judged.verdict}{dependent}: {judged.claim.statement}"


def headlines(found: Sequence[Reproduction]) -> list[str]:
    """One line per headline claim."""
    return [headline(judged) for one in found for judged in one.claims if judged.claim.headline]


def as_data(found: Sequence[Reproduction]) -> dict[str, Any]:
    """Every claim with its findings, by paper, for programs."""
    return {one.paper.id: [_claim(judged) for judged in one.claims] for one in found}


def _claim(judged: JudgedClaim) -> dict[str, Any]:
    claim = judged.claim
    return {
        "claim": claim.id,
        "experiment": claim.experiment,
        "kind": claim.kind,
        "statement": claim.statement,
        "verdict": judged.verdict,
        "expect": claim.expect,
        "profile_dependent": judged.profile_dependent,
        "findings": [
            {
                **_numbers(finding),
                "reason": finding.reason or None,
                "facts": [
                    f"{fact.left} {fact.operator} {fact.right}: {fact.left_value} {fact.operator} {fact.right_value}"
                    for fact in finding.evidence
                ],
            }
            for finding in judged.findings
        ],
    }


def _numbers(finding: Finding) -> dict[str, Any]:
    return {
        "profile": finding.name or None,
        "verdict": finding.verdict,
        "share": finding.share,
        "repetitions": finding.repetitions,
    }


def verdicts_csv(found: Sequence[Reproduction]) -> str:
    """One row per claim and profile, the paper's own profile first."""
    return csv_text(_COLUMNS, ([row[name] for name in _COLUMNS] for row in _rows(found)))


def verdicts_json(found: Sequence[Reproduction]) -> str:
    """The same rows as objects."""
    return json.dumps(list(_rows(found)), indent=1, ensure_ascii=False) + "\n"


def _rows(found: Sequence[Reproduction]) -> Iterator[dict[str, Any]]:
    for one in found:
        for judged in one.claims:
            claim = judged.claim
            for finding in judged.findings:
                yield {
                    "paper": one.paper.id,
                    "claim": claim.id,
                    "experiment": claim.experiment,
                    "kind": claim.kind,
                    "statement": claim.statement,
                    **_numbers(finding),
                    "measured": measured(finding),
                    "published": claim.published,
                    "expect": claim.expect,
                }


def measured(finding: Finding) -> str:
    """The comparisons of a finding with our numbers, or why there are none."""
    parts = [f"{fact.left} = {fact.left_value} {fact.operator} {fact.right_value}" for fact in finding.evidence]
    return finding.reason or "; ".join(parts)
