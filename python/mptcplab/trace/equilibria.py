"""Remarks about the equilibria of runs that solve equations, from the records in the run table."""

from __future__ import annotations

from typing import Any


def remarks(records: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """One line per kind of remark, from pairs of a configuration and the record of a run."""
    found = [(config, record["equilibrium"]) for config, record in records if "equilibrium" in record]
    several = _names(config for config, equilibrium in found if not equilibrium["unique"])
    lines = []
    if several:
        lines.append(f"the fluid has several equilibria: {several}; they are in the column host of the run table")
    for end, text in _RESTLESS.items():
        restless = [(config, one) for config, one in found if not one["rests"] and one.get("end") == end]
        if restless:
            after_s = min(one.get("after_s", 0.0) for _, one in restless)
            lines.append(f"{text.format(after_s=after_s)}: {_names(config for config, _ in restless)}")
    return lines


# What a remark says of a fluid that is not at rest, by the record's `end`, which older traces lack.
_RESTLESS = {
    None: "the fluid reaches no equilibrium",
    "moving": "the fluid is not at rest {after_s:.0f} s after the end of the run",
    "swinging": "the fluid swings and reaches no equilibrium within {after_s:.0f} s after the end of the run",
    "solver stopped": "the solver stopped {after_s:.0f} s after the end of the run, before the fluid was at rest",
}


def _names(configs: Any) -> str:
    return ", ".join(dict.fromkeys(configs))
