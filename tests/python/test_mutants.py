"""The mutants of `make mutants`: each is in the program, and can be chosen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import FunctionType

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "mutants"))

import c_sources
import forks
import python_code
import python_statements
import rust_sources
import schemata
from known import Known

C = """\
#include <stdio.h>
/* 7 < 8 is in a comment and 9 + 10 as well */
static int less(int a, int b)
{
	if (a < b) {
		return a + b;
	}
	return a - b;
}

int main(void)
{
	printf("%d %d %d", less(3, 5), less(5, 5), less(9, 5));
	return 0;
}
"""
RUST = """\
pub fn outer(x: [u8; 2]) -> u8 {
    fn inner(y: u8) -> u8 {
        y + 1
    }
    inner(x[0]) * 3
}
"""
PYTHON = """\
from functools import cache

@cache
def remembered(x, scale=3):
    def inner(y):
        return y + 1
    return inner(x) * scale

class Shape:
    sides = 4

    def corners(self):
        return self.sides - 0
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")
def test_every_mutant_of_c_is_chosen_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "less.c").write_text(C)
    changes = c_sources.listed(tmp_path, ["less.c"])
    assert [change.name for change in changes] == [
        "replace < with <=",
        "replace < with >",
        "replace + with -",
        "replace - with +",
    ]
    c_sources.put(tmp_path, changes)
    compiler = c_sources.flags(tmp_path)["CC"]
    subprocess.run([compiler, "-o", "less", "less.c"], cwd=tmp_path, check=True)

    def printed(number: int) -> str:
        env = {**os.environ, schemata.CHOICE: str(number)}
        return subprocess.run([tmp_path / "less"], env=env, check=True, capture_output=True, text=True).stdout

    assert [printed(number) for number in range(5)] == ["8 0 4", "8 10 4", "-2 0 14", "-2 0 4", "8 10 14"]


def test_an_error_names_the_mutant_whose_body_it_is_in() -> None:
    plus, times = RUST.index("+"), RUST.index("*")
    inner = RUST.index("{\n        y"), RUST.index("    inner(x") - 1
    outer = RUST.index("{\n    fn"), len(RUST) - 1
    changes = [
        schemata.Change(4, "a.rs", plus, plus + 1, "-", inner, "replace + with -"),
        schemata.Change(9, "a.rs", times, times + 1, "/", outer, "replace * with /"),
    ]
    mutated = schemata._mutated(RUST, changes, rust_sources._SWITCH)
    lines = mutated.text.splitlines()
    owners = {text.strip(): mutated.owners_of(number) for number, text in enumerate(lines, 1)}
    # A function inside of another is changed where the outer one is chosen.
    assert owners["y - 1"] == (4,)
    assert owners["inner(x[0]) / 3"] == (9,)
    assert sorted(owners["match crate::chosen_mutant() {"]) == [4, 9]
    assert owners["pub fn outer(x: [u8; 2]) -> u8 {"] == ()
    assert sum(text.strip() == "y + 1" for text in lines) == 2


def test_the_body_of_a_function_begins_behind_its_types() -> None:
    function = "fn f<'a>(x: [u8; { 1 + 1 }], y: &'a str) -> (u8, [u8; { 2 }]) // {\n{ '{'; 1 }"
    assert function[rust_sources._opening_brace(function) :] == "{ '{'; 1 }"


@pytest.mark.parametrize(
    "old, new, names",
    [
        ("y + 1", "y - 1", ["remembered"]),
        ("y + 1", "y + True", ["remembered"]),
        ("inner(x) * scale", "inner(x) / scale", ["remembered"]),
        ("self.sides - 0", "self.sides - 1", ["corners"]),
        # These run when the module is imported.
        ("scale=3", "scale=4", None),
        ("sides = 4", "sides = 4.0", None),
        ("@cache\n", "\n", None),
        ("import cache", "import cached_property", None),
        ("y + 1", "y + 1", []),
    ],
)
def test_a_change_of_python_is_one_of_functions_or_of_the_import(old: str, new: str, names: list[str] | None) -> None:
    assert PYTHON.count(old) == 1
    found = python_code.changed(PYTHON, PYTHON.replace(old, new), "shapes.py")
    assert (None if found is None else [code.co_name for code in found]) == names


def test_functions_are_changed_in_the_process_of_a_mutant_alone() -> None:
    space: dict[str, FunctionType] = {}
    exec(compile(PYTHON, "shapes.py", "exec", dont_inherit=True), space)
    # An equal function of another file stays as it is.
    other: dict[str, FunctionType] = {}
    exec(compile(PYTHON, "others.py", "exec", dont_inherit=True), other)
    remembered, elsewhere = space["remembered"], other["remembered"]
    assert (remembered(5), elsewhere(5)) == (18, 18)
    functions = python_code.Functions()
    changed = {
        text: python_code.changed(PYTHON, PYTHON.replace("y + 1", text), "shapes.py") for text in ("y - 1", "y * 7")
    }

    def work(text: str, expected: int) -> int:
        codes = changed[text]
        assert codes is not None and functions.have(codes)
        functions.change(codes)
        return 0 if (remembered(5), elsewhere(5)) == (expected, 18) else 1

    jobs = [
        forks.Job("right", 60, lambda _: work("y - 1", 12)),
        forks.Job("wrong", 60, lambda _: work("y - 1", 105)),
        forks.Job("other", 60, lambda _: work("y * 7", 105)),
    ]
    assert dict(forks.done(jobs, 2)) == {"right": True, "wrong": False, "other": True}
    assert remembered(6) == 21


def test_a_function_that_is_not_there_yet_cannot_be_changed() -> None:
    functions = python_code.Functions()
    codes = python_code.changed(PYTHON, PYTHON.replace("y + 1", "y - 2"), "later.py")
    assert codes is not None and not functions.have(codes)


def test_what_hangs_or_crashes_has_not_passed_and_leaves_nothing(tmp_path: Path) -> None:
    def hang(folder: Path) -> int:
        process = subprocess.Popen(["sleep", "600"])
        (folder / "unfinished").touch()
        (tmp_path / "started").write_text(f"{process.pid} {folder}")
        return process.wait()

    jobs = [
        forks.Job("hangs", 1.5, hang),
        forks.Job("crashes", 60, lambda _: 1 // 0),
        forks.Job("ends", 60, lambda _: 0),
    ]
    assert dict(forks.done(jobs, 3)) == {"hangs": False, "crashes": False, "ends": True}
    process, folder = (tmp_path / "started").read_text().split()
    # It was killed, but a busy processor may get to it later.
    until = time.monotonic() + 20
    while not ended(int(process)):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert not Path(folder).exists()


def ended(process: int) -> bool:
    """Whether a process is gone, or will be once its parent looks."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return True
    return state == "Z"


def test_a_test_that_fails_without_a_change_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("def test_good():\n    pass\n\ndef test_bad():\n    assert False\n")
    (tmp_path / "try.py").write_text(
        "from types import SimpleNamespace\n"
        "from python_collected import tried_collected\n"
        "reach = SimpleNamespace(is_short=lambda name: True, limit_s=lambda names: 60.0)\n"
        "list(tried_collected([], reach, ['-q', '-p', 'no:cacheprovider', 'test_x.py']))\n"
    )
    scripts = Path(forks.__file__).parent
    done = subprocess.run(
        [sys.executable, "try.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(scripts)},
    )
    assert done.returncode != 0
    assert "without a change" in done.stderr
    assert "test_x.py::test_bad fails" in done.stderr


def test_a_line_belongs_to_the_head_of_its_statement(tmp_path: Path) -> None:
    lines = [
        "@decorated",  # 1
        "def function(",
        "    first=1,",
        "    second=2,",
        "):",
        "    table = {",  # 6
        "        1: 2,",
        "    }",
        "    if first and (",  # 9
        "        second",
        "    ):",
        "        return 3",  # 12
        "    match table:",
        "        case 1: return 4",
        "    while first: first -= 1",  # 15
        "    return 5",
    ]
    path = tmp_path / "lines.py"
    path.write_text("\n".join(lines))
    spans = {3: (1, 5), 7: (6, 8), 10: (9, 11), 12: (12, 12), 13: (13, 13), 14: (14, 14), 15: (15, 15), 16: (16, 16)}
    found = {line: python_statements.statement(str(path), line) for line in spans}
    assert {line: (span[0], span[-1]) for line, span in found.items()} == spans


@pytest.mark.parametrize("again, listed, other", [(True, None, False), (False, True, None)])
def test_either_the_listed_mutants_are_tried_or_the_others(
    again: bool, listed: bool | None, other: bool | None
) -> None:
    before = Known({"a.py: - 1 + 2"}, again=again)
    assert before.survived("a.py: - 1 + 2") is listed
    assert before.survived("b.py: - 1 + 2") is other
