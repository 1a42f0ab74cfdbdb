"""What is kept of the runs of a cell: values of metrics per repetition, and the course of one repetition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from mptcplab.metrics import compute

if TYPE_CHECKING:
    from mptcplab.results import Results

# Of the whole window of a run.
MEASURED = (
    "throughput",
    "goodput",
    "pps",
    "receiver_rate",
    "sender_rate",
    "std_1s",
    "ftt",
    "agr_bf",
    "retx",
    "rto_count",
    "rto_time",
    "rtt_mean",
    "rtt_correlation",
    "decrease_mild",
    "utilisation",
    "loss",
    "ideal",
    "ideal_subflow",
    "ideal_propfair",
)
# Of each part of a run that claims look at.
SPANNED = ("throughput", "goodput", "loss")
VALUES = {
    "rep": pl.UInt32,
    "span": pl.String,
    "metric": pl.String,
    "flow": pl.String,
    "subflow": pl.String,
    "link": pl.String,
    "value": pl.Float64,
}
# Points of a kept course.
_POINTS = 400
_NS = 1_000_000_000


def values(results: Results, spans: Mapping[str, tuple[float, float]]) -> pl.DataFrame:
    """One row per run, span and entity: run and the columns of `VALUES`; a run that does not count has null values."""
    frames = [compute(results, MEASURED).with_columns(span=pl.lit(""))]
    for name, (begin, end) in spans.items():
        part = compute(results, SPANNED, span=(int(begin * _NS), int(end * _NS)))
        frames.append(part.with_columns(span=pl.lit(name)))
    bad = [problem.run for problem in results.excluded_runs]
    reps = results.runs.select("run", "rep")
    counted = pl.when(pl.col("run").is_in(bad)).then(None).otherwise(pl.col("value"))
    return pl.concat(frames).join(reps, on="run").select("run", *VALUES).with_columns(value=counted)


def course(results: Results, run: int) -> pl.DataFrame:
    """The course of one run: t_s, flow, subflow, cwnd (packets), srtt (ms), throughput (Mbit/s) of every subflow."""
    duration = results.runs.filter(run=run)["duration_ns"].item()
    step = max(duration // _POINTS, results.runs.filter(run=run)["sample_ns"].item() or 1)
    at = (pl.col("t_ns") // step).alias("at")
    wire = pl.col("rx_wire_bytes").cast(pl.Float64)
    return (
        results.scan("subflow")
        .filter(pl.col("run") == run)
        .select("t_ns", pl.col("flow", "subflow").cast(pl.String), "cwnd_pkts", "srtt_us", "rx_wire_bytes")
        .sort("flow", "subflow", "t_ns")
        .group_by("flow", "subflow", at, maintain_order=True)
        .agg(cwnd=pl.col("cwnd_pkts").mean(), srtt=pl.col("srtt_us").mean() / 1e3, bytes=wire.last())
        .with_columns(
            t_s=(pl.col("at") * step) / _NS,
            throughput=(pl.col("bytes") - pl.col("bytes").shift(1, fill_value=0.0)).over("flow", "subflow")
            * 8e3
            / step,
        )
        .select("t_s", "flow", "subflow", "cwnd", "srtt", "throughput")
        .collect()
    )


def recorded(results: Results, runs: Sequence[int]) -> dict[str, object]:
    """What really ran: engine, version, build, seed, algorithm of every subflow as read back, and the host's answer."""
    import json

    first = results.runs.filter(pl.col("run").is_in(list(runs))).row(0, named=True)
    kept = {name: first[name] for name in ("engine", "engine_version", "build", "profile", "seed", "scenario")}
    return {
        **kept,
        "subflow_cc": json.loads(first["subflow_cc"]),
        "scheduler": json.loads(first["scheduler"] or "null"),
        "problems": [problem.text for problem in results.excluded_runs if problem.run in runs],
    }
