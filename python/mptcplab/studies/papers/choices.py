"""Choices that a verdict may hang on: values of what a paper leaves open or what is ours, one changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import get_args

from mptcplab.studies.papers.catalog import Dialect, Experiment, Paper, Profile, Reading
from mptcplab.trace.topology import Link, Topology

BDP = "1 BDP"
QUEUES = (BDP, "100 packets", "1000 packets")
SCHEDULERS = ("roundrobin", "linger")


# A packet of a bandwidth-delay product, without layer-2 overhead.
_PACKET_BYTES = 1500


@dataclass(frozen=True)
class Choice:
    """Another value of one quantity, and how it changes an experiment whose network is known."""

    axis: str
    value: str
    change: Callable[[Experiment, Topology], Experiment]

    def __str__(self) -> str:
        return f"{self.axis} {self.value}"


def choices(paper: Paper) -> list[Choice]:
    """All choices that a paper's verdicts may hang on."""
    found = [Choice("queue", size, _queue(size)) for size in QUEUES]
    found += [Choice("noise", name, noise) for name, noise in _NOISES.items()]
    found += [Choice("ACK profile", profile, _profile(profile)) for profile in get_args(Profile)]
    found += [Choice("dialect", dialect, _dialect(dialect)) for dialect in get_args(Dialect)]
    found += [Choice("scheduler", name, _scheduler(name)) for name in SCHEDULERS]
    found += [Choice("delay", "towards the receiver only", _delay(2, 0)), Choice("delay", "of ACKs only", _delay(0, 2))]
    for reading in paper.readings:
        found += [
            Choice(f"reading of {reading.name}", other, _reading(paper, reading, other)) for other in reading.others
        ]
    return found


def one_per_axis(some: Iterable[Choice]) -> list[Choice]:
    """The first choice of each axis."""
    found: dict[str, Choice] = {}
    for choice in some:
        found.setdefault(choice.axis, choice)
    return list(found.values())


def bottlenecks(network: Topology) -> list[Link]:
    """The links that limit a subflow of a connection: the slowest of its path, or several equally slow ones."""
    found: dict[str, Link] = {}
    for flow in network.connections:
        for path in flow.paths:
            slowest = min(_rate(network.links[name]) for name in path)
            found |= {name: network.links[name] for name in path if _rate(network.links[name]) == slowest}
    return list(found.values())


def _rate(link: Link) -> float:
    return link.trace_rate_bps or link.rate_bps


def _settings(settings: Mapping[str, str]) -> Callable[[Experiment, Topology], Experiment]:
    return lambda experiment, _: _with(experiment, settings)


def _with(experiment: Experiment, settings: Mapping[str, str]) -> Experiment:
    return replace(experiment, settings={**experiment.settings, **settings})


def _queue(size: str) -> Callable[[Experiment, Topology], Experiment]:
    """All bottlenecks have a queue of this size."""

    def change(experiment: Experiment, network: Topology) -> Experiment:
        limits = {f"{_key(link)}.queue": _size(size, link, experiment, network) for link in bottlenecks(network)}
        return _with(experiment, limits)

    return change


def _size(size: str, link: Link, experiment: Experiment, network: Topology) -> str:
    """A queue's size as in a scenario; a bandwidth-delay product also where a treatment leaves the link unused."""
    if size != BDP:
        return f'"{size}"'
    crossing = (one for flow in network.connections for one in flow.subflows if link.name in one.path)
    rtt_ns = max(one.base_rtt_ns or 0 for one in crossing)
    if experiment.points:
        # The rate may vary: the time in which the queue drains does not.
        return f'"{rtt_ns} ns"'
    return f'"{ceil(_rate(link) * rtt_ns / 8e9 / (_PACKET_BYTES + link.overhead_bytes))} packets"'


def _packet_time(experiment: Experiment, network: Topology) -> Experiment:
    """The noise of all senders is what a full packet takes on the slowest link."""
    rate = min(map(_rate, bottlenecks(network)))
    frame = max(flow.frame_bytes for flow in network.connections) + 14
    return _with(experiment, {"tcp.send_jitter": f'"{round(8e9 * frame / rate)} ns"'})


_NOISES: dict[str, Callable[[Experiment, Topology], Experiment]] = {
    "none": _settings({"tcp.send_jitter": '"0 s"'}),
    "a packet's time": _packet_time,
    "1 ms": _settings({"tcp.send_jitter": '"1 ms"'}),
}


def _profile(profile: Profile) -> Callable[[Experiment, Topology], Experiment]:
    return lambda experiment, _: replace(experiment, profile=profile)


def _scheduler(name: str) -> Callable[[Experiment, Topology], Experiment]:
    return lambda experiment, _: replace(experiment, scheduler=name)


def _dialect(dialect: Dialect) -> Callable[[Experiment, Topology], Experiment]:
    return lambda experiment, _: replace(experiment, dialect=dialect)


def _delay(forward: int, backward: int) -> Callable[[Experiment, Topology], Experiment]:
    """Each link's delay of both directions is in one of them, so that the round-trip times stay."""

    def change(experiment: Experiment, network: Topology) -> Experiment:
        varied = {key for point in experiment.points for key in point.settings}
        varied |= {key for settings in experiment.variants.values() for key in settings}
        moved = {}
        for link in network.data_links:
            # Where the experiment itself varies a link's delay, it stays in both directions.
            if _alike(link, network) and varied.isdisjoint({f"links.{link.name}", f"links.{link.name}.delay"}):
                moved[f"links.{link.name}.delay"] = f'"{forward * link.delay_ns} ns"'
                moved[f"links.{link.name}.reverse.delay"] = f'"{backward * link.delay_ns} ns"'
        return _with(experiment, moved)

    return change


def _alike(link: Link, network: Topology) -> bool:
    """Whether the one direction of a link can take over the delay that the other has."""
    other = network.links.get(f"{link.name}~")
    return other is not None and other.delay_ns == link.delay_ns and link.delay_ns > 0


def _reading(paper: Paper, reading: Reading, other: str) -> Callable[[Experiment, Topology], Experiment]:
    """Another reading of a paper's treatments, in this paper's experiments."""

    def change(experiment: Experiment, _: Topology) -> Experiment:
        if experiment.paper != paper.id:
            return experiment
        return replace(experiment, parameters=dict.fromkeys(reading.of, other))

    return change


def _key(link: Link) -> str:
    """The key of a link in the scenario file."""
    stem = link.name.removesuffix("~")
    return f"links.{stem}" if stem == link.name else f"links.{stem}.reverse"
