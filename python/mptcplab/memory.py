"""Memory that is free but still held by the process."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Return to the system what the simulator's threads have freed.

    The GNU C library keeps it for the next allocation of the same thread, and those threads have ended. Other C
    libraries have no such call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
