"""The directory of what is downloaded or made once for many runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def cache() -> Path:
    """The directory; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mptcplab"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, so that of several processes only one makes what it protects."""
    with acquired(path, fcntl.LOCK_EX):
        yield


def acquired(path: Path, how: int) -> TextIO:
    """The file of a lock, held as `how` says (fcntl.flock) until the file is closed.

    Raises BlockingIOError if `how` includes LOCK_NB and another process is in the way.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        lock = path.open("a")
        try:
            fcntl.flock(lock, how)
            if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                return lock
        except FileNotFoundError:
            # Removed with what it protected: a new file protects what comes next.
            pass
        except BaseException:
            lock.close()
            raise
        lock.close()
