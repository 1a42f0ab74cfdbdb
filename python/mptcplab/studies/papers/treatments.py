"""Treatments: the names that papers give to protocols and algorithms, as changes of a scenario.

`uncoupled-X` is X on every subflow; `ewtcp` the variant `fair` (weight 1/n, whose numbers the authors report);
`independent-X`, `tcp-X@SUBFLOW` and `ref-tcp@SUBFLOW` replace the MPTCP connection `mp` by one TCP on the path of that
subflow (the reference: Reno, or CUBIC where the competitors run CUBIC); `rx-X` sets X at the receiver of the download
and leaves LIA at its sender; the names of Kushwah and Kumar combine algorithm, scheduler and transport.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.trace.topology import Topology

MULTIPATH = "mp"


@dataclass(frozen=True)
class Treatment:
    """The changes of a scenario; with `cc` None its own algorithms stay."""

    cc: str | None
    settings: Mapping[str, str]


_NAMED: dict[str, tuple[str | None, dict[str, str]]] = {
    "fixed": (None, {}),
    "ewtcp": ("ewtcp(weight=fair)", {}),
    "ewtcp-sqrt": ("ewtcp", {}),
    "mptcp": ("lia", {"flows.mp.scheduler": '"minrtt"'}),
    "mptcp-rr": ("lia", {"flows.mp.scheduler": '"roundrobin(cwnd_limited=false)"'}),
    "proposed": ("delayvar", {"flows.mp.scheduler": '"delayvar"'}),
    # SCTP has a congestion control of its own.
    "cmt-sctp": (None, {"flows.mp.transport": '"cmt-sctp"', "cc": ""}),
}


def treatment(label: str, topology: Topology, known: set[str]) -> Treatment:
    """The treatment with a label, for a scenario with this topology; `known` are the algorithms of this build."""
    if label in _NAMED:
        return Treatment(*_NAMED[label])
    name, _, subflow = label.partition("@")
    if label == "sctp":
        one_path = _single(topology, None, "", "cmt-sctp")
        return Treatment(None, {**one_path.settings, "cc": ""})
    if name.startswith("rx-"):
        return Treatment("lia", {})
    if name == "ref-tcp":
        return _single(topology, subflow, _competitors(topology), "tcp")
    if subflow:
        return _single(topology, subflow, name.removeprefix("tcp-"), "tcp")
    if name.startswith("independent-"):
        return _single(topology, None, name.removeprefix("independent-"), "tcp")
    if name.endswith("-text"):
        return Treatment(f"{name.removesuffix('-text')}(gamma=text)", {})
    cc = name.removeprefix("uncoupled-")
    if cc.partition("(")[0] not in known:
        hint = f"one of {', '.join(sorted({*known, *_NAMED, 'sctp'}))}, or as papers/README.md says"
        raise MptcplabError(with_hint(f"no such algorithm or treatment: {label!r}", hint))
    return Treatment(cc, {})


def in_dialect(cc: str, dialect: str, knowing: Container[str]) -> str:
    """An algorithm, with its parameters in parentheses, in a dialect, if it is one of those `knowing` dialects."""
    if cc.partition("(")[0] not in knowing or dialect == "spec":
        return cc
    return with_parameter(cc, f"dialect={dialect}")


def with_parameter(cc: str, parameter: str) -> str:
    """An algorithm with one more parameter.

    >>> with_parameter("dolia", "gamma=text"), with_parameter("delayvar(threshold=1)", "decrease=halved")
    ('dolia(gamma=text)', 'delayvar(threshold=1, decrease=halved)')
    """
    name, _, parameters = cc.partition("(")
    return f"{name}({', '.join(filter(None, (parameters.removesuffix(')'), parameter)))})"


def _single(topology: Topology, subflow: str | None, cc: str, transport: str) -> Treatment:
    """The multipath connection over one path only: that of `subflow`, or of the first."""
    flow = next((flow for flow in topology.flows if flow.name == MULTIPATH), None)
    if flow is None:
        hint = "a treatment with one path takes the place of this connection"
        raise MptcplabError(with_hint(f"the scenario has no flow {MULTIPATH!r}", hint))
    chosen = [part for part in flow.subflows if subflow in (None, part.name)]
    if not chosen:
        names = ", ".join(part.name for part in flow.subflows)
        raise MptcplabError(f"flow {MULTIPATH} has no subflow {subflow!r}; it has {names}")
    path = "[" + ", ".join(f'"{link}"' for link in chosen[0].path) + "]"
    only = f'[{{ name = "{chosen[0].name}", path = {path} }}]'
    return Treatment(cc, {"flows.mp.transport": f'"{transport}"', "flows.mp.subflows": only})


def _competitors(topology: Topology) -> str:
    """The algorithm of the other TCPs: CUBIC if one of them runs it, else Reno."""
    others = {flow.cc for flow in topology.connections if flow.name != MULTIPATH}
    return "cubic" if "cubic" in others else "reno"
