"""From the measurements of a network to the verdict on each goal, with the confidence that the repetitions give.

The rules themselves are in `metrics.goals`. They are evaluated on means over repetitions, and again on the means of
resampled repetitions, in which all runs of one repetition stay together. A goal holds where the whole interval of its
margin is within the bound, fails where none of it is, and is open in between (`study.decision`). It is not testable
where it asks for nothing, or where a run of the network does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mptcplab.metrics.goals import BALANCE, DO_NO_HARM, IMPROVE, Balance, GoalResult, balance, do_no_harm, improve
from mptcplab.studies.goals.grid import Network
from mptcplab.studies.goals.measure import Measured, Values
from mptcplab.studies.goals.scenarios import layout
from mptcplab.study.decision import ERROR, Joint, Margin, Rule, moments
from mptcplab.study.statistics import resamples
from mptcplab.study.verdict import Finding, Verdict


@dataclass(frozen=True)
class GoalFinding(Finding):
    """The finding on one goal in one network; `reason` says why it is not testable.

    `margin` is that of the rule on the means, relative to the goal's reference and at least 0 where the goal is met;
    `low` and `high` are the ends of the interval that decides. The error of each is 2.5 %; that of `high` is divided by
    the number of comparisons of which the margin is the smallest, so that the interval may be wider than one of 95 %.
    All are None where the goal is not testable.
    """

    margin: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Judged:
    """The findings on the three goals in one network, and the parts of goal 3 (see `metrics.goals.Balance`).

    `every_path` is the margin of goal 2 in its stricter reading, in which no path may do harm beyond one TCP on it, not
    only the best of them. Where paths of different RTT share a bottleneck, it cannot be met together with goal 1.
    """

    goals: tuple[GoalFinding, GoalFinding, GoalFinding]
    every_path: float | None
    balance: float | None
    shift: float | None


def judge(network: Network, measured: Measured) -> Judged:
    """The findings in a network."""
    # A repetition without a value must not decide by being left out.
    if measured.missing is not None:
        return _not_testable(measured.missing)
    repetitions = measured.goodput.size
    means = _rules(network, measured, np.full(repetitions, 1 / repetitions))
    # Means do not depend on the order within a resample, and few repetitions give few different ones.
    drawn = np.sort(resamples(repetitions), axis=1)
    different, which = np.unique(drawn, axis=0, return_inverse=True)
    counts = (different[:, :, None] == np.arange(repetitions)).sum(axis=1)
    again = [_rules(network, measured, row / repetitions) for row in counts]
    # The best of the paths, every protected competitor, and for goal 3 both and the shift.
    single, protected = len(measured.single_paths), len(set(layout(network).bottlenecks.values()))
    comparisons = (single, protected, single + protected + 1)
    goals = [
        _finding(rule, [row[position] for row in again], which.ravel(), repetitions, comparisons[position])
        for position, rule in enumerate(means)
    ]
    third = means[2]
    return Judged((goals[0], goals[1], goals[2]), _every_path(network, measured), third.cbi, third.shift)


def _not_testable(reason: str) -> Judged:
    improved, harmless, balanced = (
        GoalFinding(name, Verdict.NOT_TESTABLE, reason=reason) for name in (IMPROVE, DO_NO_HARM, BALANCE)
    )
    return Judged((improved, harmless, balanced), None, None, None)


def _means(values: Mapping[str, Values], weights: Values) -> dict[str, float]:
    return {name: float(weights @ value) for name, value in values.items()}


def _rules(network: Network, measured: Measured, weights: Values) -> tuple[GoalResult, GoalResult, Balance]:
    """The rules on the weighted means of the repetitions."""
    single = _means(measured.single_paths, weights)
    first = improve(float(weights @ measured.goodput), single)
    beside_tcp = {path: _means(values, weights) for path, values in measured.beside_tcp.items()}
    second = do_no_harm(_means(measured.beside_mp, weights), beside_tcp, _protected(network, single))
    loads, uncoupled = _means(measured.loads, weights), _means(measured.uncoupled_loads, weights)
    return first, second, balance(_means(measured.losses, weights), loads, uncoupled, (first, second))


def _protected(network: Network, single: Mapping[str, float]) -> dict[str, tuple[str, ...]]:
    """By path, the competitors that goal 2 protects there.

    A bottleneck of several paths counts once, with the path on which one TCP gets most: a connection should take no
    more than one TCP on the best of the paths that it uses there (Wischik et al., NSDI 2011).
    """
    where = layout(network)
    best: dict[str, str] = {}
    for path, link in where.bottlenecks.items():
        if link not in best or single[path] > single[best[link]]:
            best[link] = path
    return {path: (where.competitors[link],) for link, path in best.items()}


def _every_path(network: Network, measured: Measured) -> float | None:
    where = layout(network)
    beside_tcp = {
        path: {name: float(value.mean()) for name, value in values.items()}
        for path, values in measured.beside_tcp.items()
    }
    beside_mp = {name: float(value.mean()) for name, value in measured.beside_mp.items()}
    protected = {path: (where.competitors[link],) for path, link in where.bottlenecks.items()}
    return do_no_harm(beside_mp, beside_tcp, protected).margin


def _finding(
    mean: GoalResult, again: list[GoalResult], which: np.ndarray, repetitions: int, comparisons: int
) -> GoalFinding:
    """One goal: the rule on the means, and on the resamples; `which` of the different results belongs to each.

    The margin is the smallest of several comparisons, of which each may be the one that fails.
    """
    margins = np.array([np.nan if result.margin is None else result.margin for result in again])[which]
    if mean.margin is None:
        return GoalFinding(mean.name, Verdict.NOT_TESTABLE, reason=mean.text)
    asked = np.isfinite(margins)
    rule, margin = Rule(), Margin(*moments(margins[asked], repetitions))
    whole = Joint([margin] * comparisons, every=True)
    verdict = rule.decide(whole, repetitions)
    # It cannot be said to fail where it may ask for nothing.
    if verdict == Verdict.FAILS and asked.mean() < 1 - ERROR / 2:
        verdict = Verdict.OPEN
    value, low, high = rule.interval(whole, whole, repetitions)
    return GoalFinding(mean.name, verdict, (), mean.text, repetitions, margin=value, low=low, high=high)
