"""Tasks on a cluster: each once by its key, whichever workers come and go."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from mptcplab.cluster import build
from mptcplab.cluster.connect import Cluster
from mptcplab.cluster.urlstore import UrlStore
from mptcplab.errors import EngineError, MptcplabError, with_hint

if TYPE_CHECKING:
    from distributed import Future

A = TypeVar("A")
# The files of a result, or why there is none.
Files = dict[str, bytes]
# Tasks that the scheduler has beyond those that run, so that no worker waits for this process.
_AHEAD_PER_THREAD, _AHEAD = 2, 16
_LOOK_EVERY_S = 1.0
# What fails for another reason than the scenario, such as a store out of reach, is tried again.
_RETRIES = 2
# How often a task is given to others because its workers have gone.
_MOST_AGAIN = 20


@dataclass(frozen=True)
class Result:
    """The files of a result, or the error of the scenario or the engine."""

    files: Files | None
    error: MptcplabError | None = None


class Tasks(Generic[A]):
    """Runs `task(item)` on the workers for items whose results have the keys `key(item)`.

    `task` is a function of a module, returns files, and raises what is to be reported. Items may be added while others
    run. Nothing more is started after an error or Ctrl-C. With a store, a result that it has is not made, and each new
    one is there before anybody is told.
    """

    def __init__(self, cluster: Cluster, task: Callable[[A], Files], key: Callable[[A], str]) -> None:
        self._cluster, self._task, self._key = cluster, task, key
        # Items without a result, and items whose results the store has.
        self._waiting: deque[A] = deque()
        self._made: deque[A] = deque()
        self._running: dict[Future, _Attempt[A]] = {}
        self._ended: SimpleQueue[Future] = SimpleQueue()
        self._stored = cluster.store.keys() if cluster.store is not None else set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Give up what is not finished."""
        self._waiting.clear()
        self._made.clear()
        running, self._running = list(self._running), {}
        if running and self._cluster.client.status == "running":
            self._cluster.client.cancel(running, force=True)

    def add(self, items: Iterable[A], *, first: bool = False) -> None:
        """More items; with `first`, before others that wait."""
        new: list[A] = []
        for item in items:
            (self._made if self._key(item) in self._stored else new).append(item)
        if first:
            self._waiting.extendleft(reversed(new))
        else:
            self._waiting.extend(new)
        self._start()

    def results(self) -> Iterator[tuple[A, Result]]:
        """Every item with its result, in the order in which they end, until nothing waits.

        Raises `EngineError` if workers die of an item again and again, or if the scheduler is lost.
        """
        yield from self._found()
        while self._waiting or self._running:
            self._start()
            try:
                future = self._ended.get(timeout=_LOOK_EVERY_S)
            except Empty:
                self._look_after()
                continue
            attempt = self._running.pop(future, None)
            if attempt is not None:
                yield from self._taken(attempt, future)
            yield from self._found()

    def _found(self) -> Iterator[tuple[A, Result]]:
        """The items whose results the store has; one whose result has gone or is damaged waits to be made."""
        store = self._cluster.store
        while self._made:
            item = self._made.popleft()
            files = None if store is None else store.get(self._key(item))
            if files is None:
                self._waiting.append(item)
            else:
                yield item, Result(files)

    def _start(self) -> None:
        """Submit what there is room for."""
        workers = self._cluster.workers()
        room = sum(workers.values()) * (1 + _AHEAD_PER_THREAD) + _AHEAD - len(self._running)
        while workers and self._waiting and room > 0:
            self._submit(_Attempt(self._waiting.popleft(), 0))
            room -= 1

    def _submit(self, attempt: _Attempt[A]) -> None:
        store = self._cluster.store
        call = partial(_perform, self._task, self._key(attempt.item), None if store is None else store.url)
        workers = list(self._cluster.workers())
        key = attempt.key(self._key(attempt.item), store)
        # The key says all that decides the result.
        future = self._cluster.client.submit(
            call, attempt.item, build.own(), key=key, workers=workers, retries=_RETRIES, pure=True
        )
        self._running[future] = _Attempt(attempt.item, attempt.number, frozenset(workers))
        future.add_done_callback(self._ended.put)

    def _look_after(self) -> None:
        """Give what only workers that have gone could do to others."""
        there = self._cluster.workers()
        for future, attempt in list(self._running.items()):
            if there and future.status == "pending" and not attempt.workers & set(there):
                del self._running[future]
                self._cluster.client.cancel([future], force=True)
                self._again(attempt)

    def _again(self, attempt: _Attempt[A]) -> None:
        if attempt.number >= _MOST_AGAIN:
            key = self._key(attempt.item)
            hint = "the logs of the scheduler and the workers say more; the same command goes on with what is finished"
            raise EngineError(with_hint(f"a task was given up {attempt.number} times: {key}", hint))
        self._submit(_Attempt(attempt.item, attempt.number + 1))

    def _taken(self, attempt: _Attempt[A], future: Future) -> Iterator[tuple[A, Result]]:
        key = self._key(attempt.item)
        if future.status == "lost":
            # Its worker has died with the result; the scheduler makes it again.
            self._running[future] = attempt
            future.add_done_callback(self._ended.put)
            return
        if future.status == "cancelled":
            # By somebody else, or because the scheduler is not there any more.
            self._cluster.look()
            self._again(attempt)
            return
        result = self._result(future, key)
        if result.files is None and result.error is None:
            assert self._cluster.store is not None
            files = self._cluster.store.get(key)
            if files is None:
                self._again(attempt)
                return
            result = Result(files)
        yield attempt.item, result

    def _result(self, future: Future, key: str) -> Result:
        from distributed.scheduler import KilledWorker

        try:
            found: Result = future.result()
        except MptcplabError:
            raise
        except KilledWorker as error:
            hint = "workers may need more memory: start fewer per machine"
            message = f"workers died of one task again and again, the last at {error.last_worker.address}: {key}"
            raise EngineError(with_hint(message, hint)) from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            hint = "the workers' logs say more; the same command goes on with what is finished"
            raise EngineError(with_hint(f"a task failed on the cluster: {reason}", hint)) from error
        return found


@dataclass(frozen=True)
class _Attempt(Generic[A]):
    """An item with the workers that may run it, and how often it was given to others."""

    item: A
    number: int
    workers: frozenset[str] = frozenset()

    def key(self, result: str, store: UrlStore | None) -> str:
        """The key of the task, which differs by where its result goes."""
        where = "" if store is None else "-" + hashlib.sha256(store.url.encode()).hexdigest()[:8]
        return f"mptcplab-{result}{where}" + (f"-again-{self.number}" if self.number else "")


def _perform(task: Callable[[Any], Files], key: str, store: str | None, item: object, asked: dict[str, str]) -> Result:
    """Run a task on a worker, and leave its files where they are asked for."""
    different = build.difference(asked)
    if different is not None:
        # Seen from the worker, what was asked is elsewhere.
        raise EngineError(with_hint(f"a worker has another build than who asks: {different}", "restart the workers"))
    try:
        files = task(item)
    except MptcplabError as error:
        return Result(None, error)
    if store is None:
        return Result(files)
    UrlStore(store).put(key, files)
    return Result(None)
