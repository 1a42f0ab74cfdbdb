"""Mutants of Rust: cargo-mutants says which there are, and all are compiled at once."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from schemata import CHOICE, Change, Mutated, Switch, line_of, write

_SWITCH = Switch("match crate::chosen_mutant() {", "{} => {{{}\n}}", "_ => {{{}\n}}", "}")
_CHOOSE = f"""
pub(crate) fn chosen_mutant() -> u32 {{
    static CHOSEN: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {{
        std::env::var({json.dumps(CHOICE)}).map_or(0, |text| text.parse().expect("a number of a mutant"))
    }});
    *CHOSEN
}}
"""
# A string, a character (no lifetime) or a comment: what may hold brackets that are none.
_OPAQUE = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//[^\n]*|/\*.*?\*/', re.S)


def listed(root: Path, files: Sequence[str]) -> list[Change]:
    """The mutants of cargo-mutants in these files, in its order and numbered from 1."""
    if shutil.which("cargo-mutants") is None:
        subprocess.run(["cargo", "install", "--locked", "cargo-mutants"], check=True)
    options = [option for file in files for option in ("--file", file)]
    command = ["cargo", "mutants", "--list", "--json", "--no-shuffle", *options]
    found = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)
    texts = {file: (root / file).read_text() for file in sorted({one["file"] for one in found})}
    starts = {file: [0, *(match.end() for match in re.finditer("\n", text))] for file, text in texts.items()}
    return [_change(number, one, texts[one["file"]], starts[one["file"]]) for number, one in enumerate(found, 1)]


def _change(number: int, one: Mapping[str, Any], text: str, starts: Sequence[int]) -> Change:
    def span(of: Mapping[str, Any]) -> tuple[int, int]:
        places = (of["span"]["start"], of["span"]["end"])
        start, end = (starts[place["line"] - 1] + place["column"] - 1 for place in places)
        return start, end

    body = None
    if one["function"]:
        start, end = span(one["function"])
        opening = start + _opening_brace(text[start:end])
        # Each body of a function of an unnamed type would have a type of its own.
        body = None if "-> impl" in text[start:opening] else (opening, end)
    name = re.sub(r"^\S+?:\d+:\d+: ", "", one["name"])
    start, end = span(one)
    return Change(number, one["file"], start, end, one["replacement"], body, name, line_of(text, start))


def _opening_brace(function: str) -> int:
    """Where the body of a function begins: the first brace outside of brackets."""
    bare = _OPAQUE.sub(lambda match: " " * len(match[0]), function)
    depth = 0
    for at, letter in enumerate(bare):
        depth += (letter in "([") - (letter in ")]")
        if letter == "{" and depth == 0:
            return at
    raise ValueError(f"no body: {function}")


def put(tree: Path, changes: Sequence[Change]) -> dict[str, Mutated]:
    """Write all changes into the tree."""
    written = write(tree, changes, _SWITCH)
    for file, mutated in written.items():
        # Many bodies in each caller would take long to compile.
        (tree / file).write_text(mutated.text.replace("#[inline(always)]", "#[inline]"))
    for crate in sorted({Path(*Path(file).parts[:2]) for file in written}):
        library = tree / crate / "src" / "lib.rs"
        library.write_text(library.read_text() + _CHOOSE)
    return written


def flags(_tree: Path) -> dict[str, str]:
    """What the compiler needs in its environment."""
    return {}


def errors(tree: Path, words: Sequence[str], environment: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """File, line and text of what the compiler refuses in the tests that the words choose."""
    command = ["cargo", "test", "--no-run", "--message-format=json", *words]
    done = subprocess.run(command, cwd=tree, env=environment, check=False, capture_output=True, text=True)
    for message in (json.loads(line).get("message") for line in done.stdout.splitlines()):
        if isinstance(message, dict) and message["level"] == "error":
            for span in (one for one in message["spans"] if one["is_primary"]):
                yield span["file_name"], span["line_start"], message["message"]
