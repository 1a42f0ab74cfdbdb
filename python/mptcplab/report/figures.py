"""The figures of a report: goodput per configuration, and quantities over time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mptcplab.metrics import REGISTRY
from mptcplab.plots.goodput import GoodputData, goodput_figure
from mptcplab.plots.over_time import PANELS, Column, whole_run
from mptcplab.plots.saving import FigureOverTime, PageFigure
from mptcplab.report.drawn_values import drawn_metrics
from mptcplab.report.parameter_figures import curves_figure, maps_figure
from mptcplab.report.parameters import (
    is_drawn_over_parameter,
    maps,
    numeric_axes,
    over_parameter,
)
from mptcplab.report.request_figures import request_figures
from mptcplab.report.series import PlotData, RunPlots
from mptcplab.text import evenly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matplotlib.figure import Figure

    from mptcplab.trace.reader import Trace

MAX_COLUMNS = 12


def figures_over_time(plots: PlotData, directory: Path) -> list[FigureOverTime]:
    """The figures over time that belong into `directory`."""
    columns, left_out = first_repetitions(plots)
    return [
        FigureOverTime.of(columns, panel, left_out, directory)
        for panel in PANELS
        if any(column.of(panel) for column in columns)
    ]


def metric_figures(trace: Trace, goodput: GoodputData, directory: Path | None) -> list[PageFigure]:
    """The figures of metrics, over the parameter of a sweep or else goodput as bars, and those of requests."""
    found = []
    for name, draw in _of_metrics(trace, goodput):
        metric, dash, _ = name.partition("-")
        title = REGISTRY[metric].title + (" over two parameters" if dash else "")
        found.append(PageFigure(name, title, draw, directory))
    return found + [PageFigure(*one, directory) for one in request_figures(trace)]


def _of_metrics(trace: Trace, goodput: GoodputData) -> Iterator[tuple[str, Callable[[], Figure]]]:
    if not is_drawn_over_parameter(trace):
        if goodput.rows:
            yield "goodput", partial(goodput_figure, goodput)
        return
    for metric in drawn_metrics(trace):
        yield metric, partial(curves_figure, over_parameter(trace, metric))
    if len(numeric_axes(trace)) > 1:
        yield "goodput-map", partial(maps_figure, maps(trace))


def first_figure(column: Column) -> PageFigure:
    """The first run over time, which only the page shows."""
    return PageFigure("time", "The first run over time", partial(whole_run, column), None)


def first_repetitions(plots: PlotData) -> tuple[list[Column], str | None]:
    """The first run of every configuration, and what is left out where a figure has no room for all.

    Then every algorithm keeps some: the first, the last and others between them.
    """
    firsts: dict[str, RunPlots] = {}
    for run in plots.runs:
        firsts.setdefault(run.column.title, run)
    runs = list(firsts.values())
    if len(runs) <= MAX_COLUMNS:
        return [run.column for run in runs], about_columns(plots, runs)
    by_algorithm: dict[str, list[RunPlots]] = {}
    for run in runs:
        by_algorithm.setdefault(run.column.title.partition(",")[0], []).append(run)
    each = max(1, MAX_COLUMNS // len(by_algorithm))
    kept = [one for group in by_algorithm.values() for one in evenly(group, each)]
    how = "the page and results.plot.over_time(CONFIGURATION) show each of them"
    note = f"{len(kept)} of {len(runs)} configurations; {how}"
    return [run.column for run in kept], "; ".join(filter(None, [note, about_columns(plots, kept)]))


def about_columns(plots: PlotData, runs: Sequence[RunPlots]) -> str | None:
    """A note on the lines that figures over time do not have, and on which repetition of several they show."""
    parts = [f"{', '.join(plots.lines)}: the page and Results.subflow have the others"] if plots.lines else []
    if plots.repetitions > 1 and runs:
        # Where the first one does not count or has no samples, it has another title.
        first = runs[0].rep
        others = [f"of {run.column.title} repetition {run.rep + 1}" for run in runs if run.rep != first]
        parts += [f"repetition {first + 1} of {plots.repetitions}", *others]
    return "; ".join(parts) or None
