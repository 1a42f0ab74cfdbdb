"""What a worker of a cluster on this machine does first: it leaves Ctrl-C to the process that has started it."""

from __future__ import annotations

import signal


def dask_setup(_: object) -> None:
    """Called by Dask in the worker's main thread (`preload`)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
