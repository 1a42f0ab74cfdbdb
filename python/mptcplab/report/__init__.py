"""Reports: metrics and traces in, one self-contained page, figures and tables out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mptcplab.axes import axes
from mptcplab.errors import OutputError, with_hint
from mptcplab.output import write_lines, write_text

if TYPE_CHECKING:
    import polars as pl

    from mptcplab.plots.saving import Drawing
    from mptcplab.report.judged import Judged
    from mptcplab.report.pictures import Pictures
    from mptcplab.report.series import PlotData
    from mptcplab.trace.reader import Trace

__all__ = ["write_report"]


def write_report(trace: Trace, path: Path, *, figures: bool = True, judged: Judged | None = None) -> Path:
    """Write the page to `path`; beside it summary.csv, summary.json, metrics.csv and figures/. Return `path`.

    `judged` is the comparison of the engines, where somebody asked for one.
    """
    from mptcplab.plots.saving import Drawing
    from mptcplab.report.figures import figures_over_time

    if path.is_dir():
        raise OutputError(with_hint(f"the report is one file, and this is a directory: {path}", f"{path}/report.html"))
    directory = path.with_name("figures") if figures else None
    saved: list[Callable[[], None]] = []
    with Drawing(_runs_over_time(trace) if figures else 0) as drawing:

        def begin(plots: PlotData) -> None:
            if directory:
                saved.extend(drawing.begin(one.save) for one in figures_over_time(plots, directory))

        summary, pictures = _read_once(trace, begin)
        try:
            # Before any file is replaced, so that nothing is if there can be no figures.
            (directory or path.parent).mkdir(parents=True, exist_ok=True)
            _write(trace, path, summary, pictures, drawing, directory, judged)
            for finish in saved:
                finish()
        except OSError as error:
            hint = "the traces stay as they are: `mptcplab report DIRECTORY` writes the report of them again"
            raise OutputError(
                with_hint(f"cannot write the report: {error.filename or path}: {error.strerror}", hint)
            ) from error
    return path


def _runs_over_time(trace: Trace) -> int:
    """How many runs a figure over time may have."""
    from mptcplab.report.figures import MAX_COLUMNS

    return min(MAX_COLUMNS, trace.configs.join(trace.runs.drop_nulls("sample_ns"), on="run")["config"].n_unique())


def _read_once(trace: Trace, begin: Callable[[PlotData], None]) -> tuple[pl.DataFrame, Pictures]:
    """All that a report needs of the samples of a trace; `begin` gets the plots over time as soon as possible."""
    from mptcplab.metrics import summary as summarise_trace
    from mptcplab.report.pictures import Pictures
    from mptcplab.trace import samples

    pictures = Pictures(trace, begin)
    summary = summarise_trace(trace, pictures)
    pictures.complete()
    samples.forget(trace)
    return summary, pictures


def _write(
    trace: Trace,
    path: Path,
    summary: pl.DataFrame,
    pictures: Pictures,
    drawing: Drawing,
    directory: Path | None,
    judged: Judged | None,
) -> None:
    """Write all but the figures over time; figures become files in `directory`, or none if it is None."""
    from mptcplab.report.figures import first_figure, metric_figures
    from mptcplab.report.goodput import goodput_data
    from mptcplab.report.html import Figure, render

    first = pictures.first()
    over_time = drawing.begin(first_figure(first.column).svg, soon=True) if first else lambda: ""
    goodput = goodput_data(trace, summary)
    drawn = metric_figures(trace, goodput, directory)
    begun = [drawing.begin(one.svg, soon=True) for one in drawn]
    # The figures are drawn while this process goes on.
    samples = pictures.samples()
    _write_tables(trace, summary, path)

    def finished() -> tuple[list[Figure], str]:
        figures = [Figure(one.name, one.title, svg()) for one, svg in zip(drawn, begun, strict=True)]
        return figures, over_time()

    write_text(path, render(trace, summary, goodput, pictures.plots(), samples, first, finished, judged))


def _write_tables(trace: Trace, summary: pl.DataFrame, page: Path) -> None:
    """Write the numbers beside the page."""
    from mptcplab.report import families, frames
    from mptcplab.report.tables import comparison_frame

    tidy = frames.with_axes(trace, summary, by="config")
    write_text(page.with_name("summary.csv"), tidy.write_csv())
    write_lines(page.with_name("summary.json"), summary_json(trace, tidy))
    write_lines(page.with_name("metrics.csv"), frames.metrics_as_csv(trace))
    if families.has_families(trace):
        write_text(page.with_name("families.csv"), families.summary(trace).write_csv())
    comparison = comparison_frame(trace)
    if comparison is not None:
        write_text(page.with_name("comparison.csv"), comparison.write_csv())


def summary_json(trace: Trace, summary: pl.DataFrame) -> Iterator[str]:
    """The summary with the facts that explain it, for programs: pieces of one JSON text."""
    first = trace.runs.row(0, named=True)
    facts = {key: first[key] for key in ("scenario", "title", "engine", "engine_version", "build", "seed")}
    explained = {
        **facts,
        "engines": trace.engines,
        "runs": trace.runs.height,
        "axes": [{"key": axis.key, "unit": axis.unit, "values": axis.numbers or axis.texts} for axis in axes(trace)],
        "problems": [problem.as_dict() for problem in trace.excluded_runs],
    }
    yield json.dumps(explained, indent=1).removesuffix("\n}") + ',\n "summary": ['
    separator = "\n"
    # All rows of a large sweep as objects would take many times the memory of the table.
    for row in summary.iter_rows(named=True):
        # As with `indent`, which json carries out in Python, ten times as slowly.
        yield separator + "  {\n   " + json.dumps(row, separators=(",\n   ", ": "))[1:-1] + "\n  }"
        separator = ",\n"
    yield "]\n}\n" if separator == "\n" else "\n ]\n}\n"
