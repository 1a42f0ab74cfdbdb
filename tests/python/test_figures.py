"""Figures of every width: no text leaves them or lies on another one."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.fixture(scope="module")
def grid(scenario: Path) -> Results:
    """Two algorithms, three losses and two queues."""
    values = {"links.A.loss": "0.01 %, 0.3 %, 5 %", "links.B.queue": "9 packets, 200 packets"}
    return mptcplab.run(scenario, "ewtcp(weight=fair),lia", 2, sweep=values, progress=False)


DRAWN: dict[str, Callable[[Results, Size], Figure]] = {
    "over the losses": lambda r, style: r.plot.over("links.A.loss", "rtt_mean", style=style),
    "over the queues": lambda r, style: r.plot.over("links.B.queue", "reorder_depth", style=style),
    "of one flow": lambda r, style: r.plot.over("links.B.queue", flows="mp", style=style),
    "map": lambda r, style: r.plot.map(flows="mp", style=style),
    "map of a probability": lambda r, style: r.plot.map("retx_rate", "links.B.queue", style=style),
    "over time": lambda r, style: r.plot.over_time(quantities=["cwnd", "payload"], style=style),
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("drawn", DRAWN)
def test_figures_of_two_parameters_have_no_text_on_another(grid: Results, drawn: str, style: Size) -> None:
    """Titles of plots side by side, and labels of their axes, were printed over one another."""
    assert faults(DRAWN[drawn](grid, style)) == []


def test_plots_that_would_be_too_narrow_stand_below_each_other(grid: Results) -> None:
    figure = grid.plot.over("links.B.queue", flows="mp", style="column")
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]
    assert titles == ["links.A.loss = 0.01 %", "links.A.loss = 0.3 %", "links.A.loss = 5 %"]
    assert least_width(figure) > 1
    assert figure.axes[0].get_position().y0 > figure.axes[2].get_position().y1
    # The plot beside the last one has none below it.
    assert [any(label.get_visible() for label in axes.get_xticklabels()) for axes in figure.axes] == [False, True, True]
    # The label is wider than a plot.
    assert figure.get_supxlabel() == "links.B.queue (packets)"
    assert [axes.get_xlabel() for axes in grid.plot.over("links.B.queue", flows="mp").axes] == 3 * [
        "links.B.queue (packets)"
    ]
