"""The value of a predicate: true or false on the sample and on each of its resamples.

Every expression is an array over the resamples (`study.statistics`), so that a verdict accounts for the spread of its
numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from lark import Token, Tree

from mptcplab.study.statistics import RESAMPLES, percentile_interval, resamples

if TYPE_CHECKING:
    from mptcplab.studies.papers.catalog import Experiment

# Gives the values of a selector, one per repetition, with the names of its keys bound.
Lookup = Callable[[str, Mapping[str, str]], np.ndarray]
Names = Mapping[str, str]
Item = float | str | tuple[str, str]


@dataclass(frozen=True)
class Domain:
    """The algorithms and the sweep points (with their x) that functions of predicates run over."""

    algorithms: Sequence[str]
    points: Sequence[tuple[str, float]]

    @classmethod
    def of(cls, experiment: Experiment) -> Domain:
        """The domain of the claims about an experiment."""
        return cls(experiment.algorithms, [(point.label, point.x) for point in experiment.points])


@dataclass(frozen=True)
class Fact:
    """One comparison: both sides as written, with names filled in, and what they are; `held` on the sample."""

    left: str
    operator: str
    right: str
    left_value: str
    right_value: str
    held: bool


@dataclass(frozen=True)
class Evaluation:
    """`share` of the resamples on which the predicate is true, and the comparisons in it."""

    truth: np.ndarray
    facts: tuple[Fact, ...]

    @property
    def share(self) -> float:
        """Part of the resamples on which it is true."""
        return float(self.truth[1:].mean())


def evaluate(tree: Tree, lookup: Lookup, domain: Domain, tolerance: float | None = None) -> Evaluation:
    """Evaluate a predicate; `==` between numbers means "within the relative tolerance" where one is given."""
    evaluator = _Evaluator(lookup, domain, tolerance)
    truth = evaluator.of(tree, {})
    return Evaluation(np.broadcast_to(np.asarray(truth, dtype=bool), RESAMPLES + 1), tuple(evaluator.facts))


@dataclass
class _Evaluator:
    """A method per rule of the grammar: it takes the parts of a node, and gives its value or truth."""

    lookup: Lookup
    domain: Domain
    tolerance: float | None
    facts: list[Fact] = field(default_factory=list)

    def of(self, node: Tree, names: Names) -> Any:
        """The value or truth of a node, with the names that quantifiers bind."""
        return getattr(self, node.data)(node.children, names)

    def disjunction(self, parts: Sequence[Tree], names: Names) -> Any:
        return reduce(np.logical_or, [self.of(part, names) for part in parts])

    def conjunction(self, parts: Sequence[Tree], names: Names) -> Any:
        return reduce(np.logical_and, [self.of(part, names) for part in parts])

    def quantifier(self, parts: Sequence[Any], names: Names) -> Any:
        operator, name, items, body = parts
        join = np.logical_and if operator == "all" else np.logical_or
        return reduce(join, [self.of(body, {**names, **_bound(name, item)}) for item in self.of(items, names)])

    def never(self, _: Sequence[Any], __: Names) -> bool:
        """A contradiction that is verbal."""
        return False

    def comparison(self, parts: Sequence[Any], names: Names) -> Any:
        """A chain such as `a < b < c`."""
        operands, operators = parts[::2], [str(operator) for operator in parts[1::2]]
        values = [self.of(operand, names) for operand in operands]
        result: Any = True
        for i, operator in enumerate(operators):
            held = self._compare(operator, values[i], values[i + 1])
            self._note(operands[i : i + 2], operator, values[i : i + 2], held, names)
            result = np.logical_and(result, held)
        return result

    def operand(self, parts: Sequence[Tree], names: Names) -> Any:
        return self.of(parts[0], names)

    def _compare(self, operator: str, left: Any, right: Any) -> Any:
        if operator == "in":
            low, high = right
            return (left >= float(low)) & (left <= float(high))
        if operator in ("==", "!="):
            return self._equal(left, right) if operator == "==" else np.logical_not(self._equal(left, right))
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[operator]
        return compare(left, right)

    def _equal(self, left: Any, right: Any) -> Any:
        if self.tolerance is not None and not isinstance(right, str | tuple):
            return np.abs(np.asarray(left) / np.asarray(right) - 1) <= self.tolerance
        if isinstance(left, tuple) or isinstance(right, tuple):
            return left == right
        if isinstance(left, str) or isinstance(right, str) or np.asarray(left).dtype.kind in "US":
            return np.equal(left, right)
        return np.isclose(left, right, rtol=1e-6)

    def equivalence(self, parts: Sequence[Tree], names: Names) -> Any:
        """Two one-sided tests at 5 %: decided where the 90 % interval of the ratio is inside, or all outside."""
        left, right, margin = (self.of(part, names) for part in parts)
        margin = float(np.asarray(margin))
        ratio = np.broadcast_to(np.asarray(left, dtype=float) / np.asarray(right, dtype=float), RESAMPLES + 1)
        low, high = 1 - margin, 1 / (1 - margin)
        begin, end = percentile_interval(ratio, 0.90)
        held = (ratio >= low) & (ratio <= high)
        if low <= begin and end <= high:
            held = np.full(RESAMPLES + 1, True)
        elif end < low or begin > high:
            held = np.full(RESAMPLES + 1, False)
        self._note(parts[:2], f"equal within {100 * margin:g} % to", (left, right), held, names)
        return held

    def _note(self, operands: Sequence[Tree], operator: str, values: Sequence[Any], held: Any, names: Names) -> None:
        left, right = (_filled(operand.meta.text, names) for operand in operands)
        holds = bool(np.broadcast_to(np.asarray(held, dtype=bool), RESAMPLES + 1)[0])
        self.facts.append(Fact(left, operator, right, *map(shown, values), holds))

    def arithmetic(self, parts: Sequence[Any], names: Names) -> Any:
        left, operator, right = parts
        return _OPERATIONS[operator](self.of(left, names), self.of(right, names))

    def negative(self, parts: Sequence[Tree], names: Names) -> Any:
        return np.subtract(0.0, self.of(parts[0], names))

    def number(self, parts: Sequence[Token], _: Names) -> float:
        return float(parts[0])

    def text(self, parts: Sequence[Token], _: Names) -> str:
        return parts[0][1:-1]

    def items(self, parts: Sequence[Token], _: Names) -> tuple[Item, ...]:
        return tuple(_item(word.strip()) for word in parts[0][1:-1].split(","))

    def pairs(self, parts: Sequence[Token], names: Names) -> tuple[Item, ...]:
        return tuple(combinations(map(str, self.items(parts, names)), 2))

    def selector(self, parts: Sequence[Token], names: Names) -> np.ndarray:
        """A metric of some flow, subflow, link or run: its mean over the repetitions."""
        return self._over_repetitions("mean", parts[0], names)

    def call(self, parts: Sequence[Any], names: Names) -> Any:
        name, *arguments = parts
        over: Sequence[str] = ()
        if arguments[-1].data == "over":
            over = [str(item) for item in self.items(arguments.pop().children, names)]
        if name in _STATISTICS and len(arguments) == 1 and arguments[0].data == "selector":
            return self._over_repetitions(name, arguments[0].children[0], names)
        if name in ("min", "max"):
            return reduce(_EXTREMES[name], [self.of(argument, names) for argument in arguments])
        if name in ("abs", "log"):
            return {"abs": np.abs, "log": np.log}[name](self.of(arguments[0], names))
        if name == "corr_over_cc":
            return _correlation(*(self._table(a, "*cc", over or self.domain.algorithms, names) for a in arguments))
        if name.endswith("_cc"):
            table = self._table(arguments[0], "*cc", over, names)
            if name in ("max_cc", "min_cc"):
                return table.max(axis=0) if name == "max_cc" else table.min(axis=0)
            return np.asarray(over)[table.argmax(axis=0) if name == "argmax_cc" else table.argmin(axis=0)]
        return self._over_sweep(name, arguments[0], names)

    def _over_repetitions(self, name: str, selector: str, names: Names) -> np.ndarray:
        metric, _, inside = selector[:-1].partition("{")
        keys: dict[str, str] = {}
        # A comma inside brackets belongs to a list of flows.
        for part in re.split(r",(?![^\[]*\])", inside):
            if part.strip():
                key, _, value = part.partition("=")
                keys[key.strip()] = _filled(value.strip(), names)
        for key in ("cc", "sweep"):
            if keys.get(key) == "*":
                keys[key] = names[f"*{key}"]
        values = self.lookup(metric, keys)
        return _STATISTICS[name](values[resamples(len(values))])

    def _table(self, node: Tree, name: str, bindings: Iterable[str], names: Names) -> np.ndarray:
        """The values of a node with a name bound to one thing after another: a row for each."""
        columns = [self.of(node, {**names, name: binding}) for binding in bindings]
        return np.stack([np.broadcast_to(np.asarray(column, dtype=float), RESAMPLES + 1) for column in columns])

    def _over_sweep(self, name: str, node: Tree, names: Names) -> np.ndarray:
        table = self._table(node, "*sweep", [label for label, _ in self.domain.points], names)
        x = np.array([x for _, x in self.domain.points])
        if name == "mean_sweep":
            return table.mean(axis=0)
        if name == "spearman_sweep":
            return _correlation(_ranks(table), np.repeat(_ranks(x[:, None]), RESAMPLES + 1, axis=1))
        return _correlation(table, np.repeat(x[:, None], RESAMPLES + 1, axis=1)) ** 2


def _item(word: str) -> Item:
    try:
        return float(word)
    except ValueError:
        return word


_OPERATIONS: dict[str, Callable[[object, object], object]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_EXTREMES = {"min": np.minimum, "max": np.maximum}
_STATISTICS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda table: table.mean(axis=1),
    "median": lambda table: np.median(table, axis=1),
    "std": lambda table: table.std(axis=1, ddof=1),
    "min": lambda table: table.min(axis=1),
    "max": lambda table: table.max(axis=1),
}


def _correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Pearson's correlation along the first axis, column by column; 0 where a side does not vary."""
    a, b = one - one.mean(axis=0), other - other.mean(axis=0)
    spread = np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
    return np.divide((a * b).sum(axis=0), spread, out=np.zeros_like(spread), where=spread > 0)


def _ranks(table: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    return rankdata(table, axis=0)


def _bound(name: str, item: Item) -> dict[str, str]:
    if isinstance(item, tuple):
        return {f"{name}.{i}": part for i, part in enumerate(item)}
    return {str(name): f"{item:g}" if isinstance(item, float) else item}


def _filled(text: str, names: Names) -> str:
    """A text with `$name` replaced by what the name is bound to."""
    return re.sub(r"\$(\w+(?:\.\d)?)", lambda match: names[match[1]], text)


def shown(value: object) -> str:
    """A value for people: the sample's own, and its 95 % interval where it varies."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value)
    array = np.asarray(value)
    if array.ndim == 0:
        return _number(float(array))
    if array.dtype.kind in "US":
        found, counts = np.unique(array[1:], return_counts=True)
        others = [
            f"{name} in {100 * n / RESAMPLES:.0f} %" for name, n in zip(found, counts, strict=True) if name != array[0]
        ]
        return str(array[0]) + (f" ({', '.join(others)} of the resamples)" if others else "")
    low, high = percentile_interval(array)
    own = _number(float(array[0]))
    return own if math.isclose(low, high) else f"{own} ({_number(low)} to {_number(high)})"


def _number(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))) - 1)
    return f"{value:.{digits}f}"
