"""Selectors of claims: which cell, flow, subflow, link and part of a run they mean, and what they compute from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers import catalog
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.selectors import SelectorResolver, check_figures
from mptcplab.study.cell import Cell
from mptcplab.study.values import CellValues, DependencyRecorder, Key, NotTestableError

SCENARIO = """\
title = "Tiny"
source = "made for the test"
duration = "40 s"
seed = 5
cc = "lia"

[links]
A = { from = "S", to = "D", rate = "8 Mbit/s", delay = "10 ms", queue = "20 packets" }
B = { from = "S", to = "D", rate = "4 Mbit/s", delay = "25 ms", queue = "20 packets" }

[flows.NAME]
subflows = [{ name = "sf1", path = ["A"] }, { name = "sf2", path = ["B"] }]

[flows.bg-1]
path = ["A"]
cc = "reno"
stop = "20 s"

[flows.bg-2]
path = ["B"]
cc = "cubic"
start = "10 s"

[flows.web]
path = ["B"]
cc = "reno"
start = "10001 ms"

[flows.noise]
path = ["B"]
transport = "udp"
rate = "1 Mbit/s"
"""
PAPER = """\
title = "Tiny"
cite = "Doe 2024"
about = "A check."
profile = "linux-legacy"

[experiments.ONE]
title = "One"
where = "section 1"
scenario = "mp.toml"
algorithms = ["olia", "lia"]
ideal = { mp = 8, bg-1 = 4 }
bins = [0, 10, 20, 40]
phases = [[5, 20]]
fairness = { default = [["mp/sf1", "bg-1"], ["sf2", "web"]], all = [["mp", "bg-2"]] }
variants = { slow = { "links.A.rate" = "2 Mbit/s" } }

[experiments.TWO]
title = "Two"
where = "section 2"
scenario = "other.toml"
algorithms = ["balia"]
profile = "rfc"
sweep_axis = "Rate"
sweep = [{ label = "r1", x = 1 }, { label = "r2", x = 2 }]

[experiments.VIEW]
title = "One again"
where = "section 3"
scenario = "mp.toml"
algorithms = ["lia"]
view_of = "ONE"
"""


@dataclass
class Known:
    """A source with the same values for every cell that remembers which were asked for."""

    by_key: Mapping[Key, list[float]]
    asked: list[Cell] = field(default_factory=list)

    def values(self, cell: Cell) -> CellValues:
        self.asked.append(cell)
        return CellValues(2, {key: np.array(value) for key, value in self.by_key.items()})


# Two repetitions each, none a multiple of another.
RATES = {
    ("mp", None): [9.0, 5.0],
    ("mp", "sf1"): [6.0, 3.0],
    ("mp", "sf2"): [4.0, 1.0],
    ("bg-1", None): [2.0, 7.0],
    ("bg-2", None): [5.0, 11.0],
    ("web", None): [3.0, 13.0],
}
VALUES: dict[Key, list[float]] = {("", "throughput", *at, None): values for at, values in RATES.items()}
VALUES |= {
    ("", "goodput", "mp", None, None): [8.0, 4.0],
    ("", "goodput", "bg-1", None, None): [1.0, 6.0],
    ("", "rtt_correlation", "mp", None, None): [0.25, -0.5],
    ("", "decrease_mild", "mp", None, None): [30.0, 80.0],
    ("", "utilisation", None, None, "A"): [50.0, 75.0],
    ("", "loss", None, None, "A"): [3.0, 4.0],
    ("", "loss", None, None, "B"): [0.5, 16.0],
    ("", "pps", "mp", None, None): [20.0, 40.0],
    ("", "pps", "mp", "sf1", None): [5.0, 30.0],
}
# Each part of the run has values of its own.
for factor, span in ((10.0, "bin 0"), (100.0, "bin 1"), (1000.0, "bin 2"), (0.01, "phase 1")):
    for at in RATES:
        VALUES[span, "throughput", *at, None] = [factor * one for one in RATES[at]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> catalog.Library:
    papers = tmp_path_factory.mktemp("selectors") / "papers"
    place = papers / "doe2024"
    place.mkdir(parents=True)
    texts = {"mp.toml": SCENARIO.replace("NAME", "mp"), "other.toml": SCENARIO.replace("NAME", "main")}
    for name, text in {**texts, "paper.toml": PAPER, "claims.toml": "claim = []"}.items():
        (place / name).write_text(text)
    return catalog.load(papers)


def resolver(
    library: catalog.Library,
    values: Mapping[Key, list[float]] = VALUES,
    experiment: str = "ONE",
    profile: str | None = None,
) -> SelectorResolver:
    planner = Planner(library, "sim", quick=False)
    return SelectorResolver(planner, Known(values), library.experiments[experiment], profile)


# Which cell


@pytest.mark.parametrize(
    ("keys", "profile", "cell"),
    [
        ({}, None, Cell("ONE", "olia", "", "linux-legacy")),
        ({}, "linux-acked", Cell("ONE", "olia", "", "linux-acked")),
        ({"profile": "rfc"}, "linux-acked", Cell("ONE", "olia", "", "rfc")),
        ({"cc": "lia", "variant": "slow"}, None, Cell("ONE", "lia", "", "linux-legacy", "slow")),
        ({"exp": "TWO", "flow": "*"}, None, Cell("TWO", "balia", "r1", "rfc")),
        ({"exp": "TWO", "flow": "*", "sweep": "r2"}, "linux-acked", Cell("TWO", "balia", "r2", "linux-acked")),
        ({"exp": "VIEW"}, None, Cell("ONE", "olia", "", "linux-legacy")),
    ],
)
def test_a_selector_means_the_own_experiments_first_cell_unless_it_says_more(
    library: catalog.Library, keys: dict[str, str], profile: str | None, cell: Cell
) -> None:
    source = Known({("", "throughput", name, None, None): [1.0, 2.0] for name in ("mp", "main", "bg-1", "bg-2", "web")})
    planner = Planner(library, "sim", quick=False)
    SelectorResolver(planner, source, library.experiments["ONE"], profile)("throughput", keys)
    assert source.asked == [cell]


def test_where_no_value_is_known_yet_all_are_one(library: catalog.Library) -> None:
    recorder = DependencyRecorder()
    resolve = SelectorResolver(Planner(library, "sim", quick=False), recorder, library.experiments["ONE"])
    assert set(resolve("goodput", {"flow": "web"})) == {1.0}
    assert recorder.cells == {Cell("ONE", "olia", "", "linux-legacy")}


# Which flows, and what is computed


@pytest.mark.parametrize(
    ("metric", "keys", "expected"),
    [
        ("throughput", {}, [9.0, 5.0]),
        ("throughput", {"flow": "bg-1"}, [2.0, 7.0]),
        # The mean of the group's flows, or of all connections: UDP is none.
        ("throughput", {"flow": "bg"}, [3.5, 9.0]),
        ("throughput", {"flow": "*"}, [(9 + 2 + 5 + 3) / 4, (5 + 7 + 11 + 13) / 4]),
        ("throughput", {"sf": "sf2"}, [4.0, 1.0]),
        ("throughput", {"sf": "sf1+sf2"}, [10.0, 4.0]),
        ("throughput", {"flow": "mp", "bin": "1"}, [900.0, 500.0]),
        ("throughput", {"sf": "sf2", "phase": "1"}, [0.04, 0.01]),
        ("throughput_kBps", {}, [1125.0, 625.0]),
        ("throughput_kBps", {"flow": "bg-2"}, [625.0, 1375.0]),
        ("pearson", {}, [0.25, -0.5]),
        ("region_bc_share", {}, [0.3, 0.8]),
        ("utilisation", {"link": "A"}, [0.5, 0.75]),
        ("loss", {"link": "A"}, [3.0, 4.0]),
        ("loss_ratio", {"links": "A/B"}, [6.0, 0.25]),
        ("loss_ratio", {"links": "B/A"}, [1 / 6, 4.0]),
        # Over the paper's ideals of 8 and 4 Mbit/s.
        ("ratio", {}, [1.0, 0.5]),
        ("ratio", {"flow": "bg-1"}, [0.25, 1.5]),
        ("ratio_wire", {}, [9 / 8, 5 / 8]),
        ("share", {"sf": "sf1"}, [6 / 9, 3 / 5]),
        ("share", {"sf": "sf2", "bin": "0"}, [4 / 9, 1 / 5]),
        ("pkt_share", {"sf": "sf1"}, [0.25, 0.75]),
    ],
)
def test_a_selector_has_a_value_per_repetition(
    library: catalog.Library, metric: str, keys: dict[str, str], expected: list[float]
) -> None:
    assert resolver(library)(metric, keys).tolist() == pytest.approx(expected)


def jain(*rates: float) -> float:
    return sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # The mean of both groups; `sf2` by itself is the multipath connection's.
        ({}, (jain(6, 2) + jain(4, 3)) / 2),
        ({"flows": "all"}, jain(9, 5)),
        ({"flows": "[mp, bg-1 ,web]"}, jain(9, 2, 3)),
        ({"flows": "[mp/sf2,sf1]"}, jain(4, 6)),
        # The index does not change if all rates are ten times as large, or a hundredth.
        ({"flows": "all", "bin": "0"}, jain(90, 50)),
        ({"flows": "all", "phase": "1"}, jain(90, 50)),
    ],
)
def test_jains_index_is_over_the_named_flows(library: catalog.Library, keys: dict[str, str], expected: float) -> None:
    assert resolver(library)("jain", keys)[0] == pytest.approx(expected)


@pytest.mark.parametrize("keys", [{}, {"flows": "all"}, {"flows": "default"}])
def test_jains_index_of_an_experiment_without_sets_is_over_all_connections_without_udp(
    library: catalog.Library, keys: dict[str, str]
) -> None:
    values = {**VALUES, ("", "throughput", "main", None, None): [9.0, 5.0]}
    assert resolver(library, values, "TWO")("jain", keys)[0] == pytest.approx(jain(9, 2, 5, 3))


def test_jains_index_is_that_of_the_part_of_the_run(library: catalog.Library) -> None:
    values = {**VALUES, ("bin 2", "throughput", "bg-2", None, None): [9000.0, 5000.0]}
    assert resolver(library, values)("jain", {"flows": "all", "bin": "2"}).tolist() == [1.0, 1.0]


def test_without_a_flow_mp_the_flows_with_several_subflows_are_meant(library: catalog.Library) -> None:
    values = {("", "throughput", name, None, None): [rate, 2 * rate] for name, rate in (("main", 4.0), ("web", 3.0))}
    resolve = resolver(library, values, "TWO")
    assert resolve("throughput", {}).tolist() == [4.0, 8.0]
    with pytest.raises(MptcplabError, match=r"^no such flow: 'mp'\n\nhint: one of \*, bg, bg-1, bg-2, main") as caught:
        resolve("throughput", {"flow": "mp"})
    assert not isinstance(caught.value, NotTestableError)


@pytest.mark.parametrize(
    ("span", "active"),
    [
        # 0 to 10 s: `bg-1` alone, for the others begin later or at its end.
        ({"bin": "0"}, ["bg-1"]),
        # 10 to 20 s: `bg-1` ends and `bg-2` begins at the very edges; `web` begins a millisecond after.
        ({"bin": "1"}, ["bg-1", "bg-2"]),
        # 20 to 40 s, the end of the run.
        ({"bin": "2"}, ["bg-2", "web"]),
        ({"phase": "1"}, ["bg-1"]),
    ],
)
def test_active_flows_send_from_the_first_to_the_last_second_of_a_part(
    library: catalog.Library, span: dict[str, str], active: list[str]
) -> None:
    """Of connections with one path only; the values of the part of the run tell which they are."""
    (name,) = span
    rates = [VALUES[f"{name} {span[name]}", "throughput", flow, None, None] for flow in active]
    found = resolver(library)("throughput", {"flow": "tcp_active", **span})
    assert found.tolist() == np.mean(rates, axis=0).tolist()


def test_the_number_of_subflows_is_that_of_those_with_data(library: catalog.Library) -> None:
    """Half a packet a second is data as well; another flow's subflow and another metric's are none of it."""
    values: dict[Key, list[float]] = {
        ("", "pps", "mp", None, None): [6.0, 6.0],
        ("", "pps", "mp", "1", None): [0.5, 6.0],
        ("", "pps", "mp", "2", None): [5.5, 0.0],
        ("", "pps", "mp", "5", None): [0.0, 0.0],
        ("", "pps", "web", "3", None): [5.0, 5.0],
        ("", "throughput", "mp", "4", None): [5.0, 5.0],
    }
    assert resolver(library, values)("subflows", {"flow": "mp"}).tolist() == [2, 1]
    with pytest.raises(NotTestableError, match=r"^subflows has no value in ONE"):
        resolver(library, values)("subflows", {"flow": "bg-1"})


# What has no value


@pytest.mark.parametrize(
    ("metric", "keys", "message"),
    [
        ("goodput", {"flow": "web"}, "goodput has no value in ONE (flow=web)"),
        ("goodput", {"cc": "lia", "flow": "mp", "bin": "1"}, "goodput has no value in ONE (cc=lia, flow=mp, bin=1)"),
        ("retx", {}, "retx has no value in ONE ()"),
        ("ratio", {"flow": "web"}, "ONE: the paper names no ideal for web"),
        (
            "iperf_retr",
            {"flow": "mp"},
            "iperf_retr: only kernel engines have a socket of the connection, which iperf3 reads",
        ),
    ],
)
def test_what_no_run_can_answer_is_not_testable(
    library: catalog.Library, metric: str, keys: dict[str, str], message: str
) -> None:
    with pytest.raises(NotTestableError) as caught:
        resolver(library)(metric, keys)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("metric", "keys", "values"),
    [
        ("goodput", {"flow": "web"}, {("", "goodput", "web", None, None): [3.0, np.nan]}),
        ("iperf_retr", {"flow": "mp"}, {("", "iperf_retr", "mp", None, None): [np.nan, 2.0]}),
        # Nothing is lost at B, and nobody gets anything, in the second repetition.
        ("loss_ratio", {"links": "A/B"}, {("", "loss", None, None, "B"): [2.0, 0.0]}),
        (
            "jain",
            {"flows": "[mp,web]"},
            {("", "throughput", name, None, None): [2.0, 0.0] for name in ("mp", "web")},
        ),
    ],
)
def test_one_repetition_without_a_value_is_not_left_out(
    library: catalog.Library, metric: str, keys: dict[str, str], values: dict[Key, list[float]]
) -> None:
    with pytest.raises(NotTestableError) as caught:
        resolver(library, {**VALUES, **values})(metric, keys)
    described = ", ".join(f"{key}={value}" for key, value in keys.items())
    assert str(caught.value) == f"{metric} is missing in 1 of 2 repetitions of ONE ({described})"


# What a claim must not ask for


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"colour": "red"}, "no such key: 'colour'\n\nhint: one of bin, cc, exp, flow, flows, kind, link"),
        ({"exp": "NONE"}, "no such exp: 'NONE'\n\nhint: one of ONE, TWO, VIEW"),
        ({"exp": "TWO", "sweep": "r3"}, "no such sweep: 'r3'\n\nhint: one of r1, r2"),
        ({"variant": "fast"}, "no such variant: 'fast'\n\nhint: one of slow"),
        ({"bin": "3"}, "no such part of the run: 'bin 3'\n\nhint: one of bin 0, bin 1, bin 2, phase 1"),
        ({"phase": "0"}, "no such part of the run: 'phase 0'"),
        ({"link": "C"}, "no such link: 'C'\n\nhint: one of A, A~, B, B~"),
        ({"links": "A/C"}, "no such links: 'C'"),
        ({"sf": "sf3"}, "no such subflow of mp: 'sf3'\n\nhint: one of sf1, sf2"),
        ({"sf": "sf1+sf0"}, "no such subflow of mp: 'sf0'"),
        ({"flow": "bg", "sf": "sf2"}, "no such subflow of bg-1: 'sf2'\n\nhint: one of sf1"),
    ],
)
def test_a_key_that_means_nothing_is_a_mistake_and_no_missing_value(
    library: catalog.Library, keys: dict[str, str], message: str
) -> None:
    with pytest.raises(MptcplabError) as caught:
        resolver(library)("throughput", keys)
    assert not isinstance(caught.value, NotTestableError)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("metric", "keys", "message"),
    [
        # Each of these was found only when the claim was judged, after all its runs, and as an internal error.
        ("ideal", {}, "ideal without kind\n\nhint: write ideal{kind=...}: one of maxmin_connection, maxmin_subflow"),
        ("ideal", {"kind": "maxmin"}, "no such kind: 'maxmin'\n\nhint: one of maxmin_connection, maxmin_subflow"),
        ("utilisation", {"flow": "mp"}, "utilisation without link\n\nhint: write utilisation{link=...}: a link"),
        ("loss", {"links": "A"}, "loss without link\n\nhint: write loss{link=...}: a link"),
        ("loss_ratio", {"link": "A"}, "loss_ratio without links\n\nhint: write loss_ratio{links=...}: two links"),
        ("loss_ratio", {"links": "B"}, "links of loss_ratio: not right: 'B'\n\nhint: it is two links, such as A/B"),
        ("loss_ratio", {"links": "A/B/A"}, "links of loss_ratio: not right: 'A/B/A'"),
        (
            "goodput",
            {"flow": "tcp_active"},
            "flow=tcp_active without a part of the run\n\nhint: write bin=N or phase=N",
        ),
        # This was "not testable", as if a run could have no value.
        (
            "throughput",
            {"flow": "video"},
            "no such flow: 'video'\n\nhint: one of *, bg, bg-1, bg-2, mp, tcp_active, web",
        ),
        ("throughput", {"flow": "noise"}, "no such flow: 'noise'"),
        # This was the index over all connections.
        ("jain", {"flows": "defualt"}, "no such flows: 'defualt'\n\nhint: one of all, default"),
        ("jain", {"flows": "[mp,wbe]"}, "no such flow or subflow: 'wbe'\n\nhint: one of bg-1, bg-1/sf1, bg-2"),
        ("jain", {"flows": "[mp/sf3,web]"}, "no such flow or subflow: 'mp/sf3'"),
    ],
)
def test_a_mistake_in_a_selector_is_found_before_there_are_values(
    library: catalog.Library, metric: str, keys: dict[str, str], message: str
) -> None:
    planner = Planner(library, "sim", quick=False)
    resolve = SelectorResolver(planner, DependencyRecorder(), library.experiments["ONE"])
    with pytest.raises(MptcplabError) as caught:
        resolve(metric, keys)
    assert not isinstance(caught.value, NotTestableError)
    assert str(caught.value).startswith(message)


def test_a_set_of_flows_of_an_experiment_is_checked_where_it_is_used(library: catalog.Library) -> None:
    one = replace(library.experiments["ONE"], fairness={"default": (("mp/sf1", "bg-3"),)})
    changed = replace(library, papers={"doe2024": replace(library.papers["doe2024"], experiments={"ONE": one})})
    resolve = SelectorResolver(Planner(changed, "sim", quick=False), DependencyRecorder(), one)
    with pytest.raises(MptcplabError, match=r"^no such flow or subflow: 'bg-3'"):
        resolve("jain", {})
    assert resolve("jain", {"flows": "all"}).tolist() == [1.0, 1.0]


# Figures


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (
            {"metric": "godput", "flows": ("mp",)},
            "no such metric in claims and figures: 'godput'\n\nhint: one of agr_bf",
        ),
        ({"metric": "goodput", "flows": ("mp", "wbe")}, "no such flow: 'wbe'"),
        ({"metric": "goodput", "flows": ("mp/sf1", "mp/sf1+sf4")}, "no such subflow of mp: 'sf4'"),
        ({"metric": "loss_ratio A/C"}, "no such links: 'C'"),
        ({"flows": ("mp",)}, "metric: missing"),
        ({"kind": "time", "flows": ("mpp",)}, "no such flow: 'mpp'"),
    ],
)
def test_a_figure_of_what_there_is_not_is_refused_before_anything_is_run(
    library: catalog.Library, figure: dict[str, Any], message: str
) -> None:
    """A flow that there is not was left out of the figure, and a metric was found after all runs."""
    good = catalog.FigureSpec("spans", "Fig. 1", "throughput", ("tcp_active", "mp/sf1+sf2", "bg", "*"))
    wrong = catalog.FigureSpec(**{"kind": "bars", "of": "Fig. 2", **figure})
    planner = Planner(library, "sim", quick=False)
    file = library.papers["doe2024"].directory / "paper.toml"
    with pytest.raises(MptcplabError) as caught:
        check_figures(planner, replace(library.experiments["ONE"], figures=(good, wrong)))
    assert str(caught.value).startswith(f"{file}: experiments.ONE.figures[1]: {message}")


def test_figures_need_algorithms(library: catalog.Library) -> None:
    """The report ended with an internal error."""
    planner = Planner(library, "sim", quick=False)
    bare = replace(library.experiments["ONE"], algorithms=())
    changed = replace(library, papers={"doe2024": replace(library.papers["doe2024"], experiments={"ONE": bare})})
    with pytest.raises(
        MptcplabError, match=r"paper\.toml: experiments\.ONE\.algorithms: missing\n\nhint: figures show"
    ):
        figure = catalog.FigureSpec("bars", "Fig. 1", "goodput")
        check_figures(replace(planner, library=changed), replace(bare, figures=(figure,)))
    with pytest.raises(MptcplabError, match=r"^ONE has no algorithms\n\nhint: write cc=NAME"):
        SelectorResolver(replace(planner, library=changed), DependencyRecorder(), bare)("goodput", {})
