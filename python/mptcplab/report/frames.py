"""Tables for further work: values with the axes of their sweep and with units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import polars as pl

from mptcplab import axes
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.metrics import REGISTRY, compute, pieces
from mptcplab.metrics import summary as summarised
from mptcplab.metrics.stats import ROW, summarise_parts

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace


_EXAMPLE = 'such as results.flow.group_by("run", "flow").agg(value=pl.col("delivered_bytes").max())'
# Rows of a piece of a large table.
_PIECE = 50_000


def with_axes(trace: Trace, values: pl.DataFrame, *, by: Literal["run", "config"]) -> pl.DataFrame:
    """Values that have a column `by`, with the columns of the axes before them and the unit of every metric."""
    places = axes.columns(trace, by=by)
    first = [by, *(name for name in places.columns if name != by)]
    order = [name for name in values.columns if name not in (by, "metric")]
    return (
        values.join(places, on=by, how="left", maintain_order="left")
        .with_columns(unit=pl.col("metric").replace_strict(_units(), default="", return_dtype=pl.String))
        .select(*first, "metric", "unit", *order)
    )


def metrics_as_csv(trace: Trace) -> Iterator[str]:
    """All metrics of all runs with the columns of the axes as CSV, in pieces: at once they would take much memory."""
    yield with_axes(trace, compute(trace).clear(), by="run").write_csv()
    for frame in _gathered(pieces(trace)):
        yield with_axes(trace, frame, by="run").write_csv(include_header=False)


def _gathered(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The rows of all frames in frames of about `_PIECE` rows: most metrics have few."""
    held: list[pl.DataFrame] = []
    for frame in frames:
        for piece in frame.iter_slices(_PIECE):
            held.append(piece)
            if sum(one.height for one in held) >= _PIECE:
                yield pl.concat(held)
                held = []
    if held:
        yield pl.concat(held)


def _units() -> dict[str, str]:
    return {name: metric.unit for name, metric in REGISTRY.items()}


def summary(trace: Trace) -> pl.DataFrame:
    """Mean, spread and 95 % interval of every metric per configuration, with axes and units; only runs that count."""
    return with_axes(trace, summarised(trace), by="config")


def of_own_values(trace: Trace, values: pl.DataFrame) -> pl.DataFrame:
    """The same of values that somebody else computed: one per run and combination of the other columns."""
    _require_values(trace, values)
    places = axes.columns(trace, by="config")
    keys = [name for name in values.columns if name not in ("run", "value", "rep", *places.columns)]
    texts = [name for name in keys if isinstance(values.schema[name], (pl.Categorical, pl.Enum))]
    number = pl.col("value").cast(pl.Float64)
    frame = values.select(
        pl.col("run").cast(trace.configs.schema["run"]),
        *(pl.col(name).cast(pl.String) if name in texts else pl.col(name) for name in keys),
        value=pl.when(number.is_finite()).then(number),
    )
    twice = frame.filter(frame.select("run", *keys).is_duplicated())
    if twice.height:
        where = ", ".join(f"{name} = {value}" for name, value in twice.row(0, named=True).items() if name != "value")
        hint = f"one value per run: values.group_by({', '.join(map(repr, ('run', *keys)))}).agg(value=...)"
        raise MptcplabError(with_hint(f"several values of one run: {where}", hint))
    excluded = [problem.run for problem in trace.excluded_runs]
    rows = frame.with_row_index(ROW).filter(~pl.col("run").is_in(excluded))
    found = summarise_parts([rows], trace.configs, keys).join(places, on="config", how="left", maintain_order="left")
    return found.select(*places.columns, *(name for name in found.columns if name not in places.columns))


def _require_values(trace: Trace, values: pl.DataFrame) -> None:
    """Raise `MptcplabError` for what is no table of numbers of runs."""
    if not isinstance(values, pl.DataFrame):
        raise MptcplabError(with_hint(f"values: not a data frame of polars: {type(values).__name__}", _EXAMPLE))
    for name in ("run", "value"):
        if name not in values.columns:
            raise MptcplabError(with_hint(f"values: no column {name!r}", _EXAMPLE))
        if not values.schema[name].is_numeric():
            raise MptcplabError(with_hint(f"values: not a column of numbers: {name!r}", _EXAMPLE))
    taken = [
        name for name in values.columns if name in ("n", "mean", "std", "median", "min", "max", "half", "lo", "hi")
    ]
    if taken:
        raise MptcplabError(with_hint(f"values: a column with the name of a result: {taken[0]!r}", "rename it"))
    unknown = values.filter(~pl.col("run").is_in(trace.runs["run"].to_list()))["run"].to_list()
    if unknown:
        raise MptcplabError(with_hint(f"values: no such run: {unknown[0]}", "Results.parameters has a row per run"))
