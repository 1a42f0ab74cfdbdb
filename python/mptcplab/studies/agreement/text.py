"""An agreement as tables and lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from mptcplab.metrics import REGISTRY, emulation
from mptcplab.output import write_text, writing
from mptcplab.report.tables import engine_table
from mptcplab.studies.agreement.causes import Cause
from mptcplab.studies.agreement.judge import DELAY, GOODPUT, JAIN, Agreement
from mptcplab.text import NOT_APPLICABLE, Table

# A table for each metric, so that it fits a terminal; that of `share` has a row per subflow.
_METRICS = (GOODPUT, DELAY, "plr", "share", JAIN)
NO_CAUSE = "no cause found in the traces"


def tables(agreement: Agreement) -> list[Table]:
    """Goodput, round-trip time, loss, share of subflows and Jain's index: a table for each that has values."""
    engines, found = agreement.results.engines, []
    for metric in _METRICS:
        of_subflows = metric == "share"
        rows = agreement.rows.filter(pl.col("subflow").is_not_null() == of_subflows, metric=metric)
        if of_subflows:
            # The only subflow of a flow has all of it.
            rows = rows.filter(pl.col("subflow").n_unique().over("base", "flow", "metric") > 1)
        if rows.height:
            found.append(engine_table(rows, engines))
    # Notes stand under the last table only.
    notes = tuple(dict.fromkeys(note for table in found for note in table.notes))
    return [Table(table.head, table.rows, notes if i + 1 == len(found) else ()) for i, table in enumerate(found)]


def lines(agreement: Agreement) -> Iterator[str]:
    """The verdict on every engine, and possible causes of every difference that is outside its bound."""
    yield from (finding.text for finding in agreement.findings)
    noise = emulation.noise_note(agreement.results)
    if noise:
        yield noise
    for base, engine, rows in agreement.outside():
        yield f"{base}, {engine}: {', '.join(_distance(row) for row in rows.iter_rows(named=True))}"
        yield from (f"  {text}" for text in cause_lines(agreement.causes_of(base, engine)))


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
