"""The value of a predicate: true or false on the sample and on each of its resamples.

Every expression is an array over the resamples (`study.statistics`), so that a verdict accounts for the spread of its
numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mptcplab.studies.papers.predicate.parse import (
    Arithmetic,
    Call,
    Comparison,
    Equivalence,
    Item,
    Items,
    Junction,
    Never,
    Node,
    Number,
    Quantifier,
    Selector,
    Text,
)
from mptcplab.study.statistics import RESAMPLES, percentile_interval, resamples

if TYPE_CHECKING:
    from mptcplab.studies.papers.catalog import Experiment

# Gives the values of a selector, one per repetition, with the names of its keys bound.
Lookup = Callable[[str, Mapping[str, str]], np.ndarray]
Names = Mapping[str, str]


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
    """`share` of the resamples on which the predicate is true, and the comparisons it is made of."""

    truth: np.ndarray
    facts: tuple[Fact, ...]

    @property
    def share(self) -> float:
        """Part of the resamples on which it is true."""
        return float(self.truth[1:].mean())


def evaluate(tree: Node, lookup: Lookup, domain: Domain, tolerance: float | None = None) -> Evaluation:
    """Evaluate a predicate; `==` between numbers means "within the relative tolerance" where one is given."""
    evaluator = _Evaluator(lookup, domain, tolerance)
    truth = evaluator.truth(tree, {})
    return Evaluation(np.broadcast_to(np.asarray(truth, dtype=bool), RESAMPLES + 1), tuple(evaluator.facts))


@dataclass
class _Evaluator:
    lookup: Lookup
    domain: Domain
    tolerance: float | None
    facts: list[Fact] = field(default_factory=list)

    def truth(self, node: Node, names: Names) -> np.ndarray | bool:
        match node:
            case Never():
                return False
            case Junction(operator, parts):
                join = np.logical_and if operator == "and" else np.logical_or
                return _fold(join, [self.truth(part, names) for part in parts])
            case Quantifier(operator, name, items, body):
                join = np.logical_and if operator == "all" else np.logical_or
                return _fold(join, [self.truth(body, {**names, **_bound(name, item)}) for item in items])
            case Equivalence():
                return self._equivalent(node, names)
            case Comparison():
                return self._compared(node, names)
        raise TypeError(f"not a statement: {node}")

    def _compared(self, node: Comparison, names: Names) -> np.ndarray | bool:
        values = [self.value(operand, names) for operand in node.operands]
        result: np.ndarray | bool = True
        for i, operator in enumerate(node.operators):
            held = self._compare(operator, values[i], values[i + 1])
            self._note(node.texts[i], operator, node.texts[i + 1], values[i], values[i + 1], held, names)
            result = np.logical_and(result, held)
        return result

    def _compare(self, operator: str, left: object, right: object) -> np.ndarray | bool:
        if operator == "in":
            low, high = right  # type: ignore[misc]
            return (left >= float(low)) & (left <= float(high))  # type: ignore[operator]
        if operator in ("==", "!="):
            return self._equal(left, right) if operator == "==" else np.logical_not(self._equal(left, right))
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[operator]
        return compare(left, right)

    def _equal(self, left: object, right: object) -> np.ndarray | bool:
        if self.tolerance is not None and not isinstance(right, str | tuple):
            return np.abs(np.asarray(left) / np.asarray(right) - 1) <= self.tolerance
        if isinstance(left, tuple) or isinstance(right, tuple):
            return left == right
        if isinstance(left, str) or isinstance(right, str) or np.asarray(left).dtype.kind in "US":
            return np.equal(left, right)
        return np.isclose(left, right, rtol=1e-6)

    def _equivalent(self, node: Equivalence, names: Names) -> np.ndarray | bool:
        """Two one-sided tests at 5 %: decided where the 90 % interval of the ratio is inside, or all outside."""
        left, right = self.value(node.left, names), self.value(node.right, names)
        margin = float(np.asarray(self.value(node.margin, names)))
        ratio = np.broadcast_to(np.asarray(left, dtype=float) / np.asarray(right, dtype=float), RESAMPLES + 1)
        low, high = 1 - margin, 1 / (1 - margin)
        begin, end = percentile_interval(ratio, 0.90)
        held = (ratio >= low) & (ratio <= high)
        if low <= begin and end <= high:
            held = np.full(RESAMPLES + 1, True)
        elif end < low or begin > high:
            held = np.full(RESAMPLES + 1, False)
        within = f"equal within {100 * margin:g} % to"
        self._note(node.texts[0], within, node.texts[1], left, right, held, names)
        return held

    def _note(
        self, left: str, operator: str, right: str, one: object, other: object, held: object, names: Names
    ) -> None:
        holds = bool(np.broadcast_to(np.asarray(held, dtype=bool), RESAMPLES + 1)[0])
        texts = (_filled(left, names), operator, _filled(right, names))
        self.facts.append(Fact(*texts, shown(one), shown(other), holds))

    def value(self, node: Node, names: Names) -> object:
        match node:
            case Number(value):
                return value
            case Text(value):
                return value
            case Items(values):
                return values
            case Arithmetic(operator, left, right):
                return _OPERATIONS[operator](self.value(left, names), self.value(right, names))
            case Call():
                return self._call(node, names)
            case Selector():
                return self._over_repetitions("mean", node, names)
        return self.truth(node, names)

    def _call(self, node: Call, names: Names) -> object:
        name, arguments = node.name, node.arguments
        if name in _STATISTICS and len(arguments) == 1 and isinstance(arguments[0], Selector):
            return self._over_repetitions(name, arguments[0], names)
        if name in ("min", "max"):
            return _fold(_EXTREMES[name], [self.value(argument, names) for argument in arguments])
        if name in ("abs", "log"):
            return {"abs": np.abs, "log": np.log}[name](self.value(arguments[0], names))
        if name == "corr_over_cc":
            columns = [self._per_algorithm(a, node.over or self.domain.algorithms, names) for a in arguments]
            return _correlation(*columns)
        if name.endswith("_cc"):
            return self._over_algorithms(name, arguments[0], node.over, names)
        return self._over_sweep(name, arguments[0], names)

    def _over_repetitions(self, name: str, selector: Selector, names: Names) -> np.ndarray:
        keys = {key: _filled(value, names) for key, value in selector.keys.items()}
        for key in ("cc", "sweep"):
            if keys.get(key) == "*":
                keys[key] = names[f"*{key}"]
        values = self.lookup(selector.metric, keys)
        return _STATISTICS[name](values[resamples(len(values))])

    def _per_algorithm(self, node: Node, algorithms: Sequence[str], names: Names) -> np.ndarray:
        columns = [self.value(node, {**names, "*cc": cc}) for cc in algorithms]
        return np.stack([np.broadcast_to(np.asarray(column, dtype=float), RESAMPLES + 1) for column in columns])

    def _over_algorithms(self, name: str, node: Node, over: Sequence[str], names: Names) -> np.ndarray:
        table = self._per_algorithm(node, over, names)
        if name in ("max_cc", "min_cc"):
            return table.max(axis=0) if name == "max_cc" else table.min(axis=0)
        best = table.argmax(axis=0) if name == "argmax_cc" else table.argmin(axis=0)
        return np.asarray(over)[best]

    def _over_sweep(self, name: str, node: Node, names: Names) -> np.ndarray:
        columns = [self.value(node, {**names, "*sweep": label}) for label, _ in self.domain.points]
        table = np.stack([np.broadcast_to(np.asarray(column, dtype=float), RESAMPLES + 1) for column in columns])
        x = np.array([x for _, x in self.domain.points])
        if name == "mean_sweep":
            return table.mean(axis=0)
        if name == "spearman_sweep":
            return _correlation(_ranks(table), np.repeat(_ranks(x[:, None]), RESAMPLES + 1, axis=1))
        return _correlation(table, np.repeat(x[:, None], RESAMPLES + 1, axis=1)) ** 2


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


def _fold(join: Callable[[object, object], object], parts: Sequence[object]) -> object:
    result = parts[0]
    for part in parts[1:]:
        result = join(result, part)
    return result


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
    return {name: f"{item:g}" if isinstance(item, float) else item}


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
