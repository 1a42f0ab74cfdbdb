"""The simulator, which is compiled."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from os import fspath
from pathlib import Path

from mptcplab import _core
from mptcplab.errors import EngineError

Progress = Callable[[int, int, float, float], None]


def run(
    scenario: str,
    place: Path,
    overrides: str,
    *,
    only: Sequence[int] | None = None,
    digests: Sequence[str] = (),
    jobs: int = 0,
    progress: Progress | None = None,
    low_priority: bool = False,
) -> None:
    """Simulate the runs of a scenario, or only those of some numbers, and add their traces to the directory `place`.

    `digests` are those of all runs. `low_priority` is for a simulation beside a kernel, whose links are emulated in
    real time.
    """
    try:
        _core.run(scenario, fspath(place), overrides, jobs, progress, _listed(only), list(digests), low_priority)
    except EngineError:
        # The same with the line of the file, where it is a setting.
        reject_unsupported(scenario, overrides)
        raise


def run_scratch(scenario: str, directory: Path, overrides: Sequence[str]) -> None:
    """Simulate all runs on this thread; the trace appears as `directory`, and is made to be read once.

    It has the runs of one set of overrides after the other.
    """
    try:
        _core.run_scratch(scenario, fspath(directory), list(overrides), 1)
    except EngineError:
        for one in overrides:
            reject_unsupported(scenario, one)
        raise


def reject_unsupported(scenario: str, overrides: str) -> None:
    """Raise `ScenarioError` for settings that the simulator refuses, with their places in the file."""
    found: dict[str, dict[str, object]] = {}
    for run in json.loads(_core.runs_json(scenario, overrides)):
        for flow in run["flows"]:
            scheduler = str(flow.get("scheduler") or "").partition("(")[0]
            if flow.get("tso") and flow["transport"] == "mptcp" and scheduler != "linger":
                name = flow["name"]
                found[name] = {
                    "keys": [f"flows.{name}.tso", f"flows.{name.rpartition('-')[0]}.tso", "tcp.tso"],
                    "message": f"true: MPTCP groups segments only with the scheduler linger, and {name} has "
                    f"{scheduler or 'minrtt, the default'}",
                    "hint": 'add scheduler = "linger", or write tso = false',
                }
    if found:
        _core.reject_settings(scenario, overrides, json.dumps(list(found.values())[:1]))


def _listed(only: Sequence[int] | None) -> list[int] | None:
    return None if only is None else list(only)
