"""What the interval of a difference says: whether the repetitions justify one, and on which side of a bound it is.

An interval describes how far repetitions spread. Where those of an engine all but coincide, they are one trajectory:
one draw, however often it was repeated. How far another draw would be from it, for example with packets in another
phase, is then unknown, and the interval would be that of the other engine alone, or empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mptcplab.capabilities import engine_of

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


def spreads(row: Mapping[str, Any], reference: str) -> dict[str, float | None]:
    """`spread_reference` and `spread` of a row of `differences` from the engine `reference`, without those of fluids.

    The repetitions of a fluid coincide unless the scenario itself is random: they have no trajectory that another draw
    would change.
    """
    engines = {"spread_reference": reference, "spread": row["engine"]}
    return {name: row[name] if engine_of(engine).has_packets else None for name, engine in engines.items()}


def half_of(row: Mapping[str, Any], reference: str) -> float | None:
    """Half of the interval of a row of `differences`, or None where the repetitions of an engine are one trajectory."""
    one = is_one_trajectory(row["reference"], row["mean"], **spreads(row, reference))
    return None if one else row["half"]


@dataclass(frozen=True)
class Counts:
    """How many differences are inside and outside of their bounds by the point estimate.

    `whole_inside` and `whole_outside` are those of them whose whole interval is on that side, `unknown` those without
    an interval.
    """

    inside: int = 0
    whole_inside: int = 0
    outside: int = 0
    whole_outside: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, differences: Iterable[tuple[float | None, float | None]], bound: float) -> Counts:
        """From differences with half of their intervals, each None if unknown; a difference that is not is outside.

        >>> Counts.of([(2.0, 1.0), (14.0, 3.0), (-16.0, 3.0), (-19.0, 3.0), (21.0, None)], 15)
        Counts(inside=2, whole_inside=1, outside=3, whole_outside=1, unknown=1)
        """
        found = [(None if difference is None else abs(difference), half) for difference, half in differences]
        inside = [distance is not None and distance <= bound for distance, _ in found]
        known = [(distance, half) for distance, half in found if distance is not None and half is not None]
        return cls(
            sum(inside),
            sum(distance + half <= bound for distance, half in known),
            len(found) - sum(inside),
            sum(distance - half > bound for distance, half in known),
            len(found) - len(known),
        )

    def __add__(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(
            self.inside + other.inside,
            self.whole_inside + other.whole_inside,
            self.outside + other.outside,
            self.whole_outside + other.whole_outside,
            self.unknown + other.unknown,
        )

    @property
    def judged(self) -> int:
        """How many there are."""
        return self.inside + self.outside

    @property
    def all_whole(self) -> bool:
        """Whether the whole interval of every difference is inside: then nothing needs to be told beside a verdict."""
        return self.whole_inside == self.judged

    def text(self, what: str, bound: str) -> str:
        """In words.

        >>> Counts(7, 4, 3, 1, 2).text("flows", "15 %")
        '7 of 10 flows within 15 %, 4 with the whole 95 % interval; 3 outside, 1 with the whole interval; 2 without one'
        """
        known = self.unknown < self.judged
        inside = f"{self.inside} of {self.judged} {what} within {bound}"
        if known and self.inside:
            inside += f", {self.whole_inside} with the whole 95 % interval"
        parts = [inside]
        if self.outside:
            parts.append(
                f"{self.outside} outside" + (f", {self.whole_outside} with the whole interval" if known else "")
            )
        if self.unknown:
            parts.append(f"{self.unknown} without {'one' if known else 'an interval'}")
        return "; ".join(parts)


def _is_negligible(spread: float | None, distance: float, other: float | None) -> bool:
    if spread is None or spread >= COINCIDE_PERCENT:
        return False
    return NEGLIGIBLE * spread <= max(distance, other or 0.0)
