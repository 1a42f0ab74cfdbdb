"""The measurements of a cell that are stored: metrics per repetition, time series of one repetition, and a record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab.metrics import compute

if TYPE_CHECKING:
    from mptcplab.results import Results

# The names of the tables in the store.
VALUES, TIME_SERIES = "values", "time_series"
VALUE_COLUMNS = {
    "rep": pl.UInt32,
    "span": pl.String,
    "metric": pl.String,
    "flow": pl.String,
    "subflow": pl.String,
    "link": pl.String,
    "value": pl.Float64,
}
# What is measured of a part of a run.
_SPAN_METRICS = ("throughput", "goodput", "loss")
# Points of a stored time series.
_POINTS = 400
_NS = 1_000_000_000


def metric_values(
    results: Results, metrics: Sequence[str], spans: Sequence[tuple[str, float, float]] = ()
) -> pl.DataFrame:
    """One row per run, span and entity: run and `VALUE_COLUMNS`; a run that does not count has null values."""
    frames = [compute(results, metrics).with_columns(span=pl.lit(""))]
    for name, begin, end in spans:
        part = compute(results, _SPAN_METRICS, span=(int(begin * _NS), int(end * _NS)))
        frames.append(part.with_columns(span=pl.lit(name)))
    bad = [problem.run for problem in results.excluded_runs]
    reps = results.runs.select("run", "rep")
    counted = pl.when(pl.col("run").is_in(bad)).then(None).otherwise(pl.col("value"))
    return pl.concat(frames).join(reps, on="run").select("run", *VALUE_COLUMNS).with_columns(value=counted)


def time_series(results: Results, run: int) -> pl.DataFrame:
    """One run over time: t_s, flow, subflow, cwnd (packets), srtt (ms), throughput (Mbit/s) of every subflow.

    A point has the means of its samples. The throughput is the mean from the last sample of the point before, or from
    the beginning of the run, to that of its own: samples need not divide the distance of points, and at the end of a
    run is a point with one sample only.
    """
    duration = results.runs.filter(run=run)["duration_ns"].item()
    step = max(duration // _POINTS, results.runs.filter(run=run)["sample_ns"].item() or 1)
    at = (pl.col("t_ns") // step).alias("at")
    wire, time = pl.col("rx_wire_bytes").cast(pl.Float64), pl.col("t_ns").cast(pl.Float64)
    return (
        results.scan("subflow")
        .filter(pl.col("run") == run)
        .select("t_ns", pl.col("flow", "subflow").cast(pl.String), "cwnd_pkts", "srtt_us", "rx_wire_bytes")
        .sort("flow", "subflow", "t_ns")
        .group_by("flow", "subflow", at, maintain_order=True)
        .agg(cwnd=pl.col("cwnd_pkts").mean(), srtt=pl.col("srtt_us").mean() / 1e3, bytes=wire.last(), ns=time.last())
        .with_columns(pl.col("bytes", "ns") - pl.col("bytes", "ns").shift(1, fill_value=0.0).over("flow", "subflow"))
        # What has arrived at time 0 has no time in which it arrived.
        .with_columns(ns=pl.when(pl.col("ns") > 0).then("ns").otherwise(step))
        .with_columns(t_s=(pl.col("at") * step) / _NS, throughput=pl.col("bytes") * 8e3 / pl.col("ns"))
        .select("t_s", "flow", "subflow", "cwnd", "srtt", "throughput")
        .collect()
    )


def record(results: Results, runs: Sequence[int]) -> dict[str, Any]:
    """A record of what ran: engine, version, build, seed, and the algorithm of every subflow as read back.

    These are those of the first run; `problems` are those of all runs.
    """
    first = results.runs.filter(pl.col("run").is_in(list(runs))).row(0, named=True)
    columns = ("engine", "engine_version", "build", "profile", "seed", "scenario")
    return {
        **{name: first[name] for name in columns},
        "subflow_cc": json.loads(first["subflow_cc"]),
        "scheduler": json.loads(first["scheduler"] or "null"),
        "problems": [problem.text for problem in results.excluded_runs if problem.run in runs],
    }
