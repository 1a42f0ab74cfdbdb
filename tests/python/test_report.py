"""The report: self-contained, complete, and clear about what it leaves out."""

from __future__ import annotations

import csv
import json
import pickle
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import synthetic as s
from conftest import ROOT
from matplotlib.figure import Figure

import mptcplab
from mptcplab import _core, bundle
from mptcplab.metrics import summary
from mptcplab.plots.over_time import CWND, PAYLOAD, RTT, Series, label_heights
from mptcplab.plots.styles import css_palette, style
from mptcplab.report import html, topology_svg
from mptcplab.report.columns import Points, packed, unpacked
from mptcplab.report.embedded import lines_of as samples_on_page
from mptcplab.report.figures import figures_over_time
from mptcplab.report.pictures import Pictures
from mptcplab.report.series import PlotBuilder, PlotData, plot_data
from mptcplab.report.tables import headline
from mptcplab.report.topology_layout import lay_out
from mptcplab.results import Results
from mptcplab.trace.samples import batches
from mptcplab.trace.topology import Topology

LINKS = [s.link("A", "S", "R", 8), s.link("B", "S", "D", 2, delay_ms=20), s.link("C", "R", "D", 100, queue=None)]


def sweep(directory: Path, *, reps: int, sample_ms: float | None = 100, seconds: int = 3) -> Results:
    """Two algorithms; sf1 gets faster with every run, sf2 slower."""
    runs, flow, subflow, link = [], [], [], []
    for run in range(2 * reps):
        cc, rep = ("lia", "olia")[run // reps], run % reps
        mp = s.tcp("mp", s.subflow("sf1", "A", "C"), s.subflow("sf2", "B"), cc=cc)
        scenario = s.resolved(LINKS, [mp], duration_s=seconds)
        runs.append(s.run_row(run, scenario, cc=cc, rep=rep, sample_ms=sample_ms))
        step = 0.1 if sample_ms else seconds
        for i in range(round(seconds / step) + 1):
            at = {"run": run, "t": i * step}
            rates = {"sf1": 100_000 + 5000 * run, "sf2": 50_000 - 3000 * run}
            flow.append({**at, "flow": "mp", "delivered_bytes": round(sum(rates.values()) * i * step)})
            for name, rate in rates.items():
                grown = round(rate * i * step)
                window = 10 + run + 40 * (i == 7) if name == "sf1" else 3
                row = {"rx_wire_bytes": grown, "rx_payload_bytes": grown, "cwnd_pkts": window, "rtt_us": 20_000 + run}
                subflow.append({**at, "flow": "mp", "subflow": name, **row})
            link.append({**at, "link": "A", "queue_pkts": i % 4, "departed_bytes": i * 1000})
            link.append({**at, "link": "B", "queue_pkts": 0, "departed_bytes": i * 1000})
    s.write(directory, runs, flow=flow, subflow=subflow, link=link)
    return Results.open(directory)


def test_the_page_fetches_nothing(tmp_path: Path) -> None:
    results = sweep(tmp_path, reps=2)
    page = results.report(figures=False).read_text()
    visible = page[: page.index('<script type="application/json"')] + page[page.rindex("<script>") :]
    assert not re.search(
        r"""(?:src|href)\s*=(?!"#| URL\.createObjectURL)|@import|url\((?!#)|https?://|\bfetch\(|XMLHttpRequest|\bimport\b""",
        visible,
    )
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "http" not in policy[1]
    assert len(page) < 8_000_000


def test_the_page_has_the_table_and_the_command_that_repeats_it(tmp_path: Path) -> None:
    results = sweep(tmp_path, reps=2)
    page = results.report(figures=False).read_text()
    table = headline(results, results.summary())
    assert len(table.rows) == 2
    for row in table.rows:
        for cell in row:
            assert cell in page
    assert "mptcplab run synthetic.toml</code>" in page
    assert "mp/sf1, mp/sf2: olia" in page
    assert "8 Mbit/s, 5 ms" in page


def test_the_command_names_a_file_of_the_package_by_its_place(tmp_path: Path) -> None:
    """The command on the page of a paper's scenario had the name of the file alone, which does not exist."""
    packaged = bundle.scenario("kim2021/shared-60")
    assert packaged is not None
    own = tmp_path / "shared-60.toml"
    own.write_text(packaged.read_text().replace("60 Mbit/s", "61 Mbit/s"))
    short = {"cc": "reno", "reps": 1, "duration": "2 s", "settings": {"warmup": "0 s"}}
    commands = [html.command(mptcplab.run(given, **short)) for given in ("kim2021/shared-60", own)]
    assert [command.split()[2] for command in commands] == ["papers/kim2021/shared-60.toml", "shared-60.toml"]
    assert mptcplab.check(commands[0].split()[2])["resolved"]["name"] == "shared-60"


ABOUT = """\
# Which of both paths carries more,
# and does <5 %> loss matter?
#
# Path A is the
# faster one; path B is assumed.
#
#     S --- A --- D
#      \\--- B ---/
#
# Its queue holds 7 packets.

source = "A paper, section <3>"
"""


def test_the_page_has_the_question_the_source_and_the_comments_of_the_file(tmp_path: Path) -> None:
    """Before, it looked for a key `description`, which scenarios do not have, and left the comments out."""
    mp = s.tcp("mp", s.subflow("sf1", "A", "C"), s.subflow("sf2", "B"))
    row = s.run_row(0, s.resolved(LINKS, [mp], duration_s=3)) | {"scenario_toml": ABOUT}
    s.write(tmp_path, [row], flow=[{"run": 0, "t": t, "flow": "mp", "delivered_bytes": t * 7000} for t in (0, 3)])
    page = Results.open(tmp_path).report(figures=False).read_text()
    header = page.partition("<header>")[2].partition("</header>")[0]
    assert '<p class="lead">Which of both paths carries more, and does &lt;5 %&gt; loss matter?</p>' in header
    assert '<p class="source">Source: A paper, section &lt;3&gt;</p>' in header
    details = page.partition("<summary>What the file says about the scenario</summary>")[2].partition("</details>")[0]
    assert re.findall(r"<p.*?>(.*?)</p>", details) == [
        "Path A is the faster one; path B is assumed.",
        "Its queue holds 7 packets.",
    ]
    [drawing] = re.findall(r"<pre tabindex=.*?>(.*?)</pre>", details, re.DOTALL)
    assert drawing == "S --- A --- D\n \\--- B ---/"


def test_a_file_without_comments_has_none_on_its_page(tmp_path: Path) -> None:
    page = sweep(tmp_path, reps=1).report(figures=False).read_text()
    assert "What the file says" not in page
    assert '<p class="lead">' not in page


def test_a_single_repetition_is_noted_and_shows_no_interval(tmp_path: Path) -> None:
    results = sweep(tmp_path, reps=1)
    table = headline(results, results.summary())
    assert "one repetition" in table.notes[0]
    assert not any("±" in cell for row in table.rows for cell in row)
    assert "one repetition" in results.report(figures=False).read_text()


@pytest.mark.parametrize(
    ("count", "cell"), [(4, "1.50 + 2.00 + 2.50 + 3.00"), (5, "5: 1.50 to 3.50"), (8, "8: 1.50 to 5.00")]
)
def test_many_subflows_do_not_make_the_table_wider(tmp_path: Path, count: int, cell: str) -> None:
    names = [f"sf{number}" for number in range(1, count + 1)]
    mp = s.tcp("mp", *(s.subflow(name, "A") for name in names), cc="lia")
    runs = [s.run_row(0, s.resolved(LINKS, [mp], duration_s=3), cc="lia", rep=0, sample_ms=100)]
    # Subflow n receives (n + 2) / 2 Mbit/s; the connection all of it.
    times, rates = (0.0, 1.0, 2.0, 3.0), {name: 62_500 * (n + 2) for n, name in enumerate(names, 1)}
    flow = [{"run": 0, "t": t, "flow": "mp", "delivered_bytes": int(t * sum(rates.values()))} for t in times]
    subflow = [
        {"run": 0, "t": t, "flow": "mp", "subflow": name, "rx_payload_bytes": int(t * rate)}
        for t in times
        for name, rate in rates.items()
    ]
    s.write(tmp_path, runs, flow=flow, subflow=subflow, link=[])
    results = Results.open(tmp_path)
    table = headline(results, results.summary())
    column = [title for title, _ in table.head].index("By\nsubflow")
    assert [row[column] for row in table.rows] == [cell]
    assert any("summary.csv have each of them" in note for note in table.notes) == (count > 4)


def slow(directory: Path) -> Results:
    """Two repetitions of a flow of some kbit/s: 12 and 16 in all, of which 0.64 and 0.8 by the second subflow."""
    mp = s.tcp("mp", s.subflow("sf1", "A", "C"), s.subflow("sf2", "B"), cc="lia")
    runs, rows = [], {"flow": list[dict[str, Any]](), "subflow": list[dict[str, Any]]()}
    for rep, rates in enumerate(((1420, 80), (1900, 100))):
        runs.append(s.run_row(rep, s.resolved(LINKS, [mp], duration_s=4), cc="lia", rep=rep, sample_ms=4000))
        for t in (0, 4):
            rows["flow"].append({"run": rep, "t": t, "flow": "mp", "delivered_bytes": sum(rates) * t})
            for name, rate in zip(("sf1", "sf2"), rates, strict=True):
                row = {"run": rep, "t": t, "flow": "mp", "subflow": name, "rx_payload_bytes": rate * t}
                rows["subflow"].append(row)
    s.write(directory, runs, flow=rows["flow"], subflow=rows["subflow"], link=[])
    return Results.open(directory)


def test_small_rates_are_not_shown_as_zero(tmp_path: Path) -> None:
    """The table and the page had 0.01 ± 0.03 for 14 kbit/s, and 0.00 for less than five."""
    results = slow(tmp_path)
    table = headline(results, results.summary())
    heads = [title for title, _ in table.head]
    [row] = table.rows
    # 0.012 and 0.016: half of the interval is 12.706 times 0.004 / 2.
    assert row[heads.index("Goodput")] == "0.014 ± 0.025"
    assert row[heads.index("By\nsubflow")] == "0.013 + 0.00072"
    page = results.report(figures=False).read_text()
    assert "0.014 ± 0.025" in page
    assert "0.013 + 0.00072" in page
    compared = mptcplab.compare(tmp_path, tmp_path).table(["goodput"])
    assert [row[5] for row in compared.rows if row[3] == "sf2"] == ["0.00072 Mbit/s"]


CROWD = """\
duration = "300 ms"
cc = "lia"
links.near = { count = 70, from = "s-{}", to = "R", rate = "9 Mbit/s", delay = "3 ms" }
links.far = { count = 70, from = "s-{}", to = "R", rate = "4 Mbit/s", delay = "11 ms" }
links.neck = { from = "R", to = "D", rate = "80 Mbit/s", delay = "7 ms" }
links.side = { from = "R", to = "D", rate = "20 Mbit/s", delay = "7 ms" }
flows.web = { count = 70, paths = [["near-{}", "neck"], ["far-{}", "neck"]] }
flows.web-90 = { path = ["near-5", "side"] }
flows.noise = { count = 60, path = ["neck"], transport = "udp", rate = "10 kbit/s" }
"""


def test_families_in_a_network_too_large_to_draw_are_listed_once(tmp_path: Path) -> None:
    """The first forty of their flows took a line for every subflow, and the flows declared after them had none."""
    scenario = tmp_path / "crowd.toml"
    scenario.write_text(CROWD)
    network = html.about_network(mptcplab.run(scenario, reps=1, progress=False))
    assert network["topology"] == ""
    assert network["subflows"] == 70 * 2 + 1 + 60
    assert [(row["label"], row["path"]) for row in network["flows"]] == [
        ("web \N{MULTIPLICATION SIGN} 70 sf1", "near-{} → neck"),
        ("web \N{MULTIPLICATION SIGN} 70 sf2", "far-{} → neck"),
        ("web-90", "near-5 → side"),
        ("noise \N{MULTIPLICATION SIGN} 60", "neck"),
    ]
    assert network["flows_left_out"] == ""


def test_udp_streams_that_are_declared_together_are_one_line_of_a_drawing(tmp_path: Path) -> None:
    """Each had a line, in the drawing and in the list below it."""
    scenario = tmp_path / "streams.toml"
    streams = CROWD.replace("count = 70", "count = 1").replace("near-5", "near-1")
    scenario.write_text(streams)
    network = html.about_network(mptcplab.run(scenario, reps=1, progress=False))
    assert network["topology"]
    labels = [row["label"] for row in network["flows"]]
    assert labels == ["web sf1", "web sf2", "web-90", "noise \N{MULTIPLICATION SIGN} 60"]


def test_a_value_cannot_end_or_open_the_script(tmp_path: Path) -> None:
    """`<!--<script>` in JSON makes a browser skip the end of the script, as does `</script>`."""
    runs = []
    for run, cc in enumerate(("<!--<script>", "</script>")):
        mp = s.tcp("mp", s.subflow("sf1", "A"), cc=cc)
        runs.append(s.run_row(run, s.resolved(LINKS, [mp], duration_s=3), cc=cc, rep=0, sample_ms=100))
    rows = [{"run": run, "t": t, "flow": "mp", "delivered_bytes": 9 * t} for run in (0, 1) for t in (0.0, 1.0, 2.0)]
    s.write(tmp_path, runs, flow=rows, subflow=[{**row, "subflow": "sf1"} for row in rows], link=[])
    page = Results.open(tmp_path).report(figures=False).read_text()
    embedded = re.search(r'id="data">(.*?)</script>', page, re.S)[1]
    assert "<" not in embedded
    assert [run["config"] for run in json.loads(embedded)["runs"]] == ["<!--<script>", "</script>"]


def held(page: str) -> list[dict[tuple[str, str], Points]]:
    """The samples in a page, by panel and label, for every run, unpacked as the script does."""
    texts = re.findall(r'id="run-\d+">(.*?)</script>', page, re.DOTALL)
    return [lines_of(run, text) for run, text in zip(embedded_data(page)["runs"], texts, strict=True)]


def lines_of(run: dict[str, Any], text: str) -> dict[tuple[str, str], Points]:
    names = [(panel["name"], one["label"]) for panel in run["panels"] for one in panel["series"]]
    about = [one for panel in run["panels"] for one in panel["series"]]
    return dict(zip(names, unpacked(text, about), strict=True))


def embedded_data(page: str) -> dict[str, Any]:
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_has_every_sample_of_the_trace(tmp_path: Path) -> None:
    results = sweep(tmp_path, reps=2)
    page = results.report(figures=False).read_text()
    data = embedded_data(page)
    assert [(run["config"], run["rep"]) for run in data["runs"]] == [("lia", 0), ("lia", 1), ("olia", 0), ("olia", 1)]
    assert all(run["exact"] and run["step"] == 0.1 for run in data["runs"])
    for number, series in enumerate(held(page)):
        assert set(series) == {
            ("cwnd", "sf1"),
            ("cwnd", "sf2"),
            ("rtt", "sf1"),
            ("rtt", "sf2"),
            ("payload", "sf1"),
            ("payload", "sf2"),
            ("queue", "A"),
        }
        rows = results.subflow.filter(run=number, subflow="sf2")
        for panel, column in (("cwnd", "cwnd_pkts"), ("rtt", "rtt_us"), ("payload", "rx_payload_bytes")):
            assert series[panel, "sf2"].values.tolist() == rows[column].to_list()
            assert series[panel, "sf2"].times_us.tolist() == (rows["t_ns"] // 1000).to_list()
        window = series["cwnd", "sf1"]
        assert (window.values.max(), window.times_us[window.values.argmax()]) == (50 + number, 700_000)
        queue = results.link.filter(run=number, link="A")["queue_pkts"].to_list()
        assert series["queue", "A"].values.tolist() == queue


@pytest.mark.parametrize(
    "values", [[], [7], [0, 2**40, 1, 2**40 + 3], [5, 5, 5], [300, 2, 65_536, 0]], ids=lambda one: str(len(one))
)
def test_columns_are_unpacked_as_they_were_packed(values: list[int]) -> None:
    uneven = Points(np.array([3, 10, 11, 900_000_000_000][: len(values)]), np.array(values, dtype=np.int64))
    even = Points(np.arange(len(values)) * 10_000, np.array(values[::-1], dtype=np.int64))
    for back, line in zip(unpacked(*packed([uneven, even, uneven])), [uneven, even, uneven], strict=True):
        assert back.values.tolist() == line.values.tolist()
        assert back.times_us.tolist() == line.times_us.tolist()


@pytest.fixture
def noisy(scenario: Path, tmp_path: Path) -> Results:
    """Two algorithms, three repetitions, 2,000 samples of every line, which random losses make hard to compress."""
    return mptcplab.run(scenario, reps=3, duration="20 s", out=tmp_path / "noisy", progress=False)


def test_a_page_is_the_same_if_its_metrics_were_known_before(
    noisy: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures are taken while metrics are measured, here two runs at a time, or else read from the trace."""
    monkeypatch.setattr("mptcplab.trace.samples.BATCH_ROWS", 40_000)
    assert [len(runs) for runs in batches(noisy, range(6), 6)] == [2, 2, 2]
    known, new = Results.open(noisy.directory), Results.open(noisy.directory)
    known.metrics()
    pages = [one.report(tmp_path / name / "page.html", figures=False) for one, name in ((known, "a"), (new, "b"))]
    assert pages[0].read_text() == pages[1].read_text()


def test_the_first_run_of_every_configuration_is_read_first(noisy: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures over time need no other runs, so that they can be drawn meanwhile; values keep the order of runs."""
    monkeypatch.setattr("mptcplab.trace.samples.BATCH_ROWS", 1)
    in_order = summary(noisy)
    read: list[int] = []
    begun: list[tuple[list[int], PlotData]] = []

    class Noted(Pictures):
        def add(self, runs: Sequence[int]) -> None:
            read.extend(runs)
            super().add(runs)

    pictures = Noted(noisy, lambda plots: begun.append((list(read), plots)))
    assert summary(Results.open(noisy.directory), pictures).equals(in_order)
    pictures.complete()
    assert read == [0, 3, 1, 2, 4, 5]
    ((known, plots),) = begun
    assert known == [run.run for run in plots.runs] == [0, 3]
    early, late = (pickle.dumps(figures_over_time(one, Path())) for one in (plots, pictures.plots()))
    assert early == late


def test_figures_over_time_wait_for_all_runs_if_a_first_one_has_no_lines(
    noisy: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlotBuilder, "has_lines", lambda *_: False)
    begun: list[PlotData] = []
    pictures = Pictures(noisy, begun.append)
    pictures.complete()
    assert [[run.run for run in plots.runs] for plots in begun] == [[0, 1, 2, 3, 4, 5]]


def texts_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def test_a_figure_over_time_says_which_of_several_repetitions_it_shows(noisy: Results) -> None:
    """Nothing in it did."""
    assert texts_of(noisy.plot.over_time("lia", 1, quantities="payload")) == ["repetition 2 of 3"]
    assert texts_of(noisy.plot.over_time(rep=2, quantities="payload")) == ["repetition 3 of 3"]
    plots = plot_data(noisy)
    assert [one.note for one in figures_over_time(plots, Path())] == ["repetition 1 of 3"] * 4
    # The first run of reno has no samples.
    rest = replace(plots, runs=tuple(run for run in plots.runs if run.run != 3))
    assert {one.note for one in figures_over_time(rest, Path())} == {"repetition 1 of 3; of reno repetition 2"}
    assert figures_over_time(replace(plots, repetitions=1), Path())[0].note is None


def test_no_round_trip_time_is_drawn_while_a_subflow_is_silent(tmp_path: Path) -> None:
    """The last one before an outage was drawn as a level line across it."""
    scenario = s.resolved(LINKS, [s.tcp("mp", s.subflow("sf1", "A", "C"), s.subflow("sf2", "B"))], duration_s=10)
    # sf1 measures nothing for half a second from 1 s on, and for five seconds from 3 s on; sf2 closes at 6 s.
    pauses = {"sf1": ((1, 1.5), (3, 8)), "sf2": ((6, 11),)}
    rows = []
    for name, silent in pauses.items():
        count = 0
        for at in np.arange(101) / 10:
            count += not any(begin < at < end for begin, end in silent)
            rows.append(
                {"run": 0, "flow": "mp", "subflow": name, "t": at, "rtt_us": 40_000 + count, "rtt_count": count}
            )
    s.write(
        tmp_path,
        [s.run_row(0, scenario, sample_ms=100)],
        flow=[{"run": 0, "flow": "mp", "t": 0.0}],
        subflow=rows,
        link=[{"run": 0, "link": "A", "t": 0.0}],
    )
    results = Results.open(tmp_path)
    (run,) = plot_data(results).runs
    one, other = run.column.of(RTT)
    assert seen(one) == [(0, 3), (8, 10)]
    assert seen(other) == [(0, 6)]
    assert [seen(line)[0][1] for line in run.column.of(CWND)] == [10, 10]
    # The samples of the page have the same gaps.
    lines = [line for line in samples_on_page(results, [0])[0] if line.panel == RTT]
    assert [np.diff(line.samples.times_us).max() / 1e6 for line in lines] == [5, 0.1]
    assert [line.samples.times_us[-1] / 1e6 for line in lines] == [10, 6]


def test_no_window_is_drawn_while_a_subflow_is_not_established(tmp_path: Path) -> None:
    """A subflow that joined at 6 s had a level line at the initial window before, and one that left had it after."""
    scenario = s.resolved(LINKS, [s.tcp("mp", s.subflow("sf1", "A", "C"), s.subflow("sf2", "B"))], duration_s=10)
    rows = []
    for at in np.arange(101) / 10:
        states = {
            "sf1": "open" if at < 4 else "closed",
            "sf2": "closed" if at < 6 else "handshake" if at < 7 else "open",
        }
        for name, window in (("sf1", 23), ("sf2", 10)):
            rows.append({"run": 0, "flow": "mp", "subflow": name, "t": at, "state": states[name], "cwnd_pkts": window})
    run = s.run_row(0, scenario, sample_ms=100)
    s.write(tmp_path, [run], flow=[{"run": 0, "flow": "mp", "t": 0.0}], subflow=rows, link=[])
    results = Results.open(tmp_path)
    (drawn,) = plot_data(results).runs
    assert [seen(line) for line in drawn.column.of(CWND)] == [[(0, 4)], [(7, 10)]]
    times = [line.samples.times_us for line in samples_on_page(results, [0])[0] if line.panel == CWND]
    assert [(one[0] / 1e6, one[-1] / 1e6) for one in times] == [(0, 3.9), (7, 10)]


def test_a_line_has_no_gaps_where_samples_are_rarer_than_bins(tmp_path: Path) -> None:
    """Empty bins cut it into points that nobody could see: 2 s with samples every 10 ms, or 40 s with 100 ms."""
    mp = s.tcp("mp", s.subflow("sf1", "A", "C"), s.subflow("sf2", "B"))
    for at, (seconds, sample_ms) in enumerate([(2, 10.0), (40, 100.0), (300, 2000.0)]):
        scenario = s.resolved(LINKS, [mp], duration_s=seconds)
        # Every other sample is late by a tenth of the interval, as in a kernel.
        times = [0.001 * sample_ms * (i + 0.1 * (i % 2)) for i in range(round(1000 * seconds / sample_ms))]
        rows = [
            {"run": 0, "flow": "mp", "subflow": name, "t": t, "cwnd_pkts": 7 + i % 3, "rx_payload_bytes": grown * i}
            for name, grown in (("sf1", 3000), ("sf2", 5000))
            for i, t in enumerate(times)
        ]
        run = s.run_row(0, scenario, sample_ms=sample_ms)
        s.write(tmp_path / str(at), [run], flow=[{"run": 0, "flow": "mp", "t": 0.0}], subflow=rows, link=[])
        (drawn,) = plot_data(Results.open(tmp_path / str(at))).runs
        for panel, fewest in ((CWND, 150), (PAYLOAD, 9)):
            for line in drawn.column.of(panel):
                there = np.flatnonzero(np.isfinite(line.values))
                assert (np.diff(there) == 1).all()
                assert there.size >= fewest


def seen(line: Series) -> list[tuple[int, int]]:
    """From when to when a line is drawn, in whole seconds; samples are a tenth of a second apart."""
    times = line.times_s[np.isfinite(line.values)]
    edges = np.flatnonzero(np.diff(times) > 0.6)
    return [(round(part[0]), round(part[-1])) for part in np.split(times, edges + 1)]


def test_without_room_for_all_samples_the_first_repetitions_are_the_finest(noisy: Results) -> None:
    """Overviews have bins of four samples; there is room for most of all samples."""
    pictures = Pictures(noisy, lambda _: None)
    pictures.complete()
    everything = pictures.samples()
    assert (len(everything.runs), everything.notes) == (6, ())
    room = 82 * sum(map(len, everything.texts)) // 100
    found = pictures.samples(budget_bytes=room)
    assert sum(map(len, found.texts)) <= room
    steps = [(run["config"], run["rep"], run["exact"], run["step"]) for run in found.runs]
    assert [one[2:] for one in steps if one[1] == 0] == [(True, 0.01)] * 2
    assert [one[2:] for one in steps if one[1] == 2] == [(False, 0.04)] * 2
    assert "repetition 3: 40 ms" in found.notes[0]
    fine, coarse = (lines_of(one.runs[5], one.texts[5]) for one in (everything, found))
    for key in (("cwnd", "mp sf1"), ("rtt", "mp sf2"), ("queue", "A")):
        for at in range(0, 20_000_000, 40_000):
            first, last = (
                one[key].values[(one[key].times_us >= at) & (one[key].times_us < at + 40_000)] for one in (fine, coarse)
            )
            assert (first.min(initial=0), first.max(initial=0)) == (last.min(initial=0), last.max(initial=0))
    # A counter keeps samples as they are, so that what it grew by is exact.
    counter = dict(zip(*(column.tolist() for column in vars(fine["payload", "mp sf1"]).values()), strict=True))
    kept = coarse["payload", "mp sf1"]
    assert [counter[at] for at in kept.times_us.tolist()] == kept.values.tolist()


def test_without_room_for_overviews_the_last_repetitions_are_left_out_and_named(noisy: Results) -> None:
    pictures = Pictures(noisy, lambda _: None)
    pictures.complete()
    overview = sum(map(len, pictures.samples(budget_bytes=1).texts))
    found = pictures.samples(budget_bytes=3 * overview + overview // 2)
    assert sum(map(len, found.texts)) <= 3 * overview + overview // 2
    assert [(run["config"], run["rep"]) for run in found.runs] == [("lia", 0), ("lia", 1), ("reno", 0)]
    assert "room for the samples of 3 of 6 runs" in found.notes[-1]


def text_of(page: str) -> str:
    """What a reader sees: without the style sheet, the data and the scripts."""
    return re.sub(r"<style>.*?</style>", "", page[: page.index('<script type="application/json"')], flags=re.DOTALL)


def test_captions_explain_only_what_is_there(tmp_path: Path) -> None:
    one = text_of(sweep(tmp_path / "one", reps=1).report(figures=False).read_text())
    two = text_of(sweep(tmp_path / "two", reps=2).report(figures=False).read_text())
    for text in ("Mean over the repetitions ±", "circles are single repetitions", "interval of the total"):
        assert text in two
        assert text not in one
    # The column of fair shares is there, and so is its explanation; there is no warm-up.
    assert ("Fraction of" in one) and ("its share on the wire reaches 0.943; the rest is headers" in one)
    assert "warm-up" not in one
    assert "which is shaded" not in two
    unsampled = text_of(sweep(tmp_path / "unsampled", reps=2, sample_ms=None).report(figures=False).read_text())
    assert "Lines show every sample" in two
    assert "Lines show every sample" not in unsampled


def test_the_caption_says_what_each_transport_reaches_at_its_fair_share_and_when_more(tmp_path: Path) -> None:
    """The caption "headers alone keep it below 0.943" stood below 1.26 of an MPTCP and 0.96 of a TCP connection."""
    settings = {"warmup": "2 s"}
    found = {}
    for like in ("none", "linux-7.3"):
        found[like] = mptcplab.run(
            ROOT / "scenarios" / "shared-bottleneck-fairness.toml",
            "reno",
            1,
            duration="4 s",
            settings={**settings, "tcp.like": like},
            out=tmp_path / like,
            progress=False,
        )
    captions = {like: text_of(results.report(figures=False).read_text()) for like, results in found.items()}
    # 1428 of 1428 + 72 + 14 bytes and 1448 of 1448 + 52 + 14; with the longer option of Linux 1428 of 1428 + 76 + 14.
    assert "exactly its share on the wire reaches 0.943 (MPTCP) or 0.956 (TCP); the rest is headers" in captions["none"]
    assert "reaches 0.941 (MPTCP) or 0.956 (TCP)" in captions["linux-7.3"]
    for text in captions.values():
        assert "If it has more, it takes more than its share, or data that waited out of order" in text


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("wifi-walk", "traces/walk/wifi-{rep}.csv, traces/walk/cellular-{rep}.csv"),
        ("wifi-lte-varying-rate", "traces/lte-fading.trace"),
    ],
)
def test_the_files_that_a_scenario_names_are_needed_to_run_it_again(name: str, files: str, tmp_path: Path) -> None:
    """The page spoke of the scenario file only, which fails without them."""
    settings = {"warmup": "0 s"}
    results = mptcplab.run(name, "lia", 1, duration="2 s", settings=settings, out=tmp_path / "r", progress=False)
    text = re.sub("<.*?>", "", text_of(results.report(figures=False).read_text()))
    assert (
        f"Save the scenario file below as {name}.toml first. You also need these files in its folder: {files}." in text
    )
    own = tmp_path / "own.c"
    own.write_text((ROOT / "algorithms" / "template.c").read_text().replace("template", "own"))
    results = mptcplab.run(name, str(own), 1, duration="2 s", settings=settings, out=tmp_path / "c", progress=False)
    text = re.sub("<.*?>", "", text_of(results.report(figures=False).read_text()))
    assert f"You also need the C files of algorithms, and these files in its folder: {files}." in text


def test_a_report_of_simulator_and_fluid_does_not_speak_of_kernels(tmp_path: Path) -> None:
    scenario = ROOT / "scenarios" / "shared-bottleneck-fairness.toml"
    results = mptcplab.run(scenario, "lia", 1, duration="40 s", engine="sim,fluid", out=tmp_path / "r", progress=False)
    text = text_of(results.report(figures=False).read_text())
    assert "Comparison of engines" in text
    assert "kernel" not in text.lower()


def test_identical_repetitions_are_noted(tmp_path: Path) -> None:
    results = sweep(tmp_path / "chance", reps=2)
    assert not any("do not differ" in note for note in headline(results, results.summary()).notes)
    summary = results.summary().with_columns(max=pl.when(pl.col("config") == "olia").then("min").otherwise("max"))
    notes = headline(results, summary).notes
    assert any(note.startswith("the repetitions of olia do not differ") for note in notes)


def test_identical_repetitions_of_some_do_not_hide_that_the_others_are_few(demo: Path, tmp_path: Path) -> None:
    """With the fluid model beside the simulator, 10.97 ± 19.59 was shown without a word."""
    run, warmup = tmp_path / "r", {"warmup": "2 s"}
    results = mptcplab.run(demo, "lia", 2, duration="8 s", settings=warmup, engine="sim,fluid", out=run, progress=False)
    notes = headline(results, results.summary()).notes
    assert notes[:2] == (
        "the repetitions of lia (fluid) do not differ, because nothing random happened in these runs",
        "only 2 repetitions: the intervals are wide",
    )
    same = headline(results, results.summary().with_columns(max="min")).notes
    assert same[0].startswith("the repetitions do not differ")
    assert not any("only 2" in note for note in same)


def test_repetitions_with_the_same_goodput_differ_if_another_metric_does(tmp_path: Path) -> None:
    """The note said that nothing was random beside transfer times of 32.6 ± 4.2 s."""
    results = sweep(tmp_path / "chance", reps=2)
    olia, goodput = pl.col("config") == "olia", pl.col("metric") == "goodput"
    summary = results.summary()
    same = summary.with_columns(max=pl.when(olia & goodput).then("min").otherwise("max"))
    assert not any("do not differ" in note for note in headline(results, same).notes)
    # All values are the same, but one of them is there in the second repetition only.
    once = pl.when(olia & (pl.col("metric") == "rtt_p50") & (pl.col("subflow") == "sf2")).then(1).otherwise("n")
    same = summary.with_columns(n=once, max=pl.when(olia).then("min").otherwise("max"))
    assert not any("do not differ" in note for note in headline(results, same).notes)


def test_static_figures_are_there_before_any_script(tmp_path: Path) -> None:
    """The first run's lines and every bar, as drawn in the page itself: right number, right size."""
    page = sweep(tmp_path, reps=2).report(figures=False).read_text()
    markup = page[: page.index('<script type="application/json"')]
    goodput, over_time = re.findall(r'<svg class="figure".*?</svg>', markup, re.S)
    # Goodput of runs 0 and 1 is 1.2 and 1.216 Mbit/s, of runs 2 and 3 1.232 and 1.248 Mbit/s; bars are their means.
    # Each part of a bar is a tint and an outline; the samples of the legend are not clipped.
    bars = [extent(d)[0] for d in paths(goodput, "fill-opacity: 0.34[0-9]*", clipped=True)]
    assert len(bars) == 4
    assert bars[2] / bars[0] == pytest.approx(112_500 / 102_500, rel=3e-3)
    assert bars[1] / bars[0] == pytest.approx(48_500 / 102_500, rel=3e-3)
    lines = [extent(d)[1] for d in paths(over_time, "fill: none;.* stroke: var\\(--c[01]\\)", clipped=True)]
    assert len(lines) == 7
    # The window of sf1 is 10 with one peak of 50 packets, that of sf2 stays at 3; the scale ends 5 % above the peak.
    assert lines[0] / PANEL_POINTS == pytest.approx(40 / 52.5, abs=0.002)
    assert lines[1] == 0


# The height of a panel in points.
PANEL_POINTS = 1.6 * 72


def paths(svg: str, style: str, *, clipped: bool) -> list[str]:
    """The paths that are drawn in a style, inside of axes or not."""
    found = re.findall(r'<path d="([^"]*)"([^>]*?)style="([^"]*)"', svg)
    return [d for d, other, drawn in found if re.search(style, drawn) and ("clip-path" in other) == clipped]


def extent(path: str) -> tuple[float, float]:
    """Width and height of a path of points and lines."""
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
    xs, ys = numbers[::2], numbers[1::2]
    return max(xs) - min(xs), max(ys) - min(ys)


def test_page_and_static_figures_have_the_same_colours(tmp_path: Path) -> None:
    page = sweep(tmp_path, reps=2).report(figures=False).read_text()
    data = embedded_data(page)
    assert css_palette(dark=False) in page
    assert css_palette(dark=True) in page
    window = data["runs"][0]["panels"][0]
    assert [(one["label"], one["colour"], one["dash"]) for one in window["series"]] == [
        ("sf1", "--c0", "solid"),
        ("sf2", "--c1", "dash"),
    ]
    assert data["goodput"]["top"] == pytest.approx(1.05 * max(8.0, max(data["goodput"]["rows"][1]["points"])), rel=0.3)


def test_labels_of_lines_do_not_overlap() -> None:
    ends = (0.5, 0.49, 0.99, 0.98)
    lines = [Series(CWND, str(end), style(0), np.arange(3.0), np.full(3, end)) for end in ends]
    placed = label_heights(lines, 1.0)
    assert all(upper - lower >= 0.11 - 1e-9 for lower, upper in pairwise(sorted(placed)))
    assert max(placed) <= 1
    assert sorted(range(4), key=placed.__getitem__) == [1, 0, 3, 2]


def test_without_samples_the_page_says_so(tmp_path: Path) -> None:
    results = sweep(tmp_path, reps=2, sample_ms=None)
    page = results.report(figures=False).read_text()
    assert "sampling was off" in page
    assert 'id="time-plot"' not in page


def test_many_runs_are_thinned_but_every_algorithm_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mptcplab.report.series.MAX_RUNS", 4)
    plots = plot_data(sweep(tmp_path, reps=3))
    assert [(run.column.title, run.rep) for run in plots.runs] == [("lia", 0), ("lia", 1), ("olia", 0), ("olia", 1)]
    assert plots.notes[0].startswith("plots over time show 4 of 6 runs; ")


def test_figures_and_tables_are_written_and_repeatable(tmp_path: Path) -> None:
    results = sweep(tmp_path, reps=2)
    results.report()
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {
        f"{stem}.{kind}" for stem in ("goodput", "cwnd", "rtt", "payload", "queue") for kind in ("png", "svg")
    }
    rows = list(csv.DictReader((tmp_path / "summary.csv").open()))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert len(rows) == len(summary["summary"]) == results.summary().height
    assert summary["seed"] == 7
    first = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    Results.open(tmp_path).report()
    assert {path: path.read_bytes() for path in first} == first


@pytest.mark.parametrize("wide", [True, False])
def test_the_topology_shows_every_node_link_and_path(tmp_path: Path, wide: bool) -> None:
    svg = topology_svg.draw(sweep(tmp_path, reps=1).topologies[0], wide=wide)
    for name in ("S", "R", "D", "A", "B", "C"):
        assert f">{name}<" in svg
    for text in ("8 Mbit/s", "20 ms", "queue 1,000 packets", "no queue limit", "sf1", "sf2"):
        assert text in svg
    assert svg.count('class="pipe"') == 3
    assert svg.count('class="flow"') == 3  # sf1 over two links, sf2 over one


@pytest.mark.parametrize("wide", [True, False])
def test_a_link_whose_directions_differ_has_both_on_its_label(wide: bool) -> None:
    """Before, a download at 20 Mbit/s seemed to flow over 4 Mbit/s: the label had the direction of the upload alone."""
    up = s.link("dsl", "home", "isp", 4, delay_ms=12, aqm={"name": "codel"}, loss={"model": "bernoulli", "p": 0.01})
    down = s.link("dsl~", "isp", "home", 20, delay_ms=12, queue={"packets": 300})
    near, far = s.link("lan", "home", "hub", 70, delay_ms=3), s.link("lan~", "hub", "home", 70, delay_ms=3)
    flows = {
        "both": [s.tcp("up", s.subflow("sf1", "dsl")), s.tcp("down", s.subflow("sf1", "dsl~"))],
        "up": [s.tcp("up", s.subflow("sf1", "dsl"))],
        "same": [s.tcp("up", s.subflow("sf1", "lan")), s.tcp("down", s.subflow("sf1", "lan~"))],
    }
    drawn = {
        name: topology_svg.draw(
            Topology.from_json(json.dumps(s.resolved([up, down, near, far], some, duration_s=9))), wide=wide
        )
        for name, some in flows.items()
    }
    found = re.findall(">back: (.*?)<", drawn["both"])
    parts = ["20 Mbit/s", "queue 300 packets", "no loss", "drop-tail"]
    assert found == ([", ".join(parts)] if wide else parts)
    assert "4 Mbit/s" in drawn["both"]
    assert [name for name, svg in drawn.items() if "back:" in svg] == ["both"]


def test_parallel_links_are_drawn_apart(tmp_path: Path) -> None:
    links = [s.link("A", "S", "D", 8), s.link("B", "S", "D", 2)]
    scenario = s.resolved(links, [s.tcp("mp", s.subflow("x", "A"), s.subflow("y", "B"))], duration_s=1)
    s.write(tmp_path, [s.run_row(0, scenario)])
    svg = topology_svg.draw(Results.open(tmp_path).topologies[0], wide=True)
    pipes = re.findall(r'class="pipe" d="([^"]+)"', svg)
    assert len(pipes) == len(set(pipes)) == 2


def topology(links: list[dict[str, Any]], flows: list[dict[str, Any]]) -> Topology:
    return Topology.from_json(json.dumps(s.resolved(links, flows, duration_s=1)))


def test_lanes_that_are_near_each_other_leave_room_for_their_labels() -> None:
    """A and B between C's lane and the middle: their labels lay on C's."""
    links = [s.link("A", "h1", "r", 8), s.link("B", "h1", "r", 2), s.link("C", "h2", "r", 3), s.link("E", "r", "D", 4)]
    flows = [s.tcp("mp", s.subflow("x", "A", "E"), s.subflow("y", "B", "E")), s.tcp("tcp", s.subflow("z", "C", "E"))]
    svg = topology_svg.draw(topology(links, flows), wide=True)
    tops = {}
    for text in re.findall(r'<text class="label".*?</text>', svg):
        ys = [float(y) for y in re.findall(r'<tspan x="[^"]*" y="([^"]*)"', text)]
        tops[re.search(r'class="name">(\w)<', text)[1]] = (ys[0] - 12, ys[-1])
    first, second, third = sorted(tops[name] for name in "ABC")
    assert first[1] < second[0] and second[1] < third[0]


def test_links_that_meet_at_a_node_keep_lanes_of_their_own() -> None:
    """Both A and C end on the lane of r1: their labels lay on top of each other."""
    links = [s.link("A", "h1", "r1", 8), s.link("C", "h2", "r1", 3), s.link("B", "h2", "r2", 2)]
    links += [s.link("E", "r1", "D", 4), s.link("G", "r2", "D", 5)]
    flows = [s.tcp("t", s.subflow("z", "A", "E")), s.tcp("mp", s.subflow("x", "C", "E"), s.subflow("y", "B", "G"))]
    lanes = {edge.link.name: edge.lane for edge in lay_out(topology(links, flows)).edges}
    assert len({lanes[name] for name in "ABC"}) == 3


def test_parallel_links_avoid_the_lane_of_a_link_beside_them() -> None:
    """A and B fan out from the first of three hosts, and B lay on C, which runs straight from the second."""
    links = [s.link("A", "h1", "r", 8), s.link("B", "h1", "r", 2), s.link("C", "h2", "r", 3), s.link("D", "h3", "r", 6)]
    links.append(s.link("E", "r", "d", 4))
    flows = [s.tcp("mp", s.subflow("x", "A", "E"), s.subflow("y", "B", "E"))]
    flows += [s.tcp(name, s.subflow("z", link, "E")) for name, link in (("t", "C"), ("u", "D"))]
    lanes = {edge.link.name: edge.lane for edge in lay_out(topology(links, flows)).edges}
    assert len({lanes[name] for name in "ABCD"}) == 4


def test_parallel_links_of_hosts_below_each_other_have_lanes_of_their_own() -> None:
    """Each of three phones has two links to its server: the second link of a phone lay on the first one of the next."""
    scenario = ROOT / "scenarios" / "wifi-handover.toml"
    layout = lay_out(Topology.from_json(json.dumps(json.loads(_core.runs_json(str(scenario), "{}"))[0])))
    lanes = {edge.link.name: edge.lane for edge in layout.edges}
    assert sorted(lanes.values()) == [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]
    assert sorted(lanes, key=lanes.__getitem__) == ["wifi-1", "lte-1", "wifi-2", "lte-2", "wifi-3", "lte-3"]


def test_a_link_that_passes_a_router_does_not_run_through_it() -> None:
    """B joins the ends of a path through a router: it was drawn through the router, below the two links of the path."""
    links = [s.link("A", "S", "R", 8), s.link("B", "S", "D", 2), s.link("C", "R", "D", 5)]
    layout = lay_out(topology(links, [s.tcp("mp", s.subflow("x", "A", "C"), s.subflow("y", "B"))]))
    assert layout.nodes["R"] == (1, 0)
    assert {edge.link.name: edge.lane for edge in layout.edges} == {"A": 0, "B": 1, "C": 0}
    assert (layout.low, layout.high) == (0, 1)


def test_links_there_and_back_have_lanes_of_their_own_and_pass_by_nodes() -> None:
    """F and G join the same nodes, and G2 goes back: each pair lay on one lane, and one of them ran through a host."""
    scenario = ROOT / "papers" / "wischik2011" / "triangle.toml"
    layout = lay_out(Topology.from_json(json.dumps(json.loads(_core.runs_json(str(scenario), "{}"))[0])))
    edges = {edge.link.name: edge for edge in layout.edges}
    assert any(edge.last < edge.first for edge in layout.edges)
    for name in ("F1", "F2", "F3"):
        assert edges[name].lane != edges[name.replace("F", "G")].lane
    for edge in layout.edges:
        through = [node for node, (layer, lane) in layout.nodes.items() if edge.passes(layer) and lane == edge.lane]
        assert not through, edge.link.name


def test_links_that_go_back_do_not_push_nodes_apart() -> None:
    """Three links in a ring, and a link out of it: before, each of them moved the others to the right."""
    links = [s.link("A", "p", "q", 8), s.link("B", "q", "r", 2), s.link("C", "r", "p", 3), s.link("D", "q", "d", 4)]
    flows = [s.tcp(name, s.subflow("x", *path)) for name, path in (("f", "AB"), ("g", "BC"), ("h", "CA"), ("k", "AD"))]
    layout = lay_out(topology(links, flows))
    assert {name: place[0] for name, place in layout.nodes.items()} == {"p": 0, "q": 1, "r": 2, "d": 2}
    assert layout.layers == 3


def test_names_in_a_scenario_are_escaped_on_the_page(tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script>"
    scenario = s.resolved([s.link(hostile, "S", "D", 8)], [s.tcp(hostile, s.subflow("x", hostile))], duration_s=1)
    s.write(tmp_path, [s.run_row(0, scenario) | {"title": hostile, "scenario_toml": f"# {hostile}?"}])
    page = Results.open(tmp_path).report(figures=False).read_text()
    assert "<script>alert" not in page


def test_styles_differ_in_more_than_colour() -> None:
    looks = [style(index) for index in range(12)]
    assert len({(look.colour, look.dash) for look in looks}) == 12
    for one, other in pairwise(looks[:6]):
        assert one.dash != other.dash
        assert one.hatch != other.hatch


def test_eight_subflows_are_told_apart_without_colours() -> None:
    """The seventh and eighth had the dashes and hatches of the second and third."""
    looks = [style(index) for index in range(8)]
    for name in ("dash", "svg_dash", "mpl_dash", "hatch", "marker"):
        assert len({getattr(look, name) for look in looks}) == 8
    assert len({(look.colour, look.dash) for look in (style(index) for index in range(48))}) == 48


def test_all_that_scrolls_can_be_focused_by_keyboard() -> None:
    """In the templates of all pages: only what has the focus scrolls by keyboard, and a name says what it is.

    Before, sixteen places repeated the attributes. Now two macros write them, and every place gives a name.
    """
    package = Path(mptcplab.__file__).parent
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.html"))}
    boxes = re.findall(r'<div [^>]*tabindex="0"[^>]*>', texts.pop("macros.html"))
    assert len(boxes) == 2
    assert [one for one in boxes if 'aria-label="{{ name }}"' not in one] == []
    assert [name for name, text in texts.items() if re.search(r'class="[^"]*\bscroll\b', text)] == []
    uses = [
        call for text in texts.values() for call in re.findall(r"{% call scrolling_(?:table|figure)\((.*)\) %}", text)
    ]
    assert len(uses) >= 20
    assert [call for call in uses if not re.match(r'"\w|name,|[a-z.]*figures?(\[0\])?\.title', call)] == []


def test_boxes_of_tables_and_figures_have_their_names_on_the_page(tmp_path: Path) -> None:
    page = sweep(tmp_path, reps=2).report(figures=False).read_text()
    box = r'<div class="([a-z ]*scroll)" tabindex="0" role="(\w+)" aria-label="(.*?)"( id="[a-z-]+")?'
    boxes = re.findall(box, page)
    assert boxes == [
        ("scroll", "region", "Table of results", ""),
        ("scroll", "group", "Drawing of the scenario", ""),
        (
            "plot scroll",
            "group",
            "Goodput of every configuration; the numbers are in the table of results",
            ' id="goodput-plot"',
        ),
        (
            "plot scroll",
            "group",
            "Plots over time: congestion window, round-trip time, payload received, queue",
            ' id="time-plot"',
        ),
        ("scroll", "region", "All metrics", ""),
    ]
