"""Machines that wait for a run with what it needs loaded: algorithms, tracer, and the program that makes the run.

Loading takes longer than all else before a run begins. A machine that has booted does it once for all runs that need
the same, and every run continues from there, also the only one of its kind: whether a machine was prepared before must
not make a difference.

The snapshot has the state of the devices, and the pages of the memory that differ from those of the booted machine.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from mptcplab.engines.vm import kept, mailbox
from mptcplab.engines.vm.outcome import Outcome, outcome
from mptcplab.engines.vm.snapshot import Snapshot, save

# On an idle host, a few seconds.
_LIMIT_S = 600.0
_SEED = 2
# What is kept of each machine that has booted: about 10 MB each.
KEPT = 40
_PAGE = 4096
# Offset and length of changed bytes, which follow; lockstep.c reads them. The end has a length of 0.
_CHANGE = struct.Struct("<QQ")
# What is read at a time: 16 MiB.
_CHUNK = 4096 * _PAGE


@dataclass(frozen=True)
class Preparation:
    """A call of a program that prepares the machine and then waits for the arguments of a job."""

    arguments: tuple[str, ...]
    # By the path relative to /job; they stay there for the jobs.
    files: Mapping[str, bytes]

    def packed(self) -> bytes:
        """What the machine reads."""
        entries = {
            "prepares": b"",
            "seed": _SEED.to_bytes(8, "little"),
            "arguments": "\0".join(self.arguments).encode(),
        }
        return mailbox.pack(entries | {f"job/{name}": content for name, content in sorted(self.files.items())})


class RefusedError(Exception):
    """The program could not prepare the machine."""

    def __init__(self, how: Outcome) -> None:
        super().__init__(how.stderr)
        self.outcome = how


def prepared(booted: Snapshot, preparation: Preparation, stopped: Callable[[], bool] = lambda: False) -> Snapshot:
    """The snapshot of a prepared machine; made if there is none.

    Raises RefusedError if the program cannot do it, and kept.StoppedError if `stopped` says so before it is there.
    """
    packed = preparation.packed()
    directory = booted.directory / "prepared" / hashlib.sha256(packed).hexdigest()[:32]
    in_use = kept.kept(directory, partial(_make, booted, packed, stopped), most=KEPT, stopped=stopped)
    return replace(booted, directory=directory, changes=directory / "changes", in_use=in_use)


def _make(booted: Snapshot, packed: bytes, stopped: Callable[[], bool], draft: Path) -> None:
    memory = draft / "memory"
    with kept.room(draft):
        _copy(booted.memory, memory)
    box = mailbox.Mailbox()
    try:
        box.put(packed)
        with booted.restore(box, _SEED, memory=memory) as machine:
            booted.resume(machine)
            if not machine.stops(_LIMIT_S, stopped):
                if stopped():
                    raise kept.StoppedError
                raise RefusedError(outcome(box, machine.console()))
            if not box.printed():
                raise machine.error("its kernel stopped while it was prepared")
            save(machine, draft)
    finally:
        box.close()
    with kept.room(draft):
        _write_changes(booted.memory, memory, draft / "changes")
        memory.unlink()


def _copy(source: Path, target: Path) -> None:
    """Copy a file, with holes instead of pages without data."""
    with source.open("rb") as old, target.open("wb") as new:
        new.truncate(os.fstat(old.fileno()).st_size)
        for begin, end in _extents(old.fileno()):
            for at in range(begin, end, _CHUNK):
                new.seek(at)
                new.write(os.pread(old.fileno(), min(_CHUNK, end - at), at))


def _extents(fd: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each part of a file that is no hole."""
    end, size = 0, os.fstat(fd).st_size
    while end < size:
        try:
            begin = os.lseek(fd, end, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(fd, begin, os.SEEK_HOLE)
        yield begin, end


def _write_changes(old: Path, new: Path, to: Path) -> None:
    """Write the pages of a file that differ from those of another one of the same size.

    All of them are compared: some file systems have holes wherever a file has zeros.
    """
    before, after = (np.memmap(path, dtype=np.uint64, mode="r") for path in (old, new))
    words = _CHUNK // 8
    with to.open("wb") as changes:
        for at in range(0, len(after), words):
            chunk = after[at : at + words]
            differ = (before[at : at + words] != chunk).reshape(-1, _PAGE // 8).any(axis=1)
            for begin, end in _runs(differ):
                changes.write(_CHANGE.pack(8 * at + begin * _PAGE, (end - begin) * _PAGE))
                changes.write(chunk[begin * _PAGE // 8 : end * _PAGE // 8].tobytes())
        changes.write(_CHANGE.pack(8 * len(after), 0))


def _runs(flags: np.ndarray) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False]))))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
