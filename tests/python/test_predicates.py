"""The language of claims: how predicates are read, and what their parts are worth."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pytest

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers.predicate import Domain, Evaluation, evaluate, look_up, parse, value
from mptcplab.studies.papers.predicate.choice import Choice, Named, combined, extreme, transformed
from mptcplab.studies.papers.predicate.correlations import RankCorrelation
from mptcplab.studies.papers.predicate.evaluate import shown
from mptcplab.study.decision import Joint, Margin, Rule
from mptcplab.study.values import NotTestableError
from mptcplab.study.verdict import Verdict

# Three repetitions per treatment, with means 5, 8, 6 and 2; those of `b` are skewed, `two` has one repetition less.
RATES = {"a": [4.0, 5.0, 6.0], "b": [7.0, 7.5, 9.5], "c": [2.0, 9.0, 7.0], "d": [0.5, 2.5, 3.0], "two": [1.0, 2.0]}
# Means over a sweep at x = 1, 2 and 10: neither a line nor in one direction.
POINTS = (("p", 1.0), ("q", 2.0), ("r", 10.0))
SWEEP = {"p": [0.5, 1.5], "q": [2.5, 3.5], "r": [1.75, 2.25]}
DOMAIN = Domain(("a", "b", "c"), POINTS)


def lookup(metric: str, keys: Mapping[str, str]) -> np.ndarray:
    if metric == "x":
        return np.array({"a": [1.0], "b": [2.0], "c": [3.0], "d": [9.0]}[keys["cc"]])
    if metric == "flat":
        return np.full(2, 7.0)
    return np.array(SWEEP[keys["sweep"]] if "sweep" in keys else RATES[keys["cc"]])


def evaluated(text: str, tolerance: float | None = None, rule: Rule | None = None) -> Evaluation:
    return evaluate(parse(text), lookup, DOMAIN, tolerance, rule)


def valued(text: str) -> float | str:
    return value(parse(text, "expression"), lookup, DOMAIN)


# Reading


@pytest.mark.parametrize(
    ("text", "place", "wanted"),
    [
        ("1 <", "", "a number, a metric or a function"),
        ("1 < 2 or", "", "a number, a metric or a function"),
        ("? 2", "? 2", "a number, a metric or a function"),
        ("1 < 2 and rate > 4", "rate > 4", "a number, a metric or a function"),
        ("all(a in 5: 1 < 2)", "5: 1 < 2)", "a set in brackets"),
        ("max_cc(1, over=5) < 2", "5) < 2", "a set in brackets"),
        ("all(5 in [x]: 1 < 2)", "5 in [x]: 1 < 2)", "a name"),
        ("1 < 2 3", "3", "an operator"),
        ("1 ? 2", "? 2", "an operator"),
        ("1 < 2 )", ")", "the end"),
        ("abs 3 < 1", "3 < 1", "'('"),
        ("(1 < 2", "", "')'"),
        ("abs(3 < 1)", "< 1)", "')'"),
        ("all(a of [x]: 1 < 2)", "of [x]: 1 < 2)", "'in'"),
        ("equiv(1, 2 3)", "3)", "','"),
        ("all(a in [x] 1 < 2)", "1 < 2)", "':'"),
        ("max_cc(1, over [a]) < 2", "[a]) < 2", "'='"),
        # 40 characters are enough to find the place.
        ("1 < 2 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12", "3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12", "an operator"),
        ("1 < 2 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 123", "3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12", "an operator"),
    ],
)
def test_a_mistake_is_shown_with_what_should_be_in_its_place(text: str, place: str, wanted: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        parse(text)
    assert str(caught.value) == f"predicate: {place!r} where {wanted} should be: {text}"


def test_an_expression_is_no_comparison_and_a_predicate_is_one() -> None:
    with pytest.raises(MptcplabError) as caught:
        parse("1 < 2", "expression")
    assert str(caught.value) == "expression: '< 2' where the end should be: 1 < 2"
    assert valued("1 + 2") == 3
    with pytest.raises(MptcplabError, match=r"^predicate: '1 \+ 2': a number where a comparison should be: 1 \+ 2$"):
        parse("1 + 2")


@pytest.mark.parametrize(
    ("text", "found"),
    [("'word'", "a word"), ("[1,2]", "a set"), ("(1 < 2)", "a comparison"), ("(false)", "a comparison")],
)
def test_an_expression_without_a_value_is_refused_when_it_is_read(text: str, found: str) -> None:
    """It used to be read, and ended the program when its value was asked for."""
    with pytest.raises(MptcplabError) as caught:
        parse(text, "expression")
    why = f"{found} where a number or the name of a treatment should be"
    assert str(caught.value) == f"predicate: {text.strip('()')!r}: {why}: {text}"


@pytest.mark.parametrize(
    ("text", "part", "why"),
    [
        ("1 < 2 and 3", "3", "a number where a comparison should be"),
        ("1 or 1 < 2", "1", "a number where a comparison should be"),
        ("1 < 2 or 'a'", "'a'", "a word where a comparison should be"),
        ("all(a in [x]: 5)", "5", "a number where a comparison should be"),
        ("any(a in [x]: 1 < 2 and [a])", "[a]", "a set where a comparison should be"),
        ("'a' + 1 > 2", "'a'", "a word where a number should be"),
        ("1 * [2] > 2", "[2]", "a set where a number should be"),
        ("-'a' > 1", "'a'", "a word where a number should be"),
        ("abs([1,2]) > 1", "[1,2]", "a set where a number should be"),
        ("max_cc('a', over=[a]) > 1", "'a'", "a word where a number should be"),
        ("(1 < 2) + 3 > 1", "1 < 2", "a comparison where a number should be"),
        ("(1 < 2 and 3 < 4) > 1", "(1 < 2 and 3 < 4)", "a comparison where a number should be"),
        ("(1 < 2 or 3 < 4) > 1", "(1 < 2 or 3 < 4)", "a comparison where a number should be"),
        ("(any(a in [x]: 1 < 2)) > 1", "(any(a in [x]: 1 < 2))", "a comparison where a number should be"),
        ("(equiv(1, 2, 0.1)) > 1", "(equiv(1, 2, 0.1))", "a comparison where a number should be"),
        ("(false) > 1", "(false)", "a comparison where a number should be"),
        ("equiv(1, 'a', 0.1)", "'a'", "a word where a number should be"),
        ("equiv(1, 2, argmax_cc(1, over=[a]))", "argmax_cc(1, over=[a])", "the name of a treatment where a number"),
        ("'a' < 1", "'a'", "a word where a number should be"),
        ("1 < 'a'", "'a'", "a word where a number should be"),
        ("1 < 2 < 'a'", "'a'", "a word where a number should be"),
        ("'a' in [1,2]", "'a'", "a word where a number should be"),
        ("1 == 'a'", "'a'", "a number and a word cannot be compared"),
        ("1 != [1]", "[1]", "a number and a set cannot be compared"),
        ("1 < 2 == 'a'", "'a'", "a number and a word cannot be compared"),
        ("[1] == 'a'", "'a'", "a set and a word cannot be compared"),
        ("argmin_cc(1, over=[a]) == 5", "5", "a number and the name of a treatment cannot be compared"),
        (
            "argmax_cc(1, over=[a]) == argmin_cc(1, over=[a])",
            "argmin_cc(1, over=[a])",
            "the name of a treatment cannot be compared",
        ),
        ("1 in 2", "2", "after `in` there are two numbers in brackets"),
        ("1 in [1]", "[1]", "after `in` there are two numbers in brackets"),
        ("1 in [1,2,3]", "[1,2,3]", "after `in` there are two numbers in brackets"),
        ("1 in [1,b]", "[1,b]", "after `in` there are two numbers in brackets"),
        ("1 in pairs([1,2])", "pairs([1,2])", "after `in` there are two numbers in brackets"),
        ("abs(1, 2) < 1", "abs(1, 2)", "abs has 2 arguments"),
        ("log(1, 2) < 1", "log(1, 2)", "log has 2 arguments"),
        ("mean_sweep(1, 2) < 1", "mean_sweep(1, 2)", "mean_sweep has 2 arguments"),
        ("max_cc(1, 2, over=[a]) < 1", "max_cc(1, 2, over=[a])", "max_cc has 2 arguments"),
        ("argmax_cc(over=[a]) == 'a'", "argmax_cc(over=[a])", "argmax_cc has 0 arguments"),
        ("corr_over_cc(1, 2, 3) < 1", "corr_over_cc(1, 2, 3)", "corr_over_cc has 3 arguments"),
        ("corr_over_cc(1, over=[a]) < 1", "corr_over_cc(1, over=[a])", "corr_over_cc has 1 arguments"),
        ("min_cc(1) < 1", "min_cc(1)", "it needs over=[...], the treatments that it ranges over"),
        ("max(1, over=[a]) < 1", "max(1, over=[a])", "over=[...] belongs to functions that range over treatments"),
        ("std('a') < 1", "std('a')", "no metric in it has a value per repetition"),
        (
            "mean(x{} + corr_over_cc(x{}, x{})) < 1",
            "mean(x{} + corr_over_cc(x{}, x{}))",
            "inside it is one number per repetition, without a statistic or a comparison",
        ),
    ],
)
def test_a_part_that_means_nothing_in_its_place_is_refused(text: str, part: str, why: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith(f"predicate: {part!r}: {why}")
    assert message.endswith(f": {text}")


@pytest.mark.parametrize(
    "text",
    [
        "'a' == argmax_cc(1, over=[a])",
        "argmax_cc(1, over=[a]) != 'a'",
        "[1,2] == [1,2]",
        "1 < 2 < 3 == 4",
        "corr_over_cc(x{cc=*}, 2, over=[a]) < 1",
        "max(1, 2, 3) > 2",
        "mean(max(x{cc=a}, 3)) > 2",
        "mean(min_cc(x{cc=*}, over=[a])) > 2",
    ],
)
def test_what_means_something_is_read(text: str) -> None:
    assert parse(text) is parse(text)


# Comparisons


@pytest.mark.parametrize(
    ("text", "held"),
    [
        *(("2 < 2", False), ("1.75 < 2", True), ("2.25 < 2", False)),
        *(("2 > 2", False), ("2.25 > 2", True), ("1.75 > 2", False)),
        *(("2 <= 2", True), ("2.25 <= 2", False), ("2 >= 2", True), ("1.75 >= 2", False)),
        *(("2 == 2", True), ("2 == 2.25", False), ("2 != 2", False), ("2 != 2.25", True), ("2.25 != 2", True)),
        *(("2 in [2,3]", True), ("3 in [2,3]", True), ("1.75 in [2,3]", False), ("3.25 in [2,3]", False)),
        *(("1 < 2 < 3", True), ("1 < 3 < 2", False), ("3 < 1 < 2", False), ("1 < 2 == 2", True)),
        *(("'a' == 'a'", True), ("'a' == 'b'", False), ("'a' != 'b'", True), ("'a' != 'a'", False)),
        *(("[1,b] == [1,b]", True), ("[1,b] == [1,c]", False), ("[1] != [1,1]", True)),
        *(("1 < 2 and 3 < 4", True), ("1 < 2 and 4 < 3", False), ("2 < 1 and 3 < 4", False)),
        *(("1 < 2 or 4 < 3", True), ("2 < 1 or 3 < 4", True), ("2 < 1 or 4 < 3", False)),
        *(("2 < 1 and 2 < 1 or 1 < 2", True), ("2 < 1 and (2 < 1 or 1 < 2)", False)),
        *(("false", False), ("false or 1 < 2", True)),
        *(("max(1, 3) > 2", True), ("max(1, 3) < 2", False), ("min(1, 3) < 2", True), ("min(1, 3) > 2", False)),
        *(("2 < max(1, 3)", True), ("2 > max(1, 3)", False), ("2 > min(1, 3)", True), ("2 < min(1, 3)", False)),
        *(("max(2, 1) > 2", False), ("max(2, 1) >= 2", True), ("2 > max(2, 1)", False), ("2 >= max(2, 1)", True)),
        *(("min(2, 3) < 2", False), ("min(2, 3) <= 2", True), ("max(1, 2) == min(2, 3)", True)),
    ],
)
def test_a_comparison_is_true_or_not_at_its_bound_and_on_both_sides(text: str, held: bool) -> None:
    found = evaluated(text)
    assert (found.held, found.verdict) == (held, Verdict.of(held))
    if len(found.facts) == 1 and isinstance(found.statement, Margin):
        assert found.facts[0].held == held


@pytest.mark.parametrize(
    ("text", "tolerance", "held"),
    [
        # From three quarters of the right side to five quarters of it.
        *(("5 == 4", 0.25, True), ("5.01 == 4", 0.25, False), ("3 == 4", 0.25, True), ("2.99 == 4", 0.25, False)),
        *(("-5 == -4", 0.25, True), ("-5.01 == -4", 0.25, False), ("-3 == -4", 0.25, True)),
        *(("-2.99 == -4", 0.25, False), ("-0.5 == -0.5", 0.25, True), ("0.5 == 0.5", 0.25, True)),
        *(("0 == 0", 0.25, True), ("0.01 == 0", 0.25, False), ("5 != 4", 0.25, False), ("5.01 != 4", 0.25, True)),
        # Without a tolerance numbers need not be the same to the last digit.
        *(("1000000.5 == 1000000", None, True), ("1000002 == 1000000", None, False)),
        *(("999999.5 == 1000000", None, True), ("999998 == 1000000", None, False)),
        *(("1000000.5 == 1000000", 0.0, False), ("7 == 7", 0.0, True)),
        ("'a' == 'b'", 0.25, False),
    ],
)
def test_equal_means_within_the_tolerance_of_the_right_side(text: str, tolerance: float | None, held: bool) -> None:
    assert evaluated(text, tolerance).held == held


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("argmax_cc(rate{cc=*}, over=[a,b,c]) == 'b'", True),
        ("'b' == argmax_cc(rate{cc=*}, over=[a,b,c])", True),
        ("argmax_cc(rate{cc=*}, over=[a,b,c]) == 'c'", False),
        ("argmax_cc(rate{cc=*}, over=[a,c]) == 'b'", False),
        ("argmax_cc(rate{cc=*}, over=[a,c]) != 'b'", True),
        ("argmin_cc(rate{cc=*}, over=[b,a,c]) == 'a'", True),
        ("argmin_cc(rate{cc=*}, over=[b,a,c]) == 'b'", False),
        ("argmin_cc(rate{cc=*}, over=[b]) == 'b'", True),
        # Neither is ahead of the other.
        ("argmax_cc(rate{cc=*} - rate{cc=*}, over=[a,b]) == 'a'", True),
        ("argmax_cc(rate{cc=*} - rate{cc=*}, over=[a,b]) == 'b'", True),
    ],
)
def test_a_treatment_is_the_largest_if_no_other_is_larger(text: str, held: bool) -> None:
    assert evaluated(text).held == held


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("max(rate{cc=a}, rate{cc=b}) > 7.5", "rate{cc=a} > 7.5 or rate{cc=b} > 7.5"),
        ("max(rate{cc=a}, rate{cc=b}) < 7.5", "rate{cc=a} < 7.5 and rate{cc=b} < 7.5"),
        ("min(rate{cc=a}, rate{cc=b}) > 5.5", "rate{cc=a} > 5.5 and rate{cc=b} > 5.5"),
        ("min(rate{cc=a}, rate{cc=b}) < 5.5", "rate{cc=a} < 5.5 or rate{cc=b} < 5.5"),
        ("false or max_cc(rate{cc=*}, over=[a,b]) > 7.5", "false or rate{cc=a} > 7.5 or rate{cc=b} > 7.5"),
        ("log(min_cc(rate{cc=*}, over=[a,b])) > 2", "log(rate{cc=a}) > 2 and log(rate{cc=b}) > 2"),
        (
            "argmin_cc(rate{cc=*}, over=[a,b,c]) == 'c'",
            "rate{cc=a} >= rate{cc=c} and rate{cc=b} >= rate{cc=c}",
        ),
        (
            "rate{cc=a} < rate{cc=c} < rate{cc=b}",
            "rate{cc=a} < rate{cc=c} and rate{cc=c} < rate{cc=b}",
        ),
        ("rate{cc=c} in [5,7]", "rate{cc=c} >= 5 and rate{cc=c} <= 7"),
        ("all(k in [a,b]: rate{cc=$k} > 6)", "rate{cc=a} > 6 and rate{cc=b} > 6"),
        ("any(k in [a,b]: rate{cc=$k} > 6)", "rate{cc=a} > 6 or rate{cc=b} > 6"),
        (
            "all(k in pairs([a,c,b]): rate{cc=$k.0} > rate{cc=$k.1} - 1)",
            "rate{cc=a} > rate{cc=c} - 1 and rate{cc=a} > rate{cc=b} - 1 and rate{cc=c} > rate{cc=b} - 1",
        ),
    ],
)
def test_a_statement_about_several_is_decided_as_one_that_names_each(text: str, meaning: str) -> None:
    intervals = [Rule().interval(one, one, 3) for one in (evaluated(text).statement, evaluated(meaning).statement)]
    assert intervals[0] == intervals[1]
    assert intervals[0].low < intervals[0].value < intervals[0].high


# Choices


TWO_SIX = Choice((2.0, 6.0), largest=True)


@pytest.mark.parametrize(
    ("operator", "left", "right", "parts", "largest"),
    [
        ("+", TWO_SIX, 3.0, [5, 9], True),
        ("+", 3.0, TWO_SIX, [5, 9], True),
        ("-", TWO_SIX, 3.0, [-1, 3], True),
        # 3 less the largest is the smallest of the differences.
        ("-", 3.0, TWO_SIX, [1, -3], False),
        ("*", TWO_SIX, 0.5, [1, 3], True),
        ("*", 0.5, TWO_SIX, [1, 3], True),
        ("*", TWO_SIX, -0.5, [-1, -3], False),
        ("*", -0.5, TWO_SIX, [-1, -3], False),
        ("/", TWO_SIX, 0.5, [4, 12], True),
        ("/", TWO_SIX, -0.5, [-4, -12], False),
        ("/", 12.0, TWO_SIX, [6, 2], False),
        ("/", -12.0, TWO_SIX, [-6, -2], True),
        # 12 / x falls on either side of 0.
        ("/", 12.0, Choice((-2.0, -6.0), largest=True), [-6, -2], False),
        ("*", Choice((2.0, 6.0), largest=False), -2.0, [-4, -12], True),
    ],
)
def test_what_rises_or_falls_with_a_choice_is_a_choice(
    operator: str, left: object, right: object, parts: list[float], largest: bool
) -> None:
    found = combined(operator, left, right)
    assert isinstance(found, Choice)
    assert ([float(part) for part in found.parts], found.largest) == (parts, largest)


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        # The sign differs between resamples, or is none.
        ("*", TWO_SIX, np.array([-1.0, 2.0]), [-6, 12]),
        ("*", TWO_SIX, np.array([0.0, 2.0]), [0, 12]),
        ("*", np.array([0.0, -2.0]), TWO_SIX, [0, -12]),
        ("/", TWO_SIX, np.array([-1.0, 2.0]), [-6, 3]),
        # 12 / x neither rises nor falls from -2 to 6.
        ("/", 12.0, Choice((-2.0, 6.0), largest=True), 2),
        ("*", Choice((-2.0, 6.0), largest=False), Choice((-1.0, 3.0), largest=True), -6),
        ("/", np.array([1.0, -3.0]), TWO_SIX, [1 / 6, -0.5]),
    ],
)
def test_a_choice_is_taken_as_it_is_where_nothing_is_known_of_the_direction(
    operator: str, left: object, right: object, expected: object
) -> None:
    found = combined(operator, left, right)
    assert not isinstance(found, Choice)
    assert np.asarray(found).tolist() == expected


@pytest.mark.parametrize(
    ("signs", "found"),
    [
        # All of one sign: a choice between products, in which the largest factor is -0.25 or 0.5.
        *(((0.5, 0.25), 3.0), ((-0.5, -0.25), -1.5)),
        # Of either sign: 6 * 0.25.
        ((-0.5, 0.25), 1.5),
    ],
)
def test_a_product_of_two_choices_is_that_of_what_they_choose(signs: tuple[float, float], found: float) -> None:
    product = combined("*", TWO_SIX, Choice(signs, largest=True))
    assert isinstance(product, Choice)
    assert float(np.asarray(product)) == found


def test_a_choice_is_the_largest_or_smallest_of_every_resample() -> None:
    parts = (np.array([1.0, 5.0, 3.0]), np.array([4.0, 2.0, 3.0]), np.array([0.0, 9.0, 3.0]))
    assert np.asarray(Choice(parts, largest=True)).tolist() == [4, 9, 3]
    assert np.asarray(Choice(parts, largest=False)).tolist() == [0, 2, 3]
    assert extreme(parts[:1], largest=True) is parts[0]
    assert extreme(parts, largest=False) == Choice(parts, largest=False)
    nested = Choice((1.0, Choice((100.0, 10.0), largest=False)), largest=True)
    found = transformed(np.log10, nested)
    assert (found.largest, float(found.parts[0])) == (True, 0)
    assert found.parts[1] == Choice((2.0, 1.0), largest=False)


def test_a_name_is_that_of_the_sample_and_not_of_a_resample() -> None:
    table = np.array([[2.0, 9.0], [5.0, 1.0], [3.0, 4.0]])
    assert Named(("u", "v", "w"), table, largest=True).found == "v"
    assert Named(("u", "v", "w"), table, largest=False).found == "u"


# Values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A metric stands for its mean.
        *(("rate{cc=b}", 8), ("mean(rate{cc=b})", 8), ("median(rate{cc=b})", 7.5), ("std(rate{cc=a})", 1)),
        *(("min(rate{cc=c})", 2), ("max(rate{cc=c})", 9), ("min(rate{cc=a}, 7)", 5), ("max(rate{cc=a}, 7, 6)", 7)),
        *(("1 + 2 * 4 - 6 / 4", 7.5), ("(1 + 2) * 4", 12), ("-(2 - 7)", 5), ("8 / 4 / 2", 1), ("5 - 2 - 1", 2)),
        *(("abs(rate{cc=a} - rate{cc=b})", 3), ("abs(rate{cc=b} - rate{cc=a})", 3), ("log(1)", 0)),
        *(("max_cc(rate{cc=*}, over=[a,b,c])", 8), ("min_cc(rate{cc=*}, over=[b,c,a])", 5)),
        *(("argmax_cc(rate{cc=*}, over=[a,b,c])", "b"), ("argmin_cc(rate{cc=*}, over=[b,a,c])", "a")),
        # Over the points: a mean of 2, and ranks (1, 2, 3) and (1, 3, 2).
        *(("mean_sweep(rate{sweep=*})", 2), ("spearman_sweep(rate{sweep=*})", 0.5)),
        # Deviations (-10, -7, 17) / 3 and (-1, 1, 0): a sum of products of 1, of squares 438/9 and 2.
        ("r2_sweep(rate{sweep=*})", 9 / 876),
        *(("spearman_sweep(flat{sweep=*})", 0), ("r2_sweep(flat{sweep=*})", 0)),
        # Over the algorithms of the experiment: x is (1, 2, 3), the rates are (5, 8, 6).
        ("corr_over_cc(x{cc=*}, rate{cc=*})", 1 / (2 * 14 / 3) ** 0.5),
        # With the fourth: deviations (-11, -7, -3, 21) / 4 and (-1, 11, 3, -13) / 4.
        ("corr_over_cc(x{cc=*}, rate{cc=*}, over=[a,b,c,d])", -348 / (620 * 300) ** 0.5),
        *(("corr_over_cc(x{cc=*}, 3)", 0), ("corr_over_cc(x{cc=*} / 64, x{cc=*} / 64)", 1)),
        # Of every repetition: the sums 11, 12.5 and 15.5, the smaller ones of a and c, the larger ones of both and 6.5.
        *(("mean((rate{cc=a} + rate{cc=b}) * 2)", 26), ("mean(min(rate{cc=a}, rate{cc=c}))", 13 / 3)),
        ("mean(max(rate{cc=a}, rate{cc=c}, 6.5))", 22.5 / 3),
        *(("mean(abs(rate{cc=a} - rate{cc=c}))", 7 / 3), ("mean(-rate{cc=a} / 2)", -2.5)),
        ("mean(log(rate{cc=d} / 0.5))", (math.log(1) + math.log(5) + math.log(6)) / 3),
        *(("mean(max_cc(rate{cc=*}, over=[d,a,c]))", 20 / 3), ("mean(min_cc(rate{cc=*} - 1, over=[a,c]))", 10 / 3)),
    ],
)
def test_the_value_of_an_expression_is_that_of_the_repetitions(text: str, expected: float | str) -> None:
    assert valued(text) == (expected if isinstance(expected, str) else pytest.approx(expected))


def test_a_value_and_the_sign_of_a_side_are_those_of_the_sample() -> None:
    """Of the seven repetitions 3/7 is the mean, and most resamples have another one, many below 0."""
    repetitions = np.array([-4.0, 6.0, -3.0, 5.0, -2.0, 4.0, -3.0])
    found = value(parse("mean(y{})", "expression"), lambda *_: repetitions, DOMAIN)
    assert found == pytest.approx(3 / 7)
    # Where a last resample decided it, one of both had its ends reversed.
    for sign in ("", "-"):
        for shift in ("+ 0", "- 1", "- 2", "+ 1"):
            text = f"{sign}(mean(y{{}}) {shift}) == {sign}(mean(y{{}}) {shift})"
            assert evaluate(parse(text), lambda *_: repetitions, DOMAIN, 0.25).held, text


def test_a_selector_is_looked_up_with_its_keys_and_names_filled_in() -> None:
    asked = []

    def noting(metric: str, keys: Mapping[str, str]) -> np.ndarray:
        asked.append((metric, dict(keys)))
        return np.array([1.0])

    text = (
        "any(a in [lia,0.50]: jain{flows=[mp,h3], cc=$a , kind=a=b} > 1 or"
        " all(p in pairs([u,v,w]): y{of=$p.0/$p.1} < 1)) and z{} > max_cc(q{cc=*, flow=*}, over=[m, n]) + 1"
    )
    assert look_up(parse(text), noting, DOMAIN) is None
    pairs = [("y", {"of": pair}) for pair in ("u/v", "u/w", "v/w")]
    assert asked == [
        ("jain", {"flows": "[mp,h3]", "cc": "lia", "kind": "a=b"}),
        *pairs,
        ("jain", {"flows": "[mp,h3]", "cc": "0.5", "kind": "a=b"}),
        *pairs,
        ("z", {}),
        ("q", {"cc": "m", "flow": "*"}),
        ("q", {"cc": "n", "flow": "*"}),
    ]
    asked.clear()
    look_up(parse("mean_sweep(mean(max_cc(r{cc=*,sweep=*}, over=[m,n]))) > 1"), noting, DOMAIN)
    assert asked == [("r", {"cc": cc, "sweep": point}) for point in "pqr" for cc in "mn"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rate{cc=*} > 1", "nothing around it gives a value to cc=* in rate{cc=*}"),
        ("rate{sweep=*} > 1", "nothing around it gives a value to sweep=* in rate{sweep=*}"),
        ("all(a in [x]: rate{cc=$b} > 1)", "nothing around it gives a value to $b in $b"),
        ("std(rate{cc=two} * rate{cc=a}) > 1", "std: its metrics differ in their number of repetitions"),
    ],
)
def test_what_has_no_value_is_an_error(text: str, why: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        evaluated(text)
    assert str(caught.value) == f"predicate: {why}"


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        ("mean(none{}) / mean(none{}) >= 2", "nan with 2.00"),
        ("flat{} > 1 and mean(none{}) / mean(none{}) <= rate{cc=a}", "nan with 5.00"),
        ("1 < 2 or log(mean(none{})) - log(mean(none{})) != 0", "nan with 0"),
        ("equiv(none{}, none{}, 0.1)", "0 with 0"),
        ("corr_over_cc(x{cc=*}, log(mean(none{})) + x{cc=*}) >= 0", "nan with 0"),
        ("spearman_sweep(log(mean(none{})) * 0 + rate{sweep=*}) >= 0.5", "nan with 0.500"),
        ("log(mean(none{})) < log(mean(none{}))", "-inf with -inf"),
    ],
)
@pytest.mark.parametrize("repetitions", [1, 2])
@pytest.mark.filterwarnings("ignore:invalid value|divide by zero:RuntimeWarning")
def test_what_is_not_a_number_is_not_testable(text: str, sides: str, repetitions: int) -> None:
    """Before, the margin of what is not a number was 0, so that it held."""

    def looked_up(metric: str, keys: Mapping[str, str]) -> np.ndarray:
        return np.zeros(repetitions) if metric == "none" else lookup(metric, keys)

    with pytest.raises(NotTestableError, match=f"compares {sides}: their difference is not a number"):
        evaluate(parse(text), looked_up, DOMAIN, 0.1)
    # What a claim needs is known before its metrics are.
    assert look_up(parse(text), looked_up, DOMAIN) is None


@pytest.mark.parametrize("repetitions", [1, 2])
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_a_ratio_to_nothing_is_infinite(repetitions: int) -> None:
    """Before, it was within any bound on one repetition, and open on several."""

    def looked_up(metric: str, _: object) -> np.ndarray:
        return np.full(repetitions, {"none": 0.0, "some": 3.0}[metric])

    found = evaluate(parse("mean(some{}) / mean(none{}) <= 2"), looked_up, DOMAIN)
    assert (found.verdict, found.held) == (Verdict.FAILS, False)
    (fact,) = found.facts
    assert (fact.left_value, fact.held, fact.margin) == ("inf", False, None)
    assert evaluate(parse("mean(some{}) / mean(none{}) > 2"), looked_up, DOMAIN).verdict == Verdict.HOLDS


def test_the_domain_of_an_experiment_is_its_algorithms_and_points() -> None:
    points = [SimpleNamespace(label="rtt10", x=10.0), SimpleNamespace(label="rtt30", x=30.0)]
    assert Domain.of(SimpleNamespace(algorithms=("a", "b"), points=points)) == Domain(
        ("a", "b"), [("rtt10", 10.0), ("rtt30", 30.0)]
    )


# Facts


def test_what_is_decided_together_is_as_sure_as_the_fewest_repetitions() -> None:
    assert evaluated("rate{cc=a} > 1 and rate{cc=two} > 1").repetitions == 2
    assert {fact.repetitions for fact in evaluated("rate{cc=a} > 1 and rate{cc=two} > 1").facts} == {2}
    assert evaluated("rate{cc=a} > 1").repetitions == 3
    assert evaluated("1 < 2").repetitions == 1


def test_the_order_of_the_parts_of_a_predicate_does_not_matter() -> None:
    """Before, a comparison took the smallest number of repetitions that had been read until then."""
    values = {"a": np.linspace(-3, 4, 30) ** 3, "b": np.array([2.0, 5.0, 1.5])}

    def intervals(text: str) -> dict[str, tuple[object, ...]]:
        found = evaluate(parse(text), lambda _, keys: values[keys["cc"]], DOMAIN)
        return {fact.left: (fact.margin, fact.low, fact.high, fact.left_value) for fact in found.facts}

    first, second = intervals("r{cc=a} > 0.3 and r{cc=b} > 1"), intervals("r{cc=b} > 1 and r{cc=a} > 0.3")
    assert first == second
    assert len(first) == 2


def test_facts_are_the_comparisons_with_their_sides() -> None:
    first, second, word, names, equal = evaluated(
        "1 < flat{} < 7.5 and 'u' == 'v' or argmax_cc(x{cc=*}, over=[a,b]) == 'a' or equiv(x{cc=c} + 0, 4, 0.125)"
    ).facts
    assert (first.left, first.operator, first.right, first.left_value, first.right_value) == (
        *("1", "<", "flat{}"),
        *("1.00", "7.00"),
    )
    assert (first.margin, first.low, first.high, first.held, first.repetitions) == (6, 6, 6, True, 1)
    assert (second.left, second.operator, second.right, second.margin) == ("flat{}", "<", "7.5", 0.5)
    assert (word.left_value, word.right_value, word.held) == ("u", "v", False)
    assert (word.margin, word.low, word.high) == (None, None, None)
    assert (names.left_value, names.right_value, names.held, names.margin) == ("b", "a", False, -1)
    # 3/4 is less than 7/8.
    assert (equal.left, equal.operator, equal.right) == ("x{cc=c} + 0", "equal within 12.5 % to", "4")
    assert (equal.left_value, equal.right_value, equal.held, equal.margin) == ("3.00", "4.00", False, -0.125)


def test_the_spread_of_the_runs_has_no_interval() -> None:
    """Before, it had one that was decided on up to 42 % of all claims exactly at their bound."""
    (spread,) = evaluated("std(rate{cc=a}) >= 0.75").facts
    assert (spread.left_value, spread.margin, spread.low, spread.high) == ("1.00", 0.25, 0.25, 0.25)
    assert not spread.has_interval
    assert evaluated("argmin_cc(std(rate{cc=*}), over=[a,b,d]) == 'a'").verdict == Verdict.HOLDS


def test_extremes_of_the_runs_have_no_interval_and_a_mean_has_one() -> None:
    (extreme_one,) = evaluated("max(rate{cc=c}) > 4").facts
    assert (extreme_one.margin, extreme_one.low, extreme_one.high) == (5, 5, 5)
    (mean,) = evaluated("rate{cc=c} > 4").facts
    assert mean.low < mean.margin == 2 < mean.high


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *(("word", "word"), ((46.0, 0.5, "lia"), "46, 0.5, lia"), (0.0, "0"), (-0.25, "-0.250"), (math.inf, "inf")),
        *((1.0, "1.00"), (9.87, "9.87"), (12.34, "12.3"), (456.7, "457"), (1234.6, "1235"), (0.01234, "0.0123")),
        (Named(("u", "v"), np.array([[1.0], [2.0]]), largest=True), "v"),
        (np.full(5, 3.0), "3.00"),
        # A value of 20 and resamples with a standard deviation of 1: 20 +- 3.182 sqrt(4/3).
        (np.array([20.0, 19.0, 19.0, 21.0, 21.0]), "20.0 (16.3 to 23.7)"),
    ],
)
def test_a_value_is_shown_with_three_digits_and_its_interval(given: object, expected: str) -> None:
    assert shown(given, 4) == expected


# Correlations


def test_a_rank_correlation_is_spearmans() -> None:
    """Also where points, or their means, are tied."""
    from scipy.stats import spearmanr

    rng = np.random.Generator(np.random.PCG64(5))
    for most in (3, 5, 100):
        for _ in range(20):
            x, y = rng.integers(0, most, (2, 7))
            found = RankCorrelation(y[:, None] / 8, x / 4)
            wanted = spearmanr(x, y)[0] if len(set(x)) > 1 and len(set(y)) > 1 else 0
            assert found.found == pytest.approx(wanted)
            for bound in (-0.7, 0.0, 0.6):
                for below in (False, True):
                    statement = found.beyond(bound, 1, below=below, strict=False)
                    margin = bound - wanted if below else wanted - bound
                    assert Rule().interval(statement, statement, 1) == pytest.approx((margin,) * 3)


def ranked(text: str, values: Mapping[str, list[float]], rule: Rule | None = None) -> Evaluation:
    points = [(name, x) for name, x in (("s", 1.0), ("t", 3.0), ("u", 4.0), ("v", 9.0)) if name in values]
    return evaluate(parse(text), lambda _, keys: np.array(values[keys["sweep"]]), Domain((), points), None, rule)


# Ten repetitions with means of 2, 5, 5.5 and 11.5 and a standard deviation of about 1.
_NOISE = np.random.Generator(np.random.PCG64(7)).normal(size=(4, 10))
_MEANS = np.array([[2.0], [5.0], [5.5], [11.5]])
RISING = dict(zip("stuv", (_MEANS + _NOISE - _NOISE.mean(axis=1, keepdims=True)).tolist(), strict=True))


@pytest.mark.parametrize(
    ("text", "margin", "low", "high", "verdict"),
    [
        # Only t and u, neighbours, may be the other way round: 1 - 12/60 = 0.8.
        *(("{} >= 0.99", 0.01, -0.19, 0.01, "open"), ("{} >= 0.75", 0.25, 0.05, 0.25, "holds")),
        *(("{} > 0.8", 0.2, 0, 0.2, "open"), ("{} >= 0.8", 0.2, 0, 0.2, "holds"), ("{} == 1", 0, -0.2, 0, "open")),
        *(("0.99 <= {}", 0.01, -0.19, 0.01, "open"), ("{} < 0.79", -0.21, -0.21, -0.01, "fails")),
        *(("{} <= -0.5", -1.5, -1.5, -1.3, "fails"), ("{} in [-1, 0.9]", -0.1, -0.1, 0.1, "open")),
        *(("{} >= -1", 2, 1.8, 2, "holds"), ("{} > 1", 0, -0.2, 0, "fails"), ("{} != 1", 0, 0, 0.2, "open")),
    ],
)
def test_a_rank_correlation_is_as_sure_as_the_order_of_its_points(
    text: str, margin: float, low: float, high: float, verdict: str
) -> None:
    found = ranked(text.format("spearman_sweep(x{sweep=*})"), RISING)
    (fact,) = found.facts
    assert found.verdict == verdict
    assert (fact.margin, fact.low, fact.high) == pytest.approx((margin, low, high), abs=2e-6)
    assert "1.00" in (fact.left_value, fact.right_value)


def test_what_is_computed_from_rank_correlations_has_no_interval() -> None:
    for text in (
        "-spearman_sweep(x{sweep=*}) <= -0.75",
        "spearman_sweep(x{sweep=*}) <= spearman_sweep(2 * x{sweep=*})",
    ):
        found = ranked(text, RISING)
        assert found.verdict == Verdict.HOLDS
        assert not found.facts[0].has_interval


def test_an_allowance_of_a_rank_correlation_is_one_of_its_means() -> None:
    """Their difference of 9 is 0.9 of the larger one, 0.45 of a term of 20, and 0.45 of the larger mean of 20."""
    apart = {"s": [1.0, 1], "v": [10.0, 10]}
    assert ranked("spearman_sweep(x{sweep=*}) >= 0.9", apart, Rule(allowance=0.875)).verdict == Verdict.HOLDS
    assert ranked("spearman_sweep(x{sweep=*}) >= 0.9", apart, Rule(allowance=0.9375)).verdict == Verdict.OPEN
    far = "spearman_sweep(x{sweep=*} + 10) >= 0.9"
    assert ranked(far, apart, Rule(allowance=0.4375)).verdict == Verdict.HOLDS
    assert ranked(far, apart, Rule(allowance=0.46875)).verdict == Verdict.OPEN
    difference = "spearman_sweep(x{sweep=*} - 20) >= 0.9"
    assert ranked(difference, apart, Rule(allowance=0.46875)).verdict == Verdict.OPEN


@pytest.mark.parametrize(
    ("text", "own"),
    [
        # Deviations (-4, -1, -0.5, 5.5) and (-3.25, -1.25, -0.25, 4.75): 40.5 of the root of 47.75 and 34.75 * 47.5.
        ("r2_sweep(x{sweep=*}) >= 0.5", 40.5**2 / 47.5 / 34.75),
        ("corr_over_cc(x{cc=*}, y{cc=*}, over=[s,t,u,v]) <= 0.5", 40.5 / (47.5 * 34.75) ** 0.5),
    ],
)
def test_the_interval_of_a_correlation_ends_at_1(text: str, own: float) -> None:
    """Before, it went beyond."""
    places = {"s": 1.0, "t": 3.0, "u": 4.0, "v": 9.0}

    def looked_up(metric: str, keys: Mapping[str, str]) -> np.ndarray:
        name = keys.get("sweep") or keys["cc"]
        return np.array(RISING[name]) if metric == "x" else np.full(10, places[name])

    (fact,) = evaluate(parse(text), looked_up, Domain((), tuple(places.items()))).facts
    shown = re.fullmatch(r"(\S+) \((\S+) to 1.00\)", fact.left_value)
    assert shown
    assert (float(shown[1]), float(shown[2])) == (pytest.approx(own, abs=5e-4), pytest.approx(0.95, abs=0.05))


# Allowances


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        # The largest term of a difference on either side.
        *(("rate{cc=a} - rate{cc=b} >= 2", 8), ("2 <= rate{cc=b} - rate{cc=a} + 0.5", 8)),
        *(("-(rate{cc=a} - rate{cc=b}) >= 2", 8), ("3 - 7.25 <= 0", 7.25), ("0.25 - 0.5 >= 0", 0.5)),
        # Other functions count as what they are.
        *(("log(9 - 8) >= 0.125", 0.125), ("(9 - 8) * 2 >= 1", 2), ("(9 - 8) / 2 >= 1", 1)),
        ("0.125 - 0.0625 >= log(1)", 0.125),
    ],
)
def test_an_allowance_is_a_part_of_the_largest_term(text: str, scale: float) -> None:
    statement = evaluated(text, rule=Rule(allowance=0.25)).statement
    assert isinstance(statement, Margin)
    assert statement.scale == scale


def scales(text: str, rule: Rule) -> list[float]:
    """Those of all margins of a statement, from left to right."""

    def of(statement: Margin | Joint) -> list[float]:
        return (
            [one for part in statement.statements for one in of(part)]
            if isinstance(statement, Joint)
            else [statement.scale]
        )

    return of(evaluated(text, rule=rule).statement)


def test_every_comparison_has_terms_of_its_own() -> None:
    rule = Rule(allowance=0.25)
    assert scales("abs(9 - 8) <= 2", rule) == [9, 9]
    assert scales("0.125 in [0,0.25]", rule) == [0.125, 0.25]
    assert scales("argmax_cc(x{cc=*} / 16, over=[a,b]) == 'b'", rule) == [0.125]
    assert scales("9 - 8 < 2 < 12 - 5", rule) == [9, 12]
    # What was compared before says nothing about a ratio of 3/4 with the bounds 1/2 and 2: it got 9.
    assert scales("9 - 8 < 2 and equiv(3, 4, 0.5)", rule) == [9, 0.75, 2]
    # Without an allowance nobody asks for it.
    assert scales("0.5 - 0.25 < 0.125", Rule()) == [0.25]
