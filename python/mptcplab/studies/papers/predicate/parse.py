"""From the text of a predicate to a tree.

predicate  := conjunction { "or" conjunction }
conjunction:= statement { "and" statement }
statement  := ("all" | "any") "(" NAME "in" set ":" predicate ")" | "equiv" "(" sum "," sum "," sum ")" | "false"
            | sum { ("<" | "<=" | ">" | ">=" | "==" | "!=" | "in") (sum | set) }
set        := "[" item { "," item } "]" | "pairs" "(" set ")"
sum        := product { ("+" | "-") product };  product := atom { ("*" | "/") atom }
atom       := NUMBER | 'TEXT' | set | METRIC{KEY=VALUE,...} | FUNCTION "(" sum { "," sum } [ "," "over=" set ] ")"
            | "(" predicate ")" | "-" atom
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

from mptcplab.errors import MptcplabError

Item = float | str | tuple[str, str]


@dataclass(frozen=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True)
class Text:
    """A text in single quotes."""

    value: str


@dataclass(frozen=True)
class Items:
    """A set, written out."""

    values: tuple[Item, ...]


@dataclass(frozen=True)
class Selector:
    """A metric of some flow, subflow, link or run: one value per repetition."""

    metric: str
    keys: Mapping[str, str]
    text: str


@dataclass(frozen=True)
class Call:
    """A function of expressions; `over` lists algorithms."""

    name: str
    arguments: tuple[Node, ...]
    over: tuple[str, ...]


@dataclass(frozen=True)
class Arithmetic:
    """`left operator right`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Comparison:
    """A chain such as `a < b < c`; `texts` are the operands as written."""

    operands: tuple[Node, ...]
    operators: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Junction:
    """`and` or `or` of statements."""

    operator: str
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Quantifier:
    """`all` or `any` of a statement for every item of a set, bound to a name."""

    operator: str
    name: str
    items: tuple[Item, ...]
    body: Node


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests: left/right lies within [1 - margin, 1/(1 - margin)]."""

    left: Node
    right: Node
    margin: Node
    texts: tuple[str, str]


@dataclass(frozen=True)
class Never:
    """A contradiction that is verbal."""


Node = Number | Text | Items | Selector | Call | Arithmetic | Comparison | Junction | Quantifier | Equivalence | Never

FUNCTIONS = frozenset(
    (
        *("mean", "median", "std", "min", "max", "abs", "log"),
        *("argmax_cc", "argmin_cc", "max_cc", "min_cc", "corr_over_cc"),
        *("mean_sweep", "spearman_sweep", "r2_sweep"),
    )
)
_COMPARISONS = ("<=", ">=", "==", "!=", "<", ">", "in")
_TOKEN = re.compile(
    r"\s*(?:(?P<selector>[A-Za-z_]\w*\{[^}]*\})|(?P<number>\d+(?:\.\d+)?)|(?P<text>'[^']*')|(?P<set>\[[^\[\]]*\])"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<mark><=|>=|==|!=|[<>+\-*/(),:=]))"
)


def parse(text: str) -> Node:
    """The tree of a predicate; a mistake is an error that shows the place."""
    parser = _Parser(text)
    tree = parser.predicate()
    if parser.kind != "end":
        raise parser.error("the end")
    return tree


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.advance()

    def advance(self) -> None:
        """Read the next token; `begin` is where it begins, `ended` where the one before ended."""
        self.ended = self.at
        rest = self.text[self.at :]
        self.begin = self.at + len(rest) - len(rest.lstrip())
        if not rest.strip():
            self.kind, self.token = "end", ""
            return
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.kind, self.token = "unknown", rest.strip()[0]
            raise self.error("a predicate")
        self.kind, self.token = str(match.lastgroup), match[match.lastgroup or 0]
        self.at = match.end()

    def error(self, wanted: str) -> MptcplabError:
        return MptcplabError(f"predicate: {self.text[self.begin :][:40]!r} where {wanted} should be: {self.text}")

    def take(self, token: str) -> None:
        if self.token != token:
            raise self.error(repr(token))
        self.advance()

    def predicate(self) -> Node:
        return self._joined("or", self._conjunction)

    def _conjunction(self) -> Node:
        return self._joined("and", self._statement)

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self.token == word:
            self.advance()
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(word, tuple(parts))

    def _statement(self) -> Node:
        if self.kind == "word" and self.token in ("all", "any"):
            return self._quantifier()
        if self.kind == "word" and self.token == "equiv":
            return self._equivalence()
        if self.kind == "word" and self.token == "false":
            self.advance()
            return Never()
        operands, operators, texts = [], [], []
        while True:
            node, text = self._worded(self._sum)
            operands.append(node)
            texts.append(text)
            if self.token not in _COMPARISONS:
                break
            operators.append(self.token)
            self.advance()
        return Comparison(tuple(operands), tuple(operators), tuple(texts)) if operators else operands[0]

    def _worded(self, part: Callable[[], Node]) -> tuple[Node, str]:
        """A node with the text that it was written as."""
        begin = self.begin
        node = part()
        return node, self.text[begin : self.ended].strip()

    def _quantifier(self) -> Node:
        operator = self.token
        self.advance()
        self.take("(")
        name = self.token
        self.advance()
        self.take("in")
        items = self._set()
        self.take(":")
        body = self.predicate()
        self.take(")")
        return Quantifier(operator, name, items, body)

    def _equivalence(self) -> Node:
        self.advance()
        self.take("(")
        left, left_text = self._worded(self._sum)
        self.take(",")
        right, right_text = self._worded(self._sum)
        self.take(",")
        margin = self._sum()
        self.take(")")
        return Equivalence(left, right, margin, (left_text, right_text))

    def _set(self) -> tuple[Item, ...]:
        if self.token == "pairs":
            self.advance()
            self.take("(")
            names = self._set()
            self.take(")")
            return tuple((str(a), str(b)) for a, b in combinations(names, 2))
        if self.kind != "set":
            raise self.error("a set in brackets")
        items = tuple(_item(word.strip()) for word in self.token[1:-1].split(","))
        self.advance()
        return items

    def _sum(self) -> Node:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._chain(("*", "/"), self._atom)

    def _chain(self, operators: tuple[str, ...], part: Callable[[], Node]) -> Node:
        node = part()
        while self.token in operators and self.kind == "mark":
            operator = self.token
            self.advance()
            node = Arithmetic(operator, node, part())
        return node

    def _atom(self) -> Node:
        kind, token = self.kind, self.token
        if kind == "number":
            self.advance()
            return Number(float(token))
        if kind == "text":
            self.advance()
            return Text(token[1:-1])
        if kind == "set":
            return Items(self._set())
        if kind == "selector":
            self.advance()
            return _selector(token)
        if token == "-":
            self.advance()
            return Arithmetic("-", Number(0.0), self._atom())
        if token == "(":
            self.advance()
            node = self.predicate()
            self.take(")")
            return node
        if kind == "word" and token in FUNCTIONS:
            return self._call(token)
        raise self.error("a number, a metric or a function")

    def _call(self, name: str) -> Node:
        self.advance()
        self.take("(")
        arguments, over = [], ()
        while True:
            if self.token == "over":
                self.advance()
                self.take("=")
                over = tuple(str(item) for item in self._set())
            else:
                arguments.append(self._sum())
            if self.token != ",":
                break
            self.advance()
        self.take(")")
        return Call(name, tuple(arguments), over)


def _item(word: str) -> Item:
    try:
        return float(word)
    except ValueError:
        return word


def _selector(token: str) -> Selector:
    metric, _, inside = token[:-1].partition("{")
    keys: dict[str, str] = {}
    # A comma inside brackets belongs to a list of flows.
    for part in re.split(r",(?![^\[]*\])", inside):
        if part.strip():
            key, _, value = part.partition("=")
            keys[key.strip()] = value.strip()
    return Selector(metric, keys, token)
