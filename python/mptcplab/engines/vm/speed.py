"""The speed of the machine's processor: instructions per nanosecond of the machine's own time.

QEMU counts time in instructions, and one takes a nanosecond at least. A machine of that speed is too slow for paths of
60 Mbit/s. The kernel is therefore told a frequency of its time stamp counter, which counts QEMU's nanoseconds, and
its clock passes more slowly than QEMU's. Its timer would still fire too early, and be set again several times, because
the kernel measures the timer's frequency against another device; so the frequency is corrected in the memory of the
machine that has booted.
"""

from __future__ import annotations

import mmap
import re
import struct
from pathlib import Path

from mptcplab.errors import EngineError, with_hint

# With twelve, the scenario of docs/kernels.md has the same results. With one, the time that the kernel takes decides
# whose packets meet a full queue, and kim2021/separate-60 has results of its own (LIMITATIONS.md).
INSTRUCTIONS_PER_NS = 4
PARAMETER = f"tsc_early_khz={INSTRUCTIONS_PER_NS * 1_000_000}"
# The kernel's `struct clock_event_device` has its shortest delay in ns (u64), and timer ticks per ns as `mult` (u32)
# over 2 to the power of `shift` (u32). QEMU's timer counts nanoseconds, of which the kernel makes ticks of 16.
_SHORTEST_NS, _SHIFT = 1000, 32
_MEASURED = (1 << _SHIFT) // 16
# The kernel's own, and that of the processor.
_COPIES = 2
# The kernel measures for 100 ms, in steps of 280 ns.
_PRECISION = 1e-3


def correct_timer(memory: Path) -> None:
    """Correct the timer's frequency in the memory of a machine that stands still."""
    pattern = re.escape(struct.pack("<Q", _SHORTEST_NS)) + b"(.{4})" + re.escape(struct.pack("<I", _SHIFT))
    with memory.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        found = [one.start(1) for one in re.finditer(pattern, content, re.DOTALL) if _is_measured(one[1])]
        if len(found) != _COPIES:
            problem = f"the kernel's timer has {len(found)} copies in the machine's memory instead of {_COPIES}"
            hint = "Debian's kernels from 6.1 to 7.3 work; please report the version of another kernel"
            raise EngineError(with_hint(problem, hint))
        for place in found:
            struct.pack_into("<I", content, place, INSTRUCTIONS_PER_NS * _MEASURED)


def _is_measured(mult: bytes) -> bool:
    (number,) = struct.unpack("<I", mult)
    return bool(abs(number / _MEASURED - 1) < _PRECISION)
