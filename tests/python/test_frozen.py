"""Values of studies and papers cannot be changed: what one claim or figure has read is the same for the next."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import is_dataclass

import mptcplab.study
from mptcplab.studies import papers
from mptcplab.studies.papers import predicate

MODULES = [
    importlib.import_module(f"{package.__name__}.{found.name}")
    for package in (mptcplab.study, papers, predicate)
    for found in pkgutil.iter_modules(package.__path__)
]
# What gathers results while they are made, and what remembers what it has read.
GROWING = {"DependencyRecorder", "Executor", "Outcome", "StoreSource", "_Work"}


def test_dataclasses_are_frozen_but_for_those_that_grow() -> None:
    frozen = {
        name: one.__dataclass_params__.frozen
        for module in MODULES
        for name, one in vars(module).items()
        if isinstance(one, type) and is_dataclass(one) and one.__module__ == module.__name__
    }
    assert {"Cell", "RunSpec", "Store", "Claim", "Paper", "Planner", "Reproduction"} <= set(frozen)
    assert {name for name, is_frozen in frozen.items() if not is_frozen} == GROWING
