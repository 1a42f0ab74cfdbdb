"""How busy the processor of an emulated machine was, which decides whether its runs count.

Time in the machine is counted in instructions. A processor that is idle now and then answers at once, as a fast one
does; one that is always busy delays packets and ACKs by its own queue, which no scenario asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import polars as pl

from mptcplab.capabilities import is_machine
from mptcplab.text import percent

# Shares of the machine's time from which its load is mentioned, and from which a run does not count.
NOTED, TOO_BUSY = 0.5, 0.9


def too_busy(share: float) -> str | None:
    """Why a run of a machine does not count; None if it does."""
    if share < TOO_BUSY:
        return None
    return (
        f"the machine's processor was busy for {percent(share)} of the run (most {percent(TOO_BUSY)}): lower the rates"
    )


def kernels(runs: pl.DataFrame) -> dict[str, str]:
    """The kernel of every engine that is an emulated machine, with its Debian package; `runs` is the run table."""
    found: dict[str, str] = {}
    for engine, host in runs.select("engine", "host").iter_rows() if "host" in runs.columns else ():
        record = json.loads(host or "{}").get("vm") if is_machine(engine) else None
        if record is not None:
            package = f", {record['package']}" if record["package"] else ""
            found[engine] = f"Linux {record['release']}{package}"
    return found


def remarks(records: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    """A line about machines that were busy, from pairs of a configuration and the record of a run."""
    busy: dict[str, float] = {}
    for config, record in records:
        share = record.get("vm", {}).get("busy_share", 0.0)
        if share >= NOTED:
            busy[config] = max(share, busy.get(config, 0.0))
    if not busy:
        return []
    who = ", ".join(f"{config} {percent(share)}" for config, share in busy.items())
    return [f"busy processors of emulated machines may have delayed packets (mentioned from {percent(NOTED)}): {who}"]
