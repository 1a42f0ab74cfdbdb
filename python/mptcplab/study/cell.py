"""Cells of a study, their runs, and the digests under which their results are stored."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mptcplab import _core
from mptcplab.algorithm import compiled_sources
from mptcplab.capabilities import engine_of
from mptcplab.engines.digests import engine_digest, python_digest
from mptcplab.scenario import Overrides
from mptcplab.terminal import REAL_TIME
from mptcplab.trace.topology import Topology


@dataclass(frozen=True, order=True)
class Cell:
    """One algorithm (or other treatment) at one point of an experiment; `block` counts further repetitions."""

    experiment: str
    label: str
    point: str = ""
    profile: str = ""
    variant: str = ""
    block: int = 0


@dataclass(frozen=True)
class RunSpec:
    """The runs of a cell on an engine, and the quantities that are measured.

    `metrics` are those of the whole window. Of every one of the `spans` (name, begin and end in s) a few metrics are
    measured as well. With `time_series` the samples of the first repetition are stored too.
    """

    scenario: Path
    cc: str | None
    profile: str | None
    repetitions: int
    seed: int
    settings: tuple[tuple[str, str], ...] = ()
    metrics: tuple[str, ...] = ()
    spans: tuple[tuple[str, float, float], ...] = ()
    time_series: bool = False

    def overrides(self, *cc: str) -> Overrides:
        """The changes of the scenario for one call of the engine; `cc` instead of the spec's own algorithm."""
        return Overrides(
            cc=cc or ((self.cc,) if self.cc is not None else ()),
            reps=self.repetitions,
            seed=self.seed,
            profile=() if self.profile is None else (self.profile,),
            settings=dict(self.settings),
        )

    def resolved(self) -> list[dict[str, Any]]:
        """Every repetition with all defaults filled in."""
        return resolved_runs(self.scenario, self.overrides())

    @cached_property
    def topology(self) -> Topology:
        """The network and the flows; repetitions differ in their random numbers only."""
        return topology(self.scenario, self.settings, self.cc)

    def digest(self, engine: str) -> str:
        """The digest of all that decides the result: resolved runs, algorithms' sources, engine and metrics."""
        runs = self.resolved()
        sources = algorithm_digests()
        used = {flow["cc"]["name"] for run in runs for flow in run["flows"] if isinstance(flow.get("cc"), dict)}
        return digest_of(
            runs=runs,
            algorithms={name: sources[name] for name in used if name in sources},
            engine=engine_digest(engine),
            measured=[self.metrics, self.spans, python_digest("metrics", "study/measure.py", "trace")],
        )

    def work(self, engine: str) -> float:
        """About how much work all repetitions are: millions of packet hops, or for the fluid seconds of model time.

        See `work_unit`.
        """
        # Equations take the same time however many packets flow.
        one = self.topology.packet_hops if engine_of(engine).has_packets else self.topology.duration_ns / 1e9
        return one * self.repetitions


def work_unit(engine: str) -> str:
    """The unit in which work is done, for progress: see `RunSpec.work`."""
    return "M packet hops/s (estimated)" if engine_of(engine).has_packets else REAL_TIME


def run_command(scenario: str, overrides: Overrides, *options: str) -> str:
    """The command that runs a scenario."""
    return shlex.join(["mptcplab", "run", scenario, *overrides.to_options(), *options])


def resolved_runs(scenario: Path, overrides: Overrides) -> list[dict[str, Any]]:
    """The runs of a scenario with all defaults filled in."""
    found: list[dict[str, Any]] = json.loads(_core.runs_json(str(scenario), overrides.to_json()))
    return found


@cache
def topology(scenario: Path, settings: tuple[tuple[str, str], ...] = (), cc: str | None = None) -> Topology:
    """The network and the flows of a scenario with some settings."""
    overrides = Overrides(cc=() if cc is None else (cc,), reps=1, settings=dict(settings))
    return Topology.from_json(json.dumps(resolved_runs(scenario, overrides)[0]))


def digest_of(*parts: Any, **named: Any) -> str:
    """The digest of anything that JSON can hold."""
    return hashlib.sha256(json.dumps([parts, named], sort_keys=True).encode()).hexdigest()[:32]


def algorithm_digests() -> dict[str, str]:
    """The digest of every algorithm's source, by name; those of files are as they were compiled last."""
    return _built_sources() | compiled_sources()


@cache
def _built_sources() -> dict[str, str]:
    return {entry["name"]: entry["source"] for entry in json.loads(_core.algorithms_json())}
