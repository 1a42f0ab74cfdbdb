"""Decisions from few repetitions: margins with their intervals, statements made of them, and a rule of known error.

A margin is how far a measured quantity lies inside its bound. Its interval is Student's, widened on the side where
Hall's transformation asks for more because the repetitions are skewed (P. Hall, On the removal of skewness by
transformation, J. R. Statist. Soc. B 54, 1992). The standard error and the skewness come from resampled repetitions
(`study.statistics`), so that ratios, correlations and quantiles need no formula of their own.

What a statement claims of several margins at once is decided margin by margin. "All of them" holds if each does, and
fails if one does at an error divided by their number; "any of them" is the reverse (intersection-union tests and
Bonferroni's inequality). "All but some" is between both. None of them asks for independence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mptcplab.study.verdict import Verdict

# The part of statements exactly at their bound on which the repetitions may decide nevertheless, over all looks.
ERROR = 0.05
# The largest part that simulations of the whole procedure gave (papers/README.md), and the case.
WORST_SIMULATED = 0.33
WORST_CASE = "36 skewed quantities that are all at their bounds"
# Few repetitions show less skewness than they have: ten of an exponential quantity about half.
_HIDDEN_SKEWNESS = 2.0
_LEAST = float(np.finfo(float).tiny)
# Digits of sums of weights, which are of the order of 1.
_DIGITS = 9


class Tails(NamedTuple):
    """The errors of both ends of an interval: of a lower end above the truth, of an upper end below it."""

    low: float
    high: float


class Interval(NamedTuple):
    """A value of the repetitions with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Margin:
    """A comparison: what one side has over its bound, at least 0 where the comparison is true.

    `error` is the standard error of the value and `skewness` that of its distribution; `scale` is the larger of both
    sides, or of the terms of a difference, of which an allowance for bias is a part.
    """

    value: float
    error: float = 0.0
    skewness: float = 0.0
    scale: float = 0.0

    @classmethod
    def between(
        cls, inside: object, outside: object, repetitions: int, *, strict: bool = False, terms: float = 0.0
    ) -> Margin:
        """`inside` at least `outside`, or above it where `strict`: resampled quantities, the sample's own first.

        Where a side is a difference, `terms` is the size of what it is between.
        """
        sides = np.broadcast_arrays(np.asarray(inside, dtype=float), np.asarray(outside, dtype=float))
        scale = max(terms, *(abs(float(side.flat[0])) for side in sides))
        value, error, skewness = moments(sides[0] - sides[1], repetitions, scale)
        return cls(-_LEAST if strict and value == 0 else value, error, skewness, scale)

    @classmethod
    def certain(cls, *, met: bool) -> Margin:
        """What no repetition can change, such as a comparison of words."""
        return cls(np.inf if met else -np.inf)


@dataclass(frozen=True)
class Joint:
    """Several statements at once: all of them where `every` is set, else at least one."""

    statements: Sequence[Statement]
    every: bool


@dataclass(frozen=True)
class Weighed:
    """Several statements, of which some may be untrue: the weights of these reach at most `spare`.

    Where `strict`, they stay below it. The margin is what they leave of `spare`, in the unit of the weights.
    """

    statements: Sequence[Statement]
    weights: Sequence[float]
    spare: float
    strict: bool = False

    def left(self, values: Sequence[float]) -> float:
        """The margin where these are the margins of the statements."""
        found = self.spare - sum(weight for weight, value in zip(self.weights, values, strict=True) if value < 0)
        # Sums of weights in a different order differ in the last digits.
        found = round(found, _DIGITS)
        return -_LEAST if self.strict and found == 0 else found

    @property
    def most(self) -> Tails:
        """The most statements of which one has to be misjudged before this one is, for it to hold or to fail.

        Where this one is untrue, there are untrue ones that are together just too heavy, and it cannot hold unless one
        of them is taken for true. They are the most where they are the lightest. The reverse applies where it is true.
        """
        whole = sum(self.weights)
        return Tails(
            self._reaching(self.spare, beyond=not self.strict), self._reaching(whole - self.spare, beyond=self.strict)
        )

    def _reaching(self, weight: float, *, beyond: bool) -> int:
        """The largest number of statements that reach a weight, or go beyond it, and do not without any of them."""
        sums, weight = np.round(np.cumsum(sorted(self.weights)), _DIGITS), round(weight, _DIGITS)
        short = int((sums <= weight if beyond else sums < weight).sum())
        return min(short + 1, max(1, len(self.weights)))


Statement = Margin | Joint | Weighed


def negated(statement: Statement) -> Statement:
    """The statement that is true where this one is not."""
    if isinstance(statement, Joint):
        return Joint([negated(one) for one in statement.statements], not statement.every)
    if isinstance(statement, Weighed):
        spare = sum(statement.weights) - statement.spare
        return Weighed([negated(one) for one in statement.statements], statement.weights, spare, not statement.strict)
    # At equality one of both has to be true.
    return replace(statement, value=-statement.value or -_LEAST, skewness=-statement.skewness)


def varies(statement: Statement) -> bool:
    """Whether a margin in a statement has an error: other repetitions might give another one."""
    return any(margin.error > 0 for margin in _margins(statement))


def undefined(statement: Statement) -> bool:
    """Whether a margin in a statement is not a number, such as 0 divided by 0: nothing can be decided about it."""
    return any(np.isnan(margin.value) for margin in _margins(statement))


def _margins(statement: Statement) -> Iterator[Margin]:
    if isinstance(statement, Margin):
        yield statement
    else:
        for part in statement.statements:
            yield from _margins(part)


def _parts(statement: Statement) -> Tails:
    """By how many each end's error has to be divided in every margin, so that the statement keeps its own."""
    if isinstance(statement, Margin):
        return Tails(1, 1)
    if not statement.statements:
        return Tails(1, 1)
    low, high = zip(*map(_parts, statement.statements), strict=True)
    if isinstance(statement, Weighed):
        most = statement.most
        return Tails(most.low * max(low), most.high * max(high))
    return Tails(max(low), sum(high)) if statement.every else Tails(sum(low), max(high))


def _interval(statement: Statement, repetitions: int, tails: Tails, allowance: float) -> Interval:
    if isinstance(statement, Joint):
        join = min if statement.every else max
        found = [_interval(one, repetitions, tails, allowance) for one in statement.statements]
        return Interval(*map(join, zip(*found, strict=True)))
    if isinstance(statement, Weighed):
        found = [_interval(one, repetitions, tails, allowance) for one in statement.statements]
        return Interval(*(statement.left([one[end] for one in found]) for end in range(3)))
    if not np.isfinite(statement.value):
        return Interval(statement.value, statement.value, statement.value)
    low, high = _ends(repetitions, tails, statement.skewness)
    bias = allowance * statement.scale
    return Interval(
        statement.value, statement.value + statement.error * low - bias, statement.value + statement.error * high + bias
    )


@dataclass(frozen=True)
class Rule:
    """When repetitions decide a statement.

    `looks` is how often the statement may be judged in all, on more repetitions each time. Every look gets the same
    part of `ERROR`, so that they cannot exceed it together, whichever of them decides. A `provisional` verdict is one
    of runs that are shorter than those it is about. `allowance` is how far a margin may be off because of that, as a
    part of the margin's scale.
    """

    looks: int = 1
    provisional: bool = False
    allowance: float = 0.0

    def decide(self, statement: Statement, repetitions: int) -> Verdict:
        """The verdict on a statement."""
        return self.decide_part(statement, statement, repetitions)

    def decide_part(self, part: Statement, whole: Statement, repetitions: int) -> Verdict:
        """The verdict on a part of a statement, as it counts in the whole."""
        found = self.interval(part, whole, repetitions)
        return Verdict.of(True if found.low >= 0 else False if found.high < 0 else None)

    def interval(self, part: Statement, whole: Statement, repetitions: int) -> Interval:
        """The margin of a part of a statement, with the interval that decides in it."""
        if undefined(part):
            return Interval(np.nan, np.nan, np.nan)
        tail, parts = ERROR / 2 / self.looks, _parts(whole)
        return _interval(part, repetitions, Tails(tail / parts.low, tail / parts.high), self.allowance)


def moments(resampled: np.ndarray, repetitions: int, scale: float = 0.0) -> tuple[float, float, float]:
    """The sample's own value, its standard error, and the skewness of its distribution; `scale` is that of its terms.

    Resamples of few repetitions spread too little by the factor sqrt(1 - 1/n), which the standard error makes good. The
    skewness is corrected for the number of repetitions in the usual way, and for what they hide. A value that is not
    finite has no error. The error is infinite where only some resamples are not finite, such as those in which the
    denominator of a ratio is 0.

    >>> moments(np.array([2.0, 1.0, 1.0, 3.0, 3.0]), 4)[1] == (4 / 3) ** 0.5
    True
    """
    value, others = float(resampled.flat[0]), resampled.flat[1:]
    if not np.isfinite(value):
        return value, 0.0, 0.0
    # Equal numbers in a different order add up to sums that differ in the last digits.
    least = 1e-12 * max(abs(value), scale)
    own = value if abs(value) > least else 0.0
    if repetitions < 2:
        return own, 0.0, 0.0
    if not np.isfinite(others).all():
        return value, np.inf, 0.0
    spread = float(np.std(others)) if others.size else 0.0
    if spread <= least:
        return own, 0.0, 0.0
    error = spread * (repetitions / (repetitions - 1)) ** 0.5
    if repetitions < 3:
        return value, error, 0.0
    deviations = others - np.mean(others)
    # A power of 3 takes numpy several times as long.
    shown = float(np.mean(deviations * deviations * deviations)) / spread**3
    # So little is within two standard errors of the skewness of so many draws from a symmetric distribution.
    if abs(shown) < 2 * (6 / others.size) ** 0.5:
        return value, error, 0.0
    return value, error, _HIDDEN_SKEWNESS * shown * (repetitions * (repetitions - 1)) ** 0.5 / (repetitions - 2)


def estimated(resampled: np.ndarray, repetitions: int) -> Interval:
    """A quantity with its 95 % interval."""
    value, error, skewness = moments(resampled, repetitions)
    low, high = _ends(repetitions, Tails(0.025, 0.025), skewness)
    return Interval(value, value + error * low, value + error * high)


def _ends(repetitions: int, tails: Tails, skewness: float) -> tuple[float, float]:
    """The ends of an interval in standard errors from the value."""
    from scipy.special import stdtrit

    if repetitions < 2:
        return 0.0, 0.0
    low, high = (-float(stdtrit(repetitions - 1, tail)) for tail in tails)
    return -max(low, _unskewed(low, skewness)), -min(-high, _unskewed(-high, skewness))


def _unskewed(quantile: float, skewness: float) -> float:
    """The quantile of (value - truth) / error where that of its transform is `quantile`: the inverse of Hall's."""
    if abs(skewness) < 1e-6:
        return quantile
    return 3 / skewness * (float(np.cbrt(1 + skewness * (quantile - skewness / 6))) - 1)
