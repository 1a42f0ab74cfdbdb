"""Child processes that end with their parent, however the parent ends."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
# Loaded before any fork: a child must not load libraries.
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(by: signal.Signals = signal.SIGTERM) -> None:
    """Make the calling process end when the thread that started it ends, even by SIGKILL."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, by)
