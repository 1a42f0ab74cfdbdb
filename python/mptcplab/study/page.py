"""Parts of the pages that all studies share. Same numbers, same bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mptcplab import bundle
from mptcplab.errors import MptcplabError, OutputError, with_hint


def find_directory(
    relative: Path, what: str, is_complete: Callable[[Path], bool], hint: str, start: Path | None = None
) -> Path:
    """A directory of the repository: below the current one, or among what comes with this package."""
    places = [start or Path.cwd(), bundle.root()]
    for place in places:
        if is_complete(place / relative):
            return place / relative
    raise MptcplabError(with_hint(f"no {what}: {places[0] / relative}", hint))


@contextmanager
def writing_page(out: Path) -> Iterator[None]:
    """Raise `OutputError` where the operating system refuses to write a page into `out`."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write the page: {error.filename or out}: {error.strerror}") from error


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()
