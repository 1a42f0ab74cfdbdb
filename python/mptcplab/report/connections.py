"""Connections that never came up: their goodput of 0 is no measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from mptcplab.metrics import values_of
from mptcplab.metrics.window_sizes import NOT_ESTABLISHED
from mptcplab.text import first_of

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace

# What a table shows instead of 0.00.
NEVER_UP = "never up"
_KEY = "never_up"


def never_up(trace: Trace) -> pl.DataFrame:
    """config, run, flow, subflow: connections without a handshake (subflow null), and such subflows of others."""
    if _KEY not in trace.cache:
        trace.cache[_KEY] = _never_up(trace)
    found: pl.DataFrame = trace.cache[_KEY]
    return found


def _never_up(trace: Trace) -> pl.DataFrame:
    nothing = values_of(trace, "goodput").filter(pl.col("value") == 0).select("run", "flow")
    if not nothing.is_empty():
        nothing = nothing.join(_without_transfers(trace), on=["run", "flow"], how="anti", maintain_order="left")
    schema = {"config": pl.String, "run": pl.UInt32, "flow": pl.String, "subflow": pl.String}
    if nothing.is_empty():
        return pl.DataFrame(schema=schema)
    runs = sorted(nothing["run"].unique().to_list())
    flow, subflow = pl.col("flow").cast(pl.String), pl.col("subflow").cast(pl.String)
    # An idle subflow has measured its round-trip time at the handshake. In a flow of many transfers, the state and the
    # smoothed time are those of the latest connection, but the number of measurements is that of all.
    silent = (
        (pl.col("sent_pkts").max() == 0)
        & pl.col("srtt_us").max().is_null()
        & (pl.col("rtt_count").max().fill_null(0) == 0)
        & pl.col("state").cast(pl.String).is_in(NOT_ESTABLISHED).all()
    )
    found = (
        trace.scan("subflow", runs)
        .filter(flow.is_in(nothing["flow"].unique().to_list()))
        .group_by("run", flow, subflow, maintain_order=True)
        .agg(silent=silent)
        .sort("run", "flow", "subflow")
        .collect()
    )
    whole = found.group_by("run", "flow", maintain_order=True).agg(pl.col("silent").all())
    dead = whole.filter("silent").select("run", "flow", subflow=pl.lit(None, pl.String))
    parts = found.filter("silent").join(dead, on=["run", "flow"], how="anti", maintain_order="left")
    both = pl.concat([dead, parts.select("run", "flow", "subflow")])
    return trace.configs.select("config", "run").join(both, on="run", maintain_order="left").select(list(schema))


def _without_transfers(trace: Trace) -> pl.DataFrame:
    """run, flow: flows of many transfers of which none has begun, so that there was no connection to come up."""
    flows = [
        (run, flow.name)
        for run, topology in trace.topologies.items()
        for flow in topology.flows
        if flow.kind == "transfers"
    ]
    many = pl.DataFrame(flows, schema={"run": pl.UInt32, "flow": pl.String}, orient="row")
    if many.is_empty():
        return many
    begun = trace.scan("transfer").select("run", pl.col("flow").cast(pl.String)).unique().collect()
    return many.join(begun, on=["run", "flow"], how="anti", maintain_order="left")


def notes(trace: Trace) -> list[str]:
    """A line per configuration and connection (or subflow) that never came up."""
    sizes = dict(trace.configs.group_by("config").len().iter_rows())
    grouped = never_up(trace).group_by("config", "flow", "subflow", maintain_order=True).agg(pl.len().alias("runs"))
    lines = []
    for config, flow, subflow, runs in grouped.iter_rows():
        who = f"connection {flow}" if subflow is None else f"subflow {flow} {subflow}"
        where = f"in {runs} of {sizes[config]} runs" if sizes[config] > 1 else "in this run"
        lines.append(
            f"{config}: {who} never came up {where}: no packet passed; see the rate, losses and full queues of its path"
        )
    return first_of(lines, "never came up: Results.never_up() lists them")


def dead(trace: Trace) -> set[tuple[str, str]]:
    """The configurations and flows that never came up in any run."""
    sizes = dict(trace.configs.group_by("config").len().iter_rows())
    whole = never_up(trace).filter(pl.col("subflow").is_null())
    counts = whole.group_by("config", "flow").agg(pl.len().alias("runs"))
    return {(config, flow) for config, flow, runs in counts.iter_rows() if runs == sizes[config]}
