"""A Matplotlib figure as SVG inside a page: with the colours of the page, unique ids, and text as text."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING

from mptcplab.plots.figure import METADATA, styled
from mptcplab.plots.styles import css_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def inline(figure: Figure, name: str, title: str) -> str:
    """The figure as an `svg` element; `name` is unique on the page."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata=METADATA["svg"])
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    # A style sheet inside an inline figure would be one of the whole page: the page's own has the same rule.
    svg = re.sub(r"<(metadata|style)\b.*?</\1>\s*", "", svg, flags=re.DOTALL)
    # HTML needs no namespaces.
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"|xlink:(?=href)', "", svg)
    # Names of groups are never referred to; names that are referred to must be unique on the page.
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    svg = re.sub(r' d="[^"]*"', _shortened, svg)
    for colour, variable in css_colours().items():
        svg = re.sub(rf"(?<!&){colour}\b", f"var({variable})", svg, flags=re.IGNORECASE)
    label = escape(title, quote=True)
    return re.sub(r"<svg ", f'<svg class="figure" role="img" aria-label="{label}" ', svg, count=1).strip()


def _shortened(path: re.Match[str]) -> str:
    """A path in tenths of a point, without the letter of a line that follows another one."""
    rounded = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), path[0])
    lines = r"(?<=[ML] )([^A-Z\n]*)((?:\nL [^A-Z\n]*)+)"
    return re.sub(lines, lambda found: found[1] + found[2].replace("\nL", ""), rounded)
