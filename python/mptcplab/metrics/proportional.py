"""The proportionally fair allocation: the rates of connections whose logarithms have the largest sum.

Kelly, Maulloo, Tan (1998), with multipath connections free to split. The rates are unique, though the splits need not
be. Solved by a primal-dual interior-point method (Boyd and Vandenberghe, Convex Optimization, section 11.7) in
variables scaled per path, so that capacities may differ by many orders of magnitude.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from mptcplab.metrics.allocation import REMEMBERED, Key, Paths, Shape, by_component

if TYPE_CHECKING:
    import numpy as np

# Complementarity (sum of slack times price) at which the rates are exact to about as many digits.
_DONE = 1e-13
_RESIDUAL = 1e-6
# A Newton step aims at the first fraction of the present gap, or at the second after a step that stopped early.
_CENTRING = (0.1, 0.7)
# The fraction of the way to the border that a step may go, and the length below which it stopped early.
_BORDER, _EARLY = 0.99, 0.5
# Where splits are not unique the equations of a step are nearly singular; this much on the scaled diagonal leaves
# out the directions that change no rate.
_RIDGE = 1e-13
_MAX_STEPS = 200


def proportional_fair(capacities: Mapping[str, float], connections: Mapping[Key, Paths]) -> dict[Key, float]:
    """Proportionally fair rate of every connection, in the unit of the capacities.

    `connections` gives each one the paths (tuples of link names) over which it may split. A connection whose
    paths all have no capacity gets 0, and does not count in the sum.

    >>> rates = proportional_fair({"a": 6.0, "b": 6.0}, {"long": [("a", "b")], "x": [("a",)], "y": [("b",)]})
    >>> {name: round(rate, 6) for name, rate in rates.items()}
    {'long': 2.0, 'x': 4.0, 'y': 4.0}
    """
    return by_component(capacities, connections, _largest_product)


@lru_cache(REMEMBERED)
def _largest_product(room: tuple[float, ...], shape: Shape, counts: tuple[int, ...]) -> tuple[float, ...]:
    """Rates of each of so many connections with the same paths."""
    import numpy as np

    alive = [(who, path) for who, paths in enumerate(shape) for path in _useful(room, paths)]
    if not alive:
        return (0.0,) * len(shape)
    links = sorted({link for _, path in alive for link in path})
    usage = np.array([[counts[who] * path.count(link) for who, path in alive] for link in links], dtype=float)
    capacity = np.array([room[link] for link in links])
    # Start with half of an equal share of every link: feasible, and near enough to any solution.
    offer = capacity / usage.sum(axis=1)
    start = np.where(usage > 0, offer[:, None], np.inf).min(axis=0) / 2
    users = sorted({who for who, _ in alive})
    belongs = np.array([[who == user for who, _ in alive] for user in users]) * start
    begun = belongs.sum(axis=1)
    weights = np.array([counts[user] for user in users], dtype=float)
    split = _interior_point(usage * start / capacity[:, None], belongs / begun[:, None], weights / weights.max())
    rates = dict(zip(users, (belongs @ split).tolist(), strict=True))
    return tuple(rates.get(who, 0.0) for who in range(len(shape)))


def _useful(room: tuple[float, ...], paths: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """The paths with capacity, without those that contain all links of another path of the same connection."""
    needs = {path: Counter(path) for path in paths if all(room[link] > 0 for link in path)}
    distinct = {frozenset(need.items()): path for path, need in needs.items()}.values()
    return [path for path in distinct if not any(other != path and needs[other] <= needs[path] for other in distinct)]


def _interior_point(usage: np.ndarray, belongs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Maximise weights log(belongs x) over x >= 0 with usage x <= 1; x = 1 has to be strictly feasible."""
    import numpy as np

    x = np.ones(usage.shape[1])
    slack = 1 - usage @ x
    price, excess = 1 / slack, 1 / x
    far = 1.0
    for _ in range(_MAX_STEPS):
        rates = belongs @ x
        slope = -belongs.T @ (weights / rates)
        left = slack @ price + x @ excess
        if left <= _DONE and np.abs(slope + usage.T @ price - excess).max() <= _RESIDUAL:
            return x
        aim = _CENTRING[far < _EARLY] * left / (len(slack) + len(x))
        weighed = belongs / rates[:, None]
        curve = weighed.T @ (weighed * weights[:, None]) + (usage.T * (price / slack)) @ usage + np.diag(excess / x)
        step = _solve(curve, -slope - usage.T @ (aim / slack) + aim / x)
        narrowing = usage @ step
        price_step = (aim + price * narrowing) / slack - price
        excess_step = (aim - excess * step) / x - excess
        far = min(
            _longest_step(value, change)
            for value, change in ((x, step), (slack, -narrowing), (price, price_step), (excess, excess_step))
        )
        x, price, excess = x + far * step, price + far * price_step, excess + far * excess_step
        slack = slack - far * narrowing
    raise ArithmeticError(f"proportional fairness did not converge in {_MAX_STEPS} steps (gap {left:.3g})")


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve symmetric equations whose diagonal spans many orders of magnitude."""
    import numpy as np

    scale = 1 / np.sqrt(matrix.diagonal())
    scaled = matrix * scale * scale[:, None]
    right = scale * right
    ridged = scaled + _RIDGE * np.eye(len(right))
    found = np.linalg.solve(ridged, right)
    result: np.ndarray = scale * (found + np.linalg.solve(ridged, right - scaled @ found))
    return result


def _longest_step(values: np.ndarray, changes: np.ndarray) -> float:
    """The largest fraction of the step that keeps all values above 0."""
    shrinking = changes < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, _BORDER * float((values[shrinking] / -changes[shrinking]).min()))
