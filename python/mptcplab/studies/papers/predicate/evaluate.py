"""From a predicate to the statement that the repetitions decide, with its comparisons.

Every expression is an array over the resamples (`study.statistics`), from which `study.decision` takes the spread of
its numbers. The largest or smallest of several quantities stays a choice between them (`choice`) until it is compared,
so that each of them is compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from lark import Token, Tree

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers.predicate.choice import Choice, Named, combined, extreme, transformed
from mptcplab.studies.papers.predicate.correlations import Correlation, RankCorrelation
from mptcplab.studies.papers.predicate.repetition import Names, each, items, text_of
from mptcplab.study.decision import Joint, Margin, Rule, Statement, estimated, negated, undefined, varies
from mptcplab.study.statistics import RESAMPLES, resamples
from mptcplab.study.values import NotTestableError
from mptcplab.study.verdict import Verdict

# Gives the values of a selector, one per repetition, with the names of its keys bound.
Lookup = Callable[[str, Mapping[str, str]], np.ndarray]
Item = float | str | tuple[str, str]
# The first row of the resamples is the sample itself. A second one keeps NumPy from adding up a table in another order.
_SAMPLE = 2


class _Point(Protocol):
    @property
    def label(self) -> str: ...
    @property
    def x(self) -> float: ...


class _Experiment(Protocol):
    """What an experiment compares: treatments at the points of a sweep."""

    @property
    def algorithms(self) -> Sequence[str]: ...
    @property
    def points(self) -> Sequence[_Point]: ...


@dataclass(frozen=True)
class Domain:
    """The algorithms and the sweep points (with their x) that functions of predicates run over."""

    algorithms: Sequence[str]
    points: Sequence[tuple[str, float]]

    @classmethod
    def of(cls, experiment: _Experiment) -> Domain:
        """The domain of the claims about an experiment."""
        return cls(experiment.algorithms, [(point.label, point.x) for point in experiment.points])


@dataclass(frozen=True)
class Fact:
    """One comparison: both sides as written, with names filled in, and what they are; `held` on the sample.

    `margin` is how far the left side is inside its bound, in the unit of the sides and at least 0 where the comparison
    is true; `low` and `high` are the ends of its interval, as they decide in the whole claim, from `repetitions`. A
    comparison of words has none (None).
    """

    left: str
    operator: str
    right: str
    left_value: str
    right_value: str
    held: bool
    margin: float | None
    low: float | None
    high: float | None
    repetitions: int
    # Whether other repetitions might give another margin.
    varies: bool = False

    @property
    def has_interval(self) -> bool:
        """Whether the comparison is decided with an interval.

        What is said of the runs that were made has none: their smallest or largest value, their standard deviation,
        and what is computed from rank correlations. Nor has a margin that is the same in all of them. The interval of a
        rank correlation may have no width: it is the same for all orders of the points that the repetitions leave.
        """
        return self.varies or self.low != self.high


@dataclass(frozen=True)
class Evaluation:
    """The statement of a predicate, whether it is true on the sample, and its verdict on so many repetitions.

    `facts` are the comparisons in it.
    """

    statement: Statement
    held: bool
    repetitions: int
    verdict: Verdict
    facts: tuple[Fact, ...]


def evaluate(
    tree: Tree[Token],
    lookup: Lookup,
    domain: Domain,
    tolerance: float | None = None,
    rule: Rule | None = None,
    *,
    in_common: bool = False,
) -> Evaluation:
    """Evaluate a predicate; `==` between numbers means "within the relative tolerance" where one is given.

    What is computed in every repetition by itself needs metrics of equally many repetitions. With `in_common`, it is
    computed in those that they have in common, which are the first. Raises `NotTestableError` where a side has no
    value, such as 0 divided by 0.
    """
    rule = rule or Rule()
    # What different numbers of repetitions decide together is as sure as the smallest of them makes it. That is known
    # only when all metrics were read, and all comparisons need it.
    count = _fewest_repetitions(tree, lookup, domain, in_common=in_common)
    evaluator = _Evaluator(lookup, domain, tolerance, count, sized=rule.allowance > 0, in_common=in_common)
    whole = evaluator.of(tree, {})
    for one in evaluator.compared:
        one.check()
    facts = tuple(one.fact(rule, whole, count) for one in evaluator.compared)
    held = rule.interval(whole, whole, count).value >= 0
    return Evaluation(whole, held, count, rule.decide(whole, count), facts)


@dataclass(frozen=True)
class _Compared:
    """A comparison with its texts, values and statement."""

    left: str
    operator: str
    right: str
    values: Sequence[Any]
    statement: Statement

    def check(self) -> None:
        """Refuse what is not a number: it is on neither side of its bound."""
        if undefined(self.statement):
            left, right = (shown(value, 1) for value in self.values)
            raise NotTestableError(
                f"{self.left} {self.operator} {self.right} compares {left} with {right}: their difference is not a "
                "number, as after a division of 0 by 0"
            )

    def fact(self, rule: Rule, whole: Statement, repetitions: int) -> Fact:
        found = rule.interval(self.statement, whole, repetitions)
        margin, low, high = found if math.isfinite(found.value) else (None, None, None)
        left, right = (shown(value, repetitions) for value in self.values)
        held = found.value >= 0
        sides = self.left, self.operator, self.right, left, right
        return Fact(*sides, held, margin, low, high, repetitions, varies(self.statement))


def look_up(tree: Tree[Token], lookup: Lookup, domain: Domain) -> None:
    """Look up all that a predicate asks for, and decide nothing."""
    _fewest_repetitions(tree, lookup, domain)


def _fewest_repetitions(tree: Tree[Token], lookup: Lookup, domain: Domain, *, in_common: bool = False) -> int:
    """The smallest number of repetitions among the metrics of a predicate; 1 where it has none."""
    evaluator = _Evaluator(lookup, domain, None, rows=_SAMPLE, in_common=in_common)
    evaluator.of(tree, {})
    return min(evaluator.repetitions, default=1)


def value(tree: Tree[Token], lookup: Lookup, domain: Domain) -> float | str:
    """The value of an expression on the repetitions as they are; see `in_common` of `evaluate`."""
    found = _Evaluator(lookup, domain, None, rows=_SAMPLE, in_common=True).of(tree, {})
    return found.found if isinstance(found, Named) else float(np.asarray(found, dtype=float).flat[0])


@dataclass
class _Evaluator:
    """A method per rule of the grammar: it takes the parts of a node, and gives its value or statement."""

    lookup: Lookup
    domain: Domain
    tolerance: float | None
    # The number of repetitions on which all comparisons are decided.
    count: int = 1
    # Whether the size of differences' terms matters.
    sized: bool = False
    # Rows of the resamples that are looked at; None stands for all.
    rows: int | None = None
    # Whether metrics that differ in their number of repetitions are cut to those that all of them have.
    in_common: bool = False
    # The largest term of the sides that are being compared.
    terms: float = 0.0
    compared: list[_Compared] = field(default_factory=list)
    # The numbers of repetitions behind the metrics.
    repetitions: set[int] = field(default_factory=set)

    def of(self, node: Tree[Token], names: Names) -> Any:
        """The value or statement of a node, with the names that quantifiers bind."""
        return getattr(self, node.data)(node.children, names)

    def disjunction(self, parts: Sequence[Tree[Token]], names: Names) -> Statement:
        return Joint([self.of(part, names) for part in parts], every=False)

    def conjunction(self, parts: Sequence[Tree[Token]], names: Names) -> Statement:
        return Joint([self.of(part, names) for part in parts], every=True)

    def quantifier(self, parts: Sequence[Any], names: Names) -> Statement:
        operator, name, items, body = parts
        found = [self.of(body, {**names, **_bound(name, item)}) for item in self.of(items, names)]
        return Joint(found, every=operator == "all")

    def never(self, _: Sequence[Any], __: Names) -> Statement:
        """A contradiction that is verbal."""
        return Margin.certain(met=False)

    def comparison(self, parts: Sequence[Any], names: Names) -> Statement:
        """A chain such as `a < b < c`."""
        operands, operators = parts[::2], [str(operator) for operator in parts[1::2]]
        values = [self.of(operand, names) for operand in operands]
        links = []
        for i, operator in enumerate(operators):
            self.terms = max(self._size(operand, names) for operand in operands[i : i + 2]) if self.sized else 0.0
            links.append(self._compare(operator, values[i], values[i + 1]))
            self._note(operands[i : i + 2], operator, values[i : i + 2], links[-1], names)
        return links[0] if len(links) == 1 else Joint(links, every=True)

    def _size(self, node: Tree[Token], names: Names) -> float:
        """The largest term of a sum or difference, or the size of anything else."""
        children = [child for child in node.children if isinstance(child, Tree)]
        adds = node.data == "arithmetic" and node.children[1] in ("+", "-")
        if adds or node.data in ("operand", "negative") or (node.data == "call" and node.children[0] == "abs"):
            return max(self._size(child, names) for child in children)
        found = self.of(node, names)
        return 0.0 if isinstance(found, str | tuple | Named) else abs(float(np.asarray(found, dtype=float).flat[0]))

    def operand(self, parts: Sequence[Tree[Token]], names: Names) -> Any:
        return self.of(parts[0], names)

    def _compare(self, operator: str, left: Any, right: Any) -> Statement:
        if operator in ("==", "!="):
            equal = self._equal(left, right)
            return equal if operator == "==" else negated(equal)
        if operator == "in":
            low, high = map(float, right)
            return self._between(left, low, high)
        inside, outside = (left, right) if operator in (">", ">=") else (right, left)
        return self._at_least(inside, outside, strict=operator in ("<", ">"))

    def _at_least(self, inside: Any, outside: Any, *, strict: bool = False) -> Statement:
        """One quantity reaches another: for a choice, each that it is between or any of them."""
        for side, all_of_largest in ((inside, False), (outside, True)):
            if isinstance(side, Choice):
                pairs = ((part, outside) if side is inside else (inside, part) for part in side.parts)
                every = side.largest == all_of_largest
                return Joint([self._at_least(*pair, strict=strict) for pair in pairs], every)
        for side, bound in ((inside, outside), (outside, inside)):
            if isinstance(side, RankCorrelation) and np.ndim(bound) == 0:
                return side.beyond(float(bound), self.count, below=side is outside, strict=strict)
        return Margin.between(inside, outside, self.count, strict=strict, terms=self.terms)

    def _between(self, value: Any, low: Any, high: Any) -> Statement:
        return Joint([self._at_least(value, low), self._at_least(high, value)], every=True)

    def _equal(self, left: Any, right: Any) -> Statement:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Named) and isinstance(other, str):
                return self._is_extreme(one, other)
        # The other side is of the same kind (`kinds`).
        if isinstance(left, str | tuple):
            return Margin.certain(met=left == right)
        tolerance = 1e-6 if self.tolerance is None else self.tolerance
        ends = [combined("*", right, 1 - tolerance), combined("*", right, 1 + tolerance)]
        return self._between(left, *(ends if float(np.asarray(right).flat[0]) >= 0 else reversed(ends)))

    def _is_extreme(self, found: Named, name: str) -> Statement:
        """Nothing else in the table is beyond what has this name."""
        if name not in found.names:
            return Margin.certain(met=False)
        mine = found.table[found.names.index(name)]
        others = [row for row, other in zip(found.table, found.names, strict=True) if other != name]
        pairs = [(mine, other) if found.largest else (other, mine) for other in others]
        return Joint([self._at_least(*pair) for pair in pairs], every=True) if pairs else Margin.certain(met=True)

    def equivalence(self, parts: Sequence[Tree[Token]], names: Names) -> Statement:
        """Two one-sided tests of the ratio."""
        left, right, margin = (self.of(part, names) for part in parts)
        margin = float(np.asarray(margin).flat[0])
        # A ratio is no difference, and what was compared before this one was may be one.
        self.terms = 0.0
        held = self._between(combined("/", left, right), 1 - margin, 1 / (1 - margin))
        self._note(parts[:2], f"equal within {100 * margin:g} % to", (left, right), held, names)
        return held

    def _note(
        self, operands: Sequence[Tree[Token]], operator: str, values: Sequence[Any], held: Statement, names: Names
    ) -> None:
        left, right = (_filled(text_of(operand), names) for operand in operands)
        self.compared.append(_Compared(left, operator, right, values, held))

    def arithmetic(self, parts: Sequence[Any], names: Names) -> Any:
        left, operator, right = parts
        return combined(operator, self.of(left, names), self.of(right, names))

    def negative(self, parts: Sequence[Tree[Token]], names: Names) -> Any:
        return combined("-", 0.0, self.of(parts[0], names))

    def number(self, parts: Sequence[Token], _: Names) -> float:
        return float(parts[0])

    def text(self, parts: Sequence[Token], _: Names) -> str:
        return parts[0][1:-1]

    def items(self, parts: Sequence[Token], _: Names) -> tuple[Item, ...]:
        return tuple(_item(word) for word in items(parts[0]))

    def pairs(self, parts: Sequence[Token], _: Names) -> tuple[Item, ...]:
        return tuple(combinations(items(parts[0]), 2))

    def selector(self, parts: Sequence[Token], names: Names) -> np.ndarray:
        """A metric of some flow, subflow, link or run: its mean over the repetitions."""
        return self._over_repetitions("mean", Tree("selector", list(parts)), names)

    def call(self, parts: Sequence[Any], names: Names) -> Any:
        name, *arguments = parts
        over: Sequence[str] = ()
        if arguments[-1].data == "over":
            over = items(arguments.pop().children[0])
        if name in {*_STATISTICS, *_EXACT} and len(arguments) == 1:
            return self._over_repetitions(name, arguments[0], names)
        if name in ("min", "max"):
            return extreme([self.of(argument, names) for argument in arguments], largest=name == "max")
        if name == "abs":
            value = self.of(arguments[0], names)
            return extreme([value, combined("-", 0.0, value)], largest=True)
        if name == "log":
            return transformed(np.log, self.of(arguments[0], names))
        if name == "corr_over_cc":
            tables = (self._table(a, "*cc", over or self.domain.algorithms, names) for a in arguments)
            return Correlation.between(*tables)
        if name.endswith("_cc"):
            table = self._table(arguments[0], "*cc", over, names)
            largest = name.endswith("max_cc")
            return (
                Named(tuple(over), table, largest) if name.startswith("arg") else extreme(list(table), largest=largest)
            )
        return self._over_sweep(name, arguments[0], names)

    def _over_repetitions(self, name: str, node: Tree[Token], names: Names) -> np.ndarray:
        """A statistic of what is computed in every repetition by itself."""
        common = self._in_common(node, names) if self.in_common else None
        read: list[np.ndarray] = []

        def values(selector: str, names: Names) -> np.ndarray:
            read.append(self._values(selector, names)[:common])
            if len(read[-1]) != len(read[0]):
                raise MptcplabError(f"predicate: {name}: its metrics differ in their number of repetitions")
            return read[-1]

        found = each(node, values, names)
        if name in _EXACT:
            # Resamples say nothing about the extremes of other runs than those that were made, and too little about
            # their standard deviation: few repetitions rarely show the values on which it depends most.
            return np.full(self._width, _EXACT[name](found))
        return _STATISTICS[name](found[resamples(len(found))[: self.rows]])

    def _in_common(self, node: Tree[Token], names: Names) -> int:
        """The smallest number of repetitions among the metrics of an expression."""
        lengths: list[int] = []

        def first(selector: str, names: Names) -> np.ndarray:
            found = self._values(selector, names)
            lengths.append(len(found))
            return found[:1]

        each(node, first, names)
        return min(lengths, default=0)

    @property
    def _width(self) -> int:
        return RESAMPLES + 1 if self.rows is None else self.rows

    def _values(self, selector: str, names: Names) -> np.ndarray:
        """The values of a selector, one per repetition."""
        metric, _, inside = selector[:-1].partition("{")
        keys: dict[str, str] = {}
        # A comma inside brackets belongs to a list of flows.
        for part in re.split(r",(?![^\[]*\])", inside):
            if part.strip():
                key, _, value = part.partition("=")
                keys[key.strip()] = _filled(value.strip(), names)
        for key in ("cc", "sweep"):
            if keys.get(key) == "*":
                keys[key] = _known(names, f"*{key}", f"{key}=* in {selector}")
        values = self.lookup(metric, keys)
        self.repetitions.add(len(values))
        return values

    def _table(self, node: Tree[Token], name: str, bindings: Iterable[str], names: Names) -> np.ndarray:
        """The values of a node with a name bound to one thing after another: a row for each."""
        columns = [self.of(node, {**names, name: binding}) for binding in bindings]
        return np.stack([np.broadcast_to(np.asarray(column, dtype=float), self._width) for column in columns])

    def _over_sweep(self, name: str, node: Tree[Token], names: Names) -> Any:
        table = self._table(node, "*sweep", [label for label, _ in self.domain.points], names)
        x = np.array([x for _, x in self.domain.points])
        if name == "mean_sweep":
            found: np.ndarray = table.mean(axis=0)
            return found
        if name == "spearman_sweep":
            sizes = (self._size(node, {**names, "*sweep": label}) for label, _ in self.domain.points)
            return RankCorrelation(table, tuple(x), max(sizes, default=0.0) if self.sized else 0.0)
        return Correlation.between(table, np.repeat(x[:, None], self._width, axis=1)).squared


def _item(word: str) -> Item:
    try:
        return float(word)
    except ValueError:
        return word


# About the runs that were made, without an interval.
_EXACT: dict[str, Callable[[np.ndarray], float]] = {"min": np.min, "max": np.max, "std": lambda one: one.std(ddof=1)}
_STATISTICS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda table: table.mean(axis=1),
    "median": lambda table: np.median(table, axis=1),
}


def _bound(name: str, item: Item) -> dict[str, str]:
    if isinstance(item, tuple):
        return {f"{name}.{i}": part for i, part in enumerate(item)}
    return {str(name): f"{item:g}" if isinstance(item, float) else item}


def _filled(text: str, names: Names) -> str:
    """A text with `$name` replaced by what the name is bound to."""
    return re.sub(r"\$(\w+(?:\.\d)?)", lambda match: _known(names, match[1], f"${match[1]} in {text}"), text)


def _known(names: Names, name: str, where: str) -> str:
    if name not in names:
        raise MptcplabError(f"predicate: nothing around it gives a value to {where}")
    return names[name]


def shown(value: Any, repetitions: int) -> str:
    """A value for people: the sample's own, and its 95 % interval where it varies."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value)
    if isinstance(value, Named):
        return value.found
    array = np.asarray(value, dtype=float)
    if array.ndim == 0:
        return _number(float(array))
    found = value.estimated(repetitions) if isinstance(value, Correlation) else estimated(array, repetitions)
    own, low, high = found
    return (
        _number(own)
        if not math.isfinite(own) or math.isclose(low, high)
        else f"{_number(own)} ({_number(low)} to {_number(high)})"
    )


def _number(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))) - 1)
    return f"{value:.{digits}f}"
