"""Tasks at the same time: threads for engines that are not Python, processes for the fluid's equations."""

from __future__ import annotations

import math
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


def each(
    task: Callable[[A], T],
    items: Sequence[A],
    workers: int,
    *,
    processes: bool = False,
    load: Callable[[A], float] = lambda _: 0.0,
    capacity: float = math.inf,
) -> Iterator[tuple[A, T]]:
    """Yield every item with the result of `task(item)`, in the order in which they end.

    At most `workers` tasks run at any time, and together no more than `capacity` of their `load`: the heaviest item
    that fits is next, and one that never fits runs alone. Nothing more is started after an error or Ctrl-C, so that
    only what runs is waited for. Processes get task, items and results by pickle. Raises what a task raises, and
    `EngineError` if a process ends.
    """
    waiting = sorted(((load(item), item) for item in items), key=lambda pair: -pair[0])
    with _pool(workers, processes=processes) as pool:
        running: dict[Future[T], tuple[float, A]] = {}
        try:
            while waiting or running:
                while len(running) < workers:
                    room = capacity - sum(taken for taken, _ in running.values())
                    fits = next((i for i, (size, _) in enumerate(waiting) if not running or size <= room), None)
                    if fits is None:
                        break
                    size, item = waiting.pop(fits)
                    running[pool.submit(task, item)] = (size, item)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future)[1], future.result()
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
    return ProcessPoolExecutor(workers, spawn, _follow_parent, (os.getpid(),))


def _follow_parent(parent: int) -> None:
    """Leave Ctrl-C to the parent, which ends the pool, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
