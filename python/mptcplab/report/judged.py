"""What a page shows of a comparison of engines that was judged: verdicts, bounds, differences, possible causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mptcplab.text import Table


@dataclass(frozen=True)
class Finding:
    """The verdict on one engine, whom it is about, what it rests on, and the bounds that it applies."""

    verdict: str
    name: str
    reason: str
    bounds: str


@dataclass(frozen=True)
class Difference:
    """What is outside its bound in one configuration on one engine, and what may be the cause."""

    where: str
    what: str
    causes: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """A comparison of engines: a table per metric, with its title; `remarks` are sentences about all of it.

    The metrics in `others` have no bounds.
    """

    verdict: str
    findings: tuple[Finding, ...]
    differences: tuple[Difference, ...]
    tables: tuple[tuple[str, Table], ...]
    others: tuple[tuple[str, Table], ...]
    remarks: tuple[str, ...]
