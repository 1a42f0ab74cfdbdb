"""The summary table, the same in the terminal and on the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab.metrics import REGISTRY
from mptcplab.report.text import NOT_APPLICABLE, mean_and_interval

if TYPE_CHECKING:
    from mptcplab.results import Results

# What short transfers and video are judged by.
_WAITING = ("transfers", "transfer_p50", "transfer_p95", "transfer_p99", "media_rate", "stall_time", "startup_delay")
# What people look at first, in this order; a column without a single value is left out.
_PER_FLOW = ("goodput", "ratio", "agr_bf", "rtt_mean", "retx_rate", "rto_count", "ftt", *_WAITING)
_PER_RUN = ("total_goodput", "jain")
# With more flows than this the table shows whole runs only.
MAX_FLOWS = 8
_SHORT = {
    "goodput": "Goodput",
    "ratio": "Of fair\nshare",
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


@dataclass(frozen=True)
class Table:
    """A table of text: column heads with units, and rows."""

    head: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


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
        return mean_and_interval(mean, half, REGISTRY[metric].digits)


def config_names(results: Results) -> list[str]:
    """Configurations in run order."""
    return results.configs["config"].unique(maintain_order=True).to_list()


def connection_names(results: Results) -> list[str]:
    """TCP and MPTCP flows of all runs, in file order."""
    names = (flow.name for topology in results.topologies.values() for flow in topology.connections)
    return list(dict.fromkeys(names))


def counted(results: Results, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of runs that count."""
    return frame.filter(~pl.col("run").is_in([problem.run for problem in results.problems]))


def _states(results: Results) -> dict[str, str]:
    """Per configuration: what is wrong with how many of its runs; empty where all of all count."""
    if not results.problems:
        return {}
    runs = dict(results.configs.group_by("config").len().iter_rows())
    found = dict.fromkeys(config_names(results), "complete")
    for config in {problem.config for problem in results.problems}:
        bad = [problem.status for problem in results.problems if problem.config == config]
        parts = [f"{bad.count(status)} of {runs[config]} {status}" for status in dict.fromkeys(bad)]
        found[config] = ", ".join(parts)
    return found


def headline(results: Results, summary: pl.DataFrame) -> Table:
    """One row per configuration and flow: mean and 95 % interval of what people look at first."""
    values, configs, flows = _Values.of(summary), config_names(results), connection_names(results)
    notes = [*(_without_chance(summary) or _notes(results)), *results.remarks]
    states = _states(results)
    if len(flows) > MAX_FLOWS:
        notes.append(f"{len(flows)} flows: the table shows whole runs, summary.csv has every flow")
        keys: list[tuple[str, str | None]] = [(config, None) for config in configs]
        names = list(_PER_RUN)
    else:
        keys = [(config, flow) for config in configs for flow in flows]
        names = [*_PER_FLOW, *(["jain"] if len(flows) > 1 else [])]
    body = [[_cell(values, name, config, flow) for name in names] for config, flow in keys]
    kept = [i for i in range(len(names)) if any(row[i] != NOT_APPLICABLE for row in body)]
    splits = [_split(values, config, flow) for config, flow in keys]
    show_flow, show_split = len(flows) > 1 and keys[0][1] is not None, any(splits)
    head = [("Algorithm", "")]
    head += [("Flow", "")] if show_flow else []
    head += [("Status", "")] if states else []
    columns = [(_SHORT[names[i]], REGISTRY[names[i]].unit) for i in kept]
    columns[1:1] = [("of it by\nsubflow", "Mbit/s")] if show_split else []
    rows = []
    for (config, flow), row, split in zip(keys, body, splits, strict=True):
        cells = [row[i] for i in kept]
        cells[1:1] = [split or NOT_APPLICABLE] if show_split else []
        state = [states[config]] if states else []
        rows.append((config, *([flow or ""] if show_flow else []), *state, *cells))
    return Table((*head, *columns), tuple(rows), tuple(notes))


# What two engines are compared by.
_COMPARED = ("goodput", "srtt_mean")


def engine_comparison(results: Results) -> Table | None:
    """Per algorithm and flow: what each engine measured, and the difference of the second from the first in percent.

    None unless exactly two engines ran.
    """
    frame = comparison_frame(results)
    if frame is None:
        return None
    head = [("Algorithm", ""), ("Flow", "")]
    for name in _COMPARED:
        title, unit = _COMPARED_TITLES[name], REGISTRY[name].unit
        head += [(f"{title}\n{engine}", unit) for engine in results.engines] + [(f"{title}\ndifference", "%")]
    rows = []
    for base, flow, *values in frame.iter_rows():
        cells = []
        for position, name in enumerate(_COMPARED):
            one, other, difference = values[3 * position : 3 * position + 3]
            digits = REGISTRY[name].digits
            cells += [mean_and_interval(one, None, digits), mean_and_interval(other, None, digits)]
            cells.append(NOT_APPLICABLE if difference is None else f"{difference:+.1f}")
        rows.append((base, flow, *cells))
    one, other = results.engines
    note = f"difference: mean on {other} over mean on {one}, minus 1, of the repetitions that count on both"
    return Table(tuple(head), tuple(rows), (note,))


_COMPARED_TITLES = {"goodput": "Goodput", "srtt_mean": "Mean srtt"}


def comparison_frame(results: Results) -> pl.DataFrame | None:
    """The numbers of `engine_comparison`: base, flow, and per metric both means and the difference in percent."""
    if len(results.engines) != 2:
        return None
    runs = counted(results, results.configs)
    # Repetitions have random numbers of their own: only those that count on both engines tell of the engines.
    both = runs.group_by("base", "rep").agg(engines=pl.col("engine").n_unique()).filter(pl.col("engines") == 2)
    paired = runs.join(both.select("base", "rep"), on=["base", "rep"], how="semi")
    values = results.metrics().filter(
        pl.col("metric").is_in(_COMPARED) & pl.col("flow").is_not_null() & pl.col("subflow").is_null()
    )
    means = values.join(paired, on="run").group_by("base", "flow", "metric", "engine").agg(pl.col("value").mean())
    found = {row[:4]: row[4] for row in means.iter_rows()}
    rows: list[tuple[Any, ...]] = []
    for base in results.configs["base"].unique(maintain_order=True):
        for flow in connection_names(results):
            row: list[Any] = [base, flow]
            for name in _COMPARED:
                one, other = (found.get((base, flow, name, engine)) for engine in results.engines)
                row += [one, other, 100 * (other / one - 1) if one and other is not None else None]
            rows.append(tuple(row))
    columns = [f"{name}_{part}" for name in _COMPARED for part in (*results.engines, "difference_percent")]
    schema = {"base": pl.String, "flow": pl.String} | dict.fromkeys(columns, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _without_chance(summary: pl.DataFrame) -> list[str]:
    """Intervals of width zero look like certainty; say where repetitions repeat the very same packets."""
    # A run's goodput is a ratio of large counters: chance would change it somewhere.
    goodput = summary.filter((pl.col("metric") == "goodput") & pl.col("subflow").is_null())
    identical = goodput.group_by("config").agg(same=((pl.col("n") > 1) & (pl.col("min") == pl.col("max"))).all())
    names = identical.filter("same").sort("config")["config"].to_list()
    if not names:
        return []
    who = "the repetitions" if len(names) == identical.height else "the repetitions of " + ", ".join(names)
    return [f"{who} do not differ: nothing in the scenario is random (a random start or loss would tell more)"]


def _cell(values: _Values, name: str, config: str, flow: str | None) -> str:
    return values.text(config, name, flow if "flow" in REGISTRY[name].levels else None)


def _split(values: _Values, config: str, flow: str | None) -> str:
    """Goodput of each subflow, means only."""
    if flow is None:
        return ""
    found = [
        (key[3], mean)
        for key, (mean, _) in values.by_key.items()
        if key[0] == config and key[1] == "goodput" and key[2] == flow and key[3] is not None and mean is not None
    ]
    if len(found) < 2:
        return ""
    return " + ".join(f"{mean:.2f}" for _, mean in found)


def _notes(results: Results) -> list[str]:
    per_config = counted(results, results.configs).group_by("config").len()["len"]
    if per_config.is_empty():
        return ["no run counts: there are no numbers"]
    if per_config.max() == 1:
        return ["one repetition: no confidence intervals, and differences may be chance (use --reps)"]
    if per_config.min() < 5:
        return [f"only {per_config.min()} repetitions: the intervals are wide"]
    return []


def all_metrics(results: Results, summary: pl.DataFrame, max_rows: int = 300) -> Table:
    """Every metric of every entity (data links only), one column per configuration."""
    carrying = {link.name for topology in results.topologies.values() for link in topology.data_links}
    configs = config_names(results)
    rows = summary.filter(pl.col("link").is_null() | pl.col("link").is_in(sorted(carrying)))
    cells: dict[tuple[str, str | None, str | None, str | None], dict[str, str]] = {}
    for row in rows.select("config", "metric", "flow", "subflow", "link", "mean", "half").iter_rows():
        config, name, flow, subflow, link, mean, half = row
        shown = mean_and_interval(mean, half, REGISTRY[name].digits)
        cells.setdefault((name, flow, subflow, link), {})[config] = shown
    order = {name: position for position, name in enumerate(REGISTRY)}
    keys = sorted(cells, key=lambda key: order[key[0]])
    keys = [key for key in keys if any(text != NOT_APPLICABLE for text in cells[key].values())]
    notes = (f"{len(keys) - max_rows} more rows in summary.csv",) if len(keys) > max_rows else ()
    body = []
    for key in keys[:max_rows]:
        name, flow, subflow, link = key
        entity = link or " ".join(part for part in (flow, subflow) if part) or "whole run"
        body.append(
            (REGISTRY[name].title, entity, REGISTRY[name].unit, *(cells[key].get(c, NOT_APPLICABLE) for c in configs))
        )
    head = (("Metric", ""), ("Of", ""), ("Unit", ""), *((config, "") for config in configs))
    return Table(head, tuple(body), notes)
