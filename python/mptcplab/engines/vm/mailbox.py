"""The memory that a virtual machine shares with the host.

The job goes in, what the program prints and the result come out. The other side has the same numbers:
`crates/mptcplab-kernel/src/guest/mailbox.rs`.

Reading it does not disturb the machine, and the job is there before the machine continues: nothing in the machine
depends on when the host does something.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Mapping

_MIB = 1 << 20
SIZE = 320 * _MIB
# (offset, size) of the areas. Each begins with the number of bytes that follow.
_JOB = (0, 32 * _MIB)
_PRINTED = (32 * _MIB, 32 * _MIB)
_RESULT = (64 * _MIB, 256 * _MIB)
_LENGTH = struct.Struct("<Q")
# Lengths of name and content of an archive's entry.
_ENTRY = struct.Struct("<IQ")


class Mailbox:
    """The host's side. The memory has no name in any file system and disappears with its users."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("mptcplab-mailbox")
        os.ftruncate(self.fd, SIZE)
        self._memory = mmap.mmap(self.fd, SIZE)
        self._seen = 0

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
        os.close(self.fd)

    def put(self, job: bytes) -> None:
        """Leave a job; raises ValueError if it is too large."""
        _, size = _JOB
        if len(job) > size - _LENGTH.size:
            raise ValueError(f"a job of {len(job)} bytes; at most {size - _LENGTH.size} fit into the machine's mailbox")
        self._memory[: _LENGTH.size + len(job)] = _LENGTH.pack(len(job)) + job

    def printed(self) -> bytes:
        """What the program has printed since the last call."""
        new = self._area(_PRINTED)[self._seen :]
        self._seen += len(new)
        return new

    def result(self) -> bytes:
        """The result; empty if there is none yet."""
        return self._area(_RESULT)

    def _area(self, area: tuple[int, int]) -> bytes:
        begin = area[0] + _LENGTH.size
        (length,) = _LENGTH.unpack_from(self._memory, area[0])
        return self._memory[begin : begin + length]


def pack(entries: Mapping[str, bytes]) -> bytes:
    """Named byte strings as one."""
    parts = []
    for name, content in entries.items():
        encoded = name.encode()
        parts += [_ENTRY.pack(len(encoded), len(content)), encoded, content]
    return b"".join(parts)


def unpack(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """The inverse of `pack`; raises ValueError if the archive is not whole."""
    at = 0
    while at < len(archive):
        if at + _ENTRY.size > len(archive):
            raise ValueError("the archive ends too early")
        name_bytes, content_bytes = _ENTRY.unpack_from(archive, at)
        middle = at + _ENTRY.size + name_bytes
        at = middle + content_bytes
        if at > len(archive):
            raise ValueError("the archive ends too early")
        yield archive[middle - name_bytes : middle].decode(), archive[middle:at]
