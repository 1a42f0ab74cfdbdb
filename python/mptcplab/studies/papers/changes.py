"""The log of what was changed in a paper's claims, `changes.toml`, and the check that it is complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from mptcplab.errors import MptcplabError, with_hint

# Today's parts of a claim, by the names of `Change.what`.
Parts = Mapping[str, str]


@dataclass(frozen=True)
class Change:
    """One change of one part of a claim: `before` and `after` as in the file, empty where the part was left out."""

    claim: str
    date: str
    after: str
    reason: str
    what: Literal["predicate", "statement", "tolerance", "kind"] = "predicate"
    before: str = ""


def check(path: Path, changes: Sequence[Change], claims: Mapping[str, Parts]) -> None:
    """Each change begins where the one before it ended, and the last one ends at what the claim says today."""
    last: dict[tuple[str, str], str] = {}
    for number, change in enumerate(changes):
        where = f"{path}: change[{number}]"
        if change.claim not in claims:
            raise MptcplabError(with_hint(f"{where}.claim: no such claim: {change.claim!r}", "an id of claims.toml"))
        try:
            date.fromisoformat(change.date)
        except ValueError:
            raise MptcplabError(
                with_hint(f"{where}.date: not right: {change.date!r}", "it is like 2026-11-23")
            ) from None
        if not change.reason:
            raise MptcplabError(f"{where}.reason: missing")
        if change.before == change.after:
            raise MptcplabError(f"{where}: {change.claim}: nothing changes: before and after are the same")
        part = (change.claim, change.what)
        if last.get(part, change.before) != change.before:
            hint = f"the change before it ended with {last[part]!r}"
            raise MptcplabError(with_hint(f"{where}.before: not right: {change.before!r}", hint))
        last[part] = change.after
    for (name, what), after in last.items():
        today = claims[name][what]
        if today != after:
            hint = f"claims.toml has {today!r}; add a change with its reason"
            raise MptcplabError(with_hint(f"{path}: the last change of the {what} of {name} ends with {after!r}", hint))
