"""A study written down: the page, its pictures, the cells as CSV, the worst cell of each goal as a scenario."""

from __future__ import annotations

import base64
import shlex
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from mptcplab import _core
from mptcplab.errors import OutputError
from mptcplab.output import write_text
from mptcplab.plots.figure import save
from mptcplab.scenario import Overrides
from mptcplab.studies.goals.figures import heat_map, signed
from mptcplab.studies.goals.judge import NOT_ASKED, Judgement
from mptcplab.studies.goals.scenarios import BASE_RTT_MS, RATE_1_MBPS, RATE_2_MBPS, Setting, scenario
from mptcplab.studies.goals.study import GOALS, CellResult, Goal, Study, judgement
from mptcplab.studies.papers.bootstrap import COUNT
from mptcplab.text import NOT_APPLICABLE

CELLS, FIGURES = "cells.csv", "figures"


def write(study: Study, command: str | None) -> None:
    """Create the study's directory and write everything into it; `command` repeats it, where one can."""
    try:
        _write(study, command)
    except OSError as error:
        raise OutputError(f"cannot write the page: {error.filename or study.page}: {error.strerror}") from error


def _write(study: Study, command: str | None) -> None:
    out = study.directory
    (out / FIGURES).mkdir(parents=True)
    write_text(out / CELLS, cells(study).write_csv())
    for goal in GOALS:
        worst = study.worst(goal)
        if worst is not None:
            write_text(study.worst_file(goal), worst_scenario(study, goal, worst))
            save(heat_map(study, goal), out / FIGURES / f"goal-{goal.number}")
    write_text(study.page, render(study, command))


def is_former(directory: Path) -> bool:
    """Whether a directory holds an earlier study and nothing else."""
    entries = {entry.name for entry in directory.iterdir()}
    known = {"goals.html", CELLS, FIGURES, *(f"worst-goal-{goal.number}.toml" for goal in GOALS)}
    return {"goals.html", CELLS} <= entries <= known


def command(setting: Setting, *, quick: bool) -> str:
    """The command that repeats a study."""
    options = Overrides(seed=setting.seed, profile=(setting.profile,)).to_options()
    return shlex.join(["mptcplab", "goals", setting.cc, *options, *(["--quick"] if quick else [])])


def lines(study: Study) -> list[str]:
    """The study in three lines."""
    return [_line(study, goal) for goal in GOALS]


def _line(study: Study, goal: Goal) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in study.counts(goal).items())
    worst = study.worst(goal)
    where = "" if worst is None else f"; worst: {interval(judgement(worst, goal))}, {worst.cell.text}"
    return f"goal {goal.number}, {goal.name}: {counts}{where}"


def as_data(study: Study) -> dict[str, Any]:
    """The study for programs."""
    return {
        "cc": study.setting.cc,
        "page": str(study.page),
        "cells": str(study.directory / CELLS),
        "goals": [_goal_data(study, goal) for goal in GOALS],
    }


def _goal_data(study: Study, goal: Goal) -> dict[str, Any]:
    worst = study.worst(goal)
    found: dict[str, Any] = {"goal": goal.number, "name": goal.name, "counts": study.counts(goal), "worst": None}
    if worst is not None:
        found["worst"] = {
            "cell": asdict(worst.cell),
            **asdict(judgement(worst, goal)),
            "scenario": str(study.worst_file(goal)),
            "commands": list(study.worst_commands(goal)),
        }
    return found


def cells(study: Study) -> pl.DataFrame:
    """One row per cell: where it is, the verdict on each goal with its margin, and the means behind them."""
    return pl.DataFrame([_row(result) for result in study.results], infer_schema_length=None)


def _row(result: CellResult) -> dict[str, Any]:
    cell, measured, judged = result.cell, result.measured, result.judged
    row: dict[str, Any] = {
        "kind": cell.kind,
        "rtt_ratio": float(cell.rtt_ratio),
        "loss_percent": float(cell.loss_percent),
        "buffer_bdp": float(cell.buffer_bdp),
        "competitor": cell.competitor,
    }
    for number, found in enumerate(judged.goals, 1):
        values = {"": found.verdict, "_margin": found.margin, "_low": found.low, "_high": found.high}
        row |= {f"goal_{number}{key}": value for key, value in values.items()}
    row |= {"goal_2_every_path_margin": judged.every_path, "balance": judged.balance, "shift": judged.shift}
    row["goodput_mbps"] = measured.goodput.mean()
    paths = list(measured.single_paths)
    rivals = list(measured.beside_mp)
    for number, path in enumerate(paths, 1):
        # Where both paths share the bottleneck, the only competitor is that of both.
        rival = rivals[min(number, len(rivals)) - 1]
        row |= {
            f"one_tcp_on_path_{number}_mbps": measured.single_paths[path].mean(),
            f"competitor_{number}_mbps": measured.beside_mp[rival].mean(),
            f"competitor_{number}_beside_tcp_mbps": measured.beside_tcp[path][rival].mean(),
        }
    for number in (1, 2):
        link = list(measured.losses)[number - 1] if number <= len(measured.losses) else None
        row |= {
            f"bottleneck_{number}_loss_percent": None if link is None else measured.losses[link].mean(),
            f"bottleneck_{number}_load_mbps": None if link is None else measured.loads[link].mean(),
            f"bottleneck_{number}_uncoupled_load_mbps": None if link is None else measured.uncoupled_loads[link].mean(),
        }
    return row


def worst_scenario(study: Study, goal: Goal, worst: CellResult) -> str:
    """The scenario file of a worst cell; its comment says what was measured and how to measure it again."""
    found = judgement(worst, goal)
    remarks = [
        f"The worst cell of goal {goal.number} ({goal.name}) for {study.setting.cc}: {found.text}.",
        f"Margin {interval(found)} of the goal's reference: {found.verdict}. To see it again:",
        "",
        *(f"    {line}" for line in study.worst_commands(goal, study.worst_file(goal).name)),
    ]
    return scenario(worst.cell, study.grid, study.setting, remarks)


def interval(found: Judgement) -> str:
    """A margin with its 95 % interval, percent of the goal's reference."""
    if found.low is None or found.high is None:
        return NOT_APPLICABLE
    low, high = (f"{100 * edge:+.1f}" for edge in (found.low, found.high))
    margin = NOT_APPLICABLE if found.margin is None else f"{100 * found.margin:+.1f} %"
    return f"{margin} (95 %: {low} to {high})".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Section:
    """What the page says about one goal."""

    goal: Goal
    counts: dict[str, int]
    picture: str
    worst: CellResult | None
    found: Judgement | None
    file: str
    commands: tuple[str, ...]


def sections(study: Study) -> list[Section]:
    """The goals in their order."""
    return [_section(study, goal) for goal in GOALS]


def _section(study: Study, goal: Goal) -> Section:
    worst = study.worst(goal)
    picture = ""
    if worst is not None:
        picture = (study.directory / FIGURES / f"goal-{goal.number}.png").read_bytes()
        picture = "data:image/png;base64," + base64.b64encode(picture).decode("ascii")
    found = None if worst is None else judgement(worst, goal)
    file = study.worst_file(goal).name
    return Section(goal, study.counts(goal), picture, worst, found, file, study.worst_commands(goal, file))


def render(study: Study, command: str | None) -> str:
    """The HTML text of the page; the pictures must have been written."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["signed"] = signed
    template = environment.from_string(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    kinds = {result.cell.kind: result.cell for result in reversed(study.results)}
    return template.render(
        style=files("mptcplab.report").joinpath("page.css").read_text(encoding="utf-8"),
        cc=study.setting.cc,
        grid=study.grid,
        setting=study.setting,
        sections=sections(study),
        results=study.results,
        interval=interval,
        not_asked=NOT_ASKED,
        nothing=NOT_APPLICABLE,
        cells=CELLS,
        command=command,
        version=_core.version(),
        build=_core.build_info(),
        resamples=COUNT,
        rates=(RATE_1_MBPS, RATE_2_MBPS),
        base_rtt_ms=BASE_RTT_MS,
        examples={kind: scenario(cell, study.grid, study.setting) for kind, cell in reversed(kinds.items())},
    )
