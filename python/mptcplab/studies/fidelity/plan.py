"""What is to be measured: statements before they are measured, and the page that they are for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mptcplab.results import Results
from mptcplab.studies.fidelity.measure import Finding
from mptcplab.studies.fidelity.page import Sheet


@dataclass(frozen=True)
class Plan:
    """A statement before it is measured. `quick` is what a short run changes in the scenario."""

    name: str
    title: str
    claim: str
    method: str
    scenario: str
    finding: Callable[[Results], Finding] | None
    quick: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A page: where its scenarios are, what is on it besides statements, and the statements."""

    name: str
    scenarios: Path
    sheet: Sheet
    plans: tuple[Plan, ...]
