"""The runs of a sweep on a cluster: several short ones are a task, and a long one is a task of its own.

Which runs are together depends on the sweep only, so that a later call finds the same tasks in a store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mptcplab import _core, kept
from mptcplab.capabilities import SIM
from mptcplab.cluster.connect import Cluster
from mptcplab.cluster.inputs import Inputs, other_work
from mptcplab.cluster.tasks import Tasks
from mptcplab.engines import sim
from mptcplab.engines.digests import run_digests
from mptcplab.output import writing
from mptcplab.scratch import Scratch
from mptcplab.trace.topology import Topology

Progress = Callable[[int, int, float, float], None]
# Work of one task, in millions of packet hops: a third of a second, or a run that takes longer.
_WORK = 10.0


@dataclass(frozen=True)
class Batch:
    """Some runs of a sweep: their numbers with their digests, and the number of all runs."""

    inputs: Inputs
    overrides: str
    engine: str
    runs: dict[int, str]
    total: int
    seconds: float

    @property
    def key(self) -> str:
        """The digest of the run, or one of all digests."""
        digests = list(self.runs.values())
        if len(digests) == 1:
            return digests[0]
        return f"{hashlib.sha256(' '.join(digests).encode()).hexdigest()[:32]}-{len(digests)}-runs"


def run(
    cluster: Cluster,
    scenario: str,
    place: Path,
    overrides: str,
    engine: str,
    *,
    only: Sequence[int],
    digests: Sequence[str],
    progress: Progress | None,
) -> None:
    """Make some runs of a scenario on the workers, and add their traces to the directory `place`.

    Raises what the engine raises, after everything that was finished until then has been added.
    """
    # Here, because a worker does not know the place of the file.
    if engine == SIM.name:
        sim.reject_unsupported(scenario, overrides)
    else:
        from mptcplab.engines.fluid.engine import reject_unsupported

        reject_unsupported(scenario, overrides)
    batches = list(_batches(Inputs.of(Path(scenario), overrides), overrides, engine, set(only), digests, scenario))
    seconds, done = sum(batch.seconds for batch in batches), [0, 0.0]
    with Tasks(cluster, make, lambda batch: batch.key) as tasks:
        tasks.add(batches)
        for batch, result in tasks.results():
            if result.error is not None:
                raise result.error
            assert result.files is not None
            with writing(f"write to {place}", "make room there, or choose another --out"):
                kept.add(place, result.files)
            done = [done[0] + len(batch.runs), done[1] + batch.seconds]
            if progress is not None:
                progress(int(done[0]), len(only), done[1], seconds)


def make(batch: Batch) -> dict[str, bytes]:
    """Make the runs of a batch on a worker; return the files of their traces."""
    digests = [batch.runs.get(number, "") for number in range(batch.total)]
    with batch.inputs.unpacked() as path, Scratch("batch") as scratch:
        scenario, place, only = str(path), Path(scratch), list(batch.runs)
        _check(batch, scenario)
        if batch.engine == SIM.name:
            sim.run(scenario, place, batch.overrides, only=only, digests=digests, jobs=1)
        else:
            from mptcplab.engines.fluid import engine as fluid

            fluid.run(scenario, place, batch.overrides, None, only=only, digests=digests)
        return kept.files_in(place)


def _check(batch: Batch, scenario: str) -> None:
    """Refuse to run with another version of an algorithm than the batch brings; all others come with the build."""
    if batch.inputs.algorithms:
        found = run_digests(scenario, batch.overrides, batch.engine)
        for number, digest in batch.runs.items():
            if digest and found[number] != digest:
                raise other_work(digest)


def _batches(
    inputs: Inputs, overrides: str, engine: str, only: set[int], digests: Sequence[str], scenario: str
) -> Iterator[Batch]:
    """The batches that have a run that is wanted, with these runs."""
    resolved = json.loads(_core.runs_json(scenario, overrides))
    for together in _together(resolved, engine):
        wanted = {number: digests[number] for number in together if number in only}
        if wanted:
            seconds = sum(resolved[number]["duration_ns"] for number in wanted) / 1e9
            yield Batch(inputs, overrides, engine, wanted, len(resolved), seconds)


def _together(resolved: Sequence[dict[str, Any]], engine: str) -> Iterator[list[int]]:
    """The numbers of runs that are one batch: for the fluid, whose repetitions share equilibria, a combination."""
    numbers: list[int] = []
    work = 0.0
    for number, one in enumerate(resolved):
        numbers.append(number)
        if engine == SIM.name:
            work += Topology.from_json(json.dumps(one)).packet_hops
            whole = work >= _WORK
        else:
            whole = number + 1 < len(resolved) and resolved[number + 1]["axes"] != one["axes"]
        if whole:
            yield numbers
            numbers, work = [], 0.0
    if numbers:
        yield numbers
