"""From the text of a predicate to a tree of the rules below; papers/README.md explains the language."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Literal

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers.predicate import kinds
from mptcplab.studies.papers.predicate.repetition import with_text

Start = Literal["predicate", "expression"]

_GRAMMAR = r"""
?predicate: _predicate
?expression: sum
_predicate: disjunction
?disjunction: conjunction ("or" conjunction)*
?conjunction: _statement ("and" _statement)*
_statement: quantifier | equivalence | never | comparison
quantifier: QUANTIFIER "(" NAME "in" _set ":" _predicate ")"
equivalence: "equiv" "(" operand "," operand "," sum ")"
never: "false"
?comparison: operand (COMPARISON operand)*
operand: sum
?sum: product | sum (PLUS | MINUS) product        -> arithmetic
?product: _atom | product (TIMES | OVER) _atom    -> arithmetic
_atom: number | text | _set | selector | call | negative | "(" _predicate ")"
negative: "-" _atom
call: FUNCTION "(" _argument ("," _argument)* ")"
_argument: sum | "over" "=" over
over: ITEMS
_set: items | pairs
items: ITEMS
pairs: "pairs" "(" ITEMS ")"
number: NUMBER
text: TEXT
selector: SELECTOR

QUANTIFIER: "all" | "any"
COMPARISON: "<=" | ">=" | "==" | "!=" | "<" | ">" | "in"
PLUS: "+"
MINUS: "-"
TIMES: "*"
OVER: "/"
FUNCTION: /(mean|median|std|min|max|abs|log|(argmax|argmin|max|min)_cc|corr_over_cc|(mean|spearman|r2)_sweep)\b/
SELECTOR.2: /[A-Za-z_]\w*\{[^}]*\}/
ITEMS: /\[[^\[\]]*\]/
NUMBER: /\d+(\.\d+)?/
TEXT: /'[^']*'/
NAME: /[A-Za-z_]\w*/
%ignore /\s+/
"""
_KINDS: dict[Start, tuple[kinds.Kind, ...]] = {"predicate": ("statement",), "expression": ("number", "name")}
# What should be at the place of a mistake: the first of these terminals that is allowed there.
_WANTED = {
    "NUMBER": "a number, a metric or a function",
    "ITEMS": "a set in brackets",
    "NAME": "a name",
    "COMPARISON": "an operator",
    "$END": "the end",
    "LPAR": "'('",
    "RPAR": "')'",
    "IN": "'in'",
    "COMMA": "','",
    "COLON": "':'",
    "EQUAL": "'='",
}


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", propagate_positions=True, start=["predicate", "expression"])


@cache
def parse(text: str, start: Start = "predicate") -> Tree[Token]:
    """The tree of a predicate or of an expression; a mistake is an error that shows the place.

    `text_of` gives the text of its operands.
    """
    try:
        tree = _parser().parse(text, start=start)
    except UnexpectedCharacters as error:
        raise _misplaced(start, text, error.pos_in_stream, error.allowed) from None
    except UnexpectedToken as error:
        begin = len(text) if error.token.type == "$END" else error.pos_in_stream
        # What the parser expects of a token includes what fits in other places only.
        raise _misplaced(start, text, begin, error.accepts) from None
    for operand in tree.find_data("operand"):
        with_text(operand, text[operand.meta.start_pos : operand.meta.end_pos])
    for call in tree.find_data("call"):
        _check(call, text)
    try:
        kinds.check(tree, *_KINDS[start])
    except kinds.WrongKindError as error:
        raise _wrong(error.node, text, str(error)) from None
    return tree


def _misplaced(start: Start, text: str, begin: int | None, allowed: Collection[str]) -> MptcplabError:
    wanted = next(words for name, words in _WANTED.items() if name in allowed)
    return MptcplabError(f"{start}: {text[begin:][:40]!r} where {wanted} should be: {text}")


# Functions that reduce the repetitions to one number; `min` and `max` do so with one argument.
_STATISTICS = ("mean", "median", "std", "min", "max")
# What a statistic cannot look into: it takes one number per repetition.
_NOT_PER_REPETITION = ("comparison", "quantifier", "equivalence", "never", "text")


def _check(call: Tree[Token], text: str) -> None:
    """Refuse a function whose arguments have no meaning."""
    name = str(call.children[0])
    arguments = [part for part in call.children if isinstance(part, Tree)]
    over = any(argument.data == "over" for argument in arguments)
    if name.endswith("_cc") and name != "corr_over_cc" and not over:
        raise _wrong(call, text, "it needs over=[...], the treatments that it ranges over")
    if over and not name.endswith("_cc"):
        raise _wrong(call, text, "over=[...] belongs to functions that range over treatments")
    several, count = name in ("min", "max"), len(arguments) - over
    if count != (2 if name == "corr_over_cc" else 1) and not several:
        raise _wrong(call, text, f"{name} has {count} arguments")
    if not _is_statistic(call):
        return
    if not any(token.type == "SELECTOR" for token in call.scan_values(lambda _: True)):
        raise _wrong(call, text, "no metric in it has a value per repetition")
    for inner in arguments[0].iter_subtrees():
        if inner.data in _NOT_PER_REPETITION or (inner.data == "call" and not _is_per_repetition(inner)):
            raise _wrong(call, text, "inside it is one number per repetition, without a statistic or a comparison")


def _is_statistic(call: Tree[Token]) -> bool:
    return call.children[0] in _STATISTICS and len(call.children) == 2


def _is_per_repetition(call: Tree[Token]) -> bool:
    """Whether a function has a number in every repetition; others reduce them, or name something."""
    return call.children[0] in ("abs", "log", "min", "max", "max_cc", "min_cc") and not _is_statistic(call)


def _wrong(call: Tree[Token], text: str, why: str) -> MptcplabError:
    return MptcplabError(f"predicate: {text[call.meta.start_pos : call.meta.end_pos]!r}: {why}: {text}")
