"""Heat maps of the margins. Colour is never the only information: every cell shows its margin and its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mptcplab.plots.figure import constrained, styled
from mptcplab.plots.styles import INK, PAPER, SOFT
from mptcplab.studies.goals import Goal, Study
from mptcplab.study.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from mptcplab.studies.goals.judge import GoalFinding

# Okabe and Ito's orange-red and blue, which can be distinguished with any colour vision; the middle is nearly white.
_BELOW, _MIDDLE, _ABOVE = "#D55E00", "#FAFAFA", "#0072B2"
# The same in all figures, so that algorithms can be compared; larger margins are as dark as this one.
_SCALE_PERCENT = 30
# From here on black digits would be hard to read.
_DARK_PERCENT = 21
_HATCH = "////"
_CELL_INCHES = (0.72, 0.34)
_MARGINS_INCHES = (3.7, 1.75)


@styled
def heat_map(study: Study, goal: Goal) -> Figure:
    """The margin of a goal in every network in which it asks for something, with losses and buffers in columns."""
    asked = {result.network: result.finding(goal) for result in study.results}
    rows = list(dict.fromkeys(network.row for network, found in asked.items() if found.margin is not None))
    columns = list(dict.fromkeys((network.loss_percent, network.buffer_bdp) for network in asked))
    width, height = _CELL_INCHES
    size = (_MARGINS_INCHES[0] + width * len(columns), _MARGINS_INCHES[1] + height * max(len(rows), 1))
    figure = constrained(*size)
    axes = figure.subplots()
    for network, found in asked.items():
        if network.row in rows:
            at = columns.index((network.loss_percent, network.buffer_bdp)), rows.index(network.row)
            _draw(axes, at, found)
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(max(len(rows), 1) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(columns)), [f"{buffer:g}" for _, buffer in columns])
    axes.set_xlabel("Buffer (BDP) and random loss")
    _losses(axes, columns)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _legend(figure, axes)
    return figure


def _draw(axes: Axes, at: tuple[int, int], found: GoalFinding) -> None:
    from matplotlib.patches import Rectangle

    corner = (at[0] - 0.5, at[1] - 0.5)
    if found.margin is None:
        axes.add_patch(Rectangle(corner, 1, 1, facecolor=PAPER, edgecolor=SOFT, linewidth=0.4))
        axes.text(*at, "\N{EN DASH}", ha="center", va="center", color=SOFT, fontsize=8)
        return
    percent = 100 * found.margin
    fails = found.verdict == Verdict.FAILS
    face = _colours()(0.5 + percent / (2 * _SCALE_PERCENT))
    axes.add_patch(Rectangle(corner, 1, 1, facecolor=face, edgecolor=PAPER, linewidth=0.8))
    if fails:
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=SOFT, linewidth=0, hatch=_HATCH))
    mark = "?" if found.verdict == Verdict.OPEN else ""
    box = {"boxstyle": "round,pad=0.12", "facecolor": face, "edgecolor": "none"} if fails else None
    ink = PAPER if abs(percent) > _DARK_PERCENT else INK
    weight = "bold" if fails else "normal"
    axes.text(*at, signed(percent) + mark, ha="center", va="center", color=ink, fontsize=8, weight=weight, bbox=box)


def signed(percent: float) -> str:
    r"""A margin as text, in whole percent of the goal's reference; its sign is never lost to rounding.

    >>> signed(12.4), signed(0.2), signed(-0.2) == "\N{MINUS SIGN}0"
    ('+12', '+0', True)
    """
    sign = "+" if percent >= 0 else "\N{MINUS SIGN}"
    return f"{sign}{abs(percent):.0f}"


def _colours() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("margins", [_BELOW, _MIDDLE, _ABOVE])


def _losses(axes: Axes, columns: list[tuple[float, float]]) -> None:
    """The second line of the column labels: one for all buffers of a loss, and a gap between losses."""
    losses = list(dict.fromkeys(loss for loss, _ in columns))
    each = len(columns) // len(losses)
    for number, loss in enumerate(losses):
        centre = number * each + (each - 1) / 2
        axes.annotate(
            f"loss {loss:g} %",
            (centre, 0),
            (0, -17),
            ha="center",
            va="top",
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
        )
        if number:
            axes.axvline(number * each - 0.5, color=INK, linewidth=1.2)
    axes.xaxis.labelpad = 16


def _legend(figure: Figure, axes: Axes) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.patches import Patch

    scale = ScalarMappable(Normalize(-_SCALE_PERCENT, _SCALE_PERCENT), _colours())
    bar = figure.colorbar(scale, ax=axes, extend="both", pad=0.02, fraction=0.04)
    bar.set_label("Margin (%)")
    bar.outline.set_visible(False)
    marks = [
        Patch(facecolor=_MIDDLE, edgecolor=SOFT, label="holds"),
        Patch(facecolor=_MIDDLE, edgecolor=SOFT, hatch=_HATCH, label="fails (bold)"),
        Patch(facecolor="none", edgecolor="none", label="?  open"),
        Patch(facecolor="none", edgecolor="none", label="\N{EN DASH}  not testable"),
    ]
    figure.legend(handles=marks, loc="outside upper center", ncols=len(marks), handlelength=1.6)
