"""Verdicts taken over as expected ones: only the lines `expect = "..."` of claims.toml change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.output import write_text
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.study.verdict import Verdict

_ID = re.compile(r'^id = "(.*)"$')
_EXPECT = re.compile(r'^expect = "(.*)"$')


def check(engine: str, *, quick: bool) -> None:
    """Raise an error unless this is what expected verdicts are about."""
    if quick or engine != "sim":
        hint = "leave out --quick and --engine"
        raise MptcplabError(with_hint("only a full reproduction in the simulator sets what is expected", hint))


def accept(found: Sequence[Reproduction]) -> list[str]:
    """Write the verdicts that differ from the expected ones into the papers' files; return a line per change."""
    lines = []
    for one in found:
        changed = {judged.claim.id: judged.verdict for judged in one.claims if judged.changed}
        path = one.paper.directory / "claims.toml"
        before = path.read_text(encoding="utf-8")
        after = rewritten(before, changed, path)
        if after != before:
            write_text(path, after)
        expected = {judged.claim.id: judged.claim.expect for judged in one.claims}
        lines += [
            f"{name}: {expected[name]} -> {verdict}; check that its why explains this"
            for name, verdict in changed.items()
        ]
    return lines


def rewritten(text: str, verdicts: Mapping[str, Verdict], path: Path) -> str:
    """The text of claims.toml with other expected verdicts, and every other line as it was."""
    lines, claim, written = text.split("\n"), "", set()
    for place, line in enumerate(lines):
        if line == "[[claim]]":
            claim = ""
        elif named := _ID.match(line):
            claim = named[1]
        elif _EXPECT.match(line) and claim in verdicts:
            lines[place] = f'expect = "{verdicts[claim]}"'
            written.add(claim)
    missing = sorted(set(verdicts) - written)
    if missing:
        hint = 'each is a line of its own: id = "..." above expect = "..."'
        raise MptcplabError(with_hint(f"{path}: no id followed by expect: {', '.join(missing)}", hint))
    return "\n".join(lines)
