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
from mptcplab.fluid import equilibrium, integrate, trace
from mptcplab.fluid.equations import Model
from mptcplab.fluid.graph import Graph
from mptcplab.fluid.refuse import refusals

Progress = Callable[[int, int, float, float], None]
# Of a resolved run: they differ between repetitions of one combination and are not part of the equations.
_NO_PART = ("run", "rep", "axes", "seed")


def run(
    scenario: str | PathLike[str], out: str | PathLike[str], overrides_json: str = "{}", progress: Progress | None = None
) -> None:
    """Solve every run of a scenario and write the traces to `out`.

    Raises `ScenarioError` for what the equations cannot describe, with its place in the file, and `EngineError` where
    they cannot be integrated. `progress` gets (runs done, runs, seconds of the model done, seconds in all).
    """
    runs = json.loads(_core.runs_json(fspath(scenario), overrides_json))
    algorithms = {entry["name"]: entry for entry in json.loads(_core.algorithms_json())}
    refuse(scenario, overrides_json, runs, algorithms)
    solved: dict[str, tuple[trace.Columns, str, int]] = {}
    total_s = sum(entry["duration_ns"] for entry in runs) / 1e9
    done_s = 0.0

    def solve(number: int) -> tuple[trace.Columns, str, int]:
        nonlocal done_s
        entry = runs[number]
        same = json.dumps({key: value for key, value in entry.items() if key not in _NO_PART})
        if same not in solved:
            # Repetitions follow one another: nothing older comes again.
            solved.clear()
            solved[same] = solve_run(entry, algorithms)
        done_s += entry["duration_ns"] / 1e9
        if progress is not None:
            progress(number + 1, len(runs), done_s, total_s)
        return solved[same]

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


def solve_run(run: dict[str, Any], algorithms: dict[str, dict[str, Any]]) -> tuple[trace.Columns, str, int]:
    """Tables of a run, what was found out about its equilibrium (JSON), and evaluations of the equations."""
    model = Model.of(Graph.of(run), algorithms)
    grid = trace.grid_s(run)
    solution = integrate.over_time(model, grid)
    found = equilibrium.find(model, solution.last, solution.now)
    report = {"equilibrium": equilibrium.report(model, found)}
    return trace.tables(model, solution, grid), json.dumps(report), solution.evaluations + found.evaluations


def libraries() -> str:
    """Versions of what the numbers depend on besides the build."""
    return f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
