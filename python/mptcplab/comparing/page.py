"""The page of a comparison: its differences as a table and as figures, and the command that makes it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from mptcplab.comparing import SHOWN, About, Comparison
from mptcplab.errors import OutputError, with_hint
from mptcplab.metrics import REGISTRY
from mptcplab.metrics.differences import is_relative
from mptcplab.metrics.student import half_of_mean
from mptcplab.output import require_name, write_text
from mptcplab.plots.differences import DifferenceData, Row, Side, differences_figure
from mptcplab.plots.svg import inline
from mptcplab.report import page
from mptcplab.text import Table, counted, evenly

# What a page of this kind has in it, so that another one may take its place.
_MARK = '<h2 id="again">Compare again</h2>'
# Rows of the table at the top, of that of all metrics, and of a figure.
_MOST_ROWS, _MOST_OF_ALL, _MOST_DRAWN = 60, 600, 24
# Metrics with a figure; the table has all that were chosen.
_MOST_FIGURES = 8
_NAME = "comparison"
_STYLE = """\
.compared td:nth-child(2), .compared th:nth-child(2) { text-align: left; }
table.compared { font-size: 0.82rem; }
"""
_SIDES = ("a", "b")


@dataclass(frozen=True)
class _Figure:
    """A figure of the page."""

    name: str
    title: str
    svg: str
    notes: tuple[str, ...]


def write_comparison(found: Comparison, path: Path, metrics: Sequence[str]) -> Path:
    """Write the page to `path`, which may be a former one; return it. The table and the figures have these metrics."""
    require_name(path, hint="choose another name")
    if path.is_dir():
        raise OutputError(with_hint(f"the page is one file, and this is a directory: {path}", f"{path}/{_NAME}.html"))
    try:
        if path.exists() and _MARK not in path.read_text(encoding="utf-8", errors="replace"):
            hint = "only an earlier page of a comparison is replaced; choose another name"
            raise OutputError(with_hint(f"the file exists already: {path}", hint))
        text = render(found, metrics, _command(found, path, metrics))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    except OSError as error:
        hint = "make room there, or choose another name"
        raise OutputError(
            with_hint(f"cannot write the page: {error.filename or path}: {error.strerror}", hint)
        ) from error
    return path


def _command(found: Comparison, path: Path, metrics: Sequence[str]) -> str:
    """The command that writes the page again."""
    chosen = [] if set(metrics) == set(SHOWN) else ["--metrics", ",".join(metrics)]
    return shlex.join([*found.command, *chosen, "--report", str(path)])


def render(found: Comparison, metrics: Sequence[str], command: str) -> str:
    """The HTML text of the page; `command` writes it again."""
    found = replace(found, differences=_shortened(found.differences), values=_shortened(found.values))
    main = found.table(metrics)
    drawn = _drawn(found, metrics)
    figures = [_figure(data, left) for data, left in list(drawn.values())[:_MOST_FIGURES]]
    main = replace(main, notes=tuple(note for note in main.notes if note not in found.notes))
    titles = ", ".join(REGISTRY[name].title.lower() for name in metrics)
    return page.render(
        __package__,
        f"{_NAME}.html",
        style=_STYLE,
        title=found.title,
        a=found.a,
        b=found.b,
        scenarios=list(dict.fromkeys(title for side in found.about for title in side.titles)),
        facts=_facts(found),
        warnings=found.notes,
        main=_cut(_headed(main), _MOST_ROWS),
        metrics=titles,
        about_table=_about_table(found),
        figures=figures,
        about_figures=_about_figures(main, drawn),
        command=command,
        sides=[
            (f"{name.upper()}, {what}", text)
            for name, side in zip(_SIDES, found.about, strict=True)
            for what, text in _of_side(side)
        ],
        everything=_cut(_headed(replace(found.table(REGISTRY), notes=())), _MOST_OF_ALL),
        script=page.template_text(page.__package__, "save.js"),
    )


def _shortened(rows: pl.DataFrame) -> pl.DataFrame:
    """Without the algorithms in the names of configurations if these are the same in all, and more is in the names."""
    names = rows["config"].unique(maintain_order=True).to_list()
    first = names[0].partition(", ")[0] + ", " if names else ""
    if not all(name.startswith(first) and name != first for name in names):
        return rows
    return rows.with_columns(pl.col("config").str.strip_prefix(first))


def _headed(table: Table) -> Table:
    """The table with the name of its first column: what is left of a name may be a parameter alone."""
    return replace(table, head=(("Configuration", ""), *table.head[1:]))


def _cut(table: Table, most: int) -> Table:
    """The first rows of a table, with a note on the others."""
    if len(table.rows) <= most:
        return table
    more = f"{len(table.rows) - most:,} more rows are in what `mptcplab compare --json` prints"
    return replace(table, rows=table.rows[:most], notes=(*table.notes, more))


def _facts(found: Comparison) -> list[str]:
    rows = found.differences
    pairs = sorted(set(rows.filter("paired")["n_b"]))
    facts = [counted(rows["config"].n_unique(), "configuration")]
    if pairs:
        low, high = pairs[0], pairs[-1]
        facts.append(
            f"{counted(high, 'pair')} of repetitions" if low == high else f"{low} to {high} pairs of repetitions"
        )
    if not rows["paired"].all():
        facts.append("without pairs" if not pairs else "some without pairs")
    engines = dict.fromkeys(name for side in found.about for name in side.engines)
    return [*facts, f"engine {', '.join(engines)}"]


def _of_side(side: About) -> list[tuple[str, str]]:
    return [
        ("results", side.directory),
        ("runs", f"{side.runs:,}"),
        ("seed", ", ".join(map(str, side.seeds))),
        ("engine", ", ".join(side.engines)),
        ("build", " | ".join(side.builds)),
    ]


def _about_table(found: Comparison) -> str:
    judged = found.differences.drop_nulls("half")
    certain = judged.filter(pl.col("difference").abs() > pl.col("half")).height
    text = (
        "A difference is that of B from A, in percent of A or, of a metric that is a fraction itself, in its unit, "
        "with half of its 95 % interval. Repetitions with the same random numbers are compared in pairs; elsewhere, "
        "the means are, with Welch's interval."
    )
    if judged.is_empty():
        return f"{text} With one repetition, there are no intervals, and differences may be chance."
    return (
        f"{text} Of all metrics, {certain:,} of {counted(judged.height, 'difference')} "
        f"{'has' if certain == 1 else 'have'} an interval that does not contain 0; if A and B did not differ, about "
        f"{0.05 * judged.height:,.0f} would."
    )


def _about_figures(table: Table, drawn: Mapping[str, object]) -> str:
    text = (
        "Marks are means with their 95 % intervals, and circles are single repetitions; a line joins the two of a "
        "pair. On the right is the difference of B from A, with a full mark if its interval does not contain 0."
    )
    titles = list(dict.fromkeys(row[1] for row in table.rows))
    shown = {REGISTRY[name].title for name in list(drawn)[:_MOST_FIGURES]}
    left = [title for title in titles if title not in shown]
    if len(drawn) > _MOST_FIGURES:
        return f"{text} {counted(len(left), 'other metric')} of the table have none."
    why = "What does not differ, or is the same as another one, has no figure"
    return f"{text} {why}: {', '.join(left)}." if left else text


def _drawn(found: Comparison, metrics: Sequence[str]) -> dict[str, tuple[DifferenceData, int]]:
    """What the figure of each metric shows, and how many rows it leaves out.

    There is no figure without any difference, nor of what another one has, such as the total of a single flow.
    """
    figures: dict[str, tuple[DifferenceData, int]] = {}
    for name in found.differences["metric"].unique(maintain_order=True):
        if name in metrics:
            data, left = _data(found, name)
            known = {tuple(row.numbers for row in other.rows) for other, _ in figures.values()}
            if data.differ and tuple(row.numbers for row in data.rows) not in known:
                figures[name] = (data, left)
    return figures


def _figure(data: DifferenceData, left: int) -> _Figure:
    name = data.metric.replace("_", "-")
    notes = (f"{left:,} of {left + len(data.rows):,} rows are not drawn.",) if left else ()
    return _Figure(name, data.title, inline(differences_figure(data), name, data.title), notes)


def _data(found: Comparison, metric: str) -> tuple[DifferenceData, int]:
    """What the figure of a metric shows, and how many rows it leaves out."""
    rows, level = _of_level(found.differences.filter(metric=metric))
    shown = evenly(list(rows.iter_rows(named=True)), _MOST_DRAWN)
    several = {name: rows[name].n_unique() > 1 for name in ("config", *level)}
    values = found.values.filter(metric=metric)
    drawn = []
    for row in shown:
        parts = [row[name] for name, vary in several.items() if vary and row[name]] or [row["config"]]
        own = values.filter(*(pl.col(name).eq_missing(row[name]) for name in ("config", "flow", "subflow", "link")))
        if row["paired"]:
            # A repetition in which one side has no value is not compared.
            own = own.filter(pl.col("side").n_unique().over("pair") == len(_SIDES))
        a, b = (_side(own.filter(side=name), row[f"mean_{name}"]) for name in _SIDES)
        drawn.append(Row(" · ".join(parts), a, b, row["difference"], row["half"], row["paired"]))
    about = REGISTRY[metric]
    unit = "%" if is_relative(metric) else "points" if about.unit else ""
    data = DifferenceData(metric, about.title, about.unit, unit, found.names, tuple(drawn))
    return data, rows.height - len(shown)


def _of_level(rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows of the largest entities that have any: whole flows before subflows; what names an entity there."""
    flow, subflow, link = (pl.col(name).is_not_null() for name in ("flow", "subflow", "link"))
    levels = (
        (flow & ~subflow, ("flow",)),
        (~flow & ~link, ()),
        (link, ("link",)),
        (subflow, ("flow", "subflow")),
    )
    for chosen, names in levels:
        found = rows.filter(chosen)
        if not found.is_empty():
            return found, names
    return rows, ()


def _side(values: pl.DataFrame, mean: float) -> Side:
    points = tuple(values.sort("pair")["value"])
    return Side(mean, half_of_mean(points), points)
