"""Claims in Markdown: a table of their classes, and an entry with the evidence of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mptcplab import markdown
from mptcplab.markdown import escaped, table
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.predicate import Fact
from mptcplab.studies.papers.report.evidence import Evidence, evidence
from mptcplab.studies.papers.report.page import reason
from mptcplab.studies.papers.report.verdicts import class_text, comparison
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.study.verdict import Finding

# Of more comparisons than this, an entry shows those that are not true, or the nearest to its bound.
_MANY = 8


def claim_table(reproduction: Reproduction, claims: Iterable[JudgedClaim]) -> str:
    """Claims with their class and prior, each linked to its entry; headline claims in bold."""
    rows = []
    for judged in claims:
        name = f"[{judged.claim.id}]({reproduction.paper.id}.md#{markdown.anchor(judged.claim.id)})"
        bold = f"**{name}**" if judged.claim.headline else name
        known = evidence(reproduction, judged)
        hangs = "" if known.sensitivity is None else known.sensitivity.short
        rows.append([bold, class_text(judged, known), judged.claim.statement, hangs, known.prior])
    return table(["claim", "class", "statement", "under other choices", "prior"], rows)


def entries(reproduction: Reproduction, claims: Iterable[JudgedClaim]) -> Iterator[str]:
    """The evidence of claims, a section each."""
    for judged in claims:
        yield f"### {judged.claim.id}"
        known = evidence(reproduction, judged)
        yield f"**{class_text(judged, known)}**: {escaped(judged.claim.statement)}"
        yield "\n".join(f"- {line}" for line in _lines(judged, known))


def _lines(judged: JudgedClaim, known: Evidence) -> Iterator[str]:
    claim = judged.claim
    source = "; ".join(text for text in (claim.where, claim.published) if text)
    if claim.origin == "lab":
        yield "A claim of the lab, not of the paper." + (f" The paper: {escaped(source)}." if source else "")
    elif source:
        yield f"The paper: {escaped(source)}."
    if claim.tolerance is not None:
        yield f"Equal means within {100 * claim.tolerance:.3g} %."
    for place, finding in enumerate(judged.findings):
        yield _finding(finding, known.rules[place], today=place > 0)
    if judged.why:
        yield f"Why: {escaped(reason(judged))}"
    yield from (f"Reading of {name}: {escaped(text)}." for name, text in known.readings)
    if known.scenarios:
        links = ", ".join(f"[{path.rpartition('/')[2]}](../../{path})" for path in known.scenarios)
        yield f"Assumptions: at the head of {links}."
    yield from (f"Engines: {escaped(text)}." for text in known.differences)
    if known.prior:
        yield f"Prior: {known.prior}" + (f" ({escaped(known.prior_why)})." if known.prior_why else ".")
    if known.sensitivity is not None:
        yield f"Under other choices: {escaped(str(known.sensitivity))}."
    if judged.changed:
        yield f"Expected: {claim.expect}."
    yield f"Repeat: `{known.command}`"


def _finding(finding: Finding, rules: str, *, today: bool) -> str:
    if not rules and not finding.evidence:
        return f"No run is needed: {finding.verdict}."
    under = f"{'Today' if today else 'The paper'}'s rules ({rules})" if rules else "The printed numbers"
    count = f", {finding.repetitions} repetitions" if finding.repetitions > 1 else ""
    said = f": {escaped(finding.reason)}" if finding.reason else ""
    shown = _chosen(finding.evidence)
    left_out = len(finding.evidence) - len(shown)
    lines = [f"{under}{count}: {finding.text}{said}"]
    lines += [f"  - `{comparison(fact)}`" for fact in shown]
    if left_out:
        held = sum(fact.held for fact in finding.evidence)
        lines.append(f"  - {len(finding.evidence)} comparisons in all, {held} of them true")
    return "\n".join(lines)


def _chosen(facts: Sequence[Fact]) -> Sequence[Fact]:
    """The comparisons that tell most: all, if they are few; else what is not true, or the nearest to its bound."""
    if len(facts) <= _MANY:
        return facts
    untrue = [fact for fact in facts if not fact.held][:_MANY]
    return untrue or sorted(facts, key=lambda fact: float("inf") if fact.margin is None else fact.margin)[:1]
