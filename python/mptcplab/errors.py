"""Exceptions of the package: one base, one subclass per kind.

A message is `what failed: value`, optionally followed by a blank line and `hint: what to do`.
"""

from __future__ import annotations

from mptcplab._core import EngineError, MptcplabError, ScenarioError

__all__ = ["EngineError", "MptcplabError", "OutputError", "ResultsError", "ScenarioError"]


class ResultsError(MptcplabError):
    """A results directory is missing, incomplete or not one of ours."""


class OutputError(MptcplabError):
    """The output cannot be put where it was asked for."""


def with_hint(message: str, hint: str) -> str:
    """Format a message with a hint, as every error of the project has it."""
    return f"{message}\n\nhint: {hint}"
