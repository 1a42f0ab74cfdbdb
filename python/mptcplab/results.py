"""The results of a sweep: its trace, with metrics, summary and report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from mptcplab.arguments import texts
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.paths import path_of
from mptcplab.text import counted, some_of
from mptcplab.trace.reader import Trace

if TYPE_CHECKING:
    from mptcplab.report.plotting import Plots

# So many names of configurations are shown where there are more.
_NAMED = 8


@dataclass(frozen=True, repr=False)
class Results(Trace):
    """The traces of a sweep. Metrics, summary and report are computed from them on demand.

    >>> import mptcplab
    >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="reno", reps=1, duration="12 s")
    >>> results.flow.columns[:3]
    ['run', 't_ns', 'flow']
    """

    @classmethod
    def open(cls, directory: str | PathLike[str]) -> Self:
        """Open a results directory; raise `ResultsError` if there is none, or if a file of it cannot be read."""
        return super().open(path_of(directory, "directory"))

    def metrics(self, names: str | Iterable[str] | None = None) -> pl.DataFrame:
        """One value per run, metric and entity.

        Columns: run, rep, config, engine, cc, a column per axis of the sweep (its unit in `<axis>.unit`), metric, unit,
        flow, subflow, link, value. `names` are names of metrics, or one; without them all are computed.

        >>> import mptcplab
        >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="lia", reps=1, duration="12 s")
        >>> results.metrics(["goodput"]).columns[-6:]
        ['metric', 'unit', 'flow', 'subflow', 'link', 'value']
        """
        from mptcplab.metrics import compute
        from mptcplab.report.frames import with_axes

        chosen = None if names is None else list(dict.fromkeys(texts("names", names, "goodput")))
        if chosen == []:
            raise MptcplabError(with_hint("no names of metrics", "such as goodput, or none at all for every metric"))
        return with_axes(self, compute(self, chosen), by="run")

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

    @property
    def parameters(self) -> pl.DataFrame:
        """What every run is: run, rep, config, engine, cc, and a column per axis of the sweep (unit in `<axis>.unit`).

        >>> import mptcplab
        >>> loss = {"links.B1.loss": "0.1 %, 1 %"}
        >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", "lia", 1, duration="12 s", sweep=loss)
        >>> results.parameters["links.B1.loss"].to_list()
        [0.1, 1.0]
        """
        from mptcplab.axes import columns

        return columns(self)

    def summarise(self, values: pl.DataFrame) -> pl.DataFrame:
        """Mean, spread and 95 % confidence interval of your own `values` over repetitions; only runs that count.

        `values` has the columns `run` and `value`, with one value per run and combination of its other columns, such as
        flow and subflow. The columns are those of `summary`, with these others before `n`.

        >>> import mptcplab, polars as pl
        >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", "lia", 3, duration="12 s")
        >>> values = results.flow.group_by("run", "flow").agg(value=pl.col("delivered_bytes").max() / 1e6)
        >>> results.summarise(values).columns[:8]
        ['config', 'engine', 'cc', 'flow', 'n', 'mean', 'std', 'median']
        """
        from mptcplab.report.frames import of_own_values

        return of_own_values(self, values)

    def families(self) -> pl.DataFrame:
        """Total, mean, spread and Jain's index of the flows that are declared with a `count`, per configuration.

        Columns as in `summary`, without those of subflows and links; `flow` is the name in the scenario, and `flows`
        the number of its flows.
        """
        from mptcplab.report.families import summary

        return summary(self)

    @property
    def plot(self) -> Plots:
        """Figures of the results, such as `plot.goodput()`; see `mptcplab.report.plotting.Plots`."""
        from mptcplab.report.plotting import Plots

        return Plots(self)

    def never_up(self) -> pl.DataFrame:
        """Connections, and subflows, whose handshake never ended: config, run, flow, subflow (null for the connection).

        A subflow that came up and was given no data is not one of them.
        """
        from mptcplab.report.connections import never_up

        return never_up(self)

    def to_pandas(self) -> Any:
        """The summary as a data frame of pandas; needs the extra `mptcplab[pandas]`."""
        try:
            import pandas  # noqa: F401
            import pyarrow  # noqa: F401
        except ImportError as error:
            hint = "pip install 'mptcplab[pandas]'"
            raise MptcplabError(with_hint(f"a package is missing: {error.name}", hint)) from error
        return self.summary().to_pandas()

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.temporary is not None:
            hint = "run with out=, and send the path; mptcplab.load opens it"
            raise MptcplabError(with_hint("results in a temporary directory go with their process", hint))
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        names = some_of(self.configs["config"].unique(maintain_order=True).to_list(), _NAMED)
        return f"Results({counted(self.runs.height, 'run')} of {self.runs['scenario'][0]!r}: {names})"

    def _repr_html_(self) -> str:
        """The table of results, for notebooks."""
        from mptcplab.report.notebook import results_html

        return results_html(self)

    def report(self, path: str | PathLike[str] | None = None, *, figures: bool = True) -> Path:
        """Write the HTML report, and beside it the figures and the summary as CSV and JSON; return its path."""
        from mptcplab.report import write_report

        file = self.directory / "report.html" if path is None else path_of(path, "path")
        return write_report(self, file, figures=figures)
