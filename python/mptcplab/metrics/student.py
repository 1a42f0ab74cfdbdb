"""Quantiles of Student's t distribution, and intervals of means.

SciPy computes them. To import it takes a fifth of a second and 27 MB, so those that nearly all results need, of 95 %
intervals of at most 30 repetitions, are a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CONFIDENCE = 0.95
# Two-sided quantiles of `CONFIDENCE` for 1, 2, 3, ... degrees of freedom: `scipy.special.stdtrit(degrees, 0.975)`.
_OF_FEW = (
    12.706204736174694,
    4.302652729749462,
    3.1824463052837078,
    2.7764451051977934,
    2.5705818356363146,
    2.4469118511449786,
    2.364624251592784,
    2.306004135204166,
    2.262157162798205,
    2.228138851986274,
    2.200985160091639,
    2.1788128296672284,
    2.1603686564627913,
    2.144786687917804,
    2.131449545559776,
    2.1199052992212546,
    2.1098155778333156,
    2.1009220402410382,
    2.0930240544083087,
    2.085963447265864,
    2.0796138447276795,
    2.0738730679040254,
    2.0686576104190486,
    2.0638985616280245,
    2.0595385527532972,
    2.0555294386428735,
    2.0518305164802846,
    2.0484071417952454,
    2.045229642132703,
)


def t_quantile(degrees: np.ndarray, confidence: float = CONFIDENCE) -> np.ndarray:
    """Two-sided quantile of Student's t; NaN where there are no degrees of freedom.

    >>> float(t_quantile(np.array([4.0]))[0].round(3))
    2.776
    """
    usable = np.where(degrees > 0, degrees, np.nan)
    known = usable[~np.isnan(usable)]
    if confidence == CONFIDENCE and np.isin(known, np.arange(1, len(_OF_FEW) + 1)).all():
        quantiles: np.ndarray = np.array([np.nan, *_OF_FEW])[np.nan_to_num(usable).astype(int)]
        return quantiles
    from scipy.special import stdtrit

    computed: np.ndarray = stdtrit(usable, 0.5 + confidence / 2)
    return computed


def half_of_mean(values: np.ndarray | Sequence[float], confidence: float = CONFIDENCE) -> float | None:
    """Half of the interval of the mean of independent values; None of fewer than two.

    >>> round(half_of_mean([1.0, 3.0]), 3)
    12.706
    """
    n = len(values)
    if n < 2:
        return None
    quantile = float(t_quantile(np.array([n - 1.0]), confidence)[0])
    deviation = float(np.std(values, ddof=1))
    half: float = quantile * deviation / n**0.5
    return half
