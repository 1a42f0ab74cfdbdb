"""The kinds of disturbances. Each disturbs some calls of a case; what must hold after every call is in case.py."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from case import Case
from processes import kill
from subjects import CC, KERNEL, SIM, VM

SHIM = "shim.so"
_ROOM = "64m"


def kills(case: Case) -> None:
    """One process after the other is killed, in calls that go on with what the former ones left."""
    for _ in range(case.chance.randint(1, case.subject.most_kills)):
        if case.is_complete:
            return
        case.kill_something(case.start())


def full_disk(case: Case) -> None:
    """The disk of the result, or that for temporary files, or the only one, is full at some point."""
    needed = _size(case.reference / "run")
    for _ in range(case.chance.randint(2, 8)):
        if case.is_complete:
            return
        which = case.chance.choice([("run",), ("tmp",), ("run", "tmp")])
        room = int(needed * case.chance.uniform(0, 0.7)) >> 10
        places = [case.folder / name for name in which]
        for place in places:
            _limit(place, f"{max(room, 8) + (_size(place) >> 10)}k")
        command = case.start()
        code = command.wait()
        text = command.stderr()
        is_full = code not in case.subject.codes and "No space left on device" in text
        case.said.append(f"{'full' if is_full else 'not full'} {'+'.join(which)} of {room} KiB")
        case.count("full disks" if is_full else "disks that sufficed")
        case.judge_code(command, code, target=None, disturbed=is_full)
        for place in places:
            _limit(place, _ROOM)
        case.judge_after(command, gentle=True)


def _limit(place: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(place)], check=True)


def _size(place: Path) -> int:
    """Bytes of all files, in whole pages."""
    return sum(-(-path.lstat().st_size // 4096) * 4096 for path in place.rglob("*"))


def slow_disk(case: Case) -> None:
    """What writes or renames takes up to some milliseconds, and something is killed meanwhile."""
    slow = case.chance.choice([500, 2_000, 10_000])
    case.said.append(f"up to {slow} µs per write")
    case.count("slow disks")
    for _ in range(case.chance.randint(1, 3)):
        if case.is_complete:
            return
        case.kill_something(case.start(env={**_shim(case), "CHAOS_SLOW_US": str(slow)}))


def clock_jumps(case: Case) -> None:
    """The time of day jumps; for root, the time since boot is also another one."""
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0 and case.chance.random() < 0.5:
        away = str(case.chance.randint(1, 10**7))
        prefix = ("unshare", "--time", "--monotonic", away, "--boottime", away, "--")
    jump = case.chance.choice([2, 3_600, 10**6])
    case.said.append(f"jumps of up to {jump} s" + (f", {prefix[3]} s after boot" if prefix else ""))
    case.count("clocks that jump")
    command = case.start(prefix=prefix, env={**_shim(case), "CHAOS_CLOCK_S": str(jump)})
    if case.chance.random() < 0.5:
        case.kill_something(command)
        return
    case.judge_code(command, command.wait(), target=None)
    case.judge_after(command, gentle=True)


def _shim(case: Case) -> Mapping[str, str]:
    library = case.folder.parent / SHIM
    if not library.exists():
        source = Path(__file__).with_name("shim.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "CHAOS_SEED": str(case.chance.randrange(1 << 32))}


# What the kernel engine or an operator's command may look at.
_CAPABILITIES = ("bpf", "perfmon", "sys_admin", "net_admin", "sys_nice", "setuid", "setgid", "chown", "kill", "setpcap",
                 "sys_ptrace", "net_raw", "sys_resource", "fowner", "mknod", "sys_chroot")  # fmt: skip


def lost_capabilities(case: Case) -> None:
    """Some of root's capabilities are missing: the call works, or says what it needs."""
    lost = sorted(case.chance.sample(_CAPABILITIES, case.chance.randint(1, len(_CAPABILITIES))))
    case.said.append(f"without {' '.join(lost)}")
    case.count("lost capabilities")
    without = ",".join(f"-{name}" for name in lost)
    command = case.start(prefix=("setpriv", f"--bounding-set={without}", f"--inh-caps={without}", "--"))
    case.judge_code(command, command.wait(), target=None, disturbed=True)
    case.judge_after(command, gentle=True)


def two_at_once(case: Case) -> None:
    """Two calls into the same result: one is made, and the other one waits for nothing and says so."""
    first = case.start()
    time.sleep(case.chance.uniform(0, case.takes_s))
    second = case.start()
    case.count("two at once")
    codes = [command.wait() for command in (first, second)]
    case.said.append(f"exit codes {codes[0]} and {codes[1]}")
    if not set(codes) & set(case.subject.codes):
        case.wrong.append(f"of two calls none came to its end: {first.stderr()[-800:]} {second.stderr()[-800:]}")
    for command, code in zip((first, second), codes, strict=True):
        refused = "another run is writing" in command.stderr() or "not empty" in command.stderr()
        case.judge_code(command, code, target=None, disturbed=refused)
    case.judge_after(second, gentle=True)


def flipped_bits(case: Case) -> None:
    """Bits of stored files change, of an unfinished result or of a whole one; they are noticed, and made again."""
    command = case.start()
    case.wait_for_moment(command)
    kill(command.pid, signal.SIGKILL)
    code = command.wait()
    case.said.append("killed" if code == -signal.SIGKILL else "complete")
    case.judge_after(command, gentle=False)
    files = sorted(path for path in case.place.rglob("*") if path.is_file() and _is_stored(path))
    for path in case.chance.choices(files, k=case.chance.randint(1, 40)) if files else []:
        content = bytearray(path.read_bytes())
        if content:
            content[case.chance.randrange(len(content))] ^= 1 << case.chance.randrange(8)
            path.write_bytes(content)
            case.count("flipped bits")
    # What is damaged is not finished.
    case.held = case.subject.finished(case.place)


def _is_stored(path: Path) -> bool:
    """Whether a file holds what later calls rely on; pages and summaries are written again."""
    return path.suffix == ".parquet" or path.name == "checksums.json" or path.parent.name == "store"


Disturbance = Callable[[Case], None]
# Each with what it can disturb, and how often it is chosen.
KINDS: Mapping[str, tuple[Disturbance, tuple[str, ...], int]] = {
    "kills": (kills, (SIM, KERNEL, VM, CC), 12),
    "full": (full_disk, (SIM, KERNEL, VM), 3),
    "slow": (slow_disk, (SIM, KERNEL, VM, CC), 2),
    "clock": (clock_jumps, (SIM, KERNEL, VM), 1),
    "capabilities": (lost_capabilities, (KERNEL, CC), 2),
    "two": (two_at_once, (SIM, KERNEL, VM), 1),
    "flips": (flipped_bits, (SIM, KERNEL, VM), 4),
}
