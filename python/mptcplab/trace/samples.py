"""Samples of a table sorted by entity (flow, subflow or link of a run), so that every query is one pass.

They are read and sorted once, which makes metrics and plots of long traces fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace

KEYS = {"flow": ("run", "flow"), "subflow": ("run", "flow", "subflow"), "link": ("run", "link")}
# Samples that are read at once; sorting them takes some hundred bytes each.
BATCH_ROWS = 700_000
# The key of the rows of a run in a trace's cache.
_ROWS = "samples per run"


@dataclass(frozen=True)
class Samples:
    """`rows`: entity, owner (the flow of a subflow), t_ns and columns.

    `entities` has the run and the names of each number. Numbers begin at 0 and have no gaps.
    """

    table: str
    rows: pl.DataFrame
    entities: pl.DataFrame

    def per_entity(self, **values: pl.Expr) -> pl.DataFrame:
        """Aggregate the rows of every entity, in time order; the result has the entity's names."""
        found = self.rows.group_by("entity", maintain_order=True).agg(**values)
        return self._named(found, "entity", KEYS[self.table])

    def per_owner(self, **values: pl.Expr) -> pl.DataFrame:
        """Aggregate the rows of every flow, all its subflows together."""
        found = self.rows.group_by("owner", maintain_order=True).agg(**values)
        return self._named(found, "owner", KEYS["flow"])

    def with_rows(self, rows: pl.DataFrame) -> Samples:
        """The same entities with other (fewer) rows, still sorted."""
        return Samples(self.table, rows.with_columns(pl.col("entity", "owner").set_sorted()), self.entities)

    def changed(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Samples:
        """The same with other columns."""
        return replace(self, rows=change(self.rows))

    def bins(self, at: pl.Expr) -> tuple[np.ndarray, pl.DataFrame]:
        """The bins of every entity's samples: the place of the first row of each, and these rows with `at`.

        `at` grows with time within an entity.
        """
        rows = self.rows.with_columns(at=at)
        same = (pl.col("at") == pl.col("at").shift(1)) & (pl.col("entity") == pl.col("entity").shift(1))
        starts = np.flatnonzero(~rows.select(same.fill_null(value=False)).to_series().to_numpy())
        return starts, rows[starts]

    def only(self, kept: pl.Series) -> Samples:
        """Fewer rows; nothing is copied where all are kept."""
        return self if kept.fill_null(value=False).all() else self.with_rows(self.rows.filter(kept))

    def spread(self, values: pl.Series) -> pl.Expr:
        """A value per entity, in the order of `entities`, at every row."""
        if values.n_unique() == 1:
            # Polars keeps such a column as one number.
            return pl.lit(values.first(), values.dtype).alias(values.name)
        return pl.lit(pl.Series(values.name, values.to_numpy()[self.rows["entity"].to_numpy()]))

    def parts(self, entities: pl.Series) -> Iterator[tuple[int, tuple[str, ...], slice]]:
        """The run and the names of every entity that rows have, and its part of them; they are sorted by entity."""
        numbers = entities.to_numpy()
        edges = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1))
        labels = self.entities.select(KEYS[self.table])[numbers[edges[:-1]]]
        for (run, *names), (begin, end) in zip(labels.iter_rows(), pairwise(edges), strict=True):
            yield run, tuple(names), slice(begin, end)

    def _named(self, found: pl.DataFrame, key: str, names: tuple[str, ...]) -> pl.DataFrame:
        return self.labels(key, names).join(found, on=key, how="inner", maintain_order="left").drop(key)

    def labels(self, key: str, names: tuple[str, ...]) -> pl.DataFrame:
        """The names of every `key` (entity or owner), in their order."""
        one_each = self.entities if key == "entity" else self.entities.unique(key, keep="first", maintain_order=True)
        return one_each.select(key, *names)


def read(
    trace: Trace, table: str, columns: tuple[str, ...], runs: Sequence[int], names: Sequence[str] | None = None
) -> Samples:
    """Read columns of some runs, sorted by entity and then by time; with `names`, only of these flows or links.

    The samples that were read last from each table stay in the trace's cache: metrics and plots of a report share them.
    """
    cached = trace.cache.get(_cache_key(table))
    wanted = (tuple(runs), None if names is None else tuple(names))
    if cached is not None and cached[0] == wanted and set(columns) <= set(cached[1].rows.columns):
        found: Samples = cached[1]
        return found
    samples = _read(trace, table, columns, runs, names)
    trace.cache[_cache_key(table)] = (wanted, samples)
    return samples


def batches(trace: Trace, runs: Sequence[int], most: int) -> list[list[int]]:
    """The runs in groups whose samples fit in memory together, of at most so many."""
    size = min(most, max(1, BATCH_ROWS // max(rows_per_run(trace), 1)))
    return [list(runs[begin : begin + size]) for begin in range(0, len(runs), size)]


def rows_per_run(trace: Trace) -> int:
    """How many samples a run has in all tables, on average."""
    if _ROWS not in trace.cache:
        rows = sum(trace.scan(table).select(pl.len()).collect().item() for table in KEYS)
        trace.cache[_ROWS] = rows // max(trace.runs.height, 1)
    found: int = trace.cache[_ROWS]
    return found


def scan(trace: Trace, table: str, runs: Sequence[int], names: Sequence[str] | None) -> pl.LazyFrame:
    """A table of some runs; with `names`, only of these flows or links."""
    lazy = trace.scan(table, runs)
    return lazy if names is None else lazy.filter(pl.col(KEYS[table][1]).is_in(list(names)))


def forget(trace: Trace) -> None:
    """Free the memory of all cached samples of a trace."""
    for table in KEYS:
        trace.cache.pop(_cache_key(table), None)


def _cache_key(table: str) -> str:
    return f"samples of {table}"


def _read(
    trace: Trace, table: str, columns: tuple[str, ...], runs: Sequence[int], names: Sequence[str] | None
) -> Samples:
    keys = KEYS[table]
    words = [pl.col(key).cast(pl.Categorical) for key in keys[1:]]
    rows = scan(trace, table, runs, names).select("run", pl.col("t_ns").cast(pl.Int64), *words, *columns).collect()
    stretches = _stretches(rows, keys)
    rows = rows.drop(keys).with_columns(
        pl.Series(name, np.repeat(stretches[name].to_numpy(), stretches["rows"].to_numpy()))
        for name in ("owner", "entity")
    )
    # The rows of the only flow of each run are sorted. To sort them again would copy all columns.
    if not stretches["entity"].is_sorted():
        rows = rows.sort("entity", maintain_order=True)
        stretches = stretches.sort("entity", maintain_order=True)
    labels = [pl.col(key).first().cast(pl.String) for key in keys[1:]]
    entities = stretches.group_by("entity", maintain_order=True).agg(pl.col("owner", "run").first(), *labels)
    return Samples(table, rows.with_columns(pl.col("entity", "owner").set_sorted()), entities)


def _stretches(rows: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """A row for every stretch of rows of one entity: `keys`, the number of its rows, and the numbers of its entity.

    Numbers are in the order of runs, then in that in which flows or links appear first, then in that of subflows.
    """
    new = np.zeros(rows.height, dtype=bool)
    new[:1] = True
    for key in keys:
        codes = rows[key].to_physical().to_numpy()
        new[1:] |= codes[1:] != codes[:-1]
    begins = np.flatnonzero(new)
    firsts = rows.select(keys)[begins]
    places = [firsts["run"].to_numpy(), *(_places(firsts[key]) for key in keys[1:])]
    return firsts.with_columns(
        pl.Series("rows", np.diff(begins, append=rows.height)),
        pl.Series("owner", _numbers(places[:2])),
        pl.Series("entity", _numbers(places)),
    )


def _numbers(places: Sequence[np.ndarray]) -> np.ndarray:
    """A number for every different combination of places, in their order."""
    numbers = np.zeros(len(places[0]), dtype=np.int64)
    for one in places:
        different, found = np.unique(one, return_inverse=True)
        numbers = np.unique(numbers * len(different) + found, return_inverse=True)[1]
    return numbers.astype(np.uint32)


def _places(names: pl.Series) -> np.ndarray:
    """The place of every name among the different names, in the order in which these appear.

    Polars numbers names in the order in which the process first met them, in whatever trace.
    """
    codes = names.to_physical()
    different = codes.unique(maintain_order=True)
    places = np.zeros(0 if different.is_empty() else int(different.max()) + 1, dtype=np.int64)  # type: ignore[arg-type]
    places[different.to_numpy()] = np.arange(len(different))
    found: np.ndarray = places[codes.to_numpy()]
    return found
