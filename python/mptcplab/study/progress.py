"""Reports of what a study is doing, and of its progress."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from mptcplab.sweep import Progress

# Called with what is being done; gives a context that reports its progress.
Announce = Callable[[str], AbstractContextManager[Progress | None]]


def silent(_: str) -> AbstractContextManager[None]:
    """Reports nothing."""
    return nullcontext()
