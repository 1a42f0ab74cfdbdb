"""Layered layout of a scenario's graph: the place of each node, and the lane along which each link runs.

Positions are abstract (layer, lane); the drawing turns them into pixels, left to right or top to bottom.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, count

from mptcplab.trace.topology import Link, Topology


@dataclass(frozen=True)
class Edge:
    """A drawn link: `lanes` are the positions across, `first` and `last` the layers of its ends (it may go back)."""

    link: Link
    first: float
    last: float
    begin: float
    lane: float
    end: float

    def is_beside(self, other: Edge) -> bool:
        """Whether both run between the same two layers somewhere."""
        (low, high), (begin, end) = sorted((self.first, self.last)), sorted((other.first, other.last))
        return low < end and begin < high

    def passes(self, layer: float) -> bool:
        """Whether it runs past the nodes of a layer."""
        return min(self.first, self.last) < layer < max(self.first, self.last)


@dataclass(frozen=True)
class Layout:
    """Position of every node (layer, lane), the drawn links, and the extent across."""

    nodes: dict[str, tuple[float, float]]
    edges: tuple[Edge, ...]
    layers: int
    low: float
    high: float


def lay_out(topology: Topology) -> Layout:
    """Place nodes in layers along the data paths; order them so that links cross little."""
    links = _drawn_links(topology)
    layer = _layers(topology, links)
    lanes = _lanes(links, layer)
    groups: dict[frozenset[str], list[Link]] = {}
    # Also those that go the other way.
    for link in links:
        groups.setdefault(frozenset(_ends(link)), []).append(link)
    edges = _edges(links, groups, layer, lanes)
    if _parallel_links_meet(edges, groups):
        # Nodes with parallel links between them are below each other: they move apart until all the links have room.
        most = max(len(group) for group in groups.values())
        lanes = {name: lane * most for name, lane in lanes.items()}
        edges = _edges(links, groups, layer, lanes)
    nodes = {name: (float(layer[name]), lanes[name]) for name in layer}
    across = [lane for _, lane in nodes.values()] + [edge.lane for edge in edges]
    return Layout(
        nodes, tuple(edges), max(layer.values(), default=0) + 1, min(across, default=0), max(across, default=0)
    )


def _edges(
    links: list[Link], groups: dict[frozenset[str], list[Link]], layer: dict[str, int], lanes: dict[str, float]
) -> list[Edge]:
    """The links in their order, each on a lane; `groups` are those between the same two nodes."""
    nodes = {name: (float(layer[name]), lanes[name]) for name in layer}
    placed: list[Edge] = []
    middles: dict[frozenset[str], float] = {}
    # Straight links first, because they cannot move.
    for link in sorted(links, key=lambda link: lanes[link.source] != lanes[link.target]):
        pair = frozenset(_ends(link))
        group = groups[pair]
        begin, end = lanes[link.source], lanes[link.target]
        edge = Edge(link, layer[link.source], layer[link.target], begin, begin, end)
        if len(group) > 1:
            spread = group.index(link) - (len(group) - 1) / 2
            if pair not in middles:
                middles[pair] = _free_middle(edge, len(group), _taken(edge, placed, nodes), lanes)
            edge = replace(edge, lane=middles[pair] + spread)
        else:
            edge = replace(edge, lane=_free_lane(edge, _taken(edge, placed, nodes), lanes))
        placed.append(edge)
    order = {link.name: place for place, link in enumerate(links)}
    return sorted(placed, key=lambda edge: order[edge.link.name])


def _parallel_links_meet(edges: list[Edge], groups: dict[frozenset[str], list[Link]]) -> bool:
    """Whether a link of a group of parallel links is on one of another group between the same layers."""
    places = [
        (min(edge.first, edge.last), max(edge.first, edge.last), edge.lane)
        for edge in edges
        if len(groups[frozenset(_ends(edge.link))]) > 1
    ]
    return len(set(places)) < len(places)


def _free_lane(edge: Edge, taken: set[float], lanes: dict[str, float]) -> float:
    """The lane of a link's straight part: one that is not taken.

    The outer end's comes first, so that links fan out early and leave room for their labels. If all between the ends
    are taken, it is the nearest one beside them.
    """
    middle = (max(lanes.values()) + min(lanes.values())) / 2
    ends = sorted((edge.end, edge.begin), key=lambda lane: -abs(lane - middle))
    beside = (ends[0] + side for distance in count(1) for side in (distance, -distance))
    return next(lane for lane in chain(ends, [(edge.begin + edge.end) / 2], beside) if lane not in taken)


def _free_middle(edge: Edge, count: int, taken: set[float], lanes: dict[str, float]) -> float:
    """The middle of the lanes of parallel links: none of them on a lane that is taken, if possible.

    Between their ends, or half a lane farther out, or farther in.
    """
    own = (edge.begin + edge.end) / 2
    outward = 0.5 if own > (max(lanes.values()) + min(lanes.values())) / 2 else -0.5
    for middle in (own, own + outward, own - outward):
        if all(middle + index - (count - 1) / 2 not in taken for index in range(count)):
            return middle
    return own


def _taken(edge: Edge, placed: list[Edge], nodes: dict[str, tuple[float, float]]) -> set[float]:
    """The lanes of the links that run beside one, and of the nodes that it would run through."""
    return {one.lane for one in placed if edge.is_beside(one)} | {
        lane for layer, lane in nodes.values() if edge.passes(layer)
    }


def _ends(link: Link) -> tuple[str, str]:
    return (link.source, link.target)


def _drawn_links(topology: Topology) -> list[Link]:
    """Data links; of a duplex pair that carries data both ways only the forward direction."""
    names = {link.name for link in topology.data_links}
    return [link for link in topology.data_links if not (link.name.endswith("~") and link.name[:-1] in names)]


def _layers(topology: Topology, links: list[Link]) -> dict[str, int]:
    """Longest distance from a source; links that go back (cycles) do not count."""
    layer = {end: 0 for link in links for end in _ends(link)}
    drawn = {link.name for link in links}
    paths = [path for flow in topology.flows for path in flow.paths]
    forward = _without_cycles([_ends(topology.links[name]) for path in paths for name in path if name in drawn])
    for _ in layer:
        for source, target in forward:
            layer[target] = max(layer[target], layer[source] + 1)
    return layer


def _without_cycles(ends: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs in their order, each once, without those that would close a cycle."""
    after: dict[str, set[str]] = {}
    kept = []
    for source, target in dict.fromkeys(ends):
        if source not in _reached(target, after):
            after.setdefault(source, set()).add(target)
            kept.append((source, target))
    return kept


def _reached(start: str, after: dict[str, set[str]]) -> set[str]:
    """All nodes that follow a node, itself among them."""
    found, left = {start}, [start]
    while left:
        new = after.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def _lanes(links: list[Link], layer: dict[str, int]) -> dict[str, float]:
    """Positions across: barycentre sweeps, then even spacing around the middle."""
    rows: dict[int, list[str]] = {}
    for name, depth in layer.items():
        rows.setdefault(depth, []).append(name)
    near: dict[str, list[str]] = {name: [] for name in layer}
    for link in links:
        near[link.source].append(link.target)
        near[link.target].append(link.source)
    lanes = {name: index - (len(row) - 1) / 2 for row in rows.values() for index, name in enumerate(row)}
    depths = sorted(rows)
    for sweep in range(8):
        for depth in depths if sweep % 2 == 0 else reversed(depths):
            row = rows[depth]
            pull = {name: sum(lanes[n] for n in near[name]) / max(len(near[name]), 1) for name in row}
            row.sort(key=lambda name: (pull[name], lanes[name]))
            for index, name in enumerate(row):
                lanes[name] = index - (len(row) - 1) / 2
    return lanes
