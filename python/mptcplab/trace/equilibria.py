"""What the records of fluid runs say about their equilibria, in words. Loads nothing heavy: every report asks."""

from __future__ import annotations

from typing import Any


def remarks(records: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """One line per kind of finding, from (configuration, record of a run) pairs."""
    found = [(config, record["equilibrium"]) for config, record in records if "equilibrium" in record]
    moving = _names(config for config, equilibrium in found if not equilibrium["rests"])
    several = _names(config for config, equilibrium in found if not equilibrium["unique"])
    lines = []
    if several:
        lines.append(f"the fluid has several equilibria: {several}; the run table's host has them all")
    if moving:
        lines.append(f"the fluid comes to no rest: {moving}")
    return lines


def _names(configs: Any) -> str:
    return ", ".join(dict.fromkeys(configs))
