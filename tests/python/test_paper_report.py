"""The report of a reproduction, from a store whose numbers are known: no run of an engine."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest

from mptcplab.errors import MptcplabError
from mptcplab.plots.over_time import CWND
from mptcplab.plots.svg import inline
from mptcplab.studies.papers import catalog
from mptcplab.studies.papers.catalog import FigureSpec
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.predicate import Fact
from mptcplab.studies.papers.report import charts, tables, write, write_docs
from mptcplab.studies.papers.report.draw import draw
from mptcplab.studies.papers.report.page import combined, paper_page
from mptcplab.studies.papers.report.reader import Reader, order
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.study.cell import Cell
from mptcplab.study.execute import Outcome
from mptcplab.study.measure import VALUE_COLUMNS
from mptcplab.study.store import Store
from mptcplab.study.verdict import Finding, Verdict
from mptcplab.text import NOT_APPLICABLE

SCENARIO = """\
# Who gets the shared link?
#
# Two paths of 8 and 4 Mbit/s; a TCP is on
# the first.
#
# Assumed: queues of 20 packets.

name = "pair"
title = "Two paths"
duration = "40 s"
repetitions = 4
profile = "rfc"
cc = "lia"

[links]
A = { from = "S", to = "D", rate = "8 Mbit/s", delay = "10 ms", queue = "20 packets" }
B = { from = "S", to = "D", rate = "4 Mbit/s", delay = "25 ms", queue = "20 packets" }

[flows.mp]
subflows = [
    { name = "sf1", path = ["A"] },
    { name = "sf2", path = ["B"] },
]

[flows.tcp]
path = ["A"]
cc = "reno"
"""

PAPER = """\
title = "A rule for two paths"
cite = "Doe, Some Journal 2024"
about = "One rule against two others."
profile = "rfc"

[experiments.TWO]
title = "Two paths, one TCP"
where = "section 3"
scenario = "pair.toml"
algorithms = ["lia", "olia", "uncoupled-reno"]
repetitions = 4
ideal = { mp = 8, tcp = 4 }
published = "the rule gets 6"
figures = [
    { kind = "box", of = "Fig. 1", metric = "ratio", flows = ["mp", "tcp"] },
    { kind = "bars", of = "Fig. 2", metric = "throughput", flows = ["mp"], stack = true, published = { olia = 12 } },
    { kind = "bars", of = "Fig. 9", metric = "jain" },
    { kind = "time", of = "Fig. 3", flows = ["mp"] },
    { kind = "box", of = "Fig. 4", metric = "ftt", flows = ["mp"] },
]

[experiments.SWP]
title = "Over the rate"
where = "section 4"
scenario = "pair.toml"
algorithms = ["olia", "lia"]
repetitions = 4
sweep_axis = "Rate of B (Mbit/s)"
sweep = [
    { label = "r1", x = 1, settings = { "links.B.rate" = "1 Mbit/s" } },
    { label = "r5", x = 5, settings = { "links.B.rate" = "5 Mbit/s" } },
    { label = "r30", x = 30, settings = { "links.B.rate" = "30 Mbit/s" } },
]
figures = [
    { kind = "sweep", of = "Fig. 5", metric = "goodput", flows = ["mp"] },
    { kind = "bars", of = "Fig. 9", metric = "jain" },
]

[experiments.BIN]
title = "In parts"
where = "section 5"
scenario = "pair.toml"
algorithms = ["lia", "olia"]
repetitions = 4
bins = [0, 10, 40]
figures = [
    { kind = "spans", of = "Table 1", metric = "throughput", flows = ["mp", "tcp"], PUBLISHED },
]
""".replace("PUBLISHED", 'published = { "bin 1 tcp" = 2.5, "bin 0 tcp" = 5 }')

CLAIMS = """\
[[claim]]
id = "C-1"
experiment = "TWO"
where = "section 3"
origin = "paper"
kind = "number"
statement = "OLIA gets 6"
predicate = "mean(goodput{cc=olia,flow=mp}) == 6"
tolerance = 0.05
headline = true
expect = "holds"
why = "Its step is | too small."

[[claim]]
id = "C-2"
experiment = "TWO"
origin = "lab"
kind = "shape"
statement = "LIA is better than <OLIA>"
predicate = "mean(goodput{cc=lia,flow=mp}) > mean(goodput{cc=olia,flow=mp})"
expect = "holds"

[[claim]]
id = "C-3"
origin = "paper"
kind = "consistency"
statement = "Table 1 and the text agree"
predicate = "5 == 6"
expect = "fails"

[[claim]]
id = "C-4"
experiment = "SWP"
origin = "paper"
kind = "shape"
statement = "Timeouts vanish"
predicate = "mean(rto_count{cc=lia}) == 0"
headline = true
expect = "open"
"""

REPS = 4
# Mbit/s on the wire of sf1, sf2 and tcp, by algorithm: no two alike.
RATES = {"lia": (3.0, 2.0, 4.0), "olia": (2.5, 3.5, 5.0), "uncoupled-reno": (4.5, 3.75, 2.25)}
NOISE = np.array([-0.3, 0.1, 0.4, -0.2])


@pytest.fixture
def made(tmp_path: Path) -> Reproduction:
    return made_in(tmp_path)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return paper_page(made_in(tmp_path_factory.mktemp("page")), "mptcplab reproduce doe2024")


def made_in(tmp_path: Path) -> Reproduction:
    """A reproduction of a made-up paper: its store holds `RATES` with `NOISE`, goodput is 0.9 of the throughput."""
    folder = tmp_path / "papers" / "doe2024"
    folder.mkdir(parents=True)
    for name, text in (("pair.toml", SCENARIO), ("paper.toml", PAPER), ("claims.toml", CLAIMS)):
        (folder / name).write_text(text)
    library = catalog.load(tmp_path / "papers")
    (paper,) = library.choose("doe2024")
    planner, store, outcome = Planner(library, "sim", False), Store(tmp_path / "store"), Outcome()
    store.prepare()
    for experiment in paper.experiments.values():
        for label in experiment.algorithms:
            for number, point in enumerate(experiment.labels):
                cell = Cell(experiment.id, label, point, "rfc")
                digest = f"{experiment.id}-{label}-{number}"
                outcome.digests[cell] = digest
                spans = {"": 1.0 + number} | {name: 1.0 + i for i, name in enumerate(experiment.spans)}
                store.put(digest, record(label), values=values(label, spans), time_series=time_series(label))
    claims = {claim.id: claim for claim in paper.claims}
    contradiction = Fact("5", "==", "6", "5.00", "6.00", False, -1.0, -1.0, -1.0, 1)
    verdicts = (
        JudgedClaim(claims["C-1"], (judged("rfc", "fails", ("5.40", "6", "==", "6.00")),), "Its step is | small."),
        JudgedClaim(
            claims["C-2"],
            (
                judged("rfc", "fails", ("4.50", "mean(goodput{cc=olia,flow=mp})", ">", "5.40")),
                judged("linux-acked", "holds", ("5.60", "mean(goodput{cc=olia,flow=mp})", ">", "5.50")),
            ),
        ),
        JudgedClaim(claims["C-3"], (Finding("", Verdict.FAILS, (contradiction,)),)),
        JudgedClaim(claims["C-4"], (Finding("rfc", Verdict.NOT_TESTABLE, reason="rto_count has no value"),)),
    )
    return Reproduction(paper, tuple(paper.experiments.values()), verdicts, planner, store, outcome)


def judged(profile: str, verdict: str, fact: tuple[str, str, str, str]) -> Finding:
    left, right, operator, value = fact
    margin = (0.1, 0.02, 0.15) if verdict == "holds" else (-0.6, -0.9, -0.2)
    sides = ("mean(goodput{cc=olia,flow=mp})", operator, right, f"{left} (5.1 to 5.8)", value)
    shown = Fact(*sides, verdict == "holds", *margin, REPS)
    return Finding(profile, Verdict(verdict), (shown,), repetitions=REPS)


def values(label: str, spans: dict[str, float]) -> pl.DataFrame:
    rows = []
    first, second, tcp = RATES[label]
    for span, factor in spans.items():
        for rep in range(REPS):
            for flow, subflow, rate in (
                ("mp", "sf1", first),
                ("mp", "sf2", second),
                ("mp", None, first + second),
                ("tcp", None, tcp),
            ):
                noisy = rate * factor + (NOISE[rep] if subflow is None else 0.0)
                rows.append((rep, span, "throughput", flow, subflow, None, noisy))
                rows.append((rep, span, "goodput", flow, subflow, None, 0.9 * noisy))
    for flow, ideal in (("mp", 6.0), ("tcp", 6.5)):
        rows += [(rep, "", "ideal", flow, None, None, ideal) for rep in range(REPS)]
    return pl.DataFrame(rows, schema=VALUE_COLUMNS, orient="row")


def time_series(label: str) -> pl.DataFrame:
    at = np.arange(40.0)
    parts = [
        pl.DataFrame(
            {"t_s": at, "flow": flow, "subflow": subflow, "cwnd": 10 + at * rate, "srtt": 20 + at, "throughput": rate}
        )
        for (flow, subflow), rate in zip((("mp", "sf1"), ("mp", "sf2"), ("tcp", "sf1")), RATES[label], strict=True)
    ]
    return pl.concat(parts)


def record(label: str) -> dict[str, object]:
    return {
        "engine": "sim",
        "engine_version": "1.2",
        "build": "abc",
        "profile": "rfc",
        "seed": 1,
        "scenario": "pair",
        "subflow_cc": [{"flow": "mp", "subflow": "sf1", "cc": label, "params": {"gain": 2}}],
        "scheduler": None,
        "problems": ["run 2 was late"] if label == "olia" else [],
    }


def figure(made: Reproduction, experiment: str, position: int) -> charts.Figure:
    chosen = made.paper.experiments[experiment]
    return charts.figure(Reader(made, chosen), chosen.figures[position], order(made))


def without(made: Reproduction, metric: str, digest: str) -> None:
    """Take one metric out of a stored result."""
    store = made.store
    store.put(digest, store.record(digest), values=store.table(digest, "values").filter(pl.col("metric") != metric))


def test_boxes_are_goodput_over_the_papers_ideal_with_the_line_at_one(made: Reproduction) -> None:
    chart = figure(made, "TWO", 0).chart

    assert isinstance(chart, charts.Grouped)
    assert [label for label, _ in chart.groups] == ["lia", "olia", "uncoupled-reno"]
    mp, tcp = chart.groups[1][1]
    np.testing.assert_allclose(mp.values, 0.9 * (6.0 + NOISE) / 8)
    np.testing.assert_allclose(tcp.values, 0.9 * (5.0 + NOISE) / 4)
    assert chart.reference == 1.0
    # No bound: a connection that takes more than its ideal is above.
    assert "gets exactly its ideal on the wire is at 0.943 (MPTCP) or 0.956 (TCP)" in figure(made, "TWO", 0).caption


def test_stacked_bars_show_the_subflows_and_the_papers_value(made: Reproduction) -> None:
    chart = figure(made, "TWO", 1).chart

    assert isinstance(chart, charts.Grouped)
    lia, olia, reno = (marks[0] for _, marks in chart.groups)
    assert lia.parts == (("sf1", 3.0), ("sf2", 2.0))
    assert reno.parts == (("sf1", 4.5), ("sf2", 3.75))
    assert (lia.published, olia.published) == (None, 12)


def test_a_sweep_has_a_line_per_algorithm_in_the_order_of_the_paper(made: Reproduction) -> None:
    chart = figure(made, "SWP", 0).chart

    assert isinstance(chart, charts.Lines)
    assert chart.scale == "log"
    (panel,) = chart.panels
    assert [(line.algorithm, line.x) for line in panel.lines] == [("lia", (1, 5, 30)), ("olia", (1, 5, 30))]
    np.testing.assert_allclose(panel.lines[1].values[2], 0.9 * (6.0 * 3 + NOISE))
    assert [row[1] for row in chart.rows()][:3] == ["mp, r1", "mp, r5", "mp, r30"]


def test_a_point_without_a_value_is_left_out_with_the_reason(made: Reproduction) -> None:
    without(made, "goodput", "SWP-lia-1")
    found = figure(made, "SWP", 0)

    assert isinstance(found.chart, charts.Lines)
    assert found.chart.panels[0].lines[0].x == (1, 30)
    assert found.notes == ("lia mp r5 is left out: goodput has no value in SWP (cc=lia, flow=mp, sweep=r5)",)


def test_spans_lie_at_their_middle_with_the_papers_values(made: Reproduction) -> None:
    chart = figure(made, "BIN", 0).chart

    assert isinstance(chart, charts.Lines)
    mp, tcp = chart.panels
    assert mp.lines[0].x == (5.0, 25.0)
    np.testing.assert_allclose(tcp.lines[1].values[1], 5.0 * 2 + NOISE)
    assert sorted(tcp.published) == [(5.0, 5.0), (25.0, 2.5)]
    assert (mp.published, tcp.published_of) == ((), "lia")


def test_a_figure_over_time_shows_the_subflows_of_the_flows_that_are_named(made: Reproduction) -> None:
    chart = figure(made, "TWO", 3).chart

    assert isinstance(chart, charts.OverTime)
    assert [(column.title, [line.label for line in column.of(CWND)]) for column in chart.columns] == [
        (cc, ["mp sf1", "mp sf2"]) for cc in RATES
    ]


def test_a_subflow_looks_the_same_under_an_algorithm_that_has_fewer(made: Reproduction) -> None:
    experiment = replace(made.paper.experiments["TWO"], algorithms=("lia", "tcp-reno@sf2"))
    library = catalog.Library({"doe2024": replace(made.paper, experiments={"TWO": experiment})})
    one_path = time_series("lia").filter((pl.col("flow") == "tcp") | (pl.col("subflow") == "sf2"))
    made.store.put("single", record("reno"), values=values("lia", {"": 1.0}), time_series=one_path)
    made.outcome.digests[Cell("TWO", "tcp-reno@sf2", "", "rfc", "")] = "single"
    changed = replace(made, paper=library.papers["doe2024"], planner=Planner(library, "sim", False))
    spec = replace(experiment.figures[3], flows=("mp", "tcp"))

    chart = charts.figure(Reader(changed, experiment), spec, order(changed)).chart

    assert isinstance(chart, charts.OverTime)
    both, single = ([(line.label, line.style) for line in column.of(CWND)] for column in chart.columns)
    assert [label for label, _ in single] == ["mp sf2", "tcp"]
    assert single == both[1:]


def test_all_panels_over_time_have_the_same_time_even_before_the_first_rtt(made: Reproduction) -> None:
    late = time_series("lia").with_columns(srtt=pl.when(pl.col("t_s") < 25).then(None).otherwise("srtt"))
    made.store.put("TWO-lia-0", record("lia"), values=values("lia", {"": 1.0}), time_series=late)
    chart = figure(made, "TWO", 3).chart
    assert chart is not None

    limits = {axes.get_xlim() for axes in draw(chart).axes}
    assert limits == {(0.0, 39.0)}


def test_a_figure_over_several_experiments_is_grouped_by_them(made: Reproduction) -> None:
    (found,) = combined(made)

    assert isinstance(found.chart, charts.Grouped)
    assert [(label, len(marks)) for label, marks in found.chart.groups] == [("TWO", 3), ("SWP", 2)]
    # (5 + 4)^2 / (2 (25 + 16)), of the first repetition with its noise.
    x, y = 5.0 - 0.3, 4.0 - 0.3
    assert found.chart.groups[0][1][0].values[0] == pytest.approx((x + y) ** 2 / (2 * (x**2 + y**2)))


def test_a_figure_without_any_value_says_so(made: Reproduction, page: str) -> None:
    found = figure(made, "TWO", 4)

    assert found.chart is None
    assert len(found.notes) == 3
    assert "Nothing to draw" in page


@pytest.mark.parametrize(("experiment", "position"), [("TWO", 0), ("TWO", 1), ("TWO", 3), ("SWP", 0), ("BIN", 0)])
def test_figures_are_inline_svg_in_the_colours_of_the_page(made: Reproduction, experiment: str, position: int) -> None:
    chart = figure(made, experiment, position).chart
    assert chart is not None
    svg = inline(draw(chart), "name", "A <title>")

    assert svg.startswith("<svg")
    assert 'aria-label="A &lt;title&gt;"' in svg
    assert "var(--ink)" in svg
    assert "var(--c0)" in svg
    assert not re.search(r"#1c1f23|#0072b2|<style|<metadata", svg, re.IGNORECASE)
    # A pattern that is as transparent as what it fills would not be seen.
    assert "fill: url(" not in svg or '<rect x="0" y="0" width="73" height="73" fill="none"/>' in svg
    assert not re.search(r"fill: url\([^;]*; fill-opacity", svg)
    ids = re.findall(r' id="([^"]*)"', svg)
    assert all(one.startswith("name-") for one in ids)
    assert set(re.findall(r"(?:href=\"|url\()#([^\")]*)", svg)) <= set(ids)


def boxes_of_text(chart: charts.Chart) -> Iterator[tuple[str, mpl.transforms.Bbox]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    drawn = draw(chart)
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    outside = {text for axes in drawn.axes for axis in (axes.xaxis, axes.yaxis) for text in not_shown(axis)}
    for text in drawn.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text not in outside:
            # Within a tenth of a pixel nothing is cut off.
            assert drawn.bbox.padded(0.1).contains(*text.get_window_extent().min), text
            assert drawn.bbox.padded(0.1).contains(*text.get_window_extent().max), text
            yield text.get_text(), text.get_window_extent(canvas.get_renderer())


def not_shown(axis: Any) -> list[Any]:
    """The labels of ticks that lie outside of the view."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]


def grouped(labels: Sequence[str], flows: Sequence[str]) -> charts.Grouped:
    groups = tuple(
        (label, tuple(charts.Mark(flow, label, place, np.array([1.0, 1.5 + place])) for flow in flows))
        for place, label in enumerate(labels)
    )
    return charts.Grouped("box", "Throughput (Mbit/s)", groups, None)


@pytest.mark.parametrize(
    "chart",
    [
        grouped(["lia", "independent-reno", "ewtcp(weight=fair)"], ["mp"]),
        grouped(["lia", "olia", "balia", "adw-balia", "uncoupled-reno"], ["mp", "h3", "h5", "h7", "h9"]),
        grouped([f"tcp-cubic@path{i}" for i in range(9)], ["each active TCP", "mp sf1 + sf2"]),
        charts.Lines(
            (charts.Panel("mp", (charts.Line("lia", 0, (0, 0.01, 0.05, 0.1, 0.5), (np.array([1.0, 2.0]),) * 5),)),) * 3,
            "Random loss (%)",
            "Throughput (Mbit/s)",
            tuple((x, f"{x:g}") for x in (0, 0.01, 0.05, 0.1, 0.5)),
            "symlog",
            None,
        ),
    ],
)
def test_labels_neither_meet_nor_leave_the_figure(chart: charts.Chart) -> None:
    texts = list(boxes_of_text(chart))

    assert len(texts) > 5
    met = [(a, b) for (a, one), (b, other) in combinations(texts, 2) if one.overlaps(other)]
    assert met == []


def test_the_papers_numbers_stand_beside_ours(made: Reproduction) -> None:
    two, parts = (Reader(made, made.paper.experiments[name]) for name in ("TWO", "BIN"))

    assert tables.beside(two, made.claims) == [
        # 2.5 + 3.5 Mbit/s, and 3.182 standard errors of the noise.
        tables.Beside("Fig. 2", "Throughput on the wire of olia, mp (Mbit/s)", "12", "6.00 ± 0.50", "-50 %"),
        tables.Beside("C-1", "mean(goodput{cc=olia,flow=mp})", "6", "5.40 (5.1 to 5.8)", "-10 %", held=False),
    ]
    assert [(row.what, row.ours) for row in tables.beside(parts, ())] == [
        ("Throughput on the wire of lia, tcp, 10 to 40 s (Mbit/s)", "8.00 ± 0.50"),
        ("Throughput on the wire of lia, tcp, 0 to 10 s (Mbit/s)", "4.00 ± 0.50"),
    ]


def test_ideals_of_the_paper_stand_beside_those_of_theory(made: Reproduction) -> None:
    # Proportional fairness and shares of subflows are not in this store.
    none = [NOT_APPLICABLE, NOT_APPLICABLE]
    rows = tables.ideals(Reader(made, made.paper.experiments["TWO"]))

    assert rows == [("mp", ["8", "6", *none]), ("tcp", ["4", "6.5", *none])]


def test_a_command_repeats_the_cells_that_differ_in_the_algorithm(made: Reproduction) -> None:
    found = tables.commands(Reader(made, made.paper.experiments["SWP"]))

    assert len(found) == 3
    assert found[1] == (
        "mptcplab run papers/doe2024/pair.toml --cc olia,lia --reps 4 --seed 1 --profile rfc "
        "--set 'sample=\"1 s\"' --set 'links.B.rate=\"5 Mbit/s\"'"
    )


def test_a_published_value_of_something_unknown_is_an_error(made: Reproduction) -> None:
    experiment = made.paper.experiments["TWO"]
    spec: FigureSpec = replace(experiment.figures[1], published={"cubic": 3.0})

    with pytest.raises(MptcplabError, match=r"TWO: figure of Fig. 2: published: not right: 'cubic'"):
        Reader(made, experiment).published(spec)


def test_the_page_shows_both_profiles_of_a_claim_that_depends_on_them(page: str) -> None:
    claim = page[page.index('id="C-2"') :]
    claim = claim[: claim.index("</article>")]

    assert "the opposite under today's rules" in claim.replace("&#39;", "'")
    assert "<strong>rfc</strong>" in claim
    assert "<strong>linux-acked</strong>" in claim
    assert "LIA is better than &lt;OLIA&gt;" in claim
    assert "4.50 (5.1 to 5.8)" in claim
    assert "5.60 (5.1 to 5.8)" in claim


def test_the_page_lists_contradictions_unexpected_failures_and_reasons(page: str) -> None:

    alert = page[page.index('role="alert"') : page.index('id="summary"')]
    assert re.findall(r'href="#(C-\d)"', alert) == ["C-1", "C-2", "C-4"]
    assert page.count('id="C-3"') == 1
    assert page.index('id="contradictions"') < page.index('id="C-3"')
    assert "rto_count has no value" in page
    assert "Its step is | small." in page
    assert "run 2 was late" in page
    assert "mp/sf1: olia (gain = 2)" in page
    assert "Two paths of 8 and 4 Mbit/s; a TCP is on the first." in page


def test_a_page_needs_neither_script_nor_network(page: str) -> None:
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#|index\.html)', page)
    assert "default-src 'none'" in page


def test_what_the_engine_refused_is_listed_with_the_reason(made: Reproduction) -> None:
    made.outcome.refused["TWO-olia-0"] = "olia is not for this\nhint: try another"
    page = paper_page(made, "x")

    assert "The engine refused" in page
    assert "olia rfc: olia is not for this" in page
    found = figure(made, "TWO", 0)
    assert isinstance(found.chart, charts.Grouped)
    assert [label for label, _ in found.chart.groups] == ["lia", "uncoupled-reno"]
    assert found.notes[0] == "olia mp is left out: olia is not for this"
    assert "refused: olia is not for this" in page.lower()


def test_write_makes_pages_and_lists_of_verdicts(made: Reproduction, tmp_path: Path) -> None:
    index = write([made], tmp_path / "out", "mptcplab reproduce doe2024")

    text = index.read_text()
    assert text.index("Not as expected") < text.index('id="papers"')
    assert 'href="doe2024.html#C-1"' in text
    assert {path.name for path in index.parent.iterdir()} == {
        "index.html",
        "doe2024.html",
        "verdicts.csv",
        "verdicts.json",
    }
    rows = list(csv.DictReader((index.parent / "verdicts.csv").open()))
    assert [(row["claim"], row["profile"], row["verdict"], row["provisional"]) for row in rows] == [
        ("C-1", "rfc", "fails", "False"),
        ("C-2", "rfc", "fails", "False"),
        ("C-2", "linux-acked", "holds", "False"),
        ("C-3", "", "fails", "False"),
        ("C-4", "rfc", "not testable", "False"),
    ]
    assert rows[4]["measured"] == "rto_count has no value"
    objects = json.loads((index.parent / "verdicts.json").read_text())
    assert [one["claim"] for one in objects] == [row["claim"] for row in rows]
    assert objects[0]["repetitions"] == REPS


def test_pages_for_the_documentation_are_the_same_bytes_again(made: Reproduction, tmp_path: Path) -> None:
    first, second = (write_docs([made], tmp_path / name) for name in ("a", "b"))

    assert [path.name for path in first] == [path.name for path in second]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))
    page = (tmp_path / "a" / "doe2024.md").read_text()
    named = re.findall(r"\((figures/[^)]*)\)", page)
    assert sorted({f"figures/{path.name}" for path in first if path.suffix == ".png"}) == sorted(named)
    assert r"Its step is \| small." in page
    assert "| **[C-1](doe2024.md#c-1)** | ✕ refuted | OLIA gets 6 |  |" in page
    assert "| ✕ refuted, the opposite under today's rules |" in page
    assert "- Expected: holds." in page
    assert "## Contradictions inside the paper" in page
    assert "doe2024.md" in (tmp_path / "a" / "README.md").read_text()
