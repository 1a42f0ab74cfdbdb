"""mptcplab: a laboratory for Multipath TCP congestion control.

Importing this package is cheap and has no side effects: each name is resolved when it is first used.

    import mptcplab
    results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc=["lia", "olia"], reps=3)
    results.summary()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mptcplab.algorithm import Algorithm
    from mptcplab.api import (
        agree,
        agree_all,
        algorithms,
        cc_list,
        cc_load,
        cc_persist,
        cc_unload,
        check,
        compare,
        compare_schedulers,
        doctor,
        fidelity,
        goals,
        hunt,
        kernels,
        load,
        ls,
        merge,
        new,
        reproduce,
        run,
        scenarios,
        schedulers,
        schema,
        vectors,
        walk,
    )
    from mptcplab.builder import Scenario
    from mptcplab.errors import EngineError, MptcplabError, OutputError, ResultsError, ScenarioError, UnfinishedError
    from mptcplab.results import Results
    from mptcplab.scenario import Overrides

# The public names; those that are not in `api` have their home below.
__all__ = [
    "Algorithm",
    "EngineError",
    "MptcplabError",
    "OutputError",
    "Overrides",
    "Results",
    "ResultsError",
    "Scenario",
    "ScenarioError",
    "UnfinishedError",
    "agree",
    "agree_all",
    "algorithms",
    "cc_list",
    "cc_load",
    "cc_persist",
    "cc_unload",
    "check",
    "compare",
    "compare_schedulers",
    "doctor",
    "fidelity",
    "goals",
    "hunt",
    "kernels",
    "load",
    "ls",
    "merge",
    "new",
    "reproduce",
    "run",
    "scenarios",
    "schedulers",
    "schema",
    "vectors",
    "walk",
]
_HOME = {
    "Algorithm": "algorithm",
    "Scenario": "builder",
    "Results": "results",
    "Overrides": "scenario",
    "EngineError": "errors",
    "MptcplabError": "errors",
    "OutputError": "errors",
    "ResultsError": "errors",
    "ScenarioError": "errors",
    "UnfinishedError": "errors",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        core = importlib.import_module("mptcplab._core")
        return core.version()
    if name in __all__:
        return getattr(importlib.import_module(f"mptcplab.{_HOME.get(name, 'api')}"), name)
    import difflib

    close = difflib.get_close_matches(name, __all__, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise AttributeError(f"module 'mptcplab' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
