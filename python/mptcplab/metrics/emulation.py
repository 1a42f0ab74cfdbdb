"""Lateness of the kernel engine's emulated links, summed along round trips, and the simulator's `send_jitter` for it.

If packets arrive at regular times, their phase decides which flow's packets a full queue drops. The timing of the
kernel varies by itself, which prevents this; the simulator's varies by the random delay of a scenario's `send_jitter`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from statistics import median
from typing import TYPE_CHECKING, Any

from mptcplab.capabilities import SIM, engine_of
from mptcplab.text import duration

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace
    from mptcplab.trace.topology import Flow, Subflow, Topology


def round_trips(topology: Topology, recorded: Iterable[dict[str, Any]]) -> Iterator[tuple[Flow, Subflow, int]]:
    """Per subflow: the lateness (ns) of its links in both directions, as the sum of their 99th percentiles.

    `recorded` are rows of the run table; of several runs, the largest lateness of each link counts.
    """
    late: dict[str, int] = {}
    for row in recorded:
        emulator = json.loads(row.get("host") or "{}").get("emulator") or {}
        for link in emulator.get("links", ()):
            late[link["link"]] = max(late.get(link["link"], 0), link["late_p99_ns"])
    for flow in topology.connections if late else ():
        for subflow in flow.subflows:
            yield flow, subflow, sum(late.get(link, 0) for link in (*subflow.path, *subflow.reverse))


def jitter_ns(kernel: Trace, least_ns: int) -> int:
    """`send_jitter` for the simulator: the median lateness over the round trips of all runs, at least `least_ns`."""
    found = [
        late_ns
        for row in kernel.runs.iter_rows(named=True)
        for *_, late_ns in round_trips(kernel.topologies[row["run"]], [row])
    ]
    return max(least_ns, round(median(found))) if found else least_ns


def simulated_jitter_ns(trace: Trace) -> int:
    """The largest `send_jitter` of the simulator's runs."""
    simulated = trace.runs.filter(engine=SIM.name)["resolved"]
    flows = (flow for text in simulated for flow in json.loads(text)["flows"])
    subflows = (subflow for flow in flows for subflow in flow.get("subflows", ()))
    return max((subflow.get("send_jitter_ns", 0) for subflow in subflows), default=0)


def jitter_note(trace: Trace) -> str | None:
    """A sentence about the jitter that the simulator had beside a kernel; None if it had none."""
    late = [name for name in trace.engines if engine_of(name).has_sockets]
    jitter_ns = simulated_jitter_ns(trace) if SIM.name in trace.engines and late else 0
    if jitter_ns == 0:
        return None
    return f"noise: sim delayed every packet at random by up to {duration(jitter_ns)}; {late[0]} was late by itself"
