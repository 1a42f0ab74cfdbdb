"""A place that all workers reach, such as a shared directory or a bucket: finished results, each a file by its key.

The files are archives (zip, nothing compressed), each with a SHA-256 of its content. A file that is damaged, or that a
worker did not finish, counts as absent.
"""

from __future__ import annotations

import io
import posixpath
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from mptcplab.errors import DamagedResultWarning, MptcplabError, OutputError, with_hint

_SUFFIX = ".zip"
# The earliest that an archive can say: the same content has the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
_NAME = re.compile(r"(\w+/)?\w[\w.-]*")


@dataclass(frozen=True)
class UrlStore:
    """A directory of any kind that fsspec knows, by its path or URL."""

    url: str

    @classmethod
    def of(cls, asked: str) -> UrlStore:
        """The store that somebody asks for; a path is that of this process, whatever the directory of a worker is.

        >>> UrlStore.of("s3://bucket/x").url, UrlStore.of("/shared/data").url
        ('s3://bucket/x', '/shared/data')
        """
        is_url = "://" in asked or "::" in asked
        return cls(asked if is_url else str(Path(asked).expanduser().absolute()))

    def prepare(self) -> None:
        """Create it. Raises `MptcplabError` for a kind that is not known, and `OutputError` if it cannot be used."""
        system, path = self._place
        with self._using("use"):
            system.makedirs(path, exist_ok=True)

    def keys(self) -> set[str]:
        """The keys of everything in it."""
        system, path = self._place
        with self._using("list"):
            system.invalidate_cache()
            names = (posixpath.basename(name) for name in system.find(path, maxdepth=1))
            return {name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)}

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Store the files of a result."""
        system, path = self._place
        with self._using("write to"):
            system.pipe_file(f"{path}/{key}{_SUFFIX}", packed(files))

    def get(self, key: str) -> dict[str, bytes] | None:
        """The files of a result; None where it has gone or, with a warning, is damaged."""
        system, path = self._place
        with self._using("read"):
            try:
                content = system.cat_file(f"{path}/{key}{_SUFFIX}")
            except FileNotFoundError:
                return None
        try:
            return unpacked(content)
        except zipfile.BadZipFile as error:
            text = f"a stored result is damaged and is computed again: {self.url}/{key}{_SUFFIX}: {error}"
            warnings.warn(text, DamagedResultWarning, 2)
            return None

    @cached_property
    def _place(self) -> tuple[Any, str]:
        """The file system, and the path in it."""
        import fsspec

        try:
            system, path = fsspec.core.url_to_fs(self.url)
        except ImportError as error:
            hint = f"install what it needs: {error}"
            raise MptcplabError(with_hint(f"this kind of store needs a package: --store {self.url}", hint)) from error
        except ValueError as error:
            hint = "a path, or a URL that fsspec knows, such as s3://bucket/mptcplab or sftp://host/path"
            raise MptcplabError(with_hint(f"not a place for results: --store {self.url}: {error}", hint)) from error
        return system, path.rstrip("/")

    @contextmanager
    def _using(self, what: str) -> Iterator[None]:
        """Errors of file systems, which are of many kinds, as those of this package."""
        try:
            yield
        except MptcplabError:
            raise
        except Exception as error:
            reason = str(error) or type(error).__name__
            hint = "check the URL and the credentials; workers have their own environment"
            raise OutputError(with_hint(f"cannot {what} the store {self.url}: {reason}", hint)) from error


def packed(files: Mapping[str, bytes]) -> bytes:
    """Files as one archive, whose comment is a digest of all names and contents."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _DATE), data)
        archive.comment = _seal(files)
    return content.getvalue()


def unpacked(content: bytes) -> dict[str, bytes]:
    """The files of an archive. Raises `BadZipFile` if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
            is_whole = archive.comment == _seal(files)
    except zipfile.BadZipFile:
        raise
    except Exception as error:
        # Damage in other places of an archive has errors of many kinds.
        raise zipfile.BadZipFile(str(error) or type(error).__name__) from error
    if not is_whole:
        raise zipfile.BadZipFile("its content does not match its SHA-256")
    for name in files:
        # Who can write to the store must not choose where files are written here.
        if not _NAME.fullmatch(name):
            raise zipfile.BadZipFile(f"not the name of a file of a result: {name!r}")
    return files


def _seal(files: Mapping[str, bytes]) -> bytes:
    found = sha256()
    for name, data in sorted(files.items()):
        found.update(f"{name}\0{len(data)}\0".encode() + data)
    return found.hexdigest().encode()
