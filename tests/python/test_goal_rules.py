"""The three goals of RFC 6356 as rules on numbers: margins worked by hand, and what each rule asks for."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mptcplab.errors import MptcplabError
from mptcplab.metrics.goals import GoalResult, balance, do_no_harm, improve

rate = st.floats(0.01, 1e4)
NAN = float("nan")


@pytest.mark.parametrize(("goodput", "passed"), [(7.5, True), (7.6, True), (7.4, False)])
def test_goal_1_compares_with_the_best_path_and_includes_the_bound(goodput: float, passed: bool) -> None:
    # A tolerance of a quarter, exact in binary: 7.5 of 10 is just enough.
    verdict = improve(goodput, {"wifi": 4.0, "lte": 10.0}, tolerance=0.25)
    assert (verdict.name, verdict.met) == ("improve", passed)
    assert verdict.margin == pytest.approx(goodput / 10 - 0.75)
    assert verdict.text == f"{goodput / 10:.2f} of one TCP on lte"


def test_a_twentieth_may_be_missing_where_nobody_says_otherwise() -> None:
    assert improve(0.76, {"wifi": 0.8}).margin == pytest.approx(0)
    assert do_no_harm({"x": 0.7}, {"a": {"x": 0.8}}, {"a": ["x"]}).margin == pytest.approx(0.875 - 0.95)


def test_goal_1_asks_for_nothing_where_one_tcp_gets_nothing() -> None:
    assert improve(0.0, {"wifi": 0.0}) == GoalResult("improve", True, None, "one TCP gets nothing on any path")


def test_goal_1_without_a_reference_is_an_error() -> None:
    with pytest.raises(MptcplabError, match="goal 1 needs the goodput of one TCP on each path"):
        improve(3.0, {})


def test_goal_2_is_decided_by_the_competitor_that_suffers_most() -> None:
    beside_tcp = {"a": {"x": 8.0, "y": 20.0}, "b": {"x": 10.0, "y": 16.0}}
    # x shares both paths: 6/8 and 6/10; y only b: 13/16. Beside TCP on a, y would have had 20.
    verdict = do_no_harm({"x": 6.0, "y": 13.0}, beside_tcp, {"a": ["x"], "b": ["x", "y"]}, tolerance=0.25)
    assert not verdict.met
    assert verdict.margin == pytest.approx(0.6 - 0.75)
    assert verdict.text == "x gets 0.60 of what one TCP on b leaves it"
    verdict = do_no_harm({"x": 6.0, "y": 13.0}, beside_tcp, {"a": ["x"], "b": ["y"]}, tolerance=0.25)
    assert (verdict.met, verdict.margin) == (True, 0.0)


def test_goal_2_asks_for_nothing_without_anybody_to_harm() -> None:
    assert do_no_harm({}, {"a": {}}, {"a": []}).margin is None
    starved = do_no_harm({"x": 0.0}, {"a": {"x": 0.0}}, {"a": ["x"]})
    assert (starved.met, starved.margin) == (True, None)


def test_goal_2_names_what_is_missing() -> None:
    with pytest.raises(MptcplabError, match=r"REF-TCP of path 'b' is missing\n\nhint: given were: 'a'"):
        do_no_harm({"x": 1.0}, {"a": {"x": 1.0}}, {"b": ["x"]})
    with pytest.raises(MptcplabError, match=r"REF-TCP\(a\), goodput of competitor 'y' is missing"):
        do_no_harm({"y": 1.0}, {"a": {"x": 1.0}}, {"a": ["y"]})


MET = [GoalResult("improve", True, 0.5, ""), GoalResult("do no harm", True, None, "")]


def test_goal_3_compares_the_load_of_the_worst_bottleneck_with_uncoupled_reno() -> None:
    verdict = balance({"l1": 1.0, "l2": 4.0}, {"l1": 9.0, "l2": 6.0}, {"l1": 5.0, "l2": 8.0}, MET)
    assert (verdict.met, verdict.worst, verdict.cbi) == (True, "l2", 0.25)
    assert verdict.shift == verdict.margin == 0.25
    same = balance({"l1": 1.0, "l2": 4.0}, {"l1": 9.0, "l2": 0.75}, {"l1": 5.0, "l2": 0.75}, MET)
    assert (same.met, same.margin) == (True, 0.0)
    more = balance({"l1": 1.0, "l2": 4.0}, {"l1": 9.0, "l2": 10.0}, {"l1": 5.0, "l2": 8.0}, MET)
    assert (more.met, more.margin) == (False, -0.25)
    assert more.text == "l2 loses most (balance 0.25) and carries 1.25 of the uncoupled load"


def test_goal_3_is_not_met_where_another_goal_fails() -> None:
    harmed = GoalResult("do no harm", False, -0.125, "")
    verdict = balance({"l1": 1.0, "l2": 4.0}, {"l2": 6.0}, {"l2": 8.0}, [MET[0], harmed])
    assert (verdict.met, verdict.margin, verdict.shift) == (False, -0.125, 0.25)
    assert verdict.text.endswith("; do no harm fails")
    both = balance({"l1": 1.0, "l2": 4.0}, {"l2": 6.0}, {"l2": 8.0}, [harmed, GoalResult("improve", False, -0.5, "")])
    assert both.text.endswith("; do no harm fails")


@pytest.mark.parametrize(
    ("losses", "cbi"),
    [({"l1": 3.0, "l2": 2.0}, 2 / 3), ({"l1": 0.0, "l2": 0.0}, None), ({"l1": 5.0}, None), ({}, None)],
)
def test_goal_3_asks_for_nothing_where_losses_are_alike(losses: dict[str, float], cbi: float | None) -> None:
    verdict = balance(losses, {}, {}, [GoalResult("improve", False, -1.0, "")])
    assert (verdict.met, verdict.margin, verdict.shift) == (True, None, None)
    assert verdict.cbi == cbi


def test_goal_3_applies_where_one_bottleneck_loses_nothing() -> None:
    verdict = balance({"l1": 0.0, "l2": 0.5}, {"l2": 3.0}, {"l2": 4.0}, MET)
    assert (verdict.cbi, verdict.margin) == (0.0, 0.25)
    alone = balance({"l1": 0.0, "l2": 0.5}, {"l2": 3.0}, {"l2": 0.0}, MET)
    assert (alone.met, alone.margin, alone.text) == (True, None, "uncoupled Reno leaves l2 alone")


def test_goal_3_applies_where_a_loss_is_more_than_half_again_as_large() -> None:
    assert balance({"l1": 3.0, "l2": 2.0}, {"l1": 7.0}, {"l1": 8.0}, MET).margin is None
    assert balance({"l1": 3.25, "l2": 2.0}, {"l1": 7.0}, {"l1": 8.0}, MET).margin == 0.125


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (lambda: improve(NAN, {"a": 4.0}), "goal 1: goodput of the multipath flow"),
        (lambda: improve(3.0, {"a": 4.0, "b": NAN}), "goal 1: goodput of one TCP on 'b'"),
        (
            lambda: do_no_harm({"x": 3.0, "y": 6.0}, {"a": {"x": NAN, "y": 9.0}}, {"a": ["x", "y"]}),
            "goal 2: REF-TCP(a), goodput of competitor 'x'",
        ),
        (
            lambda: do_no_harm({"x": 3.0, "y": NAN}, {"a": {"x": 4.0, "y": 9.0}}, {"a": ["x", "y"]}),
            "goal 2: goodput of competitor 'y'",
        ),
        (lambda: balance({"l1": NAN, "l2": 4.0}, {"l2": 6.0}, {"l2": 8.0}, MET), "goal 3: loss of link 'l1'"),
        (lambda: balance({"l1": 4.0, "l2": NAN}, {"l1": 6.0}, {"l1": 8.0}, MET), "goal 3: loss of link 'l2'"),
        (lambda: balance({"l1": 1.0, "l2": 4.0}, {"l2": NAN}, {"l2": 8.0}, MET), "goal 3: load of link 'l2'"),
        (lambda: balance({"l1": 1.0, "l2": 4.0}, {"l2": 6.0}, {"l2": NAN}, MET), "goal 3: uncoupled load of link 'l2'"),
    ],
)
def test_what_was_not_measured_is_an_error(judge: Callable[[], GoalResult], said: str) -> None:
    """A competitor or a bottleneck without a number was left out, as if the goal asked for nothing there."""
    with pytest.raises(MptcplabError, match=f"^{re.escape(said)} is not a number\n\nhint: "):
        judge()


@given(got=rate, one=rate, other=rate, factor=st.floats(0.1, 10), tolerance=st.floats(0, 0.5))
def test_margins_do_not_depend_on_the_unit(
    got: float, one: float, other: float, factor: float, tolerance: float
) -> None:
    base = improve(got, {"a": one, "b": other}, tolerance)
    scaled = improve(got * factor, {"a": one * factor, "b": other * factor}, tolerance)
    assert base.margin is not None and scaled.margin == pytest.approx(base.margin, abs=1e-9, rel=1e-9)
    assert base.met == (base.margin >= 0)
    harm = do_no_harm({"c": got}, {"a": {"c": one}, "b": {"c": other}}, {"a": ["c"], "b": ["c"]}, tolerance)
    # The best path of goal 1 is the strictest comparison of goal 2.
    assert harm.margin == pytest.approx(base.margin)
