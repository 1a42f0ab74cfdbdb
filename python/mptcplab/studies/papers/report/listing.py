"""The verdicts for programs: one row, or object, per claim and profile."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.studies.papers.verdict import Judgement

_COLUMNS = (
    "paper",
    "claim",
    "experiment",
    "kind",
    "statement",
    "profile",
    "verdict",
    "share",
    "repetitions",
    "measured",
    "published",
    "expect",
)


def verdicts_csv(reproductions: Sequence[Reproduction]) -> str:
    """One row per claim and profile, the paper's own profile first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(reproductions))
    return text.getvalue()


def _rows(reproductions: Sequence[Reproduction]) -> Iterator[dict[str, Any]]:
    for reproduction in reproductions:
        for verdict in reproduction.verdicts:
            claim = verdict.claim
            for judgement in verdict.judgements:
                yield {
                    "paper": reproduction.paper.id,
                    "claim": claim.id,
                    "experiment": claim.experiment,
                    "kind": claim.kind,
                    "statement": claim.statement,
                    "profile": judgement.profile or None,
                    "verdict": judgement.verdict,
                    "share": judgement.share,
                    "repetitions": judgement.repetitions,
                    "measured": measured(judgement),
                    "published": claim.published,
                    "expect": claim.expect,
                }


def measured(judgement: Judgement) -> str:
    """The comparisons of a judgement with our numbers, or why there are none."""
    parts = [f"{fact.left} = {fact.left_value} {fact.operator} {fact.right_value}" for fact in judgement.facts]
    return judgement.reason or "; ".join(parts)


def verdicts_json(reproductions: Sequence[Reproduction]) -> str:
    """The same rows as objects."""
    return json.dumps(list(_rows(reproductions)), indent=1, ensure_ascii=False) + "\n"
