"""The captions of a page. They explain what is there: no column, mark or shade that this report does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mptcplab.plots.goodput import GoodputData
from mptcplab.plots.over_time import PAYLOAD
from mptcplab.report.tables import HEADS

if TYPE_CHECKING:
    from mptcplab.report.parameters import Parameters
    from mptcplab.report.series import RunPlots
    from mptcplab.text import Table


def of_table(table: Table) -> str:
    """What the cells of the table of results are."""
    parts = []
    if any("±" in cell for row in table.rows for cell in row):
        parts.append("Mean over the repetitions ± half of its 95 % confidence interval (Student's t).")
    if any(name == HEADS["ratio"] for name, _ in table.head):
        parts.append(
            "“Fraction of fair share” is goodput divided by the connection's max-min fair share of the raw link rate; "
            "headers alone keep it below 0.943."
        )
    return " ".join(parts)


def of_bars(goodput: GoodputData) -> str:
    """What the marks of the chart of goodput are."""
    rows = goodput.rows
    what = "Bars show the mean goodput of all flows of a family" if goodput.has_members else "Bars show mean goodput"
    parts = [what + (", split by subflow" if any(len(row.parts) > 1 for row in rows) else "")]
    if any(len(row.points) > 1 for row in rows):
        parts.append("circles are single repetitions")
    if any(row.half is not None for row in rows):
        parts.append("the line is the 95 % confidence interval of the total")
    if any(row.fair_share is not None for row in rows):
        parts.append("the diamond is the fair share of the raw link rate")
    text = "; ".join(parts) + "."
    text += f" {goodput.cut_off}." if goodput.cut_off else ""
    return text + (" On the right, every circle is the mean goodput of one flow." if goodput.has_members else "")


def of_curves(data: Parameters) -> str:
    """What the lines over a parameter are."""
    if any(point.half is not None for plot in data.plots for curve in plot.curves for point in curve.points):
        return "Lines connect means over the repetitions; bands are 95 % confidence intervals."
    return "Lines connect the values of single runs."


def of_time(run: RunPlots) -> str:
    """What the lines over time are."""
    panels = {series.panel for series in run.column.series}
    parts = []
    if panels - {PAYLOAD}:
        parts.append(
            "Lines show every sample, or the smallest and the largest value of every bin where there are more."
        )
    if PAYLOAD in panels:
        parts.append("The payload rate is a mean over every bin.")
    if run.column.settled_s > 0:
        parts.append("Scales fit the time after the warm-up, which is shaded.")
    return " ".join(parts)
