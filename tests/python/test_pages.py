"""The pages that people learn from: every block of code runs as it stands, and prints what the page says.

- A block after a paragraph that ends with "as `NAME`:" is the content of the file NAME.
- A block of `sh` or `python` runs in the folder of its page, after the blocks above it.
- A block of `text` right after one of those is what it prints.
- A table right after a `{playground}`, or a comment `<!-- playground LINK -->`, has numbers of the playground with
  these settings.

`MPTCPLAB_PAGES=write` writes printed blocks and tables anew.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import mptcplab

DOCS = ROOT / "docs"
PAGES = (
    "first-steps.md",
    "tutorial.md",
    "reviewers.md",
    *sorted(f"cookbook/{p.name}" for p in DOCS.glob("cookbook/*")),
)
# Nothing to run, in a block of its own language.
DIRECTIVES = ("{toctree}", "{playground}")
# `make wheel-check` runs these.
INSTALLS = "pip install mptcplab-"
BLOCK = re.compile(
    r"(?:as `(?P<file>[\w./-]+)`:\n\n)?```(?P<language>\S+)(?P<argument>[^\n]*)\n(?P<code>.*?)```\n"
    r"(?:\n```text\n(?P<printed>.*?)```\n)?",
    re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of a page, and where what it prints stands in the text."""

    language: str
    argument: str
    file: str | None
    code: str
    printed: str | None
    span: tuple[int, int]


def blocks(text: str) -> list[Block]:
    return [
        Block(
            found["language"],
            found["argument"].strip(),
            found["file"],
            found["code"],
            found["printed"],
            found.span("printed"),
        )
        for found in BLOCK.finditer(text)
    ]


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_a_page_runs_and_prints_what_the_page_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = DOCS / name
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": name}
    for block in reversed_spans(run_all(blocks(text), namespace, page)):
        begin, end, printed = block
        if text[begin:end] == printed:
            continue
        if os.environ.get("MPTCPLAB_PAGES") == "write":
            text = text[:begin] + printed + text[end:]
            page.write_text(text, encoding="utf-8")
        else:
            assert text[begin:end] == printed, f"docs/{name}: MPTCPLAB_PAGES=write"


def run_all(found: list[Block], namespace: dict[str, Any], page: Path) -> list[tuple[int, int, str]]:
    """Runs the blocks of a page; the place and the text of what each was to print."""
    printed = []
    for block in found:
        if block.language in DIRECTIVES or INSTALLS in block.code:
            continue
        if block.file is not None:
            Path(block.file).write_text(block.code, encoding="utf-8")
            continue
        assert block.language in ("sh", "python"), f"{page}: nobody knows how to run {block.language}"
        output = shell(block.code) if block.language == "sh" else python(block.code, namespace, page)
        if block.printed is not None:
            printed.append((*block.span, output))
    return printed


def reversed_spans(printed: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """From the end of the page, so that earlier places stay valid."""
    return sorted(printed, reverse=True)


def shell(code: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "140"}
    done = subprocess.run(["bash", "-ec", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    return lines(done.stdout)


def python(code: str, namespace: dict[str, Any], page: Path) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, str(page), "exec"), namespace)
    return lines(output.getvalue())


def lines(text: str) -> str:
    """Without blanks at the ends of lines, which editors remove."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def test_the_commands_that_install_are_those_of_the_check_of_the_wheel() -> None:
    """It runs the first block of the page; no other block may install anything."""
    found = [
        (name, at)
        for name in PAGES
        for at, block in enumerate(blocks((DOCS / name).read_text()))
        if INSTALLS in block.code
    ]
    assert found == [("first-steps.md", 0)]
    assert "docs/first-steps.md" in (ROOT / "packaging" / "wheel_check.sh").read_text()


def test_first_steps_repeats_the_goodputs_of_its_first_table() -> None:
    """The sentence once had the numbers of an earlier build."""
    text = (DOCS / "first-steps.md").read_text(encoding="utf-8")
    printed = [block.printed for block in blocks(text) if block.printed]
    goodput = {tuple(line.split()[:2]): line.split()[2] for line in printed[0].splitlines() if "±" in line}
    (item,) = re.findall(r"^- `reno` .*?(?=^- )", text, re.MULTILINE | re.DOTALL)
    assert re.findall(r"([\d.]+) Mbit/s", item) == [goodput["reno", "mp"], goodput["reno", "tcp"]]


# --- The numbers beside the playground -------------------------------------------------------------

TABLE = re.compile(r"(?:```\{playground\} |<!-- playground )(\S+)(?:\n```| -->)\n\n((?:\|[^\n]*\n)+)")
TUTORIAL = (DOCS / "tutorial.md").read_text(encoding="utf-8")
# The names of rows, and the flows and subflows that they stand for.
ROWS = {
    "connection": ("mp", None),
    "path 1": ("mp", "sf1"),
    "path 2": ("mp", "sf2"),
    "TCP 1": ("tcp-1", None),
    "connection 1, short path": ("mp1", "sf1"),
    "connection 1, long path": ("mp1", "sf2"),
    "connection 2, long path": ("mp2", "sf2"),
    "connection 3, long path": ("mp3", "sf2"),
    "all connections": (None, None),
}
COLUMN = re.compile(r"[AB]: (?P<cc>[\w-]+), (?P<what>Mbit/s|RTT in ms)")
METRICS = {"Mbit/s": ("goodput", 2), "RTT in ms": ("rtt_mean", 0)}


@pytest.mark.parametrize("link, table", TABLE.findall(TUTORIAL), ids=lambda text: text if "=" in text else "")
def test_the_playground_shows_the_numbers_of_the_tutorial(link: str, table: str, tmp_path: Path) -> None:
    """The page's own code makes the scenario; test_playground.py compares its simulator with this one."""
    (tmp_path / "playground.toml").write_text(playground_scenario(link))
    results = mptcplab.run(tmp_path / "playground.toml", out=tmp_path / "out", progress=False)
    measured = results.metrics([name for name, _ in METRICS.values()])
    values = {
        (row["cc"], row["metric"], row["flow"], row["subflow"]): row["value"] for row in measured.iter_rows(named=True)
    }
    title, rule, *lines = table.splitlines(keepends=True)
    heading, *rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in (title, *lines)]
    written, compared = title + rule, 0
    for name, *cells in rows:
        found = [
            expected(values, ROWS[name], column) if cell else ""
            for column, cell in zip(heading[1:], cells, strict=True)
        ]
        compared += sum(map(bool, found))
        written += " | ".join([f"| {name}", *found]) + " |\n"
        if os.environ.get("MPTCPLAB_PAGES") != "write":
            assert found == cells, name
    page = DOCS / "tutorial.md"
    if os.environ.get("MPTCPLAB_PAGES") == "write":
        page.write_text(page.read_text(encoding="utf-8").replace(table, written), encoding="utf-8")
    assert compared >= 2


def test_the_tutorial_has_numbers_for_most_of_its_experiments() -> None:
    assert len(TABLE.findall(TUTORIAL)) >= 8


def expected(values: dict[Any, float], place: tuple[str | None, str | None], column: str) -> str:
    found = COLUMN.fullmatch(column)
    assert found is not None, column
    metric, digits = METRICS[found["what"]]
    flow, subflow = place
    if flow is not None:
        return f"{values[found['cc'], metric, flow, subflow]:.{digits}f}"
    whole = [value for (cc, name, _, part), value in values.items() if (cc, name, part) == (found["cc"], metric, None)]
    return f"{sum(whole):.{digits}f}"


def playground_scenario(link: str) -> str:
    """The scenario of a link of the playground."""
    if not shutil.which("node"):
        pytest.skip("SKIPPED, NOT TESTED: node is not installed")
    script = f"""
        import {{ fromFragment }} from "{ROOT}/playground/src/state.js";
        import {{ scenario }} from "{ROOT}/playground/src/topologies.js";
        const names = (list) => list.map((name) => ({{ name }}));
        const [link, ...known] = JSON.parse(process.argv[1]);
        const [algorithms, schedulers] = known.map(names);
        const {{ state, problems }} = fromFragment(link, {{ algorithms, schedulers }});
        if (problems.length) throw new Error(problems.join("; "));
        process.stdout.write(scenario(state).text);
    """
    known = [[one["name"] for one in listed] for listed in (mptcplab.algorithms(), mptcplab.schedulers())]
    words = ["node", "--input-type=module", "--eval", script, "--", json.dumps([link, *known])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_playground_of_the_tutorial_shows_what_its_link_says() -> None:
    links = re.findall(r"```\{playground\} (\S+)", TUTORIAL)
    assert len(links) >= 5
    for link in links:
        assert "[flows." in playground_scenario(link)
