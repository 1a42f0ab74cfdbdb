"""Integrates the equations over time: a piece for every span between two changes, restarted where slow start ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp

from mptcplab.engines.fluid.conditions import Conditions, changes_s, conditions
from mptcplab.engines.fluid.equations import LEAST_PKTS, Model
from mptcplab.engines.fluid.network import Array
from mptcplab.errors import EngineError, RefusedError, with_hint

# Relative error per step, and absolute errors that do not matter: of a window in packets, of a queue in bytes.
_RELATIVE = 1e-5
_WINDOW_ERROR, _QUEUE_ERROR = 1e-4, 1.0
# Evaluations per piece; if more are needed, the equations are too stiff to be integrated in a reasonable time.
_MAX_EVALUATIONS = 100_000
# The largest step in slow start, so that its end is not missed.
_SLOW_STEP_S = 0.05
# Steps of the solver that are shorter are times of the solution as well.
FINE_S = 0.01
# In slow start a window doubles per round trip; it is over when a loss is expected to have happened.
_ONE_LOSS = 1.0


@dataclass(frozen=True)
class RunState:
    """State of a run at one time: the state of the equations, and which subflows are in slow start."""

    state: Array
    slow: Array
    # [r] window at which slow start ends without a loss.
    threshold: Array


@dataclass(frozen=True)
class Piece:
    """A part of the solution at times [t], in which the conditions did not change; the next begins where it ends."""

    times_s: Array
    states: Array
    now: Conditions
    slow: Array


@dataclass(frozen=True)
class Solution:
    """A run over time. `ends` has the times and subflows at which slow start ended."""

    pieces: tuple[Piece, ...]
    last: RunState
    now: Conditions
    ends: tuple[tuple[float, int], ...]
    evaluations: int


class Counter:
    """Counts evaluations, and stops an integration that makes no progress."""

    def __init__(self, derivative: Callable[[Array], Array]) -> None:
        self.derivative, self.count = derivative, 0

    def __call__(self, _: float, state: Array) -> Array:
        """The signature that solvers need; the equations do not depend on the time."""
        self.count += 1
        if self.count > _MAX_EVALUATIONS:
            raise RefusedError(
                with_hint(
                    f"the fluid's equations make no progress: {_MAX_EVALUATIONS} evaluations",
                    "the simulator runs the scenario: leave --engine fluid out",
                )
            )
        return self.derivative(state)


def over_time(model: Model, grid_s: Array) -> Solution:
    """Integrate a run from 0 to its end; the solution is given at the times `grid_s` (sorted), and where it needs more.

    Where a piece ends and the next begins, the solution has this time twice, as it was before and after.
    """
    times = changes_s(model.graph)
    now = conditions(model.graph, times[0])
    current = initial_state(model)
    pieces: list[Piece] = []
    ends: list[tuple[float, int]] = []
    evaluations = 0
    for at, until in pairwise(times):
        before, now = now, conditions(model.graph, at)
        current = _changed(model, current, before if at > 0 else None, now)
        inside = grid_s[(grid_s >= at) & ((grid_s < until) | (until == times[-1]))]
        found, current, count = _span(model, current, now, (at, until), inside, ends)
        pieces += found
        evaluations += count
    return Solution(tuple(pieces), current, now, tuple(ends), evaluations)


def initial_state(model: Model) -> RunState:
    """The state in which no flow sends and all queues are empty."""
    n, state = len(model.graph.subflows), np.zeros(model.layout.size)
    state[model.layout.windows] = LEAST_PKTS
    return RunState(state, np.zeros(n, bool), np.full(n, np.inf))


def _changed(model: Model, current: RunState, before: Conditions | None, now: Conditions) -> RunState:
    """Subflows that appear start with their initial window in slow start; those that disappear stop sending."""
    part = model.layout
    appeared = now.active & (True if before is None else ~before.active)
    state, slow, threshold = current.state.copy(), current.slow & now.active, current.threshold.copy()
    for at in np.flatnonzero(appeared):
        flow = model.graph.run["flows"][model.graph.subflows[at].flow]
        state[at] = max(min(flow["initial_cwnd_pkts"], model.clamp[at]), LEAST_PKTS)
        state[part.expected][at] = 0.0
        state[part.intervals][model.counting == at] = LEAST_PKTS
        threshold[at] = np.inf if flow["initial_ssthresh_pkts"] is None else flow["initial_ssthresh_pkts"]
        slow[at] = True
    # A queue that becomes shorter drops the excess.
    state[part.queues] = np.minimum(state[part.queues], now.room)
    return RunState(state, slow, threshold)


def _span(
    model: Model,
    current: RunState,
    now: Conditions,
    span: tuple[float, float],
    grid_s: Array,
    ends: list[tuple[float, int]],
) -> tuple[list[Piece], RunState, int]:
    """One span without changes of the conditions, in a new piece after each end of slow start."""
    at, until = span
    pieces: list[Piece] = []
    evaluations = 0
    while True:
        reached, state, times, states, count = _advance(model, current, now, (at, until), grid_s[grid_s >= at])
        evaluations += count
        pieces.append(Piece(times, states, now, current.slow))
        if reached >= until:
            return pieces, replace(current, state=state), evaluations
        current, left = _leave_slow_start(model, replace(current, state=state), now)
        ends += [(reached, int(at)) for at in left]
        at = reached


def _advance(
    model: Model, current: RunState, now: Conditions, span: tuple[float, float], grid_s: Array
) -> tuple[float, Array, Array, Array, int]:
    """Integrate to the end of the span or of the first slow start.

    Returns the time reached and its state, times with the states at them, and the number of evaluations. The times are
    those of the grid, both ends, and the solver's own where it takes short steps.
    """
    derivative = Counter(lambda state: model.derivative(state, now, current.slow))
    events = None
    if current.slow.any():

        def left(_: float, state: Array) -> float:
            return float(np.min(_distance(model, current, state)[current.slow]))

        # An attribute of the function tells the solver to stop there.
        setattr(left, "terminal", True)  # noqa: B010
        events = left
        if left(0.0, current.state) <= 0:
            return span[0], current.state, np.zeros(0), np.zeros((0, len(current.state))), 0
    solved = solve_ivp(
        derivative,
        span,
        current.state,
        method="LSODA",
        dense_output=True,
        events=events,
        rtol=_RELATIVE,
        jac=lambda _, state: model.jacobian(state, now, current.slow),
        atol=tolerances(model),
        max_step=_SLOW_STEP_S if current.slow.any() else np.inf,
    )
    if solved.status < 0:
        raise EngineError(
            with_hint(
                f"the fluid's equations cannot be integrated beyond {solved.t[-1]:.3f} s: {solved.message}",
                "this is a bug of mptcplab; please report it with the scenario, its seed and this message",
            )
        )
    end = float(solved.t[-1])
    times = np.unique(np.concatenate([grid_s[grid_s <= end], _fine(solved.t)]))
    return end, solved.y[:, -1], times, solved.sol(times).T, derivative.count


def _fine(steps_s: Array) -> Array:
    """The first and the last of the solver's steps, and those with another one nearby: something changes fast there."""
    gaps = np.diff(steps_s)
    near = np.minimum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf)) < FINE_S
    near[[0, -1]] = True
    found: Array = steps_s[near]
    return found


def tolerances(model: Model) -> Array:
    """Absolute error per component of the state."""
    error = np.full(model.layout.size, _WINDOW_ERROR)
    error[model.layout.queues] = _QUEUE_ERROR
    return error


def _distance(model: Model, current: RunState, state: Array) -> Array:
    """[r] distance of slow start from its end, negative after it."""
    room = np.minimum(current.threshold, model.clamp) - state[model.layout.windows]
    found: Array = np.minimum(_ONE_LOSS - state[model.layout.expected], room)
    return found


def _leave_slow_start(model: Model, current: RunState, now: Conditions) -> tuple[RunState, Array]:
    """End slow start where it is due; a loss reduces the window as in congestion avoidance."""
    part, m = model.layout, len(model.cubic_members)
    f = model.quantities(current.state, now, current.slow)
    margin = 1e-6
    left = current.slow & (_distance(model, current, current.state) <= margin)
    lost = left & (current.state[part.expected] >= _ONE_LOSS - margin)
    state = current.state.copy()
    state[part.windows] -= np.where(lost, model.decrease(f, now), 0.0)
    for position, at in enumerate(model.cubic_members):
        if left[at]:
            peak, factor = f.window[at], model.cubic.beta[position] if lost[at] else 1.0
            state[at] = max(factor * peak, LEAST_PKTS)
            state[part.maxima][position] = peak
            climb = float(model.cubic.climb_s(np.full(m, peak))[position])
            state[part.since_s][position] = 0.0 if lost[at] else climb
    return RunState(state, current.slow & ~left, current.threshold), np.flatnonzero(left)
