"""What the C file of an algorithm declares: header comment, kind, parameters and hooks.

The build reads what it has when it is compiled. A file of a user is compiled at run time, and the engine keeps no
declarations of it for Python, so that they are read from its text here. Values are those of the text: a constant or a
macro of another place is shown by its name.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from mptcplab import _core
from mptcplab.algorithm import Algorithm

_NO_TITLE = "(no title)"
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def declared(algorithm: Algorithm) -> dict[str, Any]:
    """The declarations of a compiled algorithm, with the keys of an entry of `api.algorithms` that a file has.

    `hooks` maps the hooks that it registers to its functions, and `place` is the file.
    """
    text = algorithm.text or ""
    title, sections = _header(text)
    code = _COMMENT.sub(" ", text)
    return {
        "name": algorithm.name,
        "title": title or _NO_TITLE,
        "coupled": re.search(r"\bCC_(COUPLED|SHARED)\s*\(", code) is not None,
        "place": algorithm.place,
        "sections": sections,
        "incomplete": _incomplete(title, [section["name"] for section in sections]),
        "params": [_param(argument) for argument in _arguments(code, "CC_PARAMS")[1:]],
        "hooks": dict(map(_member, _arguments(code, "CC_REGISTER")[1:])),
    }


@cache
def _headings() -> tuple[str, ...]:
    """Those of a complete header comment, in their order, such as every algorithm of the build has."""
    built: list[dict[str, Any]] = json.loads(_core.algorithms_json())
    return tuple(section["name"] for section in built[0]["sections"])


def _header(text: str) -> tuple[str, list[dict[str, str]]]:
    """The title and the sections of the first block comment."""
    found = re.search(r"/\*(.*?)\*/", text, re.DOTALL)
    title, sections = "", []
    for line in (found[1] if found else "").splitlines():
        line = line.lstrip().removeprefix("*")
        name, colon, rest = line.removeprefix(" ").partition(":")
        if line.startswith(" ") and colon and name in _headings():
            sections.append({"name": name, "text": rest.strip()})
        elif sections:
            sections[-1]["text"] += "\n" + (line[3:] if line.startswith("   ") else line.lstrip()).rstrip()
        else:
            title = title or line.strip()
    before, colon, after = title.partition(": ")
    return after if colon else before, [{**one, "text": one["text"].strip()} for one in sections]


def _incomplete(title: str, found: list[str]) -> str | None:
    if title and tuple(found) == _headings():
        return None
    missing = [] if title else ["the title line"]
    missing += [name for name in _headings() if name not in found]
    order = f"each heading once, in this order: {', '.join(_headings())}"
    return f"missing: {', '.join(missing)}" if missing else order


def _param(argument: str) -> dict[str, str]:
    """A parameter with its default and its range; a macro that declares some is shown by its name."""
    words = _arguments(argument, "CC_PARAM")
    if not words:
        return {"name": argument, "default_text": "", "range": "", "doc": "declared by this macro"}
    members = dict(map(_member, words[1:]))
    names = _text(members.get("names", "")).split("|") if "names" in members else []
    numbers = [_number(members.get(key, "0")) for key in ("initial", "min", "max")]
    default, least, most = numbers
    if default.isdigit() and int(default) < len(names):
        default = names[int(default)]
    interval = f"{least} to {most}"
    spans = ", ".join(names) + (f", or {interval}" if "scale" in members else "") if names else interval
    return {"name": words[0], "default_text": default, "range": spans, "doc": _text(members.get("help", ""))}


def _member(argument: str) -> tuple[str, str]:
    """A designated initialiser: `.name = value`."""
    name, _, value = argument.partition("=")
    return name.strip().removeprefix("."), value.strip()


def _text(value: str) -> str:
    """The text of string literals that C joins."""
    return "".join(_STRING.findall(value)).replace('\\"', '"')


def _number(value: str) -> str:
    """The value of an expression of numbers, or what is written.

    >>> _number("1.0 / 1024"), _number("3u"), _number("CC_ONE_Q16")
    ('0.000976562', '3', 'CC_ONE_Q16')
    """
    try:
        return f"{_value(ast.parse(re.sub(r'(?<=[0-9])[uUlL]+', '', value).strip(), mode='eval').body):g}"
    except (SyntaxError, ValueError, ZeroDivisionError):
        return value


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return float(_OPERATORS[type(op)](_value(left), _value(right)))
    raise ValueError


def _arguments(code: str, macro: str) -> list[str]:
    """The arguments of the first call of a macro, without surrounding space; none where there is none."""
    found = re.search(rf"\b{macro}\s*\(", code)
    return [] if not found else [one for one in map(_squeezed, _split(code, found.end())) if one]


def _split(code: str, start: int) -> Iterator[str]:
    """The parts between commas up to the closing parenthesis; commas in parentheses and texts separate nothing."""
    depth, begin, place = 0, start, start
    while place < len(code):
        if text := _STRING.match(code, place):
            place = text.end()
            continue
        one = code[place]
        if one in "([{":
            depth += 1
        elif (one == "," and depth == 0) or (one in ")]}" and depth == 0):
            yield code[begin:place]
            begin = place + 1
            if one != ",":
                return
        elif one in ")]}":
            depth -= 1
        place += 1


def _squeezed(argument: str) -> str:
    return " ".join(argument.split())
