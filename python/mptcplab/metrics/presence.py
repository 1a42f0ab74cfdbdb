"""The periods of a scenario in which the same flows are there, and the same of their subflows may send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from mptcplab.trace.topology import Flow, Subflow, Topology


@dataclass(frozen=True)
class Period:
    """A part of the run's window; `sends` says of every flow that is there which of its subflows may send."""

    begin_ns: int
    end_ns: int
    topology: Topology
    sends: dict[str, tuple[bool, ...]]

    @property
    def lasts_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.begin_ns

    @cached_property
    def users(self) -> Counter[str]:
        """Of every link, the number of connections that may send over it."""
        there = [flow for flow in self.topology.connections if flow.name in self.sends]
        return Counter(link for flow in there for link in {name for path in self.open_paths(flow) for name in path})

    def open_paths(self, flow: Flow) -> list[tuple[str, ...]]:
        """The paths of the subflows of a flow that may send."""
        return [path for path, sends in zip(flow.paths, self.sends[flow.name], strict=True) if sends]

    def rate_bps(self, link: str) -> float | None:
        """The mean rate of a link; None if the scenario does not determine it."""
        return self.topology.links[link].mean_rate_bps(self.begin_ns, self.end_ns)


def lifetime(topology: Topology, flow: Flow) -> tuple[int, int]:
    """Begin and end of a flow within the run's window, in ns."""
    end = topology.duration_ns if flow.stop_ns is None else min(flow.stop_ns, topology.duration_ns)
    return max(flow.start_ns, topology.warmup_ns), max(end, topology.warmup_ns)


# Periods times flows: beyond it, what is computed in every period would take minutes and gigabytes.
_MOST = 2_000_000


def periods(topology: Topology, flows: Iterable[Flow]) -> list[Period]:
    """The periods in which the same of some flows are there, and the same of their subflows may send.

    None where thousands of flows come and go at times of their own: then nothing is known of each period.
    """
    edges: set[int] = set()
    for flow in flows:
        begin, end = lifetime(topology, flow)
        edges |= {begin, end, *(t_ns for t_ns in _changes(topology, flow) if begin < t_ns < end)}
    if len(edges) * len(topology.flows) > _MOST:
        return []
    lives = [(flow, *lifetime(topology, flow)) for flow in topology.flows]
    return [
        Period(
            begin,
            end,
            topology,
            {flow.name: _sending(topology, flow, begin) for flow, t0, t1 in lives if t0 <= begin < t1},
        )
        for begin, end in pairwise(sorted(edges))
    ]


def _sending(topology: Topology, flow: Flow, at_ns: int) -> tuple[bool, ...]:
    """Which subflows of a flow may send at a time: a backup only while no regular one has a path that works."""
    there = tuple(_is_open(subflow, at_ns) for subflow in flow.subflows)
    if not _has_backups(flow):
        return there
    regular = tuple(
        is_open and not _is_backup(subflow, at_ns) for subflow, is_open in zip(flow.subflows, there, strict=True)
    )
    works = (not any(topology.links[name].is_closed(at_ns) for name in subflow.path) for subflow in flow.subflows)
    return regular if any(may and can for may, can in zip(regular, works, strict=True)) else there


def _changes(topology: Topology, flow: Flow) -> Iterator[int]:
    """Times at which it may change which subflows of a flow send."""
    for subflow in flow.subflows:
        yield from (t_ns for t_ns in (subflow.start_ns, subflow.stop_ns) if t_ns is not None)
        if _has_backups(flow):
            yield from (at_ns for at_ns, _ in subflow.priority)
            for name in subflow.path:
                yield from (at_ns for at_ns, _ in topology.links[name].closings)


def _has_backups(flow: Flow) -> bool:
    return any(subflow.backup or subflow.priority for subflow in flow.subflows)


def _is_open(subflow: Subflow, at_ns: int) -> bool:
    begun = subflow.start_ns is None or subflow.start_ns <= at_ns
    return begun and (subflow.stop_ns is None or at_ns < subflow.stop_ns)


def _is_backup(subflow: Subflow, at_ns: int) -> bool:
    """The priority that the last change before a time gave it."""
    return next((backup for since_ns, backup in reversed(subflow.priority) if since_ns <= at_ns), subflow.backup)
