"""The virtual machines of the engine `vm`: the same bytes twice, errors that arrive, and nothing that is left behind.

Without QEMU, a kernel or the kernel engine's program the tests are skipped with the reason.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from kernel_program import virtual_kernel
from tiny_paper import one_experiment

import mptcplab
from mptcplab import making
from mptcplab.engines import kernel as kernel_engine
from mptcplab.engines.vm import kept, mailbox, qemu, snapshot
from mptcplab.engines.vm.kernels import Kernel
from mptcplab.engines.vm.machine import Job, Outcome, run_jobs, versions
from mptcplab.engines.vm.prepared import Preparation, prepared
from mptcplab.errors import EngineError
from mptcplab.studies.agreement import matrix
from mptcplab.studies.agreement import page as agreement_page
from mptcplab.studies.goals.grid import Grid
from mptcplab.studies.goals.scenarios import RATE_1_MBPS, RATE_2_MBPS

ROOT = Path(__file__).parents[2]
SCENARIO = (ROOT / "tests/kernels/two-paths.toml").read_bytes()
PATIENCE_S = 600.0
# An emulated second takes about a second of the host's processor.
SHORT = {"cc": ["lia"], "duration": "1 s", "set": [["flows.transfer.traffic.size", '"400 kB"']]}


def _program() -> Path:
    try:
        return kernel_engine.program()
    except EngineError:
        built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/mptcplab-kernel"
        if not built.is_file():
            pytest.skip("the kernel engine is not built")
        return built


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return virtual_kernel("trixie-backports")


def _run(seed: int = 1) -> Job:
    words = ("run", "--in-machine", "--scenario", "/job/two-paths.toml", "--overrides", json.dumps(SHORT))
    return Job((*words, "--out", "/out/trace", "--json-progress"), {"two-paths.toml": SCENARIO}, seed, PATIENCE_S)


def _content(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def load() -> Iterator[None]:
    """A host with more to do than it can: beside a machine, every core has a process that wants it."""
    start = multiprocessing.get_context("spawn").Process
    busy = [start(target=_spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for process in busy:
        process.start()
    yield
    for process in busy:
        process.kill()
        process.join()


def _spin() -> None:
    while True:
        pass


def _outcomes(jobs: list[Job], tmp: Path, kernel: Kernel, machines: int = 1) -> list[tuple[Outcome, dict[str, bytes]]]:
    outs = [tmp / str(index) for index in range(len(jobs))]
    found = dict(run_jobs(jobs, outs, kernel=kernel, program=_program(), machines=machines))
    return [(found[index], _content(out)) for index, out in enumerate(outs)]


@pytest.mark.usefixtures("kernel")
def test_the_processor_has_no_instruction_that_some_emulators_execute_wrongly() -> None:
    """QEMU 7.2 leaves arbitrary flags after CMPXCHG16B, and some boots of the kernel 6.12 ended in a panic."""
    assert "-cx16" in qemu.processor().split(",")


@pytest.fixture(scope="module")
def at_once(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Outcome, dict[str, bytes]]]:
    """Two machines at once, with the seeds 1 and 2."""
    return _outcomes([_run(1), _run(2)], tmp_path_factory.mktemp("at_once"), kernel, machines=2)


@pytest.mark.usefixtures("load")
def test_the_same_seed_gives_the_same_bytes_on_a_loaded_host(
    at_once: list[tuple[Outcome, dict[str, bytes]]], kernel: Kernel, tmp_path: Path
) -> None:
    (first, content), (_, other) = at_once
    ((second, again),) = _outcomes([_run(1)], tmp_path, kernel)
    assert first.code == 0, first.stderr
    assert content
    assert {name: content[name] == again[name] for name in content} == dict.fromkeys(content, True)
    assert first == second
    # The sequence numbers of TCP and the keys of MPTCP differ, and with them the times of some packets.
    assert content != other


def test_a_sweep_is_one_trace_of_the_runs_that_were_asked_for(kernel: Kernel, tmp_path: Path) -> None:
    """Without a fake: the engine, its machines and the program in them."""
    scenario = tmp_path / "two-paths.toml"
    scenario.write_bytes(SCENARIO)
    settings = {"flows.transfer.traffic.size": '"400 kB"'}
    # One of the build, and one that is compiled on this side: the machine has no compiler.
    template = (ROOT / "algorithms/template-coupled.c").read_text()
    mine = mptcplab.Algorithm.from_source(template.replace("template_coupled", "mine").replace("TEMPLATE", "MINE"))
    results = mptcplab.run(
        scenario, cc=["reno", mine], engine="vm:trixie-backports", duration="1 s", settings=settings, reps=1
    )
    assert results.runs["cc"].to_list() == ["reno", "mine"]
    ran = [{(one["subflow"], one["cc"]) for one in json.loads(text)} for text in results.runs["subflow_cc"]]
    assert ran == [{("sf1", cc), ("sf2", cc)} for cc in ("reno", "mine")]
    assert results.runs["status"].to_list() == ["complete", "complete"]
    assert results.runs["engine"].unique().to_list() == ["vm:trixie-backports"]
    hosts = [json.loads(host) for host in results.runs["host"]]
    assert [host["kernel"] for host in hosts] == [kernel.release] * 2
    assert [host["algorithms"][0]["cc"] for host in hosts] == ["reno", "mine"]
    # 128 MiB before TCP saves memory. What Linux takes of the machine's, 28 MiB, would close windows in some runs.
    assert all(host["tcp_mem_pages"][1] > 32_768 for host in hosts)
    # Repetition 0 of both has the same seed, and with it the same machine.
    assert hosts[0]["vm"]["seed"] == hosts[1]["vm"]["seed"]
    for run in (0, 1):
        delivered = results.subflow.filter(run=run).group_by("subflow").agg(pl.col("rx_payload_bytes").max())
        assert delivered["rx_payload_bytes"].min() > 20_000
        assert delivered["rx_payload_bytes"].sum() >= 400_000


# Web requests and a terminal over lasting connections; each flow has its own sizes, and each link its own delay.
DIALOGUES = """
duration = "1500 ms"
warmup = "300 ms"
cc = "lia"
scheduler = "linger"
tcp = { tso = true, comp_sack = true, send_jitter = "0 s" }
[links.wide]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "6 ms"
queue = "60 packets"
[links.narrow]
from = "S"
to = "D"
rate = "5 Mbit/s"
delay = "17 ms"
queue = "40 packets"
[flows.page]
paths = [["wide"], ["narrow"]]
stop = "1300 ms"
traffic = { requests = { response = { law = "pareto", mean = "20 kB", shape = 1.6, most = "90 kB" }, think = "30 ms" } }
[flows.rpc]
path = ["narrow"]
cc = "cubic"
stop = "1200 ms"
traffic = { requests = { response = "2345 bytes", request = "900 bytes", arrivals = "25 / s" } }
[flows.ssh]
paths = [["narrow"], ["wide"]]
cc = "olia"
stop = "1100 ms"
traffic = { messages = { size = "71 bytes", answer = "118 bytes", interval = "40 ms" } }
"""


@pytest.mark.usefixtures("kernel")
def test_requests_and_messages_are_those_of_the_simulator_and_take_about_as_long(tmp_path: Path) -> None:
    scenario = tmp_path / "dialogues.toml"
    scenario.write_text(DIALOGUES)
    results = mptcplab.run(scenario, engine=["sim", "vm:trixie-backports"], reps=1)
    assert results.runs["status"].to_list() == ["complete", "complete"], results.runs["status_reason"].to_list()
    assert not results.excluded_runs
    sim, vm = (results.requests.filter(run=run).with_columns(pl.col("flow").cast(pl.String)) for run in (0, 1))
    sizes = ("flow", "request", "request_bytes", "response_bytes")
    # The first three come while subflows join. The least that is left, and what the path takes there and back.
    for flow, least, least_ms in (("page", 10, 12), ("rpc", 15, 34), ("ssh", 20, 12)):
        here, there = (table.filter(flow=flow).sort("request") for table in (vm, sim))
        both = min(here.height, there.height)
        assert both - 3 > least, (flow, here.height, there.height)
        assert here.select(sizes).head(both).equals(there.select(sizes).head(both)), flow
        # All that was asked for before the stop is answered before the end.
        assert here["completion_ns"].null_count() == 0, flow
        assert here["completion_ns"].min() >= least_ms * 1e6, flow
        assert (here["first_byte_ns"] <= here["completion_ns"]).all(), flow
        medians = [table["completion_ns"].slice(3, both - 3).median() for table in (here, there)]
        assert medians[0] == pytest.approx(medians[1], rel=0.1), flow
    # Every engine has the same percentiles in its tables.
    found = results.metrics(["response_p95", "message_p95"]).drop_nulls("value")
    assert found.group_by("run").agg(pl.col("flow").sort()).sort("run").rows() == [
        (run, ["page", "rpc", "ssh"]) for run in (0, 1)
    ]


LATE = """
duration = "44 s"
warmup = "38 s"
cc = "reno"
tcp = { like = "linux-7.3", tso = true, comp_sack = true, rcv_buffer = "unlimited", send_jitter = "0 s" }
[links.late]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "9 ms"
queue = "30 packets"
schedule = [{ at = "10 ms", up = false }, { at = "24 s", up = true }]
[links.always]
from = "S"
to = "D"
rate = "2 Mbit/s"
delay = "14 ms"
queue = "20 packets"
[flows.patient]
transport = "tcp"
path = ["late"]
start = "700 ms"
[flows.early]
transport = "tcp"
path = ["always"]
"""


@pytest.mark.usefixtures("kernel")
def test_a_connection_is_not_given_up_while_the_kernel_tries_to_open_it(tmp_path: Path) -> None:
    # The link is up again at 24 s. SYN segments are sent at 0.7, 1.7, 2.7, 3.7, 4.7, 5.7, 7.7, 11.7, 19.7 and 35.7 s.
    scenario = tmp_path / "late.toml"
    scenario.write_text(LATE)
    results = mptcplab.run(scenario, engine=["sim", "vm:trixie-backports"], reps=1)
    assert results.runs["status"].to_list() == ["complete", "complete"], results.runs["status_reason"].to_list()
    opened = results.event.filter(pl.col("kind").cast(pl.String) == "subflow_added").sort("run", "t_ns")
    assert opened["flow"].cast(pl.String).to_list() == ["early", "patient"] * 2
    sim, vm = opened["t_ns"].to_list()[1::2]
    assert sim == pytest.approx(35.7184e9, abs=1e5)
    # The kernel rounds the times of its long timers up.
    assert sim < vm < sim + 0.8e9


@pytest.mark.machines
@pytest.mark.usefixtures("kernel")
def test_a_paper_is_reproduced_in_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one_experiment("vm:trixie-backports", tmp_path, monkeypatch).verdict == "holds"


@pytest.mark.machines
@pytest.mark.usefixtures("kernel")
def test_the_goals_are_tested_in_machines(tmp_path: Path) -> None:
    grid = Grid(("disjoint",), (2,), (0.2,), (1.5,), ("reno",), repetitions=2, duration_s=3, warmup_s=1)
    study = mptcplab.goals("olia", tmp_path / "out", engine="vm", grid=grid, seed=7)
    (network,) = study.results
    measured = network.measured
    assert 0 < measured.goodput.min() < measured.goodput.max() < RATE_1_MBPS + RATE_2_MBPS
    # One TCP on the second path cannot get more than that path has.
    assert measured.single_paths["path 2"].max() < RATE_2_MBPS
    assert measured.uncoupled_loads["neck2"].max() < RATE_2_MBPS
    assert "<span>engine vm:trixie-backports</span>" in study.page.read_text()


def test_the_page_of_all_papers_names_the_machine(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = tmp_path / "two-paths.toml"
    scenario.write_bytes(b'cc = "lia"\n' + SCENARIO)
    monkeypatch.setattr(matrix, "QUICK", matrix.Size(2, 1, 1, 1, latest_start_s=15))
    engines = ("sim", "vm:trixie-backports")
    found = matrix.measure(quick=True, scenarios=[scenario], engines=engines, machine_runs=tmp_path / "machines")
    (entry,) = found.entries
    assert entry.evidence, entry.reason
    assert not entry.disturbed
    (page, *_) = agreement_page.write(found, tmp_path / "docs")
    text = page.read_text()
    assert "mptcplab agree --all --engines sim,vm:trixie-backports --quick" in text
    assert kernel.release in text

    def impossible(*_: Any, **__: Any) -> None:
        raise AssertionError("a machine was started")

    # Only the simulator runs again, and with other random numbers, as a new version of it would have.
    monkeypatch.setattr(making.vm, "run", impossible)
    monkeypatch.setattr(matrix, "QUICK", matrix.Size(2, 1, 2, 1, latest_start_s=15))
    again = matrix.measure(quick=True, scenarios=[scenario], engines=engines, machine_runs=tmp_path / "machines")
    assert [row.mean for row in again.entries[0].flows] == [row.mean for row in entry.flows]
    assert [row.n_reference for row in again.entries[0].flows] == [2]


def _prepared(seed: int, cc: str = "lia") -> Job:
    """The same run in a machine that was prepared for it."""
    here = str(ROOT / "tests/kernels/two-paths.toml")
    overrides = json.dumps(SHORT | {"cc": [cc]})
    words = ("preparations", "--scenario", here, "--overrides", overrides)
    found = subprocess.run([_program(), *words], capture_output=True, text=True, check=True)
    (text,) = json.loads(found.stdout)
    words = ("run", "--scenario", "/job/two-paths.toml", "--overrides", overrides, "--out", "/out/trace")
    preparation = Preparation(("prepare", "--in-machine", "--preparation", text), {})
    return Job(words, {"two-paths.toml": SCENARIO}, seed, PATIENCE_S, preparation=preparation)


def test_a_run_is_the_same_whether_or_not_its_machine_was_prepared_before(kernel: Kernel, tmp_path: Path) -> None:
    # Two at once, of which one waits for the other to prepare the machine.
    first = _outcomes([_prepared(1), _prepared(2)], tmp_path / "first", kernel, machines=2)
    booted = snapshot.ready(kernel, _program())
    made = {path.name: _content(path) for path in (booted.directory / "prepared").iterdir() if path.is_dir()}
    kept.remove_old(booted.directory / "prepared", 0)
    (again,) = _outcomes([_prepared(2)], tmp_path / "again", kernel)
    (directory,) = (path for path in (booted.directory / "prepared").iterdir() if path.is_dir())
    booted.close()
    assert first[0][0].code == 0, first[0][0].stderr
    assert again == first[1]
    assert first[0][1] != first[1][1]
    assert (directory / "changes").read_bytes() == made[directory.name]["changes"]
    # What it needs beside the memory of the machine that has booted.
    assert (directory / "changes").stat().st_size < 30e6
    assert not (directory / "memory").exists()


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_machine_that_is_being_prepared(kernel: Kernel, tmp_path: Path) -> None:
    booted = snapshot.ready(kernel, _program())
    machines = booted.directory / "prepared"
    machines.mkdir(exist_ok=True)
    kept.remove_old(machines, 0)

    def interrupt() -> None:
        while not list(machines.glob("draft-*")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        _outcomes([_prepared(1), _prepared(2)], tmp_path, kernel, machines=2)
    assert _children() == []
    # Neither the one that was being prepared nor one that would have been prepared after it.
    assert not [path for path in machines.iterdir() if path.is_dir()]
    booted.close()


def test_the_error_of_a_preparation_arrives(kernel: Kernel, tmp_path: Path) -> None:
    job = _prepared(1)
    assert job.preparation is not None
    *words, text = job.preparation.arguments
    wrong = text.replace('"lia"', '"no-such-algorithm"')
    assert wrong != text
    refused = replace(job, preparation=replace(job.preparation, arguments=(*words, wrong)))
    ((outcome, content),) = _outcomes([refused], tmp_path, kernel)
    assert outcome.code == 2
    assert 'no algorithm "no-such-algorithm"' in outcome.stderr
    assert not content
    booted = snapshot.ready(kernel, _program())
    assert not list((booted.directory / "prepared").glob("draft-*"))
    booted.close()


def test_a_snapshot_that_is_not_whole_is_an_error(kernel: Kernel, tmp_path: Path) -> None:
    job = _prepared(1, cc="reno")
    booted = snapshot.ready(kernel, _program())
    assert job.preparation is not None
    ready = prepared(booted, job.preparation)
    assert ready.changes is not None
    whole = ready.changes.read_bytes()
    try:
        for part in (whole[:-5000], whole[:-16], b""):
            ready.changes.write_bytes(part)
            with pytest.raises(EngineError, match="changes: ends too early"):
                _outcomes([job], tmp_path, kernel)
    finally:
        ready.changes.write_bytes(whole)
        ready.close()
        booted.close()
    assert _children() == []


def test_the_error_of_a_program_arrives(kernel: Kernel, tmp_path: Path) -> None:
    job = Job(("run", "--scenario", "/job/missing.toml", "--out", "/out/trace"), {}, 1, PATIENCE_S)
    ((outcome, content),) = _outcomes([job], tmp_path, kernel)
    assert outcome.code == 2
    assert "missing.toml" in outcome.stderr
    assert not content


def test_progress_is_passed_on(kernel: Kernel, tmp_path: Path) -> None:
    seen: list[tuple[int, str]] = []
    jobs = run_jobs(
        [_run()], [tmp_path], kernel=kernel, program=_program(), machines=1,
        progress=lambda index, message: seen.append((index, message["type"])),
    )  # fmt: skip
    ((_, outcome),) = jobs
    assert seen[0] == (0, "progress")
    assert seen[-1] == (0, "done")
    assert outcome.virtual_ns > 1_000_000_000
    # A second at 11 Mbit/s and the setup of a run.
    assert 0.005 < outcome.busy_share < 0.25


def test_patience_ends_a_machine(kernel: Kernel, tmp_path: Path) -> None:
    snapshot.ready(kernel, _program())
    job = Job(_run().arguments, _run().files, 1, 0.0)
    with pytest.raises(EngineError, match="did not end within 0 s"):
        list(run_jobs([job], [tmp_path], kernel=kernel, program=_program(), machines=1))
    assert _children() == []


def test_closing_the_iterator_ends_all_machines(kernel: Kernel, tmp_path: Path) -> None:
    quick = Job(("--version",), {}, 1, PATIENCE_S)
    jobs = run_jobs([quick, _run(), _run()], [tmp_path] * 3, kernel=kernel, program=_program(), machines=3)
    index, outcome = next(jobs)
    assert (index, outcome.code) == (0, 0)
    jobs.close()  # type: ignore[attr-defined]
    assert _children() == []


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, although a shell that starts the tests in the background has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_all_machines(kernel: Kernel, tmp_path: Path) -> None:
    snapshot.ready(kernel, _program())

    def interrupt(_index: int, _message: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        # Handled at the latest here.
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        list(run_jobs([_run()], [tmp_path], kernel=kernel, program=_program(), machines=1, progress=interrupt))
    assert _children() == []


@pytest.mark.usefixtures("kernel")
def test_versions_name_qemu() -> None:
    assert versions().startswith("QEMU emulator version")


def test_what_was_packed_is_unpacked() -> None:
    entries = {"seed": bytes(8), "job/ä": b"x", "empty": b""}
    assert dict(mailbox.unpack(mailbox.pack(entries))) == entries
    with pytest.raises(ValueError, match="ends too early"):
        list(mailbox.unpack(mailbox.pack(entries)[:-9]))


def _children() -> list[str]:
    """Machines that this process has started and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        if int(rest.split()[1]) == os.getpid() and "qemu" in name:
            found.append(name)
    return found


def test_what_the_environment_preloads_does_not_get_into_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ldd` listed it, and another machine gave other numbers."""
    from mptcplab.engines.vm import initramfs

    program = Path("/usr/bin/env")
    alone = list(initramfs.libraries(program))
    library = next(path.with_name("libm.so.6") for path in alone if path.name == "libc.so.6")
    assert library.is_file()
    assert library not in alone
    monkeypatch.setenv("LD_PRELOAD", str(library))
    assert list(initramfs.libraries(program)) == alone
