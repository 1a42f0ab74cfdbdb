"""The value of an expression in every repetition by itself, for a statistic such as `mean` to reduce.

In a mean of two subflows' rates over the repetitions, it cancels out if they take turns; in the mean of the smaller
rate over the larger of each repetition it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from lark import Token, Tree

from mptcplab.studies.papers.predicate.choice import OPERATIONS

Names = Mapping[str, str]
Values = Callable[[str, Names], np.ndarray]
_JOINS = {"min": np.minimum, "max": np.maximum}


def each(node: Tree[Token], values: Values, names: Names) -> np.ndarray:
    """The value of an expression in each repetition; `values` gives those of a selector."""
    found: np.ndarray = _Evaluator(values).of(node, names)
    return found


def with_text(operand: Tree[Token], text: str) -> None:
    """Keep the text of an operand with its place."""
    meta: Any = operand.meta
    meta.text = text


def text_of(operand: Tree[Token]) -> str:
    """The text of an operand of a predicate."""
    meta: Any = operand.meta
    text: str = meta.text
    return text


def items(text: str) -> list[str]:
    """The words of a set in brackets."""
    return [word.strip() for word in text[1:-1].split(",")]


@dataclass(frozen=True)
class _Evaluator:
    """A method per rule of the grammar that may be inside a statistic."""

    values: Values

    def of(self, node: Tree[Token], names: Names) -> Any:
        return getattr(self, node.data)(node.children, names)

    def operand(self, parts: Sequence[Tree[Token]], names: Names) -> Any:
        return self.of(parts[0], names)

    def arithmetic(self, parts: Sequence[Any], names: Names) -> Any:
        left, operator, right = parts
        return OPERATIONS[operator](self.of(left, names), self.of(right, names))

    def negative(self, parts: Sequence[Tree[Token]], names: Names) -> Any:
        return -self.of(parts[0], names)

    def number(self, parts: Sequence[Token], _: Names) -> float:
        return float(parts[0])

    def selector(self, parts: Sequence[Token], names: Names) -> np.ndarray:
        return self.values(parts[0], names)

    def call(self, parts: Sequence[Any], names: Names) -> Any:
        name, *arguments = parts
        if name in ("abs", "log"):
            return {"abs": np.abs, "log": np.log}[name](self.of(arguments[0], names))
        if name in _JOINS:
            return reduce(_JOINS[name], [self.of(argument, names) for argument in arguments])
        node, over = arguments
        found = [self.of(node, {**names, "*cc": cc}) for cc in items(over.children[0])]
        return reduce(_JOINS[name.removesuffix("_cc")], found)
