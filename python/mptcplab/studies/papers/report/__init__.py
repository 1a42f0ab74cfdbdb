"""The report of a reproduction: a page per paper, a page over all of them, and the verdicts for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mptcplab.errors import OutputError
from mptcplab.output import write_text

if TYPE_CHECKING:
    from mptcplab.studies.papers.reproduce import Reproduction

__all__ = ["docs_page", "write"]


def write(reproductions: Sequence[Reproduction], out: Path, command: str) -> Path:
    """Write `<paper>.html`, `index.html`, `verdicts.csv` and `verdicts.json` into `out`; return the index' path.

    `command` is what the pages say they were made by.
    """
    from mptcplab.studies.papers.report.listing import verdicts_csv, verdicts_json
    from mptcplab.studies.papers.report.page import index_page, paper_page

    index = out / "index.html"
    try:
        out.mkdir(parents=True, exist_ok=True)
        for one in reproductions:
            write_text(out / f"{one.paper.id}.html", paper_page(one, command))
        write_text(out / "verdicts.csv", verdicts_csv(reproductions))
        write_text(out / "verdicts.json", verdicts_json(reproductions))
        write_text(index, index_page(reproductions, command))
    except OSError as error:
        raise OutputError(f"cannot write the report: {error.filename or out}: {error.strerror}") from error
    return index


def docs_page(reproductions: Sequence[Reproduction], out: Path) -> list[Path]:
    """Write a Markdown page per paper with its figures, and `README.md` over all of them; return their paths."""
    from mptcplab.studies.papers.report.docs import write_docs

    return write_docs(reproductions, out)
