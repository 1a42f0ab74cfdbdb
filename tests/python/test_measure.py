"""The measurements of a cell that are stored, from hand-made traces."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import synthetic

from mptcplab.results import Results
from mptcplab.study import measure

LINKS = [synthetic.link("A", "S", "D", 8), synthetic.link("B", "S", "D", 4)]
MP = synthetic.tcp("mp", synthetic.subflow("sf1", "A"), synthetic.subflow("sf2", "B"), cc="lia")
TCP = synthetic.tcp("tcp", synthetic.subflow("sf1", "B"), cc="cubic")


def results(directory: Path, runs: list[dict], **tables: list[dict]) -> Results:
    return Results.open(synthetic.write(directory, runs, **tables))


# Values


def rated(tmp_path: Path) -> Results:
    """Two runs of 4 s with 1 s of warm-up, of which the second does not count; the flow's bytes are not linear."""
    scenario = synthetic.resolved(LINKS, [TCP], duration_s=4, warmup_s=1)
    runs = [synthetic.run_row(run, scenario, rep=rep, sample_ms=500) for run, rep in ((3, 0), (4, 5))]
    for row, status in zip(runs, ("complete", "partial"), strict=True):
        row |= {"status": status, "status_reason": "" if status == "complete" else "no space", "seed": 7 + row["rep"]}
    sent = {0: 0, 0.5: 1, 1: 3, 1.5: 6, 2: 10, 2.5: 15, 3: 21, 3.5: 28, 4: 36}
    flow = [
        {"run": run, "t": t, "flow": "tcp", "delivered_bytes": kb * 1000} for run in (3, 4) for t, kb in sent.items()
    ]
    wire = [
        {"run": run, "t": t, "flow": "tcp", "subflow": "sf1", "rx_wire_bytes": kb * 1100, "rx_pkts": kb}
        for run in (3, 4)
        for t, kb in sent.items()
    ]
    link = [
        {"run": run, "t": t, "link": "B", "arrived_pkts": kb, "dropped_queue_pkts": kb // 4}
        for run in (3, 4)
        for t, kb in sent.items()
    ]
    return results(tmp_path / "rated", runs, flow=flow, subflow=wire, link=link)


def test_values_are_those_of_the_whole_window_and_of_every_span(tmp_path: Path) -> None:
    found = measure.metric_values(rated(tmp_path), ["goodput"], [("bin 0", 0.5, 1.5), ("phase 1", 2.5, 4.0)])
    assert found.columns == ["run", *measure.VALUE_COLUMNS]
    rows = found.filter(pl.col("subflow").is_null(), metric="goodput", run=3).sort("span")
    assert rows["rep"].to_list() == [0, 0, 0]
    # In Mbit/s: 33 kB in the 3 s after the warm-up, 5 kB in 1 s, 21 kB in 1.5 s.
    expected = {"": 33 * 8 / 3e3, "bin 0": 5 * 8 / 1e3, "phase 1": 21 * 8 / 1.5e3}
    assert dict(rows.select("span", "value").iter_rows()) == pytest.approx(expected)


def test_a_run_that_does_not_count_has_rows_without_values(tmp_path: Path) -> None:
    found = measure.metric_values(rated(tmp_path), ["goodput"], [("bin 0", 0.5, 1.5)])
    rows = found.filter(pl.col("subflow").is_null(), metric="goodput", run=4).sort("span")
    assert rows.select("span", "rep", "flow", "value").rows() == [("", 5, "tcp", None), ("bin 0", 5, "tcp", None)]


def test_throughput_goodput_and_loss_are_measured_of_a_span_whatever_is_asked_of_the_window(tmp_path: Path) -> None:
    found = measure.metric_values(rated(tmp_path), ["pps"], [("bin 0", 0.5, 1.5)])
    assert set(found.filter(span="bin 0")["metric"]) == {"throughput", "goodput", "loss"}
    assert set(found.filter(span="")["metric"]) == {"pps"}


# Time series


def sampled(t: float, flow: str, subflow: str, cwnd: int, srtt_us: int | None, received: int, run: int = 0) -> dict:
    counters = {"cwnd_pkts": cwnd, "srtt_us": srtt_us, "rx_wire_bytes": received}
    return {"run": run, "t": t, "flow": flow, "subflow": subflow, **counters}


def test_a_time_series_has_a_point_per_sample_of_every_subflow(tmp_path: Path) -> None:
    """A sample of 1 s is longer than a four-hundredth of 4 s."""
    scenario = synthetic.resolved(LINKS, [MP, TCP], duration_s=4)
    rows = [
        # Those of another run, and an order that the trace need not have.
        sampled(1, "mp", "sf1", 99, 99_000, 99_000, run=6),
        sampled(1, "tcp", "sf1", 30, 21_000, 500_000),
        sampled(0, "tcp", "sf1", 20, None, 0),
        sampled(0, "mp", "sf2", 4, 15_000, 1_000),
        sampled(1, "mp", "sf2", 6, 17_500, 251_000),
        sampled(0, "mp", "sf1", 10, 12_000, 0),
        sampled(1, "mp", "sf1", 12, 13_000, 125_000),
        sampled(2, "mp", "sf1", 15, 14_000, 500_000),
    ]
    runs = [synthetic.run_row(run, scenario, sample_ms=ms) for run, ms in ((0, 1000), (6, 250))]
    found = measure.time_series(results(tmp_path, runs, subflow=rows), 0)
    assert found.columns == ["t_s", "flow", "subflow", "cwnd", "srtt", "throughput"]
    # ms, and Mbit/s of the bytes since the point before: 1 kB at once, then 125, 375, 250 and 500 kB in 1 s.
    expected = [
        (0.0, "mp", "sf1", 10.0, 12.0, 0.0),
        (1.0, "mp", "sf1", 12.0, 13.0, 1.0),
        (2.0, "mp", "sf1", 15.0, 14.0, 3.0),
        (0.0, "mp", "sf2", 4.0, 15.0, 0.008),
        (1.0, "mp", "sf2", 6.0, 17.5, 2.0),
        (0.0, "tcp", "sf1", 20.0, None, 0.0),
        (1.0, "tcp", "sf1", 30.0, 21.0, 4.0),
    ]
    assert [row[1:3] for row in found.rows()] == [row[1:3] for row in expected]
    for row, wanted in zip(found.rows(), expected, strict=True):
        assert row[:1] + row[3:] == pytest.approx(wanted[:1] + wanted[3:])


@pytest.mark.parametrize(
    ("sample_ms", "step_s"),
    # A four-hundredth of the run, where samples are closer together or where there is no interval of samples.
    [(1000, 3.0), (None, 3.0), (3500, 3.5)],
)
def test_a_long_time_series_has_the_mean_of_the_samples_around_each_of_400_points(
    tmp_path: Path, sample_ms: float | None, step_s: float
) -> None:
    """Of 1200 s and 100 ns, a four-hundredth is a whole number of ns: a sample at 3 s is in the second step."""
    scenario = synthetic.resolved(LINKS, [TCP], duration_s=1200.0000001)
    # Three in the first step, two in the second, of which one exactly at its begin, none in the third.
    rows = [
        sampled(0.0, "tcp", "sf1", 10, 1000, 0),
        sampled(1.0, "tcp", "sf1", 20, 2000, 100_000),
        sampled(2.5, "tcp", "sf1", 60, 6000, 375_000),
        sampled(step_s, "tcp", "sf1", 7, 5000, 400_000),
        sampled(5.5, "tcp", "sf1", 8, 6000, 750_000),
        sampled(11.0, "tcp", "sf1", 9, 4000, 1_500_000),
    ]
    run = synthetic.run_row(0, scenario, sample_ms=sample_ms)
    found = measure.time_series(results(tmp_path, [run], subflow=rows), 0)
    assert found["t_s"].to_list() == pytest.approx([0.0, step_s, 3 * step_s])
    assert found["cwnd"].to_list() == pytest.approx([30.0, 7.5, 9.0])
    assert found["srtt"].to_list() == pytest.approx([3.0, 5.5, 4.0])
    # What arrived by the last sample of each point, less what had by that of the point before, over the time between
    # these samples: 375 kB in 2.5 s, 375 kB in 3 s and 750 kB in 5.5 s.
    assert found["throughput"].to_list() == pytest.approx([1.2, 1.0, 6 / 5.5])


@pytest.mark.parametrize(
    ("duration_s", "sample_ms", "points"),
    [
        # Steps of 30 ms: before, the last point had one of three samples and a third of the throughput.
        (12, 10, 401),
        # Steps of 250 ms: before, points with three and with two samples alternated.
        (100, 100, 401),
    ],
)
def test_a_constant_throughput_is_the_same_at_all_points(
    tmp_path: Path, duration_s: float, sample_ms: float, points: int
) -> None:
    """10 and 4 kB per sample."""
    rows = [
        sampled(number * sample_ms / 1e3, *names, 9, 8_000, number * size)
        for number in range(round(duration_s * 1e3 / sample_ms) + 1)
        for names, size in ((("mp", "sf1"), 10_000), (("mp", "sf2"), 4_000))
    ]
    run = synthetic.run_row(0, synthetic.resolved(LINKS, [MP], duration_s=duration_s), sample_ms=sample_ms)
    found = measure.time_series(results(tmp_path, [run], subflow=rows), 0)
    for name, size in (("sf1", 10_000), ("sf2", 4_000)):
        throughput = found.filter(subflow=name)["throughput"].to_list()
        assert throughput == pytest.approx([8 * size / (1e3 * sample_ms)] * points)


# Records


def test_a_record_says_what_ran_and_why_runs_of_its_own_do_not_count(tmp_path: Path) -> None:
    scenario = synthetic.resolved(LINKS, [MP], duration_s=4)
    runs = [
        synthetic.run_row(run, scenario, cc=cc, rep=rep)
        for run, cc, rep in ((0, "lia", 0), (1, "lia", 1), (2, "olia", 0))
    ]
    for row, status in zip(runs, ("partial", "complete", "invalid"), strict=True):
        row |= {"seed": 20 + row["run"], "status": status, "status_reason": f"reason {row['run']}"}
        row |= {"scheduler": None, "profile": ("rfc", "linux-acked", "linux-legacy")[row["run"]]}
    runs[2]["scheduler"] = json.dumps([{"flow": "mp", "scheduler": "minrtt"}])
    found = results(tmp_path, runs)

    first = measure.record(found, range(2))
    assert list(first) == [
        *("engine", "engine_version", "build", "profile", "seed", "scenario"),
        *("subflow_cc", "scheduler", "problems"),
    ]
    assert (first["engine"], first["engine_version"], first["build"]) == ("sim", "0.1.0", "test")
    assert (first["seed"], first["profile"], first["scenario"], first["scheduler"]) == (20, "rfc", "synthetic", None)
    assert [(one["subflow"], one["cc"]) for one in first["subflow_cc"]] == [("sf1", "lia"), ("sf2", "lia")]
    assert first["problems"] == ["lia, repetition 1 (sim) is partial and not counted: reason 0"]

    last = measure.record(found, [2])
    assert (last["seed"], last["scheduler"]) == (22, [{"flow": "mp", "scheduler": "minrtt"}])
    assert last["problems"] == ["olia, repetition 1 (sim) is invalid and not counted: reason 2"]
    assert measure.record(found, [1])["problems"] == []
