"""Engines side by side: how far each lies from the first, repetition by repetition.

Repetition i draws the same random numbers on every engine, so differences are taken in pairs; only repetitions that
count on all engines tell of the engines. Nothing here judges: bounds are the reader's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from mptcplab.metrics.registry import REGISTRY
from mptcplab.metrics.stats import t_quantile

if TYPE_CHECKING:
    from mptcplab.results import Results

KEYS = ("base", "metric", "flow", "subflow", "engine")
# Columns of `differences` with their types.
SCHEMA = dict.fromkeys(KEYS, pl.String) | {
    "unit": pl.String,
    "n": pl.UInt32,
    "reference": pl.Float64,
    "mean": pl.Float64,
    "difference": pl.Float64,
    "half": pl.Float64,
}
_NOBODY = ""


def is_relative(metric: str) -> bool:
    """Whether a metric's differences are percentages of the reference: not where it is a part of something itself."""
    return REGISTRY[metric].unit not in ("", "%")


def paired_runs(results: Results) -> pl.DataFrame:
    """run, base, rep, engine of the repetitions that count on every engine."""
    bad = [problem.run for problem in results.problems]
    runs = results.configs.filter(~pl.col("run").is_in(bad)).select("run", "base", "rep", "engine")
    everywhere = pl.col("engine").n_unique().over("base", "rep") == len(results.engines)
    return runs.filter(everywhere)


def differences(results: Results, values: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Every engine but the first against the first: `SCHEMA`'s columns, a row per configuration, metric and entity.

    `values` is what `Results.metrics` gives; links are left out, and UDP, which reacts to nothing. `reference` and
    `mean` are means over the `n` paired repetitions, in the metric's unit. `difference` is `mean / reference - 1` in
    percent, or for metrics that are parts (without a unit, or in %) `mean - reference`; null where the reference is 0
    and the other is not. `half` is half its 95 % interval, null below two pairs; that of a quotient is the linearised
    one (Cochran, Sampling Techniques, 1977, chapter 6).
    """
    names = list(names)
    wanted = values.filter(pl.col("metric").is_in(names) & pl.col("link").is_null()).drop("link")
    udp = {flow.name for topology in results.topologies.values() for flow in topology.flows if flow.transport == "udp"}
    wanted = wanted.filter(~pl.col("flow").is_in(sorted(udp)).fill_null(False))
    found = wanted.drop_nulls("value").join(paired_runs(results), on="run", maintain_order="left")
    # Nulls would match nothing in a join.
    found = found.with_columns(pl.col("flow", "subflow").fill_null(_NOBODY))
    who = ["base", "rep", "metric", "flow", "subflow"]
    first, *others = results.engines
    reference = found.filter(engine=first).select(*who, x="value")
    pairs = found.filter(pl.col("engine").is_in(others)).rename({"value": "y"}).join(reference, on=who)
    rows = _paired(pairs).with_columns(pl.col("flow", "subflow").replace(_NOBODY, None))
    return rows.sort(*_orders(results, names), maintain_order=True).select(*SCHEMA).cast(SCHEMA)


def _paired(pairs: pl.DataFrame) -> pl.DataFrame:
    """From x (reference) and y of every pair to one row per entity and engine."""
    x, y = pl.col("x"), pl.col("y")
    relative = pl.col("metric").is_in([name for name in REGISTRY if is_relative(name)])
    known = pl.when(x.mean() != 0).then(y.mean() / x.mean())
    ratio = pl.when(relative).then(known).otherwise(1.0)
    residuals = pairs.with_columns(e=y - ratio.over(KEYS) * x, relative=relative)
    grouped = residuals.group_by(KEYS, maintain_order=True).agg(
        pl.col("relative").first(), n=pl.len(), reference=x.mean(), mean=y.mean(), std=pl.col("e").std()
    )
    quantile = pl.Series("t", t_quantile(grouped["n"].cast(pl.Float64).to_numpy() - 1)).fill_nan(None)
    one, other = pl.col("reference"), pl.col("mean")
    size = pl.when("relative").then(pl.when(one != 0).then(one.abs() / 100)).otherwise(1.0)
    both_zero = (one == 0) & (other == 0)
    half = pl.col("std") * quantile / pl.col("n").cast(pl.Float64).sqrt() / size
    return grouped.with_columns(
        unit=pl.when("relative").then(pl.lit("%")).otherwise(pl.lit("")),
        difference=pl.when(both_zero).then(0.0).otherwise((other - one) / size),
        half=half,
    )


def _orders(results: Results, names: list[str]) -> list[pl.Expr]:
    """Run order, the order of the metrics, file order of flows and subflows, the order of the engines."""
    flows = [flow for topology in results.topologies.values() for flow in topology.flows]
    subflows = [subflow.name for flow in flows for subflow in flow.subflows]
    orders = {
        "base": results.configs["base"].to_list(),
        "metric": names,
        "flow": [flow.name for flow in flows],
        "subflow": subflows,
        "engine": results.engines,
    }
    return [_position(column, list(dict.fromkeys(names))) for column, names in orders.items()]


def _position(column: str, order: list[str]) -> pl.Expr:
    return pl.col(column).replace_strict(order, range(len(order)), default=-1, return_dtype=pl.Int64)
