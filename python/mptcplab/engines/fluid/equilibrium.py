"""The equilibria of the equations, and whether they depend on the start."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from mptcplab.engines.fluid.conditions import Conditions
from mptcplab.engines.fluid.equations import LEAST_PKTS, Model
from mptcplab.engines.fluid.integrate import Counter, RunState, tolerances
from mptcplab.engines.fluid.network import Array
from mptcplab.errors import EngineError

# Spans of time after each of which the goodputs are compared; at rest, they did not change in the last span.
_SPANS_S = (30.0, 100.0, 300.0, 1000.0, 3000.0)
# Parts of a span at whose ends the goodputs are looked at, so that none swings unnoticed.
_PARTS = 200
# Goodputs that differ by less than this fraction of the largest are the same.
_SAME = 0.01
_RELATIVE = 1e-4
# The largest relative difference between the starting windows of equal subflows.
_APART = 0.03


class End(StrEnum):
    """How the integration from one start ended; only the first is an equilibrium."""

    AT_REST = "at rest"
    # In one direction, and slowly: as when CUBIC approaches its equilibrium.
    MOVING = "moving"
    # Back and forth, as in a limit cycle.
    SWINGING = "swinging"
    # The solver gave up.
    STOPPED = "solver stopped"


@dataclass(frozen=True)
class EndState:
    """The end state from one start: goodput of every subflow in packets/s, how long it took, and why it is the end.

    Where goodputs swing, they are means over the second half of the last span.
    """

    goodput: Array
    end: End
    after_s: float
    evaluations: int

    @property
    def reached(self) -> bool:
        """Whether it is an equilibrium."""
        return self.end is End.AT_REST


@dataclass(frozen=True)
class Equilibria:
    """The different equilibria that were found, after the end state of the run, which may be none."""

    states: tuple[EndState, ...]
    evaluations: int

    def of(self, goodput: Array) -> Equilibria:
        """The same for another run of these equations, which ended with this goodput: the nearest state first."""
        nearest = sorted(self.states, key=lambda state: float(np.abs(state.goodput - goodput).max(initial=0.0)))
        return Equilibria(tuple(nearest), 0)


def find(model: Model, last: RunState, now: Conditions) -> Equilibria:
    """Continue from a run's end until the equations rest, and again with every connection on one of its subflows.

    The conditions no longer change, and no subflow is in slow start.
    """
    found = [_settle(model, start, now) for start in (last.state, *_starts(model, last.state, now))]
    scale = max(float(found[0].goodput.max(initial=0.0)), 1e-9)
    different = found[:1]
    for state in found[1:]:
        apart = (np.abs(state.goodput - other.goodput).max(initial=0.0) for other in different)
        if state.reached and min(apart) > 2 * _SAME * scale:
            different.append(state)
    return Equilibria(tuple(different), sum(state.evaluations for state in found))


def report(model: Model, found: Equilibria) -> dict[str, Any]:
    """The record of a run: whether and how the equations come to rest, whether that is unique, goodputs in Mbit/s."""
    own = found.states[0]
    return {
        "rests": own.reached,
        "end": own.end.value,
        "after_s": own.after_s,
        "unique": sum(state.reached for state in found.states) <= 1,
        "goodput_mbps": [_named(model, state.goodput) for state in found.states],
    }


def _named(model: Model, goodput: Array) -> dict[str, dict[str, float]]:
    named: dict[str, dict[str, float]] = {}
    for at, subflow in enumerate(model.graph.subflows):
        flow = model.graph.run["flows"][subflow.flow]
        rate = goodput[at] * flow["mss_bytes"] * 8e-6
        named.setdefault(flow["name"], {})[flow["subflows"][subflow.number]["name"]] = round(float(rate), 4)
    return named


def _starts(model: Model, state: Array, now: Conditions) -> list[Array]:
    """Starts in which every connection has its whole window on its first subflow, on its second, and so on.

    Equal subflows start with slightly different windows, so that an unstable equilibrium is left.
    """
    subflows = model.graph.subflows
    most = max((subflow.number for subflow in subflows), default=0)
    totals = np.zeros(len(model.graph.run["flows"]))
    counts = np.zeros(len(totals), int)
    for at, subflow in enumerate(subflows):
        totals[subflow.flow] += state[at] if now.active[at] else 0.0
        counts[subflow.flow] += 1
    starts = []
    for chosen in range(most + 1 if most else 0):
        start = state.copy()
        for at, subflow in enumerate(subflows):
            if counts[subflow.flow] > 1 and now.active[at]:
                start[at] = totals[subflow.flow] if subflow.number == chosen % counts[subflow.flow] else LEAST_PKTS
        windows, apart = start[model.layout.windows], 1.0 + _APART * np.arange(1, len(subflows) + 1) / len(subflows)
        windows[:] = np.minimum(windows * apart, model.clamp)
        starts.append(start)
    return starts


def _settle(model: Model, state: Array, now: Conditions) -> EndState:
    slow = np.zeros(len(model.graph.subflows), bool)
    derivative = Counter(lambda at: model.derivative(at, now, slow))

    def goodput(at: Array) -> Array:
        f = model.quantities(at, now, slow)
        found: Array = f.rate * (1.0 - f.loss)
        return found

    last, after_s, end = goodput(state), 0.0, End.MOVING
    before: Array | None = None
    for span in _SPANS_S:
        try:
            solved = solve_ivp(
                derivative,
                (0.0, span),
                state,
                method="LSODA",
                t_eval=np.linspace(0.0, span, _PARTS + 1),
                rtol=_RELATIVE,
                atol=tolerances(model),
                jac=lambda _, at: model.jacobian(at, now, slow),
            )
        except EngineError:
            end = End.STOPPED
            break
        if solved.status < 0:
            end = End.STOPPED
            break
        state, after_s = solved.y[:, -1], after_s + span
        late = np.array([goodput(at) for at in solved.y.T[_PARTS // 2 :]])
        last = late[-1]
        enough = _SAME * max(float(last.max(initial=0.0)), 1e-9)
        swings = _swing(late) > enough
        end, last = (End.SWINGING, late.mean(axis=0)) if swings else (End.MOVING, last)
        if before is not None and not swings and np.abs(last - before).max(initial=0.0) <= enough:
            end = End.AT_REST
            break
        before = last
    return EndState(last, end, after_s, derivative.count)


def _swing(goodputs: Array) -> float:
    """How far a goodput of `goodputs` [t, r] goes back and forth: its range, less the way from its start to its end."""
    ranges = goodputs.max(axis=0) - goodputs.min(axis=0)
    return float((ranges - np.abs(goodputs[-1] - goodputs[0])).max(initial=0.0))
