"""A case: a folder in which one command is called, disturbed, called again until it ends, and then judged."""

from __future__ import annotations

import filecmp
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from processes import PATIENCE_S, Command, descendants, kill, left_behind
from residue import Machine, left_on_machine, names_of, temporary, unexpected
from subjects import FILE, OUT, SCENARIO, Finished, Subject

from mptcplab.output import is_former_result

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# What no user should ever read.
_BAD = re.compile(r"Traceback|internal error|panicked|core dumped")
_POLL_S = 0.003
# After a change of the folder that is the moment for a kill.
_MOMENT_S = 0.004
# Signals to processes below a command in one call.
_MOST_IN_A_CALL = 4


@dataclass
class Case:
    """The folder of one case, and what is found wrong in it."""

    subject: Subject
    folder: Path
    chance: random.Random
    # The folder of an undisturbed call.
    reference: Path
    # Seconds that it took.
    takes_s: float
    # Of the machine, before the first call.
    before: Machine = field(default_factory=Machine.now)
    wrong: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    # By kind.
    counts: dict[str, int] = field(default_factory=dict)
    # Every process that was seen.
    seen: set[int] = field(default_factory=set)
    held: Finished = field(default_factory=dict)
    # What calls that were killed have left, which the next one removes.
    dirt: set[str] = field(default_factory=set)
    # Whether a call has come to its end, after which some commands refuse to do the same again.
    is_complete: bool = False
    # Of the result that is to be replaced.
    former: frozenset[str] = frozenset()

    @property
    def place(self) -> Path:
        """Where the command is called."""
        return self.folder / "run"

    @property
    def scratch(self) -> Path:
        """Its folder for temporary files."""
        return self.folder / "tmp"

    def prepare(self) -> None:
        """Make the folder."""
        self.place.mkdir(parents=True, exist_ok=True)
        self.scratch.mkdir(exist_ok=True)
        (self.place / FILE).write_text(SCENARIO)
        for words in self.subject.before:
            command = self.start(self.subject.command(words))
            if command.wait() != 0:
                raise RuntimeError(f"what {self.subject.name} needs could not be made: {command.stderr()}")
        if self.subject.before:
            self.former = frozenset(self.subject.finished(self.place))

    def start(
        self, words: list[str] | None = None, *, prefix: tuple[str, ...] = (), env: Mapping[str, str] | None = None
    ) -> Command:
        """Call the command, or other words, in the folder."""
        asked = {
            **os.environ,
            "TMPDIR": str(self.scratch),
            "XDG_CACHE_HOME": str(self.folder.parent / "cache"),
            "NO_COLOR": "1",
            **(env or {}),
        }
        number = len([path for path in self.folder.iterdir() if path.name.startswith("call-")])
        log = self.folder / f"call-{number}"
        log.mkdir()
        command = Command([*prefix, *(words or self.subject.command())], self.place, asked, log)
        self.seen.add(command.pid)
        return command

    def count(self, kind: str, number: int = 1) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + number

    def wait_for_moment(self, command: Command, share: float = 1.0) -> None:
        """Wait for a random moment of a call: any, or just after something changed in its folders.

        The moment comes within a share of the time that a call takes.
        """
        limit = time.monotonic() + self.takes_s * share
        if self.chance.random() < 0.5:
            until = time.monotonic() + self.chance.uniform(0, 0.85 * self.takes_s * share)
            while command.code is None and time.monotonic() < until:
                time.sleep(_POLL_S)
            return
        changes, state = self.chance.randint(1, 12), self._state()
        while command.code is None and changes and time.monotonic() < limit:
            new = self._state()
            if new != state:
                state, changes = new, changes - 1
            time.sleep(_POLL_S)
        time.sleep(self.chance.uniform(0, _MOMENT_S))

    def _state(self) -> tuple[str, ...]:
        found: list[str] = []
        waiting = [self.place, self.scratch]
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        found.append(entry.path)
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(Path(entry.path))
            except OSError:
                continue
        return tuple(sorted(found))

    def kill_something(self, command: Command) -> None:
        """Send random signals to random processes of a call at random moments, until the command itself gets one."""
        target = None
        for more in range(self.chance.randint(1, _MOST_IN_A_CALL)):
            self.wait_for_moment(command, 0.3 if more else 1.0)
            tree = command.tree()
            self.seen |= {process.pid for process in tree}
            if command.code is not None:
                if not more:
                    self.said.append("ended before it was killed")
                    # The machine is less busy than it was.
                    self.takes_s = min(self.takes_s, time.monotonic() - command.start)
                break
            victim = tree[0] if self.chance.random() < 0.5 else self.chance.choice(tree)
            number = self.chance.choice(SIGNALS)
            at = time.monotonic() - command.start
            if not kill(victim.pid, number):
                continue
            self.said.append(f"{number.name} to {victim.name} after {at:.2f} s")
            self.count(f"{number.name} {victim.name}")
            self.count("kills")
            if victim.pid == command.pid:
                target = number
                break
        code = self._ended(command)
        self.judge_code(command, code, target=target, disturbed=True)
        self.judge_after(command, gentle=target != signal.SIGKILL)

    def _ended(self, command: Command) -> int | None:
        """Wait for the end, noting new processes."""
        until = time.monotonic() + PATIENCE_S
        while command.code is None and time.monotonic() < until:
            self.seen |= {process.pid for process in descendants()}
            time.sleep(0.1)
        return command.wait()

    def judge_code(
        self, command: Command, code: int | None, *, target: signal.Signals | None, disturbed: bool = False
    ) -> None:
        """Whether a call ended as it should after a signal to itself (`target`), or to something below it."""
        if code is None:
            self.wrong.append(f"hangs: {' '.join(command.words)}")
            return
        allowed = set(self.subject.codes)
        if code in allowed:
            self.is_complete = True
        elif code == 2 and self.is_refused(command):
            return
        if target is not None:
            # Before Python is up, and when it goes down, a signal ends the process itself.
            allowed |= {-target, 128 + target}
        elif disturbed:
            # An error, or an interrupt that was meant for a child.
            allowed |= {2, 130, 143}
        if target == signal.SIGINT and _is_of_python(command.stderr()):
            # Python has code 1 for what goes wrong before it has come to the program.
            allowed.add(1)
        if code not in allowed:
            self.wrong.append(f"exit code {code}: {command.stderr()[-2000:]}")
        elif code == 2 and "error: " not in command.stderr():
            self.wrong.append(f"no error message: {command.stderr()[-2000:]}")
        if _BAD.search(_without_multiprocessing(command.stderr())) and not (
            target == signal.SIGINT and _is_of_python(command.stderr())
        ):
            self.wrong.append(f"unreadable error (exit code {code}): {command.stderr()[-3000:]}")

    def is_refused(self, command: Command) -> bool:
        """Whether a call was refused because the result is there, complete."""
        return (self.place / OUT).is_dir() and "output directory is not empty" in command.stderr()

    def judge_after(self, command: Command, *, gentle: bool) -> None:
        """What holds between two calls; `gentle`: the command could clean up."""
        for process in left_behind():
            self.wrong.append(f"process left: {process}")
        self.wrong += left_on_machine(self.before, names_of(self.seen))
        dirt = {f"temporary file left: {name}" for name in temporary(self.scratch)}
        dirt |= {f"left beside the result: {name}" for name in unexpected(self.place)}
        if gentle:
            # It may not have come as far as to clean up after others.
            self.wrong += sorted(dirt - self.dirt if command.code not in self.subject.codes else dirt)
        self.dirt = dirt
        self.judge_held(command)

    def judge_held(self, command: Command) -> None:
        """Whether all that was finished before is still there, with the same content."""
        if self.subject.replaces and (self.place / OUT).is_dir():
            self.held = {}
            return
        now = {name: sum_ for name, sum_ in self.subject.finished(self.place).items() if name not in self.former}
        if self.former and not any(is_former_result(path) for path in self.place.glob(f"{OUT}*") if is_result(path)):
            self.wrong.append("the former result is lost, and no new one is there")
        for name, content in self.held.items():
            if name not in now:
                self.wrong.append(f"lost: {name} (after {' '.join(command.words[-8:])})")
            elif now[name] != content:
                self.wrong.append(f"changed: {name}")
        self.held = {**now}

    def finish(self) -> None:
        """The last call, which nothing disturbs, and all that holds after it."""
        command = self.start()
        code = self._ended(command)
        if code == 2 and "has a damaged result" in command.stderr():
            self.count("results refused as damaged")
            command = self.start([*self.subject.command(), "--force"])
            code = self._ended(command)
        self.said.append(f"{len(self.held)} finished before the last call")
        self.judge_code(command, code, target=None)
        refused = code == 2 and self.is_refused(command)
        if code not in self.subject.codes and not refused:
            self.wrong.append(f"the last call failed with exit code {code}")
        self.judge_after(command, gentle=True)
        if self.subject.exact:
            self.wrong += differences(self.reference / "run", self.place)
        # What a kill between the last two steps leaves beside a result goes when it is made again, and what is no part
        # of the result, such as simulations with the noise of another call, is named.
        is_known = refused or "because they are not part of this sweep" in command.stderr()
        if not is_known and (self.place / f"{OUT}.partial").exists():
            self.wrong.append(f"{OUT}.partial is there after the end")
        elif not (self.place / OUT).is_dir():
            self.wrong.append("no result")

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_of_python(text: str) -> bool:
    """Whether an interrupt came while Python itself started or ended: no program can say that more nicely.

    Python imports the package before it comes to its first instruction that says what an interrupt does.
    """
    return "KeyboardInterrupt" in text and not re.search(r"/mptcplab/(?!__main__|__init__\.py)", text)


def _without_multiprocessing(text: str) -> str:
    """Without what Python's library says of its own processes, when one of them or their parent is killed."""
    parts = re.split(r"(?m)^(?=Traceback)", text)
    return "".join(part for part in parts if not _is_of_multiprocessing(part))


def _is_of_multiprocessing(part: str) -> bool:
    files = re.findall(r'^  File "([^"]+)"', part, re.MULTILINE)
    return bool(files) and all(file == "<string>" or "/multiprocessing/" in file for file in files)


def is_result(path: Path) -> bool:
    """Whether a directory is the result, or the former one that a killed process has moved aside."""
    return path.name == OUT or path.name.startswith(f"{OUT}.former-")


def differences(wanted: Path, found: Path) -> list[str]:
    """Files of a result that are not, byte for byte, what they should be."""
    left, right = _files(wanted / OUT), _files(found / OUT)
    wrong = [f"missing in the result: {name}" for name in sorted(left - right)]
    wrong += [f"more than in an undisturbed result: {name}" for name in sorted(right - left)]
    both = sorted(left & right)
    _, other, errors = filecmp.cmpfiles(wanted / OUT, found / OUT, both, shallow=False)
    wrong += [f"other bytes than in an undisturbed result: {name}" for name in (*other, *errors)]
    return wrong


def _files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()}
