"""`make chaos`: it passes over some kills, and each of its checks notices what it is for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).resolve().parents[1] / "chaos"

# A case whose command is a shell script; prints what is found wrong.
JUDGED = """
import json, random, sys
from dataclasses import dataclass
from pathlib import Path
sys.path.insert(0, {chaos!r})
import processes
from case import Case
from subjects import Subject

@dataclass(frozen=True)
class Script(Subject):
    def command(self, words=None):
        return ["sh", "-c", self.words[0]]

processes.adopt_orphans()
processes._FOLLOW_S = 1.0
place = Path({place!r})
reference = Case(Script("good", ("mkdir -p o && echo good > o/file",)), place / "good", random.Random(1), place, 1.0)
reference.prepare()
assert reference.start().wait() == 0
case = Case(Script("bad", ({script!r},)), place / "bad", random.Random(1), place / "good", 1.0)
case.prepare()
case.finish()
print(json.dumps(case.wrong))
"""
GOOD = "mkdir -p o && echo good > o/file"


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (GOOD, []),
        (f"{GOOD}; touch $TMPDIR/half", ["temporary file left: half"]),
        (f"{GOOD}; mkdir o.new-7", ["left beside the result: o.new-7"]),
        (f"{GOOD}; mkdir o.partial", ["o.partial is there after the end"]),
        (f"{GOOD}; echo bad > o/file", ["other bytes than in an undisturbed result: file"]),
        (f"{GOOD}; touch o/more", ["more than in an undisturbed result: more"]),
        ("mkdir o", ["missing in the result: file"]),
        (f"{GOOD}; echo Traceback >&2", ["unreadable error (exit code 0): Traceback\n"]),
        (f"{GOOD}; exit 3", ["exit code 3: ", "the last call failed with exit code 3"]),
    ],
)
def test_what_is_wrong_is_noticed(script: str, found: list[str], tmp_path: Path) -> None:
    assert judged(script, tmp_path) == found


def test_a_process_that_stays_is_noticed_and_ended(tmp_path: Path) -> None:
    (wrong,) = judged(f"{GOOD}; (sleep 1000 & echo $! > ../pid)", tmp_path)
    pid = int((tmp_path / "bad" / "pid").read_text())
    assert wrong == f"process left: {pid} sleep: sleep 1000"
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("place", "is_of_python"), [("typing.py", True), ("mptcplab/__init__.py", True), ("mptcplab/cli/app.py", False)]
)
def test_an_interrupt_before_the_program_begins_is_pythons(place: str, is_of_python: bool) -> None:
    text = f'  File "/x/{place}", line 3, in <module>\nKeyboardInterrupt\n'
    code = f"import sys; sys.path.insert(0, {str(CHAOS)!r}); import case; print(case._is_of_python({text!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(is_of_python)


def test_what_the_library_of_python_says_of_killed_processes_is_not_ours() -> None:
    own = 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
    own += '  File "/x/multiprocessing/spawn.py", line 130, in _main\nEOFError: Ran out of input\n'
    ours = own.replace("<string>", "/x/mptcplab/api.py")
    text = f"fluid: a title\n{own}{ours}{own}"
    code = (
        f"import sys; sys.path.insert(0, {str(CHAOS)!r}); import case; print(case._without_multiprocessing({text!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"fluid: a title\n{ours}\n"


def judged(script: str, place: Path) -> list[str]:
    code = JUDGED.format(chaos=str(CHAOS), place=str(place), script=script)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def test_kills_and_flipped_bits_lose_nothing(tmp_path: Path) -> None:
    words = ["--seconds", "1", "--subject", "run-fluid", "--kind", "slow", "--kind", "flips", "--seed", "26"]
    command = [sys.executable, str(CHAOS / "chaos.py"), *words, "--folder", str(tmp_path / "chaos")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "#0 run-fluid" in done.stdout
    assert "cases" in done.stdout.splitlines()[-1] or "cases" in done.stdout
