"""Processes that are forked, several at a time, each with a limit and a folder of its own.

Each is stopped together with what it started, and its folder is removed, however it ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

_CRASHED = 70
T = TypeVar("T")


@dataclass(frozen=True)
class Job(Generic[T]):
    """What one process does, and after how many seconds it hangs. It is known by its name."""

    name: T
    limit_s: float
    # Gets an empty folder, and returns the code with which the process ends.
    work: Callable[[Path], int]


def done(jobs: Iterable[Job[T]], workers: int) -> Iterator[tuple[T, bool]]:
    """Every job's name with whether its process ended with 0, as they end. What hangs did not."""
    running: dict[int, tuple[float, T, Path]] = {}

    def ended(most: int) -> Iterator[tuple[T, bool]]:
        while len(running) > most:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child in running:
                _stop(child)
                _, name, folder = running.pop(child)
                shutil.rmtree(folder, ignore_errors=True)
                yield name, status == 0
                continue
            for late in (one for one, (deadline, *_) in running.items() if time.monotonic() > deadline):
                _stop(late)
            time.sleep(0.005)

    for job in jobs:
        yield from ended(workers - 1)
        folder = Path(tempfile.mkdtemp(prefix="mptcplab-mutant-"))
        running[in_child(partial(job.work, folder))] = time.monotonic() + job.limit_s, job.name, folder
    yield from ended(0)


def in_child(work: Callable[[], int]) -> int:
    """The id of a process, the first of its own group, that ends with what `work` returns."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    code = _CRASHED
    with suppress(BaseException):
        code = work()
    os._exit(code)


def processors() -> int:
    """How many processes run at a time."""
    return len(os.sched_getaffinity(0))


def _stop(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
