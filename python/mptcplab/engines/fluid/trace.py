"""A solution as the tables of a trace: columns of little-endian numbers, counters cumulative.

Columns for which a fluid has no value are left out, and are null in the trace: out-of-order data, timeouts, undone
reductions, ECN, ssthresh, pacing. Packets are fractions inside and whole numbers in the trace. Every loss is a loss
event: the equations have no round trips of recovery.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mptcplab.engines.fluid.conditions import Conditions
from mptcplab.engines.fluid.equations import Model, Quantities
from mptcplab.engines.fluid.graph import Graph
from mptcplab.engines.fluid.integrate import FINE_S, Solution
from mptcplab.engines.fluid.network import Array, queue_growth

# A link without input empties its queue; the streams of those packets are not tracked.
_MOST_LEAVING = 2.0
_UDP_HEADER_BYTES = 28
# `EventKind` and states of the trace's declaration.
_CLOSED, _HANDSHAKE, _OPEN = 0, 1, 2
_FLOW_STARTED, _FLOW_STOPPED, _SUBFLOW_ADDED, _LINK_CHANGED = 0, 3, 4, 13

Columns = dict[str, dict[str, bytes]]


def sample_times_s(run: dict[str, Any]) -> Array:
    """Sample times: every interval, and at the start, the end of the warm-up and the end of the run."""
    return _sample_times_ns(run) / 1e9


def grid_s(run: dict[str, Any]) -> Array:
    """Times at which the solution is needed: the samples, and times between them for the counters.

    The solution has more where it changes fast.
    """
    steps = max(1, round(run["duration_ns"] / 1e9 / FINE_S))
    return np.unique(np.concatenate([sample_times_s(run), np.linspace(0.0, run["duration_ns"] / 1e9, steps + 1)]))


def _sample_times_ns(run: dict[str, Any]) -> Array:
    fixed = [0, run["warmup_ns"], run["duration_ns"]]
    step = run["sample_ns"] or run["duration_ns"]
    return np.unique(np.concatenate([np.array(fixed, np.int64), np.arange(0, run["duration_ns"], step)]))


def tables(model: Model, solution: Solution) -> Columns:
    """All tables of a run; the solution has the times of `grid_s`."""
    sampled = _Sampled(model, solution)
    return {
        "flow": sampled.flow(),
        "subflow": sampled.subflow(),
        "link": sampled.link(),
        "event": _events(model),
    }


@dataclass(frozen=True)
class _Sampled:
    """Quantities at the times of the solution [t], and the positions of the samples in it."""

    model: Model
    solution: Solution

    @cached_property
    def grid(self) -> Array:
        return np.concatenate([piece.times_s for piece in self.solution.pieces])

    @cached_property
    def at(self) -> Array:
        """The last where a time is there twice: a sample at a change shows what is after it."""
        return np.searchsorted(self.grid, sample_times_s(self.model.graph.run) + 1e-12, side="right") - 1

    @cached_property
    def t_ns(self) -> Array:
        return _sample_times_ns(self.model.graph.run).astype("<u8")

    @cached_property
    def on_grid(self) -> Quantities:
        """All quantities on the grid; the pieces one after the other."""
        parts = [self.model.quantities(piece.states, piece.now, piece.slow) for piece in self.solution.pieces]
        names = Quantities.__dataclass_fields__
        return Quantities(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def _of_pieces(self, value: Any) -> Array:
        """A quantity of the conditions, on the grid."""
        pieces = self.solution.pieces
        return np.concatenate([np.broadcast_to(value(p.now), (len(p.times_s), *value(p.now).shape)) for p in pieces])

    def counter(self, rate: Array, held: Array | float = 0.0) -> Array:
        """Integral of a rate since the start of the run minus what is still held, at the samples, as whole numbers."""
        steps = np.diff(self.grid, prepend=0.0)[:, None]
        means = (rate + np.concatenate([rate[:1], rate[:-1]])) / 2.0
        total = (np.cumsum(means * steps, axis=0) - held)[self.at]
        # Rounding must not make a counter decrease.
        return np.maximum.accumulate(np.floor(np.maximum(total, 0.0) + 1e-6), axis=0).astype("<u8")

    def flow(self) -> dict[str, bytes]:
        """The flow table. A UDP flow delivers what passes its links."""
        run, streams = self.model.graph.run, self.model.graph.streams
        reached = self._reaching()
        sent, delivered = [], []
        for index, flow in enumerate(run["flows"]):
            own = [s for s, stream in enumerate(streams) if stream.flow == index and stream.kind != "ack"]
            is_udp = flow["transport"] == "udp"
            payload = np.array(
                [streams[s].packet_bytes - _UDP_HEADER_BYTES if is_udp else flow["mss_bytes"] for s in own]
            )
            passed = (reached[:, own] * payload).sum(axis=1)
            delivered.append(passed)
            sent.append((self.on_grid.stream_rate[:, own] * payload).sum(axis=1) if is_udp else passed)
        rows = _Rows(self.t_ns, len(run["flows"]))
        return {
            "t_ns": rows.times(),
            "flow": rows.each(np.arange(len(run["flows"])), "<u4"),
            "delivered_bytes": rows.of(self.counter(np.array(delivered).T), "<u8"),
            "sent_bytes": rows.of(self.counter(np.array(sent).T), "<u8"),
        }

    def _reaching(self) -> Array:
        """[t, s]: packets per second of every stream that leave its last link."""
        f, graph = self.on_grid, self.model.graph
        lost = np.log1p(-f.drop) @ graph.crossing.T - self._of_pieces(lambda now: _random_loss(graph, now))
        # Packets that lengthen a queue have not left it yet.
        delayed = np.log(np.maximum(self._leaving, 1e-9)) @ graph.crossing.T
        found: Array = f.stream_rate * np.exp(lost + delayed)
        return found

    @cached_property
    def _leaving(self) -> Array:
        """[t, k]: rate that leaves a queued link over the rate it accepts; above 1 while its queue gets shorter."""
        f = self.on_grid
        admitted = f.load * (1.0 - f.drop)
        capacity = self._of_pieces(lambda now: now.capacity)
        leaving = 1.0 - queue_growth(admitted, capacity, f.queue) / np.maximum(admitted, 1.0)
        return np.clip(leaving, 0.0, _MOST_LEAVING)

    def subflow(self) -> dict[str, bytes]:
        """The subflow table."""
        f, graph, at = self.on_grid, self.model.graph, self.at
        subflows = graph.subflows
        rows = _Rows(self.t_ns, len(subflows))
        active = self._of_pieces(lambda now: now.active)[at]
        last = np.array([graph.overheads[subflow.path[-1]] for subflow in subflows])
        wire = np.array([subflow.data_bytes for subflow in subflows]) + last
        payload = np.array([graph.run["flows"][subflow.flow]["mss_bytes"] for subflow in subflows])
        good, lost = self._reaching()[:, : len(subflows)], f.rate * f.loss
        window = np.maximum(np.rint(f.window[at]), 1.0) * active
        rtt = np.where(active, np.rint(f.rtt_s[at] * 1e6), 0.0)
        base = np.where(active, np.rint(self._of_pieces(lambda now: now.base_rtt_s)[at] * 1e6), 0.0)
        sent, lost_pkts, acked = self.counter(f.rate), self.counter(lost), self.counter(good)
        return {
            "t_ns": rows.times(),
            "flow": rows.each(np.array([subflow.flow for subflow in subflows]), "<u4"),
            "subflow": rows.each(np.array([subflow.number for subflow in subflows]), "<u4"),
            "state": rows.of(self._states(active), "u1"),
            "cwnd_pkts": rows.of(window, "<u4"),
            "inflight_pkts": rows.of(window, "<u4"),
            "srtt_us": rows.of(rtt, "<u4"),
            "rtt_us": rows.of(rtt, "<u4"),
            "min_rtt_us": rows.of(base, "<u4"),
            "rtt_sum_us": rows.of(self.counter(good * f.rtt_s * 1e6), "<u8"),
            "rtt_count": rows.of(acked, "<u8"),
            "sent_pkts": rows.of(sent, "<u8"),
            "retx_pkts": rows.of(lost_pkts, "<u8"),
            "acked_pkts": rows.of(acked, "<u8"),
            "lost_pkts": rows.of(lost_pkts, "<u8"),
            "loss_events": rows.of(lost_pkts, "<u8"),
            "rx_pkts": rows.of(acked, "<u8"),
            "rx_wire_bytes": rows.of(self.counter(good * wire), "<u8"),
            "rx_payload_bytes": rows.of(self.counter(good * payload), "<u8"),
        }

    def _states(self, active: Array) -> Array:
        begins = np.array([subflow.begin_ns for subflow in self.model.graph.subflows])
        return np.where(active, _OPEN, np.where(self.t_ns[:, None] < begins, _HANDSHAKE, _CLOSED))

    def link(self) -> dict[str, bytes]:
        """The link table. On links that nothing can fill, a packet leaves at once or is lost at random."""
        graph, at = self.model.graph, self.at
        links = range(len(graph.run["links"]))
        rows = _Rows(self.t_ns, len(links))
        found = [self._one_link(link) for link in links]
        all_links = {name: np.array([one[name] for one in found]).T for name in found[0]}
        queue, waiting, delay = (all_links.pop(name) for name in ("queue", "waiting", "delay"))
        held = {"departed_pkts": waiting, "departed_bytes": queue}
        counted = {name: self.counter(rates, held.get(name, 0.0)) for name, rates in all_links.items()}
        return {
            "t_ns": rows.times(),
            "link": rows.each(np.arange(len(links)), "<u4"),
            "queue_pkts": rows.of(np.floor(waiting[at] + 1e-6), "<u4"),
            "queue_bytes": rows.of(np.floor(queue[at]), "<u8"),
            **{name: rows.of(values, "<u8") for name, values in counted.items()},
            "marked_pkts": rows.of(np.zeros(rows.shape), "<u8"),
            "queue_delay_max_ns": rows.of(np.rint(_largest(delay, at) * 1e9), "<u8"),
        }

    def _one_link(self, link: int) -> dict[str, Array]:
        """The rates that the link table counts, on the grid, and the queue.

        Departures are accepted packets that no longer wait (`counter`).
        """
        graph, f = self.model.graph, self.on_grid
        own = [s for s, stream in enumerate(graph.streams) if link in stream.path]
        arriving = self._arriving(link, own)
        offered = arriving.sum(axis=1)
        random = 1.0 - np.exp(-self._of_pieces(lambda now: now.link_loss[[link]])[:, 0])
        dropped = queue = delay = np.zeros(len(self.grid))
        packet = 1.0
        if link in graph.queued:
            k = graph.queued.index(link)
            dropped, queue, packet = f.drop[:, k], f.queue[:, k], graph.packet_bytes[k]
            delay = queue / self._of_pieces(lambda now: now.capacity[[k]])[:, 0]
        accepted = arriving * ((1.0 - random) * (1.0 - dropped))[:, None]
        sizes = np.array([graph.streams[s].packet_bytes + graph.overheads[link] for s in own])
        return {
            "arrived_pkts": offered,
            "dropped_random_pkts": offered * random,
            "dropped_queue_pkts": offered * (1.0 - random) * dropped,
            "departed_pkts": accepted.sum(axis=1),
            "departed_bytes": accepted @ sizes if own else np.zeros(len(self.grid)),
            "queue_delay_sum_ns": accepted.sum(axis=1) * delay * 1e9,
            "queue": queue,
            "waiting": queue / packet,
            "delay": delay,
        }

    def _arriving(self, link: int, own: list[int]) -> Array:
        """[t, own]: packets per second of the streams that arrive at a link."""
        graph, f = self.model.graph, self.on_grid
        passed = np.empty((len(self.grid), len(own)))
        for column, s in enumerate(own):
            before = graph.streams[s].path[: graph.streams[s].path.index(link)]
            queues = [graph.queued.index(other) for other in before if other in graph.queued]
            chance = self._of_pieces(lambda now, before=before: np.array([now.link_loss[list(before)].sum()]))[:, 0]
            passed[:, column] = f.stream_rate[:, s] * np.exp(np.log1p(-f.drop[:, queues]).sum(axis=1) - chance)
        return passed


def _random_loss(graph: Graph, now: Conditions) -> Array:
    """[s]: -log of the probability that a stream's packets pass all random losses on their path."""
    return np.array([now.link_loss[list(stream.path)].sum() for stream in graph.streams])


@dataclass(frozen=True)
class _Rows:
    """The rows of a table: at every sample one row for each of `count` entities."""

    t_ns: Array
    count: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.t_ns), self.count

    def times(self) -> bytes:
        return np.repeat(self.t_ns, self.count).astype("<u8").tobytes()

    def each(self, values: Array, kind: str) -> bytes:
        return np.tile(values, len(self.t_ns)).astype(kind).tobytes()

    def of(self, values: Array, kind: str) -> bytes:
        return np.ascontiguousarray(values.reshape(self.shape)).astype(kind).tobytes()


def _largest(values: Array, at: Array) -> Array:
    """Largest value since the previous sample, at every sample."""
    if not values.shape[1]:
        found: Array = values[at]
        return found
    starts = np.concatenate([[0], at[:-1] + 1])
    return np.maximum.reduceat(values, np.minimum(starts, at), axis=0)


def _events(model: Model) -> dict[str, bytes]:
    """Starts and stops of flows and subflows, and changes of links, as the scenario has them."""
    run = model.graph.run
    rows = []
    for index, start in enumerate(run["starts_ns"]):
        stop = run["flows"][index]["stop_ns"]
        rows.append((start, _FLOW_STARTED, index, -1, -1, 0))
        if stop is not None:
            rows.append((stop, _FLOW_STOPPED, index, -1, -1, 0))
    for subflow in model.graph.subflows:
        waited = 2 * run["flows"][subflow.flow]["subflows"][subflow.number]["base_rtt_ns"] if subflow.number else 0
        waited = waited or run["flows"][subflow.flow]["subflows"][0]["base_rtt_ns"]
        rows.append((subflow.begin_ns, _SUBFLOW_ADDED, subflow.flow, subflow.number, -1, waited))
    for index, link in enumerate(run["links"]):
        for number, change in enumerate(link["schedule"]):
            rows.append((change["at_ns"], _LINK_CHANGED, -1, -1, index, number))
    rows = sorted(row for row in rows if row[0] <= run["duration_ns"])
    kinds = {"t_ns": "<u8", "kind": "u1", "flow": "<i4", "subflow": "<i4", "link": "<i4", "value": "<u8"}
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return {
        name: np.array(values, dtype=kind).tobytes()
        for (name, kind), values in zip(kinds.items(), columns, strict=True)
    }
