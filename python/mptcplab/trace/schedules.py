"""Remarks about changes of links that come after the end of a run, so that they do nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mptcplab.text import duration
from mptcplab.trace.topology import Topology

# The reverse direction of a link has its name and this, and the changes of the link unless others are set.
_REVERSE = "~"


def remarks(topologies: Iterable[Topology]) -> list[str]:
    """One line for the links whose changes from the same time on come too late; a run may have been shortened."""
    late: dict[tuple[int, int], list[str]] = {}
    for topology in topologies:
        for name, first_ns in _too_late(topology):
            names = late.setdefault((first_ns, topology.duration_ns), [])
            names += [name] if name not in names else []
    return [_line(names, first_ns, end_ns) for (first_ns, end_ns), names in late.items()]


def _too_late(topology: Topology) -> Iterator[tuple[str, int]]:
    """The links with changes that the run does not reach, and the time of the first (ns)."""
    for link in topology.links.values():
        times = [change.at_ns for change in link.schedule if change.at_ns >= topology.duration_ns]
        if times:
            yield link.name, min(times)


def _line(names: list[str], first_ns: int, end_ns: int) -> str:
    shown = [name for name in names if name.removesuffix(_REVERSE) == name or name.removesuffix(_REVERSE) not in names]
    who = f"link {shown[0]}" if len(shown) == 1 else f"links {', '.join(shown)}"
    return f"{who}: changes from {duration(first_ns)} on have no effect, because the run ends at {duration(end_ns)}"
