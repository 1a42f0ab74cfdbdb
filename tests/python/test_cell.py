"""Cells of a study: how they are ordered, what their runs are asked for, how much work they are, and their digests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mptcplab.scenario import Overrides
from mptcplab.study import cell as cells
from mptcplab.study.cell import Cell, RunSpec, digest_of, run_command, work_unit


def spec_of(scenario: Path) -> RunSpec:
    return RunSpec(scenario, "olia", "rfc", 3, 8, (("duration", '"4 s"'),), ("goodput",), (("bin 0", 1.0, 2.0),))


def test_cells_are_sorted_by_experiment_label_point_profile_variant_and_block() -> None:
    expected = [
        Cell("A", "lia", "p2", "rfc", "x", 9),
        Cell("A", "olia", "p1", "rfc", "x", 8),
        Cell("A", "olia", "p2", "pre4", "x", 7),
        Cell("A", "olia", "p2", "rfc", "", 6),
        Cell("A", "olia", "p2", "rfc", "x", 0),
        Cell("A", "olia", "p2", "rfc", "x", 1),
        Cell("B", "lia"),
    ]
    assert sorted(set(expected)) == expected
    assert expected[-1] == Cell("B", "lia", "", "", "", 0)


def test_a_spec_asks_for_its_own_algorithm_or_for_those_of_a_sweep(scenario: Path) -> None:
    spec = spec_of(scenario)
    assert not spec.time_series
    own = Overrides(cc=("olia",), reps=3, seed=8, profile=("rfc",), settings={"duration": '"4 s"'})
    assert spec.overrides() == own
    assert spec.overrides("lia", "reno") == replace(own, cc=("lia", "reno"))
    # What the scenario file says stays.
    assert replace(spec, cc=None, profile=None, settings=()).overrides() == Overrides(reps=3, seed=8)


def test_resolved_runs_are_all_repetitions_and_the_topology_is_that_of_any(scenario: Path) -> None:
    spec = spec_of(scenario)
    assert [(run["rep"], run["flows"][0]["cc"]["name"]) for run in spec.resolved()] == [(i, "olia") for i in range(3)]
    assert (spec.topology.duration_ns, spec.topology.flows[0].cc) == (4_000_000_000, "olia")
    # Without an algorithm it is the first that the file names.
    assert replace(spec, cc=None, settings=()).topology == cells.topology(scenario)
    assert cells.topology(scenario).flows[0].cc == "lia"
    assert cells.topology(scenario).duration_ns == 3_000_000_000


def test_work_grows_with_packets_or_for_equations_with_time_only(scenario: Path) -> None:
    spec = replace(spec_of(scenario), settings=(("duration", '"40 s"'),))
    # One hop each, 8 and 3 Mbit/s in packets of 12,000 bits, times 1.5.
    assert spec.topology.packet_hops == pytest.approx(11 * 40 * 1.5 / 12_000)
    for engine in ("sim", "kernel", "vm:bookworm"):
        assert spec.work(engine) == pytest.approx(3 * spec.topology.packet_hops)
        assert work_unit(engine) == "M packet hops/s (estimated)"
    assert spec.work("fluid") == 3 * 40.0
    assert work_unit("fluid") == "\N{MULTIPLICATION SIGN} real time"


def test_a_digest_is_of_values_and_not_of_the_order_of_names() -> None:
    digest = digest_of(a=1, b={"x": 2, "y": [3]})
    assert digest == digest_of(b={"y": [3], "x": 2}, a=1)
    assert len(digest) == 32
    others = [digest_of(a=1, b={"x": 2, "y": [4]}), digest_of(a=1), digest_of(1), digest_of(), digest_of({"a": 1})]
    assert len({digest, *others}) == 1 + len(others)


def test_a_result_depends_on_all_that_is_asked_of_it_and_on_the_engine(scenario: Path) -> None:
    spec = spec_of(scenario)
    others = [
        replace(spec, cc="lia"),
        replace(spec, profile="linux-acked"),
        replace(spec, repetitions=4),
        replace(spec, seed=9),
        replace(spec, settings=()),
        replace(spec, metrics=("goodput", "loss")),
        replace(spec, spans=(("bin 0", 1.0, 2.5),)),
    ]
    digests = {one.digest("sim") for one in (spec, *others)} | {spec.digest("fluid")}
    assert len(digests) == 2 + len(others)
    # The samples are stored beside what a result has without them.
    assert replace(spec, time_series=True).digest("sim") == spec.digest("sim")


def test_a_result_depends_on_the_sources_of_the_algorithms_that_run(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(scenario)
    sources = {"olia": "1", "cubic": "2", "reno": "3"}
    digests = []
    for changed in ({}, {"olia": "4"}, {"cubic": "5"}, {"reno": "6"}):
        monkeypatch.setattr(cells, "algorithm_digests", lambda changed=changed: sources | changed)
        digests.append(spec.digest("sim"))
    # OLIA beside CUBIC; Reno does not run.
    assert len(set(digests)) == 3
    assert digests[3] == digests[0]


def test_what_was_compiled_is_in_the_place_of_what_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests of this process may have compiled algorithms of their own.
    monkeypatch.setattr(cells, "compiled_sources", dict)
    built = cells.algorithm_digests()
    assert {"lia", "olia", "cubic"} <= set(built)
    monkeypatch.setattr(cells, "compiled_sources", lambda: {"olia": "new", "mine": "newer"})
    assert cells.algorithm_digests() == {**built, "olia": "new", "mine": "newer"}


def test_a_command_can_be_given_to_a_shell() -> None:
    overrides = Overrides(cc=("lia", "dolia(gamma=text)"), reps=2, settings={"links.B1.queue": '"1 BDP"'})
    assert run_command("my file.toml", overrides, "--json") == (
        "mptcplab run 'my file.toml' --cc 'lia,dolia(gamma=text)' --reps 2 --set 'links.B1.queue=\"1 BDP\"' --json"
    )
