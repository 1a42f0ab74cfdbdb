"""Metrics: numbers computed from the tables of a trace, and from nothing else.

Each metric is one function registered with its name, unit and definition; the reference page is generated
from the registry.

Values do not depend on how many runs, flows and links are measured at once. Units are therefore converted by factors
such as 1e-9: Polars divides the only row of a column by a number, but multiplies several rows by its inverse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import TYPE_CHECKING, Protocol

import polars as pl

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.metrics import (  # noqa: F401  (importing a module registers its metrics)
    dynamics,
    fairness,
    ideals,
    links,
    ordering,
    rates,
    reliability,
    requests,
    sockets,
    transfers,
    window_sizes,
)
from mptcplab.metrics.registry import REGISTRY, Metric
from mptcplab.metrics.stats import ROW, summarise, summarise_parts
from mptcplab.metrics.window import Window
from mptcplab.trace import samples

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace

__all__ = ["REGISTRY", "Metric", "Window", "binned", "compute", "find", "pieces", "summary", "values_of"]

# Short runs that are measured at once: more of them gain no time, and cost memory.
_BATCH_RUNS = 2_500
# Metrics that are computed from samples at once. Polars leaves Python to others while it works; more of them gain
# little, and each takes memory.
_AT_ONCE = 2
# The keys of all metrics and of their summary in a trace's cache.
_ALL, _SUMMARY = "metrics", "summary"
COLUMNS = ("run", "metric", "flow", "subflow", "link", "value")


class Beside(Protocol):
    """Takes what it needs of samples while metrics are computed from them, so that these are read once."""

    # Runs whose samples are read before those of others.
    firsts: Collection[int]

    def add(self, runs: Sequence[int]) -> None:
        """Take it from these runs, whose samples are in memory."""


def compute(trace: Trace, names: Iterable[str] | None = None, span: tuple[int, int] | None = None) -> pl.DataFrame:
    """Every (or every named) metric of every run, one value per row; null where it is not applicable.

    `span` (begin and end in ns since the start of the run) replaces the time from the end of the warm-up to the end of
    the run.
    """
    if names is None and span is None:
        return _joined(frame for _, frame in _all(trace))
    chosen = list(REGISTRY.values()) if names is None else [find(name) for name in names]
    return _joined(frame for _, frame in _compute(trace, chosen, span))


def values_of(trace: Trace, name: str) -> pl.DataFrame:
    """The values of one metric in every run.

    A filter of what `compute` returns would give the same, but would make all rows of a large sweep take memory: their
    names are stored once per metric as long as nobody compares them.
    """
    return _joined(frame for metric, frame in _all(trace) if metric == name)


def pieces(trace: Trace) -> Iterator[pl.DataFrame]:
    """What `compute` returns, some rows at a time."""
    return (frame for _, frame in _all(trace))


def _all(trace: Trace, beside: Beside | None = None) -> list[tuple[str, pl.DataFrame]]:
    if _ALL not in trace.cache:
        trace.cache[_ALL] = _compute(trace, list(REGISTRY.values()), None, beside)
    found: list[tuple[str, pl.DataFrame]] = trace.cache[_ALL]
    return found


def summary(trace: Trace, beside: Beside | None = None) -> pl.DataFrame:
    """Mean, spread and 95 % confidence interval over repetitions of every metric; only runs that count.

    If the metrics are not known yet, `beside` is given some runs after the other, whose samples need not be read again.
    """
    if _SUMMARY not in trace.cache:
        trace.cache[_SUMMARY] = _summarised(trace, beside)
    found: pl.DataFrame = trace.cache[_SUMMARY]
    return found


def _summarised(trace: Trace, beside: Beside | None) -> pl.DataFrame:
    excluded = [excluded.run for excluded in trace.excluded_runs]
    counts = ~pl.col("run").is_in(excluded) if excluded else pl.lit(True)
    by_name: dict[str, list[pl.DataFrame]] = {}
    row = 0
    for name, frame in _all(trace, beside):
        by_name.setdefault(name, []).append(frame.with_row_index(ROW, offset=row).filter(counts))
        row += frame.height
    if not by_name:
        return summarise(compute(trace), trace.configs)
    return summarise_parts((pl.concat(frames) for frames in by_name.values()), trace.configs)


def _compute(
    trace: Trace, chosen: list[Metric], span: tuple[int, int] | None, beside: Beside | None = None
) -> list[tuple[str, pl.DataFrame]]:
    """The values of each metric in each batch of runs, with its name."""
    frames: list[tuple[str, pl.DataFrame]] = []
    sampled = [metric for metric in chosen if metric.needs_samples]
    runs = trace.runs["run"].to_list()
    for begin in range(0, len(runs), _BATCH_RUNS):
        window = Window(trace, runs[begin : begin + _BATCH_RUNS], span)
        found = _from_samples(window, sampled, beside) if sampled else {}
        values = [found[one.name] if one.name in found else one.compute(window) for one in chosen]
        complete = pl.collect_all([_complete(metric, frame) for metric, frame in zip(chosen, values, strict=True)])
        frames += zip((metric.name for metric in chosen), complete, strict=True)
    return frames


def _from_samples(whole: Window, sampled: list[Metric], beside: Beside | None) -> dict[str, pl.DataFrame]:
    """The values of metrics that need samples, of as many samples at a time as fit in memory.

    These are the samples of some runs or, if a run has too many, of some of its flows and links: each value depends on
    those of one flow or link.
    """
    trace = whole.trace
    parts = -(-samples.rows_per_run(trace) // samples.BATCH_ROWS)
    groups = samples.batches(trace, whole.run_ids, len(whole.run_ids))
    firsts = set(beside.firsts) if beside else set()
    found: list[list[list[pl.DataFrame]]] = [[] for _ in groups]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for at in sorted(range(len(groups)), key=lambda at: firsts.isdisjoint(groups[at])):
            samples.forget(trace)
            window = whole.of_runs(groups[at])
            for part in window.parts(parts) if parts > 1 else [window]:
                found[at].append(list(pool.map(_computed, sampled, repeat(part))))
            if beside is not None:
                beside.add(groups[at])
    of_parts = [values for group in found for values in group]
    return {metric.name: pl.concat(frames) for metric, frames in zip(sampled, zip(*of_parts, strict=True), strict=True)}


def _computed(metric: Metric, part: Window) -> pl.DataFrame:
    """The values of a metric in the flows or links of a part."""
    values = metric.compute(part)
    return part.in_part(values, "link" if "link" in values.columns else "flow")


def _joined(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    found = list(frames)
    return pl.concat(found) if found else pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))


def binned(trace: Trace, names: Iterable[str], bins: Sequence[tuple[int, int]]) -> pl.DataFrame:
    """The named metrics in each of several spans of time (begin and end in ns): `bin` (from 0) and `compute`'s columns.

    A flow counts in a bin for as long as it exists. The value of a counter at the edge of a bin is that of a row which
    is less than one sampling interval older, so bins need samples.
    """
    chosen = list(names)
    frames = [
        compute(trace, chosen, span).with_columns(pl.lit(at, pl.UInt32).alias("bin")) for at, span in enumerate(bins)
    ]
    if not frames:
        return pl.DataFrame(schema=dict.fromkeys(("bin", *COLUMNS), pl.String))
    return pl.concat(frames).select("bin", *COLUMNS)


def find(name: str) -> Metric:
    """The metric of a name; raises `MptcplabError` for a name that does not exist."""
    try:
        return REGISTRY[name]
    except KeyError:
        import difflib

        close = difflib.get_close_matches(name, REGISTRY, n=1)
        hint = (
            f"did you mean {close[0]!r}?"
            if close
            else "`mptcplab docs --out reference` lists them in reference/metrics.md"
        )
        raise MptcplabError(with_hint(f"no such metric: {name!r}", hint)) from None


def _complete(metric: Metric, frame: pl.DataFrame) -> pl.LazyFrame:
    """A metric's frame with the common columns."""
    keys = [
        pl.col(key).cast(pl.String) if key in frame.columns else pl.lit(None, pl.String).alias(key)
        for key in ("flow", "subflow", "link")
    ]
    return frame.lazy().select(
        pl.col("run").cast(pl.UInt32),
        pl.lit(metric.name).alias("metric"),
        *keys,
        pl.col("value").cast(pl.Float64).fill_nan(None),
    )
