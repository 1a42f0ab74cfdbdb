"""The engine `vm` without machines: what is planned, merged and refused. A simulation stands in for every machine."""

from __future__ import annotations

import fcntl
import json
import lzma
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import mptcplab
from mptcplab import _core, capabilities
from mptcplab.engines import kernel as kernel_engine
from mptcplab.engines.vm import (
    cache,
    debian,
    engine,
    host,
    kept,
    kernels,
    machine,
    modules,
    outcome,
    prepared,
    qemu,
    speed,
)
from mptcplab.engines.vm.kernels import Kernel
from mptcplab.engines.vm.machine import Job, Outcome
from mptcplab.engines.vm.prepared import Preparation
from mptcplab.errors import EngineError, MptcplabError, RefusedError, ScenarioError, UnfinishedError
from mptcplab.scenario import Overrides
from mptcplab.study.cell import engine_digest
from mptcplab.sweep import Sweep, parse_engines
from mptcplab.trace import machines

TABLES = ("run", "flow", "subflow", "link", "event", "transfer")
RELEASES = {"bookworm": "6.1.0-32-cloud-amd64", "trixie-backports": "7.3.1-cloud-amd64"}


class Machines:
    """The stand-in for emulated machines, and what they were asked."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.calls: list[tuple[list[Job], Kernel, int]] = []
        # By position of the job.
        self.busy: dict[int, float] = {}
        self.failures: dict[int, Outcome] = {}
        self.broken: str | None = None
        self.closed = 0

    def run_jobs(
        self,
        jobs: Sequence[Job],
        outs: Sequence[Path],
        *,
        kernel: Kernel,
        program: Path,
        machines: int,
        progress: Callable[[int, Mapping[str, Any]], None] | None = None,
    ) -> Iterator[tuple[int, Outcome]]:
        assert program.is_file()
        self.calls.append((list(jobs), kernel, machines))
        try:
            # The last one ends first.
            for position in reversed(range(len(jobs))):
                if position in self.failures:
                    yield position, self.failures[position]
                    continue
                self.simulate(jobs[position], outs[position])
                if progress is not None:
                    progress(position, {"type": "progress", "done_s": 1.0})
                    progress(position, {"type": "run", "status": "complete"})
                yield position, Outcome(0, "", "", 7_000_000 * (position + 1), self.busy.get(position, 0.25))
                if self.broken is not None:
                    raise EngineError(self.broken)
        finally:
            self.closed += 1

    def simulate(self, job: Job, out: Path) -> None:
        home = self.scratch / f"job-{len(list(self.scratch.iterdir()))}"
        for name, content in job.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_bytes(content)
        words = job.arguments
        assert words[:2] == ("run", "--in-machine")
        asked = dict(zip(words[2::2], words[3::2], strict=False))
        inside = home / Path(asked["--scenario"]).relative_to("/job")
        out.mkdir()
        trace = out / Path(asked["--out"]).relative_to("/out")
        _core.run(inside, trace, asked["--overrides"], 1, None, [int(asked["--run"])])


# Stands in for `mptcplab-kernel preparations` and `compile`: a preparation is the number of its run.
PROGRAM = """#!/bin/sh
case "$1" in
preparations)
    for last; do :; done
    echo "[\\"$(echo "$last" | sed 's/,/","/g')\\"]" ;;
compile)
    test "$3 $4 $5" = "--place mine.c --out" || exit 9
    cp "$2" "$6" && echo object > "$6/mine.o" && echo library > "$6/mine.so" && echo '{"compiler": "clang 1.2"}' ;;
esac
"""


@pytest.fixture
def emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    home = tmp_path / "machines"
    home.mkdir()
    stand_in = Machines(home)
    program = tmp_path / "mptcplab-kernel"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv(kernel_engine.OVERRIDE, str(program))
    monkeypatch.setattr(machine, "run_jobs", stand_in.run_jobs)
    monkeypatch.setattr(machine, "versions", lambda: "QEMU emulator version 10.0.3")
    monkeypatch.setattr(host, "require_available", lambda _: None)
    monkeypatch.setattr(kernels, "find", known_kernel)
    return stand_in


def known_kernel(name: str) -> Kernel:
    suite = capabilities.kernel_of(name)
    release = RELEASES[suite]
    return Kernel(suite, release, f"linux-image-{release} 1.2-3", Path("vmlinuz"), (), f"digest of {suite}")


SHORT = {"cc": ["lia", "reno"], "reps": 2, "duration": "2 s", "settings": {"warmup": '"500 ms"'}}


def test_the_runs_of_a_sweep_become_one_trace_in_their_order(emulated: Machines, scenario: Path) -> None:
    simulated = mptcplab.run(scenario, **SHORT)
    seen: list[tuple[int, int, float, float]] = []
    results = mptcplab.run(scenario, engine="vm", jobs=3, progress=lambda *now: seen.append(now), **SHORT)
    own = ["engine", "host", "digest"]
    assert results.runs.drop(own).equals(simulated.runs.drop(own))
    assert set(results.runs["engine"]) == {"vm:trixie-backports"}
    for table in TABLES[1:]:
        assert results.scan(table).collect().equals(simulated.scan(table).collect()), table
        # To the byte, because nothing in these tables depends on the process that wrote them.
        name = f"{table}.parquet"
        assert (results.directory / name).read_bytes() == (simulated.directory / name).read_bytes()
    records = [json.loads(text)["vm"] for text in results.runs["host"]]
    assert [record["virtual_ns"] for record in records] == [7_000_000 * n for n in (1, 2, 3, 4)]
    assert {record["emulator"] for record in records} == {"QEMU emulator version 10.0.3"}
    assert {(record["kernel"], record["release"]) for record in records} == {("trixie-backports", "7.3.1-cloud-amd64")}
    assert {record["package"] for record in records} == {"linux-image-7.3.1-cloud-amd64 1.2-3"}
    assert [record["seed"] for record in records] == [job.seed for job in emulated.calls[0][0]]
    assert emulated.calls[0][2] == 3
    assert seen[-1] == (4, 4, 8.0, 8.0)
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
    assert not results.excluded_runs
    assert not any("processor" in line for line in results.remarks)


def test_the_first_repetitions_leave_the_runs_of_the_others(emulated: Machines, scenario: Path, tmp_path: Path) -> None:
    """Before, a comparison that went on after an interrupt made all but the first three repetitions again."""

    def make(reps: int, *, prunes: bool = True) -> None:
        changes = Overrides(cc=("lia",), reps=reps, duration="2 s", settings={"warmup": '"500 ms"'})
        Sweep(str(scenario), changes, ("vm:trixie-backports",), lasting=tmp_path / "runs", prunes=prunes).run()

    make(3)
    make(2, prunes=False)
    make(3)
    assert [len(jobs) for jobs, *_ in emulated.calls] == [3]
    make(2)
    make(3)
    assert [len(jobs) for jobs, *_ in emulated.calls] == [3, 1]


def test_a_machine_has_the_seed_of_its_scenario_and_repetition(emulated: Machines, scenario: Path) -> None:
    mptcplab.run(scenario, engine="vm", **SHORT)
    mptcplab.run(scenario, engine="vm:bookworm", seed=12, **SHORT)
    (first, newest, _), (other, oldest, _) = emulated.calls
    assert (newest.name, oldest.name) == ("trixie-backports", "bookworm")
    seeds = [job.seed for job in first]
    # Repetitions change fastest, and every algorithm has the same ones.
    assert seeds == [engine.machine_seed(11, 0), engine.machine_seed(11, 1)] * 2
    assert len({*seeds, *(job.seed for job in other)}) == 4
    assert all(0 <= seed < 1 << 64 for seed in seeds)
    assert {job.patience_s for job in first} == {300.0 + 2 * 120.0}
    assert [job.arguments[job.arguments.index("--run") + 1] for job in first] == ["0", "1", "2", "3"]


def test_the_machine_gets_the_files_that_a_scenario_names(tmp_path: Path) -> None:
    home = tmp_path / "sets" / "here"
    (tmp_path / "sets" / "walks").mkdir(parents=True)
    home.mkdir()
    link = 'from = "S"\nto = "D"\nrate = "9 Mbit/s"\ndelay = "5 ms"\n'
    text = (
        f'duration = "2 s"\nrepetitions = 2\ncc = "lia"\n[links.A]\n{link}schedule_file = "../walks/a-{{rep}}.csv"\n'
        f'[links.B]\n{link}schedule_file = "b.csv"\n[flows.f]\npaths = [["A"], ["B"]]\n'
    )
    (home / "walk.toml").write_text(text)
    for rep in range(3):
        (tmp_path / "sets" / "walks" / f"a-{rep}.csv").write_text(f"at_ms,rate_bps\n{100 + rep},3000000\n")
    (home / "b.csv").write_text("at_ms,delay_us\n700,9000\n")
    inside, files = engine.job_files(home / "walk.toml", "{}")
    assert inside == "here/walk.toml"
    # The third walk is for a repetition that is not asked for.
    assert sorted(files) == ["here/b.csv", "here/walk.toml", "walks/a-0.csv", "walks/a-1.csv"]
    assert files["walks/a-1.csv"] == b"at_ms,rate_bps\n101,3000000\n"
    (home / "walk.toml").write_text(text.replace("b.csv", str(home / "b.csv")))
    with pytest.raises(ScenarioError, match="absolute path"):
        engine.job_files(home / "walk.toml", "{}")


def test_load_is_mentioned_from_half_and_a_run_does_not_count_from_nine_tenths(
    emulated: Machines, scenario: Path
) -> None:
    emulated.busy = {0: 0.49, 1: 0.5, 2: 0.89, 3: 0.9}
    results = mptcplab.run(scenario, engine="vm", **SHORT)
    assert results.runs["status"].to_list() == ["complete"] * 3 + ["invalid"]
    (excluded,) = results.excluded_runs
    assert excluded.run == 3
    assert "busy for 90" in excluded.reason
    (line,) = [line for line in results.remarks if "processor" in line]
    # The larger one of each configuration; the reason above has the invalid one's as well.
    assert "lia 50" in line
    assert "reno 90" in line
    assert machines.too_busy(0.899) is None


def test_a_scenario_that_the_program_refuses_is_named_as_the_user_wrote_it(
    emulated: Machines, scenario: Path, tmp_path: Path
) -> None:
    said = f"warning: noise\nerror: /job/{scenario.name}:14: links.A.loss: too much\n\nhint: less\n"
    emulated.failures = {3: Outcome(2, said, "", 0, 0.0)}
    out = tmp_path / "out"
    with pytest.raises(ScenarioError) as refused:
        mptcplab.run(scenario, engine="vm", out=out, **SHORT)
    assert str(refused.value) == f"{scenario}:14: links.A.loss: too much\n\nhint: less"
    assert not out.exists()
    assert emulated.closed == 1


def test_an_algorithm_that_a_machine_s_kernel_refuses_is_a_refusal(emulated: Machines, scenario: Path) -> None:
    said = "the kernel refused reno as mpl_2b_1: Invalid argument"
    emulated.failures = {3: Outcome(2, f"error: {said}\n", "", 0, 0.0)}
    with pytest.raises(RefusedError) as refused:
        mptcplab.run(scenario, engine="vm", **SHORT)
    assert str(refused.value) == f"run 3 (cc = reno, repetition 1) on {RELEASES['trixie-backports']}: {said}"


def test_runs_before_a_failure_are_kept(emulated: Machines, scenario: Path, tmp_path: Path) -> None:
    emulated.failures = {1: Outcome(2, "error: the lab died\n\nhint: again\n", "", 0, 0.0)}
    out = tmp_path / "out"
    with pytest.raises(UnfinishedError) as failed:
        mptcplab.run(scenario, engine="vm", out=out, **SHORT)
    message = str(failed.value)
    assert message == "run 1 (cc = lia, repetition 1) on 7.3.1-cloud-amd64: the lab died\n\nhint: again"
    kept = mptcplab.load(out).runs
    # Numbers are those of the trace; what a run is, is in its row.
    assert kept.select("run", "cc", "rep").rows() == [(0, "reno", 0), (1, "reno", 1)]


def test_a_machine_that_breaks_ends_the_others(emulated: Machines, scenario: Path, tmp_path: Path) -> None:
    emulated.broken = "the machine panicked"
    with pytest.raises(UnfinishedError, match="panicked"):
        mptcplab.run(scenario, engine="vm", out=tmp_path / "some", **SHORT)
    assert mptcplab.load(tmp_path / "some").runs.height == 1
    emulated.failures = {3: Outcome(0, "", "", 1, 0.1)}
    with pytest.raises(EngineError, match="sent no trace"):
        mptcplab.run(scenario, engine="vm", out=tmp_path / "none", **SHORT)
    assert not (tmp_path / "none").exists()
    assert emulated.closed == 2


def test_an_interrupt_ends_all_machines(emulated: Machines, scenario: Path, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mptcplab.run(scenario, engine="vm", out=tmp_path / "out", progress=interrupt, **SHORT)
    assert emulated.closed == 1
    assert not (tmp_path / "out").exists()


def test_several_engines_have_directories_of_their_own(emulated: Machines, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = "vm:trixie-backports,sim,vm:bookworm"
    results = mptcplab.run(scenario, engine=asked, out=out, **SHORT)
    names = sorted(path.name for path in out.iterdir())
    assert names == ["overrides.json", "sim", "vm-bookworm", "vm-trixie-backports"]
    # Machines stay in the order in which they were named, also when the results are opened again.
    order = ["sim", "vm:trixie-backports", "vm:bookworm"]
    assert results.engines == order
    assert mptcplab.load(out).engines == order
    page = results.report(figures=False).read_text()
    assert "vm:bookworm" in page
    assert RELEASES["bookworm"] in page
    assert "byte for byte" in page
    mptcplab.run(scenario, engine=asked, out=out, force=True, **SHORT)
    assert [call[1].name for call in emulated.calls] == ["trixie-backports", "bookworm"] * 2


@pytest.mark.usefixtures("emulated")
def test_kernels_are_compared_as_engines_are(scenario: Path, tmp_path: Path) -> None:
    found = mptcplab.kernels(scenario, "bookworm,trixie-backports", out=tmp_path / "out", **SHORT)
    assert [(one.reference, one.engine) for one in found.findings] == [("vm:bookworm", "vm:trixie-backports")]
    # Both are the simulator here.
    assert found.verdict == "holds"
    assert found.findings[0].worst_percent == 0
    assert found.findings[0].bounds.median_percent == 5
    with pytest.raises(MptcplabError, match="nothing to compare"):
        mptcplab.kernels(scenario, "bookworm")


@pytest.mark.usefixtures("emulated")
def test_the_simulator_gets_the_noise_of_a_machine(scenario: Path) -> None:
    found = mptcplab.agree(scenario, "sim,vm:bookworm", **SHORT)
    assert found.results.engines == ["sim", "vm:bookworm"]
    # It ran first, and so did the request for its kernel; the simulation is alike, so nothing differs.
    assert found.verdict == "holds"


def test_names_of_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(host, "require_available", asked.append)
    assert parse_engines("fluid, vm:sid, sim, vm:bookworm") == ("sim", "vm:sid", "vm:bookworm", "fluid")
    assert asked == ["vm:sid", "vm:bookworm"]
    assert parse_engines("vm") == ("vm:trixie-backports",)
    for wrong, message in (
        ("vm,vm:trixie-backports", "named twice"),
        ("vm:", "no such engine"),
        ("vmm:sid", "no such engine"),
    ):
        with pytest.raises(MptcplabError, match=message):
            parse_engines(wrong)
    with pytest.raises(MptcplabError, match="no other traffic than its own"):
        parse_engines("vm:sid", "iperf3")


def test_names_of_directories() -> None:
    assert capabilities.directory_of("vm:bookworm-backports") == "vm-bookworm-backports"
    one, other = (capabilities.directory_of(f"vm:{place}/vmlinuz-6.9 Test") for place in ("/boot", "/srv"))
    assert one != other
    assert one.startswith("vm-vmlinuz-6.9-test-")
    assert all(map(capabilities.is_directory_of_engine, ("sim", "vm-bookworm", one)))
    assert not any(map(capabilities.is_directory_of_engine, ("vm-", "VM-x", "figures", "vm-x/y")))


def test_a_machine_behaves_as_the_kernel_does() -> None:
    vm, kernel = capabilities.engine_of("vm:sid"), capabilities.KERNEL
    assert vm.name == "vm:sid"
    assert (vm.requires, vm.behaves_as, vm.has_packets) == (kernel.requires, kernel.behaves_as, True)
    assert not (vm.real_time or vm.needs_root or vm.in_python)


@pytest.mark.usefixtures("emulated")
def test_results_of_a_study_depend_on_the_kernel() -> None:
    one, other = engine_digest("vm:bookworm"), engine_digest("vm:trixie-backports")
    assert one != other
    assert "digest of bookworm" in one
    assert "QEMU" in one


def test_a_machine_gets_what_was_compiled_on_the_host(emulated: Machines, scenario: Path) -> None:
    template = (Path(__file__).parents[2] / "algorithms/template.c").read_text()
    text = template.replace("template", "mine").replace("TEMPLATE", "MINE")
    mine = mptcplab.Algorithm.from_source(text)
    results = mptcplab.run(scenario, cc=[mine, "lia"], engine="vm", reps=1, duration="2 s")
    ((jobs, *_),) = emulated.calls
    for job in jobs:
        at = job.arguments.index("--algorithms")
        assert job.arguments[at + 1] == "/job/.algorithms"
        assert not any(name.startswith(".algorithms") for name in job.files)
        assert job.preparation is not None
        assert job.preparation.arguments[4:] == ("--algorithms", "/job/.algorithms")
        assert job.preparation.files == {
            ".algorithms/mine.c": text.encode(),
            ".algorithms/mine.o": b"object\n",
            ".algorithms/mine.so": b"library\n",
        }
    assert [job.preparation.arguments[3] for job in jobs] == ["0", "1"]
    assert results.runs["cc"].to_list() == ["mine", "lia"]
    # A sweep without it has nothing of it.
    mptcplab.run(scenario, cc=["lia"], engine="vm", reps=1, duration="2 s")
    (job,) = emulated.calls[1][0]
    assert "--algorithms" not in job.arguments
    assert job.preparation == Preparation(("prepare", "--in-machine", "--preparation", "0"), {})


# --- kernels ---------------------------------------------------------------------------------------


def module(depends: str) -> bytes:
    """A kernel module as far as its section .modinfo."""
    content = f"license=GPL\0depends={depends}\0name=any\0".encode()
    names = b"\0.modinfo\0.shstrtab\0"
    body = content + names
    table = 64 + len(body)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2
    )

    def section(name: int, offset: int, size: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0)

    sections = section(0, 0, 0) + section(1, 64, len(content)) + section(10, 64 + len(content), len(names))
    return header + body + sections


def image(release: str) -> bytes:
    """A boot image as far as its header and version."""
    content = bytearray(0x400)
    content[0x202:0x206] = b"HdrS"
    content[0x20E:0x210] = struct.pack("<H", 0x100)
    return bytes(content[:0x300]) + f"{release} (somebody@somewhere) #1 SMP\0".encode() + b"code"


def tree(at: Path, built_in: Sequence[str] = ("tcp_bbr",)) -> None:
    """A tree of modules: some compressed, some built in, one that needs others."""
    net = at / "kernel" / "net"
    net.mkdir(parents=True)
    needs = {"tun": "", "veth": "", "inet_diag": "", "tcp_diag": "inet_diag", "mptcp-diag": "inet_diag,tcp-diag"}
    for name, depends in needs.items():
        (net / f"{name}.ko.xz").write_bytes(lzma.compress(module(depends)))
    (at / "modules.builtin").write_text("".join(f"kernel/net/ipv4/{name}.ko\n" for name in built_in))


def test_modules_come_in_load_order(tmp_path: Path) -> None:
    tree(tmp_path / "tree")
    wanted = ("mptcp_diag", "tun", "veth", "tcp_bbr")
    paths = modules.extract(tmp_path / "tree", tmp_path / "out", wanted)
    names = [path.name for path in paths]
    assert names == ["00-inet_diag.ko", "01-tcp_diag.ko", "02-mptcp_diag.ko", "03-tun.ko", "04-veth.ko"]
    assert names == sorted(names)
    assert paths[2].read_bytes() == module("inet_diag,tcp-diag")
    with pytest.raises(EngineError, match="no module sch_fq"):
        modules.extract(tmp_path / "tree", tmp_path / "more", ["sch-fq"])


def test_a_kernel_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kernels._find.cache_clear()
    path = tmp_path / "own" / "vmlinuz"
    with pytest.raises(EngineError, match="no such kernel image"):
        kernels.find(f"vm:{path}")
    path.parent.mkdir()
    path.write_bytes(image("6.19.0-rc3+"))
    with pytest.raises(EngineError, match="no modules beside"):
        kernels.find(f"vm:{path}")
    tree(path.parent / "modules")
    found = kernels.find(f"vm:{path}")
    assert (found.name, found.release, found.package) == (str(path), "6.19.0-rc3+", "")
    assert [one.name[3:] for one in found.modules] == [
        "tun.ko", "veth.ko", "inet_diag.ko", "tcp_diag.ko", "mptcp_diag.ko",
    ]  # fmt: skip
    assert found.digest == kernels.digest(found.image, found.modules)
    kernels._find.cache_clear()
    assert kernels.find(f"vm:{path}") == found
    path.write_bytes(b"MZ" * 1000)
    kernels._find.cache_clear()
    with pytest.raises(EngineError, match="not an x86 kernel image"):
        kernels.find(f"vm:{path}")


@pytest.mark.parametrize("length", [0x208, 0x210])
def test_a_damaged_kernel_image_is_named(tmp_path: Path, length: int) -> None:
    path = tmp_path / "vmlinuz"
    path.write_bytes(image("6.19.0-rc3+")[:length])
    with pytest.raises(EngineError, match=f"a damaged kernel image: {path}"):
        kernels.image_release(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("tun.ko.xz", b"no archive"), ("tun.ko.zst", b"no archive"), ("tun.ko", module("veth")[:70]), ("tun.ko", None)],
)
def test_a_damaged_module_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    """None: the table of the sections ends too early."""
    tree(tmp_path / "tree")
    (found,) = (tmp_path / "tree").rglob("tun.ko*")
    found.unlink()
    found.with_name(name).write_bytes(module("veth")[:-40] if content is None else content)
    with pytest.raises(EngineError, match=f"a damaged kernel module: .*/{name}"):
        modules.extract(tmp_path / "tree", tmp_path / "out", ("tun",))


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x"])
def test_a_machine_chooses_no_place_on_the_host(tmp_path: Path, path: str) -> None:
    with pytest.raises(EngineError, match="its result contains the path"):
        outcome._write(tmp_path / "out", path, b"x")
    assert not (tmp_path / "x").exists()


# apt and dpkg-deb as far as they are needed; `home` has what the mirror has, and counts the calls.
APT = """#!{python}
import shutil, sys
from pathlib import Path
home = Path({home!r})
name, words = Path(sys.argv[0]).name, sys.argv[1:]
with (home / "calls").open("a") as calls:
    calls.write(" ".join([name, *words]) + "\\n")
names = ["linux-base-6.1.0-cloud-amd64", "linux-image-6.1.0-cloud-amd64"]
if name == "dpkg-deb":
    _, deb, root = words
    tree = Path(root) / "lib" / "modules" / "6.1.0-cloud-amd64"
    if "image" in deb:
        (Path(root) / "boot").mkdir(parents=True)
        shutil.copytree(home / "tree", tree)
        (Path(root) / "boot" / "vmlinuz-6.1.0-cloud-amd64").write_bytes((home / "image").read_bytes())
    sys.exit()
if "indextargets" in words:
    print("Debian-Security|mirror/security|bookworm-security|main")
    print("|mirror/own|bookworm|main")
    print("Debian|mirror/debian|stable|main")
    sys.exit()
conf = Path(words[words.index("-c") + 1])
state = conf.parent / "state" / "lists"
if "update" in words:
    if (home / "lacks-suites").exists():
        import os
        english = os.environ.get("LC_ALL") == "C.UTF-8" and "LANGUAGE" not in os.environ
        print("does not have a Release file" if english else "enthält keine Release-Datei", file=sys.stderr)
        sys.exit(100)
    if (home / "offline").exists() or "mirror/debian" not in (conf.parent / "sources.list").read_text():
        print("E: no mirror", file=sys.stderr)
        sys.exit(100)
    (state / "x_InRelease").write_text("")
elif "depends" in words:
    print("linux-image-cloud-amd64\\n  Depends: " + names[1])
    print("\\n".join(names + ["initramfs-tools"]))
elif "show" in words:
    for one in words[words.index("--no-all-versions") + 1:]:
        print(f"Package: {{one}}\\nVersion: 6.1.{{(home / 'version').read_text()}}-1\\nSHA256: 12ab\\nSize: 7\\n")
elif "download" in words:
    for one in words[words.index("download") + 1:]:
        Path(one + ".deb").write_text("")
"""


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, programs = tmp_path / "mirror", tmp_path / "bin"
    home.mkdir()
    programs.mkdir()
    for name in ("apt-get", "apt-cache", "dpkg-deb"):
        (programs / name).write_text(APT.format(python=sys.executable, home=str(home)))
        (programs / name).chmod(0o755)
    tree(home / "tree")
    (home / "image").write_bytes(image("6.1.0-cloud-amd64"))
    (home / "version").write_text("170")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return home


def calls(mirror: Path) -> list[str]:
    path = mirror / "calls"
    found = path.read_text().splitlines() if path.is_file() else []
    path.unlink(missing_ok=True)
    return found


def age(cache: Path, seconds: float) -> None:
    """Make everything in the cache older."""
    for path in cache.rglob("*"):
        if path.is_file():
            then = path.stat().st_mtime - seconds
            os.utime(path, (then, then))


def test_a_kernel_of_debian(mirror: Path, tmp_path: Path) -> None:
    found = debian.kernel("bookworm")
    assert (found.release, found.package) == ("6.1.0-cloud-amd64", "linux-image-6.1.0-cloud-amd64 6.1.170-1")
    assert found.image.read_bytes() == image("6.1.0-cloud-amd64")
    assert [path.name for path in found.modules][-1] == "04-mptcp_diag.ko"
    assert all(path.is_file() and path.is_relative_to(tmp_path / "cache") for path in found.modules)
    made = calls(mirror)
    # Debian's own mirror first, and nothing of the system is changed.
    settings = (tmp_path / "cache/mptcplab/kernels/apt/bookworm/apt.conf").read_text()
    assert sum("update" in line for line in made) == 1
    assert f'Dir::State "{tmp_path}/cache/' in settings
    # For a day nobody is asked again.
    assert debian.kernel("bookworm") == found
    assert calls(mirror) == []


def test_a_newer_kernel_does_not_replace_the_one_that_is_in_use(mirror: Path, tmp_path: Path) -> None:
    old = debian.kernel("bookworm")
    age(tmp_path / "cache", 90_000)
    (mirror / "version").write_text("180")
    calls(mirror)
    new = debian.kernel("bookworm")
    assert new.package == "linux-image-6.1.0-cloud-amd64 6.1.180-1"
    assert old.image.is_file()
    assert old.image != new.image
    assert any("download" in line for line in calls(mirror))


@pytest.mark.parametrize(
    ("suite", "meant"),
    [
        ("bookwrm", "did you mean bookworm? vm:PATH"),
        ("trixi-backports", "did you mean trixie-backports? vm:PATH"),
        # A mirror may lack what exists elsewhere.
        ("trixie-backports", "hint: not every mirror has all suites"),
        ("bookworm-updates", "hint: not every mirror has all suites"),
    ],
)
def test_a_suite_that_no_mirror_has(mirror: Path, monkeypatch: pytest.MonkeyPatch, suite: str, meant: str) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    (mirror / "lacks-suites").touch()
    with pytest.raises(EngineError, match=f"no suite '{suite}' on this system's package mirrors: mirror/") as failed:
        debian.kernel(suite)
    assert meant in str(failed.value)
    assert "Release" not in str(failed.value)


def test_without_a_mirror_the_kernel_from_before_is_used(mirror: Path, tmp_path: Path, capsys: Any) -> None:
    (mirror / "offline").touch()
    with pytest.raises(EngineError, match="apt cannot read the suite bookworm") as failed:
        debian.kernel("bookworm")
    assert "E: no mirror" in str(failed.value)
    (mirror / "offline").unlink()
    found = debian.kernel("bookworm")
    (mirror / "offline").touch()
    age(tmp_path / "cache", 90_000)
    assert debian.kernel("bookworm") == found
    assert "using the kernel from before: 6.1.0-cloud-amd64" in capsys.readouterr().err
    with pytest.raises(EngineError, match="not the name of a Debian suite"):
        debian.kernel("../etc")


# --- this machine ----------------------------------------------------------------------------------


def test_what_is_missing_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "mptcplab-kernel"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv(kernel_engine.OVERRIDE, str(program))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(EngineError, match="no program qemu-system-x86_64") as failed:
        host.require_available("vm:bookworm")
    assert "install the package qemu-system-x86" in str(failed.value)
    for name in (qemu.PROGRAM, "cc"):
        (programs / name).write_text("")
        (programs / name).chmod(0o755)
    # A kernel by its path needs no apt.
    host.require_available("vm:/boot/vmlinuz")
    with pytest.raises(EngineError, match="no program apt-get") as failed:
        host.require_available("vm:bookworm")
    assert "vm:/path/to/vmlinuz" in str(failed.value)
    found = {check.name: check for check in host.findings()}
    assert found["apt-get"].status == "missing"
    assert found["mptcplab-kernel"].found == str(program)
    assert all(check.remedy for check in found.values() if check.status == "missing")


@pytest.mark.usefixtures("emulated")
def test_the_command_compares_kernels(scenario: Path, tmp_path: Path, capsys: Any) -> None:
    from mptcplab.cli import app

    words = ["kernels", str(scenario), "--kernels", "bookworm,trixie-backports", "--out", str(tmp_path / "out")]
    words += ["--cc", "lia", "--reps", "1", "--duration", "2 s", "--set", "warmup=500 ms", "--json"]
    assert not app(words, standalone_mode=False)
    shown = capsys.readouterr()
    assert json.loads(shown.out)["engines"] == ["vm:bookworm", "vm:trixie-backports"]
    assert f"vm:bookworm is Linux {RELEASES['bookworm']}" in shown.err


def test_traces_that_are_none_cannot_be_merged(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(MptcplabError, match=r"run\.parquet"):
        _core.merge_traces([(tmp_path / "empty", 0)], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("*.partial"))


def runs_in(trace: Path) -> list[int]:
    return pl.read_parquet(trace / "run.parquet")["run"].to_list()


def test_one_run_of_a_sweep_can_be_simulated_alone(scenario: Path, tmp_path: Path) -> None:
    for run in range(4):
        _core.run(scenario, tmp_path / "parts", '{"duration": "1500 ms"}', 1, None, [run])
    _core.run(scenario, tmp_path / "all", '{"duration": "1500 ms"}')
    parts = [(part, run) for part in sorted((tmp_path / "all").iterdir()) for run in runs_in(part)]
    _core.merge_traces(parts, tmp_path / "whole")
    parts = [(part, run) for part in sorted((tmp_path / "parts").iterdir()) for run in runs_in(part)]
    assert len({part for part, _ in parts}) == 4
    _core.merge_traces(parts, tmp_path / "merged")
    for table in TABLES:
        one, other = (pl.read_parquet(tmp_path / name / f"{table}.parquet") for name in ("whole", "merged"))
        assert one.equals(other), table
        names = (tmp_path / name / f"{table}.parquet" for name in ("whole", "merged"))
        assert len({path.read_bytes() for path in names}) == 1, table


@pytest.mark.usefixtures("emulated")
def test_doctor_names_what_the_engine_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_engine, "query", lambda *_, **__: {"ready": False, "findings": []})
    found = mptcplab.doctor()
    assert {check["name"] for check in found["vm"]} >= {qemu.PROGRAM, "cc", "cache"}


def test_snapshots_are_removed_unless_used_lately_or_now(tmp_path: Path) -> None:
    days = {"today": 0, "week": 7, "month": 29, "fourth": 30, "held": 50, "draft-1": 1}
    for name, age in days.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "memory").touch()
        (tmp_path / f"{name}.lock").touch()
        os.utime(tmp_path / name, (time.time() - age * 86_400,) * 2)
    (tmp_path / "lockstep-1.so").touch()
    with cache.acquired(tmp_path / "held.lock", fcntl.LOCK_SH):
        kept.remove_old(tmp_path, 3)
        left = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")}
        assert left == {"today", "week", "month", "held", "lockstep-1.so"}
        assert not (tmp_path / "fourth.lock").exists()
    kept.remove_old(tmp_path, 3)
    assert not (tmp_path / "held").exists()


def test_an_old_snapshot_is_removed_whatever_a_killed_process_has_left(tmp_path: Path) -> None:
    """Before, what was left had the name that the removal needed, and every command failed for an hour."""
    for name in ("ab12", "draft-ab12", "cd34"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"memory of {name}").touch()
    os.utime(tmp_path / "ab12", (time.time() - 41 * 86_400,) * 2)
    kept.remove_old(tmp_path, 5)
    assert {path.name for path in tmp_path.iterdir()} == {"draft-ab12", "cd34"}


def test_a_lock_that_was_removed_meanwhile_protects_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = cache.acquired(path, fcntl.LOCK_EX)
    waiting = threading.Thread(target=lambda: seen.append(cache.acquired(path, fcntl.LOCK_EX)))
    seen: list[Any] = []
    waiting.start()
    time.sleep(0.1)
    path.unlink()
    first.close()
    waiting.join()
    assert os.path.samestat(os.fstat(seen[0].fileno()), path.stat())
    seen[0].close()


def _pages(path: Path, pages: Mapping[int, bytes], count: int = 40_000) -> Path:
    """A file with some pages that begin with some bytes, and holes between them."""
    with path.open("wb") as file:
        file.truncate(4096 * count)
        for page, content in pages.items():
            file.seek(4096 * page)
            file.write(content.ljust(4096, b"\1"))
    return path


def _changed(memory: Path, changes: Path) -> bytes:
    """What lockstep.c makes of a memory."""
    found, rest = bytearray(memory.read_bytes()), changes.read_bytes()
    while True:
        offset, length = struct.unpack_from("<QQ", rest)
        if length == 0:
            assert (offset, len(rest)) == (len(found), 16)
            return bytes(found)
        found[offset : offset + length] = rest[16 : 16 + length]
        rest = rest[16 + length :]


def test_a_snapshot_keeps_only_the_pages_that_have_changed(tmp_path: Path) -> None:
    old = _pages(tmp_path / "old", {0: b"a", 7: b"b", 8: b"c", 9: b"d", 30_000: b"e"})
    new = tmp_path / "new"
    prepared._copy(old, new)
    assert new.read_bytes() == old.read_bytes()
    assert new.stat().st_blocks <= old.stat().st_blocks
    with new.open("r+b") as file:
        # A byte at the end of a page, two pages in a row, one that becomes empty, one that was a hole, the last one.
        for place, content in (
            (4096 * 8 - 1, b"x"),
            (4096 * 8, b"yz"),
            (4096 * 9 + 5, bytes(9)),
            (4096 * 39_999, b"!"),
        ):
            file.seek(place)
            file.write(content)
    prepared._write_changes(old, new, tmp_path / "changes")
    assert _changed(old, tmp_path / "changes") == new.read_bytes()
    assert (tmp_path / "changes").stat().st_size == 4 * 4096 + 3 * 16
    prepared._write_changes(old, old, tmp_path / "none")
    assert (tmp_path / "none").stat().st_size == 16
    # Zeros that a file system keeps as a hole are a change as well.
    hollow = _pages(tmp_path / "hollow", {0: b"a"})
    prepared._write_changes(old, hollow, tmp_path / "changes")
    assert _changed(old, tmp_path / "changes") == hollow.read_bytes()


def test_who_waits_for_what_another_makes_can_be_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    with cache.acquired(tmp_path / "it.lock", fcntl.LOCK_EX):
        threading.Timer(0.1, stop.set).start()
        with pytest.raises(kept.StoppedError):
            kept.kept(tmp_path / "it", lambda _draft: None, most=1, stopped=stop.is_set)
    # Nothing is made for those who do not need it any more.
    with pytest.raises(kept.StoppedError):
        kept.kept(tmp_path / "it", lambda _draft: pytest.fail("made"), most=1, stopped=stop.is_set)
    assert not (tmp_path / "it").exists()


def _memory(path: Path, *timers: tuple[int, int, int]) -> Path:
    """A machine's memory with the shortest delay (ns), `mult` and `shift` of some timers between other bytes."""
    held = b"".join(os.urandom(12) + struct.pack("<QII", *timer) for timer in timers)
    path.write_bytes(bytes(4096) + held + bytes(4096))
    return path


def test_the_timer_of_the_processor_is_as_fast_as_its_clock(tmp_path: Path) -> None:
    """Linux measured 62,499,910 instead of 62,500,000 ticks per second; another timer has another frequency."""
    own, other = (1000, 268_435_069, 32), (12_571, 5_124_677, 32)
    memory = _memory(tmp_path / "memory", own, other, own)
    before = memory.read_bytes()
    speed.correct_timer(memory)
    after = memory.read_bytes()
    found = [struct.unpack_from("<QII", after, 4096 + 28 * at + 12) for at in range(3)]
    assert found == [(1000, 4 * 2**28, 32), other, (1000, 4 * 2**28, 32)]
    assert sum(one != two for one, two in zip(before, after, strict=True)) <= 8


@pytest.mark.parametrize("copies", [0, 1, 3])
def test_a_kernel_whose_timer_is_elsewhere_is_refused(tmp_path: Path, copies: int) -> None:
    memory = _memory(tmp_path / "memory", *[(1000, 2**28, 32)] * copies, (1000, 2**28, 31), (1000, 2**27, 32))
    before = memory.read_bytes()
    with pytest.raises(EngineError, match=f"has {copies} copies in the machine's memory instead of 2"):
        speed.correct_timer(memory)
    assert memory.read_bytes() == before
