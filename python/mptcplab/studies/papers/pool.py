"""Where sweeps run at the same time: threads for engines that are not Python, processes for the fluid's equations."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from mptcplab.engines.process import die_with_parent
from mptcplab.errors import EngineError, with_hint

A = TypeVar("A")
T = TypeVar("T")


def each(task: Callable[[A], T], items: Sequence[A], workers: int, *, processes: bool) -> Iterator[tuple[A, T]]:
    """Every item with the result of `task(item)`, as they end; no more than `workers` have begun at any time.

    So after Ctrl-C only what runs is waited for. Processes get task, items and results by pickle. Raises what a task
    raises, and `EngineError` if a process ends.
    """
    waiting = iter(items)
    with _pool(workers, processes=processes) as pool:
        running: dict[Future[T], A] = {}
        try:
            while True:
                while len(running) < workers and (item := next(waiting, None)) is not None:
                    running[pool.submit(task, item)] = item
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BrokenProcessPool as error:
            raise EngineError(
                with_hint(
                    "a process that solved the fluid's equations has ended",
                    "if memory is short, try --jobs 1; a script that asks for several jobs needs "
                    '`if __name__ == "__main__":`',
                )
            ) from error


def _pool(workers: int, *, processes: bool) -> Executor:
    if not processes:
        return ThreadPoolExecutor(workers)
    # A fork would copy threads' locks, but not the threads.
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, spawn, _follow, (os.getpid(),))


def _follow(parent: int) -> None:
    """Ctrl-C is for the parent, which ends the pool; without the parent there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
