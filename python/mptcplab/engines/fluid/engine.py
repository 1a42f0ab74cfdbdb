"""A sweep on the fluid engine: check the scenario, solve every run, write the trace."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import fields
from hashlib import sha256
from os import PathLike, fspath
from typing import Any

import numpy as np
import scipy

from mptcplab import _core
from mptcplab.engines.fluid import equilibrium, integrate, trace
from mptcplab.engines.fluid.conditions import Conditions, changes_s, conditions
from mptcplab.engines.fluid.equations import Model
from mptcplab.engines.fluid.graph import Graph
from mptcplab.engines.fluid.unsupported import unsupported_settings
from mptcplab.errors import EngineError

Progress = Callable[[int, int, float, float], None]
# Keys of a resolved run that differ between repetitions and are not part of the equations.
_NOT_IN_EQUATIONS = ("run", "rep", "seed")
Solved = tuple[trace.Columns, str, int]


def run(
    scenario: str | PathLike[str],
    place: str | PathLike[str],
    overrides_json: str = "{}",
    progress: Progress | None = None,
    *,
    only: Sequence[int] | None = None,
    digests: Sequence[str] = (),
) -> None:
    """Solve the runs of a scenario, or only those of some numbers, and add their traces to the directory `place`.

    `digests` are those of all runs. Raises `ScenarioError` for a setting that the equations cannot describe, with its
    place in the file, and `EngineError` if they cannot be integrated. `progress` gets (runs done, all runs, model
    seconds done, all).
    """
    runs, algorithms = _supported(scenario, overrides_json)
    solver = Solver(algorithms, runs)
    numbers = range(len(runs)) if only is None else only
    total_s = sum(runs[number]["duration_ns"] for number in numbers) / 1e9
    done, done_s = 0, 0.0

    def solve(number: int) -> Solved:
        nonlocal done, done_s
        found = solver.solve(runs[number])
        done += 1
        done_s += runs[number]["duration_ns"] / 1e9
        if progress is not None:
            progress(done, len(numbers), done_s, total_s)
        return found

    _core.write_fluid(fspath(scenario), fspath(place), overrides_json, libraries(), solve, list(numbers), list(digests))


def reject_unsupported(scenario: str | PathLike[str], overrides_json: str) -> None:
    """Raise `ScenarioError` if the equations cannot describe one of the runs, with its place in the file."""
    _supported(scenario, overrides_json)


def _supported(
    scenario: str | PathLike[str], overrides_json: str
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The runs of a scenario, and the algorithms of the build by their names; raises as `reject_unsupported`."""
    runs = json.loads(_core.runs_json(fspath(scenario), overrides_json))
    algorithms = {entry["name"]: entry for entry in json.loads(_core.algorithms_json())}
    found = [setting.as_dict() for entry in runs for setting in unsupported_settings(entry, algorithms)]
    if found:
        _core.reject_settings(fspath(scenario), overrides_json, json.dumps(found))
    return runs, algorithms


class Solver:
    """Solves runs: repetitions that do not differ are solved once, and equilibria are found once per combination.

    They are found from the end of the first repetition that ends under the same conditions, of all that `runs` has, so
    that what a run records does not depend on which others are solved, such as those that an interrupted sweep lacks.
    Without `runs`, a run is its own first repetition.
    """

    def __init__(self, algorithms: dict[str, dict[str, Any]], runs: Sequence[dict[str, Any]] = ()) -> None:
        self.algorithms = algorithms
        self._repetitions: dict[str, list[dict[str, Any]]] = {}
        for run in runs:
            self._repetitions.setdefault(_axes(run), []).append(run)
        self._last: tuple[str, Solved] | None = None
        self._combination: tuple[str, _Combination] | None = None

    def solve(self, run: dict[str, Any]) -> Solved:
        """Tables of a run, its equilibrium (JSON), and the number of evaluations of the equations."""
        same = _key(run, _NOT_IN_EQUATIONS)
        if self._last is None or self._last[0] != same:
            try:
                self._last = (same, self._solve(run, same))
            except EngineError as error:
                # Named as in the simulator, so that users find the run in their sweep.
                axes = "".join(f"{key} = {value}, " for key, value in run["axes"].items())
                raise type(error)(f"run {run['run']} ({axes}repetition {run['rep']}): {error}") from error
        return self._last[1]

    def _solve(self, run: dict[str, Any], same: str) -> Solved:
        model = self._model(run)
        solution = integrate.over_time(model, trace.grid_s(run))
        found = self._equilibria(run, same, model, solution)
        report = json.dumps({"equilibrium": equilibrium.report(model, found)})
        return trace.tables(model, solution), report, solution.evaluations + found.evaluations

    def _equilibria(
        self, run: dict[str, Any], same: str, model: Model, solution: integrate.Solution
    ) -> equilibrium.Equilibria:
        """The equilibria of a run, which do not depend on when its flows began."""
        axes, at_rest = _axes(run), _rest(run, solution.now)
        if self._combination is None or self._combination[0] != axes:
            self._combination = (axes, _Combination(self._repetitions.get(axes, [])))
        combination = self._combination[1]
        first = combination.first(at_rest) or run
        is_first = _key(first, _NOT_IN_EQUATIONS) == same
        if at_rest not in combination.found:
            begun = solution
            if not is_first:
                begun = integrate.over_time(self._model(first), trace.grid_s(first))
            combination.found[at_rest] = equilibrium.find(model, begun.last, begun.now)
        found = combination.found[at_rest]
        if is_first:
            return found
        f = model.quantities(solution.last.state, solution.now, solution.last.slow)
        return found.of(f.rate * (1.0 - f.loss))

    def _model(self, run: dict[str, Any]) -> Model:
        return Model.of(Graph.of(run), self.algorithms)


class _Combination:
    """The repetitions of one combination of a sweep, and the equilibria of those that end under equal conditions.

    Repetitions end under other conditions if their links change in other ways (`{rep}` in the name of a file), or if
    random starts shift the pauses of UDP. Each repetition is looked at once, and none that is not needed.
    """

    def __init__(self, repetitions: Sequence[dict[str, Any]]) -> None:
        self._left = iter(repetitions)
        self._firsts: dict[bytes, dict[str, Any]] = {}
        self.found: dict[bytes, equilibrium.Equilibria] = {}

    def first(self, at_rest: bytes) -> dict[str, Any] | None:
        """The first repetition with these equations at its end; None if there is none."""
        while at_rest not in self._firsts:
            run = next(self._left, None)
            if run is None:
                return None
            graph = Graph.of(run)
            self._firsts.setdefault(_rest(run, conditions(graph, changes_s(graph)[-2])), run)
        return self._firsts[at_rest]


def _axes(run: dict[str, Any]) -> str:
    return json.dumps(run["axes"], sort_keys=True)


def _rest(run: dict[str, Any], now: Conditions) -> bytes:
    """A digest of the equations under the conditions at the end of a run, which decide where they come to rest."""
    digest = sha256(_key(run, (*_NOT_IN_EQUATIONS, "starts_ns")).encode())
    for field in fields(now):
        digest.update(getattr(now, field.name).tobytes())
    return digest.digest()


def _key(run: dict[str, Any], without: tuple[str, ...]) -> str:
    return json.dumps({key: value for key, value in run.items() if key not in without})


def libraries() -> str:
    """Versions of the libraries that the numbers depend on."""
    return f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
