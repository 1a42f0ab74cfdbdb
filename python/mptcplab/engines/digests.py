"""Digests of all that an engine's numbers depend on besides the scenario and the algorithms."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

from mptcplab import _core
from mptcplab.capabilities import OWN_TRAFFIC, engine_of, is_machine
from mptcplab.engines.compiled import compiled

# Modules of the metrics' package that work on values that others have measured.
_UNMEASURED = frozenset({"goals.py", "differences.py", "stats.py", "student.py"})


@cache
def engine_digest(engine: str) -> str:
    """The digest of all that an engine's numbers depend on besides scenario and algorithm."""
    own = _core.build_info()["engine"]
    if engine == "sim":
        return own
    if engine == "fluid":
        import scipy

        return f"{own} {python_digest('engines/fluid')} scipy {scipy.__version__}"
    if is_machine(engine):
        return _machine_digest(engine)
    return f"{_program_digest()} Linux {platform.release()}"


def _machine_digest(engine: str) -> str:
    """The digest of an emulated machine: its emulator, its kernel, and the program that runs in it."""
    from mptcplab.engines.vm import kernels, machine

    return f"{_program_digest()} {python_digest('engines/vm')} {kernels.find(engine).digest} {machine.versions()}"


def _program_digest() -> str:
    """The digest of the kernel engine's program."""
    from mptcplab.engines import kernel

    return hashlib.sha256(kernel.program().read_bytes()).hexdigest()


@cache
def python_digest(*parts: str) -> str:
    """The digest of modules, or packages, of this package that decide numbers."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for part in parts:
        place = root / part
        modules = [path for path in sorted([*place.glob("*.py"), *place.glob("*.c")]) if path.name not in _UNMEASURED]
        for path in modules if place.is_dir() else [place]:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def run_digests(scenario: str, overrides: str, engine: str, traffic: str = OWN_TRAFFIC) -> list[str]:
    """The digest of every run of a scenario on an engine, in their order.

    A digest has three parts, with a dash between them: of the resolved scenario, the algorithms, and the engine.
    """
    own = f"{engine} {engine_digest(engine)}"
    if engine_of(engine).has_sockets:
        made = compiled(scenario, overrides)
        own += f" {made.compiler}" if made else ""
    return _core.run_digests(scenario, overrides, own if traffic == OWN_TRAFFIC else f"{own} {traffic}")
