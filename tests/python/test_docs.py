"""Generated pages are up to date, and are generated from what the program itself uses."""

from __future__ import annotations

from pathlib import Path

import pytest

import mptcplab
from mptcplab import docs
from mptcplab.metrics import REGISTRY

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_the_committed_pages_are_up_to_date() -> None:
    assert docs.stale_pages(REFERENCE) == [], "run `make docs`"


def test_writing_makes_them_up_to_date_and_checking_notices_an_edit(tmp_path: Path) -> None:
    assert len(docs.stale_pages(tmp_path)) == 5
    assert len(docs.write_pages(tmp_path)) == 5
    assert docs.write_pages(tmp_path) == []
    page = tmp_path / "metrics.md"
    page.write_text(page.read_text().replace("Goodput", "Badput"))
    assert docs.stale_pages(tmp_path) == [page]


@pytest.mark.parametrize("name", REGISTRY)
def test_every_metric_is_on_its_page(name: str) -> None:
    assert f"\n## {name}\n" in docs.pages()["metrics.md"]


def test_every_algorithm_and_parameter_is_on_its_page() -> None:
    page = docs.pages()["algorithms.md"]
    for algorithm in mptcplab.algorithms():
        assert f"\n## {algorithm['name']}\n" in page
        for param in algorithm["params"]:
            assert f"| `{param['name']}` |" in page


def test_every_command_and_option_is_on_its_page() -> None:
    page = docs.pages()["cli.md"]
    for word in (
        "## run",
        "## check",
        "## algorithms",
        "## vectors",
        "## report",
        "## schema",
        "--reps",
        "--jobs",
        "--force",
    ):
        assert word in page
