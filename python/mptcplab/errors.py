"""Exceptions of the package: one base class, and one subclass per kind.

A message is `what failed: value`, optionally followed by a blank line and `hint: what to do`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mptcplab._core import EngineError, MptcplabError, OutputError, ScenarioError

__all__ = [
    "COMMAND_LINE",
    "REFUSALS",
    "DamagedResultWarning",
    "EngineError",
    "LeftoverWarning",
    "MixedResultsWarning",
    "MptcplabError",
    "OutputError",
    "RefusedError",
    "ResultsError",
    "ScenarioError",
    "UnfinishedError",
]


# How a scenario's error about something begins that a caller has changed (crates/mptcplab-scenario/src/error.rs).
COMMAND_LINE = "command line: "


class DamagedResultWarning(UserWarning):
    """A stored result is not what was written; it is computed again."""


class LeftoverWarning(UserWarning):
    """A process that was killed had left something, which has been put right."""


class MixedResultsWarning(UserWarning):
    """Results that are joined were not made by the same build."""


class RefusedError(EngineError):
    """The engine works here, but it cannot do what a run asks for."""


# What says that an engine cannot run this, but may run something else: a study goes on with its other runs.
REFUSALS = (RefusedError, ScenarioError)


class ResultsError(MptcplabError):
    """A results directory is missing or incomplete, or something else is there."""


class UnfinishedError(EngineError):
    """A run ended early. `results` (a `mptcplab.Results`) has the trace up to then, in which the run is marked.

    They are None in another process if they were in a temporary directory.
    """

    def __init__(self, message: str, results: Any) -> None:
        super().__init__(message)
        self.results = results

    def __reduce__(self) -> tuple[type[UnfinishedError], tuple[str, Any]]:
        # Exceptions are made again from the message alone: a pool of processes could not hand this one over. Results in
        # a temporary directory stay behind.
        lasting = None if getattr(self.results, "temporary", None) is not None else self.results
        return type(self), (str(self), lasting)


@contextmanager
def within(where: str, *but: type[MptcplabError]) -> Iterator[None]:
    """Say in an error, unless it is one of `but`, where it was: in which file, and in which part of it."""
    try:
        yield
    except MptcplabError as error:
        if isinstance(error, but):
            raise
        # What a study sets comes from its files, not from the command line.
        raise type(error)(f"{where}: {str(error).removeprefix(COMMAND_LINE)}") from error


def with_hint(message: str, hint: str) -> str:
    """A message with a hint, in the form that all errors have."""
    return f"{message}\n\nhint: {hint}"
