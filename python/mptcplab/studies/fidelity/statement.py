"""Statements about the simulator: how each is measured, the cases that were measured, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from mptcplab.study import decision
from mptcplab.study.decision import Joint, Margin, Rule
from mptcplab.study.statistics import Bound, Estimate, resamples
from mptcplab.study.verdict import Finding, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Case:
    """One number of a statement: its values, one per repetition, and the bound that they have to meet.

    >>> case = Case(("lia",), (0.95, 1.0, 1.05), "1", Bound(0.7, 1.15))
    >>> case.mean, case.verdict.value
    (1.0, 'holds')
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    unit: str
    bound: Bound | None = None
    digits: int = 3

    @cached_property
    def _estimate(self) -> Estimate:
        return Estimate.of(self.values)

    @property
    def mean(self) -> float:
        """Mean over repetitions."""
        return self._estimate.mean

    @property
    def identical(self) -> bool:
        """Whether all repetitions gave the same value, because nothing in them is random."""
        return len(set(self.values)) == 1

    @property
    def half(self) -> float | None:
        """Half the 95 % confidence interval of the mean; None where there is nothing random, or too few values."""
        return None if self.identical else self._estimate.half

    @property
    def decides(self) -> bool:
        """Whether the statement depends on this case."""
        return self.bound is not None and not self.bound.shown

    @cached_property
    def within(self) -> decision.Statement | None:
        """That the bound is met; None where there is none."""
        if self.bound is None:
            return None
        if self.bound.each:
            return Margin.certain(met=all(map(self.bound.admits, self.values)))
        n = len(self.values)
        mean = np.asarray(self.values)[resamples(n)].mean(axis=1)
        ends = [Margin.between(mean, self.bound.low, n)] if self.bound.low is not None else []
        ends += [Margin.between(self.bound.high, mean, n)] if self.bound.high is not None else []
        return Joint(ends, every=True)

    @property
    def verdict(self) -> Verdict:
        """Whether the repetitions say that the bound is met; not testable where there is none."""
        if self.within is None:
            return Verdict.NOT_TESTABLE
        return Rule().decide(self.within, len(self.values))

    @property
    def verdict_text(self) -> str:
        """The verdict in a table: in brackets where it decides nothing."""
        if self.bound is None:
            return "-"
        return f"({self.verdict})" if self.bound.shown else self.verdict.value


@dataclass(frozen=True)
class Plot:
    """A figure: the stem of its files, its caption, and how it is drawn."""

    stem: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Measurement:
    """The measurement of a statement: heads of the label columns, cases, remarks, and a figure where it helps."""

    heads: tuple[str, ...]
    cases: tuple[Case, ...]
    remarks: tuple[str, ...] = ()
    plot: Plot | None = None


class Quick(TypedDict, total=False):
    """What a short run changes: the repetitions, and the duration with its unit."""

    reps: int
    duration: str


@dataclass(frozen=True)
class Statement:
    """A claim about the simulator, and the scenario and function that measure it.

    `quick` is what a short run changes in the scenario. It is run once for each of `jobs`, the number of threads (0:
    as the caller says), and `measure` gets the results of every run. `cc`, `profile` and `settings` change the
    scenario.
    """

    name: str
    title: str
    claim: str
    method: str
    scenario: str
    measure: Callable[..., Measurement]
    quick: Quick = field(default_factory=Quick)
    jobs: tuple[int, ...] = (0,)
    cc: tuple[str, ...] = ()
    profile: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """A statement with its measurement and the command that repeats the runs."""

    statement: Statement
    command: str
    measurement: Measurement

    @cached_property
    def finding(self) -> Finding:
        """The verdict, on all deciding cases at once: not testable where none decides."""
        cases = self.measurement.cases
        deciding = [(case, case.within) for case in cases if case.decides and case.within is not None]
        verdict = Verdict.NOT_TESTABLE
        if deciding:
            # Cases with different numbers of repetitions: each is decided by its own, at its part of the error.
            rule, whole = Rule(), Joint([within for _, within in deciding], every=True)
            verdict = Verdict.joint(rule.decide_part(one, whole, len(case.values)) for case, one in deciding)
        return Finding(self.statement.name, verdict, cases)


@dataclass(frozen=True)
class Study:
    """A page of statements: its name and title, what it is about, the command that writes it, and its scenarios."""

    name: str
    title: str
    about: str
    command: str
    scenarios: Path
    statements: tuple[Statement, ...]

    @property
    def page(self) -> str:
        """The file name of the page."""
        return f"{self.name}.md"


def joined(words: Iterable[str]) -> str:
    """`a, b and c`.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    *most, last = list(words)
    return f"{', '.join(most)} and {last}" if most else last
