"""ARCHITECTURE.md lists the crates in the order of their dependencies; every file of tests is part of a program."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `(?P<folder>[^`]+?)/?`")


def table() -> list[str]:
    """The folders in the first column of the table under "Parts", in order."""
    parts = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("\n## Parts\n")[2].partition("\n## ")[0]
    return [row["folder"] for line in parts.splitlines() if (row := ROW.match(line))]


@pytest.fixture(scope="module")
def crates() -> dict[str, set[str]]:
    """The folder of every crate of the workspace, with the folders of the crates that it uses, for tests too."""
    words = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("SKIPPED, NOT TESTED: cargo is not installed")
    packages = json.loads(done.stdout)["packages"]
    folders = {package["name"]: folder(Path(package["manifest_path"]).parent) for package in packages}
    return {
        folders[package["name"]]: {folder(Path(used["path"])) for used in package["dependencies"] if used.get("path")}
        for package in packages
    }


def folder(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_table_lists_every_crate_once(crates: dict[str, set[str]]) -> None:
    rows = table()
    assert sorted(row for row in rows if row in crates or row.startswith("crates/")) == sorted(crates)
    assert len(rows) == len(set(rows))


def test_a_crate_uses_only_crates_above_it(crates: dict[str, set[str]]) -> None:
    rows = table()
    wrong = [
        f"{user} uses {used}, which is not above it in the table"
        for user, all_used in crates.items()
        for used in sorted(all_used)
        if rows.index(used) >= rows.index(user)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("main", sorted(ROOT.glob("crates/*/tests/main.rs")), ids=lambda path: path.parts[-3])
def test_every_file_of_tests_is_a_module_of_its_test_program(main: Path) -> None:
    """A file that main.rs does not name would not be compiled, and its tests would never run."""
    modules = set(re.findall(r"^mod (\w+);$", main.read_text(encoding="utf-8"), flags=re.MULTILINE))
    files = {path.stem for path in main.parent.glob("*.rs")} - {"main"}
    assert files - modules == set()
