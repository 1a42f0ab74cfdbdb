"""Cases of `cc load`: what is loaded goes with its command, or stays until `cc unload` if it is pinned."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from case import Case
from processes import Command, kill
from residue import Machine, left_on_machine
from subjects import ALGORITHM, LOADED

PINS = Path("/sys/fs/bpf/mptcplab")
_READY_S = 60.0


class OperatorCase(Case):
    """A case that loads one algorithm for the whole machine."""

    @property
    def is_pinned(self) -> bool:
        return "--pin" in self.subject.words

    def prepare(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        self.scratch.mkdir(exist_ok=True)

    def judge_held(self, command: Command) -> None:
        """Whether the algorithm is gone: by itself, or with `cc unload`, which must always be able to."""
        if self.is_pinned:
            unload = self.start(self.subject.command(("cc", "unload", ALGORITHM)))
            code, text = unload.wait(), unload.stderr()
            if code != 0 and not (code == 2 and "is not loaded" in text):
                self.wrong.append(f"cc unload after {' '.join(command.words[-4:])}: exit code {code}: {text}")
        # It can be loaded again.
        self.is_complete = False
        left = left_on_machine(self.before, frozenset([LOADED]))
        pins = [path.name for path in PINS.iterdir()] if PINS.is_dir() else []
        self.wrong += [*left, *(f"pin {name}" for name in pins)]

    def finish(self) -> None:
        command = self.start()
        if self.is_pinned:
            code = command.wait()
            if LOADED not in Machine.now().algorithms:
                self.wrong.append(f"{LOADED} is not loaded: exit code {code}: {command.stderr()}")
        else:
            self.wait_until_ready(command)
            kill(command.pid, signal.SIGINT)
            code = command.wait()
        self.judge_code(command, code, target=None)
        self.judge_after(command, gentle=True)

    def wait_until_ready(self, command: Command) -> None:
        """Wait until the algorithm is loaded."""
        until = time.monotonic() + _READY_S
        while "loaded: " not in command.stdout():
            if command.code is not None or time.monotonic() > until:
                self.wrong.append(f"{LOADED} is not loaded: {command.stderr()}")
                return
            time.sleep(0.01)
