"""Algorithms that are compiled while the program runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from command_line import lab
from kernel_program import need_root, program

import mptcplab
from mptcplab import Algorithm, MptcplabError, ScenarioError
from mptcplab.declarations import declared
from mptcplab.engines.digests import run_digests
from mptcplab.scenario import Overrides

ROOT = Path(__file__).resolve().parents[2]


def source(name: str, template: str = "template-coupled") -> str:
    text = (ROOT / "algorithms" / f"{template}.c").read_text()
    stem = template.replace("-", "_")
    return text.replace(stem, name).replace(stem.upper(), name.upper())


def windows(results: mptcplab.Results, cc: str) -> list[float]:
    runs = results.runs.filter(results.runs["cc"] == cc)["run"].to_list()
    return results.subflow.filter(results.subflow["run"].is_in(runs))["cwnd_pkts"].to_list()


def test_a_file_runs_as_the_same_file_of_the_build(scenario: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text(source("mine"))
    cc = [f"{file}(least_share=0.25)", "template-coupled(least_share=0.25)"]
    results = mptcplab.run(scenario, cc=cc, reps=1, out=tmp_path / "out")
    mine, builtin = results.runs["cc"].to_list()
    assert (mine, builtin) == ("mine(least_share=0.25)", "template-coupled(least_share=0.25)")
    assert windows(results, mine) == windows(results, builtin)
    # The record tells this file from any other of its name; the build says what the others are.
    records = {row["cc"]: json.loads(row["resolved"])["flows"][0]["cc"] for row in results.runs.iter_rows(named=True)}
    assert len(records[mine]["source"]) == 64
    assert "source" not in records[builtin]


def test_the_command_of_a_report_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text(source("mine"))
    changes = Overrides.of([f"{file}(least_share=0.5)", "lia"], None, None, None, None, None)
    assert changes.cc == ("mine(least_share=0.5)", "lia")
    assert changes.to_options() == ["--cc", f"{file}(least_share=0.5),lia"]
    assert Overrides.from_json(changes.to_json()) == changes


def test_a_source_in_python_is_compiled_and_replaced(scenario: Path) -> None:
    halver = Algorithm.from_source(source("halver", "template"))
    assert str(halver) == "halver"
    first = mptcplab.run(scenario, cc=halver, reps=1)
    # At a loss four fifths of the window remain, instead of half of it.
    gentle = source("halver", "template").replace(
        "CC_PARAM(decrease, .initial = 0.5", "CC_PARAM(decrease, .initial = 0.8"
    )
    assert gentle != source("halver", "template")
    second = mptcplab.run(scenario, cc=[Algorithm.from_source(gentle)], reps=1)
    assert first.subflow["cwnd_pkts"].to_list() != second.subflow["cwnd_pkts"].to_list()


def test_what_is_wrong_is_said_with_the_line(scenario: Path, tmp_path: Path) -> None:
    text = source("mine").replace("u64 sum = 0;", "u64 sum = nothing;")
    line = 1 + next(i for i, line in enumerate(text.splitlines()) if "nothing" in line)
    with pytest.raises(ScenarioError, match=rf"mine\.c:{line}:.*nothing"):
        Algorithm.from_source(text)
    with pytest.raises(ScenarioError, match="the source registers no algorithm"):
        Algorithm.from_source('#include "cc.h"\n')
    with pytest.raises(ScenarioError, match=r"lia\.c: lia is an algorithm of this build"):
        Algorithm.from_source(source("lia"))
    with pytest.raises(MptcplabError, match="not an algorithm: 3"):
        mptcplab.run(scenario, cc=[3])  # type: ignore[list-item]
    missing = tmp_path / "missing.c"
    done = lab("run", scenario, "--cc", missing, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {missing}: No such file or directory\n\nhint: ")


CRASHES = {
    "by-zero": ("acked / (tp->snd_cwnd > 20 ? tp->snd_cwnd - 21 : 1)", "divides by zero"),
    "trap": ("(tp->snd_cwnd > 20 ? (__builtin_trap(), 1) : 1)", "does what has no defined result"),
    "astray": ("(tp->snd_cwnd > 20 ? *(u32 *)((u64)tp->snd_cwnd << 32) : 1)", "uses an address that is not its own"),
}
CRASHING = """
static void crash(struct sock *sk, u32 ack, u32 acked)
{{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_cwnd += {value};
}}

CC_UNCOUPLED({name});
CC_REGISTER({name}, .ssthresh = cc_reno_ssthresh, .cong_avoid = crash, .undo_cwnd = cc_reno_undo_cwnd);
"""


@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_names_the_file(name: str, scenario: Path, tmp_path: Path) -> None:
    value, what = CRASHES[name]
    head, _, _ = (ROOT / "algorithms" / "reno.c").read_text().partition("\nCC_UNCOUPLED")
    file = tmp_path / f"{name}.c"
    file.write_text(head + CRASHING.format(name=name.replace("-", "_"), value=value))
    # Loaded after it; its code is not to blame.
    (tmp_path / "mine.c").write_text(source("mine"))
    words = ["run", scenario, "--cc", f"{file},{tmp_path / 'mine.c'}", "--out", tmp_path / "out"]
    ended = subprocess.run([sys.executable, "-m", "mptcplab", *words], capture_output=True, text=True)
    assert ended.returncode == 2
    assert f"error: {file}: the algorithm {what}" in ended.stderr
    assert "mine" not in ended.stderr


def processor_time_s(pid: int) -> float:
    """What all threads of a process have used (proc_pid_stat(5): utime and stime)."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def test_a_loop_without_an_end_can_be_interrupted(scenario: Path, tmp_path: Path) -> None:
    """Ctrl-C waited for it for ever."""
    head, _, _ = (ROOT / "algorithms" / "reno.c").read_text().partition("\nCC_UNCOUPLED")
    file = tmp_path / "endless.c"
    file.write_text(head + CRASHING.format(name="endless", value='1; for (;;) __asm__ volatile("")'))
    words = ["run", scenario, "--cc", file, "--out", tmp_path / "out"]
    with subprocess.Popen(
        [sys.executable, "-m", "mptcplab", *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        # Of its own time, so that it is in the loop and not in the imports, however busy the machine is.
        while child.poll() is None and processor_time_s(child.pid) < 6:
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        try:
            _, stderr = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 2
    assert f"error: {file}: the algorithm does not return" in stderr
    assert not (tmp_path / "out").exists()


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Editors on Windows write one, and the compiler stopped at it."""
    file = tmp_path / "marked.c"
    file.write_text(source("marked", "template"), encoding="utf-8-sig")
    assert Algorithm.from_file(file).name == "marked"


def test_the_fluid_has_no_model_of_it(scenario: Path) -> None:
    mine = Algorithm.from_source(source("mine"))
    with pytest.raises(MptcplabError, match="no fluid model"):
        mptcplab.run(scenario, cc=mine, engine="fluid")


# Two connections over two links, each with its own algorithm; the last flow has one for a single path.
TWO_CONNECTIONS = """
duration = "1500 ms"
warmup = "500 ms"
tcp = { tso = true, comp_sack = true, send_jitter = "0 s" }
[links.wide]
from = "S"
to = "D"
rate = "9 Mbit/s"
delay = "8 ms"
queue = "40 packets"
[links.narrow]
from = "S"
to = "D"
rate = "6 Mbit/s"
delay = "14 ms"
queue = "30 packets"
[flows.first]
paths = [["wide"], ["narrow"]]
scheduler = "linger"
[flows.second]
paths = [["narrow"], ["wide"]]
scheduler = "linger"
[flows.third]
path = ["wide"]
"""


def algorithms_of(results: mptcplab.Results) -> list[dict[str, str]]:
    """Which algorithm each subflow ran, by run."""
    found = [json.loads(text) for text in results.runs["subflow_cc"]]
    return [{f"{one['flow']}/{one['subflow']}": one["cc"] for one in run} for run in found]


@pytest.mark.kernel
def test_the_kernel_runs_it_beside_those_of_the_build(tmp_path: Path) -> None:
    program()
    need_root()
    file = tmp_path / "scenario.toml"
    file.write_text(TWO_CONNECTIONS)
    mine = Algorithm.from_source(source("mine"))
    # Its name is enough.
    Algorithm.from_source(source("plain", "template"))
    settings = {"flows.second.cc": "plain(decrease=0.6)", "flows.third.cc": "cubic"}
    results = mptcplab.run(file, cc=[mine, "lia"], engine="kernel", reps=1, settings=settings)
    # A busy machine may be late.
    assert all(not why or "late" in why for why in results.runs["status_reason"])
    # As read back from the sockets.
    for cc, found in zip(("mine", "lia"), algorithms_of(results), strict=True):
        assert found == {
            "first/sf1": cc,
            "first/sf2": cc,
            "second/sf1": "plain",
            "second/sf2": "plain",
            "third/sf1": "cubic",
        }
    simulated = mptcplab.run(file, cc=mine, reps=1, settings=settings)
    kernel, _, sim = (
        {flow["name"]: flow["cc"] for flow in json.loads(text)["flows"]}
        for text in (*results.runs["resolved"], *simulated.runs["resolved"])
    )
    assert len(kernel["first"]["source"]) == 64
    assert (kernel["first"], kernel["second"]) == (sim["first"], sim["second"])
    # Another text is another algorithm, for which nothing is kept.
    asked = Overrides.of([mine, "lia"], 1, None, None, None, settings).to_json()
    assert run_digests(str(file), asked, "kernel") == results.runs["digest"].to_list()
    Algorithm.from_source(source("mine") + "/* */\n")
    changed, same = run_digests(str(file), asked, "kernel")
    assert (changed != results.runs["digest"][0], same) == (True, results.runs["digest"][1])


@pytest.mark.kernel
def test_what_the_kernel_refuses_is_said_with_the_line(scenario: Path, tmp_path: Path) -> None:
    program()
    need_root()
    out = tmp_path / "out"
    text = source("spin").replace(
        "u64 sum = 0;", "volatile u32 k = set->self;\n\tu64 sum = 0;\n\n\twhile (k)\n\t\tk++;"
    )
    with pytest.raises(mptcplab.EngineError, match=r"the kernel refused spin as mpl_.*\n\n.*infinite loop detected"):
        mptcplab.run(scenario, cc=Algorithm.from_source(text), engine="kernel", reps=1, duration="2 s", out=out)
    # What only clang refuses comes before the first run, also before those of the simulator.
    faulty = source("faulty") + "#ifdef __bpf__\nstatic int f(void) { return nothing; }\n#endif\n"
    line = len(faulty.splitlines()) - 1
    with pytest.raises(ScenarioError, match=rf"faulty\.c:{line}:\d+: error: .*nothing"):
        mptcplab.run(scenario, cc=Algorithm.from_source(faulty), engine="sim,kernel", reps=1, out=out)
    assert not list(tmp_path.glob("out*"))


@pytest.mark.kernel
def test_the_kernel_needs_a_clang(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program()
    need_root()
    monkeypatch.setenv("MPTCPLAB_CLANG", "no-such-clang")
    mine = Algorithm.from_source(source("unmade"))
    with pytest.raises(mptcplab.EngineError, match=r"unmade\.c .* for the kernel: no-such-clang: .*\n\nhint: install"):
        mptcplab.run(scenario, cc=mine, engine="kernel", reps=1)


# CAP_BPF and CAP_PERFMON, permitted and effective (struct vfs_cap_data of linux/capability.h).
FILE_CAPABILITIES = struct.pack("<IIIII", 0x02000001, 0, 0, 1 << 38 - 32 | 1 << 39 - 32, 0)


PLAIN = """
duration = "1 s"
cc = "mine"
[links.A]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "4 ms"
queue = "20 packets"
[flows.f]
path = ["A"]
"""


@pytest.mark.kernel
def test_its_code_does_not_get_the_capabilities_of_the_program_file() -> None:
    need_root()
    # Below a directory that everybody can enter.
    with tempfile.TemporaryDirectory(prefix="mptcplab-test-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        copy, file = home / "mptcplab-kernel", home / "mine.c"
        shutil.copyfile(program(), copy)
        copy.chmod(0o755)
        file.write_text(source("mine"))
        try:
            os.setxattr(copy, "security.capability", FILE_CAPABILITIES)
        except OSError as error:
            pytest.skip(f"SKIPPED, NOT TESTED: a file cannot have capabilities here: {error}")
        for words in (["cc", "load", str(file)], ["run", "--scenario", "x", "--out", "y", "--algorithms", directory]):
            done = subprocess.run([copy, *words], capture_output=True, text=True, user=65534, group=65534, check=False)
            assert done.returncode == 2, done.stderr
            assert done.stderr.startswith("error: C files cannot be loaded with the capabilities of the program file")
        # What a machine needs for them is said after the capabilities were given up.
        compiled, scenario = home / "compiled", home / "scenario.toml"
        subprocess.run([program(), "compile", file, "--out", compiled], capture_output=True, check=True)
        compiled.chmod(0o755)
        scenario.write_text(PLAIN)
        words = ["preparations", "--scenario", str(scenario), "--algorithms", str(compiled)]
        done = subprocess.run([copy, *words], capture_output=True, text=True, user=65534, group=65534, check=False)
        assert done.returncode == 0, done.stderr
        (text,) = json.loads(done.stdout)
        assert json.loads(text)["algorithms"][0]["choice"]["name"] == "mine"


def test_a_compiler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(mptcplab.EngineError, match=r"no-such-compiler: .*\n\nhint: install a C compiler"):
        Algorithm.from_source(source("mine"))


def test_a_file_declares_what_the_build_reads_from_it() -> None:
    for known in mptcplab.algorithms():
        text = (ROOT / "algorithms" / f"{known['name']}.c").read_text()
        found = declared(Algorithm(known["name"], "x.c", text))
        same = ("name", "title", "coupled", "sections", "incomplete")
        assert {key: found[key] for key in same} == {key: known[key] for key in same}
        assert {"ssthresh", "undo_cwnd"} <= found["hooks"].keys()
        # Those of a header's macro are not known, and no constant that is defined elsewhere.
        values = {one["name"]: one for one in found["params"] if one["doc"] != "declared by this macro"}
        for one in known["params"]:
            own = values.pop(one["name"], one)
            assert own["doc"] == one["doc"]
            if not any(character.isupper() for character in own["default_text"] + own["range"]):
                assert own["default_text"] == one["default_text"], one
        assert not values


def test_a_c_file_is_described_as_an_algorithm_of_the_build(tmp_path: Path) -> None:
    """`mptcplab algorithms ./mine.c` said that there was no such algorithm."""
    file = tmp_path / "mine.c"
    file.write_text(source("mine"))
    done = lab("algorithms", "mine.c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mine: Reno weighted by the packets between losses (coupled)\n\nIdea\n  an example")
    parameter = "least_share = 0.0625  (0.0625 to 1)  least share of the increase that a path gets (s_r)"
    for part in (parameter, "\nHooks\n", "  ssthresh = mine_ssthresh\n", "  mptcplab run SCENARIO --cc mine.c\n"):
        assert part in done.stdout, part
    assert json.loads(lab("algorithms", "mine.c", "--json", cwd=tmp_path).stdout)["place"] == "mine.c"
    assert "no such file" in lab("algorithms", "none.c", cwd=tmp_path).stderr.lower()
    file.write_text("/* a draft */\nint x")
    assert lab("algorithms", "mine.c", cwd=tmp_path).returncode == 2
