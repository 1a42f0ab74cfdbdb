"""The end of `make test` counts what was skipped, from the output of all kinds of tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "skips.py"

# What the kinds of tests print; a Rust test that passes prints inside of "successes".
OUTPUT = """\
running 2 tests
test one ... ok

successes:

---- one stdout ----
SKIPPED: one needs root
a number

successes:
    one
    two

test result: ok. 2 passed
---- three stdout ----
SKIPPED, NOT TESTED: this needs root
test result: ok. 1 passed
SKIPPED [3] tests/python/test_vm.py:12: SKIPPED, NOT TESTED: no QEMU (Debian package qemu-system-x86)
SKIPPED [1] tests/python/test_cc.py:50: SKIPPED, NOT TESTED: this needs root
-- SKIPPED: the kernel engine, because packages are missing: clang
-- SKIPPED: the kernel engine, because packages are missing: clang
"""


def call(command: str, log: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(SCRIPT), command, str(log)]
    return subprocess.run(words, input=text, capture_output=True, text=True, check=True)


def test_skips_of_all_kinds_are_counted_by_reason(tmp_path: Path) -> None:
    log = tmp_path / "skips"
    shown = call("record", log, OUTPUT).stdout
    assert "a number" not in shown
    assert "test one ... ok\n" in shown
    assert shown.count("test result: ok") == 2
    assert call("count", log).stderr.splitlines() == [
        "-- Skipped, and therefore NOT TESTED: 7",
        "      3  no QEMU (Debian package qemu-system-x86)",
        "      3  this needs root",
        "      1  the kernel engine, because packages are missing: clang",
    ]


def test_a_run_without_skips_says_so(tmp_path: Path) -> None:
    log = tmp_path / "skips"
    assert call("record", log, "running 1 test\ntest result: ok. 1 passed\n").stdout.endswith("1 passed\n")
    assert call("count", log).stderr == "-- Skipped: nothing\n"
