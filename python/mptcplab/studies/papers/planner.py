"""The runs that the claims and figures of the papers need, with their settings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from mptcplab import _core
from mptcplab.capabilities import ENGINES
from mptcplab.studies.papers.catalog import Experiment, Library
from mptcplab.studies.papers.treatments import treatment
from mptcplab.study import cell as cells
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.trace.topology import Topology

# Repetitions up to which a claim that stays open gets more, and those of a quick reproduction.
MOST_REPETITIONS = 30
QUICK_REPETITIONS = 3
# A quick reproduction measures no longer than this, where the length of a run decides nothing.
QUICK_SECONDS = 60.0
# Metrics of the whole window of a run.
METRICS = (
    *("throughput", "goodput", "pps", "receiver_rate", "sender_rate", "std_1s", "ftt", "agr_bf", "retx", "rto_count"),
    *("rto_time", "rtt_mean", "rtt_correlation", "decrease_mild", "utilisation", "loss"),
    *("ideal", "ideal_subflow", "ideal_propfair"),
)


@dataclass(frozen=True)
class Planner:
    """Maps cells to runs of one engine; `quick` makes them shorter."""

    library: Library
    engine: str
    quick: bool
    _specs: dict[Cell, RunSpec] = field(default_factory=dict, compare=False, repr=False)

    def repetitions(self, experiment: Experiment) -> int:
        """Repetitions of one block."""
        if not ENGINES[self.engine].repetitions_differ:
            return 1
        return min(experiment.repetitions, QUICK_REPETITIONS) if self.quick else experiment.repetitions

    def more_blocks(self, experiments: Iterable[str]) -> int:
        """Further blocks that a claim about these experiments may ask for while it stays open."""
        if self.quick or not ENGINES[self.engine].repetitions_differ:
            return 0
        most = (MOST_REPETITIONS // self.library.experiments[name].repetitions - 1 for name in experiments)
        return max(0, min(most, default=0))

    def drawn_cells(self, experiment: Experiment) -> list[Cell]:
        """The cells that the figures of an experiment show: every algorithm at every point, in the paper's profile."""
        own = self.library.source(experiment)
        return [Cell(own.id, label, point, own.profile) for label in own.algorithms for point in own.labels]

    def spec(self, cell: Cell) -> RunSpec:
        """The runs of a cell."""
        if cell not in self._specs:
            self._specs[cell] = self._spec(cell)
        return self._specs[cell]

    def _spec(self, cell: Cell) -> RunSpec:
        experiment = self.library.experiments[cell.experiment]
        settings = self._settings(experiment, cell.point, cell.variant)
        chosen = treatment(cell.label, self.topology(experiment), algorithm_names())
        return RunSpec(
            experiment.scenario,
            chosen.cc,
            cell.profile,
            self.repetitions(experiment),
            1 + cell.block,
            tuple((settings | chosen.settings).items()),
            METRICS,
            tuple((name, *edges) for name, edges in experiment.spans.items()),
            cell.block == 0 and any(figure.kind == "time" for figure in experiment.figures),
        )

    def topology(self, experiment: Experiment) -> Topology:
        """The network and the flows of an experiment, as its scenario has them."""
        settings = self._settings(experiment, experiment.labels[0], "")
        return cells.topology(experiment.scenario, tuple(settings.items()))

    def _settings(self, experiment: Experiment, point: str, variant: str) -> dict[str, str]:
        settings = {"sample": f'"{experiment.sample}"', **experiment.settings}
        if point:
            settings |= experiment.point(point).settings
        if variant:
            settings |= experiment.variants[variant]
        settings |= ENGINES[self.engine].requires
        if self.quick and not experiment.spans and "duration" not in settings:
            whole = cells.topology(experiment.scenario)
            seconds = min(whole.duration_ns / 1e9, whole.warmup_ns / 1e9 + QUICK_SECONDS)
            settings["duration"] = f'"{seconds:g} s"'
        return settings


@cache
def algorithm_names() -> set[str]:
    """Algorithms of this build."""
    return {entry["name"] for entry in json.loads(_core.algorithms_json())}
