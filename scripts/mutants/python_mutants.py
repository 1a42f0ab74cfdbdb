"""The mutants of Python that cosmic-ray names, and the tests that each of them meets."""

from __future__ import annotations

import ast
import json
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from python_reach import Reach


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


@dataclass(frozen=True)
class Trial:
    """A mutant that changes something, and the tests that it meets."""

    file: str
    path: str
    before: str
    after: str
    tests: Sequence[str]
    # Whether it has an effect while a module is imported.
    at_import: bool

    @property
    def change(self) -> str:
        """The lines that differ, as `- old + new`."""
        pairs = zip(self.before.splitlines(), self.after.splitlines(), strict=False)
        return next((f"- {old.strip()} + {new.strip()}" for old, new in pairs if old != new), "- + at the end")


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


def trials_of(mutants: Sequence[Mutant], reach: Reach) -> list[Trial]:
    """A trial of each mutant that changes something."""
    befores = [Path(mutant.file).read_text() for mutant in mutants]
    with ProcessPoolExecutor() as pool:
        afters = list(pool.map(Mutant.text, mutants, befores, chunksize=16))
    return [
        Trial(mutant.file, path, before, after, reach.of(path, mutant.line), reach.at_import(path, mutant.line))
        for mutant, before, after in zip(mutants, befores, afters, strict=True)
        if after is not None and (path := str(Path(mutant.file).resolve()))
    ]
