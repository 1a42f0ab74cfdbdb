"""Whether an engine favours a kind of flow: against results by hand, and engines that are known to do so."""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from mptcplab.studies.agreement.chance import Difference
from mptcplab.studies.agreement.matrix import ALL_FLOWS, ONE, SEVERAL, Matrix, has_several_subflows
from mptcplab.studies.agreement.page import page
from mptcplab.studies.agreement.tendency import of_differences

_AGREEMENT = Path("docs/agreement/agreement.json")
# Of 10 repetitions: the quantile with which an interval has a standard error of 1 %.
_HALF = 2.262157162798205


def test_the_mean_of_three_scenarios_by_hand() -> None:
    """The weight of a flow is 1/(1+3) or 1/(4+3), and a scenario counts with the sum of its flows' weights."""
    found = of_differences(
        [
            Difference("a", 6.0, _HALF, 10),
            Difference("a", 2.0, _HALF, 10),
            Difference("b", -4.0, _HALF, 10),
            Difference("c", 7.0, 2 * _HALF, 10),
        ],
        sqrt(3),
    )
    assert found is not None
    weights, means = np.array([1 / 2, 1 / 4, 1 / 7]), np.array([4.0, -4.0, 7.0])
    mean = (weights * means).sum() / weights.sum()
    spread = (weights * (means - mean) ** 2).sum() / 2
    assert spread > 1
    assert (found.scenarios, found.flows) == (3, 4)
    assert found.percent == pytest.approx(mean)
    # 4.303 is the quantile of two degrees of freedom.
    assert found.half == pytest.approx(4.302652729911275 * sqrt(spread / weights.sum()))


def test_scenarios_that_agree_by_chance_do_not_make_the_interval_vanish() -> None:
    found = of_differences([Difference(name, 1.5, _HALF, 10) for name in "abcd"], 0)
    assert found is not None
    # Four standard errors of 1 %, and the quantile of three degrees of freedom.
    assert (found.percent, found.half) == (pytest.approx(1.5), pytest.approx(3.182446305284263 / 2))


def test_two_scenarios_say_nothing() -> None:
    assert of_differences([Difference(name, 1.0, 2.0, 10) for name in "aabb"], 1) is None


@pytest.mark.parametrize("favour", [0.0, 3.0])
def test_an_engine_that_favours_flows_is_found(favour: float) -> None:
    random = np.random.default_rng(5)
    found = []
    for _ in range(200):
        flows = []
        for k in range(12):
            # What one flow of a scenario loses, another one gains.
            chance = random.normal(0, 4)
            error = _HALF * 4
            flows += [Difference(f"scenario {k}", favour + sign * chance, error, 10) for sign in (1, -1)[: 1 + k % 2]]
        one = of_differences(flows, 0)
        assert one is not None
        found.append(one)
    assert np.mean([one.percent for one in found]) == pytest.approx(favour, abs=0.25)
    covered = sum(abs(one.percent - favour) <= one.half for one in found)
    assert covered >= 186, f"{covered} of 200 intervals have it"


def test_flows_are_told_apart_by_their_subflows() -> None:
    server = "papers/wischik2011/server.toml"
    assert [has_several_subflows(server, flow) for flow in ("m-1", "ta-1", "nobody")] == [True, False, False]


def test_the_page_has_every_kind_of_flow_that_runs_in_three_scenarios() -> None:
    matrix = Matrix.from_json(_AGREEMENT.read_text(encoding="utf-8"))
    chance = matrix.chance()
    assert chance is not None
    found = matrix.tendencies(chance.own)
    assert list(found)[:3] == [ALL_FLOWS, SEVERAL, ONE]
    assert found[ALL_FLOWS].flows == chance.flows == found[SEVERAL].flows + found[ONE].flows
    by_algorithm = [one.flows for kind, one in found.items() if kind.startswith(f"{SEVERAL}, ")]
    assert by_algorithm == sorted(by_algorithm, reverse=True)
    assert 0 < sum(by_algorithm) <= found[SEVERAL].flows
    text = page(matrix, with_figure=False)
    for kind, one in found.items():
        assert f"| {kind} | {one.flows} | {one.scenarios} | {one.percent:+.1f} ± {one.half:.1f} % |" in text


def test_round_trip_times_have_a_tendency_of_their_own() -> None:
    matrix = Matrix.from_json(_AGREEMENT.read_text(encoding="utf-8"))
    found = matrix.tendency_of_delays()
    assert found is not None
    rows = [row for entry in matrix.compared for row in entry.delays if row.interval and row.difference is not None]
    assert found.flows == len(rows) > 100
    # A mean of them, with whatever weights.
    assert min(row.difference or 0 for row in rows) < found.percent < max(row.difference or 0 for row in rows)
    assert f"; mean difference {found.percent:+.1f} ± {found.half:.1f} %." in page(matrix, with_figure=False)
