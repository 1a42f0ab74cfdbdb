#!/usr/bin/env python3
"""Measures what a task on a cluster costs: many small cells, here and on local workers of Dask, and their bytes.

    .venv/bin/python benches/cluster.py --cells 10000 --workers 4

A cell is one run of 12 s of LIA on the first scenario of the D-OLIA paper. Prints the time and the CPU time of the
process of the command, which feeds the workers, per cell; with --here it runs the cells on this machine's threads as
well, and compares all bytes of both stores.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from pathlib import Path

from mptcplab import bundle
from mptcplab.cluster.connect import connected
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.study.execute import Executor
from mptcplab.study.store import Store

SETTINGS = (("duration", '"12 s"'), ("sample", '"off"'))


def spec(cell: Cell) -> RunSpec:
    """One run, whose seed is the point of the cell."""
    scenario = bundle.scenario("dolia-scenario-1")
    assert scenario is not None
    return RunSpec(scenario, "lia", None, 1, int(cell.point), SETTINGS, ("goodput", "loss"))


def measure(cells: list[Cell], workers: int, client: str | None) -> str:
    """Run the cells, print what it took, and return the digest of the store."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        connected(client, None, ["sim"], jobs=workers, say=print) as cluster,
    ):
        store = Store(Path(scratch))
        started, cpu = time.monotonic(), time.process_time()
        Executor(spec, "sim", store, workers, None, cluster=cluster).make(cells)
        seconds, cpu = time.monotonic() - started, time.process_time() - cpu
        print(
            f"{client or 'here'}: {len(cells)} cells in {seconds:.1f} s: {seconds / len(cells) * 1e3:.1f} ms per cell, "
            f"{cpu / len(cells) * 1e3:.1f} ms of them CPU time of this process"
        )
        digest = hashlib.sha256()
        for path in sorted(Path(scratch).iterdir()):
            digest.update(path.read_bytes())
        return digest.hexdigest()


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--here", action="store_true", help="run the cells on threads as well")
    asked = parser.parse_args()
    cells = [Cell("cluster", "lia", str(seed)) for seed in range(asked.cells)]
    there = measure(cells, asked.workers, "dask")
    if asked.here:
        same = there == measure(cells, asked.workers, None)
        print("all bytes are the same" if same else "BYTES DIFFER")
        raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
