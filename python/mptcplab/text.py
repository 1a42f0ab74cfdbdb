"""Numbers, tables and lists as text: rates, times, means with their intervals, and some of many names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Thing = TypeVar("Thing")
NOT_APPLICABLE = "\N{EN DASH}"
# The unit of rates in tables and figures.
MBPS = "Mbit/s"
# Digits behind the point of the smallest rates: a hundredth of a bit per second.
_MOST_DECIMALS = 8


@dataclass(frozen=True)
class Table:
    """A table of text: column heads with units, and rows."""

    head: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def rate(bps: float) -> str:
    """A rate with its SI unit.

    >>> rate(10e6), rate(2_500_000), rate(1e9)
    ('10 Mbit/s', '2.5 Mbit/s', '1 Gbit/s')
    """
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bps >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps:.4g} bit/s"


def duration(nanoseconds: float) -> str:
    """A duration with its unit.

    >>> duration(5_000_000), duration(300e9)
    ('5 ms', '300 s')
    """
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds:.0f} ns"


def number(value: float, digits: int, unit: str = "") -> str:
    """A number with thousands separated, and so many digits behind the point: see `decimals`."""
    return f"{value:,.{decimals(value, digits, unit)}f}"


def decimals(value: float, least: int, unit: str = "") -> int:
    """Digits behind the point of a value in `unit`: `least`, but so many that a rate has two significant ones.

    Rates in one table differ by orders of magnitude, and a flow of some kbit/s is not one that gets nothing.

    >>> [decimals(value, 2, "Mbit/s") for value in (14.15, 0.1, 0.064, -0.0012, 0.0)], decimals(0.0012, 2, "%")
    ([2, 2, 3, 4, 2], 2)
    """
    if unit != MBPS or not value or not math.isfinite(value):
        return least
    return max(least, min(1 - math.floor(math.log10(abs(value))), _MOST_DECIMALS))


def decimal(value: float) -> str:
    """A number as a scenario has it: no exponent, no more digits than the format takes.

    >>> decimal(0.00005), decimal(20.0), decimal(1 / 3)
    ('0.00005', '20', '0.333333')
    """
    return f"{value:.6f}".rstrip("0").rstrip(".")


def counted(amount: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(10_000, "run")
    ('1 run', '10,000 runs')
    """
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def evenly(things: Sequence[Thing], most: int) -> list[Thing]:
    """At most so many of them: the first, the last, and others between them.

    >>> evenly("abcdefg", 4), evenly("ab", 4), evenly("abc", 1)
    (['a', 'c', 'e', 'g'], ['a', 'b'], ['a'])
    """
    if len(things) <= most:
        return list(things)
    return [things[round(place * (len(things) - 1) / max(most - 1, 1))] for place in range(most)]


def some_of(names: Sequence[str], most: int) -> str:
    """At most so many of the names, spread over all of them, and how many others there are.

    >>> some_of(["lia", "olia"], 2)
    'lia, olia'
    >>> some_of(["lia, loss = 1 %", "lia, loss = 5 %", "olia, loss = 1 %"], 2)
    "'lia, loss = 1 %', 'olia, loss = 1 %' and 1 more"
    """
    shown = evenly(names, most)
    # Names of configurations have commas themselves.
    texts = map(repr, shown) if any(", " in name for name in names) else shown
    more = f" and {len(names) - len(shown):,} more" if len(shown) < len(names) else ""
    return ", ".join(texts) + more


def size(amount: int) -> str:
    """A number of bytes with its unit.

    >>> size(512), size(4_350_000)
    ('512 bytes', '4.35 MB')
    """
    for unit_bytes, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if amount >= unit_bytes:
            return f"{amount / unit_bytes:.3g} {unit}"
    return f"{amount} bytes"


def percent(part: float) -> str:
    """A probability as percentage.

    >>> percent(0.001)
    '0.1 %'
    """
    return f"{100 * part:.3g} %"


def mean_and_interval(mean: float | None, half: float | None, digits: int, unit: str = "") -> str:
    r"""`mean ± half`, or the mean alone where there is no interval; digits behind the point are those of `decimals`.

    >>> mean_and_interval(9.4321, 0.117, 2), mean_and_interval(9.4321, None, 2), mean_and_interval(None, None, 2)
    ('9.43 ± 0.12', '9.43', '–')
    >>> mean_and_interval(0.00123, 0.0004, 2, "Mbit/s")
    '0.0012 ± 0.0004'
    """
    if mean is None:
        return NOT_APPLICABLE
    digits = decimals(mean, digits, unit)
    shown = f"{mean:,.{digits}f}"
    return shown if half is None else f"{shown} ± {half:,.{digits}f}"


# Notes of one kind.
_MOST_LINES = 6


def first_of(lines: list[str], rest: str) -> list[str]:
    """The lines, or the first of many, with a line on how many more there are; `rest` says what they are.

    >>> first_of([str(number) for number in range(8)], "are listed elsewhere")[4:]
    ['4', '3 more are listed elsewhere']
    """
    if len(lines) <= _MOST_LINES:
        return lines
    shown = lines[: _MOST_LINES - 1]
    return [*shown, f"{len(lines) - len(shown)} more {rest}"]
