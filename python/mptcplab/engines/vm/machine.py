"""Runs jobs in virtual machines, several at a time, each in its own copy of a snapshot.

The same job on the same kernel gives the same bytes, whatever else the host does.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mptcplab.engines.vm import mailbox, qemu, snapshot
from mptcplab.engines.vm.kept import StoppedError
from mptcplab.engines.vm.kernels import Kernel
from mptcplab.engines.vm.outcome import Outcome, outcome
from mptcplab.engines.vm.prepared import Preparation, RefusedError, prepared
from mptcplab.errors import EngineError, with_hint

_POLL_S = 0.1
_SEEDS = 1 << 64


@dataclass(frozen=True)
class Job:
    """One call of a program in a machine of its own."""

    # Such as ("run", "--scenario", "/job/x.toml", "--out", "/out/trace").
    arguments: tuple[str, ...]
    # By the path relative to /job, which is also the working directory.
    files: Mapping[str, bytes]
    # 64 bits, from which all random numbers of the machine follow.
    seed: int
    # Seconds of the host after which the machine is given up.
    patience_s: float
    # The path of the program, such as that of one of its files; without one, it is `mptcplab-kernel`.
    program: str = ""
    # What the machine does before it gets this job, and has done before for others that need the same.
    preparation: Preparation | None = None


Progress = Callable[[int, Mapping[str, Any]], None]


def versions() -> str:
    """What QEMU says about itself; raises EngineError if there is none."""
    return qemu.version()


def run_jobs(
    jobs: Sequence[Job],
    outs: Sequence[Path],
    *,
    kernel: Kernel,
    program: Path,
    machines: int,
    progress: Progress | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Run jobs, at most `machines` at a time; yield index and outcome of each as it ends.

    What job i leaves in /out is written to outs[i]. JSON objects that it prints are passed on as progress(i, object),
    in the caller's thread. Raises EngineError if a machine fails. When the iterator is closed, and after Ctrl-C, no
    machine is left.
    """
    if len(jobs) != len(outs):
        raise ValueError(f"{len(jobs)} jobs, but {len(outs)} directories")
    if not jobs:
        return
    booted = snapshot.ready(kernel, program)
    reports: queue.SimpleQueue[_Report] = queue.SimpleQueue()
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(jobs)):
        waiting.put(index)
    stop = threading.Event()

    def report_progress(index: int, message: Mapping[str, Any]) -> None:
        reports.put((index, message))

    def work() -> None:
        while not stop.is_set():
            try:
                index = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                run = _Run(booted, jobs[index], outs[index], stop)
                outcome = run.run(partial(report_progress, index))
            except BaseException as error:
                reports.put((index, error))
            else:
                if outcome is not None:
                    reports.put((index, outcome))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(max(1, machines), len(jobs)))]
    try:
        for thread in threads:
            thread.start()
        left = len(jobs)
        while left:
            # With a limit, because a wait without one cannot be interrupted everywhere.
            try:
                index, report = reports.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            if isinstance(report, BaseException):
                raise report
            if isinstance(report, Outcome):
                left -= 1
                yield index, report
            elif progress is not None:
                progress(index, report)
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        booted.close()


_Report = tuple[int, "Outcome | BaseException | Mapping[str, Any]"]


class _Run:
    """One job in one machine."""

    def __init__(self, booted: snapshot.Snapshot, job: Job, out: Path, stop: threading.Event) -> None:
        self.booted = booted
        self.job = job
        self.out = out
        self.stop = stop

    def run(self, progress: Callable[[Mapping[str, Any]], None]) -> Outcome | None:
        """The outcome; None if it was stopped."""
        box = mailbox.Mailbox()
        try:
            try:
                box.put(_packed(self.job))
            except ValueError as error:
                raise EngineError(with_hint(f"virtual machine: {error}", "use smaller delivery trace files")) from error
            with self._ready() as ready, ready.restore(box, self.job.seed % _SEEDS) as machine:
                ready.resume(machine)
                until = time.monotonic() + self.job.patience_s
                if not self._follow(machine, box, until, progress):
                    return None
                code = machine.process.returncode
                if code != qemu.DONE:
                    raise machine.error(f"it ended without a result (QEMU's exit code is {code})")
                return outcome(box, machine.console(), self.out)
        except RefusedError as refused:
            return refused.outcome
        except StoppedError:
            return None
        finally:
            box.close()

    def _ready(self) -> AbstractContextManager[snapshot.Snapshot]:
        """The snapshot from which the job continues."""
        if self.job.preparation is None:
            return nullcontext(self.booted)
        return closing(prepared(self.booted, self.job.preparation, self.stop.is_set))

    def _follow(
        self, machine: qemu.Machine, box: mailbox.Mailbox, until: float, progress: Callable[[Mapping[str, Any]], None]
    ) -> bool:
        """Wait for the end, and pass on what the program prints; False if the machine was stopped before."""
        rest = b""
        ended = False
        while not ended:
            if self.stop.is_set():
                return False
            if time.monotonic() > until:
                raise machine.error(f"it did not end within {self.job.patience_s:g} s")
            ended = machine.has_ended(_POLL_S)
            *lines, rest = (rest + box.printed()).split(b"\n")
            for message in filter(None, map(_message, lines)):
                progress(message)
        return True


def _packed(job: Job) -> bytes:
    entries = {"seed": (job.seed % _SEEDS).to_bytes(8, "little"), "arguments": "\0".join(job.arguments).encode()}
    if job.program:
        entries["program"] = job.program.encode()
    return mailbox.pack(entries | {f"job/{name}": content for name, content in sorted(job.files.items())})


def _message(line: bytes) -> Mapping[str, Any] | None:
    """A line of JSON as an object; None for anything else."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
