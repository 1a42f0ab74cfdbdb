"""The periods of a scenario in which the same flows are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from mptcplab.trace.topology import Flow, Topology


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


def periods(topology: Topology, flows: Iterable[Flow]) -> list[Period]:
    """The periods in which the same of some flows are there."""
    edges: set[int] = set()
    for flow in flows:
        edges |= {*lifetime(topology, flow)}
    lives = [(flow, *lifetime(topology, flow)) for flow in topology.flows]
    return [
        Period(
            begin,
            end,
            topology,
            {flow.name: (True,) * len(flow.subflows) for flow, t0, t1 in lives if t0 <= begin < t1},
        )
        for begin, end in pairwise(sorted(edges))
    ]
