"""The differential equations of a run under given conditions: links, windows and losses together.

State: window of every subflow (packets; for CUBIC the Reno-friendly estimate), queue of every queued link (bytes),
last maximum (packets) and time since the last loss (s) of every subflow that runs CUBIC, and the losses expected so
far of every subflow in slow start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from mptcplab.fluid.conditions import Conditions
from mptcplab.fluid.cubic import Cubic
from mptcplab.fluid.graph import Graph
from mptcplab.fluid.loss import Array, ack_wait, drop_tail, queue_growth, spread_of
from mptcplab.fluid.rules import CUBIC, RULES, Coupled, Rule, values

# Windows never fall below a packet.
LEAST_PKTS = 1.0
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
class Flowing:
    """What follows from a state: per subflow [..., r], per stream [..., s] and per queued link [..., k]."""

    window: Array
    rtt_s: Array
    rate: Array
    loss: Array
    stream_rate: Array
    load: Array
    drop: Array
    queue: Array


@dataclass(frozen=True)
class Model:
    """The parts of the equations that do not change over time."""

    graph: Graph
    groups: tuple[Group, ...]
    cubic: Cubic
    cubic_members: Array
    # Packets that an acknowledged packet counts for in congestion avoidance: 1/2 where ACKs are counted.
    gain: Array
    # [r] largest window.
    clamp: Array
    # A receiver waits so long for a second segment before it acknowledges one.
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
            np.array([_gain(graph.run["profile"], algorithms[name]["coupled"]) for name in names]),
            np.array([np.inf if flow["cwnd_clamp_pkts"] is None else flow["cwnd_clamp_pkts"] for flow in flows]),
            0.0 if graph.run["profile"] == "rfc" else _ACK_TIMER_S,
        )

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of subflows, queued links and subflows that run CUBIC."""
        return len(self.graph.subflows), len(self.graph.queued), len(self.cubic_members)

    def split(self, state: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Window, queue, CUBIC's maximum and time, expected losses."""
        n, k, m = self.sizes
        bounds = (0, n, n + k, n + k + m, n + k + 2 * m, 2 * n + k + 2 * m)
        return tuple(state[..., begin:end] for begin, end in pairwise(bounds))

    def flowing(self, state: Array, now: Conditions, slow: Array) -> Flowing:
        """Rates, round-trip times and losses at a state (or at many: leading axes are kept)."""
        w, queue, maximum, since, _ = self.split(state)
        queue = np.maximum(queue, 0.0)
        window = np.maximum(w, LEAST_PKTS)
        if len(self.cubic_members):
            avoiding = ~slow[self.cubic_members]
            curve = self.cubic.window(w[..., self.cubic_members], maximum, since)
            window = window.copy()
            window[..., self.cubic_members] = np.where(avoiding, curve, window[..., self.cubic_members])
        window = np.minimum(window, self.clamp) * now.active
        rtt = now.base_rtt_s + (queue / now.capacity) @ self._delaying
        rtt = rtt + ack_wait(window, rtt, self.ack_timer_s)
        rate = window / rtt
        stream_rate = rate @ self._feeding + now.udp_rate
        load, drop = self._drops(stream_rate, queue, now)
        loss = 1.0 - np.exp(-(now.random_loss + (-np.log1p(-drop)) @ self._data_crossing))
        return Flowing(window, rtt, rate, loss, stream_rate, load, drop, queue)

    def derivative(self, state: Array, now: Conditions, slow: Array) -> Array:
        """The state's derivative; `slow` says which subflows are in slow start."""
        n, k, m = self.sizes
        f = self.flowing(state, now, slow)
        w, _, maximum, since, _ = self.split(state)
        acked, lost = f.rate * (1.0 - f.loss), f.rate * f.loss
        growth = np.zeros(len(state))
        for group in self.groups:
            at = group.members
            growth[at] = self._avoidance(group, f, now, acked[at], lost[at])
        if m:
            at = self.cubic_members
            parts = (w[at], maximum, since)
            window = f.window[at] + ~now.active[at]
            growing = acked[at] * self.gain[at] / (1.0 + window * f.loss[at])
            changes = self.cubic.growth(window, parts, f.loss[at], growing, lost[at])
            growth[at] = changes[0]
            idle = slow[at] | ~now.active[at]
            growth[n + k : n + k + m] = np.where(idle, 0.0, changes[1])
            growth[n + k + m : n + k + 2 * m] = np.where(idle, 0.0, changes[2])
        windows = np.where(slow, acked, growth[:n]) * now.active
        # Soft walls at both ends: what a window may not do fades out within a tenth of a packet.
        windows = np.where(windows < 0, windows * np.clip((w - LEAST_PKTS) * 10.0, 0.0, 1.0), windows)
        growth[:n] = np.where(windows > 0, windows * np.clip((self.clamp - w) * 10.0, 0.0, 1.0), windows)
        growth[n : n + k] = queue_growth(f.load * (1.0 - f.drop), now.capacity, f.queue)
        growth[n + k + 2 * m :] = np.where(slow, lost, 0.0)
        return growth

    def decrease(self, f: Flowing, now: Conditions) -> Array:
        """What a loss takes from every window that is no CUBIC's, in packets."""
        taken = np.zeros_like(f.window)
        for group in self.groups:
            c = self._coupled(group, f, now)
            taken[..., group.members] = _taken(group, c)
        return taken

    def _avoidance(self, group: Group, f: Flowing, now: Conditions, acked: Array, lost: Array) -> Array:
        """dw/dt = x (1 - p) gain increase / (1 + w p) - x p decrease, the last with the spread of random losses.

        A window does not grow in the round trip after a loss: 1/(1 + w p) is the part of the time that remains.
        """
        c = self._coupled(group, f, now)
        taken = _taken(group, c)
        kept = 1.0 - taken / (c.sum(c.w) if group.rule.of_sum else c.w)
        growing = acked * self.gain[group.members] / (1.0 + c.w * c.p)
        return growing * group.rule.increase(c) - lost * taken * spread_of(kept)

    def _coupled(self, group: Group, f: Flowing, now: Conditions) -> Coupled:
        at = group.members
        active = now.active[at].astype(float)
        # A subflow that may not send has a window that weighs nothing, but can be divided by.
        w = np.where(now.active[at], f.window[..., at], 1e-9)
        rtt = f.rtt_s[..., at]
        count = np.add.reduceat(active, group.starts)[group.owner]
        return Coupled(
            w,
            rtt,
            w / rtt,
            f.loss[..., at],
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
        """[k]: no other queued link is before this one on any path."""
        return ~self.graph.upstream.any(axis=(1, 2))

    @cached_property
    def _data_crossing(self) -> Array:
        """[k, r]: the data of subflow r cross queued link k."""
        return self.graph.crossing[: self.sizes[0]].T.copy()

    @cached_property
    def _delaying(self) -> Array:
        """[k, r]: how often a round trip of subflow r waits at queued link k."""
        n = self.sizes[0]
        return (self.graph.crossing[:n] + self.graph.crossing[n : 2 * n]).T.copy()

    @cached_property
    def _feeding(self) -> Array:
        """[r, s]: packets of stream s per packet of subflow r."""
        found = np.zeros((self.sizes[0], len(self.graph.streams)))
        for s, stream in enumerate(self.graph.streams):
            if stream.subflow is not None:
                found[stream.subflow, s] = stream.per_packet
        return found


def _taken(group: Group, c: Coupled) -> Array:
    """The rule's decrease, but no further than its least ssthresh, which never raises a window."""
    floor = np.where(c.n > 1, group.rule.floor, 2.0)
    return np.maximum(np.minimum(group.rule.decrease(c), c.w - floor), 0.0)


def _gain(profile: str, coupled: bool) -> float:
    """Growth per ACK instead of per packet halves it, because delayed ACKs answer two packets."""
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
