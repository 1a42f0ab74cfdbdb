"""Figures of every width: no text leaves them or lies on another one."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from conftest import SCENARIO
from matplotlib.figure import Figure
from matplotlib.text import Text

import mptcplab
from mptcplab.report.plotting import Size
from mptcplab.results import Results

STYLES: tuple[Size, ...] = ("page", "two-columns", "column")
# Texts that touch by so much, in inches, are still apart: the box of a text is a little larger than its letters.
TOUCH = 0.02


def texts(figure: Figure) -> list[Text]:
    """The texts that are seen."""
    figure.draw_without_rendering()
    found = [one for one in figure.findobj(Text) if one.get_visible() and one.get_text().strip()]
    # Matplotlib keeps labels of ticks beyond the ends of an axis, and does not draw them.
    ends_of = [(axes.xaxis, axes.get_xlim()) for axes in figure.axes]
    ends_of += [(axes.yaxis, axes.get_ylim()) for axes in figure.axes]
    hidden = set()
    for axis, ends in ends_of:
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            beyond = not min(ends) <= tick.get_loc() <= max(ends)
            for label, shown in ((tick.label1, tick.label1.get_visible()), (tick.label2, tick.label2.get_visible())):
                if beyond or not shown or not tick.get_visible():
                    hidden.add(label)
    return [one for one in found if one not in hidden]


def faults(figure: Figure) -> list[str]:
    """Texts beyond the edges of a figure, and texts on one another."""
    touch = TOUCH * figure.dpi
    boxes = [(one.get_text(), one.get_window_extent()) for one in texts(figure)]
    edge = figure.bbox
    found = [
        f"{name!r} leaves the figure"
        for name, box in boxes
        if box.x0 < edge.x0 - touch or box.x1 > edge.x1 + touch or box.y0 < edge.y0 - touch or box.y1 > edge.y1 + touch
    ]
    for (one, a), (other, b) in combinations(boxes, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > touch and high > touch:
            found.append(f"{one!r} lies on {other!r}")
    return found


def least_width(figure: Figure) -> float:
    """The width of the narrowest axes, in inches."""
    return min(axes.get_position().width for axes in figure.axes) * figure.get_figwidth()


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("figures")
    (directory / "two-paths.toml").write_text(SCENARIO)
    return directory / "two-paths.toml"


@pytest.fixture(scope="module")
def bars(scenario: Path) -> Results:
    """Long names of configurations, without a parameter that has several numbers."""
    starts = {"flows.tcp.start": ["0 s", "uniform(0 s, 1 s)"]}
    return mptcplab.run(scenario, "lia,ewtcp(weight=fair)", 2, sweep=starts, progress=False)


@pytest.mark.parametrize("style", STYLES)
def test_bars_keep_room_beside_long_names(bars: Results, style: Size) -> None:
    """A column of a paper had no room left for bars, which was an error inside Matplotlib."""
    figure = bars.plot.goodput(style=style)
    assert faults(figure) == []
    assert least_width(figure) > 0.45 * figure.get_figwidth()
    names = [label.get_text().replace("\n", " ") for label in figure.axes[0].get_yticklabels()]
    assert names[0] == "lia, flows.tcp.start = 0 s · mp"
    assert names[-1] == "ewtcp(weight=fair), flows.tcp.start = uniform(0 s, 1 s) · tcp"


def test_the_flows_of_families_have_room_beside_their_bars(tmp_path: Path) -> None:
    (tmp_path / "many.toml").write_text(SCENARIO.replace("[flows.tcp]", "[flows.download]\ncount = 3"))
    results = mptcplab.run(tmp_path / "many.toml", "lia", 2, settings={"links.B.queue": ["9 packets", "unlimited"]})
    figure = results.plot.goodput(style="column")
    assert faults(figure) == []
    assert figure.axes[1].get_xlabel().replace("\n", " ") == "Each flow (Mbit/s)"
    assert least_width(figure) > 0.6
