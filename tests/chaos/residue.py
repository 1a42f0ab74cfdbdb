"""What must not be left: temporary files, directories beside a result, mounts, registered algorithms, namespaces."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from subjects import FILE, OUT, PARTS

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# Where `ip netns` keeps namespaces that outlive their processes.
_NAMED = Path("/run/netns")
# What belongs to a result, or is kept for the next call, which says so.
_KEPT = re.compile(rf"{OUT}(\.partial|\.unfinished(-\d+)?)?")
_GONE_S = 10.0


def unexpected(folder: Path) -> list[str]:
    """Entries of a folder in which commands wrote to `OUT` that are neither its result nor kept for the next call."""
    names = sorted(path.name for path in folder.iterdir())
    return [name for name in names if name not in (FILE, *PARTS) and not _KEPT.fullmatch(name)]


def temporary(folder: Path) -> list[str]:
    """What is in the folder for temporary files."""
    return sorted(str(path.relative_to(folder)) for path in folder.iterdir())


@dataclass(frozen=True)
class Machine:
    """Everything that outlives processes and has a name."""

    mounts: frozenset[str]
    namespaces: frozenset[str]
    algorithms: frozenset[str]

    @classmethod
    def now(cls) -> Machine:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        mounts = {line.split(" ")[4] for line in lines}
        named = {path.name for path in _NAMED.iterdir()} if _NAMED.is_dir() else set[str]()
        return cls(frozenset(mounts), frozenset(named), frozenset(_AVAILABLE.read_text().split()))

    def left_since(self, before: Machine, own: frozenset[str]) -> list[str]:
        """What is new. Other programs of this machine load algorithms as well: only the names `own` count."""
        return [
            *(f"mount {one}" for one in sorted(self.mounts - before.mounts)),
            *(f"network namespace {one}" for one in sorted(self.namespaces - before.namespaces)),
            *(f"algorithm {one}" for one in sorted((self.algorithms - before.algorithms) & own)),
        ]


def names_of(pids: set[int]) -> frozenset[str]:
    """The names that processes try first for algorithms of runs, as run/algorithms.rs of mptcplab-kernel."""
    return frozenset(f"mpl_{pid * 40_503 & 0xFFFF:04x}_{index}" for pid in pids for index in range(8))


def left_on_machine(before: Machine, own: frozenset[str]) -> list[str]:
    """What is still there after some time: the kernel takes links down a moment after their process has ended."""
    until = time.monotonic() + _GONE_S
    while left := Machine.now().left_since(before, own):
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    return left
