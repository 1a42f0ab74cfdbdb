"""Settings of a scenario that the equations cannot describe.

Nothing is ignored silently: each setting names the key, the value, the reason, and an alternative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mptcplab.engines.fluid import rules

_SIMULATE = "the simulator runs it: leave --engine fluid out"
# With unlimited backlogs and buffers, these schedulers keep every window full and send nothing twice, so that all of
# them give the same rates.
_FILLING = ("minrtt", "roundrobin", "blest")
# Settings that `like` makes where a flow has none of its own.
_SET_BY_LIKE = ("scheduler", "rcv_buffer", "tso", "comp_sack")
# A link that changes more often is better simulated.
_MAX_CHANGES = 200
# After each, the integration begins anew, which takes ten milliseconds on a small network.
_MAX_SWITCHES = 2000
_MAX_STATES = 400


@dataclass(frozen=True)
class UnsupportedSetting:
    """One setting that cannot be described. `keys`: where it may be written, the most specific first."""

    keys: tuple[str, ...]
    message: str
    hint: str = _SIMULATE

    def as_dict(self) -> dict[str, Any]:
        """For `_core.reject_settings`."""
        return {"keys": list(self.keys), "message": self.message, "hint": self.hint}


def unsupported_settings(run: dict[str, Any], algorithms: dict[str, dict[str, Any]]) -> list[UnsupportedSetting]:
    """All settings of a run (an element of `_core.runs_json`) that the equations cannot describe."""
    found = [*_run(run)]
    for link in run["links"]:
        found += _link(link)
    for index, flow in enumerate(run["flows"]):
        found += _flow(flow, algorithms)
        if flow["transport"] == "udp":
            found += _switches(flow, run["starts_ns"][index], run["duration_ns"])
    return found


def _run(run: dict[str, Any]) -> Iterator[UnsupportedSetting]:
    if run["per_ack"]:
        yield UnsupportedSetting(
            ("per_ack",), "true: a fluid has no ACKs to record", 'leave it out; sample = "1 ms" is fine'
        )
    subflows = sum(len(flow.get("subflows", ())) for flow in run["flows"])
    if subflows == 0:
        yield UnsupportedSetting(("flows",), "no flow reacts to congestion: there is no equation to solve")
    if subflows + len(run["links"]) > _MAX_STATES:
        size = f"{subflows} subflows and {len(run['links'])} directed links"
        yield UnsupportedSetting(("flows",), f"{size}: the fluid engine takes {_MAX_STATES} of both together")
    changes = max((len(link["schedule"]) for link in run["links"]), default=0)
    if changes > _MAX_CHANGES:
        message = f"a link changes {changes} times: the fluid engine takes {_MAX_CHANGES}, beyond that it is slow"
        yield UnsupportedSetting(("links",), message)


def _link(link: dict[str, Any]) -> Iterator[UnsupportedSetting]:
    def no(key: str, message: str, hint: str = _SIMULATE) -> UnsupportedSetting:
        return UnsupportedSetting(_link_keys(link["name"], key), message, hint)

    if link["aqm"]["name"] != "drop-tail":
        yield no("aqm", f'"{link["aqm"]["name"]}": the equations here are those of drop-tail queues', "leave aqm out")
    losses = [link["loss"], *(change["loss"] for change in link["schedule"] if "loss" in change)]
    if any(loss is not None and loss["model"] != "bernoulli" for loss in losses):
        message = "losses in bursts (Gilbert-Elliott): a fluid knows the probability of a loss only"
        yield no("loss", message, 'write a probability, such as loss = "1 %"')
    if any(loss is not None and loss.get("p") == 1.0 for loss in losses):
        yield no("loss", "100 %: nothing comes through, and a fluid has no timeouts")
    if link["reorder"] is not None:
        yield no("reorder", "a fluid has no packets that could overtake one another")
    if link["trace"] is not None:
        yield no("trace", "a delivery trace lets single packets through; a fluid needs a rate")
    rates = [link["rate_bps"], *(change["rate_bps"] for change in link["schedule"] if "rate_bps" in change)]
    down = any(change.get("up") is False for change in link["schedule"])
    if link["trace"] is None and (min(rates) == 0 or down):
        yield no("schedule", "a link that is down or has no rate: what follows is timeouts, and a fluid has none")


def _link_keys(name: str, key: str) -> tuple[str, ...]:
    stem = name.removesuffix("~")
    names = [stem, *_without_number(stem)]
    keys = [f"links.{name}.reverse.{key}" for name in names if stem != name]
    keys += [f"links.{name}.{key}" for name in names]
    if key == "schedule":
        keys += [f"links.{name}.schedule_file" for name in names]
    return (*keys, *(f"links.{name}" for name in names))


def _without_number(name: str) -> list[str]:
    """The name without its number, under which an entry with a count is written once."""
    stem, dash, number = name.rpartition("-")
    return [stem] if dash and number.isdigit() else []


def _flow(flow: dict[str, Any], algorithms: dict[str, dict[str, Any]]) -> Iterator[UnsupportedSetting]:
    if flow["transport"] == "udp":
        yield from _udp(flow)
        return
    if flow["transport"] == "cmt-sctp":
        yield _no(flow, "transport", '"cmt-sctp": there is no published fluid model of it')
        return
    yield from _algorithm(flow, algorithms)
    yield from _traffic(flow)
    yield from _options(flow)
    yield from _subflows(flow)


def _no(flow: dict[str, Any], key: str, message: str, hint: str = _SIMULATE) -> UnsupportedSetting:
    names = [flow["name"], *_without_number(flow["name"])]
    keys = [f"flows.{name}.{key}" for name in names] + [f"tcp.{key}", key]
    if key in _SET_BY_LIKE:
        keys += [*(f"flows.{name}.like" for name in names), "tcp.like"]
    keys += [f"flows.{name}" for name in names]
    return UnsupportedSetting(tuple(keys), message, hint)


def _udp(flow: dict[str, Any]) -> Iterator[UnsupportedSetting]:
    spans = (flow["on_off"] or {}).values()
    if not all(isinstance(span, int) for span in spans):
        message = "random spans of silence: the equations know no chance"
        yield _no(flow, "traffic", message, 'write fixed spans, such as "1 s"')


def _switches(flow: dict[str, Any], start_ns: int, duration_ns: int) -> Iterator[UnsupportedSetting]:
    """A stream of UDP that is switched on and off too often, each time a change of the conditions."""
    on_off = flow["on_off"]
    if on_off is None or not all(isinstance(span, int) for span in on_off.values()):
        return
    lasts_ns = (duration_ns if flow["stop_ns"] is None else min(flow["stop_ns"], duration_ns)) - start_ns
    switches = 2 * lasts_ns // sum(on_off.values())
    if switches > _MAX_SWITCHES:
        message = f"switched {switches} times: the fluid engine takes {_MAX_SWITCHES}, beyond that it is slow"
        yield _no(flow, "traffic", message, "write longer spans, or simulate it")


def _algorithm(flow: dict[str, Any], algorithms: dict[str, dict[str, Any]]) -> Iterator[UnsupportedSetting]:
    name, text = flow["cc"]["name"], flow["cc"]["text"]
    if name not in rules.modelled():
        message = f'"{text}": no fluid model of it is published'
        yield _no(flow, "cc", message, f"with a published model: {', '.join(rules.modelled())}")
        return
    for param, value in rules.values(algorithms[name], flow["cc"]).items():
        if (param, value) in _UNKNOWN_VARIANTS:
            yield _no(flow, "cc", f'"{text}": its fluid model is that of the specification', f"leave {param} out")


# Parameters that choose another rule than the published equations.
_UNKNOWN_VARIANTS = {("dialect", "mptcp-0.95"), ("metric", "draft")}


def _traffic(flow: dict[str, Any]) -> Iterator[UnsupportedSetting]:
    traffic = flow["traffic"]
    if traffic == "bulk":
        return
    kinds = {
        "size_bytes": "a fixed size",
        "on_ns": "on and off",
        "video": "video",
        "arrivals": "transfers",
        "requests": "requests",
        "messages": "messages",
    }
    kind = next(word for key, word in kinds.items() if key in traffic)
    message = f"{kind}: the equations are those of flows that always have data"
    hint = 'write traffic = "bulk" (with start and stop, if it is to come and go), or simulate it'
    yield _no(flow, "traffic", message, hint)


def _options(flow: dict[str, Any]) -> Iterator[UnsupportedSetting]:
    if flow["rcv_buffer"] is not None:
        size = next(value for value in flow["rcv_buffer"].values() if isinstance(value, int))
        message = f"{size} bytes: the equations do not know what waits for reordering in a receive buffer"
        yield _no(flow, "rcv_buffer", message, 'write rcv_buffer = "unlimited"')
    if flow["recovery"] != "sack":
        message = f'"{flow["recovery"]}": the equations halve once per loss, as recovery with SACK does'
        yield _no(flow, "recovery", message, "leave it out, or simulate it")
    scheduler = flow["scheduler"]
    if flow["transport"] == "mptcp" and scheduler is not None and scheduler not in _FILLING:
        message = f'"{scheduler}": it decides how much a subflow may send, which the equations do not know'
        yield _no(flow, "scheduler", message, f"leave it out, or one of {', '.join(_FILLING)}, which fill every window")


def _subflows(flow: dict[str, Any]) -> Iterator[UnsupportedSetting]:
    for subflow in flow["subflows"]:
        if subflow["backup"] or subflow["priority"]:
            message = f"{subflow['name']}: a backup is used when others fail, and in a fluid none fails"
            yield _no(flow, "subflows", message, "leave backup and priority out, or simulate it")
