"""The search for the point with the largest score: points all over the cube, then CMA-ES from the best of them.

CMA-ES (Hansen 2016) adapts the shape of a normal distribution to the points that did best. It starts again from another
of the best points when it has converged. Everything follows from the seed and the number of evaluations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mptcplab.errors import MptcplabError, with_hint

# The part of the evaluations that is spread over the cube.
_SPREAD = 0.4
# Points that are evaluated together: the same for any number of jobs.
TOGETHER = 16
_FIRST_STEP = 0.15
# A distribution that has become this narrow has converged.
_NARROW = 0.01

Point = tuple[float, ...]
# The scores of points; minus infinity where there is none.
Evaluate = Callable[[Sequence[Point]], Sequence[float]]


@dataclass
class Search:
    """A search in a cube of so many `dimensions`."""

    dimensions: int
    seed: int
    evaluations: int
    # Called with the number of evaluations after some of them.
    noted: Callable[[int], None] = lambda _: None
    done: list[tuple[float, Point]] = field(default_factory=list)

    @property
    def best(self) -> tuple[float, Point] | None:
        """The largest score so far, and its point; the first of equals."""
        return max(self.done, key=lambda one: one[0], default=None)

    def run(self, evaluate: Evaluate) -> None:
        """Evaluate; `done` has every point at once, so that an interrupt loses nothing."""
        self._spread(evaluate)
        tried: list[Point] = []
        while self._left > 0:
            start = next((point for _, point in self._ranked() if point not in tried), self._random(len(tried)))
            tried.append(start)
            self._climb(evaluate, start, self.seed + len(tried))

    @property
    def _left(self) -> int:
        return self.evaluations - len(self.done)

    def _ranked(self) -> list[tuple[float, Point]]:
        """The best points of the spread ones; later ones are near a start that was tried."""
        spread = self.done[: self._spread_count]
        return sorted(spread, key=lambda one: -one[0])

    @property
    def _spread_count(self) -> int:
        return max(1, int(self.evaluations * _SPREAD))

    def _spread(self, evaluate: Evaluate) -> None:
        from scipy.stats import qmc

        with warnings.catch_warnings():
            # Any number of points is good enough, not only powers of two.
            warnings.simplefilter("ignore", UserWarning)
            points = qmc.Sobol(self.dimensions, seed=self.seed).random(self._spread_count)
        for first in range(0, len(points), TOGETHER):
            self._note(evaluate, [tuple(point.tolist()) for point in points[first : first + TOGETHER]])

    def _climb(self, evaluate: Evaluate, start: Point, seed: int) -> None:
        """CMA-ES from a point until it has converged, or until there are no evaluations left."""
        cma = _cma()
        # A stream of its own instead of NumPy's global one, which `nan` leaves alone.
        stream = np.random.RandomState(seed)
        options = {"bounds": [0, 1], "popsize": TOGETHER, "seed": np.nan, "randn": stream.randn, "verbose": -9}
        strategy = cma.CMAEvolutionStrategy(list(start), _FIRST_STEP, options)
        while self._left > 0 and not strategy.stop() and strategy.sigma > _NARROW:
            points = [tuple(np.clip(point, 0, 1).tolist()) for point in strategy.ask()]
            scores = self._note(evaluate, points[: self._left])
            if len(scores) < len(points):
                return
            strategy.tell(points, [-score if np.isfinite(score) else 1e3 for score in scores])

    def _note(self, evaluate: Evaluate, points: list[Point]) -> list[float]:
        scores = [float(score) for score in evaluate(points)]
        self.done += zip(scores, points, strict=True)
        self.noted(len(self.done))
        return scores

    def _random(self, number: int) -> Point:
        return tuple(np.random.default_rng([self.seed, number]).random(self.dimensions).tolist())


def require_optimiser() -> None:
    """Raise an error if the optimiser is not installed."""
    _cma()


def _cma() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import cma
    except ImportError as error:
        hint = "pip install 'mptcplab[hunt]'"
        raise MptcplabError(with_hint(f"the optimiser is not installed: {error}", hint)) from error
    return cma
