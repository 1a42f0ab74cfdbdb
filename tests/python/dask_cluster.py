"""A scheduler and workers of Dask as processes of their own, for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from conftest import ROOT

PACKAGE = ROOT / "python" / "mptcplab"


@dataclass
class Processes:
    """A scheduler, its address, and the workers by name."""

    address: str
    scratch: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    workers: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    @property
    def on(self) -> str:
        return f"dask:{self.address}"

    def start(self, *names: str, package: Path | None = None) -> None:
        """Start workers, which take a second or two to be there; of another package if that is given."""
        path = {} if package is None else {"PYTHONPATH": str(package)}
        for name in names:
            words = [*python("dask_worker"), self.address, "--name", name, "--nthreads", "1", "--no-nanny"]
            words += ["--no-dashboard", "--local-directory", str(self.scratch / name), "--death-timeout", "60"]
            self.workers[name] = subprocess.Popen(
                words,
                env={**os.environ, **self.environment, **path},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
            )

    def wait_for(self, count: int) -> None:
        """Wait until so many workers are there."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)

    def end(self, *names: str) -> None:
        for name in names or list(self.workers):
            worker = self.workers.pop(name)
            worker.kill()
            worker.wait()


def python(module: str) -> list[str]:
    return [sys.executable, "-m", f"distributed.cli.{module}"]


@contextmanager
def scheduler(scratch: Path, environment: Mapping[str, str] | None = None) -> Iterator[Processes]:
    """A scheduler without workers; what is started for it ends with the context."""
    file = scratch / "address.json"
    words = [*python("dask_scheduler"), "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    log = (scratch / "scheduler.log").open("w+")
    with ExitStack() as stack:
        stack.enter_context(log)
        process = subprocess.Popen([*words, "--scheduler-file", str(file)], stdout=log, stderr=log, text=True)
        stack.callback(process.wait)
        stack.callback(process.kill)
        found = Processes(address(file, process), scratch, environment or {})
        stack.callback(found.end)
        yield found


def address(file: Path, process: subprocess.Popen[str]) -> str:
    import json

    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        try:
            return str(json.loads(file.read_text())["address"])
        except (OSError, ValueError):
            time.sleep(0.05)
    raise AssertionError("the scheduler does not start")


def other_build(place: Path) -> Path:
    """A copy of the package in which a module that decides numbers is another one."""
    copy = place / "mptcplab"
    shutil.copytree(PACKAGE, copy, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "_bin"))
    for name in ("algorithms", "scenarios", "papers"):
        shutil.copytree(ROOT / name, copy / "_share" / name)
    with (copy / "metrics" / "stats.py").open("a") as file:
        file.write("# changed\n")
    with (copy / "metrics" / "rates.py").open("a") as file:
        file.write("# changed\n")
    return place
