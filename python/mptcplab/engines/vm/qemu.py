"""Starts QEMU and speaks its control protocol (QMP).

The machine's time is counted in instructions (`-icount shift=0,sleep=off`): each takes one nanosecond of QEMU's clock
(speed.py has the machine's own), and idle time is skipped. Its clock begins at a fixed date, its random numbers follow
from a seed, and lockstep.c removes what remains of the host's scheduling. QMP is used only while the machine stands
still.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mptcplab.engines.process import die_with_parent
from mptcplab.engines.vm import initramfs, mailbox, speed
from mptcplab.errors import EngineError, OutputError, with_hint

PROGRAM = "qemu-system-x86_64"
# Exit codes of the machine by the first process: `value * 2 + 1` of crates/mptcplab-kernel/src/guest/ports.rs.
DONE, FAILED = 0x21, 0x23
MEMORY_MIB = 512
_LOCKSTEP = Path(__file__).with_name("lockstep.c")
# A serious fault stops the machine at once (`oops=panic`, `panic=-1`), so that it is not overlooked. What only protects
# a kernel from its users, accounts for pressure or checks clocks is switched off: it costs instructions, which are
# time. The mailbox lies above 4 GiB; the kernel must not use it as memory.
_COMMAND_LINE = (
    "console=ttyS0 loglevel=5 oops=panic panic=-1 mitigations=off random.trust_cpu=on numa=off "
    "lsm=capability audit=0 init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off psi=0 tsc=reliable "
    f"{speed.PARAMETER} memmap={mailbox.SIZE >> 20}M$4G rdinit=/{initramfs.PROGRAM} -- guest"
)
# With the first five, copies and fills are single instructions that the emulator repeats byte by byte, a nanosecond
# each; with the next two, checks of the kernel's access to user memory end what is translated as one block.
_SLOW = ("erms", "fsrm", "fsrs", "fsrc", "fzrm", "smap", "pku")
# QEMU 7.2 computes the flags of CMPXCHG16B, apart from ZF, by the rule of an earlier instruction: translate.c of its
# target/i386/tcg does not store the rule in force before it calls the helper. An interrupt right after the instruction
# then saves an arbitrary number as the flags. The kernel's allocator uses it for every object, and a boot ended in a
# panic. All versions do without, so that they are the same machine.
_FAULTY = ("cx16",)
# With these environment variables, lockstep.c changes the memory that it finds in a file.
_MEMORY, _CHANGES = "MPTCPLAB_VM_MEMORY", "MPTCPLAB_VM_CHANGES"
_QMP_LIMIT_S = 120.0
_POLL_S = 0.1
_CONSOLE_LINES = 45
_ROOM = "make room, or let XDG_CACHE_HOME name another place; a machine needs 512 MB there until it is ready"


@cache
def version() -> str:
    """What QEMU says about itself, such as "QEMU emulator version 10.0.3 (Debian ...)"."""
    done = subprocess.run([program(), "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EngineError(f"{PROGRAM} --version: {done.stderr.strip()}")
    return done.stdout.splitlines()[0].strip()


@cache
def processor() -> str:
    """The machine's processor: all that QEMU emulates, without what is slow or faulty there."""
    done = subprocess.run([program(), "-cpu", "help"], capture_output=True, text=True, check=False)
    known = set(done.stdout.split())
    # Each version of QEMU refuses names that it does not know, and has none of what they stand for.
    return ",".join(["max", *(f"-{name}" for name in (*_SLOW, *_FAULTY) if name in known)])


def program() -> str:
    """The path of QEMU; raises an error that says how to get it."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise EngineError(
            with_hint(f"no such program: {PROGRAM}", "as root: apt-get install --no-install-recommends qemu-system-x86")
        )
    return found


def lockstep_digest() -> str:
    """Identifies the library that keeps QEMU's threads in step."""
    return hashlib.sha256(_LOCKSTEP.read_bytes()).hexdigest()


def lockstep(directory: Path) -> Path:
    """The compiled library, in a directory where it stays."""
    library = directory / f"lockstep-{lockstep_digest()[:16]}.so"
    if library.is_file():
        return library
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise EngineError(
            with_hint("virtual machines need a C compiler: there is no cc", "as root: apt-get install gcc libc6-dev")
        )
    draft = library.with_name(f"{library.name}.{os.getpid()}")
    words = [compiler, "-O2", "-Wall", "-shared", "-fPIC", "-pthread", "-o", str(draft), str(_LOCKSTEP), "-ldl"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EngineError(
            with_hint(
                f"{compiler} cannot compile {_LOCKSTEP}:\n{done.stderr.strip()}",
                "a C compiler and the C library's headers are needed; as root: apt-get install gcc libc6-dev",
            )
        )
    draft.replace(library)
    return library


class Machine:
    """A running QEMU whose machine stands still until `go`."""

    def __init__(
        self,
        image: Path,
        memory: Path,
        box: mailbox.Mailbox,
        *,
        library: Path,
        seed: int,
        initrd: Path | None = None,
        changes: Path | None = None,
        owns_memory: bool = False,
    ) -> None:
        """A machine that boots from `initrd`, or that is restored.

        `memory` is the file of its memory. A machine that owns it writes to it, and stands still when it stops itself.
        Any other has a private copy of it, to which `changes` are applied.
        """
        self.console_fd = os.memfd_create("mptcplab-console")
        self.output_fd = os.memfd_create("mptcplab-qemu")
        self._socket, other = socket.socketpair()
        self._received = b""
        words = [
            program(), "-name", "mptcplab,debug-threads=on", "-no-user-config", "-nodefaults", "-display", "none",
            "-machine", f"q35,max-ram-below-4g={MEMORY_MIB}M,hpet=off", "-cpu", processor(), "-accel", "tcg",
            "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm", "-seed", str(seed), "-smp", "1",
            "-m", f"{MEMORY_MIB + (mailbox.SIZE >> 20)}M",
            "-object", f"memory-backend-file,id=memory,size={MEMORY_MIB}M,mem-path={_escaped(memory)},"
            f"share={'on' if owns_memory else 'off'}",
            "-object", f"memory-backend-file,id=mailbox,size={mailbox.SIZE},mem-path=/proc/self/fd/{box.fd},share=on",
            "-numa", "node,nodeid=0,cpus=0,memdev=memory", "-numa", "node,nodeid=1,memdev=mailbox",
            "-device", "pvpanic", "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04",
            "-no-reboot", "-action", f"panic={'pause' if owns_memory else 'shutdown'}",
            "-chardev", f"file,id=console,path=/proc/self/fd/{self.console_fd}", "-serial", "chardev:console",
            "-chardev", f"socket,id=control,fd={other.fileno()},mux=on", "-mon", "chardev=control,mode=control",
            "-kernel", str(image), "-append", _COMMAND_LINE,
        ]  # fmt: skip
        words += ["-incoming", "defer"] if initrd is None else ["-S", "-initrd", str(initrd)]
        variables = {**os.environ, "LD_PRELOAD": str(library)}
        if changes is not None:
            variables |= {_MEMORY: str(memory), _CHANGES: str(changes)}
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=self.output_fd,
                stderr=self.output_fd,
                pass_fds=(box.fd, self.console_fd, other.fileno()),
                env=variables,
                process_group=0,
                preexec_fn=_die_with_parent,
            )
        except BaseException:
            self._close()
            raise
        finally:
            other.close()
        self._ended = os.pidfd_open(self.process.pid)

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        # It has no state that anybody needs, and a machine that never idles would not listen to anything else.
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ended)
        self._close()

    def _close(self) -> None:
        self._socket.close()
        os.close(self.console_fd)
        os.close(self.output_fd)

    def connect(self) -> None:
        """Open the control connection."""
        self._message(time.monotonic() + _QMP_LIMIT_S)
        self.execute("qmp_capabilities")
        # The machine's memory is a file that both sides of a snapshot share, so that only the devices are written.
        shared = {"capability": "x-ignore-shared", "state": True}
        self.execute("migrate-set-capabilities", capabilities=[shared])
        # A restored machine would announce itself to a network at times of the host; the timer for that counts in
        # icount_get_limit() of accel/tcg/tcg-accel-ops-icount.c, and the processor would wait for it.
        self.execute("migrate-set-parameters", **{"announce-rounds": 0})

    def execute(self, command: str, **arguments: Any) -> Any:
        """Execute a command of QMP; return its answer."""
        until = time.monotonic() + _QMP_LIMIT_S
        self._send(command, arguments)
        while True:
            message = self._message(until)
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise self.error(f"{command}: {message['error'].get('desc')}")

    def go(self) -> None:
        """Let the machine continue. QEMU answers when the processor is idle for the first time, or never."""
        self._send("cont", {})

    def _send(self, command: str, arguments: Mapping[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        except OSError as error:
            raise self.error(f"{command}: {error.strerror}") from error

    def migrated(self) -> None:
        """Wait until a snapshot has been written or read."""
        until = time.monotonic() + _QMP_LIMIT_S
        while True:
            status = self.execute("query-migrate").get("status")
            if status == "completed":
                return
            if status in ("failed", "cancelled") or time.monotonic() > until:
                raise self.error(f"the snapshot could not be moved: {status}")
            time.sleep(0.002)

    def stops(self, limit_s: float, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Wait until the machine stops itself; False if it ended with a result, or if `stopped` says so."""
        until = time.monotonic() + limit_s
        try:
            while not stopped():
                if self._has_message() and self._message(until).get("event") == "STOP":
                    return True
                if time.monotonic() > until:
                    raise self.error(f"it did not get ready within {limit_s:g} s")
        except EngineError:
            if self.process.poll() != DONE:
                raise
        return False

    def _has_message(self) -> bool:
        return b"\n" in self._received or bool(select.select([self._socket], [], [], _POLL_S)[0])

    def _message(self, until: float) -> Mapping[str, Any]:
        while b"\n" not in self._received:
            self._socket.settimeout(max(0.001, until - time.monotonic()))
            try:
                new = self._socket.recv(65_536)
            except TimeoutError:
                raise self.error("the machine does not get ready") from None
            except ConnectionError:
                new = b""
            if not new:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(5)
                if self.process.returncode == -signal.SIGBUS:
                    raise OutputError(with_hint("cannot write the memory of a machine: the disk is full", _ROOM))
                raise self.error(f"the machine ended too early (QEMU's exit code is {self.process.returncode})")
            self._received += new
        line, self._received = self._received.split(b"\n", 1)
        message: Mapping[str, Any] = json.loads(line)
        return message

    def has_ended(self, wait_s: float) -> bool:
        """Whether the machine has ended, at the latest after some time."""
        return bool(select.select([self._ended], [], [], wait_s)[0]) and self.process.wait() is not None

    def console(self) -> str:
        """The kernel's messages."""
        return _content(self.console_fd)

    def error(self, message: str) -> EngineError:
        """An error of this machine, with what it and QEMU said last."""
        said = _content(self.output_fd).strip()
        lines = self.console().replace("\r", "").strip().splitlines()[-_CONSOLE_LINES:]
        parts = [f"virtual machine: {message}"]
        if said:
            parts.append(f"QEMU: {said}")
        if lines:
            parts.append("the end of its console:\n  " + "\n  ".join(lines))
        hint = (
            "mptcplab doctor says what the engine vm needs; if it has all that, please report this with the text above"
        )
        return EngineError(with_hint("\n".join(parts), hint))


def _content(fd: int) -> str:
    return os.pread(fd, os.fstat(fd).st_size, 0).decode(errors="replace")


def _escaped(path: Path) -> str:
    """A path within an option of QEMU."""
    return str(path).replace(",", ",,")


def _die_with_parent() -> None:
    die_with_parent(signal.SIGKILL)
