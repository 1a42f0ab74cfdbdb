"""Runs test programs once per mutant, several at a time, and stops each at its first failure."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from schemata import CHOICE

# A mutant may allocate without end.
_MEMORY = 4 << 30


@dataclass(frozen=True)
class Program:
    """A test program of Rust, where it runs, in which environment, and which of its tests."""

    path: Path
    folder: Path
    environment: Mapping[str, str]
    words: Sequence[str] = ()

    def passes(self, extra: Mapping[str, str], limit_s: float) -> bool:
        """Whether all of its tests pass with these variables in the environment, within the limit."""
        command = [str(self.path), "--test-threads=1", *self.words]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env={**self.environment, **extra},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY)),
        ) as process:
            timer = threading.Timer(limit_s, _kill, [process])
            timer.start()
            # The result stands at the end of a line of its own, behind whatever the test prints.
            failed = any(line.rstrip().endswith("FAILED") for line in process.stdout or ())
            if failed:
                _kill(process)
            code = process.wait()
            timer.cancel()
        return not failed and code == 0


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def with_limits(programs: Sequence[Program]) -> list[tuple[Program, float]]:
    """The programs, fastest first, each with the seconds after which it hangs. They must pass as they are."""
    timed = []
    for program in programs:
        start = time.monotonic()
        if not program.passes({}, 3600):
            raise RuntimeError(f"{program.path} fails without a change")
        timed.append((time.monotonic() - start, program))
    timed.sort(key=lambda pair: pair[0])
    return [(program, 3 + 10 * took_s) for took_s, program in timed]


def passes(programs: Sequence[tuple[Program, float]], number: int) -> bool:
    """Whether no test notices the mutant with this number."""
    return all(program.passes({CHOICE: str(number)}, limit_s) for program, limit_s in programs)


def survivors(programs: Sequence[tuple[Program, float]], numbers: Sequence[int]) -> Iterator[tuple[int, bool]]:
    """Every number, in order, with whether no test notices its mutant."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from zip(numbers, pool.map(lambda number: passes(programs, number), numbers), strict=True)
