"""Which results of cells are made, which are read, and what is told about them; here, and on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mptcplab.cluster.tasks import Result
from mptcplab.errors import EngineError, RefusedError, ScenarioError
from mptcplab.study import elsewhere, execute
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.study.elsewhere import Order
from mptcplab.study.execute import Executor, Outcome
from mptcplab.study.store import Store
from mptcplab.study.sweeps import Task

TABLE = pl.DataFrame({"a": [1.5]})
# The work of a cell's runs, by its algorithm: so much that each is a sweep of its own.
WORK = {"lia": 2000.0, "olia": 700.0, "balia": 300.0, "wvegas": 500.0}
REPETITIONS = {"lia": 2, "olia": 3, "balia": 5, "wvegas": 7}


@dataclass(frozen=True)
class Spec(RunSpec):
    """Runs whose digest is the name of their algorithm."""

    def digest(self, engine: str) -> str:
        assert engine == "sim"
        return str(self.cc)

    def work(self, engine: str) -> float:
        assert engine == "sim"
        return WORK[str(self.cc)]


def spec(cell: Cell) -> RunSpec:
    """The samples of cells in profile "series" are stored; their variant changes nothing."""
    cc = cell.label
    return Spec(Path("x.toml"), cc, None, REPETITIONS[cc], 1 + cell.block, time_series=cell.profile == "series")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with values and samples of lia and values of olia."""
    made = Store(tmp_path / "store", durable=False)
    made.prepare()
    made.put("lia", {}, values=TABLE, time_series=TABLE)
    made.put("olia", {}, values=TABLE)
    return made


@dataclass
class Ran:
    """The digests of what was run, in order; wvegas is refused."""

    sweeps: list[list[str]] = field(default_factory=list)

    def __call__(self, sweep: Sequence[Task], store: Store, **_: object) -> dict[str, str]:
        self.sweeps.append([task.digest for task in sweep])
        refused = {task.digest: "no such rule" for task in sweep if task.digest == "wvegas"}
        for task in sweep:
            if task.digest not in refused:
                store.put(task.digest, {}, values=TABLE, time_series=TABLE if task.spec.time_series else None)
        return refused


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    found = Ran()
    monkeypatch.setattr(execute, "run_sweep", found)
    return found


def executor(store: Store, progress: Any = None, outcome: Outcome | None = None) -> Executor:
    return Executor(spec, "sim", store, 1, progress, outcome or Outcome())


def test_what_is_stored_is_read_and_the_rest_is_made_the_largest_first(store: Store, ran: Ran) -> None:
    told: list[tuple[int, int, float, float]] = []
    one = executor(store, lambda *numbers: told.append(numbers))
    cells = [Cell("X", label) for label in ("balia", "olia", "wvegas")]
    one.make([*cells, Cell("X", "lia", "", "series")])
    assert one.outcome == Outcome(
        {cell: cell.label for cell in (*cells, Cell("X", "lia", "", "series"))},
        {"wvegas": "no such rule"},
        {"balia"},
        {"olia", "lia"},
    )
    assert ran.sweeps == [["wvegas"], ["balia"]]
    # Finished runs of all that are to be made, and their work.
    assert told == [(7, 12, 500.0, 800.0), (12, 12, 800.0, 800.0)]
    assert one.has(cells)
    assert one.has([])
    assert not one.has([*cells, Cell("X", "olia", "", "series")])


@pytest.mark.usefixtures("ran")
def test_progress_goes_on_with_what_is_added_later(store: Store) -> None:
    told: list[tuple[int, int, float, float]] = []
    one = executor(store, lambda *numbers: told.append(numbers))
    one.make([Cell("X", "wvegas")])
    one.make([Cell("X", "balia"), Cell("X", "wvegas")])
    assert told == [(7, 7, 500.0, 500.0), (12, 12, 800.0, 800.0)]


def test_cells_with_the_same_runs_are_run_once(store: Store, ran: Ran) -> None:
    one = executor(store)
    one.make([Cell("X", "balia"), Cell("Y", "balia")])
    one.make([Cell("X", "balia"), Cell("Z", "balia"), Cell("Z", "wvegas")])
    # What was refused is not asked for again.
    one.make([Cell("Y", "wvegas"), Cell("Y", "olia")])
    assert ran.sweeps == [["balia"], ["wvegas"]]
    assert (one.outcome.made, one.outcome.reused) == ({"balia"}, {"olia"})
    assert len(one.outcome.digests) == 6


@pytest.mark.parametrize("profile", ["", "series"])
def test_cells_with_the_same_runs_wait_for_them_together(store: Store, ran: Ran, profile: str) -> None:
    with executor(store) as one:
        one.add([Cell("X", "balia", "", profile)])
        one.add([Cell("Y", "balia", "", profile)])
        assert not one.has([Cell("X", "balia", "", profile)])
        assert list(one.finished()) == [None, None]
        assert one.has(Cell(name, "balia", "", profile) for name in "XY")
    assert ran.sweeps == [["balia"]]


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        # In one call: once, with samples if any of the cells wants them.
        ([["", "series"]], [True]),
        ([["series", ""]], [True]),
        ([["series", "series"]], [True]),
        ([["", ""]], [False]),
        # In two: again only if the samples are missing.
        ([[""], ["series"]], [False, True]),
        ([["series"], [""]], [True]),
        ([["series"], ["series"]], [True]),
        ([[""], [""]], [False]),
    ],
)
def test_samples_are_stored_if_one_cell_of_several_wants_them(
    store: Store, monkeypatch: pytest.MonkeyPatch, profiles: list[list[str]], expected: list[bool]
) -> None:
    ran: list[bool] = []

    def run_sweep(sweep: Sequence[Task], store: Store, **_: object) -> dict[str, str]:
        for task in sweep:
            ran.append(task.spec.time_series)
            store.put(task.digest, {}, values=TABLE, time_series=TABLE if task.spec.time_series else None)
        return {}

    monkeypatch.setattr(execute, "run_sweep", run_sweep)
    one = executor(store)
    for number, some in enumerate(profiles):
        one.make(Cell("X", "balia", str(10 * number + n), profile) for n, profile in enumerate(some))
    assert ran == expected
    assert one.outcome.made == {"balia"}


def test_a_stored_result_without_the_samples_is_made_again(store: Store, ran: Ran) -> None:
    one = executor(store)
    one.make([Cell("X", "olia", "", "series"), Cell("X", "lia", "", "series")])
    assert ran.sweeps == [["olia"]]
    assert (one.outcome.made, one.outcome.reused) == ({"olia"}, {"lia"})


def test_what_was_made_before_in_the_same_outcome_is_not_called_read(store: Store, ran: Ran) -> None:
    one = executor(store, outcome=Outcome(made={"lia"}))
    one.make([Cell("X", "lia"), Cell("X", "olia")])
    assert (one.outcome.made, one.outcome.reused) == ({"lia"}, {"olia"})
    assert ran.sweeps == []


def test_the_caller_may_add_more_at_once_and_after_every_result_until_nothing_is_added(store: Store, ran: Ran) -> None:
    one = executor(store)
    # At once what is stored; then what is to be made, nothing after it, something else, and what is known.
    to_add = [["olia"], ["balia"], [], ["wvegas"], ["olia"], []]
    asked = 0
    with one:
        for _ in one.finished():
            one.add([Cell("X", label) for label in to_add[asked]])
            asked += 1
    assert asked == len(to_add)
    assert ran.sweeps == [["balia"], ["wvegas"]]
    assert set(one.outcome.digests.values()) == {"olia", "balia", "wvegas"}
    with one:
        assert list(one.finished()) == [None]


@pytest.mark.parametrize(
    ("engine", "jobs", "cores", "expected"),
    [
        ("sim", 3, 8, (3, False, True)),
        ("sim", 0, 8, (8, False, True)),
        ("sim", 0, None, (1, False, True)),
        # Real time: two runs at once would disturb each other. Emulated machines do not.
        ("kernel", 3, 8, (1, False, True)),
        ("vm:bookworm", 3, 8, (3, False, True)),
        # An event cannot be given to another process.
        ("fluid", 3, 8, (3, True, False)),
    ],
)
def test_tasks_run_as_the_engine_allows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    jobs: int,
    cores: int | None,
    expected: tuple[int, bool, bool],
) -> None:
    made: list[tuple[partial[dict[str, str]], int, bool]] = []
    ended: list[bool] = []

    class Noted:
        def __init__(self, task: partial[dict[str, str]], workers: int, *, processes: bool) -> None:
            made.append((task, workers, processes))

        def __exit__(self, *_: object) -> None:
            ended.append(one._stop.is_set())

    monkeypatch.setattr(execute.workers, "Tasks", Noted)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    store = Store(tmp_path)
    one = Executor(spec, engine, store, jobs, None)
    for _ in range(2):
        with one:
            assert not one._stop.is_set()
    # Runs that last are told before anybody waits for them.
    assert ended == [True, True]
    task, workers, processes = made[1]
    assert (workers, processes, task.keywords["stop"] is not None) == expected
    assert (task.func, task.keywords["engine"], task.keywords["store"]) == (execute.run_sweep, engine, store)
    assert task.keywords["stop"] in (None, one._stop)


def test_further_cells_may_be_put_before_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[tuple[list[list[str]], bool]] = []

    class Noted:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __exit__(self, *_: object) -> None: ...

        def add(self, some: Iterable[list[Task]], *, first: bool) -> None:
            added.append(([[task.digest for task in sweep] for sweep in some], first))

    monkeypatch.setattr(execute.workers, "Tasks", Noted)
    with executor(store) as one:
        one.add([Cell("X", "wvegas"), Cell("X", "balia")])
        one.add([Cell("X", "lia", "", "series")], first=True)
    assert added == [([["wvegas"], ["balia"]], False), ([], True)]


# On a cluster


class Remote:
    """In the place of a cluster's tasks: every order has the result that the test says, one after the other."""

    results_of: dict[str, Result]
    made: list[Remote]

    def __init__(self, cluster: object, task: Callable[[Order], dict[str, bytes]], key: Callable[[Order], str]) -> None:
        self.cluster, self.task, self.key, self.ended = cluster, task, key, False
        self.orders: list[tuple[str, bool]] = []
        self.waiting: list[Order] = []
        self.made.append(self)

    def __exit__(self, *_: object) -> None:
        self.ended = True

    def add(self, orders: Iterable[Order], *, first: bool) -> None:
        self.waiting += orders
        self.orders += [(self.key(order), first) for order in self.waiting]

    def results(self) -> Iterator[tuple[Order, Result]]:
        while self.waiting:
            order = self.waiting.pop(0)
            yield order, self.results_of[self.key(order)]


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Remote]:
    other = Store(tmp_path / "other")
    other.prepare()
    other.put("balia", {"by": "a worker"}, values=TABLE)
    Remote.results_of = {"balia": Result(other.files()), "wvegas": Result(None, RefusedError("no such rule"))}
    Remote.made = []
    monkeypatch.setattr(elsewhere.tasks, "Tasks", Remote)
    return Remote


def test_a_cluster_s_results_come_into_the_store_of_this_machine(
    store: Store, remote: type[Remote], scenario: Path
) -> None:
    cluster: Any = object()
    one = Executor(lambda cell: replace(spec(cell), scenario=scenario), "sim", store, 1, None, cluster=cluster)
    one.make(Cell("X", label) for label in ("balia", "olia", "wvegas"))
    (tasks,) = remote.made
    assert (tasks.cluster, tasks.task, tasks.ended) == (cluster, elsewhere.make, True)
    assert tasks.orders == [("wvegas", False), ("balia", False)]
    assert one.outcome.refused == {"wvegas": "no such rule"}
    assert (one.outcome.made, one.outcome.reused) == ({"balia"}, {"olia"})
    assert store.record("balia") == {"by": "a worker"}


def test_an_order_has_all_that_a_worker_needs(store: Store, remote: type[Remote], scenario: Path) -> None:
    cluster: Any = object()
    tasks = elsewhere.Tasks(cluster, "sim", store)
    one = Task("wvegas", replace(spec(Cell("X", "wvegas")), scenario=scenario), 4.0)
    tasks.add([[one], [replace(one, digest="balia")]], first=True)
    (made,) = remote.made
    assert made.orders == [("wvegas", True), ("balia", True)]
    tasks.add([])
    assert made.orders[2:] == [("wvegas", False), ("balia", False)]
    order = made.waiting[0]
    assert (order.task, order.engine) == (one, "sim")
    assert [content.decode() for content in order.inputs.files.values()] == [scenario.read_text()]
    assert [(sweep, refused) for sweep, refused in tasks.results()] == [
        ([one], {"wvegas": "no such rule"}),
        ([replace(one, digest="balia")], {}),
    ]


def test_an_error_of_a_worker_that_refuses_nothing_is_raised(
    store: Store, remote: type[Remote], scenario: Path
) -> None:
    remote.results_of["wvegas"] = Result(None, EngineError("the disk of a worker is full"))
    cluster: Any = object()
    one = Executor(lambda cell: replace(spec(cell), scenario=scenario), "sim", store, 1, None, cluster=cluster)
    with pytest.raises(EngineError, match="the disk of a worker is full"):
        one.make(Cell("X", label) for label in ("wvegas", "olia"))
    assert not one.outcome.refused


def test_a_worker_makes_what_this_machine_would(tmp_path: Path, scenario: Path) -> None:
    runs = RunSpec(scenario, "lia", None, 1, 5, (("duration", '"2 s"'),), ("goodput",))
    task = Task(runs.digest("sim"), runs, 1.0)
    order = Order(task, "sim", elsewhere.Inputs.of(scenario, runs.overrides().to_json()))
    files = elsewhere.make(order)
    here = Store(tmp_path / "here", durable=False)
    here.prepare()
    assert elsewhere.run_together([task], "sim", here) is None
    assert files == here.files()
    assert sorted(files) == [f"{task.digest}.json", f"{task.digest}.values.parquet"]


def test_a_worker_refuses_to_make_something_else_and_says_what_an_engine_refuses(scenario: Path) -> None:
    runs = RunSpec(scenario, "lia", None, 1, 5, (("duration", '"2 s"'),), ("goodput",))
    order = Order(Task("0123", runs, 1.0), "sim", elsewhere.Inputs.of(scenario))
    with pytest.raises(EngineError, match="a worker would run something else than 0123\n\nhint: this is a bug"):
        elsewhere.make(order)
    refused = replace(runs, settings=(("durations", '"2 s"'),))
    with pytest.raises(ScenarioError, match="durations"):
        elsewhere.make(replace(order, task=Task("0123", refused, 1.0)))
