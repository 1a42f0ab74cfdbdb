"""The papers: the language of claims, what a cell depends on, and a reproduction that is stopped and goes on."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import threading
import time
from concurrent.futures import Executor as Pool
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from mptcplab import api
from mptcplab.errors import EngineError, MptcplabError, OutputError
from mptcplab.results import Results
from mptcplab.studies.papers import catalog
from mptcplab.studies.papers.planner import Planner, algorithm_names
from mptcplab.studies.papers.predicate import Domain, evaluate, parse, value
from mptcplab.studies.papers.reproduce import reproduce
from mptcplab.studies.papers.selectors import SelectorResolver
from mptcplab.studies.papers.treatments import treatment
from mptcplab.study import cell as cells
from mptcplab.study import sweeps, workers
from mptcplab.study.cell import Cell
from mptcplab.study.decision import Rule
from mptcplab.study.execute import Executor, Outcome
from mptcplab.study.measure import metric_values
from mptcplab.study.statistics import RESAMPLES, resamples
from mptcplab.study.store import Store
from mptcplab.study.values import CellValues, DependencyRecorder, NotTestableError
from mptcplab.sweep import Progress
from mptcplab.trace.rules import algorithms_with_dialect

LIBRARY = catalog.load()
# Values by metric and algorithm (or sweep point), different in everything that a mix-up could confuse.
VALUES = {
    ("goodput", "lia", ""): [4.0, 5.0, 6.0],
    ("goodput", "olia", ""): [7.0, 8.0, 9.5],
    ("goodput", "balia", ""): [6.5, 8.4, 9.0],
    ("retx", "lia", ""): [30.0, 50.0, 40.0],
    ("goodput", "lia", "a"): [1.0, 1.1, 1.2],
    ("goodput", "lia", "b"): [2.0, 2.1, 2.2],
    ("goodput", "lia", "c"): [4.0, 4.1, 4.4],
}
DOMAIN = Domain(("lia", "olia", "balia"), (("a", 1.0), ("b", 2.0), ("c", 4.0)))


def lookup(metric: str, keys: dict[str, str]) -> np.ndarray:
    return np.array(VALUES[metric, keys["cc"], keys.get("sweep", "")])


def verdict(text: str, tolerance: float | None = None) -> str:
    return evaluate(parse(text), lookup, DOMAIN, tolerance).verdict


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean(goodput{cc=lia}) < mean(goodput{cc=olia})", True),
        ("mean(goodput{cc=lia}) + 3.2 * 1 < mean(goodput{cc=olia})", False),
        ("min(goodput{cc=olia}) == 7 and max(goodput{cc=olia}) == 9.5", True),
        ("median(retx{cc=lia}) in [39, 41]", True),
        ("-(2 - 5) * 2 == 6", True),
        ("2 + 3 * 4 - 6 / 2 == 11", True),
        ("max(3, 7) - min(3, 7) == 4", True),
        ("argmin_cc(mean(goodput{cc=*}), over=[lia,olia,balia]) == 'lia'", True),
        ("max_cc(mean(goodput{cc=*}), over=[lia,balia]) == mean(goodput{cc=balia})", True),
        ("all(a in [olia,balia]: mean(goodput{cc=$a}) > mean(goodput{cc=lia}))", True),
        ("any(p in pairs([lia,olia,balia]): mean(goodput{cc=$p.0}) > mean(goodput{cc=$p.1}))", True),
        ("mean_sweep(mean(goodput{cc=lia,sweep=*})) in [2.45, 2.46]", True),
        ("spearman_sweep(mean(goodput{cc=lia,sweep=*})) == 1", True),
        ("r2_sweep(mean(goodput{cc=lia,sweep=*})) >= 0.99", True),
        ("abs(log(1)) == 0", True),
        ("1 < 2 < 3", True),
        ("1 < 2 < 2", False),
        ("'left' == 'right'", False),
        ("[46,19] != [46,20]", True),
        ("false", False),
    ],
)
def test_predicates_mean_what_they_say(text: str, expected: bool) -> None:
    evaluation = evaluate(parse(text), lookup, DOMAIN)
    assert Rule().decide(evaluation.statement, 1) == ("holds" if expected else "fails")


def test_a_predicate_is_as_sure_as_its_repetitions() -> None:
    """olia is ahead of lia by 3, 3 and 3.5, and of balia by 0.5, -0.4 and 0.5.

    The first difference is 19 standard errors, the second 0.67; Student's 97.5 % quantile of 2 degrees of freedom is
    4.30, and the skewness of these three asks for still more on the lower side of the second.
    """
    assert verdict("mean(goodput{cc=olia}) > mean(goodput{cc=lia})") == "holds"
    assert verdict("mean(goodput{cc=olia}) < mean(goodput{cc=lia})") == "fails"
    assert verdict("mean(goodput{cc=olia}) > mean(goodput{cc=balia})") == "open"


def test_differences_are_those_of_the_same_repetitions() -> None:
    """lia and olia vary by more than a half each, but together: their difference varies by 0.17 only."""
    assert resamples(3).shape == (RESAMPLES + 1, 3)
    assert resamples(3)[0].tolist() == [0, 1, 2]
    assert verdict("mean(goodput{cc=olia}) - mean(goodput{cc=lia}) >= 2.3") == "holds"
    assert verdict("mean(goodput{cc=olia}) - 3 >= mean(goodput{cc=lia})") == "open"


def test_equal_with_a_tolerance_and_equivalence() -> None:
    assert verdict("mean(goodput{cc=lia}) == 5", 0.6) == "holds"
    assert verdict("mean(goodput{cc=lia}) == 5", 0.3) == "open"
    assert verdict("mean(goodput{cc=lia}) != 50", 0.3) == "holds"
    # The ratio of lia to olia is 0.57, 0.63 and 0.63.
    assert verdict("equiv(mean(goodput{cc=lia}), mean(goodput{cc=olia}), 0.6)") == "holds"
    assert verdict("equiv(mean(goodput{cc=lia}), mean(goodput{cc=olia}), 0.1)") == "fails"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (
            "mean(goodput{cc=olia}) > max_cc(mean(goodput{cc=*}), over=[lia,balia])",
            "mean(goodput{cc=olia}) > mean(goodput{cc=lia}) and mean(goodput{cc=olia}) > mean(goodput{cc=balia})",
        ),
        (
            "argmax_cc(mean(goodput{cc=*}), over=[lia,olia,balia]) != 'lia'",
            "mean(goodput{cc=lia}) < mean(goodput{cc=olia}) or mean(goodput{cc=lia}) < mean(goodput{cc=balia})",
        ),
        (
            "2 - min(mean(goodput{cc=lia}), 7) / mean(goodput{cc=olia}) <= 1.5",
            "2 - mean(goodput{cc=lia}) / mean(goodput{cc=olia}) <= 1.5 and 2 - 7 / mean(goodput{cc=olia}) <= 1.5",
        ),
        (
            "abs(mean(retx{cc=lia}) - mean(goodput{cc=olia})) <= 40",
            "mean(retx{cc=lia}) - mean(goodput{cc=olia}) <= 40 and mean(goodput{cc=olia}) - mean(retx{cc=lia}) <= 40",
        ),
        (
            "-max(mean(goodput{cc=lia}), mean(goodput{cc=balia})) < 0 - 7",
            "0 - mean(goodput{cc=lia}) < 0 - 7 or 0 - mean(goodput{cc=balia}) < 0 - 7",
        ),
    ],
)
def test_the_largest_of_several_is_compared_one_by_one(text: str, meaning: str) -> None:
    """As if both ends of its interval were those of the statement that names every one of them."""
    ends = []
    for one in (text, meaning):
        evaluation = evaluate(parse(one), lookup, DOMAIN)
        ends.append(Rule().interval(evaluation.statement, evaluation.statement, 3))
    assert ends[0] == pytest.approx(ends[1])


# Repetitions in which a and b take turns at being the larger one.
TURNS = {"a": [2.0, 6.0, 9.0 - 1 / 3], "b": [8.0, 4.0, 1.0], "c": [3.0, 3.0, 7.0]}


def _turn(_: str, keys: dict[str, str]) -> np.ndarray:
    return np.array({**TURNS, "difference": [5.0, 1.0, -6.0], "two": [1.0, 2.0]}[keys["cc"]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The smaller over the larger: 2/8, 4/6 and 3/26.
        ("mean(min(rate{cc=a}, rate{cc=b}) / max(rate{cc=a}, rate{cc=b}))", (1 / 4 + 2 / 3 + 3 / 26) / 3),
        # The means, 50/9 and 39/9, hide it.
        ("min(mean(rate{cc=a}), mean(rate{cc=b})) / max(mean(rate{cc=a}), mean(rate{cc=b}))", 39 / 50),
        ("mean(abs(rate{cc=b} - rate{cc=c}))", (5 + 1 + 6) / 3),
        ("abs(mean(rate{cc=b} - rate{cc=c}))", 0.0),
        ("max(rate{cc=b} - 2 * rate{cc=c})", 2.0),
        ("min(rate{cc=b} - 2 * rate{cc=c})", -13.0),
        ("median(-rate{cc=b})", -4.0),
        ("std(rate{cc=b} + 7)", (37 / 3) ** 0.5),
        # In each repetition the largest of the three: 8, 6 and 26/3.
        ("mean(max_cc(rate{cc=*}, over=[a,b,c]))", (8 + 6 + 26 / 3) / 3),
        ("mean(min_cc(rate{cc=*}, over=[b,c]) / rate{cc=c})", (1 + 1 + 1 / 7) / 3),
    ],
)
def test_a_statistic_looks_at_every_repetition_by_itself(text: str, expected: float) -> None:
    found = evaluate(parse(f"{text} == {expected!r}".replace("== -", "== 0 - ")), _turn, DOMAIN, None)
    assert found.facts[0].held, found.facts[0]


def test_an_expression_in_a_statistic_is_judged_as_a_metric_with_its_values_would_be() -> None:
    """With the differences 5, 1 and -6 of the same repetitions, not with the spreads of both sides."""
    found = []
    for text in ("mean(rate{cc=b} - rate{cc=c}) > 0.25", "mean(rate{cc=difference}) > 0.25"):
        evaluation = evaluate(parse(text), _turn, DOMAIN)
        assert evaluation.repetitions == 3
        found.append([(fact.margin, fact.low, fact.high) for fact in evaluation.facts])
    assert found[0] == found[1]
    assert found[0][0][0] == -0.25


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mean(mean(rate{cc=a}) / rate{cc=b}) > 1", "without a statistic or a comparison"),
        ("mean((rate{cc=a} > rate{cc=b})) > 1", "without a statistic or a comparison"),
        ("mean(mean_sweep(rate{cc=a,sweep=*})) > 1", "without a statistic or a comparison"),
        ("mean(argmax_cc(rate{cc=*}, over=[a,b])) > 1", "without a statistic or a comparison"),
        ("mean(2 * 3) > 1", "no metric in it has a value per repetition"),
        ("min(4) > 1", "no metric in it has a value per repetition"),
        ("mean(rate{cc=a}, rate{cc=b}) > 1", "mean has 2 arguments"),
        ("corr_over_cc(mean(rate{cc=*})) > 1", "corr_over_cc has 1 arguments"),
        ("max_cc(mean(rate{cc=*})) > 1", "it needs over=[...]"),
        ("mean(rate{cc=a}, over=[a,b]) > 1", "over=[...] belongs to functions that range over treatments"),
    ],
)
def test_a_function_with_arguments_that_mean_nothing_is_refused(text: str, why: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        parse(text)
    assert why in str(caught.value)
    assert str(caught.value).endswith(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mean(rate{cc=*}) > 1", "nothing around it gives a value to cc=* in rate{cc=*}"),
        ("mean(rate{cc=$b}) > 1", "nothing around it gives a value to $b in $b"),
        ("mean(rate{cc=a} / rate{cc=two}) > 1", "its metrics differ in their number of repetitions"),
    ],
)
def test_a_predicate_that_cannot_be_evaluated_says_why(text: str, why: str) -> None:
    with pytest.raises(MptcplabError, match="predicate: ") as caught:
        evaluate(parse(text), _turn, DOMAIN)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("mean(goodput{cc=lia}) >=", "''"),
        ("mean(goodput{cc=lia} >= 1", "'>= 1'"),
        ("average(goodput{cc=lia}) >= 1", "'average("),
        ("all(a of [lia]: 1 < 2)", "'of [lia]"),
        ("1 < 2 ) ", "')"),
        ("1 ? 2", "'? 2"),
    ],
)
def test_a_mistake_in_a_predicate_is_shown_where_it_is(text: str, place: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"predicate: {place}")


def test_facts_are_told_with_names_filled_in() -> None:
    (fact,) = evaluate(parse("all(a in [olia]: mean(goodput{cc=$a}) > 100)"), lookup, DOMAIN).facts
    assert (fact.left, fact.operator, fact.right, fact.held) == ("mean(goodput{cc=olia})", ">", "100", False)
    assert fact.left_value.startswith("8.17 (")
    assert (fact.margin, fact.repetitions) == (pytest.approx(8.1666667 - 100), 3)
    # Standard error 0.7265, Student's quantile 4.303; the values are skewed to the right.
    assert fact.low == pytest.approx(fact.margin - 4.303 * 0.7265, rel=1e-3)
    assert fact.high > fact.margin + 4.303 * 0.7265


def test_an_allowance_for_bias_counts_the_terms_of_a_difference() -> None:
    """A fifth of 8.17, which olia's goodput is, and not of 3.17, by which it is ahead; 2 is compared either way."""
    text, rule = "mean(goodput{cc=olia}) - mean(goodput{cc=lia}) >= 2", Rule(allowance=0.2)
    (exact,) = evaluate(parse(text), lookup, DOMAIN).facts
    (short,) = evaluate(parse(text), lookup, DOMAIN, None, rule).facts
    assert exact.low - short.low == pytest.approx(0.2 * 24.5 / 3)
    assert short.high - exact.high == pytest.approx(0.2 * 24.5 / 3)
    (ratio,) = evaluate(parse("mean(retx{cc=lia}) / 2 <= 4 * mean(goodput{cc=lia})"), lookup, DOMAIN, None, rule).facts
    (plain,) = evaluate(parse("mean(retx{cc=lia}) / 2 <= 4 * mean(goodput{cc=lia})"), lookup, DOMAIN).facts
    assert plain.low - ratio.low == pytest.approx(0.2 * 20)


# The library


def test_every_claim_of_every_paper_can_be_evaluated() -> None:
    planner = Planner(LIBRARY, "sim", quick=False)
    claims = [claim for paper in LIBRARY.papers.values() for claim in paper.claims]
    assert len(claims) == 175
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        tree = parse(claim.predicate)
        if claim.experiment is None:
            evaluate(tree, lookup, Domain((), ()), claim.tolerance)
            continue
        experiment = LIBRARY.experiments[claim.experiment]
        recorder = DependencyRecorder()
        evaluate(tree, SelectorResolver(planner, recorder, experiment), Domain.of(experiment), claim.tolerance)
        for cell in recorder.cells:
            assert (
                cell.label in LIBRARY.experiments[cell.experiment].algorithms or "@" in cell.label or "-" in cell.label
            )


def test_every_claim_is_explained_unless_it_holds() -> None:
    for paper in LIBRARY.papers.values():
        for claim in paper.claims:
            if claim.expect != "holds":
                assert claim.why, f"{claim.id} is expected to be {claim.expect!r}, and nothing says why"


def test_every_cell_of_every_experiment_has_a_run_spec() -> None:
    planner = Planner(LIBRARY, "sim", quick=True)
    for experiment in LIBRARY.experiments.values():
        for label in experiment.algorithms:
            for point in experiment.labels if experiment.view_of is None else ():
                cell = Cell(experiment.id, label, point, experiment.profile, "")
                runs = planner.spec(cell).resolved()
                assert len(runs) == planner.repetitions(experiment)
        for variant in experiment.variants:
            assert planner.spec(Cell(experiment.id, "lia", "", experiment.profile, variant)).resolved()


def test_ideals_and_fairness_name_flows_that_exist() -> None:
    planner = Planner(LIBRARY, "sim", quick=False)
    for experiment in LIBRARY.experiments.values():
        topology = planner.topology(experiment)
        flows = {flow.name for flow in topology.flows}
        names = flows | {f"{flow.name}/{part.name}" for flow in topology.flows for part in flow.subflows}
        assert set(experiment.ideal) <= flows, experiment.id
        assert {n for groups in experiment.fairness.values() for group in groups for n in group} <= names, experiment.id


def test_the_papers_ideals_of_kim_are_max_min_over_subflows_where_links_are_separate() -> None:
    from mptcplab.metrics.allocation import max_min, max_min_subflows
    from mptcplab.metrics.proportional import proportional_fair

    topology = Planner(LIBRARY, "sim", quick=False).topology(LIBRARY.experiments["ADW-2"])
    rates = {name: link.rate_bps / 1e6 for name, link in topology.links.items()}
    paths = {flow.name: flow.paths for flow in topology.connections}
    assert {name: sum(parts) for name, parts in max_min_subflows(rates, paths).items()} == pytest.approx(
        {"mp": 60, "h3": 30, "h5": 30}
    )
    assert max_min(rates, paths) == pytest.approx({"mp": 40, "h3": 40, "h5": 40})
    assert proportional_fair(rates, paths) == pytest.approx({"mp": 40, "h3": 40, "h5": 40}, rel=1e-4)


def _copy(tmp_path: Path, paper: str = "dubey2023") -> Path:
    root = tmp_path / "papers"
    shutil.copytree(catalog.directory() / paper, root / paper)
    return root


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("paper.toml", 'title = "Expe', 'titel = "Expe', "paper.toml: title: missing"),
        ("paper.toml", 'profile = "linux-legacy"', 'profile = "legacy"', "profile: not right: 'legacy'"),
        ("paper.toml", 'dialect = "mptcp-0.95"', 'dialect = "0.95"', "dialect: not right: '0.95'"),
        ("paper.toml", "three-namespaces.toml", "four.toml", "DUB-3N.scenario: not right: 'four.toml'"),
        ("paper.toml", 'kind = "bars"', 'kind = "pie"', "experiments.DUB-3N.figures[0].kind: not right: 'pie'"),
        ("claims.toml", 'kind = "shape"', 'kind = "form"', "claim[0].kind: not right: 'form'"),
        ("claims.toml", 'experiment = "DUB-3N"', 'experiment = "DUB-4N"', "no such experiment: 'DUB-4N'"),
        ("claims.toml", "[[claim]]", "[[claim]]\nsure = 1", "claim[0].sure: unknown key"),
    ],
)
def test_a_mistake_in_a_papers_files_names_file_and_key(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    root = _copy(tmp_path)
    path = root / "dubey2023" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(MptcplabError) as caught:
        catalog.load(root)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


# The log of changes

_CHANGE = """[[change]]
claim = "DUB-10"
date = "2026-11-23"
before = "mean(rtt_mean{cc=wvegas}) <= 0.1 * mean(rtt_mean{cc=lia})"
after = "AFTER"
reason = "One of four."

[[change]]
claim = "DUB-10"
date = "2026-11-24"
before = "AFTER"
after = "TODAY"
reason = "All four."

[[change]]
claim = "DUB-06"
date = "2026-11-24"
what = "tolerance"
after = "0.02"
reason = "The columns differ by less."
"""


def _with_changes(tmp_path: Path, old: str = "", new: str = "") -> catalog.Library:
    root = _copy(tmp_path)
    claims = (root / "dubey2023" / "claims.toml").read_text()
    today = next(claim.predicate for claim in LIBRARY.papers["dubey2023"].claims if claim.id == "DUB-10")
    tolerance = next(claim.tolerance for claim in LIBRARY.papers["dubey2023"].claims if claim.id == "DUB-06")
    (root / "dubey2023" / "claims.toml").write_text(claims.replace(f"tolerance = {tolerance:g}", "tolerance = 0.02"))
    text = _CHANGE.replace("TODAY", today)
    assert old in text
    (root / "dubey2023" / "changes.toml").write_text(text.replace(old, new, 1) if old else text)
    return catalog.load(root)


def test_a_log_of_changes_is_read_in_file_order(tmp_path: Path) -> None:
    found = _with_changes(tmp_path).papers["dubey2023"].changes
    assert [(one.claim, one.what, one.date) for one in found] == [
        ("DUB-10", "predicate", "2026-11-23"),
        ("DUB-10", "predicate", "2026-11-24"),
        ("DUB-06", "tolerance", "2026-11-24"),
    ]
    assert (found[0].after, found[2].before, found[2].after) == ("AFTER", "", "0.02")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('claim = "DUB-10"', 'claim = "DUB-99"', "change[0].claim: no such claim: 'DUB-99'"),
        ('date = "2026-11-23"', 'date = "23.11.2026"', "change[0].date: not right: '23.11.2026'"),
        ('before = "AFTER"', 'before = "after"', "change[1].before: not right: 'after'\n\nhint: the change before it"),
        ('reason = "All four."', 'reason = " "', "change[1].reason: missing"),
        ('after = "0.02"', 'after = "0.03"', "the last change of the tolerance of DUB-06 ends with '0.03'"),
        ('what = "tolerance"', 'what = "verdict"', "change[2].what: not right: 'verdict'"),
        ('after = "0.02"', 'after = ""', "DUB-06: nothing changes"),
        ('date = "2026-11-23"', "date = 2026-11-23", "change[0].date: not right: '2026-11-23'\n\nhint: it is a text"),
        ("[[change]]", "[[chnage]]", "chnage: unknown key"),
        ("min_cc", "max_cc", "the last change of the predicate of DUB-10 ends with"),
    ],
)
def test_a_log_of_changes_that_does_not_fit_the_claims_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(MptcplabError) as caught:
        _with_changes(tmp_path, old, new)
    assert "changes.toml" in str(caught.value)
    assert message in str(caught.value)


def test_every_change_of_a_predicate_left_one_that_parses() -> None:
    for paper in LIBRARY.papers.values():
        for change in paper.changes:
            if change.what == "predicate":
                parse(change.after)


# What is compared


def _dialects(planner: Planner, cell: Cell) -> set[str]:
    """The dialects of the multipath connection's algorithm, if it has some."""
    algorithms = [flow["cc"] for flow in planner.spec(cell).resolved()[0]["flows"] if flow["transport"] == "mptcp"]
    knowing = [cc for cc in algorithms if cc["name"] in algorithms_with_dialect()]
    return {"mptcp-0.95" if cc["params_raw"].get("dialect") else "spec" for cc in knowing}


def test_all_treatments_of_an_experiment_run_in_the_papers_dialect_and_today_in_none() -> None:
    planner, seen = Planner(LIBRARY, "sim", quick=True), set()
    for experiment in (one for one in LIBRARY.experiments.values() if not one.view_of):
        for label in experiment.algorithms:
            for profile, wanted in ((experiment.profile, experiment.dialect), (catalog.TODAY, "spec")):
                found = _dialects(planner, Cell(experiment.id, label, experiment.labels[0], profile))
                assert found <= {wanted}, f"{experiment.id} {label} {profile}"
                seen |= {(experiment.paper, label, *found)}
    text = planner.spec(Cell("DOL-1", "dolia-text", "", "linux-legacy"))
    assert text.cc == "dolia(gamma=text, dialect=mptcp-0.95)"
    assert ("lubna2021", "dolia", "mptcp-0.95") in seen
    assert ("kim2021", "adw-balia", "mptcp-0.95") in seen
    assert ("dubey2023", "wvegas", "mptcp-0.95") in seen
    assert {one for one in seen if one[0] in ("kushwah2024", "wischik2011") and "mptcp-0.95" in one} == set()


def test_an_experiment_may_have_another_dialect_and_equations_have_none(tmp_path: Path) -> None:
    path = _copy(tmp_path) / "dubey2023/paper.toml"
    text = path.read_text()
    path.write_text(text.replace('scenario = "beside-tcp.toml"', 'scenario = "beside-tcp.toml"\ndialect = "spec"', 1))
    library = catalog.load(path.parents[1])
    assert [one.dialect for one in library.experiments.values()] == ["mptcp-0.95", "mptcp-0.95", "spec"]
    cell = Cell("DUB-3N", "olia", "", "linux-legacy")
    assert _dialects(Planner(library, "sim", quick=True), cell) == {"mptcp-0.95"}
    assert _dialects(Planner(library, "sim", quick=True), replace(cell, experiment="DUB-CMP")) == {"spec"}
    assert Planner(library, "fluid", quick=True).spec(cell).cc == "olia"


@pytest.mark.parametrize(
    ("experiment", "label", "cc", "transport", "paths"),
    [
        ("DOL-2", "ref-tcp@sf2", "cubic", "tcp", [("B2", "e2")]),
        ("ADW-2", "ref-tcp@sf2", "reno", "tcp", [("m2", "N2", "x2")]),
        ("ZUH-S1", "tcp-cubic@3g", "cubic", "tcp", [("core_s", "GD", "ran_l")]),
        ("ADW-1", "independent-reno", "reno", "tcp", [("m1", "SB", "x2")]),
        ("ADW-1", "uncoupled-reno", "reno", "mptcp", [("m1", "SB", "x2"), ("m2", "SB", "x2")]),
        ("DOL-1", "dolia-text", "dolia(gamma=text)", "mptcp", [("B1", "e1"), ("B2", "e2")]),
        ("KK-TCP", "sctp", None, "cmt-sctp", [("i1", "core", "o1")]),
        ("KK-TCP", "cmt-sctp", None, "cmt-sctp", [("i1", "core", "o1"), ("i2", "core", "o2")]),
        ("WIS-TRI", "ewtcp", "ewtcp(weight=fair)", None, None),
        ("ZUH-C1", "rx-balia", "lia", "mptcp", [("core_s", "WD", "ap_l"), ("core_s", "GD", "ran_l")]),
    ],
)
def test_a_label_changes_the_multipath_connection_and_nothing_else(
    experiment: str, label: str, cc: str | None, transport: str | None, paths: list[tuple[str, ...]] | None
) -> None:
    planner = Planner(LIBRARY, "sim", quick=True)
    found = LIBRARY.experiments[experiment]
    point = found.labels[0]
    spec = planner.spec(Cell(experiment, label, point, catalog.TODAY, ""))
    assert spec.cc == cc
    before, after = planner.topology(found), spec.topology
    others = [(f.name, f.cc, f.paths) for f in before.flows if f.name != "mp" and len(f.subflows) == 1]
    assert [(f.name, f.cc, f.paths) for f in after.flows if f.name != "mp" and len(f.subflows) == 1] == others
    if paths is not None:
        (flow,) = (flow for flow in after.flows if flow.name == "mp")
        assert (flow.transport, list(flow.paths)) == (transport, paths)


def test_a_label_that_nothing_stands_for_is_refused() -> None:
    topology = Planner(LIBRARY, "sim", quick=True).topology(LIBRARY.experiments["DOL-1"])
    with pytest.raises(MptcplabError, match="no such algorithm or treatment: 'uncoupled-oila'"):
        treatment("uncoupled-oila", topology, algorithm_names())
    with pytest.raises(MptcplabError, match="flow mp has no subflow 'sf3'; it has sf1, sf2"):
        treatment("ref-tcp@sf3", topology, algorithm_names())


# What a result is stored by


def _digest(cell: Cell, library: catalog.Library = LIBRARY, *, quick: bool = True) -> str:
    planner = Planner(library, "sim", quick)
    return planner.spec(cell).digest("sim")


def test_a_changed_algorithm_touches_its_own_results_only(monkeypatch: pytest.MonkeyPatch) -> None:
    olia, lia = (Cell("DOL-2", cc, "q100", "rfc", "") for cc in ("olia", "lia"))
    before = _digest(olia), _digest(lia)
    sources = {entry["name"]: entry["source"] for entry in json.loads(cells._core.algorithms_json())}
    monkeypatch.setattr(cells, "algorithm_digests", lambda: {**sources, "olia": "changed"})
    assert _digest(olia) != before[0]
    assert _digest(lia) == before[1]
    # The CUBIC flow beside it is part of what ran.
    monkeypatch.setattr(cells, "algorithm_digests", lambda: {**sources, "cubic": "changed"})
    assert _digest(lia) != before[1]


def test_a_digest_tells_apart_what_differs_and_joins_what_does_not() -> None:
    cell = Cell("ADW-2", "lia", "", "linux-pre4", "")
    others = [
        Cell("ADW-2", "lia", "", "linux-pre4", "", 1),
        Cell("ADW-2", "lia", "", "rfc", ""),
        Cell("ADW-CUB-N", "lia", "", "linux-pre4", ""),
        Cell("ADW-LOSS-N", "lia", "p0.1", "linux-pre4", ""),
    ]
    digests = {_digest(other) for other in [cell, *others]}
    assert len(digests) == 1 + len(others)
    # The same network under another name, and a sweep point that changes nothing, are the same runs.
    assert _digest(Cell("ADW-F2B", "lia", "", "linux-pre4", "")) == _digest(cell)
    assert _digest(cell, quick=False) != _digest(cell)


# Values


def test_values_of_two_blocks_follow_one_another() -> None:
    def block(values: list[float | None]) -> pl.DataFrame:
        row = {"span": "", "metric": "goodput", "flow": "mp", "subflow": None, "link": None}
        return pl.DataFrame([{"rep": i, **row, "value": value} for i, value in enumerate(values)])

    both = CellValues.of([block([1.0, None]), block([3.0, 4.0])])
    assert both.repetitions == 4
    found = both.get("goodput", flow="mp")
    assert found[[0, 2, 3]].tolist() == [1.0, 3.0, 4.0]
    assert np.isnan(found[1])
    assert np.isnan(both.get("goodput", flow="tcp")).all()


class _Fixed:
    """A source with the same values for every cell."""

    def __init__(self, values: dict[tuple[str, str, str | None, str | None, str | None], list[float]]) -> None:
        self.found = CellValues(2, {key: np.array(value) for key, value in values.items()})

    def values(self, _: Cell) -> CellValues:
        return self.found


def _rate(flow: str, subflow: str | None, values: list[float], span: str = "") -> dict:
    return {(span, "throughput", flow, subflow, None): values}


def test_a_resolver_answers_by_flow_subflow_group_and_span() -> None:
    planner = Planner(LIBRARY, "sim", quick=True)
    values = _rate("mp", None, [9.0, 18.0]) | _rate("mp", "sf1", [4.0, 8.0]) | _rate("mp", "sf2", [5.0, 10.0])
    values |= _rate("h3", None, [6.0, 4.0]) | _rate("h5", None, [5.0, 5.0])
    values |= {("", "loss", None, None, "N1"): [1.0, 3.0], ("", "loss", None, None, "N2"): [2.0, 4.0]}
    resolve = SelectorResolver(planner, _Fixed(values), LIBRARY.experiments["ADW-2"])
    assert resolve("throughput", {"cc": "lia", "sf": "sf1+sf2"}).tolist() == [9.0, 18.0]
    assert resolve("throughput_kBps", {"flow": "h3"}).tolist() == [750.0, 500.0]
    assert resolve("ratio_wire", {"flow": "mp"}).tolist() == [9.0 / 60, 18.0 / 60]
    assert resolve("share", {"sf": "sf2"}).tolist() == pytest.approx([5 / 9, 5 / 9])
    assert resolve("loss_ratio", {"links": "N1/N2"}).tolist() == [0.5, 0.75]
    # The mean over both links; in the first repetition (4 + 6)^2 / (2 (16 + 36)) and (5 + 5)^2 / (2 * 50).
    assert resolve("jain", {"flows": "nsb"})[0] == pytest.approx((100 / 104 + 1) / 2)
    assert resolve("jain", {"flows": "[mp,h3,h5]"})[0] == pytest.approx(20**2 / (3 * (81 + 36 + 25)))
    with pytest.raises(NotTestableError, match="goodput has no value in ADW-2"):
        resolve("goodput", {"flow": "mp"})
    with pytest.raises(MptcplabError, match=r"^no such flow: 'h7'\n\nhint: one of \*, h3, h5, mp"):
        resolve("throughput", {"flow": "h7"})


def test_the_number_of_subflows_is_that_of_the_trace() -> None:
    """Of three subflows one gets no data in the second repetition, and one gets none at all."""
    values = {("", "pps", "mp", None, None): [12.0, 7.0], ("", "pps", "h3", "1", None): [4.0, 4.0]}
    for name, rates in {"1": [5.0, 6.0], "2": [7.0, 0.0], "3": [0.0, 0.0]}.items():
        values["", "pps", "mp", name, None] = rates
    resolve = SelectorResolver(Planner(LIBRARY, "sim", quick=True), _Fixed(values), LIBRARY.experiments["ADW-2"])
    assert resolve("subflows", {"flow": "mp"}).tolist() == [2, 1]
    # A subflow that never came into being has no data; a repetition that does not count has no number.
    for name, rates in {"1": [5.0, np.nan], "2": [np.nan, np.nan], "3": [3.0, np.nan]}.items():
        values["", "pps", "mp", name, None] = rates
    resolve = SelectorResolver(Planner(LIBRARY, "sim", quick=True), _Fixed(values), LIBRARY.experiments["ADW-2"])
    with pytest.raises(NotTestableError, match="subflows is missing in 1 of 2 repetitions"):
        resolve("subflows", {"flow": "mp"})
    with pytest.raises(NotTestableError, match="subflows has no value"):
        resolve("subflows", {"flow": "h5"})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"flw": "mp"}, "no such key: 'flw'\n\nhint: one of bin, cc, exp, flow"),
        ({"exp": "ADW-9"}, "no such exp: 'ADW-9'"),
        (
            {"exp": "ADW-RTT-N", "sweep": "rtt30"},
            "no such sweep: 'rtt30'\n\nhint: one of rtt10, ",
        ),
        ({"profile": "linux"}, "no such profile: 'linux'"),
        ({"variant": "unitB"}, "no such variant: 'unitB'"),
        ({"phase": "3"}, "no such part of the run: 'phase 3'"),
        ({"link": "N3"}, "no such link: 'N3'"),
        ({"links": "N1/SB"}, "no such links: 'SB'"),
        ({"flow": "mp", "sf": "sf1+sf3"}, "no such subflow of mp: 'sf3'\n\nhint: one of sf1, sf2"),
    ],
)
def test_a_key_of_a_selector_that_means_nothing_is_refused(keys: dict[str, str], message: str) -> None:
    """Also where no value is known yet, which is how the claims of the library are checked."""
    resolve = SelectorResolver(Planner(LIBRARY, "sim", quick=True), DependencyRecorder(), LIBRARY.experiments["ADW-2"])
    with pytest.raises(MptcplabError) as caught:
        resolve("throughput", keys)
    assert str(caught.value).startswith(message)


def test_a_metric_that_claims_do_not_have_is_an_error_that_lists_them() -> None:
    resolve = SelectorResolver(Planner(LIBRARY, "sim", quick=True), DependencyRecorder(), LIBRARY.experiments["ADW-2"])
    with pytest.raises(MptcplabError, match="no such metric in claims and figures: 'gootput'") as caught:
        resolve("gootput", {"flow": "mp"})
    assert "goodput" in str(caught.value)


def test_active_flows_are_those_that_live_through_the_whole_bin() -> None:
    planner = Planner(LIBRARY, "sim", quick=True)
    values = {}
    for i in range(1, 6):
        values |= _rate(f"tcp{i}", None, [float(i), 2.0 * i], "bin 2")
    resolve = SelectorResolver(planner, _Fixed(values), LIBRARY.experiments["DOL-SC"])
    # From 40 s to 60 s three CUBIC flows are there.
    assert resolve("throughput", {"flow": "tcp_active", "bin": "2"}).tolist() == [2.0, 4.0]


def test_a_value_is_that_of_the_sample_among_all_resamples() -> None:
    """To the last digit: a reason must not show another number than the comparison beside it."""
    points = [(f"p{i}", i + 0.3) for i in range(11)]
    values = {label: 0.1 + np.sin(np.arange(9) * x) ** 2 for label, x in points}
    domain = Domain((), points)
    for function in ("mean_sweep", "spearman_sweep", "r2_sweep"):
        tree = parse(f"{function}(mean(goodput{{sweep=*}}))", "expression")
        found = value(tree, lambda _, keys: values[keys["sweep"]], domain)
        statement = parse(f"{function}(mean(goodput{{sweep=*}})) > 0")
        margin = evaluate(statement, lambda _, keys: values[keys["sweep"]], domain).facts[0].margin
        assert found == margin, function


# A reproduction


def _small(tmp_path: Path) -> catalog.Library:
    """Dubey's paper with shorter runs of fewer algorithms."""
    root = _copy(tmp_path)
    path = root / "dubey2023" / "paper.toml"
    text = path.read_text().replace("[experiments.DUB-3N]", '[experiments.DUB-3N]\nsettings = { duration = "5 s" }')
    path.write_text(text)
    return catalog.load(root)


def test_a_reproduction_goes_on_where_it_was_and_is_the_same(tmp_path: Path) -> None:
    library = _small(tmp_path)

    def run(out: str, jobs: int) -> list:
        papers = library.choose("dubey2023")
        return reproduce(library, papers, "sim", tmp_path / out, experiment="DUB-3N", quick=True, jobs=jobs)

    (first,) = run("a", 2)
    assert first.outcome.made
    assert not first.outcome.reused
    (again,) = run("a", 1)
    assert (again.outcome.made, again.outcome.reused) == (set(), first.outcome.made)
    assert again.claims == first.claims
    # What is gone is made again, and only that.
    store = tmp_path / "a" / "store"
    lost = sorted(store.glob("*.json"))[0]
    lost.unlink()
    (third,) = run("a", 2)
    assert (third.outcome.made, third.outcome.reused) == ({lost.stem}, first.outcome.made - {lost.stem})
    assert third.claims == first.claims
    assert not list(store.glob("*.partial"))
    (elsewhere,) = run("b", 1)
    assert elsewhere.claims == first.claims
    for name in sorted(path.name for path in store.iterdir()):
        assert (store / name).read_bytes() == (tmp_path / "b" / "store" / name).read_bytes(), name
    record = json.loads(next(store.glob("*.json")).read_text())["record"]
    assert record["engine"] == "sim"
    assert "mp" in {entry["flow"] for entry in record["subflow_cc"]}


def test_papers_that_are_run_together_keep_their_results_apart() -> None:
    mine, other = Cell("DUB-3N", "lia"), Cell("KIM-1", "olia")
    digests = {mine: "a", replace(mine, block=1): "b", replace(mine, label="wvegas"): "c", other: "d"}
    both = Outcome(digests, {"c": "no such rule", "d": "no such rule"}, {"b", "d"}, {"a"})
    found = both.of({mine, replace(mine, label="wvegas")})
    assert found == Outcome(
        {cell: digests[cell] for cell in digests if cell != other}, {"c": "no such rule"}, {"b"}, {"a"}
    )


def test_what_an_engine_refuses_is_not_testable_and_says_why(tmp_path: Path) -> None:
    library = _small(tmp_path)
    papers = library.choose("dubey2023")
    (found,) = reproduce(library, papers, "fluid", tmp_path / "out", experiment="DUB-3N", quick=True, jobs=1)
    by_id = {verdict.claim.id: verdict for verdict in found.claims}
    wvegas = by_id["DUB-09"]
    assert wvegas.verdict == "not testable"
    assert "wvegas" in wvegas.findings[0].reason
    assert found.outcome.refused


def test_a_full_disk_ends_a_reproduction_and_leaves_whole_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two results the second has room for one of its two files: nothing of it stays."""
    library = _small(tmp_path)
    room, opened = [3], Path.open

    def open_(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        if mode[0] in "wx":
            room[0] -= 1
            if room[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, mode, *args, **options)

    monkeypatch.setattr(Path, "open", open_)
    store = Store(tmp_path / "store")
    store.prepare()
    store.put("one", {"engine": "sim"}, values=pl.DataFrame({"a": [1]}))
    said = r"cannot store a result in .*: No space left on device\n\nhint: what is stored stays"
    with pytest.raises(OutputError, match=said):
        store.put("two", {"engine": "sim"}, values=pl.DataFrame({"a": [2]}))
    assert sorted(path.name for path in store.directory.iterdir()) == ["one.json", "one.values.parquet"]
    papers = library.choose("dubey2023")
    # Also where a run's own directory has no room: that is no verdict.
    with pytest.raises(OutputError, match="No space left on device"):
        reproduce(library, papers, "sim", tmp_path / "out", experiment="DUB-3N", quick=True, jobs=2)


def test_the_fluid_s_processes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes, each with sweeps of one result, keep what one process does."""
    library = _small(tmp_path)
    papers = library.choose("dubey2023")
    asked = []

    def noted(workers: int, *, processes: bool) -> Pool:
        asked.append((workers, processes))
        return begin(workers, processes=processes)

    begin = workers._pool
    monkeypatch.setattr(workers, "_pool", noted)
    (one,) = reproduce(library, papers, "fluid", tmp_path / "one", experiment="DUB-3N", jobs=1)
    monkeypatch.setattr(sweeps, "_SWEEP_WORK", 0.0)
    (two,) = reproduce(library, papers, "fluid", tmp_path / "two", experiment="DUB-3N", jobs=2)
    assert asked == [(2, True)]
    assert one.claims == two.claims
    kept = sorted((tmp_path / "one" / "store").iterdir())
    assert kept
    for path in kept:
        assert path.read_bytes() == (tmp_path / "two" / "store" / path.name).read_bytes(), path.name


def test_what_is_measured_at_once_is_what_a_kept_trace_has(tmp_path: Path) -> None:
    scenario = Path(__file__).parents[2] / "scenarios/dolia-scenario-1.toml"
    settings = (("duration", '"13 s"'),)
    spec = cells.RunSpec(scenario, "olia", None, 3, 5, settings, ("goodput", "throughput"))
    store = Store(tmp_path / "store")
    store.prepare()
    assert sweeps.run_sweep([sweeps.Task("one", spec, 1.0)], "sim", store) == {}
    kept = api.run(scenario, "olia", 3, 5, settings=dict(settings), out=tmp_path / "kept", progress=False)
    expected = metric_values(kept, spec.metrics).drop("run")
    assert store.table("one", "values").equals(expected)
    assert expected["value"].n_unique() > 10


def test_cells_that_are_run_together_are_stored_as_if_each_were_run_alone(tmp_path: Path) -> None:
    scenario = Path(__file__).parents[2] / "scenarios/dolia-scenario-1.toml"
    short = cells.RunSpec(scenario, "olia", None, 3, 5, (("duration", '"13 s"'),), ("goodput", "loss", "rtt_mean"))
    specs = [
        short,
        replace(short, cc="lia", repetitions=2, settings=(("duration", '"12 s"'), ("links.B1.rate", '"7 Mbit/s"'))),
        replace(short, cc="balia", time_series=True),
        # One run of one flow: what has a single row must not be computed in another way.
        replace(short, cc=None, repetitions=1, seed=9, settings=(*short.settings, ("cc", '"reno"'))),
    ]
    tasks = [sweeps.Task(f"{number:032x}", spec, 1.0 + number) for number, spec in enumerate(specs)]
    together = sweeps.sweeps(tasks, "sim")
    assert [sorted(task.digest for task in sweep) for sweep in together] == [[task.digest for task in tasks]]
    stores = Store(tmp_path / "together"), Store(tmp_path / "alone")
    for store, some in zip(stores, (together, [[task] for task in tasks]), strict=True):
        store.prepare()
        assert [sweeps.run_sweep(sweep, "sim", store) for sweep in some] == [{}] * len(some)
    contents = [store.files() for store in stores]
    assert contents[0] == contents[1]
    assert len(set(contents[0].values())) == 2 * len(tasks) + 1


def test_a_sweep_ends_as_soon_as_it_has_enough_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_SWEEP_WORK", 10.0)
    spec = cells.RunSpec(Path("x.toml"), "olia", None, 4, 5)
    work = (4.0, 5.0, 6.0, 30.0, 2.0)
    tasks = [sweeps.Task(str(n), replace(spec, seed=n), one) for n, one in enumerate(work)]
    tasks.append(sweeps.Task("other", replace(spec, scenario=Path("y.toml")), 3.0))
    found = [[task.digest for task in sweep] for sweep in sweeps.sweeps(tasks, "sim")]
    assert found == [["3"], ["0", "1", "2"], ["other"], ["4"]]


def test_finished_runs_of_an_interrupted_cell_on_a_kernel_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The simulator takes the kernel's place: a kernel's runs would take their time."""
    scenario = Path(__file__).parents[2] / "scenarios/dolia-scenario-1.toml"
    spec = cells.RunSpec(scenario, "olia", None, 40, 5, (("duration", '"123 s"'),), ("goodput",))
    store = Store(tmp_path / "store")
    store.prepare()

    stop, calls = threading.Event(), []

    def run(*words: Any, engine: str, progress: Progress, **named: Any) -> Results:
        assert engine == "kernel"
        calls.append(engine)

        def watch(finished: int, *rest: Any) -> None:
            if finished and len(calls) == 1:
                stop.set()
            progress(finished, *rest)

        return api.run(*words, progress=watch, **named)

    monkeypatch.setattr(sweeps, "run", run)
    task = sweeps.Task("0123", spec, 1.0)
    with pytest.raises(KeyboardInterrupt):
        sweeps.run_sweep([task], "kernel", store, stop)
    stop.clear()
    assert not store.has("0123")
    capsys.readouterr()
    assert sweeps.run_sweep([task], "kernel", store, stop) == {}
    assert re.search(r"found \d+ of 40 runs in \S*store.unfinished/0123.partial; making \d+", capsys.readouterr().err)
    assert store.table("0123", "values")["rep"].unique().to_list() == list(range(40))
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_on_a_kernel_every_cell_is_measured_as_soon_as_its_runs_are_made() -> None:
    spec = cells.RunSpec(Path("x.toml"), "olia", None, 4, 5)
    tasks = [sweeps.Task("a", spec, 2.0), sweeps.Task("b", replace(spec, cc="lia"), 3.0)]
    assert sweeps.sweeps(tasks, "sim") == [tasks]
    for engine in ("kernel", "vm:bookworm"):
        assert sweeps.sweeps(tasks, engine) == [[tasks[1]], [tasks[0]]]


def test_a_process_that_ends_is_an_error_with_a_hint() -> None:
    with pytest.raises(EngineError, match=r"process that solved the fluid.s equations has ended\n\nhint: .*--jobs 1"):
        list(workers.each(os._exit, [3, 4], 2, processes=True))


def test_no_more_begin_than_may_run_and_none_after_an_error() -> None:
    """The third of six fails; with two at a time, the fourth may have begun by then, but no other."""
    begun = []

    def task(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise ValueError(item)
        return 10 * item

    seen = []
    with pytest.raises(ValueError, match="3"):
        seen += workers.each(task, [1, 2, 3, 4, 5, 6], 2, processes=False)
    assert begun[:3] == [1, 2, 3]
    assert set(begun) <= {1, 2, 3, 4}


def test_tasks_begin_while_the_caller_is_busy_and_those_of_one_load_in_their_order() -> None:
    """Two run until all are there; then the others begin, two of which were added first, without the caller."""
    begun: list[int] = []
    all_added = threading.Event()

    def task(item: int) -> None:
        begun.append(item)
        all_added.wait(20)

    with workers.Tasks(task, 2) as tasks:
        tasks.add([11, 12, 13])
        tasks.add([21, 22], first=True)
        all_added.set()
        deadline = time.monotonic() + 20
        while len(begun) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert set(begun[:2]) == {11, 12}
        assert begun[2] in (21, 22)
        assert sorted(item for item, _ in tasks.results()) == [11, 12, 13, 21, 22]


def test_what_is_added_while_results_are_looked_at_is_run_or_read_as_well(tmp_path: Path) -> None:
    """Blocks of one cell, each added when the one before is there: two are made, then two more, then all are read."""
    library = _small(tmp_path)
    planner = Planner(library, "sim", quick=True)
    cell = Cell("DUB-3N", "lia", "", library.experiments["DUB-3N"].profile)
    store = Store(tmp_path / "store")
    store.prepare()
    for most, made, reused in ((2, 2, 0), (4, 2, 2), (4, 0, 4)):
        executor = Executor(planner.spec, "sim", store, 2, None)
        with executor:
            executor.add([cell])
            for _ in executor.finished():
                known = len(executor.outcome.digests)
                if executor.has(replace(cell, block=block) for block in range(known)) and known < most:
                    executor.add([replace(cell, block=known)])
        assert (len(executor.outcome.made), len(executor.outcome.reused)) == (made, reused)
        assert executor.has(replace(cell, block=block) for block in range(most))
        assert not executor.has([replace(cell, block=most)])


def test_the_fluid_has_no_shorter_answer(tmp_path: Path) -> None:
    library = _small(tmp_path)
    papers = library.choose("dubey2023")
    for engine, shortens in (("fluid", False), ("sim", True)):
        place = tmp_path / engine
        (found,) = reproduce(library, papers, engine, place, experiment="DUB-3N", quick=True, jobs=1)
        assert found.planner.quick == shortens


# What is asked for


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paper": "kim2012"}, "no such paper: 'kim2012'\n\nhint: all, or one of dubey2023, kim2021"),
        ({"paper": "kim2021", "experiment": "ADW-9"}, "no such experiment of kim2021: 'ADW-9'\n\nhint: one of ADW-F2A"),
        ({"paper": "all", "experiment": "ADW-1"}, "an experiment is one of a paper's: 'ADW-1'"),
        ({"paper": "kim2021", "engine": "ns3"}, "no such engine: 'ns3'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        api.reproduce(**arguments, out=tmp_path / "out")
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "out").exists()
