"""Algorithms that are not in the build, compiled for the engines with sockets: once per process, whatever runs them.

The kernel engine's program compiles them on this machine, because a virtual machine has no compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mptcplab import _core
from mptcplab.engines import kernel
from mptcplab.scratch import Scratch

_Source = tuple[str, str, str]


@dataclass(frozen=True)
class Compiled:
    """A directory with what `mptcplab-kernel run --algorithms` loads."""

    scratch: Scratch
    # What made the eBPF objects, such as "Debian clang version 14.0.6".
    compiler: str

    @property
    def directory(self) -> Path:
        """The directory, which exists until the process ends."""
        return Path(self.scratch.name)

    def files(self) -> dict[str, bytes]:
        """The content of the directory, by name."""
        return {path.name: path.read_bytes() for path in sorted(self.directory.iterdir())}


def compiled(scenario: str, overrides: str) -> Compiled | None:
    """The algorithms of a scenario's runs that are not in the build; None if all are.

    Raises `ScenarioError` for a file that does not compile for the kernel, and `EngineError` where there is no clang.
    """
    sources = _core.added_algorithms(scenario, overrides)
    return _compiled(tuple(sources)) if sources else None


@cache
def _compiled(sources: tuple[_Source, ...]) -> Compiled:
    made = Scratch("algorithms")
    compilers = [_compile(source, made.name) for source in sources]
    return Compiled(made, compilers[0])


def _compile(source: _Source, out: str) -> str:
    """Compile one algorithm; return what its compiler is called."""
    name, place, text = source
    with Scratch("source") as directory:
        file = Path(directory) / f"{name}.c"
        file.write_text(text, encoding="utf-8")
        words = ("compile", str(file), "--place", place, "--out", out)
        compiler: str = kernel.query(*words, about=place)["compiler"]
    return compiler
