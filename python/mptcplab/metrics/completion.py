"""Metrics of what a flow completes one after the other: requests, messages or transfers.

They differ in what counts as one of them, and agree in the rest: how many completed, and how long they took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import polars as pl

from mptcplab.metrics.registry import Compute, metric
from mptcplab.metrics.window import FLOW, Window

DONE = pl.col("completion_ns").is_not_null()
# By unit of time: a nanosecond in this unit, and the decimals in tables, which show a tenth of a millisecond.
_UNITS = {"s": (1e-9, 4), "ms": (1e-6, 1)}


class Statistic(NamedTuple):
    """A metric of flows: its name, title and unit, its decimals in tables, its definition, and a value of all rows."""

    name: str
    title: str
    unit: str
    digits: int
    doc: str
    value: pl.Expr


def count(name: str, title: str, doc: str, value: pl.Expr) -> Statistic:
    """The number of rows for which `value` is true."""
    return Statistic(name, title, "", 0, doc, value.sum())


def times(prefix: str, title: str, unit: str, what: str, *, maximum: bool = True) -> Iterator[Statistic]:
    """The mean, quantiles and, with `maximum`, the largest of the times to completion; `what` defines these times."""
    factor, digits = _UNITS[unit]
    time = pl.col("completion_ns") * factor
    for suffix, words, which, value in (
        ("mean", "mean", "Mean time", time.mean()),
        ("p50", "median", "Median time", time.quantile(0.5, "linear")),
        ("p95", "95th percentile", "95th percentile of the time", time.quantile(0.95, "linear")),
        ("p99", "99th percentile", "99th percentile of the time", time.quantile(0.99, "linear")),
        *([("max", "maximum", "Largest time", time.max())] if maximum else []),
    ):
        yield Statistic(f"{prefix}_{suffix}", f"{title}, {words}", unit, digits, f"{which} {what}", value)


def of_every(flows: pl.DataFrame, rows: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """A value for each of `flows` (run, flow), of its rows.

    A flow without rows has what the expression gives for none, such as 0 for a count, unless that is null.
    """
    found = rows.group_by(FLOW, maintain_order=True).agg(value=value)
    none = rows.clear().select(value=value).item()
    if none is None:
        return found
    others = flows.select(FLOW).join(found, on=FLOW, how="anti", maintain_order="left")
    return pl.concat([found, others.with_columns(value=pl.lit(none, found.schema["value"]))])


def register(statistics: Iterable[Statistic], of: Callable[[Window, pl.Expr], pl.DataFrame]) -> None:
    """Register statistics as metrics of the module of `of`, which evaluates an expression for every flow."""
    for one in statistics:
        metric(one.name, one.title, one.unit, ("flow",), digits=one.digits)(_computed(one, of))


def _computed(one: Statistic, of: Callable[[Window, pl.Expr], pl.DataFrame]) -> Compute:
    def compute(window: Window) -> pl.DataFrame:
        return of(window, one.value)

    compute.__doc__, compute.__module__ = one.doc, of.__module__
    return compute
