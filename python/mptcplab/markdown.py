"""Pieces of Markdown pages."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""A table; a cell's text goes on one line, and its bars are escaped.

    >>> print(table(["name", "meaning"], [["a", "x |\n y"]]))
    | name | meaning |
    | --- | --- |
    | a | x \| y |
    """
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines)


def anchor(title: str) -> str:
    """The fragment under which Markdown renderers put a heading.

    >>> anchor("One Reno flow, one BDP")
    'one-reno-flow-one-bdp'
    """
    return "".join(c for c in title.lower() if c.isalnum() or c in " -").replace(" ", "-")


def escaped(text: str) -> str:
    """Text on one line, with bars that do not end a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")
