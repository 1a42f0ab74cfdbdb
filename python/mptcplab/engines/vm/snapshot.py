"""Snapshots of virtual machines: a machine that has booted and waits for a job, from which every run continues.

A snapshot is a directory with the machine's memory, the state of its devices and its initramfs. It is made once for
every combination of kernel, program, QEMU and command line, and it is complete or absent. The boot is as deterministic
as the runs: the first process stops the machine itself, at the same instruction every time.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mptcplab.engines.vm import initramfs, qemu
from mptcplab.engines.vm.cache import cache, locked
from mptcplab.engines.vm.kernels import Kernel
from mptcplab.engines.vm.mailbox import Mailbox
from mptcplab.errors import EngineError, with_hint

# A boot takes a few seconds on an idle host.
_BOOT_LIMIT_S = 600.0
_SEED = 1
# The format of the directory and of the mailbox.
_FORMAT = 1


@dataclass(frozen=True)
class Snapshot:
    """A machine that waits for a job."""

    directory: Path
    library: Path
    image: Path

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
    top = cache() / "machines"
    try:
        top.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(with_hint(f"{top}: {error.strerror}", "XDG_CACHE_HOME names another place")) from error
    archive = initramfs.build(program, kernel.modules)
    key = _key(kernel, archive)
    directory = top / key
    with locked(top / f"{key}.lock"):
        library = qemu.lockstep(top)
        snapshot = Snapshot(directory, library, kernel.image)
        if not directory.is_dir():
            _make(snapshot, archive)
    return snapshot


def _key(kernel: Kernel, archive: bytes) -> str:
    parts = {
        "format": _FORMAT,
        "kernel": kernel.digest,
        "initramfs": hashlib.sha256(archive).hexdigest(),
        "qemu": qemu.version(),
        "start": hashlib.sha256(Path(qemu.__file__).read_bytes()).hexdigest(),
        "lockstep": qemu.lockstep_digest(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _make(snapshot: Snapshot, archive: bytes) -> None:
    """Boot a machine and write its snapshot."""
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=snapshot.directory.parent))
    try:
        (draft / "initramfs").write_bytes(archive)
        memory = draft / "memory"
        with memory.open("wb") as file:
            file.truncate(qemu.MEMORY_MIB << 20)
        box = Mailbox()
        try:
            with qemu.Machine(
                snapshot.image, memory, box, library=snapshot.library, seed=_SEED, initrd=draft / "initramfs"
            ) as machine:
                machine.connect()
                machine.go()
                machine.stopped(_BOOT_LIMIT_S)
                if not box.printed():
                    raise machine.error("its kernel stopped during the boot")
                machine.execute("migrate", uri=f"exec:cat > {shlex.quote(str(draft / 'devices'))}")
                machine.migrated()
                (draft / "console").write_text(machine.console(), encoding="utf-8")
        finally:
            box.close()
        draft.rename(snapshot.directory)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
