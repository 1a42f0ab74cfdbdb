"""Tables for further work: values with the axes of their sweep and with units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import polars as pl

from mptcplab import axes
from mptcplab.metrics import REGISTRY, compute, pieces
from mptcplab.metrics import summary as summarised

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace


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
