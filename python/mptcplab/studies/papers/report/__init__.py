"""The report of a reproduction: a page per paper, a page over all of them, and the verdicts for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.kept import only_writer
from mptcplab.output import write_text
from mptcplab.study.page import writing_page
from mptcplab.terminal import note

if TYPE_CHECKING:
    from mptcplab.studies.papers.reproduce import Reproduction

__all__ = ["Pages", "check_docs", "write", "write_docs", "write_sensitivity", "write_side_by_side"]

_VERDICTS = "verdicts.json"
# Others write there for as long as a slow disk takes for a file.
_PATIENCE_S = 60.0


class Pages:
    """Writes the pages of reproductions, each while other papers are still run.

    `command` is the command that the pages name as their origin. With `docs` the pages in Markdown are written as well.
    """

    def __init__(self, out: Path, command: str, docs: Path | None = None) -> None:
        self._out, self._command, self._docs = out, command, docs
        # One thread: Matplotlib's settings are those of the process.
        self._thread = ThreadPoolExecutor(1)
        self._pages: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)

    def add(self, one: Reproduction) -> None:
        """Begin to write the pages of a paper. Raises `OutputError` where an earlier one could not be written."""
        self._wait(page for page in self._pages if page.done())
        self._pages.append(self._thread.submit(self._write, one))

    def finish(self, reproductions: Sequence[Reproduction]) -> Path:
        """Wait for the pages of all papers, and write those about all of them; return the index' path."""
        self._wait(self._pages)
        if self._docs is not None:
            write_overview(reproductions, self._docs)
        return write_index(reproductions, self._out, self._command)

    def _write(self, one: Reproduction) -> None:
        write_paper(one, self._out, self._command)
        if self._docs is not None:
            write_paper_docs(one, self._docs)

    @staticmethod
    def _wait(pages: Iterable[Future[None]]) -> None:
        for page in pages:
            page.result()


def write(reproductions: Sequence[Reproduction], out: Path, command: str, docs: Path | None = None) -> Path:
    """Write all pages of reproductions that are done into `out`, and with `docs` those in Markdown."""
    with Pages(out, command, docs) as pages:
        for one in reproductions:
            pages.add(one)
        return pages.finish(reproductions)


def write_paper(one: Reproduction, out: Path, command: str) -> None:
    """Write `<paper>.html`."""
    from mptcplab.studies.papers.report.page import paper_page

    with writing_page(out):
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / f"{one.paper.id}.html", paper_page(one, command))


def write_index(reproductions: Sequence[Reproduction], out: Path, command: str) -> Path:
    """Write `index.html`, `verdicts.csv` and `verdicts.json` into `out`; return the index' path."""
    from mptcplab.studies.papers.report.page import index_page
    from mptcplab.studies.papers.report.verdicts import verdicts_csv, verdicts_json

    with writing_page(out):
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / "verdicts.csv", verdicts_csv(reproductions))
        write_text(out / "verdicts.json", verdicts_json(reproductions))
        write_text(out / "index.html", index_page(reproductions, command))
    return out / "index.html"


def write_sensitivity(reproductions: Sequence[Reproduction], out: Path, docs: Path | str | None) -> None:
    """Write `sensitivity.json` into `out`, and into `docs` beside the claims that it has already.

    The caller is the only writer of `out`. Other reproductions may have the same `docs`, so that this waits for them.
    """
    from mptcplab.studies.papers import sensitivity

    study = sensitivity.Study({name: one for found in reproductions for name, one in found.sensitivity.claims.items()})
    with writing_page(out):
        out.mkdir(parents=True, exist_ok=True)
        sensitivity.write(study, out / sensitivity.FILE.name)
    if docs is not None and Path(docs).resolve() != out.resolve():
        with writing_page(Path(docs)), only_writer(Path(docs), _PATIENCE_S):
            sensitivity.write(study, Path(docs) / sensitivity.FILE.name)


def write_side_by_side(
    reproductions: Iterable[Reproduction], out: Path, command: str, docs: Path | None = None
) -> Path:
    """Write the pages about papers that were reproduced on several engines; return the index' path."""
    from mptcplab.studies.papers.report import side_by_side as pages
    from mptcplab.studies.papers.side_by_side import side_by_side

    return pages.write(side_by_side(reproductions), out, command, docs)


def write_docs(reproductions: Sequence[Reproduction], out: Path) -> list[Path]:
    """Write a Markdown page per paper with its figures, and `README.md` over all of them; return their paths."""
    written = [path for one in reproductions for path in write_paper_docs(one, out)]
    return written + write_overview(reproductions, out)


def write_paper_docs(one: Reproduction, out: Path) -> list[Path]:
    """Write the Markdown page of a paper and its figures."""
    from mptcplab.studies.papers.report.docs import write_page

    with writing_page(out):
        return write_page(one, out)


def write_overview(reproductions: Sequence[Reproduction], out: Path) -> list[Path]:
    """Write the Markdown pages about all papers; not if `out` has verdicts of papers that are not among these."""
    from mptcplab.studies.papers.report.docs import write_overview as overview

    others = _papers_in(out) - {one.paper.id for one in reproductions}
    if others:
        named = ", ".join(sorted(others))
        note(f"the pages about all papers in {out} stay as they are: they are also about {named}")
        return []
    with writing_page(out):
        return overview(reproductions, out)


def check_docs(docs: Path, *, is_reference: bool) -> None:
    """Refuse to replace pages of full reproductions in the simulator by others."""
    if not is_reference and _papers_in(docs):
        hint = "choose another directory for --docs, or leave out --quick, --engine and --experiment"
        raise MptcplabError(with_hint(f"{docs} has the verdicts of full reproductions, which these are not", hint))


def _papers_in(docs: Path) -> set[str]:
    """The papers whose verdicts a directory has."""
    path = docs / _VERDICTS
    return {row["paper"] for row in json.loads(path.read_text(encoding="utf-8"))} if path.is_file() else set()
