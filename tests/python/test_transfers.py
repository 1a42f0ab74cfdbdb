"""Metrics of short transfers and video, worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import synthetic as s

from mptcplab.metrics import REGISTRY
from mptcplab.results import Results

LINKS = [s.link("A", "S", "D", 8), s.link("A~", "D", "S", 8)]
POISSON = {"size": 5000, "arrivals": {"levels": [{"per_s": 2.0, "lasts_ns": None}]}}
VIDEO = {"video": {"ladder_bps": [1_000_000, 2_000_000, 4_000_000]}}


def took(flow: str, number: int, t: float, seconds: float | None, **more: Any) -> dict[str, Any]:
    done = None if seconds is None else round(seconds * 1e9)
    return {"flow": flow, "transfer": number, "t": t, "completion_ns": done, **more}


def chunk(number: int, t: float, seconds: float | None, mbps: int, stall_s: float | None = 0) -> dict[str, Any]:
    stall = None if stall_s is None else round(stall_s * 1e9)
    return took("tv", number, t, seconds, media_bps=mbps * 1_000_000, stall_ns=stall)


@pytest.fixture
def metrics(tmp_path: Path) -> pl.DataFrame:
    """Transfers, a video and two bulk flows, 20 s with 4 s of warm-up; the transfers stop at 16 s."""
    flows = [
        s.tcp("web", s.subflow("sf1", "A"), traffic=POISSON, stop_ns=16 * s.NS),
        s.tcp("tv", s.subflow("sf1", "A"), traffic=VIDEO, start_ns=s.NS),
        s.tcp("one", s.subflow("sf1", "A"), cc="lia"),
        s.tcp("two", s.subflow("sf1", "A"), cc="lia"),
    ]
    scenario = s.resolved(LINKS, flows, duration_s=20, warmup_s=4)
    times = [float(t) for t in range(21)]
    growth = {"web": 10_000, "tv": 20_000, "one": 30_000, "two": 30_000}
    subflow = [
        {"flow": flow, "subflow": "sf1", "t": t, "rx_wire_bytes": round(rate * t)}
        for flow, rate in growth.items()
        for t in times
    ]
    flow = [{"flow": name, "t": t, "delivered_bytes": round(rate * t)} for name, rate in growth.items() for t in times]
    transfer = [
        took("web", 0, 3.5, 9),  # began before the window
        took("web", 1, 4, 0.1),
        took("web", 2, 8, 0.4),
        took("web", 3, 11, None),
        took("web", 4, 15.5, 0.2),
        chunk(0, 1.25, 0.5, 4),  # complete before the window, at another rate than the next
        chunk(1, 3.5, 1, 1, 0.25),
        chunk(2, 5, 2, 2),
        chunk(3, 9, 3, 2, 1.5),
        chunk(4, 14, 1, 1),
        chunk(5, 19.5, None, 4, None),
    ]
    event = [{"kind": "flow_started", "flow": "tv", "t": 1.0}, {"kind": "flow_started", "flow": "web", "t": 0.0}]
    run = s.run_row(0, scenario)
    directory = s.write(tmp_path / "r", [run], flow=flow, subflow=subflow, event=event, transfer=transfer)
    return Results.open(directory).metrics()


def of(frame: pl.DataFrame, metric: str, flow: str | None) -> list[float]:
    chosen = frame.filter(pl.col("metric") == metric, pl.col("flow").eq_missing(pl.lit(flow)))
    return chosen["value"].to_list()


def test_transfers_count_by_when_they_began(metrics: pl.DataFrame) -> None:
    # 0.1, 0.4 and 0.2 s; between them lies the 95th percentile 0.2 + 0.9 x 0.2.
    expected = {"transfers": 3, "transfers_open": 1, "transfer_p50": 0.2, "transfer_p95": 0.38, "transfer_p99": 0.396}
    expected["transfer_mean"] = 0.7 / 3
    for name, value in expected.items():
        assert of(metrics, name, "web") == [pytest.approx(value)], name
        for other in ("tv", "one", "two", None):
            assert of(metrics, name, other) == [], name


def test_what_did_not_happen_in_a_run_counts_as_none(tmp_path: Path) -> None:
    """Of two runs, the second has no transfer and no chunk in the window: a mean over both counts it."""
    flows = [
        s.tcp("web", s.subflow("sf1", "A"), traffic=POISSON),
        s.tcp("tv", s.subflow("sf1", "A"), traffic=VIDEO),
        s.tcp("late", s.subflow("sf1", "A"), traffic=POISSON, stop_ns=3 * s.NS),
    ]
    scenario = s.resolved(LINKS, flows, duration_s=20, warmup_s=4)
    runs = [s.run_row(number, scenario) for number in range(2)]
    transfer = [{**row, "run": 0} for row in (took("web", 0, 5, 0.1), chunk(0, 6, 1, 1, 0.5))]
    transfer.append({**took("web", 0, 1, 0.2), "run": 1})
    flow = [{"run": run, "flow": name, "t": 0.0} for run in range(2) for name in ("web", "tv", "late")]
    found = Results.open(s.write(tmp_path / "r", runs, flow=flow, transfer=transfer)).metrics()
    for name, values in {"transfers": [1, 0], "transfers_open": [0, 0], "transfer_mean": [0.1]}.items():
        assert of(found, name, "web") == values, name
    for name, values in {"stalls": [1, 0], "stall_time": [0.5, 0.0], "switches": [0, 0], "media_rate": [1.0]}.items():
        assert of(found, name, "tv") == values, name
    # It was over before the window.
    assert of(found, "transfers", "late") == []


def test_a_video_is_measured_by_the_chunks_that_arrived_in_the_window(metrics: pl.DataFrame) -> None:
    # Chunks 1 to 4, complete at 4.5, 7, 12 and 15 s.
    expected = {"media_rate": 1.5, "switches": 3, "stalls": 2, "stall_time": 1.75, "startup_delay": 0.75}
    for name, value in expected.items():
        assert of(metrics, name, "tv") == [pytest.approx(value)], name
        for other in ("web", "one", "two", None):
            assert of(metrics, name, other) == [], name


def test_there_is_no_fair_share_beside_traffic_that_does_not_use_all_capacity(metrics: pl.DataFrame) -> None:
    for name in ("ideal", "ratio", "jain_weighted"):
        assert all(value is None for value in metrics.filter(metric=name)["value"]), name
    # Jain's index over the two bulk flows only, which are equal.
    assert of(metrics, "jain", None) == [pytest.approx(1.0)]


def test_tables_show_a_tenth_of_a_millisecond_of_every_time_to_completion() -> None:
    """The median of short transfers in a data centre was 0.003 s, with an interval of 0.000 s."""
    prefixes = ("transfer_", "response_", "message_")
    found = [one for name, one in REGISTRY.items() if name == "ftt" or (name.startswith(prefixes) and one.unit != "%")]
    assert len(found) == 16
    smallest_us = {"s": 10**6, "ms": 10**3}
    assert {smallest_us[one.unit] // 10**one.digits for one in found} == {100}
