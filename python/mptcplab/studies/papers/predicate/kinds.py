"""Checks that each part of a predicate is what the part around it needs: a statement, a number, a word or a set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from lark import Token, Tree

from mptcplab.studies.papers.predicate.repetition import items

Kind = Literal["statement", "number", "word", "name", "set"]

_STATEMENTS = ("comparison", "conjunction", "disjunction", "equivalence", "never", "quantifier")
_CALLED = {
    "statement": "a comparison",
    "number": "a number",
    "word": "a word",
    "name": "the name of a treatment",
    "set": "a set",
}


class WrongKindError(Exception):
    """A part of a predicate is of a kind with which nothing can be done there; `node` is that part."""

    def __init__(self, node: Tree[Token], why: str) -> None:
        super().__init__(why)
        self.node = node


def kind_of(node: Tree[Token]) -> Kind:
    """What a node is."""
    if node.data == "operand":
        return kind_of(_inner(node))
    if node.data in _STATEMENTS:
        return "statement"
    if node.data in ("items", "pairs"):
        return "set"
    if node.data == "text":
        return "word"
    return "name" if node.data == "call" and str(node.children[0]).startswith("arg") else "number"


def _inner(operand: Tree[Token]) -> Tree[Token]:
    """What an operand consists of, which is never a single token."""
    inner = operand.children[0]
    assert isinstance(inner, Tree)
    return inner


def _nodes(tree: Tree[Token]) -> Iterator[Tree[Token]]:
    """A tree and all in it, from the top."""
    yield tree
    for part in tree.children:
        if isinstance(part, Tree):
            yield from _nodes(part)


def check(tree: Tree[Token], *wanted: Kind) -> None:
    """Raise WrongKindError for the first part that is wrong; `wanted` is what the whole may be."""
    _require(tree, *wanted)
    for node in _nodes(tree):
        parts = [part for part in node.children if isinstance(part, Tree)]
        if node.data in ("conjunction", "disjunction"):
            _require_all(parts, "statement")
        elif node.data == "quantifier":
            _require(parts[-1], "statement")
        elif node.data in ("arithmetic", "negative", "equivalence"):
            _require_all(parts, "number")
        elif node.data == "call":
            _require_all([part for part in parts if part.data != "over"], "number")
        elif node.data == "comparison":
            for left, operator, right in zip(parts, node.children[1::2], parts[1:], strict=False):
                _check_comparison(left, str(operator), right)


def _check_comparison(left: Tree[Token], operator: str, right: Tree[Token]) -> None:
    if operator in ("==", "!="):
        kinds = {kind_of(left), kind_of(right)}
        if kinds not in ({"number"}, {"word"}, {"name", "word"}, {"set"}):
            names = " and ".join(sorted(_CALLED[kind] for kind in kinds))
            raise WrongKindError(right, f"{names} cannot be compared")
        return
    _require(left, "number")
    if operator == "in":
        _require_range(right)
    else:
        _require(right, "number")


def _require_range(node: Tree[Token]) -> None:
    inner = _inner(node) if node.data == "operand" else node
    words = items(str(inner.children[0])) if inner.data == "items" else []
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != 2:
        raise WrongKindError(node, "after `in` there are two numbers in brackets")


def _require_all(nodes: list[Tree[Token]], wanted: Kind) -> None:
    for node in nodes:
        _require(node, wanted)


def _require(node: Tree[Token], *wanted: Kind) -> None:
    found = kind_of(node)
    if found not in wanted:
        raise WrongKindError(node, f"{_CALLED[found]} where {' or '.join(_CALLED[one] for one in wanted)} should be")
