"""Jobs in emulated machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mptcplab.engines.vm.kernels import Kernel
from mptcplab.errors import EngineError


@dataclass(frozen=True)
class Job:
    """One call of `mptcplab-kernel` in a machine of its own."""

    arguments: tuple[str, ...]
    # Paths relative to /job.
    files: Mapping[str, bytes]
    # Decides the machine's entropy.
    seed: int
    # Host seconds after which the machine is given up.
    patience_s: float


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    code: int
    stderr: str
    console: str
    # The machine's time that the job took, and the share of it in which its processor was not idle.
    virtual_ns: int
    busy_share: float


def run_jobs(
    jobs: Sequence[Job],
    outs: Sequence[Path],
    *,
    kernel: Kernel,
    program: Path,
    machines: int,
    progress: Callable[[int, Mapping[str, Any]], None] | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Run jobs, at most `machines` at once; yield their positions and outcomes as they end."""
    raise EngineError(
        f"no machine for {len(jobs)} jobs of {program} on {kernel.release}: {outs}, {machines}, {progress}"
    )


def versions() -> str:
    """The emulator's name and version."""
    raise EngineError("no emulator")
