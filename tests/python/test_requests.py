"""Requests and messages on lasting connections: their metrics worked by hand, figures, and what refuses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import synthetic as s

import mptcplab
from mptcplab.errors import MptcplabError
from mptcplab.report.request_figures import request_data
from mptcplab.results import Results

LINKS = [s.link("A", "S", "D", 8), s.link("A~", "D", "S", 8)]
PAUSE = {"think_ns": s.NS, "count": None}
RPC = {"requests": {"request": 400, "response": 5000, "bound_ns": 150_000_000, **PAUSE}}
WEB = {"requests": {"request": 300, "response": {"law": "pareto", "mean_bytes": 9000}, "bound_ns": None, **PAUSE}}
ECHO = {"messages": {"size": 60, "answer": 80, "interval_ns": s.NS, "count": None, "bound_ns": 100_000_000}}


def took(flow: str, number: int, t: float, ms: float | None) -> dict[str, Any]:
    done = None if ms is None else round(ms * 1e6)
    return {"flow": flow, "request": number, "t": t, "completion_ns": done, "response_bytes": 7}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Three flows, 20 s with 4 s of warm-up; the first stops at 16 s."""
    flows = [
        s.tcp("rpc", s.subflow("sf1", "A"), traffic=RPC, stop_ns=16 * s.NS),
        s.tcp("web", s.subflow("sf1", "A"), traffic=WEB),
        s.tcp("ssh", s.subflow("sf1", "A"), traffic=ECHO),
        s.tcp("bulk", s.subflow("sf1", "A"), cc="lia"),
    ]
    scenario = s.resolved(LINKS, flows, duration_s=20, warmup_s=4)
    times = [float(t) for t in range(21)]
    flow = [{"flow": f["name"], "t": t, "delivered_bytes": round(1000 * t)} for f in flows for t in times]
    subflow = [{"flow": f["name"], "subflow": "sf1", "t": t} for f in flows for t in times]
    request = [
        took("rpc", 0, 3.5, 900),  # sent before the window
        took("rpc", 1, 4, 100),
        took("rpc", 2, 8, 400),
        took("rpc", 3, 15.5, 200),
        took("rpc", 4, 15.95, None),
        took("web", 0, 5, 30),
        took("web", 1, 19.9, None),
        took("ssh", 0, 3, 40),  # delivered at 3.04 s, before the window
        took("ssh", 1, 5, 100),  # exactly the bound, so that it is not late
        took("ssh", 2, 6, 1070),  # 7.07 s
        took("ssh", 3, 7, 75),
        took("ssh", 4, 19.95, None),
    ]
    directory = s.write(tmp_path / "r", [s.run_row(0, scenario)], flow=flow, subflow=subflow, request=request)
    return Results.open(directory)


def of(frame: pl.DataFrame, metric: str, flow: str | None) -> list[float]:
    chosen = frame.filter(pl.col("metric") == metric, pl.col("flow").eq_missing(pl.lit(flow)))
    return chosen["value"].to_list()


def test_requests_count_by_when_they_were_sent(results: Results) -> None:
    # 100, 400 and 200 ms; between the last two lies the 95th percentile, 200 + 0.9 x 200.
    expected = {"requests": 3, "requests_open": 1, "response_p50": 200, "response_p95": 380, "response_p99": 396}
    # 400 and 200 ms are longer than 150 ms, and so is what was outstanding at the end: 20 - 15.95 s.
    expected |= {"response_mean": 700 / 3, "response_max": 400, "response_late": 75}
    metrics = results.metrics()
    for name, value in expected.items():
        assert of(metrics, name, "rpc") == [pytest.approx(value)], name
        for other in ("ssh", "bulk", None):
            assert of(metrics, name, other) == [], name
    # A flow without a bound has no late responses.
    assert of(metrics, "response_late", "web") == []
    assert of(metrics, "response_p50", "web") == [30]


def test_messages_have_delays_and_gaps(results: Results) -> None:
    # Sent in the window: 100, 1070, 75 ms, and one that is outstanding for less than the bound.
    expected = {
        "messages": 3,
        "messages_open": 1,
        "message_p50": 100,
        "message_p95": 973,
        "message_p99": 1050.6,
        "message_max": 1070,
        "message_late": 100 / 3,
    }
    # From 7.075 s to the end, because a message was outstanding then.
    expected |= {"message_mean": 1245 / 3, "message_gap": 12_925}
    metrics = results.metrics()
    for name, value in expected.items():
        assert of(metrics, name, "ssh") == [pytest.approx(value)], name
        for other in ("rpc", "web", "bulk", None):
            assert of(metrics, name, other) == [], name


def test_the_longest_gap_is_between_deliveries_where_nothing_is_outstanding(tmp_path: Path) -> None:
    scenario = s.resolved(LINKS, [s.tcp("ssh", s.subflow("sf1", "A"), traffic=ECHO)], duration_s=20, warmup_s=4)
    request = [took("ssh", n, t, 40) for n, t in enumerate((1, 4.5, 5, 5.25, 7.75, 8))]
    results = Results.open(s.write(tmp_path / "r", [s.run_row(0, scenario)], request=request))
    # From 1.04 s to 4.54 s, which lies in the window, and not from 8.04 s on.
    assert of(results.metrics(["message_gap"]), "message_gap", "ssh") == [3500]


def test_what_is_outstanding_for_exactly_its_bound_is_not_late(tmp_path: Path) -> None:
    scenario = s.resolved(LINKS, [s.tcp("rpc", s.subflow("sf1", "A"), traffic=RPC)], duration_s=19, warmup_s=4)
    request = [took("rpc", 0, 5, 100), took("rpc", 1, 18.85, None)]
    results = Results.open(s.write(tmp_path / "r", [s.run_row(0, scenario)], request=request))
    assert of(results.metrics(["response_late"]), "response_late", "rpc") == [0]


def test_a_trace_without_requests_has_an_empty_table(tmp_path: Path) -> None:
    scenario = s.resolved(LINKS, [s.tcp("bulk", s.subflow("sf1", "A"))], duration_s=9)
    results = Results.open(s.write(tmp_path / "r", [s.run_row(0, scenario)]))
    assert results.requests.is_empty()
    assert results.requests.columns[:4] == ["run", "t_ns", "flow", "request"]
    assert results.requests.schema["completion_ns"] == pl.UInt64
    assert request_data(results) == []
    with pytest.raises(MptcplabError, match="no messages were completed"):
        results.plot.response_times("messages")
    # It said that a flow had them with a traffic that there is not.
    with pytest.raises(MptcplabError, match="no such kind: 'message'\n\nhint: one of requests, messages"):
        results.plot.response_times("message")  # type: ignore[arg-type]


def test_a_configuration_in_which_nothing_completed_is_named(tmp_path: Path) -> None:
    scenario = s.resolved(LINKS, [s.tcp("rpc", s.subflow("sf1", "A"), traffic=RPC)], duration_s=20, warmup_s=4)
    runs = [s.run_row(run, scenario) | {"axes": json.dumps({"links.A.rate": rate})} for run, rate in enumerate("12")]
    # One of them was sent before the warm-up had ended.
    request = [
        {**took("rpc", n, t, None if run else 100), "run": run} for run in (0, 1) for n, t in enumerate((3, 5, 6))
    ]
    [data] = request_data(Results.open(s.write(tmp_path / "r", runs, request=request)))
    assert [one.config for one in data.times] == ["lia, links.A.rate = 1"]
    assert data.notes == ("lia, links.A.rate = 2: none of the 2 requests of rpc completed",)


def test_the_curves_end_where_outstanding_requests_are_missing(results: Results) -> None:
    requests, messages = request_data(results)
    assert [(one.flow, one.outstanding) for one in requests.times] == [("rpc", 1), ("web", 1)]
    assert requests.times[0].sorted_ms.tolist() == [100, 200, 400]
    assert (requests.bounds_ms, messages.bounds_ms) == ({"rpc": 150}, {"ssh": 100})
    curve = results.plot.response_times().axes[0].lines[0]
    assert curve.get_xdata().tolist() == [100, 100, 200, 400]
    assert curve.get_ydata().tolist() == [0, 0.25, 0.5, 0.75]
    # Over time, requests before the window are there, in the shaded part.
    points = results.plot.response_times(over_time=True).axes[0].lines[-1]
    assert points.get_xdata().tolist() == [3.5, 4, 8, 15.5]


SCENARIO = """
duration = "6 s"
warmup = "1 s"
[links.a]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "8 ms"
[links.b]
from = "S"
to = "D"
rate = "6 Mbit/s"
delay = "45 ms"
[flows.page]
paths = [["a"], ["b"]]
traffic = { requests = { response = "40 kB", think = "120 ms", bound = "90 ms" } }
[flows.game]
path = ["a"]
traffic = { messages = { size = "150 bytes", interval = "33 ms" } }
"""


def test_a_run_has_its_requests_in_the_table_the_report_and_the_figures(tmp_path: Path) -> None:
    file = tmp_path / "page.toml"
    file.write_text(SCENARIO)
    results = mptcplab.run(file, cc="lia,olia", reps=2, out=tmp_path / "out")
    assert (tmp_path / "out/request.parquet").is_file()
    assert set(results.requests["flow"].cast(pl.String)) == {"page", "game"}
    summary = results.summary().filter(pl.col("metric").is_in(["response_p95", "message_gap"]))
    assert summary.drop_nulls("mean").height == 4
    page = results.report().read_text(encoding="utf-8")
    assert "Response time: distribution" in page and "Message delay over time" in page
    figures = {path.name for path in (tmp_path / "out/figures").iterdir()}
    assert {"response-time.svg", "message-delay-over-time.png"} <= figures
    # Byte for byte the same again.
    again = mptcplab.run(file, cc="lia,olia", reps=2, out=tmp_path / "again", jobs=1)
    first, second = (one.directory / "request.parquet" for one in (results, again))
    assert first.read_bytes() == second.read_bytes()


def test_engines_and_transports_without_requests_refuse_them(tmp_path: Path) -> None:
    file = tmp_path / "page.toml"
    file.write_text(SCENARIO)
    with pytest.raises(MptcplabError, match="requests: the equations are those of flows that always have data"):
        mptcplab.run(file, cc="lia", engine="fluid", out=tmp_path / "fluid")
    sctp = SCENARIO.replace("[flows.page]", '[flows.page]\ntransport = "cmt-sctp"')
    file.write_text(sctp)
    with pytest.raises(MptcplabError, match="an SCTP flow is bulk or has a size"):
        mptcplab.run(file, out=tmp_path / "sctp")
