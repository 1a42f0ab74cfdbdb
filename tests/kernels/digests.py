"""What one short run gives on each of Debian's kernels, to the byte: recorded in digests.json, compared by the tests.

    .venv/bin/python tests/kernels/digests.py [SUITE...]     record what this build gives; without SUITE, the matrix

A record is kept per package of the kernel. The bytes also depend on the program in the machine and on QEMU, so they
are compared where both are those of the record; the numbers are compared in any case, within a tolerance if one of
the two has changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
from run import HERE, MATRIX, exit_with, run_one

from mptcplab import errors
from mptcplab.engines import kernel as engine
from mptcplab.engines.vm import kernels, machine

RECORDS = HERE / "digests.json"
COMMAND = ".venv/bin/python tests/kernels/digests.py"
SEED = 11
PATIENCE_S = 900.0
OVERRIDES = {"cc": ["lia"], "duration": "3 s", "set": [["flows.transfer.traffic.size", '"2 MB"']]}
# A different program sends at slightly different times, and a few losses more or fewer follow from that.
TOLERANCE = 0.15
# The run table names versions, and digests.json has those that matter.
TABLES = ("event", "flow", "link", "subflow", "transfer")


@dataclass(frozen=True)
class Record:
    """What a run gave."""

    suite: str
    # Name and version of the kernel's package.
    package: str
    # SHA-256 of the program that ran in the machine.
    program: str
    emulator: str
    # SHA-256 of each table, by its name.
    tables: Mapping[str, str]
    numbers: Mapping[str, float]


def stored() -> dict[str, Record]:
    """The records, by package."""
    return {entry["package"]: Record(**entry) for entry in json.loads(RECORDS.read_text())} if RECORDS.is_file() else {}


def measured(suite: str) -> Record:
    """What this build gives on the present kernel of a suite."""
    kernel = kernels.find(f"vm:{suite}")
    words = ("run", "--in-machine", "--scenario", "/job/two-paths.toml", "--overrides", json.dumps(OVERRIDES))
    files = {"two-paths.toml": (HERE / "two-paths.toml").read_bytes()}
    job = machine.Job((*words, "--out", "/out/trace"), files, SEED, PATIENCE_S)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        outcome = run_one(job, out, kernel)
        if outcome.code != 0:
            raise errors.EngineError(f"{kernel.package}: {outcome.stderr}")
        paths = {table: out / "trace" / "000001" / f"{table}.parquet" for table in TABLES}
        tables = {table: hashlib.sha256(path.read_bytes()).hexdigest() for table, path in paths.items()}
        numbers = numbers_of({table: pl.read_parquet(path) for table, path in paths.items()})
    digest = hashlib.sha256(engine.program().read_bytes()).hexdigest()
    return Record(suite, kernel.package, digest, machine.versions(), tables, numbers)


def numbers_of(tables: Mapping[str, pl.DataFrame]) -> dict[str, float]:
    """What a person would compare: when the transfer ended, and what its subflows did."""
    events = tables["event"].filter(pl.col("kind").cast(pl.String) == "flow_completed")
    numbers: dict[str, float] = {}
    if events.height:
        numbers["completed_ms"] = round(events["t_ns"].item(0) / 1e6, 3)
    rows = tables["subflow"].with_columns(pl.col("subflow").cast(pl.String)).sort("t_ns")
    last = rows.group_by("subflow", maintain_order=True).agg(
        pl.col("sent_pkts", "retx_pkts", "loss_events", "rx_payload_bytes").max(), pl.col("srtt_us").mean().round(1)
    )
    for row in last.sort("subflow").iter_rows(named=True):
        name = row.pop("subflow")
        numbers |= {f"{name}.{column}": value for column, value in row.items()}
    return numbers


def differences(before: Record, now: Record) -> list[str]:
    """What is not as recorded; for another program or QEMU, only what is beyond the tolerance."""
    same = (before.program, before.emulator) == (now.program, now.emulator)
    changed = []
    for name in sorted({*before.numbers, *now.numbers}):
        old, new = before.numbers.get(name), now.numbers.get(name)
        # Counts of losses are small.
        allowed = 0.0 if same else max(TOLERANCE * abs(old or 0.0), 12.0)
        if old is None or new is None or abs(new - old) > allowed:
            changed.append(f"{name}: {old} -> {new}")
    if same:
        tables = [table for table in TABLES if before.tables.get(table) != now.tables[table]]
        changed += [f"the table {table} has other bytes" for table in tables]
    return changed


def main(suites: list[str]) -> int:
    """Record what this build gives."""
    records = stored()
    for suite in suites or list(MATRIX):
        record = measured(suite)
        before = records.get(record.package)
        said = differences(before, record) if before else ["new"]
        print(f"{record.package}: {'; '.join(said) or 'as before'}")
        records[record.package] = record
        entries = [asdict(one) for _, one in sorted(records.items())]
        RECORDS.write_text(json.dumps(entries, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1:]))
