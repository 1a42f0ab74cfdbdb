"""Runs jobs in virtual machines, several at a time, each in its own copy of a snapshot.

The same job on the same kernel gives the same bytes, whatever else the host does.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from mptcplab.engines.vm import mailbox, qemu, snapshot
from mptcplab.engines.vm.kernels import Kernel
from mptcplab.errors import EngineError, OutputError, with_hint

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


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    # Exit code of the program; 128 plus the signal if it was killed.
    code: int
    stderr: str
    # Messages of the kernel during the job.
    console: str
    # The machine's time that the job took.
    virtual_ns: int
    # The share of that time in which the machine's processor was not idle.
    busy_share: float


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
    ready = snapshot.ready(kernel, program)
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
                run = _Run(ready, jobs[index], outs[index], stop)
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
        ready.close()


_Report = tuple[int, "Outcome | BaseException | Mapping[str, Any]"]


class _Run:
    """One job in one machine."""

    def __init__(self, ready: snapshot.Snapshot, job: Job, out: Path, stop: threading.Event) -> None:
        self.ready = ready
        self.job = job
        self.out = out
        self.stop = stop

    def run(self, progress: Callable[[Mapping[str, Any]], None]) -> Outcome | None:
        """The outcome; None if it was stopped."""
        until = time.monotonic() + self.job.patience_s
        box = mailbox.Mailbox()
        try:
            try:
                box.put(_packed(self.job))
            except ValueError as error:
                raise EngineError(with_hint(f"virtual machine: {error}", "use smaller delivery trace files")) from error
            with self.ready.restore(box, self.job.seed % _SEEDS) as machine:
                self.ready.resume(machine)
                if not self._follow(machine, box, until, progress):
                    return None
                return self._outcome(machine, box)
        finally:
            box.close()

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

    def _outcome(self, machine: qemu.Machine, box: mailbox.Mailbox) -> Outcome:
        code = machine.process.returncode
        if code != qemu.DONE:
            raise machine.error(f"it ended without a result (QEMU's exit code is {code})")
        found: dict[str, bytes] = {}
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            for name, content in mailbox.unpack(box.result()):
                kind, _, path = name.partition("/")
                if kind == "out" and path:
                    _write(self.out, path, content)
                else:
                    found[name] = content
        except OSError as error:
            raise OutputError(f"{error.filename or self.out}: {error.strerror}") from error
        virtual_ns = int(found["virtual_ns"])
        return Outcome(
            code=int(found["code"]),
            stderr=found["stderr"].decode(errors="replace"),
            console=machine.console(),
            virtual_ns=virtual_ns,
            busy_share=int(found["busy_ns"]) / max(1, virtual_ns),
        )


def _packed(job: Job) -> bytes:
    entries = {"seed": (job.seed % _SEEDS).to_bytes(8, "little"), "arguments": "\0".join(job.arguments).encode()}
    if job.program:
        entries["program"] = job.program.encode()
    return mailbox.pack(entries | {f"job/{name}": content for name, content in sorted(job.files.items())})


def _write(directory: Path, path: str, content: bytes) -> None:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise EngineError(f"virtual machine: its result contains the path {path}")
    target = directory / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def _message(line: bytes) -> Mapping[str, Any] | None:
    """A line of JSON as an object; None for anything else."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
