"""The simulator, which is compiled."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from os import fspath
from pathlib import Path

from mptcplab import _core

Progress = Callable[[int, int, float, float], None]
_LOWEST_PRIORITY = 19


def run(
    scenario: str,
    directory: Path,
    overrides: str,
    *,
    jobs: int = 0,
    progress: Progress | None = None,
    low_priority: bool = False,
) -> None:
    """Simulate every run of a scenario and write the traces to `directory`.

    `low_priority` is for a simulation beside a kernel, whose links are emulated in real time.
    """
    with _lowest_priority() if low_priority else nullcontext():
        _core.run(scenario, fspath(directory), overrides, jobs, progress)


@contextmanager
def _lowest_priority() -> Iterator[None]:
    thread = threading.get_native_id()
    before = os.getpriority(os.PRIO_PROCESS, thread)
    os.setpriority(os.PRIO_PROCESS, thread, _LOWEST_PRIORITY)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, thread, before)
