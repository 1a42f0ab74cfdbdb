"""What `mptcplab --version` says besides the version: the build, and the state of every engine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator


def lines() -> Iterator[str]:
    """One line for the build and one for every engine."""
    from mptcplab import _core

    facts = _core.build_info()
    yield "build:  " + ", ".join(facts[key] for key in ("revision", "rustc", "target", "profile"))
    yield "sim:    ready"
    program = _kernel_program()
    yield f"kernel: {program or 'not built'}"
    yield f"vm:     {_machine(program)}"
    yield "fluid:  ready"


def _kernel_program() -> str | None:
    from mptcplab.engines import kernel

    named = os.environ.get(kernel.OVERRIDE)
    if named or kernel.BUILT.is_file():
        return named or str(kernel.BUILT)
    return None


def _machine(program: str | None) -> str:
    """The emulator, or the first thing that is missing; `mptcplab doctor` checks more."""
    from mptcplab.engines.vm import qemu

    if program is None:
        return "needs the kernel engine's program"
    return shutil.which(qemu.PROGRAM) or f"no {qemu.PROGRAM}; mptcplab doctor says how to get it"
