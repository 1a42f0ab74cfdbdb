"""Whether one engine gives flows of a kind more goodput than the other does, over all scenarios.

Single differences are mostly chance. One that the engines make of themselves has the same sign wherever flows of that
kind run, and the mean over many scenarios shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mptcplab.metrics.student import t_quantile
from mptcplab.studies.agreement.chance import Difference, by_scenario, standard_errors

# Of two scenarios, the spread of their means is known too badly for an interval.
FEWEST_SCENARIOS = 3


@dataclass(frozen=True)
class Tendency:
    """The mean difference (%) of some flows over scenarios, and half of its 95 % interval."""

    scenarios: int
    flows: int
    percent: float
    half: float


def of_differences(differences: Sequence[Difference], own: float) -> Tendency | None:
    """The mean of these differences; None with fewer than `FEWEST_SCENARIOS` scenarios.

    `own` is the standard deviation (%) that differences have beside their standard errors. The weight of a flow is the
    inverse of both variances together. Flows of one scenario depend on each other, so that the interval comes from the
    spread of the scenarios' means (Hartung and Knapp, "On tests of the overall treatment effect in meta-analysis with
    normally distributed responses", Statistics in Medicine 20, 2001). It is never smaller than the weights alone would
    make it (Röver, Knapp and Friede, BMC Medical Research Methodology 15, 2015).
    """
    members = by_scenario(differences)
    if len(members) < FEWEST_SCENARIOS:
        return None
    percent = np.array([difference.percent for difference in differences])
    weights = members / (standard_errors(differences) ** 2 + own**2)
    totals = weights.sum(axis=1)
    means = weights @ percent / totals
    mean = float(totals @ means / totals.sum())
    degrees = len(members) - 1
    spread = float(totals @ (means - mean) ** 2 / degrees)
    [quantile] = t_quantile(np.array([float(degrees)])).tolist()
    half = quantile * float(np.sqrt(max(1.0, spread) / totals.sum()))
    return Tendency(len(members), len(differences), mean, half)
