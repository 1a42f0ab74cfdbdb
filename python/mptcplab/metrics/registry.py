"""The registry of metrics: name, unit, documentation and function of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from mptcplab.metrics.window import Window

Compute = Callable[["Window"], pl.DataFrame]


@dataclass(frozen=True)
class Metric:
    """One metric. `levels` are the entities that have a value, `digits` the number of decimals in tables."""

    name: str
    title: str
    unit: str
    levels: tuple[str, ...]
    digits: int
    doc: str
    needs_samples: bool
    compute: Compute


REGISTRY: dict[str, Metric] = {}


def metric(
    name: str, title: str, unit: str, levels: tuple[str, ...], *, digits: int = 2, needs_samples: bool = False
) -> Callable[[Compute], Compute]:
    """Register a function as a metric; its docstring is the definition that the reference page prints."""

    def register(function: Compute) -> Compute:
        if name in REGISTRY:
            raise ValueError(f"metric registered twice: {name}")
        REGISTRY[name] = Metric(
            name, title, unit, levels, digits, inspect.getdoc(function) or "", needs_samples, function
        )
        return function

    return register
