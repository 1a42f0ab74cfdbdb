"""The runs that are planned for cells of a made-up paper, and what labels of treatments stand for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mptcplab.capabilities import SEND_JITTER
from mptcplab.errors import MptcplabError
from mptcplab.studies.papers import catalog
from mptcplab.studies.papers.planner import METRICS, MOST_REPETITIONS, Planner, algorithm_names
from mptcplab.studies.papers.treatments import Treatment, in_dialect, treatment, with_parameter
from mptcplab.study.cell import Cell
from mptcplab.study.decision import Rule
from mptcplab.trace.topology import Topology

# Three subflows of two hops each beside two TCPs; 100 s of which 5 are left out.
SCENARIO = """\
title = "Three paths"
source = "made for the tests"
duration = "DURATION"
warmup = "5 s"
cc = "lia"

[links]
A = { from = "S", to = "M", rate = "8 Mbit/s", delay = "3 ms", queue = "20 packets" }
B = { from = "S", to = "M", rate = "4 Mbit/s", delay = "5 ms", queue = "20 packets" }
C = { from = "S", to = "M", rate = "2 Mbit/s", delay = "7 ms", queue = "20 packets" }
E = { from = "M", to = "D", rate = "9 Mbit/s", delay = "1 ms", queue = "20 packets" }

[flows.mp]
SCHEDULER
subflows = [
    { name = "wifi", path = ["A", "E"] },
    { name = "3g", path = ["B", "E"] },
    { name = "cable", path = ["C", "E"] },
]

[flows.t1]
path = ["A", "E"]
cc = "reno"

[flows.t2]
path = ["B", "E"]
cc = "OTHER"
"""

PAPER = """\
title = "A rule for three paths"
cite = "Doe 2024"
about = "One rule."
profile = "linux-legacy"
dialect = "mptcp-0.95"

[experiments.LONG]
title = "Long"
where = "section 3"
scenario = "long.toml"
algorithms = ["lia", "olia"]
repetitions = 10
sample = "250 ms"
settings = { "links.A.rate" = "6 Mbit/s", "links.C.delay" = "8 ms" }
sweep_axis = "Rate of B (Mbit/s)"
sweep = [
    { label = "r1", x = 1, settings = { "links.B.rate" = "1 Mbit/s", "links.C.delay" = "9 ms" } },
    { label = "r5", x = 5, settings = { "links.B.rate" = "5 Mbit/s" } },
]
figures = [{ kind = "sweep", of = "Fig. 1", metric = "goodput", flows = ["mp"] }]

[experiments.LONG.variants]
slow = { "links.A.rate" = "3 Mbit/s", "links.B.rate" = "2 Mbit/s" }

[experiments.SHORT]
title = "Short"
where = "section 4"
scenario = "short.toml"
algorithms = ["wvegas", "lia"]
repetitions = 2
figures = [
    { kind = "bars", of = "Fig. 2", metric = "goodput", flows = ["mp"] },
    { kind = "time", of = "Fig. 3", flows = ["mp"] },
]

[experiments.PARTS]
title = "In parts"
where = "section 5"
scenario = "long.toml"
algorithms = ["lia"]
repetitions = 7
bins = [0, 30, 100]
phases = [[5, 12.5]]

[experiments.VIEW]
title = "Seen otherwise"
where = "section 6"
scenario = "long.toml"
algorithms = ["balia"]
profile = "rfc"
view_of = "LONG"
"""


@pytest.fixture
def library(tmp_path: Path) -> catalog.Library:
    folder = tmp_path / "papers" / "doe2024"
    folder.mkdir(parents=True)
    (folder / "paper.toml").write_text(PAPER)
    (folder / "claims.toml").write_text("")
    own = {"long": "", "short": 'scheduler = "roundrobin"'}
    for name, duration, other in (("long", "100 s", "cubic"), ("short", "65 s", "reno")):
        text = SCENARIO.replace("DURATION", duration).replace("SCHEDULER", own[name]).replace("OTHER", other)
        (folder / f"{name}.toml").write_text(text)
    return catalog.load(tmp_path / "papers")


# How often and how long


@pytest.mark.parametrize(
    ("experiment", "full", "quick", "few"), [("LONG", 10, 3, 4), ("SHORT", 2, 2, 2), ("PARTS", 7, 3, 4)]
)
def test_repetitions_are_the_experiment_s_or_fewer(
    library: catalog.Library, experiment: str, full: int, quick: int, few: int
) -> None:
    one = library.experiments[experiment]
    assert Planner(library, "sim", quick=False).repetitions(one) == full
    assert Planner(library, "sim", quick=True).repetitions(one) == quick
    assert Planner(library, "kernel", quick=True).repetitions(one) == quick
    assert Planner(library, "sim", quick=False, most=4).repetitions(one) == few
    assert Planner(library, "sim", quick=True, most=2).repetitions(one) == 2
    # Equations have no random numbers.
    assert Planner(library, "fluid", quick=False).repetitions(one) == 1


@pytest.mark.parametrize(
    ("experiments", "most", "expected"),
    [
        # All in all no more than 30: 10 and two more blocks, 2 and 14, 7 and 3.
        (["LONG"], MOST_REPETITIONS, 2),
        (["SHORT"], MOST_REPETITIONS, 14),
        (["PARTS"], MOST_REPETITIONS, 3),
        (["SHORT", "LONG", "PARTS"], MOST_REPETITIONS, 2),
        (["LONG"], 19, 0),
        (["LONG"], 20, 1),
        (["LONG"], 4, 0),
        ([], MOST_REPETITIONS, 0),
    ],
)
def test_a_claim_may_ask_for_blocks_until_one_of_its_experiments_has_most_repetitions(
    library: catalog.Library, experiments: list[str], most: int, expected: int
) -> None:
    full = Planner(library, "sim", quick=False, most=most)
    assert full.more_blocks(experiments) == expected
    assert full.rule(experiments) == Rule(1 + expected)
    for other in (Planner(library, "sim", quick=True, most=most), Planner(library, "fluid", quick=False, most=most)):
        assert other.more_blocks(experiments) == 0
    assert Planner(library, "fluid", quick=False, most=most).rule(experiments) == Rule(1)


def test_a_quick_rule_allows_for_the_bias_of_runs_that_are_shorter(library: catalog.Library) -> None:
    quick = Planner(library, "sim", quick=True)
    assert quick.rule(["LONG"]) == Rule(1, provisional=True, allowance=0.1)
    assert quick.rule(["SHORT", "LONG"]) == Rule(1, provisional=True, allowance=0.1)
    assert quick.rule(["SHORT", "PARTS"]) == Rule(1, provisional=True)
    assert quick.rule([]) == Rule(1)


@pytest.mark.parametrize(
    ("experiment", "quick", "seconds"),
    [
        # 60 s after a warm-up of 5 s, and no longer than the scenario; parts of a run are where they are.
        ("LONG", True, 65),
        ("LONG", False, 100),
        ("SHORT", True, 65),
        ("PARTS", True, 100),
    ],
)
def test_a_quick_run_is_cut_after_a_minute_where_its_length_decides_nothing(
    library: catalog.Library, experiment: str, quick: bool, seconds: int
) -> None:
    planner = Planner(library, "sim", quick)
    found = library.experiments[experiment]
    spec = planner.spec(Cell(experiment, "lia", found.labels[0], "rfc"))
    assert spec.topology.duration_ns == planner.topology(found).duration_ns == seconds * 1_000_000_000
    assert ("duration" in dict(spec.settings)) == (experiment == "LONG" and quick)


def test_a_duration_that_an_experiment_sets_stays(library: catalog.Library) -> None:
    planner = Planner(library, "sim", quick=True)
    library.experiments["LONG"] = replace(library.experiments["LONG"], settings={"duration": '"70 s"'})
    assert dict(planner.spec(Cell("LONG", "lia", "r1", "rfc")).settings)["duration"] == '"70 s"'


# What runs


def test_a_spec_has_all_that_was_planned_for_its_cell(library: catalog.Library) -> None:
    planner = Planner(library, "sim", quick=False)
    spec = planner.spec(Cell("LONG", "olia", "r1", "linux-legacy", "", 2))
    assert (spec.scenario.name, spec.cc, spec.profile) == ("long.toml", "olia(dialect=mptcp-0.95)", "linux-legacy")
    assert (spec.repetitions, spec.metrics, spec.spans) == (10, METRICS, ())
    # A further block has other random numbers; the first has seed 1.
    assert spec.seed == 3
    assert planner.spec(Cell("LONG", "olia", "r1", "linux-legacy")).seed == 1
    # The point goes before the experiment, and the variant before both.
    assert dict(spec.settings) == {
        "sample": '"250 ms"',
        "links.A.rate": '"6 Mbit/s"',
        "links.B.rate": '"1 Mbit/s"',
        "links.C.delay": '"9 ms"',
    }
    slow = dict(planner.spec(Cell("LONG", "olia", "r5", "rfc", "slow")).settings)
    assert (slow["links.A.rate"], slow["links.B.rate"], slow["links.C.delay"]) == (
        *('"3 Mbit/s"', '"2 Mbit/s"', '"8 ms"'),
    )
    parts = planner.spec(Cell("PARTS", "lia", "", "rfc"))
    assert parts.spans == (("phase 1", 5.0, 12.5), ("bin 0", 0.0, 30.0), ("bin 1", 30.0, 100.0))
    assert parts.cc == "lia"


def test_a_spec_is_planned_once(library: catalog.Library) -> None:
    planner = Planner(library, "sim", quick=False)
    cell = Cell("SHORT", "lia", "", "rfc")
    assert planner.spec(cell) is planner.spec(replace(cell))


def test_an_engine_gets_the_settings_that_it_requires(library: catalog.Library) -> None:
    for engine, expected in {"sim": None, "kernel": '"0 s"', "fluid": None}.items():
        spec = Planner(library, engine, quick=False).spec(Cell("SHORT", "lia", "", "rfc"))
        assert dict(spec.settings).get(SEND_JITTER) == expected


def test_the_dialect_is_that_of_the_papers_profile_and_of_no_equation(library: catalog.Library) -> None:
    cell = Cell("SHORT", "wvegas", "", "linux-legacy")
    assert Planner(library, "sim", quick=False).spec(cell).cc == "wvegas(dialect=mptcp-0.95)"
    assert Planner(library, "sim", quick=False).spec(replace(cell, profile="rfc")).cc == "wvegas"
    assert Planner(library, "fluid", quick=False).spec(cell).cc == "wvegas"
    fixed = Planner(library, "sim", quick=False).spec(replace(cell, label="fixed"))
    assert fixed.cc is None


def test_the_samples_of_the_first_block_are_kept_for_figures_over_time(library: catalog.Library) -> None:
    planner = Planner(library, "sim", quick=False)
    cell = Cell("SHORT", "lia", "", "rfc")
    assert planner.spec(cell).time_series
    assert Planner(library, "sim", quick=True).spec(cell).time_series
    assert not planner.spec(replace(cell, block=1)).time_series
    assert not planner.spec(Cell("LONG", "lia", "r1", "rfc")).time_series
    # A study of other choices draws nothing.
    assert not Planner(library, "sim", quick=False, most=4).spec(cell).time_series


def test_the_cells_of_figures_are_those_of_every_algorithm_at_every_point(library: catalog.Library) -> None:
    planner = Planner(library, "sim", quick=False)
    expected = [Cell("LONG", label, point, "linux-legacy") for label in ("lia", "olia") for point in ("r1", "r5")]
    assert planner.drawn_cells(library.experiments["LONG"]) == expected
    # A view has the runs of another experiment.
    assert planner.drawn_cells(library.experiments["VIEW"]) == expected
    assert planner.drawn_cells(library.experiments["SHORT"]) == [
        Cell("SHORT", label, "", "linux-legacy") for label in ("wvegas", "lia")
    ]


def test_the_topology_of_an_experiment_is_that_of_its_first_point(library: catalog.Library) -> None:
    found = Planner(library, "sim", quick=False).topology(library.experiments["LONG"])
    assert {name: link.rate_bps / 1e6 for name, link in found.links.items() if name in "ABCE"} == {
        "A": 6.0, "B": 1.0, "C": 2.0, "E": 9.0
    }  # fmt: skip


def test_the_scheduler_of_a_study_is_that_of_connections_without_one(library: catalog.Library) -> None:
    for name in ("LONG", "SHORT"):
        library.experiments[name] = replace(library.experiments[name], scheduler="redundant")
    planner = Planner(library, "sim", quick=False)
    own = planner.spec(Cell("SHORT", "lia", "", "rfc"))
    # The connection of SHORT has a scheduler of its own.
    assert "scheduler" not in dict(own.settings)
    open_ = planner.spec(Cell("LONG", "lia", "r1", "rfc"))
    assert dict(open_.settings)["scheduler"] == '"redundant"'
    # A single TCP has nothing to schedule.
    single = planner.spec(Cell("LONG", "tcp-reno@3g", "r1", "rfc"))
    assert "scheduler" not in dict(single.settings)


def test_a_parameter_of_a_study_is_one_of_the_algorithm_with_its_label(library: catalog.Library) -> None:
    library.experiments["SHORT"] = replace(
        library.experiments["SHORT"], parameters={"dolia-text": "beta_min=0.5625", "fixed": "step=2"}
    )
    planner = Planner(library, "sim", quick=False)
    cell = Cell("SHORT", "dolia-text", "", "linux-legacy")
    assert planner.spec(cell).cc == "dolia(gamma=text, beta_min=0.5625, dialect=mptcp-0.95)"
    assert planner.spec(replace(cell, label="fixed")).cc is None
    assert planner.spec(replace(cell, label="dolia")).cc == "dolia(dialect=mptcp-0.95)"


# Treatments


@pytest.fixture
def topology(library: catalog.Library) -> Topology:
    return Planner(library, "sim", quick=False).topology(library.experiments["LONG"])


ALONE = {name: f'[{{ name = "{name}", path = ["{link}", "E"] }}]' for name, link in (("wifi", "A"), ("3g", "B"))}


@pytest.mark.parametrize(
    ("label", "cc", "settings"),
    [
        ("fixed", None, {}),
        ("lia", "lia", {}),
        ("uncoupled-cubic", "cubic", {}),
        ("olia(dialect=spec)", "olia(dialect=spec)", {}),
        ("ewtcp", "ewtcp(weight=fair)", {}),
        ("ewtcp-sqrt", "ewtcp", {}),
        ("dolia-text", "dolia(gamma=text)", {}),
        ("rx-balia", "lia", {}),
        ("mptcp", "lia", {"flows.mp.scheduler": '"minrtt"'}),
        ("mptcp-rr", "lia", {"flows.mp.scheduler": '"roundrobin(cwnd_limited=false)"'}),
        ("proposed", "delayvar", {"flows.mp.scheduler": '"delayvar"'}),
        ("cmt-sctp", None, {"flows.mp.transport": '"cmt-sctp"', "cc": ""}),
        # One path only: the first, or that of the subflow.
        ("sctp", None, {"flows.mp.transport": '"cmt-sctp"', "flows.mp.subflows": ALONE["wifi"], "cc": ""}),
        ("independent-reno", "reno", {"flows.mp.transport": '"tcp"', "flows.mp.subflows": ALONE["wifi"]}),
        ("tcp-cubic@3g", "cubic", {"flows.mp.transport": '"tcp"', "flows.mp.subflows": ALONE["3g"]}),
        ("reno@3g", "reno", {"flows.mp.transport": '"tcp"', "flows.mp.subflows": ALONE["3g"]}),
        # One of the competitors runs CUBIC.
        ("ref-tcp@wifi", "cubic", {"flows.mp.transport": '"tcp"', "flows.mp.subflows": ALONE["wifi"]}),
    ],
)
def test_a_label_stands_for_changes_of_the_scenario(
    topology: Topology, label: str, cc: str | None, settings: dict[str, str]
) -> None:
    assert treatment(label, topology, algorithm_names()) == Treatment(cc, settings)


def test_the_reference_is_reno_where_no_competitor_runs_cubic(library: catalog.Library) -> None:
    short = Planner(library, "sim", quick=False).topology(library.experiments["SHORT"])
    assert treatment("ref-tcp@3g", short, set()).cc == "reno"
    # The multipath connection is no competitor of itself.
    flows = tuple(replace(flow, cc="cubic") if flow.name == "mp" else flow for flow in short.flows)
    assert treatment("ref-tcp@3g", replace(short, flows=flows), set()).cc == "reno"


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("lai", "no such algorithm or treatment: 'lai'"),
        ("uncoupled-cubik(x=1)", "no such algorithm or treatment: 'uncoupled-cubik(x=1)'"),
        ("tcp-reno@4g", "flow mp has no subflow '4g'; it has wifi, 3g, cable"),
    ],
)
def test_a_label_that_stands_for_nothing_is_refused(topology: Topology, label: str, message: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        treatment(label, topology, algorithm_names())
    said, _, hint = str(caught.value).partition("\n\nhint: ")
    assert said == message
    assert hint == "" or {"cmt-sctp", "lia", "proposed"} <= set(hint.split(", "))


def test_a_treatment_with_one_path_needs_a_flow_mp(topology: Topology) -> None:
    """It was an internal error."""
    others = replace(topology, flows=tuple(flow for flow in topology.flows if flow.name != "mp"))
    for label in ("tcp-reno@wifi", "ref-tcp@3g", "independent-cubic", "sctp"):
        with pytest.raises(MptcplabError, match=r"^the scenario has no flow 'mp'\n\nhint: a treatment with one path"):
            treatment(label, others, algorithm_names())


@pytest.mark.parametrize(
    ("label", "settings", "message"),
    [
        ("lai", {}, "LONG: lai, r5, slow: no such algorithm or treatment: 'lai'"),
        ("lia", {"links.Z.rate": '"1 Mbit/s"'}, 'LONG: lia, r5, slow: links.Z: no such key "Z"'),
        ("olia", {"links.A.loss": '"2"'}, 'LONG: olia, r5, slow: links.A.loss: "2" is not a percentage'),
    ],
)
def test_an_error_in_a_cell_names_the_file_and_the_experiment(
    library: catalog.Library, label: str, settings: dict[str, str], message: str
) -> None:
    """It said "command line", or nothing, of what is in paper.toml."""
    one = library.experiments["LONG"]
    library.experiments["LONG"] = replace(one, settings={**one.settings, **settings})
    with pytest.raises(MptcplabError) as caught:
        Planner(library, "sim", quick=False).spec(Cell("LONG", label, "r5", "rfc", "slow"))
    assert str(caught.value).startswith(f"{library.papers['doe2024'].directory / 'paper.toml'}: experiments.{message}")


@pytest.mark.parametrize(
    ("cc", "dialect", "expected"),
    [
        ("olia", "mptcp-0.95", "olia(dialect=mptcp-0.95)"),
        ("olia(step=1)", "mptcp-0.95", "olia(step=1, dialect=mptcp-0.95)"),
        ("olia", "spec", "olia"),
        ("lia", "mptcp-0.95", "lia"),
        ("lia(olia=1)", "mptcp-0.95", "lia(olia=1)"),
    ],
)
def test_a_dialect_is_a_parameter_of_algorithms_that_know_it(cc: str, dialect: str, expected: str) -> None:
    assert in_dialect(cc, dialect, {"olia", "wvegas"}) == expected


def test_parameters_follow_one_another_within_the_parentheses() -> None:
    assert with_parameter("olia", "a=1") == "olia(a=1)"
    assert with_parameter("olia(a=1)", "b=2") == "olia(a=1, b=2)"
    assert with_parameter("olia()", "b=2") == "olia(b=2)"
