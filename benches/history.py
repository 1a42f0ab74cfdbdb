#!/usr/bin/env python3
"""Draws the history of instruction counts: .venv/bin/python benches/history.py [FILE]

Reads benches/history.csv, to which `benches/gate.sh --note` adds a line, and writes an SVG file (build/history.svg).
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt

HISTORY = Path(__file__).with_name("history.csv")
WORKLOADS = ("w1", "w2", "w3", "w4", "w5")


def main(out: Path) -> None:
    """Write the figure."""
    with HISTORY.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    names = [f"{row['commit']}\n{row['date']}" for row in rows]
    for workload in WORKLOADS:
        # W5 is younger than the others.
        counts = [float(row[workload] or "nan") for row in rows]
        axes.plot(names, counts, marker="o", label=workload.upper())
    axes.set_ylabel("instructions per packet-hop")
    axes.set_ylim(bottom=0)
    axes.legend()
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    print(out)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/history.svg"))
