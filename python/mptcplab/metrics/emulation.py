"""What the kernel engine's links and hosts add to round-trip times, and the simulator's settings for it.

If packets arrive at regular times, their phase decides which flow's packets a full queue drops. A kernel takes some
microseconds for every packet, which shifts the phase, and varies by itself. The simulator's hosts take no time but what
a scenario's `host_delay` and `send_jitter` give them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
        for link in _emulated_links(row):
            late[link["link"]] = max(late.get(link["link"], 0), link["late_p99_ns"])
    for flow in topology.connections if late else ():
        for subflow in flow.subflows:
            yield flow, subflow, sum(late.get(link, 0) for link in (*subflow.path, *subflow.reverse))


@dataclass(frozen=True)
class HostTimes:
    """What the hosts at both ends take to answer a packet (ns): at least, and how much more at random."""

    delay_ns: int
    jitter_ns: int


def host_times(kernel: Trace) -> HostTimes:
    """What the simulator's `host_delay` and `send_jitter` have to be: the medians over the round trips of all runs.

    A host's answer to a packet takes from when the packet is due until the answer arrives, so that the lateness of the
    emulated link before it is a part. The first percentiles of both ends are what packets take in any case, and what
    the 99th are longer is random. Traces without answers have only the lateness.
    """
    answers = [times for row in kernel.runs.iter_rows(named=True) for times in _answers(kernel, row)]
    if answers:
        return HostTimes(*(round(median(part)) for part in zip(*answers, strict=True)))
    late = [
        late_ns
        for row in kernel.runs.iter_rows(named=True)
        for *_, late_ns in round_trips(kernel.topologies[row["run"]], [row])
    ]
    return HostTimes(0, round(median(late)) if late else 0)


def simulated_host_times(trace: Trace) -> HostTimes:
    """The largest `host_delay` and `send_jitter` of the simulator's runs."""
    simulated = trace.runs.filter(engine=SIM.name)["resolved"]
    flows = [flow for text in simulated for flow in json.loads(text)["flows"]]
    subflows = [subflow for flow in flows for subflow in flow.get("subflows", ())]
    return HostTimes(
        max((flow.get("host_delay_ns", 0) for flow in flows), default=0),
        max((subflow.get("send_jitter_ns", 0) for subflow in subflows), default=0),
    )


def noise_note(trace: Trace) -> str | None:
    """A sentence about the delays that the simulator had beside a kernel; None if it had none."""
    late = [name for name in trace.engines if engine_of(name).has_sockets]
    if SIM.name not in trace.engines or not late:
        return None
    times = simulated_host_times(trace)
    return None if times == HostTimes(0, 0) else noise_beside(late[0], times)


def noise_beside(engine: str, times: HostTimes) -> str:
    """The same for these delays beside a kernel."""
    at_random = f"at random by up to {duration(times.jitter_ns)}"
    by = f"by {duration(times.delay_ns)} and {at_random} more" if times.delay_ns else at_random
    return f"noise: sim delayed every packet {by}; {engine} was late by itself"


def _emulated_links(row: dict[str, Any]) -> list[dict[str, Any]]:
    """What the emulator recorded of every link, from a row of the run table; empty without an emulator."""
    emulator = json.loads(row.get("host") or "{}").get("emulator") or {}
    found: list[dict[str, Any]] = emulator.get("links", [])
    return found


def _answers(kernel: Trace, row: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Per subflow of a run: the first percentiles of what both hosts take to answer, and what the 99th are longer."""
    links = {link["link"]: link for link in _emulated_links(row) if link.get("answers")}
    for flow in kernel.topologies[row["run"]].connections:
        for subflow in flow.subflows:
            ends = [links[way[-1]] for way in (subflow.path, subflow.reverse) if way and way[-1] in links]
            if len(ends) == 2:
                least = sum(end["answer_p1_ns"] for end in ends)
                yield least, sum(end["answer_p99_ns"] for end in ends) - least
