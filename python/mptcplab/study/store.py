"""Results on disk by their digest: what was computed once is not computed again, and nothing is half-written."""

from __future__ import annotations

import io
import json
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from mptcplab.errors import DamagedResultWarning, OutputError, with_hint
from mptcplab.output import write_bytes, write_text, writing

_SUM, _RECORD, _TABLES = "sha256", "record", "tables"


class _DamagedError(Exception):
    """A stored result that is not what was written; the message names the file and what is wrong with it."""


@dataclass(frozen=True)
class Store:
    """A directory with a JSON record per digest, written last, and a Parquet file per named table beside it.

    The record has the SHA-256 of each table and of itself. A result that is not what was written, because a disk or
    somebody changed it, counts as absent and is computed again.
    """

    directory: Path
    # Whether a result is there even after a power failure; waiting for the disk takes longer than a short run.
    durable: bool = True

    @property
    def unfinished(self) -> Path:
        """A directory for the traces of results that are not complete, below their digests."""
        return self.directory.with_name(f"{self.directory.name}.unfinished")

    def prepare(self) -> None:
        """Create the directory."""
        with writing(f"store results in {self.directory}", "choose another --out"):
            self.directory.mkdir(parents=True, exist_ok=True)

    def has(self, digest: str, *tables: str) -> bool:
        """Whether a result is stored, undamaged, with all these tables; warns of a result that is damaged."""
        if not self._record(digest).is_file():
            return False
        try:
            listed = self._read(digest)[_TABLES]
            for name in listed:
                self._content(digest, name, listed)
        except _DamagedError as damage:
            warnings.warn(f"a stored result is damaged and is computed again: {damage}", DamagedResultWarning, 2)
            return False
        return set(tables) <= set(listed)

    def put(self, digest: str, record: dict[str, Any], **tables: pl.DataFrame | None) -> None:
        """Store a result, or nothing of it. Raises `OutputError`."""
        contents = {name: _parquet(table) for name, table in tables.items() if table is not None}
        sealed: dict[str, Any] = {
            _TABLES: {name: sha256(content).hexdigest() for name, content in contents.items()},
            _RECORD: record,
        }
        text = json.dumps({_SUM: _checksum(sealed), **sealed}, indent=1) + "\n"
        hint = "what is stored stays: run the same command again when there is room, or choose another --out"
        with writing(f"store a result in {self.directory}", hint):
            try:
                for name, content in contents.items():
                    write_bytes(self._table(digest, name), content, durable=self.durable)
                write_text(self._record(digest), text, durable=self.durable)
            except OSError:
                if not self._record(digest).is_file():
                    for name in contents:
                        self._table(digest, name).unlink(missing_ok=True)
                raise

    def files(self) -> dict[str, bytes]:
        """All files of the store, by name."""
        return {path.name: path.read_bytes() for path in sorted(self.directory.iterdir())}

    def take_over(self, files: Mapping[str, bytes]) -> None:
        """Store results that are `files` of another store; records come last. Raises `OutputError`."""
        hint = "what is stored stays: run the same command again when there is room, or choose another --out"
        with writing(f"store a result in {self.directory}", hint):
            for name, content in sorted(files.items(), key=lambda file: file[0].endswith(".json")):
                write_bytes(self.directory / name, content, durable=self.durable)

    def record(self, digest: str) -> dict[str, Any]:
        """The record of a result. Raises `OutputError` where it is damaged."""
        try:
            found: dict[str, Any] = self._read(digest)[_RECORD]
            return found
        except _DamagedError as damage:
            raise _unreadable(damage) from damage

    def table(self, digest: str, name: str) -> pl.DataFrame:
        """A table of a result. Raises `OutputError` where it is damaged."""
        try:
            content = self._content(digest, name, self._read(digest)[_TABLES])
        except _DamagedError as damage:
            raise _unreadable(damage) from damage
        # Tables are small: handing their columns to threads costs more than it saves.
        return pl.read_parquet(io.BytesIO(content), parallel="none")

    def digests(self) -> list[str]:
        """The digests of all results, damaged or not."""
        return sorted(path.stem for path in self.directory.glob("*.json"))

    def clear(self) -> None:
        """Remove everything: the next run measures all of it again."""
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(self.unfinished, ignore_errors=True)

    def _read(self, digest: str) -> dict[str, Any]:
        """The record's file. Raises `_DamagedError`."""
        path = self._record(digest)
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise _DamagedError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise _DamagedError(f"{path}: not JSON: {error}") from error
        if not isinstance(found, dict) or found.pop(_SUM, None) != _checksum(found):
            raise _DamagedError(f"{path}: its content does not match its SHA-256")
        return found

    def _content(self, digest: str, name: str, sums: dict[str, str]) -> bytes:
        """The bytes of a table. Raises `_DamagedError`."""
        path = self._table(digest, name)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise _DamagedError(f"{path}: {error.strerror}") from error
        if sha256(content).hexdigest() != sums.get(name):
            raise _DamagedError(f"{path}: its content does not match the SHA-256 in {self._record(digest).name}")
        return content

    def _record(self, digest: str) -> Path:
        return self.directory / f"{digest}.json"

    def _table(self, digest: str, name: str) -> Path:
        return self.directory / f"{digest}.{name}.parquet"


def _unreadable(damage: _DamagedError) -> OutputError:
    return OutputError(with_hint(f"a stored result is damaged: {damage}", "the same command computes it again"))


def _checksum(sealed: dict[str, Any]) -> str:
    return sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()


def _parquet(table: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()
