"""Priors of claims: how they are read, which of them are scored, their Brier score, and their calibration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers.catalog import Claim
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.priors import IGNORANT, Bin, Prior, Priors, brier, calibration, load, quality
from mptcplab.study.verdict import Finding, Verdict


def written(folder: Path, text: str) -> Path:
    (folder / "priors.json").write_text(text)
    return folder


def of(**given: Any) -> str:
    """The text of a file with one prior."""
    return json.dumps({"written": "1999-12-31", "priors": [{"id": "A", "why": "", "probability_true": 0.5, **given}]})


def judged(name: str, verdict: Verdict, kind: Any = "shape", cannot_fail: Any = "") -> JudgedClaim:
    claim = Claim(name, "paper", kind, "It does", "1 < 2", Verdict.HOLDS, cannot_fail=cannot_fail)
    # What decides is the finding in the paper's own profile, the first.
    return JudgedClaim(claim, (Finding("rfc", verdict), Finding("linux-acked", Verdict.OPEN)))


# Reading


def test_priors_are_read_by_claim_with_their_date(tmp_path: Path) -> None:
    rows = [
        {"id": "A-1", "expected": "fail", "probability_true": 0, "why": " Odd.\n"},
        {"id": "A-2", "probability_true": 0.25, "why": "Rare."},
        {"id": "B-1", "probability_true": 1, "why": "Sure."},
    ]
    found = load(written(tmp_path, json.dumps({"version": 1, "written": "1999-12-31", "priors": rows})))
    assert found.written == "1999-12-31"
    assert found.of == {"A-1": Prior(0.0, "Odd."), "A-2": Prior(0.25, "Rare."), "B-1": Prior(1.0, "Sure.")}


def test_without_the_file_there_are_no_priors(tmp_path: Path) -> None:
    found = load(tmp_path)
    assert (found.written, found.of) == ("", {})
    assert found.scored([judged("A-1", Verdict.HOLDS)]) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Expecting property name"),
        ("[]", "list indices must be integers"),
        ('{"priors": []}', "'written'"),
        (of(why=None), "'NoneType' object has no attribute 'strip'"),
        (of(probability_true="often"), "could not convert string to float: 'often'"),
        (of(probability_true=None), "float() argument must be"),
    ],
)
def test_a_file_that_is_not_right_is_named_with_what_it_should_have(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        load(written(tmp_path, text))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'priors.json'}: not right: {problem}")
    assert message.endswith("\n\nhint: it has written, and priors with id, probability_true and why")


@pytest.mark.parametrize(("probability", "shown"), [(-0.01, "-0.01"), (1.01, "1.01"), (float("nan"), "nan")])
def test_a_probability_outside_its_range_names_the_claim(tmp_path: Path, probability: float, shown: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        load(written(tmp_path, of(probability_true=probability)))
    hint = "hint: a probability lies between 0 and 1"
    assert str(caught.value) == f"{tmp_path / 'priors.json'}: A: not right: {shown}\n\n{hint}"


# Scoring


def test_claims_with_a_prior_are_scored_if_measurements_decided_them() -> None:
    """Not those that are open or not testable, that could not fail, or that a paper contradicts by itself."""
    known = Priors("1999-12-31", {f"A-{i}": Prior(i / 10) for i in range(1, 8)})
    claims = [
        judged("A-2", Verdict.FAILS),
        judged("A-1", Verdict.HOLDS),
        judged("A-3", Verdict.OPEN),
        judged("A-4", Verdict.NOT_TESTABLE),
        judged("A-5", Verdict.HOLDS, cannot_fail="calibrated"),
        judged("A-6", Verdict.FAILS, kind="consistency"),
        judged("A-7", Verdict.FAILS, cannot_fail="by construction"),
        judged("A-8", Verdict.HOLDS),
    ]
    assert known.scored(claims) == [(0.2, False), (0.1, True), (0.7, False)]


def test_the_quality_of_priors_is_told_beside_those_of_two_simple_forecasts() -> None:
    """Three of five held, 60 %; saying that of each scores 0.6 * 0.4.

    (0.1^2 + 0.3^2 + 0.8^2 + 0.5^2 + 0.4^2) / 5 = 1.15 / 5.
    """
    scored = [(0.9, True), (0.3, False), (0.2, True), (0.5, True), (0.4, False)]
    assert brier(scored) == pytest.approx(0.23)
    assert quality(Priors("1999-12-31"), scored) == (
        "On 1999-12-31, before mptcplab ran the experiments, we wrote down how probable it is that each claim holds "
        "when it is repeated as its paper describes it; theory and a scratch model were the grounds. Of the claims "
        "that were decided by measurements, 5 had a prior. The Brier score, the mean squared distance of the "
        "probability from what came out, is 0.230. Saying 50 % of every claim scores 0.25, and saying the part that "
        "was reproduced (60 %) of each 0.240."
    )
    # What knows nothing says 50 %.
    assert brier([(0.5, True), (0.5, False)]) == IGNORANT
    assert quality(Priors(), []) == "There are no priors for claims that measurements decided."


@pytest.mark.parametrize(
    ("probability", "low", "high"),
    [
        (0.0, 0.0, 0.1),
        (0.0999, 0.0, 0.1),
        (0.1, 0.1, 0.3),
        (0.2999, 0.1, 0.3),
        (0.3, 0.3, 0.7),
        (0.6999, 0.3, 0.7),
        (0.7, 0.7, 0.9),
        (0.8999, 0.7, 0.9),
        (0.9, 0.9, 1.0),
        (1.0, 0.9, 1.0),
    ],
)
def test_a_prior_at_an_edge_is_in_the_bin_above_and_certainty_in_the_last(
    probability: float, low: float, high: float
) -> None:
    assert calibration([(probability, False)]) == [Bin(low, high, 1, probability, 0.0)]


def test_a_bin_has_the_mean_prior_and_the_part_that_held() -> None:
    scored = [(0.125, True), (0.75, True), (0.25, False), (0.875, True), (0.1875, False), (0.125, False)]
    # (0.125 + 0.25 + 0.1875 + 0.125) / 4, of which one held; nothing between 30 and 70 %.
    assert calibration(scored) == [Bin(0.1, 0.3, 4, 0.171875, 0.25), Bin(0.7, 0.9, 2, 0.8125, 1.0)]
    assert calibration([]) == []
