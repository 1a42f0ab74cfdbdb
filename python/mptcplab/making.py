"""The trace of a sweep on one engine: runs that are finished already are taken as they are, and the others are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypedDict

from mptcplab import _core, memory
from mptcplab.capabilities import KERNEL, OWN_TRAFFIC, SIM, engine_of
from mptcplab.cluster import batches
from mptcplab.cluster.connect import Cluster
from mptcplab.engines import kernel, sim
from mptcplab.engines.compiled import compiled
from mptcplab.engines.digests import run_digests
from mptcplab.engines.vm import engine as vm
from mptcplab.errors import EngineError, MptcplabError, OutputError, with_hint
from mptcplab.kept import Run, Workspace, runs_of
from mptcplab.output import PartialOutputError

Progress = Callable[[int, int, float, float], None]


class _Only(TypedDict):
    """What every engine takes to make some runs of a scenario."""

    only: Sequence[int]
    digests: Sequence[str]


@dataclass(frozen=True)
class Part:
    """The runs of a scenario on one engine; `overrides` are JSON."""

    scenario: str
    engine: str
    overrides: str
    traffic: str = OWN_TRAFFIC
    jobs: int = 0
    # Beside a kernel, whose links are emulated in real time.
    low_priority: bool = False
    # Where the runs are made, if not on this machine.
    cluster: Cluster | None = None
    # Runs that are finished already, by digest.
    finished: dict[str, Run] = field(default_factory=dict)

    @cached_property
    def digests(self) -> list[str]:
        """The digest of every run, in their order."""
        return run_digests(self.scenario, self.overrides, self.engine, self.traffic)

    @property
    def missing(self) -> list[int]:
        """The numbers of the runs that are to be made."""
        return [number for number, digest in enumerate(self.digests) if digest not in self.finished]

    def make(self, directory: Path, workspace: Workspace, progress: Progress | None) -> None:
        """Make what is missing, and write the trace of all runs to `directory`.

        Raises `PartialOutputError`, with the error as its cause, after it has written a trace of what is there if a run
        ended early. If the disk is full, it raises the error alone: finished runs are in the workspace, and a second
        copy of them would take the room that is missing.
        """
        place = workspace.place(self.engine)
        missing = self.missing
        before = {path.name for path in place.iterdir()}
        failure: MptcplabError | None = None
        try:
            if missing:
                self._run(place, missing, progress)
        except MptcplabError as error:
            if isinstance(error, OutputError) or not engine_of(self.engine).has_sockets:
                raise
            failure = error
        added = [path for path in sorted(place.iterdir()) if path.name not in before and path.name.isdecimal()]
        new = runs_of(added, checked=())
        # Also those that do not count: they are part of the trace, which says so.
        found = self.finished | {run.digest: run for run in new}
        lost = sum(digest not in found for digest in self.digests)
        if failure is None and lost:
            hint = "this is a bug of mptcplab; please report it with the scenario"
            failure = EngineError(with_hint(f"{lost} of {len(self.digests)} runs left no trace on {self.engine}", hint))
        if failure is not None and not found:
            raise failure
        self._assemble(directory, found)
        memory.give_back()
        if failure is not None:
            raise PartialOutputError from failure

    def _run(self, place: Path, missing: Sequence[int], progress: Progress | None) -> None:
        only = _Only(only=missing, digests=self.digests)
        if self.cluster is not None:
            batches.run(self.cluster, self.scenario, place, self.overrides, self.engine, progress=progress, **only)
        elif self.engine == SIM.name:
            polite = self.low_priority
            sim.run(
                self.scenario, place, self.overrides, jobs=self.jobs, progress=progress, low_priority=polite, **only
            )
        elif self.engine == KERNEL.name:
            made = compiled(self.scenario, self.overrides)
            algorithms = made.directory if made else None
            kernel.run(
                self.scenario,
                place,
                self.overrides,
                algorithms=algorithms,
                traffic=self.traffic,
                progress=progress,
                **only,
            )
        elif engine_of(self.engine).has_sockets:
            vm.run(self.scenario, place, self.overrides, engine=self.engine, jobs=self.jobs, progress=progress, **only)
        else:
            from mptcplab.engines.fluid import engine as fluid

            fluid.run(self.scenario, place, self.overrides, progress, **only)

    def _assemble(self, directory: Path, found: Mapping[str, Run]) -> None:
        runs = {number: found[digest] for number, digest in enumerate(self.digests) if digest in found}
        kept = {number: (run.trace, run.number) for number, run in runs.items()}
        _core.assemble_trace(self.scenario, self.overrides, kept, directory)
