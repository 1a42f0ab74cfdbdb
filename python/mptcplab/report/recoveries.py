"""Notes on outages from which subflows did not recover: the mean time of recovery leaves them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from mptcplab.metrics import REGISTRY, values_of
from mptcplab.text import first_of

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace


def notes(trace: Trace) -> list[str]:
    """A line per configuration and subflow with such outages, in runs that count."""
    excluded = [excluded.run for excluded in trace.excluded_runs]
    counts = trace.configs.filter(~pl.col("run").is_in(excluded)).select("run", "config")
    sizes = dict(counts.group_by("config").len().iter_rows())
    outages = values_of(trace, "not_recovered").filter(pl.col("subflow").is_not_null())
    found = counts.join(outages, on="run", how="inner", maintain_order="left")
    grouped = found.group_by("config", "flow", "subflow", maintain_order=True).agg(runs=(pl.col("value") > 0).sum())
    title = REGISTRY["recovery_time"].title
    lines = [
        f"{config}: in {runs} of {sizes[config]} runs, subflow {flow} {subflow} did not recover from every outage; "
        f"the metric {title!r} is a mean over those from which it did"
        for config, flow, subflow, runs in grouped.filter(pl.col("runs") > 0).iter_rows()
    ]
    return first_of(lines, "subflows did not recover from every outage: not_recovered in summary.csv")
