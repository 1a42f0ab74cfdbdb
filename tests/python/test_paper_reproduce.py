"""From claims to verdicts and reproductions, with an engine whose runs have the goodput that a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers import accept, catalog
from mptcplab.studies.papers import reproduce as reproduction
from mptcplab.studies.papers.catalog import Claim, Library
from mptcplab.studies.papers.claims import ClaimJudge, JudgedClaim
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.predicate import Domain, evaluate, parse
from mptcplab.studies.papers.reasons import read_reason
from mptcplab.studies.papers.reproduce import Reproduction, reproduce
from mptcplab.studies.papers.sensitivity import Study
from mptcplab.study import execute, sweeps
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.study.decision import Rule
from mptcplab.study.execute import Executor, Outcome
from mptcplab.study.measure import VALUE_COLUMNS
from mptcplab.study.store import Store
from mptcplab.study.sweeps import Task
from mptcplab.study.verdict import Finding, Verdict
from mptcplab.text import NOT_APPLICABLE

HOLDS, FAILS, OPEN, NOT_TESTABLE = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN, Verdict.NOT_TESTABLE
SCENARIO = """\
title = "Two paths"
source = "made for the tests"
duration = "100 s"
cc = "lia"

[links]
A = { from = "S", to = "D", rate = "8 Mbit/s", delay = "10 ms", queue = "20 packets" }
B = { from = "S", to = "D", rate = "4 Mbit/s", delay = "25 ms", queue = "20 packets" }

[flows.mp]
paths = [["A"], ["B"]]
"""
PAPER = """\
title = "A rule"
cite = "Doe 2024"
about = "One rule."
profile = "linux-legacy"

[experiments.OLD]
title = "Rules of then"
where = "section 3"
scenario = "pair.toml"
algorithms = ["lia", "olia"]

[experiments.NEW]
title = "Rules of today"
where = "section 4"
scenario = "pair.toml"
profile = "linux-acked"
settings = { "links.A.rate" = "7 Mbit/s" }
algorithms = ["lia", "balia"]
repetitions = 4
"""


def mean(label: str) -> str:
    return f"mean(goodput{{cc={label},flow=mp}})"


CLAIM = Claim("C-1", "paper", "shape", "OLIA gets more", f"{mean('olia')} > {mean('lia')}", HOLDS, "OLD")
# Mbit/s; what is added to them in turn, from repetition to repetition.
GOODPUT = {"lia": 4.0, "olia": 6.0, "balia": 5.0}
NOISE = (-0.25, 0.0, 0.125, 0.125)
Rate = Callable[[RunSpec, int], float]


def usual(cc: str | None, rep: int) -> float:
    """The algorithms' noise is not the same in a repetition."""
    return GOODPUT[str(cc)] + NOISE[(rep + len(str(cc))) % 4]


@dataclass
class Lab:
    """In the place of an engine: the goodput of a repetition is `rate`, and runs of wvegas are refused."""

    rate: Rate = lambda spec, rep: usual(spec.cc, rep)
    ran: list[RunSpec] = field(default_factory=list)

    def __call__(self, sweep: Sequence[Task], store: Store, **_: object) -> dict[str, str]:
        refused = {task.digest: "no such rule\nhint: none" for task in sweep if task.spec.cc == "wvegas"}
        for task in sweep:
            self.ran.append(task.spec)
            if task.digest not in refused:
                rows = [
                    (rep, "", "goodput", "mp", None, None, self.rate(task.spec, rep))
                    for rep in range(task.spec.repetitions)
                ]
                store.put(task.digest, {}, values=pl.DataFrame(rows, schema=VALUE_COLUMNS, orient="row"))
        return refused


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    found = Lab()
    monkeypatch.setattr(execute, "run_sweep", found)
    return found


@pytest.fixture
def library(tmp_path: Path) -> Library:
    for paper, other in (("doe2024", {}), ("roe2023", {"OLD": "ELD", "NEW": "NEWER", "A rule": "Another rule"})):
        folder = tmp_path / "papers" / paper
        folder.mkdir(parents=True)
        (folder / "pair.toml").write_text(SCENARIO)
        text = PAPER
        for before, after in other.items():
            text = text.replace(before, after)
        (folder / "paper.toml").write_text(text)
        (folder / "claims.toml").write_text("")
    found = catalog.load(tmp_path / "papers")
    return replace(found, papers={**found.papers, "doe2024": replace(found.papers["doe2024"], claims=(CLAIM,))})


@dataclass
class Judging:
    """A judge with an executor; `judged` looks until the claim is settled."""

    library: Library
    place: Path
    engine: str = "sim"
    quick: bool = False

    def __post_init__(self) -> None:
        planner = Planner(self.library, self.engine, self.quick)
        store = Store(self.place / "store", durable=False)
        store.prepare()
        self.judge = ClaimJudge(planner, Executor(planner.spec, self.engine, store, 1, None))

    def judged(self, claim: Claim, *others: Cell) -> JudgedClaim:
        judge, executor = self.judge, self.judge.executor
        with executor:
            judge.ask([claim])
            executor.add(sorted(judge.cells(claim) | set(others)))
            for _ in executor.finished():
                judge.look()
                # Nothing was made since, so that another look finds nothing.
                judge.look()
        assert judge.is_settled([claim], judge.cells(claim))
        return judge.judged(claim)


@pytest.fixture
def judging(lab: Lab, library: Library, tmp_path: Path) -> Judging:
    assert not lab.ran
    return Judging(library, tmp_path)


# Profiles


@pytest.mark.parametrize(
    ("changes", "profiles"),
    [
        ({}, ["linux-legacy", "linux-acked"]),
        # A number is about the paper's own kernel, and so is what says which one it means.
        ({"kind": "number", "predicate": f"{mean('olia')} == 6", "tolerance": 0.1}, ["linux-legacy"]),
        ({"predicate": "mean(goodput{cc=olia,flow=mp,profile=rfc}) > 2"}, ["linux-legacy"]),
        ({"experiment": "NEW", "predicate": f"{mean('balia')} > {mean('lia')}"}, ["linux-acked"]),
        ({"experiment": None, "predicate": "1 < 2"}, [""]),
        ({"experiment": None, "kind": "consistency", "predicate": "1 < 2"}, [""]),
    ],
)
def test_a_claim_about_order_is_judged_in_todays_profile_as_well(
    judging: Judging, changes: dict[str, Any], profiles: list[str]
) -> None:
    found = judging.judged(replace(CLAIM, **changes))
    assert [finding.name for finding in found.findings] == profiles
    assert {finding.verdict for finding in found.findings} == {HOLDS}


def test_equations_count_no_acks(lab: Lab, library: Library, tmp_path: Path) -> None:
    found = Judging(library, tmp_path, "fluid").judged(CLAIM)
    assert [(finding.name, finding.repetitions) for finding in found.findings] == [("linux-legacy", 1)]
    assert {spec.profile for spec in lab.ran} == {"linux-legacy"}


def test_the_cells_behind_a_verdict_are_those_of_the_papers_own_profile(judging: Judging) -> None:
    claim = replace(CLAIM, why=read_reason(f"Balia gets {{{mean('balia')}:.1f}}."), why_if=f"{mean('reno')} > 1")
    own = {Cell("OLD", label, "", "linux-legacy") for label in ("lia", "olia")}
    today = {Cell("OLD", label, "", "linux-acked") for label in ("lia", "olia")}
    reason = {Cell("OLD", label, "", "linux-legacy") for label in ("balia", "reno")}
    judge = judging.judge
    assert judge.own_cells(claim) == own
    assert judge.judged_cells(claim) == own | today
    assert judge.cells(claim) == own | today | reason
    found = judging.judged(replace(CLAIM, id="C-2"))
    assert found.cells == own


# Findings


def test_a_finding_says_what_decided(judging: Judging) -> None:
    own, today = judging.judged(CLAIM).findings
    # Two more blocks may follow in the paper's own profile, and none in another.
    values = {label: np.array([usual(label, rep) for rep in range(10)]) for label in GOODPUT}
    for finding, rule in ((own, Rule(3)), (today, Rule(1))):
        expected = evaluate(
            parse(CLAIM.predicate), lambda _, keys: values[keys["cc"]], Domain(("lia", "olia"), ()), None, rule
        )
        assert finding.evidence == expected.facts
        assert (finding.verdict, finding.held, finding.repetitions, finding.provisional) == (HOLDS, True, 10, False)
        assert finding.reason == ""
    assert own.evidence[0].low < today.evidence[0].low
    assert judging.judge.own_finding(CLAIM) == own


def test_a_quick_finding_is_provisional(lab: Lab, library: Library, tmp_path: Path) -> None:
    found = Judging(library, tmp_path, quick=True).judged(CLAIM)
    assert [(one.provisional, one.repetitions) for one in found.findings] == [(True, 3), (True, 3)]
    assert found.provisional
    assert {spec.repetitions for spec in lab.ran} == {3}
    # The first finding decides what is said of the claim.
    assert not replace(found, findings=(replace(found.findings[0], provisional=False), found.findings[1])).provisional


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"predicate": f"{mean('wvegas')} > 1"}, "no such rule"),
        ({"predicate": "mean(retx{cc=lia,flow=mp}) > 1"}, "retx has no value in OLD (cc=lia, flow=mp)"),
    ],
)
def test_what_is_not_testable_says_why_in_a_line(judging: Judging, changes: dict[str, Any], reason: str) -> None:
    found = judging.judged(replace(CLAIM, **changes))
    assert {(one.verdict, one.reason, one.held) for one in found.findings} == {(NOT_TESTABLE, reason, None)}


def test_a_metric_in_a_claim_about_printed_numbers_is_a_mistake(judging: Judging) -> None:
    claim = replace(CLAIM, experiment=None, kind="consistency", predicate=f"{mean('lia')} > 1")
    with pytest.raises(MptcplabError, match=r"^goodput: a claim about printed numbers needs no metric$"):
        judging.judged(claim)
    # In its reason there is just no number.
    found = judging.judged(replace(claim, predicate="1 < 2", why=read_reason(f"It is {{{mean('lia')}:.1f}}.")))
    assert (found.verdict, found.why) == (HOLDS, f"It is {NOT_APPLICABLE}.")


def test_the_tolerance_of_a_number_counts(judging: Judging) -> None:
    claim = replace(CLAIM, kind="number", predicate=f"{mean('olia')} == 6.5")
    assert judging.judged(replace(claim, tolerance=0.1)).verdict == HOLDS
    assert judging.judged(replace(claim, id="C-2", tolerance=0.01)).verdict == FAILS


# Further repetitions


def until_block(decided: int) -> Rate:
    """OLIA's goodput is 2.6 to 5.8 Mbit/s, around LIA's; from one block on it is far above."""

    def rate(spec: RunSpec, rep: int) -> float:
        if spec.cc != "olia":
            return usual(spec.cc, rep)
        return (8.0 if spec.seed - 1 >= decided else 4.2) + (1.6, -1.6, 0.8, -0.8)[rep % 4]

    return rate


@pytest.mark.parametrize(("decided", "blocks", "verdict"), [(0, 1, HOLDS), (1, 2, HOLDS), (2, 3, HOLDS), (9, 3, OPEN)])
def test_a_claim_that_stays_open_gets_more_repetitions_in_its_own_profile(
    lab: Lab, judging: Judging, decided: int, blocks: int, verdict: Verdict
) -> None:
    lab.rate = until_block(decided)
    claim = replace(CLAIM, why=read_reason(f"OLIA gets {{{mean('olia')}:.2f}}."))
    found = judging.judged(claim)
    assert [(one.verdict, one.repetitions) for one in found.findings] == [
        (verdict, 10 * blocks),
        (HOLDS if decided == 0 else OPEN, 10),
    ]
    asked = {(spec.profile, spec.seed - 1) for spec in lab.ran}
    assert asked == {("linux-acked", 0)} | {("linux-legacy", block) for block in range(blocks)}
    # The reason has the numbers of all repetitions that.
    per_block = [sum(lab.rate(spec, rep) for rep in range(10)) / 10 for spec in own_of(lab, "olia")]
    assert found.why == f"OLIA gets {sum(per_block) / blocks:.2f}."


def own_of(lab: Lab, cc: str) -> list[RunSpec]:
    return [spec for spec in lab.ran if (spec.cc, spec.profile) == (cc, "linux-legacy")]


def mean_of(lab: Lab, cc: str, blocks: int) -> str:
    """OLIA's or Balia's goodput over so many blocks in the paper's own profile."""
    return f"{sum(lab.rate(spec, rep) for spec in own_of(lab, cc)[:blocks] for rep in range(10)) / (10 * blocks):.2f}"


WORDS = f"Balia gets {{{mean('balia')}:.2f}}, OLIA {{{mean('olia')}:.2f}}."


def test_a_reason_has_the_numbers_of_the_comparisons_beside_it(lab: Lab, judging: Judging) -> None:
    """One cell of which there were fewer repetitions took all numbers of the reason down to as many."""
    lab.rate = until_block(1)
    found = judging.judged(replace(CLAIM, why=read_reason(WORDS)))
    # OLIA's goodput is 4.2 in the first block, of which alone there is Balia's, and 8 in the second.
    assert (found.findings[0].repetitions, mean_of(lab, "olia", 1), mean_of(lab, "olia", 2)) == (20, "4.20", "6.10")
    assert found.findings[0].evidence[0].left_value.startswith("6.10 (")
    assert found.why == f"Balia gets {mean_of(lab, 'balia', 1)}, OLIA 6.10."
    # With a second block of Balia it is the mean of 20 of each.
    more = Cell("OLD", "balia", "", "linux-legacy", "", 1)
    again = judging.judged(replace(CLAIM, id="C-2", why=read_reason(WORDS)), more)
    assert again.why == f"Balia gets {mean_of(lab, 'balia', 2)}, OLIA 6.10."


def test_a_reason_has_what_there_is_of_cells_that_the_verdict_does_not_need(lab: Lab, judging: Judging) -> None:
    """The claim is decided on 30; of Balia there are 20."""
    lab.rate = until_block(2)
    more = Cell("OLD", "balia", "", "linux-legacy", "", 1)
    found = judging.judged(replace(CLAIM, why=read_reason(WORDS)), more)
    assert found.findings[0].repetitions == 30
    assert found.why == f"Balia gets {mean_of(lab, 'balia', 2)}, OLIA {mean_of(lab, 'olia', 3)}."


def test_a_reason_has_the_repetitions_of_the_finding_in_another_profile(lab: Lab, judging: Judging) -> None:
    """Another claim may have asked for more of the same cells."""
    lab.rate = until_block(1)
    today = mean("olia").replace("}", ",profile=linux-acked}")
    more = Cell("OLD", "olia", "", "linux-acked", "", 1)
    found = judging.judged(replace(CLAIM, why=read_reason(f"{{{mean('olia')}:.2f}}, today {{{today}:.2f}}.")), more)
    assert [one.repetitions for one in found.findings] == [20, 10]
    assert found.findings[1].evidence[0].left_value.startswith("4.20 (")
    assert found.why == "6.10, today 4.20."


def test_a_ratio_in_each_repetition_is_that_of_the_repetitions_in_common(lab: Lab, judging: Judging) -> None:
    lab.rate = until_block(1)
    olia, balia = mean("olia"), mean("balia")
    ratio = f"{olia[:-1]} / {balia[5:]}"
    claim = replace(CLAIM, why=read_reason(f"{{{ratio}:.3f}}"), why_if=f"{ratio} < 1 and {olia} > 6")
    found = judging.judged(claim)
    pairs = [[lab.rate(own_of(lab, cc)[0], rep) for cc in ("olia", "balia")] for rep in range(10)]
    assert found.findings[0].repetitions == 20
    assert found.why == f"{sum(one / other for one, other in pairs) / 10:.3f}"
    # The ratio is of the first ten, and the mean of all twenty.
    assert found.why_fits


def test_a_reason_has_no_more_repetitions_than_the_verdict(lab: Lab, judging: Judging) -> None:
    """Another claim has asked for two blocks of the same cells; this one was decided on the first."""
    lab.rate = until_block(1)
    assert judging.judged(CLAIM).findings[0].repetitions == 20
    sure = replace(
        CLAIM, id="C-2", predicate=f"{mean('lia')} > 1", why=read_reason(f"OLIA gets {{{mean('olia')}:.2f}}.")
    )
    found = judging.judged(sure)
    assert found.findings[0].repetitions == 10
    assert found.why == f"OLIA gets {sum(lab.rate(own_of(lab, 'olia')[0], rep) for rep in range(10)) / 10:.2f}."


# Reasons


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ("", True),
        (f"{mean('olia')} > 5", True),
        (f"{mean('olia')} > 7", False),
        # What cannot be told is no contradiction.
        (f"{mean('wvegas')} > 7", True),
        ("mean(retx{cc=lia,flow=mp}) > 1", True),
    ],
)
def test_the_words_of_a_reason_fit_if_their_condition_is_true(judging: Judging, condition: str, fits: bool) -> None:
    found = judging.judged(replace(CLAIM, why=read_reason("So."), why_if=condition))
    assert (found.why, found.why_fits) == ("So.", fits)
    assert JudgedClaim(CLAIM, found.findings).why_fits


# Reproductions


def judged(verdict: Verdict, *, expect: Verdict = HOLDS, fits: bool = True, name: str = "C-1") -> JudgedClaim:
    return JudgedClaim(replace(CLAIM, id=name, expect=expect), (Finding("", verdict),), why_fits=fits)


@pytest.mark.parametrize(
    ("engine", "quick", "claim", "unexpected", "failed"),
    [
        ("sim", False, judged(HOLDS), False, False),
        ("sim", False, judged(FAILS), True, True),
        ("sim", False, judged(OPEN), True, True),
        ("sim", False, judged(HOLDS, fits=False), False, True),
        # A quick run need not decide, and its numbers are others.
        ("sim", True, judged(OPEN), False, False),
        ("sim", True, judged(FAILS), True, True),
        ("sim", True, judged(HOLDS, fits=False), False, False),
        # Other engines may disagree.
        ("kernel", False, judged(OPEN), False, False),
        ("kernel", False, judged(FAILS), True, False),
        ("fluid", False, judged(HOLDS, fits=False), False, False),
    ],
)
def test_what_is_unexpected_depends_on_the_engine_and_the_runs(
    library: Library, tmp_path: Path, engine: str, quick: bool, claim: JudgedClaim, unexpected: bool, failed: bool
) -> None:
    planner = Planner(library, engine, quick)
    found = Reproduction(library.papers["doe2024"], (), (claim,), planner, Store(tmp_path), Outcome())
    assert found.is_reference == ((engine, quick) == ("sim", False))
    assert found.unexpected == ([claim] if unexpected else [])
    assert found.failed == failed


def test_words_that_do_not_fit_are_those_of_the_expected_verdict(library: Library, tmp_path: Path) -> None:
    """A verdict that has changed asks for other words anyway."""
    claims = (judged(HOLDS), judged(HOLDS, fits=False, name="C-2"), judged(FAILS, fits=False, name="C-3"))
    about = replace(claims[0], claim=replace(CLAIM, id="C-4", experiment="NEW"))
    planner = Planner(library, "sim", quick=False)
    paper = library.papers["doe2024"]
    found = Reproduction(paper, (), (*claims, about), planner, Store(tmp_path), Outcome())
    assert found.unfit == [claims[1]]
    assert found.claims_about(paper.experiment("OLD")) == list(claims)
    assert found.claims_about(paper.experiment("NEW")) == [about]


def test_a_reason_is_read_from_as_many_blocks_as_all_its_cells_have(judging: Judging) -> None:
    judge = judging.judge
    cells = [Cell("OLD", label, "", "linux-legacy") for label in ("lia", "olia")]
    for cell, blocks in zip(cells, (3, 5), strict=True):
        judge.executor.outcome.digests.update({replace(cell, block=n): f"{cell.label}{n}" for n in range(blocks)})
    assert [judge._blocks_of(cells, most) for most in range(1, 6)] == [1, 2, 3, 3, 3]
    assert judge._blocks_of(cells[1:], 4) == 4


@dataclass
class Told:
    """What was announced, and the papers that were finished."""

    titles: list[str] = field(default_factory=list)
    papers: list[str] = field(default_factory=list)

    @contextmanager
    def announce(self, title: str) -> Iterator[None]:
        self.titles.append(title)
        yield

    def finished(self, found: Reproduction) -> None:
        self.papers.append(found.paper.id)


def test_one_paper_is_reproduced_in_full(lab: Lab, library: Library, tmp_path: Path) -> None:
    told = Told()
    (found,) = reproduce(
        library,
        library.choose("doe2024"),
        "sim",
        tmp_path / "out",
        jobs=1,
        announce=told.announce,
        finished=told.finished,
    )
    assert (told.titles, told.papers) == (["doe2024: A rule"], ["doe2024"])
    assert [experiment.id for experiment in found.experiments] == ["OLD", "NEW"]
    assert [(one.claim.id, one.verdict) for one in found.claims] == [("C-1", HOLDS)]
    # What figures show, and the claim's cells in today's profile.
    drawn = {Cell("OLD", label, "", "linux-legacy") for label in ("lia", "olia")}
    drawn |= {Cell("NEW", label, "", "linux-acked") for label in ("lia", "balia")}
    today = {Cell("OLD", label, "", "linux-acked") for label in ("lia", "olia")}
    assert set(found.outcome.digests) == drawn | today
    assert found.outcome.made == set(found.outcome.digests.values())
    assert len(lab.ran) == 6
    assert found.store.directory == tmp_path / "out" / "store"
    assert not found.sensitivity.claims
    assert found.results.values(Cell("NEW", "balia", "", "linux-acked")).get("goodput", flow="mp").tolist() == [
        usual("balia", rep) for rep in range(4)
    ]
    # What was read for the verdicts is not read again.
    assert found.read is found.results.read
    assert set(found.read) >= {found.outcome.digests[cell] for cell in today}
    assert replace(found, read={}) == found


@pytest.mark.parametrize(
    ("named", "experiments", "claims", "cells"),
    [
        ({"experiment": "NEW"}, ["NEW"], [], {("NEW", "lia"), ("NEW", "balia")}),
        ({"experiment": "OLD"}, ["OLD"], ["C-1"], {("OLD", "lia"), ("OLD", "olia")}),
        ({"claim": "C-1"}, [], ["C-1"], {("OLD", "lia"), ("OLD", "olia")}),
    ],
)
@pytest.mark.usefixtures("lab")
def test_a_part_of_a_paper_is_reproduced(
    library: Library,
    tmp_path: Path,
    named: dict[str, str],
    experiments: list[str],
    claims: list[str],
    cells: set[tuple[str, str]],
) -> None:
    (found,) = reproduce(library, library.choose("doe2024"), "sim", tmp_path / "out", jobs=1, **named)
    assert [experiment.id for experiment in found.experiments] == experiments
    assert [one.claim.id for one in found.claims] == claims
    assert {(cell.experiment, cell.label) for cell in found.outcome.digests} == cells


def test_papers_are_run_together_the_largest_first_and_returned_in_order(
    lab: Lab, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second paper has more repetitions: it is the first that is run, and finished."""
    papers = dict(library.papers)
    large = {name: replace(one, repetitions=30) for name, one in papers["roe2023"].experiments.items()}
    papers["roe2023"] = replace(papers["roe2023"], experiments=large)
    library = Library(papers, library.root)
    monkeypatch.setattr(sweeps, "_SWEEP_WORK", 0.0)
    told = Told()
    found = reproduce(
        library,
        library.choose("all"),
        "sim",
        tmp_path / "out",
        jobs=1,
        announce=told.announce,
        finished=told.finished,
    )
    assert told.titles == ["2 papers: doe2024, roe2023"]
    assert told.papers == ["roe2023", "doe2024"]
    assert [one.paper.id for one in found] == ["doe2024", "roe2023"]
    assert len(lab.ran) == 6 + 4
    for one in found:
        names = set(one.paper.experiments)
        assert {cell.experiment for cell in one.outcome.digests} == names


@pytest.mark.parametrize(("engine", "quick"), [("sim", True), ("sim", False), ("fluid", False)])
@pytest.mark.usefixtures("lab")
def test_a_quick_reproduction_is_one_of_packets(library: Library, tmp_path: Path, engine: str, quick: bool) -> None:
    """Equations take as long however short the run."""
    asked = True if engine == "fluid" else quick
    (found,) = reproduce(library, library.choose("doe2024"), engine, tmp_path / "out", jobs=1, quick=asked)
    assert (found.planner.quick, found.planner.engine) == (quick, engine)


@pytest.mark.usefixtures("lab")
def test_the_sensitivity_is_judged_where_it_is_asked_for_before_a_paper_is_finished(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, study, asked = Told(), Study({"C-1": None}), []  # type: ignore[dict-item]

    def judge_again(*given: Any) -> Study:
        asked.append(given)
        assert not told.papers
        return study

    monkeypatch.setattr(reproduction, "judge_again", judge_again)
    (found,) = reproduce(
        library,
        library.choose("doe2024"),
        "sim",
        tmp_path / "out",
        jobs=1,
        sensitivity=True,
        announce=told.announce,
        finished=told.finished,
    )
    assert found.sensitivity is study
    assert told.papers == ["doe2024"]
    assert asked == [(found.planner, found.paper, found.claims, found.store, 1, told.announce, None)]


# Expected verdicts

TEXT = """\
[[claim]]
id = "C-1"
statement = "expect = 'open'"
expect = "holds"

[[claim]]
id = "C-2"
expect = "fails"
"""


def test_changed_verdicts_are_written_and_said_paper_by_paper(library: Library, tmp_path: Path) -> None:
    planner = Planner(library, "sim", quick=False)
    found = []
    for name, claims in {
        "doe2024": (judged(OPEN), judged(FAILS, expect=FAILS, name="C-2")),
        "roe2023": (judged(HOLDS), judged(NOT_TESTABLE, expect=FAILS, name="C-2")),
    }.items():
        paper = library.papers[name]
        (paper.directory / "claims.toml").write_text(TEXT)
        found.append(Reproduction(paper, (), claims, planner, Store(tmp_path), Outcome()))
    assert accept.accept(found) == [
        "C-1: holds -> open; check that its why explains this",
        "C-2: fails -> not testable; check that its why explains this",
    ]
    first, second = (one.paper.directory / "claims.toml" for one in found)
    assert first.read_text() == TEXT.replace('\nexpect = "holds"', '\nexpect = "open"')
    assert second.read_text() == TEXT.replace('\nexpect = "fails"', '\nexpect = "not testable"')


def test_a_file_in_which_nothing_changes_is_not_written(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept, "write_text", lambda *_: pytest.fail("nothing changes"))
    planner = Planner(library, "sim", quick=False)
    paper = library.papers["doe2024"]
    (paper.directory / "claims.toml").write_text(TEXT)
    assert accept.accept([Reproduction(paper, (), (judged(HOLDS),), planner, Store(tmp_path), Outcome())]) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Another claim's expectation, above the id, or none at all.
        ('id = "C-2"\nexpect = "fails"', 'expect = "fails"\nid = "C-2"'),
        ('id = "C-2"\nexpect = "fails"', 'expect = "fails"'),
        ('id = "C-2"\nexpect = "fails"', 'id = "C-2"\n  expect = "fails"'),
        ('id = "C-2"\n', 'id = "C-2"\n[[claim]]\n'),
    ],
)
def test_a_claim_whose_expectation_is_not_found_is_an_error(old: str, new: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        accept.rewritten(TEXT.replace(old, new), {"C-3": OPEN, "C-2": OPEN, "C-1": FAILS}, Path("claims.toml"))
    assert str(caught.value) == (
        "claims.toml: no id followed by expect: C-2, C-3\n\n"
        'hint: each is a line of its own: id = "..." above expect = "..."'
    )


@pytest.mark.parametrize(("engine", "quick"), [("fluid", False), ("sim", True), ("kernel", True)])
def test_verdicts_of_other_runs_are_not_to_be_accepted(engine: str, quick: bool) -> None:
    with pytest.raises(MptcplabError) as caught:
        accept.check(engine, quick=quick)
    assert str(caught.value) == (
        "only a full reproduction in the simulator sets what is expected\n\nhint: leave out --quick and --engine"
    )
