"""Paths that callers give, and errors for what is none."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from mptcplab.errors import MptcplabError, with_hint

_HINT = "a text that is not empty, or a pathlib.Path"


def path_of(given: str | PathLike[str], name: str) -> Path:
    """The path that the argument `name` has. Raises `MptcplabError` for what is none.

    An empty text is none: for the operating system's functions it would be the current directory.
    """
    text = fspath(given) if isinstance(given, str | PathLike) else None
    if not isinstance(text, str):
        raise MptcplabError(with_hint(f"{name}: not a path: {given!r}", _HINT))
    if not text:
        raise MptcplabError(with_hint(f"{name}: an empty path: {given!r}", _HINT))
    if "\0" in text:
        raise MptcplabError(with_hint(f"{name}: not a path: {given!r}", _HINT))
    return Path(text)
