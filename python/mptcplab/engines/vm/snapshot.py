"""Snapshots of virtual machines: a machine that has booted and waits for a job, from which every run continues.

A snapshot is a directory with the machine's memory, the state of its devices and its initramfs. It is made once for
every combination of kernel, program, QEMU and command line, and it is complete or absent. The boot is as deterministic
as the runs: the first process stops the machine itself, at the same instruction every time.

Every new build of the program makes a new snapshot of 150 to 200 MB. What runs have in common is loaded once more, into
snapshots of their own that share its memory (prepared.py).
"""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from mptcplab.engines.vm import initramfs, kept, qemu, speed
from mptcplab.engines.vm.cache import cache
from mptcplab.engines.vm.kernels import Kernel
from mptcplab.engines.vm.mailbox import Mailbox

# A boot takes a few seconds on an idle host.
_BOOT_LIMIT_S = 600.0
_SEED = 1
# The format of the directory and of the mailbox.
_FORMAT = 2
# The snapshots of machines that have booted that are kept.
KEPT = 8
# The file with the state of the devices.
_DEVICES = "devices"


@dataclass(frozen=True)
class Snapshot:
    """A machine that waits for a job."""

    directory: Path
    memory: Path
    library: Path
    image: Path
    # Keeps the snapshot while it is open.
    in_use: TextIO
    # What differs from `memory`, if it does.
    changes: Path | None = None

    def close(self) -> None:
        """Allow that the snapshot is removed; machines that were restored from it are not affected."""
        self.in_use.close()

    def restore(self, box: Mailbox, seed: int, memory: Path | None = None) -> qemu.Machine:
        """A copy of the machine. It stands still until `resume`; the job must be in the mailbox before that.

        With `memory`, a copy of its memory, it becomes another snapshot: it stands still again when it stops itself.
        """
        return qemu.Machine(
            self.image, memory or self.memory, box, library=self.library, seed=seed, changes=self.changes,
            owns_memory=memory is not None,
        )  # fmt: skip

    def resume(self, machine: qemu.Machine) -> None:
        """Let a copy continue; from then on the host must not influence it."""
        machine.connect()
        machine.execute("migrate-incoming", uri=f"exec:cat {shlex.quote(str(self.directory / _DEVICES))}")
        machine.migrated()
        machine.go()


def save(machine: qemu.Machine, directory: Path) -> None:
    """Write the state of the devices of a machine that stands still."""
    machine.execute("migrate", uri=f"exec:cat > {shlex.quote(str(directory / _DEVICES))}")
    machine.migrated()


def ready(kernel: Kernel, program: Path) -> Snapshot:
    """The snapshot for a kernel and a program; made if there is none, while other processes that need it wait."""
    top = machines()
    archive = initramfs.build(program, kernel.modules)
    directory = top / _key(kernel, archive)

    def make(draft: Path) -> None:
        _make(kernel.image, archive, qemu.lockstep(top), draft)

    in_use = kept.kept(directory, make, most=KEPT)
    return Snapshot(directory, directory / "memory", qemu.lockstep(top), kernel.image, in_use)


def machines() -> Path:
    """The directory of all snapshots; it need not exist."""
    return cache() / "machines"


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


def _make(image: Path, archive: bytes, library: Path, draft: Path) -> None:
    """Boot a machine and write its snapshot."""
    memory = draft / "memory"
    with kept.room(draft):
        (draft / "initramfs").write_bytes(archive)
        with memory.open("wb") as file:
            file.truncate(qemu.MEMORY_MIB << 20)
    box = Mailbox()
    try:
        with qemu.Machine(
            image, memory, box, library=library, seed=_SEED, initrd=draft / "initramfs", owns_memory=True
        ) as machine:
            machine.connect()
            machine.go()
            if not (machine.stops(_BOOT_LIMIT_S) and box.printed()):
                raise machine.error("its kernel stopped during the boot")
            speed.correct_timer(memory)
            save(machine, draft)
            with kept.room(draft):
                (draft / "console").write_text(machine.console(), encoding="utf-8")
    finally:
        box.close()
