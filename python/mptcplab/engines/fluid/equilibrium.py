"""The equilibria of the equations, and whether they depend on the start."""

from __future__ import annotations

from dataclasses import dataclass
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
# Goodputs that differ by less than this fraction of the largest are the same.
_SAME = 0.01
_RELATIVE = 1e-4
# The largest relative difference between the starting windows of equal subflows.
_APART = 0.03


@dataclass(frozen=True)
class EndState:
    """The end state from one start: goodput of every subflow in packets/s, and whether it is an equilibrium."""

    goodput: Array
    reached: bool
    evaluations: int


@dataclass(frozen=True)
class Equilibria:
    """The different equilibria that were found; the first is that of the run."""

    states: tuple[EndState, ...]
    evaluations: int

    def of(self, goodput: Array) -> Equilibria:
        """The same for another run of these equations, which ended with this goodput: the nearest equilibrium first."""
        nearest = sorted(self.states, key=lambda state: float(np.abs(state.goodput - goodput).max(initial=0.0)))
        return Equilibria(tuple(nearest), 0)


def find(model: Model, last: RunState, now: Conditions) -> Equilibria:
    """Continue from a run's end until the equations rest, and again with every connection on one of its subflows.

    The conditions no longer change, and no subflow is in slow start.
    """
    found = [_settle(model, start, now) for start in (last.state, *_starts(model, last.state, now))]
    scale = max(float(found[0].goodput.max(initial=0.0)), 1e-9)
    different: list[EndState] = []
    for state in found:
        if all(np.abs(state.goodput - other.goodput).max(initial=0.0) > 2 * _SAME * scale for other in different):
            different.append(state)
    return Equilibria(tuple(different), sum(state.evaluations for state in found))


def report(model: Model, found: Equilibria) -> dict[str, Any]:
    """The record of a run: whether the equations rest, whether that is unique, and the goodputs in Mbit/s."""
    return {
        "rests": found.states[0].reached,
        "unique": len(found.states) == 1,
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
    before, reached = None, False
    for span in _SPANS_S:
        try:
            solved = solve_ivp(
                derivative,
                (0.0, span),
                state,
                method="LSODA",
                t_eval=[span],
                rtol=_RELATIVE,
                atol=tolerances(model),
                jac=lambda _, at: model.jacobian(at, now, slow),
            )
        except EngineError:
            break
        if solved.status < 0:
            break
        state = solved.y[:, -1]
        f = model.quantities(state, now, slow)
        goodput = f.rate * (1.0 - f.loss)
        if before is not None:
            moved = np.abs(goodput - before).max(initial=0.0)
            reached = bool(moved <= _SAME * max(goodput.max(initial=0.0), 1e-9))
            if reached:
                break
        before = goodput
    f = model.quantities(state, now, slow)
    return EndState(f.rate * (1.0 - f.loss), reached, derivative.count)
