"""Differences between engines: each engine is compared with the first one.

Repetition i draws the same random numbers on every engine, so differences are taken in pairs of the repetitions that
count on all engines. Where one engine has more repetitions than another, the means over all that count are compared.
The bounds on differences are not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from mptcplab.metrics.registry import REGISTRY
from mptcplab.metrics.student import t_quantile

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace

KEYS = ("base", "metric", "flow", "subflow", "engine")
# Columns of `differences` with their types.
SCHEMA = pl.Schema(
    {
        **dict.fromkeys(KEYS, pl.String),
        "unit": pl.String,
        "n_reference": pl.UInt32,
        "n": pl.UInt32,
        "reference": pl.Float64,
        "mean": pl.Float64,
        "difference": pl.Float64,
        "half": pl.Float64,
        "spread_reference": pl.Float64,
        "spread": pl.Float64,
    }
)
_NO_ENTITY = ""


def is_relative(metric: str) -> bool:
    """Whether a metric's differences are percentages of the reference: not if the metric is itself a fraction."""
    return REGISTRY[metric].unit not in ("", "%")


def compared_runs(trace: Trace) -> pl.DataFrame:
    """run, base, rep, engine of the compared repetitions: those that count, in pairs if possible."""
    excluded = [excluded.run for excluded in trace.excluded_runs]
    runs = _repetitions(trace).filter(~pl.col("run").is_in(excluded)).select("run", "base", "rep", "engine")
    everywhere = pl.col("engine").n_unique().over("base", "rep") == len(trace.engines)
    return runs.filter(everywhere) if _in_pairs(trace) else runs


def _in_pairs(trace: Trace) -> bool:
    """Whether every engine has the same repetitions, each once, including those that do not count."""
    runs = _repetitions(trace)
    once = runs.select("engine", "base", "rep").is_unique().all()
    return once and runs.group_by("engine").agg(pl.col("rep").n_unique())["rep"].n_unique() <= 1


def _repetitions(trace: Trace) -> pl.DataFrame:
    """The configurations of runs with `rep` as the seed and the repetition: joined results have several seeds."""
    seeds = trace.runs.select("run", pl.format("{} {}", "seed", "rep").alias("rep"))
    return trace.configs.drop("rep").join(seeds, on="run", maintain_order="left")


def differences(trace: Trace, values: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Every other engine compared with the first: the columns of `SCHEMA`, a row per configuration, metric and entity.

    `values` is the result of `Results.metrics`; links and UDP flows, which do not react, are left out. `reference`
    and `mean` are means over `n_reference` and `n` repetitions, in the metric's unit. `difference` is
    `mean / reference - 1` in percent, or `mean - reference` for metrics that are fractions (without a unit, or in %);
    it is null if the reference is 0 and the other mean is not. `half` is half of its 95 % interval, and null if an
    engine has fewer than two repetitions, or for a mean of 0 in percent of a reference whose interval contains 0. The
    interval of a quotient is linearised (Cochran, Sampling Techniques, 1977, chapter 6); with unequal numbers of
    repetitions it is Welch's (Biometrika 34, 1947). `spread_reference` and `spread` are the standard deviations of the
    repetitions in percent of their mean, and null for one repetition or a mean of 0.
    """
    names = list(names)
    wanted = values.filter(pl.col("metric").is_in(names) & pl.col("link").is_null()).drop("link")
    udp = {flow.name for topology in trace.topologies.values() for flow in topology.flows if flow.transport == "udp"}
    wanted = wanted.filter(~pl.col("flow").is_in(sorted(udp)).fill_null(False))
    found = wanted.drop_nulls("value").join(compared_runs(trace), on="run", maintain_order="left")
    # Nulls would match no row in a join.
    found = found.with_columns(pl.col("flow", "subflow").fill_null(_NO_ENTITY))
    error = of_pairs if _in_pairs(trace) else of_means
    rows = compared(error(found, trace.engines[0], KEYS)).with_columns(
        pl.col("flow", "subflow").replace(_NO_ENTITY, None)
    )
    return rows.sort(*_orders(trace, names), maintain_order=True).select(*SCHEMA).cast(SCHEMA)


def of_pairs(found: pl.DataFrame, first: str, keys: Sequence[str]) -> pl.DataFrame:
    """Per entity and engine: both means, and the standard error of the residuals, repetition by repetition.

    `found` has rep, value and `keys`, which name the entity and the engine; `first` is the reference.
    """
    who = [name for name in keys if name != "engine"]
    reference = found.filter(engine=first).select("rep", *who, x="value")
    pairs = found.filter(pl.col("engine") != first).rename({"value": "y"}).join(reference, on=["rep", *who])
    x, y, n = pl.col("x"), pl.col("y"), pl.len().cast(pl.Float64)
    pairs = pairs.with_columns(e=y - _ratio(y.mean(), x.mean()).over(keys) * x)
    return pairs.group_by(keys, maintain_order=True).agg(
        n_reference=n,
        n=n,
        reference=x.mean(),
        mean=y.mean(),
        error=pl.col("e").std() / n.sqrt(),
        degrees=n - 1,
        spread_reference=_spread(x),
        spread=_spread(y),
    )


def of_means(found: pl.DataFrame, first: str, keys: Sequence[str]) -> pl.DataFrame:
    """The same from independent repetitions, with the degrees of freedom of Welch's test."""
    value, n = pl.col("value"), pl.len().cast(pl.Float64)
    statistics = {"n": n, "mean": value.mean(), "variance": value.var() / n, "spread": _spread(value)}
    groups = found.group_by(keys, maintain_order=True).agg(**statistics)
    one = groups.filter(engine=first).drop("engine").rename({name: f"{name}_x" for name in statistics})
    both = groups.filter(pl.col("engine") != first).join(one, on=[name for name in keys if name != "engine"])
    mine = pl.col("variance")
    theirs = _ratio(pl.col("mean"), pl.col("mean_x")) ** 2 * pl.col("variance_x")
    total = mine + theirs
    welch = total**2 / (mine**2 / (pl.col("n") - 1) + theirs**2 / (pl.col("n_x") - 1))
    # Without variance there is no uncertainty, whatever the degrees of freedom.
    degrees = pl.when(total > 0).then(welch).otherwise(pl.min_horizontal("n", "n_x") - 1)
    others = {"n_reference": "n_x", "reference": "mean_x", "spread_reference": "spread_x"}
    return both.select(*keys, "n", "mean", "spread", **others, error=total.sqrt(), degrees=degrees)


def _spread(values: pl.Expr) -> pl.Expr:
    """The standard deviation of repetitions in percent of their mean."""
    return pl.when(values.mean() != 0).then(100 * values.std() / values.mean().abs())


def _ratio(mean: pl.Expr, reference: pl.Expr) -> pl.Expr:
    """The factor of the reference in the residual: the quotient of the means for relative metrics, unknown for 0."""
    return pl.when(_is_relative()).then(pl.when(reference != 0).then(mean / reference)).otherwise(1.0)


def _is_relative() -> pl.Expr:
    return pl.col("metric").is_in([name for name in REGISTRY if is_relative(name)])


def compared(means: pl.DataFrame) -> pl.DataFrame:
    """Add the difference, its unit, and half of its interval."""
    quantile = pl.Series("t", t_quantile(means["degrees"].to_numpy())).fill_nan(None)
    one, other = pl.col("reference"), pl.col("mean")
    relative = _is_relative()
    size = pl.when(relative).then(pl.when(one != 0).then(one.abs() / 100)).otherwise(1.0)
    both_zero = (one == 0) & (other == 0)
    return means.with_columns(
        unit=pl.when(relative).then(pl.lit("%")).otherwise(pl.lit("")),
        difference=pl.when(both_zero).then(0.0).otherwise((other - one) / size),
        half=pl.when(~relative | (other != 0) | _is_more_than_0(means)).then(pl.col("error") * quantile / size),
    )


def _is_more_than_0(means: pl.DataFrame) -> pl.Expr:
    """Whether the interval of the reference does not contain 0.

    If the other mean is 0, that decides: whatever the reference, the quotient is 0, and so is its error.
    """
    n = means["n_reference"].cast(pl.Float64)
    quantile = pl.Series("t", t_quantile((n - 1).to_numpy()))
    return pl.col("spread_reference") * quantile / n.sqrt() < 100


def _orders(trace: Trace, names: list[str]) -> list[pl.Expr]:
    """Sort keys: runs, the given metrics, flows and subflows as in the file, engines."""
    flows = [flow for topology in trace.topologies.values() for flow in topology.flows]
    subflows = [subflow.name for flow in flows for subflow in flow.subflows]
    orders = {
        "base": trace.configs["base"].to_list(),
        "metric": names,
        "flow": [flow.name for flow in flows],
        "subflow": subflows,
        "engine": trace.engines,
    }
    return [_position(column, list(dict.fromkeys(names))) for column, names in orders.items()]


def _position(column: str, order: list[str]) -> pl.Expr:
    return pl.col(column).replace_strict(order, range(len(order)), default=-1, return_dtype=pl.Int64)
