"""Tasks at the same time: threads for engines that are not Python, processes for the fluid's equations."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import RLock
from typing import Generic, Self, TypeVar

from mptcplab.engines.process import die_with_parent
from mptcplab.errors import EngineError, with_hint
from mptcplab.scratch import remove_abandoned

A = TypeVar("A")
T = TypeVar("T")

# How long Ctrl-C may go unnoticed while tasks run.
_POLL_S = 0.1


class Tasks(Generic[A, T]):
    """Runs `task(item)` for some items at the same time; more may be added while others run.

    At most `workers` tasks run at any time, and together no more than `capacity` of their `load`: the heaviest item
    that fits is next, and one that never fits runs alone. The next one begins when one ends, whatever the caller does
    meanwhile. Nothing more is started after an error or Ctrl-C, so that only what runs is waited for. Processes get
    task, items and results by pickle. A single worker is the caller itself, and a single item needs no process.
    """

    def __init__(
        self,
        task: Callable[[A], T],
        workers: int,
        *,
        processes: bool = False,
        load: Callable[[A], float] = lambda _: 0.0,
        capacity: float = math.inf,
    ) -> None:
        self._task, self._workers, self._load, self._capacity = task, workers, load, capacity
        self._processes = processes
        self._pool = _pool(workers, processes=processes) if workers > 1 else None
        self._waiting: list[tuple[float, A]] = []
        self._running: dict[Future[T], tuple[float, A]] = {}
        self._ended: SimpleQueue[tuple[A, Future[T]]] = SimpleQueue()
        self._stopped = False
        # For the callers' thread and those in which tasks end.
        self._lock = RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._stopped = True
        if self._pool is not None:
            self._pool.shutdown()
        if self._processes:
            # One that was killed has left its own, and the pool has ended the others without a chance to clear up.
            remove_abandoned()

    def add(self, items: Iterable[A], *, first: bool = False) -> None:
        """More items; with `first` they are before others of their load that wait."""
        new = [(self._load(item), item) for item in items]
        with self._lock:
            together = [*new, *self._waiting] if first else [*self._waiting, *new]
            self._waiting = sorted(together, key=lambda pair: -pair[0])
            if not self._processes:
                self._start()

    def results(self) -> Iterator[tuple[A, T]]:
        """Every item with its result, in the order in which they end, until nothing waits.

        Raises what a task raises, and `EngineError` if a process ends.
        """
        while self._remain():
            if self._pool is None or self._is_alone():
                item = self._waiting.pop(0)[1]
                yield item, self._task(item)
                continue
            with self._lock:
                self._start()
            item, future = self._next()
            try:
                result = future.result()
            except BrokenProcessPool as error:
                raise EngineError(
                    with_hint(
                        "a process that solved the fluid's equations has ended",
                        "if memory is short, try --jobs 1; a script that asks for several jobs needs "
                        '`if __name__ == "__main__":`',
                    )
                ) from error
            yield item, result

    def _next(self) -> tuple[A, Future[T]]:
        """Wait for the next task that ends.

        With a limit: Polars handles Ctrl-C so that system calls go on, and a wait without one would not notice it.
        """
        while True:
            with suppress(Empty):
                return self._ended.get(timeout=_POLL_S)

    def _remain(self) -> bool:
        with self._lock:
            return bool(self._waiting or self._running) or not self._ended.empty()

    def _is_alone(self) -> bool:
        """Whether a process would be started for one item only."""
        return self._processes and not self._running and len(self._waiting) == 1

    def _start(self) -> None:
        """Start what there is room for. The lock is held."""
        while self._pool is not None and not self._stopped and len(self._running) < self._workers:
            room = self._capacity - sum(taken for taken, _ in self._running.values())
            fits = next((i for i, (size, _) in enumerate(self._waiting) if not self._running or size <= room), None)
            if fits is None:
                return
            size, item = self._waiting.pop(fits)
            future = self._pool.submit(self._task, item)
            self._running[future] = (size, item)
            future.add_done_callback(self._end)

    def _end(self, future: Future[T]) -> None:
        """A task has ended: start the next one. Called in the thread in which it ended."""
        with self._lock:
            item = self._running.pop(future)[1]
            if future.exception() is not None:
                self._stopped = True
            self._start()
            self._ended.put((item, future))


def each(
    task: Callable[[A], T],
    items: Sequence[A],
    workers: int,
    *,
    processes: bool = False,
    load: Callable[[A], float] = lambda _: 0.0,
    capacity: float = math.inf,
) -> Iterator[tuple[A, T]]:
    """Yield every item with the result of `task(item)`, in the order in which they end: see `Tasks`."""
    with Tasks(task, workers, processes=processes, load=load, capacity=capacity) as tasks:
        tasks.add(items)
        yield from tasks.results()


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
