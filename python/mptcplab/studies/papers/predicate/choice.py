"""The largest or smallest of several quantities, kept apart until it is compared.

The largest of several means is larger than the largest of the true ones where these are close, and resamples of it
repeat the error. `a > max(b, c)` is therefore decided as `a > b` and `a > c`. What is computed from a choice is again
a choice as long as it rises or falls with it; anything else takes the choice as it is, through `numpy.asarray`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Choice:
    """The largest, or smallest, of several quantities."""

    parts: tuple[Any, ...]
    largest: bool

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        join = np.maximum if self.largest else np.minimum
        return np.asarray(reduce(join, [np.asarray(part, dtype=float) for part in self.parts]), dtype=dtype)


@dataclass(frozen=True)
class Named:
    """The name of the largest, or smallest, row of a table of quantities."""

    names: tuple[str, ...]
    table: np.ndarray
    largest: bool

    @property
    def found(self) -> str:
        """The name on the sample."""
        column = self.table[:, 0]
        return self.names[int(column.argmax() if self.largest else column.argmin())]


def extreme(parts: Sequence[Any], *, largest: bool) -> Any:
    """The largest or smallest of some quantities."""
    return parts[0] if len(parts) == 1 else Choice(tuple(parts), largest)


def transformed(function: Callable[[Any], Any], value: Any) -> Any:
    """A function that rises, of a quantity or of what a choice is between."""
    return _each(value, lambda part: transformed(function, part)) if isinstance(value, Choice) else function(value)


def combined(operator: str, left: Any, right: Any) -> Any:
    """The sum, difference, product or quotient of two quantities or choices."""
    if isinstance(left, Choice):
        direction = 1 if operator in "+-" else _sign(right)
        if direction:
            return _each(left, lambda part: combined(operator, part, right), falls=direction < 0)
    if isinstance(right, Choice):
        direction = {"+": 1, "-": -1, "*": _sign(left), "/": -_sign(left) * abs(_sign(right))}[operator]
        if direction:
            return _each(right, lambda part: combined(operator, left, part), falls=direction < 0)
    return OPERATIONS[operator](np.asarray(left, dtype=float), np.asarray(right, dtype=float))


def _each(choice: Choice, function: Callable[[Any], Any], *, falls: bool = False) -> Choice:
    return Choice(tuple(map(function, choice.parts)), choice.largest != falls)


def _sign(value: Any) -> int:
    """1 or -1 where a quantity, or all that a choice is between, has this sign on every resample; else 0."""
    if isinstance(value, Choice):
        signs = {_sign(part) for part in value.parts}
        return signs.pop() if len(signs) == 1 else 0
    array = np.asarray(value, dtype=float)
    return 1 if (array > 0).all() else -1 if (array < 0).all() else 0


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
