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
        algorithms,
        cc_list,
        cc_load,
        cc_persist,
        cc_unload,
        check,
        doctor,
        kernels,
        load,
        run,
        schedulers,
        vectors,
    )
    from mptcplab.errors import EngineError, MptcplabError, ResultsError, ScenarioError, UnfinishedError
    from mptcplab.results import Results

_HOME = {
    "run": "api",
    "agree": "api",
    "kernels": "api",
    "load": "api",
    "check": "api",
    "algorithms": "api",
    "schedulers": "api",
    "vectors": "api",
    "doctor": "api",
    "cc_load": "api",
    "cc_list": "api",
    "cc_unload": "api",
    "cc_persist": "api",
    "Algorithm": "algorithm",
    "Results": "results",
    "MptcplabError": "errors",
    "ScenarioError": "errors",
    "EngineError": "errors",
    "ResultsError": "errors",
    "UnfinishedError": "errors",
}

__all__ = [
    "Algorithm",
    "EngineError",
    "MptcplabError",
    "Results",
    "ResultsError",
    "ScenarioError",
    "UnfinishedError",
    "agree",
    "algorithms",
    "cc_list",
    "cc_load",
    "cc_persist",
    "cc_unload",
    "check",
    "doctor",
    "kernels",
    "load",
    "run",
    "schedulers",
    "vectors",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        core = importlib.import_module("mptcplab._core")
        return core.version()
    if name in _HOME:
        return getattr(importlib.import_module(f"mptcplab.{_HOME[name]}"), name)
    raise AttributeError(f"module 'mptcplab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
