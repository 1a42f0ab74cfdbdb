"""The Python API on real runs, and the determinism that it promises."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

import mptcplab
from mptcplab import _core
from mptcplab.capabilities import KERNEL
from mptcplab.engines import sim
from mptcplab.output import TABLES
from mptcplab.scenario import Overrides
from mptcplab.sweep import Sweep


def test_import_loads_nothing_heavy_and_prints_nothing() -> None:
    heavy = ("polars", "numpy", "scipy", "matplotlib", "plotly", "typer", "rich", "jinja2")
    code = f"import sys, mptcplab; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert done.stderr == ""


def test_run_returns_data_frames(scenario: Path) -> None:
    results = mptcplab.run(scenario, cc=["lia", "olia"], reps=3)
    assert results.runs["cc"].to_list() == ["lia"] * 3 + ["olia"] * 3
    assert results.runs["rep"].to_list() == [0, 1, 2, 0, 1, 2]
    for name in TABLES[1:]:
        table = getattr(results, name)
        assert isinstance(table, pl.DataFrame)
        # No flow of this scenario makes transfers.
        assert table["run"].n_unique() == (0 if name == "transfer" else 6), name
    summary = results.summary().filter(metric="goodput", flow="mp").filter(pl.col("subflow").is_null())
    assert summary["config"].to_list() == ["lia", "olia"]
    assert summary["n"].to_list() == [3, 3]
    assert summary["half"].is_not_null().all()


def test_counters_of_a_run_are_consistent(scenario: Path) -> None:
    """What the metrics say of a real run agrees with its links: no flow gets more than the links carried.

    From the start, because data that waited out of order may be delivered in a window in which it did not arrive.
    """
    results = mptcplab.run(scenario, cc="lia", reps=1, settings={"warmup": '"0 s"'})
    wide = {
        (row["metric"], row["flow"], row["subflow"], row["link"]): row["value"] for row in results.metrics().to_dicts()
    }
    carried = {link: wide["utilisation", None, None, link] / 100 * rate for link, rate in (("A", 8), ("B", 3))}
    on_a = wide["throughput", "mp", "sf1", None] + wide["throughput", "tcp", None, None]
    assert on_a == pytest.approx(carried["A"], rel=0.05)
    assert wide["throughput", "mp", "sf2", None] == pytest.approx(carried["B"], rel=0.05)
    assert 0 < wide["goodput", "mp", None, None] < wide["throughput", "mp", None, None]
    # 8 + 3 for two connections, and all of it for one until the other starts, within the first 0.3 of 3 s.
    assert 5.5 < wide["ideal", "mp", None, None] <= 5.5 * (1 + 0.3 / 3)
    assert wide["rtt_mean", "tcp", None, None] > 12  # base RTT of A
    assert wide["rtt_mean", "mp", "sf2", None] > 34


def test_same_scenario_and_seed_give_the_same_bytes(scenario: Path, tmp_path: Path) -> None:
    directories = [tmp_path / name for name in ("one", "again", "many")]
    for directory, jobs in zip(directories, (1, 1, 4), strict=True):
        mptcplab.run(scenario, jobs=jobs, out=directory)
    for name in TABLES:
        first, *others = [(directory / f"{name}.parquet").read_bytes() for directory in directories]
        assert all(other == first for other in others), name


def test_another_seed_gives_another_trace(scenario: Path) -> None:
    one, other = (mptcplab.run(scenario, cc="reno", reps=1, seed=seed) for seed in (1, 2))
    assert not one.subflow.equals(other.subflow)


def test_repetitions_of_different_algorithms_share_their_random_numbers(scenario: Path) -> None:
    results = mptcplab.run(scenario, cc=["lia", "olia"], reps=2)
    starts = results.event.with_columns(pl.col("kind", "flow").cast(pl.String)).filter(kind="flow_started", flow="tcp")
    offsets = dict(starts.select("run", "t_ns").iter_rows())
    assert offsets[0] == offsets[2]
    assert offsets[1] == offsets[3]
    assert offsets[0] != offsets[1]


def test_overrides_reach_the_engine(scenario: Path) -> None:
    results = mptcplab.run(
        scenario, cc="reno", reps=1, duration="2 s", profile="rfc", settings={"links.B.rate": '"1 Mbit/s"'}
    )
    assert results.runs["duration_ns"].to_list() == [2_000_000_000]
    assert results.runs["profile"].to_list() == ["rfc"]
    assert results.topologies[0].links["B"].rate_bps == 1e6


def test_a_temporary_result_lives_as_long_as_its_object(scenario: Path) -> None:
    results = mptcplab.run(scenario, cc="reno", reps=1, duration="2 s")
    directory = results.directory
    assert directory.is_dir()
    del results
    assert not directory.exists()


def test_load_opens_what_run_wrote(scenario: Path, tmp_path: Path) -> None:
    written = mptcplab.run(scenario, cc="reno", out=tmp_path / "out")
    loaded = mptcplab.load(tmp_path / "out")
    assert loaded.summary().equals(written.summary())


def test_progress_ends_complete_and_never_goes_back(scenario: Path) -> None:
    seen: list[tuple[int, int, float, float]] = []
    mptcplab.run(scenario, progress=lambda *now: seen.append(now))
    assert seen[-1][0] == seen[-1][1] == 4
    assert seen[-1][2] == pytest.approx(12.0, abs=1)
    assert seen == sorted(seen)


@pytest.mark.parametrize("low", [False, True])
def test_threads_that_give_way_are_none_of_the_callers(scenario: Path, tmp_path: Path, *, low: bool) -> None:
    """A thread without privileges could not take it back."""
    thread, seen = threading.get_native_id(), []

    def look(*_: float) -> None:
        priorities = {}
        for task in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):
                priorities[int(task.name)] = os.getpriority(os.PRIO_PROCESS, int(task.name))
        seen.append((priorities.pop(thread), max(priorities.values(), default=0)))

    before = os.getpriority(os.PRIO_PROCESS, thread)
    sim.run(str(scenario), tmp_path, '{"duration": "200 s"}', jobs=2, progress=look, low_priority=low)
    assert {own for own, _ in seen} == {before}
    assert (19 in {highest for _, highest in seen}) == low


def test_an_exception_in_progress_leaves_no_result_but_the_finished_runs(scenario: Path, tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        mptcplab.run(scenario, out=tmp_path / "deep" / "out", progress=stop)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out.partial"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda path: mptcplab.load(path / "nowhere"), mptcplab.ResultsError, "no such results directory"),
        (lambda path: mptcplab.load(path), mptcplab.ResultsError, "run.parquet is missing"),
        (lambda path: mptcplab.run(path / "x.toml"), mptcplab.ScenarioError, "x.toml"),
        (lambda path: mptcplab.check(path / "y.toml"), mptcplab.ScenarioError, "y.toml"),
        (lambda path: mptcplab.vectors(path / "v.json"), mptcplab.ScenarioError, "v.json"),
    ],
)
def test_errors_are_those_of_the_package_and_name_the_cause(
    tmp_path: Path, call: object, error: type[Exception], message: str
) -> None:
    assert issubclass(error, mptcplab.MptcplabError)
    with pytest.raises(error, match=message):
        call(tmp_path)


def test_the_algorithms_are_the_files_of_the_folder() -> None:
    root = Path(__file__).resolve().parents[2]
    assert [a["name"] for a in mptcplab.algorithms()] == sorted(path.stem for path in (root / "algorithms").glob("*.c"))


# Every file of the folder includes these: the contract and the headers of both builds.
CONTRACT = ("cc.h", "cc_bpf.h", "cc_native.h", "cc_record.h", "cc_types.h")


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("reno", ()),
        ("olia", ("dialect.h", "olia-dialect.h", "olia.h")),
        ("adw-balia", ("balia-dialect.h", "balia.h", "dialect.h")),
        ("group-lia", ("lia.h",)),
        ("dlia", ("dialect.h", "dynamic.h", "lia-dialect.h", "lia.h")),
    ],
)
def test_the_source_of_an_algorithm_is_its_file_and_the_headers_it_includes(
    name: str, headers: tuple[str, ...]
) -> None:
    folder = Path(__file__).resolve().parents[2] / "algorithms"
    wanted = hashlib.sha256()
    for file in sorted([*CONTRACT, f"{name}.c", *headers]):
        for part in (file.encode(), (folder / file).read_bytes()):
            wanted.update(len(part).to_bytes(8, "little") + part)
    sources = {algorithm["name"]: algorithm["source"] for algorithm in mptcplab.algorithms()}
    assert sources[name] == wanted.hexdigest()


def test_every_algorithm_has_a_source_of_its_own_and_the_engine_another() -> None:
    digests = [algorithm["source"] for algorithm in mptcplab.algorithms()]
    digests.append(_core.build_info()["engine"])
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
    assert len(set(digests)) == len(digests)
    assert [a["source"] for a in mptcplab.algorithms()] == digests[:-1]
    assert _core.build_info()["engine"] == digests[-1]


def test_only_beside_another_engine_an_engine_leaves_out_what_it_refuses() -> None:
    def settings(engine: str, *engines: str, **asked: str) -> dict[str, str]:
        overrides = Overrides(settings={key.replace("_", ".", 1): value for key, value in asked.items()})
        return dict(Sweep("a.toml", overrides, engines)._overrides(engine).settings)

    none = {"tcp.send_jitter": '"0 s"', "tcp.host_delay": '"0 s"'}
    assert settings("kernel", "sim", "kernel") == none == dict(KERNEL.requires)
    assert settings("kernel", "kernel") == settings("sim", "sim", "kernel") == {}
    asked = {"tcp_send_jitter": '"2 ms"'}
    assert settings("kernel", "sim", "kernel", **asked) == none | {"tcp.send_jitter": '"2 ms"'}


def test_repetitions_of_the_simulator_need_another_engine() -> None:
    with pytest.raises(mptcplab.MptcplabError, match="beside no other engine in sim: 7"):
        Sweep("a.toml", Overrides(), ("sim",), sim_reps=7)
