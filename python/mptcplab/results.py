"""Results of a sweep: traces on disk, opened as data frames."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl

from mptcplab.errors import ResultsError, with_hint
from mptcplab.output import TABLES
from mptcplab.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mptcplab.samples import Samples

# One label for a series of repetitions; other axes are appended to the algorithm.
CONFIG = "config"
# What the caller changed in the scenario, kept beside the trace so that the report can name the command.
OVERRIDES = "overrides.json"


@dataclass(frozen=True)
class Results:
    """The traces of a sweep. Metrics, summary and report are computed from them on demand.

    >>> import mptcplab
    >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="reno", reps=1, duration="12 s")
    >>> results.flow.columns[:3]
    ['run', 't_ns', 'flow']
    """

    directory: Path
    # Keeps a temporary directory alive as long as somebody may read it.
    holder: TemporaryDirectory[str] | None = None

    @classmethod
    def open(cls, directory: Path) -> Results:
        """Open a results directory, or say what is wrong with it."""
        if not directory.is_dir():
            raise ResultsError(
                with_hint(f"no such results directory: {directory}", "`mptcplab run` prints where it put them")
            )
        missing = [table for table in TABLES if not (directory / f"{table}.parquet").is_file()]
        if missing:
            raise ResultsError(
                with_hint(
                    f"not a results directory: {directory}: {missing[0]}.parquet is missing",
                    "give the directory that `mptcplab run` wrote",
                )
            )
        results = cls(directory)
        try:
            _ = results.runs
        except pl.exceptions.PolarsError as error:
            raise ResultsError(f"cannot read results: {directory / 'run.parquet'}: {error}") from error
        return results

    def scan(self, table: str) -> pl.LazyFrame:
        """A table as a lazy frame, for queries that need few columns of a large trace."""
        return pl.scan_parquet(self.directory / f"{table}.parquet")

    @cached_property
    def kept_samples(self) -> dict[str, tuple[object, Samples]]:
        """The samples read last, per table: metrics and plots of a report share them (see `samples.read`)."""
        return {}

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row per run: scenario, algorithm, axes, repetition, seed, versions."""
        return pl.read_parquet(self.directory / "run.parquet").sort("run")

    @cached_property
    def flow(self) -> pl.DataFrame:
        """Samples of the flows."""
        return self.scan("flow").collect()

    @cached_property
    def subflow(self) -> pl.DataFrame:
        """Samples of the subflows."""
        return self.scan("subflow").collect()

    @cached_property
    def link(self) -> pl.DataFrame:
        """Samples of the directed links."""
        return self.scan("link").collect()

    @cached_property
    def event(self) -> pl.DataFrame:
        """Events."""
        return self.scan("event").collect()

    @property
    def overrides(self) -> str | None:
        """What was overridden in the scenario, as JSON; None where the directory does not tell."""
        path = self.directory / OVERRIDES
        return path.read_text(encoding="utf-8") if path.is_file() else None

    @cached_property
    def topologies(self) -> dict[int, Topology]:
        """The resolved scenario of every run."""
        rows = self.runs.select("run", "resolved").iter_rows()
        return {run: Topology.from_json(text) for run, text in rows}

    @cached_property
    def configs(self) -> pl.DataFrame:
        """run, rep and `config`: the label shared by the repetitions of one combination of axis values."""
        rows = self.runs.select("run", "rep", "cc", "axes").iter_rows()
        labelled = [(run, rep, _label(cc, axes)) for run, rep, cc, axes in rows]
        return pl.DataFrame(
            labelled,
            schema={"run": self.runs.schema["run"], "rep": self.runs.schema["rep"], CONFIG: pl.String},
            orient="row",
        )

    def metrics(self, names: Iterable[str] | None = None) -> pl.DataFrame:
        """One value per run, metric and entity: run, metric, flow, subflow, link, value."""
        from mptcplab.metrics import compute

        if names is not None:
            return compute(self, names)
        return self._all_metrics

    @cached_property
    def _all_metrics(self) -> pl.DataFrame:
        from mptcplab.metrics import compute

        return compute(self)

    def summary(self) -> pl.DataFrame:
        """Mean, spread and 95 % confidence interval over repetitions of every metric."""
        from mptcplab.metrics.stats import summarise

        return summarise(self.metrics(), self.configs)

    def report(self, path: Path | str | None = None, *, figures: bool = True) -> Path:
        """Write the HTML report, and beside it the figures and the summary as CSV and JSON; return its path."""
        from mptcplab.report import write_report

        return write_report(self, Path(path) if path is not None else self.directory / "report.html", figures=figures)


def axes_of(text: str) -> dict[str, str]:
    """The axis values of a run from its `axes` column (a JSON object or a list of pairs)."""
    parsed = json.loads(text)
    pairs = parsed.items() if isinstance(parsed, dict) else parsed
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in pairs}


def _label(cc: str, axes: str) -> str:
    others = [f"{key} = {value}" for key, value in axes_of(axes).items() if key != "cc"]
    return ", ".join([cc, *others])
