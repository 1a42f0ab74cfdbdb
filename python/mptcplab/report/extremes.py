"""The smallest and the largest value of bins, which lines keep when they have fewer points than there are samples."""

from __future__ import annotations

import numpy as np


def extremes(values: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The smallest and the largest value of every bin, and whether the smallest occurs first.

    A bin is not empty; it begins at its place in `starts` and ends where the next one begins.

    >>> low, high, low_first = extremes(np.array([3, 1, 2, 5, 5, 4]), np.array([0, 3]))
    >>> low.tolist(), high.tolist(), low_first.tolist()
    ([1, 4], [3, 5], [False, False])
    """
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    sizes = np.diff(starts, append=values.size)
    place = np.arange(values.size, dtype=np.int32)

    def first(wanted: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.minimum.reduceat(
            np.where(values == np.repeat(wanted, sizes), place, np.int32(values.size)), starts
        )
        return found

    return low, high, first(low) <= first(high)
