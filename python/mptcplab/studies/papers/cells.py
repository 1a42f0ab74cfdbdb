"""What has to be run: cells, each one algorithm in one setting of an experiment, with a block of repetitions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from mptcplab import _core
from mptcplab.capabilities import ENGINES
from mptcplab.scenario import Overrides
from mptcplab.studies.papers.catalog import Experiment, Library
from mptcplab.studies.papers.treatments import Treatment, treatment
from mptcplab.trace.topology import Topology

# Repetitions up to which an inconclusive claim gets more, and those of a first answer.
MOST_REPETITIONS = 30
QUICK_REPETITIONS = 3
# A first answer measures no longer than this, where the length of a run decides nothing.
QUICK_SECONDS = 60.0


@dataclass(frozen=True, order=True)
class Cell:
    """One algorithm (or other treatment) at one point of an experiment; `block` counts further repetitions."""

    experiment: str
    label: str
    point: str
    profile: str
    variant: str
    block: int = 0


@dataclass(frozen=True)
class Recipe:
    """A cell as the engine sees it: the scenario file and what is changed in it."""

    scenario: Path
    cc: str | None
    profile: str
    repetitions: int
    seed: int
    settings: tuple[tuple[str, str], ...]

    def overrides(self, *cc: str) -> Overrides:
        """For one run of the engine; `cc` instead of its own algorithm."""
        chosen = cc or ((self.cc,) if self.cc is not None else ())
        return Overrides(
            cc=chosen, reps=self.repetitions, seed=self.seed, profile=(self.profile,), settings=dict(self.settings)
        )

    def resolved(self) -> list[dict[str, Any]]:
        """Every repetition with all defaults filled in."""
        return _runs(str(self.scenario), self.overrides().to_json())


@dataclass(frozen=True)
class Kitchen:
    """Makes recipes of cells, for one engine; `quick` makes shorter ones."""

    library: Library
    engine: str
    quick: bool

    def repetitions(self, experiment: Experiment) -> int:
        """Repetitions of one block."""
        if not ENGINES[self.engine].repetitions_differ:
            return 1
        return min(experiment.repetitions, QUICK_REPETITIONS) if self.quick else experiment.repetitions

    def more_blocks(self, experiment: Experiment) -> int:
        """Further blocks that an inconclusive claim may ask for."""
        if self.quick or not ENGINES[self.engine].repetitions_differ:
            return 0
        return max(0, MOST_REPETITIONS // experiment.repetitions - 1)

    def recipe(self, cell: Cell) -> Recipe:
        """What the engine runs for a cell."""
        experiment = self.library.experiments[cell.experiment]
        settings = self._settings(experiment, cell.point, cell.variant)
        chosen = self._treatment(experiment, cell)
        return Recipe(
            experiment.scenario,
            chosen.cc,
            cell.profile,
            self.repetitions(experiment),
            1 + cell.block,
            tuple((settings | chosen.settings).items()),
        )

    def topology(self, experiment: Experiment) -> Topology:
        """The network and the flows of an experiment, as its scenario has them."""
        settings = self._settings(experiment, experiment.points[0].label if experiment.sweep else "", "")
        return _topology(str(experiment.scenario), tuple(settings.items()))

    def cell_topology(self, cell: Cell) -> Topology:
        """The network and the flows of a cell."""
        recipe = self.recipe(cell)
        return _topology(str(recipe.scenario), recipe.settings, recipe.cc)

    def _treatment(self, experiment: Experiment, cell: Cell) -> Treatment:
        return treatment(cell.label, self.topology(experiment), algorithm_names())

    def _settings(self, experiment: Experiment, point: str, variant: str) -> dict[str, str]:
        settings = {"sample": f'"{experiment.sample}"', **experiment.settings}
        if point:
            settings |= experiment.point(point).settings
        if variant:
            settings |= experiment.variants[variant]
        settings |= ENGINES[self.engine].requires
        if self.quick and not experiment.spans and "duration" not in settings:
            settings["duration"] = f'"{self._short(experiment):g} s"'
        return settings

    def _short(self, experiment: Experiment) -> float:
        whole = _topology(str(experiment.scenario), ())
        warmup, duration = whole.warmup_ns / 1e9, whole.duration_ns / 1e9
        return min(duration, warmup + QUICK_SECONDS)


@cache
def algorithm_names() -> set[str]:
    """Algorithms of this build."""
    return {entry["name"] for entry in json.loads(_core.algorithms_json())}


@cache
def _topology(scenario: str, settings: tuple[tuple[str, str], ...], cc: str | None = None) -> Topology:
    overrides = Overrides(cc=() if cc is None else (cc,), reps=1, settings=dict(settings))
    return Topology.from_json(json.dumps(_runs(scenario, overrides.to_json())[0]))


def _runs(scenario: str, overrides: str) -> list[dict[str, Any]]:
    return json.loads(_core.runs_json(scenario, overrides))


@dataclass(frozen=True)
class Digests:
    """What results are stored by: a digest of everything that decides them, and nothing else."""

    engine: str
    spans: Mapping[str, tuple[float, float]]

    def of(self, recipe: Recipe) -> str:
        """The digest of one cell: its resolved runs, its algorithms' sources, engine and metrics."""
        runs = recipe.resolved()
        sources = algorithm_digests()
        used = sorted({name for run in runs for name in _algorithms(run)})
        parts = {
            "runs": runs,
            "algorithms": {name: sources[name] for name in used if name in sources},
            "engine": self._engine,
            "metrics": python_digest("metrics", "studies/papers/measure.py", "trace/samples.py", "trace/topology.py"),
            "spans": dict(self.spans),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    @cached_property
    def _engine(self) -> str:
        return engine_digest(self.engine)


def _algorithms(run: Mapping[str, Any]) -> set[str]:
    return {flow["cc"]["name"] for flow in run["flows"] if "cc" in flow and isinstance(flow["cc"], dict)}


@cache
def algorithm_digests() -> dict[str, str]:
    """Of every algorithm's source."""
    return {entry["name"]: entry["source"] for entry in json.loads(_core.algorithms_json())}


@cache
def engine_digest(engine: str) -> str:
    """What an engine's numbers depend on besides scenario and algorithm."""
    own = _core.build_info()["engine"]
    if engine == "sim":
        return own
    if engine == "fluid":
        import scipy

        return f"{own} {python_digest('engines/fluid')} scipy {scipy.__version__}"
    import platform

    program = files("mptcplab").joinpath("_bin", "mptcplab-kernel").read_bytes()
    return f"{hashlib.sha256(program).hexdigest()} Linux {platform.release()}"


# Of the metrics' package, what works on values that others have measured.
_UNMEASURED = frozenset({"goals.py", "differences.py", "stats.py"})


@cache
def python_digest(*parts: str) -> str:
    """Digest of modules of this package that decide numbers."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for part in parts:
        place = root / part
        modules = [path for path in sorted(place.glob("*.py")) if path.name not in _UNMEASURED]
        for path in modules if place.is_dir() else [place]:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
