"""The results written down: the page, its figures, the networks as CSV, and the worst network of each goal."""

from __future__ import annotations

import base64
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mptcplab import _core
from mptcplab.algorithm import as_given
from mptcplab.output import write_text
from mptcplab.plots.figure import save
from mptcplab.report import page
from mptcplab.scenario import Overrides, as_names
from mptcplab.studies.goals import GOALS, Goal, NetworkResult, Study
from mptcplab.studies.goals.figures import heat_map
from mptcplab.studies.goals.judge import GoalFinding
from mptcplab.studies.goals.measure import Values
from mptcplab.studies.goals.scenarios import BASE_RTT_MS, RATE_1_MBPS, RATE_2_MBPS, Setting, scenario
from mptcplab.study.page import writing_page
from mptcplab.study.verdict import Verdict
from mptcplab.text import NOT_APPLICABLE

PAGE, NETWORKS, FIGURES = "goals.html", "networks.csv", "figures"
_STYLE = """\
img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
.goals td:nth-child(n+6), .goals th:nth-child(n+6) { text-align: left; white-space: normal; min-width: 10rem; }
.goals th[scope="row"] { white-space: normal; min-width: 7rem; }
a { color: inherit; }
.cells td, .cells th { text-align: left; }
"""


def write(study: Study, command: str | None) -> None:
    """Create the study's directory and write everything into it; `command` repeats it, where one can."""
    out = study.directory
    with writing_page(study.page):
        (out / FIGURES).mkdir(parents=True)
        write_text(out / NETWORKS, networks(study).write_csv())
        for goal in GOALS:
            worst = study.worst(goal)
            if worst is not None:
                write_text(study.worst_file(goal), worst_scenario(study, goal, worst))
                save(heat_map(study, goal), out / FIGURES / f"goal-{goal.number}")
        write_text(study.page, render(study, command))


def is_former(directory: Path) -> bool:
    """Whether a directory has the results of an earlier study and nothing else."""
    entries = {entry.name for entry in directory.iterdir()}
    known = {PAGE, NETWORKS, FIGURES, *(f"worst-goal-{goal.number}.toml" for goal in GOALS)}
    return {PAGE, NETWORKS} <= entries <= known


def command(setting: Setting, *, quick: bool) -> str:
    """The command that repeats a study."""
    options = Overrides(seed=setting.seed, profile=as_names(setting.profile, "profile", "rfc")).to_options()
    words = ["mptcplab", "goals", as_given(setting.cc), *setting.engine_options, *options]
    return shlex.join([*words, *(["--quick"] if quick else [])])


def lines(study: Study) -> list[str]:
    """A line per goal."""
    return [_line(study, goal) for goal in GOALS]


def _line(study: Study, goal: Goal) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in study.counts(goal).items())
    worst = study.worst(goal)
    where = "" if worst is None else f"; worst: {interval(worst.finding(goal))}, {worst.network.text}"
    return f"goal {goal.number}, {goal.name}: {counts}{where}"


def as_data(study: Study) -> dict[str, Any]:
    """The study for programs."""
    return {
        "cc": study.setting.cc,
        "engine": study.setting.engine,
        "page": str(study.page),
        "networks": str(study.directory / NETWORKS),
        "goals": [_goal_data(study, goal) for goal in GOALS],
    }


def _goal_data(study: Study, goal: Goal) -> dict[str, Any]:
    worst = study.worst(goal)
    found: dict[str, Any] = {"goal": goal.number, "name": goal.name, "counts": study.counts(goal), "worst": None}
    if worst is not None:
        finding = worst.finding(goal)
        found["worst"] = {
            "network": asdict(worst.network),
            "verdict": finding.verdict,
            **{name: getattr(finding, name) for name in ("margin", "low", "high", "reason")},
            "scenario": str(study.worst_file(goal)),
            "commands": list(study.worst_commands(goal)),
        }
    return found


def networks(study: Study) -> pl.DataFrame:
    """One row per network: its parameters, the verdict on each goal with its margin, and the means behind them."""
    return pl.DataFrame([_row(result) for result in study.results], infer_schema_length=None)


def _row(result: NetworkResult) -> dict[str, Any]:
    network, measured, judged = result.network, result.measured, result.judged
    row: dict[str, Any] = {
        "kind": network.kind,
        "rtt_ratio": float(network.rtt_ratio),
        "loss_percent": float(network.loss_percent),
        "buffer_bdp": float(network.buffer_bdp),
        "competitor": network.competitor,
    }
    for number, found in enumerate(judged.goals, 1):
        values = {"": found.verdict.value, "_margin": found.margin, "_low": found.low, "_high": found.high}
        row |= {f"goal_{number}{key}": value for key, value in values.items()}
    row |= {"goal_2_every_path_margin": judged.every_path, "balance": judged.balance, "shift": judged.shift}
    row["goodput_mbps"] = mean(measured.goodput)
    paths = list(measured.single_paths)
    rivals = list(measured.beside_mp)
    for number, path in enumerate(paths, 1):
        # Where both paths share the bottleneck, the only competitor is that of both.
        rival = rivals[min(number, len(rivals)) - 1]
        row |= {
            f"one_tcp_on_path_{number}_mbps": mean(measured.single_paths[path]),
            f"competitor_{number}_mbps": mean(measured.beside_mp[rival]),
            f"competitor_{number}_beside_tcp_mbps": mean(measured.beside_tcp[path][rival]),
        }
    for number in (1, 2):
        link = list(measured.losses)[number - 1] if number <= len(measured.losses) else None
        row |= {
            f"bottleneck_{number}_loss_percent": None if link is None else mean(measured.losses[link]),
            f"bottleneck_{number}_load_mbps": None if link is None else mean(measured.loads[link]),
            f"bottleneck_{number}_uncoupled_load_mbps": None if link is None else mean(measured.uncoupled_loads[link]),
        }
    return row


def mean(values: Values) -> float | None:
    """The mean over the repetitions; None where one of them does not count."""
    return None if np.isnan(values).any() else float(values.mean())


def worst_scenario(study: Study, goal: Goal, worst: NetworkResult) -> str:
    """The scenario file of a worst network; its comment says what was measured and how to measure it again."""
    found = worst.finding(goal)
    remarks = [
        f"The worst network of goal {goal.number} ({goal.name}) for {study.setting.cc}: {found.reason}.",
        f"Margin {interval(found)} of the goal's reference: {found.verdict}. To see it again:",
        "",
        *(f"    {line}" for line in study.worst_commands(goal, study.worst_file(goal).name)),
    ]
    return scenario(worst.network, study.grid, study.setting, remarks)


def interval(found: GoalFinding) -> str:
    """A margin with the interval that decides, percent of the goal's reference."""
    if found.low is None or found.high is None:
        return NOT_APPLICABLE
    low, high = (f"{100 * edge:+.1f}" for edge in (found.low, found.high))
    margin = NOT_APPLICABLE if found.margin is None else f"{100 * found.margin:+.1f} %"
    return f"{margin} ({low} to {high})".replace("-", "\N{MINUS SIGN}")


def _heat_map_url(study: Study, goal: Goal) -> str:
    """The heat map of a goal, as it was written, inside a URL."""
    png = (study.directory / FIGURES / f"goal-{goal.number}.png").read_bytes()
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def render(study: Study, command: str | None) -> str:
    """The HTML text of the page; the heat maps must have been written."""
    kinds = {result.network.kind: result.network for result in reversed(study.results)}
    return page.render(
        __package__,
        PAGE,
        style=_STYLE,
        title=f"The goals of Multipath TCP: {study.setting.cc}",
        cc=study.setting.cc,
        study=study,
        goals=GOALS,
        verdicts=tuple(Verdict),
        heat_map=_heat_map_url,
        interval=interval,
        mean=mean,
        nothing=NOT_APPLICABLE,
        networks_file=NETWORKS,
        command=command,
        version=_core.version(),
        build=_core.build_info(),
        rates=(RATE_1_MBPS, RATE_2_MBPS),
        base_rtt_ms=BASE_RTT_MS,
        examples={kind: scenario(network, study.grid, study.setting) for kind, network in reversed(kinds.items())},
    )
