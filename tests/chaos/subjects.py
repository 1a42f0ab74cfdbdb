"""The commands that are disturbed, and how each says what of it is finished."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from mptcplab import kept
from mptcplab.output import OPTIONAL_TABLES, TABLES, is_former_result
from mptcplab.study.store import Store
from mptcplab.trace.reader import tables_in

SCENARIO = """\
title = "Runs that are disturbed"
duration = "20 s"
warmup = "1 s"
repetitions = 3
cc = ["lia", "olia"]

[links.A]
from = "S"
to = "D"
rate = "4 Mbit/s"
delay = "7 ms"
loss = "0.3 %"

[links.B]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "13 ms"

[flows.mp]
paths = [["A"], ["B"]]
"""
FILE, OUT = "disturbed.toml", "o"
# Results that a command reads.
PARTS = ("first", "second")
# Of `cc`: no other traffic of a machine runs the template.
ALGORITHM, LOADED = "template", "lab_template"
SIM, KERNEL, VM, CC = "sim", "kernel", "vm", "cc"

# By a name, what tells the content of a finished thing.
Finished = Mapping[str, str]


def _sum(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _rows(run: kept.Run) -> str:
    """The content of one run, whatever trace it is in."""
    found = []
    for table in (*TABLES, *OPTIONAL_TABLES):
        path = run.trace / f"{table}.parquet"
        if path.is_file():
            # The resolved run says its number in the sweep.
            rows = pl.read_parquet(path).filter(pl.col("run") == run.number).drop("run", "resolved", strict=False)
            if rows.height:
                found.append(rows.write_csv().encode())
    return _sum(*found)


def finished_runs(folder: Path) -> Finished:
    """The runs of a sweep that need not be made again: of the result and of what is kept beside it."""
    out, found = folder / OUT, {}
    traces = kept.traces_in(kept.beside(out)) if kept.beside(out).is_dir() else []
    traces += tables_in(out) if out.is_dir() and is_former_result(out) else []
    with warnings.catch_warnings(action="ignore"):
        for digest, run in kept.usable(kept.runs_of(traces)).items():
            found[digest] = _rows(run)
    return found


def finished_cells(folder: Path) -> Finished:
    """The results in the stores of a study, of which every engine may have its own."""
    found = {}
    out = folder / OUT
    for directory in (out / "store", *sorted(out.glob("*/store")), kept.beside(out) / "store"):
        store = Store(directory)
        with warnings.catch_warnings(action="ignore"):
            for record in sorted(directory.glob("*.json")):
                if store.has(record.stem):
                    parts = sorted(directory.glob(f"{record.stem}.*"))
                    found[record.stem] = _sum(*(part.read_bytes() for part in parts))
    return found


@dataclass(frozen=True)
class Subject:
    """A command of mptcplab that writes to `OUT`."""

    name: str
    words: tuple[str, ...]
    # What it needs: an engine, or the commands of an operator.
    needs: str = SIM
    finished: Callable[[Path], Finished] = finished_runs
    # Exit codes that say that it came to its end.
    codes: tuple[int, ...] = (0,)
    # Whether an undisturbed call always gives the same bytes.
    exact: bool = True
    # Whether a complete result takes the place of what was finished.
    replaces: bool = False
    # Calls that make what it needs, such as a former result to replace: the words of each.
    before: tuple[tuple[str, ...], ...] = ()
    # In how many calls of a case something is killed at most.
    most_kills: int = 16
    # How often it is chosen.
    weight: int = 1
    # Kinds of disturbances that mean nothing here.
    without: tuple[str, ...] = field(default=())

    def command(self, words: tuple[str, ...] | None = None) -> list[str]:
        return [sys.executable, "-m", "mptcplab", *(words or self.words)]


def nothing_finished(_: Path) -> Finished:
    """Of a command that begins from the start at each call."""
    return {}


def _run(*words: str, out: str = OUT) -> tuple[str, ...]:
    return ("run", FILE, "--out", out, *words)


_SHORT = ("--duration", "1 s", "--set", "warmup=200 ms")
_PAPER = ("reproduce", "dubey2023", "--experiment", "DUB-NSB", "--quick", "--out", OUT)
SUBJECTS = (
    Subject("run", _run("--reps", "20", "--duration", "60 s", "--jobs", "2"), weight=6),
    Subject("run-force", _run("--reps", "4", "--force"), before=(_run("--reps", "1", "--seed", "9"),), weight=3),
    Subject("run-fluid", _run("--engine", "sim,fluid", "--duration", "5 s", "--no-report"), weight=2),
    Subject("reproduce", _PAPER, finished=finished_cells, weight=3),
    Subject("reproduce-engines", (*_PAPER, "--engine", "sim,fluid"), finished=finished_cells, weight=2),
    Subject("report", ("report", OUT), before=(_run("--reps", "1", "--no-report"),), without=("flips",)),
    Subject(
        "merge",
        ("merge", *PARTS, "--out", OUT),
        before=tuple(
            _run("--reps", "2", "--seed", str(seed), "--no-report", out=part) for seed, part in enumerate(PARTS, 8)
        ),
        without=("flips",),
    ),
    Subject(
        "hunt",
        ("hunt", "lia", "--property", "harms", "--evaluations", "30", "--out", OUT),
        finished=nothing_finished,
        most_kills=6,
    ),
    Subject("fidelity", ("fidelity", "--quick", "--out", OUT), finished=nothing_finished, codes=(0, 1), most_kills=2),
    Subject("goals", ("goals", "lia", "--quick", "--out", OUT), finished=finished_cells, replaces=True),
    Subject("agree", ("agree", FILE, "--engines", "sim,fluid", "--duration", "5 s", "--out", OUT), codes=(0, 1)),
    Subject(
        "run-kernel",
        _run("--engine", "kernel", "--reps", "2", "--no-report", *_SHORT),
        KERNEL,
        codes=(0, 1),
        exact=False,
        weight=4,
    ),
    Subject(
        "agree-kernel",
        ("agree", FILE, "--engines", "sim,kernel", "--cc", "lia", "--reps", "1", "--out", OUT, *_SHORT),
        KERNEL,
        codes=(0, 1),
        exact=False,
    ),
    Subject(
        "run-vm", _run("--engine", "vm:bookworm", "--reps", "1", "--no-report", *_SHORT), VM, codes=(0, 1), weight=2
    ),
    Subject(
        "agree-vm",
        ("agree", FILE, "--engines", "sim,vm:bookworm", "--cc", "lia", "--reps", "1", "--out", OUT, *_SHORT),
        VM,
        codes=(0, 1),
    ),
    Subject("cc-load", ("cc", "load", ALGORITHM), CC, weight=2, without=("capabilities",)),
    Subject("cc-pin", ("cc", "load", ALGORITHM, "--pin"), CC, weight=2),
)
