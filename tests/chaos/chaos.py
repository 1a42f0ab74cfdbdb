"""Disturbs mptcplab for some time and checks that nothing is lost and nothing is left: `make chaos SECONDS=600`.

Commands of every engine are killed, run out of disk, meet slow disks, clocks that jump, lost capabilities, flipped bits
and a second call of themselves, and are called again until they come to their end. After each call there must be no
process, network namespace, mount, registered algorithm or temporary file left, everything that was finished must be
there, and no error may be unreadable. At the end the result must have the bytes of an undisturbed one.

The cases follow from the seed: `--case N` repeats the N-th alone. When exactly a signal arrives depends on the machine.

What is not done: the time of day of the machine and its disks are left alone, because other programs use them. A
preloaded library makes both slow or wrong for the processes that are tested; a time namespace moves the time since
boot. Processes with other libraries than the C library's (QEMU, the lab) do not see that.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from case import Case
from disturbances import KINDS
from operator_case import OperatorCase
from processes import adopt_orphans
from residue import Machine
from subjects import CC, KERNEL, LOADED, SIM, SUBJECTS, VM, Subject

from mptcplab.engines import kernel
from mptcplab.engines.vm import cache, host
from mptcplab.errors import MptcplabError

# Set for the process that has mounts of its own.
_INSIDE = "MPTCPLAB_CHAOS_INSIDE"
_ROOM = "64m"


def say(text: str) -> None:
    print(text, flush=True)


def missing(need: str) -> str:
    """Why something cannot be tested here; empty if it can."""
    if need != SIM and os.geteuid() != 0:
        return "needs root"
    try:
        if need in (KERNEL, CC):
            kernel.require_available()
        elif need == VM:
            host.require_available("vm:bookworm")
    except MptcplabError as error:
        return str(error).splitlines()[0]
    if need == CC and LOADED in Machine.now().algorithms:
        return f"somebody has loaded {LOADED}"
    return ""


class Chaos:
    """Cases in a folder, one after the other."""

    def __init__(self, folder: Path, seed: int, subjects: Sequence[Subject], kinds: Sequence[str]) -> None:
        self.folder, self.seed, self.subjects, self.kinds = folder, seed, subjects, kinds
        self.counts: dict[str, Counter[str]] = {}
        self.failed: list[int] = []
        self._takes_s: dict[str, float] = {}

    def run(self, number: int) -> None:
        """Make a case, say what came of it, and count."""
        chance = random.Random(f"{self.seed}/{number}")
        kind = chance.choices(self.kinds, [KINDS[name][2] for name in self.kinds])[0]
        disturb, needs, _ = KINDS[kind]
        fitting = [one for one in self.subjects if one.needs in needs and kind not in one.without]
        if not fitting:
            return
        subject = chance.choices(fitting, [one.weight for one in fitting])[0]
        takes_s = self._reference(subject)
        case = self._case(subject, self.folder / f"case-{number}", chance, takes_s)
        start = time.monotonic()
        mounts = [case.place, case.scratch] if kind == "full" else []
        try:
            for place in mounts:
                place.mkdir(parents=True)
                subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "chaos", str(place)], check=True)
            case.before = Machine.now()
            case.prepare()
            disturb(case)
            case.finish()
        except OSError as error:
            case.wrong.append(f"{type(error).__name__}: {error}")
        self._count(subject, case)
        self._takes_s[subject.name] = case.takes_s
        verdict = "WRONG" if case.wrong else "ok"
        took = time.monotonic() - start
        say(f"#{number} {subject.name} {kind}: {'; '.join(case.said)}: {verdict} after {took:.1f} s")
        for wrong in case.wrong:
            say(f"    {wrong}".replace("\n", "\n    "))
        if case.wrong:
            self.failed.append(number)
            shutil.copytree(case.folder, self.folder / f"wrong-{number}", symlinks=True, dirs_exist_ok=True)
        for place in mounts:
            subprocess.run(["umount", str(place)], check=True)
        case.remove()

    def _case(self, subject: Subject, folder: Path, chance: random.Random, takes_s: float) -> Case:
        make = OperatorCase if subject.needs == CC else Case
        return make(subject, folder, chance, self.folder / f"reference-{subject.name}", takes_s)

    def _reference(self, subject: Subject) -> float:
        """Make the undisturbed result once; return how long a call takes."""
        if subject.name not in self._takes_s:
            folder = self.folder / f"reference-{subject.name}"
            case = self._case(subject, folder, random.Random(0), 0.0)
            case.prepare()
            start = time.monotonic()
            command = case.start()
            if isinstance(case, OperatorCase) and not case.is_pinned:
                case.wait_until_ready(command)
                os.kill(command.pid, 2)
            code = command.wait()
            self._takes_s[subject.name] = time.monotonic() - start
            case.judge_after(command, gentle=True)
            if code not in subject.codes or case.wrong:
                sys.exit(f"error: {subject.name} fails undisturbed: {case.wrong} {command.stderr()}")
        return self._takes_s[subject.name]

    def _count(self, subject: Subject, case: Case) -> None:
        for kind, number in case.counts.items():
            self.counts.setdefault(kind, Counter())[subject.name] += number
        self.counts.setdefault("cases", Counter())[subject.name] += 1

    def summary(self) -> None:
        """Counts by kind and subject."""
        names = [one.name for one in self.subjects if self.counts.get("cases", Counter())[one.name]]
        width = max(map(len, self.counts), default=0)
        say(f"\n{'':{width}} {'all':>7}" + "".join(f"{name:>{max(8, len(name) + 2)}}" for name in names))
        for kind, by in sorted(self.counts.items(), key=lambda pair: -pair[1].total()):
            cells = "".join(f"{by[name] or '-':>{max(8, len(name) + 2)}}" for name in names)
            say(f"{kind:{width}} {by.total():>7}{cells}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="how long; a case that has begun is ended")
    parser.add_argument("--seed", type=int, default=1, help="of the order of cases and of what happens in them")
    parser.add_argument("--case", type=int, help="only the case with this number")
    parser.add_argument("--subject", action="append", choices=[one.name for one in SUBJECTS], help="only this one")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind")
    parser.add_argument("--folder", type=Path, help="where; a temporary folder without, which stays if a case fails")
    return parser.parse_args()


def possible(asked: argparse.Namespace) -> tuple[list[Subject], list[str]]:
    """What can be tested here; what cannot is said."""
    subjects = [one for one in SUBJECTS if not asked.subject or one.name in asked.subject]
    reasons = {need: missing(need) for need in sorted({one.needs for one in subjects})}
    for need, reason in reasons.items():
        if reason:
            say(f"SKIPPED: {', '.join(one.name for one in subjects if one.needs == need)}: {reason}")
    kinds = [name for name in KINDS if not asked.kind or name in asked.kind]
    if os.geteuid() != 0 and "full" in kinds:
        say("SKIPPED: full disks: needs root")
        kinds.remove("full")
    return [one for one in subjects if not reasons[one.needs]], kinds


def copy_kernels(folder: Path) -> None:
    """Take the kernels of machines over from the user's cache, so that they are not downloaded again."""
    found = cache.cache() / "kernels"
    if found.is_dir():
        shutil.copytree(found, folder / "cache" / "mptcplab" / "kernels", symlinks=True)


def main() -> int:
    """Run the cases that the command line asks for."""
    asked = parsed()
    if os.geteuid() == 0 and _INSIDE not in os.environ:
        # Mounts of its own, which vanish with it.
        words = ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv]
        os.execvpe("unshare", words, {**os.environ, _INSIDE: "1"})
    adopt_orphans()
    subjects, kinds = possible(asked)
    if not subjects or not kinds:
        say("nothing can be tested here")
        return 2
    if any(one.needs == CC for one in subjects):
        subprocess.run(["mount", "-t", "bpf", "-o", "mode=0700", "bpf", "/sys/fs/bpf"], check=True)
    folder = (asked.folder or Path(tempfile.mkdtemp(prefix="chaos-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if any(one.needs == VM for one in subjects):
        copy_kernels(folder)
    chaos = Chaos(folder, asked.seed, subjects, kinds)
    say(f"seed {asked.seed}, {asked.seconds:g} s, in {folder}")
    until, number = time.monotonic() + asked.seconds, asked.case or 0
    while time.monotonic() < until:
        chaos.run(number)
        number += 1
        if asked.case is not None:
            break
    chaos.summary()
    if chaos.failed:
        say(f"\nerror: wrong: {', '.join(f'#{one}' for one in chaos.failed)}\n\nhint: see {folder}/wrong-N; "
            "--case N repeats one")  # fmt: skip
        return 1
    if asked.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
