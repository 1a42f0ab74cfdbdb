"""Child processes that end with their parent, however the parent ends, or when it says so."""

from __future__ import annotations

import ctypes
import signal
import subprocess
from typing import Any

_PR_SET_PDEATHSIG = 1
# Loaded before any fork: a child must not load libraries.
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(by: signal.Signals = signal.SIGTERM) -> None:
    """Make the calling process end when the thread that started it ends, even by SIGKILL."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, by)


def end(child: subprocess.Popen[Any], by: signal.Signals, grace_s: float) -> None:
    """Signal a child and give it time to clean up; after that, or at a Ctrl-C meanwhile, kill it."""
    child.send_signal(by)
    try:
        child.wait(grace_s)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill()
        child.wait()
