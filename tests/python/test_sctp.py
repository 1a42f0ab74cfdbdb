"""CMT-SCTP in traces, metrics and report: an association is a flow, a destination a subflow."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import mptcplab

SCENARIO = Path(__file__).parents[2] / "scenarios" / "cmt-sctp-against-mptcp.toml"


def test_an_uncoupled_association_takes_more_from_tcp_than_a_coupled_connection() -> None:
    results = mptcplab.run(SCENARIO, reps=2, duration="90 s")
    goodput = results.summary().filter(pl.col("subflow").is_null(), metric="goodput")
    mean = {(row["config"], row["flow"]): row["mean"] for row in goodput.iter_rows(named=True)}
    mptcp, sctp = goodput["config"].unique(maintain_order=True)
    assert "cmt-sctp" in sctp and "cmt-sctp" not in mptcp
    # Two Reno flows against one should get two thirds of 1.5 Mbit/s, LIA half.
    assert mean[sctp, "mp"] > 1.15 * mean[mptcp, "mp"]
    assert mean[sctp, "tcp"] < mean[mptcp, "tcp"]
    assert results.runs.filter(pl.col("subflow_cc").str.contains('"cc":"cmt-sctp"')).height == 2


def test_the_report_names_the_transport_and_its_destinations(tmp_path: Path) -> None:
    transport = {"flows.mp.transport": '"cmt-sctp"'}
    results = mptcplab.run(SCENARIO, reps=1, duration="30 s", settings=transport, out=tmp_path / "out")
    page = results.report(figures=False).read_text()
    assert "CMT-SCTP, bulk, base RTT 60 ms" in page
    assert "CMT-SCTP, bulk, base RTT 66 ms" in page
    windows = results.subflow.filter(flow="mp", subflow="sf2")["cwnd_pkts"]
    assert windows.max() > windows.min() > 0
