"""Fixtures shared by the tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import started

ROOT = Path(__file__).resolve().parents[2]

# Two subflows of different rate, delay and loss next to a TCP flow; short enough for a test.
SCENARIO = """\
# How does a connection use two unequal paths beside a TCP flow?
title = "Two unequal paths"
source = "made for the tests"
duration = "3 s"
warmup = "1 s"
repetitions = 2
seed = 11
cc = ["lia", "reno"]

[links.A]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "6 ms"
queue = "40 packets"
loss = "0.5 %"

[links.B]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "17 ms"
queue = "25 packets"

[flows.mp]
paths = [["A"], ["B"]]

[flows.tcp]
paths = [["A"]]
cc = "cubic"
start = "uniform(0 s, 300 ms)"
"""


def pytest_configure() -> None:
    """Tests interrupt commands. In the background of a script, these would ignore it: they inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "two-paths.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def demo() -> Path:
    return ROOT / "scenarios" / "dolia-scenario-1.toml"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests of pages in a process."""
    with started() as browser:
        yield browser
