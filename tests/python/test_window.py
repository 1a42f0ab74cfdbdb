"""The measurement window: which rows stand for its edges, and what is read and measured at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import synthetic as s
from test_metrics import has, value

from mptcplab.errors import MptcplabError
from mptcplab.metrics import REGISTRY, Window, compute, find, pieces, summary, values_of
from mptcplab.metrics import window as windows
from mptcplab.metrics.stats import summarise
from mptcplab.results import Results

LINKS = [s.link("A", "S", "D", 8), s.link("B", "S", "D", 4), s.link("A~", "D", "S", 8)]
ORDER = ("metric", "run", "flow", "subflow", "link")


# The edges


@pytest.mark.parametrize(("age_ns", "stands"), [(0, True), (1, True), (s.NS - 1, True), (s.NS, False)])
@pytest.mark.parametrize("edge", ["begin", "end"])
def test_a_row_stands_for_an_edge_if_it_is_less_than_an_interval_older(
    tmp_path: Path, edge: str, age_ns: int, stands: bool
) -> None:
    """The window is from 3 to 11 s; of 1 MB and 9 MB at its edges, 8 Mbit/s. Rows after an edge do not count.

    It ends where the flow stops, and the time with it at the row that stands for this edge.
    """
    begin, end = (at - (age_ns / s.NS if name == edge else 0) for name, at in (("begin", 3), ("end", 11)))
    rows = [(0, 0), (begin, 1), (3.25, 2), (end, 9), (11.25, 12)]
    flow = [{"flow": "f", "t": t, "delivered_bytes": mega * 1_000_000} for t, mega in rows]
    scenario = s.resolved(LINKS, [s.tcp("f", s.subflow("p", "A"), stop_ns=11 * s.NS)], duration_s=12, warmup_s=3)
    s.write(tmp_path, [s.run_row(0, scenario)], flow=flow)
    m = Results.open(tmp_path).metrics(["goodput"])
    seconds = 8 - (age_ns / s.NS if edge == "end" else 0)
    assert value(m, "goodput", flow="f") == (pytest.approx(64 / seconds) if stands else None)


@pytest.mark.parametrize(("age_ns", "stands"), [(0, True), (1, False)])
def test_without_samples_only_a_row_exactly_at_an_edge_stands_for_it(tmp_path: Path, age_ns: int, stands: bool) -> None:
    scenario = s.resolved(LINKS, [s.tcp("f", s.subflow("p", "A"))], duration_s=11, warmup_s=3)
    rows = [(0, 0), (3, 1), (11 - age_ns / s.NS, 9)]
    flow = [{"flow": "f", "t": t, "delivered_bytes": mega * 1_000_000} for t, mega in rows]
    s.write(tmp_path, [s.run_row(0, scenario, sample_ms=None)], flow=flow)
    m = Results.open(tmp_path).metrics(["goodput"])
    assert value(m, "goodput", flow="f") == (pytest.approx(8) if stands else None)


def test_a_subflow_that_appears_in_the_window_had_counted_nothing_before(tmp_path: Path) -> None:
    """The window is from 2 to 10 s. `first` appears at 2 s, `late` at 5 s; `gone` ends at 1 s, `never` has no row."""
    parts = [s.subflow(name, "A") for name in ("always", "first", "late", "gone", "never")]
    grown = {"always": 300, "first": 500, "late": 700, "gone": 900}
    times = {"always": range(11), "first": range(2, 11), "late": range(5, 11), "gone": range(2)}
    subflow = [
        {"flow": "mp", "subflow": name, "t": t, "retx_pkts": per_s * t}
        for name, per_s in grown.items()
        for t in times[name]
    ]
    scenario = s.resolved(LINKS, [s.tcp("mp", *parts)], duration_s=10, warmup_s=2)
    s.write(tmp_path, [s.run_row(0, scenario)], subflow=subflow)
    m = Results.open(tmp_path).metrics(["retx"])
    assert value(m, "retx", flow="mp", subflow="always") == 300 * 8
    assert value(m, "retx", flow="mp", subflow="first") == 500 * 8
    assert value(m, "retx", flow="mp", subflow="late") == 700 * 10
    assert value(m, "retx", flow="mp", subflow="gone") is None
    assert not has(m, "retx", subflow="never")
    # The sum is unknown if a part of it is.
    assert value(m, "retx", flow="mp") is None


def test_a_flow_without_time_in_the_window_has_no_values(tmp_path: Path) -> None:
    """Of flows that stop at the end of the warm-up, and a nanosecond later, only the other one was there."""
    stops = {"before": 2 * s.NS, "just": 2 * s.NS + 1}
    flows = [s.tcp(name, s.subflow("p", "A"), stop_ns=stop) for name, stop in stops.items()]
    flow = [{"flow": name, "t": t, "delivered_bytes": 1000 * t} for name in stops for t in range(5)]
    s.write(tmp_path, [s.run_row(0, s.resolved(LINKS, flows, duration_s=4, warmup_s=2))], flow=flow)
    m = Results.open(tmp_path).metrics(["goodput"])
    assert m["flow"].to_list() == ["just"]


def test_a_span_that_is_refused_is_named_with_what_is_possible(tmp_path: Path) -> None:
    runs = [
        s.run_row(run, s.resolved(LINKS, [s.tcp("f", s.subflow("p", "A"))], duration_s=end), rep=run)
        for run, end in enumerate((12.5, 8.25))
    ]
    results = Results.open(s.write(tmp_path, runs, flow=[{"run": run, "flow": "f", "t": 0.0} for run in (0, 1)]))
    compute(results, ["goodput"], (0, round(8.25 * s.NS)))
    message = "not a span of run 1: 2.5 s to 9.75 s\n\nhint: begin before the end, and within 0 s and 8.25 s"
    with pytest.raises(MptcplabError, match=f"^{re.escape(message)}$"):
        compute(results, ["goodput"], (round(2.5 * s.NS), round(9.75 * s.NS)))
    with pytest.raises(MptcplabError, match=r"^not a span of run 0: -1e-09 s to 5 s\n"):
        compute(results, ["goodput"], (-1, 5 * s.NS))


@pytest.mark.parametrize(("flows", "read"), [(1, [(0, 1, 2)]), (8, [(0, 1, 2)]), (9, [(0,), (1,), (2,)])])
def test_runs_with_more_than_eight_windows_are_read_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flows: int, read: list[tuple[int, ...]]
) -> None:
    """Every flow stops at another time, and every run has other rates. With one window all runs are read together."""
    names = [f"f{n}" for n in range(flows)]
    stops = [(n + 3) * s.NS for n in range(flows)]
    connections = [s.tcp(name, s.subflow("p", "A"), stop_ns=stop) for name, stop in zip(names, stops, strict=True)]
    scenario = s.resolved(LINKS, connections, duration_s=12, warmup_s=2)
    flow = [
        {"run": run, "flow": name, "t": t, "delivered_bytes": 125_000 * (10 * run + n + 1) * t}
        for run in range(3)
        for n, name in enumerate(names)
        for t in range(13)
    ]
    s.write(tmp_path, [s.run_row(run, scenario, rep=run) for run in range(3)], flow=flow)
    seen: list[tuple[int, ...]] = []
    scan = windows.scan

    def watched(trace: Any, table: str, runs: Sequence[int], chosen: Sequence[str] | None) -> pl.LazyFrame:
        if table == "flow":
            seen.append(tuple(runs))
        return scan(trace, table, runs, chosen)

    monkeypatch.setattr(windows, "scan", watched)
    monkeypatch.setattr("mptcplab.trace.samples.BATCH_ROWS", 1)
    m = Results.open(tmp_path).metrics(["goodput"])
    for run in range(3):
        for n, name in enumerate(names):
            assert value(m, "goodput", run=run, flow=name) == pytest.approx(10 * run + n + 1)
    assert list(dict.fromkeys(seen)) == read


# What is measured at once

FLOWS = ("a", "b", "c", "d", "e")
# Four samples of five flows, of a subflow of each, and of three links.
ROWS = 4 * (5 + 5 + 3)


def two_runs(home: Path, **columns: Sequence[Any]) -> Results:
    """Every flow, link and run has numbers of its own."""
    scenario = s.resolved(LINKS, [s.tcp(name, s.subflow("p", "A")) for name in FLOWS], duration_s=3)
    at = [(run, t) for run in (0, 1) for t in range(4)]
    flow = [
        {"run": run, "flow": name, "t": t, "delivered_bytes": 1000 * (n + 5 * run) * t, "ooo_bytes": n + t}
        for run, t in at
        for n, name in enumerate(FLOWS)
    ]
    subflow = [
        {"run": run, "flow": name, "subflow": "p", "t": t, "cwnd_pkts": 10 * run + n + t, "rx_wire_bytes": n * t * t}
        for run, t in at
        for n, name in enumerate(FLOWS)
    ]
    link = [
        {"run": run, "link": name, "t": t, "queue_pkts": n + t, "departed_bytes": 100 * (n + run) * t}
        for run, t in at
        for n, name in enumerate(("A", "B", "A~"))
    ]
    runs = [s.run_row(run, scenario, rep=run) | {name: of[run] for name, of in columns.items()} for run in (0, 1)]
    return Results.open(s.write(home, runs, flow=flow, subflow=subflow, link=link))


HALVES = [("a", "b"), ("c", "d", "e")]
THIRDS = [("a",), ("b", "c"), ("d", "e")]
SINGLE = [(name,) for name in FLOWS]


@pytest.mark.parametrize(
    ("rows", "batches", "parts"),
    [
        pytest.param(2 * ROWS, [(0, 1)], [None], id="both-runs"),
        pytest.param(2 * ROWS - 1, [(0,), (1,)], [None], id="a-run"),
        pytest.param(ROWS, [(0,), (1,)], [None], id="exactly-a-run"),
        pytest.param(ROWS - 1, [(0,), (1,)], HALVES, id="more-than-half-a-run"),
        pytest.param(ROWS // 2, [(0,), (1,)], HALVES, id="half-a-run"),
        pytest.param(ROWS // 2 - 1, [(0,), (1,)], THIRDS, id="less-than-half"),
        # There are no more parts than flows.
        pytest.param(1, [(0,), (1,)], SINGLE, id="a-row"),
    ],
)
def test_samples_are_read_as_many_at_a_time_as_fit_in_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    batches: list[tuple[int, ...]],
    parts: list[tuple[str, ...] | None],
) -> None:
    results = two_runs(tmp_path)
    at_once = results.metrics(REGISTRY).sort(ORDER)
    seen: list[tuple[tuple[int, ...], tuple[str, ...] | None]] = []
    read = windows.read

    def watched(trace: Any, table: str, columns: Any, runs: Sequence[int], names: Sequence[str] | None) -> Any:
        if table == "flow":
            seen.append((tuple(runs), None if names is None else tuple(names)))
        return read(trace, table, columns, runs, names)

    monkeypatch.setattr(windows, "read", watched)
    monkeypatch.setattr("mptcplab.trace.samples.BATCH_ROWS", rows)
    beside: list[tuple[int, ...]] = []
    results = Results.open(tmp_path)
    summary(results, SimpleNamespace(firsts=(), add=lambda runs: beside.append(tuple(runs))))
    assert list(dict.fromkeys(seen)) == [(runs, part) for runs in batches for part in parts]
    # Once per batch of runs, after all its parts.
    assert beside == batches
    assert results.metrics().sort(ORDER).equals(at_once)


def test_a_part_has_its_own_flows_and_links_and_the_events_of_its_runs(tmp_path: Path) -> None:
    """Five flows and three links in two parts: two flows and a link, and the others."""
    whole = Window(two_runs(tmp_path))
    first, second = whole.parts(2)
    assert [part.flows["flow"].unique().sort().to_list() for part in (first, second)] == [["a", "b"], ["c", "d", "e"]]
    assert [part.links["link"].unique(maintain_order=True).to_list() for part in (first, second)] == [
        ["A"],
        ["B", "A~"],
    ]
    assert first.topologies == whole.topologies
    assert first.link_delta.equals(whole.link_delta.filter(link="A"))
    assert second.subflow_delta.equals(whole.subflow_delta.filter(pl.col("flow").is_in(["c", "d", "e"])))
    one = whole.of_runs([1])
    assert one.flow_delta.equals(whole.flow_delta.filter(run=1))
    assert list(one.topologies) == [1]


def test_many_short_runs_are_measured_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mptcplab.metrics._BATCH_RUNS", 1)
    results = two_runs(tmp_path)
    found = [(frame["metric"][0], frame["run"].unique().to_list()) for frame in pieces(results) if frame.height]
    names = list(dict.fromkeys(name for name, _ in found))
    assert found == [(name, [0]) for name in names] + [(name, [1]) for name in names]
    goodput = values_of(results, "goodput")
    assert set(goodput["metric"]) == {"goodput"}
    assert value(goodput, "goodput", run=0, flow="c") == pytest.approx(8e-6 * 2000)
    assert value(goodput, "goodput", run=1, flow="c") == pytest.approx(8e-6 * 7000)
    assert compute(results).equals(pl.concat(pieces(results)))
    assert summary(results).equals(summarise(compute(results), results.configs))


def test_runs_that_do_not_count_are_not_summarised(tmp_path: Path) -> None:
    both = summary(two_runs(tmp_path / "both")).filter(metric="goodput", flow="c").filter(pl.col("subflow").is_null())
    assert both.select("n", "mean").row(0) == (2, pytest.approx(8e-6 * 4500))
    status = {"status": ("complete", "invalid"), "status_reason": ("", "late")}
    one = summary(two_runs(tmp_path / "one", **status)).filter(metric="goodput", flow="c")
    assert one.filter(pl.col("subflow").is_null()).select("n", "mean").row(0) == (1, pytest.approx(8e-6 * 2000))
    assert two_runs(tmp_path / "again", **status).metrics(["goodput"])["run"].unique().to_list() == [0, 1]


def test_the_samples_that_a_metric_reads_are_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not declared would be read for all runs at once. Here something changes for every metric of changes."""
    down = [{"at_ns": 4 * s.NS, "up": False}, {"at_ns": 5 * s.NS, "up": True}]
    links = [s.link("A", "S", "D", 8, schedule=down), s.link("B", "S", "D", 4)]
    flows = [s.tcp("mp", s.subflow("sf1", "A"), s.subflow("sf2", "B")), s.tcp("gone", s.subflow("p", "A"))]
    event = [{"kind": "flow_started", "flow": name, "t": 0} for name in ("mp", "gone")]
    event.append({"kind": "flow_stopped", "flow": "gone", "t": 6})
    s.write(tmp_path, [s.run_row(0, s.resolved(links, flows, duration_s=9, warmup_s=1))], event=event)
    results = Results.open(tmp_path)
    read: set[str] = set()
    samples, everything = Window.samples, Window.all_samples
    monkeypatch.setattr(Window, "samples", lambda self, table: (read.add(table), samples(self, table))[1])
    monkeypatch.setattr(Window, "all_samples", lambda self, table: (read.add(table), everything(self, table))[1])
    found = {}
    for metric in REGISTRY.values():
        read.clear()
        metric.compute(Window(results))
        found[metric.name] = bool(read)
    assert found == {metric.name: metric.needs_samples for metric in REGISTRY.values()}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("goodputs", "did you mean 'goodput'?"),
        ("xyz", "`mptcplab docs --out reference` lists them in reference/metrics.md"),
    ],
)
def test_an_unknown_metric_is_an_error_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(MptcplabError, match=f"^{re.escape(f'no such metric: {name!r}')}\n\nhint: {re.escape(hint)}$"):
        find(name)
