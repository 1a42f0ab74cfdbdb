"""Papers on several engines: verdicts side by side, from findings that a test says, and through a whole call."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mptcplab import api
from mptcplab.studies.papers import catalog
from mptcplab.studies.papers.catalog import Claim
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.report import side_by_side as pages
from mptcplab.studies.papers.report import write_side_by_side
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.studies.papers.side_by_side import Relation, SideBySide, side_by_side
from mptcplab.study.cell import Cell
from mptcplab.study.execute import Outcome
from mptcplab.study.store import Store
from mptcplab.study.verdict import Finding, Verdict

HOLDS, FAILS, OPEN, NOT_TESTABLE = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN, Verdict.NOT_TESTABLE
PAPER = """\
title = "Two rules"
cite = "Doe 2024"
about = "Two rules."
profile = "rfc"

[experiments.PAIR]
title = "A pair"
where = "section 3"
scenario = "pair.toml"
algorithms = ["lia", "olia", "balia"]
"""
SCENARIO = """\
duration = "10 s"
cc = "lia"

[links]
A = { from = "S", to = "D", rate = "8 Mbit/s", delay = "10 ms", queue = "20 packets" }

[flows.mp]
paths = [["A"]]
"""
# By claim: the verdicts on the simulator and on a machine.
VERDICTS = {
    "C-1": (HOLDS, HOLDS),
    "C-2": (HOLDS, FAILS),
    "C-3": (OPEN, FAILS),
    "C-4": (FAILS, NOT_TESTABLE),
    "C-5": (OPEN, OPEN),
    "C-6": (FAILS, HOLDS),
}


@pytest.fixture
def found(tmp_path: Path) -> list[Reproduction]:
    """Two engines' reproductions of one paper, the second a quick one."""
    folder = tmp_path / "papers" / "doe2024"
    folder.mkdir(parents=True)
    for name, text in (("pair.toml", SCENARIO), ("paper.toml", PAPER), ("claims.toml", "")):
        (folder / name).write_text(text)
    library = catalog.load(tmp_path / "papers")
    (paper,) = library.choose("doe2024")
    printed = Claim("C-0", "doe2024", "consistency", "Printed", "1 == 2", FAILS, None)
    store = Store(tmp_path / "store")
    return [
        Reproduction(
            paper,
            tuple(paper.experiments.values()),
            (
                JudgedClaim(printed, (Finding("", (HOLDS, FAILS)[number]),)),
                *(_judged(name, both[number], 3 + number) for name, both in VERDICTS.items()),
            ),
            Planner(library, engine, number == 1),
            store,
            Outcome(),
        )
        for number, engine in enumerate(("sim", "vm:bookworm"))
    ]


def _judged(name: str, verdict: Verdict, repetitions: int) -> JudgedClaim:
    claim = Claim(name, "doe2024", "shape", f"Statement | of {name}", "1 < 2", HOLDS, "PAIR")
    # The opposite under today's rules, which have no say here.
    today = Finding("linux-acked", FAILS if verdict == HOLDS else HOLDS)
    own = Finding("rfc", verdict, reason=f"{name} {verdict}", repetitions=repetitions, provisional=repetitions == 4)
    return JudgedClaim(claim, (own, today))


@pytest.mark.parametrize(
    ("verdicts", "relation"),
    [
        ([FAILS, FAILS], Relation.SAME),
        ([NOT_TESTABLE, NOT_TESTABLE], Relation.SAME),
        ([HOLDS, FAILS], Relation.OPPOSITE),
        ([HOLDS, NOT_TESTABLE, FAILS], Relation.OPPOSITE),
        ([HOLDS, OPEN], Relation.UNDECIDED),
        ([OPEN, NOT_TESTABLE], Relation.UNTESTED),
        ([HOLDS, NOT_TESTABLE, OPEN], Relation.UNTESTED),
    ],
)
def test_how_verdicts_are_related(verdicts: list[Verdict], relation: Relation) -> None:
    assert Relation.of(verdicts) == Relation.of(verdicts[::-1]) == relation


def test_claims_stand_side_by_side_but_those_that_need_no_run(found: list[Reproduction]) -> None:
    (one,) = side_by_side(found)
    assert one.engines == ["sim", "vm:bookworm"]
    assert [(each.claim.id, each.relation.name) for each in one.claims] == [
        ("C-1", "SAME"),
        ("C-2", "OPPOSITE"),
        ("C-3", "UNDECIDED"),
        ("C-4", "UNTESTED"),
        ("C-5", "SAME"),
        ("C-6", "OPPOSITE"),
    ]
    assert [each.claim.id for each in one.with_relation(Relation.OPPOSITE)] == ["C-2", "C-6"]
    with pytest.raises(ValueError, match="shorter"):
        SideBySide.of([found[0], replace(found[1], claims=found[1].claims[:3])])


def test_the_terminal_counts_them_and_names_the_opposite_ones(found: list[Reproduction]) -> None:
    compared = side_by_side(found)
    assert pages.table(compared).rows == (("doe2024", "2", "2", "1", "1", "6"),)
    assert pages.lines(compared) == [
        "C-2  holds on sim, provisional: fails on vm:bookworm: Statement | of C-2",
        "C-6  fails on sim, provisional: holds on vm:bookworm: Statement | of C-6",
    ]
    data = pages.by_engine(compared)
    assert {engine: list(papers) for engine, papers in data.items()} == {
        "sim": ["doe2024"],
        "vm:bookworm": ["doe2024"],
    }
    assert [claim["verdict"] for claim in data["vm:bookworm"]["doe2024"]] == [FAILS, *(b for _, b in VERDICTS.values())]


def test_the_pages_say_what_differs(found: list[Reproduction], tmp_path: Path) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"
    out.mkdir()
    index = write_side_by_side(found, out, "mptcplab reproduce doe2024 --engine sim,vm:bookworm", docs)
    assert index == out / "index.html"
    html = index.read_text()
    assert 'href="vm-bookworm/doe2024.html#C-2"' in html
    assert html.count("<h4>") == 4
    # The machine's reproduction was a quick one.
    assert html.count("A quick reproduction") == 1
    rows = {row["claim"]: row for row in json.loads((out / "verdicts.json").read_text())}
    assert list(rows) == list(VERDICTS)
    assert rows["C-3"] == {
        "paper": "doe2024",
        "claim": "C-3",
        "statement": "Statement | of C-3",
        "expect": "holds",
        "relation": "open on some engine",
        "schedulers": {},
        "engines": {
            "sim": {"verdict": "open", "provisional": False, "repetitions": 3, "measured": "C-3 open"},
            "vm:bookworm": {"verdict": "fails", "provisional": True, "repetitions": 4, "measured": "C-3 fails"},
        },
    }
    (page,) = docs.iterdir()
    assert page.name == "doe2024-engines.md"
    text = page.read_text()
    assert text.startswith(
        "# Two rules: sim and vm:bookworm\n\n"
        "<!-- Generated by `mptcplab reproduce doe2024 --engine sim,vm:bookworm`; do not edit. -->\n"
    )
    assert "| 2 | 2 | 1 | 1 | 6 |" in text
    assert "| C-1 | ✓ holds | ✓ holds | Statement \\| of C-1 |" in text
    assert "| [C-2](#c-2-opposite) | ✓ holds | ✕ fails | Statement \\| of C-2 |" in text
    assert (
        "### C-2: opposite\n\nStatement \\| of C-2\n\n- sim, 3 repetitions: holds: `C-2 holds`\n"
        "- vm:bookworm, 4 repetitions: provisional: fails: `C-2 fails`\n" in text
    )
    assert text.count("### C-") == 4


def test_a_claim_names_schedulers_that_are_not_the_same(found: list[Reproduction], tmp_path: Path) -> None:
    own, other, further = (Cell("PAIR", label) for label in ("lia", "olia", "balia"))
    schedulers = [
        {own: {"mp": "minrtt", "up": "linger"}, other: {"mp": "redundant"}, further: {"tail": "blest"}},
        {own: {"mp": "linger", "up": "linger", "tail": "linger"}, other: {"mp": "ecf"}, further: {"tail": "linger"}},
    ]
    for number, (one, of) in enumerate(zip(found, schedulers, strict=True)):
        one.store.prepare()
        for cell, names in of.items():
            digest = f"{number}{cell.label}"
            # Further repetitions of a cell have a part in the verdict, and those of another cell have none.
            one.outcome.digests[replace(cell, block=1 if cell == own else 0)] = digest
            record = dict.fromkeys(("engine", "engine_version", "build", "profile", "seed"), "same")
            one.store.put(digest, {**record, "scheduler": {"tcp": None, **names}})
    cells = frozenset({own, other})
    judged = [replace(one, claims=tuple(replace(claim, cells=cells) for claim in one.claims)) for one in found]
    (compared,) = side_by_side(judged)
    assert compared.schedulers(compared.claims[1]) == {"mp": {"sim": "minrtt, redundant", "vm:bookworm": "ecf, linger"}}
    tmp_path.joinpath("out").mkdir()
    write_side_by_side(judged, tmp_path / "out", "mptcplab", tmp_path / "docs")
    line = "Packet scheduler of mp: minrtt, redundant on sim, ecf, linger on vm:bookworm."
    assert (tmp_path / "docs" / "doe2024-engines.md").read_text().count(f"- {line}") == 4
    assert (tmp_path / "out" / "index.html").read_text().count(f"<li>{line}</li>") == 4


def test_engines_that_agree_have_no_list_of_differences(found: list[Reproduction], tmp_path: Path) -> None:
    same = [replace(one, claims=one.claims[:2]) for one in found]
    tmp_path.joinpath("out").mkdir()
    write_side_by_side(same, tmp_path / "out", "mptcplab", tmp_path / "docs")
    assert "differ" not in (tmp_path / "docs" / "doe2024-engines.md").read_text()
    assert "differ" not in (tmp_path / "out" / "index.html").read_text().partition("</style>")[2]


def test_a_call_with_several_engines_runs_each(tmp_path: Path) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"
    found = api.reproduce("dubey2023", "fluid,sim", "DUB-3N", quick=True, out=out, docs=docs)
    assert [one.planner.engine for one in found] == ["sim", "fluid"]
    assert {path.name for path in out.iterdir()} == {"sim", "fluid", "index.html", "verdicts.json"}
    assert [path.name for path in docs.iterdir()] == ["dubey2023-engines.md"]
    for engine in ("sim", "fluid"):
        records = [json.loads(file.read_text())["record"] for file in (out / engine / "store").glob("*.json")]
        assert {record["engine"] for record in records} == {engine}
        assert f"--engine {engine}" in (out / engine / "index.html").read_text() or engine == "sim"
    origin = "<!-- Generated by `mptcplab reproduce dubey2023 --engine sim,fluid --experiment DUB-3N --quick`"
    assert origin in (docs / "dubey2023-engines.md").read_text()
