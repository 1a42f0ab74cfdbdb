"""From the text of a predicate to a tree of the rules below; papers/README.md explains the language."""

from __future__ import annotations

from functools import cache

from lark import Lark, Tree
from lark.exceptions import UnexpectedInput

from mptcplab.errors import MptcplabError

_GRAMMAR = r"""
?start: _predicate
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
# What should be at the place of a mistake: the first of these terminals that is allowed there.
_WANTED = {
    "NUMBER": "a number, a metric or a function",
    "ITEMS": "a set in brackets",
    "NAME": "a name",
    "$END": "the end",
    "COMPARISON": "an operator",
    "RPAR": "')'",
    "IN": "'in'",
    "COMMA": "','",
    "COLON": "':'",
}


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", propagate_positions=True)


@cache
def parse(text: str) -> Tree:
    """The tree of a predicate, whose operands have their `meta.text`; a mistake is an error that shows the place."""
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        at_end = getattr(getattr(error, "token", None), "type", "") == "$END"
        begin = len(text) if at_end else error.pos_in_stream
        allowed = getattr(error, "expected", None) or getattr(error, "allowed", ())
        wanted = next((words for name, words in _WANTED.items() if name in allowed), "something else")
        raise MptcplabError(f"predicate: {text[begin:][:40]!r} where {wanted} should be: {text}") from None
    for operand in tree.find_data("operand"):
        operand.meta.text = text[operand.meta.start_pos : operand.meta.end_pos]
    return tree
