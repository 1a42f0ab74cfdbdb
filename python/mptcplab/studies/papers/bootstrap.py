"""Resampled repetitions: one matrix of indices per number of repetitions, the same for every quantity (paired)."""

from __future__ import annotations

from functools import cache

import numpy as np

COUNT = 10_000
# Half of what a 95 % interval leaves out.
_TAIL = 0.025
_SEED = 6356


@cache
def resamples(n: int, count: int = COUNT) -> np.ndarray:
    """Indices of repetitions, shape (count + 1, n): row 0 is the sample itself, the others are drawn with replacement.

    The same n gives the same matrix, so that what is computed from two quantities of the same repetitions stays paired.

    >>> resamples(3)[0].tolist(), resamples(3).shape
    ([0, 1, 2], (10001, 3))
    """
    drawn = np.random.Generator(np.random.PCG64([_SEED, n])).integers(0, n, size=(count, n))
    return np.vstack([np.arange(n), drawn])


def interval(values: np.ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile interval of a resampled statistic (row 0, the sample's own value, is left out)."""
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(values[1:], [tail, 1 - tail])
    return float(low), float(high)


def decided(share: float) -> bool | None:
    """Whether a statement that is true on this part of the resamples is true; None where they do not decide.

    >>> decided(0.99), decided(0.5), decided(0.01)
    (True, None, False)
    """
    if share >= 1 - _TAIL:
        return True
    return False if share <= _TAIL else None
