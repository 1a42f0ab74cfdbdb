"""Student's t distribution: the table of a few degrees of freedom, and what SciPy computes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import t

from mptcplab.metrics.student import t_quantile


def test_quantiles_are_those_of_scipy_in_the_table_and_beyond() -> None:
    for degrees in (np.arange(1.0, 30.0), np.arange(1.0, 60.0), np.array([2.5, 7.25])):
        assert t_quantile(degrees) == pytest.approx(t.ppf(0.975, degrees), rel=1e-13)
    assert t_quantile(np.array([4.0]), 0.9) == pytest.approx(t.ppf(0.95, 4), rel=1e-13)


def test_without_degrees_of_freedom_there_is_no_quantile() -> None:
    found = t_quantile(np.array([0.0, 3.0, -1.0, np.nan, 1.0]))
    assert np.isnan(found).tolist() == [True, False, True, True, False]
    assert found[[1, 4]] == pytest.approx(t.ppf(0.975, [3, 1]), rel=1e-13)
    assert t_quantile(np.array([])).size == 0


def test_few_repetitions_need_no_scipy() -> None:
    code = "import sys, numpy; from mptcplab.metrics.student import t_quantile; t_quantile(numpy.array([0.0, 29.0]))"
    code += "; sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
