"""The results of a sweep: its trace, with metrics, summary and report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mptcplab.trace.reader import Trace


@dataclass(frozen=True)
class Results(Trace):
    """The traces of a sweep. Metrics, summary and report are computed from them on demand.

    >>> import mptcplab
    >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="reno", reps=1, duration="12 s")
    >>> results.flow.columns[:3]
    ['run', 't_ns', 'flow']
    """

    def metrics(self, names: Iterable[str] | None = None) -> pl.DataFrame:
        """One value per run, metric and entity: run, metric, flow, subflow, link, value."""
        from mptcplab.metrics import compute

        return compute(self, names)

    def summary(self) -> pl.DataFrame:
        """Mean, spread and 95 % confidence interval over repetitions of every metric; only runs that count."""
        from mptcplab.metrics import summary

        return summary(self)

    def report(self, path: Path | str | None = None, *, figures: bool = True) -> Path:
        """Write the HTML report, and beside it the figures and the summary as CSV and JSON; return its path."""
        from mptcplab.report import write_report

        return write_report(self, Path(path) if path is not None else self.directory / "report.html", figures=figures)
