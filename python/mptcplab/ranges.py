"""Quantities with their units, and the values of a sweep written as a range or a list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

from mptcplab.errors import MptcplabError, with_hint

# Units of the scenario format: what they measure, and their size in the base unit.
UNITS: Mapping[str, tuple[str, float]] = {
    **{f"{prefix}bit/s": ("rate", size) for prefix, size in (("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9))},
    **{f"{prefix}B/s": ("rate", 8 * size) for prefix, size in (("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9))},
    "ns": ("time", 1e-9),
    "us": ("time", 1e-6),
    "ms": ("time", 1e-3),
    "s": ("time", 1.0),
    "min": ("time", 60.0),
    "h": ("time", 3600.0),
    "bytes": ("size", 1.0),
    "B": ("size", 1.0),
    "kB": ("size", 1e3),
    "MB": ("size", 1e6),
    "GB": ("size", 1e9),
    "KiB": ("size", 2.0**10),
    "MiB": ("size", 2.0**20),
    "GiB": ("size", 2.0**30),
    **{unit: (unit, 1.0) for unit in ("packets", "BDP", "%", "")},
    "/ s": ("arrivals", 1.0),
    "/ min": ("arrivals", 1 / 60),
}
_QUANTITY = re.compile(r"(?P<number>-?\d+(\.\d+)?(e[+-]?\d+)?) ?(?P<unit>\D.*)?", re.IGNORECASE)
_RANGE = re.compile(r"(?P<first>.+?)\.\.(?P<last>.+?)(?:\s+(?P<scale>log|linear))?(?:\s+(?P<count>\d+))?\s*")
_EXAMPLES = "such as 'links.B1.loss=0.01 %..5 % log 7' or 'links.B1.loss=0.1 %, 1 %, 5 %'"
# How many values of a range an error suggests, and at most for numbers of things, which are whole.
_SUGGESTED, _MOST_SUGGESTED, _COUNTS = 7, 10, ("", "packets", "bytes", "B")
# Digits of the values of a range.
_DIGITS = 3


def quantity(text: str) -> tuple[float, str] | None:
    """A number and its unit, or None for a text that is no number of a known unit.

    >>> quantity("0.1 %"), quantity("7"), quantity("minrtt")
    ((0.1, '%'), (7.0, ''), None)
    """
    found = _QUANTITY.fullmatch(text.strip())
    unit = (found["unit"] or "").strip() if found else ""
    return (float(found["number"]), unit) if found and unit in UNITS else None


def expand(values: str | Iterable[Any]) -> list[Any]:
    """The values of a sweep: a range such as "0.01 %..5 % log 7", a list such as "1 ms, 5 ms", or a list of values.

    The values of a range are rounded to three significant digits. Without `log` their distances are equal.

    >>> expand("0.01 %..5 % log 7")
    ['0.01 %', '0.0282 %', '0.0794 %', '0.224 %', '0.63 %', '1.77 %', '5 %']
    >>> expand("5 ms..20 ms 4"), expand("minrtt, linger")
    (['5 ms', '10 ms', '15 ms', '20 ms'], ['minrtt', 'linger'])
    """
    if not isinstance(values, str):
        return list(values)
    if ".." in values:
        return _range(values)
    listed = [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", values) if part.strip()]
    if not listed:
        raise MptcplabError(with_hint(f"a sweep without values: {values!r}", _EXAMPLES))
    return listed


def _range(text: str) -> list[str]:
    found = _RANGE.fullmatch(text.strip())
    first, last = (quantity(found[end]) for end in ("first", "last")) if found else (None, None)
    if found is None or last is None or (first is None and not found["first"].strip()):
        raise MptcplabError(with_hint(f"not a range of numbers: {text!r}", _EXAMPLES))
    if first is None:
        hint = f"a range goes from number to number, {_EXAMPLES}"
        raise MptcplabError(with_hint(f"not a number with a unit: {found['first'].strip()!r} in {text!r}", hint))
    if found["count"] is None:
        whole = found["scale"] != "log" and first[1] in ("", last[1])
        hint = f"add how many: '{text.strip()} {_suggested(first[0], last) if whole else _SUGGESTED}'"
        raise MptcplabError(with_hint(f"a range without the number of its values: {text!r}", hint))
    (begin, begin_unit), (end, unit) = first, last
    # "1..5 ms": the unit is that of the end.
    begin_unit = begin_unit or unit
    if UNITS[begin_unit][0] != UNITS[unit][0]:
        hint = "both ends have units of the same kind"
        raise MptcplabError(with_hint(f"a range from {begin_unit!r} to {unit!r}: {text!r}", hint))
    begin = begin * UNITS[begin_unit][1] / UNITS[unit][1]
    count, scale = int(found["count"]), found["scale"] or "linear"
    if not 2 <= count <= 1000:
        raise MptcplabError(
            with_hint(f"too {'few' if count < 2 else 'many'} values for a range: {count} in {text!r}", "2 to 1000")
        )
    if scale == "log" and min(begin, end) <= 0:
        hint = "start above 0, or leave out log"
        raise MptcplabError(with_hint(f"a logarithmic range does not reach 0: {text!r}", hint))
    steps = [step / (count - 1) for step in range(count)]
    if scale == "log":
        return _written([begin ** (1 - step) * end**step for step in steps], unit, text)
    return _written([begin + (end - begin) * step for step in steps], unit, text)


def _suggested(begin: float, last: tuple[float, str]) -> int:
    """How many values an error suggests for a range: where its ends count something, so many that all are whole.

    >>> _suggested(1, (4, "")), _suggested(10, (100, "packets")), _suggested(1, (12, "")), _suggested(1, (4, "ms"))
    (4, 10, 12, 7)
    """
    end, unit = last
    span = abs(end - begin)
    if unit not in _COUNTS or begin % 1 or end % 1 or not span:
        return _SUGGESTED
    fitting = [count for count in range(3, _MOST_SUGGESTED + 1) if span % (count - 1) == 0]
    return max(fitting, default=int(span) + 1 if span < 2 * _MOST_SUGGESTED else 2)


def _written(values: list[float], unit: str, text: str) -> list[str]:
    """Values with as few digits as tell them apart, three significant ones at least."""
    for digits in range(_DIGITS, 13):
        numbers = [_decimal(float(f"{value:.{digits}g}")) for value in values]
        if all(one != other for one, other in pairwise(numbers)):
            return [f"{number} {unit}".strip() for number in numbers]
    raise MptcplabError(with_hint(f"a range whose ends are equal: {text!r}", "give one value with --set"))


def _decimal(number: float) -> str:
    """A number without an exponent."""
    return f"{Decimal(repr(number)).normalize():f}"


def assign(texts: Iterable[str], option: str) -> dict[str, str]:
    """KEY=VALUE texts of an option as a mapping."""
    pairs: dict[str, str] = {}
    example = {"--set": "such as --set 'links.B1.queue=1 BDP'"}.get(option, _EXAMPLES)
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            form = "KEY=VALUE" if option == "--set" else "KEY=VALUES"
            raise MptcplabError(with_hint(f"{option} needs {form}: {text!r}", example))
        if key.strip() in pairs:
            raise MptcplabError(with_hint(f"{option} names {key.strip()} twice: {text!r}", "each key once"))
        pairs[key.strip()] = value.strip()
    return pairs
