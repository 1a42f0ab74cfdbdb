"""Changes functions of a program that runs: other code is put into the functions that a changed text changes."""

from __future__ import annotations

import functools
import gc
import inspect
from collections.abc import Mapping
from types import CodeType, FunctionType


def changed(before: str, after: str, path: str) -> Mapping[CodeType, CodeType] | None:
    """The outermost functions that differ, as their code in both texts of a file.

    Nothing if something else differs as well: what runs at import, such as a default, a decorator or a class's body.
    """
    old, new = (compile(text, path, "exec", dont_inherit=True) for text in (before, after))
    pairs = _pairs(old, new)
    return None if pairs is None else dict(pairs)


def _pairs(before: CodeType, after: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """The pairs of functions below a module's or a class's code; nothing if that itself differs."""
    if _without_code(before) != _without_code(after):
        return None
    found = []
    for old, new in zip(_inner(before), _inner(after), strict=True):
        if old == new:
            continue
        if old.co_flags & inspect.CO_OPTIMIZED:
            found.append((old, new))
            continue
        below = _pairs(old, new)
        if below is None:
            return None
        found += below
    return found


def _without_code(code: CodeType) -> tuple[object, ...]:
    """What a module or the body of a class does by itself. A constant is told from its equals of other types."""
    constants = [(type(one), repr(one)) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_code, code.co_names, constants, [one.co_name for one in _inner(code)]


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


class Functions:
    """The functions of a program as it is now, by their code."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, CodeType], list[FunctionType]] = {}
        for one in gc.get_objects():
            if isinstance(one, FunctionType):
                self._of.setdefault(_key(one.__code__), []).append(one)

    def have(self, codes: Mapping[CodeType, CodeType]) -> bool:
        """Whether there is a function for each code, and the other code fits into it."""
        return all(_key(old) in self._of and len(old.co_freevars) == len(new.co_freevars) for old, new in codes.items())

    def change(self, codes: Mapping[CodeType, CodeType]) -> None:
        """Give every function with a code of these the other code, for good; no function remembers former results."""
        for old, new in codes.items():
            for one in self._of[_key(old)]:
                one.__code__ = new
        for one in gc.get_objects():
            if isinstance(one, functools._lru_cache_wrapper):
                one.cache_clear()


def _key(code: CodeType) -> tuple[str, CodeType]:
    # Two files may have functions that are equal.
    return code.co_filename, code
