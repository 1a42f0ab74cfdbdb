"""What a run over all scenarios has measured already: one that was ended goes on where it was."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mptcplab.errors import OutputError, with_hint
from mptcplab.output import write_text, writing


@dataclass(frozen=True)
class Kept:
    """A directory with a file per scenario, named by a digest of all that decides its numbers, until the page is there.

    Raises `OutputError` where it cannot be written or read.
    """

    directory: Path

    def get(self, digest: str) -> dict[str, Any] | None:
        """What was kept under a digest."""
        path = self._path(digest)
        try:
            return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        except (OSError, ValueError) as error:
            raise OutputError(with_hint(f"cannot read {path}: {error}", "remove it; it is measured again")) from error

    def put(self, digest: str, data: dict[str, Any]) -> None:
        """Keep something; what was there is replaced."""
        with writing(f"keep what was measured in {self.directory}", "choose another --out"):
            self.directory.mkdir(parents=True, exist_ok=True)
            write_text(self._path(digest), json.dumps(data, indent=1) + "\n")

    def clear(self) -> None:
        """Forget everything: the next run measures anew."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _path(self, digest: str) -> Path:
        return self.directory / f"{digest}.json"
