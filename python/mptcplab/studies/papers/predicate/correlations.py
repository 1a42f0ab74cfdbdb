"""Correlations, none of which is shown beyond -1 and 1; those of ranks are decided by the order of points two by two.

A rank correlation is a step function of the means, and ends at -1 and 1, so that the spread of resamples says little
about it. But it falls by a known amount with every pair of points whose means are out of order: by the difference
between the ranks of the points, divided by the spreads of both ranks. A bound of the correlation is therefore a limit
to the pairs that may be out of order (`study.decision.Weighed`). One that only a perfect order meets admits none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from mptcplab.study.decision import Interval, Margin, Rule, Weighed, estimated


@dataclass(frozen=True)
class Correlation:
    """Pearson's correlation, or its square, on every resample; it is never below `lowest`, and never above 1."""

    resampled: np.ndarray
    lowest: float

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.resampled, dtype=dtype)

    def estimated(self, repetitions: int) -> Interval:
        """The correlation with its 95 % interval."""
        return Interval(*(min(max(end, self.lowest), 1.0) for end in estimated(self.resampled, repetitions)))

    @classmethod
    def between(cls, one: np.ndarray, other: np.ndarray) -> Correlation:
        """That of two tables along the first axis, column by column; 0 where a side does not vary."""
        a, b = one - one.mean(axis=0), other - other.mean(axis=0)
        spread = np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
        return cls(np.divide((a * b).sum(axis=0), spread, out=np.zeros_like(spread), where=spread != 0), -1.0)

    @property
    def squared(self) -> Correlation:
        """The part of the variance that a line explains."""
        return Correlation(self.resampled**2, 0.0)


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation of x with a table that has a row of resamples for each point.

    It is 0 where a side does not vary. As an array, it is the sample's own on every resample, so that what is computed
    from it has no interval. `terms` is the size of what the rows are differences of.
    """

    table: np.ndarray
    x: Sequence[float]
    terms: float = 0.0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.full(self.table.shape[1], self.found, dtype=dtype)

    @cached_property
    def found(self) -> float:
        """The correlation on the sample: how far it is above 0."""
        sample = RankCorrelation(self.table[:, :1], self.x, self.terms)
        statement = sample.beyond(0.0, 1, below=False, strict=False)
        return Rule().interval(statement, statement, 1).value

    def beyond(self, bound: float, repetitions: int, *, below: bool, strict: bool) -> Weighed:
        """The correlation is at least `bound`, or at most where `below`; not equal to it where `strict`."""
        ranks, places = _centred(self._of_x), range(len(self.x))
        # Where no point differs from another, the correlation is 0 whatever they are divided by.
        spread = _spread(ranks) * (_spread(_centred(self._of_y)) or _spread(np.arange(len(self.x)) + 0.0))
        pairs: list[Margin] = []
        weights: list[float] = []
        for first, second in product(places, places):
            if ranks[first] < ranks[second]:
                lower, upper = (second, first) if below else (first, second)
                found = self._in_order(lower, upper, repetitions)
                pairs += found
                weights += [float(ranks[second] - ranks[first]) / spread / len(found)] * len(found)
        return Weighed(pairs, weights, sum(weights) / 2 + (bound if below else -bound), strict=strict)

    def _in_order(self, lower: int, upper: int, repetitions: int) -> list[Margin]:
        """One point's mean is above another's; a tie is half in order, and half out of order."""
        inside, outside = self.table[upper], self.table[lower]
        if self._of_y[upper, lower] != 0:
            return [Margin.between(inside, outside, repetitions, terms=self.terms)]
        # Nor is there a difference on the sample where only the last digits differ.
        outside = np.concatenate([inside[:1], outside[1:]])
        ways = (False, True)
        return [Margin.between(inside, outside, repetitions, strict=strict, terms=self.terms) for strict in ways]

    @cached_property
    def _of_x(self) -> np.ndarray:
        return _signs(np.asarray(self.x, dtype=float))

    @cached_property
    def _of_y(self) -> np.ndarray:
        return _signs(self.table[:, 0], self.terms)


def _signs(values: np.ndarray, terms: float = 0.0) -> np.ndarray:
    """1 where the value of the row is larger than that of the column, and -1 where it is smaller."""
    sizes = np.maximum(np.abs(values), terms)
    differences = np.subtract.outer(values, values)
    # A point does not differ from itself where it is infinite.
    np.fill_diagonal(differences, 0)
    same = np.abs(differences) <= 1e-12 * np.minimum(np.maximum.outer(sizes, sizes), np.finfo(float).max)
    return np.where(same, 0.0, np.sign(differences))


def _centred(signs: np.ndarray) -> np.ndarray:
    """Ranks minus their mean: half of how many values are smaller, minus half of how many are larger."""
    found: np.ndarray = signs.sum(axis=1) / 2
    return found


def _spread(values: np.ndarray) -> float:
    """The root of the sum of squared deviations."""
    deviations = values - values.mean()
    return float((deviations @ deviations) ** 0.5)
