"""Families: the flows that a scenario declares together with `count`, and what they get in all and each."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from mptcplab.metrics import REGISTRY, Window, values_of
from mptcplab.metrics.fairness import jain_index
from mptcplab.metrics.stats import summarise
from mptcplab.plots.styles import Style, shared_links, style
from mptcplab.report.frames import with_axes

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace
    from mptcplab.trace.topology import Flow, Topology

# With more names than this, single flows and families together, a table would have too many rows.
MOST_NAMES = 24
EVERYTHING = "all flows"
# Styles that are kept for links: plots over time first show so many.
_MOST_LINKS = 12
_KEY, _KEY_OF_LINES = "families", "styles of lines"
# Metrics of a family, their titles and units; every one is of the goodputs of its flows.
FAMILY_METRICS = {
    "family_total": ("Total", "Mbit/s", 2),
    "family_mean": ("Per flow", "Mbit/s", 2),
    "family_spread": ("Spread", "Mbit/s", 2),
    "family_lowest": ("Lowest", "Mbit/s", 2),
    "family_highest": ("Highest", "Mbit/s", 2),
    "family_jain": ("Jain's\nindex", "", 3),
}


@dataclass(frozen=True)
class Entity:
    """A flow by itself (`members` has only its name), or a family of flows."""

    name: str
    members: tuple[str, ...]

    @property
    def is_family(self) -> bool:
        """Whether it stands for several flows."""
        return self.members != (self.name,)

    @property
    def label(self) -> str:
        """Its name, and the number of its flows."""
        return f"{self.name} ({len(self.members)} flows)" if self.is_family else self.name


def entities(trace: Trace) -> list[Entity]:
    """The TCP and MPTCP flows of all runs in file order: families as one, and all as one if there are too many."""
    if _KEY not in trace.cache:
        trace.cache[_KEY] = _entities(trace)
    found: list[Entity] = trace.cache[_KEY]
    return found


def _entities(trace: Trace) -> list[Entity]:
    flows = dict.fromkeys(flow.name for topology in trace.topologies.values() for flow in topology.connections)
    declared = _declared(trace, "flows")
    members: dict[str, list[str]] = {}
    for name in flows:
        members.setdefault(family_of(name, declared), []).append(name)
    found = [Entity(name, tuple(names)) for name, names in members.items()]
    return found if len(found) <= MOST_NAMES else [Entity(EVERYTHING, tuple(flows))]


def condensed(trace: Trace, topology: Topology) -> Topology:
    """The topology with one flow for every family whose flows have the same paths, named after the family."""
    families = _with_udp(trace, topology)
    members: dict[str, list[Flow]] = {}
    for flow in topology.flows:
        if flow.name in families:
            members.setdefault(families[flow.name].name, []).append(flow)
    alike = {name for name, flows in members.items() if len({flow.paths for flow in flows}) == 1}
    kept: dict[str, Flow] = {}
    for flow in topology.flows:
        family = families[flow.name].name if flow.name in families else None
        if family is None or family not in alike:
            kept[flow.name] = flow
        else:
            kept.setdefault(family, replace(flow, name=_times(family, len(members[family]))))
    return replace(topology, flows=tuple(kept.values()))


def listed(trace: Trace, topology: Topology) -> Topology:
    """The topology for a list of its flows where no drawing is: flows that are declared together as one.

    Their paths may differ in the numbers of links, which are written as in the scenario file: `access-{}`.
    """
    links = _declared(trace, "links")
    declared = _declared(trace, "flows")
    groups: dict[tuple[object, ...], list[Flow]] = {}
    for flow in topology.flows:
        patterns = tuple(tuple(family_of(link, links) for link in path) for path in flow.paths)
        alike = tuple((one.name, one.base_rtt_ns, one.backup) for one in flow.subflows)
        what = (family_of(flow.name, declared), flow.transport, flow.traffic, patterns, alike)
        groups.setdefault(what, []).append(flow)
    sizes = Counter(what[0] for what, flows in groups.items() for _ in flows)
    return replace(topology, flows=tuple(_together(what, flows, sizes) for what, flows in groups.items()))


def _together(what: tuple[object, ...], flows: list[Flow], sizes: Counter[object]) -> Flow:
    """One flow for several that are alike; `sizes` has the number of flows of every family."""
    first, others = flows[0], len(flows) - 1
    name = f"{first.name} and {others:,} more" if others else first.name
    if len(flows) == sizes[what[0]]:
        name = _times(str(what[0]), len(flows))
    subflows = []
    for at, subflow in enumerate(first.subflows):
        places = zip(*(flow.subflows[at].path for flow in flows), strict=True)
        path = tuple(one[0] if len(set(one)) == 1 else f"{one[0].rpartition('-')[0]}-{{}}" for one in places)
        subflows.append(replace(subflow, path=path))
    return replace(first, name=name, subflows=tuple(subflows))


def _times(name: str, count: int) -> str:
    return f"{name} \N{MULTIPLICATION SIGN} {count:,}" if count > 1 else name


def _with_udp(trace: Trace, topology: Topology) -> dict[str, Entity]:
    """The family of every flow that has one, UDP streams among them, which `entities` leaves out."""
    found = {name: entity for entity in entities(trace) if entity.is_family for name in entity.members}
    declared = _declared(trace, "flows")
    streams: dict[str, list[str]] = {}
    for flow in topology.flows:
        if flow.transport == "udp":
            streams.setdefault(family_of(flow.name, declared), []).append(flow.name)
    families = (Entity(name, tuple(members)) for name, members in streams.items())
    return found | {name: entity for entity in families if entity.is_family for name in entity.members}


def styles(trace: Trace, topology: Topology) -> dict[tuple[str, str], Style]:
    """The style of every subflow; the flows of a family share theirs.

    Where one stands for all flows, the only subflow of some is not the first one of others.
    """
    owner = _owners(trace)
    shared = {(flow.name, one.name): _kind(owner, flow, one.name) for flow in topology.flows for one in flow.subflows}
    found = {what: style(index) for index, what in enumerate(dict.fromkeys(shared.values()))}
    return {who: found[what] for who, what in shared.items()}


def line_styles(trace: Trace, topology: Topology) -> dict[tuple[str, str], Style]:
    """The style of the line of every subflow: the first of a family has that of the family, the others have their own.

    Bars and the drawing of the network show a family as one, but its lines are beside one another. A subflow has the
    same style in all runs.
    """
    if _KEY_OF_LINES not in trace.cache:
        trace.cache[_KEY_OF_LINES] = _own_styles(trace)
    own: dict[tuple[str, str], int] = trace.cache[_KEY_OF_LINES]
    return {who: style(own[who]) if who in own else look for who, look in styles(trace, topology).items()}


def _own_styles(trace: Trace) -> dict[tuple[str, str], int]:
    """The number of the style of every subflow that has not that of its family: the second ones, then the third...

    They come after those of families and of the links that several subflows share.
    """
    topologies = {id(one): one for one in trace.topologies.values()}.values()
    owner = _owners(trace)
    kinds = {
        (flow.name, one.name): _kind(owner, flow, one.name)
        for t in topologies
        for flow in t.flows
        for one in flow.subflows
    }
    place = {name: at for entity in entities(trace) for at, name in enumerate(entity.members)}
    firsts: dict[object, tuple[str, str]] = {}
    ranked = sorted(kinds, key=lambda who: place.get(who[0], 0))
    others = [who for who in ranked if firsts.setdefault(kinds[who], who) != who]
    taken = len(firsts) + max((min(_MOST_LINKS, len(shared_links(one))) for one in topologies), default=0)
    return {who: taken + at for at, who in enumerate(others)}


def _owners(trace: Trace) -> dict[str, str]:
    return {name: entity.name for entity in entities(trace) for name in entity.members}


def _kind(owner: dict[str, str], flow: Flow, subflow: str) -> tuple[str, str | None]:
    """What has one style together: the same subflow of the flows of a family."""
    return owner.get(flow.name, flow.name), subflow if len(flow.subflows) > 1 else None


def are_alike(trace: Trace, entity: Entity) -> bool:
    """Whether its flows have the same subflows in all runs, so that a mean over one of these is one over all flows."""
    members = set(entity.members)
    topologies = {id(one): one for one in trace.topologies.values()}.values()
    flows = [flow for topology in topologies for flow in topology.flows if flow.name in members]
    return len({tuple(subflow.name for subflow in flow.subflows) for flow in flows}) <= 1


def _family_names(trace: Trace) -> dict[str, str]:
    """The name of the family of every flow that has one."""
    return {name: entity.name for entity in entities(trace) if entity.is_family for name in entity.members}


def has_families(trace: Trace) -> bool:
    """Whether some flow was declared with a count above 1, or all flows have to be shown as one."""
    return any(entity.is_family and len(entity.members) > 1 for entity in entities(trace))


def _declared(trace: Trace, what: str) -> set[str]:
    """The names of flows or links in the scenario file."""
    try:
        found = tomllib.loads(trace.runs["scenario_toml"][0]).get(what, {})
    except tomllib.TOMLDecodeError:
        return set()
    return set(found) if isinstance(found, dict) else set()


def family_of(name: str, declared: set[str]) -> str:
    """The name under which the file has a flow or link: `web-3` is the third of `web` if there is no other `web-3`."""
    family, dash, number = name.rpartition("-")
    return family if name not in declared and dash and number.isdecimal() and family in declared else name


def member_values(trace: Trace, metric: str = "goodput") -> pl.DataFrame:
    """A metric of every flow of a family in every run that counts: run, family, flow, value."""
    families = _family_names(trace)
    excluded = [problem.run for problem in trace.excluded_runs]
    whole = values_of(trace, metric).filter(pl.col("subflow").is_null())
    return (
        whole.filter(pl.col("flow").is_in(list(families)) & ~pl.col("run").is_in(excluded))
        .with_columns(family=pl.col("flow").replace_strict(families, default=None, return_dtype=pl.String))
        .select("run", "family", "flow", "value")
    )


def over_whole_window(trace: Trace, values: pl.DataFrame) -> pl.DataFrame:
    """Rates of flows (run, flow, value) over the window of the run, so that those of flows that take turns add up."""
    parts = Window(trace).flows.select("run", "flow", "part")
    found = values.join(parts, on=["run", "flow"], how="left", maintain_order="left")
    return found.with_columns(value=pl.col("value") * pl.col("part")).drop("part")


def per_run(trace: Trace) -> pl.DataFrame:
    """The metrics of every family in every run: run, metric, flow (the family), subflow, link, value, flows."""
    value = pl.col("value")
    members = member_values(trace).drop_nulls("value")
    whole = over_whole_window(trace, members)["value"].alias("over_whole_window")
    found = (
        members.with_columns(whole)
        .group_by("run", "family", maintain_order=True)
        .agg(
            family_total=pl.col("over_whole_window").sum(),
            family_mean=value.mean(),
            family_spread=value.std(),
            family_lowest=value.min(),
            family_highest=value.max(),
            family_jain=jain_index(value),
            flows=value.len(),
        )
    )
    none = pl.lit(None, pl.String)
    return found.unpivot(
        list(FAMILY_METRICS), index=["run", "family", "flows"], variable_name="metric", value_name="value"
    ).select("run", "metric", flow=pl.col("family"), subflow=none, link=none, value=value, flows=pl.col("flows"))


def summary(trace: Trace) -> pl.DataFrame:
    """Mean, spread over repetitions and interval of the metrics of every family, with axes and units."""
    values = per_run(trace)
    configs = trace.configs.filter(pl.col("run").is_in(values["run"].unique().to_list()))
    sizes = (
        values.join(configs.select("run", "config"), on="run")
        .group_by("config", "flow", maintain_order=True)
        .agg(flows=pl.col("flows").max())
    )
    units = {name: unit for name, (_, unit, _) in FAMILY_METRICS.items()}
    found = with_axes(trace, summarise(values.drop("flows"), configs), by="config").drop("subflow", "link")
    return found.join(sizes, on=["config", "flow"], how="left", maintain_order="left").with_columns(
        unit=pl.col("metric").replace_strict(units, default="", return_dtype=pl.String)
    )


def means_over_members(trace: Trace, names: list[str]) -> pl.DataFrame:
    """Metrics of flows and subflows as means over the flows of every family: the columns of `metrics.summary`."""
    families = _family_names(trace)
    excluded = [problem.run for problem in trace.excluded_runs]
    levels = [name for name in REGISTRY if name in names and {"flow", "subflow"}.intersection(REGISTRY[name].levels)]
    none = pl.lit(None, pl.String)
    values = (
        pl.concat(values_of(trace, name) for name in levels)
        .filter(pl.col("flow").is_in(list(families)) & ~pl.col("run").is_in(excluded))
        .with_columns(flow=pl.col("flow").replace_strict(families, default=None, return_dtype=pl.String))
        .group_by("run", "metric", "flow", "subflow", maintain_order=True)
        .agg(pl.col("value").mean())
        .select("run", "metric", "flow", "subflow", link=none, value=pl.col("value"))
    )
    return summarise(values, trace.configs)
