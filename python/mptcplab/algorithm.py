"""Algorithms that are compiled from a C file while the program runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from mptcplab import _core
from mptcplab.errors import MptcplabError, ScenarioError, with_hint
from mptcplab.paths import path_of
from mptcplab.scratch import Scratch

_REGISTERED = re.compile(r"\bCC_REGISTER\(\s*(\w+)")
# The path of a C file, perhaps with parameters: names of algorithms have no dot.
_FILE = re.compile(r"(?P<path>.+\.c)(?P<parameters>\(.*\))?", re.DOTALL)


@dataclass(frozen=True)
class Algorithm:
    """A congestion control algorithm that is not in the build: one C file that includes `cc.h`.

    It was compiled with the system's compiler against the headers of this build, as the algorithms of the build are,
    and runs wherever its name is given; the engines with sockets compile it to eBPF, which needs clang. The fluid has
    no model of it. docs/algorithm-contract.md introduces the contract. Its code runs in this process, so use only files
    that you trust.

    >>> text = '''
    ... #include "cc.h"
    ... CC_UNCOUPLED(mine);
    ... CC_REGISTER(mine, .ssthresh = cc_reno_ssthresh, .cong_avoid = cc_reno_cong_avoid,
    ...             .undo_cwnd = cc_reno_undo_cwnd);
    ... '''
    >>> str(Algorithm.from_source(text))
    'mine'
    """

    name: str
    place: str
    text: str | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Algorithm:
        """Compile a C file, whose stem is the algorithm's name.

        Raises `ScenarioError` for a file that cannot be used, and `EngineError` where there is no compiler.
        """
        file = path_of(path, "path")
        try:
            # Some editors begin a text with a byte-order mark.
            text = file.read_text(encoding="utf-8-sig")
        except OSError as error:
            hint = "give the path of a C file such as algorithms/template-coupled.c"
            raise ScenarioError(with_hint(f"{file}: {error.strerror}", hint)) from error
        except UnicodeDecodeError as error:
            raise ScenarioError(with_hint(f"{file}: not UTF-8 text", "an algorithm is one C file")) from error
        return cls._compiled(file.stem, text, str(path))

    @classmethod
    def from_source(cls, text: str, name: str | None = None) -> Algorithm:
        """Compile the text of a C file. Without `name` it is the one that CC_REGISTER says, with '-' for '_'.

        A second call with the same name replaces the algorithm. Raises as `from_file`.
        """
        if not isinstance(text, str):
            hint = "the text of a C file; Algorithm.from_file(path) reads a file"
            raise MptcplabError(with_hint(f"text: not a text: {text!r}", hint))
        if name is None:
            found = _REGISTERED.search(text)
            if not found:
                hint = "end it with CC_REGISTER(name, ...), as algorithms/template.c ends"
                raise ScenarioError(with_hint("the source registers no algorithm", hint))
            name = found[1].replace("_", "-")
        return cls._compiled(name, text, f"{name}.c")

    @classmethod
    def _compiled(cls, name: str, text: str, place: str) -> Algorithm:
        _core.load_algorithm(name, text, place)
        _COMPILED[name] = cls(name, place, text)
        return _COMPILED[name]

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has not compiled it.
        return _compiled_once, (self.name, self.place, self.text)

    def _repr_html_(self) -> str:
        """The name and the source, for notebooks."""
        source = f"<details><summary>source</summary><pre>{escape(self.text)}</pre></details>" if self.text else ""
        return f"<b>{escape(self.name)}</b> ({escape(self.place)}){source}"

    def __str__(self) -> str:
        return self.name


def _compiled_once(name: str, place: str, text: str | None) -> Algorithm:
    """The algorithm, compiled unless this process has done that."""
    known = _COMPILED.get(name)
    if text is None or (known is not None and (known.place, known.text) == (place, text)):
        return Algorithm(name, place, text)
    return Algorithm._compiled(name, text, place)


# What this process has compiled, by name: the engine keeps them, but lists those of the build only.
_COMPILED: dict[str, Algorithm] = {}


def compiled_sources() -> dict[str, str]:
    """The digest of every source that was compiled while the program ran, by the algorithm's name."""
    return {name: sha256((one.text or "").encode()).hexdigest() for name, one in _COMPILED.items()}


def as_given(cc: str) -> str:
    """An algorithm as a command line takes it: with the path of its file if it was compiled from one."""
    name, bracket, parameters = cc.partition("(")
    return f"{places_of([cc]).get(name, name)}{bracket}{parameters}"


def in_file_name(cc: str) -> str:
    """An algorithm with its parameters as part of a file name.

    >>> in_file_name("ewtcp(weight=0.5)"), in_file_name("ewtcp(weight=fair)")
    ('ewtcp-weight-0-5', 'ewtcp-weight-fair')
    """
    return re.sub(r"\W+", "-", cc).strip("-")


def places_of(algorithms: Iterable[str], *, absolute: bool = False) -> dict[str, str]:
    """The places of the sources of those algorithms that this process has compiled, by name.

    They are as they were given; with `absolute` they lead to the files from any directory.
    """
    names = [cc.partition("(")[0] for cc in algorithms]
    places = {name: _COMPILED[name].place for name in names if name in _COMPILED}
    if not absolute:
        return places
    # What was compiled from a text has no file.
    return {name: str(Path(place).absolute()) if Path(place).is_file() else place for name, place in places.items()}


@contextmanager
def files_of(algorithms: Algorithms) -> Iterator[list[str]]:
    """Algorithms as words of a command line; those that were compiled from a text have a file meanwhile."""
    given = (algorithms,) if isinstance(algorithms, str | Algorithm) else tuple(_iterable(algorithms))
    with Scratch("algorithms") as directory:
        found: list[str] = []
        for one in given:
            if not isinstance(one, Algorithm):
                found += words(one)
                continue
            file = Path(directory) / f"{one.name}.c"
            file.write_text(one.text or "", encoding="utf-8")
            found.append(str(file))
        yield found


# One algorithm, or several: names such as "ewtcp(weight=fair)", paths of C files, compiled algorithms.
Algorithms = str | Algorithm | Iterable[str | Algorithm]


def words(value: str, such_as: str = "lia,olia", argument: str = "cc") -> list[str]:
    """The names in a list with commas; a comma in parentheses separates parameters of one name.

    `argument` is what an error calls the list.

    >>> words("lia, ewtcp(weight=fair,a=1)")
    ['lia', 'ewtcp(weight=fair,a=1)']
    """
    found = [part.strip() for part in re.split(r",(?![^(]*\))", value) if part.strip()]
    if not found:
        raise MptcplabError(with_hint(f"{argument}: no name in this list: {value!r}", f"such as {such_as}"))
    return found


def named(algorithms: Algorithms | None) -> tuple[tuple[str, ...], dict[str, str]]:
    """The names of algorithms, and for those that are not in the build the place of their source.

    C files are compiled; `path.c(parameter=value)` sets parameters.
    """
    if algorithms is None:
        return (), {}
    names: list[str] = []
    places: dict[str, str] = {}
    given = (algorithms,) if isinstance(algorithms, str | Algorithm) else tuple(_iterable(algorithms))
    for one in (each for entry in given for each in (words(entry) if isinstance(entry, str) else (entry,))):
        if not isinstance(one, str | Algorithm):
            raise MptcplabError(with_hint(f"not an algorithm: {one!r}", 'write cc="lia", or cc=["lia", "olia"]'))
        file = _FILE.fullmatch(one) if isinstance(one, str) else None
        algorithm = Algorithm.from_file(file["path"]) if file else one
        names.append(str(algorithm) + ((file["parameters"] or "") if file else ""))
        if isinstance(algorithm, Algorithm):
            other = places.setdefault(algorithm.name, algorithm.place)
            if other != algorithm.place:
                hint = "rename one of the files: an algorithm is called by the name of its file"
                raise MptcplabError(with_hint(f"cc: two files of one name: {other} and {algorithm.place}", hint))
    return tuple(names), places


def _iterable(algorithms: Iterable[str | Algorithm]) -> Iterable[str | Algorithm]:
    if not isinstance(algorithms, Iterable):
        raise MptcplabError(with_hint(f"not an algorithm: {algorithms!r}", 'write cc="lia", or cc="lia,olia"'))
    return algorithms
