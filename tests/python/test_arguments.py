"""Arguments of public functions: NumPy's numbers, lists that can be read once, other processes, and what is refused."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import lab
from conftest import SCENARIO

import mptcplab
from mptcplab.errors import MptcplabError
from mptcplab.results import Results
from mptcplab.settings import overriding

SOURCE = """
#include "cc.h"
CC_UNCOUPLED(elsewhere);
CC_REGISTER(elsewhere, .ssthresh = cc_reno_ssthresh, .cong_avoid = cc_reno_cong_avoid, .undo_cwnd = cc_reno_undo_cwnd);
"""
UNPICKLED = """
import pickle, sys
one = pickle.load(sys.stdin.buffer)
import mptcplab
print(mptcplab.check(sys.argv[1], cc=one)["text"])
"""
RUN = """
import mptcplab, sys
results = mptcplab.run(sys.argv[1], cc="lia", reps=1, duration="3 s", progress=False)
del results
"""
MADE = mptcplab.Scenario.from_toml(SCENARIO)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("arguments") / "r"
    losses = {"links.A.loss": "0.1 %, 1 %, 2 %"}
    mptcplab.run(MADE, cc="lia", reps=2, duration="3 s", out=out, sweep=losses, progress=False)
    return out


@pytest.fixture
def results(directory: Path) -> Results:
    return mptcplab.load(directory)


def one_path(**keys: Any) -> mptcplab.Scenario:
    made = mptcplab.Scenario(duration="20 s", cc="reno", **keys)
    return made.link("A", "S", "D", rate="10 Mbit/s", delay=0.004).flow("f", ["A"])


def test_numbers_of_numpy_are_numbers() -> None:
    found = mptcplab.Overrides.of(None, np.int32(3), np.int64(5), None, None, None)
    assert (found.reps, found.seed) == (3, 5)
    assert type(found.seed) is int
    assert mptcplab.new(tcp=np.int64(2), duration=90, warmup=timedelta(seconds=7)).to_dict()["duration"] == "90 s"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.timedelta64(12, "s"), "12 s"),
        (np.timedelta64(5_000_000, "ns"), "5 ms"),
        (np.array([7, 9], "timedelta64[ms]"), '["7 ms", "9 ms"]'),
        (1e-9, "1 ns"),
        (0, "0 s"),
    ],
)
def test_durations_of_numpy_have_their_own_unit(value: Any, text: str) -> None:
    assert overriding({"links.A.delay": value}) == {"links.A.delay": text}


def test_a_number_is_a_duration_inside_lists_of_tables_too() -> None:
    schedule = [{"at": 10, "up": False}, {"at": 11.5, "delay": 0.25}]
    written = overriding({"links.A.schedule": schedule, "flows.f.subflows": [{"path": ["A"], "start": 3}]})
    assert written["links.A.schedule"] == '[{ at = "10 s", up = false }, { at = "11500 ms", delay = "250 ms" }]'
    assert written["flows.f.subflows"] == '[{ path = ["A"], start = "3 s" }]'
    mptcplab.check(one_path(), settings={"links.A.schedule": schedule[:1]})


def test_a_scenario_keeps_what_can_be_read_once() -> None:
    made = one_path().set(cc=(name for name in ("lia", "olia")))
    assert made.to_dict()["cc"] == made.to_dict()["cc"] == ["lia", "olia"]
    assert mptcplab.Scenario.from_dict({**one_path().keys, "cc": iter(["balia"])}).to_dict()["cc"] == ["balia"]


def test_a_scenario_shares_no_list_with_its_caller() -> None:
    names, schedule = ["lia"], [{"at": "3 s", "up": False}]
    made = one_path(profile=names).set({"links.A.schedule": schedule})
    names.append("olia")
    schedule[0]["at"] = "9 s"
    assert made.keys["profile"] == ["lia"]
    assert made.set(seed=3).keys["links"]["A"]["schedule"] == [{"at": "3 s", "up": False}]


def test_nothing_is_left_of_a_key_that_is_taken_out() -> None:
    made = one_path()
    assert made.set({"links.Z.loss": None, "tcp.tso": None}).keys == made.keys
    assert made.set({"links.A.loss": "1 %"}).set({"links.A.loss": None}).keys == made.keys


def test_a_scan_has_the_runs_that_were_asked_for(results: Results) -> None:
    def scanned(runs: list[int]) -> list[int]:
        return sorted(results.scan("flow", runs).collect()["run"].unique().to_list())

    assert (scanned([2, 2, 4, 4, 4, 4]), scanned([99]), scanned([]), scanned(list(range(6)))) == (
        [2, 4],
        [],
        [],
        [0, 1, 2, 3, 4, 5],
    )
    assert results.metrics("goodput").equals(results.metrics(["goodput"]))


def test_errors_and_results_reach_other_processes(results: Results) -> None:
    one = pickle.loads(pickle.dumps(mptcplab.UnfinishedError("ended early", results)))
    assert (str(one), one.results.directory) == ("ended early", results.directory)
    temporary = mptcplab.run(MADE, cc="lia", reps=1, duration="3 s", progress=False)
    with pytest.raises(MptcplabError, match="temporary directory"):
        pickle.dumps(temporary)
    one = pickle.loads(pickle.dumps(mptcplab.UnfinishedError("ended early", temporary)))
    assert (str(one), one.results) == ("ended early", None)


def test_a_compiled_algorithm_reaches_other_processes(scenario: Path) -> None:
    algorithm = mptcplab.Algorithm.from_source(SOURCE)
    assert pickle.loads(pickle.dumps(algorithm)) == algorithm
    command = [sys.executable, "-c", UNPICKLED, str(scenario)]
    found = subprocess.run(command, input=pickle.dumps(algorithm), capture_output=True, check=True)
    assert b"elsewhere" in found.stdout


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / place / "elsewhere.c" for place in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(SOURCE)
    with pytest.raises(MptcplabError, match=r"cc: two files of one name: .*a/elsewhere\.c and .*b/elsewhere\.c"):
        mptcplab.check(MADE, cc=[str(path) for path in paths])


def test_results_without_a_directory_go_without_a_warning(scenario: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", RUN, str(scenario)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


REFUSED: dict[str, tuple[Callable[[Results], object], str]] = {
    "over_nothing": (lambda r: r.plot.over(None, "message_p50"), "message_p50 has no value here\n\nhint: .* goodput"),
    "over_flows": (lambda r: r.plot.over(None, "utilisation", flows="mp"), "utilisation is not a metric of flows"),
    "over_run": (lambda r: r.plot.over(None, "jain", flows="mp"), "jain is not a metric of flows"),
    "over_links": (lambda r: r.plot.over(None, "rtt_mean", links="A"), "rtt_mean is not a metric of links"),
    "over_link": (lambda r: r.plot.over(None, "utilisation", links="C"), "no such link: 'C'\n\nhint: links: A, B$"),
    "over_no_flows": (lambda r: r.plot.over(flows=[]), "no values of goodput for these"),
    "over_list": (lambda r: r.plot.over(None, ["goodput"]), "metric: not a text"),  # type: ignore[arg-type]
    "over_time": (lambda r: r.plot.over_time(rep="0"), "rep: not a whole number: '0'"),  # type: ignore[arg-type]
    "no_table": (lambda r: r.scan("nope"), "no such table: 'nope'\n\nhint: one of run, flow, subflow"),
    "no_metrics": (lambda r: r.metrics([]), "no names of metrics"),
    "metrics": (lambda r: r.metrics([None]), r"names: not a text, or several: \[None\]"),  # type: ignore[list-item]
    "both": (lambda _: mptcplab.check(MADE, mptcplab.Overrides(cc=("lia",)), reps=2), "overrides, and arguments"),
    "overrides": (lambda _: mptcplab.check(MADE, {"cc": "lia"}), "not overrides"),  # type: ignore[arg-type]
    "not_a_time": (lambda _: mptcplab.check(MADE, duration=np.timedelta64("NaT")), "not a duration"),  # type: ignore[arg-type]
    "too_short": (lambda _: mptcplab.check(MADE, duration=1e-10), "duration: shorter than a nanosecond"),
    "bytes": (lambda _: mptcplab.check(MADE, sweep={"seed": b"5"}), "seed: not a list of values: b'5'"),  # type: ignore[dict-item]
    "profile": (lambda _: mptcplab.check(MADE, profile=5), "profile: not a text, or several: 5"),  # type: ignore[arg-type]
    "sim_reps": (lambda _: mptcplab.run(MADE, engine="sim,fluid", sim_reps="2"), "sim_reps: not a whole number"),  # type: ignore[arg-type]
    "new": (lambda _: mptcplab.new(tcp="2"), "tcp: not a whole number: '2'"),  # type: ignore[arg-type]
    "title": (lambda _: mptcplab.new(title=5), "title: not a text: 5"),  # type: ignore[arg-type]
    "walk": (lambda _: mptcplab.walk(seed=1.5), "seed: not a whole number: 1.5"),  # type: ignore[arg-type]
    "paths": (lambda _: mptcplab.Scenario().flow("g", 5), "not paths: 5"),  # type: ignore[arg-type]
    "link": (lambda _: mptcplab.Scenario().link(5, "S", "D", delay="1 ms"), "not the name of a link: 5"),  # type: ignore[arg-type]
    "key": (lambda _: mptcplab.Scenario({5: 1}), "not a key of a scenario: 5"),  # type: ignore[dict-item]
    "path": (lambda _: mptcplab.load("a\0b"), "not a path"),
    "grid": (lambda _: mptcplab.goals("lia", grid={"a": 1}), "grid: not a grid"),  # type: ignore[arg-type]
    "paper": (lambda _: mptcplab.reproduce(["kim2021"]), "paper: not a text"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_value_of_an_argument_is_refused(name: str, results: Results) -> None:
    call, message = REFUSED[name]
    with pytest.raises(MptcplabError, match=message):
        call(results)


def test_progress_can_be_hidden_where_engines_are_compared(capfd: pytest.CaptureFixture[str]) -> None:
    mptcplab.agree(MADE, "sim,fluid", cc="lia", reps=1, duration="3 s", progress=False)
    assert "%" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cc": "olla"}, 'cc: no algorithm "olla"\n\nhint: did you mean "olia"?'),
        ({"cc": "lia(gain=3)"}, 'cc: lia has no parameter "gain"\n\nhint: '),
        ({"duration": "30 parsecs"}, 'duration: "30 parsecs" is not a duration\n\nhint: '),
        ({"profile": "rcf"}, 'profile: "rcf" is not one of the choices\n\nhint: '),
        ({"settings": {"links.B.rat": 3}}, "settings['links.B.rat']: unknown key \"rat\"\n\nhint: "),
        ({"settings": {"links.C.rate": "7 Mbit/s"}}, "settings['links.C.rate']: links.C: no such key \"C\"\n\nhint: "),
        ({"settings": {"flows.mp.paths.0.0": "Q"}}, "settings['flows.mp.paths.0.0']: flows.mp.paths.0: no link \"Q\""),
        ({"sweep": {"links.A.loss": "1 foo, 2 %"}}, "sweep['links.A.loss']: \"1 foo\" is not a percentage"),
        (
            {"settings": {"duration": "5 foo"}, "sweep": {"warmup": "1 s, 2 s"}},
            "settings['duration']: \"5 foo\" is not",
        ),
    ],
)
def test_errors_name_the_argument_and_not_a_command_line(changes: dict[str, Any], message: str) -> None:
    """They began with "command line:", which a function in Python has not."""
    asked: list[Callable[..., object]] = [mptcplab.run, mptcplab.check]
    for function in asked:
        with pytest.raises(MptcplabError) as caught:
            function(MADE, **changes)
        assert str(caught.value).startswith(message)
    with pytest.raises(MptcplabError) as caught:
        mptcplab.agree(MADE, "sim,fluid", **changes)
    assert str(caught.value).startswith(message)


def test_several_errors_name_their_arguments() -> None:
    changes: dict[str, Any] = {"settings": {"links.A.rate": "7 foo"}, "sweep": {"links.B.delay": ["3 ms", "5 foo"]}}
    with pytest.raises(MptcplabError) as caught:
        mptcplab.run(MADE, **changes)
    first, second = str(caught.value).split("\n\nerror: ")
    assert first.startswith("settings['links.A.rate']: \"7 foo\" is not a rate")
    assert second.startswith("sweep['links.B.delay']: \"5 foo\" is not a duration")


def test_a_parameter_of_an_algorithm_that_has_none_of_it_names_those_that_there_are() -> None:
    """The hint was to write a key path such as links.NAME.queue."""
    gain: dict[str, Any] = {"cc.gain": [1, 2]}
    with pytest.raises(MptcplabError) as caught:
        mptcplab.run(MADE, cc="lia", sweep=gain)
    expected = "sweep['cc.gain']: lia has no parameter \"gain\"\n\nhint: parameters of lia: dialect"
    assert str(caught.value) == expected
    with pytest.raises(MptcplabError, match=r"dialect of lia,\s+weight of ewtcp$"):
        mptcplab.run(MADE, cc="lia,ewtcp", sweep=gain)
    with pytest.raises(MptcplabError) as caught:
        mptcplab.run(MADE, sweep={"flows.mp.cc.gain": [1, 2]})
    # Once, although it is missing for both values.
    assert str(caught.value).count("missing: it says which algorithm") == 1


def test_a_parameter_of_the_only_algorithm_is_swept_by_its_key_path() -> None:
    results = mptcplab.run(MADE, cc="ewtcp", reps=1, sweep={"cc.weight": ["fair", "sqrt"]}, progress=False)
    found = [{flow["cc"]["text"] for flow in json.loads(text)["flows"]} for text in results.runs["resolved"]]
    assert found == [{"ewtcp(weight=fair)", "cubic"}, {"ewtcp(weight=sqrt)", "cubic"}]


def test_other_functions_and_methods_name_their_arguments(tmp_path: Path) -> None:
    for function in (mptcplab.goals, mptcplab.hunt):
        with pytest.raises(MptcplabError, match=r'^cc: no algorithm "olla"'):
            function("olla", out=tmp_path / "out")
    with pytest.raises(MptcplabError, match=r"^settings\['links.A.rat'\]: "):
        MADE.check(mptcplab.Overrides(settings={"links.A.rat": "3"}))
    assert not list(tmp_path.iterdir())


def test_the_command_line_is_still_named_where_it_is_one(scenario: Path, tmp_path: Path) -> None:
    done = lab("check", scenario, "--set", "links.A.rat=3", cwd=tmp_path)
    assert done.stderr.startswith('error: command line: links.A.rat: unknown key "rat"')
    with pytest.raises(MptcplabError, match=r"^settings\['links.A.rat'\]: "):
        mptcplab.check(scenario, settings={"links.A.rat": 3})
