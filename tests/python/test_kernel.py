"""The kernel engine's front end, with a program that stands in for `mptcplab-kernel`.

The real program is tested where it is written; these tests cover how the front end handles its output, its exit
codes and its files.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from command_line import lab

import mptcplab
from mptcplab import api
from mptcplab.engines import kernel
from mptcplab.errors import EngineError, OutputError, RefusedError, ScenarioError
from mptcplab.results import Results

# Simulates, and labels the result as the kernel's. The file `behaviour` beside it says what else it does.
FAKE = '''\
#!{python}
"""Stands in for mptcplab-kernel."""
import json, os, shutil, signal, sys, time
from pathlib import Path

HERE = Path(__file__).parent
if sys.argv[-1] == "--help":
    sys.exit("error: unexpected argument" if "wrong" in sys.argv else 0)
(HERE / "words").write_text(json.dumps(sys.argv[1:]))
behaviour = json.loads((HERE / "behaviour").read_text())


def fail(text, code=2):
    print(text, file=sys.stderr)
    sys.exit(code)


if sys.argv[1] != "run":
    print(behaviour.get("print", ""))
    sys.exit(behaviour.get("code", 0))
asked = dict(zip(sys.argv[2::2], sys.argv[3::2]))
if behaviour.get("wait"):
    def leave(*_):
        (HERE / "interrupted").write_text("")
        sys.exit(130)
    signal.signal(signal.SIGINT, leave)
    (HERE / "pid").write_text(str(os.getpid()))
    print(json.dumps(dict(type="progress", done_runs=0, total_runs=1, done_s=0.0, total_s=9.0)), flush=True)
    time.sleep(60)
if "error" in behaviour:
    print("libsomething: noise on stderr", file=sys.stderr)
    fail(behaviour["error"])
if "die" in behaviour:
    os.kill(os.getpid(), behaviour["die"])
import polars as pl
from mptcplab import _core
place = Path(asked["--out"])
only = [int(number) for number in asked["--run"].split(",")]
digests = Path(asked["--digests"]).read_text().splitlines()
_core.run(asked["--scenario"], HERE / "kept", asked["--overrides"], 1, None, only, digests)
kept = [(part, pl.read_parquet(part / "run.parquet")["run"]) for part in sorted((HERE / "kept").iterdir())]
parts = [(part, run) for part, runs in kept for run in runs]
runs = pl.concat(pl.read_parquet(part / "run.parquet") for part, _ in kept)
texts = [dict(engine="kernel", status="complete", status_reason="", host="{{}}") for _ in parts]
for run, status, reason in behaviour.get("status", []):
    texts[run] |= dict(status=status, status_reason=reason)
_core.merge_traces(parts, place / "000001", texts)
shutil.rmtree(HERE / "kept")
total = runs["duration_ns"].sum() / 1e9
print("noise on stdout")
for done in range(runs.height + 1):
    now = dict(done_runs=done, total_runs=runs.height, done_s=done * total / runs.height, total_s=total)
    print(json.dumps(dict(type="progress", run=done, **now)), flush=True)
print(json.dumps(dict(type="done")))
if "late_error" in behaviour:
    fail(behaviour["late_error"])
if any(status == "invalid" for _, status, _ in behaviour.get("status", [])):
    fail("warning: run 1 is invalid", 1)
'''

SHORT = ("--cc", "lia,reno", "--reps", "2", "--duration", "2 s", "--set", 'warmup="500 ms"')


class Fake:
    """The stand-in, and what it was asked."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self.home = home
        self.path = home / "mptcplab-kernel"
        self.path.write_text(FAKE.format(python=sys.executable))
        self.path.chmod(0o755)
        self.behave()

    def behave(self, **behaviour: object) -> None:
        (self.home / "behaviour").write_text(json.dumps(behaviour))

    @property
    def words(self) -> list[str]:
        return json.loads((self.home / "words").read_text())


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    stand_in = Fake(tmp_path / "kernel")
    monkeypatch.setenv(kernel.OVERRIDE, str(stand_in.path))
    # The stand-in loads nothing, so anybody may run it; in a child process the variable below says the same.
    monkeypatch.setattr(kernel, "_capabilities", lambda: None)
    return stand_in


# A command line that does not check privileges.
LAB = "import mptcplab.engines.kernel as k; k._capabilities = lambda: None; from mptcplab.cli import main; main()"


def test_the_program_is_called_for_exactly_this_sweep(fake: Fake, scenario: Path) -> None:
    results = mptcplab.run(
        scenario, cc=["lia"], reps=2, duration="2 s", settings={"warmup": '"500 ms"'}, engine="kernel", traffic="iperf3"
    )
    words = fake.words
    asked = dict(zip(words[1::2], words[2::2], strict=False))
    assert words[0] == "run"
    assert asked["--scenario"] == str(scenario)
    assert json.loads(asked["--overrides"]) == {
        "reps": 2,
        "duration": "2 s",
        "set": [["cc", '["lia"]'], ["warmup", '"500 ms"']],
    }
    assert "--json-progress" in words
    assert asked["--traffic"] == "iperf3"
    assert asked["--run"] == "0,1"
    assert results.engines == ["kernel"]


@pytest.mark.usefixtures("fake")
def test_two_engines_share_a_directory_and_a_table(scenario: Path, tmp_path: Path) -> None:
    """lia and reno, two repetitions, on both: eight runs with their own numbers, one row per algorithm and engine."""
    done = lab("run", scenario, *SHORT, "--engine", "sim,kernel", "--out", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "o"
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"sim", "kernel", "figures"}
    results = mptcplab.load(out)
    assert results.runs["run"].to_list() == list(range(8))
    assert results.runs["engine"].to_list() == ["sim"] * 4 + ["kernel"] * 4
    assert results.scan("transfer").collect().is_empty()
    for table in ("flow", "subflow", "link", "event"):
        assert results.scan(table).select(pl.col("run").unique().sort()).collect()["run"].to_list() == list(range(8))
    configs = results.configs["config"].unique(maintain_order=True).to_list()
    assert configs == ["lia (sim)", "lia (kernel)", "reno (sim)", "reno (kernel)"]
    rows = [found for line in done.stdout.splitlines() if (found := re.match(r"\w+ \((\w+)\) +(\w+) .*±", line))]
    assert [row.groups() for row in rows] == [
        (engine, flow) for _ in range(2) for engine in ("sim", "kernel") for flow in ("mp", "tcp")
    ]


@pytest.mark.usefixtures("fake")
def test_engines_are_compared_per_algorithm_and_flow(scenario: Path, tmp_path: Path) -> None:
    """With half of every byte in the kernel's trace, goodput differs by -50 %, the smoothed RTT not at all."""
    # The stand-in simulates without the noise that the kernel has by itself.
    exact = ("--set", "tcp.send_jitter=0 s")
    lab("run", scenario, *SHORT, *exact, "--engine", "sim,kernel", "--out", "o", "--no-report", cwd=tmp_path)
    real = tmp_path / "o" / "kernel"
    flow = pl.read_parquet(real / "flow.parquet")
    flow.with_columns(pl.col("delivered_bytes") // 2).write_parquet(real / "flow.parquet")
    (real / "checksums.json").unlink()
    done = lab("report", "o", cwd=tmp_path)
    compared = pl.read_csv(tmp_path / "o" / "comparison.csv").filter(pl.col("subflow").is_null())
    goodput, srtt = (compared.filter(metric=name) for name in ("goodput", "srtt_mean"))
    assert goodput.select("base", "flow").rows() == [("lia", "mp"), ("lia", "tcp"), ("reno", "mp"), ("reno", "tcp")]
    assert goodput["difference"].to_list() == pytest.approx([-50.0] * 4, abs=0.01)
    assert srtt["difference"].to_list() == pytest.approx([0.0] * 4)
    assert (srtt["reference"] > 12).all()  # base RTT of A
    assert len(re.findall(r"-50\.0 .*\+0\.0", done.stdout)) == 4
    page = html.unescape((tmp_path / "o" / "report.html").read_text())
    assert "Comparison of engines" in page
    assert "--engine sim,kernel</code>" in page
    assert "same bytes of trace" not in page


@pytest.mark.usefixtures("fake")
def test_the_tables_of_one_engine_can_be_read_alone_and_all_can_be_read_again(scenario: Path, tmp_path: Path) -> None:
    lab("run", scenario, *SHORT, "--engine", "sim,kernel", "--out", "o", "--no-report", cwd=tmp_path)
    assert mptcplab.load(tmp_path / "o" / "kernel").runs["run"].to_list() == [0, 1, 2, 3]
    again = lab("report", "o", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["runs"] == 8
    # An earlier result of two engines is a result of mptcplab, and can be replaced.
    forced = lab("run", scenario, *SHORT, "--engine", "kernel", "--out", "o", "--force", "--no-report", cwd=tmp_path)
    assert forced.returncode == 0, forced.stderr
    assert not (tmp_path / "o" / "sim").exists()
    (tmp_path / "o" / "thesis.tex").write_text("mine")
    refused = lab("run", scenario, *SHORT, "--out", "o", "--force", cwd=tmp_path)
    assert refused.returncode == 2


@pytest.mark.usefixtures("fake")
def test_progress_of_two_engines_is_one(scenario: Path) -> None:
    """Two simulated and two real runs of 2 s; beside real seconds a simulated one is a hundredth."""
    seen: list[tuple[int, int, float, float]] = []
    mptcplab.run(
        scenario, cc="lia", reps=2, duration="2 s", engine=["sim", "kernel"], progress=lambda *now: seen.append(now)
    )
    assert seen == sorted(seen)
    assert {(runs, total) for _, runs, _, total in seen} == {(4, 4.04)}
    assert seen[-1] == (4, 4, pytest.approx(4.04), 4.04)


def test_an_invalid_run_is_not_counted_and_never_good(fake: Fake, scenario: Path, tmp_path: Path) -> None:
    fake.behave(status=[(1, "invalid", "99 % of packets later than 3 ms")])
    done = lab("run", scenario, *SHORT, "--engine", "kernel", "--out", "o", cwd=tmp_path)
    assert done.returncode == 1
    warning = "warning: lia, repetition 2 (kernel) is invalid and not counted: 99 % of packets later than 3 ms"
    assert warning in done.stderr
    assert re.search(r"^lia +mp +1 of 2 invalid ", done.stdout, re.M)
    assert re.search(r"^reno +mp +complete ", done.stdout, re.M)
    page = html.unescape((tmp_path / "o" / "report.html").read_text())
    assert 'role="alert"' in page
    assert "99 % of packets later than 3 ms" in page
    assert '"lia, invalid"' in page  # its curves do not have the name of the runs that count
    # lia has one run that counts, reno two.
    summary = pl.read_csv(tmp_path / "o" / "summary.csv").filter(
        (pl.col("metric") == "goodput") & (pl.col("flow") == "tcp") & pl.col("subflow").is_null()
    )
    assert dict(summary.select("config", "n").iter_rows()) == {"lia": 1, "reno": 2}
    again = lab("report", "o", cwd=tmp_path)
    assert again.returncode == 1
    assert warning in again.stderr


def test_without_a_run_that_counts_there_are_no_numbers(fake: Fake, scenario: Path, tmp_path: Path) -> None:
    fake.behave(status=[(run, "invalid", "late") for run in range(4)])
    done = lab("run", scenario, *SHORT, "--engine", "kernel", "--out", "o", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "no run counts" in done.stderr
    row = re.search(r"^lia +mp +2 of 2 invalid(.*)$", done.stdout, re.M)
    assert row is not None
    assert not re.search(r"\d", row[1])


def test_a_run_that_ended_early_is_kept_marked_and_an_error(fake: Fake, scenario: Path, tmp_path: Path) -> None:
    fake.behave(
        status=[(3, "partial", "the receiver of flow tcp died")],
        late_error="error: run 3: the receiver of flow tcp died\n\nhint: look at dmesg",
    )
    done = lab("run", scenario, *SHORT, "--engine", "sim,kernel", "--out", "o", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith("error: run 3: the receiver of flow tcp died\n\nhint: look at dmesg")
    assert "is partial and not counted" in done.stderr
    assert 'role="alert"' in (tmp_path / "o" / "report.html").read_text()
    with pytest.raises(mptcplab.UnfinishedError, match="receiver") as caught:
        mptcplab.run(scenario, cc="lia", reps=4, duration="2 s", engine="kernel")
    assert [problem.status for problem in caught.value.results.excluded_runs] == ["partial"]
    assert caught.value.results.flow.height > 0


def test_a_full_disk_leaves_an_earlier_result_and_finished_runs_and_nothing_else(
    fake: Fake, scenario: Path, tmp_path: Path
) -> None:
    """An unfinished result with a second copy of the finished runs took the room that was missing."""
    out = tmp_path / "place" / "o"

    def run(reps: int) -> Results:
        return mptcplab.run(scenario, "lia", reps, engine="kernel", duration="2 s", out=out, progress=False)

    run(1)
    former = {path.name: path.read_bytes() for path in out.iterdir()}
    fake.behave(late_error="error: cannot write x/link.parquet: No space left on device (os error 28)\n\nhint: room")
    with pytest.raises(OutputError, match="No space left on device"):
        run(3)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == former
    assert sorted(path.name for path in out.parent.iterdir()) == ["o", "o.partial"]
    states = {Path(one.directory).name: (one.state, one.runs) for one in mptcplab.ls(out.parent)}
    assert states == {"o": ("complete", 1), "o.partial": ("unfinished", 2)}
    fake.behave()
    assert run(3).runs["rep"].to_list() == [0, 1, 2]
    assert [path.name for path in out.parent.iterdir()] == ["o"]


def test_a_list_calls_a_result_unfinished_whose_command_an_error_ended(
    fake: Fake, scenario: Path, tmp_path: Path
) -> None:
    """All its runs are complete, but it has not all that it was to have; it was listed as complete."""
    out = tmp_path / "place" / "o"
    mptcplab.run(scenario, "lia", 1, engine="kernel", duration="2 s", out=out, progress=False)
    fake.behave(late_error="error: the lab died")
    for at, suffix in enumerate(("", "-2"), 2):
        with pytest.raises(mptcplab.UnfinishedError, match="the lab died") as caught:
            mptcplab.run(scenario, "lia", at, engine="kernel", duration="2 s", out=out, force=True, progress=False)
        assert caught.value.results.directory.name == f"o.unfinished{suffix}"
        # The stand-in has one place for what it keeps.
        shutil.rmtree(out.with_name("o.partial"))
    states = {Path(one.directory).name: (one.state, one.remark) for one in mptcplab.ls(out.parent)}
    assert states["o"] == ("complete", "")
    for name in ("o.unfinished", "o.unfinished-2"):
        assert states[name] == ("unfinished", "an error ended its command; it has what was there by then")


def test_an_error_of_the_program_is_raised_with_its_hint(fake: Fake, scenario: Path, tmp_path: Path) -> None:
    fake.behave(error=f'error: {scenario}:9:1: scheduler: "minrtt"\n\nhint: leave it out')
    done = lab("run", scenario, "--engine", "kernel", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'error: {scenario}:9:1: scheduler: "minrtt"\n\nhint: leave it out\n'
    assert not (tmp_path / "results").exists()
    with pytest.raises(mptcplab.ScenarioError, match="minrtt"):
        mptcplab.run(scenario, engine="kernel")
    fake.behave(error="error: no BTF")
    with pytest.raises(mptcplab.EngineError, match=r"^no BTF$"):
        mptcplab.run(scenario, engine="kernel")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("{file}:9:1: scheduler: no", ScenarioError),
        ("{file} does not compile for the kernel", ScenarioError),
        ("command line: tcp.cwnd_clamp: 90 packets", ScenarioError),
        ("the kernel refused spin as mpl_3f_2: infinite loop detected", RefusedError),
        ("the kernel refused the tracer: no memory", EngineError),
        ("cannot write o/000001/link.parquet: No space left on device (os error 28)", OutputError),
        ("the kernel has no type information", EngineError),
    ],
)
def test_what_cannot_be_run_as_written_differs_from_a_machine_that_cannot_run_it(said: str, kind: type) -> None:
    found = kernel.failure(f"warning: slow\nerror: {said.format(file='x.toml')}\n\nhint: wait\n", 2, "x.toml")
    assert type(found) is kind
    assert str(found) == f"{said.format(file='x.toml')}\n\nhint: wait"


def test_a_program_that_ends_without_a_message_is_an_error(fake: Fake, scenario: Path) -> None:
    fake.behave(die=int(signal.SIGKILL))
    with pytest.raises(mptcplab.EngineError, match="without a message; signal 9 ended it"):
        mptcplab.run(scenario, engine="kernel")


def started(fake: Fake, *words: str | Path, cwd: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a command whose program waits; return it and the program's process number."""
    fake.behave(wait=True)
    command = [sys.executable, "-c", LAB, *map(str, words)]
    # As a shell with job control does it: a process group of its own.
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )
    pid = fake.home / "pid"
    for _ in range(300):
        if pid.exists() and pid.read_text():
            return process, int(pid.read_text())
        time.sleep(0.1)
    process.kill()
    raise AssertionError(f"the program did not start: {process.communicate()}")


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for(condition: object) -> bool:
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_an_interrupt_reaches_the_program_and_leaves_nothing(fake: Fake, scenario: Path, tmp_path: Path) -> None:
    process, pid = started(fake, "run", scenario, "--engine", "kernel", cwd=tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complaint == "error: interrupted\n"
    assert (fake.home / "interrupted").exists()
    assert not is_alive(pid)
    assert not (tmp_path / "results").exists()


def test_the_program_does_not_outlive_a_kill(fake: Fake, scenario: Path, tmp_path: Path) -> None:
    process, pid = started(fake, "run", scenario, "--engine", "kernel", cwd=tmp_path)
    assert is_alive(pid)
    process.kill()
    process.communicate()
    assert wait_for(lambda: not is_alive(pid))


def test_without_the_program_the_message_says_how_to_get_it(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(kernel.OVERRIDE, raising=False)
    monkeypatch.setattr(kernel, "BUILT", tmp_path / "nothing")
    monkeypatch.setattr(kernel, "NOT_BUILT", tmp_path / "not-built.txt")
    with pytest.raises(mptcplab.EngineError, match=r"(?s)not built yet\n\nhint: make setup.*`--engine sim`"):
        mptcplab.run(scenario, engine="kernel")
    (tmp_path / "not-built.txt").write_text(
        "missing packages: clang\nas root: apt-get install -y clang, then: make setup\n"
    )
    with pytest.raises(mptcplab.EngineError, match=r"built: missing packages: clang\n\nhint: as root: apt-get install"):
        mptcplab.run(scenario, engine="sim,kernel")
    monkeypatch.setenv(kernel.OVERRIDE, str(tmp_path))
    with pytest.raises(mptcplab.EngineError, match=f"no such program: {tmp_path} "):
        mptcplab.doctor()


@pytest.mark.usefixtures("fake")
def test_without_root_the_message_says_what_root_is_for(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_capabilities", lambda: 1 << kernel._CAP_BPF)
    with pytest.raises(
        mptcplab.EngineError, match=r"(?s)needs root.*loading .* eBPF.*real-time priority.*`--engine sim`"
    ):
        mptcplab.run(scenario, engine="sim,kernel")
    monkeypatch.setattr(kernel, "_capabilities", lambda: 1 << kernel._CAP_BPF | 1 << kernel._CAP_PERFMON)
    kernel.require_privileges()
    monkeypatch.setattr(kernel, "_capabilities", lambda: 1 << kernel._CAP_SYS_ADMIN)
    kernel.require_privileges()


def test_a_program_with_capabilities_needs_no_privileged_user(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_capabilities", lambda: 0)
    # Version 2 with the effective bit, and CAP_PERFMON (38) and CAP_BPF (39), bits 6 and 7 of the upper word.
    content = struct.pack("<5I", 0x02000001, 0, 0, 1 << 6 | 1 << 7, 0)
    monkeypatch.setattr(kernel.os, "getxattr", lambda *_: content)
    kernel.require_privileges()
    for wrong in (
        struct.pack("<5I", 0x02000000, 0, 0, 1 << 6 | 1 << 7, 0),
        struct.pack("<5I", 0x02000001, 0, 0, 1 << 7, 0),
        b"",
    ):
        monkeypatch.setattr(kernel.os, "getxattr", lambda *_, wrong=wrong: wrong)
        with pytest.raises(mptcplab.EngineError, match="needs root"):
            kernel.require_privileges()
    monkeypatch.undo()
    if os.geteuid() == 0:
        os.setxattr(fake.path, "security.capability", content)
        assert kernel._suffice(kernel._file_capabilities(fake.path))


def test_capabilities_of_this_process_are_read() -> None:
    held = kernel._capabilities()
    assert held is not None
    assert (held == 0) == (os.geteuid() != 0) or held > 0


@pytest.mark.parametrize(
    ("engine", "traffic", "message"),
    [
        ("ns3", "own", r"no such engine: 'ns3'\n\nhint: one of sim, kernel"),
        ("sim,sim", "own", "an engine is named twice"),
        (" , ", "own", "no engine in this list"),
        ("kernel", "netperf", "no such traffic: 'netperf'"),
        ("sim", "iperf3", "only the kernel engine"),
    ],
)
def test_engines_and_traffic_are_checked_before_anything_runs(
    fake: Fake, scenario: Path, engine: str, traffic: str, message: str
) -> None:
    with pytest.raises(mptcplab.MptcplabError, match=message):
        mptcplab.run(scenario, engine=engine, traffic=traffic)
    assert not (fake.home / "words").exists()


def test_old_results_without_a_status_count(scenario: Path) -> None:
    results = mptcplab.run(scenario, cc="lia", reps=1, duration="2 s")
    assert results.excluded_runs == []
    assert results.engines == ["sim"]
    assert results.configs["config"].to_list() == ["lia"]


COMMANDS = {
    ("cc", "load", "olia", "lia", "--param", "x=2", "--pin"): [
        "cc",
        "load",
        "--param",
        "x=2",
        "--pin",
        "--",
        "olia",
        "lia",
    ],
    ("cc", "load", "olia", "--connections", "9"): ["cc", "load", "--connections", "9", "--", "olia"],
    ("cc", "persist", "--remove"): ["cc", "persist", "--remove"],
    ("cc", "persist", "lia", "--print"): ["cc", "persist", "--print", "--", "lia"],
    ("cc", "list", "--json"): ["cc", "list", "--json"],
    ("cc", "unload", "--all"): ["cc", "unload", "--all"],
    ("cc", "unload", "olia"): ["cc", "unload", "--", "olia"],
    ("cc", "persist", "olia"): ["cc", "persist", "--", "olia"],
}


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_replace_the_process_by_the_program(fake: Fake, tmp_path: Path, words: tuple[str, ...]) -> None:
    fake.behave(print="a table", code=1)
    command = [sys.executable, "-c", LAB, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "a table\n", "")
    assert fake.words == COMMANDS[words]


def test_a_wrong_option_is_told_before_the_program_is_started(fake: Fake, tmp_path: Path) -> None:
    done = lab("cc", "load", "olia", "--profile", "wrong", cwd=tmp_path)
    hint = "hint: `mptcplab cc load --help` shows what it takes"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: unexpected argument\n\n{hint}\n")
    assert not (fake.home / "words").exists()


@pytest.mark.parametrize("options", [(), ("--pid", "77", "--rate", "9 Mbit/s", "--rtt", "30 ms")])
def test_doctor_shows_what_both_engines_need(fake: Fake, tmp_path: Path, options: tuple[str, ...]) -> None:
    fake.behave(print="a table", code=1)
    done = lab("doctor", *options, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("a table\n\nengine vm (")
    assert fake.words == ["doctor", *options]
    fake.behave(print='{"ready": false, "findings": [{"status": "missing"}]}', code=1)
    done = lab("doctor", *options, "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert {check["name"] for check in json.loads(done.stdout)["vm"]} >= {"qemu-system-x86_64", "cc"}
    assert fake.words == ["doctor", "--json", *options]
    # An error of the program is all that is shown.
    fake.behave(print="", code=2)
    assert lab("doctor", *options, cwd=tmp_path).stdout == "\n"


def test_the_api_requests_json(fake: Fake) -> None:
    fake.behave(print='{"ready": false}', code=1)
    assert mptcplab.doctor(pid=5, rate="1 Mbit/s", rtt="2 ms")["ready"] is False
    assert fake.words == ["doctor", "--json", "--pid", "5", "--rate", "1 Mbit/s", "--rtt", "2 ms"]
    fake.behave(print="[]")
    assert api.cc_load(["olia"], {"x": 3}) == []
    assert fake.words == ["cc", "load", "olia", "--param", "x=3", "--pin", "--json"]
    api.cc_unload()
    assert fake.words == ["cc", "unload", "--all", "--json"]
    fake.behave(print="", code=2)
    with pytest.raises(mptcplab.EngineError, match="its exit code was 2"):
        api.cc_list()
