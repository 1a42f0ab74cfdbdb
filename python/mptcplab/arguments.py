"""Arguments of public functions: what they may be, and errors for what they are not."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral

from mptcplab.errors import MptcplabError, with_hint


def whole_number(name: str, value: object, least: int, most: int) -> int:
    """The argument `name` as an `int`; NumPy's integers are whole numbers as well.

    >>> whole_number("reps", 3, 1, 100)
    3
    """
    hint = f"a whole number from {least} to {most}"
    if not isinstance(value, Integral) or isinstance(value, bool) or type(value).__name__ == "timedelta64":
        raise MptcplabError(with_hint(f"{name}: not a whole number: {value!r}", hint))
    number = int(value)
    if not least <= number <= most:
        raise MptcplabError(with_hint(f"{name}: {number} is out of range", hint))
    return number


def text(name: str, value: object, such_as: str) -> str:
    """The argument `name`, which is a text."""
    if not isinstance(value, str):
        raise MptcplabError(with_hint(f"{name}: not a text: {value!r}", f'such as "{such_as}"'))
    return value


def texts(name: str, value: object, such_as: str) -> list[str]:
    """The texts of the argument `name`: one, or several.

    >>> texts("flows", "mp", "mp"), texts("flows", ("mp", "tcp"), "mp")
    (['mp'], ['mp', 'tcp'])
    """
    listed: list[object] = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    found = [one for one in listed if isinstance(one, str)]
    if len(found) < len(listed):
        raise MptcplabError(with_hint(f"{name}: not a text, or several: {value!r}", f'such as "{such_as}"'))
    return found
