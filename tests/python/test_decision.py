"""How often the whole procedure decides a claim that lies exactly at its bound: at most as often as it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mptcplab.studies.papers.predicate import Domain, evaluate, parse
from mptcplab.study import statistics
from mptcplab.study.decision import ERROR, WORST_SIMULATED, Joint, Margin, Rule, estimated, negated
from mptcplab.study.verdict import Verdict

LOOKS = (10, 20, 30)
RULE = Rule(looks=len(LOOKS))
TRIALS = 500
# Three standard deviations of the share of trials, where the true one is what the procedure states.
AT_MOST = ERROR + 3 * (ERROR * (1 - ERROR) / TRIALS) ** 0.5

PAPERS_README = Path(__file__).parents[2] / "papers" / "README.md"

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
}


def decided(text: str, means: Mapping[str, float], draw: Draw, rule: Rule = RULE) -> float:
    """Part of the trials in which the procedure decides, at whichever look."""
    rng = np.random.Generator(np.random.PCG64(11))
    tree, domain, count = parse(text), Domain(tuple(means), ()), 0
    for _ in range(TRIALS):
        # Every algorithm has a spread of its own, and a part that all share, as paired repetitions do.
        noise = draw(rng, (len(means), LOOKS[-1])) + 0.5 * draw(rng, (1, LOOKS[-1]))
        scale = 0.2 + 0.1 * np.arange(len(means))
        values = dict(zip(means, np.array(list(means.values()))[:, None] + scale[:, None] * noise, strict=True))
        verdicts = (evaluate(tree, _first(values, n), domain, 0.1, rule).verdict for n in LOOKS)
        count += any(verdict != Verdict.OPEN for verdict in verdicts)
    return count / TRIALS


def _first(values: Mapping[str, np.ndarray], n: int) -> Callable[[str, Mapping[str, str]], np.ndarray]:
    return lambda _, keys: values[keys["cc"]][:n]


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
    ],
)
def test_a_claim_at_its_bound_is_decided_as_rarely_as_stated(statement: str, spread: str) -> None:
    text, means = STATEMENTS[statement]
    share = decided(text, means, SPREADS[spread])
    assert share <= AT_MOST
    # What the documentation shows is what was simulated.
    assert f"| `{text}` | {spread} | {100 * share:.1f} % |" in PAPERS_README.read_text()


def test_the_largest_error_that_was_simulated_is_the_one_that_pages_name() -> None:
    shares = re.findall(r"^\| `.*` \| [\w -]+ \| ([\d.]+) % \|$", PAPERS_README.read_text(), re.MULTILINE)
    assert len(shares) == 12
    assert max(map(float, shares)) == pytest.approx(100 * WORST_SIMULATED)


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
