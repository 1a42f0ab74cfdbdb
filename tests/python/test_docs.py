"""Generated pages are up to date, and are generated from what the program itself uses."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main

import mptcplab
from mptcplab import _core, api, cli, reference
from mptcplab.metrics import REGISTRY
from mptcplab.results import Results
from mptcplab.studies.hunt.properties import PROPERTIES

COMMANDS = typer.main.get_command(cli.app)
REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_the_committed_pages_are_up_to_date() -> None:
    assert reference.stale_pages(REFERENCE, COMMANDS) == [], "run `make docs`"


def test_writing_makes_them_up_to_date_and_checking_notices_an_edit(tmp_path: Path) -> None:
    assert len(reference.stale_pages(tmp_path, COMMANDS)) == 7
    assert len(reference.write_pages(tmp_path, COMMANDS)) == 7
    assert reference.write_pages(tmp_path, COMMANDS) == []
    page = tmp_path / "metrics.md"
    page.write_text(page.read_text().replace("Goodput", "Badput"))
    assert reference.stale_pages(tmp_path, COMMANDS) == [page]


def test_results_have_the_attributes_that_the_page_about_python_names() -> None:
    """It named a table `.request`, which is `requests`."""
    page = (REFERENCE.parent / "python.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(?:results)?\.([a-z_]+)(?=[`(.])", page))
    assert {"runs", "subflow", "transfer", "plot"} < names
    assert [name for name in sorted(names) if not hasattr(Results, name)] == []


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result that the page about the trace reads."""
    monkeypatch.chdir(tmp_path)
    mptcplab.run(
        "dolia-scenario-1",
        cc="lia",
        reps=1,
        duration="1 s",
        settings={"warmup": "0 s"},
        out="results/dolia-scenario-1",
        progress=False,
    )


@pytest.mark.usefixtures("result")
@pytest.mark.parametrize("reader", ["mptcplab", "pandas"])
def test_the_tables_are_read_as_the_page_about_the_trace_says(reader: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", reference.pages(COMMANDS)["trace.md"], re.DOTALL)
    (block,) = [block for block in blocks if block.startswith(f"import {reader}")]
    if reader == "pandas":
        pytest.importorskip("pyarrow", reason="SKIPPED, NOT TESTED: pandas (pip install 'mptcplab[pandas]')")
    namespace: dict[str, Any] = {}
    exec(compile(block, "trace.md", "exec"), namespace)
    assert len(namespace["samples"]) >= 101
    assert set(namespace["samples"]["cc"]) == {"lia"}


def test_the_page_about_the_trace_says_what_every_kind_of_event_is() -> None:
    tables = {one["name"]: one["columns"] for one in json.loads(_core.trace_schema_json())["tables"]}
    (kinds,) = [column["doc"] for column in tables["event"] if column["name"] == "kind"]
    assert kinds.split(", ") == [*reference.EVENTS]


@pytest.mark.parametrize("name", REGISTRY)
def test_every_metric_is_on_its_page(name: str) -> None:
    assert f"\n## {name}\n" in reference.pages(COMMANDS)["metrics.md"]


def test_every_algorithm_and_parameter_is_on_its_page() -> None:
    page = reference.pages(COMMANDS)["algorithms.md"]
    for algorithm in mptcplab.algorithms():
        assert f"\n## {algorithm['name']}\n" in page
        for param in algorithm["params"]:
            assert f"| `{param['name']}` |" in page


def test_every_scheduler_and_parameter_is_on_its_page() -> None:
    page = reference.pages(COMMANDS)["schedulers.md"]
    for scheduler in mptcplab.schedulers():
        assert f"\n## {scheduler['name']}\n" in page
        for param in scheduler["params"]:
            assert f"| `{param['name']}` |" in page


@pytest.mark.parametrize("algorithm", mptcplab.algorithms(), ids=lambda algorithm: algorithm["name"])
def test_the_scenarios_that_an_algorithms_header_names_can_run_it(algorithm: dict[str, Any]) -> None:
    sections = {section["name"]: section["text"] for section in algorithm["sections"]}
    for heading in ("Good at", "Bad at"):
        named = re.findall(r"scenarios/[\w/.-]+\.toml", sections[heading])
        assert named, heading
        for scenario in named:
            overrides = api.Overrides(cc=(algorithm["name"],), reps=1)
            found = mptcplab.check(REFERENCE.parents[1] / scenario, overrides)
            assert algorithm["name"] in found["text"], scenario


def test_the_printed_description_of_an_algorithm_is_complete() -> None:
    for algorithm in mptcplab.algorithms():
        text = reference.algorithm_text(algorithm)
        for word in ("Equations", "On one path", "Good at", "Bad at", "Reference", "Linux 6.1 and newer"):
            assert word in text, (algorithm["name"], word)
        for param in algorithm["params"]:
            assert f"{param['name']} = {param['default_text']}  ({param['range']})" in text
        for field in algorithm["fields"]:
            assert re.search(rf"^State of a subflow.*\n  (.*, )?{field['name']}\b", text, re.M), (text, field)


def test_what_is_printed_of_a_draft_says_what_its_header_lacks() -> None:
    draft = {**mptcplab.algorithms()[0], "incomplete": "missing: Bad at, Reference"}
    assert reference.algorithm_text(draft).endswith(" is not complete\n  missing: Bad at, Reference")


PACKAGE_LISTS = ("README.md", "docs/operators.md", "crates/mptcplab-doctor/src/checks/machine.rs")


@pytest.mark.parametrize("file", PACKAGE_LISTS)
def test_who_names_the_packages_of_the_kernel_engine_names_those_that_setup_wants(file: str) -> None:
    root = REFERENCE.parents[1]
    script = (root / "scripts" / "common.sh").read_text()
    function = script[script.index("kernel_packages() {") :].partition("\n}")[0]
    wanted = set(re.findall(r"missing\+=\(([\w-]+)\)", function))
    assert {"clang", "pkg-config", "make"} <= wanted
    named = [set(re.findall(r"[\w-]+", part)) for part in (root / file).read_text().split("\n\n")]
    # Whoever reads this has make.
    assert any(wanted - {"make"} <= words for words in named)


def test_first_steps_lists_the_extras_of_the_package() -> None:
    page = (REFERENCE.parent / "first-steps.md").read_text(encoding="utf-8")
    project = tomllib.loads((REFERENCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # For those who develop mptcplab.
    extras = {*project["optional-dependencies"]} - {"dev", "site"}
    assert {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)} == extras


def test_every_property_of_hunts_is_explained_beside_the_command() -> None:
    section = reference.pages(COMMANDS)["cli.md"].partition("\n## hunt\n")[2].partition("\n## ")[0]
    (option,) = [line for line in section.splitlines() if "`--property NAMES`" in line]
    named = option.partition("searched for: ")[2].partition(".")[0].split(", ")
    assert re.findall(r"^\| `(\w[\w-]*)` \|", section, re.MULTILINE) == named == [*PROPERTIES]


def test_every_command_and_option_is_on_its_page() -> None:
    page = reference.pages(COMMANDS)["cli.md"]
    for word in (
        "## run",
        "## check",
        "## algorithms",
        "## schedulers",
        "## vectors",
        "## report",
        "## schema",
        "--reps",
        "--jobs",
        "--force",
    ):
        assert word in page
