"""Remarks about the equilibria of runs that solve equations, from the records in the run table."""

from __future__ import annotations

from typing import Any


def remarks(records: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """One line per kind of remark, from pairs of a configuration and the record of a run."""
    found = [(config, record["equilibrium"]) for config, record in records if "equilibrium" in record]
    moving = _names(config for config, equilibrium in found if not equilibrium["rests"])
    several = _names(config for config, equilibrium in found if not equilibrium["unique"])
    lines = []
    if several:
        lines.append(f"the fluid has several equilibria: {several}; they are in the column host of the run table")
    if moving:
        lines.append(f"the fluid reaches no equilibrium: {moving}")
    return lines


def _names(configs: Any) -> str:
    return ", ".join(dict.fromkeys(configs))
