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
        """One value per run, metric and entity.

        Columns: run, rep, config, engine, cc, a column per axis of the sweep (its unit in `<axis>.unit`), metric, unit,
        flow, subflow, link, value. `names` are names of metrics; without them all are computed.

        >>> import mptcplab
        >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="lia", reps=1, duration="12 s")
        >>> results.metrics(["goodput"]).columns[-6:]
        ['metric', 'unit', 'flow', 'subflow', 'link', 'value']
        """
        from mptcplab.metrics import compute
        from mptcplab.report.frames import with_axes

        return with_axes(self, compute(self, names), by="run")

    def summary(self) -> pl.DataFrame:
        """Mean, spread and 95 % confidence interval over repetitions of every metric; only runs that count.

        Columns: config, engine, cc, a column per axis of the sweep (its unit in `<axis>.unit`), metric, unit, flow,
        subflow, link, n, mean, std, median, min, max, half, lo, hi.

        >>> import mptcplab
        >>> loss = {"links.B1.loss": "0.1 %, 1 %"}
        >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", "lia", 1, duration="12 s", sweep=loss)
        >>> results.summary().filter(metric="goodput", subflow="sf1")["links.B1.loss"].to_list()
        [0.1, 1.0]
        """
        from mptcplab.report.frames import summary

        return summary(self)

    def families(self) -> pl.DataFrame:
        """Total, mean, spread and Jain's index of the flows that are declared with a `count`, per configuration.

        Columns as in `summary`; `flow` is the name in the scenario, and `flows` the number of its flows.
        """
        from mptcplab.report.families import summary

        return summary(self)

    def report(self, path: Path | str | None = None, *, figures: bool = True) -> Path:
        """Write the HTML report, and beside it the figures and the summary as CSV and JSON; return its path."""
        from mptcplab.report import write_report

        return write_report(self, Path(path) if path is not None else self.directory / "report.html", figures=figures)
