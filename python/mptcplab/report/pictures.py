"""What a page shows of samples, gathered while metrics are measured, so that samples are read once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from mptcplab.report.embedded import BUDGET_BYTES, Embedded, Lines, embedded, lines_of
from mptcplab.report.series import MAX_RUNS, PlotBuilder, PlotData, RunPlots
from mptcplab.trace.samples import batches

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace


class Pictures:
    """The plots over time of a page, and the samples in it.

    `begin` is called once, with the plots that are known as soon as the first run of every configuration is known.
    """

    def __init__(self, trace: Trace, begin: Callable[[PlotData], None]) -> None:
        self._trace = trace
        self._plots = PlotBuilder(trace)
        self._lines: Lines = {}
        self._begin: Callable[[PlotData], None] | None = begin
        self.firsts: Collection[int] = self._plots.firsts

    def add(self, runs: Sequence[int]) -> None:
        """Take what is shown of some runs."""
        missing = self._missing
        shown = [run for run in runs if run in missing]
        if shown:
            self._plots.add(shown)
            self._lines |= lines_of(self._trace, shown)
            if self._plots.has_lines(self.firsts):
                self._begin_once()

    def complete(self) -> None:
        """Take what is shown of the runs that are missing."""
        for runs in batches(self._trace, self._missing, MAX_RUNS):
            self.add(runs)
        self._begin_once()

    def _begin_once(self) -> None:
        if self._begin is not None:
            self._begin(self.plots())
            self._begin = None

    def plots(self) -> PlotData:
        """The plots over time."""
        return self._plots.data()

    def samples(self, budget_bytes: int = BUDGET_BYTES) -> Embedded:
        """The samples of these runs, in a page that has so much room for them (bytes)."""
        return embedded(self._trace, self.plots(), self._lines, budget_bytes)

    def first(self) -> RunPlots | None:
        """The run whose lines over time are on the page before any script; None if no run has any."""
        plots = self.plots()
        return plots.runs[0] if any(self._lines[one.run] for one in plots.runs) else None

    @property
    def _missing(self) -> list[int]:
        return [run for run in self._plots.runs if run not in self._lines]
