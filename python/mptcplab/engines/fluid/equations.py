"""The differential equations of a run under given conditions: links, windows and losses together.

State: window of every subflow (packets; for CUBIC the Reno-friendly estimate), queue of every queued link (bytes),
last maximum (packets) and time since the last loss (s) of every subflow that runs CUBIC, packets between two losses of
every subflow whose rule counts them, and the losses expected so far of every subflow in slow start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mptcplab.engines.fluid.conditions import Conditions
from mptcplab.engines.fluid.cubic import Cubic
from mptcplab.engines.fluid.graph import Graph
from mptcplab.engines.fluid.network import Array, ack_wait, drop_tail, queue_growth, spread_of
from mptcplab.engines.fluid.rules import CUBIC, RULES, Coupled, Rule, values

# Windows never fall below a packet.
LEAST_PKTS = 1.0
# Relative step of the difference quotients; components below 1 count as 1.
_STEP = float(np.sqrt(np.finfo(float).eps))
# Linux' shortest timer of delayed ACKs.
_ACK_TIMER_S = 0.04


@dataclass(frozen=True)
class Group:
    """The subflows that run one algorithm with the same parameters."""

    rule: Rule
    members: Array
    starts: Array
    owner: Array
    params: dict[str, float | str]


@dataclass(frozen=True)
class Layout:
    """Positions of the parts of a state: n subflows, k queued links, m CUBIC subflows, j whose rule counts packets."""

    windows: slice
    queues: slice
    maxima: slice
    since_s: slice
    intervals: slice
    expected: slice
    size: int

    @classmethod
    def of(cls, n: int, k: int, m: int, j: int) -> Layout:
        """The layout for these numbers."""
        ends = np.cumsum([n, k, m, m, j, n]).tolist()
        windows, queues, maxima, since, intervals, expected = map(slice, [0, *ends[:-1]], ends)
        return cls(windows, queues, maxima, since, intervals, expected, ends[-1])


@dataclass(frozen=True)
class Quantities:
    """Quantities that follow from a state: per subflow [..., r], per stream [..., s] and per queued link [..., k]."""

    window: Array
    rtt_s: Array
    rate: Array
    loss: Array
    stream_rate: Array
    load: Array
    drop: Array
    queue: Array
    # Packets between two losses, of subflows whose rule counts them; otherwise 1.
    interval: Array


@dataclass(frozen=True)
class Model:
    """The parts of the equations that do not change over time."""

    graph: Graph
    groups: tuple[Group, ...]
    cubic: Cubic
    cubic_members: Array
    # Subflows whose rule counts packets between losses.
    counting: Array
    # Increase per acknowledged packet in congestion avoidance: 1/2 where ACKs are counted instead of packets.
    gain: Array
    # [r] largest window.
    clamp: Array
    # Time that a receiver waits for a second segment before it acknowledges one.
    ack_timer_s: float

    @classmethod
    def of(cls, graph: Graph, algorithms: dict[str, dict[str, Any]]) -> Model:
        """The model of a run; `algorithms` are the declarations by name."""
        flows = [graph.run["flows"][subflow.flow] for subflow in graph.subflows]
        names = [flow["cc"]["name"] for flow in flows]
        params = [values(algorithms[flow["cc"]["name"]], flow["cc"]) for flow in flows]
        members = np.array([at for at, name in enumerate(names) if name == CUBIC], int)
        chosen = [params[at] for at in members]
        return cls(
            graph,
            _groups(graph, names, params),
            Cubic(np.array([p["c"] for p in chosen]), np.array([p["beta"] for p in chosen])),
            members,
            np.array([at for at, name in enumerate(names) if name in RULES and RULES[name].counts], int),
            np.array([_gain(graph.run["profile"], algorithms[name]["coupled"]) for name in names]),
            np.array([np.inf if flow["cwnd_clamp_pkts"] is None else flow["cwnd_clamp_pkts"] for flow in flows]),
            0.0 if graph.run["profile"] == "rfc" else _ACK_TIMER_S,
        )

    @cached_property
    def layout(self) -> Layout:
        """Positions of the parts of a state."""
        return Layout.of(len(self.graph.subflows), len(self.graph.queued), len(self.cubic_members), len(self.counting))

    def quantities(self, state: Array, now: Conditions, slow: Array) -> Quantities:
        """Rates, round-trip times and losses at a state (or at many: leading axes stay)."""
        at = self.layout
        queue = np.maximum(state[..., at.queues], 0.0)
        window = np.maximum(state[..., at.windows], LEAST_PKTS)
        interval = np.ones_like(window)
        interval[..., self.counting] = np.maximum(state[..., at.intervals], 1.0)
        if len(self.cubic_members):
            avoiding = ~slow[self.cubic_members]
            estimate = state[..., at.windows][..., self.cubic_members]
            curve = self.cubic.window(estimate, state[..., at.maxima], state[..., at.since_s])
            window[..., self.cubic_members] = np.where(avoiding, curve, window[..., self.cubic_members])
        window = np.minimum(window, self.clamp) * now.active
        rtt = now.base_rtt_s + (queue / now.capacity) @ self._delaying
        rtt = rtt + ack_wait(window, rtt, self.ack_timer_s)
        rate = window / rtt
        stream_rate = rate @ self._feeding + now.udp_rate
        load, drop = self._drops(stream_rate, queue, now)
        loss = 1.0 - np.exp(-(now.random_loss + (-np.log1p(-drop)) @ self._data_crossing))
        return Quantities(window, rtt, rate, loss, stream_rate, load, drop, queue, interval)

    def derivative(self, state: Array, now: Conditions, slow: Array) -> Array:
        """The derivative of a state (or of many: leading axes stay); `slow` marks the subflows in slow start."""
        part = self.layout
        f = self.quantities(state, now, slow)
        acked, lost = f.rate * (1.0 - f.loss), f.rate * f.loss
        growth = np.zeros_like(state)
        windows = self._window_growth(growth, f, state, now, slow, acked, lost)
        growth[..., part.windows] = self._bounded(windows, state[..., part.windows])
        growth[..., part.queues] = queue_growth(f.load * (1.0 - f.drop), now.capacity, f.queue)
        growth[..., part.intervals] = (acked - lost * f.interval)[..., self.counting]
        growth[..., part.expected] = np.where(slow, lost, 0.0)
        return growth

    def jacobian(self, state: Array, now: Conditions, slow: Array) -> Array:
        """[i, j]: change of the derivative of component i with component j, from difference quotients."""
        step = _STEP * np.maximum(np.abs(state), 1.0)
        moved = self.derivative(np.vstack([state, state + np.diag(step)]), now, slow)
        found: Array = ((moved[1:] - moved[0]) / step[:, None]).T
        return found

    def _window_growth(
        self, growth: Array, f: Quantities, state: Array, now: Conditions, slow: Array, acked: Array, lost: Array
    ) -> Array:
        """Growth of the windows [..., r] without bounds; CUBIC's other state goes into `growth`."""
        part, at = self.layout, self.cubic_members
        found = np.zeros_like(f.window)
        for group in self.groups:
            found[..., group.members] = self._avoidance(group, f, now, acked, lost)
        if len(at):
            parts = (state[..., part.windows][..., at], state[..., part.maxima], state[..., part.since_s])
            window = f.window[..., at] + ~now.active[at]
            growing = acked[..., at] * self.gain[at] / (1.0 + window * f.loss[..., at])
            changes = self.cubic.growth(window, parts, f.loss[..., at], growing, lost[..., at])
            found[..., at] = changes[0]
            idle = slow[at] | ~now.active[at]
            growth[..., part.maxima] = np.where(idle, 0.0, changes[1])
            growth[..., part.since_s] = np.where(idle, 0.0, changes[2])
        result: Array = np.where(slow, acked, found) * now.active
        return result

    def _bounded(self, growth: Array, w: Array) -> Array:
        """Soft bounds at both ends: growth beyond a bound fades out within a tenth of a packet."""
        growth = np.where(growth < 0, growth * np.clip((w - LEAST_PKTS) * 10.0, 0.0, 1.0), growth)
        return np.where(growth > 0, growth * np.clip((self.clamp - w) * 10.0, 0.0, 1.0), growth)

    def decrease(self, f: Quantities, now: Conditions) -> Array:
        """Decrease per loss of every window without CUBIC, in packets."""
        taken = np.zeros_like(f.window)
        for group in self.groups:
            c = self._coupled(group, f, now)
            taken[..., group.members] = _taken(group, c)
        return taken

    def _avoidance(self, group: Group, f: Quantities, now: Conditions, acked: Array, lost: Array) -> Array:
        """dw/dt = x (1 - p) gain increase / (1 + w p) - x p decrease, the last with the spread of random losses.

        A window does not grow in the round trip after a loss: 1/(1 + w p) is the fraction of the time that remains.
        """
        c = self._coupled(group, f, now)
        taken = _taken(group, c)
        beta = 1.0 - taken / (c.sum(c.w) if group.rule.of_sum else c.w)
        growing = acked[..., group.members] * self.gain[group.members] / (1.0 + c.w * c.p)
        found: Array = growing * group.rule.increase(c) - lost[..., group.members] * taken * spread_of(beta)
        return found

    def _coupled(self, group: Group, f: Quantities, now: Conditions) -> Coupled:
        at = group.members
        active = now.active[at].astype(float)
        # The window of a subflow that may not send is negligible, but can be a divisor.
        w = np.where(now.active[at], f.window[..., at], 1e-9)
        rtt = f.rtt_s[..., at]
        count = np.add.reduceat(active, group.starts)[group.owner]
        return Coupled(
            w,
            rtt,
            w / rtt,
            f.loss[..., at],
            f.interval[..., at],
            np.maximum(count, 1.0),
            active,
            group.starts,
            group.owner,
            group.params,
        )

    def _drops(self, stream_rate: Array, queue: Array, now: Conditions) -> tuple[Array, Array]:
        """Load (bytes/s that pass the random losses) and share dropped of every queued link."""
        load, drop = np.zeros_like(queue), np.zeros_like(queue)
        for level in self.graph.levels:
            if self._is_first[level].all():
                load[..., level] = stream_rate @ now.offered_bytes[level].T
            else:
                passed = np.exp(np.tensordot(np.log1p(-drop), self.graph.upstream[level], axes=([-1], [2])))
                load[..., level] = (passed * now.offered_bytes[level] * stream_rate[..., None, :]).sum(axis=-1)
            drop[..., level] = drop_tail(load[..., level], now.capacity[level], queue[..., level], now.room[level])
        return load, drop

    @cached_property
    def _is_first(self) -> Array:
        """[k]: whether no other queued link is before this one on any path."""
        return np.logical_not(self.graph.upstream.any(axis=(1, 2)))

    @cached_property
    def _data_crossing(self) -> Array:
        """[k, r]: whether the data of subflow r crosses queued link k."""
        return self.graph.crossing[: len(self.graph.subflows)].T.copy()

    @cached_property
    def _delaying(self) -> Array:
        """[k, r]: number of times that a round trip of subflow r passes queued link k."""
        n = len(self.graph.subflows)
        found: Array = (self.graph.crossing[:n] + self.graph.crossing[n : 2 * n]).T.copy()
        return found

    @cached_property
    def _feeding(self) -> Array:
        """[r, s]: packets of stream s per packet of subflow r."""
        found = np.zeros((len(self.graph.subflows), len(self.graph.streams)))
        for s, stream in enumerate(self.graph.streams):
            if stream.subflow is not None:
                found[stream.subflow, s] = stream.per_packet
        return found


def _taken(group: Group, c: Coupled) -> Array:
    """The rule's decrease, limited by its smallest ssthresh, which never raises a window."""
    floor = np.where(c.n > 1, group.rule.floor, 2.0)
    found: Array = np.maximum(np.minimum(group.rule.decrease(c), c.w - floor), 0.0)
    return found


def _gain(profile: str, coupled: bool) -> float:
    """Growth per ACK instead of per packet is half as large, because a delayed ACK answers two packets."""
    per_ack = profile == "linux-pre4" or (profile == "linux-legacy" and coupled)
    return 0.5 if per_ack else 1.0


def _groups(graph: Graph, names: list[str], params: list[dict[str, float | str]]) -> tuple[Group, ...]:
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for at, name in enumerate(names):
        if name != CUBIC:
            kinds.setdefault((name, *sorted(params[at].items())), []).append(at)
    groups = []
    for members in kinds.values():
        flows = [graph.subflows[at].flow for at in members]
        starts = [at for at, flow in enumerate(flows) if at == 0 or flow != flows[at - 1]]
        owner = np.cumsum([at in starts for at in range(len(flows))]) - 1
        first = members[0]
        groups.append(Group(RULES[names[first]], np.array(members), np.array(starts), owner, params[first]))
    return tuple(groups)
