"""Everything that sources, data and pages cite is in this repository: a reader can open every path that is named."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

FOLDERS = ("algorithms", "benches", "crates", "docs", "papers", "python", "scenarios", "scripts", "tests")
KINDS = (".c", ".h", ".rs", ".py", ".md", ".toml", ".sh", ".html", ".css", ".js")
# A path from the root of the repository, or the name of a page.
PATH = re.compile(rf"\b(?<![/.$-])((?:{'|'.join(FOLDERS)})/[\w./-]*[\w/]|\w[\w-]*\.md)(?![\w*<{{])")
# Documents that are not in the repository, and numbers of decisions in them.
ELSEWHERE = re.compile(r"\balgorithms\.md \d|\bscenarios\.md\b|\bspec/|\bdocs/papers\.md\b|\bchoice C\d")
PAGES = {path.name for path in (ROOT / "docs").rglob("*.md")}
# Files that are made when something runs, and examples of names.
MADE = re.compile(
    r"^(docs/agreement/unfinished|papers/(zuhairi2022/walk|doe2026)|python/mptcplab/_(core|bin)|scenarios/NAME|algorithms/mine)"
)


def tracked(folder: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / line for line in listed.stdout.splitlines() if line.endswith(KINDS)]
    # Tests make up names of their own.
    return [path for path in paths if path.is_file() and not {"tests", "tests.rs"} & set(path.parts)]


def dangling(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    cited = [match for match in PATH.finditer(text) if not exists(match[1], path)]
    found = sorted([*ELSEWHERE.finditer(text), *cited], key=lambda match: match.start())
    return [f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}" for match in found]


def exists(cited: str, by: Path) -> bool:
    """Whether a path is there from the root, from the file that cites it, or from a folder above that file."""
    above = [folder for folder in by.parents if folder.is_relative_to(ROOT)]
    return bool(MADE.search(cited)) or cited in PAGES or any((folder / cited).exists() for folder in above)


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "tests"])
def test_every_path_that_is_cited_exists(folder: str) -> None:
    assert [one for path in tracked(folder) for one in dangling(path)] == []


def test_a_cited_document_outside_the_repository_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "fluid.md"
    lines = ["see algorithms.md 7.5, choice C20", "docs/nowhere.md", "in spec/scenarios.md", "docs/fluid.md"]
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "\n".join(lines))
    assert [one.rpartition(": ")[2] for one in dangling(page)] == [
        "algorithms.md 7",
        "choice C2",
        "docs/nowhere.md",
        "spec/",
        "scenarios.md",
    ]
