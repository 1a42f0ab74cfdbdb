"""What was found, written down: a scenario file for each finding, all findings as JSON, and a page in Markdown.

A directory collects the findings of several hunts; one of the same algorithm and property replaces the former.
"""

from __future__ import annotations

import json
import math
import shlex
import textwrap
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mptcplab.capabilities import SIM
from mptcplab.errors import OutputError, with_hint
from mptcplab.markdown import table
from mptcplab.output import write_text, writing
from mptcplab.studies.hunt import OTHER_SEEDS, REPETITIONS, Confirmation, Finding, commands
from mptcplab.studies.hunt.network import CHANGE_S, SETTLED_S, Change, Link, Network, scenario
from mptcplab.studies.hunt.properties import AS_IS, PROPERTIES
from mptcplab.text import counted

PAGE, FINDINGS = "README.md", "findings.json"
# The findings that the project publishes, from its directory.
OF_PROJECT = Path("docs/hunt")


def prepare(directory: Path) -> None:
    """Create the directory. Raises `OutputError` for one that has something else."""
    with writing(f"create {directory}", "choose another --out"):
        directory.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in directory.iterdir()}
    if names and FINDINGS not in names:
        hint = "choose another --out, or an empty directory"
        raise OutputError(with_hint(f"the output directory has other files than findings of hunts: {directory}", hint))
    # Before minutes of search, not after.
    read(directory)


def add(directory: Path, finding: Finding, complete: bool = True) -> None:
    """Write a finding, and the page of all. One that is not `complete` does not replace one that was confirmed."""
    known = read(directory)
    others = [one for one in known if (one.cc, one.about.name) != (finding.cc, finding.about.name)]
    if not complete and any(one.confirmations for one in known if one not in others):
        return
    order = list(PROPERTIES)
    findings = sorted([*others, finding], key=lambda one: (one.cc, order.index(one.about.name)))
    with writing(f"write to {directory}", "make room there, or choose another --out"):
        write_text(directory / finding.file, scenario_file(finding, finding.file))
        write_text(directory / FINDINGS, json.dumps([as_data(one) for one in findings], indent=1) + "\n")
        write_text(directory / PAGE, page(findings, directory))


def read(directory: Path) -> list[Finding]:
    """The findings of a directory; none where there are none yet."""
    path = directory / FINDINGS
    if not path.is_file():
        return []
    hint = "hunt again into another --out"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OutputError(with_hint(f"{path}: not JSON: {error}", hint)) from error
    try:
        if not isinstance(found, list):
            raise TypeError(found)
        return [_finding(one) for one in found]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OutputError(with_hint(f"{path}: not the findings of a hunt of this version", hint)) from error


def as_data(finding: Finding) -> dict[str, Any]:
    """A finding for programs."""
    return {
        "cc": finding.cc,
        "property": finding.about.name,
        "violated": finding.violated,
        "bound": finding.about.bound,
        "seed": finding.seed,
        "evaluations": finding.evaluations,
        "score": finding.score,
        "smaller": finding.smaller,
        "confirmations": [
            {
                key: None if isinstance(value, float) and not math.isfinite(value) else value
                for key, value in one.items()
            }
            for one in map(asdict, finding.confirmations)
        ],
        "scenario": finding.file,
        **({} if finding.source is None else {"source": finding.source}),
        "network": asdict(finding.network),
    }


def _finding(data: dict[str, Any]) -> Finding:
    given = data["network"]
    network = Network(
        **{
            **given,
            "links": {name: Link(**link) for name, link in given["links"].items()},
            "change": None if given["change"] is None else Change(**given["change"]),
        }
    )
    confirmations = tuple(_confirmation(one) for one in data["confirmations"])
    names = ("cc", "seed", "evaluations", "score", "smaller")
    return Finding(
        about=PROPERTIES[data["property"]],
        network=network,
        confirmations=confirmations,
        source=data.get("source"),
        **{name: data[name] for name in names},
    )


def _confirmation(data: dict[str, Any]) -> Confirmation:
    missing = {key: float("nan") for key, value in data.items() if value is None}
    return Confirmation(**{**data, **missing})


def line(finding: Finding) -> str:
    """A finding in a line."""
    return f"{finding.cc}, {finding.about.name}: {verdict(finding)}"


def verdict(finding: Finding) -> str:
    """What was found, with the numbers."""
    bound = f"{_percent(finding.about.bound)}"
    if not finding.confirmations:
        networks = counted(finding.evaluations, "network")
        if _percent(finding.score) == _percent(0) or finding.score < 0:
            # How far a score is below 0 says nothing: some weigh what is lost against what is gained.
            return f"no violation in {networks}"
        state = "not confirmed yet" if finding.violated else f"no violation beyond {bound}"
        return f"{state}: at most {_percent(finding.score)} {finding.about.how_much} in {networks}"
    parts = [_confirmed(one) for one in finding.confirmations]
    state = "violated" if finding.violated else "not confirmed"
    return f"{state}: {'; '.join(parts)} {finding.about.how_much}"


def _confirmed(one: Confirmation) -> str:
    if one.repetitions == 0:
        return f"not measured on {one.engine}"
    return f"{_percent(one.mean)} ({_percent(one.low)} to {_percent(one.high)} on {one.engine})"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def command(findings: Iterable[Finding]) -> list[str]:
    """The commands that make findings, one for each."""
    return [
        f"mptcplab hunt {shlex.quote(_given(one))} --property {one.about.name} --evaluations {one.evaluations} "
        f"--seed {one.seed}{_confirm(one)}"
        for one in findings
    ]


def _confirm(finding: Finding) -> str:
    """The option for the engines beside the simulator that ran the network."""
    others = [one.engine for one in finding.confirmations if one.engine != SIM.name]
    return f" --confirm {shlex.quote(','.join(others))}" if others else ""


def _given(finding: Finding) -> str:
    """The algorithm as a command line takes it."""
    name, bracket, parameters = finding.cc.partition("(")
    return f"{finding.source or name}{bracket}{parameters}"


def scenario_file(finding: Finding, name: str) -> str:
    """The scenario of a finding, with what it shows at its head."""
    remarks = [
        f"Does {finding.cc} keep this property? {finding.about.statement}",
        f"{verdict(finding)}.",
        "",
        f"Found by: {command([finding])[0]}",
    ]
    if finding.network.change is not None:
        remarks += [
            "",
            f"What counts is the goodput from {SETTLED_S} s on; at {CHANGE_S} s the network changes. The runs compared "
            "are this one, and one in which the network is from the start as it is in the end.",
        ]
    others = commands(finding, name)
    if others:
        besides = " besides this one" if AS_IS in finding.about.runs and finding.source is None else ""
        remarks += ["", f"The runs that are compared{besides}:", *(f"    {one}" for one in others)]
    title = f"Hunt: {finding.cc}, {finding.about.name}"
    # The runs whose numbers are at its head.
    seed = finding.seed + OTHER_SEEDS
    return scenario(
        finding.network,
        finding.cc,
        seed,
        REPETITIONS,
        remarks=_wrapped(remarks),
        title=title,
        replaceable=finding.source is not None,
    )


def _wrapped(remarks: list[str], width: int = 116) -> list[str]:
    """Lines that are not wider than a file's; commands stay whole."""
    found: list[str] = []
    for remark in remarks:
        found += [remark] if remark.startswith("    ") or not remark else textwrap.wrap(remark, width)
    return found


def page(findings: list[Finding], directory: Path) -> str:
    """The page of all findings in a directory."""
    rows = [
        (f"{one.cc}", f"[{one.about.name}](#{one.about.name})", verdict(one), f"[{one.file}]({one.file})")
        for one in findings
    ]
    parts = [_HEAD, table(("Algorithm", "Property", "Worst network found", "Scenario"), rows), _PROPERTIES]
    parts += [
        f"### {one.name}\n\n{one.statement} Violated above {_percent(one.bound)}.\n"
        for one in PROPERTIES.values()
        if any(finding.about == one for finding in findings)
    ]
    lines = "\n".join(f"    {one} --out {shlex.quote(directory.as_posix())}" for one in command(findings))
    again = "; `make hunt` runs them again" if directory == OF_PROJECT else ""
    parts.append(f"## Commands\n\nThese commands made the findings{again}.\n\n{lines}\n")
    return "\n".join(parts)


_HEAD = """\
<!-- Generated by `mptcplab hunt`; do not edit. -->

# Hunts

`mptcplab hunt CC` searches for the network in which an algorithm violates a property most. Both paths of an MPTCP
connection begin with the same link and continue on one of two others; the search chooses the rates, delays, queues and
losses of the three links, the TCP connections beside it and when they start, and, where the property is about
them, a change of the network or the receive buffer. It knows nothing about the algorithm. What it finds is made smaller
as long as the violation stays, and simulated again with ten other seeds: the numbers below are their mean with its
interval. If these do not confirm a violation, the next worst network is made smaller instead. The error of a 95 %
interval is divided among all networks that may be tried in this way, so that chance confirms one of them no more often
than it would confirm a single one. Another engine runs only the network that was confirmed, and its interval is that of
95 %.
"""
_PROPERTIES = "\n## Properties\n"
