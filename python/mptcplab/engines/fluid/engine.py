"""A sweep on the fluid engine: refuse, solve every run, write its trace."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from os import PathLike, fspath
from typing import Any

import numpy as np
import scipy

from mptcplab import _core
from mptcplab.engines.fluid import equilibrium, integrate, trace
from mptcplab.engines.fluid.equations import Model
from mptcplab.engines.fluid.graph import Graph
from mptcplab.engines.fluid.refuse import refusals
from mptcplab.errors import EngineError

Progress = Callable[[int, int, float, float], None]
# Of a resolved run: what repetitions differ in without being part of the equations.
_NO_PART = ("run", "rep", "seed")
Solved = tuple[trace.Columns, str, int]


def run(
    scenario: str | PathLike[str],
    out: str | PathLike[str],
    overrides_json: str = "{}",
    progress: Progress | None = None,
) -> None:
    """Solve every run of a scenario and write the traces to `out`.

    Raises `ScenarioError` for what the equations cannot describe, with its place in the file, and `EngineError` where
    they cannot be integrated. `progress` gets (runs done, runs, seconds of the model done, seconds in all).
    """
    runs = json.loads(_core.runs_json(fspath(scenario), overrides_json))
    algorithms = {entry["name"]: entry for entry in json.loads(_core.algorithms_json())}
    refuse(scenario, overrides_json, runs, algorithms)
    solver = Solver(algorithms)
    total_s = sum(entry["duration_ns"] for entry in runs) / 1e9
    done_s = 0.0

    def solve(number: int) -> Solved:
        nonlocal done_s
        found = solver.solve(runs[number])
        done_s += runs[number]["duration_ns"] / 1e9
        if progress is not None:
            progress(number + 1, len(runs), done_s, total_s)
        return found

    _core.write_fluid(fspath(scenario), fspath(out), overrides_json, libraries(), solve)


def refuse(
    scenario: str | PathLike[str],
    overrides_json: str,
    runs: list[dict[str, Any]],
    algorithms: dict[str, dict[str, Any]],
) -> None:
    """Refuse what the equations cannot describe in any of the runs."""
    found = [refusal.as_dict() for entry in runs for refusal in refusals(entry, algorithms)]
    if found:
        _core.refuse(fspath(scenario), overrides_json, json.dumps(found))


class Solver:
    """Solves runs in their order: repetitions that do not differ are solved once, equilibria once per combination."""

    def __init__(self, algorithms: dict[str, dict[str, Any]]) -> None:
        self.algorithms = algorithms
        self._last: tuple[str, Solved] | None = None
        self._equilibrium: tuple[str, equilibrium.Equilibrium] | None = None

    def solve(self, run: dict[str, Any]) -> Solved:
        """Tables of a run, what was found out about its equilibrium (JSON), and evaluations of the equations."""
        same = _key(run, _NO_PART)
        if self._last is None or self._last[0] != same:
            try:
                self._last = (same, self._solve(run))
            except EngineError as error:
                # The same words as the simulator's, so that a sweep's user finds the run.
                axes = "".join(f"{key} = {value}, " for key, value in run["axes"].items())
                raise EngineError(f"run {run['run']} ({axes}repetition {run['rep']}): {error}") from error
        return self._last[1]

    def _solve(self, run: dict[str, Any]) -> Solved:
        model = Model.of(Graph.of(run), self.algorithms)
        grid = trace.grid_s(run)
        solution = integrate.over_time(model, grid)
        found = self._rest(run, model, solution)
        report = json.dumps({"equilibrium": equilibrium.report(model, found)})
        return trace.tables(model, solution, grid), report, solution.evaluations + found.evaluations

    def _rest(self, run: dict[str, Any], model: Model, solution: integrate.Solution) -> equilibrium.Equilibrium:
        """The equilibria of a run; when its flows began does not matter to them."""
        combination = _key(run, (*_NO_PART, "starts_ns"))
        if self._equilibrium is None or self._equilibrium[0] != combination:
            found = equilibrium.find(model, solution.last, solution.now)
            self._equilibrium = (combination, found)
            return found
        f = model.flowing(solution.last.state, solution.now, solution.last.slow)
        return self._equilibrium[1].of(f.rate * (1.0 - f.loss))


def _key(run: dict[str, Any], but: tuple[str, ...]) -> str:
    return json.dumps({key: value for key, value in run.items() if key not in but})


def libraries() -> str:
    """Versions of what the numbers depend on besides the build."""
    return f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
