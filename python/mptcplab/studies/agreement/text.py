"""An agreement as tables and lines of text, as a page, and as a file from which the page can be written again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from mptcplab.errors import ResultsError, with_hint
from mptcplab.metrics import REGISTRY, emulation
from mptcplab.output import write_text, writing
from mptcplab.report import write_report
from mptcplab.report.judged import Difference, Finding, Judged
from mptcplab.report.tables import engine_table
from mptcplab.studies.agreement.causes import Cause
from mptcplab.studies.agreement.judge import DELAY, GOODPUT, JAIN, Agreement, judge
from mptcplab.text import NOT_APPLICABLE, Table

if TYPE_CHECKING:
    from mptcplab.results import Results

# A table for each metric, so that it fits a terminal; that of `share` has a row per subflow.
_METRICS = (GOODPUT, DELAY, "plr", "share", JAIN)
# Beside the report of the results.
FILE = "agreement.json"
NO_CAUSE = "no cause found in the traces"


def tables(agreement: Agreement) -> list[Table]:
    """Goodput, round-trip time, loss, share of subflows and Jain's index: a table for each that has values."""
    found = [table for _, table in _tables(agreement, in_full=False)]
    # Notes stand under the last table only.
    notes = _notes(found)
    return [Table(table.head, table.rows, notes if i + 1 == len(found) else ()) for i, table in enumerate(found)]


def _notes(found: Iterable[Table]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for table in found for note in table.notes))


def _tables(agreement: Agreement, *, in_full: bool) -> Iterator[tuple[str, Table]]:
    """The name of a metric and its table."""
    for metric in _METRICS:
        of_subflows = metric == "share"
        rows = agreement.rows.filter(pl.col("subflow").is_not_null() == of_subflows, metric=metric)
        if of_subflows:
            # The only subflow of a flow has all of it.
            rows = rows.filter(pl.col("subflow").n_unique().over("base", "flow", "metric") > 1)
        if rows.height:
            yield metric, engine_table(rows, agreement.results.engines, in_full=in_full)


def lines(agreement: Agreement) -> Iterator[str]:
    """The verdict on every engine, and possible causes of every difference that is outside its bound."""
    yield from (finding.text for finding in agreement.findings)
    noise = emulation.noise_note(agreement.results)
    if noise:
        yield noise
    for one in _differences(agreement):
        yield f"{one.where}: {one.what}"
        yield from (f"  {text}" for text in one.causes)


def _differences(agreement: Agreement) -> Iterator[Difference]:
    """What is outside its bound, with what may be the cause."""
    for base, engine, rows in agreement.outside():
        what = ", ".join(_distance(row) for row in rows.iter_rows(named=True))
        yield Difference(f"{base}, {engine}", what, tuple(cause_lines(agreement.causes_of(base, engine))))


def judged(agreement: Agreement) -> Judged:
    """The agreement as the page of the results shows it."""
    results = agreement.results
    found = list(_tables(agreement, in_full=True))
    noise = emulation.noise_note(results)
    remarks = [
        *(_sentence(note) for note in _notes(table for _, table in found)),
        "Repetitions are those that count; where the engines have different numbers, that of the reference is first.",
        "A verdict rests on the point estimate, the difference of the means; its interval may reach beyond the bound "
        f"from either side. {FILE} has all numbers.",
        *(_sentence(note) for note in (noise, agreement.why) if note),
    ]
    return Judged(
        agreement.verdict,
        tuple(Finding(one.verdict, one.name, one.reason, one.bounds.text) for one in agreement.findings),
        tuple(_differences(agreement)),
        tuple((REGISTRY[metric].title, table) for metric, table in found if metric in (GOODPUT, JAIN)),
        tuple((REGISTRY[metric].title, table) for metric, table in found if metric not in (GOODPUT, JAIN)),
        tuple(remarks),
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def report(agreement: Agreement, path: Path, *, figures: bool = True) -> Path:
    """Write the report of the results with the verdicts, the differences and possible causes; return its path."""
    return write_report(agreement.results, path, figures=figures, judged=judged(agreement))


def stored(results: Results) -> Agreement | None:
    """The agreement whose numbers `write` left beside results; None without them.

    It is judged again. Only causes are taken from the file, because some of them need runs of their own, and only if
    the file is about the same differences.
    """
    path = results.directory / FILE
    if len(results.engines) < 2 or not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        causes = tuple(Cause(**one) for one in found["causes"])
        why, rows = found.get("engines_because"), found["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(with_hint(f"not the numbers of a comparison: {path}: {error}", f"remove {path}")) from None
    again = judge(results, why, causes)
    return again if json.loads(json.dumps(again.rows.to_dicts())) == rows else judge(results, why)


def write(agreement: Agreement, path: Path) -> None:
    """Write everything as JSON."""
    with writing(f"write: {path}", "choose another --out"):
        write_text(path, json.dumps(agreement.as_dict(), indent=1) + "\n")


def cause_lines(causes: list[Cause]) -> list[str]:
    """A line per kind of cause: the first of the kind, and how many more are like it."""
    by_cause: dict[str, list[str]] = {}
    for one in causes:
        by_cause.setdefault(one.cause, []).append(one.text)
    found = []
    for texts in by_cause.values():
        more = f" (and {len(texts) - 1} more like this)" if len(texts) > 1 else ""
        found.append(f"perhaps {texts[0]}{more}")
    return found or [NO_CAUSE]


def _distance(row: dict[str, object]) -> str:
    """Which flow differs, and by how much."""
    metric = REGISTRY[str(row["metric"])]
    who = row["flow"] or metric.title
    difference = row["difference"]
    if difference is None:
        return f"{who} {NOT_APPLICABLE}"
    return f"{who} {difference:+.1f} %" if row["unit"] == "%" else f"{who} {difference:+.{metric.digits}f}"
