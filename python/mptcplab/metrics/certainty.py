"""What the interval of a difference says: whether the repetitions justify one, and on which side of a bound it is.

An interval describes how far repetitions spread. Where those of an engine all but coincide, they are one trajectory:
one draw, however often it was repeated. How far another draw would be from it, for example with packets in another
phase, is then unknown, and the interval would be that of the other engine alone, or empty.
"""

from __future__ import annotations

ONE_TRAJECTORY = "one trajectory"
# A standard deviation (percent of the mean) below which repetitions all but coincide. That of the goodput of an
# emulated machine's repetitions, ten for each of the papers' scenarios, is either at most 0.04 %, mostly because they
# are the same to the last byte, or 0.2 % and more.
COINCIDE_PERCENT = 0.1
# A spread is negligible if the difference, or the spread of the other engine, is this many times as large. Where all
# of them are small, such as on a link that both engines keep full, the engines agree and the interval says so.
NEGLIGIBLE = 10


def is_one_trajectory(reference: float, mean: float, spread_reference: float | None, spread: float | None) -> bool:
    """Whether the repetitions of an engine all but coincide: beside their difference, or beside those of the other.

    `reference` and `mean` are the means of both engines, the spreads are in percent of them; None is unknown.

    >>> is_one_trajectory(0.59, 0.464, 12.8, 0.0), is_one_trajectory(15.46, 15.38, 0.09, 0.08)
    (True, False)
    """
    distance = abs(mean / reference - 1) * 100 if reference else abs(mean)
    return _is_negligible(spread, distance, spread_reference) or _is_negligible(spread_reference, distance, spread)


def _is_negligible(spread: float | None, distance: float, other: float | None) -> bool:
    if spread is None or spread >= COINCIDE_PERCENT:
        return False
    return NEGLIGIBLE * spread <= max(distance, other or 0.0)
