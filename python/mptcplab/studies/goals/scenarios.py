"""The networks as scenario files, and the runs that measure each of them.

In one file the connection `mp` runs under the algorithm in question and under uncoupled Reno (CUBIC beside CUBIC); for
REF-TCP(r) an override replaces `mp` by one TCP on path r. The name stays, so that starts and losses are the same in all
runs, repetition by repetition.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from mptcplab.algorithm import places_of
from mptcplab.capabilities import SIM
from mptcplab.scenario import Overrides
from mptcplab.studies.goals.grid import SHARED, Grid, Network
from mptcplab.study.cell import run_command
from mptcplab.text import decimal

MULTIPATH = "mp"
# Rates of the bottlenecks of path 1 (and of the shared one) and of path 2, and the base RTT of path 1.
RATE_1_MBPS, RATE_2_MBPS = 20, 10
BASE_RTT_MS = 20
# Propagation of the link `near`, a part of path 1 where the bottleneck is shared, there and back.
_NEAR_RTT_MS = 2
_START = "uniform(0 s, 1 s)"


@dataclass(frozen=True)
class Layout:
    """The structure of a network: links by path, the bottleneck of each path, and the competitor at each bottleneck."""

    paths: dict[str, tuple[str, ...]]
    bottlenecks: dict[str, str]
    competitors: dict[str, str]


_SHARED = Layout(
    {"path 1": ("near", "neck"), "path 2": ("far", "neck")},
    {"path 1": "neck", "path 2": "neck"},
    {"neck": "tcp"},
)
_DISJOINT = Layout(
    {"path 1": ("neck1",), "path 2": ("neck2",)},
    {"path 1": "neck1", "path 2": "neck2"},
    {"neck1": "tcp1", "neck2": "tcp2"},
)


def layout(network: Network) -> Layout:
    """The layout of a network."""
    return _SHARED if network.kind == SHARED else _DISJOINT


@dataclass(frozen=True)
class Setting:
    """The same in all networks: the algorithm in question, seed, ACK profile (None: the format's) and engine."""

    cc: str
    seed: int | None = None
    profile: str | None = None
    engine: str = SIM.name

    @property
    def engine_options(self) -> tuple[str, ...]:
        """The engine as options of a command; the simulator is the default."""
        return () if self.engine == SIM.name else ("--engine", self.engine)


def algorithms(network: Network, cc: str) -> tuple[str, ...]:
    """The algorithms of `mp`: the one in question first, then the uncoupled one, unless that is the same."""
    return tuple(dict.fromkeys((cc, network.competitor)))


def replacement(network: Network, path: str) -> Overrides:
    """The changes that make the scenario REF-TCP(path): one TCP instead of the multipath connection."""
    links = json.dumps(list(layout(network).paths[path]))
    return Overrides(
        cc=(network.competitor,),
        settings={f"flows.{MULTIPATH}.transport": '"tcp"', f"flows.{MULTIPATH}.paths": f"[{links}]"},
    )


def commands(network: Network, file: str, setting: Setting, *, absolute: bool = False) -> tuple[str, ...]:
    """The commands that run a network: with the multipath connection, then with one TCP on each of its paths.

    With `absolute` they find an algorithm's C file from any directory.
    """
    places = places_of([setting.cc], absolute=absolute)
    # A scenario has names of algorithms only; --cc compiles a file.
    own = Overrides(cc=algorithms(network, setting.cc), files=places) if places else Overrides()
    variants = (own, *(replacement(network, path) for path in layout(network).paths))
    return tuple(run_command(file, variant, *setting.engine_options) for variant in variants)


def scenario(network: Network, grid: Grid, setting: Setting, remarks: Sequence[str] = ()) -> str:
    """The scenario file of a network; `remarks` are further lines of the comment at its head.

    A C file is not in it: a scenario has names of algorithms only, and would not run without the command that has both.
    """
    is_file = bool(places_of([setting.cc]))
    head = [_QUESTION, "", *(_ABOUT_SHARED if network.kind == SHARED else _ABOUT_DISJOINT)]
    head += ["", *remarks] if remarks else []
    top = _TOP.format(
        title=json.dumps(f"Goals of RFC 6356: {network.text}"),
        duration=grid.duration_s,
        warmup=grid.warmup_s,
        repetitions=grid.repetitions,
        seed="" if setting.seed is None else f"seed = {setting.seed}\n",
        profile="" if setting.profile is None else f"profile = {json.dumps(setting.profile)}\n",
        about_cc=_ABOUT_FILE if is_file else _ABOUT_CC,
        cc=json.dumps([network.competitor] if is_file else list(algorithms(network, setting.cc))),
    )
    where = layout(network)
    flows = [_flow("mp", transport="mptcp", paths=list(where.paths.values()))]
    for link, name in where.competitors.items():
        # Where both paths share the bottleneck, the competitor takes the first.
        path = next(path for path in where.paths.values() if link in path)
        flows.append(_flow(name, path=path, cc=network.competitor))
    comment = "\n".join(f"# {line}".rstrip() for line in head)
    return "\n".join([f"{comment}\n", top, *_links(network), *flows])


def _links(network: Network) -> list[str]:
    """The links. A queue is given as the time that it takes to drain, which is the same for every flow."""
    rtt_2_ms, loss = BASE_RTT_MS * network.rtt_ratio, network.loss_percent
    if network.kind == SHARED:
        return [
            _link("near", "S", "A", "1 Gbit/s", _NEAR_RTT_MS),
            _link("far", "S", "A", "1 Gbit/s", rtt_2_ms - BASE_RTT_MS + _NEAR_RTT_MS),
            _link("neck", "A", "D", f"{RATE_1_MBPS} Mbit/s", BASE_RTT_MS - _NEAR_RTT_MS, loss, network, BASE_RTT_MS),
        ]
    return [
        _link("neck1", "S", "D", f"{RATE_1_MBPS} Mbit/s", BASE_RTT_MS, None, network, BASE_RTT_MS),
        _link("neck2", "S", "D", f"{RATE_2_MBPS} Mbit/s", rtt_2_ms, loss, network, rtt_2_ms),
    ]


def _link(
    name: str,
    source: str,
    target: str,
    rate: str,
    rtt_ms: float,
    loss_percent: float | None = None,
    network: Network | None = None,
    bdp_ms: float = 0,
) -> str:
    """A link whose propagation takes `rtt_ms` there and back; a bottleneck has the buffer of the network."""
    lines = [f"[links.{name}]", f'from = "{source}"', f'to = "{target}"', f'rate = "{rate}"']
    lines.append(f'delay = "{decimal(rtt_ms / 2)} ms"')
    lines += [] if loss_percent is None else [f'loss = "{decimal(loss_percent)} %"']
    if network is not None:
        lines.append(f'queue = "{decimal(network.buffer_bdp * bdp_ms)} ms"    # {network.buffer_bdp:g} BDP')
    return "\n".join(lines) + "\n"


def _flow(name: str, **keys: object) -> str:
    lines = (f"{key} = {json.dumps(value)}" for key, value in {**keys, "start": _START}.items())
    return "\n".join([f"[flows.{name}]", *lines]) + "\n"


_QUESTION = "Does a connection with two subflows meet the goals of RFC 6356 in this network?"
_ABOUT_SHARED = (
    "Both subflows of `mp` and one TCP share the bottleneck `neck`. Path 2 reaches it over `far`, which may be longer",
    "than `near`; the TCP comes over `near`, so its base RTT is that of path 1. The queue is given as the time that it",
    "takes to drain, so that it does not depend on who crosses it: 1 BDP is the base RTT of path 1.",
    "",
    "    S -- near -- A == neck == D        mp: near + neck, far + neck; tcp: near + neck",
    "      \\- far --/",
)
_ABOUT_DISJOINT = (
    "Each subflow of `mp` has a bottleneck of its own, which it shares with one TCP of the same base RTT. The queue",
    "is given as the time that it takes to drain; 1 BDP is the base RTT of the path. Only `neck2` loses packets at",
    "random.",
    "",
    "    S == neck1 == D        mp, tcp1",
    "    S == neck2 == D        mp, tcp2",
)

_ABOUT_CC = "What `mp` runs: the algorithm in question, and the uncoupled one that goal 3 compares it with."
_ABOUT_FILE = "The uncoupled algorithm that goal 3 compares with; the one in question is a C file, which --cc names."
_TOP = """\
title = {title}
source = "RFC 6356, section 1"
duration = "{duration} s"
warmup = "{warmup} s"
repetitions = {repetitions}
{seed}{profile}# {about_cc}
cc = {cc}
# Metrics need the counters at the edges of the measured window only.
sample = "off"
"""
