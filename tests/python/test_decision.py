"""How often the whole procedure decides a claim that lies exactly at its bound: at most as often as it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mptcplab.studies.papers import catalog
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.predicate import Domain, evaluate, parse
from mptcplab.study import statistics
from mptcplab.study.decision import (
    ERROR,
    WORST_SIMULATED,
    Joint,
    Margin,
    Rule,
    Weighed,
    estimated,
    moments,
    negated,
    undefined,
)
from mptcplab.study.verdict import Verdict

LOOKS = (10, 20, 30)
RULE = Rule(looks=len(LOOKS))
TRIALS = 500
# Three standard deviations of the share of trials, where the true one is what the procedure states.
AT_MOST = ERROR + 3 * (ERROR * (1 - ERROR) / TRIALS) ** 0.5

PAPERS_README = Path(__file__).parents[2] / "papers" / "README.md"
REVIEWERS = Path(__file__).parents[2] / "docs" / "reviewers.md"

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
# Spreads around 0, with a standard deviation of 1 (heavy-tailed: Student's t with 3 degrees of freedom).
SPREADS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape) - 1,
    "skewed the other way": lambda rng, shape: 1 - rng.exponential(size=shape),
    "heavy-tailed": lambda rng, shape: rng.standard_t(3, size=shape) / 3**0.5,
}
# Claims that are exactly at their bounds where the means are these, with a tolerance of 10 % for `==`.
STATEMENTS: dict[str, tuple[str, dict[str, float]]] = {
    "mean": ("mean(x{cc=a}) >= 9", {"a": 9}),
    "ratio": ("mean(x{cc=a}) / mean(x{cc=b}) >= 1.05", {"a": 8.4, "b": 8}),
    "tolerance": ("mean(x{cc=a}) == 10", {"a": 11}),
    "equivalence": ("equiv(mean(x{cc=a}), mean(x{cc=b}), 0.1)", {"a": 7.2, "b": 8}),
    "more than the largest": ("mean(x{cc=a}) > max_cc(mean(x{cc=*}), over=[b,c,d])", dict.fromkeys("abcd", 7)),
    "the largest": ("argmax_cc(mean(x{cc=*}), over=[a,b,c,d]) == 'a'", dict.fromkeys("abcd", 7)),
    "each of several": ("all(k in [a,b,c]: mean(x{cc=$k}) <= 6)", dict.fromkeys("abc", 6)),
    "one of several": ("any(k in [a,b,c]: mean(x{cc=$k}) >= 6)", dict.fromkeys("abc", 6)),
    # One more pair of points that is out of order, the last two, and the bound is missed.
    "perfect order": ("spearman_sweep(mean(x{sweep=*})) >= 0.99", {"p1": 1, "p2": 2, "p3": 3, "p4": 4, "p5": 4}),
    "order": ("spearman_sweep(mean(x{sweep=*})) >= 0.8", {"p1": 2, "p2": 1, "p3": 4, "p4": 3, "p5": 4}),
}


# Fewer for claims of many comparisons, so that they take seconds.
TRIALS_OF_MANY = 200
SIX_LOOKS = (5, 10, 15, 20, 25, 30)


def decided(text: str, means: Mapping[str, float], draw: Draw, rule: Rule = RULE) -> float:
    """Part of the trials in which the procedure decides, at whichever look."""
    rng = np.random.Generator(np.random.PCG64(11))
    points = [(name, float(place)) for place, name in enumerate(means)]
    tree, domain, count = parse(text), Domain(tuple(means), points), 0
    for _ in range(TRIALS):
        # Every algorithm has a spread of its own, and a part that all share, as paired repetitions do.
        noise = draw(rng, (len(means), LOOKS[-1])) + 0.5 * draw(rng, (1, LOOKS[-1]))
        scale = 0.2 + 0.1 * np.arange(len(means))
        values = dict(zip(means, np.array(list(means.values()))[:, None] + scale[:, None] * noise, strict=True))
        verdicts = (evaluate(tree, _first(values, n), domain, 0.1, rule).verdict for n in LOOKS)
        count += any(verdict != Verdict.OPEN for verdict in verdicts)
    return count / TRIALS


def decided_of_several(number: int, draw: Draw, looks: tuple[int, ...], trials: int) -> float:
    """The same for means that are all at their bounds, equally spread and independent: wrong failures add up."""
    names = [f"k{i}" for i in range(number)]
    tree = parse(f"all(k in [{','.join(names)}]: mean(x{{cc=$k}}) <= 6)")
    rng, domain, count = np.random.Generator(np.random.PCG64(11)), Domain(tuple(names), ()), 0
    for _ in range(trials):
        values = dict(zip(names, 6 + draw(rng, (number, looks[-1])), strict=True))
        verdicts = (evaluate(tree, _first(values, n), domain, None, Rule(looks=len(looks))).verdict for n in looks)
        count += any(verdict != Verdict.OPEN for verdict in verdicts)
    return count / trials


def _first(values: Mapping[str, np.ndarray], n: int) -> Callable[[str, Mapping[str, str]], np.ndarray]:
    return lambda _, keys: values[keys.get("cc") or keys["sweep"]][:n]


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer resamples, so that thousands of verdicts take seconds."""
    module = evaluate.__globals__
    monkeypatch.setitem(module, "RESAMPLES", 1000)
    monkeypatch.setitem(module, "resamples", lambda n: statistics.resamples(n, 1000))


@pytest.mark.parametrize(
    ("statement", "spread"),
    [
        *(("mean", spread) for spread in SPREADS),
        ("ratio", "heavy-tailed"),
        ("ratio", "skewed"),
        ("tolerance", "skewed"),
        ("equivalence", "skewed the other way"),
        ("more than the largest", "skewed the other way"),
        ("the largest", "normal"),
        ("each of several", "skewed the other way"),
        ("one of several", "skewed the other way"),
        *(("perfect order", spread) for spread in ("normal", "skewed")),
        ("order", "skewed the other way"),
    ],
)
def test_a_claim_at_its_bound_is_decided_as_rarely_as_stated(statement: str, spread: str) -> None:
    text, means = STATEMENTS[statement]
    share = decided(text, means, SPREADS[spread])
    assert share <= AT_MOST
    # What the documentation shows is what was simulated.
    assert f"| `{text}` | {spread} | {100 * share:.1f} % |" in PAPERS_README.read_text()


@pytest.mark.parametrize(
    ("number", "looks", "spread", "keeps"),
    [
        *((12, LOOKS, "normal", True), (12, LOOKS, "skewed the other way", False)),
        *((36, LOOKS, "normal", True), (36, LOOKS, "skewed the other way", False)),
        *((1, SIX_LOOKS, "normal", True), (1, SIX_LOOKS, "skewed", True), (1, SIX_LOOKS, "skewed the other way", True)),
        *((3, SIX_LOOKS, "normal", True), (3, SIX_LOOKS, "skewed the other way", False)),
    ],
)
def test_several_skewed_quantities_at_their_bounds_are_decided_as_often_as_documented(
    number: int, looks: tuple[int, ...], spread: str, keeps: bool
) -> None:
    """The papers' claims have up to 36 comparisons, and up to six looks."""
    trials = TRIALS if number <= 3 else TRIALS_OF_MANY
    share = decided_of_several(number, SPREADS[spread], looks, trials)
    assert (share <= ERROR + 3 * (ERROR * (1 - ERROR) / trials) ** 0.5) == keeps
    at = f"{', '.join(map(str, looks[:-1]))} and {looks[-1]}"
    assert f"| {number} | {at} | {spread} | {100 * share:.1f} % |" in PAPERS_README.read_text()


def test_the_largest_error_that_was_simulated_is_the_one_that_pages_name() -> None:
    shares = re.findall(r"^\| .* \| [\w -]+ \| ([\d.]+) % \|$", PAPERS_README.read_text(), re.MULTILINE)
    assert len(shares) == 15 + 9
    assert max(map(float, shares)) == pytest.approx(100 * WORST_SIMULATED)
    assert f"({100 * WORST_SIMULATED:g} % in the worst simulated case" in REVIEWERS.read_text()


def test_the_looks_are_those_that_the_documentation_names() -> None:
    library = catalog.load()
    planner = Planner(library, "sim", quick=False)
    found = {(one.repetitions, planner.rule({one.id}).looks) for one in library.experiments.values()}
    assert found == {(5, len(SIX_LOOKS)), (10, len(LOOKS)), (15, 2)}
    assert "(10, 20 and 30; of some experiments 15 and 30, or 5, 10, 15, 20, 25 and 30)" in " ".join(
        PAPERS_README.read_text().split()
    )


def test_looking_again_without_paying_for_it_decides_too_often() -> None:
    """So that the test above would notice: every look has the whole error here."""
    share = decided(*STATEMENTS["mean"], SPREADS["normal"], replace(RULE, looks=1))
    assert share > AT_MOST
    assert f"it would be {100 * share:.1f} %" in PAPERS_README.read_text()


def test_a_failure_of_any_of_several_needs_more_than_that_of_one() -> None:
    """The error is divided by their number at the end that makes the whole fail, and at no other."""
    one, other = Margin(1.0, 0.5), Margin(2.0, 0.25)
    several = Joint([one, other, other], every=True)
    alone, inside = Rule().interval(one, one, 10), Rule().interval(one, several, 10)
    # Student's quantiles of 9 degrees of freedom for 2.5 % and a third of it: 2.262 and 2.933.
    assert alone == pytest.approx((1.0, 1 - 0.5 * 2.262, 1 + 0.5 * 2.262), rel=1e-3)
    assert inside == pytest.approx((1.0, 1 - 0.5 * 2.262, 1 + 0.5 * 2.933), rel=1e-3)
    either = Rule().interval(one, Joint([one, other, other], every=False), 10)
    assert either == pytest.approx((1.0, 1 - 0.5 * 2.933, 1 + 0.5 * 2.262), rel=1e-3)


@pytest.mark.parametrize("statement", ["mean", "ratio"])
def test_a_claim_clear_of_its_bound_is_decided(statement: str) -> None:
    """Its margin is 1.4 and 2 standard deviations of a repetition: 30 of them leave few open."""
    text, means = STATEMENTS[statement]
    assert decided(text, {**means, "a": means["a"] + 0.35}, SPREADS["normal"]) > 0.95


# Parts of the procedure


def _resampled(values: list[float]) -> np.ndarray:
    return np.array(values)[statistics.resamples(len(values))].mean(axis=1)


def test_the_interval_of_a_symmetric_quantity_is_students() -> None:
    # Mean 5, standard deviation 2, so a standard error of 1; Student's quantile of 3 degrees of freedom is 3.182.
    found = estimated(_resampled([3.0, 5 - 3**0.5, 5 + 3**0.5, 7.0]), 4)
    error = (2 * (4 + 3) / 3) ** 0.5 / 2
    assert found.value == 5
    assert (found.high - 5, 5 - found.low) == pytest.approx((3.182 * error, 3.182 * error), rel=0.03)


def test_skewness_widens_the_interval_on_its_own_side_only() -> None:
    values = [1.0, 1.1, 1.2, 1.3, 1.4, 4.0]
    mean, error = np.mean(values), np.std(values, ddof=1) / 6**0.5
    found = estimated(_resampled(values), 6)
    assert mean - found.low == pytest.approx(2.571 * error, rel=0.03)
    assert found.high - mean > 1.3 * 2.571 * error
    mirrored = estimated(-_resampled(values), 6)
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


def test_what_does_not_vary_is_decided_as_it_is() -> None:
    same = np.full(11, 0.3)
    # 0.1 + 0.2 and 0.3 differ in the last digit.
    assert Rule().decide(Margin.between(same, np.full(11, 0.25), 10), 10) == Verdict.HOLDS
    assert Rule().decide(Margin.between(same, same, 10), 10) == Verdict.HOLDS
    assert Rule().decide(Margin.between(same, same, 10, strict=True), 10) == Verdict.FAILS
    assert Rule().decide(negated(Margin.between(same, same, 10)), 10) == Verdict.FAILS
    assert Rule().decide(negated(Margin.between(same, same, 10, strict=True)), 10) == Verdict.HOLDS


def test_an_allowance_for_bias_is_a_part_of_the_larger_side() -> None:
    margin = Margin.between(np.full(9, 12.0), np.full(9, 10.0), 8)
    # A margin of 2, and 1/8 or 1/4 of 12.
    assert Rule(allowance=0.125).interval(margin, margin, 8) == (2.0, 0.5, 3.5)
    assert Rule(allowance=0.25).decide(margin, 8) == Verdict.OPEN
    assert Rule(allowance=0.25).decide(Margin.between(np.full(9, 20.0), np.full(9, 10.0), 8), 8) == Verdict.HOLDS


def test_an_allowance_is_a_part_of_the_terms_of_a_difference() -> None:
    small = Margin.between(np.full(9, 2.0), np.full(9, -3.0), 8)
    assert (small.scale, Margin.between(np.full(9, 2.0), np.full(9, -3.0), 8, terms=4.0).scale) == (3, 4)
    assert Margin.between(2.0, -3.0, 8, terms=2.5) == small
    # Of the sample, and not of a resample.
    assert Margin.between(np.array([2.0, 9.0]), 0.0, 1).scale == 2
    # Nothing is allowed for where the sides are 0 or have no size, or where words are compared.
    assert Rule(allowance=0.5).interval(Margin(1.0), Margin(1.0), 8) == (1, 1, 1)
    assert Margin.between(0.0, 0.0, 8).scale == 0
    assert Rule(allowance=0.5).interval(Margin.certain(met=True), Margin.certain(met=True), 8)[0] == np.inf
    assert Rule(allowance=0.5).decide(Margin.certain(met=False), 8) == Verdict.FAILS


def test_every_look_has_the_same_part_of_the_error() -> None:
    # Without more words there is one look, at runs as long as they should be.
    assert Rule() == Rule(looks=1, provisional=False, allowance=0.0)
    margin = Margin(1.0, 0.5)
    # Student's quantiles of 9 degrees of freedom for 2.5 % and a third of it.
    assert Rule().interval(margin, margin, 10).low == pytest.approx(1 - 0.5 * 2.26216, rel=1e-4)
    assert Rule(looks=3).interval(margin, margin, 10).low == pytest.approx(1 - 0.5 * 2.93332, rel=1e-4)


@pytest.mark.parametrize(
    ("every", "low", "high"),
    [
        # "All of 2" can fail in 2 ways and hold in one, "any of 3" can hold in 3 ways and fail in one. For both of them
        # to hold each has its whole error, and their ways to fail add up; for either of them it is the reverse.
        (True, 3, 3),
        (False, 4, 2),
    ],
)
def test_nested_statements_share_the_error_at_either_end(every: bool, low: int, high: int) -> None:
    one = Margin(0.0, 1.0)
    pair, three = Joint([one] * 2, every=True), Joint([one] * 3, every=False)
    # Student's with 9 degrees of freedom, for 2.5 % and its parts.
    quantiles = {2: 2.68501, 3: 2.93332, 4: 3.11093}
    found = Rule().interval(one, Joint([pair, three], every=every), 10)
    assert found == pytest.approx((0.0, -quantiles[low], quantiles[high]), rel=1e-4)


def test_all_of_several_are_as_good_as_the_worst_and_any_of_them_as_the_best() -> None:
    margins = [Margin(3.0), Margin(-2.0), Margin(5.0)]
    for every, end in ((True, -2.0), (False, 5.0)):
        joint = Joint(margins, every=every)
        assert Rule().interval(joint, joint, 10) == (end, end, end)
        assert negated(joint) == Joint([Margin(-3.0), Margin(2.0), Margin(-5.0)], every=not every)
    assert negated(Margin(3.0, 0.5, 0.25, 7.0)) == Margin(-3.0, 0.5, -0.25, 7.0)


@pytest.mark.parametrize(
    ("spare", "strict", "value", "most"),
    [
        # Untrue are the second and the fourth, of weights 2 and 1. Of the weights 1, 2, 3 and 4 the lightest three
        # exceed 5, and reach 10 - 5 = 5 with the first three; two of them do not exceed 3, or reach 10 - 3 = 7.
        *((5.0, False, 2, (3, 3)), (3.0, False, 0, (3, 4)), (2.5, False, -0.5, (2, 4))),
        # To exceed 10 - 3 = 7 takes all four; to reach 3 takes two.
        (3.0, True, 0, (2, 4)),
        # All of them, and any of them.
        *((0.0, False, -3, (1, 4)), (9.5, False, 6.5, (4, 1)), (10.0, True, 7, (4, 1))),
        # Always true, and never.
        *((10.0, False, 7, (4, 1)), (-0.5, False, -3.5, (1, 4))),
    ],
)
def test_some_of_several_may_be_untrue(spare: float, strict: bool, value: float, most: tuple[int, int]) -> None:
    margins = [Margin(3.0), Margin(-2.0), Margin(0.0), Margin(-5.0)]
    weighed = Weighed(margins, [3.0, 2.0, 4.0, 1.0], spare, strict)
    assert Rule().interval(weighed, weighed, 10) == pytest.approx((value,) * 3, abs=1e-12)
    assert Rule().decide(weighed, 10) == (Verdict.HOLDS if value > 0 or (value == 0 and not strict) else Verdict.FAILS)
    assert weighed.most == most
    # What is not true is true the other way round, and as hard to misjudge.
    reverse = negated(weighed)
    assert isinstance(reverse, Weighed)
    assert reverse.most == most[::-1]
    assert Rule().decide(reverse, 10) != Rule().decide(weighed, 10)
    assert Rule().interval(reverse, reverse, 10) == pytest.approx((-value,) * 3, abs=1e-12)


def test_what_may_be_untrue_divides_the_error_by_what_has_to_be_misjudged() -> None:
    """Of four, two may be untrue: three false ones, or two true ones, of which one has to be misjudged."""
    margins = [Margin(value, 1.0) for value in (4.0, 3.0, 2.8, -2.8)]
    weighed = Weighed(margins, [0.25] * 4, 0.5)
    assert weighed.most == (3, 2)
    # Student's with 9 degrees of freedom: 2.933 for a third of 2.5 %, 2.685 for half of it.
    assert Rule().interval(weighed, weighed, 10) == pytest.approx((0.25, 0.0, 0.25))
    assert Rule().interval(margins[0], weighed, 10) == pytest.approx((4, 4 - 2.93332, 4 + 2.68501), rel=1e-4)
    both = Joint([weighed, Joint([margins[0]] * 2, every=False)], every=True)
    # To hold, the harder of both counts; to fail, one of the two, or the other one.
    assert Rule().interval(margins[0], both, 10) == pytest.approx((4, 4 - 2.93332, 4 + 2.93332), rel=1e-4)


def test_a_part_is_decided_as_it_counts_in_the_whole() -> None:
    """2.6 standard errors are more than 2.262, and less than the 2.685 of one of two."""
    part = Margin(-2.6, 1.0)
    whole = Joint([part, Margin(1.0)], every=True)
    assert Rule().decide(part, 10) == Verdict.FAILS
    assert Rule().decide_part(part, whole, 10) == Verdict.OPEN
    assert Rule().decide_part(Margin(2.6, 1.0), whole, 10) == Verdict.HOLDS


@pytest.mark.parametrize(
    ("value", "others", "expected"),
    [
        # Before, every one of them was a margin of 0, and hence held.
        *((np.inf, [np.inf] * 2, (np.inf, 0, 0)), (-np.inf, [-np.inf, 2.5], (-np.inf, 0, 0))),
        # Some resamples have no repetition in which the denominator is not 0.
        *((3.5, [np.inf, 4.0], (3.5, np.inf, 0)), (3.5, [4.0, np.nan], (3.5, np.inf, 0))),
    ],
)
@pytest.mark.parametrize("repetitions", [2, 3, 10])
def test_what_is_not_finite_stays_what_it_is(
    value: float, others: list[float], expected: tuple[float, float, float], repetitions: int
) -> None:
    assert moments(np.array([value, *others]), repetitions) == expected
    assert moments(np.array([value, *others]), 1) == (value, 0, 0)


def test_an_infinite_margin_decides_and_one_that_is_no_number_does_not() -> None:
    """Before, an infinite margin was 0 on one repetition, and had an interval from nan to nan on several."""
    for repetitions in (1, 2, 10):
        above, below = (Margin.between(np.full(5, side), 2.0, repetitions) for side in (np.inf, -np.inf))
        for rule in (Rule(), Rule(allowance=0.25)):
            assert rule.interval(above, above, repetitions) == (np.inf, np.inf, np.inf)
            assert rule.decide(above, repetitions) == Verdict.HOLDS
            assert rule.decide(below, repetitions) == Verdict.FAILS
        nothing = Margin.between(np.full(5, np.nan), 2.0, repetitions)
        whole = Joint([above, Joint([nothing, Margin(3.0)], every=False)], every=True)
        assert undefined(whole)
        assert not undefined(Joint([above, below], every=True))
        assert Rule().decide(whole, repetitions) == Verdict.OPEN
        assert np.isnan(Rule().interval(whole, whole, repetitions)).all()
    unbounded = Margin.between(np.array([4.0, np.inf, 5.0]), 2.0, 10)
    assert Rule().interval(unbounded, unbounded, 10) == (2.0, -np.inf, np.inf)


# Of 20 resamples: a fifth is 1 and the others 0 (mean 0.2, spread 0.4, skewness 0.6 / 0.4 = 1.5).
ONE_IN_FIVE = [1.0] * 4 + [0.0] * 16


@pytest.mark.parametrize(
    ("repetitions", "error", "skewness"),
    [
        # One repetition says nothing about its spread, and two nothing about skewness.
        *((1, 0, 0), (2, 0.4 * 2**0.5, 0)),
        # The usual correction sqrt(n (n - 1)) / (n - 2), and twice what is shown.
        (3, 0.4 * 1.5**0.5, 2 * 1.5 * 6**0.5),
        (4, 0.4 * (4 / 3) ** 0.5, 2 * 1.5 * 12**0.5 / 2),
        (10, 0.4 * (10 / 9) ** 0.5, 2 * 1.5 * 90**0.5 / 8),
    ],
)
def test_the_spread_and_skewness_of_resamples_are_those_of_the_repetitions(
    repetitions: int, error: float, skewness: float
) -> None:
    found = moments(np.array([0.25, *ONE_IN_FIVE]), repetitions)
    assert found == pytest.approx((0.25, error, skewness))
    # The sample itself is no resample.
    assert moments(np.array([8.0, *ONE_IN_FIVE]), repetitions)[1:] == found[1:]
    mirrored = moments(-np.array([0.25, *ONE_IN_FIVE]), repetitions)
    assert mirrored == pytest.approx((-0.25, error, -skewness))


@pytest.mark.parametrize(
    ("ones", "zeros", "is_skewed"),
    [
        # Shown are 1.5 of a fifth, and 0.5 / sqrt(3/16) = 1.155 of a quarter. What counts is more than 2 sqrt(6 / n):
        # 1.549 of 10 resamples, 1.265 of 15, 1.414 of 12, 1.095 of 20.
        *((2, 8, False), (3, 12, True), (3, 9, False), (5, 15, True)),
    ],
)
def test_little_skewness_of_few_resamples_is_chance(ones: int, zeros: int, is_skewed: bool) -> None:
    found = moments(np.array([0.5, *[1.0] * ones, *[0.0] * zeros]), 5)
    assert (found[2] > 0) == is_skewed
    assert found[1] > 0


@pytest.mark.parametrize(
    ("value", "others", "scale", "expected"),
    [
        # Differences in the last digits of terms, of which twelve digits count.
        (1e-13, [1e-13, -1e-13], 1.0, (0, 0, 0)),
        (1e-13, [1e-13, -1e-13], 0.01, (1e-13, 1e-13 * 2**0.5, 0)),
        (2e-12, [2e-12, 2e-12], 1.0, (2e-12, 0, 0)),
        (5.0, [5.0, 5.0 + 1e-12], 0.0, (5, 0, 0)),
        (5.0, [5.0, 5.0 + 4e-11], 0.0, (5, 2e-11 * 2**0.5, 0)),
        (-5.0, [-5.0, -5.0], 0.0, (-5, 0, 0)),
        (0.0, [0.0, 0.0], 0.0, (0, 0, 0)),
        (7.0, [], 0.0, (7, 0, 0)),
    ],
)
def test_what_differs_in_the_last_digits_does_not_vary(
    value: float, others: list[float], scale: float, expected: tuple[float, float, float]
) -> None:
    assert moments(np.array([value, *others]), 2, scale) == pytest.approx(expected, rel=1e-4, abs=0)


@pytest.mark.parametrize(
    ("repetitions", "quantile"), [(1, 0.0), (2, 12.70620), (3, 4.30265), (4, 3.18245), (31, 2.04227)]
)
def test_the_interval_of_a_quantity_has_students_quantile_of_one_degree_less(repetitions: int, quantile: float) -> None:
    # However small it is.
    assert estimated(np.array([2e-13, 1e-13, 1e-13, 3e-13, 3e-13]), repetitions).value == 2e-13
    found = estimated(np.array([2.0, 1.0, 1.0, 3.0, 3.0]), repetitions)
    error = (repetitions / (repetitions - 1)) ** 0.5 if repetitions > 1 else 0.0
    assert found == pytest.approx((2.0, 2 - quantile * error, 2 + quantile * error), rel=1e-4)


@pytest.mark.parametrize("skewness", [0.25, 0.75, 1.5, 3.0])
def test_a_widened_end_is_where_halls_transform_has_students_quantile(skewness: float) -> None:
    """Hall's transform of x = (value - truth) / error is x + s x^2 / 3 + s^2 x^3 / 27 + s / 6."""
    margin, quantile = Margin(0.0, 1.0, skewness), 2.26216
    found = Rule().interval(margin, margin, 10)
    # The truth is at the upper end, and x below 0, where a transform of little skewness comes earlier.
    x = -found.high
    assert x + skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / 6 == pytest.approx(-quantile, rel=1e-5)
    assert x < -quantile
    assert found.low == pytest.approx(-quantile, rel=1e-5)
    mirrored = replace(margin, skewness=-skewness)
    assert Rule().interval(mirrored, mirrored, 10) == pytest.approx((0.0, -found.high, -found.low))
