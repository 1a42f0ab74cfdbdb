"""mptcplab: a laboratory for Multipath TCP congestion control.

Importing this package loads nothing heavy and has no side effects; each name is resolved on first use.

    import mptcplab
    results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc=["lia", "olia"], reps=3)
    results.summary()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mptcplab.api import algorithms, check, load, run, vectors
    from mptcplab.errors import EngineError, MptcplabError, ResultsError, ScenarioError
    from mptcplab.results import Results

_HOME = {
    "run": "api",
    "load": "api",
    "check": "api",
    "algorithms": "api",
    "vectors": "api",
    "Results": "results",
    "MptcplabError": "errors",
    "ScenarioError": "errors",
    "EngineError": "errors",
    "ResultsError": "errors",
}

__all__ = [
    "EngineError",
    "MptcplabError",
    "Results",
    "ResultsError",
    "ScenarioError",
    "algorithms",
    "check",
    "load",
    "run",
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
