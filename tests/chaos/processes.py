"""Commands that are started to be disturbed, with all processes that come from them.

This process adopts orphans (PR_SET_CHILD_SUBREAPER), so that none gets out of sight when what started it dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
# What a command may take on a busy machine before it counts as hanging.
PATIENCE_S = 240.0
# What processes may take to follow one that was killed.
_FOLLOW_S = 10.0
_POLL_S = 0.01


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent dies."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


@dataclass(frozen=True)
class Process:
    pid: int
    name: str

    def words(self) -> str:
        """The command line, for a person."""
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
        except OSError:
            return self.name


def descendants(of: int | None = None) -> list[Process]:
    """All living processes below one, or below this one, in the order of their identifiers."""
    children: dict[int, list[Process]] = {}
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal():
            continue
        try:
            name, _, rest = (place / "stat").read_text().partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if state not in "ZX":
            children.setdefault(int(parent), []).append(Process(int(place.name), name))
    found: list[Process] = []
    waiting = [of or os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [process.pid for process in below]
    return sorted(found, key=lambda process: process.pid)


class Command:
    """A running command; its output goes to files in `folder`."""

    def __init__(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], folder: Path) -> None:
        self.words = list(words)
        self._out, self._err = folder / "stdout", folder / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._child = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd, env=env, start_new_session=True
            )
        self.pid = self._child.pid
        self.start = time.monotonic()

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._child.poll()

    def wait(self) -> int | None:
        """The exit code; None if it hangs, and then it is killed with all that it has started."""
        try:
            return self._child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            for process in [*descendants(self.pid), Process(self.pid, "")]:
                kill(process.pid, signal.SIGKILL)
            self._child.wait()
            return None

    def tree(self) -> list[Process]:
        """The command and all below it that live, the command first."""
        own = [Process(self.pid, "command")] if self.code is None else []
        return own + [process for process in descendants() if process.pid != self.pid]

    def stdout(self) -> str:
        return self._out.read_text(errors="replace")

    def stderr(self) -> str:
        return self._err.read_text(errors="replace")


def kill(pid: int, number: signal.Signals) -> bool:
    """Send a signal; whether there was a process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def left_behind() -> list[str]:
    """Descriptions of processes that outlive their command; they are killed after they have had time to follow it."""
    until = time.monotonic() + _FOLLOW_S
    while True:
        _reap()
        left = descendants()
        if not left:
            return []
        if time.monotonic() > until:
            break
        time.sleep(_POLL_S)
    found = [f"{process.pid} {process.name}: {process.words()[:200]}" for process in left]
    for process in left:
        kill(process.pid, signal.SIGKILL)
    while descendants():
        _reap()
        time.sleep(_POLL_S)
    _reap()
    return found


def _reap() -> None:
    """Collect orphans that have ended. All commands have ended and been waited for."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return
