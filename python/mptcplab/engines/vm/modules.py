"""The modules of a kernel that a run needs: found in its tree with their dependencies, and decompressed."""

from __future__ import annotations

import lzma
import shutil
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

from mptcplab.errors import EngineError, with_hint

# Emulated links, namespaces, the states of sockets, and an algorithm that scenarios may name. What is built into a
# kernel is left out.
NEEDED = ("tun", "veth", "inet_diag", "tcp_diag", "mptcp_diag", "tcp_bbr")
_SUFFIXES = (".ko", ".ko.xz", ".ko.zst")


def extract(tree: Path, out: Path, names: Iterable[str] = NEEDED) -> tuple[Path, ...]:
    """Decompress modules of a tree such as /lib/modules/RELEASE to `out`, in load order: dependencies come first.

    The names of the files that it writes begin with their position in that order.
    """
    found = {_name(path): path for path in sorted(tree.rglob("*.ko*")) if path.name.endswith(_SUFFIXES)}
    listed = tree / "modules.builtin"
    built_in = {_name(Path(line)) for line in listed.read_text().splitlines()} if listed.is_file() else set()
    loaded: dict[str, bytes] = {}

    def load(name: str, above: tuple[str, ...]) -> None:
        if name in loaded or name in built_in:
            return
        if name not in found or name in above:
            needing = f", which {above[-1]} needs" if above else ""
            raise EngineError(
                with_hint(
                    f"the kernel has no module {name}{needing}: {tree}",
                    "give a kernel with all its modules, and the list modules.builtin of those that are built in",
                )
            )
        content = _decompressed(found[name])
        for other in dependencies(content, found[name]):
            load(other, (*above, name))
        loaded[name] = content

    for name in names:
        load(name.replace("-", "_"), ())
    out.mkdir(parents=True)
    paths = []
    for position, (name, content) in enumerate(loaded.items()):
        paths.append(out / f"{position:02}-{name}.ko")
        paths[-1].write_bytes(content)
    return tuple(paths)


def dependencies(module: bytes, path: Path) -> list[str]:
    """The names of the modules that a module says it needs, from its section .modinfo."""
    for entry in _section(module, b".modinfo", path).split(b"\0"):
        key, _, value = entry.partition(b"=")
        if key == b"depends":
            return [name.replace("-", "_") for name in value.decode().split(",") if name]
    return []


def _name(path: Path) -> str:
    """The name of a module, in which the kernel does not tell - from _."""
    return path.name.split(".ko")[0].replace("-", "_")


def _decompressed(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".zst" and shutil.which("zstd") is None:
        raise EngineError(with_hint(f"no program zstd to decompress {path}", "install the package zstd"))
    try:
        if path.suffix == ".xz":
            return lzma.decompress(content)
        if path.suffix == ".zst":
            return subprocess.run(["zstd", "-dc"], input=content, capture_output=True, check=True).stdout
    except (lzma.LZMAError, subprocess.CalledProcessError) as error:
        raise _damaged(path) from error
    return content


def _damaged(path: Path) -> EngineError:
    return EngineError(with_hint(f"a damaged kernel module: {path}", "copy the kernel's modules again"))


def _section(elf: bytes, wanted: bytes, path: Path) -> bytes:
    """The content of a section of a 64-bit ELF file; empty if there is none."""
    if elf[:6] != b"\x7fELF\x02\x01":
        raise EngineError(with_hint(f"not a kernel module: {path}", "modules are 64-bit ELF files"))
    try:
        return _found(elf, wanted)
    except (struct.error, IndexError, ValueError) as error:
        raise _damaged(path) from error


def _found(elf: bytes, wanted: bytes) -> bytes:
    """The section. Raises errors of several kinds if the file is incomplete."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    # name, type, flags, address, offset, size of a section
    sections = [struct.unpack_from("<IIQQQQ", elf, table + size * position) for position in range(count)]
    names = sections[names_at][4]
    for name, _, _, _, offset, length in sections:
        if elf[names + name : elf.index(b"\0", names + name)] == wanted:
            return elf[offset : offset + length]
    return b""
