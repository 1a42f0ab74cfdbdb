"""The values of a metric that figures over parameters draw: of flows or whole runs, or else of subflows or links."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from mptcplab.arguments import text, texts
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.metrics import REGISTRY
from mptcplab.metrics import summary as summarised
from mptcplab.report import families, tables

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace


def drawn_metrics(trace: Trace) -> list[str]:
    """The metrics of the summary that have values, which a report draws."""
    present = set(summarised(trace).drop_nulls("mean")["metric"].unique())
    several = len(tables.connection_names(trace)) > 1
    names = [*tables.PER_FLOW, *(["total_goodput", "jain"] if several else [])]
    return [name for name in names if name in present]


def drawn_values(
    trace: Trace, metric: str, flows: str | Iterable[str] | None = None, links: str | Iterable[str] | None = None
) -> pl.DataFrame:
    """config, entity, mean, half.

    An entity is a flow or a family of flows, or else a subflow or a link that carries data; "" is the whole run. The
    values of a family are means over its flows, and its name says so.
    """
    if text("metric", metric, "goodput") not in REGISTRY:
        hint = "one of " + ", ".join(drawn_metrics(trace))
        raise MptcplabError(with_hint(f"no such metric: {metric!r}", hint))
    levels = REGISTRY[metric].levels
    if "link" in levels:
        _refuse(metric, "flows", flows)
        frame = _of_links(trace, metric, links)
    else:
        _refuse(metric, "links", links)
        if "run" in levels:
            _refuse(metric, "flows", flows)
        frame = _of_flows(trace, metric, flows, by_subflow=not {"flow", "run"}.intersection(levels))
    return frame.select("config", "entity", "mean", "half")


def _refuse(metric: str, what: str, names: object) -> None:
    if names is not None:
        raise MptcplabError(with_hint(f"{metric} is not a metric of {what}", f"leave out {what}"))


def _of_links(trace: Trace, metric: str, links: str | Iterable[str] | None) -> pl.DataFrame:
    carrying = dict.fromkeys(link.name for topology in trace.topologies.values() for link in topology.data_links)
    frame = _means(trace, metric).filter(pl.col("link").is_in(list(carrying)))
    return _chosen(frame, "link", links, "no such link").with_columns(entity=pl.col("link"))


def _of_flows(trace: Trace, metric: str, flows: str | Iterable[str] | None, *, by_subflow: bool) -> pl.DataFrame:
    whole = pl.col("subflow").is_null()
    level = ~whole if by_subflow else whole
    frame = _means(trace, metric).filter(level)
    if families.has_families(trace) and "run" not in REGISTRY[metric].levels:
        single = [entity.name for entity in families.entities(trace) if not entity.is_family]
        grouped = families.means_over_members(trace, [metric]).filter(level).drop_nulls("mean")
        frame = pl.concat([frame.filter(pl.col("flow").is_in(single)), grouped.select(frame.columns)])
    frame = _chosen(frame, "flow", flows, "no such flow")
    connections = [entity.name for entity in families.entities(trace)]
    frame = frame.filter(pl.col("flow").is_null() | pl.col("flow").is_in(connections))
    name = pl.col("flow").fill_null("")
    if by_subflow:
        alone = pl.col("flow").is_in(_with_one_subflow(trace))
        name = pl.when(alone).then(name).otherwise(pl.format("{} {}", "flow", "subflow"))
    # The bars of a family are its total.
    means = pl.col("flow").is_in([entity.name for entity in families.entities(trace) if entity.is_family])
    return frame.with_columns(entity=pl.when(means).then(pl.format("{}, per flow", name)).otherwise(name))


def _means(trace: Trace, metric: str) -> pl.DataFrame:
    return summarised(trace).filter(metric=metric).drop_nulls("mean")


def _chosen(frame: pl.DataFrame, column: str, names: str | Iterable[str] | None, problem: str) -> pl.DataFrame:
    """The rows with these names; all without names."""
    if names is None:
        return frame
    chosen, known = texts(f"{column}s", names, "mp"), frame[column].to_list()
    missing = [name for name in chosen if name not in known]
    if missing:
        hint = f"{column}s: " + ", ".join(dict.fromkeys(str(name) for name in known))
        raise MptcplabError(with_hint(f"{problem}: {missing[0]!r}", hint))
    return frame.filter(pl.col(column).is_in(chosen))


def _with_one_subflow(trace: Trace) -> list[str]:
    """The flows, and the families of flows, that never have several subflows."""
    owner = {name: entity.name for entity in families.entities(trace) for name in entity.members}
    most: dict[str, int] = {}
    for topology in trace.topologies.values():
        for flow in topology.flows:
            name = owner.get(flow.name, flow.name)
            most[name] = max(most.get(name, 0), len(flow.subflows))
    return [name for name, count in most.items() if count == 1]
