"""What chance does to the differences between two engines, and how far apart they are without it.

A few repetitions leave an uncertainty in every difference, and among hundreds of flows some differ by much although
nothing but chance sets them apart. Here the intervals of all flows tell what they would do if both engines were the
same, and the spread beyond that is the engines' own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from mptcplab.metrics.student import t_quantile

# With fewer scenarios, their resampling gives no interval worth the name.
FEWEST_SCENARIOS = 10
_RESAMPLES, _SEED = 1000, 1
# Of a standard normal variable: half of its distances from zero are smaller.
_MEDIAN_DISTANCE = 0.6744897501960817
# Half of the interval in which a standard deviation is looked for takes this many steps to become negligible.
_STEPS = 50


@dataclass(frozen=True)
class Difference:
    """The difference of a flow's goodput (%) and half of its 95 % interval; `repetitions`: of the engine with fewer.

    Those of one scenario are not independent of each other.
    """

    scenario: str
    percent: float
    half: float
    repetitions: int


@dataclass(frozen=True)
class Chance:
    """Distances (%) of some flows as they are, as equal engines would have them, and as the engines' own.

    `beyond` counts the flows beyond the bound. Those of equal engines are expected numbers, and the medians of the
    median and of the worst distance. `own` is the standard deviation of the differences that the engines would have
    with infinitely many repetitions, with its 95 % interval.
    """

    flows: int
    median: float
    beyond: int
    worst: float
    equal_median: float
    equal_beyond: float
    equal_worst: float
    own: float
    own_interval: tuple[float, float]

    @property
    def own_median(self) -> float:
        """The median distance that belongs to `own`, if the differences are normally distributed."""
        return _MEDIAN_DISTANCE * self.own


def of_differences(differences: Sequence[Difference], bound: float) -> Chance | None:
    """What chance does to these differences; None with fewer than `FEWEST_SCENARIOS` scenarios."""
    members = by_scenario(differences)
    if len(members) < FEWEST_SCENARIOS:
        return None
    percent = np.array([difference.percent for difference in differences])
    errors = standard_errors(differences)
    distances = np.abs(percent).tolist()
    return Chance(
        flows=len(differences),
        median=median(distances),
        beyond=sum(distance > bound for distance in distances),
        worst=max(distances),
        equal_median=_solved(lambda most: _within(most, errors).mean(), 0.5, errors),
        equal_beyond=float((1 - _within(bound, errors)).sum()),
        equal_worst=_solved(lambda most: _within(most, errors).prod(), 0.5, errors),
        own=float(_own(percent, errors, np.ones((1, len(percent))))[0]),
        own_interval=_resampled(percent, errors, members),
    )


def by_scenario(differences: Sequence[Difference]) -> np.ndarray:
    """A row for each scenario, with 1 in the columns of its differences and 0 in the others."""
    scenarios = sorted({difference.scenario for difference in differences})
    return np.array([[difference.scenario == one for difference in differences] for one in scenarios], dtype=float)


def standard_errors(differences: Sequence[Difference]) -> np.ndarray:
    """The standard errors (%) of differences, with the degrees of freedom of the engine with fewer repetitions.

    The interval had at least as many, so that this is rather too small than too large, and so is what is put down to
    chance.
    """
    halves = np.array([difference.half for difference in differences])
    degrees = np.array([difference.repetitions - 1.0 for difference in differences])
    errors: np.ndarray = halves / t_quantile(degrees)
    return errors


def _within(most: float, errors: np.ndarray) -> np.ndarray:
    """For each standard error, how probable a normal difference around zero of at most so much is."""
    from scipy.special import erf

    probable: np.ndarray = erf(most / errors / np.sqrt(2))
    return probable


def _solved(rising: Callable[[float], float], value: float, errors: np.ndarray) -> float:
    """Where a function that rises with a distance (%) has this value."""
    low, high = 0.0, 10 * float(errors.max())
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < value else (low, middle)
    return low


def _own(percent: np.ndarray, errors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The standard deviation (%) that differences have beside their standard errors, for each row of weights.

    With it their squares are on average what their variances are; 0 if the standard errors alone explain more (Paule
    and Mandel, "Consensus Values and Weighting Factors", Journal of Research of the National Bureau of Standards 87(5),
    1982; here around zero instead of a mean).
    """
    low, high = np.zeros(len(weights)), np.full(len(weights), float(np.abs(percent).max()))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        ratios = percent**2 / (errors**2 + middle[:, None] ** 2)
        is_low = (weights * (ratios - 1)).sum(axis=1) > 0
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return low


def _resampled(percent: np.ndarray, errors: np.ndarray, members: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of `_own` when scenarios are drawn again with replacement: a row of `members` is one."""
    random = np.random.default_rng(_SEED)
    scenarios = len(members)
    draws = random.multinomial(scenarios, np.full(scenarios, 1 / scenarios), size=_RESAMPLES)
    low, high = np.quantile(_own(percent, errors, draws @ members), [0.025, 0.975])
    return float(low), float(high)
