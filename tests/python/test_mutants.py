"""The mutants of `make mutants`: each is in the program, and a number chooses it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "mutants"))

import c_sources
import rust_sources
import schemata

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
