"""Arguments of public functions: what they may be, and errors for what they are not.

A scenario says of what a caller changes in it that it is of the command line. An error of a function in Python names
the argument instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral

from mptcplab.errors import COMMAND_LINE, MptcplabError, with_hint

# Keys of a scenario that are arguments themselves, by their names there.
_OWN = {"cc": "cc", "repetitions": "reps", "seed": "seed", "profile": "profile", "duration": "duration"}
# Where one of several errors begins.
_BEGIN = re.compile(rf"(?:\A|(?<=\n\nerror: )){COMMAND_LINE}")
_of_options: ContextVar[bool] = ContextVar("of_options", default=False)


@contextmanager
def of_options() -> Iterator[None]:
    """The arguments of public functions are now options of the command line."""
    token = _of_options.set(True)
    try:
        yield
    finally:
        _of_options.reset(token)


@contextmanager
def named_in_errors(
    settings: Mapping[str, object] | None = None, sweep: Mapping[str, object] | None = None
) -> Iterator[None]:
    """Name the argument in an error about what a caller changes in a scenario, of which two have keys of their own."""
    try:
        yield
    except MptcplabError as error:
        text = str(error)
        if not _of_options.get() and _BEGIN.search(text):
            error.args = (of_arguments(text, settings, sweep), *error.args[1:])
        raise


def of_arguments(
    text: str, settings: Mapping[str, object] | None = None, sweep: Mapping[str, object] | None = None
) -> str:
    r"""The text of an error with the arguments of a function in the place of the command line.

    >>> of_arguments('command line: cc: no algorithm "olla"')
    'cc: no algorithm "olla"'
    >>> of_arguments('command line: cc.gain: lia has no parameter "gain"', sweep={"cc.gain": [1, 2]})
    'sweep[\'cc.gain\']: lia has no parameter "gain"'
    >>> of_arguments('command line: links.b: no such key "b"', {"links.b.rate": "3 Mbit/s"})
    'settings[\'links.b.rate\']: links.b: no such key "b"'
    """
    first, *others = _BEGIN.split(text)
    return first + "".join(_of_argument(part, settings or {}, sweep or {}) for part in others)


def _of_argument(text: str, settings: Mapping[str, object], sweep: Mapping[str, object]) -> str:
    """One error, which begins with the key that it is about."""
    above = []
    for name, given in (("settings", settings), ("sweep", sweep)):
        for path in map(str, given):
            key, argument = path.strip(), f"{name}[{path!r}]"
            if text.startswith(f"{key}: "):
                return f"{argument}: {text.removeprefix(f'{key}: ')}"
            if text.startswith(f"{key}."):
                return f"{argument}: {text}"
            if any(text.startswith(f"{key[:at]}: ") for at, letter in enumerate(key) if letter == ".") or not key:
                above.append(argument)
    if len(above) == 1:
        return f"{above[0]}: {text}"
    for key, name in _OWN.items():
        if text.startswith((f"{key}: ", f"{key}.")):
            return f"{name}: {text.partition(': ')[2]}"
    return text


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
