"""The report of a reproduction: a page per paper, a page over all of them, and the verdicts for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mptcplab.output import write_text
from mptcplab.study.page import writing_page

if TYPE_CHECKING:
    from mptcplab.studies.papers.reproduce import Reproduction

__all__ = ["write", "write_docs", "write_sensitivity"]


def write(reproductions: Sequence[Reproduction], out: Path, command: str) -> Path:
    """Write `<paper>.html`, `index.html`, `verdicts.csv` and `verdicts.json` into `out`; return the index' path.

    `command` is the command that the pages name as their origin.
    """
    from mptcplab.studies.papers.report.page import index_page, paper_page
    from mptcplab.studies.papers.report.verdicts import verdicts_csv, verdicts_json

    with writing_page(out):
        out.mkdir(parents=True, exist_ok=True)
        for one in reproductions:
            write_text(out / f"{one.paper.id}.html", paper_page(one, command))
        write_text(out / "verdicts.csv", verdicts_csv(reproductions))
        write_text(out / "verdicts.json", verdicts_json(reproductions))
        write_text(out / "index.html", index_page(reproductions, command))
    return out / "index.html"


def write_sensitivity(reproductions: Sequence[Reproduction], out: Path, docs: Path | str | None) -> None:
    """Write `sensitivity.json` into `out`, and into `docs` beside the claims that it has already."""
    from mptcplab.studies.papers import sensitivity

    claims = {name: one for found in reproductions for name, one in found.sensitivity.claims.items()}
    for place in (out, docs):
        if place is not None:
            with writing_page(Path(place)):
                Path(place).mkdir(parents=True, exist_ok=True)
                sensitivity.write(sensitivity.Study(claims), Path(place) / sensitivity.FILE.name)


def write_docs(reproductions: Sequence[Reproduction], out: Path) -> list[Path]:
    """Write a Markdown page per paper with its figures, and `README.md` over all of them; return their paths."""
    from mptcplab.studies.papers.report.docs import write_pages

    with writing_page(out):
        return write_pages(reproductions, out)
