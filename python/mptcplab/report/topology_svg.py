"""The topology of a scenario as SVG: nodes, links with their properties, and the paths of the subflows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations, pairwise
from math import copysign
from typing import Any

from mptcplab import text
from mptcplab.plots.styles import Style, subflow_labels, subflow_styles
from mptcplab.report.topology_layout import Edge, Layout, lay_out
from mptcplab.trace.topology import Link, Topology

# The style of every subflow, by the names of its flow and its own.
Looks = Mapping[tuple[str, str], Style]
# A drawing with more than this would be too crowded.
MAX_DRAWN_LINKS = 24
MAX_DRAWN_SUBFLOWS = 16
# The most flows that the list below the drawing names.
MAX_LISTED_FLOWS = 40


@dataclass(frozen=True)
class Frame:
    """Turns (layer, lane) into pixels."""

    wide: bool
    layer_px: float
    lane_px: float
    margin_along: float
    margin_across: float
    low: float

    def at(self, layer: float, lane: float, shift: float = 0.0) -> tuple[float, float]:
        """Pixel position; `shift` is a distance across the direction of travel."""
        along = self.margin_along + layer * self.layer_px
        across = self.margin_across + (lane - self.low) * self.lane_px + shift
        return (along, across) if self.wide else (across, along)


# Distances in pixels: along and across, then the margins; room for the labels decides them.
_WIDE = (True, 310, 112, 60, 74)
# Room that a link's label takes beside its lane in a drawing that goes left to right.
_LABEL_PX = 72
_TALL = (False, 170, 176, 40, 76)
# One hop over more than so many lanes: the lanes bend apart slowly, so that no label is on the lane beside it.
_FEW_LANES, _FAN_PX = 3, 560
# A drawing shrinks to this part of its size at most; a narrower screen scrolls it.
_SMALLEST = 0.72
# A longer name with its subflows takes a line per subflow where lanes are beside each other.
_LONGEST_NAME = 16


def can_draw(topology: Topology) -> bool:
    """Whether the scenario is small enough to be drawn."""
    subflows = sum(len(flow.subflows) for flow in topology.flows)
    return len(topology.data_links) <= MAX_DRAWN_LINKS and subflows <= MAX_DRAWN_SUBFLOWS


def for_any_width(topology: Topology, styles: Looks | None = None) -> str:
    """Both drawings; the style sheet shows the one that fits the screen."""
    return draw(topology, styles, wide=True) + draw(topology, styles, wide=False)


def draw(topology: Topology, styles: Looks | None = None, *, wide: bool) -> str:
    """The drawing, left to right (`wide`) or top to bottom; without `styles`, every subflow has one of its own."""
    styles = subflow_styles(topology) if styles is None else styles
    layout = lay_out(topology)
    frame = Frame(*(_WIDE if wide else _TALL), layout.low)
    if wide:
        frame = replace(frame, lane_px=max(frame.lane_px, _LABEL_PX / _narrowest(layout)))
        if layout.layers == 2 and len({edge.lane for edge in layout.edges}) > _FEW_LANES:
            frame = replace(frame, layer_px=_FAN_PX)
    along = 2 * frame.margin_along + (layout.layers - 1) * frame.layer_px
    across = 2 * frame.margin_across + (layout.high - layout.low) * frame.lane_px
    width, height = (along, across) if wide else (across + 84, along)
    parts = [_pipe(edge, frame) for edge in layout.edges]
    parts += _paths(topology, layout, frame, styles)
    parts += [_label(topology, edge, frame, layout, styles) for edge in layout.edges]
    ends = _endpoints(topology)
    parts += [_node(name, *frame.at(*position), name in ends) for name, position in layout.nodes.items()]
    kind = "wide" if wide else "tall"
    limits = f"max-width:{width:.0f}px;min-width:{_SMALLEST * width:.0f}px"
    return (
        f'<svg class="topology {kind}" viewBox="0 0 {width:.0f} {height:.0f}" style="{limits}" '
        f'role="img" aria-label="{escape(_description(topology), quote=True)}">{"".join(parts)}</svg>'
    )


def legend(topology: Topology, styles: Looks | None = None) -> list[dict[str, Any]]:
    """Every subflow with a sample of its line (SVG), its path and its traffic."""
    styles, labels = subflow_styles(topology) if styles is None else styles, subflow_labels(topology)
    rows = []
    for flow in topology.flows[:MAX_LISTED_FLOWS]:
        for subflow in flow.subflows:
            key = (flow.name, subflow.name)
            about = f"{flow.transport.upper()}, {flow.traffic}"
            if subflow.base_rtt_ns is not None:
                about += f", base RTT {text.duration(subflow.base_rtt_ns)}"
            about += ", backup" if subflow.backup else ""
            sample = _path(styles[key], "M0 5H44")
            rows.append(
                {
                    "label": labels[key],
                    "line": f'<svg viewBox="0 0 44 10" width="44" height="10" aria-hidden="true">{sample}</svg>',
                    "about": about,
                    "path": " → ".join(subflow.path),
                }
            )
    return rows


def left_out_of_legend(topology: Topology) -> str:
    """What `legend` does not list, and where it is."""
    rest = len(topology.flows) - MAX_LISTED_FLOWS
    return f"{rest} more flows are in the scenario file at the end of this page." if rest > 0 else ""


def _narrowest(layout: Layout) -> float:
    """The least distance of two lanes on which links run beside each other; 1 if none do."""
    pairs = combinations(layout.edges, 2)
    beside = (abs(a.lane - b.lane) for a, b in pairs if a.is_beside(b) and a.lane != b.lane)
    return min(beside, default=1.0)


def _description(topology: Topology) -> str:
    flows = (f"{flow.name}: " + "; ".join(" > ".join(path) for path in flow.paths) for flow in topology.flows)
    return "Network of the scenario. " + ". ".join(flows)


def _endpoints(topology: Topology) -> set[str]:
    ends = set()
    for flow in topology.flows:
        for path in flow.paths:
            ends |= {topology.links[path[0]].source, topology.links[path[-1]].target}
    return ends


def _curve(edge: Edge, frame: Frame, shift: float = 0.0) -> str:
    """Out of the node, onto the link's lane, straight on, and into the other node."""
    span = edge.last - edge.first
    bend = copysign(min(0.36, 0.5 * abs(span) or 0.36), span)
    points: list[tuple[float, float]] = [(edge.first, edge.begin)]
    points.append((edge.first + bend if edge.begin != edge.lane else edge.first, edge.lane))
    points.append((edge.last - bend if edge.end != edge.lane else edge.last, edge.lane))
    points.append((edge.last, edge.end))
    x, y = frame.at(*points[0], shift)
    parts = [f"M{x:.1f} {y:.1f}"]
    for (layer, lane), (next_layer, next_lane) in pairwise(points):
        half = (layer + next_layer) / 2
        (ax, ay), (bx, by) = frame.at(half, lane, shift), frame.at(half, next_lane, shift)
        x, y = frame.at(next_layer, next_lane, shift)
        parts.append(f"C{ax:.1f} {ay:.1f} {bx:.1f} {by:.1f} {x:.1f} {y:.1f}")
    return " ".join(parts)


def _pipe(edge: Edge, frame: Frame) -> str:
    return f'<path class="pipe" d="{_curve(edge, frame)}"/>'


def _users(topology: Topology, link: Link) -> list[tuple[str, str]]:
    """Subflows that cross a link, in either direction of a duplex link."""
    names = {link.name, link.name + "~"}
    return [(f.name, s.name) for f in topology.flows for s in f.subflows if names & set(s.path)]


def _paths(topology: Topology, layout: Layout, frame: Frame, styles: Looks) -> list[str]:
    parts = []
    for edge in layout.edges:
        users = _users(topology, edge.link)
        for index, user in enumerate(users):
            shift = 5.0 * (index - (len(users) - 1) / 2)
            parts.append(_path(styles[user], _curve(edge, frame, shift)))
    return parts


def _path(style: Style, curve: str) -> str:
    colour, dash = f"stroke:var({style.css_colour})", style.svg_dash
    return f'<path class="flow" style="{colour}" stroke-dasharray="{dash}" d="{curve}"/>'


def properties(link: Link) -> list[str]:
    """The properties of a link that its label shows: those that matter."""
    speed = f"trace {link.trace}" if link.trace else text.rate(link.rate_bps)
    lines = [f"{speed}, {text.duration(link.delay_ns)}"]
    extras = []
    if link.loss > 0:
        extras.append(f"{text.percent(link.loss)} loss")
    if link.schedule:
        extras.append(f"{len(link.schedule)} changes")
    extras.append(f"queue {link.queue}" if link.queue != "unlimited" else "no queue limit")
    if link.aqm != "drop-tail":
        extras.append(link.aqm)
    return [*lines, ", ".join(extras)]


def differences_back(topology: Topology, link: Link) -> list[str]:
    """What the other direction of a duplex link does otherwise, if data flow there; empty if nothing."""
    back = next((one for one in topology.data_links if one.name == link.name + "~"), None)
    if back is None:
        return []
    here, there = (", ".join(properties(one)).split(", ") for one in (link, back))
    found = [part for part in there if part not in here]
    found += ["no loss"] if link.loss > 0 and back.loss == 0 else []
    return [*found, *(["drop-tail"] if link.aqm != back.aqm == "drop-tail" else [])]


def _label(topology: Topology, edge: Edge, frame: Frame, layout: Layout, styles: Looks) -> str:
    labels = subflow_labels(topology)
    starting = [
        (f.name, s.name) for f in topology.flows for s in f.subflows if s.path[0].removesuffix("~") == edge.link.name
    ]
    tags = [
        f'<tspan class="tag" style="fill:var({styles[who].css_colour})">{escape(labels[who])}</tspan>'
        for who in starting
    ]
    name = [f'<tspan class="name">{escape(edge.link.name)}</tspan>', *tags]
    details = properties(edge.link)
    if not frame.wide:
        details = [part for line in details for part in line.split(", ")]
    back = differences_back(topology, edge.link)
    details += [f"back: {part}" for part in ([", ".join(back)] if frame.wide and back else back)]
    if frame.wide or len(" ".join([edge.link.name, *(labels[who] for who in starting)])) <= _LONGEST_NAME:
        name = [" ".join(name)]
    lines = [*name, *(escape(line) for line in details)]
    centre = (edge.first + edge.last) / 2
    aside = copysign(0.08, edge.last - edge.first)
    if edge.begin != edge.lane and edge.end == edge.lane:
        centre += aside
    elif edge.end != edge.lane and edge.begin == edge.lane:
        centre -= aside
    x, y = frame.at(centre, edge.lane)
    step = 16
    if frame.wide:
        above = edge.lane <= (layout.low + layout.high) / 2
        top = y - 14 - step * (len(lines) - 1) if above else y + 24
        anchor = "middle"
    else:
        top, x, anchor = y - step * (len(lines) - 1) / 2 + 4, x + 14, "start"
    rows = "".join(
        f'<tspan x="{x:.1f}" y="{top + index * step:.1f}">{line}</tspan>' for index, line in enumerate(lines)
    )
    return f'<text class="label" text-anchor="{anchor}">{rows}</text>'


def _node(name: str, x: float, y: float, endpoint: bool) -> str:
    width = max(40.0, 9.0 * len(name) + 18)
    shape = (
        f'<rect class="host" x="{x - width / 2:.1f}" y="{y - 18:.1f}" width="{width:.1f}" height="36" rx="8"/>'
        if endpoint
        else f'<rect class="router" x="{x - width / 2:.1f}" y="{y - 15:.1f}" width="{width:.1f}" height="30" rx="15"/>'
    )
    css = "host-name" if endpoint else "router-name"
    return f'{shape}<text class="{css}" x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle">{escape(name)}</text>'
