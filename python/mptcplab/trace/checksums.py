"""Checksums of a trace's tables: a bit that a disk or a copy has changed must not become another result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import file_digest
from pathlib import Path

from mptcplab.errors import ResultsError, with_hint

# Beside the tables: the SHA-256 of each, by the name of its file.
CHECKSUMS = "checksums.json"
# The hint where a file is damaged.
RESTORE = "run the scenario again, or restore the file from a copy"


def verify(path: Path) -> None:
    """Raise `ResultsError` if a table is not what was written; one without a checksum is taken as it is."""
    sums = path.with_name(CHECKSUMS)
    if not sums.is_file():
        return
    try:
        known = json.loads(sums.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(with_hint(f"cannot read the checksums of a trace: {sums}: {error}", RESTORE)) from error
    expected = known.get(path.name) if isinstance(known, dict) else None
    if expected is None:
        raise ResultsError(with_hint(f"no checksum of {path.name} in {sums}", RESTORE))
    if _sha256(path) != expected:
        raise ResultsError(
            with_hint(f"the trace is damaged: {path} does not match its SHA-256 in {sums.name}", RESTORE)
        )


def remarks(directories: Iterable[Path]) -> list[str]:
    """A line for every directory of tables that has no checksums."""
    without = [directory for directory in directories if not (directory / CHECKSUMS).is_file()]
    return [f"{one}: without {CHECKSUMS}, nothing shows whether its tables are as they were written" for one in without]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
