"""Resampled repetitions, means with their intervals, and bounds; `study.decision` decides with them.

There is one matrix of resampled indices per number of repetitions, the same for every quantity: what is computed from
two quantities of the same repetitions stays paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from mptcplab.metrics.student import CONFIDENCE, half_of_mean

RESAMPLES = 10_000
_SEED = 6356


@cache
def resamples(n: int, count: int = RESAMPLES) -> np.ndarray:
    """Indices of repetitions, shape (count + 1, n): row 0 is the sample itself, the others are drawn with replacement.

    >>> resamples(3)[0].tolist(), resamples(3).shape
    ([0, 1, 2], (10001, 3))
    """
    drawn = np.random.Generator(np.random.PCG64([_SEED, n])).integers(0, n, size=(count, n))
    return np.vstack([np.arange(n), drawn])


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` repetitions; `half` is half of its interval (Student's t), None where there is none."""

    mean: float
    half: float | None
    n: int

    @classmethod
    def of(cls, values: np.ndarray | Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
        """From one value per repetition.

        >>> Estimate.of([1.0, 3.0]).mean, round(Estimate.of([1.0, 3.0]).half, 3)
        (2.0, 12.706)
        """
        return cls(float(np.mean(values)), half_of_mean(values, confidence), len(values))

    def __str__(self) -> str:
        digits = decimals(self.mean if self.half is None else max(abs(self.mean), self.half))
        return f"{self.mean:.{digits}f}" + ("" if self.half is None else f" ± {self.half:.{digits}f}")


def decimals(value: float) -> int:
    """Decimals that show a number with three digits.

    >>> decimals(0.0123), decimals(9.87), decimals(424.0)
    (4, 2, 0)
    """
    return 2 if value == 0 or not np.isfinite(value) else max(0, 2 - int(np.floor(np.log10(abs(value)))))


@dataclass(frozen=True)
class Bound:
    """Smallest and largest accepted value of a mean, or where `each` is set of every repetition.

    What is `shown` only is compared with the bound and decides nothing.
    """

    low: float | None = None
    high: float | None = None
    each: bool = False
    shown: bool = False

    def admits(self, value: float) -> bool:
        """Whether one value is within the bound."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        """The bound in words.

        >>> str(Bound(0.7, 1.15)), str(Bound(low=0.98, each=True)), str(Bound(high=1, shown=True))
        ('0.7 to 1.15', 'each at least 0.98', '(at most 1)')
        """
        if self.low is not None and self.high is not None:
            text = f"{self.low:g} to {self.high:g}"
        elif self.low is not None:
            text = f"at least {self.low:g}"
        else:
            text = "0" if self.high == 0 else f"at most {self.high:g}"
        text = f"each {text}" if self.each else text
        return f"({text})" if self.shown else text
