"""The axes of a sweep: their values as numbers with a unit, as columns of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab.ranges import UNITS, quantity

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace

# The least ratio of the largest value to the smallest one at which an axis is logarithmic.
_DECADES = 20.0
# Columns of runs that are not axes, in the order in which they come first.
_RUN = ("engine", "cc")


@dataclass(frozen=True)
class Axis:
    """One parameter of a sweep with its values as texts, and as numbers of one unit where they are numbers."""

    key: str
    texts: tuple[str, ...]
    unit: str
    numbers: tuple[float, ...] | None

    @classmethod
    def of(cls, key: str, texts: Iterable[str]) -> Axis:
        """An axis from the texts of its values; values in different units are converted to the first one's.

        >>> Axis.of("links.B1.delay", ["5 ms", "0.02 s"]).numbers
        (5.0, 20.0)
        """
        texts = tuple(dict.fromkeys(texts))
        parsed = [quantity(text) for text in texts]
        known = [one for one in parsed if one is not None]
        if not known or len(known) < len(parsed) or len({UNITS[unit][0] for _, unit in known}) > 1:
            return cls(key, texts, "", None)
        unit = known[0][1]
        numbers = tuple(float(f"{number * UNITS[own][1] / UNITS[unit][1]:.12g}") for number, own in known)
        return cls(key, texts, unit, numbers)

    @property
    def label(self) -> str:
        """The key with its unit."""
        return f"{self.key} ({self.unit})" if self.unit else self.key

    @property
    def is_logarithmic(self) -> bool:
        """Whether its values span decades."""
        values = self.numbers or ()
        return len(values) > 2 and min(values) > 0 and max(values) >= _DECADES * min(values)

    def place(self, text: str) -> float:
        """The number of one of its texts, or its position (from 0) among texts that are no numbers of one kind.

        >>> Axis.of("links.B1.queue", ["1 BDP", "50 packets", "unlimited"]).place("unlimited")
        2.0
        """
        at = self.texts.index(text)
        return float(at) if self.numbers is None else self.numbers[at]

    def series(self, texts: list[str | None]) -> pl.Series:
        """A column of values: numbers, truth values, or the texts where they are neither."""
        if self.numbers is not None:
            table: Mapping[str, Any] = dict(zip(self.texts, self.numbers, strict=True))
            whole = not self.unit and all(number.is_integer() for number in self.numbers)
            values = [None if text is None else table[text] for text in texts]
            return pl.Series(self.key, values, pl.Float64).cast(pl.Int64 if whole else pl.Float64)
        if set(self.texts) <= {"true", "false"}:
            return pl.Series(self.key, [None if text is None else text == "true" for text in texts], pl.Boolean)
        return pl.Series(self.key, texts, pl.String)


def axes(trace: Trace) -> list[Axis]:
    """The parameters of a sweep that have several values, without the algorithm."""
    rows = _texts(trace)
    keys = dict.fromkeys(key for row in rows.values() for key in row)
    found = [Axis.of(key, (row[key] for row in rows.values() if key in row)) for key in keys]
    return [axis for axis in found if axis.key != "cc" and len(axis.texts) > 1]


def columns(trace: Trace, *, by: str = "run") -> pl.DataFrame:
    """A row per run, or per configuration (`by="config"`): config, engine, cc, and every axis with its unit.

    An axis whose values have a unit is followed by a column `<key>.unit`.
    """
    rows = _texts(trace)
    runs = trace.configs.select("run", "rep", "config").join(
        trace.runs.select("run", *_RUN), on="run", maintain_order="left"
    )
    order = runs["run"].to_list()
    for axis in axes(trace):
        runs = runs.with_columns(axis.series([rows[run].get(axis.key) for run in order]))
        if axis.unit:
            runs = runs.with_columns(pl.lit(axis.unit).alias(f"{axis.key}.unit"))
    return runs if by == "run" else runs.drop("run", "rep").unique("config", keep="first", maintain_order=True)


def _texts(trace: Trace) -> dict[int, dict[str, str]]:
    """The values of the axes of every run, as the scenario writes them."""
    from mptcplab.trace.reader import axes_of

    return {run: axes_of(text) for run, text in trace.runs.select("run", "axes").iter_rows()}
