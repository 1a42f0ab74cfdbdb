"""Directories in the cache that are made once and kept for some time.

They are complete or absent, and several processes may use them at a time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from mptcplab.engines.vm.cache import acquired
from mptcplab.errors import EngineError, with_hint
from mptcplab.output import synchronize, writing

# What has not been used for so long is removed.
KEPT_DAYS = 30
_DRAFT = "draft-"
_DAY_S = 24 * 3600
# Nothing takes as long to make; what is left then is of a process that was killed.
_DRAFT_LIMIT_S = 3600
_POLL_S = 0.02


class StoppedError(Exception):
    """Nobody needs it any more."""


def _never() -> bool:
    return False


def kept(directory: Path, make: Callable[[Path], None], *, most: int, stopped: Callable[[], bool] = _never) -> TextIO:
    """What keeps the directory as long as it is open.

    If there is none, `make` writes its content to a draft, while others that need it wait. Then those that were used
    last stay, at most as many as `most`. Raises StoppedError if `stopped` says so before it is there.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(
            with_hint(f"{directory.parent}: {error.strerror}", "XDG_CACHE_HOME names another place")
        ) from error
    while True:
        in_use = _acquired(_lock(directory), fcntl.LOCK_SH, stopped)
        if directory.is_dir():
            break
        in_use.close()
        with _acquired(_lock(directory), fcntl.LOCK_EX, stopped):
            if not directory.is_dir():
                _make(directory, make)
        remove_old(directory.parent, most)
    # When it was last used.
    os.utime(directory)
    return in_use


def _acquired(path: Path, how: int, stopped: Callable[[], bool]) -> TextIO:
    """The lock, as soon as it is free."""
    while not stopped():
        try:
            return acquired(path, how | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_POLL_S)
    raise StoppedError


def _make(directory: Path, make: Callable[[Path], None]) -> None:
    with room(directory.parent):
        draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=directory.parent))
    try:
        make(draft)
        with room(directory.parent):
            for path in draft.iterdir():
                synchronize(path)
            draft.rename(directory)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def room(place: Path) -> AbstractContextManager[None]:
    """Errors of writing below a directory, with what can be done."""
    return writing(f"write the state of a machine to {place}", "make room there")


def _lock(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.lock")


def remove_old(top: Path, most: int) -> None:
    """Remove directories beyond those that are kept, and what killed processes have left, unless they are in use."""
    now = time.time()
    used: list[tuple[float, Path]] = []
    for path in top.iterdir():
        try:
            age_s = now - path.stat().st_mtime
        except FileNotFoundError:
            continue
        if path.name.startswith(_DRAFT):
            if age_s > _DRAFT_LIMIT_S:
                shutil.rmtree(path, ignore_errors=True)
        elif path.is_dir():
            used.append((age_s, path))
        elif path.suffix == ".lock" and age_s > _DRAFT_LIMIT_S and not path.with_suffix("").exists():
            _remove(path.with_suffix(""))
    for position, (age_s, path) in enumerate(sorted(used)):
        if position >= most or age_s > KEPT_DAYS * _DAY_S:
            _remove(path)


def _remove(directory: Path) -> None:
    """Remove a directory and its lock; does nothing while it is in use or being made."""
    try:
        lock = acquired(_lock(directory), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    with lock:
        if directory.is_dir():
            # A directory without its content would be taken for a complete one. The name is a new one, because a
            # process that was killed may have left a draft; it needs no room, as a directory of its own would.
            gone = directory.with_name(f"{_DRAFT}{directory.name}-{uuid4().hex}")
            directory.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        _lock(directory).unlink()
