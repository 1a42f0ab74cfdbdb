"""Results on disk by their digest: what was computed once is not computed again, and nothing is half-written."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mptcplab.output import write_bytes, write_text, writing


@dataclass(frozen=True)
class Store:
    """A directory with three files per digest: values, possibly the course of one run, and what ran (written last)."""

    directory: Path

    def prepare(self) -> None:
        """Create the directory."""
        with writing(f"keep results in {self.directory}", "choose another --out"):
            self.directory.mkdir(parents=True, exist_ok=True)

    def has(self, digest: str, *, course: bool = False) -> bool:
        """Whether a result is here, with a course if one is needed."""
        return self._record(digest).is_file() and (not course or self._course(digest).is_file())

    def put(self, digest: str, values: pl.DataFrame, course: pl.DataFrame | None, record: dict[str, Any]) -> None:
        """Keep a result, or nothing of it. Raises `OutputError`."""
        hint = "what is there stays: run the same again when there is room, or choose another --out"
        with writing(f"keep a result in {self.directory}", hint):
            try:
                write_bytes(self._values(digest), _parquet(values))
                if course is not None:
                    write_bytes(self._course(digest), _parquet(course))
                write_text(self._record(digest), json.dumps(record, indent=1) + "\n")
            except OSError:
                if not self.has(digest):
                    self._values(digest).unlink(missing_ok=True)
                    self._course(digest).unlink(missing_ok=True)
                raise

    def values(self, digest: str) -> pl.DataFrame:
        """The values of a result."""
        return pl.read_parquet(self._values(digest))

    def course(self, digest: str) -> pl.DataFrame:
        """The course of its first repetition."""
        return pl.read_parquet(self._course(digest))

    def record(self, digest: str) -> dict[str, Any]:
        """What really ran."""
        return json.loads(self._record(digest).read_text(encoding="utf-8"))

    def _values(self, digest: str) -> Path:
        return self.directory / f"{digest}.values.parquet"

    def _course(self, digest: str) -> Path:
        return self.directory / f"{digest}.course.parquet"

    def _record(self, digest: str) -> Path:
        return self.directory / f"{digest}.json"


def _parquet(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()
