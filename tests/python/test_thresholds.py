"""Rules of metrics and verdicts exactly at their thresholds, where a wrong comparison shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from mptcplab.metrics.fairness import _jain
from mptcplab.metrics.window import weighted_mean, with_valid
from mptcplab.studies.papers import catalog
from mptcplab.studies.papers.catalog import Claim
from mptcplab.studies.papers.claims import ClaimJudge, JudgedClaim
from mptcplab.studies.papers.planner import Planner
from mptcplab.studies.papers.predicate import Domain, evaluate, parse
from mptcplab.study.cell import Cell
from mptcplab.study.decision import Margin, Rule
from mptcplab.study.execute import Executor
from mptcplab.study.store import Store
from mptcplab.study.verdict import Finding, Verdict

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN

# Metrics


def mean_of(rows: list[tuple[int, float | None]], until: int = 100) -> float | None:
    """The time-weighted mean of samples (t, x) in a window that ends at `until`."""
    frame = pl.DataFrame(rows, schema={"t_ns": pl.Int64, "x": pl.Float64}, orient="row")
    return with_valid(frame.with_columns(t1=until, entity=0)).select(weighted_mean("x")).item()


def test_a_sample_counts_until_the_next_and_the_last_until_the_window_ends() -> None:
    # 10 for 20 ns, 40 for 30 ns, 70 for 50 ns.
    assert mean_of([(0, 10.0), (20, 40.0), (50, 70.0)]) == pytest.approx((200 + 1200 + 3500) / 100)
    # A window that begins later, and a last sample at its end, which counts for no time.
    assert mean_of([(60, 10.0), (90, 50.0)]) == pytest.approx((300 + 500) / 40)
    assert mean_of([(0, 10.0), (100, 99.0)]) == pytest.approx(10)
    assert mean_of([(100, 99.0)]) is None
    assert mean_of([(0, 10.0), (20, None), (50, 70.0)]) is None


def test_an_index_of_fairness_needs_two_connections_that_were_all_measured() -> None:
    rows = [(0, "a", 3.0), (1, "a", 1.0), (1, "b", 3.0), (2, "a", 5.0), (2, "b", None), (3, "a", 2.0), (3, "b", 2.0)]
    found = _jain(pl.DataFrame(rows, schema={"run": pl.UInt32, "flow": pl.String, "x": pl.Float64}, orient="row"))
    # One connection says nothing, and neither do two of which one is unknown. (1 + 3)^2 / (2 (1 + 9)) = 0.8.
    assert dict(found.iter_rows()) == {1: pytest.approx(0.8), 3: pytest.approx(1.0)}


# Decisions


def test_an_interval_that_touches_the_bound_holds_and_does_not_fail() -> None:
    rule = Rule(allowance=0.125)
    # The allowance is 0.125 of 16; a margin of 2 leaves exactly nothing.
    cases = {2.0: HOLDS, 1.9375: OPEN, 0.0: OPEN, -2.0: OPEN, -2.0625: FAILS}
    for value, verdict in cases.items():
        assert rule.decide(Margin(value, scale=16.0), 10) == verdict, value


@pytest.mark.parametrize(
    ("predicate", "held"),
    [
        # A margin of a quarter: from 1 - 1/4 to 1 / (1 - 1/4), both included.
        ("equiv(3, 4, 0.25)", True),
        ("equiv(2.99, 4, 0.25)", False),
        ("equiv(4, 3, 0.25)", True),
        ("equiv(4.01, 3, 0.25)", False),
        # Above 1 + 1/4.
        ("equiv(1.3, 1, 0.25)", True),
        ("equiv(5, 5, 0.25)", True),
    ],
)
def test_two_quantities_are_equivalent_if_neither_is_less_than_the_margin_below_the_other(
    predicate: str, held: bool
) -> None:
    found = evaluate(parse(predicate), lambda *_: pytest.fail("no metric"), Domain((), ()))
    assert (found.held, found.verdict) == (held, HOLDS if held else FAILS)


# Claims


LIBRARY = catalog.load()
CLAIMS = [claim for paper in LIBRARY.papers.values() for claim in paper.claims if claim.experiment][:4]


def judged(claim: Claim, *found: Verdict) -> JudgedClaim:
    return JudgedClaim(claim, tuple(Finding("", verdict) for verdict in found))


@pytest.mark.parametrize("expected", list(Verdict))
@pytest.mark.parametrize("found", list(Verdict))
def test_a_verdict_is_changed_if_it_is_another_and_reversed_if_it_is_the_opposite(
    expected: Verdict, found: Verdict
) -> None:
    one = judged(replace(CLAIMS[0], expect=expected), found)
    assert one.changed == (expected != found)
    assert one.reversed == ((expected, found) in {(HOLDS, FAILS), (FAILS, HOLDS)})


def test_a_claim_depends_on_the_profile_if_one_holds_and_one_fails() -> None:
    assert judged(CLAIMS[0], HOLDS, OPEN, FAILS).profile_dependent
    assert judged(CLAIMS[0], FAILS, HOLDS).profile_dependent
    for same in ((HOLDS, HOLDS), (FAILS, OPEN), (HOLDS, OPEN), (OPEN,), (FAILS, Verdict.NOT_TESTABLE)):
        assert not judged(CLAIMS[0], *same).profile_dependent
    # The first decides.
    assert judged(CLAIMS[0], OPEN, HOLDS).verdict == OPEN


class Recorder(Executor):
    """Notes which cells are asked for, and has them at once."""

    def add(self, cells: Iterable[Cell], *, first: bool = False) -> None:
        self.asked.append(([(cell.label, cell.block) for cell in cells], first))

    def has(self, cells: Iterable[Cell]) -> bool:
        return not any(cell.label in self.missing for cell in cells)

    asked: list[tuple[list[tuple[str, int]], bool]]
    missing: tuple[str, ...]


class Scripted(ClaimJudge):
    """Finds what the test says: by claim, a verdict for every number of blocks."""

    scripts: dict[str, list[Verdict]]
    read_blocks: list[tuple[str, str | None, int]]

    def _cells(self, claim: Claim, _profile: str | None) -> frozenset[Cell]:
        return frozenset({Cell("X", claim.id, "", "rfc")})

    def _rule(self, _claim: Claim, _profile: str | None) -> Rule:
        return Rule(looks=3)

    def _profiles(self, _claim: Claim) -> list[str | None]:
        return [None, "linux-acked", "linux-legacy"]

    def _reason_cells(self, _claim: Claim) -> set[Cell]:
        return set()

    def _reason(self, _claim: Claim, _source: object) -> tuple[str, bool]:
        return "", True

    def _finding(self, claim: Claim, profile: str | None, blocks: int) -> Finding:
        self.read_blocks.append((claim.id, profile, blocks))
        return Finding(profile or "own", self.scripts[claim.id][blocks - 1] if profile is None else OPEN)


def scripted(directory: Path, scripts: dict[str, list[Verdict]], missing: tuple[str, ...] = ()) -> Scripted:
    executor = Recorder(lambda _: pytest.fail("nothing is run"), "sim", Store(directory), 1, None)
    executor.asked, executor.missing = [], missing
    judge = Scripted(Planner(LIBRARY, "sim", quick=False), executor)
    object.__setattr__(judge, "scripts", scripts)
    object.__setattr__(judge, "read_blocks", [])
    judge.ask(CLAIMS)
    return judge


def test_open_claims_get_more_repetitions_as_often_as_they_may_and_no_others(tmp_path: Path) -> None:
    first, second, third, last = (claim.id for claim in CLAIMS)
    scripts = {
        first: [HOLDS],
        second: [OPEN, FAILS],
        # Decided at the third look, the last one that it may have.
        third: [OPEN, OPEN, HOLDS],
        last: [OPEN, OPEN, OPEN],
    }
    judge = scripted(tmp_path, scripts)
    for _ in range(4):
        judge.look()

    assert judge.is_settled(CLAIMS, ())
    found = [judge.judged(claim) for claim in CLAIMS]
    assert [one.verdict for one in found] == [HOLDS, FAILS, HOLDS, OPEN]
    # Further repetitions come before what others wait for.
    assert judge.executor.asked == [
        ([(name, 1) for name in sorted((second, third, last))], True),
        ([(name, 2) for name in sorted((third, last))], True),
        ([], True),
        ([], True),
    ]
    # Another profile is judged once, on the first block; the paper's own on as many as there are.
    assert sorted(judge.read_blocks, key=str) == sorted(
        [
            *((name, None, blocks + 1) for name, script in scripts.items() for blocks in range(len(script))),
            *((name, profile, 1) for name in scripts for profile in ("linux-acked", "linux-legacy")),
        ],
        key=str,
    )
    assert [finding.name for finding in found[1].findings] == ["own", "linux-acked", "linux-legacy"]


def test_a_claim_is_judged_when_its_results_are_there_and_not_when_those_of_others_are(tmp_path: Path) -> None:
    first, second, third, last = (claim.id for claim in CLAIMS)
    scripts = {first: [HOLDS], second: [OPEN, OPEN, FAILS], third: [FAILS], last: [HOLDS]}
    judge = scripted(tmp_path, scripts, missing=(third,))
    judge.look()
    assert judge.is_settled([CLAIMS[0], CLAIMS[3]], ())
    assert not judge.is_settled([CLAIMS[1]], ())
    assert not judge.is_settled([CLAIMS[2]], ())
    # Two claims that are not decided yet: what they look at may get more repetitions, and nothing else.
    assert not judge.is_settled([CLAIMS[0]], {Cell("X", second, "", "rfc")})
    assert not judge.is_settled([CLAIMS[0]], {Cell("X", third, "", "rfc")})
    assert judge.is_settled([CLAIMS[0]], {Cell("X", first, "", "rfc"), Cell("X", last, "", "rfc")})
    judge.look()
    judge.look()
    assert judge.is_settled([CLAIMS[1]], {Cell("X", second, "", "rfc")})
    assert (third, None, 1) not in judge.read_blocks
