"""Files of the repository that are read with the papers: what is wrong in one names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mptcplab.errors import MptcplabError, with_hint

_T = TypeVar("_T")


def read(path: Path, parse: Callable[[str], _T], hint: str | None = None) -> _T:
    """What `parse` makes of the text of a file. Raises `MptcplabError` for a text that is not right."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        said = f"{path}: not right: {error}"
        raise MptcplabError(said if hint is None else with_hint(said, hint)) from None
