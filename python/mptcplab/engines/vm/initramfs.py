"""The file system with which a virtual machine starts.

It contains the kernel engine's program, the libraries that it is linked with, and modules of the kernel. There is no
shell and no other program.

The format is cpio's "newc" (Documentation/driver-api/early-userspace/buffer-format.rst of the Linux sources). It is not
compressed, because the emulated processor would take longer to decompress it than to read it.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from mptcplab.errors import EngineError, with_hint
from mptcplab.scratch import Scratch

# The first process; the same program runs the jobs.
PROGRAM = "bin/mptcplab-kernel"
_MODULES = "modules"
_DIRECTORIES = ("dev", "job", "out", "proc", "run", "sys", "tmp")
# Major and minor number of /dev/console, without which the first process has no output.
_CONSOLE = (5, 1)


def build(program: Path, modules: Sequence[Path]) -> bytes:
    """The file system as an archive; the same for the same files."""
    archive = _Archive()
    for directory in _DIRECTORIES:
        archive.directory(PurePosixPath(directory))
    archive.node("dev/console", stat.S_IFCHR | 0o600, device=_CONSOLE)
    archive.file(PROGRAM, _without_symbols(program))
    for library in libraries(program):
        archive.file(str(library).lstrip("/"), library.read_bytes())
    # The program inserts them in the order of their names.
    for index, module in enumerate(modules):
        archive.file(f"{_MODULES}/{index:03}-{module.name}", module.read_bytes())
    return archive.end()


def _without_symbols(program: Path) -> bytes:
    """A program without what only debuggers need, which would fill most of the machine's memory."""
    with Scratch("initramfs") as directory:
        small = Path(directory) / program.name
        try:
            done = subprocess.run(
                ["strip", "--strip-debug", "-o", small, program], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise EngineError(
                with_hint("virtual machines need binutils: there is no strip", "as root: apt-get install binutils")
            ) from None
        if done.returncode != 0:
            raise EngineError(f"strip {program}: {done.stderr.strip()}")
        return small.read_bytes()


def libraries(program: Path) -> Iterator[Path]:
    """The shared libraries of a program and its loader, with the paths where the program expects them."""
    # What the caller's environment preloads would be listed as well, and make another machine.
    env = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0 and "not a dynamic executable" in done.stderr + done.stdout:
        return
    if done.returncode != 0 or "not found" in done.stdout:
        found = [line.strip() for line in done.stdout.splitlines() if "not found" in line] or [done.stderr.strip()]
        raise EngineError(with_hint(f"a shared library of {program} is missing: {found[0]}", "make setup"))
    for line in done.stdout.splitlines():
        paths = [word for word in line.split() if word.startswith("/")]
        if paths:
            yield Path(paths[0])


class _Archive:
    """An archive in the making; every directory comes before its content."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._known: set[PurePosixPath] = {PurePosixPath(".")}

    def directory(self, path: PurePosixPath) -> None:
        for one in (*reversed(path.parents), path):
            if one not in self._known:
                self._known.add(one)
                self.node(str(one), stat.S_IFDIR | 0o755)

    def file(self, name: str, content: bytes) -> None:
        self.directory(PurePosixPath(name).parent)
        self.node(name, stat.S_IFREG | 0o755, content)

    def node(self, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        encoded = name.encode() + b"\0"
        # inode, mode, owner, group, links, time, size, device of the file (2), device (2), size of the name, checksum
        numbers = (len(self._parts), mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0)
        header = b"070701" + b"".join(b"%08x" % number for number in numbers)
        self._parts.append(_padded(header + encoded) + _padded(content))

    def end(self) -> bytes:
        self.node("TRAILER!!!", 0)
        return b"".join(self._parts)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)
