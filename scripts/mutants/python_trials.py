"""Tries mutants of Python: a process per mutant that has loaded all other packages before it is forked.

Each mutant meets the tests that reach its line, fastest first, until one fails. What is reached while a module is
imported or a fixture is made, all tests of the part reach. `python_sources.py` runs this file.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import pickle
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import SourceFileLoader
from itertools import accumulate
from pathlib import Path
from typing import Any

import coverage
import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

# A test that takes longer is left out, and so are those that no longer fit into the time for all of a mutant's tests.
_LONGEST_S = 3.0
_ALL_S = 30.0
_ANYWHERE = "anywhere"
# Lines; what is longer is a compound statement, or a table that is made at import.
_LONGEST_STATEMENT = 12


@dataclass
class Reach:
    """Which tests reach which lines, and how long each takes."""

    took_s: dict[str, float] = field(default_factory=dict)
    # tests[file][line]
    tests: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    def of(self, file: str, line: int) -> list[str]:
        """The tests that reach the statement around a line, fastest first."""
        found = {test for one in statement(file, line) for test in self.tests.get(file, {}).get(one, ())}
        chosen = self.took_s if _ANYWHERE in found else found
        short = sorted((test for test in chosen if self.took_s[test] <= _LONGEST_S), key=lambda test: self.took_s[test])
        ends_s = accumulate(self.took_s[test] for test in short)
        return [test for test, end_s in zip(short, ends_s, strict=True) if end_s <= _ALL_S]

    def limit_s(self, tests: Sequence[str]) -> float:
        """Seconds after which these tests hang."""
        return 30 + 5 * sum(self.took_s[test] for test in tests)


def statement(file: str, line: int) -> range:
    """All lines of the shortest statement that has this one: Python need not say that it reaches each of them."""
    nodes = (node for node in ast.walk(_parsed(file)) if isinstance(node, ast.stmt))
    spans = (range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in nodes)
    around = min((span for span in spans if line in span), key=len, default=range(line, line + 1))
    return around if len(around) <= _LONGEST_STATEMENT else range(line, line + 1)


@cache
def _parsed(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text())


class Watcher:
    """A plugin of pytest that measures the reach of every test."""

    def __init__(self, files: Sequence[str]) -> None:
        self.reach = Reach()
        self._coverage = coverage.Coverage(data_file=None, include=files)
        self._files = files

    def watch(self, words: Sequence[str]) -> int:
        """Run pytest with these words. Returns its code."""
        self._coverage.start()
        self._coverage.switch_context(_ANYWHERE)
        code = pytest.main([*words], plugins=[self])
        self._coverage.stop()
        data = self._coverage.get_data()
        self.reach.tests = {file: data.contexts_by_lineno(file) for file in self._files}
        return code

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Measure one test, without its fixtures."""
        self._coverage.switch_context(item.nodeid)
        start = time.monotonic()
        try:
            return (yield)
        finally:
            self.reach.took_s[item.nodeid] = time.monotonic() - start
            self._coverage.switch_context(_ANYWHERE)


@dataclass(frozen=True)
class Mutant:
    """One line of cosmic-ray's session."""

    file: str
    operator: str
    arguments: Mapping[str, Any]
    occurrence: int
    line: int

    def text(self, before: str) -> str | None:
        """The file's text with the change; nothing if it is the same program, or not Python any more."""
        if "TYPE_CHECKING" in before.splitlines()[self.line - 1]:
            return None
        after = mutate_code(before, get_operator(self.operator)(**self.arguments), self.occurrence)
        return None if after in (None, before) or not _is_python(after) else after


def _is_python(text: str) -> bool:
    """Whether it can be parsed: the star before keyword arguments, for one, is no multiplication."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def mutants_of(session: Path, shard: str) -> list[Mutant]:
    """The mutants of a session that are not filtered out, in the order of the files."""
    number, count = map(int, shard.split("/"))
    columns = "module_path, operator_name, operator_args, occurrence, start_pos_row"
    asked = (
        f"select {columns} from mutation_specs where job_id not in (select job_id from work_results) "
        "order by module_path, start_pos_row, start_pos_col, operator_name, occurrence"
    )
    with closing(sqlite3.connect(session)) as database:
        rows = database.execute(asked).fetchall()[number::count]
    return [Mutant(file, name, _arguments(given), at, row) for file, name, given, at, row in rows]


def _arguments(given: str) -> dict[str, Any]:
    # It is JSON in a column of JSON.
    value = json.loads(given)
    return json.loads(value) if isinstance(value, str) else value


def in_child(work: Any, *arguments: Any) -> int:
    """The id of a process of its own group that ends with what `work` returns."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    code = 70
    with suppress(BaseException):
        code = int(work(*arguments))
    os._exit(code)


def measured(files: Sequence[str], words: Sequence[str], to: Path) -> int:
    """Run all tests as they are; their reach and the names of the loaded modules are in `to` afterwards."""
    watcher = Watcher([str(Path(file).resolve()) for file in files])
    code = watcher.watch(words)
    to.write_bytes(pickle.dumps((watcher.reach, sorted(sys.modules))))
    return code


def mutated(path: str, text: str, words: Sequence[str], tests: Sequence[str]) -> int:
    """Run these tests with another text of one file."""
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        return compile(text, path, "exec") if loader.path == path else original(loader, name)

    SourceFileLoader.get_code = get_code
    base = tempfile.mkdtemp(prefix="mptcplab-mutant-")
    try:
        return pytest.main([*words, f"--basetemp={base}", "-x", *tests])
    finally:
        shutil.rmtree(base, ignore_errors=True)


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
    mutants: Sequence[Mutant],
    again: Collection[tuple[str, str]] | None,
    reach: Reach,
    words: Sequence[str],
    workers: int,
) -> Iterator[tuple[Mutant, str, bool]]:
    """Every mutant that changes something, with the lines that it changes and whether it survived.

    All but the ones in `again`, as file and lines, if it is given, count as killed.
    """
    running: dict[int, tuple[float, Mutant, str]] = {}

    def finished(most: int) -> Iterator[tuple[Mutant, str, bool]]:
        while len(running) > most:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child in running:
                _, mutant, change = running.pop(child)
                yield mutant, change, status == 0
                continue
            for late in (one for one, (deadline, *_) in running.items() if time.monotonic() > deadline):
                os.killpg(late, signal.SIGKILL)
            time.sleep(0.01)

    for mutant in mutants:
        before = Path(mutant.file).read_text()
        text = mutant.text(before)
        if text is None:
            continue
        change = change_of(before, text)
        path = str(Path(mutant.file).resolve())
        tests = reach.of(path, mutant.line)
        if again is not None and (mutant.file, change) not in again:
            yield mutant, change, False
            continue
        if not tests:
            yield mutant, change, True
            continue
        yield from finished(workers - 1)
        running[in_child(mutated, path, text, words, tests)] = (
            time.monotonic() + reach.limit_s(tests),
            mutant,
            change,
        )
    yield from finished(0)


def change_of(before: str, after: str) -> str:
    """The lines that differ, as `- old + new`."""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((f"- {old.strip()} + {new.strip()}" for old, new in pairs if old != new), "- + at the end")


def main() -> int:
    """Print a line of JSON per mutant of a session that changes something."""
    session, shard, listed, *tests = sys.argv[1:]
    again = {(file, change) for file, change in json.loads(Path(listed).read_text())} if listed else None
    tree = Path.cwd()
    sys.path.insert(0, str(tree / "python"))
    os.environ["PYTHONPATH"] = str(tree / "python")
    sys.dont_write_bytecode = True
    mutants = mutants_of(Path(session), shard)
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={tree}"]
    found = tree / "reach.pickle"
    child = in_child(measured, sorted({one.file for one in mutants}), [*words, *tests], found)
    if os.waitpid(child, 0)[1]:
        print(f"error: the tests fail without a change: {' '.join(tests)}", file=sys.stderr)
        return 1
    reach, names = pickle.loads(found.read_bytes())
    load_others(names, tree / "tests" / "python")
    for mutant, change, survived in tried(mutants, again, reach, words, len(os.sched_getaffinity(0))):
        print(json.dumps({"file": mutant.file, "change": change, "survived": survived}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
