"""The captions of a page. They explain what is there: no column, mark or shade that this report does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mptcplab.plots.goodput import GoodputData
from mptcplab.plots.over_time import PAYLOAD
from mptcplab.report.tables import HEADS

if TYPE_CHECKING:
    from collections.abc import Collection

    from mptcplab.report.parameters import Parameters
    from mptcplab.report.series import RunPlots
    from mptcplab.text import Table
    from mptcplab.trace.topology import Topology

# Transports as a reader knows them.
_TRANSPORTS = {"mptcp": "MPTCP", "tcp": "TCP", "cmt-sctp": "SCTP"}


def of_table(table: Table, topologies: Collection[Topology]) -> str:
    """What the cells of the table of results are; the topologies are those of the runs."""
    parts = []
    if any("±" in cell for row in table.rows for cell in row):
        parts.append("Mean over the repetitions ± half of its 95 % confidence interval (Student's t).")
    if any(name == HEADS["ratio"] for name, _ in table.head):
        parts.append(
            "“Fraction of fair share” is goodput divided by the connection's max-min fair share of the raw link rate. "
            f"A connection that gets exactly its share on the wire reaches {_payload_shares(topologies)}; the rest is "
            f"headers. {_more_than_that(topologies)}"
        )
    return " ".join(parts)


def _payload_shares(topologies: Collection[Topology]) -> str:
    """The payload's part of full packets, by transport where there are several."""
    found: dict[str, set[str]] = {}
    for topology in topologies:
        for flow in topology.connections:
            links = {name for path in flow.paths for name in path}
            frames = {flow.frame_bytes + topology.links[name].overhead_bytes for name in links}
            found.setdefault(flow.transport, set()).update(f"{flow.mss_bytes / frame:.3f}" for frame in frames)
    texts = {name: " to ".join(sorted({min(shares), max(shares)})) for name, shares in found.items()}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return " or ".join(f"{texts[name]} ({shown})" for name, shown in _TRANSPORTS.items() if name in texts)


def _more_than_that(topologies: Collection[Topology]) -> str:
    late = ", or data that waited out of order at the end of the warm-up was delivered afterwards"
    return "If it has more, it takes more than its share" + (late if any(t.warmup_ns for t in topologies) else "") + "."


def of_bars(goodput: GoodputData) -> str:
    """What the marks of the chart of goodput are."""
    rows = goodput.rows
    what = "Bars show the mean goodput of all flows of a family" if goodput.has_members else "Bars show mean goodput"
    parts = [what + (", split by subflow" if any(len(row.parts) > 1 for row in rows) else "")]
    if any(row.repetitions for row in rows):
        parts.append("circles are single repetitions")
    if any(row.half is not None for row in rows):
        parts.append("the line is the 95 % confidence interval of the total")
    if any(row.fair_share is not None for row in rows):
        parts.append("the diamond is the fair share of the raw link rate")
    text = "; ".join(parts) + "."
    text += f" {goodput.cut_off}." if goodput.cut_off else ""
    mark = "thin stroke" if goodput.is_crowded else "circle"
    beside = f" On the right, every {mark} is the mean goodput of one flow, and the thick stroke is their mean."
    return text + (beside if goodput.has_members else "")


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
