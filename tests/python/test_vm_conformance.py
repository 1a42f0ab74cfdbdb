"""Debian's kernels do what the conformance scripts say, apart from what tests/conformance/kernel.toml names."""

from __future__ import annotations

import sys
from pathlib import Path

import kernel_program
import pytest

from mptcplab.engines.vm.kernels import Kernel

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))

import conformance
import run as kernels_test
from conformance import Played


def _kernel(suite: str) -> Kernel:
    kernel_program.program()
    return kernel_program.virtual_kernel(suite, "cargo")


@pytest.mark.parametrize("suite", kernels_test.MATRIX)
def test_a_kernel_follows_the_scripts(suite: str) -> None:
    kernel = _kernel(suite)
    found = conformance.played(kernel, conformance.scripts())
    assert len(found) == len(conformance.scripts())
    assert conformance.surprises(found, conformance.known(), kernel.release) == []


WRONG = {
    "too_few.script": (b"100 > 0:9\n", "line 1: expected 0:9, but sent 0:10"),
    "too_early.script": (b"100 > 0:10\n200 < ack 1\n280 > 10:12\n", "line 3: sent 79."),
    "nothing.script": (b"100 > 0:10\n250 > nothing\n310 > nothing\n", "line 3: expected nothing, but sent 10:11"),
    "more.script": (b"100 > 0:10\n200 < ack 1\n", "after the last line: unexpected 10:12"),
    "state.script": (b"100 > 0:10\n200 < ack 1\n200 > 10:12\n200 = cwnd 12", "line 4: cwnd is 11, not 12"),
    "time.script": (b"100 > 0:10\n200 < ack 1\n200 > 10:12\n200 = srtt 98", "line 4: srtt is 100."),
    "ack.script": (
        b"! receiver\n100 < 2:4\n100 > ack 0 sack 2:3, ack 0 sack 2:5\n",
        "line 3: expected ack 0 sack 2:3, ",
    ),
}


def test_a_wrong_line_differs() -> None:
    found = conformance.played(_kernel("bookworm"), {name: script for name, (script, _) in WRONG.items()})
    for name, (_, why) in WRONG.items():
        one = found[Path(name).stem]
        assert one.outcome == "differs", name
        assert one.why.startswith(why), f"{name}: {one.why}"


KNOWN = {
    "cannot": {"paced": "no"},
    "differs": {
        "ratio": {"says": "line 3: cwnd is 8", "why": "a"},
        "quick": {"before": "6.12", "says": "line 9", "why": "b"},
    },
}
FOUND = {
    "paced": Played("cannot", "pacing", ()),
    "plain": Played("agrees", "", ("lost",)),
    "quick": Played("differs", "line 9: ack 17", ()),
    "ratio": Played("differs", "line 3: cwnd is 8, not 7", ()),
}


def test_what_is_not_as_listed_is_a_surprise() -> None:
    assert conformance.surprises(FOUND, KNOWN, "6.1.0-50-cloud-amd64") == []
    assert conformance.surprises(FOUND | {"quick": Played("agrees", "", ())}, KNOWN, "6.12.95+deb12-cloud-amd64") == []
    changed = FOUND | {
        "paced": Played("agrees", "", ()),
        "plain": Played("differs", "line 1: no", ()),
        "ratio": Played("differs", "line 4: cwnd is 8, not 7", ()),
    }
    assert conformance.surprises(changed, KNOWN, "6.12.95+deb12-cloud-amd64") == [
        "paced: agrees, not cannot: every line holds",
        "plain: differs, not agrees: line 1: no",
        "quick: differs, not agrees: line 9: ack 17",
        "ratio: differs, not differs: line 4: cwnd is 8, not 7",
    ]
    del changed["quick"], changed["paced"]
    assert conformance.surprises(changed, KNOWN, "7.3.4-cloud-amd64")[-2:] == [
        "kernel.toml: there is no script paced",
        "kernel.toml: there is no script quick",
    ]
