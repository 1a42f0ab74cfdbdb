"""The goodput that the operators' page gives for three networks is what its command gives."""

from __future__ import annotations

import re

import polars as pl
import pytest
from conftest import ROOT

import mptcplab

PAGE = ROOT / "docs" / "operators.md"
ALGORITHMS = ("cubic", "reno", "lia", "olia")
LOSSY = {"links.p2.loss": "1 %"}

Goodput = dict[tuple[str, str, str | None], float]


def goodput(name: str, settings: dict[str, str] | None = None) -> Goodput:
    """Mean goodput in Mbit/s by algorithm, flow and subflow (None: of the whole flow)."""
    results = mptcplab.run(name, cc=list(ALGORITHMS), settings=settings)
    values = results.metrics().filter(pl.col("metric") == "goodput")
    means = values.group_by("cc", "flow", "subflow").agg(pl.col("value").mean())
    return {(cc, flow, subflow): mean for cc, flow, subflow, mean in means.rows()}


def table(header: str) -> dict[str, tuple[float, float]]:
    """The two numbers of each algorithm in the table with this header."""
    rows = PAGE.read_text().partition(header)[2].partition("\n\n")[0]
    found = re.findall(r"^\| `(\w+)` \| ([\d.]+) Mbit/s \| ([\d.]+) Mbit/s \|$", rows, re.M)
    assert tuple(cc for cc, _, _ in found) == ALGORITHMS, header
    return {cc: (float(first), float(second)) for cc, first, second in found}


def test_shared_bottleneck() -> None:
    measured = goodput("shared-bottleneck-fairness")
    for cc, said in table("| Both subflows run | MPTCP gets | TCP gets |\n").items():
        assert said == pytest.approx((measured[cc, "mp", None], measured[cc, "tcp", None]), abs=0.051), cc


def test_lossy_path() -> None:
    measured = goodput("disjoint-paths-aggregate", LOSSY)
    for cc, said in table("| Both subflows run | clean path | lossy path |\n").items():
        assert said == pytest.approx((measured[cc, "mp", "sf1"], measured[cc, "mp", "sf2"]), abs=0.051), cc


def test_private_paths() -> None:
    said = re.search(r"`cubic` gets ([\d.]+)\s+Mbit/s, and the other three get ([\d.]+)\s+Mbit/s", PAGE.read_text())
    assert said is not None
    measured = goodput("disjoint-paths-aggregate")
    for cc in ALGORITHMS:
        assert float(said[1 if cc == "cubic" else 2]) == pytest.approx(measured[cc, "mp", None], abs=0.051), cc
