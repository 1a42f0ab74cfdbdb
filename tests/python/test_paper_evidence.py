"""What the pages of the papers show beside a verdict: class, prior, differences of the engines, earlier verdicts."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT
from test_paper_report import made_in

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers import before, biases, catalog, priors, summary
from mptcplab.studies.papers.catalog import Claim
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.classes import CONTRADICTIONS, OURS, PAPERS, ClaimClass, class_of, grouped_counts
from mptcplab.studies.papers.reasons import read_reason
from mptcplab.studies.papers.report import check_docs, write_docs, write_paper_docs
from mptcplab.studies.papers.report.evidence import evidence, why_changed
from mptcplab.studies.papers.report.page import index_page, paper_page
from mptcplab.studies.papers.report.verdicts import count_rows, dependence, evidence_lines
from mptcplab.studies.papers.reproduce import Reproduction, reproduce
from mptcplab.study.cell import Cell
from mptcplab.study.verdict import Finding, Verdict

LIBRARY = catalog.load()
CLAIMS = {claim.id: claim for paper in LIBRARY.papers.values() for claim in paper.claims}


def judged(claim: Claim, verdict: str, today: str = "") -> JudgedClaim:
    findings = [Finding("rfc", Verdict(verdict)), *([Finding("linux-acked", Verdict(today))] if today else [])]
    return JudgedClaim(claim, tuple(findings))


# Classes


@pytest.mark.parametrize(
    ("claim", "verdict", "expected"),
    [
        ("DUB-08", "holds", ClaimClass.REPRODUCED),
        ("DUB-08", "fails", ClaimClass.REFUTED),
        ("DUB-08", "open", ClaimClass.OPEN),
        ("DUB-11", "not testable", ClaimClass.NOT_TESTABLE),
        # A contradiction fails because the paper contradicts itself, and not because of anything that was run.
        ("DUB-14", "fails", ClaimClass.INCONSISTENT),
        ("DUB-14", "holds", ClaimClass.REPRODUCED),
        # The lab's own computation from a topology is no contradiction.
        ("ADW-42", "fails", ClaimClass.REFUTED),
        ("ZUH-03", "holds", ClaimClass.CANNOT_FAIL),
        ("ZUH-03", "fails", ClaimClass.REFUTED),
    ],
)
def test_the_class_says_what_the_verdict_is_about(claim: str, verdict: str, expected: ClaimClass) -> None:
    assert class_of(judged(CLAIMS[claim], verdict)) == expected


def test_a_class_has_a_mark_and_a_meaning_of_its_own() -> None:
    assert {one: one.mark for one in ClaimClass} == {
        ClaimClass.REPRODUCED: "✓",
        ClaimClass.REFUTED: "✕",
        ClaimClass.OPEN: "?",
        ClaimClass.INCONSISTENT: "≠",
        ClaimClass.CANNOT_FAIL: "=",
        ClaimClass.NOT_TESTABLE: "\N{EN DASH}",
    }
    assert len({one.meaning for one in ClaimClass}) == len(ClaimClass)


def test_classes_are_counted_in_their_order_and_groups_without_a_claim_are_left_out() -> None:
    found = grouped_counts(judged(CLAIMS[name], "holds") for name in ("DUB-08", "ZUH-03", "DUB-09"))
    assert {group: list(row.items()) for group, row in found.items()} == {
        PAPERS: [(one, {"reproduced": 2, "by construction or calibrated": 1}.get(one, 0)) for one in ClaimClass]
    }


def test_papers_claims_the_labs_own_and_contradictions_are_counted_apart() -> None:
    counts = grouped_counts(judged(claim, "fails") for claim in CLAIMS.values())
    assert {group: sum(row.values()) for group, row in counts.items()} == {PAPERS: 131, OURS: 32, CONTRADICTIONS: 12}
    assert counts[CONTRADICTIONS][ClaimClass.INCONSISTENT] == 12
    assert counts[PAPERS][ClaimClass.REFUTED] == 131


def test_counts_have_a_row_per_paper_and_totals(tmp_path: Path) -> None:
    made = made_in(tmp_path)
    # C-1 is the paper's and fails, C-2 the lab's and fails, C-3 a contradiction, C-4 not testable.
    rows = dict(count_rows([made, replace(made, paper=replace(made.paper, id="other"))]))
    assert [(name, sum(row)) for name, row in rows.items()] == [
        ("doe2024", 2),
        ("other", 2),
        (PAPERS, 4),
        (OURS, 2),
        (CONTRADICTIONS, 2),
        ("all together", 8),
    ]
    assert rows[PAPERS] == [0, 2, 0, 0, 0, 2]


def test_opposite_verdicts_under_todays_rules_are_named(tmp_path: Path) -> None:
    made = made_in(tmp_path)
    text = dependence([made])
    assert text.startswith("1 of these claims was judged under today's rules")
    assert text.endswith("1 of them has the opposite verdict there (C-2).")


# Priors


def test_only_what_measurements_decided_is_scored() -> None:
    known = priors.load(ROOT / "papers")
    claims = [("DUB-08", "fails"), ("DUB-09", "holds"), ("DUB-10", "open"), ("DUB-14", "fails"), ("ZUH-03", "holds")]
    scored = known.scored(judged(CLAIMS[name], verdict) for name, verdict in claims)
    assert scored == [(0.1, False), (0.3, True)]


# Claims that were read out of the papers after the lab existed, so that nothing was expected of them before.
LATER = {"ADW-44", "ADW-45", "ADW-46", "DOL-37", "WIS-24", "WIS-25", "WIS-26", "ZUH-28"}
# Claims that were removed, because the paper does not make them.
REMOVED = {"ADW-43", "KK-21"}


def test_every_claim_has_a_prior_from_before_the_lab_existed() -> None:
    known = priors.load(ROOT / "papers")
    assert set(known.of) - REMOVED == set(CLAIMS) - LATER
    assert known.written == "2026-11-20"


# Differences of the engines, and earlier verdicts


def test_differences_come_from_the_comparison_of_the_engines() -> None:
    known = {(one.algorithm, one.scenario): one for one in biases.load(ROOT)}
    assert known["wvegas", "scenarios/dolia-scenario-1.toml"].percent == -0.9
    compared = json.loads((ROOT / "docs" / "agreement" / "agreement.json").read_text(encoding="utf-8"))
    [row] = [
        row
        for entry in compared["entries"]
        for row in entry["evidence"]
        if entry["name"] == "papers/kushwah2024/disjoint.toml" and row["flow"] == "mp" and row["metric"] == "goodput"
    ]
    narrow = known["lia", "papers/kushwah2024/disjoint.toml"]
    assert narrow.percent == pytest.approx(100 * (row["mean"] / row["reference"] - 1))
    assert narrow.half == row["half"]
    assert narrow.clear
    assert not replace(narrow, half=30.0).clear
    assert replace(narrow, half=None).clear


def test_the_snapshot_has_all_verdicts_of_version_0_1() -> None:
    known = before.load(ROOT / "papers")
    assert set(known.claims) - REMOVED == set(CLAIMS) - LATER
    assert Counter(one.verdict for one in known.claims.values()) == {
        "holds": 81,
        "fails": 78,
        "open": 9,
        "not testable": 1,
    }
    assert known.commit.startswith("69a84db")


def test_a_change_names_what_was_changed_in_the_claim() -> None:
    paper = LIBRARY.papers["dubey2023"]
    known = before.load(ROOT / "papers").claims
    changed = next(one for one in paper.changes if one.claim == "DUB-01")
    assert f"{changed.what}: {changed.reason.rstrip('.')}" in why_changed(
        paper, judged(CLAIMS["DUB-01"], "fails"), known["DUB-01"]
    )
    unchanged = replace(paper, changes=())
    same = known["DUB-01"].verdict
    assert why_changed(unchanged, judged(CLAIMS["DUB-01"], same), known["DUB-01"]) == ""
    other = why_changed(unchanged, judged(CLAIMS["DUB-01"], "fails"), known["DUB-01"])
    assert other == "the claim is the same; what changed for all claims is above; it runs in the dialect mptcp-0.95"
    assert why_changed(unchanged, judged(CLAIMS["DUB-01"], "fails"), None) == "a new claim"


# Pages


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """The made-up paper with a prior, a reading, a difference of the engines and an earlier verdict."""
    folder = tmp_path_factory.mktemp("evidence")
    found = made_in(folder)
    data = {
        "written": "1999-12-31",
        "note": "A guess.",
        "priors": [{"id": "C-1", "probability_true": 0.2, "why": "Odd"}],
    }
    (folder / "papers" / "priors.json").write_text(json.dumps(data))
    earlier = {"C-1": {"verdict": "holds", "profile": "rfc", "predicate": "1 == 1"}}
    old = {"version": "0.0", "commit": "abcdef0123", "date": "1999-12-30", "since": ["All is new."], "claims": earlier}
    (folder / "papers" / "verdicts-0.1.json").write_text(json.dumps(old))
    agreement = folder / "docs" / "agreement"
    agreement.mkdir(parents=True)
    (agreement / "algorithms.toml").write_text(
        '[[difference]]\nalgorithm = "olia"\nkernel = 33\nscenario = "scenarios/pair.toml"\n'
        '[[difference]]\nalgorithm = "lia"\nkernel = 44\nscenario = "scenarios/pair.toml"\n'
    )
    reading = catalog.Reading(("olia",), "OLIA", "its step is taken to be small")
    paper = replace(found.paper, readings=(reading,))
    library = catalog.Library({paper.id: paper}, folder / "papers")
    planner = replace(found.planner, library=library)
    first, *rest = found.claims
    cells = frozenset({Cell("TWO", "olia", "", "rfc")})
    claim = replace(first.claim, why=read_reason("Its step is | small."))
    return replace(found, paper=paper, planner=planner, claims=(replace(first, claim=claim, cells=cells), *rest))


def test_the_evidence_of_a_claim_is_that_of_its_own_cells(made: Reproduction) -> None:
    known = evidence(made, made.claims[0])
    assert known.readings == (("OLIA", "its step is taken to be small"),)
    assert known.differences == ("olia gets 33 % more in the kernel on scenarios/pair.toml",)
    assert (known.prior, known.prior_why) == ("20 %", "Odd")
    assert known.scenarios == ("papers/doe2024/pair.toml",)
    assert known.command == "mptcplab reproduce doe2024 --claim C-1"
    lia = evidence(made, replace(made.claims[0], cells=frozenset({Cell("TWO", "lia", "", "rfc")})))
    assert (lia.readings, lia.differences) == ((), ("lia gets 44 % more in the kernel on scenarios/pair.toml",))
    other = evidence(made, made.claims[1])
    assert (other.readings, other.differences, other.prior) == ((), (), "")


def test_the_pages_show_the_evidence_of_every_claim(made: Reproduction, tmp_path: Path) -> None:
    write_docs([made], tmp_path)
    page = (tmp_path / "doe2024.md").read_text()
    entry = page[page.index("### C-1") : page.index("### C-2")]
    for line in (
        "**✕ refuted, under our reading of OLIA**: OLIA gets 6",
        "- Reading of OLIA: its step is taken to be small.",
        "- Engines: olia gets 33 % more in the kernel on scenarios/pair.toml.",
        "- Prior: 20 % (Odd).",
        "- Assumptions: at the head of [pair.toml](../../papers/doe2024/pair.toml).",
        "- Repeat: `mptcplab reproduce doe2024 --claim C-1`",
        "- The paper's rules (rfc), 4 repetitions: fails",
    ):
        assert line in entry
    html = paper_page(made, "x")
    article = html[html.index('id="C-1"') :]
    article = article[: article.index("</article>")]
    for text in ("under our reading of OLIA", "olia gets 33 % more", "20 %: Odd", "reproduce doe2024 --claim C-1"):
        assert text in article
    for heading in ("Counts", "Readings", "The paper's claims", "Our own claims", "Evidence", "How to cite"):
        assert f"\n## {heading}\n" in page
        assert f"- [{heading}](#" in page


def test_pages_about_all_papers_are_not_replaced_by_those_of_one(
    made: Reproduction, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = tmp_path / "verdicts.json"
    verdicts.write_text('[{"paper": "doe2024"}, {"paper": "roe2023"}]')
    with pytest.raises(MptcplabError, match="has the verdicts of full reproductions, which these are not"):
        check_docs(tmp_path, is_reference=False)
    check_docs(tmp_path, is_reference=True)
    before = verdicts.read_text()
    write_docs([made], tmp_path)
    assert (tmp_path / "doe2024.md").is_file()
    assert verdicts.read_text() == before
    assert not (tmp_path / "README.md").exists()
    assert "they are also about roe2023" in capsys.readouterr().err
    verdicts.write_text('[{"paper": "doe2024"}]')
    write_docs([made], tmp_path)
    assert (tmp_path / "README.md").is_file()


def test_the_overview_scores_the_priors_and_the_changes_are_a_page(made: Reproduction, tmp_path: Path) -> None:
    write_docs([made], tmp_path)
    overview = (tmp_path / "README.md").read_text()
    # One claim, said to hold at 20 %, that fails: 0.2^2.
    assert "1 had a prior." in overview
    assert "is 0.040." in overview
    assert "| 10 to 30 % | 1 | 20 % | 0 % |" in overview
    changes = (tmp_path / "changes.md").read_text()
    assert (
        "Every claim in version 0.0 (commit abcdef0, 1999-12-30) and today. 1 of 4 verdicts are other ones." in changes
    )
    assert "| [C-1](doe2024.md#c-1) | holds | fails | ✕ refuted, under our reading of OLIA |" in changes


def test_the_terminal_shows_the_evidence_of_one_claim(made: Reproduction) -> None:
    lines = evidence_lines([replace(made, claims=made.claims[:1])])
    assert lines[0] == "C-1  ✕ refuted, under our reading of OLIA: OLIA gets 6"
    assert "  rfc, 4 repetitions: fails" in lines
    assert "  olia gets 33 % more in the kernel on scenarios/pair.toml" in lines
    assert "  expected before mptcplab ran it: 20 %" in lines


def test_formulas_wrap_instead_of_scrolling(made: Reproduction) -> None:
    """Nothing that scrolls sideways is around a formula of a claim, on any width."""
    html = paper_page(made, "x")
    article = html[html.index('id="C-1"') :]
    assert '<div class="scroll">' not in article[: article.index("</article>")]
    assert "overflow-wrap: anywhere" in html


def test_the_index_has_totals(made: Reproduction) -> None:
    page = index_page([made], "x")
    assert "all together" in page
    assert "<strong>4</strong>" in page
    both = page + paper_page(made, "x")
    for target in re.findall(r'href="#([a-z]+)"', both):
        assert f'id="{target}"' in both, target
    assert "is 0.040." in page
    assert "To cite a verdict" in page


# The README


def test_the_readme_is_up_to_date() -> None:
    assert summary.stale(LIBRARY) == [], "run `mptcplab docs`"


def test_the_readme_counts_the_stored_verdicts() -> None:
    def row(claim: str, group: str, kind: str, verdict: str, rules: str = "paper") -> dict[str, object]:
        return {
            "claim": claim, "group": group, "class": kind, "verdict": verdict, "rules": rules, "headline": True
        }  # fmt: skip

    rows = [
        row("A", PAPERS, "reproduced", "holds"),
        row("A", PAPERS, "reproduced", "fails", "today"),
        row("B", PAPERS, "reproduced", "holds"),
        row("B", PAPERS, "reproduced", "holds", "today"),
        row("C", PAPERS, "refuted", "fails"),
        row("D", OURS, "reproduced", "holds"),
    ]
    text = summary.block(LIBRARY, rows)
    counts = (
        "There are 53 experiments and 175 claims. Of the claims, 131 are the papers', 32 are the lab's own, and 12 are"
    )
    assert text.startswith(counts)
    assert f"| {PAPERS} | 2 | 1 | 0 | 0 | 0 | 0 | 131 |" in text
    assert f"| {OURS} | 1 | 0 | 0 | 0 | 0 | 0 | 32 |" in text
    assert text.splitlines()[-3:] == [
        "- Headline claims refuted: C.",
        "- Headline claims reproduced: B.",
        "- Headline claims reproduced, with the opposite verdict under the rules of today: A.",
    ]
    readme = f"x\n{summary.BEGIN}\nold\n{summary.END}\ny\n"
    assert summary.refreshed(readme, LIBRARY, rows) == f"x\n{summary.BEGIN}\n\n{text}\n\n{summary.END}\ny\n"
    with pytest.raises(MptcplabError, match="no place"):
        summary.refreshed("x", LIBRARY, rows)


# A sample of `make papers-check`


def test_a_full_reproduction_of_one_paper_finds_what_is_expected(tmp_path: Path) -> None:
    (found,) = reproduce(LIBRARY, LIBRARY.choose("dubey2023"), "sim", tmp_path / "out")
    assert [(one.claim.id, one.claim.expect, str(one.verdict)) for one in found.unexpected] == []
    assert [one.claim.id for one in found.unfit] == []
    # Every number is the committed one, as `make papers-check` finds for all papers.
    write_paper_docs(found, tmp_path / "docs")
    page = Path("docs/papers/dubey2023.md")
    assert (tmp_path / "docs" / page.name).read_text() == (ROOT / page).read_text()


def test_one_claim_is_run_by_itself(tmp_path: Path) -> None:
    library, quick = LIBRARY, True
    (found,) = reproduce(library, library.choose("dubey2023"), "sim", tmp_path / "out", claim="DUB-13", quick=quick)
    assert [one.claim.id for one in found.claims] == ["DUB-13"]
    assert {cell.experiment for cell in found.outcome.digests} == {"DUB-NSB"}
    with pytest.raises(MptcplabError, match="no such claim of dubey2023: 'DUB-99'"):
        reproduce(library, library.choose("dubey2023"), "sim", tmp_path / "out", claim="DUB-99")
