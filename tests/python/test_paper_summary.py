"""The papers' claims in the README: counts by group and class, headline claims, and the text between the marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers import sensitivity, summary
from mptcplab.studies.papers.catalog import Claim, Library, Paper
from mptcplab.studies.papers.classes import CONTRADICTIONS, OURS, PAPERS
from mptcplab.studies.papers.sensitivity import Answer, Sensitivity, Study
from mptcplab.study.verdict import Verdict

HOLDS, FAILS, OPEN, NOT_TESTABLE = Verdict


def claim(name: str, origin: Any = "paper", kind: Any = "shape") -> Claim:
    return Claim(name, origin, kind, "It does", "1 < 2", HOLDS)


def library(root: Path | None = None) -> Library:
    """Two papers with five experiments: three claims of theirs, two of ours, and one contradiction."""
    claims = {
        "doe2024": (claim("A-1"), claim("A-2", "lab"), claim("A-3", kind="consistency"), claim("A-4", kind="number")),
        "roe2023": (claim("B-1"), claim("B-2", "lab", "consistency")),
    }
    # Their names are all that the summary looks at.
    experiments: dict[str, dict[str, Any]] = {"doe2024": dict.fromkeys("PQR"), "roe2023": dict.fromkeys("ST")}
    papers = {name: Paper(name, "", "", "", Path(name), experiments[name], some) for name, some in claims.items()}
    return Library(papers, root)


def row(name: str, kind: str, verdict: str, **given: Any) -> dict[str, Any]:
    common = {"claim": name, "class": kind, "verdict": verdict}
    return {**common, "group": PAPERS, "rules": "paper", "headline": True, **given}


ROWS = [
    row("A-1", "refuted", "fails"),
    row("A-1", "refuted", "holds", rules="today"),
    row("A-2", "open", "open", group=OURS),
    row("A-3", "inconsistent in the paper", "fails", group=CONTRADICTIONS),
    row("A-4", "reproduced", "holds", headline=False),
    row("B-1", "refuted", "fails"),
    row("B-1", "refuted", "open", rules="today"),
    row("B-2", "reproduced", "holds", group=OURS),
]
# Under other choices B-1 is robust and A-1 is not.
STUDY = Study({"A-1": Sensitivity(FAILS, (Answer("noise", "none", HOLDS),)), "B-1": Sensitivity(FAILS, ())})
COUNTS = (
    "There are 5 experiments and 6 claims. Of the claims, 3 are the papers', 2 are the lab's own, and 1 are "
    "contradictions inside the papers; each group is counted separately. A headline claim is one of a paper's main "
    "claims."
)
HEADS = "reproduced | refuted | open | inconsistent in the paper | by construction or calibrated | not testable"
TABLE = f"""\
| claims | {HEADS} | total |
| --- | --- | --- | --- | --- | --- | --- | --- |
| {PAPERS} | 1 | 2 | 0 | 0 | 0 | 0 | 3 |
| {OURS} | 1 | 0 | 1 | 0 | 0 | 0 | 2 |
| {CONTRADICTIONS} | 0 | 0 | 0 | 1 | 0 | 0 | 1 |"""
HEADLINES = """\
- Headline claims refuted: B-1.
- Headline claims refuted, with the opposite verdict under the rules of today: A-1."""
CHOICES = """\
- Robust headline claims, with the same verdict under every other choice: B-1.
- Headline claims whose verdict another choice reverses (the choice in parentheses): A-1 (noise)."""


# The text


def test_the_text_has_counts_and_then_what_became_of_the_claims() -> None:
    """A claim counts once, as its paper's rules have it; the total is that of all claims, judged or not."""
    assert summary.block(library(), ROWS) == f"{COUNTS}\n\n{TABLE}\n\n{HEADLINES}"
    assert summary.block(library(), ROWS, STUDY) == f"{COUNTS}\n\n{TABLE}\n\n{HEADLINES}\n{CHOICES}"


def test_without_a_reproduction_under_the_papers_rules_the_text_has_the_numbers_of_claims_only() -> None:
    assert summary.block(library(), []) == COUNTS
    assert summary.block(library(), [row("A-1", "refuted", "holds", rules="today")], STUDY) == COUNTS


@pytest.mark.parametrize(
    ("own", "today", "opposite"),
    [
        ("holds", [], False),
        ("holds", ["holds"], False),
        ("holds", ["fails"], True),
        ("fails", ["holds"], True),
        ("holds", ["open"], False),
        ("open", ["fails"], False),
        ("holds", ["open", "fails"], True),
        ("holds", ["not testable", "holds"], False),
    ],
)
def test_a_verdict_is_the_opposite_if_one_holds_and_the_other_fails(own: str, today: list[str], opposite: bool) -> None:
    rows = [row("A-1", "x", own), *(row("A-1", "y", one, rules="today") for one in today)]
    more = ", with the opposite verdict under the rules of today" if opposite else ""
    assert summary.headline_lines(rows) == [f"- Headline claims x{more}: A-1."]


def test_headline_claims_are_those_of_papers_in_their_order_by_what_became_of_them() -> None:
    rows = [
        row("A-1", "refuted", "fails"),
        row("A-2", "open", "open"),
        row("A-3", "refuted", "fails", group=OURS),
        row("A-4", "refuted", "fails", group=CONTRADICTIONS),
        row("A-5", "refuted", "fails", headline=False),
        row("A-0", "refuted", "fails"),
    ]
    assert summary.headline_lines(rows) == ["- Headline claims open: A-2.", "- Headline claims refuted: A-1, A-0."]
    assert summary.headline_lines([]) == []


def test_a_claim_is_told_once_with_every_axis_once() -> None:
    """A claim that fails and holds elsewhere is named with the axes in their order, decided or only measured."""
    answers = (
        Answer("queue", "a", HOLDS),
        Answer("noise", "b", FAILS),
        Answer("queue", "c", HOLDS),
        Answer("delay", "d", HOLDS),
    )
    measured = tuple(Answer(one.axis, one.value, OPEN, one.verdict == HOLDS) for one in answers)
    rows = [row(name, "refuted", "fails", rules=rules) for name in ("A-1", "B-1") for rules in ("paper", "today")]
    study = Study({"A-1": Sensitivity(FAILS, answers), "B-1": Sensitivity(FAILS, measured)})
    assert summary.sensitivity_lines(rows, study) == [
        "- Headline claims whose verdict another choice reverses (the choice in parentheses): A-1 (queue, delay).",
        "- Headline claims that some choices leave open, with values on the other side of the bound (the choice in "
        "parentheses): B-1 (queue, delay).",
    ]


# The README


def repository(folder: Path, readme: str) -> Library:
    """A repository with a README, verdicts, and verdicts under other choices."""
    docs = folder / "docs" / "papers"
    docs.mkdir(parents=True)
    (docs / "verdicts.json").write_text(json.dumps(ROWS))
    sensitivity.write(STUDY, docs / "sensitivity.json")
    (folder / "README.md").write_text(readme)
    return library(folder / "papers")


def test_the_text_between_the_marks_is_what_the_stored_verdicts_say(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    found = repository(tmp_path, f"Über\n{summary.BEGIN}\nold\n{summary.END}\nafter\n")
    assert summary.stored_rows(found) == ROWS
    assert summary.stored_study(found) == STUDY
    assert summary.stale(found) == [readme]
    assert summary.refresh(found) == [readme]
    text = f"{COUNTS}\n\n{TABLE}\n\n{HEADLINES}\n{CHOICES}"
    assert readme.read_text() == f"Über\n{summary.BEGIN}\n\n{text}\n\n{summary.END}\nafter\n"
    assert summary.stale(found) == []
    before = readme.stat().st_mtime_ns
    assert summary.refresh(found) == []
    assert readme.stat().st_mtime_ns == before


def test_without_stored_verdicts_there_are_none(tmp_path: Path) -> None:
    found = library(tmp_path / "papers")
    assert summary.stored_rows(found) == []
    assert summary.stored_study(found) == Study()


@pytest.mark.parametrize(
    "readme",
    ["", summary.BEGIN, summary.END, f"{summary.END}\n{summary.BEGIN}\n", f"{summary.BEGIN}\n{summary.BEGIN}\n"],
)
def test_a_readme_without_both_marks_in_their_order_is_refused(readme: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        summary.refreshed(readme, library(), [])
    place = f"{summary.BEGIN} and {summary.END}"
    assert str(caught.value) == f"README.md has no place for the papers' claims\n\nhint: {place}"
