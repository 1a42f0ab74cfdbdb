"""Which lines of Python belong together."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


def statement(file: str, line: int) -> range:
    """All lines of the shortest statement that has this one: Python need not say that it reaches each of them.

    Of a statement with a body it is the head.
    """
    nodes = (node for node in ast.walk(_parsed(file)) if isinstance(node, ast.stmt))
    return min((span for node in nodes if line in (span := _own_lines(node))), key=len, default=range(line, line + 1))


def _own_lines(node: ast.stmt) -> range:
    """The lines of a statement that belong to none of its body's statements; decorators belong to it."""
    decorators = getattr(node, "decorator_list", [])
    begin = min([node.lineno, *(one.lineno for one in decorators)])
    inner = getattr(node, "body", None) or [case.pattern for case in getattr(node, "cases", ())]
    end = (node.end_lineno or node.lineno) + 1
    # A body may stand in the line of its head.
    return range(begin, max(min([end, *(one.lineno for one in inner)]), begin + 1))


@cache
def _parsed(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text())
