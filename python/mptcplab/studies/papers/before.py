"""The verdicts of an earlier version, and why a claim's verdict is another one today."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mptcplab.studies.papers import stored
from mptcplab.study.verdict import Verdict

FILE = "verdicts-0.1.json"


@dataclass(frozen=True)
class Earlier:
    """The verdict on a claim in an earlier version, with what gave it."""

    verdict: Verdict
    profile: str
    predicate: str
    tolerance: float | None


@dataclass(frozen=True)
class Snapshot:
    """The verdicts of one version; `since` says in words what changed for many claims at once."""

    version: str = ""
    commit: str = ""
    date: str = ""
    since: tuple[str, ...] = ()
    claims: Mapping[str, Earlier] = field(default_factory=dict)


def load(papers: Path) -> Snapshot:
    """The snapshot below the papers' directory; an empty one without the file."""
    path = papers / FILE
    if not path.is_file():
        return Snapshot()
    return stored.read(path, _snapshot)


def _snapshot(text: str) -> Snapshot:
    data = json.loads(text)
    claims = {
        name: Earlier(Verdict(one["verdict"]), one["profile"], one["predicate"], one.get("tolerance"))
        for name, one in data["claims"].items()
    }
    return Snapshot(data["version"], data["commit"], data["date"], tuple(data["since"]), claims)
