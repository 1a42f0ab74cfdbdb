"""Verdicts under other choices: what each choice changes, how the answers are counted, stored and shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mptcplab.errors import MptcplabError
from mptcplab.kept import only_writer
from mptcplab.studies.papers import catalog, sensitivity, summary
from mptcplab.studies.papers.choices import Choice, bottlenecks, choices, one_per_axis
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.report import write_sensitivity
from mptcplab.studies.papers.reproduce import reproduce
from mptcplab.studies.papers.sensitivity import Answer, Sensitivity, SensitivityStudy, Study
from mptcplab.study.cell import Cell
from mptcplab.study.progress import silent
from mptcplab.study.store import Store
from mptcplab.study.verdict import Finding, Verdict
from mptcplab.trace.topology import Topology

LIBRARY = catalog.load()
PLANNER = Planner(LIBRARY, "sim", quick=False)
KUSHWAH = LIBRARY.papers["kushwah2024"]


def choice(text: str, paper: str = "kushwah2024") -> Choice:
    (found,) = (one for one in choices(LIBRARY.papers[paper]) if str(one) == text)
    return found


def changed(text: str, experiment: str) -> catalog.Experiment:
    chosen = LIBRARY.experiments[experiment]
    return choice(text, chosen.paper).change(chosen, PLANNER.topology(chosen))


def planner(text: str, experiment: str) -> Planner:
    """A planner under a choice, for one experiment."""
    new = changed(text, experiment)
    paper = LIBRARY.papers[new.paper]
    papers = {**LIBRARY.papers, paper.id: replace(paper, experiments={**paper.experiments, experiment: new})}
    return Planner(catalog.Library(papers, LIBRARY.root), "sim", quick=False, most=4)


def topology(text: str, experiment: str) -> Topology:
    return planner(text, experiment).topology(changed(text, experiment))


# The choices


def test_a_queue_is_that_of_the_bottlenecks_alone() -> None:
    before = PLANNER.topology(LIBRARY.experiments["ADW-1"])
    after = topology("queue 100 packets", "ADW-1")
    limits = {link.name for link in bottlenecks(before)}
    assert limits
    assert limits < set(before.links)
    for name, link in after.links.items():
        assert (link.queue == "100 packets") == (name in limits), name
        assert name in limits or link.queue == before.links[name].queue


def test_the_noise_of_a_packet_is_its_time_at_the_slowest_link() -> None:
    experiment = LIBRARY.experiments["ADW-1"]
    network = PLANNER.topology(experiment)
    slowest = min(link.rate_bps for link in bottlenecks(network))
    noise = changed("noise a packet's time", "ADW-1").settings["tcp.send_jitter"]
    # 1500 bytes of IP in 1514 of Ethernet, unless the scenario has smaller segments.
    assert noise == f'"{round(8e9 * 1514 / slowest)} ns"'
    assert changed("noise none", "ADW-1").settings["tcp.send_jitter"] == '"0 s"'


@pytest.mark.parametrize("direction", ["towards the receiver only", "of ACKs only"])
def test_a_delay_that_moves_to_one_direction_keeps_every_round_trip_time(direction: str) -> None:
    moved = 0
    for name, experiment in LIBRARY.experiments.items():
        before, after = PLANNER.topology(experiment), topology(f"delay {direction}", name)
        for flow, other in zip(before.flows, after.flows, strict=True):
            rtts = [subflow.base_rtt_ns for subflow in flow.subflows]
            assert [subflow.base_rtt_ns for subflow in other.subflows] == rtts, name
        moved += any(after.links[key].delay_ns != link.delay_ns for key, link in before.links.items())
    assert moved > 30


def test_a_profile_keeps_the_papers_dialect_and_a_dialect_its_profile() -> None:
    own = LIBRARY.experiments["ADW-1"]
    other = changed("ACK profile rfc", "ADW-1")
    assert (other.profile, other.dialect_in(other.profile)) == ("rfc", own.dialect)
    spec = changed("dialect spec", "ADW-1")
    assert (spec.profile, spec.dialect) == (own.profile, "spec")
    assert own.dialect == "mptcp-0.95"


def test_a_scheduler_is_for_connections_without_one_of_their_own() -> None:
    by = planner("scheduler roundrobin", "KK-TCP")
    labels = LIBRARY.experiments["KK-TCP"].algorithms
    for label in labels:
        cell = Cell("KK-TCP", label, LIBRARY.experiments["KK-TCP"].labels[0], LIBRARY.experiments["KK-TCP"].profile)
        assert dict(by.spec(cell).settings) == dict(PLANNER.spec(cell).settings), label
    free = LIBRARY.experiments["ADW-1"]
    settings = dict(planner("scheduler roundrobin", "ADW-1").spec(Cell("ADW-1", "olia", "", free.profile)).settings)
    assert settings["scheduler"] == '"roundrobin"'


def test_a_reading_is_another_parameter_of_the_treatments_that_it_is_about() -> None:
    experiment = LIBRARY.experiments["KK-TCP"]
    cells = {label: Cell("KK-TCP", label, experiment.labels[0], experiment.profile) for label in ("proposed", "mptcp")}
    by = planner("reading of the proposed scheme decrease=halved", "KK-TCP")
    assert by.spec(cells["proposed"]).cc == "delayvar(decrease=halved)"
    assert by.spec(cells["mptcp"]).cc == PLANNER.spec(cells["mptcp"]).cc
    elsewhere = LIBRARY.experiments["ADW-1"]
    reading = choice("reading of the proposed scheme decrease=halved")
    assert reading.change(elsewhere, PLANNER.topology(elsewhere)) == elsewhere


def test_every_experiment_can_run_under_every_axis() -> None:
    for paper in LIBRARY.papers.values():
        study = SensitivityStudy(PLANNER, replace(paper, experiments=paper.experiments))
        numbers = [study.choices.index(one) for one in one_per_axis(study.choices)]
        for number in numbers:
            by = study.planners[number]
            for experiment in map(by.library.source, by.library.papers[paper.id].experiments.values()):
                for label in experiment.algorithms:
                    cell = Cell(experiment.id, label, experiment.labels[0], experiment.profile)
                    spec = by.spec(cell)
                    assert replace(spec, repetitions=1).resolved()
                    assert spec.repetitions <= sensitivity.REPETITIONS
                    assert not spec.time_series


def test_only_choices_that_change_a_claims_runs_count() -> None:
    study = SensitivityStudy(PLANNER, KUSHWAH)
    wanted = study.wanted([KUSHWAH.claim("KK-02")])["KK-02"]
    names = {str(study.choices[number]) for number in wanted}
    own = LIBRARY.experiments["KK-TCP"].profile
    assert f"ACK profile {own}" not in names
    assert "dialect spec" not in names
    assert "scheduler roundrobin" not in names
    assert {"queue 100 packets", "reading of the proposed scheme threshold=1", "noise none"} <= names


# Counting

HOLDS, FAILS, OPEN, NOT_TESTABLE = Verdict


def answers(*verdicts: Verdict) -> tuple[Answer, ...]:
    return tuple(Answer("queue" if i % 2 == 0 else "noise", f"{i}", one) for i, one in enumerate(verdicts))


def test_robust_is_what_nothing_turns_or_opens() -> None:
    one = Sensitivity(HOLDS, answers(HOLDS, HOLDS, HOLDS))
    assert one.robust
    assert str(one) == "robust: holds in 4 of 4, fails in 0"
    opened = Sensitivity(HOLDS, answers(HOLDS, OPEN, HOLDS))
    assert not opened.robust
    assert str(opened) == "holds in 3 of 4, fails in 0; turned by none"
    assert opened.same_as_measured == 0
    turned = Sensitivity(FAILS, answers(HOLDS, FAILS, HOLDS, HOLDS))
    assert str(turned) == "holds in 3 of 5, fails in 2; turned by queue 0, 2; noise 3"
    assert turned.short == "fails in 2 of 5; turned by queue, noise"
    assert not Sensitivity(OPEN, answers(OPEN, OPEN)).robust
    assert Sensitivity(OPEN, answers(HOLDS, FAILS)).turned_by == []


def test_what_stays_open_says_on_which_side_it_was_measured() -> None:
    some = (
        Answer("queue", "a", OPEN, True),
        Answer("queue", "b", OPEN, True),
        Answer("noise", "c", OPEN, False),
        Answer("dialect", "d", HOLDS, True),
        Answer("scheduler", "e", NOT_TESTABLE),
    )
    held = Sensitivity(HOLDS, some)
    assert held.short == "holds in 2 of 6, and as measured in 2 more"
    assert str(held) == (
        "holds in 2 of 6, fails in 0, and as measured holds in 2 more and fails in 1 more; turned by none"
    )
    assert [one.value for one in held.measured_otherwise] == ["c"]
    failed = Sensitivity(FAILS, some)
    assert failed.short == "fails in 1 of 6, and as measured in 1 more; turned by dialect"
    assert [one.value for one in failed.measured_otherwise] == ["a", "b", "d"]
    assert Sensitivity(OPEN, some).measured_otherwise == []


@pytest.mark.parametrize(
    ("verdict", "held", "measured"),
    [
        (HOLDS, False, HOLDS),
        (FAILS, True, FAILS),
        (NOT_TESTABLE, True, NOT_TESTABLE),
        (OPEN, True, HOLDS),
        (OPEN, False, FAILS),
        (OPEN, None, OPEN),
    ],
)
def test_only_what_is_open_goes_by_the_measured_values(verdict: Verdict, held: bool | None, measured: Verdict) -> None:
    assert Answer("queue", "a", verdict, held).measured == measured


@pytest.mark.parametrize(
    ("verdict", "given", "counts", "turned"),
    [
        (HOLDS, (), (1, 0, 0), []),
        (HOLDS, (HOLDS, FAILS, OPEN, FAILS), (2, 2, 1), ["1", "3"]),
        (FAILS, (HOLDS, FAILS, OPEN), (1, 2, 1), ["0"]),
        (OPEN, (HOLDS, FAILS), (1, 1, 1), []),
        (NOT_TESTABLE, (HOLDS, HOLDS, FAILS), (2, 1, 0), []),
    ],
)
def test_the_claims_own_verdict_counts_beside_one_per_choice(
    verdict: Verdict, given: tuple[Verdict, ...], counts: tuple[int, int, int], turned: list[str]
) -> None:
    found = Sensitivity(verdict, answers(*given))
    assert found.total == 1 + len(given)
    assert tuple(found.count(one) for one in (HOLDS, FAILS, OPEN)) == counts
    assert [one.value for one in found.turned_by] == turned


@pytest.mark.parametrize(
    ("verdict", "given", "robust", "short", "text"),
    [
        (HOLDS, (), True, "robust, holds in 1 of 1", "robust: holds in 1 of 1, fails in 0"),
        (FAILS, (FAILS, FAILS), True, "robust, fails in 3 of 3", "robust: holds in 0 of 3, fails in 3"),
        (OPEN, (OPEN,), False, "open in 2 of 2", "holds in 0 of 2, fails in 0; turned by none"),
        (NOT_TESTABLE, (), False, "not testable in 1 of 1", "holds in 0 of 1, fails in 0; turned by none"),
        # What turns a verdict is named by axis, and with its values.
        (
            HOLDS,
            (FAILS, HOLDS, FAILS, FAILS),
            False,
            "holds in 2 of 5; turned by queue, noise",
            "holds in 2 of 5, fails in 3; turned by queue 0, 2; noise 3",
        ),
    ],
)
def test_a_claim_is_robust_if_all_verdicts_are_the_same_decided_one(
    verdict: Verdict, given: tuple[Verdict, ...], robust: bool, short: str, text: str
) -> None:
    found = Sensitivity(verdict, answers(*given))
    assert (found.robust, found.short, str(found)) == (robust, short, text)


def test_a_study_is_stored_and_another_papers_claims_stay(tmp_path: Path) -> None:
    path = tmp_path / "sensitivity.json"
    some = (*answers(FAILS, OPEN), Answer("dialect", "spec", OPEN, True))
    first = Study({"A-1": Sensitivity(HOLDS, some), "B-1": Sensitivity(FAILS, ())})
    sensitivity.write(first, path)
    assert sensitivity.read(path) == first
    second = Study({"A-1": Sensitivity(OPEN, answers(HOLDS))})
    sensitivity.write(second, path)
    assert sensitivity.read(path).claims == {**first.claims, **second.claims}
    assert sensitivity.read(tmp_path / "none.json") == Study()


def test_reproductions_that_end_together_keep_each_others_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, one that had read the file of the documentation did not see what another one wrote meanwhile."""
    read, docs = sensitivity.read, tmp_path / "docs"

    def read_slowly(path: Path) -> Study:
        found = read(path)
        time.sleep(0.4)
        return found

    def write(name: str, verdict: Verdict) -> None:
        study = Study({name: Sensitivity(verdict, answers(verdict))})
        write_sensitivity([SimpleNamespace(sensitivity=study)], tmp_path / name, docs)  # type: ignore[list-item]

    monkeypatch.setattr(sensitivity, "read", read_slowly)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, "A-1", HOLDS), pool.submit(write, "B-2", FAILS)]:
            done.result()
    assert set(read(docs / "sensitivity.json").claims) == {"A-1", "B-2"}
    assert set(read(tmp_path / "A-1" / "sensitivity.json").claims) == {"A-1"}


def test_the_documentation_may_be_where_the_results_are(tmp_path: Path) -> None:
    study = Study({"A-1": Sensitivity(HOLDS, ())})
    with only_writer(tmp_path):
        write_sensitivity([SimpleNamespace(sensitivity=study)], tmp_path, tmp_path / ".")  # type: ignore[list-item]
    assert sensitivity.read(tmp_path / "sensitivity.json") == study


def test_a_stored_study_has_a_line_per_value_and_its_number_of_repetitions(tmp_path: Path) -> None:
    """The repetitions are those of the study that was written last."""
    path = tmp_path / "sensitivity.json"
    sensitivity.write(Study({"Ü-1": Sensitivity(HOLDS, (Answer("queue", "a", OPEN, False),))}, 7), path)
    assert path.read_text(encoding="utf-8").splitlines() == [
        "{",
        ' "repetitions": 7,',
        ' "claims": {',
        '  "Ü-1": {',
        '   "verdict": "holds",',
        '   "answers": [',
        "    [",
        '     "queue",',
        '     "a",',
        '     "open",',
        "     false",
        "    ]",
        "   ]",
        "  }",
        " }",
        "}",
    ]
    assert path.read_text(encoding="utf-8").endswith("}\n")
    assert sensitivity.read(path).repetitions == 7
    sensitivity.write(Study({}, 5), path)
    assert sensitivity.read(path).repetitions == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Expecting property name"),
        ("[]", "list indices must be integers"),
        ('{"claims": {}}', "'repetitions'"),
        ('{"claims": ["A-1"], "repetitions": 4}', "'list' object has no attribute 'items'"),
        ('{"claims": {"A-1": {"answers": []}}, "repetitions": 4}', "'verdict'"),
        (
            '{"claims": {"A-1": {"verdict": "maybe", "answers": []}}, "repetitions": 4}',
            "'maybe' is not a valid Verdict",
        ),
        ('{"claims": {"A-1": {"verdict": "holds", "answers": [["a", "b"]]}}, "repetitions": 4}', "not enough values"),
    ],
)
def test_a_stored_study_that_is_not_right_is_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "sensitivity.json"
    path.write_text(text)
    with pytest.raises(MptcplabError) as caught:
        sensitivity.read(path)
    assert str(caught.value).startswith(f"{path}: not right: {problem}")
    assert str(caught.value).endswith("\n\nhint: write it again with mptcplab reproduce all --sensitivity")


def test_the_readme_says_which_headline_claims_are_robust() -> None:
    rows = [
        {"claim": name, "headline": headline, "group": group, "rules": "paper"}
        for name, headline, group in [
            ("A-1", True, summary.PAPERS),
            ("A-2", True, summary.PAPERS),
            ("A-3", True, summary.PAPERS),
            ("A-4", False, summary.PAPERS),
            ("A-5", True, summary.OURS),
            ("A-6", True, summary.PAPERS),
            ("A-7", True, summary.PAPERS),
            ("A-8", True, summary.PAPERS),
        ]
    ]
    claims = {
        "A-1": Sensitivity(HOLDS, answers(HOLDS)),
        "A-2": Sensitivity(HOLDS, answers(FAILS, FAILS)),
        "A-3": Sensitivity(HOLDS, (Answer("queue", "a", OPEN, True),)),
        "A-4": Sensitivity(HOLDS, answers(HOLDS)),
        "A-5": Sensitivity(HOLDS, answers(HOLDS)),
        "A-6": Sensitivity(FAILS, (Answer("queue", "a", OPEN, False), Answer("noise", "b", OPEN, True))),
        "A-7": Sensitivity(OPEN, answers(HOLDS, FAILS)),
        "A-8": Sensitivity(NOT_TESTABLE, answers(HOLDS)),
    }
    assert summary.sensitivity_lines(rows, Study(claims)) == [
        "- Robust headline claims, with the same verdict under every other choice: A-1.",
        "- Headline claims whose verdict another choice reverses (the choice in parentheses): A-2 (queue, noise).",
        "- Headline claims with values on the same side of the bound under every choice, but too few repetitions to "
        "decide under some: A-3.",
        "- Headline claims that some choices leave open, with values on the other side of the bound (the choice in "
        "parentheses): A-6 (noise).",
        "- Headline claims that are open under the paper's own rules: A-7.",
    ]
    assert summary.sensitivity_lines(rows, Study()) == []


# The study


def _small(tmp_path: Path) -> catalog.Library:
    """One paper with one claim on a scenario of a few seconds."""
    paper = tmp_path / "papers" / "tiny"
    paper.mkdir(parents=True)
    (paper / "paper.toml").write_text(
        """\
title = "Tiny"
cite = "Doe 2024"
about = "A check."
profile = "linux-legacy"
dialect = "mptcp-0.95"

[experiments.T1]
title = "One path each"
where = "section 1"
scenario = "tiny.toml"
algorithms = ["lia", "dlia"]
repetitions = 3

[[readings]]
of = ["dlia"]
name = "D-LIA"
says = "nothing is open, but a test needs a reading"
others = ["gamma=text"]
"""
    )
    (paper / "tiny.toml").write_text(
        """\
title = "Tiny"
source = "made for the test"
duration = "6 s"
warmup = "2 s"
seed = 5
cc = "lia"

[links]
A = { from = "S", to = "D", rate = "6 Mbit/s", delay = "8 ms", queue = "30 packets" }
B = { from = "S", to = "D", rate = "2 Mbit/s", delay = "21 ms", queue = "25 packets" }

[flows.mp]
subflows = [{ name = "sf1", path = ["A"] }, { name = "sf2", path = ["B"] }]
"""
    )
    claims = [
        ("T-01", "mean(goodput{cc=lia,flow=mp}) >= 1", "holds"),
        ("T-02", "mean(goodput{cc=dlia,flow=mp}) >= 12", "fails"),
    ]
    (paper / "claims.toml").write_text(
        "".join(
            f'[[claim]]\nid = "{name}"\norigin = "paper"\nkind = "shape"\nexperiment = "T1"\nstatement = "It does"\n'
            f'predicate = \'{predicate}\'\nexpect = "{expect}"\nwhy = "it is so"\n\n'
            for name, predicate, expect in claims
        )
    )
    return catalog.load(tmp_path / "papers")


def test_claims_are_judged_under_every_choice_and_a_second_call_runs_nothing(tmp_path: Path) -> None:
    library = _small(tmp_path)
    papers = list(library.papers.values())
    (first,) = reproduce(library, papers, "sim", tmp_path / "out", sensitivity=True, jobs=1)
    found = first.sensitivity.claims
    lia, dlia = found["T-01"], found["T-02"]
    # The links have 8 Mbit/s, and LIA nearly fills them under any choice.
    assert lia.robust, str(lia)
    assert dlia.robust
    axes = {answer.axis for answer in lia.answers}
    assert axes == {"queue", "noise", "ACK profile", "dialect", "scheduler", "delay"}
    # The reading is about D-LIA only.
    assert {answer.axis for answer in dlia.answers} == axes | {"reading of D-LIA"}

    stored = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "store").iterdir()}
    (second,) = reproduce(library, papers, "sim", tmp_path / "out", sensitivity=True, jobs=1)
    assert second.sensitivity == first.sensitivity
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "store").iterdir()} == stored
    (plain,) = reproduce(library, papers, "sim", tmp_path / "out", jobs=1)
    assert plain.sensitivity == Study()


def test_a_quick_study_has_one_choice_of_each_axis(tmp_path: Path) -> None:
    library = _small(tmp_path)
    (found,) = reproduce(
        library, list(library.papers.values()), "sim", tmp_path / "out", quick=True, sensitivity=True, jobs=1
    )
    axes = [answer.axis for answer in found.sensitivity.claims["T-01"].answers]
    assert len(axes) == len(set(axes))
    assert "queue" in axes


def _settings(axis: str, value: str, settings: dict[str, str]) -> Choice:
    """A choice of some settings of every experiment."""
    return Choice(axis, value, lambda experiment, _: replace(experiment, settings={**experiment.settings, **settings}))


# B has 2 Mbit/s and A 6 in the scenario.
_CHOICES = [
    _settings("rate", "of both 0.1 Mbit/s", {f"links.{one}.rate": '"100 kbit/s"' for one in "AB"}),
    _settings("rate", "of B as it is", {"links.B.rate": '"2 Mbit/s"'}),
    _settings("rate", "of B 14 Mbit/s", {"links.B.rate": '"14 Mbit/s"'}),
    Choice("ACK profile", "rfc", lambda experiment, _: replace(experiment, profile="rfc")),
    Choice("reading", "text", lambda experiment, _: replace(experiment, parameters={"dlia": "gamma=text"})),
]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SensitivityStudy:
    """The claims of a small paper under the choices above; it has runs of a second."""
    library = _small(tmp_path)
    (paper,) = library.papers.values()
    (experiment,) = paper.experiments.values()
    short = {**experiment.settings, "duration": '"2 s"', "warmup": '"1 s"'}
    paper = replace(
        paper, experiments={experiment.id: replace(experiment, settings=short, repetitions=10, dialect="spec")}
    )
    monkeypatch.setattr(sensitivity, "choices", lambda asked: _CHOICES if asked is paper else [])
    return SensitivityStudy(Planner(catalog.Library({paper.id: paper}, library.root), "sim", quick=False), paper)


def _cell(label: str, profile: str = "linux-legacy") -> Cell:
    return Cell("T1", label, "", profile)


def test_a_claim_is_judged_again_under_the_choices_that_change_its_runs(study: SensitivityStudy) -> None:
    """The second choice changes nothing, and the last one only D-LIA; no run is needed for printed numbers."""
    printed = replace(study.paper.claims[0], id="T-03", experiment=None, predicate="1 < 2")
    lia, dlia = ({number: frozenset({_cell(one)}) for number in (0, 2)} for one in ("lia", "dlia"))
    assert study.wanted([printed, *study.paper.claims]) == {
        "T-01": lia | {3: frozenset({_cell("lia", "rfc")})},
        "T-02": dlia | {3: frozenset({_cell("dlia", "rfc")}), 4: frozenset({_cell("dlia")})},
    }


def test_all_cells_of_a_claim_are_needed_if_one_of_them_changes(study: SensitivityStudy) -> None:
    claim = replace(study.paper.claims[0], predicate="mean(goodput{cc=lia}) > mean(goodput{cc=dlia})")
    assert study.wanted([claim])["T-01"][4] == {_cell("lia"), _cell("dlia")}


def test_runs_under_a_choice_are_few_and_otherwise_those_of_the_paper(study: SensitivityStudy) -> None:
    number = 2
    spec = study.planners[number].spec(_cell("lia"))
    own = study.base.spec(_cell("lia"))
    assert (own.repetitions, spec.repetitions) == (10, sensitivity.REPETITIONS)
    changed = {**dict(own.settings), "links.B.rate": '"14 Mbit/s"'}
    assert replace(spec, repetitions=10, settings=own.settings) == own
    assert dict(spec.settings) == changed


def test_the_verdicts_under_other_choices_are_those_of_their_own_runs(study: SensitivityStudy, tmp_path: Path) -> None:
    """`T-01` asks for 1 Mbit/s and more, and `T-02` for 9: only with 14 Mbit/s there is as much.

    Both begin as they are not, which says that the verdicts without a choice are taken as they are given.
    """
    told: list[tuple[str, list[tuple[float, ...]]]] = []

    @contextmanager
    def announce(text: str) -> Iterator[Any]:
        calls: list[tuple[float, ...]] = []
        told.append((text, calls))
        yield lambda *numbers: calls.append(numbers)

    store = Store(tmp_path / "store")
    store.prepare()
    given = [JudgedClaim(claim, (Finding("", OPEN),)) for claim in study.paper.claims]
    found = sensitivity.judge_again(study.base, study.paper, given, store, 1, announce, None)
    assert {name: one.verdict for name, one in found.claims.items()} == {"T-01": OPEN, "T-02": OPEN}
    shown = {
        name: [(one.axis, one.value, one.verdict, one.held) for one in claim.answers]
        for name, claim in found.claims.items()
    }
    assert shown == {
        "T-01": [
            ("rate", "of both 0.1 Mbit/s", FAILS, False),
            ("rate", "of B 14 Mbit/s", HOLDS, True),
            ("ACK profile", "rfc", HOLDS, True),
        ],
        "T-02": [
            ("rate", "of both 0.1 Mbit/s", FAILS, False),
            ("rate", "of B 14 Mbit/s", HOLDS, True),
            ("ACK profile", "rfc", FAILS, False),
            ("reading", "text", FAILS, False),
        ],
    }
    assert [text for text, _ in told] == [
        "tiny: 7 cells under 5 other choices",
        "tiny: verdicts under other choices",
    ]
    assert told[0][1][-1][:2] == (28, 28)
    assert told[1][1] == [(done, 5, float(done), 5.0) for done in (1, 2, 3, 4, 5)]


def test_where_nothing_may_report_progress_the_verdicts_are_the_same(study: SensitivityStudy, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.prepare()
    claim = study.paper.claims[0]
    found = study.run({claim.id: JudgedClaim(claim, (Finding("", HOLDS),))}, store, 1, silent, None)
    assert str(found.claims["T-01"]) == "holds in 3 of 4, fails in 1; turned by rate of both 0.1 Mbit/s"
    assert study.run({}, store, 1, silent, None) == Study()


def test_a_quick_study_has_the_first_choice_of_each_axis_only(study: SensitivityStudy) -> None:
    quick = SensitivityStudy(replace(study.base, quick=True), study.paper)
    assert [one.value for one in study.choices] == [one.value for one in _CHOICES]
    assert [one.value for one in quick.choices] == ["of both 0.1 Mbit/s", "rfc", "text"]
