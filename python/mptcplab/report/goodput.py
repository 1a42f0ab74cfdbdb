"""The rows of the goodput plot, from a trace and its summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab.metrics import REGISTRY, values_of
from mptcplab.metrics.stats import summarise
from mptcplab.plots.goodput import GoodputData, Part, Row
from mptcplab.plots.styles import Style, subflow_labels
from mptcplab.report import families, tables

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace


def goodput_data(trace: Trace, summary: pl.DataFrame) -> GoodputData:
    """A row per configuration and connection, or family of connections."""
    found = families.entities(trace)
    owner = {name: entity.name for entity in found for name in entity.members}
    looks = _looks(trace, found)
    stats = _by_flow(summary)
    is_family = {entity.name: entity.is_family for entity in found}
    # The rates of a family's flows are added, and these may take turns.
    added = _by_flow(_over_whole_window(trace)) if any(is_family.values()) else stats
    grouped = {
        (row["config"], row["metric"], row["flow"]): row for row in families.summary(trace).iter_rows(named=True)
    }
    values = tables.counted(trace, values_of(trace, "goodput").filter(pl.col("subflow").is_null()))
    who = pl.col("flow").replace_strict(owner, default=None, return_dtype=pl.String)
    in_family = who.replace_strict(is_family, default=None, return_dtype=pl.Boolean)
    whole = families.over_whole_window(trace, values)["value"].alias("whole")
    points = (
        values.with_columns(whole)
        .with_columns(flow=who, value=pl.when(in_family).then("whole").otherwise("value"))
        .group_by("run", "flow", maintain_order=True)
        .agg(pl.col("value").drop_nulls().sum(), seen=pl.col("value").is_not_null().any())
        .filter("seen")
        .join(trace.configs, on="run", maintain_order="left")
        .drop_nulls("value")
    )
    rows = []
    for config in tables.config_names(trace):
        for entity in found:
            total = grouped.get((config, "family_total", entity.name))
            total = total or stats.get((config, "goodput", entity.name, None))
            if total is None:
                continue
            shown = added if entity.is_family else stats
            ideals = [shown.get((config, "ideal", name, None)) for name in entity.members]
            shares = [ideal["mean"] for ideal in ideals if ideal]
            members = [stats.get((config, "goodput", name, None)) for name in entity.members]
            rows.append(
                Row(
                    label=config if len(found) == 1 else f"{config} · {entity.name}",
                    mean=total["mean"],
                    half=total["half"],
                    points=tuple(points.filter(config=config, flow=entity.name)["value"]),
                    parts=_parts(entity, config, shown, looks),
                    fair_share=sum(shares) if shares else None,
                    jain=grouped.get((config, "family_jain", entity.name), {}).get("mean"),
                    members=tuple(one["mean"] for one in members if one) if entity.is_family else (),
                )
            )
    metric = REGISTRY["goodput"]
    return GoodputData(tuple(rows), metric.title, metric.unit)


def _by_flow(summary: pl.DataFrame) -> dict[tuple[str, str, str, str | None], dict[str, Any]]:
    """The rows of goodput and of fair shares by configuration, metric, flow and subflow."""
    rows = summary.filter(pl.col("metric").is_in(["goodput", "ideal"])).drop_nulls("mean").iter_rows(named=True)
    return {(row["config"], row["metric"], row["flow"], row["subflow"]): row for row in rows}


def _over_whole_window(trace: Trace) -> pl.DataFrame:
    """The summary of goodput and of fair shares, each over the window of the run."""
    values = pl.concat(values_of(trace, name) for name in ("goodput", "ideal"))
    return summarise(families.over_whole_window(trace, tables.counted(trace, values)), trace.configs)


def _looks(trace: Trace, found: list[families.Entity]) -> dict[tuple[str, str], tuple[str, Style]]:
    """Label and style of every subflow; the flows of a family share them."""
    topology = max(trace.topologies.values(), key=lambda one: len(one.flows))
    if not any(entity.is_family for entity in found):
        styles, labels = families.styles(trace, topology), subflow_labels(topology)
        return {who: (labels[who], styles[who]) for who in styles}
    subflows = {flow.name: flow.subflows for flow in topology.flows}
    styles = families.styles(trace, topology)
    return {
        (name, subflow.name): (
            entity.name if len(subflows[name]) == 1 else f"{entity.name} {subflow.name}",
            styles[name, subflow.name],
        )
        for entity in found
        for name in entity.members
        for subflow in subflows.get(name, ())
    }


def _parts(
    entity: families.Entity,
    config: str,
    stats: dict[tuple[str, str, str, str | None], dict[str, Any]],
    looks: dict[tuple[str, str], tuple[str, Style]],
) -> tuple[Part, ...]:
    """The means of the subflows, added over the flows of a family."""
    sums: dict[str, tuple[float, Style]] = {}
    for who, (label, look) in looks.items():
        row = stats.get((config, "goodput", *who))
        if who[0] in entity.members and row is not None:
            sums[label] = (sums.get(label, (0.0, look))[0] + row["mean"], look)
    return tuple(Part(label, mean, look) for label, (mean, look) in sums.items())
