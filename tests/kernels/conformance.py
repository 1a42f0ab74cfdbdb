"""Plays the conformance scripts on Debian's kernels, in virtual machines.

    .venv/bin/python tests/kernels/conformance.py [SUITE...]     without SUITE, the whole matrix

The simulator's tests play the same scripts (tests/conformance). What a kernel does otherwise has to be in
tests/conformance/kernel.toml with its reason.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run import MATRIX, ROOT, TARGET, exit_with, run_one

from mptcplab import errors
from mptcplab.engines.vm import kernels, machine
from mptcplab.engines.vm.kernels import Kernel

SCRIPTS = ROOT / "tests/conformance"
KNOWN = SCRIPTS / "kernel.toml"
PLAYER = TARGET / "release/mptcplab-player"
BUILD = ("cargo", "build", "--quiet", "--release", "--locked", "--package", "mptcplab-player")
# The scripts do not depend on it.
SEED = 7
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Played:
    """How a script ended on a kernel."""

    # `agrees`, `differs` or `cannot`.
    outcome: str
    # The line and what is wrong there, then what was sent.
    why: str
    # Names of the state that the kernel does not show.
    not_shown: tuple[str, ...]


def scripts() -> dict[str, bytes]:
    """The files of all scripts."""
    return {path.name: path.read_bytes() for path in sorted(SCRIPTS.glob("*.script"))}


def played(kernel: Kernel, scripts: Mapping[str, bytes]) -> dict[str, Played]:
    """How scripts end, by their names without the suffix; builds the player."""
    subprocess.run([*BUILD, "--target-dir", str(TARGET.absolute())], check=True, cwd=ROOT)
    files = {**scripts, PLAYER.name: PLAYER.read_bytes()}
    job = machine.Job(tuple(scripts), files, SEED, PATIENCE_S, program=f"/job/{PLAYER.name}")
    found: dict[str, Played] = {}

    def note(_: int, message: Mapping[str, Any]) -> None:
        name = Path(message["script"]).stem
        found[name] = Played(message["outcome"], message["why"], tuple(message["not_shown"]))

    with tempfile.TemporaryDirectory() as scratch:
        outcome = run_one(job, Path(scratch), kernel, note)
    if outcome.code != 0:
        raise errors.EngineError(f"{kernel.package}: {outcome.stderr}")
    return found


def known() -> dict[str, Any]:
    """What kernel.toml says."""
    return tomllib.loads(KNOWN.read_text())


def surprises(found: Mapping[str, Played], known: Mapping[str, Any], release: str) -> list[str]:
    """What is not as kernel.toml says; `release` is the kernel's, such as 6.12.95+deb12-cloud-amd64."""
    said = []
    for name, script in sorted(found.items()):
        difference = known["differs"].get(name)
        if difference is not None and "before" in difference and _version(release) >= _version(difference["before"]):
            difference = None
        expected = "cannot" if name in known["cannot"] else "differs" if difference else "agrees"
        if script.outcome != expected or (difference and not script.why.startswith(difference["says"])):
            said.append(f"{name}: {script.outcome}, not {expected}: {script.why or 'every line holds'}")
    missing = {*known["differs"], *known["cannot"]} - set(found)
    return [*said, *(f"{KNOWN.name}: there is no script {name}" for name in sorted(missing))]


def _version(release: str) -> tuple[int, ...]:
    """The first two numbers of a release."""
    return tuple(int(number) for number in release.split("-")[0].split("+")[0].split(".")[:2])


def main(suites: list[str]) -> int:
    """Play the scripts; return 1 if something is not as kernel.toml says."""
    failed = 0
    for suite in suites or list(MATRIX):
        kernel = kernels.find(f"vm:{suite}")
        found = played(kernel, scripts())
        outcomes = Counter(one.outcome for one in found.values())
        print(f"{kernel.package}: {', '.join(f'{count} {name}' for name, count in sorted(outcomes.items()))}")
        for surprise in surprises(found, known(), kernel.release):
            failed = 1
            print(f"  {surprise}")
    return failed


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1:]))
