"""The runs that the claims and figures of the papers need, with their settings."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mptcplab import _core
from mptcplab.capabilities import engine_of
from mptcplab.errors import within
from mptcplab.studies.papers.catalog import MOST_REPETITIONS, Dialect, Experiment, Library
from mptcplab.studies.papers.treatments import in_dialect, treatment, with_parameter
from mptcplab.study import cell as cells
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.study.decision import Rule
from mptcplab.trace.rules import algorithms_with_dialect
from mptcplab.trace.topology import Topology

# Repetitions of a quick reproduction.
QUICK_REPETITIONS = 3
# A quick reproduction measures no longer than this, where the length of a run decides nothing.
QUICK_SECONDS = 60.0
# How far such a short run may misstate a quantity, as a part of it (papers/README.md).
QUICK_ALLOWANCE = 0.1
# What iperf3 shows of a connection's socket: only kernel engines have one.
SOCKET = ("iperf_cwnd_range", "iperf_retr")
# Metrics of the whole window of a run.
METRICS = (
    *("throughput", "goodput", "pps", "receiver_rate", "sender_rate", "std_1s", "ftt", "agr_bf", "retx", "rto_count"),
    *("rto_time", "rtt_mean", "rtt_correlation", "decrease_mild", "utilisation", "loss"),
    *("ideal", "ideal_subflow", "ideal_propfair"),
    *SOCKET,
)


@dataclass(frozen=True)
class Planner:
    """Maps cells to runs of one engine; `quick` makes them shorter, `most` limits their repetitions."""

    library: Library
    engine: str
    quick: bool
    most: int = MOST_REPETITIONS
    _specs: dict[Cell, RunSpec] = field(default_factory=dict, compare=False, repr=False)

    def repetitions(self, experiment: Experiment) -> int:
        """Repetitions of one block."""
        if not engine_of(self.engine).repetitions_differ:
            return 1
        return min(experiment.repetitions, self.most, QUICK_REPETITIONS if self.quick else self.most)

    def more_blocks(self, experiments: Iterable[str]) -> int:
        """Further blocks that a claim about these experiments may ask for while it stays open."""
        if self.quick or not engine_of(self.engine).repetitions_differ:
            return 0
        most = (self.most // self.library.experiments[name].repetitions - 1 for name in experiments)
        return max(0, min(most, default=0))

    def rule(self, experiments: Collection[str]) -> Rule:
        """The rule that decides claims about these experiments."""
        if not self.quick:
            return Rule(1 + self.more_blocks(experiments))
        shortened = any(self._seconds(self.library.experiments[name]) is not None for name in experiments)
        return Rule(provisional=bool(experiments), allowance=QUICK_ALLOWANCE if shortened else 0.0)

    def drawn_cells(self, experiment: Experiment) -> list[Cell]:
        """The cells that the figures of an experiment show: every algorithm at every point, in the paper's profile."""
        own = self.library.source(experiment)
        return [Cell(own.id, label, point, own.profile) for label in own.algorithms for point in own.labels]

    def spec(self, cell: Cell) -> RunSpec:
        """The runs of a cell. An error names the file, the experiment and what it asks for."""
        if cell not in self._specs:
            experiment = self.library.experiments[cell.experiment]
            asked = ", ".join(part for part in (cell.label, cell.point, cell.variant) if part)
            with within(f"{experiment.scenario.parent / 'paper.toml'}: experiments.{experiment.id}: {asked}"):
                self._specs[cell] = found = self._spec(cell)
                # Reads the scenario with these settings.
                _ = found.topology
        return self._specs[cell]

    def _spec(self, cell: Cell) -> RunSpec:
        experiment = self.library.experiments[cell.experiment]
        settings = self._settings(experiment, cell.point, cell.variant)
        chosen = treatment(cell.label, self.topology(experiment), algorithm_names())
        parameter = experiment.parameters.get(cell.label)
        cc = with_parameter(chosen.cc, parameter) if chosen.cc is not None and parameter else chosen.cc
        settings |= chosen.settings
        if experiment.scheduler and _leaves_scheduler_open(experiment.scenario, settings, cc):
            settings["scheduler"] = f'"{experiment.scheduler}"'
        return RunSpec(
            experiment.scenario,
            self._in_dialect(cc, experiment.dialect_in(cell.profile)),
            cell.profile,
            self.repetitions(experiment),
            1 + cell.block,
            tuple(settings.items()),
            METRICS,
            tuple((name, *edges) for name, edges in experiment.spans.items()),
            cell.block == 0
            and self.most == MOST_REPETITIONS
            and any(figure.kind == "time" for figure in experiment.figures),
        )

    def _in_dialect(self, cc: str | None, dialect: Dialect) -> str | None:
        """An algorithm as the paper's kernel had it; equations know no dialect."""
        if cc is None or not engine_of(self.engine).has_packets:
            return cc
        return in_dialect(cc, dialect, algorithms_with_dialect())

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
        settings |= engine_of(self.engine).requires
        seconds = self._seconds(experiment)
        if seconds is not None and "duration" not in settings:
            settings["duration"] = f'"{seconds:g} s"'
        return settings

    def _seconds(self, experiment: Experiment) -> float | None:
        """The duration of an experiment's runs where it is shorter than the scenario's."""
        if not self.quick or experiment.spans:
            return None
        whole = cells.topology(experiment.scenario)
        seconds = whole.warmup_ns / 1e9 + QUICK_SECONDS
        return seconds if seconds < whole.duration_ns / 1e9 else None


@cache
def algorithm_names() -> set[str]:
    """Algorithms of this build."""
    return {entry["name"] for entry in json.loads(_core.algorithms_json())}


def _leaves_scheduler_open(scenario: Path, settings: Mapping[str, str], cc: str | None) -> bool:
    """Whether there is an MPTCP connection without a scheduler of its own."""
    flows = cells.topology(scenario, tuple(settings.items()), cc).flows
    return any(flow.transport == "mptcp" and not flow.scheduler for flow in flows)
