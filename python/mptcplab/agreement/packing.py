"""Several scenarios at a time on one kernel: as many as it carries in real time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from threading import Condition
from typing import TypeVar

# What two processors emulate together without being late: of scenarios with 44, 5, 3 and 3 thousand packet hops
# per second all runs counted, of those with 46, 30, 23 and 22 none did.
MOST_HOPS_PER_S = 65_000
# Each is a set of processes, which want to wake up on time.
MOST_AT_ONCE = 6

T = TypeVar("T")


class _Room:
    """What is left of the machine, until it is closed."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._load = 0.0
        self._inside = 0
        self._closed = False

    @contextmanager
    def taken(self, load: float) -> Iterator[None]:
        """Wait until there is room; a load beyond all room goes alone."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._inside or self._load + load <= MOST_HOPS_PER_S)
            if self._closed:
                raise CancelledError
            self._load += load
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._load -= load
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Those who wait go away with `CancelledError`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def run_all(
    loads: Sequence[float], task: Callable[[int], T], waiting: Callable[[int], AbstractContextManager[object]]
) -> list[T]:
    """The results of `task(i)` for every load (packet hops per second); the heaviest begin.

    `waiting(i)` surrounds the wait for each. After Ctrl-C nothing new begins.
    """
    room = _Room()

    def when_there_is_room(i: int) -> T:
        with room.taken(loads[i]):
            return task(i)

    order = sorted(range(len(loads)), key=lambda i: -loads[i])
    found: dict[int, T] = {}
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        try:
            futures = [(i, pool.submit(when_there_is_room, i)) for i in order]
            for i, future in futures:
                with waiting(i):
                    found[i] = future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            room.close()
    return [found[i] for i in range(len(loads))]
