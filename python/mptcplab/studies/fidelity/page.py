"""The page of a study as Markdown, figures and CSV. Without date or machine: the same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mptcplab import markdown
from mptcplab.output import write_text
from mptcplab.plots.figure import save
from mptcplab.studies.fidelity.statement import Case, Measured, Study
from mptcplab.study.decision import ERROR
from mptcplab.study.page import csv_text
from mptcplab.study.statistics import Bound
from mptcplab.study.verdict import Verdict
from mptcplab.text import number

FIGURES, NUMBERS, VALUES = "figures", "cases.csv", "values.csv"

_INTRODUCTION = """\
{about} Every figure here was measured by the command

```text
{command}
```

which simulates the scenarios in `{scenarios}` with the seeds written in them and writes this page again, byte by
byte (and its figures as well, with the same Matplotlib). `mean` is over repetitions (n of them, each with its own
random numbers), ± is the 95 % confidence interval (Student's t), `range` the smallest and largest repetition. A bound
has to be met by the mean, or by every repetition where it says "each". It holds where the whole interval, widened for
skewness, is within the bound, fails where all of it is outside, and is open otherwise. A mean exactly at its bound is
decided in about {error:g} % of all cases. A bound in brackets is there for comparison and decides nothing. The
numbers are in [{numbers}]({numbers}) and, per repetition, in [{values}]({values})."""


def write(study: Study, measured: Sequence[Measured], out: Path, command: str) -> list[Path]:
    """Write the page, its figures and its numbers into a directory; return their paths."""
    written = [out / study.page, out / NUMBERS, out / VALUES]
    write_text(written[0], page(study, measured, command))
    write_text(written[1], _case_table(measured))
    write_text(written[2], _value_table(measured))
    for plot in (one.measurement.plot for one in measured if one.measurement.plot is not None):
        (out / FIGURES).mkdir(exist_ok=True)
        written += save(plot.draw(), out / FIGURES / plot.stem)
    return written


def page(study: Study, measured: Sequence[Measured], command: str) -> str:
    """The page as text."""
    introduction = _INTRODUCTION.format(
        about=study.about,
        command=command,
        scenarios=study.scenarios.as_posix(),
        numbers=NUMBERS,
        values=VALUES,
        error=100 * ERROR,
    )
    titles = (one.statement.title for one in measured)
    overview = [
        [f"[{title}](#{markdown.anchor(title)})", one.finding.verdict]
        for title, one in zip(titles, measured, strict=True)
    ]
    sections = (part for one in measured for part in _section(one))
    parts = [introduction, markdown.table(["statement", "verdict"], overview), *sections]
    return markdown.document(study.title, study.command, parts)


def _section(one: Measured) -> list[str]:
    statement, measurement, verdict = one.statement, one.measurement, one.finding.verdict
    decided = "Nothing is decided here." if verdict == Verdict.NOT_TESTABLE else f"**Verdict: {verdict}.**"
    parts = [f"## {statement.title}", statement.claim, decided, statement.method, markdown.command(one.command)]
    if measurement.plot is not None:
        parts.append(markdown.figure(measurement.plot.caption, f"{FIGURES}/{measurement.plot.stem}"))
    heads = [*measurement.heads, "unit", "mean", "range", "n", "bound", "verdict"]
    return [*parts, markdown.table(heads, map(_row, measurement.cases)), *measurement.remarks]


def _row(case: Case) -> list[str]:
    mean = number(case.mean, case.digits)
    if case.half is not None:
        mean += f" ± {number(case.half, case.digits)}"
    elif case.identical and len(case.values) > 1:
        mean += " (all the same)"
    low, high = (number(edge(case.values), case.digits) for edge in (min, max))
    spread = "" if case.identical else f"{low} ... {high}"
    bound = "-" if case.bound is None else str(case.bound)
    return [*case.labels, case.unit, mean, spread, str(len(case.values)), bound, case.verdict_text]


def _case_table(measured: Sequence[Measured]) -> str:
    head = ("statement", "case", "unit", "n", "mean", "half_95", "min", "max", "bound_low", "bound_high", "verdict")
    rows = []
    for name, case in _cases(measured):
        bound = case.bound or Bound()
        spread = (len(case.values), *map(_exact, (case.mean, case.half, min(case.values), max(case.values))))
        rows.append((*name, *spread, bound.low, bound.high, case.verdict_text))
    return csv_text(head, rows)


def _value_table(measured: Sequence[Measured]) -> str:
    rows = [
        (*name, repetition, _exact(value))
        for name, case in _cases(measured)
        for repetition, value in enumerate(case.values)
    ]
    return csv_text(("statement", "case", "unit", "rep", "value"), rows)


def _cases(measured: Sequence[Measured]) -> list[tuple[tuple[str, str, str], Case]]:
    """Every case with the columns that name it."""
    return [
        ((one.statement.name, "; ".join(case.labels), case.unit), case)
        for one in measured
        for case in one.measurement.cases
    ]


def _exact(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"
