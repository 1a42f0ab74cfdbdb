"""Which tasks begin when: pools that the tests end by hand, so that no test waits for a clock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mptcplab.errors import EngineError
from mptcplab.scratch import Scratch
from mptcplab.study import workers
from mptcplab.study.workers import Tasks, each


class Pool(Executor):
    """Begins what it is given, and ends it when the test says so; with `at_once` as soon as it begins."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.futures: dict[int, Future[int]] = {}
        self.at_once, self.closed = at_once, False
        self.when_begun: Callable[[int], None] = lambda _: None

    def submit(self, task: Any, item: int) -> Future[int]:  # type: ignore[override]
        future = self.futures[item] = Future()
        self.when_begun(item)
        if self.at_once:
            future.set_result(task(item))
        return future

    def shutdown(self, *_: Any, **__: Any) -> None:
        self.closed = True

    @property
    def begun(self) -> list[int]:
        return list(self.futures)

    def end(self, item: int) -> None:
        self.futures[item].set_result(10 * item)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    found = Pool()
    monkeypatch.setattr(workers, "_pool", lambda *_, **__: found)
    return found


def tenfold(item: int) -> int:
    return 10 * item


def test_as_many_run_as_there_are_workers_and_each_end_begins_the_next(pool: Pool) -> None:
    with Tasks(tenfold, 2) as tasks:
        tasks.add([11, 12, 13, 14])
        assert pool.begun == [11, 12]
        pool.end(12)
        assert pool.begun == [11, 12, 13]
        pool.end(13)
        pool.end(11)
        assert pool.begun == [11, 12, 13, 14]
        pool.end(14)
        # In the order in which they ended.
        assert list(tasks.results()) == [(12, 120), (13, 130), (11, 110), (14, 140)]
        assert not pool.closed
    assert pool.closed


def test_the_heaviest_that_fits_is_next(pool: Pool) -> None:
    """Of a capacity of 10, the items' loads are themselves."""
    with Tasks(tenfold, 3, load=float, capacity=10) as tasks:
        tasks.add([1, 4, 6, 5])
        # 6 leaves room for 4, exactly, and none for 5.
        assert pool.begun == [6, 4]
        pool.end(4)
        assert pool.begun == [6, 4, 1]
        pool.end(6)
        assert pool.begun == [6, 4, 1, 5]


def test_what_never_fits_runs_alone(pool: Pool) -> None:
    with Tasks(tenfold, 3, load=float, capacity=10) as tasks:
        tasks.add([3, 20, 2])
        assert pool.begun == [20]
        pool.end(20)
        assert pool.begun == [20, 3, 2]


def test_without_a_load_only_the_workers_are_a_limit(pool: Pool) -> None:
    with Tasks(tenfold, 3, capacity=0) as tasks:
        tasks.add([30, 40, 50])
        assert pool.begun == [30, 40, 50]
    pool.futures.clear()
    pool.when_begun = lambda item: pool.end(item - 1) if item > 1 else None
    found = each(tenfold, [1, 2, 3], 3, capacity=0)
    assert next(found) == (1, 10)
    assert pool.begun == [1, 2, 3]


@pytest.mark.parametrize(("named", "expected"), [({"first": True}, [1, 4, 5, 2, 3]), ({}, [1, 2, 3, 4, 5])])
def test_what_is_added_later_comes_last_unless_it_is_to_be_first(
    pool: Pool, named: dict[str, bool], expected: list[int]
) -> None:
    with Tasks(tenfold, 2) as tasks:
        tasks.add([0, 1, 2, 3])
        tasks.add([4, 5], **named)
        for item in (0, 1, *expected[1:4]):
            pool.end(item)
        assert pool.begun == [0, *expected]


def test_first_is_first_among_those_of_its_load_only(pool: Pool) -> None:
    with Tasks(tenfold, 2, load=lambda item: item // 10) as tasks:
        tasks.add([90, 80, 31, 51])
        tasks.add([52, 32, 11], first=True)
        for item in (90, 80, 52, 51, 32, 31):
            pool.end(item)
        assert pool.begun == [90, 80, 52, 51, 32, 31, 11]


def test_nothing_begins_after_an_error_which_the_caller_gets(pool: Pool) -> None:
    with Tasks(tenfold, 2) as tasks:
        tasks.add([1, 2, 3, 4])
        pool.futures[1].set_exception(ValueError("one"))
        assert pool.begun == [1, 2]
        with pytest.raises(ValueError, match=r"^one$"):
            list(tasks.results())
        pool.end(2)
        assert pool.begun == [1, 2]


def test_nothing_begins_once_it_is_over(pool: Pool) -> None:
    with Tasks(tenfold, 2) as tasks:
        tasks.add([1, 2, 3])
    pool.end(1)
    assert pool.begun == [1, 2]


@pytest.mark.parametrize("processes", [False, True])
def test_a_single_worker_is_the_caller_and_makes_one_result_at_a_time(
    monkeypatch: pytest.MonkeyPatch, processes: bool
) -> None:
    monkeypatch.setattr(workers, "_pool", lambda *_, **__: pytest.fail("a pool for one worker"))
    ran: list[tuple[int, int]] = []
    found = each(lambda item: ran.append((item, threading.get_ident())), [4, 7, 5], 1, processes=processes, load=float)
    assert ran == []
    assert next(found) == (7, None)
    assert ran == [(7, threading.get_ident())]
    assert list(found) == [(5, None), (4, None)]


def test_processes_begin_when_results_are_asked_for_so_that_one_item_needs_none(pool: Pool) -> None:
    pool.at_once = True
    with Tasks(tenfold, 2, processes=True) as tasks:
        tasks.add([5])
        assert list(tasks.results()) == [(5, 50)]
        assert pool.begun == []
        tasks.add([6])
        tasks.add([7])
        assert pool.begun == []
        assert sorted(tasks.results()) == [(6, 60), (7, 70)]
        assert pool.begun == [6, 7]


def test_one_item_beside_others_that_run_needs_a_process(pool: Pool) -> None:
    with Tasks(tenfold, 2, processes=True) as tasks:
        tasks.add([1, 2])
        pool.when_begun = lambda item: pool.end(1) if item == 2 else None
        found = tasks.results()
        assert next(found) == (1, 10)
        tasks.add([3])
        pool.when_begun = lambda item: pool.end(2) if item == 3 else None
        assert next(found) == (2, 20)
        assert pool.begun == [1, 2, 3]


def test_a_single_item_on_threads_runs_on_one(pool: Pool) -> None:
    pool.at_once = True
    assert list(each(tenfold, [5], 2)) == [(5, 50)]
    assert pool.begun == [5]


def test_no_items_have_no_results(pool: Pool) -> None:
    assert list(each(tenfold, [], 2)) == []
    assert pool.begun == []


def test_each_heeds_the_loads_and_the_capacity(pool: Pool) -> None:
    """Every item is alone: its load is more than half of the capacity."""
    running: list[list[int]] = []

    def note(item: int) -> None:
        running.append([one for one, future in pool.futures.items() if not future.done()])
        pool.end(item)

    pool.when_begun = note
    assert sorted(each(tenfold, [6, 8, 7], 3, load=float, capacity=10)) == [(6, 60), (7, 70), (8, 80)]
    assert running == [[8], [7], [6]]


@pytest.mark.parametrize(
    ("named", "processes"), [({}, False), ({"processes": False}, False), ({"processes": True}, True)]
)
def test_threads_are_the_default(monkeypatch: pytest.MonkeyPatch, named: dict[str, bool], processes: bool) -> None:
    asked: list[tuple[int, bool]] = []

    def noted(count: int, *, processes: bool) -> Pool:
        asked.append((count, processes))
        return Pool(at_once=True)

    monkeypatch.setattr(workers, "_pool", noted)
    assert sorted(each(tenfold, [1, 2], 3, **named)) == [(1, 10), (2, 20)]
    Tasks(tenfold, 2, **named)
    assert asked == [(3, processes), (2, processes)]


@pytest.mark.parametrize(("processes", "kind"), [(False, ThreadPoolExecutor), (True, ProcessPoolExecutor)])
def test_a_pool_is_one_of_threads_or_of_processes(processes: bool, kind: type) -> None:
    with workers._pool(2, processes=processes) as found:
        assert isinstance(found, kind)


def test_a_process_leaves_interrupts_to_its_parent_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(signal, "signal", lambda *given: done.append(given))
    monkeypatch.setattr(workers, "die_with_parent", lambda: done.append("dies with its parent"))
    monkeypatch.setattr(os, "_exit", lambda code: done.append(f"ends with {code}"))
    monkeypatch.setattr(os, "getppid", lambda: 42)
    workers._follow_parent(42)
    expected = [(signal.SIGINT, signal.SIG_IGN), "dies with its parent"]
    assert done == expected
    # The parent ended before the process could ask to be told.
    workers._follow_parent(41)
    assert done == [*expected, *expected, "ends with 1"]


def wait_or_be_killed(item: int) -> int:
    """The first item's process is killed, the second one's is ended with the pool; both have a scratch directory."""
    made = Scratch("worker")
    if item == 1:
        while len(list(Path(made.name).parent.glob("mptcplab-worker-*"))) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    # Long enough to be ended, but not much longer: a pool may notice only then that a process was killed.
    time.sleep(10)
    return item


def test_nothing_stays_of_processes_that_ended_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EngineError, match="has ended"):
        list(each(wait_or_be_killed, [1, 2], 2, processes=True))
    assert list(tmp_path.glob("mptcplab-*")) == []


INTERRUPTED = """
import os, signal, threading, time
import polars
from mptcplab.study import workers

stop, stopped = threading.Event(), []

def interrupt():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)

try:
    with workers.Tasks(lambda item: stopped.append(stop.wait(item)), 2) as tasks:
        tasks.add([9, 10])
        threading.Thread(target=interrupt).start()
        try:
            list(tasks.results())
        finally:
            stop.set()
except KeyboardInterrupt:
    print("interrupted", stopped)
"""


def test_an_interrupt_need_not_wait_for_a_task_to_end() -> None:
    """Importing Polars makes system calls go on after Ctrl-C, and the caller noticed it when the next task ended."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("interrupted [True, True]\n", "")
