"""Colours, dashes, markers and hatches: a subflow looks the same in every plot, and colour is never all that differs.

The palette is that of Okabe and Ito (2008), made for colour-blind readers; the dark variants are its lighter tones.
Pages name a colour by its CSS variable, so that it follows the light or dark scheme of the reader.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mptcplab.trace.topology import Topology

INK, SOFT, PAPER = "#1c1f23", "#7a828c", "#ffffff"
_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#B5568D", "#8A6A00", "#2B2B2B")
_DARK = ("#56B4E9", "#F08A3C", "#2FC59B", "#E39CC8", "#F0E442", "#DDDDDD")
# Plotly's name of a dash (or its lengths), SVG's dash array, Matplotlib's dash pattern, and the hatch (Plotly and
# Matplotlib). There are eight, the most subflows that Linux gives a connection.
_DASHES: tuple[tuple[str, str, str | tuple[float, tuple[float, ...]], str], ...] = (
    ("solid", "", "-", ""),
    ("dash", "9 5", (0, (6, 3)), "/"),
    ("dot", "2 4", (0, (1.2, 1.8)), "."),
    ("dashdot", "10 4 2 4", (0, (7, 2, 1.5, 2)), "x"),
    ("longdash", "16 6", (0, (11, 3)), "-"),
    ("longdashdot", "16 4 2 4", (0, (11, 2, 1.5, 2)), "+"),
    ("5px,4px", "5 4", (0, (3, 2)), "|"),
    ("10px,4px,2px,4px,2px,4px", "10 4 2 4 2 4", (0, (7, 2, 1.5, 2, 1.5, 2)), "\\"),
)
# After so many styles, the same colour and dash would come together again.
_PAIRS = math.lcm(len(_LIGHT), len(_DASHES))
# A stroke of this length is seen, in widths of the line.
_SEEN = 3.0
# No diamonds: they mark a reference, such as the value that a paper prints.
_MARKERS = ("o", "s", "^", "v", "P", "X", "<", ">", "p", "h", "*")


@dataclass(frozen=True)
class Style:
    """How one series is drawn."""

    index: int
    colour: str
    css_colour: str
    dash: str
    svg_dash: str
    mpl_dash: str | tuple[float, tuple[float, ...]]
    hatch: str
    marker: str

    @property
    def shown(self) -> float:
        """How long a line has to be to show its pattern, in widths of the line: until the second stroke is seen."""
        if isinstance(self.mpl_dash, str):
            return 0.0
        _, (first, gap, *rest) = self.mpl_dash
        return first + gap + min(_SEEN, rest[0] if rest else first)

    def for_page(self) -> dict[str, str]:
        """The data that the script of a page needs; the colour is the name of a CSS variable."""
        return {"colour": self.css_colour, "dash": self.dash, "hatch": self.hatch}


def style(index: int) -> Style:
    """The style of the index-th series; colours and dashes change together first, then in new combinations."""
    colour = index % len(_LIGHT)
    dash, svg_dash, mpl_dash, hatch = _DASHES[(index + index // _PAIRS) % len(_DASHES)]
    marker = _MARKERS[index % len(_MARKERS)]
    return Style(index, _LIGHT[colour], f"--c{colour}", dash, svg_dash, mpl_dash, hatch, marker)


def css_palette(*, dark: bool) -> str:
    """The palette as CSS variables."""
    return " ".join(f"--c{index}: {colour};" for index, colour in enumerate(_DARK if dark else _LIGHT))


def css_colours() -> dict[str, str]:
    """The CSS variable that stands for each colour of a figure."""
    palette = {colour: f"--c{index}" for index, colour in enumerate(_LIGHT)}
    return palette | {INK: "--ink", SOFT: "--soft", PAPER: "--page"}


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


def link_styles(topology: Topology, subflows: Mapping[tuple[str, str], Style], first: int) -> dict[str, Style]:
    """Style of every data link: that of its subflow where there is only one, else the next one from the `first` on."""
    own = {name: style(first + at) for at, name in enumerate(shared_links(topology))}
    return {name: own[name] if name in own else subflows[used_by[0]] for name, used_by in _users(topology).items()}


def shared_links(topology: Topology) -> list[str]:
    """The data links that do not belong to one subflow alone, in file order."""
    return [name for name, used_by in _users(topology).items() if len(used_by) != 1]


def _users(topology: Topology) -> dict[str, list[tuple[str, str]]]:
    """The subflows on every data link."""
    users: dict[str, list[tuple[str, str]]] = {link.name: [] for link in topology.data_links}
    for flow in topology.flows:
        for subflow in flow.subflows:
            for name in subflow.path:
                users[name].append((flow.name, subflow.name))
    return users
