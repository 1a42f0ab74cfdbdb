"""What stands beside a verdict: its reason with computed numbers, and the verdict that is expected."""

from __future__ import annotations

import json
import math
import re
import shutil
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from conftest import ROOT

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers import accept, catalog
from mptcplab.studies.papers.claims import ClaimJudge, JudgedClaim
from mptcplab.studies.papers.planner import QUICK_ALLOWANCE, Planner
from mptcplab.studies.papers.predicate import Domain, Fact, evaluate, parse
from mptcplab.studies.papers.reasons import formatted, read_reason
from mptcplab.studies.papers.report import verdicts
from mptcplab.studies.papers.report.page import index_page, reason
from mptcplab.studies.papers.report.verdicts import unexpected
from mptcplab.studies.papers.reproduce import Reproduction, reproduce
from mptcplab.studies.papers.selectors import check_figures
from mptcplab.study.cell import Cell
from mptcplab.study.decision import Rule
from mptcplab.study.execute import Executor, Outcome
from mptcplab.study.store import Store
from mptcplab.study.values import NotTestableError
from mptcplab.study.verdict import Finding, Verdict
from mptcplab.text import NOT_APPLICABLE

LIBRARY = catalog.load()
VALUES = {"lia": [4.0, 5.0, 6.0], "olia": [7.0, 8.0, 9.75]}


def lookup(metric: str, keys: dict[str, str]) -> np.ndarray:
    if metric != "goodput":
        raise NotTestableError(f"no {metric}")
    return np.array(VALUES[keys["cc"]])


def shown(text: str) -> str:
    return read_reason(text).shown(lookup, Domain(("lia", "olia"), ()))


# Reasons


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{mean(goodput{cc=lia}):.2f} Mbit/s", "5.00 Mbit/s"),
        ("{mean(goodput{cc=olia}) / mean(goodput{cc=lia}) - 1:+.0%} against it", "+65 % against it"),
        ("{mean(goodput{cc=lia}) / mean(goodput{cc=lia}) - 1:+.1%}", "0.0 %"),
        ("{1 - mean(goodput{cc=olia}) / mean(goodput{cc=lia}):.0%}", "-65 %"),
        ("{mean(goodput{cc=olia})}", "8.25"),
        ("it is {argmax_cc(mean(goodput{cc=*}), over=[lia,olia])}", "it is olia"),
        ("{mean(retx{cc=lia}):.1f} packets", f"{NOT_APPLICABLE} packets"),
        ("the paper's {=9.25}, see DUB-08 and sf1 in linux-pre4", "the paper's 9.25, see DUB-08 and sf1 in linux-pre4"),
    ],
)
def test_a_reason_shows_the_numbers_of_the_run(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LIA gets 9.42 of it", "a typed number: '9.42' in 'LIA gets 9.42 of it'"),
        ("LIA gets half of it", "a typed number: 'half'"),
        ("it is Twice as fast", "a typed number: 'Twice'"),
        ("{mean(goodput{cc=lia}:.2f}", "expression: "),
        ("{mean(goodput{cc=lia}) > 2}", "expression: '> 2' where"),
        ("{mean(goodput{cc=lia}):.22f}", "not a format: '.22f'"),
        ("{mean(goodput{cc=lia})", "{ without }: '{mean(goodput{cc=lia})'"),
        ("so}", "} without {: 'so}'"),
    ],
)
def test_a_mistake_in_a_reason_is_an_error(text: str, message: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        read_reason(text)
    assert str(caught.value).startswith(message)


X40 = "x" * 40


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        # A full stop or a comma after a number is none of it, and white space is shown as one blank.
        (
            "LIA   gets\n1,009.42.",
            "a typed number: '1,009.42' in 'LIA gets 1,009.42.'",
            "a measured one is {EXPRESSION:FORMAT}; one of the paper or of the setup is {=1,009.42}",
        ),
        (
            "{=3} of 4, and no more",
            "a typed number: '4' in 'of 4, and no more'",
            "a measured one is {EXPRESSION:FORMAT}; one of the paper or of the setup is {=4}",
        ),
        ("{mean(goodput{cc=lia}):2f}", "not a format: '2f'", "one such as .2f, .0% or +.1%"),
        ("{mean(goodput{cc=lia}):}", "not a format: ''", "one such as .2f, .0% or +.1%"),
        # Of a long text, the 40 characters that matter.
        (f"ab{X40} {{=3}} so{X40}}} more", "} without {: '" + X40[1:] + "}'", "write {EXPRESSION:FORMAT}"),
        (f"so {{a{X40}", "{ without }: '{a" + X40[2:] + "'", "write {EXPRESSION:FORMAT}"),
        ("it {a} is {b{c} so", "{ without }: '{b{c} so'", "write {EXPRESSION:FORMAT}"),
    ],
)
def test_a_mistake_in_a_reason_is_shown_with_what_would_be_right(text: str, message: str, hint: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        read_reason(text.replace("{a} ", "{mean(goodput{cc=lia})} "))
    assert str(caught.value) == f"{message}\n\nhint: {hint}"


def test_words_with_digits_and_words_that_only_begin_like_a_quantity_are_no_numbers() -> None:
    text = "DUB-08 is halfway from sf1 to the hundredth of linux-pre4."
    assert read_reason(text).pieces == (text,)
    assert read_reason(text).measured == []
    assert [one.format for one in read_reason("{mean(goodput{cc=a})} or {=3} or {1 - 2:+.0%}").measured] == ["", "+.0%"]


@pytest.mark.parametrize(
    ("number", "style", "expected"),
    [
        (1234.5, "", "1.23e+03"),
        (0.0523, "+.0%", "+5 %"),
        (-0.0523, ".1%", "-5.2 %"),
        # What is rounded to nothing has no sign.
        (-0.004, ".2f", "0.00"),
        (0.004, "+.1f", "0.0"),
        (-0.004, "+.0%", "0 %"),
        (0.06, "+.1f", "+0.1"),
        (-10.0, ".0f", "-10"),
    ],
)
def test_numbers_are_shown_in_a_style_or_with_three_digits(number: float, style: str, expected: str) -> None:
    assert formatted(number, style) == expected


def copied(tmp_path: Path) -> Path:
    shutil.copytree(LIBRARY.papers["dubey2023"].directory, tmp_path / "papers" / "dubey2023")
    return tmp_path / "papers"


def edited(papers: Path, before: str, after: str) -> Path:
    path = papers / "dubey2023" / "claims.toml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    return path


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('why = "LIA delivers', 'why = "LIA, 9 times,', "DUB-03: claim[2].why: a typed number: '9'"),
        ('why_if = "mean(receiver_rate', 'why_if = "avg(receiver_rate', "DUB-03: claim[2].why_if: predicate: 'avg("),
        (
            'predicate = "mean(receiver_rate{cc=lia}) ==',
            'predicate = "mean(receiver_rate{cc=lia}) =',
            "claim[2].predicate",
        ),
        ('cannot_fail = "by construction"', 'cannot_fail = "by luck"', "claim[1].cannot_fail: not right: 'by luck'"),
    ],
)
def test_a_mistake_in_a_claim_names_file_and_claim(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = edited(copied(tmp_path), before, after)
    with pytest.raises(MptcplabError) as caught:
        catalog.load(tmp_path / "papers")
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_reasons_need_no_runs_of_their_own() -> None:
    """What a reason looks at is run for the verdicts and figures of its paper already."""
    planner = Planner(LIBRARY, "sim", quick=False)
    judge = ClaimJudge(planner, Executor(planner.spec, "sim", Store(Path("unused")), 1, None))
    for paper in LIBRARY.papers.values():
        runs = {cell for one in paper.experiments.values() for cell in planner.drawn_cells(one)}
        runs |= {cell for claim in paper.claims for cell in judge.judged_cells(claim)}
        for claim in paper.claims:
            assert judge.cells(claim) <= runs, claim.id


def test_no_reason_was_lost() -> None:
    explained = [claim.id for paper in LIBRARY.papers.values() for claim in paper.claims if claim.why.measured]
    assert len(explained) >= 60


# Expected verdicts


TEXT = """\
# expect = "holds" is explained above.

[[claim]]
id = "A-1"
statement = 'expect = "open"'
expect = "holds"
why = "So."

[[claim]]
id = "A-2"
expect = "fails"  # kept
expect = "fails"
"""


def test_only_the_expected_verdict_of_the_claim_is_rewritten() -> None:
    after = accept.rewritten(TEXT, {"A-1": Verdict.NOT_TESTABLE}, Path("claims.toml"))
    assert after == TEXT.replace('\nexpect = "holds"\nwhy', '\nexpect = "not testable"\nwhy')
    assert accept.rewritten(TEXT, {}, Path("claims.toml")) == TEXT


def test_a_claim_without_the_line_is_an_error() -> None:
    with pytest.raises(MptcplabError, match=r"no id followed by expect: A-3"):
        accept.rewritten(TEXT, {"A-3": Verdict.OPEN}, Path("claims.toml"))


@pytest.mark.parametrize(("engine", "few"), [("fluid", False), ("sim", True)])
def test_only_a_full_reproduction_in_the_simulator_is_accepted(engine: str, few: bool) -> None:
    with pytest.raises(MptcplabError, match="only a full reproduction in the simulator"):
        accept.check(engine, quick=few)
    accept.check("sim", quick=False)


def reproduced(papers: Path, tmp_path: Path) -> Reproduction:
    """One experiment with one claim, in full but small."""
    library = catalog.load(papers)
    (paper,) = library.choose("dubey2023")
    small = replace(paper.experiment("DUB-CMP"), algorithms=("lia",), repetitions=3)
    library = catalog.Library({paper.id: replace(paper, experiments={small.id: small})})
    chosen = library.choose("dubey2023")
    (found,) = reproduce(library, chosen, "sim", tmp_path / "out", experiment="DUB-CMP", jobs=1)
    return found


def test_changes_in_either_direction_are_reported_and_accepted(tmp_path: Path) -> None:
    papers = copied(tmp_path)
    path = papers / "dubey2023" / "claims.toml"
    (judged,) = reproduced(papers, tmp_path).claims
    was = "open" if judged.verdict != Verdict.OPEN else "holds"
    text = path.read_text()
    place = text.index('id = "DUB-12"')
    path.write_text(text[:place] + re.sub(r'expect = "[a-z ]*"', f'expect = "{was}"', text[place:], count=1))
    found = reproduced(papers, tmp_path)
    assert [one.claim.id for one in found.unexpected] == ["DUB-12"]
    assert unexpected([found])[0].startswith(f"DUB-12: expected {was}, found {judged.verdict}: ")

    assert accept.accept([found]) == [f"DUB-12: {was} -> {judged.verdict}; check that its why explains this"]

    claims = {claim["id"]: claim for claim in tomllib.loads(path.read_text())["claim"]}
    assert claims["DUB-12"]["expect"] == judged.verdict
    assert accept.accept([reproduced(papers, tmp_path)]) == []


def test_a_reason_that_the_numbers_do_not_bear_out_is_reported(tmp_path: Path) -> None:
    papers = copied(tmp_path)
    path = papers / "dubey2023" / "claims.toml"
    text = path.read_text()
    place = text.index('id = "DUB-12"')
    (judged,) = reproduced(papers, tmp_path).claims
    rate = "mean(goodput{cc=lia,flow=mp})"
    for condition, fits in ((f"{rate} > 0", True), (f"{rate} > 10", False)):
        new = f'expect = "{judged.verdict}"\nwhy = "It gets {{{rate}:.1f}}."\nwhy_if = "{condition}"'
        path.write_text(
            text[:place] + re.sub(r'expect = ".*"\nwhy = .*', lambda _, new=new: new, text[place:], count=1)
        )
        found = reproduced(papers, tmp_path)
        (one,) = found.claims
        assert re.fullmatch(r"It gets \d\.\d\.", one.why)
        assert (found.unexpected, len(found.unfit)) == ([], 0 if fits else 1)
        assert reason(one).startswith("It gets" if fits else "These words no longer fit the numbers: It gets")
        assert len(unexpected([found])) == (0 if fits else 1)


# Quick reproductions


def test_a_quick_verdict_allows_for_bias_where_runs_are_shorter_and_is_judged_once() -> None:
    quick, full = (Planner(LIBRARY, "sim", quick=few) for few in (True, False))
    # ADW-1 lasts longer than 60 s; what happens during DOL-SC is part of the experiment, so it is not shortened.
    assert quick.rule({"ADW-1"}) == Rule(1, provisional=True, allowance=QUICK_ALLOWANCE)
    assert quick.rule({"ADW-1", "DOL-SC"}).allowance == QUICK_ALLOWANCE
    assert quick.rule({"DOL-SC"}) == Rule(1, provisional=True)
    assert full.rule({"ADW-1"}) == Rule(3)
    # A claim about printed numbers is as certain as ever.
    assert quick.rule(set()) == Rule(1)


def test_a_provisional_verdict_says_so_in_every_line(tmp_path: Path) -> None:
    paper = LIBRARY.papers["dubey2023"]
    claim = next(one for one in paper.claims if one.headline and one.expect == "holds")
    judged = JudgedClaim(claim, (Finding("rfc", Verdict.FAILS, repetitions=3, provisional=True),))
    planner = Planner(LIBRARY, "sim", quick=True)
    found = Reproduction(paper, (), (judged,), planner, Store(tmp_path), Outcome())
    assert f"{claim.id}  ✕ provisional: refuted: " in verdicts.headlines([found])[0]
    assert verdicts.verdict_table([found]).rows[0][0] == "the lab's own claims (provisional)"
    assert verdicts.unexpected([found])[0].startswith(f"{claim.id}: expected holds, found provisional: fails: ")
    index = index_page([found], "")
    assert "Its verdicts are provisional" in index
    assert index.count("(provisional)") == 1
    assert ">provisional</span> <span" in index
    # The opposite of the expected verdict is what a quick reproduction must not find; an open one is no failure.
    assert found.failed
    undecided = JudgedClaim(claim, (Finding("rfc", Verdict.OPEN, repetitions=3, provisional=True),))
    assert not replace(found, claims=(undecided,)).failed
    assert not replace(found, planner=Planner(LIBRARY, "kernel", quick=True)).failed


def test_the_summary_says_how_many_false_verdicts_the_claims_imply(tmp_path: Path) -> None:
    claims = LIBRARY.papers["dubey2023"].claims
    random = [JudgedClaim(claim, (Finding("rfc", Verdict.HOLDS, repetitions=10),)) for claim in claims[:6]]
    others = [Finding("rfc", Verdict.NOT_TESTABLE), Finding("", Verdict.FAILS, repetitions=1)]
    rest = [JudgedClaim(claim, (finding,)) for claim, finding in zip(claims[6:], others, strict=False)]
    planner = Planner(LIBRARY, "sim", quick=False)
    found = Reproduction(LIBRARY.papers["dubey2023"], (), (*random, *rest), planner, Store(tmp_path), Outcome())
    # 5 % of 6.
    assert verdicts.expected_errors([found]).startswith("6 claims were judged by repetitions.")
    assert "about 5 % of them, 0.3 claims" in verdicts.expected_errors([found])
    assert verdicts.expected_errors([replace(found, claims=tuple(rest))]) == ""


def test_a_claim_about_extremes_of_the_runs_cannot_be_decided_by_chance(tmp_path: Path) -> None:
    """Before, such claims were among those of which 5 % would be decided falsely, although they are always decided."""
    claims = LIBRARY.papers["dubey2023"].claims
    extreme = Fact("min(a{cc=x})", ">=", "0.45", "0.455", "0.45", True, 0.005, 0.005, 0.005, 10)
    mean = Fact("mean(a{cc=y})", ">=", "0.3", "0.40", "0.30", True, 0.1, 0.02, 0.17, 10)
    word = Fact("argmax_cc(a)", "==", "'x'", "x", "x", True, None, None, None, 10)
    evidence = [(extreme,), (mean,), (extreme, mean), (extreme, word), (mean,)]
    judged = tuple(
        JudgedClaim(claim, (Finding("rfc", Verdict.HOLDS, facts, repetitions=10),))
        for claim, facts in zip(claims, evidence, strict=False)
    )
    planner = Planner(LIBRARY, "sim", quick=False)
    found = Reproduction(LIBRARY.papers["dubey2023"], (), judged, planner, Store(tmp_path), Outcome())
    text = verdicts.expected_errors([found])
    assert text.startswith("3 claims were judged by repetitions.")
    assert "This leaves out 2 claims without an interval, about the smallest or largest value" in text
    assert verdicts.comparison(extreme).endswith("true, margin 0.005 in these runs, without an interval")
    assert verdicts.comparison(mean).endswith("true, margin 0.1 (0.02 to 0.17)")


@pytest.mark.parametrize("shared", [True, False])
def test_a_rank_correlation_that_varies_may_be_decided_by_chance(tmp_path: Path, shared: bool) -> None:
    """Before, one whose order is clear counted among those about extremes: its interval has no width."""
    means = {"p": 10.0, "q": 20.0, "r": 30.0}
    # Where all points share the noise, their differences are the same in all repetitions.
    noise = {point: np.array([0.5, -0.25, 0.75, -1.0]) * (1 if shared else place) for place, point in enumerate(means)}
    found = evaluate(
        parse("spearman_sweep(mean(ftt{sweep=*})) >= 0.75"),
        lambda _, keys: means[keys["sweep"]] + noise[keys["sweep"]],
        Domain((), [("p", 1.0), ("q", 2.0), ("r", 4.0)]),
    )
    (fact,) = found.facts
    assert (found.verdict, fact.left_value, fact.margin, fact.low, fact.high) == ("holds", "1.00", 0.25, 0.25, 0.25)
    judged = JudgedClaim(LIBRARY.papers["kushwah2024"].claims[0], (Finding("", found.verdict, found.facts, "", 4),))
    planner = Planner(LIBRARY, "sim", quick=False)
    one = Reproduction(LIBRARY.papers["kushwah2024"], (), (judged,), planner, Store(tmp_path), Outcome())
    assert verdicts.expected_errors([one])[:8] == ("" if shared else "1 claims")
    assert verdicts.margin(fact) == (
        ", margin 0.25 in these runs, without an interval" if shared else ", margin 0.25 (0.25 to 0.25)"
    )


def test_an_interval_without_an_end_is_valid_json(tmp_path: Path) -> None:
    endless = Fact("mean(a{cc=x}) / mean(a{cc=y})", ">=", "2", "3.00", "2", True, 1.0, -math.inf, math.inf, 10)
    claim = LIBRARY.papers["dubey2023"].claims[0]
    judged = JudgedClaim(claim, (Finding("rfc", Verdict.OPEN, (endless,), repetitions=10),))
    planner = Planner(LIBRARY, "sim", quick=False)
    data = verdicts.as_data(
        [Reproduction(LIBRARY.papers["dubey2023"], (), (judged,), planner, Store(tmp_path), Outcome())]
    )
    (fact,) = data["dubey2023"][0]["findings"][0]["facts"]
    assert (fact["margin"], fact["low"], fact["high"]) == (1, None, None)
    assert json.dumps(data, allow_nan=False)


# The paper of the recipe

RECIPE = ROOT / "docs" / "cookbook" / "paper.md"


def own_paper(root: Path, *changes: tuple[str, str]) -> catalog.Library:
    """The files of the recipe, with other texts in place of some."""
    files = dict(re.findall(r"as `papers/doe2026/([\w.]+)`:\n\n```toml\n(.*?)```", RECIPE.read_text(), re.DOTALL))
    assert sorted(files) == ["claims.toml", "pair.toml", "paper.toml"]
    for old, new in changes:
        changed = {name: content.replace(old, new) for name, content in files.items() if name != "pair.toml"}
        assert changed.items() - files.items()
        files |= changed
    folder = root / "papers" / "doe2026"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return catalog.load(root / "papers")


def test_the_paper_of_the_recipe_is_planned_as_it_says(tmp_path: Path) -> None:
    library = own_paper(tmp_path)
    judge = ClaimJudge(Planner(library, "sim", quick=False), cast(Executor, None))
    (claim,) = library.papers["doe2026"].claims
    assert claim.expect == Verdict.HOLDS
    cells = {Cell("DOE-A", label, "low", "linux-acked") for label in ("lia", "uncoupled-reno")}
    assert judge.cells(claim) == cells
    for cell in cells:
        assert [flow.cc for flow in judge.planner.spec(cell).topology.connections] == [
            cell.label.removeprefix("uncoupled-"),
            "cubic",
        ]
    check_figures(judge.planner, library.experiments["DOE-A"])


def test_the_page_about_the_files_lists_exactly_the_keys_that_they_may_have() -> None:
    text = (ROOT / "papers" / "README.md").read_text().partition("\n## Keys\n")[2].partition("\n## ")[0]
    listed = [
        [key for row in re.findall(r"^\| (`.*?`) \|", part, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)]
        for part in text.split("| key |")[1:]
    ]

    def keys(one: type, *derived: str) -> list[str]:
        return sorted({field.name for field in fields(one)} - {*derived})

    assert [sorted(part) for part in listed] == [
        sorted({*keys(catalog.Paper, "id", "directory", "claims", "changes"), "profile", "dialect"}),
        sorted(
            {*keys(catalog.Experiment, "id", "paper", "spans", "parameters", "scheduler")}
            | {"phases", "bins", "sweep_axis"}
        ),
        keys(catalog.FigureSpec),
        keys(catalog.Claim),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("sweep=low", "sweep=lo"), "DOE-1: no such sweep: 'lo'\n\nhint: one of high, low"),
        (("goodput{cc=lia", "gput{cc=lia"), "DOE-1: no such metric in claims and figures: 'gput'"),
        (("cc=lia,", "cc=lia,flow=tpc,"), "DOE-1: no such flow: 'tpc'\n\nhint: one of *, mp, tcp, tcp_active"),
        (('"holds"', '"holds"\nwhy = "It is {mean(goodput{flow=ab}):.1f}."'), "DOE-1: why: no such flow: 'ab'"),
        (
            ('"holds"', '"holds"\nwhy = "So."\nwhy_if = "mean(goodput{sf=sf7}) > 1"'),
            "DOE-1: why_if: no such subflow of mp: 'sf7'",
        ),
        (("cc=lia,", "cc=lai,"), "DOE-1: PAPER: experiments.DOE-A: lai, low: no such algorithm or treatment: 'lai'"),
    ],
)
def test_a_mistake_in_a_claim_is_named_with_its_file_before_anything_is_run(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    library = own_paper(tmp_path, change)
    judge = ClaimJudge(Planner(library, "sim", quick=False), cast(Executor, None))
    paper = library.papers["doe2026"]
    with pytest.raises(MptcplabError) as caught:
        judge.cells(paper.claims[0])
    message = message.replace("PAPER", str(paper.directory / "paper.toml"))
    assert str(caught.value).startswith(f"{paper.directory / 'claims.toml'}: {message}")
    assert "command line" not in str(caught.value)
