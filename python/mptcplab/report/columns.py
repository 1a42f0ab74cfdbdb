"""Columns of integers as few bytes, which `data.js` reads: differences, one plane per byte of them, compressed.

Samples of a window or a counter hardly differ from the ones before, so most bytes of the differences are zero, and
equal bytes that stand together compress well.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Takes a third of the time of zlib's default level, for an eighth more bytes.
_LEVEL = 4


@dataclass(frozen=True)
class Points:
    """Times in microseconds with integer values, in the order of time."""

    times_us: np.ndarray
    values: np.ndarray


def packed(lines: Sequence[Points]) -> tuple[str, list[dict[str, object]]]:
    """The lines as base64 of one compressed text, and what its reader has to know about each of them.

    Evenly spaced times are not stored: `times` has the first one and their distance. Otherwise it is the number of
    planes of the column of times, which stands before that of the values.
    """
    parts: list[bytes] = []
    about: list[dict[str, object]] = []
    for line in lines:
        steps = np.diff(line.times_us)
        if line.times_us.size and (steps == steps[:1]).all():
            times: object = [int(line.times_us[0]), int(steps[0]) if steps.size else 0]
        else:
            parts.append(_planes(line.times_us))
            times = len(parts[-1]) // max(line.times_us.size, 1)
        parts.append(_planes(line.values))
        planes = len(parts[-1]) // max(line.values.size, 1)
        about.append({"count": int(line.values.size), "times": times, "planes": planes})
    return base64.b64encode(zlib.compress(b"".join(parts), _LEVEL)).decode("ascii"), about


def _planes(values: np.ndarray) -> bytes:
    """The lowest bytes of all differences, then the next ones, as many as are needed; the sign is the lowest bit."""
    whole: NDArray[np.int64] = np.concatenate([np.zeros(1, np.int64), values.astype(np.int64)])
    steps = whole[1:] - whole[:-1]
    folded = (steps << 1) ^ (steps >> 63)
    count = max(1, (int(folded.max(initial=0)).bit_length() + 7) // 8)
    return np.ascontiguousarray(folded.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :count].T).tobytes()


def unpacked(text: str, about: Sequence[dict[str, object]]) -> list[Points]:
    """What `packed` was given.

    >>> line = Points(np.array([0, 10, 25]), np.array([7, 3, 300]))
    >>> [back.values.tolist() for back in unpacked(*packed([line, line]))]
    [[7, 3, 300], [7, 3, 300]]
    """
    data, at = zlib.decompress(base64.b64decode(text)), 0

    def column(count: int, planes: int) -> np.ndarray:
        nonlocal at
        raw = np.zeros((count, 8), dtype=np.uint8)
        raw[:, :planes] = np.frombuffer(data, np.uint8, planes * count, at).reshape(planes, count).T
        at += planes * count
        folded = raw.view("<u8").ravel().astype(np.int64)
        return np.cumsum((folded >> 1) ^ -(folded & 1))

    lines = []
    for one in about:
        count, planes, times = one["count"], one["planes"], one["times"]
        assert isinstance(count, int) and isinstance(planes, int)
        if isinstance(times, list):
            times_us = times[0] + times[1] * np.arange(count)
        else:
            assert isinstance(times, int)
            times_us = column(count, times)
        lines.append(Points(times_us, column(count, planes)))
    return lines
