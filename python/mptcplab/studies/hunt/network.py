"""The networks among which a hunt searches, and their scenario files.

All have one shape: both paths of a connection begin with the same link, `access`, and continue on `one` or on `two`.
Other connections may use each of the three links. Where `access` is slow, it is a shared bottleneck; where it is fast,
the bottlenecks are apart. A network without `access` has two links only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, floor, log, log10

from mptcplab.text import decimal

MULTIPATH = "mp"
ACCESS, ONE, TWO = "access", "one", "two"
LINKS = (ACCESS, ONE, TWO)
DURATION_S, WARMUP_S = 60, 20
# When the network changes, if it does, and when its effect is measured.
CHANGE_S, SETTLED_S = 30, 32
AFTER = "after"
BUFFERS_KB = (64, 128, 256, 512, 1024)
COMPETITORS = ("reno", "cubic")
MOST_COMPETITORS = 3

# The ranges that are searched, on logarithmic scales.
_RATE_MBPS, _ACCESS_MBPS = (1.0, 20.0), (2.0, 40.0)
_DELAY_MS, _ACCESS_MS = (2.0, 150.0), (1.0, 30.0)
# The time in which a queue drains, at least `_LEAST_QUEUE` packets.
_QUEUE_MS = (5.0, 400.0)
_LEAST_QUEUE = 10.0
_MS_MBPS_PER_PACKET = 12.112
_LOSS_PERCENT = (0.01, 3.0)
_FACTOR = (0.1, 10.0)
# The part of a coordinate's range that stands for nothing: no loss, no change.
_NONE = 0.5
_LATEST_START_S = 4.0


@dataclass(frozen=True)
class Link:
    """A link; `others` are the TCP connections that use nothing else."""

    rate_mbps: float
    delay_ms: float
    queue_pkts: float
    loss_percent: float = 0.0
    others: int = 0


@dataclass(frozen=True)
class Change:
    """What becomes of a link at `CHANGE_S`: a key is multiplied, or, with the key `others`, its TCP connections end."""

    link: str
    key: str
    factor: float = 1.0


@dataclass(frozen=True)
class Network:
    """A network with the connections in it; times in s."""

    links: dict[str, Link] = field(hash=False)
    competitor: str = "reno"
    start_s: float = 0.0
    others_start_s: float = 0.0
    change: Change | None = None
    buffer_kb: int | None = None

    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the connection."""
        before = (ACCESS,) if ACCESS in self.links else ()
        return (*before, ONE), (*before, TWO)

    def with_link(self, name: str, **changes: float) -> Network:
        """The same with another link of this name."""
        return replace(self, links={**self.links, name: replace(self.links[name], **changes)})  # type: ignore[arg-type]

    def changed(self) -> Network:
        """The network as it is after its change, from the start."""
        if self.change is None:
            return self
        link = self.links[self.change.link]
        if self.change.key == "others":
            return replace(self.with_link(self.change.link, others=0), change=None)
        before = getattr(link, self.change.key)
        return replace(
            self.with_link(self.change.link, **{self.change.key: rounded(before * self.change.factor)}), change=None
        )


# The coordinates of a point, each from 0 to 1.
COORDINATES = (
    *(f"{link}.{key}" for link in LINKS for key in ("rate", "delay", "queue", "loss", "others")),
    *("competitor", "start", "others_start", "change.link", "change.key", "change.factor", "buffer"),
)


def network(point: Sequence[float], *, shared: bool = False, changes: bool = False, buffer: bool = False) -> Network:
    """The network at a point.

    With `shared`, `access` is the bottleneck of both paths and has a competitor. Only with `changes` something changes,
    and only with `buffer` the receive buffer is finite.
    """
    at = dict(zip(COORDINATES, point, strict=True))
    links = {name: _link(at, name) for name in LINKS}
    if shared:
        neck = links[ACCESS]
        links[ACCESS] = replace(neck, rate_mbps=min(neck.rate_mbps, _RATE_MBPS[1]), others=max(neck.others, 1))
        for name in (ONE, TWO):
            links[name] = replace(links[name], rate_mbps=2 * links[ACCESS].rate_mbps, others=0, loss_percent=0.0)
    return Network(
        links,
        COMPETITORS[_choice(at["competitor"], len(COMPETITORS))],
        round(at["start"] * _LATEST_START_S, 1),
        round(at["others_start"] * _LATEST_START_S, 1),
        _change(at, links) if changes else None,
        BUFFERS_KB[_choice(at["buffer"], len(BUFFERS_KB))] if buffer else None,
    )


def _link(at: dict[str, float], name: str) -> Link:
    rates, delays = (_ACCESS_MBPS, _ACCESS_MS) if name == ACCESS else (_RATE_MBPS, _DELAY_MS)
    loss, rate = at[f"{name}.loss"], _scaled(at[f"{name}.rate"], rates)
    drain = _scaled(at[f"{name}.queue"], _QUEUE_MS)
    return Link(
        rate,
        _scaled(at[f"{name}.delay"], delays),
        max(_LEAST_QUEUE, rounded(drain * rate / _MS_MBPS_PER_PACKET)),
        0.0 if loss < _NONE else _scaled((loss - _NONE) / (1 - _NONE), _LOSS_PERCENT),
        _choice(at[f"{name}.others"], MOST_COMPETITORS + 1),
    )


def _change(at: dict[str, float], links: dict[str, Link]) -> Change:
    name = (ONE, TWO)[_choice(at["change.link"], 2)]
    kinds = ("rate_mbps", "delay_ms", "loss_percent", "others")
    key = kinds[_choice(at["change.key"], len(kinds))]
    # What is not there cannot change.
    if not getattr(links[name], key):
        key = "rate_mbps"
    # A loss ends.
    factor = 0.0 if key == "loss_percent" else _scaled(at["change.factor"], _FACTOR)
    return Change(name, key, factor)


def _scaled(part: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return rounded(exp(log(low) + min(max(part, 0.0), 1.0) * (log(high) - log(low))))


def _choice(part: float, count: int) -> int:
    return min(int(part * count), count - 1)


def rounded(value: float, digits: int = 2) -> float:
    """A number with few digits, as one writes it into a file.

    >>> rounded(0.01234), rounded(38.7), rounded(38.7, 1)
    (0.012, 39.0, 40.0)
    """
    return round(value, digits - 1 - floor(log10(value))) if value > 0 else 0.0


def scenario(
    network: Network,
    cc: str,
    seed: int,
    repetitions: int = 1,
    *,
    remarks: Sequence[str] = (),
    title: str = "",
    replaceable: bool = False,
) -> str:
    """The scenario file of a network; `remarks` are the comment at its head.

    With `replaceable` the algorithm is that of the scenario, which `--cc` replaces, and not that of the flow.
    """
    lines = [f"# {line}".rstrip() for line in remarks] + ([""] if remarks else [])
    lines += [f"title = {json.dumps(title)}"] if title else []
    lines += [
        f'duration = "{DURATION_S} s"',
        f'warmup = "{WARMUP_S} s"',
        f"repetitions = {repetitions}",
        f"seed = {seed}",
        'sample = "100 ms"',
    ]
    algorithm = f"cc = {json.dumps(cc)}"
    lines += [algorithm] if replaceable else []
    for name, link in network.links.items():
        lines += ["", *_link_lines(network, name, link)]
    lines += ["", f"[flows.{MULTIPATH}]", f"paths = {json.dumps([list(path) for path in network.paths()])}"]
    lines += ['transport = "mptcp"', *([] if replaceable else [algorithm]), *_start(network.start_s)]
    lines += [] if network.buffer_kb is None else [f'rcv_buffer = "{network.buffer_kb} kB"']
    for name, link in network.links.items():
        if link.others:
            lines += ["", *_others(network, name, link)]
    return "\n".join(lines) + "\n"


def _link_lines(network: Network, name: str, link: Link) -> list[str]:
    source = "S" if name == ACCESS or ACCESS not in network.links else "A"
    lines = [
        f"[links.{name}]",
        f'from = "{source}"',
        f'to = "{"A" if name == ACCESS else "D"}"',
        f'rate = "{decimal(link.rate_mbps)} Mbit/s"',
        f'delay = "{decimal(link.delay_ms)} ms"',
        f'queue = "{decimal(link.queue_pkts)} packets"',
    ]
    lines += [f'loss = "{decimal(link.loss_percent)} %"'] if link.loss_percent else []
    change = network.change
    if change is not None and change.link == name and change.key != "others":
        key, unit = {"rate_mbps": ("rate", "Mbit/s"), "delay_ms": ("delay", "ms"), "loss_percent": ("loss", "%")}[
            change.key
        ]
        value = getattr(network.changed().links[name], change.key)
        lines.append(f'schedule = [{{ at = "{CHANGE_S} s", {key} = "{decimal(value)} {unit}" }}]')
    return lines


def _others(network: Network, name: str, link: Link) -> list[str]:
    lines = [f"[flows.tcp-{name}]", f'path = ["{name}"]', f'cc = "{network.competitor}"']
    lines += [f"count = {link.others}"] if link.others > 1 else []
    lines += _start(network.others_start_s)
    ends = network.change is not None and network.change == Change(name, "others", network.change.factor)
    return [*lines, *([f'stop = "{CHANGE_S} s"'] if ends else [])]


def _start(seconds: float) -> list[str]:
    return [f'start = "{decimal(seconds)} s"'] if seconds else []


def names_of_others(network: Network) -> list[str]:
    """The names of the other connections in traces."""
    found = []
    for name, link in network.links.items():
        copies = [f"tcp-{name}-{number}" for number in range(1, link.others + 1)]
        found += copies if link.others > 1 else [f"tcp-{name}"] * link.others
    return found
