"""Mutants of C: a token is replaced by another, and all changes are compiled at once."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from schemata import CHOICE, Change, Mutated, Switch, line_of, write

_SWITCH = Switch("switch (chosen_mutant()) {", "case {}: {{{}\n}} break;", "default: {{{}\n}}", "}")
# Every file of C begins with this.
_CHOOSE = f"""\
extern char *getenv(const char *);
extern int atoi(const char *);
static inline int chosen_mutant(void)
{{
	static int chosen = -1;
	if (chosen < 0) {{
		const char *text = getenv("{CHOICE}");
		chosen = text ? atoi(text) : 0;
	}}
	return chosen;
}}
"""
# A token of C and what it becomes; a minus, a plus or a comparison has spaces on both sides.
_TOKENS = {
    " < ": [" <= ", " > "],
    " <= ": [" < "],
    " > ": [" >= ", " < "],
    " >= ": [" > "],
    " == ": [" != "],
    " != ": [" == "],
    " && ": [" || "],
    " || ": [" && "],
    " + ": [" - "],
    " - ": [" + "],
    " * ": [" / "],
    " / ": [" * "],
    " << ": [" >> "],
    " >> ": [" << "],
    " += ": [" -= "],
    " -= ": [" += "],
    "cc_min(": ["cc_max("],
    "cc_max(": ["cc_min("],
    "return true;": ["return false;"],
    "return false;": ["return true;"],
    "if (!": ["if ("],
}
_OPAQUE = re.compile(r"/\*.*?\*/|^[ \t]*#[^\n]*$|\"[^\"\n]*\"", re.S | re.M)
# Functions have their braces at the beginnings of lines.
_BODY = re.compile(r"^\{.*?^\}", re.S | re.M)


def listed(root: Path, files: Sequence[str]) -> list[Change]:
    """Every change of these files outside of comments and preprocessor lines, numbered from 1."""
    found = [change for file in files for change in _changes(file, (root / file).read_text())]
    return [Change(number, *change) for number, change in enumerate(found, 1)]


def _changes(file: str, text: str) -> Iterator[tuple[str, int, int, str, tuple[int, int] | None, str, str]]:
    hidden = [match.span() for match in _OPAQUE.finditer(text)]
    bodies = [match.span() for match in _BODY.finditer(text)]
    places = [(match.start(), old) for old in _TOKENS for match in re.finditer(re.escape(old), text)]
    for at, old in sorted(places):
        if any(start <= at < end for start, end in hidden):
            continue
        body = next((span for span in bodies if span[0] <= at < span[1]), None)
        for new in _TOKENS[old]:
            yield file, at, at + len(old), new, body, f"replace {old.strip()} with {new.strip()}", line_of(text, at)


def put(tree: Path, changes: Sequence[Change]) -> dict[str, Mutated]:
    """Write all changes into the tree."""
    (tree / "chosen.h").write_text(_CHOOSE)
    return write(tree, changes, _SWITCH)


def flags(tree: Path) -> dict[str, str]:
    """What the compiler of C needs in its environment: copies of code have labels and warnings of their own."""
    compiler = tree / "cc-with-mutants"
    compiler.write_text(f'#!/bin/sh\nexec cc "$@" -w -include {shlex.quote(str(tree / "chosen.h"))}\n')
    compiler.chmod(0o755)
    return {"CC": str(compiler)}


def errors(tree: Path, _words: Sequence[str], _environment: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """File, line and text of what the compiler refuses in the algorithms."""
    for source in sorted(tree.glob("algorithms/*.c")):
        command = ["cc", "-fsyntax-only", "-std=gnu11", "-DCC_CHECKED", "-w", "-include", "chosen.h", "-Ialgorithms"]
        name = str(source.relative_to(tree))
        done = subprocess.run([*command, name], cwd=tree, check=False, capture_output=True, text=True)
        for match in re.finditer(r"^([^:\s]+):(\d+):\d+: error: (.*)$", done.stderr, re.M):
            yield match[1], int(match[2]), match[3]
