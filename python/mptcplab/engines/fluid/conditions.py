"""The conditions at one time: rates, delays and random losses of links, base RTTs, and which streams are active."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mptcplab.engines.fluid.graph import Graph, Stream, Subflow
from mptcplab.engines.fluid.network import EDGE_BYTES, Array

_BITS = 8.0


@dataclass(frozen=True)
class Conditions:
    """The conditions between two changes; times in seconds, rates in bytes per second.

    Arrays are over subflows [r], streams [s] and queued links [k].
    """

    # [k]
    capacity: Array
    room: Array
    # [k, s] bytes of a packet of the stream on the link, times its probability to pass the random losses before it
    offered_bytes: Array
    # [r] propagation, serialisation of data and ACK
    base_rtt_s: Array
    # [r] -log of the probability to pass all random losses
    random_loss: Array
    # -log of the probability to pass each link of the scenario
    link_loss: Array
    # [r], [s] whether it sends
    active: Array
    udp_rate: Array


def changes_s(graph: Graph) -> list[float]:
    """Times at which the conditions change, in seconds, sorted, including the beginning and the end of the run."""
    run = graph.run
    times = {0, run["duration_ns"]}
    times |= {change["at_ns"] for link in run["links"] for change in link["schedule"]}
    times |= {time for subflow in graph.subflows for time in (subflow.begin_ns, subflow.end_ns)}
    for stream in graph.streams:
        if stream.subflow is None:
            times |= _udp_times(run, stream)
    return [time / 1e9 for time in sorted(times) if time <= run["duration_ns"]]


def conditions(graph: Graph, at_s: float) -> Conditions:
    """The conditions from a time on."""
    at_ns = round(at_s * 1e9)
    links = [_link_at(link, at_ns) for link in graph.run["links"]]
    rate = np.array([link["rate_bps"] for link in links]) / _BITS
    delay = np.array([link["delay_ns"] for link in links]) / 1e9
    passing = np.array([-np.log1p(-_loss(link["loss"])) for link in links])
    queued = list(graph.queued)
    room = [
        _room(graph.run["links"][link]["queue"], size) for link, size in zip(queued, graph.packet_bytes, strict=True)
    ]
    offered = np.zeros((len(queued), len(graph.streams)))
    for s, stream in enumerate(graph.streams):
        for k, link in enumerate(queued):
            if link in stream.path:
                until = stream.path[: stream.path.index(link) + 1]
                size = stream.packet_bytes + graph.overheads[link]
                offered[k, s] = size * np.exp(-sum(passing[other] for other in until))
    base = [_base_rtt(graph, subflow, rate, delay) for subflow in graph.subflows]
    return Conditions(
        capacity=rate[queued],
        room=np.array(room).reshape(len(queued)),
        offered_bytes=offered,
        base_rtt_s=np.array(base),
        random_loss=np.array([sum(passing[link] for link in subflow.path) for subflow in graph.subflows]),
        link_loss=passing,
        active=np.array([subflow.begin_ns <= at_ns < subflow.end_ns for subflow in graph.subflows]),
        udp_rate=np.array([_udp_rate(graph, stream, at_ns) for stream in graph.streams]),
    )


def _link_at(link: dict[str, Any], at_ns: int) -> dict[str, Any]:
    now = {key: link[key] for key in ("rate_bps", "delay_ns", "loss")}
    for change in link["schedule"]:
        if change["at_ns"] <= at_ns:
            now |= {key: change[key] for key in now if key in change}
    return now


def _loss(model: dict[str, Any] | None) -> float:
    return 0.0 if model is None else float(model["p"])


def _room(limit: dict[str, Any] | None, packet_bytes: float) -> float:
    """Bytes that may wait, if all packets have the largest size; at least a packet, or `EDGE_BYTES` of a larger one."""
    if limit is None:
        return np.inf
    waiting = limit["packets"] * packet_bytes if "packets" in limit else float(limit["bytes"])
    return max(waiting, min(packet_bytes, EDGE_BYTES))


def _base_rtt(graph: Graph, subflow: Subflow, rate: Array, delay: Array) -> float:
    ways = ((subflow.path, subflow.data_bytes), (subflow.reverse, subflow.ack_bytes))
    time = sum(
        delay[link] + (size + graph.overheads[link]) / max(rate[link], 1.0) for path, size in ways for link in path
    )
    # A uniform random delay before each packet adds half of its bound on average. There is none unless the scenario
    # asks for it: a fluid has no packets whose phase could matter.
    flow = graph.run["flows"][subflow.flow]
    found: float = time + (flow["send_jitter_ns"] or 0) / 2e9 + flow.get("host_delay_ns", 0) / 1e9
    return found


def _udp_rate(graph: Graph, stream: Stream, at_ns: int) -> float:
    """Packets per second of a UDP stream; 0 for other streams."""
    if stream.subflow is not None:
        return 0.0
    flow = graph.run["flows"][stream.flow]
    begin = graph.run["starts_ns"][stream.flow]
    end = graph.run["duration_ns"] if flow["stop_ns"] is None else flow["stop_ns"]
    if not begin <= at_ns < end or not _is_on(flow["on_off"], at_ns - begin):
        return 0.0
    # The rate counts the layer-2 bytes of the first link.
    found: float = flow["rate_bps"] / _BITS / (stream.packet_bytes + graph.overheads[stream.path[0]])
    return found


def _is_on(on_off: dict[str, int] | None, since_ns: int) -> bool:
    return on_off is None or since_ns % (on_off["on_ns"] + on_off["off_ns"]) < on_off["on_ns"]


def _udp_times(run: dict[str, Any], stream: Stream) -> set[int]:
    """Times at which a UDP stream starts, pauses, resumes and ends."""
    flow = run["flows"][stream.flow]
    begin = run["starts_ns"][stream.flow]
    end = run["duration_ns"] if flow["stop_ns"] is None else flow["stop_ns"]
    times = {begin, end}
    if flow["on_off"] is not None:
        on, off = flow["on_off"]["on_ns"], flow["on_off"]["off_ns"]
        for period in range(begin, end, on + off):
            times |= {period, min(period + on, end)}
    return times
