"""Hand-made traces: Parquet files as the engine writes them, from numbers that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

NS = 1_000_000_000
FLOW_COUNTERS = (
    "delivered_bytes",
    "sent_bytes",
    "ooo_bytes",
    "rcv_window_bytes",
    "reinjected_pkts",
    "duplicate_pkts",
    "blocked_ns",
    "ooo_pkts",
    "ooo_delay_sum_ns",
    "ooo_delay_max_ns",
    "reorder_depth_sum_pkts",
    "reorder_depth_max_pkts",
)
SUBFLOW_COUNTERS = (
    "cwnd_pkts",
    "inflight_pkts",
    "rto_us",
    "rtt_sum_us",
    "rtt_count",
    "sent_pkts",
    "retx_pkts",
    "acked_pkts",
    "lost_pkts",
    "loss_events",
    "ecn_events",
    "rto_count",
    "rto_wait_ns",
    "undo_count",
    "rx_pkts",
    "rx_wire_bytes",
    "rx_payload_bytes",
)
LINK_COUNTERS = (
    "queue_pkts",
    "queue_bytes",
    "arrived_pkts",
    "dropped_random_pkts",
    "dropped_queue_pkts",
    "marked_pkts",
    "departed_pkts",
    "departed_bytes",
    "queue_delay_sum_ns",
    "queue_delay_max_ns",
)


TRANSFER_MEASURED = dict.fromkeys(("media_bps", "first_byte_ns", "completion_ns", "resent_pkts", "stall_ns"), pl.UInt64)


def link(name: str, source: str, target: str, mbps: float, delay_ms: float = 5, **changes: Any) -> dict[str, Any]:
    """A link of the resolved scenario."""
    return {
        "name": name,
        "from": source,
        "to": target,
        "rate_bps": int(mbps * 1e6),
        "delay_ns": int(delay_ms * 1e6),
        "overhead_bytes": 14,
        "queue": {"packets": 1000},
        "aqm": {"name": "drop-tail"},
        "ecn": False,
        "loss": None,
        "schedule": [],
        "trace": None,
    } | changes


def subflow(name: str, *path: str) -> dict[str, Any]:
    """A subflow over the named links, ACKs going back the same way."""
    return {
        "name": name,
        "path": list(path),
        "reverse": [f"{hop}~" for hop in reversed(path)],
        "base_rtt_ns": None,
        "backup": False,
    }


def tcp(name: str, *subflows: dict[str, Any], cc: str = "reno", **changes: Any) -> dict[str, Any]:
    """A TCP flow, or an MPTCP flow if it has several subflows."""
    multipath = len(subflows) > 1
    return {
        "name": name,
        "transport": "mptcp" if multipath else "tcp",
        "cc": {"text": cc, "name": cc, "params_raw": {}},
        "scheduler": "minrtt",
        "subflows": list(subflows),
        "traffic": "bulk",
        "start_ns": 0,
        "stop_ns": None,
        "mss_bytes": 1428 if multipath else 1448,
    } | changes


def resolved(
    links: Sequence[dict[str, Any]], flows: Sequence[dict[str, Any]], *, duration_s: float, warmup_s: float = 0
) -> dict[str, Any]:
    """The resolved scenario of a run."""
    nodes = list(dict.fromkeys(end for entry in links for end in (entry["from"], entry["to"])))
    return {
        "nodes": nodes,
        "links": list(links),
        "flows": list(flows),
        "duration_ns": int(duration_s * NS),
        "warmup_ns": int(warmup_s * NS),
    }


def run_row(
    run: int, scenario: dict[str, Any], *, cc: str = "lia", rep: int = 0, sample_ms: float | None = 1000
) -> dict[str, Any]:
    """A row of the run table."""
    recorded = [
        {"flow": flow["name"], "subflow": part["name"], "cc": flow["cc"]["name"], "params": {}}
        for flow in scenario["flows"]
        if flow["transport"] != "udp"
        for part in flow["subflows"]
    ]
    return {
        "run": run,
        "engine": "sim",
        "engine_version": "0.1.0",
        "build": "test",
        "scenario": "synthetic",
        "title": "A synthetic trace",
        "cc": cc,
        "profile": "linux-acked",
        "axes": json.dumps({"cc": cc}),
        "rep": rep,
        "seed": 7,
        "duration_ns": scenario["duration_ns"],
        "warmup_ns": scenario["warmup_ns"],
        "sample_ns": None if sample_ms is None else int(sample_ms * 1e6),
        "scenario_toml": 'title = "A synthetic trace"\nsource = "nowhere"\n',
        "resolved": json.dumps(scenario),
        "subflow_cc": json.dumps(recorded),
        "events": 100 + run,
        "packet_hops": 1000 + run,
    }


_RUN_TYPES = {"run": pl.UInt32, "rep": pl.UInt32} | dict.fromkeys(
    ("seed", "duration_ns", "warmup_ns", "sample_ns", "events", "packet_hops"), pl.UInt64
)


def _frame(
    rows: Sequence[dict[str, Any]], keys: Sequence[str], counters: Sequence[str], extra: dict[str, Any]
) -> pl.DataFrame:
    """Rows with absent counters as 0 (a nullable measurement as null)."""
    schema: dict[str, Any] = {"run": pl.UInt32, "t_ns": pl.UInt64, **dict.fromkeys(keys, pl.Categorical)}
    schema |= extra | dict.fromkeys(counters, pl.UInt64)
    full = [{"run": 0, **dict.fromkeys(counters, 0), **row, "t_ns": round(row["t"] * NS)} for row in rows]
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in full], schema=schema)


def write(
    directory: Path,
    runs: Sequence[dict[str, Any]],
    *,
    flow: Sequence[dict[str, Any]] = (),
    subflow: Sequence[dict[str, Any]] = (),
    link: Sequence[dict[str, Any]] = (),
    event: Sequence[dict[str, Any]] = (),
    transfer: Sequence[dict[str, Any]] = (),
    request: Sequence[dict[str, Any]] = (),
) -> Path:
    """Write the tables, `request` only if it has rows.

    Rows are dictionaries with `t` in seconds; counters that are absent are 0.
    """
    directory.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(list(runs), schema_overrides=_RUN_TYPES).write_parquet(directory / "run.parquet")
    measured = dict.fromkeys(("ssthresh_pkts", "srtt_us", "rtt_us", "min_rtt_us", "pacing_bps"), pl.UInt64)
    open_subflows = [{"state": "open", **row} for row in subflow]
    tables = {
        "flow": _frame(flow, ["flow"], FLOW_COUNTERS, {}),
        "subflow": _frame(open_subflows, ["flow", "subflow", "state"], SUBFLOW_COUNTERS, measured),
        "link": _frame(link, ["link"], LINK_COUNTERS, {}),
        "event": _frame(event, ["kind", "flow", "subflow", "link"], ["value"], {}),
        "transfer": _frame(transfer, ["flow"], ["transfer", "bytes"], TRANSFER_MEASURED),
    }
    if request:
        measured = dict.fromkeys(("response_bytes", "first_byte_ns", "completion_ns"), pl.UInt64)
        tables["request"] = _frame(request, ["flow"], ["request", "request_bytes"], measured)
    for name, table in tables.items():
        table.write_parquet(directory / f"{name}.parquet")
    return directory
