"""How far engines differ beside chance: against simulated engines whose own difference is known."""

import numpy as np
import pytest

from mptcplab.studies.agreement.chance import Chance, Difference, of_differences

# Per scenario: repetitions of the engine with fewer, flows, and the standard deviation of a flow's goodput (%).
_SCENARIOS = [(4 + k % 7, 2 + k % 5, 3 + 4.5 * (k % 4)) for k in range(36)]
_REFERENCE_REPS = 60


def _compared(own: float, seed: int) -> Chance:
    """Two engines whose means differ by a normal variable with the standard deviation `own` (%)."""
    random = np.random.default_rng(seed)
    found = []
    for k, (reps, flows, spread) in enumerate(_SCENARIOS):
        for _ in range(flows):
            one = random.normal(random.normal(0, own), spread, reps)
            other = random.normal(0, spread, _REFERENCE_REPS)
            error = np.sqrt(one.var(ddof=1) / reps + other.var(ddof=1) / _REFERENCE_REPS)
            # The quantile of so many repetitions, as an interval has it.
            quantile = {4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}[reps]
            found.append(Difference(f"scenario {k}", float(one.mean() - other.mean()), float(quantile * error), reps))
    chance = of_differences(found, 10)
    assert chance is not None
    return chance


def test_equal_engines_differ_by_what_chance_does() -> None:
    found = [_compared(0, seed) for seed in range(20)]
    flows = sum(flows for _, flows, _ in _SCENARIOS)
    assert {one.flows for one in found} == {flows}
    # Standard errors of few repetitions are too small half of the time, which takes them for a small difference.
    assert np.mean([one.own for one in found]) < 1.5
    assert np.mean([one.own_interval[0] for one in found]) < 0.6
    assert np.mean([one.median for one in found]) == pytest.approx(np.mean([o.equal_median for o in found]), rel=0.1)
    assert np.mean([one.beyond for one in found]) == pytest.approx(np.mean([o.equal_beyond for o in found]), rel=0.25)
    assert np.median([one.worst for one in found]) == pytest.approx(np.median([o.equal_worst for o in found]), rel=0.25)


@pytest.mark.parametrize("own", [4.0, 9.0])
def test_the_engines_own_difference_is_found(own: float) -> None:
    found = [_compared(own, seed) for seed in range(20)]
    assert np.mean([one.own for one in found]) == pytest.approx(own, rel=0.12)
    covered = sum(low <= own <= high for low, high in (one.own_interval for one in found))
    assert covered >= 16, f"{covered} of 20 intervals have it"
    assert found[0].own_median == pytest.approx(0.6745 * found[0].own, rel=1e-4)
    # Equal engines would differ less than these.
    assert all(one.median > one.equal_median for one in found)


def test_few_scenarios_say_nothing() -> None:
    few = [Difference(f"scenario {k}", 2.0 + k, 5.0, 7) for k in range(9)]
    assert of_differences(few, 10) is None
    assert of_differences([*few, Difference("another", -3.0, 4.0, 10)], 10) is not None


def test_two_known_differences_by_hand() -> None:
    """Standard errors of 1 %, differences of 3 and 1 %: 9/(1+t²) + 1/(1+t²) = 2 for each pair, so t² is 4."""
    pairs = [
        Difference(f"scenario {k}", (-1) ** k * (3 if j else 1), 2.262157162798205, 10)
        for k in range(10)
        for j in (0, 1)
    ]
    found = of_differences(pairs, 2)
    assert found is not None
    assert (found.own, found.own_interval) == (pytest.approx(2), pytest.approx((2, 2)))
    assert (found.median, found.beyond, found.worst) == (2, 10, 3)
    # Half of a normal variable's distances are below 0.674, and 4.55 % beyond 2.
    assert found.equal_median == pytest.approx(0.6745, rel=1e-3)
    assert found.equal_beyond == pytest.approx(20 * 0.0455, rel=1e-3)
    # The worst of twenty: (erf(w/√2))^20 is a half at 2.12.
    assert found.equal_worst == pytest.approx(2.121, rel=1e-3)
