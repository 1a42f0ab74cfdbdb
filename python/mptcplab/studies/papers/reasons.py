"""The reasons for verdicts: texts whose measured numbers are computed from the results they are about.

`{EXPRESSION:FORMAT}` in the `why` of a claim is an expression of the language of predicates, evaluated on the sample.
`{=TEXT}` is a number that was not measured: of the paper, of the setup, of a formula. No other number may be typed, so
that a reason cannot go stale; papers/README.md has the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lark import Token, Tree

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.studies.papers.predicate import Domain, Lookup, parse, value
from mptcplab.study.values import NotTestableError
from mptcplab.text import NOT_APPLICABLE

_FORMAT = re.compile(r"\+?\.\d[f%]")
# Names contain digits: of claims and experiments, of subflows, of profiles.
_NAME = re.compile(r"[A-Za-z][\w.-]*")
_QUANTITY = re.compile(
    r"\d(?:[\d.,]*\d)?|\b(?:half|thirds?|quarters?|fifths?|sixths?|eighths?|tenths?|twice|doubled?|hundreds?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Measured:
    """A number that is computed: the expression as written and as a tree, and how to show its value."""

    expression: str
    tree: Tree[Token]
    format: str

    def shown(self, lookup: Lookup, domain: Domain) -> str:
        """The value as it is shown; a dash where there is none."""
        try:
            found = value(self.tree, lookup, domain)
        except NotTestableError:
            return NOT_APPLICABLE
        return found if isinstance(found, str) else formatted(found, self.format)


@dataclass(frozen=True)
class Reason:
    """A text in pieces: words, and numbers to be computed."""

    pieces: tuple[str | Measured, ...] = ()

    def shown(self, lookup: Lookup, domain: Domain) -> str:
        """The text with its numbers."""
        return "".join(p if isinstance(p, str) else p.shown(lookup, domain) for p in self.pieces)

    @property
    def measured(self) -> list[Measured]:
        """The numbers that are computed."""
        return [piece for piece in self.pieces if isinstance(piece, Measured)]


NO_REASON = Reason()


def read_reason(text: str) -> Reason:
    """The pieces of a reason; a mistake is an error that says what would be right.

    >>> [p if isinstance(p, str) else p.format for p in read_reason("It has {mean(a{cc=b}):.2f}, not {=2}.").pieces]
    ['It has ', '.2f', ', not ', '2', '.']
    """
    pieces: list[str | Measured] = []
    for inside, part in _split(text):
        if not inside:
            _refuse_typed_numbers(part)
            pieces.append(part)
        elif part.startswith("="):
            pieces.append(part[1:])
        else:
            pieces.append(_measured(part))
    return Reason(tuple(pieces))


def formatted(number: float, style: str) -> str:
    """A number in a style; without one it has three significant digits.

    >>> formatted(0.0523, "+.0%"), formatted(31.46, ".1f"), formatted(0.4567, "")
    ('+5 %', '31.5', '0.457')
    """
    if not style:
        return f"{number:.3g}"
    # A rounded zero has no sign.
    return re.sub(r"^[+-](?=0(\.0*)?%?$)", "", f"{number:{style}}").replace("%", " %")


def _split(text: str) -> Iterator[tuple[bool, str]]:
    """The parts outside and inside of outer braces, in turn; selectors have braces of their own."""
    depth, begin = 0, 0
    for place, character in enumerate(text):
        if character == "{":
            if depth == 0:
                yield False, text[begin:place]
                begin = place + 1
            depth += 1
        elif character == "}":
            depth -= 1
            if depth < 0:
                raise MptcplabError(
                    with_hint(f"}} without {{: {text[: place + 1][-40:]!r}", "write {EXPRESSION:FORMAT}")
                )
            if depth == 0:
                yield True, text[begin:place]
                begin = place + 1
    if depth:
        raise MptcplabError(with_hint(f"{{ without }}: {text[begin - 1 :][:40]!r}", "write {EXPRESSION:FORMAT}"))
    yield False, text[begin:]


def _measured(part: str) -> Measured:
    expression, colon, style = part.rpartition(":")
    if not colon:
        expression, style = part, ""
    if colon and not _FORMAT.fullmatch(style):
        raise MptcplabError(with_hint(f"not a format: {style!r}", "one such as .2f, .0% or +.1%"))
    return Measured(expression, parse(expression, "expression"), style)


def _refuse_typed_numbers(words: str) -> None:
    typed = _QUANTITY.search(_NAME.sub(lambda name: "" if re.search(r"\d", name[0]) else name[0], words))
    if typed:
        hint = f"a measured one is {{EXPRESSION:FORMAT}}; one of the paper or of the setup is {{={typed[0]}}}"
        raise MptcplabError(with_hint(f"a typed number: {typed[0]!r} in {' '.join(words.split())!r}", hint))
