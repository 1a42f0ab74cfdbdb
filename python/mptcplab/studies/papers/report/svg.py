"""A Matplotlib figure as SVG inside a page: its colours follow the page's, its ids are its own, its text is text."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING

from mptcplab.report.styles import style
from mptcplab.studies.papers.report.draw import INK, PAPER, SOFT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# As many colours as the palette of the styles has.
_COLOURS = 6


def variables(*, dark: bool) -> str:
    """The palette as CSS variables."""
    looks = (style(index) for index in range(_COLOURS))
    return " ".join(f"--c{i}: {look.dark if dark else look.light};" for i, look in enumerate(looks))


def inline(figure: Figure, name: str, title: str) -> str:
    """The figure as an `svg` element; `name` is unique on the page."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    # A style sheet inside an inline figure would be one of the whole page: the page's own has the same rule.
    svg = re.sub(r"<(metadata|style)\b.*?</\1>\s*", "", svg, flags=re.DOTALL)
    # Groups have names that nobody refers to; what is referred to must not mean another figure's.
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r' d="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]), svg)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    for colour, variable in _replaced().items():
        svg = re.sub(rf"(?<!&){colour}\b", f"var({variable})", svg, flags=re.IGNORECASE)
    label = escape(title, quote=True)
    return re.sub(r"<svg ", f'<svg class="figure" role="img" aria-label="{label}" ', svg, count=1).strip()


def _replaced() -> dict[str, str]:
    palette = {style(index).light: f"--c{index}" for index in range(_COLOURS)}
    return {**palette, INK: "--ink", SOFT: "--soft", PAPER: "--page"}
