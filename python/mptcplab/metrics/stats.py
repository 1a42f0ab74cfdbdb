"""Statistics over repetitions: one value per repetition, Student's t for the mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from mptcplab.metrics.student import t_quantile

ENTITY = ("metric", "flow", "subflow", "link")
# Names that no column of a user has.
ROW, _POSITION = "#row", "#position"


def summarise(metrics: pl.DataFrame, configs: pl.DataFrame) -> pl.DataFrame:
    """Per configuration and entity: n, mean, std, median, min, max and the 95 % interval `lo`..`hi`.

    `lo` and `hi` are null for fewer than two repetitions.
    """
    found = metrics.with_row_index(ROW)
    names = metrics["metric"].unique(maintain_order=True)
    return summarise_parts([found.filter(pl.col("metric") == name) for name in names] or [found], configs)


def summarise_parts(
    metrics: Iterable[pl.DataFrame], configs: pl.DataFrame, keys: Sequence[str] = ENTITY
) -> pl.DataFrame:
    """The same for metrics one by one, whose rows have their positions among all in `ROW`; `keys` name an entity.

    All values of many runs with the names of their configurations would take much memory.
    """
    parts = [_grouped(part, configs, keys) for part in metrics]
    # In the order in which entities first appear, run by run.
    grouped = pl.concat(parts).sort(_POSITION, ROW).drop(_POSITION, ROW)
    quantile = pl.Series("t", t_quantile(grouped["n"].cast(pl.Float64).to_numpy() - 1)).fill_nan(None)
    half = pl.col("std") * quantile / pl.col("n").cast(pl.Float64).sqrt()
    result: pl.DataFrame = grouped.with_columns(half=half).with_columns(
        lo=pl.col("mean") - pl.col("half"), hi=pl.col("mean") + pl.col("half")
    )
    return result


def _grouped(metrics: pl.DataFrame, configs: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Statistics of each configuration and entity, with the place of its first value."""
    value = pl.col("value")
    runs = configs.select("run", "config").with_row_index(_POSITION)
    joined = runs.join(metrics, on="run", maintain_order="left").filter(pl.col(ROW).is_not_null())
    return joined.group_by("config", *keys, maintain_order=True).agg(
        pl.col(_POSITION, ROW).first(),
        n=value.count(),
        mean=value.mean(),
        std=value.std(),
        median=value.median(),
        min=value.min(),
        max=value.max(),
    )
