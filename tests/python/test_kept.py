"""Finished runs are never lost: after a signal, an error or a full disk the next run goes on, with the same bytes."""

from __future__ import annotations

import fcntl
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from command_line import program

import mptcplab
from mptcplab import kept
from mptcplab.errors import DamagedResultWarning, OutputError, ResultsError
from mptcplab.output import TABLES, Numbered
from mptcplab.scenario import Overrides
from mptcplab.sweep import Sweep

TEXT = """\
title = "Runs that are kept"
duration = "3 s"
warmup = "1 s"
repetitions = 3
cc = ["lia", "olia"]

[links.A]
from = "S"
to = "D"
rate = "4 Mbit/s"
delay = "7 ms"
loss = "0.3 %"

[links.B]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "13 ms"

[flows.mp]
paths = [["A"], ["B"]]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kept.toml"
    path.write_text(TEXT)
    return path


def content(directory: Path) -> dict[str, bytes]:
    """All files of a result."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


class Said(list[str]):
    """The lines that a sweep says."""


def run(file: Path, out: Path | Numbered, *, force: bool = False, engine: str = "sim", **changes: object) -> Said:
    """Run a sweep; return what it says."""
    said = Said()
    asked = {"cc": None, "reps": None, "seed": None, "profile": None, "duration": None, "settings": None}
    overrides = Overrides.of(**{**asked, **changes})  # type: ignore[arg-type]
    Sweep(str(file), overrides, tuple(engine.split(",")), jobs=1, say=said.append).run(out, force=force)
    return said


def command(file: Path, *words: str) -> list[str]:
    return program("run", file, "--no-report", *words)


# Some seconds of work in runs of a few tenths.
LONG = ("--reps", "120", "--duration", "60 s", "--jobs", "1")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_signal_loses_no_finished_run(file: Path, tmp_path: Path, number: signal.Signals, code: int) -> None:
    out, held = tmp_path / "o", tmp_path / "o.partial"
    child = subprocess.Popen(command(file, *LONG, "--out", str(out)), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(held.glob("sim/000001/run.parquet")):
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == code, said
    assert not out.exists()
    finished = len(kept.runs_of(kept.traces_in(held)))
    assert 0 < finished < 240
    if number != signal.SIGKILL:
        assert f"{held} keeps {finished} finished runs, with which the same command goes on" in said
        assert said.splitlines()[-1] == {130: "error: interrupted", 143: "error: ended by SIGTERM"}[code]
    # The same sweep, but with shorter runs, which are made anew; the finished ones stay for their own sweep.
    again = run(file, out, reps=1)
    assert f"{finished} finished runs in {held} cannot be used, because of another scenario" in again[0]
    assert f"{held} still has {finished} finished runs of another sweep" in again[-1]
    shutil.rmtree(out)
    said = run(file, out, reps=40, duration="60 s", cc="lia")
    assert [line for line in said if "making" in line] == [
        f"found {min(finished, 40)} of 40 runs in {held}; making {40 - min(finished, 40)}"
    ]


def test_an_unfinished_result_is_named_where_it_is_read(file: Path, tmp_path: Path) -> None:
    """Its finished runs were not mentioned: "`mptcplab run` prints where it wrote them"."""
    out = tmp_path / "o"
    run(file, tmp_path / "former")
    with kept.workspace(out) as space:
        shutil.copytree(tmp_path / "former", space.place("sim") / "000001")
    with pytest.raises(ResultsError) as caught:
        mptcplab.load(out)
    hint = f"it is not complete: the command that writes it goes on with the finished runs in {out}.partial"
    assert str(caught.value) == f"no such results directory: {out}\n\nhint: {hint}"


def test_what_is_resumed_has_the_bytes_of_one_sweep(file: Path, tmp_path: Path) -> None:
    run(file, tmp_path / "whole")
    held = tmp_path / "o.partial"
    # Other runs than the first, which an interrupted sweep has made last.
    Sweep(str(file), Overrides.of("olia", 2, None, None, None, None), ("sim",), jobs=1).run(tmp_path / "other")
    with kept.workspace(tmp_path / "o") as space:
        shutil.copytree(tmp_path / "other", space.place("sim") / "000077")
    said = run(file, tmp_path / "o")
    assert any("making" in line and str(held) in line for line in said)
    assert content(tmp_path / "o") == content(tmp_path / "whole")
    assert not held.exists()


def test_a_result_is_extended_to_the_bytes_of_one_sweep(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    run(file, out, reps=2)
    before = content(out)
    nothing = [f"nothing to make: {out} has 4 finished runs; --force makes them again"]
    assert run(file, out, reps=2) == nothing
    assert content(out) == before
    # A process was killed while it wrote what it derives from the traces.
    (out / "metrics.csv.partial").touch()
    assert run(file, out, reps=2) == nothing
    (out / "metrics.csv.partial").unlink()
    assert run(file, out, reps=5, cc="lia,balia,olia") == [f"found 4 of 15 runs in {out}; making 11"]
    run(file, tmp_path / "whole", reps=5, cc="lia,balia,olia")
    assert content(out) == content(tmp_path / "whole")
    # Fewer repetitions would lose runs, so they are refused.
    with pytest.raises(OutputError, match=r"it has all 4 runs of this sweep; 11 more would be lost\n.*mptcplab report"):
        run(file, out, reps=2)
    settings = r"because of another scenario or other settings \(seed: 1 and 9\)\n"
    with pytest.raises(OutputError, match=rf"15 runs of it are not of this sweep, {settings}"):
        run(file, out, reps=2, seed=9)
    assert content(out) == content(tmp_path / "whole")
    assert run(file, out, reps=2, force=True) == []
    assert content(out) == before


def test_every_engine_extends(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    run(file, out, reps=1, engine="sim,fluid")
    said = run(file, out, reps=2, engine="sim,fluid")
    assert said == [f"found 2 of 4 runs on {engine} in {out / engine}; making 2" for engine in ("sim", "fluid")]
    run(file, tmp_path / "whole", reps=2, engine="sim,fluid")
    assert content(out) == content(tmp_path / "whole")


def test_the_fluid_extends_to_the_same_bytes_where_flows_start_at_random(file: Path, tmp_path: Path) -> None:
    """The first run that was solved found the equilibria of all, and counted what that took."""
    file.write_text(TEXT.replace("[flows.mp]", '[flows.t]\npath = ["A"]\nstart = "uniform(0 s, 2 s)"\n\n[flows.mp]'))
    out = tmp_path / "o"
    run(file, out, reps=1, engine="fluid", cc="olia")
    assert run(file, out, reps=3, engine="fluid") == [f"found 1 of 6 runs in {out}; making 5"]
    run(file, tmp_path / "whole", reps=3, engine="fluid")
    assert content(out) == content(tmp_path / "whole")
    counts = pl.read_parquet(out / "run.parquet").sort("run")["events"].to_list()
    # Only the first repetition of an algorithm counts what its equilibria took.
    assert counts[0] > 1.5 * max(counts[1:3]) and counts[3] > 1.5 * max(counts[4:])


def test_another_value_of_a_sweep_is_added(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    two = {"links.A.loss": "0.1 %, 1 %"}
    run(file, out, sweep=two, reps=1)
    three = {"links.A.loss": "0.1 %, 0.4 %, 1 %"}
    assert run(file, out, sweep=three, reps=1) == [f"found 4 of 6 runs in {out}; making 2"]
    run(file, tmp_path / "whole", sweep=three, reps=1)
    assert content(out) == content(tmp_path / "whole")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text.replace("13 ms", "14 ms"), "another scenario or other settings"),
        (lambda text: text, "another build or kernel"),
    ],
)
def test_what_has_changed_is_made_again_and_named(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str], reason: str
) -> None:
    out = tmp_path / "o"
    run(file, tmp_path / "former")
    with kept.workspace(out) as space:
        shutil.copytree(tmp_path / "former", space.place("sim") / "000001")
    file.write_text(change(file.read_text()))
    if "build" in reason:
        monkeypatch.setattr("mptcplab.engines.digests.engine_digest", lambda _: "another")
    said = run(file, out)
    assert said[0] == f"6 finished runs in {out}.partial cannot be used, because of {reason}"
    assert not any("making" in line for line in said)
    assert (tmp_path / "o.partial" / "sim" / "000001").is_dir()


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        # Repetitions have schedules of their own, which were told as the difference.
        ({}, {"settings": {"links.B.rate": "5 Mbit/s"}}, r"links\.B\.rate_bps: 3000000 and 5000000; "),
        ({}, {"seed": 9}, r"seed: 1 and 9\)"),
        # Of two values, that which is new.
        (
            {"settings": {"links.A.loss": ["1 %", "3 %"]}},
            {"settings": {"links.A.loss": ["1 %", "2 %"]}},
            r"links\.A\.loss\.p: 0\.03 and 0\.02\)",
        ),
        # Nothing was told of another algorithm.
        ({"cc": "lia"}, {"cc": "balia"}, r"cc: lia and balia\)"),
    ],
)
def test_what_differs_is_told_of_runs_that_belong_together(
    file: Path, tmp_path: Path, first: dict[str, object], second: dict[str, object], reason: str
) -> None:
    for rep, mbps in enumerate((6, 2, 8)):
        (tmp_path / f"A-{rep}.csv").write_text(f"at_ms,rate_bps\n1500,{mbps}000000\n")
    file.write_text(TEXT.replace('delay = "7 ms"', 'delay = "7 ms"\nschedule_file = "A-{rep}.csv"'))
    out = tmp_path / "o"
    run(file, out, **first)
    with pytest.raises(OutputError, match=rf"because of another scenario or other settings \({reason}"):
        run(file, out, **second)


def test_a_comment_in_the_scenario_makes_nothing_again(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    run(file, out)
    file.write_text(f"# A comment.\n{TEXT}")
    assert run(file, out) == [f"found 6 of 6 runs in {out}; making 0"]
    assert "# A comment." in mptcplab.load(out).runs["scenario_toml"][0]


def test_damaged_runs_are_named_and_made_again(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    run(file, tmp_path / "whole")
    with kept.workspace(out) as space:
        for number, name in enumerate(TABLES, 1):
            place = space.place("sim") / f"{number:06}"
            shutil.copytree(tmp_path / "whole", place)
            table = bytearray((place / f"{name}.parquet").read_bytes())
            table[len(table) // 2] ^= 8
            (place / f"{name}.parquet").write_bytes(table)
    with pytest.warns(DamagedResultWarning, match=r"are made again: the trace is damaged: .*o\.partial/sim/00000\d"):
        assert run(file, out) == []
    assert content(out) == content(tmp_path / "whole")


def test_a_result_whose_runs_cannot_be_listed_is_refused_as_damaged(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    run(file, out, reps=1)
    before = content(out)
    table = (out / "run.parquet").read_bytes()
    digest = pl.col("digest")
    other = io.BytesIO()
    pl.read_parquet(io.BytesIO(table)).with_columns(digest.str.replace(r"^.", "x")).write_parquet(other)
    # Cut off, without the mark at its end, and complete but with the digests of other runs.
    for damaged in (table[: len(table) // 3], table[:-3] + b"\0" + table[-2:], other.getvalue()):
        (out / "run.parquet").write_bytes(damaged)
        with pytest.raises(OutputError, match=r"(?s)has a damaged result: .*--force to make it again"):
            run(file, out, reps=1)
    run(file, out, reps=1, force=True)
    assert content(out) == before


def test_a_result_whose_runs_can_be_listed_is_made_again_where_it_is_damaged(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    run(file, out, reps=1)
    before = content(out)
    table = out / "run.parquet"
    changed = io.BytesIO()
    pl.read_parquet(table).with_columns(pl.col("seed") + 1).write_parquet(changed)
    table.write_bytes(changed.getvalue())
    with pytest.warns(DamagedResultWarning, match=r"are made again: the trace is damaged: .*o/run\.parquet does not"):
        run(file, out, reps=1)
    assert content(out) == before


def test_a_directory_of_somebody_else_is_not_used(file: Path, tmp_path: Path) -> None:
    held = tmp_path / "o.partial"
    held.mkdir()
    (held / "thesis.tex").write_text("dear")
    with pytest.raises(OutputError, match=r"not a directory of unfinished runs: .*o\.partial"):
        run(file, tmp_path / "o")
    assert [path.name for path in held.iterdir()] == ["thesis.tex"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "p.partial").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=r"not a directory: .*p\.partial"):
        run(file, tmp_path / "p")


def test_two_runs_do_not_write_to_one_result(file: Path, tmp_path: Path) -> None:
    with kept.workspace(tmp_path / "results" / "kept"):
        with pytest.raises(OutputError, match=r"another run is writing to .*results/kept\n\nhint: wait"):
            run(file, tmp_path / "results" / "kept")
        # Without --out the next directory is taken.
        run(file, Numbered(file, tmp_path / "results"))
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["kept-2"]


def test_a_lock_on_a_directory_that_has_gone_protects_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run ends, and removes what it kept, between the opening of its directory and the lock on it."""
    place, real, again = tmp_path / "o.partial", kept._lock, []

    def late(descriptor: int, *how: float) -> bool:
        if not again:
            place.rename(tmp_path / "gone")
        again.append(descriptor)
        return real(descriptor, *how)

    monkeypatch.setattr(kept, "_lock", late)
    with kept.workspace(tmp_path / "o"):
        assert len(again) == 2
        assert (place / "README.txt").is_file()
        assert kept.is_in_use(tmp_path / "o")


def test_a_question_whether_a_directory_is_in_use_keeps_nobody_from_it(tmp_path: Path) -> None:
    place = tmp_path / "o.partial"
    place.mkdir()
    asking = os.open(place, os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    assert not kept.is_in_use(tmp_path / "o")
    threading.Timer(0.02, os.close, [asking]).start()
    with kept.workspace(tmp_path / "o"):
        assert kept.is_in_use(tmp_path / "o")


def test_what_a_run_that_is_under_way_has_finished_is_left_to_it(file: Path, tmp_path: Path) -> None:
    """It removes that when it ends, so that another run of the scenario may not count on it."""
    place = tmp_path / "results"
    run(file, tmp_path / "other", seed=9)
    with kept.workspace(place / "kept") as space:
        shutil.copytree(tmp_path / "other", space.place("sim") / "000001")
        assert run(file, Numbered(file, place), seed=9) == []
        assert len(space.runs()) == 6
    assert sorted(path.name for path in place.iterdir()) == ["kept-2", "kept.partial"]


def test_without_a_directory_results_of_the_scenario_are_extended_or_numbered(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "results"
    run(file, Numbered(file, place), reps=1)
    run(file, Numbered(file, place), reps=2)
    said = run(file, Numbered(file, place), reps=2, force=True)
    assert not any(line.startswith("nothing to make") for line in said)
    assert [path.name for path in place.iterdir()] == ["kept"]
    run(file, Numbered(file, place), seed=5, reps=1)
    assert sorted(path.name for path in place.iterdir()) == ["kept", "kept-2"]
    # Runs that another unfinished result of the scenario has are used, and removed there.
    run(file, tmp_path / "other", seed=9)
    with kept.workspace(place / "kept") as space:
        shutil.copytree(tmp_path / "other", space.place("sim") / "000001")
    said = run(file, Numbered(file, place), seed=9)
    assert said == [f"found 6 of 6 runs in {place / 'kept.partial'}; making 0"]
    assert sorted(path.name for path in place.iterdir()) == ["kept", "kept-2", "kept-3"]


def test_a_full_disk_loses_no_finished_run(file: Path, tmp_path: Path) -> None:
    """No file may grow beyond 60 kB: single runs can be kept, but not the trace of all."""
    out, held = tmp_path / "o", tmp_path / "o.partial"
    words = command(file, "--reps", "12", "--jobs", "1", "--out", str(out))
    limit = 60_000

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    run(file, tmp_path / "some", reps=1)
    with kept.workspace(out) as space:
        shutil.copytree(tmp_path / "some", space.place("sim") / "000001")
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=small, check=False)
    assert done.returncode == 2, done.stderr
    assert "error: cannot write" in done.stderr
    assert "finished runs, with which the same command goes on" in done.stderr
    assert "internal error" not in done.stderr
    assert not out.exists()
    said = run(file, out, reps=12)
    assert str(held) in said[0]
    assert "making" in said[0]
    run(file, tmp_path / "whole", reps=12)
    assert content(out) == content(tmp_path / "whole")


def test_the_run_table_has_digests_in_three_parts(file: Path, tmp_path: Path) -> None:
    run(file, tmp_path / "o", reps=1)
    digests = [digest.split("-") for digest in mptcplab.load(tmp_path / "o").runs["digest"]]
    scenarios, algorithms, engines = ({digest[part] for digest in digests} for part in range(3))
    # Two algorithms, one build.
    assert (len(scenarios), len(algorithms), len(engines)) == (2, 2, 1)


def test_runs_that_do_not_count_are_made_again_in_real_time_only() -> None:
    def of(engine: str, status: str) -> kept.Run:
        return kept.Run(Path("t"), 0, "d", engine, status)

    counting = {
        (engine, status)
        for engine in ("sim", "kernel", "vm:bookworm")
        for status in ("complete", "invalid", "partial")
        if of(engine, status).counts
    }
    assert counting == {
        ("sim", "complete"),
        ("kernel", "complete"),
        ("vm:bookworm", "complete"),
        # It would be as busy again.
        ("vm:bookworm", "invalid"),
        ("sim", "invalid"),
    }


def test_json_says_the_same_after_a_resumption(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    words = [*command(file, "--out", str(out)), "--json"]
    texts = [subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ) for _ in range(2)]
    assert json.loads(texts[0].stdout) == json.loads(texts[1].stdout)
    assert "nothing to make" in texts[1].stderr
    assert pl.read_parquet(out / "run.parquet").height == 6


def test_a_kept_run_whose_digest_is_damaged_is_not_taken_for_another_sweep_s(
    file: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    result = mptcplab.run(file, reps=1, out=tmp_path / "r", progress=False).directory
    trace = kept.beside(result) / "sim" / "000001"
    shutil.copytree(result, trace)
    (kept.beside(result) / "README.txt").touch()
    rows = pl.read_parquet(trace / "run.parquet")
    with kept.workspace(result) as held:
        assert [run.digest for run in held.runs()] == rows["digest"].to_list()
        # A flipped bit: the table can be read, and says something else.
        rows.with_columns(pl.col("digest").str.replace("[0-9]", "x")).write_parquet(trace / "run.parquet")
        assert kept.runs_of(kept.traces_in(held.directory)) == []
        assert held.runs() == []
        assert [warning.category for warning in recwarn] == [DamagedResultWarning]
        assert held.clear(set()) == []
    assert not kept.beside(result).exists()
