"""Means with their intervals, bounds, and the words for verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from mptcplab.study.statistics import Bound, Estimate, decimals, resamples
from mptcplab.study.verdict import Finding, Verdict, counts

HOLDS, FAILS, OPEN, NOT_TESTABLE = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN, Verdict.NOT_TESTABLE

# Estimates


@pytest.mark.parametrize(
    ("values", "mean", "half"),
    [
        ([7.0], 7.0, None),
        # A standard deviation of sqrt(2), and Student's quantile of 1 degree of freedom: 12.7062 sqrt(2) / sqrt(2).
        ([1.0, 3.0], 2.0, 12.7062),
        # 4.3027 * 3 / sqrt(3).
        ([2.0, 5.0, 8.0], 5.0, 4.3027 * 3**0.5),
        # Squares of the deviations: 4, 1, 0, 9; 3.1824 sqrt(14/3) / 2.
        ([8.0, 9.0, 10.0, 13.0], 10.0, 3.1824 * (14 / 3) ** 0.5 / 2),
        ([4.0, 4.0, 4.0], 4.0, 0.0),
    ],
)
def test_a_mean_has_students_interval_from_two_repetitions_on(
    values: list[float], mean: float, half: float | None
) -> None:
    found = Estimate.of(values)
    assert (found.mean, found.n) == (mean, len(values))
    assert found.half == (None if half is None else pytest.approx(half, rel=1e-4))
    assert Estimate.of(np.array(values)) == found


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(7.125, None, 1), "7.12"),
        (Estimate(12.5, 0.25, 3), "12.5 ± 0.2"),
        # As many digits as the larger of both needs, whatever its sign.
        (Estimate(0.5, 12.34, 3), "0.5 ± 12.3"),
        (Estimate(-123.4, 0.5, 3), "-123 ± 0"),
        (Estimate(0.0, 0.0, 3), "0.00 ± 0.00"),
    ],
)
def test_an_estimate_is_shown_with_three_digits(estimate: Estimate, text: str) -> None:
    assert str(estimate) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((424.0, 0), (12345.0, 0), (100.0, 0), (99.0, 1), (10.0, 1), (9.87, 2), (1.0, 2), (0.5, 3), (0.0123, 4)),
        *((-0.0123, 4), (-424.0, 0), (0.0, 2), (math.inf, 2), (math.nan, 2)),
    ],
)
def test_decimals_show_three_digits_of_a_number(value: float, expected: int) -> None:
    assert decimals(value) == expected


def test_resamples_begin_with_the_sample_and_are_always_the_same() -> None:
    found = resamples(4, 50)
    assert found.shape == (51, 4)
    assert found[0].tolist() == [0, 1, 2, 3]
    assert (found.min(), found.max()) == (0, 3)
    # Every resample is drawn anew, and those of another number of repetitions are others.
    assert len({tuple(row) for row in found.tolist()}) > 30
    assert not (found[1:, :3] == resamples(3, 50)[1:]).all()
    resamples.cache_clear()
    assert (resamples(4, 50) == found).all()
    # Verdicts that were published come from these.
    assert resamples(4).shape == (10_001, 4)
    assert resamples(3)[1:4].tolist() == [[1, 2, 0], [2, 1, 0], [1, 0, 2]]


# Bounds


@pytest.mark.parametrize(
    ("bound", "admitted", "refused"),
    [
        (Bound(0.75, 1.25), [0.75, 1.0, 1.25], [0.7, 1.3]),
        (Bound(low=0.75), [0.75, 99.0], [0.7]),
        (Bound(high=1.25), [1.25, -99.0], [1.3]),
        (Bound(0.0, 0.0), [0.0], [-0.1, 0.1]),
        (Bound(), [-99.0, 0.0, 99.0], []),
    ],
)
def test_a_bound_admits_its_ends_and_what_is_between(
    bound: Bound, admitted: Sequence[float], refused: Sequence[float]
) -> None:
    assert all(bound.admits(value) for value in admitted)
    assert not any(bound.admits(value) for value in refused)


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (Bound(0.7, 1.15), "0.7 to 1.15"),
        (Bound(low=0.98), "at least 0.98"),
        (Bound(high=1.5), "at most 1.5"),
        (Bound(high=0), "0"),
        (Bound(0.0, 0.5), "0 to 0.5"),
        (Bound(high=0, each=True), "each 0"),
        (Bound(low=2, shown=True), "(at least 2)"),
        (Bound(high=-1, each=True, shown=True), "(each at most -1)"),
    ],
)
def test_a_bound_is_told_in_words(bound: Bound, text: str) -> None:
    assert str(bound) == text


# Verdicts


@pytest.mark.parametrize(
    ("decided", "verdict", "text", "mark"),
    [
        (True, HOLDS, "holds", "✓"),
        (False, FAILS, "fails", "✕"),
        (None, OPEN, "open", "?"),
        (..., NOT_TESTABLE, "not testable", "\N{EN DASH}"),
    ],
)
def test_a_verdict_has_a_word_and_a_mark(decided: bool | None, verdict: Verdict, text: str, mark: str) -> None:
    assert (str(verdict), verdict.mark) == (text, mark)
    if verdict != NOT_TESTABLE:
        assert Verdict.of(decided) == verdict


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([HOLDS, OPEN, FAILS, NOT_TESTABLE], FAILS),
        ([HOLDS, OPEN, NOT_TESTABLE], OPEN),
        ([NOT_TESTABLE, HOLDS, HOLDS], HOLDS),
        ([NOT_TESTABLE], NOT_TESTABLE),
        ([], NOT_TESTABLE),
    ],
)
def test_several_statements_hold_together_if_each_that_can_be_tested_does(
    verdicts: list[Verdict], expected: Verdict
) -> None:
    assert Verdict.joint(verdicts) == expected


def test_a_finding_says_whether_it_is_provisional() -> None:
    assert Finding("x", FAILS).text == "fails"
    assert Finding("x", FAILS).repetitions == 0
    assert Finding("x", NOT_TESTABLE, provisional=True).text == "provisional: not testable"


def test_verdicts_are_counted_in_the_order_of_the_vocabulary() -> None:
    found = counts([OPEN, FAILS, OPEN, HOLDS, OPEN, FAILS])
    assert list(found.items()) == [("holds", 1), ("fails", 2), ("open", 3), ("not testable", 0)]
