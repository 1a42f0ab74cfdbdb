"""Snapshots of virtual machines: a machine that has booted and waits for a job, from which every run continues.

A snapshot is a directory with the machine's memory, the state of its devices and its initramfs. It is made once for
every combination of kernel, program, QEMU and command line, and it is complete or absent. The boot is as deterministic
as the runs: the first process stops the machine itself, at the same instruction every time.

Every new build of the program makes a new snapshot of 150 to 200 MB, so those that have not been used for some time
are removed when another one is made, except while a process uses them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from mptcplab.engines.vm import initramfs, qemu, speed
from mptcplab.engines.vm.cache import acquired, cache, locked
from mptcplab.engines.vm.kernels import Kernel
from mptcplab.engines.vm.mailbox import Mailbox
from mptcplab.errors import EngineError, with_hint
from mptcplab.output import writing

# A boot takes a few seconds on an idle host.
_BOOT_LIMIT_S = 600.0
_SEED = 1
# The format of the directory and of the mailbox.
_FORMAT = 1
# What is kept: the snapshots that were used last, if that is not too long ago.
KEPT = 8
KEPT_DAYS = 30
_DRAFT = "draft-"
_DAY_S = 24 * 3600
# No boot takes as long; what is left then is of a process that was killed.
_DRAFT_LIMIT_S = 3600


@dataclass(frozen=True)
class Snapshot:
    """A machine that waits for a job."""

    directory: Path
    library: Path
    image: Path
    # Keeps the snapshot while it is open.
    in_use: TextIO

    def close(self) -> None:
        """Allow that the snapshot is removed; machines that were restored from it are not affected."""
        self.in_use.close()

    def restore(self, box: Mailbox, seed: int) -> qemu.Machine:
        """A copy of the machine. It stands still until `resume`; the job must be in the mailbox before that."""
        return qemu.Machine(self.image, self._memory, box, library=self.library, seed=seed)

    def resume(self, machine: qemu.Machine) -> None:
        """Let a copy continue; from then on the host must not influence it."""
        machine.connect()
        machine.execute("migrate-incoming", uri=f"exec:cat {shlex.quote(str(self.directory / 'devices'))}")
        machine.migrated()
        machine.go()

    @property
    def _memory(self) -> Path:
        return self.directory / "memory"


def ready(kernel: Kernel, program: Path) -> Snapshot:
    """The snapshot for a kernel and a program; made if there is none, while other processes that need it wait."""
    top = machines()
    try:
        top.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(with_hint(f"{top}: {error.strerror}", "XDG_CACHE_HOME names another place")) from error
    archive = initramfs.build(program, kernel.modules)
    directory = top / _key(kernel, archive)
    while True:
        in_use = acquired(_lock(directory), fcntl.LOCK_SH)
        if directory.is_dir():
            break
        in_use.close()
        with locked(_lock(directory)):
            if not directory.is_dir():
                _make(directory, kernel.image, archive)
        _remove_old(top)
    # When it was last used.
    os.utime(directory)
    return Snapshot(directory, qemu.lockstep(top), kernel.image, in_use)


def machines() -> Path:
    """The directory of all snapshots; it need not exist."""
    return cache() / "machines"


def _lock(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.lock")


def _remove_old(top: Path) -> None:
    """Remove snapshots beyond those that are kept, and what killed processes have left, unless they are in use."""
    now = time.time()
    used: list[tuple[float, Path]] = []
    for path in top.iterdir():
        try:
            age_s = now - path.stat().st_mtime
        except FileNotFoundError:
            continue
        if path.name.startswith(_DRAFT):
            if age_s > _DRAFT_LIMIT_S:
                shutil.rmtree(path, ignore_errors=True)
        elif path.is_dir():
            used.append((age_s, path))
        elif path.suffix == ".lock" and age_s > _DRAFT_LIMIT_S and not path.with_suffix("").exists():
            _remove(path.with_suffix(""))
    for position, (age_s, path) in enumerate(sorted(used)):
        if position >= KEPT or age_s > KEPT_DAYS * _DAY_S:
            _remove(path)


def _remove(directory: Path) -> None:
    """Remove a snapshot and its lock; does nothing while it is in use or being made."""
    try:
        lock = acquired(_lock(directory), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    with lock:
        if directory.is_dir():
            # A directory without its content would be taken for a snapshot.
            gone = directory.with_name(f"{_DRAFT}{directory.name}")
            directory.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        _lock(directory).unlink()


def _key(kernel: Kernel, archive: bytes) -> str:
    parts = {
        "format": _FORMAT,
        "kernel": kernel.digest,
        "initramfs": hashlib.sha256(archive).hexdigest(),
        "qemu": qemu.version(),
        "start": hashlib.sha256(Path(qemu.__file__).read_bytes() + Path(speed.__file__).read_bytes()).hexdigest(),
        "lockstep": qemu.lockstep_digest(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _make(directory: Path, image: Path, archive: bytes) -> None:
    """Boot a machine and write its snapshot."""
    library = qemu.lockstep(directory.parent)
    refused = (f"write the state of a machine to {directory.parent}", "make room there")
    with writing(*refused):
        draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=directory.parent))
    try:
        memory = draft / "memory"
        with writing(*refused):
            (draft / "initramfs").write_bytes(archive)
            with memory.open("wb") as file:
                file.truncate(qemu.MEMORY_MIB << 20)
        box = Mailbox()
        try:
            with qemu.Machine(image, memory, box, library=library, seed=_SEED, initrd=draft / "initramfs") as machine:
                machine.connect()
                machine.go()
                machine.stopped(_BOOT_LIMIT_S)
                if not box.printed():
                    raise machine.error("its kernel stopped during the boot")
                speed.correct_timer(memory)
                machine.execute("migrate", uri=f"exec:cat > {shlex.quote(str(draft / 'devices'))}")
                machine.migrated()
                with writing(*refused):
                    (draft / "console").write_text(machine.console(), encoding="utf-8")
        finally:
            box.close()
        with writing(*refused):
            draft.rename(directory)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
