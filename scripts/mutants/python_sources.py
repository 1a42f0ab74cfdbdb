"""Mutants of Python: cosmic-ray says which there are, and `python_trials.py` tries them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from known import Known

# Of a binary operator and a comparison the replacements that cargo-mutants has: the others hardly ever pass a test, and
# those of `|` stand in annotations nearly everywhere.
_LEFT_OUT = [
    "core/ReplaceBinaryOperator_BitOr_.*",
    "core/ReplaceBinaryOperator_.*_(Mod|Pow|FloorDiv|LShift|RShift|BitOr|BitAnd|BitXor)",
    "core/ReplaceComparisonOperator_.*_(Is|IsNot)",
    "core/ReplaceComparisonOperator_(Eq|NotEq)_(Lt|LtE|Gt|GtE)",
    "core/ReplaceComparisonOperator_(Lt|LtE|Gt|GtE)_(Eq|NotEq)",
    # A class that is not frozen, a function that is not cached.
    "core/RemoveDecorator",
]
_SETTINGS = """\
[cosmic-ray]
module-path = {modules}
timeout = 1.0
excluded-modules = []
test-command = ""

[cosmic-ray.distributor]
name = "local"

[cosmic-ray.filters.operators-filter]
exclude-operators = {left_out}
"""


def outcomes(
    tree: Path, venv: Path, files: Sequence[str], tests: Sequence[str], shard: str, before: Known | None
) -> Iterator[Mapping[str, Any]]:
    """Every mutant of these files: `file`, `change`, and whether it `survived` these files of tests.

    The key of a mutant is "file: change".
    """
    _install(venv)
    session = tree / "mutants.sqlite"
    (tree / "mutants.toml").write_text(_SETTINGS.format(modules=json.dumps(files), left_out=json.dumps(_LEFT_OUT)))
    for program, *words in (
        ("cosmic-ray", "init", "mutants.toml", session),
        ("cr-filter-operators", session, "mutants.toml"),
    ):
        subprocess.run([venv / "bin" / program, *words], cwd=tree, check=True, capture_output=True)
    listed = tree / "listed.json"
    listed.write_text(json.dumps(before and {"keys": sorted(before.keys), "again": before.again}))
    trials = Path(__file__).with_name("python_trials.py")
    command = [venv / "bin" / "python", trials, session, shard or "0/1", listed, *tests]
    with subprocess.Popen(command, cwd=tree, stdout=subprocess.PIPE, text=True) as process:
        yield from (json.loads(line) for line in process.stdout or ())
    if process.returncode:
        raise RuntimeError(f"python_trials.py ended with {process.returncode}")


def _install(venv: Path) -> None:
    """An environment with cosmic-ray, the packages of this one and, before them, the tree's `python`."""
    if (venv / "bin" / "cosmic-ray").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "--quiet", "cosmic-ray", "coverage"], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "project.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path) + "\n")
