"""Tries mutants of Python: each meets the tests that reach its line, fastest first, until one fails.

Nearly all mutants change functions only. They are tried in processes that are forked after pytest has collected all
tests, and that put other code into these functions. What changes the import of a module needs a process that has not
imported it; all other packages are loaded before that is forked. `python_sources.py` runs this file.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from forks import Job, done, in_child, processors
from known import Known
from python_collected import tried_collected
from python_mutants import Trial, mutants_of, trials_of
from python_reach import Reach, Watcher


def measured(files: Sequence[str], words: Sequence[str], to: Path) -> int:
    """Run all tests as they are; their reach and the names of the loaded modules are in `to` afterwards."""
    watcher = Watcher([str(Path(file).resolve()) for file in files])
    code = watcher.watch(words)
    to.write_bytes(pickle.dumps((watcher.reach, sorted(sys.modules))))
    return code


def passes_imported(trial: Trial, words: Sequence[str], folder: Path) -> int:
    """Run the tests of a trial, as a process that imports the other text; 0 if they pass."""
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        return compile(trial.after, trial.path, "exec") if loader.path == trial.path else original(loader, name)

    SourceFileLoader.get_code = get_code
    return pytest.main([*words, f"--basetemp={folder}", "-x", *trial.tests])


def load_others(names: Sequence[str], ours: Path) -> None:
    """Import what is neither ours nor a test's."""
    for name in names:
        if name.split(".")[0] in ("mptcplab", "conftest", "__main__") or name.startswith("test_"):
            continue
        if any((ours / f"{name}{end}").exists() for end in (".py", "")):
            continue
        with suppress(Exception):
            importlib.import_module(name)


def tried(
    trials: Sequence[Trial], reach: Reach, words: Sequence[str], tests: Sequence[str]
) -> Iterator[tuple[int, bool]]:
    """Every trial's number, and whether its mutant survived."""
    left = {number for number, trial in enumerate(trials) if trial.tests}
    yield from ((number, True) for number in range(len(trials)) if number not in left)
    for number, passed in tried_collected(trials, reach, [*words, *tests]):
        left.remove(number)
        yield number, passed
    jobs = (
        Job(number, reach.limit_s(trials[number].tests) + 30, partial(passes_imported, trials[number], words))
        for number in sorted(left)
    )
    yield from done(jobs, processors())


def told(trials: Sequence[Trial], outcomes: Iterator[tuple[int, bool]]) -> None:
    """Print a line of JSON per outcome, as they come."""
    for number, survived in outcomes:
        trial = trials[number]
        print(json.dumps({"file": trial.file, "change": trial.change, "survived": survived}), flush=True)


def main() -> int:
    """Print a line of JSON per mutant of a session that changes something."""
    session, shard, listed, *tests = sys.argv[1:]
    listed_before = json.loads(Path(listed).read_text())
    before = Known(**listed_before) if listed_before else None
    tree = Path.cwd()
    sys.path.insert(0, str(tree / "python"))
    os.environ["PYTHONPATH"] = str(tree / "python")
    sys.dont_write_bytecode = True
    mutants = mutants_of(Path(session), shard)
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=sys", f"--rootdir={tree}"]
    found = tree / "reach.pickle"
    child = in_child(lambda: measured(sorted({one.file for one in mutants}), [*words, *tests], found))
    if os.waitpid(child, 0)[1]:
        print(f"error: the tests fail without a change: {' '.join(tests)}", file=sys.stderr)
        return 1
    reach, names = pickle.loads(found.read_bytes())
    load_others(names, tree / "tests" / "python")
    trials = trials_of(mutants, reach)
    assumed = [before.survived(f"{one.file}: {one.change}") if before else None for one in trials]
    told(trials, ((number, survived) for number, survived in enumerate(assumed) if survived is not None))
    run = [trial for trial, survived in zip(trials, assumed, strict=True) if survived is None]
    told(run, tried(run, reach, words, tests))
    return 0


if __name__ == "__main__":
    sys.exit(main())
