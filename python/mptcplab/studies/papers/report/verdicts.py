"""The verdicts on claims as the terminal and programs see them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.classes import PAPERS, ClaimClass, class_counts, class_of, group_of, grouped_counts
from mptcplab.studies.papers.predicate import Fact
from mptcplab.studies.papers.report.evidence import Evidence, evidence
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.studies.papers.sensitivity import Answer
from mptcplab.study.decision import ERROR, WORST_CASE, WORST_SIMULATED
from mptcplab.study.page import csv_text
from mptcplab.study.verdict import Finding, Verdict
from mptcplab.text import Table, counted

_COLUMNS = (
    *("paper", "claim", "experiment", "group", "kind", "headline", "class", "rules", "statement"),
    *("profile", "verdict", "provisional", "repetitions", "measured", "published", "expect"),
)


def count_rows(found: Sequence[Reproduction]) -> list[tuple[str, list[int]]]:
    """The numbers of claims of each class: of every paper's own claims, and the groups of all papers in total."""
    rows = []
    for one in found:
        counts = grouped_counts(one.claims).get(PAPERS)
        if counts and len(found) > 1:
            rows.append((one.paper.id, list(counts.values())))
    everything = [judged for one in found for judged in one.claims]
    groups = {group: list(counts.values()) for group, counts in grouped_counts(everything).items()}
    rows += groups.items()
    if len(groups) > 1:
        rows.append(("all together", list(class_counts(everything).values())))
    return rows


def verdict_table(found: Sequence[Reproduction]) -> Table:
    """The numbers of claims of each class."""
    rows = [(named(found, name), *map(str, counts), str(sum(counts))) for name, counts in count_rows(found)]
    heads = [("Claims", ""), *((_head(one), "") for one in ClaimClass), ("Total", "")]
    made, reused = (sum(len(getattr(one.outcome, name)) for one in found) for name in ("made", "reused"))
    return Table(tuple(heads), tuple(rows), (f"results: {made} new, {reused} stored before", dependence(found)))


def _head(one: ClaimClass) -> str:
    r"""A class as the head of a narrow column.

    >>> _head(ClaimClass.INCONSISTENT)
    'Inconsistent\nin the paper'
    """
    first, _, others = one.capitalize().partition(" ")
    return f"{first}\n{others}".strip()


def dependence(found: Sequence[Reproduction]) -> str:
    """How many claims were judged under today's rules as well, and which have the opposite verdict there."""
    twice = [judged for one in found for judged in one.claims if len(judged.findings) > 1]
    opposite = [judged.claim.id for judged in twice if judged.profile_dependent]
    if not twice:
        return "No claim was judged under today's rules in addition to the paper's."
    which = f" ({', '.join(opposite)})" if opposite else ""
    were = "was" if len(twice) == 1 else "were"
    have = "has" if len(opposite) == 1 else "have"
    return (
        f"{len(twice)} of these claims {were} judged under today's rules as well as under the paper's; "
        f"{len(opposite)} of them {have} the opposite verdict there{which}."
    )


def class_text(judged: JudgedClaim, known: Evidence) -> str:
    """The class of a claim in words, with its mark and what qualifies it."""
    found = class_of(judged)
    name = judged.claim.cannot_fail if found == ClaimClass.CANNOT_FAIL else str(found)
    words = [f"{found.mark} {'provisional: ' if judged.provisional else ''}{name}"]
    if known.readings:
        words.append(f"under our reading of {' and '.join(name for name, _ in known.readings)}")
    if judged.profile_dependent:
        words.append("the opposite under today's rules")
    return ", ".join(words)


def named(found: Sequence[Reproduction], name: str) -> str:
    """The name of claims beside the numbers of their classes."""
    return f"{name} (provisional)" if any(one.planner.quick for one in found) else name


def expected_errors(found: Sequence[Reproduction]) -> str:
    """The verdicts that may be false by chance, in a sentence; nothing where no verdict rests on repetitions.

    A claim without any interval is none of them: it is about the runs that were made, whatever others would give.
    """
    judged = [finding for one in found for claim in one.claims for finding in claim.findings[:1]]
    repeated = [one for one in judged if one.repetitions > 1 and one.verdict != Verdict.NOT_TESTABLE]
    exact = sum(bool(one.evidence) and not any(fact.has_interval for fact in one.evidence) for one in repeated)
    random = len(repeated) - exact
    if not random:
        return ""
    left_out = (
        f" This leaves out {counted(exact, 'claim')} without an interval, about the smallest or largest value or the "
        "standard deviation of the runs that were made, or about values that are the same in all of them."
    )
    return (
        f"{random} claims were judged by repetitions. If each of them lay exactly at its bound, about "
        f"{100 * ERROR:g} % of them, {ERROR * random:.1f} claims, would be decided in spite of that, counted over all "
        f"looks ({100 * WORST_SIMULATED:g} % in the worst of the cases simulated, {WORST_CASE}); the farther a claim "
        "is from its bound, the less likely a false verdict is."
    ) + (left_out if exact else "")


def headline(judged: JudgedClaim, known: Evidence) -> str:
    """A claim and its verdict in a line."""
    return f"{judged.claim.id}  {class_text(judged, known)}: {judged.claim.statement}"


def headlines(found: Sequence[Reproduction]) -> list[str]:
    """One line per headline claim."""
    return [headline(judged, evidence(one, judged)) for one in found for judged in one.claims if judged.claim.headline]


def evidence_lines(found: Sequence[Reproduction]) -> list[str]:
    """Every claim with all that stands beside its verdict, for the terminal."""
    lines = []
    for one in found:
        for judged in one.claims:
            known = evidence(one, judged)
            lines.append(headline(judged, known))
            for finding, rules in zip(judged.findings, known.rules, strict=True):
                where = f"{rules}, " if rules else ""
                lines.append(f"  {where}{finding.repetitions} repetitions: {finding.text} {finding.reason}".rstrip())
                lines += [f"    {comparison(fact)}" for fact in finding.evidence]
            lines += [
                f"  {text}" for text in (judged.why, *(text for _, text in known.readings), *known.differences) if text
            ]
            if known.prior:
                lines.append(f"  expected before mptcplab ran it: {known.prior}")
            if known.sensitivity is not None:
                lines.append(f"  under other choices: {known.sensitivity}")
                lines += [f"    {one.axis} {one.value}: {_answer(one)}" for one in known.sensitivity.answers]
            lines += [f"  assumptions: {path}" for path in known.scenarios]
    return lines


def _answer(answer: Answer) -> str:
    """The verdict under another choice; of an open one also what was measured."""
    return f"{answer.verdict}" if answer.measured == answer.verdict else f"open, as measured {answer.measured}"


def comparison(fact: Fact) -> str:
    """One comparison with its values, whether it is true, and its margin.

    >>> comparison(Fact("mean(a{cc=b})", ">=", "0.9", "0.912 (0.9 to 0.92)", "0.900", True, 0.012, 0.0, 0.02, 10))
    'mean(a{cc=b}) = 0.912 (0.9 to 0.92) >= 0.9: true, margin 0.012 (0 to 0.02)'
    """
    left, right = (_side(*side) for side in ((fact.left, fact.left_value), (fact.right, fact.right_value)))
    return f"{left} {fact.operator} {right}: {'true' if fact.held else 'not true'}{margin(fact)}"


def margin(fact: Fact) -> str:
    """How far a comparison is inside its bound, with the interval that decides; nothing for words.

    >>> margin(Fact("max(a{cc=b})", "<=", "1", "0.75", "1.00", True, 0.25, 0.25, 0.25, 10))
    ', margin 0.25 in these runs, without an interval'
    """
    if fact.margin is None or fact.repetitions < 2:
        return ""
    if not fact.has_interval:
        return f", margin {fact.margin:.3g} in these runs, without an interval"
    return f", margin {fact.margin:.3g} ({fact.low:.3g} to {fact.high:.3g})"


def _side(text: str, value: str) -> str:
    return text if is_literal(text) else f"{text} = {value}"


def is_literal(text: str) -> bool:
    """Whether a side is written out: a number, a word in quotes, a set.

    >>> is_literal("0.90"), is_literal("'olia'"), is_literal("[0.9,1.1]"), is_literal("1.05 * mean(pps{cc=lia})")
    (True, True, True, False)
    """
    return re.fullmatch(r"-?\d+(\.\d+)?|'[^']*'|\[[^\[\]]*\]", text) is not None


def unexpected(found: Sequence[Reproduction]) -> list[str]:
    """One line per claim whose verdict is not the expected one, and per reason that the numbers do not bear out."""
    lines = []
    for one in found:
        lines += [
            f"{claim.id}: expected {claim.expect}, found {finding.text}: {claim.statement}"
            for claim, finding in ((judged.claim, judged.findings[0]) for judged in one.unexpected)
        ]
        if one.is_reference:
            lines += [f"{judged.claim.id}: the reason does not fit the numbers: {judged.why}" for judged in one.unfit]
    return lines


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
        "class": class_of(judged),
        "verdict": judged.verdict,
        "expect": claim.expect,
        "profile_dependent": judged.profile_dependent,
        "findings": [
            {
                **_numbers(finding),
                "reason": finding.reason or None,
                "facts": [_fact(fact) for fact in finding.evidence],
            }
            for finding in judged.findings
        ],
    }


def _fact(fact: Fact) -> dict[str, Any]:
    """A comparison for programs: JSON knows no infinity, which is the end of an interval without an end."""
    ends = {"low": fact.low, "high": fact.high}
    return asdict(fact) | {name: end if end is not None and math.isfinite(end) else None for name, end in ends.items()}


def _numbers(finding: Finding) -> dict[str, Any]:
    return {
        "profile": finding.name or None,
        "verdict": finding.verdict,
        "provisional": finding.provisional,
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
            for place, finding in enumerate(judged.findings):
                yield {
                    "paper": one.paper.id,
                    "claim": claim.id,
                    "experiment": claim.experiment,
                    "group": group_of(judged),
                    "kind": claim.kind,
                    "headline": claim.headline,
                    "class": class_of(judged),
                    "rules": "today" if place else "paper",
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
