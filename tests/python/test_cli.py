"""The command line: output, errors and exit codes."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from command_line import in_process, lab, program

from mptcplab import terminal
from mptcplab.cli import kernel, options, studies
from mptcplab.cli.app import app


def entries(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_the_rate_of_progress_is_that_of_the_last_seconds() -> None:
    """After the simulator's 9000 s in 10 s, the kernel runs in real time; after 15 s only its rate counts."""
    rate = terminal._RateOfWork(100.0)
    assert rate.at(110.0, 9000.0) == 900
    assert rate.at(112.0, 9002.0) == pytest.approx(9002 / 12)
    assert rate.at(127.0, 9017.0) == 1.0
    assert rate.at(130.0, 4.0) == 0
    assert rate.at(132.0, 10.0) == 5.0


def test_version(tmp_path: Path) -> None:
    done = lab("--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, build, *engines = done.stdout.splitlines()
    assert re.fullmatch(r"mptcplab \d+\.\d+\.\d+", first)
    assert re.fullmatch(r"build: +\S.*, rustc .*, release", build)
    assert [line.split()[0] for line in engines] == ["sim:", "kernel:", "vm:", "fluid:"]


def test_run_prints_the_table_and_writes_a_report(scenario: Path, tmp_path: Path) -> None:
    done = lab("run", scenario, "--cc", "lia", "--cc", "reno,olia", "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split()[0] for line in done.stdout.splitlines() if " ± " in line]
    assert rows == ["lia", "lia", "reno", "reno", "olia", "olia"]  # flows mp and tcp
    assert "report: results/two-paths/report.html" in done.stderr
    assert (tmp_path / "results/two-paths/report.html").is_file()
    assert "only 2 repetitions" in done.stderr


def test_the_report_names_the_command_that_was_run(scenario: Path, tmp_path: Path) -> None:
    options = (
        "--cc",
        "lia,olia",
        "--reps",
        "3",
        "--seed",
        "5",
        "--duration",
        "2 s",
        "--set",
        'links.B.queue="9 packets"',
    )
    lab("run", scenario, *options, "--out", "o", cwd=tmp_path)
    page = html.unescape((tmp_path / "o" / "report.html").read_text())
    assert "mptcplab run two-paths.toml --cc lia,olia --reps 3 --seed 5 --duration '2 s'" in page
    assert """ --set 'links.B.queue="9 packets"'""" in page


def test_a_narrow_terminal_cuts_columns_not_numbers(scenario: Path, tmp_path: Path) -> None:
    narrow = {"COLUMNS": "60", "TTY_COMPATIBLE": "1", "NO_COLOR": "1"}
    done = lab("run", scenario, "--cc", "lia,olia", "--no-report", cwd=tmp_path, **narrow)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", done.stdout).splitlines()
    assert max(map(len, lines)) <= 60
    assert "…" not in done.stdout
    assert "the terminal is too narrow for: " in done.stderr
    # NO_COLOR: bold may be, colours may not.
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", done.stdout + done.stderr)


def test_another_sweep_never_overwrites_and_the_same_one_makes_nothing(scenario: Path, tmp_path: Path) -> None:
    short = ("--cc", "reno", "--reps", "1", "--no-report")
    for seconds in (2, 3, 2, 4):
        assert lab("run", scenario, *short, "--duration", f"{seconds} s", cwd=tmp_path).returncode == 0
    assert entries(tmp_path / "results") == {"two-paths", "two-paths-2", "two-paths-3"}
    assert not (tmp_path / "results/two-paths/report.html").exists()


def test_run_as_json(scenario: Path, tmp_path: Path) -> None:
    done = lab(
        "run", scenario, "--cc", "reno", "--duration", "2 s", "--out", "o", "--no-report", "--json", cwd=tmp_path
    )
    found = json.loads(done.stdout)
    assert found["results"] == "o"
    assert found["report"] is None
    assert found["runs"] == 2
    assert {row["config"] for row in found["summary"]} == {"reno"}


@pytest.mark.parametrize("place", ["o", "results/two-paths"])
def test_a_removed_report_is_mentioned(place: str, scenario: Path, tmp_path: Path) -> None:
    words = ["run", scenario, "--cc", "reno", "--duration", "2 s", *(["--out", place] if place == "o" else [])]
    with_report = lab(*words, "--reps", "1", cwd=tmp_path)
    extended = lab(*words, "--reps", "2", "--no-report", cwd=tmp_path)
    again = lab(*words, "--reps", "2", "--no-report", cwd=tmp_path)
    said = f"the report of the earlier runs was removed; `mptcplab report {place}` writes one"
    assert [said in done.stderr for done in (with_report, extended, again)] == [False, True, False]
    assert not (tmp_path / place / "report.html").exists()


def test_a_run_that_mixes_the_rules_of_two_kernels_says_so_once(scenario: Path, tmp_path: Path) -> None:
    """An out-of-tree ACK profile with algorithms by the rule of their source; Reno has no dialect."""
    words = ("run", scenario, "--cc", "lia,olia,balia(dialect=mptcp-0.95),reno", "--duration", "2 s")
    mixed = lab(*words, "--profile", "linux-legacy", "--out", "mixed", cwd=tmp_path)
    note = "profile linux-legacy counts ACKs as the out-of-tree kernel did, but lia, olia ran by the rule of the source"
    assert mixed.stderr.count(note) == 1
    assert "lia(dialect=mptcp-0.95) is that kernel's" in mixed.stderr
    assert note in html.unescape((tmp_path / "mixed/report.html").read_text())
    as_json = lab(*words, "--profile", "linux-pre4", "--no-report", "--out", "json", "--json", cwd=tmp_path)
    (found,) = json.loads(as_json.stdout)["notes"]
    assert found.startswith("profile linux-pre4 counts ACKs")
    assert as_json.stderr.count(f"note: {found}") == 1
    ours = lab(*words, "--profile", "linux-acked", "--no-report", "--out", "ours", cwd=tmp_path)
    words = ("run", scenario, "--cc", "balia(dialect=mptcp-0.95)", "--duration", "2 s", "--no-report")
    theirs = lab(*words, "--profile", "linux-legacy", cwd=tmp_path)
    assert "out-of-tree" not in ours.stderr + theirs.stderr


def test_report_writes_the_page_again(scenario: Path, tmp_path: Path) -> None:
    lab("run", scenario, "--cc", "reno", "--out", "o", "--no-report", cwd=tmp_path)
    done = lab("report", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"report.html", "summary.csv", "summary.json", "figures"} <= entries(tmp_path / "o")


def test_check_says_what_it_understood(scenario: Path, tmp_path: Path) -> None:
    done = lab("check", scenario, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Two unequal paths" in done.stdout
    resolved = json.loads(lab("check", scenario, "--json", cwd=tmp_path).stdout)["resolved"]
    assert resolved["runs"] == 4


def test_changes_of_links_after_the_end_of_the_run_are_noted(tmp_path: Path) -> None:
    """A run that was shortened to end before the outage it was made for said nothing about that."""
    file = tmp_path / "outage.toml"
    file.write_text(
        """\
duration = "9 s"
cc = ["lia", "reno"]
[links.wifi]
from = "S"
to = "D"
rate = "6 Mbit/s"
delay = "10 ms"
schedule = [{ at = "2 s", up = false }, { at = "4 s", up = true }]
[links.lte]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "30 ms"
schedule = [{ at = "1 s", rate = "2 Mbit/s" }, { at = "5 s", rate = "4 Mbit/s" }]
[links.dsl]
from = "S"
to = "D"
rate = "1 Mbit/s"
delay = "20 ms"
schedule = [{ at = "5 s", rate = "2 Mbit/s" }]
[flows.mp]
paths = [["wifi"], ["lte"], ["dsl"]]
"""
    )
    notes = [
        "link wifi: changes from 2 s on have no effect, because the run ends at 2 s",
        "links lte, dsl: changes from 5 s on have no effect, because the run ends at 2 s",
    ]
    shortened = ("--duration", "2 s", "--cc", "lia")
    assert lab("check", file, *shortened, cwd=tmp_path).stderr.split("\n")[:-1] == [f"note: {one}" for one in notes]
    assert json.loads(lab("check", file, "--json", *shortened, cwd=tmp_path).stdout)["notes"] == notes
    done = lab("run", file, *shortened, "--no-report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.removeprefix("note: ") for line in done.stderr.split("\n") if " no effect" in line] == notes
    # Of the runs of a sweep, only those that are too short.
    swept = lab("check", file, "--sweep", "duration=4.5 s, 9 s", cwd=tmp_path)
    assert swept.returncode == 0, swept.stderr
    assert swept.stderr == "note: links lte, dsl: changes from 5 s on have no effect, because the run ends at 4.5 s\n"
    assert lab("check", file, cwd=tmp_path).stderr == ""


def test_algorithms_lists_and_explains(tmp_path: Path) -> None:
    names = [entry["name"] for entry in json.loads(lab("algorithms", "--json", cwd=tmp_path).stdout)]
    listed = lab("algorithms", cwd=tmp_path).stdout
    assert "lia" in names
    for name in names:
        assert re.search(rf"^{name}\b", listed, re.M)
    assert lab("algorithms", "lia", cwd=tmp_path).stdout.startswith("lia: ")


def test_a_list_that_is_piped_is_as_wide_as_a_page_and_complete(tmp_path: Path) -> None:
    listed = lab("algorithms", cwd=tmp_path).stdout
    assert max(map(len, listed.splitlines())) <= 100
    words = " ".join(listed.split())
    for entry in json.loads(lab("algorithms", "--json", cwd=tmp_path).stdout):
        assert set(entry["title"].split()) <= set(words.split()), entry["name"]
        for param in entry["params"]:
            assert param["name"] in words, (entry["name"], param["name"])


def test_the_summaries_of_commands_are_not_cut(tmp_path: Path) -> None:
    for words in ((), ("cc",)):
        listed = lab(*words, "--help", cwd=tmp_path, COLUMNS="80").stdout
        _, commands = listed.split("Commands:\n")
        assert "..." not in commands


def test_an_algorithm_can_be_given_several_parameters(scenario: Path, tmp_path: Path) -> None:
    words = (
        "check",
        scenario,
        "--json",
        "--cc",
        "olia(metric=draft,dialect=spec), lia",
        "--cc",
        "cubic(c=0.5,beta=0.75)",
    )
    done = lab(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (axis,) = json.loads(done.stdout)["resolved"]["axes"]
    assert axis["values"] == ["olia(metric=draft,dialect=spec)", "lia", "cubic(c=0.5,beta=0.75)"]


def test_schema_is_a_json_schema(tmp_path: Path) -> None:
    assert "$schema" in json.loads(lab("schema", cwd=tmp_path).stdout)


ERRORS = {
    "no file": (
        ("run", "nowhere.toml"),
        r"error: .*nowhere\.toml.*",
    ),
    "unknown key": (
        ("run", "bad.toml"),
        r"error: bad\.toml:14:1: links\.A\.dealy: .*\n\nhint: did you mean \"delay\"\?\n",
    ),
    "unknown algorithm": (
        ("run", "two-paths.toml", "--cc", "oliaa"),
        r"error: .*oliaa.*\n\nhint: .*olia.*\n",
    ),
    "a directory as scenario": (
        ("run", "full"),
        r"error: full: cannot be read: Is a directory.*\n\nhint: give the path of a scenario file.*\n",
    ),
    "not TOML": (
        ("check", "full/thesis.tex"),
        r"error: full/thesis\.tex:1:\d+: not TOML: .*\n\nhint: .*\n",
    ),
    "empty list": (
        ("run", "two-paths.toml", "--cc", ", "),
        r"error: cc: no name in this list: ', '\n\nhint: such as lia,olia\n",
    ),
    "algorithm named twice": (
        ("run", "two-paths.toml", "--cc", "lia", "--cc", "lia"),
        r"error: command line: cc: \"lia\" is in the list twice\n\nhint: .*\n",
    ),
    "no repetitions": (
        ("run", "two-paths.toml", "--reps", "0"),
        r"error: Invalid value for '--reps': .*1.*\n\nhint: .*--help.*\n",
    ),
    "negative threads": (
        ("run", "two-paths.toml", "--jobs", "-1"),
        r"error: Invalid value for '--jobs': .*0.*\n\nhint: .*--help.*\n",
    ),
    "duration without unit": (
        ("run", "two-paths.toml", "--duration", "3"),
        r"error: command line: duration: \"3\" is not a duration\n\nhint: write \"3 s\"\n",
    ),
    "unknown key in an override": (
        ("run", "two-paths.toml", "--set", 'links.B.rat="9 Mbit/s"'),
        r"error: command line: links\.B\.rat: .*\n\nhint: did you mean \"rate\"\?\n",
    ),
    "output below a file": (
        ("run", "two-paths.toml", "--out", "full/thesis.tex/o"),
        r"error: cannot create output directory: full/thesis\.tex: .*\n\nhint: choose another --out\n",
    ),
    "pages into a file": (
        ("docs", "--out", "two-paths.toml"),
        r"error: cannot write the pages: two-paths\.toml: File exists\n\nhint: choose another --out\n",
    ),
    "the fidelity page into a file": (
        ("fidelity", "--quick", "--out", "two-paths.toml"),
        r"error: cannot write the page: two-paths\.toml: File exists\n\nhint: choose another --out\n",
    ),
    "a file as results": (
        ("report", "two-paths.toml"),
        r"error: no such results directory: two-paths\.toml\n\nhint: .*\n",
    ),
    "scenario as vectors": (
        ("vectors", "two-paths.toml"),
        r"error: not a vector file: two-paths\.toml: .*",
    ),
    "bad override": (
        ("run", "two-paths.toml", "--set", "links.B.rate"),
        r"error: --set needs KEY=VALUE: 'links\.B\.rate'\n\nhint: such as --set .*\n",
    ),
    "unknown option": (
        ("run", "two-paths.toml", "--repz", "3"),
        r"error: No such option: --repz.*\n\nhint: .*--help.*\n",
    ),
    "unknown command": (
        ("rum",),
        r"error: No such command .rum.*\n\nhint: .*--help.*\n",
    ),
    "foreign directory": (
        ("run", "two-paths.toml", "--out", "full"),
        r"error: output directory is not empty: full\n\nhint: choose another --out, or --force to replace .*\n",
    ),
    "foreign directory forced": (
        ("run", "two-paths.toml", "--out", "full", "--force"),
        r"error: output directory holds files other than an earlier result: full\n\nhint: .*another --out\n",
    ),
    "output is a file": (
        ("run", "two-paths.toml", "--out", "two-paths.toml"),
        r"error: output is not a directory: two-paths\.toml\n\nhint: .*\n",
    ),
    "no results": (
        ("report", "full"),
        r"error: not a results directory: full: run\.parquet is missing\n\nhint: .*\n",
    ),
    "no such algorithm": (
        ("algorithms", "bali"),
        r"error: no algorithm \"bali\"\n\nhint: did you mean \"balia\"\?\n",
    ),
    "no such scheduler": (
        ("schedulers", "zzzz"),
        r"error: no scheduler \"zzzz\"\n\nhint: schedulers: minrtt, .*linger.*\n",
    ),
    "no vectors": (
        ("vectors", "nowhere.json"),
        r"error: .*nowhere\.json.*",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_cause_and_exit_with_2(case: str, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(scenario.read_text().replace("delay", "dealy", 1))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("dear")
    before = entries(tmp_path)
    words, expected = ERRORS[case]
    done = lab(*words, cwd=tmp_path)
    assert re.fullmatch(expected, done.stderr, re.S), done.stderr
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    assert entries(tmp_path) == before
    assert (tmp_path / "full" / "thesis.tex").read_text() == "dear"


def test_debugging_shows_the_traceback(tmp_path: Path) -> None:
    done = lab("report", "nowhere", cwd=tmp_path, MPTCPLAB_DEBUG="1")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_force_replaces_a_former_result(scenario: Path, tmp_path: Path) -> None:
    short = ("--reps", "1", "--duration", "2 s", "--no-report", "--out", "o")
    assert lab("run", scenario, "--cc", "reno", *short, cwd=tmp_path).returncode == 0
    assert lab("run", scenario, "--cc", "lia", *short, cwd=tmp_path).returncode == 2
    done = lab("run", scenario, "--cc", "lia", "--force", "--json", *short, cwd=tmp_path)
    assert {row["config"] for row in json.loads(done.stdout)["summary"]} == {"lia"}
    assert entries(tmp_path) == {"o", scenario.name}


def test_a_failed_replacement_keeps_the_former_result(scenario: Path, tmp_path: Path) -> None:
    short = ("--duration", "2 s", "--no-report", "--out", "o")
    lab("run", scenario, "--cc", "reno", *short, cwd=tmp_path)
    before = (tmp_path / "o" / "run.parquet").read_bytes()
    assert lab("run", scenario, "--cc", "nosuch", "--force", *short, cwd=tmp_path).returncode == 2
    assert (tmp_path / "o" / "run.parquet").read_bytes() == before
    assert entries(tmp_path) == {"o", scenario.name}


def test_an_interrupt_leaves_nothing(scenario: Path, tmp_path: Path) -> None:
    before = entries(tmp_path)
    long = ("--duration", "20 h", "--reps", "2", "--set", 'sample="off"')
    command = program("run", scenario, "--out", "deep/o", *long)
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    # The engine's directory in the making shows that it is at work.
    deadline = time.monotonic() + 20
    while not (tmp_path / "deep").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert (out, err) == ("", "error: interrupted\n")
    assert entries(tmp_path) == before


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    process = subprocess.Popen(program("schema"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(20) == 0


@pytest.mark.parametrize("words", [("--version",), ("algorithms",), ("schema",)])
def test_without_standard_output_a_command_does_its_work(words: tuple[str, ...]) -> None:
    command = ["sh", "-c", '"$@" >&-', "sh", *program(*words)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("schedulers", "--quick"), "--quick needs --compare"),
        (("schedulers", "--out", "x"), "--out needs --compare"),
        (("cc", "persist", "lia", "--print", "--json"), "--print prints the unit, which is no JSON: --json"),
        (("run", "{scenario}", "--jobs", "5000"), "jobs: 5000 is out of range"),
        (("check", "{scenario}", "--cc", "lia", "--sweep", "cc=lia,olia"), "a key is set and swept: cc"),
        (("check", "{scenario}", "--profile", "rfc", "--sweep", "profile=rfc"), "a key is set and swept: profile"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    words: tuple[str, ...], said: str, scenario: Path, tmp_path: Path
) -> None:
    given = [word.format(scenario=scenario) for word in words]
    done = lab(*given, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "hint: " in done.stderr


def test_an_output_without_utf8_gets_question_marks(scenario: Path, tmp_path: Path) -> None:
    """Every table with an interval was an internal error there."""
    title = "3 \N{RIGHTWARDS ARROW} 5"
    scenario.write_text(scenario.read_text().replace("Two unequal paths", title))
    words = ("run", scenario, "--cc", "lia", "--duration", "2 s", "--out", "r", "--no-report")
    assert " \N{PLUS-MINUS SIGN} " in lab(*words, cwd=tmp_path).stdout
    for setting in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        table = in_process("report", "r", cwd=tmp_path, **setting)
        assert (table.returncode, " ? " in table.stdout) == (0, True), table.stderr
        checked = in_process("check", scenario, cwd=tmp_path, **setting)
        assert (checked.returncode, "3 ? 5" in checked.stdout) == (0, True), checked.stderr
        # Programs get all of it.
        data = json.loads(in_process("check", scenario, "--json", cwd=tmp_path, **setting).stdout)
        assert data["resolved"]["title"] == title


def test_a_name_of_results_that_is_no_text_is_an_error(scenario: Path, tmp_path: Path) -> None:
    """It was an internal error of what reads the tables."""
    words = ("run", scenario, "--cc", "lia", "--reps", "1", "--duration", "2 s", "--out", "r", "--no-report")
    assert lab(*words, cwd=tmp_path).returncode == 0
    name = os.fsdecode(b"r\xff")
    (tmp_path / "r").rename(tmp_path / name)
    done = lab("report", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: not a name in UTF-8: r\\udcff\n\nhint: rename the directory; ")
    (found,) = json.loads(lab("ls", ".", "--json", cwd=tmp_path).stdout)
    assert (found["state"], found["remark"]) == ("damaged", "not a name in UTF-8: r\\udcff")


@pytest.mark.parametrize("command", [("check",), ("run", "--out", "r"), ("agree", "--engines", "sim,fluid")])
def test_a_scenario_from_a_pipe_is_refused(command: tuple[str, ...], scenario: Path, tmp_path: Path) -> None:
    """It was read twice, and all its keys were missing the second time."""
    words = program(*command, "/dev/stdin")
    text = scenario.read_text()
    done = subprocess.run(words, cwd=tmp_path, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: /dev/stdin: a pipe or a device, not a file\n\nhint: write it to a file")
    assert entries(tmp_path) == {scenario.name}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("run", ""), "SCENARIO"),
        (("run", "two-paths.toml", "--out", ""), "--out"),
        (("report", ""), "DIRECTORY"),
        (("ls", ""), "DIRECTORY"),
        (("merge", "a", "", "--out", "b"), "DIRECTORY..."),
        (("new", ""), "FILE"),
        (("agree", ""), "SCENARIO"),
    ],
)
def test_an_empty_path_is_refused(words: tuple[str, ...], name: str, scenario: Path, tmp_path: Path) -> None:
    """It was the current directory: the path of a shell variable that is not set."""
    done = lab(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: Invalid value for '{name}': an empty path; . is the current directory\n")
    assert entries(tmp_path) == {scenario.name}


def test_every_path_of_a_command_is_read_in_the_same_way() -> None:
    read = []
    for command in (*app.registered_commands, *kernel.cc.registered_commands):
        assert command.callback is not None
        for name, hint in get_type_hints(command.callback, include_extras=True).items():
            if Path in (hint, *flat(hint)):
                assert hint.__metadata__[0].parser is options.path, (command.callback.__name__, name)
                read.append(name)
    assert len(read) >= 20


def flat(hint: object) -> Iterator[object]:
    """The types of which a type is made."""
    for part in get_args(hint):
        yield part
        yield from flat(part)


@pytest.mark.parametrize("words", [("--version",), ("algorithms",), ("schema",)])
def test_a_full_disk_behind_the_output_is_an_error(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(program(*words), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "error: cannot write to the standard output: No space left on device\n\n"
        "hint: make room there, or print to another place\n"
    )


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null"])
def test_messages_that_nobody_can_read_change_no_exit_code(path: str, scenario: Path, tmp_path: Path) -> None:
    for words, code in (
        (["check", "nosuch.toml"], 2),
        (["run", scenario, "--cc", "lia", "--reps", "1", "--out", "out"], 0),
    ):
        with Path(path).open("w") as stderr:
            done = subprocess.run(program(*words), stdout=subprocess.PIPE, stderr=stderr, cwd=tmp_path, check=False)
        assert done.returncode == code
    assert (tmp_path / "out" / "report.html").is_file()


def test_what_others_wrote_reaches_the_terminal_as_text(scenario: Path, tmp_path: Path) -> None:
    """No emoji for `:100:`, no style for `[red]`, and no escape sequence in a title."""
    done = lab("check", "no:100:[red]\x1b[31m.toml", cwd=tmp_path)
    assert "no:100:[red]\\x1b[31m.toml" in done.stderr
    text = scenario.read_text()
    named = tmp_path / "named.toml"
    named.write_text(re.sub(r"(?m)^cc = .*$", 'cc = ["none:100:\\\\u001b]0;owned\\\\u0007"]', text, count=1))
    done = lab("run", named, "--out", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert ":100:" in done.stderr


def test_vectors_of_the_specification_pass(tmp_path: Path) -> None:
    files = sorted(Path(__file__).resolve().parents[2].glob("crates/mptcplab-cc/**/vectors.json"))
    assert files
    done = lab("vectors", files[0], "--json", cwd=tmp_path)
    found = {entry["name"]: entry for entry in json.loads(done.stdout)["algorithms"]}
    assert done.returncode == 0
    assert found["lia"]["passed"] > 0
    assert found["lia"]["failed"] == 0


def test_a_failing_vector_gives_exit_code_1(tmp_path: Path) -> None:
    files = sorted(Path(__file__).resolve().parents[2].glob("crates/mptcplab-cc/**/vectors.json"))
    text = files[0].read_text()
    data = json.loads(text)
    spoiled = json.dumps(_spoil(data))
    (tmp_path / "v.json").write_text(spoiled)
    done = lab("vectors", "v.json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "expected" in done.stderr


def _spoil(data: object) -> object:
    """Double every expected number; groups are names of subflows, which would not be there."""
    if isinstance(data, dict):
        return {key: _double(value) if key.startswith("expect") else _spoil(value) for key, value in data.items()}
    return [_spoil(item) for item in data] if isinstance(data, list) else data


def _double(data: object) -> object:
    if isinstance(data, dict):
        return {key: value if key == "groups" else _double(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_double(item) for item in data]
    return data if isinstance(data, bool) or not isinstance(data, int | float) else 2 * data


LOST = """
import os, signal, time
from mptcplab.cli.app import _end_in_order

class Slow:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.05)

_end_in_order()
try:
    slow = Slow()
    del slow
    time.sleep(20)
    print("lost")
except KeyboardInterrupt:
    print("arrived")
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_an_interrupt_in_a_destructor_is_not_lost(name: str) -> None:
    """Python prints and forgets what is raised there, and the command went on to its end."""
    done = subprocess.run([sys.executable, "-c", LOST.format(name=name)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("arrived\n", "")


LATE = """\
import importlib, os, signal, sys
from mptcplab import terminal
from mptcplab.errors import OutputError

module = importlib.import_module("mptcplab.cli.app")
printed = terminal.error

class Panic(BaseException):
    pass

def fails(**_):
    if {panics}:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except BaseException as error:
            raise Panic("called unwrap on an Err value") from error
    raise OutputError("cannot write to x")

def prints(message):
    os.kill(os.getpid(), signal.SIGINT)
    printed(message)

module.app = fails
terminal.error = prints
sys.argv = ["mptcplab"]
module.main()
"""


@pytest.mark.parametrize(
    ("panics", "code", "message"), [(True, 143, "ended by SIGTERM"), (False, 2, "cannot write to x")]
)
def test_a_signal_that_comes_late_or_to_a_library_is_no_bug(panics: bool, code: int, message: str) -> None:
    """While an error is printed it changes nothing; from Python that Rust has called it comes as a panic."""
    command = [sys.executable, "-c", LATE.format(panics=panics)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"error: {message}\n")


def test_a_study_leaves_the_cores_to_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    monkeypatch.setenv("POLARS_MAX_THREADS", "7")
    studies._leave_cores_to_runs()
    assert os.environ["POLARS_MAX_THREADS"] == "7"
    monkeypatch.delenv("POLARS_MAX_THREADS")
    studies._leave_cores_to_runs()
    assert os.environ["POLARS_MAX_THREADS"] == "3"


@pytest.mark.parametrize(
    "words",
    [
        ("agree", "--all", "--engines", "sim,fluid", "--only", "papers/nope.toml"),
        ("reproduce", "kim2021", "--experiment", "ADW-0"),
        ("reproduce", "kim2021", "--claim", "ADW-0"),
    ],
)
def test_a_name_that_is_none_leaves_no_directory(words: tuple[str, ...], tmp_path: Path) -> None:
    """Directories for the results were made before the name was looked up."""
    refused = lab(*words, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert re.match("error: (no such|not a scenario).*\n\nhint: ", refused.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_new_scenario_for_a_dash_is_printed(tmp_path: Path) -> None:
    """It became a file of that name, which no other command takes."""
    done = lab("new", "-", cwd=tmp_path)
    assert done.stdout == lab("new", cwd=tmp_path).stdout
    assert list(tmp_path.iterdir()) == []
