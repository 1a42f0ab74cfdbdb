"""Runs on a cluster of Dask: real workers, of which some die or have another build, and the same bytes as here."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import in_process
from conftest import ROOT

import mptcplab
from mptcplab import _core
from mptcplab.engines.digests import run_digests
from mptcplab.errors import DamagedResultWarning, EngineError, MptcplabError, ScenarioError

pytest.importorskip("distributed", reason="SKIPPED, NOT TESTED: Dask is not installed")
from dask_cluster import Processes, other_build, scheduler

from mptcplab.cluster import batches, build, connect, tasks
from mptcplab.cluster.connect import address_in, connected
from mptcplab.cluster.inputs import Inputs
from mptcplab.cluster.urlstore import UrlStore, packed, unpacked
from mptcplab.study import elsewhere
from mptcplab.study.cell import RunSpec
from mptcplab.study.measure import TIME_SERIES, VALUES
from mptcplab.study.store import Store
from mptcplab.study.sweeps import Task

DEMO = "scenarios/dolia-scenario-1.toml"
# 12 runs that are tasks of their own, of some tenths of a second each.
SETTINGS = {"cc": "lia,reno", "reps": 4, "duration": "80 s"}


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory, s3: str) -> Iterator[Processes]:
    """A scheduler with three workers that reach the bucket, one of which is to die, and one of another build."""
    keys = {"AWS_ENDPOINT_URL": s3, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    before = dict(os.environ)
    os.environ.update({**keys, "AWS_DEFAULT_REGION": "us-east-1"})
    with scheduler(tmp_path_factory.mktemp("dask"), keys) as found:
        found.start("other", package=other_build(tmp_path_factory.mktemp("other")))
        found.start("one", "two", "dies")
        found.wait_for(4)
        yield found
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run of the sweep is a task."""
    monkeypatch.setattr(batches, "_WORK", 0.1)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of an S3 server."""
    server = pytest.importorskip("moto.server", reason="SKIPPED, NOT TESTED: moto is not installed")
    found = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    found.start()
    host, port = found.get_host_and_port()
    yield f"http://{host}:{port}"
    found.stop()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the sweep as this machine makes them."""
    out = tmp_path_factory.mktemp("here") / "out"
    mptcplab.run(DEMO, out=out, progress=False, **SETTINGS)
    return content(out)


def content(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_a_worker_dies_and_one_has_another_build_and_the_bytes_are_the_same(
    dask: Processes, here: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def kill_once(done: int, *_: float) -> None:
        if done >= 2 and "dies" in dask.workers:
            os.kill(dask.workers["dies"].pid, signal.SIGKILL)
            dask.end("dies")

    mptcplab.run(DEMO, out=tmp_path / "out", client=dask.on, progress=kill_once, **SETTINGS)
    assert "dies" not in dask.workers
    assert content(tmp_path / "out") == here
    said = capsys.readouterr().err
    assert "3 workers with 3 threads" in said
    assert "gets no work: another build: Python modules" in said
    assert said.count(build.own()["Python modules"][:12]) == 1
    dask.end("other")


def test_without_a_worker_of_this_build_the_error_names_both(dask: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = {**build.own(), "polars": "0.1"}
    monkeypatch.setattr(build, "own", lambda: mine)
    with pytest.raises(EngineError, match=r"no worker has this build: tcp://.*polars .* there, polars 0\.1 here"):
        mptcplab.run(DEMO, client=dask.on, progress=False, **SETTINGS)


def test_what_is_finished_is_kept_and_the_same_call_goes_on(
    dask: Processes, here: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(done: int, *_: float) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mptcplab.run(DEMO, out=tmp_path / "out", client=dask.on, progress=interrupt, **SETTINGS)
    assert "keeps 3 finished runs, with which the same command goes on" in capsys.readouterr().err
    mptcplab.run(DEMO, out=tmp_path / "out", client=dask.on, **SETTINGS)
    assert "found 3 of 8 runs in" in capsys.readouterr().err
    assert content(tmp_path / "out") == here


def test_results_are_in_a_bucket_and_are_not_made_again(
    dask: Processes, here: dict[str, bytes], tmp_path: Path
) -> None:
    url = "s3://mptcplab-test/runs"
    mptcplab.run(DEMO, out=tmp_path / "first", client=dask.on, store=url, progress=False, **SETTINGS)
    assert content(tmp_path / "first") == here
    stored = UrlStore(url).keys()
    assert len(stored) == 8
    # The next call has to make this one, and takes all others as they are.
    UrlStore(url)._place[0].pipe_file(f"mptcplab-test/runs/{min(stored)}.zip", b"damaged")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mptcplab.run(DEMO, out=tmp_path / "second", client=dask.on, store=url, progress=False, **SETTINGS)
    assert [one.category for one in caught] == [DamagedResultWarning]
    assert content(tmp_path / "second") == here


def test_a_store_is_where_the_command_is_called_and_not_where_workers_are(
    dask: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers took a relative path for one in their own directory."""
    monkeypatch.chdir(tmp_path)
    demo = ROOT / DEMO
    mptcplab.run(demo, out="out", client=dask.on, store="shared", progress=False, **{**SETTINGS, "reps": 1})
    assert len(list((tmp_path / "shared").glob("*.zip"))) == 2


def test_cells_of_a_study_are_the_same_as_here(dask: Processes, tmp_path: Path) -> None:
    from mptcplab.studies.goals import Grid

    grid = Grid(("shared",), (2.0,), (0.0,), (1.0,), ("cubic",), repetitions=2, duration_s=12, warmup_s=6)
    mptcplab.goals("lia", tmp_path / "here", grid=grid)
    mptcplab.goals("lia", tmp_path / "there", grid=grid, client=dask.on)
    assert content(tmp_path / "here") == content(tmp_path / "there")


def test_an_algorithm_of_the_user_goes_with_the_task(dask: Processes, tmp_path: Path) -> None:
    source = (ROOT / "algorithms" / "template.c").read_text().replace("template", "mine").replace("TEMPLATE", "MINE")
    (tmp_path / "mine.c").write_text(source)
    wanted = {**SETTINGS, "cc": str(tmp_path / "mine.c"), "reps": 1}
    mptcplab.run(DEMO, out=tmp_path / "here", progress=False, **wanted)
    mptcplab.run(DEMO, out=tmp_path / "there", client=dask.on, progress=False, **wanted)
    assert content(tmp_path / "here") == content(tmp_path / "there")


def test_a_task_runs_the_version_of_an_algorithm_that_it_brings() -> None:
    """Another version comes to the same worker in between."""
    text = (ROOT / "algorithms" / "template.c").read_text().replace("template", "mine").replace("TEMPLATE", "MINE")
    overrides = json.dumps({"cc": ["mine"], "reps": 1, "duration": "20 s"})
    orders = []
    for version in (text, text.replace(".initial = 0.5", ".initial = 0.9")):
        _core.load_algorithm("mine", version, "mine.c")
        digests = run_digests(DEMO, overrides, "sim")
        orders += batches._batches(Inputs.of(Path(DEMO), overrides), overrides, "sim", {0}, digests, DEMO)
    one, other = orders
    made = [batches.make(order) for order in (one, other, one)]
    assert made[0] == made[2]
    assert made[0] != made[1]
    with pytest.raises(EngineError, match="a worker would run something else than"):
        batches.make(replace(one, runs=other.runs))


def test_what_an_engine_refuses_is_said_with_the_line_of_the_file_here(dask: Processes, tmp_path: Path) -> None:
    file = tmp_path / "bbr.toml"
    file.write_text(re.sub(r"(?m)^cc = .*", 'cc = ["bbr"]', (ROOT / DEMO).read_text()))
    with pytest.raises(ScenarioError, match=rf"{file}:\d+"):
        mptcplab.run(file, engine="fluid", client=dask.on, progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"client": "slurm"}, "no such cluster: --on 'slurm'"),
        ({"client": 7}, "not a client of Dask: 7"),
        ({"client": "dask:tcp://127.0.0.1:99999"}, "not the address of a scheduler"),
        ({"client": "dask:inproc://x"}, "not the address of a scheduler"),
        ({"store": "runs"}, "a store without a cluster"),
        ({"client": "dask", "store": "nothing://runs"}, "not a place for results: --store nothing://runs"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(MptcplabError, match=message):
        mptcplab.run(DEMO, progress=False, **options)


@pytest.mark.parametrize("address", ["10.0.0.1:8786", "tcp://[::1]:8786", "tls://head-1.example:1", "inproc://1/2/3"])
def test_an_address_has_a_port_and_may_have_a_protocol(address: str) -> None:
    assert address_in(f"dask:{address}") == address


def test_a_client_that_cannot_be_made_is_an_error_and_nothing_else() -> None:
    """Its destructor waited for a minute, and printed a traceback."""
    started = time.monotonic()
    done = in_process("run", DEMO, "--on", "dask:none://10.0.0.1:8786", cwd=ROOT)
    assert time.monotonic() - started < 45
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"error: no scheduler of Dask at none://10\.0\.0\.1:8786: .*\n\nhint: start one .*\n", done.stderr
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, r"no answer within 1 s|Connection refused"),
        (b"", "no answer within 1 s"),
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "another program answers there"),
    ],
)
def test_where_no_scheduler_listens_it_is_said_soon(
    said: bytes | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is silent was waited for without end, and an HTTP server was a MemoryError and a traceback."""
    monkeypatch.setattr(connect, "_CONNECT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        if said is None:
            server.close()

        def answer() -> None:
            with suppress(OSError):
                while True:
                    one, _ = server.accept()
                    stack.callback(one.close)
                    one.sendall(said or b"")

        threading.Thread(target=answer, daemon=True).start()
        started = time.monotonic()
        hint = r"hint: start one with: .* such as tcp://10\.0\.0\.1:8786"
        with (
            pytest.raises(EngineError, match=rf"no scheduler of Dask at {address}: ({why})\n\n{hint}"),
            connected(f"dask:{address}", None, ["sim"]),
        ):
            pass
        assert time.monotonic() - started < 10


class Now:
    """The client of a cluster that does a task when it gets it; also the finished task, which has only one owner."""

    status = "finished"
    scheduler = SimpleNamespace(address="tcp://10.0.0.1:8786")

    def __init__(self, result: object = None) -> None:
        self.value = result
        self.keys: list[str] = []

    def nthreads(self) -> dict[str, int]:
        return {"a": 1}

    def run(self, *_: object, workers: list[str], **__: object) -> dict[str, str]:
        return dict.fromkeys(workers, build.described())

    def submit(self, call: Callable[..., object], *given: object, key: str, **_: object) -> Now:
        self.keys.append(key)
        return Now(call(*given))

    def add_done_callback(self, tell: Callable[[Now], None]) -> None:
        tell(self)

    def result(self) -> object:
        return self.value


def test_what_a_store_has_is_looked_up_once_whatever_else_it_has(tmp_path: Path) -> None:
    """Every result that came in compared all that waited with all that the store had."""
    store = UrlStore(str(tmp_path))
    items = [f"{number:03}" for number in range(200)]
    for item in items[:50]:
        store.put(f"key-{item}", {"stored.json": item.encode()})
    store.put("key-of-another-study", {})
    asked: list[str] = []

    def key(item: str) -> str:
        asked.append(item)
        return f"key-{item}"

    client = Now()
    with tasks.Tasks(connect.Cluster(client, print, store), lambda item: {"made.json": item.encode()}, key) as work:
        work.add(items[:120])
        found = {}
        for item, result in work.results():
            found[item] = result.files
            if item == "119":
                # One that is stored, after all others, and new ones.
                work.add(items[:1] + items[120:])
    assert found == {item: {"stored.json" if item < "050" else "made.json": item.encode()} for item in items}
    assert len(client.keys) == 150
    assert len(asked) < 5 * len(items)


def test_a_stored_cell_without_samples_is_none_with_samples(tmp_path: Path) -> None:
    spec = RunSpec(ROOT / DEMO, "lia", None, 1, 5, (("duration", "12 s"), ("warmup", "4 s")), ("goodput",))
    shared = UrlStore(str(tmp_path / "shared"))
    shared.prepare()
    cluster = connect.Cluster(Now(), print, shared)
    for number, samples in enumerate((False, True, False)):
        own = Store(tmp_path / str(number))
        own.prepare()
        cell = replace(spec, time_series=samples)
        task = Task(cell.digest("sim"), cell, 1.0)
        work = elsewhere.Tasks(cluster, "sim", own)
        work.add([[task]])
        assert [one for one, _ in work.results()] == [[task]]
        assert own.has(task.digest, VALUES)
        assert own.has(task.digest, TIME_SERIES) == samples


def test_that_no_worker_is_left_is_said_once_each_time() -> None:
    """Work waited for new workers without a word."""
    said: list[str] = []
    there: list[dict[str, int]] = [{"a": 1, "b": 2}, {"b": 2}, {}, {}, {"c": 4}, {}]
    client = SimpleNamespace(
        nthreads=lambda: there.pop(0),
        run=lambda *_, workers, **__: dict.fromkeys(workers, build.described()),
        scheduler=SimpleNamespace(address="tcp://10.0.0.1:8786"),
    )
    cluster = connect.Cluster(client, said.append)
    counts = []
    while there:
        cluster.look()
        counts.append(len(said))
    assert counts == [0, 0, 1, 1, 1, 2]
    assert set(said) == {"no worker is left: waiting for workers of tcp://10.0.0.1:8786"}


def test_an_engine_with_sockets_is_refused() -> None:
    with (
        pytest.raises(MptcplabError, match="the engine kernel runs on this machine only"),
        connected("dask", None, ["kernel"]),
    ):
        pass


def test_a_store_keeps_no_file_outside_of_its_result() -> None:
    files = {"000001/run.parquet": b"rows", "digest.json": b"{}"}
    assert unpacked(packed(files)) == files
    for name in ("../run.parquet", "/run.parquet", "a/../../b", "a/b/c"):
        with pytest.raises(zipfile.BadZipFile, match="not the name of a file"):
            unpacked(packed({name: b""}))


def test_a_file_of_the_store_with_a_flipped_bit_is_damaged_or_the_same(tmp_path: Path) -> None:
    files = {"runs.parquet": b"\x00\x01\x02", "sim/flow.parquet": b"data" * 3}
    whole = packed(files)
    damaged = 0
    for bit in range(8 * len(whole)):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        try:
            assert unpacked(bytes(content)) == files
        except zipfile.BadZipFile:
            damaged += 1
    assert damaged > 4 * len(whole)
    assert UrlStore(str(tmp_path)).get("gone") is None
