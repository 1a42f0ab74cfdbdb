"""Results on disk by their digest: what was computed once is not computed again, and nothing is half-written."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mptcplab.errors import OutputError, with_hint
from mptcplab.output import write_bytes, write_text, writing


@dataclass(frozen=True)
class Store:
    """A directory with a JSON record per digest, written last, and a Parquet file per named table beside it."""

    directory: Path

    def prepare(self) -> None:
        """Create the directory."""
        with writing(f"store results in {self.directory}", "choose another --out"):
            self.directory.mkdir(parents=True, exist_ok=True)

    def has(self, digest: str, *tables: str) -> bool:
        """Whether a result is stored, with all these tables."""
        return all(path.is_file() for path in (self._record(digest), *(self._table(digest, name) for name in tables)))

    def put(self, digest: str, record: dict[str, Any], **tables: pl.DataFrame | None) -> None:
        """Store a result, or nothing of it. Raises `OutputError`."""
        present = {self._table(digest, name): table for name, table in tables.items() if table is not None}
        hint = "what is stored stays: run the same command again when there is room, or choose another --out"
        with writing(f"store a result in {self.directory}", hint):
            try:
                for path, table in present.items():
                    write_bytes(path, _parquet(table))
                write_text(self._record(digest), json.dumps(record, indent=1) + "\n")
            except OSError:
                if not self.has(digest):
                    for path in present:
                        path.unlink(missing_ok=True)
                raise

    def record(self, digest: str) -> dict[str, Any]:
        """The record of a result. Raises `OutputError` where it cannot be read."""
        path = self._record(digest)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OutputError(with_hint(f"cannot read {path}: {error}", "remove it; it is measured again")) from error

    def table(self, digest: str, name: str) -> pl.DataFrame:
        """A table of a result."""
        # Tables are small: handing their columns to threads costs more than it saves.
        return pl.read_parquet(self._table(digest, name), parallel="none")

    def clear(self) -> None:
        """Remove everything: the next run measures all of it again."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _record(self, digest: str) -> Path:
        return self.directory / f"{digest}.json"

    def _table(self, digest: str, name: str) -> Path:
        return self.directory / f"{digest}.{name}.parquet"


def _parquet(table: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()
