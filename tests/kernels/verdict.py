"""Judges the tests of the kernel engine inside virtual machines: a table of kernels and algorithms, and failures."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

# As a share of the sum of the paths' rates. The slowest algorithm reaches three quarters.
MIN_GOODPUT_SHARE = 0.5
# More than the initial windows, so that a subflow that only opened does not count as one that carried data.
MIN_SUBFLOW_BYTES = 50_000
# The scenario asks for a row per ACK: a hundred samples, and one ACK for every second of at least 500 packets.
MIN_SUBFLOW_ROWS = 300
# Messages of the kernel about internal errors that did not stop it.
KERNEL_FAULT = re.compile(
    r"WARNING: |BUG: |Oops|general protection|Call Trace|rcu.*stall|unregister_netdevice: waiting"
)
TAIL_LINES = 30


@dataclass(frozen=True)
class Outcome:
    """One cell of the table: the text if all is well, and the problems."""

    shown: str
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Machine:
    """The results of all machines with one kernel."""

    suite: str
    # `uname -r`
    kernel: str
    # What the jobs left, by path.
    files: Mapping[str, bytes]
    # Messages of the kernel during the jobs; the file `dmesg` has those since the boot.
    console: str = ""
    # Why machines did not finish.
    troubles: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """A file of the job, as text; empty if there is none."""
        return self.files.get(name, b"").decode(errors="replace").strip()

    @property
    def faults(self) -> tuple[str, ...]:
        """Why machines did not finish, and the first error of their kernel."""
        said = [*self.text("dmesg").splitlines(), *self.console.splitlines()]
        complaints = [line for line in said if KERNEL_FAULT.search(line)]
        return (*self.troubles, *(f"the kernel complains: {line.strip()}" for line in complaints[:1]))


def step_outcome(machine: Machine, step: str) -> Outcome:
    """Judge a step by its exit code and by what it left behind."""
    if f"{step}/status" not in machine.files:
        # The machine's fault, which is reported once, explains the missing result.
        return Outcome("not run", () if machine.troubles else ("it was not run",))
    problems = []
    if (status := machine.text(f"{step}/status")) != "0":
        said = machine.text(f"{step}/stderr") or machine.text(f"{step}/stdout")
        tail = "\n".join(said.splitlines()[-TAIL_LINES:])
        problems.append(f"exit code {status}:\n{tail}")
    if left := machine.text(f"{step}/left"):
        problems.append(f"left behind: {', '.join(left.splitlines())}")
    return Outcome("ok", tuple(problems))


def transfer_outcome(machine: Machine, algorithm: str) -> Outcome:
    """Judge the transfer with one algorithm: how it ended, and its trace."""
    step = step_outcome(machine, f"run-{algorithm}")
    if step.problems or step.shown != "ok":
        return step
    try:
        tables = {
            name: pl.read_parquet(io.BytesIO(machine.files[f"run-{algorithm}/trace/000001/{name}.parquet"]))
            for name in ("run", "flow", "subflow", "event")
        }
    except (KeyError, pl.exceptions.PolarsError) as error:
        return Outcome("", (f"the trace cannot be read: {error}",))
    return judge_trace(tables, algorithm)


def judge_trace(tables: Mapping[str, pl.DataFrame], algorithm: str) -> Outcome:
    """Judge the tables of a trace of `two-paths.toml`."""
    if tables["run"].height != 1:
        return Outcome("", (f"{tables['run'].height} runs in the trace instead of 1",))
    run = tables["run"].row(0, named=True)
    resolved = json.loads(run["resolved"])
    flow = resolved["flows"][0]
    size_bytes = flow["traffic"]["size_bytes"]
    names = [subflow["name"] for subflow in flow["subflows"]]
    problems = []
    if run["engine"] != "kernel":
        problems.append(f"the trace is of the engine {run['engine']}")
    if run["status"] != "complete":
        problems.append(f"the run is {run['status']}: {run['status_reason']}")
    ran = {entry["subflow"]: entry["cc"] for entry in json.loads(run["subflow_cc"])}
    if ran != dict.fromkeys(names, algorithm):
        problems.append(f"the subflows ran {ran}")
    received = _last(tables["subflow"], "subflow", "rx_payload_bytes")
    idle = [name for name in names if received.get(name, 0) < MIN_SUBFLOW_BYTES]
    if idle:
        problems.append(f"subflows that carried less than {MIN_SUBFLOW_BYTES} bytes: {', '.join(idle)} of {received}")
    rows = dict(tables["subflow"].group_by(pl.col("subflow").cast(pl.String)).len().iter_rows())
    untraced = [name for name in names if rows.get(name, 0) < MIN_SUBFLOW_ROWS]
    if untraced:
        problems.append(f"subflows with less than {MIN_SUBFLOW_ROWS} rows per ACK: {', '.join(untraced)} of {rows}")
    delivered = _last(tables["flow"], "flow", "delivered_bytes")
    if delivered != {flow["name"]: size_bytes}:
        problems.append(f"delivered {delivered} instead of {size_bytes} bytes")
    goodput_bps, goodput_problems = _goodput(tables["event"], resolved, size_bytes)
    return Outcome(f"{goodput_bps / 1e6:.1f} Mbit/s", (*problems, *goodput_problems))


def _last(table: pl.DataFrame, entity: str, column: str) -> dict[str, int]:
    """The last value of a cumulative column, by entity."""
    last = table.with_columns(pl.col(entity).cast(pl.String)).group_by(entity).agg(pl.col(column).max())
    return dict(last.select(entity, column).iter_rows())


def _goodput(events: pl.DataFrame, resolved: dict, size_bytes: int) -> tuple[float, list[str]]:
    """Bits per second between start and completion of the transfer, and what is wrong with them."""
    times_ns = {
        kind: events.filter(pl.col("kind").cast(pl.String) == kind)["t_ns"].to_list()
        for kind in ("flow_started", "flow_completed")
    }
    if any(len(times) != 1 for times in times_ns.values()):
        return 0.0, [f"a transfer starts and completes once; this one did so at {times_ns} ns"]
    rates_bps = {link["name"]: link["rate_bps"] for link in resolved["links"]}
    capacity_bps = sum(min(rates_bps[link] for link in subflow["path"]) for subflow in resolved["flows"][0]["subflows"])
    goodput_bps = size_bytes * 8e9 / (times_ns["flow_completed"][0] - times_ns["flow_started"][0])
    if not MIN_GOODPUT_SHARE * capacity_bps <= goodput_bps <= capacity_bps:
        return goodput_bps, [
            f"goodput of {goodput_bps / 1e6:.2f} Mbit/s is not between {MIN_GOODPUT_SHARE:.0%} and 100 % of "
            f"{capacity_bps / 1e6:.0f} Mbit/s"
        ]
    return goodput_bps, []


def judge(machine: Machine, algorithms: Sequence[str]) -> dict[str, Outcome]:
    """All rows of the table for one machine."""
    rows = {
        "boot": Outcome(f"Debian {machine.suite}", machine.faults),
        "doctor": step_outcome(machine, "doctor"),
        "cc load, list, unload": step_outcome(machine, "cc"),
        "a killed run, another": step_outcome(machine, "killed"),
    }
    return rows | {algorithm: transfer_outcome(machine, algorithm) for algorithm in algorithms}


def table(machines: Sequence[Machine], outcomes: Sequence[Mapping[str, Outcome]]) -> str:
    """Rows are checks and algorithms, columns are kernels."""
    lines = [["", *(machine.kernel for machine in machines)]]
    for row in outcomes[0]:
        cells = [outcome[row] for outcome in outcomes]
        lines.append([row, *("FAILED" if cell.problems else cell.shown for cell in cells)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in padded)
