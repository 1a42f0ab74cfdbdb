"""The golden numbers, which the simulator's test makes in a debug build, are those of the package and its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT

from mptcplab import _core

GOLDEN = ROOT / "tests" / "golden"
# Sums over a flow's subflows of the counters' last values.
COUNTERS = ("sent_pkts", "retx_pkts", "lost_pkts", "loss_events", "ecn_events", "rto_count", "undo_count")


def cases() -> dict[str, tuple[str, list[list[str]]]]:
    """Scenario and overrides of every case."""
    found: dict[str, tuple[str, list[list[str]]]] = {}
    name = ""
    for line in (GOLDEN / "cases.txt").read_text().splitlines():
        if line.startswith("case "):
            _, name, file = line.split(" ")
            found[name] = (file, [])
        elif line.strip() and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[name][1].append([key.strip(), value.strip()])
    return found


def accepted() -> dict[str, dict[str, int]]:
    """The accepted numbers of every case, without digests."""
    found: dict[str, dict[str, int]] = {}
    for line in (GOLDEN / "numbers.txt").read_text().splitlines():
        case, key, value = line.split(" ")
        if not key.startswith("digest."):
            found.setdefault(case, {})[key] = int(value)
    return found


def measured(directory: Path) -> Iterator[tuple[str, int]]:
    """The numbers of the first run of a trace that the files have as well."""
    flow, subflow = (pl.read_parquet(directory / f"{table}.parquet") for table in ("flow", "subflow"))
    for (name,), rows in flow.group_by("flow", maintain_order=True):
        yield f"{name}.delivered_bytes", rows["delivered_bytes"][-1]
    last = subflow.group_by("flow", "subflow", maintain_order=True).last()
    for (name,), rows in last.group_by("flow", maintain_order=True):
        for counter in COUNTERS:
            yield f"{name}.{counter}", int(rows[counter].fill_null(0).sum())


def test_there_are_thirty_cases_and_each_has_numbers() -> None:
    assert len(cases()) >= 30
    assert set(cases()) == set(accepted())


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_package_has_the_golden_numbers_with_any_number_of_jobs(tmp_path: Path, jobs: int) -> None:
    wanted = accepted()
    for name, (file, settings) in cases().items():
        path = GOLDEN / file if (GOLDEN / file).exists() else ROOT / file
        out = tmp_path / name
        # With one job the first run alone, as in the simulator's test; with two all of a sweep.
        _core.run(path, out, json.dumps({"set": settings}), jobs, None, [0] if jobs == 1 else None)
        first = tmp_path / f"{name}-first"
        first.mkdir()
        for table in ("flow", "subflow"):
            rows = pl.concat(pl.read_parquet(trace / f"{table}.parquet") for trace in sorted(out.iterdir()))
            rows.filter(pl.col("run") == 0).write_parquet(first / f"{table}.parquet")
        found = dict(measured(first))
        assert found, name
        assert found == {key: wanted[name][key] for key in found}, f"{name}: make golden"
