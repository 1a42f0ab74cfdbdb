"""Colours and line styles: a subflow looks the same in every picture, and is never told by colour alone.

The palette is that of Okabe and Ito (2008), made for colour-blind readers; the dark variants are its lighter tones.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mptcplab.trace.topology import Topology

_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#B5568D", "#8A6A00", "#2B2B2B")
_DARK = ("#56B4E9", "#F08A3C", "#2FC59B", "#E39CC8", "#F0E442", "#DDDDDD")
# Plotly's names, SVG's dash arrays, Matplotlib's patterns and fill patterns, kept in step.
_DASHES = (
    ("solid", "", "-", ""),
    ("dash", "9 5", (0, (6, 3)), "/"),
    ("dot", "2 4", (0, (1.2, 1.8)), "."),
    ("dashdot", "10 4 2 4", (0, (7, 2, 1.5, 2)), "x"),
    ("longdash", "16 6", (0, (11, 3)), "-"),
    ("longdashdot", "16 4 2 4", (0, (11, 2, 1.5, 2)), "+"),
)


@dataclass(frozen=True)
class Style:
    """How one series is drawn."""

    light: str
    dark: str
    dash: str
    svg_dash: str
    mpl_dash: str | tuple[float, tuple[float, ...]]
    pattern: str
    index: int

    def for_page(self) -> dict[str, str | int]:
        """What the page's script needs."""
        return {key: value for key, value in asdict(self).items() if key in ("light", "dark", "dash", "pattern")}


def style(index: int) -> Style:
    """The style of the index-th series; colours and dashes change together first, then in new combinations."""
    colour = index % len(_LIGHT)
    dash, svg_dash, mpl_dash, pattern = _DASHES[(index + index // len(_LIGHT)) % len(_DASHES)]
    return Style(_LIGHT[colour], _DARK[colour], dash, svg_dash, mpl_dash, pattern, index)


def subflow_styles(topology: Topology) -> dict[tuple[str, str], Style]:
    """Style of every (flow, subflow), in file order."""
    pairs = [(flow.name, subflow.name) for flow in topology.flows for subflow in flow.subflows]
    return {pair: style(index) for index, pair in enumerate(pairs)}


def subflow_labels(topology: Topology) -> dict[tuple[str, str], str]:
    """Short label of every (flow, subflow): as short as it can be without being ambiguous."""
    multipath = sum(len(flow.subflows) > 1 for flow in topology.flows)
    labels = {}
    for flow in topology.flows:
        for subflow in flow.subflows:
            if len(flow.subflows) == 1:
                label = flow.name
            elif multipath == 1 and len(topology.flows) == 1:
                label = subflow.name
            else:
                label = f"{flow.name} {subflow.name}"
            labels[flow.name, subflow.name] = label
    return labels


def link_styles(topology: Topology) -> dict[str, Style]:
    """Style of every data link: that of its subflow where there is only one, else one of its own."""
    subflows = subflow_styles(topology)
    users: dict[str, list[Style]] = {link.name: [] for link in topology.data_links}
    for flow in topology.flows:
        for subflow in flow.subflows:
            for name in subflow.path:
                users[name].append(subflows[flow.name, subflow.name])
    spare = len(subflows)
    styles = {}
    for name, used_by in users.items():
        if len(used_by) == 1:
            styles[name] = used_by[0]
        else:
            styles[name] = style(spare)
            spare += 1
    return styles
