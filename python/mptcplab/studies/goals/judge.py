"""From a cell's measurements to the verdict on each goal, with the confidence that the repetitions give.

The rules themselves are in metrics/goals.py. They are evaluated on means over repetitions, and again on the means of
resampled repetitions: the paired percentile bootstrap, in which all runs of one repetition stay together. A goal is met
where the rule holds on at least 97.5 % of the resamples, violated where it holds on at most 2.5 %, else unclear.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mptcplab.metrics.goals import Balance, Verdict, balance, do_no_harm, improve
from mptcplab.studies.goals.grid import Cell
from mptcplab.studies.goals.measure import Measured, Values
from mptcplab.studies.goals.scenarios import network
from mptcplab.studies.papers.bootstrap import decided, interval, resamples

PASSED, VIOLATED, UNCLEAR, NOT_ASKED = "passed", "violated", "unclear", "not asked"
VERDICTS = (PASSED, VIOLATED, UNCLEAR, NOT_ASKED)


@dataclass(frozen=True)
class Judgement:
    """The verdict on one goal in one cell.

    `margin` is that of the rule on the means, relative to the goal's reference and at least 0 where it is met; `low`
    and `high` are its 95 % interval. All are None where the goal asks for nothing. `text` says what decided.
    """

    verdict: str
    margin: float | None
    low: float | None
    high: float | None
    text: str


@dataclass(frozen=True)
class Judged:
    """The three goals in one cell, and what goal 3 was made of (see `metrics.goals.Balance`).

    `every_path` is the margin of goal 2 in its stricter reading, in which no path may do harm beyond one TCP on it, not
    only the best of them. Where paths of different RTT share a bottleneck, it cannot be met together with goal 1.
    """

    goals: tuple[Judgement, Judgement, Judgement]
    every_path: float | None
    balance: float | None
    shift: float | None


def judge(cell: Cell, measured: Measured) -> Judged:
    """The verdicts on a cell."""
    repetitions = measured.goodput.size
    means = _verdicts(cell, measured, np.full(repetitions, 1 / repetitions))
    # Means do not depend on the order within a resample, and few repetitions give few different ones.
    drawn = np.sort(resamples(repetitions), axis=1)
    different, which = np.unique(drawn, axis=0, return_inverse=True)
    counts = (different[:, :, None] == np.arange(repetitions)).sum(axis=1)
    again = [_verdicts(cell, measured, row / repetitions) for row in counts]
    goals = [
        _judgement(verdict, [row[position] for row in again], which.ravel()) for position, verdict in enumerate(means)
    ]
    third = means[2]
    return Judged((goals[0], goals[1], goals[2]), _every_path(cell, measured), third.cbi, third.shift)


def _verdicts(cell: Cell, measured: Measured, weights: Values) -> tuple[Verdict, Verdict, Balance]:
    """The rules on the weighted means of the repetitions."""

    def mean(values: Mapping[str, Values]) -> dict[str, float]:
        return {name: float(weights @ value) for name, value in values.items()}

    single = mean(measured.single_paths)
    first = improve(float(weights @ measured.goodput), single)
    beside_tcp = {path: mean(values) for path, values in measured.beside_tcp.items()}
    second = do_no_harm(mean(measured.beside_mp), beside_tcp, _victims(cell, single))
    loads, uncoupled = mean(measured.loads), mean(measured.uncoupled_loads)
    return first, second, balance(mean(measured.losses), loads, uncoupled, (first, second))


def _victims(cell: Cell, single: Mapping[str, float]) -> dict[str, tuple[str, ...]]:
    """By path, the competitors that goal 2 protects there.

    A bottleneck of several paths counts once, with the path on which one TCP gets most: a connection should take no
    more than one TCP on the best of the paths that it uses there (Wischik et al., NSDI 2011).
    """
    where = network(cell)
    best: dict[str, str] = {}
    for path, link in where.bottlenecks.items():
        if link not in best or single[path] > single[best[link]]:
            best[link] = path
    return {path: (where.competitors[link],) for link, path in best.items()}


def _every_path(cell: Cell, measured: Measured) -> float | None:
    where = network(cell)
    beside_tcp = {
        path: {name: float(value.mean()) for name, value in values.items()}
        for path, values in measured.beside_tcp.items()
    }
    beside_mp = {name: float(value.mean()) for name, value in measured.beside_mp.items()}
    victims = {path: (where.competitors[link],) for path, link in where.bottlenecks.items()}
    return do_no_harm(beside_mp, beside_tcp, victims).margin


def _judgement(mean: Verdict, again: list[Verdict], which: np.ndarray) -> Judgement:
    """One goal: the rule on the means, and what the resamples say; `which` of the different ones each was."""
    margins = np.array([np.nan if verdict.margin is None else verdict.margin for verdict in again])[which]
    # The first is the sample itself.
    if np.isnan(margins[1:]).all():
        return Judgement(NOT_ASKED, None, None, None, mean.text)
    holds = np.array([verdict.passed for verdict in again])[which][1:].mean()
    verdict = {True: PASSED, False: VIOLATED, None: UNCLEAR}[decided(holds)]
    return Judgement(verdict, mean.margin, *interval(margins), mean.text)
