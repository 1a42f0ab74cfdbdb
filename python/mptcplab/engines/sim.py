"""The simulator, which is compiled."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import Any

from mptcplab import _core
from mptcplab.errors import EngineError, RefusedError

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
    except EngineError as error:
        # The same with the line of the file, where it is a setting.
        reject_unsupported(scenario, overrides)
        raise _of_kind(error) from None


def run_scratch(scenario: str, directory: Path, overrides: Sequence[str]) -> None:
    """Simulate all runs on this thread; the trace appears as `directory`, and is made to be read once.

    It has the runs of one set of overrides after the other.
    """
    try:
        _core.run_scratch(scenario, fspath(directory), list(overrides), 1)
    except EngineError as error:
        for one in overrides:
            reject_unsupported(scenario, one)
        raise _of_kind(error) from None


def reject_unsupported(scenario: str, overrides: str) -> None:
    """Raise `ScenarioError` for settings that the simulator refuses, with their places in the file."""
    flows = (flow for run in json.loads(_core.runs_json(scenario, overrides)) for flow in run["flows"])
    for refused in (check(flow) for flow in flows for check in (_kernels_own, _groups_of_other_schedulers)):
        if refused is not None:
            _core.reject_settings(scenario, overrides, json.dumps([refused]))


def _of_kind(error: EngineError) -> EngineError:
    """The same error, as a refusal where the simulator says that it cannot do what a run asks for, and did not break.

    Both name the run.
    """
    text = str(error)
    refused = re.match(r"run \d+ \(", text) is not None and "): the simulator broke: " not in text
    return RefusedError(text) if refused else error


def _kernels_own(flow: Mapping[str, Any]) -> dict[str, object] | None:
    name = (flow.get("cc") or {}).get("name", "")
    if not name.startswith("kernel:"):
        return None
    return {
        "keys": [*_places(flow, "cc"), "cc"],
        "message": f'"{name}" is an algorithm of the kernel\'s own, which only the engines kernel and vm run',
        "hint": "write --engine kernel or --engine vm, or take an algorithm of `mptcplab algorithms`",
    }


def _groups_of_other_schedulers(flow: Mapping[str, Any]) -> dict[str, object] | None:
    scheduler = str(flow.get("scheduler") or "").partition("(")[0]
    if not flow.get("tso") or flow["transport"] != "mptcp" or scheduler == "linger":
        return None
    return {
        "keys": [*_places(flow, "tso"), "tcp.tso"],
        "message": f"true: MPTCP groups segments only with the scheduler linger, and {flow['name']} has "
        f"{scheduler or 'minrtt, the default'}",
        "hint": 'add scheduler = "linger", or write tso = false',
    }


def _places(flow: Mapping[str, Any], key: str) -> list[str]:
    """Where a flow's key may stand: at the flow, or at that of which it is one of several."""
    name = flow["name"]
    return [f"flows.{name}.{key}", f"flows.{name.rpartition('-')[0]}.{key}"]


def _listed(only: Sequence[int] | None) -> list[int] | None:
    return None if only is None else list(only)
