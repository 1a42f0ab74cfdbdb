"""Sweeps of cells: what is run together, what the engine is asked for, and what is left behind."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mptcplab import api
from mptcplab.errors import EngineError, RefusedError, ScenarioError, UnfinishedError
from mptcplab.results import Results
from mptcplab.study import sweeps
from mptcplab.study.cell import RunSpec
from mptcplab.study.measure import TIME_SERIES, VALUES
from mptcplab.study.store import Store
from mptcplab.study.sweeps import Task, run_sweep

SPEC = RunSpec(Path("x.toml"), "olia", None, 4, 5)


def digests(tasks: list[Task], engine: str) -> list[list[str]]:
    return [[task.digest for task in sweep] for sweep in sweeps.sweeps(tasks, engine)]


def test_the_simulator_runs_together_what_has_a_scenario_and_measurements_in_common() -> None:
    specs = {
        "a": SPEC,
        "b": replace(SPEC, cc="lia", seed=9, repetitions=2, profile="linux-acked", settings=(("duration", '"3 s"'),)),
        "other scenario": replace(SPEC, scenario=Path("y.toml")),
        "other metrics": replace(SPEC, metrics=("goodput",)),
        "other spans": replace(SPEC, spans=(("bin 1", 0.0, 2.0),)),
    }
    tasks = [Task(name, spec, 10.0 - place) for place, (name, spec) in enumerate(specs.items())]
    assert digests(tasks, "sim") == [["a", "b"], ["other scenario"], ["other metrics"], ["other spans"]]


def test_what_one_call_describes_are_neighbours_and_the_fluid_is_asked_for_each_call_by_itself() -> None:
    specs = {
        "a": SPEC,
        "seed": replace(SPEC, seed=9),
        "c": replace(SPEC, cc="lia", time_series=True),
        # The scenario's own algorithms: each is a call.
        "own": replace(SPEC, cc=None),
        "own as well": replace(SPEC, cc=None),
        "seed c": replace(SPEC, cc="lia", seed=9),
    }
    tasks = [Task(name, spec, 1.0) for name, spec in specs.items()]
    assert digests(tasks, "sim") == [["a", "c", "seed", "seed c", "own", "own as well"]]
    assert digests(tasks, "fluid") == [["a", "c"], ["seed", "seed c"], ["own"], ["own as well"]]
    # On a kernel one at a time, each as soon as the largest.
    assert digests(tasks, "kernel") == [[name] for name in specs]


def test_a_sweep_has_no_more_than_two_minutes_of_work_before_its_last_task() -> None:
    tasks = [Task(str(n), replace(SPEC, seed=n), work) for n, work in enumerate((60.0, 60.0, 59.5, 60.0, 0.25, 0.25))]
    # 60 + 60 is enough; 59.5 + 60 is not yet, and is with a quarter more not, and with another one.
    assert digests(tasks, "sim") == [["0", "1"], ["2", "3", "4", "5"]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "results")
    made.prepare()
    return made


@pytest.fixture
def short(scenario: Path) -> RunSpec:
    settings = (("duration", '"2 s"'), ("warmup", '"500 ms"'))
    return RunSpec(scenario, "olia", None, 2, 5, settings, ("goodput",))


def test_each_task_of_a_sweep_is_stored_with_its_own_runs(store: Store, short: RunSpec, tmp_path: Path) -> None:
    specs = {"a": short, "b": replace(short, cc="lia", repetitions=2, time_series=True)}
    specs["c"] = replace(short, cc=None, repetitions=1, seed=9, settings=(*short.settings, ("cc", '"reno"')))
    assert run_sweep([Task(name, spec, 1.0) for name, spec in specs.items()], "sim", store) == {}
    assert store.digests() == ["a", "b", "c"]
    alone = Store(tmp_path / "alone")
    alone.prepare()
    for name, spec in specs.items():
        assert sorted(set(store.table(name, VALUES)["rep"].to_list())) == list(range(spec.repetitions))
        assert store.has(name, TIME_SERIES) == spec.time_series
        run_sweep([Task(name, spec, 1.0)], "sim", alone)
    assert alone.files() == store.files()
    # Of two repetitions, the series is that of the first.
    run_sweep([Task("one", replace(specs["b"], repetitions=1), 1.0)], "sim", alone)
    assert store.table("b", TIME_SERIES).equals(alone.table("one", TIME_SERIES))
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["alone", "results", "two-paths.toml"]


def test_what_is_refused_is_told_and_does_not_keep_others_from_running(store: Store, short: RunSpec) -> None:
    bad = replace(short, settings=(("duration", '"0 s"'),))
    tasks = [Task("a", short, 1.0), Task("b", bad, 1.0), Task("c", replace(short, cc="lia"), 1.0)]
    refused = run_sweep(tasks, "sim", store)
    assert list(refused) == ["b"]
    assert "duration" in refused["b"]
    assert run_sweep(tasks[1:2], "sim", store) == refused
    assert store.digests() == ["a", "c"]


@pytest.mark.parametrize("error", [RefusedError("no such rule"), ScenarioError("no such link")])
def test_the_reason_of_a_refusal_is_the_error_of_the_engine(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def run(*_: Any, **__: Any) -> Results:
        raise error

    monkeypatch.setattr(sweeps, "run", run)
    assert run_sweep([Task("a", SPEC, 1.0)], "fluid", store) == {"a": str(error)}


def test_what_is_beyond_the_simulator_is_a_refusal_and_what_breaks_it_is_none(
    store: Store, short: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = (("flows.tcp.traffic", '{ size = "40 kB", arrivals = "9000 / s" }'), ("flows.tcp.start", '"0 s"'))
    tasks = [Task("a", replace(short, settings=(*short.settings, *many)), 1.0), Task("b", short, 2.0)]
    refused = run_sweep(tasks, "sim", store)
    assert list(refused) == ["a"]
    assert re.match(r"run 0 \(repetition 0\): flows.tcp: more than \d+ transfers are under way", refused["a"])

    def broken(*_: Any) -> None:
        raise EngineError("run 0 (cc = olia, repetition 0): the simulator broke: no such packet")

    monkeypatch.setattr("mptcplab._core.run_scratch", broken)
    with pytest.raises(EngineError, match="the simulator broke: no such packet"):
        run_sweep(tasks, "sim", store)


@pytest.mark.parametrize("error", [EngineError("no kernel; signal 9 ended it"), UnfinishedError("run 2 broke", None)])
@pytest.mark.parametrize("size", [1, 2])
def test_an_engine_that_fails_has_refused_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception, size: int
) -> None:
    """Before, a crash was a refusal, so that claims were "not testable" and the command ended as if all were well."""

    def run(*_: Any, **__: Any) -> Results:
        raise error

    monkeypatch.setattr(sweeps, "run", run)
    tasks = [Task("a", SPEC, 1.0), Task("b", replace(SPEC, cc="lia"), 3.0)]
    with pytest.raises(type(error), match=str(error)):
        run_sweep(tasks[:size], "fluid", store)


def test_another_engine_is_asked_for_one_call_with_its_algorithms(
    store: Store, short: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def run(*words: Any, **named: Any) -> Results:
        asked.update(named, words=words)
        named["progress"](1)
        return api.run(*words, **{**named, "engine": "sim", "progress": False})

    monkeypatch.setattr(sweeps, "run", run)
    tasks = [Task("a", short, 1.0), Task("b", replace(short, cc="lia"), 1.0)]
    assert run_sweep(tasks, "fluid", store) == {}
    expected = {"words": (short.scenario,), "cc": ("olia", "lia"), "reps": 2, "seed": 5, "jobs": 1, "engine": "fluid"}
    expected |= {"profile": None, "settings": dict(short.settings)}
    assert {name: asked[name] for name in expected} == expected
    assert not asked["out"].exists()
    values = [store.table(name, VALUES)["value"].to_list() for name in "ab"]
    assert values[0] != values[1]
    # A scenario's own algorithms are no overrides.
    own = replace(short, cc=None, profile="linux-acked")
    assert run_sweep([Task("c", own, 1.0)], "fluid", store).keys() <= {"c"}
    assert (asked["cc"], asked["profile"]) == (None, ("linux-acked",))


def test_traces_of_a_kernel_stay_until_they_were_measured(
    store: Store, short: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, places = threading.Event(), []

    def run(*words: Any, **named: Any) -> Results:
        places.append(named["out"])
        (named["out"].parent / "0123.partial").mkdir(parents=True, exist_ok=True)
        named["progress"](0)
        (named["out"].parent / "0123.partial").rmdir()
        return api.run(*words, **{**named, "engine": "sim", "progress": False})

    monkeypatch.setattr(sweeps, "run", run)
    task = Task("0123", short, 1.0)
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        run_sweep([task], "kernel", store, stop)
    assert [path.name for path in store.unfinished.iterdir()] == ["0123.partial"]
    assert not store.has("0123")
    stop.clear()
    assert run_sweep([task], "kernel", store, stop) == {}
    assert places == [store.unfinished / "0123"] * 2
    assert store.has("0123", VALUES)
    assert not store.unfinished.exists()
    # Without anybody who could stop it, and beside the traces of another cell.
    (store.unfinished / "4567").mkdir(parents=True)
    assert run_sweep([replace(task, digest="89ab")], "kernel", store) == {}
    assert [path.name for path in store.unfinished.iterdir()] == ["4567"]
