"""Figures of every width: no text leaves them or lies on another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import synthetic as s
from conftest import SCENARIO
from matplotlib.figure import Figure
from matplotlib.text import Text

import mptcplab
from mptcplab.plots.goodput import GoodputData, Part, Row, goodput_figure
from mptcplab.plots.over_time import CWND, QUEUE, RTT, Column, Panel, Series, over_time
from mptcplab.plots.styles import css_colours
from mptcplab.plots.styles import style as style_of
from mptcplab.ranges import expand
from mptcplab.report import captions
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


@pytest.mark.parametrize("style", STYLES)
def test_the_numbers_of_a_parameter_are_never_powers_of_ten(scenario: Path, style: Size) -> None:
    """Values of 10,000 and more were printed as 1e+04 or 1.235e+04, and small ones as 2e-05."""
    values = {"links.B.queue": "7 packets, 12345 packets, 3000000 packets", "links.A.loss": "0.00002 %, 0.1 %"}
    results = mptcplab.run(scenario, "lia", 1, sweep=values, progress=False)
    over, losses = (results.plot.over(key, flows="mp", style=style) for key in values)
    drawn = results.plot.map(flows="mp", style=style)
    labels = [[axes.get_xticklabels() for axes in one.axes] for one in (over, losses, drawn)]
    ticks = [next(names for axes in one if (names := [label.get_text() for label in axes])) for one in labels]
    assert ticks[0] in (["7", "12345", "3000000"], ["7", "3000000"])
    assert ticks[1:] == [["0.00002", "0.1"], ["7", "12345", "3000000"]]
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == ["0.00002", "0.1"]
    assert [faults(figure) for figure in (over, losses, drawn)] == [[], [], []]


def points(figure: Figure) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """The points of every plot by its title, then by the number of the curve."""
    return {
        " ".join(axes.get_title(loc="left").split()): {
            str(number): list(zip(*map(list, line.get_data()), strict=True))
            for number, line in enumerate(one for one in axes.lines if one.get_marker() not in ("None", "_"))
        }
        for axes in figure.axes
    }


def means(results: Results, metric: str, **where: str) -> list[float]:
    """The means of the summary in its order."""
    found: list[float] = results.summary().filter(metric=metric, **where)["mean"].to_list()
    return found


def test_a_metric_of_subflows_has_a_plot_for_each(grid: Results) -> None:
    """It was refused: only flows and whole runs were drawn."""
    figure = grid.plot.over("links.A.loss", "cwnd_mean", style="column")
    assert faults(figure) == []
    queues = ("9 packets", "200 packets")
    found = points(figure)
    assert set(found) == {f"{who} links.B.queue = {queue}" for who in ("mp sf1", "mp sf2", "tcp") for queue in queues}
    for who, flow, subflow in (("mp sf1", "mp", "sf1"), ("mp sf2", "mp", "sf2"), ("tcp", "tcp", "sf1")):
        for queue, text in zip((9, 200), queues, strict=True):
            for number, cc in enumerate(("ewtcp(weight=fair)", "lia")):
                rows = grid.summary().filter(metric="cwnd_mean", flow=flow, subflow=subflow, cc=cc)
                rows = rows.filter(pl.col("links.B.queue") == queue).select("links.A.loss", "mean")
                assert found[f"{who} links.B.queue = {text}"][str(number)] == rows.rows()
    # Only those of one flow, as a map.
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in grid.plot.map("cwnd_mean", flows="mp").axes]
    assert titles[:4] == [f"{cc}: mp {name}" for cc in ("ewtcp(weight=fair)", "lia") for name in ("sf1", "sf2")]


def test_a_metric_of_links_has_a_plot_for_each_that_carries_data(grid: Results) -> None:
    titles = [axes.get_title(loc="left").split()[0] for axes in grid.plot.over("links.A.loss", "utilisation").axes]
    assert titles == ["A", "B", "A", "B"]
    figure = grid.plot.over("links.A.loss", "utilisation", links="B", style="column")
    assert faults(figure) == []
    rows = grid.summary().filter(metric="utilisation", link="B", cc="lia").filter(pl.col("links.B.queue") == 200)
    assert points(figure)["links.B.queue = 200 packets"]["1"] == rows.select("links.A.loss", "mean").rows()
    assert grid.plot.map("queue_delay_mean", links=["B"]).axes[0].get_title(loc="left") == "ewtcp(weight=fair)"


def test_the_subflows_of_a_family_are_drawn_as_their_mean(tmp_path: Path) -> None:
    (tmp_path / "many.toml").write_text(SCENARIO.replace("[flows.mp]", "[flows.mp]\ncount = 3"))
    losses = {"links.B.loss": "0.1 %, 1 %, 3 %"}
    results = mptcplab.run(tmp_path / "many.toml", "lia", 1, sweep=losses, progress=False)
    found = points(results.plot.over(metric="cwnd_mean", flows="mp"))
    # Nothing said so, and the bars of a family are its total.
    assert list(found) == ["mp sf1, per flow", "mp sf2, per flow"]
    assert [axes.get_title(loc="left") for axes in results.plot.goodput().axes] == ["tcp", "mp, per flow"]
    for subflow in ("sf1", "sf2"):
        of_flows = [means(results, "cwnd_mean", flow=f"mp-{number}", subflow=subflow) for number in (1, 2, 3)]
        expected = [sum(each) / 3 for each in zip(*of_flows, strict=True)]
        assert [y for _, y in found[f"mp {subflow}, per flow"]["0"]] == pytest.approx(expected)


@pytest.fixture(scope="module")
def mixed(scenario: Path) -> Results:
    """A parameter whose values are no numbers of one kind, and another one."""
    values = {"links.B.queue": "1 BDP, 9 packets, unlimited", "links.A.loss": "0.3 %, 5 %"}
    return mptcplab.run(scenario, "ewtcp(weight=fair),lia", 2, sweep=values, progress=False)


@pytest.mark.parametrize("style", STYLES)
def test_values_that_are_no_numbers_of_one_kind_are_drawn_side_by_side(mixed: Results, style: Size) -> None:
    """Such a parameter could not be drawn at all."""
    figure = mixed.plot.over("links.B.queue", "queue_delay_mean", links="B", style=style)
    assert faults(figure) == []
    axes = figure.axes[-1]
    assert [text.get_text().replace("\n", " ") for text in axes.get_xticklabels()] == [
        "1 BDP",
        "9 packets",
        "unlimited",
    ]
    for number, cc in enumerate(("ewtcp(weight=fair)", "lia")):
        rows = mixed.summary().filter(metric="queue_delay_mean", link="B", cc=cc).filter(pl.col("links.A.loss") == 5)
        found = points(figure)["links.A.loss = 5 %"][str(number)]
        assert [y for _, y in found] == rows["mean"].to_list()
        # The algorithms are beside one another, and nothing lies between two values.
        assert [x for x, _ in found] == pytest.approx([place + (-0.15, 0.15)[number] for place in range(3)])
    assert {line.get_linestyle() for line in axes.lines if line.get_marker() in ("o", "s")} == {"None"}


@pytest.mark.parametrize("style", STYLES)
def test_a_map_takes_values_that_are_no_numbers(mixed: Results, style: Size) -> None:
    figure = mixed.plot.map("queue_delay_mean", "links.B.queue", "links.A.loss", links="B", style=style)
    assert faults(figure) == []
    assert figure.get_supxlabel() == "links.B.queue"
    labels = [text.get_text().replace("\n", " ") for text in figure.axes[0].get_xticklabels()]
    assert labels == ["1 BDP", "9 packets", "unlimited"]


def test_digits_of_a_map_are_legible_on_a_dark_page(grid: Results) -> None:
    """They had colours that a dark page replaces: dark digits became light on light cells, and light ones dark."""
    digits = [text for axes in grid.plot.map(flows="mp").axes for text in axes.texts]
    assert len(digits) == 12
    assert {text.get_color() for text in digits} & set(css_colours()) == set()


def over_time_of(panel: Panel, one: Sequence[float], other: Sequence[float]) -> tuple[list[str], tuple[float, float]]:
    """The notes of a figure of two runs of 200 s and 100 s with a value per second, and the ends of its axis.

    The first run has settled after 20 s, the second one after 10 s.
    """
    columns = [
        Column(
            cc, (Series(panel, "path", style_of(k), np.arange(len(values)) + 0.5, np.array(values)),), 0.0, end, settled
        )
        for k, (cc, values, end, settled) in enumerate((("lia", one, 200.0, 20.0), ("olia", other, 100.0, 10.0)))
    ]
    figure = over_time(columns, [panel], most_columns=2, note="repetition 1 of 3")
    assert faults(figure) == []
    return [text.get_text() for text in figure.texts], figure.axes[0].get_ylim()


def test_an_outlier_of_the_round_trip_time_does_not_flatten_the_rest_and_is_noted() -> None:
    """After 10 s without a path, one sample of 10 s made a line at zero of all others."""
    usual, slower = [30.0 + k % 5 for k in range(200)], [50.0 + k % 3 for k in range(100)]
    jump = [*usual[:150], 10_000.0, *usual[151:]]
    notes, ends = over_time_of(RTT, jump, slower)
    assert ends == (0, 1.05 * 52)
    assert notes == ["repetition 1 of 3", "Round-trip time: values of up to 10,000 ms are above the axis"]
    # Up to five times the usual values of the slowest line, 5 * 52 ms, are not outliers.
    assert over_time_of(RTT, [*usual[:150], 260.0, *usual[151:]], slower) == (["repetition 1 of 3"], (0, 1.05 * 260))
    # Neither are values of which there are many: 3 of 180.
    many = [10_000.0 if k in (60, 90, 150) else value for k, value in enumerate(usual)]
    assert over_time_of(RTT, many, slower)[1] == (0, 1.05 * 10_000)
    # A window is what it is.
    assert over_time_of(CWND, jump, slower)[1] == (0, 1.05 * 10_000)


def test_a_peak_before_the_run_settles_is_noted_where_it_is_cut_off() -> None:
    """Peaks of slow start left the plots, and nothing said so."""
    usual = [30.0 + k % 5 for k in range(200)]
    notes, ends = over_time_of(CWND, [7.0, 1234.0, *usual[2:]], [*[90.5] * 10, *usual[10:100]])
    assert ends == (0, 1.05 * 34)
    assert notes[1:] == ["Congestion window: values of up to 1,234 packets before 20 s are above the axis"]
    notes, _ = over_time_of(CWND, usual, [*[90.5] * 10, *usual[10:100]])
    assert notes[1:] == ["Congestion window: values of up to 90.5 packets before 20 s are above the axis"]
    assert over_time_of(CWND, [7.0, 35.0, *usual[2:]], usual[:100])[0] == ["repetition 1 of 3"]


def counts(directory: Path, timeouts: Sequence[int], losses: Sequence[str] = ("0.1 %", "1 %", "5 %")) -> Results:
    """As many repetitions at each of some losses, the third of which has these timeouts."""
    runs, flow, subflow = [], [], []
    scenario = s.resolved([s.link("A", "S", "D", 8)], [s.tcp("tcp", s.subflow("sf1", "A"))], duration_s=4)
    for at, loss in enumerate(losses):
        for rep, count in enumerate(timeouts):
            run = at * len(timeouts) + rep
            runs.append(s.run_row(run, scenario, rep=rep) | {"axes": f'{{"cc": "lia", "links.A.loss": "{loss}"}}'})
            for t in (0, 4):
                flow.append({"run": run, "t": t, "flow": "tcp", "delivered_bytes": t * 1000 * (1 + rep)})
                row = {"run": run, "t": t, "flow": "tcp", "subflow": "sf1"}
                subflow.append(row | {"rto_count": count if (at, t) == (2, 4) else 0})
    return Results.open(s.write(directory, runs, flow=flow, subflow=subflow))


@pytest.mark.parametrize("style", STYLES)
def test_the_largest_value_of_a_range_has_its_tick(style: Size, tmp_path: Path) -> None:
    """Of 0.01 %..5 % log 5, the last distance is smaller by rounding, and nothing stood below 5 %."""
    losses = expand("0.01 %..5 % log 5")
    figure = counts(tmp_path / "range", [0, 1], losses).plot.goodput(style=style)
    assert faults(figure) == []
    ticks = [tick.get_text() for axes in figure.axes for tick in axes.get_xticklabels()]
    assert ticks == [loss.removesuffix(" %") for loss in losses]


def legend(figure: Figure) -> list[tuple[str, str]]:
    """Names and colours in the legend."""
    (found,) = figure.legends
    lines = found.get_lines()
    return [(text.get_text(), str(line.get_color())) for text, line in zip(found.get_texts(), lines, strict=True)]


def test_a_flow_and_a_link_of_one_name_have_an_entry_each() -> None:
    """The link's style stood in the legend, and nothing said what the flow's line was."""
    times = np.array([0.5, 1.5])
    lines = [
        Series(panel, name, style_of(look), times, times)
        for panel, name, look in ((CWND, "web", 0), (CWND, "mp", 1), (QUEUE, "web", 3))
    ]
    figure = over_time([Column("lia", tuple(lines), 0, 2, 0)], [CWND, QUEUE], most_columns=1)
    assert legend(figure) == [(name, style_of(look).colour) for name, look in (("web", 0), ("mp", 1), ("web", 3))]


@pytest.mark.parametrize("style", STYLES)
def test_the_legend_shows_the_dashes_of_every_line(style: Size) -> None:
    """Long dashes looked like a solid line, because an entry was shorter than a dash and its gap."""
    width = {"page": 9.6, "two-columns": 7.16, "column": 3.5}[style]
    times = np.array([0.5, 1.5])
    for count in (1, 4, 8):
        lines = tuple(Series(CWND, f"path {k}", style_of(k), times, times) for k in range(count))
        figure = over_time([Column("lia", lines, 0, 2, 0)], [CWND], most_columns=1, widest=width)
        assert faults(figure) == []
        (found,) = figure.legends
        shown = [line.get_xdata()[-1] / 1.4 for line in found.get_lines()]
        # A dash of 11 and a gap of 3 widths, and the beginning of the next dash.
        assert min(shown) >= (17 if count == 8 else 12)
        assert (shown[0] > 15) == (count == 8)


def test_an_interval_that_is_cut_off_is_noted(tmp_path: Path) -> None:
    """0.25 timeouts +- 0.8 looked like +- 0.15."""
    # The standard deviation of 0, 0, 0, 1 is 0.5, and t of 3 degrees of freedom 3.1824: 0.25 + 3.1824 * 0.5 / 2.
    figure = counts(tmp_path / "four", [0, 0, 1, 0]).plot.over(metric="rto_count")
    assert [text.get_text() for text in figure.texts] == ["95 % intervals reach beyond the axis: up to 1.05"]
    # 6, 6, 7, 6: the interval of 6.25 is as wide, and within the axis.
    assert counts(tmp_path / "more", [6, 6, 7, 6]).plot.over(metric="rto_count").texts == []


def test_a_bar_whose_interval_is_cut_off_is_noted_in_the_figure_and_on_the_page() -> None:
    part = Part("sf1", 5.0, style_of(0))
    wide = GoodputData((Row("lia", 5.0, 63.5, (0.25, 9.75), (part,), None),), "Goodput", "Mbit/s")
    note = "95 % intervals reach beyond the axis: up to 68.5 Mbit/s"
    assert [text.get_text() for text in goodput_figure(wide, 3.5).texts] == note.replace("to 6", "to\n6").split("\n")
    assert captions.of_bars(wide).endswith(f" {note}.")
    # It was "up to 1.03e+03".
    large = replace(wide, rows=(replace(wide.rows[0], mean=30.0, half=1000.0),))
    assert captions.of_bars(large).endswith(" up to 1,030 Mbit/s.")
    narrow = replace(wide, rows=(replace(wide.rows[0], half=0.5),))
    assert goodput_figure(narrow).texts == []
    assert "beyond" not in captions.of_bars(narrow)


def test_a_single_repetition_has_no_circle_of_its_own() -> None:
    """Before, a circle stood on the mean, and the caption did not say what it is."""
    part = Part("sf1", 5.0, style_of(0))
    once = GoodputData((Row("lia", 5.0, None, (5.0,), (part,), None),), "Goodput", "Mbit/s")
    twice = replace(once, rows=(*once.rows, Row("olia", 4.0, 0.3, (3.75, 4.25), (part,), None)))
    for data, circles in ((once, []), (twice, [(3.75, 4.25)])):
        figure = goodput_figure(data)
        drawn = [tuple(line.get_xdata()) for line in figure.axes[0].lines if line.get_marker() == "o"]
        assert [one for one in drawn if one] == circles
        named = [text.get_text() for text in figure.legends[0].get_texts()]
        assert ("one repetition" in named) == ("circles" in captions.of_bars(data)) == bool(circles)
        assert [row["points"] for row in data.for_page()["rows"] if row["points"]] == circles


@pytest.mark.parametrize(("flows", "marker", "named"), [(60, "o", "circle"), (61, "|", "thin stroke")])
def test_many_flows_of_a_family_are_strokes_that_shine_through(flows: int, marker: str, named: str) -> None:
    """Before, the circles of a thousand flows were one black bar, whatever their goodputs."""
    part = Part("web", 7.0, style_of(0))
    members = tuple(0.1 + 0.01 * number for number in range(flows))
    row = Row("lia", 7.0, None, (7.0,), (part,), None, members, 0.9)
    small = Row("olia", 5.0, None, (5.0,), (part,), None, (2.0, 3.0), 0.8)
    data = GoodputData((row, small), "Goodput", "Mbit/s")
    _, beside = goodput_figure(data).axes
    drawn = [line for line in beside.lines if len(line.get_xdata()) > 1]
    assert [tuple(line.get_xdata()) for line in drawn] == [members, (2.0, 3.0)]
    assert [line.get_marker() for line in drawn] == [marker, marker]
    assert captions.of_bars(data).endswith(
        f" On the right, every {named} is the mean goodput of one flow, and the thick stroke is their mean."
    )
    # Few flows of the same figure are as dark as always.
    assert drawn[1].get_alpha() == pytest.approx(0.45)
    assert drawn[0].get_alpha() == pytest.approx(0.45 * 60 / flows)
