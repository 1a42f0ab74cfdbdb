"""The resolved scenario of a run: links, flows and paths by name, every unit explicit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mptcplab.trace.headers import LINUX, SHORT, data_header_bytes

# The DSS option of engines that are no kernel, where the resolved scenario names none.
_DEFAULT_DSS = {"sim": SHORT, "fluid": SHORT}
# Bytes per delivery opportunity of a Mahimahi trace.
OPPORTUNITY_BYTES = 1504


@dataclass(frozen=True)
class Change:
    """One entry of a link's schedule; None leaves the property as it is."""

    at_ns: int
    rate_bps: float | None
    up: bool | None


@dataclass(frozen=True)
class Link:
    """A directed link."""

    name: str
    source: str
    target: str
    rate_bps: float
    delay_ns: int
    overhead_bytes: int
    queue: str
    aqm: str
    # Long-run probability.
    loss: float
    schedule: tuple[Change, ...]
    trace: str | None
    # Mean rate of the delivery trace, which replaces `rate_bps`.
    trace_rate_bps: float | None

    def mean_rate_bps(self, begin_ns: int, end_ns: int) -> float | None:
        """Mean rate over a span of time; None if the scenario does not determine it.

        A delivery trace counts with the mean of all of it while the link is up.
        """
        always = self.rate_bps if self.trace is None else self.trace_rate_bps
        if always is None or not self.schedule or end_ns <= begin_ns:
            return always
        carried, at, rate, up = 0.0, 0, always, True
        for change in (*self.schedule, Change(end_ns, None, None)):
            span = min(change.at_ns, end_ns) - max(at, begin_ns)
            carried += max(span, 0) * (rate if up else 0.0)
            at = change.at_ns
            rate = rate if change.rate_bps is None else change.rate_bps
            up = up if change.up is None else change.up
        return carried / (end_ns - begin_ns)

    @cached_property
    def closings(self) -> tuple[tuple[int, bool], ...]:
        """When the schedule begins to let nothing through (True), and when something again (False); times in ns."""
        rate, up, found = self.rate_bps, True, [(0, self.rate_bps == 0)]
        for change in self.schedule:
            rate = rate if change.rate_bps is None else change.rate_bps
            up = up if change.up is None else change.up
            if (closed := not up or rate == 0) != found[-1][1]:
                found.append((change.at_ns, closed))
        return tuple(found)

    def is_closed(self, at_ns: int) -> bool:
        """Whether the schedule lets nothing through at a time."""
        return next(closed for since_ns, closed in reversed(self.closings) if since_ns <= at_ns)


@dataclass(frozen=True)
class Subflow:
    """One subflow: forward path and path of the ACKs, as link names."""

    name: str
    path: tuple[str, ...]
    reverse: tuple[str, ...]
    base_rtt_ns: int | None
    backup: bool
    # Earliest start and stop, where the scenario sets them.
    start_ns: int | None = None
    stop_ns: int | None = None
    # When it becomes a backup (True) or a regular subflow.
    priority: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True)
class Flow:
    """A TCP or MPTCP connection, an SCTP association or a UDP stream."""

    name: str
    transport: str
    cc: str
    scheduler: str
    traffic: str
    # "bulk", "size", "on/off", "transfers", "video", "requests", "messages" or "udp".
    kind: str
    subflows: tuple[Subflow, ...]
    # The earliest start if it is random; then `latest_start_ns` is another time.
    start_ns: int
    stop_ns: int | None
    mss_bytes: int
    udp_load_bps: float
    # A response or a delivery that takes longer is late.
    bound_ns: int | None = None
    # How long MPTCP's options are.
    dss: str = SHORT
    latest_start_ns: int | None = None

    @property
    def ends_by_itself(self) -> bool:
        """Whether it is one file, which is over when it is complete."""
        return self.kind == "size"

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """Forward paths of the subflows."""
        return tuple(subflow.path for subflow in self.subflows)

    @property
    def is_greedy(self) -> bool:
        """Whether it uses all the capacity it can get while it lasts, so that it should get a fair share."""
        return self.kind not in ("on/off", "transfers", "video", "requests", "messages")

    @property
    def frame_bytes(self) -> int:
        """Size of a full data packet without layer-2 overhead."""
        return self.mss_bytes + data_header_bytes(self.transport, self.dss)


@dataclass(frozen=True)
class Topology:
    """The parts of a run's scenario that metrics and figures need."""

    nodes: tuple[str, ...]
    links: dict[str, Link]
    flows: tuple[Flow, ...]
    duration_ns: int
    warmup_ns: int

    @property
    def connections(self) -> tuple[Flow, ...]:
        """The flows that react to congestion: all but UDP."""
        return tuple(flow for flow in self.flows if flow.transport != "udp")

    @cached_property
    def is_greedy(self) -> bool:
        """Whether every flow uses all the capacity it can get."""
        return all(flow.is_greedy for flow in self.flows)

    @property
    def data_links(self) -> tuple[Link, ...]:
        """Links that carry data (not only ACKs), in file order."""
        used = {name for flow in self.flows for path in flow.paths for name in path}
        return tuple(link for link in self.links.values() if link.name in used)

    @property
    def packet_hops(self) -> float:
        """About how much there is to simulate: packets times links, in millions."""
        seconds = self.duration_ns / 1e9
        total = 0.0
        bottlenecks: dict[str, float] = {}
        for flow in self.flows:
            for path in flow.paths:
                link = min((self.links[name] for name in path), key=lambda link: link.rate_bps)
                bottlenecks[link.name] = max(bottlenecks.get(link.name, 0.0), link.rate_bps * len(path))
        for name, rate in bottlenecks.items():
            # A link that never fills carries what loss allows, some thousand packets a second at most.
            busy = min(rate, 20e6) if self.links[name].loss >= 0.005 else rate
            total += busy * seconds * 1.5 / 12_000 / 1e6
        return max(total, 0.01)

    @classmethod
    def from_json(cls, text: str, engine: str = "sim") -> Topology:
        """Parse the `resolved` column of the run table, of a run on an engine."""
        dss = _DEFAULT_DSS.get(engine, LINUX)
        data = json.loads(text)
        links = [_link(entry) for entry in data["links"]]
        return cls(
            nodes=tuple(data["nodes"]),
            links={link.name: link for link in links},
            flows=tuple(_flow(entry, dss) for entry in data["flows"]),
            duration_ns=data["duration_ns"],
            warmup_ns=data["warmup_ns"],
        )


def _link(entry: dict[str, Any]) -> Link:
    trace = entry["trace"]
    return Link(
        name=entry["name"],
        source=entry["from"],
        target=entry["to"],
        rate_bps=float(entry["rate_bps"]),
        delay_ns=entry["delay_ns"],
        overhead_bytes=entry["overhead_bytes"],
        queue=_queue(entry["queue"]),
        aqm=entry["aqm"]["name"],
        loss=_loss(entry["loss"]),
        schedule=tuple(
            Change(change["at_ns"], change.get("rate_bps"), change.get("up")) for change in entry["schedule"]
        ),
        trace=trace["name"] if trace else None,
        trace_rate_bps=_trace_rate(trace) if trace else None,
    )


def _trace_rate(trace: dict[str, Any]) -> float | None:
    if trace["period_ns"] <= 0:
        return None
    found: float | None = trace["opportunities"] * OPPORTUNITY_BYTES * 8e9 / trace["period_ns"]
    return found


def _queue(limit: dict[str, Any] | None) -> str:
    if limit is None:
        return "unlimited"
    ((unit, amount),) = limit.items()
    return f"{amount:,} {unit}"


def _loss(model: dict[str, Any] | None) -> float:
    """Long-run loss probability."""
    if model is None:
        return 0.0
    if model["model"] == "bernoulli":
        return float(model["p"])
    moves = model["p"] + model["r"]
    bad = model["p"] / moves if moves > 0 else 0.0
    found: float = (1 - bad) * model["loss_good"] + bad * model["loss_bad"]
    return found


def _flow(entry: dict[str, Any], dss: str) -> Flow:
    common = {
        "name": entry["name"],
        "transport": entry["transport"],
        "start_ns": _earliest(entry["start_ns"]),
        "latest_start_ns": _latest(entry["start_ns"]),
        "stop_ns": entry["stop_ns"],
    }
    if entry["transport"] == "udp":
        subflow = Subflow("udp", tuple(entry["path"]), (), None, False)
        load = entry["rate_bps"] * _duty(entry["on_off"])
        return Flow(
            **common,
            cc="",
            scheduler="",
            traffic="constant rate",
            kind="udp",
            subflows=(subflow,),
            mss_bytes=0,
            udp_load_bps=load,
        )
    subflows = tuple(
        Subflow(
            name=part["name"],
            path=tuple(part["path"]),
            reverse=tuple(part["reverse"]),
            base_rtt_ns=part["base_rtt_ns"],
            backup=part["backup"],
            start_ns=part.get("start_ns"),
            stop_ns=part.get("stop_ns"),
            priority=tuple((change["at_ns"], change["backup"]) for change in part.get("priority", ())),
        )
        for part in entry["subflows"]
    )
    kind, traffic = _traffic(entry["traffic"])
    return Flow(
        **common,
        cc=entry["cc"]["text"],
        scheduler=entry["scheduler"] or "",
        traffic=traffic,
        kind=kind,
        subflows=subflows,
        mss_bytes=entry["mss_bytes"],
        udp_load_bps=0.0,
        bound_ns=_bound_ns(entry["traffic"]),
        dss=entry.get("dss", dss),
    )


def _traffic(traffic: str | dict[str, Any]) -> tuple[str, str]:
    """The kind of a flow's traffic, and a description."""
    if isinstance(traffic, str):
        return "bulk", traffic
    if "size_bytes" in traffic:
        return "size", f"{traffic['size_bytes']:,} bytes"
    if "video" in traffic:
        return "video", f"video up to {traffic['video']['ladder_bps'][-1] / 1e6:g} Mbit/s"
    if "requests" in traffic:
        requests = traffic["requests"]
        return "requests", f"requests, responses of {_size(requests['response'])}{_times(requests)}"
    if "messages" in traffic:
        messages = traffic["messages"]
        answered = "" if messages["answer"] is None else ", answered"
        return "messages", f"messages of {_size(messages['size'])}{answered}{_times(messages)}"
    if "arrivals" in traffic:
        size, levels = traffic["size"], traffic["arrivals"].get("levels")
        mean = _size(size)
        rates = " and ".join(f"{level['per_s']:g}" for level in levels or ())
        return "transfers", f"{mean} at {rates} / s" if levels else f"{mean}, repeatedly"
    return "on/off", "on/off"


def _size(size: int | dict[str, Any]) -> str:
    return f"{size:,} bytes" if isinstance(size, int) else f"{size['mean_bytes']:,} bytes ({size['law']})"


def _times(requests: dict[str, Any]) -> str:
    """When requests or messages are sent."""
    if "think_ns" in requests:
        return ", one after the other"
    if "interval_ns" in requests:
        return f" every {_mean(requests['interval_ns']) / 1e6:g} ms"
    return " at " + " and ".join(f"{level['per_s']:g}" for level in requests["arrivals"]["levels"]) + " / s"


def _bound_ns(traffic: str | dict[str, Any]) -> int | None:
    if isinstance(traffic, str):
        return None
    requests = traffic.get("requests") or traffic.get("messages") or {}
    return requests.get("bound_ns")


def _earliest(span: int | dict[str, Any]) -> int:
    return span if isinstance(span, int) else span["uniform_ns"][0]


def _latest(span: int | dict[str, Any]) -> int:
    return span if isinstance(span, int) else span["uniform_ns"][1]


def _mean(span: int | dict[str, Any]) -> float:
    if isinstance(span, int):
        return float(span)
    return float(span["exponential_mean_ns"]) if "exponential_mean_ns" in span else sum(span["uniform_ns"]) / 2


def _duty(on_off: dict[str, Any] | None) -> float:
    """Fraction of the time in which an on/off stream sends."""
    if on_off is None:
        return 1.0
    on, off = _mean(on_off["on_ns"]), _mean(on_off["off_ns"])
    return on / (on + off) if on + off > 0 else 1.0
