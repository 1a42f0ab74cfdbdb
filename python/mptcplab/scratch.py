"""Temporary directories that do not outlive a process for long, however it ends.

A process holds a lock on each of its own. What has no lock was left by a process that was killed, and goes with the
next call.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import weakref
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

_PREFIX, _SUFFIX = "mptcplab-", ".scratch"


class Scratch:
    """A temporary directory, named after its purpose, that goes with this object, this process, or a later one."""

    def __init__(self, purpose: str) -> None:
        remove_abandoned()
        while True:
            made = TemporaryDirectory(prefix=f"{_PREFIX}{purpose}-", suffix=_SUFFIX)
            lock = _locked(Path(made.name))
            if lock is not None:
                break
            # Another process found it before it had its lock.
            made.cleanup()
        self.name = made.name
        # A directory that goes with its object is what callers are promised: `TemporaryDirectory` alone would warn.
        self._end = weakref.finalize(self, _remove, made, lock)

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        """Remove the directory."""
        self._end()


def _remove(made: TemporaryDirectory[str], lock: int) -> None:
    try:
        made.cleanup()
    finally:
        # If an interrupt came meanwhile.
        shutil.rmtree(made.name, ignore_errors=True)
        os.close(lock)


def remove_abandoned() -> None:
    """Remove what this user's processes have left that were killed."""
    for left in Path(gettempdir()).glob(f"{_PREFIX}*{_SUFFIX}"):
        try:
            if left.lstat().st_uid != os.geteuid() or left.is_symlink():
                continue
            lock = _locked(left)
        except OSError:
            continue
        if lock is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)


def _locked(directory: Path) -> int | None:
    """A lock on a directory; None if it has gone, or another process holds it."""
    try:
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), directory.stat()):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None
