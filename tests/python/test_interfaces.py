"""What a researcher uses every day: sweeps, families of flows, scenarios in Python, figures, and their page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import synthetic as s
from command_line import lab
from conftest import ROOT, SCENARIO
from typer.main import get_command

import mptcplab
from mptcplab import axes, reference
from mptcplab.cli import app
from mptcplab.cli.completion import SHELLS, commands, script
from mptcplab.cli.examples import EXAMPLES
from mptcplab.errors import MptcplabError
from mptcplab.ranges import expand
from mptcplab.report.parameters import maps, over_parameter
from mptcplab.results import Results
from mptcplab.settings import overriding

COMMANDS = get_command(app)
MANY = """\
duration = "4 s"
warmup = "1 s"
repetitions = 2
cc = ["lia"]

[links.shared]
from = "S"
to = "D"
rate = "30 Mbit/s"
delay = "7 ms"
queue = "1 BDP"

[links.own]
from = "S"
to = "D"
rate = "9 Mbit/s"
delay = "11 ms"
queue = "1 BDP"

[flows.web]
count = 17
path = ["shared"]
cc = "cubic"

[flows.mp]
count = 2
paths = [["shared"], ["own"]]

[flows.web-18]
path = ["own"]
cc = "reno"
"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two algorithms, three losses over decades, two delays, two repetitions."""
    directory = tmp_path_factory.mktemp("sweep")
    (directory / "two-paths.toml").write_text(SCENARIO)
    values = {"links.A.loss": "0.01 %, 0.3 %, 5 %", "links.A.delay": "6 ms, 30 ms"}
    return mptcplab.run(directory / "two-paths.toml", "lia,olia", 2, sweep=values, out=directory / "results")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two families and a flow whose name looks like one of a family."""
    directory = tmp_path_factory.mktemp("many")
    (directory / "many.toml").write_text(MANY)
    return mptcplab.run(directory / "many.toml", out=directory / "results")


# Sweeps.


def test_the_summary_has_a_column_per_axis_with_its_unit(sweep: Results) -> None:
    summary = sweep.summary()
    assert summary.columns[:8] == [
        "config",
        "engine",
        "cc",
        "links.A.delay",
        "links.A.delay.unit",
        "links.A.loss",
        "links.A.loss.unit",
        "metric",
    ]
    found = summary.filter(pl.col("subflow").is_null(), metric="goodput", flow="mp")
    assert found.height == 2 * 3 * 2
    assert set(found["links.A.loss"]) == {0.01, 0.3, 5.0}
    assert set(found["links.A.delay"]) == {6.0, 30.0}
    assert set(summary["links.A.loss.unit"]) == {"%"}
    assert set(found["unit"]) == {"Mbit/s"}


def test_every_run_has_the_values_of_its_axes_as_numbers(sweep: Results) -> None:
    """They were in a JSON text of `runs` alone."""
    found = sweep.parameters
    assert found.columns[:5] == ["run", "rep", "config", "engine", "cc"]
    assert sorted(found["run"]) == sorted(sweep.runs["run"])
    for run, cc, delay, loss in found.select("run", "cc", "links.A.delay", "links.A.loss").iter_rows():
        text = sweep.runs.filter(run=run)["axes"].item()
        assert json.loads(text) == {"cc": cc, "links.A.delay": f"{delay:g} ms", "links.A.loss": f"{loss:g} %"}
    assert set(found["links.A.loss.unit"]) == {"%"}


def test_own_values_are_summarised_like_those_of_metrics(sweep: Results) -> None:
    """Names of the trace are categories; intervals had to be computed by hand."""
    expected = sweep.summary().filter(metric="goodput")
    assert sweep.summarise(sweep.metrics("goodput")).equals(expected)
    # The same goodput of whole flows from the trace: bytes of the 2 s after the warm-up of 1 s.
    at = pl.col("t_ns")
    ends = sweep.flow.filter((at == 1_000_000_000) | (at == 3_000_000_000))
    grown = pl.col("delivered_bytes").max() - pl.col("delivered_bytes").min()
    mine = sweep.summarise(ends.group_by("run", "flow", maintain_order=True).agg(value=grown * 8 / 2e6))
    assert mine.columns[:8] == [*expected.columns[:7], "flow"]
    keys, numbers = ["config", "flow"], ["mean", "half", "lo", "hi", "n"]
    both = mine.join(expected.filter(pl.col("subflow").is_null()), on=keys, suffix="_of_metric", validate="1:1")
    assert both.height == 2 * 3 * 2 * 2
    for name in numbers:
        assert both[name].to_list() == pytest.approx(both[f"{name}_of_metric"].to_list())


def test_own_values_need_no_names_and_leave_out_runs_that_do_not_count(tmp_path: Path) -> None:
    scenario = s.resolved([s.link("A", "S", "D", 8)], [s.tcp("tcp", s.subflow("sf1", "A"))], duration_s=3)
    runs = [s.run_row(run, scenario, rep=run) | {"status": "complete", "status_reason": None} for run in range(3)]
    runs[1] |= {"status": "partial", "status_reason": "interrupted"}
    results = Results.open(s.write(tmp_path, runs))
    found = results.summarise(pl.DataFrame({"run": [2, 1, 0], "value": [13, 1000, 7]}))
    assert found.select("config", "n", "mean", "min", "max").rows() == [("lia", 2, 10.0, 7.0, 13.0)]


def test_own_columns_may_have_any_name_and_values_that_are_not_finite_do_not_count(tmp_path: Path) -> None:
    scenario = s.resolved([s.link("A", "S", "D", 8)], [s.tcp("tcp", s.subflow("sf1", "A"), cc="")], duration_s=3)
    axes = json.dumps({"links.A.delay": "5 ms"})
    runs = [s.run_row(run, scenario, rep=run) | {"cc": "", "axes": axes} for run in range(3)]
    results = Results.open(s.write(tmp_path, runs))
    values = pl.DataFrame({"run": [0, 1, 2], "row": "x", "position": 3, "value": [9.0, 5.0, float("inf")]})
    found = results.summarise(values)
    assert found.select("config", "row", "position", "n", "mean").rows() == [("links.A.delay = 5 ms", "x", 3, 2, 7.0)]


OWN_VALUES: dict[str, tuple[Any, str]] = {
    "no table": ([1.0], "values: not a data frame of polars: list"),
    "no run": (pl.DataFrame({"value": [1.0]}), "values: no column 'run'"),
    "texts": (pl.DataFrame({"run": [0], "value": ["9.5"]}), "values: not a column of numbers: 'value'"),
    "another run": (pl.DataFrame({"run": [0, 977], "value": [1.0, 2.0]}), "values: no such run: 977"),
    "a result": (
        pl.DataFrame({"run": [0], "value": [1.0], "mean": [2.0]}),
        "a column with the name of a result: 'mean'",
    ),
    "twice": (
        pl.DataFrame({"run": [0, 3, 3], "flow": ["mp", "tcp", "tcp"], "value": [1.0, 2.0, 3.0]}),
        "several values of one run: run = 3, flow = tcp\n\n"
        "hint: one value per run: values.group_by('run', 'flow').agg(value=...)",
    ),
}


@pytest.mark.parametrize("name", OWN_VALUES)
def test_what_is_no_table_of_own_values_is_refused(sweep: Results, name: str) -> None:
    values, message = OWN_VALUES[name]
    with pytest.raises(MptcplabError, match=re.escape(message)):
        sweep.summarise(values)


def test_the_files_of_a_report_have_axes_and_units(sweep: Results, tmp_path: Path) -> None:
    sweep.report(tmp_path / "report.html")
    metrics = pl.read_csv(tmp_path / "metrics.csv")
    assert metrics.columns[:5] == ["run", "rep", "config", "engine", "cc"]
    assert metrics["links.A.delay"].dtype.is_numeric()
    assert metrics.filter(metric="rtt_mean")["unit"].unique().to_list() == ["ms"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["axes"] == [
        {"key": "links.A.delay", "unit": "ms", "values": [6.0, 30.0]},
        {"key": "links.A.loss", "unit": "%", "values": [0.01, 0.3, 5.0]},
    ]
    assert summary["summary"][0]["links.A.loss"] == 0.01
    assert {"goodput.svg", "rtt_mean.svg", "goodput-map.png"} <= {
        path.name for path in (tmp_path / "figures").iterdir()
    }
    page = (tmp_path / "report.html").read_text()
    assert "over links.A.loss (%)" in page
    assert page.index("over links.A.loss (%)") < page.index('id="results"')


def test_a_curve_goes_through_the_means_of_the_summary(sweep: Results) -> None:
    data = over_parameter(sweep)
    assert (data.x.key, data.x.is_logarithmic, data.second.key if data.second else None) == (
        "links.A.loss",
        True,
        "links.A.delay",
    )
    assert data.columns == ("links.A.delay = 6 ms", "links.A.delay = 30 ms")
    assert data.rows == ("mp", "tcp")
    plot = next(one for one in data.plots if (one.row, one.column) == ("mp", "links.A.delay = 30 ms"))
    rows = sweep.summary().filter(pl.col("subflow").is_null(), metric="goodput", flow="mp", cc=plot.curves[0].label)
    rows = rows.filter(pl.col("links.A.delay") == 30).sort("links.A.loss")
    assert [point.mean for point in plot.curves[0].points] == rows["mean"].to_list()
    assert [point.half for point in plot.curves[0].points] == rows["half"].to_list()


def test_a_map_has_a_cell_per_pair_of_values(sweep: Results) -> None:
    data = maps(sweep, flows="mp")
    assert [one.label for one in data.maps] == ["lia", "olia"]
    assert {(len(one.values), len(one.values[0])) for one in data.maps} == {(2, 3)}


def test_numbers_of_an_axis_are_in_one_unit_and_others_are_texts() -> None:
    mixed = axes.Axis.of("links.A.rate", ["500 kbit/s", "2 Mbit/s"])
    assert (mixed.unit, mixed.numbers, mixed.label) == ("kbit/s", (500.0, 2000.0), "links.A.rate (kbit/s)")
    assert axes.Axis.of("links.A.queue", ["1 BDP", "40 packets"]).numbers is None
    assert axes.Axis.of("tcp.tso", ["true", "false"]).series(["true", "false"]).to_list() == [True, False]
    assert axes.Axis.of("flows.mp.count", ["1", "20"]).series(["20"]).to_list() == [20]
    assert not axes.Axis.of("links.A.delay", ["5 ms", "6 ms", "7 ms"]).is_logarithmic


def test_ranges_and_lists() -> None:
    assert expand("1..5 ms 3") == ["1 ms", "3 ms", "5 ms"]
    assert expand("0.5 s..1500 ms 3") == ["500 ms", "1000 ms", "1500 ms"]
    assert expand("1 kbit/s..1 Gbit/s log 3")[1] == "0.001 Gbit/s"
    assert expand("100..102 3") == ["100", "101", "102"]
    assert expand("1000..1002 3") == ["1000", "1001", "1002"]
    assert expand("lia(dialect=rfc,x=1), olia") == ["lia(dialect=rfc,x=1)", "olia"]


def test_settings_are_values_of_python() -> None:
    given: dict[str, Any] = {
        "links.B1.loss": ["0.01 %", "0.1 %"],
        "tcp.tso": True,
        "flows.mp.stop": 30.0,
        "flows.mp.start": timedelta(milliseconds=1500),
        "flows.mp.count": 3,
        "links.B1.queue": "1 BDP",
        "links.B1.loss_model": None,
        "flows.mp.paths": [["B1"], ["B2"]],
    }
    assert overriding(given) == {
        "links.B1.loss": '["0.01 %", "0.1 %"]',
        "tcp.tso": "true",
        "flows.mp.stop": "30 s",
        "flows.mp.start": "1500 ms",
        "flows.mp.count": "3",
        "links.B1.queue": "1 BDP",
        "links.B1.loss_model": "",
        "flows.mp.paths": '[["B1"], ["B2"]]',
    }


def test_the_report_repeats_a_sweep_with_the_option_for_it(sweep: Results) -> None:
    from mptcplab.report.html import command

    assert "--sweep 'links.A.loss=0.01 %, 0.3 %, 5 %'" in command(sweep)


def test_a_list_that_is_one_value_is_repeated_as_a_setting() -> None:
    """The path of two links became `--sweep flows.tcp.path=A, B`, which is an error."""
    path = {"flows.tcp.path": '["A", "B"]'}
    assert mptcplab.Overrides(settings=path).to_options() == ["--set", 'flows.tcp.path=["A", "B"]']


@pytest.mark.parametrize("sweep", [{"flows.tcp.count": "1..4"}, {"flows.tcp.count": "1, 2"}, {"repetitions": "1, 2"}])
def test_a_key_that_cannot_be_an_axis_is_refused_at_once(sweep: dict[str, str], scenario: Path) -> None:
    """The error asked for the number of values, or to give all values in the sweep; then there was the next error."""
    with pytest.raises(mptcplab.MptcplabError, match=rf"^{next(iter(sweep))}: cannot be swept\n\nhint: "):
        mptcplab.check(scenario, reps=1, sweep=sweep)


# Many flows.


def test_flows_with_a_count_are_a_family(many: Results) -> None:
    families = many.families()
    assert families["flow"].unique(maintain_order=True).to_list() == ["web", "mp"]
    total = families.filter(metric="family_total", flow="web").row(0, named=True)
    each = (
        many.summary()
        .filter(pl.col("subflow").is_null(), metric="goodput")
        .filter(pl.col("flow").str.starts_with("web-") & (pl.col("flow") != "web-18"))
    )
    assert (total["flows"], each.height) == (17, 17)
    assert total["mean"] == pytest.approx(each["mean"].sum())
    assert 0 < families.filter(metric="family_jain", flow="web")["mean"].item() <= 1


def test_above_eight_flows_the_table_and_the_chart_stay(many: Results) -> None:
    from mptcplab.metrics import summary
    from mptcplab.report.goodput import goodput_data
    from mptcplab.report.series import plot_data
    from mptcplab.report.tables import headline

    table = headline(many, summary(many))
    assert [row[:3] for row in table.rows] == [
        ("lia", "web", "17"),
        ("lia", "mp", "2"),
        ("lia", "web-18", "1"),
    ]
    assert [name for name, _ in table.head][3:7] == ["Goodput,\nall", "Goodput\nper flow", "Spread", "Jain's\nindex"]
    # A family had no column with the goodput by subflow: the means over the two flows of mp.
    by_subflow = [row[[name for name, _ in table.head].index("By\nsubflow")] for row in table.rows]
    rates = summary(many).filter(pl.col("flow").is_in(["mp-1", "mp-2"]), metric="goodput").drop_nulls("subflow")
    one, other = (sum(rates.filter(subflow=name)["mean"].to_list()) / 2 for name in ("sf1", "sf2"))
    assert by_subflow == ["\N{EN DASH}", f"{one:.2f} + {other:.2f}", "\N{EN DASH}"]
    goodput, plots = goodput_data(many, summary(many)), plot_data(many)
    assert [len(row.members) for row in goodput.rows] == [17, 2, 0]
    assert plots.lines == ("12 of 22 subflows",)
    assert {series.label for series in plots.runs[0].column.series} >= {"web-1", "mp-1 sf1", "web-18"}
    page = many.report(figures=False).read_text()
    assert "web \N{MULTIPLICATION SIGN} 17" in page
    assert page.count("<li><svg") == 4


def test_the_lines_of_a_family_differ_and_are_the_same_in_all_runs_and_on_the_page() -> None:
    """Before, all lines of a family had one style, so that no legend could tell them apart."""
    from mptcplab.plots.styles import style
    from mptcplab.report.embedded import lines_of
    from mptcplab.report.series import plot_data

    scenario = mptcplab.Scenario(title="Web", duration="3 s", warmup="1 s", repetitions=1, cc=["lia"])
    for name, mbit_s, ms in (("a", 60, 10), ("b", 40, 21), ("own", 7, 5)):
        scenario = scenario.link(name, "S", "D", rate=f"{mbit_s} Mbit/s", delay=f"{ms} ms", queue="1 BDP")
    scenario = scenario.flow("web", ["a"], cc="reno", count=9).flow("mp", [["a"], ["b"]], count=5).flow("one", ["own"])
    results = mptcplab.run(scenario, sweep={"links.b.delay": ["9 ms", "21 ms"]}, progress=False)
    looks = [{series.label: series.style for series in run.column.series} for run in plot_data(results).runs]
    # The link `own` belongs to one subflow and looks like it.
    distinct = {look for name, look in looks[0].items() if name != "own"}
    assert len({(look.colour, look.dash) for look in distinct}) == 12 + 2
    assert looks[0] == looks[1]
    # In file order the kinds of subflows, then the links that several of them share, then the second of each kind.
    names = ["web-1", "mp-1 sf1", "mp-1 sf2", "one", "a", "b", "web-2", "mp-2 sf1", "mp-2 sf2", "web-3"]
    assert [looks[0][name] for name in names] == [style(index) for index in range(10)]
    on_page = {line.label: line.style for line in lines_of(results, [1])[1]}
    assert len(on_page) >= 9 + 10 + 1 + 2
    assert {name: on_page[name] for name in looks[1]} == looks[1]


@pytest.fixture(scope="module")
def crowd() -> Results:
    """More flows than a table has rows: 13 of TCP over one of the links, 13 of MPTCP over both."""
    scenario = mptcplab.Scenario(title="A crowd", duration="3 s", warmup="1 s", repetitions=1, cc=["lia"])
    for name, mbit_s, ms in (("a", 60, 10), ("b", 40, 21)):
        scenario = scenario.link(name, "S", "D", rate=f"{mbit_s} Mbit/s", delay=f"{ms} ms", queue="1 BDP")
    for number in range(13):
        scenario = scenario.flow(f"tcp{number}", ["a"], cc="reno").flow(f"mp{number}", [["a"], ["b"]])
    return mptcplab.run(scenario, progress=False)


def test_flows_of_two_kinds_that_are_shown_as_one_are_told_apart(crowd: Results) -> None:
    """The bar of TCP flows looked like that of the first subflows, and the chart's lines had other styles in the list.

    The table split 3.5 Mbit/s per flow into 2.1 + 3.3, a mean over 26 flows and one over 13.
    """
    from mptcplab.metrics import summary
    from mptcplab.report import families
    from mptcplab.report.goodput import goodput_data
    from mptcplab.report.html import about_network
    from mptcplab.report.series import plot_data
    from mptcplab.report.tables import headline

    assert "By\nsubflow" not in [name for name, _ in headline(crowd, summary(crowd)).head]
    (row,) = goodput_data(crowd, summary(crowd)).rows
    assert [(part.label, part.style.index) for part in row.parts] == [
        ("all flows", 0),
        ("all flows sf1", 1),
        ("all flows sf2", 2),
    ]
    assert sum(part.mean for part in row.parts) == pytest.approx(row.mean)
    drawn = {one.label: one.style for one in plot_data(crowd).runs[0].column.series}
    # The first of each kind look like its bar. Before, tcp1 did as well, and nothing told it from tcp0.
    assert [drawn[name].index for name in ("tcp0", "mp0 sf1", "mp0 sf2", "tcp1", "mp1 sf1")] == [0, 1, 2, 5, 6]
    assert len({(look.colour, look.dash) for look in drawn.values()}) == len(drawn) == 14
    # Links are like none of them.
    assert {drawn[name].index for name in ("a", "b")} == {3, 4}
    listed = {one["label"]: one["line"] for one in about_network(crowd)["flows"]}
    assert {name: f"var({look.css_colour})" in listed[name] for name, look in drawn.items() if name in listed} == {
        name: True for name in drawn if name not in ("a", "b")
    }
    assert families.are_alike(crowd, families.Entity("tcp", ("tcp0", "tcp7")))


def test_a_figure_that_leaves_something_out_says_so_and_drops_no_algorithm(sweep: Results) -> None:
    from mptcplab.report import figures
    from mptcplab.report.series import plot_data

    figures_before, figures.MAX_COLUMNS = figures.MAX_COLUMNS, 4
    try:
        columns, note = figures.first_repetitions(plot_data(sweep))
    finally:
        figures.MAX_COLUMNS = figures_before
    assert {column.title.partition(",")[0] for column in columns} == {"lia", "olia"}
    assert note is not None
    assert note.startswith("4 of 12 configurations; ")


def test_a_connection_that_never_came_up_is_said() -> None:
    scenario = (
        mptcplab.Scenario(duration="3 s", cc="lia")
        .link("slow", "S", "D", rate="1 bit/s", delay="5 ms")
        .link("good", "S", "D", rate="4 Mbit/s", delay="5 ms")
        .flow("dead", ["slow"])
        .flow("mp", [["good"], ["slow"]])
    )
    from mptcplab.metrics import summary
    from mptcplab.report.tables import headline

    results = mptcplab.run(scenario)
    assert results.never_up().select("flow", "subflow").rows() == [("dead", None), ("mp", "sf2")]
    table = headline(results, summary(results))
    assert next(row[2] for row in table.rows) == "never up"
    assert any("connection dead never came up" in note for note in table.notes)


def test_a_subflow_that_came_up_and_was_given_no_data_is_not_called_dead() -> None:
    """Short transfers fit into the window of the faster path; the other one was said to have passed no packet."""
    scenario = (
        mptcplab.Scenario(duration="6 s", cc="lia")
        .link("near", "S", "D", rate="20 Mbit/s", delay="7 ms")
        .link("far", "S", "D", rate="16 Mbit/s", delay="41 ms")
        .link("slow", "S", "D", rate="1 bit/s", delay="5 ms")
        .flow("files", [["near"], ["far"], ["slow"]], traffic={"size": "300 kB", "gap": "500 ms"})
    )
    results = mptcplab.run(scenario)
    sent = results.scan("subflow").group_by("subflow").agg(pl.col("sent_pkts").max()).collect()
    assert dict(sent.cast({"subflow": pl.String}).iter_rows())["sf2"] == 0
    assert results.never_up().select("flow", "subflow").rows() == [("files", "sf3")]


def test_random_transfers_of_which_none_arrives_are_no_connection_that_failed() -> None:
    """The note told users to look for losses on a path on which nothing was to be sent."""
    scenario = (
        mptcplab.Scenario(duration="5 s", cc="lia", repetitions=2)
        .link("wide", "S", "D", rate="12 Mbit/s", delay="9 ms")
        .link("slow", "S", "D", rate="1 bit/s", delay="5 ms")
        .flow("none", [["wide"]], traffic={"arrivals": "0.001 / s", "size": "70 kB"})
        .flow("some", [["wide"]], traffic={"arrivals": "3 / s", "size": "50 kB"})
        .flow("stuck", [["slow"]], traffic={"arrivals": "2 / s", "size": "40 kB"})
    )
    results = mptcplab.run(scenario)
    assert results.never_up().select("run", "flow", "subflow").rows() == [(0, "stuck", None), (1, "stuck", None)]


# Scenarios.


def built() -> mptcplab.Scenario:
    return (
        mptcplab.Scenario(duration="3 s", warmup=1, repetitions=1, seed=3, cc=["lia", "reno"])
        .link("A", "S", "D", rate="8 Mbit/s", delay="6 ms", queue="40 packets", loss="0.5 %")
        .link("B", "S", "D", rate="3 Mbit/s", delay=0.017)
        .flow("mp", [["A"], ["B"]])
        .flow("tcp", ["A"], cc="cubic", start="uniform(0 s, 300 ms)")
    )


def test_a_scenario_that_is_built_runs_as_its_file(tmp_path: Path) -> None:
    scenario = built()
    file = scenario.write(tmp_path / "built.toml")
    results, of_file, of_keys = (mptcplab.run(one) for one in (scenario, file, scenario.to_dict()))
    assert results.metrics().equals(of_file.metrics())
    assert results.metrics().equals(of_keys.metrics())
    again = mptcplab.Scenario.from_toml(scenario.to_toml())
    assert again.to_dict() == scenario.to_dict()
    assert mptcplab.Scenario.from_file(file).to_toml() == file.read_text()


def test_methods_leave_a_scenario_as_it_is() -> None:
    scenario = built()
    before = scenario.to_toml()
    changed = scenario.set({"links.A.loss": None, "tcp.pacing": True}, seed=4)
    assert scenario.to_toml() == before
    assert "loss" not in changed.to_dict()["links"]["A"]
    assert changed.to_dict()["tcp"] == {"pacing": True}
    assert changed.to_dict()["seed"] == 4


def test_comments_stay_until_something_changes() -> None:
    text = SCENARIO
    scenario = mptcplab.Scenario.from_toml(text)
    assert scenario.to_toml() == text
    assert "#" not in scenario.set(seed=12).to_toml()


def test_files_beside_a_scenario_are_found(tmp_path: Path) -> None:
    mptcplab.walk(tmp_path, duration_s=5, reps=2)
    keys = built().to_dict()
    keys["links"]["A"]["schedule_file"] = "wifi-{rep}.csv"
    scenario = mptcplab.Scenario(keys, directory=tmp_path)
    assert scenario.check()["resolved"]
    assert mptcplab.run(scenario, "lia", 2).runs.height == 2


def test_the_pictures_of_notebooks() -> None:
    assert "<svg" in built()._repr_html_()
    assert "not a rate" in built().set({"links.A.rate": "8 Mbps"})._repr_html_()
    results = mptcplab.run(built(), "lia")
    assert "<table>" in results._repr_html_()
    assert "summary()" in results._repr_html_()
    assert ">1 run; " in results._repr_html_()
    assert repr(results) == "Results(1 run of 'scenario': lia)"


# The package and the command line.


def test_every_public_name_exists_and_every_command_is_one_of_them() -> None:
    for name in mptcplab.__all__:
        assert getattr(mptcplab, name) is not None
    assert sorted(mptcplab.__all__) == mptcplab.__all__
    own = {"docs", "completion", "man", "report"}
    names = {command.replace(" ", "_") for command, _ in reference._commands(COMMANDS)} - own
    assert names <= set(mptcplab.__all__)


def test_names_may_be_separated_by_commas() -> None:
    results = mptcplab.run(built(), cc="lia, reno", reps=1)
    assert results.runs["cc"].to_list() == ["lia", "reno"]


@pytest.mark.parametrize("name", [name for name, _ in reference._commands(COMMANDS)])
def test_every_command_has_examples_with_options_that_exist(name: str) -> None:
    command = dict(reference._commands(COMMANDS))[name]
    known = {option for param in command.params for option in param.opts} | {"-h", "--help"}
    assert EXAMPLES[name]
    for line in EXAMPLES[name]:
        assert f"mptcplab {name}" in line
        assert set(re.findall(r"(?<= )--?[a-z][a-z-]*", line.partition(f"mptcplab {name}")[2])) <= known


def test_a_bare_call_greets(tmp_path: Path) -> None:
    done = lab(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mptcplab --help" in done.stdout


def test_a_short_option_asks_for_help(tmp_path: Path) -> None:
    done = lab("run", "-h", cwd=tmp_path)
    assert done.returncode == 0
    assert "--sweep KEY=VALUES" in done.stdout
    assert "Examples:" in done.stdout


def test_a_new_scenario_is_commented_and_runs(tmp_path: Path) -> None:
    done = lab("new", "mine.toml", "--rates", "9 Mbit/s, 4 Mbit/s", "--tcp", "2", "--duration", "12 s", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "wrote: mine.toml\n"), done.stderr
    text = (tmp_path / "mine.toml").read_text()
    assert text.count("#") > 8
    assert mptcplab.check(tmp_path / "mine.toml", sweep={"links.path1.loss": "0.1 %, 1 %"})["resolved"]


def test_a_new_scenario_does_not_name_a_c_file(tmp_path: Path) -> None:
    """It was written with the algorithm's name, which no command knows without the file."""
    rule = "CC_UNCOUPLED(mine);\nCC_REGISTER(mine, .ssthresh = cc_reno_ssthresh, .cong_avoid = cc_reno_cong_avoid, "
    (tmp_path / "mine.c").write_text(f'#include "cc.h"\n{rule}.undo_cwnd = cc_reno_undo_cwnd);\n')
    done = lab("new", "n.toml", "--cc", "./mine.c,olia", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    place, _, hint = done.stderr.rstrip("\n").partition("\n\nhint: ")
    assert place.startswith("error: --cc: a scenario cannot name a C file: ") and place.endswith("mine.c")
    assert hint == (
        "leave it out, and give it to the command that runs the scenario: mptcplab run FILE --cc ./mine.c,olia"
    )
    assert not (tmp_path / "n.toml").exists()


def test_a_new_scenario_from_answers(tmp_path: Path) -> None:
    answers = "7 Mbit/s\nMine\n3 ms\n\n40 packets\nlia\n1\n20 s\n4 s\n6\nasked.toml\n"
    done = lab("new", "--ask", cwd=tmp_path, text=answers)
    assert done.returncode == 0, done.stderr
    keys = mptcplab.Scenario.from_file(tmp_path / "asked.toml").to_dict()
    assert (keys["title"], keys["links"]["path1"]["delay"], keys["flows"]["tcp"]["count"]) == ("Mine", "3 ms", 1)
    assert keys["links"]["path1"]["queue"] == "40 packets"
    assert (keys["duration"], keys["warmup"], keys["repetitions"]) == ("20 s", "4 s", 6)


@pytest.mark.parametrize(
    ("rates", "title", "delays"),
    [
        ("8 Mbit/s", "One path", ["10 ms"]),
        ("8 Mbit/s, 4 Mbit/s, 2 Mbit/s", "3 paths", ["10 ms", "20 ms", "30 ms"]),
    ],
)
def test_the_defaults_of_questions_fit_the_rates(rates: str, title: str, delays: list[str], tmp_path: Path) -> None:
    """One rate was an error, "more delays than rates", and three were "Two paths", the third with 20 ms."""
    done = lab("new", "--ask", cwd=tmp_path, text=rates + "\n" * 11)
    assert done.returncode == 0, done.stderr
    keys = mptcplab.Scenario.from_file(tmp_path / "scenario.toml").to_dict()
    assert keys["title"] == title
    assert [link["delay"] for link in keys["links"].values()] == delays


def test_the_default_of_the_warm_up_is_shorter_than_the_run(tmp_path: Path) -> None:
    """A length of 10 s was an error, because the warm-up of 10 s was not asked for."""
    done = lab("new", "--ask", cwd=tmp_path, text="\n" * 7 + "10 s\n" + "\n" * 3)
    assert done.returncode == 0, done.stderr
    keys = mptcplab.Scenario.from_file(tmp_path / "scenario.toml").to_dict()
    assert (keys["duration"], keys["warmup"]) == ("10 s", "2 s")


def test_what_an_option_gives_is_not_asked_for(tmp_path: Path) -> None:
    given = ("--rates", "7 Mbit/s", "--queue", "30 packets", "--reps", "4")
    done = lab("new", "mine.toml", "--ask", *given, cwd=tmp_path, text="\n" * 7)
    assert done.returncode == 0, done.stderr
    assert "Algorithms to compare" in done.stderr
    assert not any(question in done.stderr for question in ("Rates", "queue", "Repetitions", "File"))
    keys = mptcplab.Scenario.from_file(tmp_path / "mine.toml").to_dict()
    assert (keys["links"]["path1"]["queue"], keys["repetitions"]) == ("30 packets", 4)


def test_the_end_of_the_input_before_the_last_answer_is_no_interrupt(tmp_path: Path) -> None:
    """It was told as "interrupted", with exit code 130."""
    for answers in ("", "7 Mbit/s\nMine\n"):
        done = lab("new", "--ask", cwd=tmp_path, text=answers)
        assert done.returncode == 2
        assert "\nerror: the input ended before all questions were answered\n\nhint: " in done.stderr
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_of_shells_have_every_command_and_are_valid(shell: str, tmp_path: Path) -> None:
    text = script(shell, COMMANDS)
    assert all(command.name in text for command in commands(COMMANDS) if " " not in command.name)
    (tmp_path / "script").write_text(text)
    if shutil.which(shell):
        done = subprocess.run([shell, "-n", str(tmp_path / "script")], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["re"], {"report", "reproduce"}),
        (["run", "--sw"], {"--sweep"}),
        (["run", "x.toml", "--cc", "bal"], {"balia"}),
        (["cc", "un"], {"unload"}),
        (["algorithms", "ol"], {"olia"}),
        (["run", "two"], {"two.toml"}),
    ],
)
def test_bash_completes(words: list[str], expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "two.toml").touch()
    (tmp_path / "two.txt").touch()
    (tmp_path / "script").write_text(script("bash", COMMANDS))
    line = " ".join(f"'{word}'" for word in ["mptcplab", *words])
    code = (
        f'source ./script; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _mptcplab; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected


def test_the_man_page_is_valid() -> None:
    text = reference.man_page(COMMANDS)
    assert ".SS mptcplab run" in text
    if shutil.which("groff"):
        words = ["groff", "-man", "-Tascii", "-ww", "-z"]
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


# The page.


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_loss_sweep_takes_ten_lines_of_python_at_most() -> None:
    assert len(blocks("python")[0].strip().splitlines()) <= 10
    assert len(blocks("sh")[0].strip().splitlines()) == 1


def test_the_page_about_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks("python")).replace("reps=10,", 'reps=2, duration="12 s",')
    namespace: dict[str, Any] = {}
    exec(compile(code, "docs/python.md", "exec"), namespace)
    assert (tmp_path / "goodput-over-loss.pdf").stat().st_size > 5000
    assert namespace["table"].height == 21


def test_the_command_of_the_page_runs(tmp_path: Path) -> None:
    import shlex

    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    words = shlex.split(blocks("sh")[0])[1:]
    words[words.index("--reps") + 1] = "2"
    done = lab(*words, "--duration", "12 s", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "figures" / "goodput.svg").is_file()
    assert pl.read_csv(tmp_path / "out" / "summary.csv")["links.B1.loss"].n_unique() == 7
