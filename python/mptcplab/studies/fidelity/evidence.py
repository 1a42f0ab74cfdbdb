"""What a statement about the simulator rests on: measured cases, bounds, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mptcplab.metrics.stats import t_quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Judge(StrEnum):
    """What has to lie within a bound: the mean over repetitions, or every repetition."""

    MEAN = "mean"
    EVERY = "every"


@dataclass(frozen=True)
class Bound:
    """Smallest and largest accepted value. What is `shown` only is compared with the bound, and decides nothing."""

    low: float | None = None
    high: float | None = None
    judge: Judge = Judge.MEAN
    shown: bool = False

    def admits(self, value: float) -> bool:
        """Whether one value is within the bound."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True)
class Case:
    """One figure of a statement: its values, one per repetition, and the bound they have to meet.

    >>> case = Case(("lia",), (0.9, 1.1), "1", Bound(0.7, 1.15))
    >>> case.mean, case.verdict
    (1.0, 'holds')
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    unit: str
    bound: Bound | None = None
    digits: int = 3

    @property
    def mean(self) -> float:
        """Mean over repetitions."""
        return float(np.mean(self.values))

    @property
    def identical(self) -> bool:
        """Whether all repetitions gave the same value: nothing in them is random."""
        return len(set(self.values)) == 1

    @cached_property
    def half(self) -> float | None:
        """Half the 95 % confidence interval of the mean; None where there is nothing random, or too few values."""
        n = len(self.values)
        if n < 2 or self.identical:
            return None
        return float(np.std(self.values, ddof=1) * t_quantile(np.array([n - 1.0]))[0] / np.sqrt(n))

    @property
    def within(self) -> bool | None:
        """Whether the bound is met; None where there is none."""
        if self.bound is None:
            return None
        judged = (self.mean,) if self.bound.judge is Judge.MEAN else self.values
        return all(self.bound.admits(value) for value in judged)

    @property
    def decides(self) -> bool:
        """Whether the statement depends on this case."""
        return self.bound is not None and not self.bound.shown

    @property
    def verdict(self) -> str:
        """In words."""
        if self.within is None:
            return "-"
        if self.decides:
            return HOLDS if self.within else FAILS
        return "inside" if self.within else "outside"


HOLDS, FAILS, SHOWN = "holds", "does not hold", "shown"


@dataclass(frozen=True)
class Picture:
    """A figure: the stem of its files, what it shows, and how it is drawn."""

    stem: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Statement:
    """A claim about the simulator, and what was measured."""

    name: str
    title: str
    claim: str
    method: str
    scenario: str
    command: str
    heads: tuple[str, ...]
    cases: tuple[Case, ...]
    remarks: tuple[str, ...] = ()
    picture: Picture | None = None

    @property
    def holds(self) -> bool:
        """Whether every deciding case is within its bound."""
        return all(case.within for case in self.cases if case.decides)

    @property
    def verdict(self) -> str:
        """In words."""
        if not any(case.decides for case in self.cases):
            return SHOWN
        return HOLDS if self.holds else FAILS


def joined(words: Iterable[str]) -> str:
    """`a, b and c`.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    *most, last = list(words)
    return f"{', '.join(most)} and {last}" if most else last
