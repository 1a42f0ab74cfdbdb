"""Reports: metrics and traces in, one self-contained page, figures and tables out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mptcplab.axes import axes
from mptcplab.errors import OutputError
from mptcplab.output import write_lines, write_text

if TYPE_CHECKING:
    import polars as pl

    from mptcplab.trace.reader import Trace

__all__ = ["write_report"]


def write_report(trace: Trace, path: Path, *, figures: bool = True) -> Path:
    """Write the page to `path`; beside it summary.csv, summary.json, metrics.csv and figures/. Return `path`."""
    from mptcplab.metrics import summary as summarise_trace
    from mptcplab.report import families, frames
    from mptcplab.report.embedded import embedded
    from mptcplab.report.goodput import goodput_data
    from mptcplab.report.html import render
    from mptcplab.report.series import plot_data
    from mptcplab.report.tables import comparison_frame
    from mptcplab.trace import samples

    summary = summarise_trace(trace)
    goodput, plots = goodput_data(trace, summary), plot_data(trace)
    held = embedded(trace, plots)
    samples.forget(trace)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, render(trace, summary, goodput, plots, held))
        tidy = frames.with_axes(trace, summary, by="config")
        write_text(path.with_name("summary.csv"), tidy.write_csv())
        write_text(path.with_name("summary.json"), summary_json(trace, tidy))
        write_lines(path.with_name("metrics.csv"), frames.metrics_as_csv(trace))
        if families.has_families(trace):
            write_text(path.with_name("families.csv"), families.summary(trace).write_csv())
        comparison = comparison_frame(trace)
        if comparison is not None:
            write_text(path.with_name("comparison.csv"), comparison.write_csv())
        if figures:
            from mptcplab.report.figures import write_figures

            write_figures(trace, goodput, plots, path.with_name("figures"))
    except OSError as error:
        raise OutputError(f"cannot write the report: {error.filename or path}: {error.strerror}") from error
    return path


def summary_json(trace: Trace, summary: pl.DataFrame) -> str:
    """The summary with the facts that explain it, for programs."""
    first = trace.runs.row(0, named=True)
    facts = {key: first[key] for key in ("scenario", "title", "engine", "engine_version", "build", "seed")}
    summarised = {
        **facts,
        "engines": trace.engines,
        "runs": trace.runs.height,
        "axes": [{"key": axis.key, "unit": axis.unit, "values": axis.numbers or axis.texts} for axis in axes(trace)],
        "problems": [problem.as_dict() for problem in trace.excluded_runs],
        "summary": summary.to_dicts(),
    }
    return json.dumps(summarised, indent=1) + "\n"
