"""Processes that end with the one that started them, however that one ends."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
# Loaded before any fork: a child must not load libraries.
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Even a SIGKILL of the parent ends the process that calls this."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
