"""The scenario's graph as matrices: which streams of packets cross which links, in which order.

A stream is the data of a subflow, its ACKs on the way back, or a UDP flow. Links that nothing can fill have no queue,
only delay and random loss. Nothing here changes over time; `conditions` has what a schedule changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from mptcplab.trace.headers import SHORT, ack_bytes, data_header_bytes

Array = np.ndarray

# A delayed ACK answers two segments.
_SEGMENTS_PER_ACK = {"rfc": 1.0}
_DELAYED = 2.0


@dataclass(frozen=True)
class Subflow:
    """One subflow: its flow, its links (positions in the scenario), its packet sizes, and when it may send."""

    flow: int
    number: int
    path: tuple[int, ...]
    reverse: tuple[int, ...]
    data_bytes: int
    ack_bytes: int
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Stream:
    """Packets of one kind ("data", "ack" or "udp") on one path; `subflow` is None for UDP, which has its own rate."""

    kind: str
    subflow: int | None
    flow: int
    path: tuple[int, ...]
    packet_bytes: int
    # Packets of the stream per packet of its subflow.
    per_packet: float


@dataclass(frozen=True)
class Graph:
    """Subflows, streams and links of one run (the resolved scenario with the drawn start times)."""

    run: dict[str, Any]
    subflows: tuple[Subflow, ...]
    streams: tuple[Stream, ...]

    @classmethod
    def of(cls, run: dict[str, Any]) -> Graph:
        """The graph of a run, which is an element of `_core.runs_json`."""
        position = {link["name"]: index for index, link in enumerate(run["links"])}
        subflows = [
            subflow
            for index, flow in enumerate(run["flows"])
            if flow["transport"] != "udp"
            for subflow in _subflows(run, index, flow, position)
        ]
        segments = _SEGMENTS_PER_ACK.get(run["profile"], _DELAYED)
        data = [Stream("data", r, s.flow, s.path, s.data_bytes, 1.0) for r, s in enumerate(subflows)]
        acks = [Stream("ack", r, s.flow, s.reverse, s.ack_bytes, 1.0 / segments) for r, s in enumerate(subflows)]
        udp = [
            Stream("udp", None, index, tuple(position[name] for name in flow["path"]), flow["packet_bytes"], 0.0)
            for index, flow in enumerate(run["flows"])
            if flow["transport"] == "udp"
        ]
        return cls(run, tuple(subflows), (*data, *acks, *udp))

    @cached_property
    def overheads(self) -> Array:
        """Layer-2 bytes that every link adds to a packet."""
        return np.array([link["overhead_bytes"] for link in self.run["links"]], float)

    @cached_property
    def queued(self) -> tuple[int, ...]:
        """Links that can have a queue: those that could be offered more than their rate."""
        crossed = {link for stream in self.streams for link in stream.path}
        return tuple(link for link in sorted(crossed) if self._may_fill(link))

    def _may_fill(self, link: int) -> bool:
        bound = sum(self._offered(stream, link) for stream in self.streams if link in stream.path)
        return bound > self._rates(link)[0]

    def _offered(self, stream: Stream, link: int) -> float:
        """The highest rate of a stream at a link, in bit/s there: that of the links before it, or its own rate."""

        def size(kind: Stream, at: int) -> float:
            return float(kind.packet_bytes + self.overheads[at])

        def bound(kind: Stream, at: int, bps: float) -> float:
            return bps * (size(stream, link) / size(kind, at))

        bounds = [bound(stream, at, self._rates(at)[1]) for at in stream.path[: stream.path.index(link)]]
        if stream.kind == "udp":
            # Its rate counts the layer-2 bytes of the first link.
            bounds.append(bound(stream, stream.path[0], self.run["flows"][stream.flow]["rate_bps"]))
        if stream.kind == "ack":
            # The links of the data limit its rate, and each data packet causes `per_packet` ACKs.
            # Only packets of UDP have no subflow.
            assert stream.subflow is not None
            data = self.streams[stream.subflow]
            bounds += [bound(data, at, stream.per_packet * self._rates(at)[1]) for at in data.path]
        return float(min(bounds, default=np.inf))

    def _rates(self, link: int) -> tuple[float, float]:
        """Lowest and highest rate of a link over its schedule."""
        entry = self.run["links"][link]
        changes = [change["rate_bps"] for change in entry["schedule"] if "rate_bps" in change]
        rates = [entry["rate_bps"], *changes]
        return float(min(rates)), float(max(rates))

    @cached_property
    def levels(self) -> tuple[Array, ...]:
        """Queued links in an order in which what feeds a link comes before it.

        Where links feed one another in a circle, they come three times.
        """
        feeders: dict[int, set[int]] = {k: set() for k in range(len(self.queued))}
        for stream in self.streams:
            on_path = [self.queued.index(link) for link in stream.path if link in self.queued]
            for before, after in pairwise(on_path):
                feeders[after].add(before)
        levels: list[Array] = []
        done: set[int] = set()
        while len(done) < len(feeders):
            free = [k for k in feeders if k not in done and feeders[k] <= done]
            if not free:
                rest = np.array([k for k in feeders if k not in done])
                return (*levels, rest, rest, rest)
            levels.append(np.array(free))
            done |= set(free)
        return tuple(levels)

    @cached_property
    def upstream(self) -> Array:
        """[k, s, j]: 1 where stream s crosses queued link j before it comes to queued link k."""
        found = np.zeros((len(self.queued), len(self.streams), len(self.queued)))
        for s, stream in enumerate(self.streams):
            on_path = [self.queued.index(link) for link in stream.path if link in self.queued]
            for at, k in enumerate(on_path):
                found[k, s, on_path[:at]] = 1.0
        return found

    @cached_property
    def crossing(self) -> Array:
        """[s, k]: 1 where stream s crosses queued link k."""
        return np.array([[float(link in stream.path) for link in self.queued] for stream in self.streams]).reshape(
            len(self.streams), len(self.queued)
        )

    @cached_property
    def packet_bytes(self) -> Array:
        """[k]: the largest packet on each queued link, layer-2 bytes included."""
        return np.array(
            [
                max(stream.packet_bytes for stream in self.streams if link in stream.path) + self.overheads[link]
                for link in self.queued
            ]
        )


def _subflows(run: dict[str, Any], index: int, flow: dict[str, Any], position: dict[str, int]) -> list[Subflow]:
    """The subflows of a flow, and when they may send.

    The first may one round trip after the SYN. Further ones join after it: their three-way handshake and the fourth ACK
    (RFC 8684, section 3.2) take two round trips of their own.
    """
    kind = flow["transport"], flow.get("dss", SHORT)
    data, ack = flow["mss_bytes"] + data_header_bytes(*kind), ack_bytes(*kind)
    stop = run["duration_ns"] if flow["stop_ns"] is None else flow["stop_ns"]
    established = run["starts_ns"][index] + flow["subflows"][0]["base_rtt_ns"]
    found = []
    for number, entry in enumerate(flow["subflows"]):
        begin = established
        if number > 0:
            begin = max(established, entry["start_ns"] or 0) + 2 * entry["base_rtt_ns"]
        end = stop if entry["stop_ns"] is None else min(stop, entry["stop_ns"])
        path = tuple(position[name] for name in entry["path"])
        reverse = tuple(position[name] for name in entry["reverse"])
        found.append(Subflow(index, number, path, reverse, data, ack, begin, end))
    return found
