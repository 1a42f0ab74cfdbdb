"""The tables of a report, the same in the terminal and on the page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab.capabilities import engine_of
from mptcplab.metrics import REGISTRY, Window, compute
from mptcplab.metrics.certainty import ONE_TRAJECTORY, half_of
from mptcplab.metrics.differences import differences, is_relative
from mptcplab.report import connections, families, recoveries
from mptcplab.text import MBPS, NOT_APPLICABLE, Table, duration, first_of, mean_and_interval, number

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace

# The columns of the headline table, in this order; a column without a single value is left out. What the users of a
# flow wait for comes first.
HEADS = {
    "goodput": "Goodput",
    "requests": "Requests",
    "requests_open": "Outstanding",
    "response_p50": "Response\ntime, p50",
    "response_p95": "p95",
    "response_p99": "p99",
    "response_max": "max",
    "response_late": "Late",
    "messages": "Messages",
    "messages_open": "Outstanding",
    "message_p50": "Message\ndelay, p50",
    "message_p95": "p95",
    "message_p99": "p99",
    "message_max": "max",
    "message_late": "Late",
    "message_gap": "Longest\ngap",
    "ratio": "Fraction of\nfair share",
    "agr_bf": "Aggregate\nbenefit",
    "rtt_mean": "RTT",
    "retx_rate": "Retrans.",
    "rto_count": "Timeouts",
    "ftt": "Transfer\ntime",
    "transfers": "Transfers",
    "transfer_p50": "Transfer\ntime, p50",
    "transfer_p95": "p95",
    "transfer_p99": "p99",
    "media_rate": "Video",
    "stall_time": "Stalls",
    "startup_delay": "Start-up",
    "total_goodput": "Total\ngoodput",
    "jain": "Jain's\nindex",
}
PER_RUN = ("total_goodput", "jain")
PER_FLOW = tuple(name for name in HEADS if name not in PER_RUN)
# What has no value in a run that ends before it happens.
_OF_EACH = ("transfer_p", "response_p", "message_p")
_TIMES = ("ftt", "startup_delay", *(name for name in HEADS if name.startswith(_OF_EACH)))

# The goodputs of more subflows than these would make a table wider than a terminal.
MOST_SUBFLOWS = 4
# With fewer repetitions, confidence intervals are wide.
_FEW = 5


@dataclass(frozen=True)
class _Values:
    """Means and half intervals by (config, metric, flow, subflow)."""

    by_key: dict[tuple[str, str, str | None, str | None], tuple[float | None, float | None]]

    @classmethod
    def of(cls, summary: pl.DataFrame) -> _Values:
        rows = summary.filter(pl.col("link").is_null()).select("config", "metric", "flow", "subflow", "mean", "half")
        return cls({tuple(row[:4]): (row[4], row[5]) for row in rows.iter_rows()})

    def text(self, config: str, metric: str, flow: str | None, subflow: str | None = None) -> str:
        mean, half = self.by_key.get((config, metric, flow, subflow), (None, None))
        family = families.FAMILY_METRICS.get(metric)
        _, unit, digits = family or ("", REGISTRY[metric].unit, REGISTRY[metric].digits)
        return mean_and_interval(mean, half, digits, unit)

    def of_subflows(self, metric: str, config: str, flow: str | None) -> list[float]:
        """The mean of each subflow of a flow."""
        return [
            mean
            for (where, name, owner, subflow), (mean, _) in self.by_key.items()
            if (where, name, owner) == (config, metric, flow) and subflow is not None and mean is not None
        ]


def config_names(trace: Trace) -> list[str]:
    """Configurations in run order."""
    return trace.configs["config"].unique(maintain_order=True).to_list()


def connection_names(trace: Trace) -> list[str]:
    """TCP and MPTCP flows of all runs, in file order."""
    names = (flow.name for topology in trace.topologies.values() for flow in topology.connections)
    return list(dict.fromkeys(names))


def counted(trace: Trace, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of runs that count."""
    return frame.filter(~pl.col("run").is_in([problem.run for problem in trace.excluded_runs]))


def _states(trace: Trace) -> dict[str, str]:
    """Per configuration, how many of its runs do not count and why; empty if all runs count."""
    if not trace.excluded_runs:
        return {}
    runs = dict(trace.configs.group_by("config").len().iter_rows())
    found = dict.fromkeys(config_names(trace), "complete")
    for config in {problem.config for problem in trace.excluded_runs}:
        bad = [problem.status for problem in trace.excluded_runs if problem.config == config]
        parts = [f"{bad.count(status)} of {runs[config]} {status}" for status in dict.fromkeys(bad)]
        found[config] = ", ".join(parts)
    return found


def headline(trace: Trace, summary: pl.DataFrame) -> Table:
    """One row per configuration and flow: mean and 95 % interval of the most important metrics."""
    values, configs, flows = _Values.of(summary), config_names(trace), connection_names(trace)
    identical, all_are = _identical_repetitions(summary)
    repetitions = identical if all_are else [*identical, *_notes(trace)]
    unmeasured = [*_not_measured(trace), *connections.notes(trace), *recoveries.notes(trace)]
    unmeasured += _without_value(trace, summary)
    notes = [*repetitions, *unmeasured, *trace.remarks]
    states = _states(trace)
    if families.has_families(trace):
        return _with_families(trace, values, notes, states)
    keys = [(config, flow) for config in configs for flow in flows]
    names = [*PER_FLOW, *(["jain"] if len(flows) > 1 else [])]
    dead = connections.dead(trace)
    columns = [("Algorithm", "", [config for config, _ in keys])]
    if len(flows) > 1:
        columns.append(("Flow", "", [flow for _, flow in keys]))
    if states:
        columns.append(("Status", "", [states[config] for config, _ in keys]))
    for name in names:
        nothing = connections.NEVER_UP if name == "goodput" else NOT_APPLICABLE
        cells = [nothing if key in dead and name in PER_FLOW else _cell(values, name, *key) for key in keys]
        columns.append((HEADS[name], REGISTRY[name].unit, cells))
        if name == "goodput":
            columns.append(_of_subflows([values.of_subflows(name, *key) for key in keys], notes))
    return _table(columns, notes)


def _of_subflows(means: Sequence[list[float]], notes: list[str]) -> tuple[str, str, list[str]]:
    """The column with the goodput of every subflow; where it has not each of them, it is noted."""
    if any(len(one) > MOST_SUBFLOWS for one in means):
        notes.append(
            f"of more than {MOST_SUBFLOWS} subflows, the number and the range are shown; "
            "Results.summary() and summary.csv have each of them"
        )
    return "By\nsubflow", MBPS, [_by_subflow(one) for one in means]


def _table(columns: list[tuple[str, str, list[str]]], notes: list[str]) -> Table:
    """A table of columns, without those that have no value."""
    shown = [column for column in columns if any(cell != NOT_APPLICABLE for cell in column[2])]
    head = tuple((title, unit) for title, unit, _ in shown)
    return Table(head, tuple(zip(*(cells for *_, cells in shown), strict=True)), tuple(notes))


def _with_families(trace: Trace, values: _Values, notes: list[str], states: dict[str, str]) -> Table:
    """One row per configuration and family, or flow without a family.

    Goodput is that of the whole family; other metrics are means over its flows.
    """
    found, configs = families.entities(trace), config_names(trace)
    grouped = _Values.of(
        families.summary(trace).with_columns(link=pl.lit(None, pl.String), subflow=pl.lit(None, pl.String))
    )
    means = _Values.of(families.means_over_members(trace, list(PER_FLOW)))
    sizes = {(row["config"], row["flow"]): row["flows"] for row in families.summary(trace).iter_rows(named=True)}
    keys = [
        (config, entity)
        for config in configs
        for entity in found
        if not entity.is_family or (config, entity.name) in sizes
    ]

    def cell(name: str, config: str, entity: families.Entity) -> str:
        if entity.is_family and name in families.FAMILY_METRICS:
            return grouped.text(config, name, entity.name)
        if name in families.FAMILY_METRICS:
            return values.text(config, "goodput", entity.name) if name == "family_total" else NOT_APPLICABLE
        return _cell(means if entity.is_family else values, name, config, entity.name)

    columns: list[tuple[str, str, list[str]]] = [("Algorithm", "", [config for config, _ in keys])]
    columns.append(("Flow", "", [entity.name for _, entity in keys]))
    columns.append(("Flows", "", [str(sizes.get((config, entity.name), 1)) for config, entity in keys]))
    if states:
        columns.append(("Status", "", [states[config] for config, _ in keys]))
    heads = {"family_total": "Goodput,\nall", "family_mean": "Goodput\nper flow"}
    for name in ("family_total", "family_mean", "family_spread", "family_jain"):
        title, unit, _ = families.FAMILY_METRICS[name]
        heading = heads.get(name, title)
        columns.append((heading, unit, [cell(name, config, entity) for config, entity in keys]))
    split = {entity.name for entity in found if families.are_alike(trace, entity)}
    of_entity = [(means if entity.is_family else values, config, entity.name) for config, entity in keys]
    by_subflow = [
        known.of_subflows("goodput", config, name) if name in split else [] for known, config, name in of_entity
    ]
    columns.append(_of_subflows(by_subflow, notes))
    others = [name for name in PER_FLOW if name != "goodput"]
    columns += [(HEADS[name], REGISTRY[name].unit, [cell(name, *key) for key in keys]) for name in others]
    if len(found) == 1 and found[0].name == families.EVERYTHING:
        count = len(found[0].members)
        notes.append(f"{count} flows are shown as one; Results.summary() and summary.csv have each of them")
    else:
        notes.append(
            "flows that are declared together are one row: goodput in all and per flow, else means over the flows"
        )
    return _table(columns, notes)


# The metrics by which engines are compared.
_COMPARED = ("goodput", "srtt_mean")
_VERDICT = "verdict"


def engine_comparison(trace: Trace) -> Table | None:
    """Per algorithm and flow: the value on each engine, and its distance from the first engine; None for one engine."""
    frame = comparison_frame(trace)
    if frame is None:
        return None
    return engine_table(frame.filter(pl.col("subflow").is_null()), trace.engines)


def comparison_frame(trace: Trace) -> pl.DataFrame | None:
    """The numbers of `engine_comparison`, as `metrics.differences` has them; None for one engine."""
    if len(trace.engines) < 2:
        return None
    return differences(trace, compute(trace), _COMPARED)


def engine_table(frame: pl.DataFrame, engines: Sequence[str], *, in_full: bool = False) -> Table:
    """A table of rows of `differences`: a line per configuration, flow and subflow, with the engines in columns.

    If the frame has a column `verdict`, each difference is followed by its verdict; `in_full` by its bound and by the
    number of repetitions as well.
    """
    first, *others = engines
    metrics = frame["metric"].unique(maintain_order=True).to_list()
    judged = set(frame.drop_nulls(_VERDICT)["metric"]) if _VERDICT in frame.columns else set()
    cells: dict[tuple[str, ...], dict[tuple[str, str], dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        cells.setdefault((row["base"], row["flow"], row["subflow"]), {})[row["metric"], row["engine"]] = row
    names = [("Algorithm", "base"), ("Flow", "flow"), ("Subflow", "subflow")]
    shown = [i for i, (_, column) in enumerate(names) if frame[column].is_not_null().any()]
    head = [(names[i][0], "") for i in shown]
    for name in metrics:
        head += _engine_head(name, first, others, judged=name in judged, in_full=in_full)
    rows = []
    for who, found in cells.items():
        line = [who[i] or "" for i in shown]
        for name in metrics:
            of_others = [found.get((name, engine)) for engine in others]
            line += _engine_cells(name, first, of_others, judged=name in judged, in_full=in_full)
        rows.append(tuple(line))
    alike = (frame["n"] == frame["n_reference"]).all()
    which = "on all engines" if alike else "on each engine"
    notes = [f"differences from {first}: means over the repetitions that count {which}, ± half of the 95 % interval"]
    if any(row["half"] is not None and half_of(row, first) is None for row in frame.iter_rows(named=True)):
        note = f"a difference has no interval where the repetitions of an engine all but coincide: {ONE_TRAJECTORY}"
        # A fluid has no packets that could be delayed.
        if sum(engine_of(name).has_packets for name in engines) > 1:
            note += (
                "; a random delay behind full links (the key `reorder`, with a probability of 100 %) makes them differ"
            )
        notes.append(note)
    return Table(tuple(head), tuple(rows), tuple(notes))


def _engine_head(name: str, first: str, others: Sequence[str], *, judged: bool, in_full: bool) -> list[tuple[str, str]]:
    title, unit = _ENGINE_TITLES.get(name, REGISTRY[name].title), REGISTRY[name].unit
    head = [(f"{title}\n{first}", unit)]
    for engine in others:
        whose = f"\n{engine}" if len(others) > 1 else ""
        head.append((f"{title}\n{engine}", unit))
        of_difference = "%" if is_relative(name) else "points" if unit else ""
        head.append((f"Difference{whose}", of_difference))
        head += [(f"Bound{whose}", of_difference)] if judged and in_full else []
        head += [(f"Repetitions{whose}", "")] if in_full else []
        head += [(f"Verdict{whose}", "")] if judged else []
    return head


def _engine_cells(
    name: str, first: str, rows: list[dict[str, Any] | None], *, judged: bool, in_full: bool
) -> list[str]:
    digits, unit, relative = REGISTRY[name].digits, REGISTRY[name].unit, is_relative(name)
    known = next((row for row in rows if row), None)
    cells = [mean_and_interval(known["reference"] if known else None, None, digits, unit)]
    for found in rows:
        row = found or dict.fromkeys(("mean", "difference", _VERDICT))
        half = half_of(found, first) if found else None
        cells.append(mean_and_interval(row["mean"], None, digits, unit))
        shown = mean_and_interval(row["difference"], half, 1 if relative else digits)
        cells.append(f"+{shown}" if row["difference"] is not None and not shown.startswith("-") else shown)
        if judged and in_full:
            cells.append(f"{found['bound']:g}" if found else NOT_APPLICABLE)
        if in_full:
            counts = dict.fromkeys((found["n_reference"], found["n"])) if found else {NOT_APPLICABLE: None}
            cells.append(", ".join(map(str, counts)))
        cells += [row[_VERDICT] or NOT_APPLICABLE] if judged else []
    return cells


_ENGINE_TITLES = {"srtt_mean": "Mean srtt", "plr": "Lost", "share": "Share"}


def _identical_repetitions(summary: pl.DataFrame) -> tuple[list[str], bool]:
    """A note if repetitions are identical, and whether those of all configurations are.

    Their intervals have width zero, which looks like certainty.
    """
    repetitions = pl.col("n").max().over("config")
    # Not goodput alone: a response may be late, or a packet lost, in a run that delivers as many bytes as another.
    everywhere = (pl.col("n") == 0) | ((pl.col("n") == repetitions) & (pl.col("min") == pl.col("max")))
    compared = summary.with_columns(everywhere=everywhere)
    identical = compared.group_by("config").agg(same=(pl.col("n").max() > 1) & pl.col("everywhere").all())
    names = identical.filter("same").sort("config")["config"].to_list()
    if not names:
        return [], False
    all_are = len(names) == identical.height
    who = "the repetitions" if all_are else "the repetitions of " + ", ".join(names)
    return [f"{who} do not differ, because nothing random happened in these runs"], all_are


def _cell(values: _Values, name: str, config: str, flow: str | None) -> str:
    return values.text(config, name, flow if "flow" in REGISTRY[name].levels else None)


def _by_subflow(means: list[float]) -> str:
    """The goodput of each subflow of a flow that has several; how many and their range where all would be too wide."""
    if len(means) > MOST_SUBFLOWS:
        return f"{len(means)}: {_goodput(min(means))} to {_goodput(max(means))}"
    return " + ".join(map(_goodput, means)) if len(means) > 1 else NOT_APPLICABLE


def _goodput(mean: float) -> str:
    return number(mean, REGISTRY["goodput"].digits, REGISTRY["goodput"].unit)


def _notes(trace: Trace) -> list[str]:
    configs = counted(trace, trace.configs)
    if configs.is_empty():
        return ["no run counts, so there are no numbers"]
    # Nothing is random where there are no packets, so that repetitions add nothing.
    random = [name for name in trace.engines if engine_of(name).has_packets]
    several: list[int] = configs.filter(pl.col("engine").is_in(random)).group_by("config").len()["len"].to_list()
    if not several or min(several) >= _FEW:
        return []
    if max(several) == 1:
        return ["one repetition: no confidence intervals, and differences may be chance (use --reps)"]
    if min(several) == 1:
        return ["some have one repetition and no confidence interval: differences may be chance (use --reps)"]
    return [f"only {min(several)} repetitions: the intervals are wide"]


def _not_measured(trace: Trace) -> list[str]:
    """A line for every flow that ends before the warm-up does, in whatever run."""
    ends = {
        flow.name: f"{flow.name} stops at {duration(flow.stop_ns)}, the warm-up ends at {duration(topology.warmup_ns)}"
        for topology in trace.topologies.values()
        for flow in topology.flows
        if flow.stop_ns is not None and flow.stop_ns <= topology.warmup_ns
    }
    stopped = [f"{text}: its metrics have no values" for text in ends.values()]
    return [*stopped, *_complete_too_early(trace, set(ends))]


def _complete_too_early(trace: Trace, others: set[str]) -> list[str]:
    """A line per configuration and file, except of some flows, that was complete before the warm-up ended."""
    if not any(flow.ends_by_itself for topology in trace.topologies.values() for flow in topology.flows):
        return []
    configs = dict(trace.configs.select("run", "config").iter_rows())
    early: dict[tuple[str, str], list[int]] = {}
    for run, topology in Window(trace).lived.items():
        for flow in topology.flows:
            if flow.ends_by_itself and flow.name not in others and (flow.stop_ns or math.inf) <= topology.warmup_ns:
                early.setdefault((configs[run], flow.name), []).append(run)
    sizes = Counter(configs.values())
    return [
        f"{config}: in {len(runs)} of {sizes[config]} runs, the file of {name} is complete before the warm-up ends at "
        f"{duration(trace.topologies[runs[0]].warmup_ns)}, so that its goodput has no value"
        for (config, name), runs in early.items()
    ]


def _without_value(trace: Trace, summary: pl.DataFrame) -> list[str]:
    """A line per metric and number of runs in which a flow has a value of it, where these are not all that count.

    Runs in which a transfer takes longest are those in which it does not end, so the mean of the others is too low.
    """
    sizes = counted(trace, trace.configs).group_by("config").len("runs")
    some = summary.join(sizes, on="config", maintain_order="left").filter(
        pl.col("metric").is_in(_TIMES), pl.col("n") > 0, pl.col("n") < pl.col("runs")
    )
    grouped = some.group_by("config", "flow", "n", "runs", maintain_order=True).agg(pl.col("metric"))
    lines = []
    for config, flow, count, runs, names in grouped.iter_rows():
        titles = list(dict.fromkeys(REGISTRY[name].title.split(",")[0].lower() for name in names))
        lines.append(
            f"{config}: only {count} of {runs} runs have a {' and a '.join(titles)} of {flow}; the mean is over these, "
            "because nothing was complete before the others ended"
        )
    return first_of(lines, "flows have such times in some runs only: n in summary.csv")


def all_metrics(trace: Trace, summary: pl.DataFrame, max_rows: int = 300) -> Table:
    """Every metric of every entity (data links only), one column per configuration."""
    carrying = {link.name for topology in trace.topologies.values() for link in topology.data_links}
    configs = config_names(trace)
    rows = summary.filter(pl.col("link").is_null() | pl.col("link").is_in(sorted(carrying)))
    cells: dict[tuple[str, str | None, str | None, str | None], dict[str, str]] = {}
    for row in rows.select("config", "metric", "flow", "subflow", "link", "mean", "half").iter_rows():
        config, name, flow, subflow, link, mean, half = row
        shown = mean_and_interval(mean, half, REGISTRY[name].digits, REGISTRY[name].unit)
        cells.setdefault((name, flow, subflow, link), {})[config] = shown
    order = {name: position for position, name in enumerate(REGISTRY)}
    keys = sorted(cells, key=lambda key: order[key[0]])
    keys = [key for key in keys if any(text != NOT_APPLICABLE for text in cells[key].values())]
    more = [f"{len(keys) - max_rows} more rows in summary.csv"] if len(keys) > max_rows else []
    notes = (*recoveries.notes(trace), *more)
    body = []
    for key in keys[:max_rows]:
        name, flow, subflow, link = key
        entity = link or " ".join(part for part in (flow, subflow) if part) or "whole run"
        body.append(
            (REGISTRY[name].title, entity, REGISTRY[name].unit, *(cells[key].get(c, NOT_APPLICABLE) for c in configs))
        )
    head = (("Metric", ""), ("Flow, subflow or link", ""), ("Unit", ""), *((config, "") for config in configs))
    return Table(head, tuple(body), notes)
