"""The rows of the goodput plot, for the figure and for the page's script alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab.metrics import REGISTRY, compute
from mptcplab.plots.styles import Style, subflow_labels, subflow_styles
from mptcplab.report import tables

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace


@dataclass(frozen=True)
class Part:
    """The mean of one subflow."""

    label: str
    mean: float
    style: Style


@dataclass(frozen=True)
class Row:
    """One connection in one configuration: its mean, half of the 95 % interval, every repetition, the fair share."""

    label: str
    mean: float
    half: float | None
    points: tuple[float, ...]
    parts: tuple[Part, ...]
    fair_share: float | None


@dataclass(frozen=True)
class GoodputData:
    """All rows."""

    rows: tuple[Row, ...]

    @property
    def unit(self) -> str:
        """Of every value."""
        return REGISTRY["goodput"].unit

    @property
    def axis(self) -> str:
        """The label of the axis."""
        return f"{REGISTRY['goodput'].title} ({self.unit})"

    @property
    def top(self) -> float:
        """End of the axis. Intervals of few repetitions can be far wider than the data; it follows the data."""
        seen = max(value for row in self.rows for value in (row.mean, row.fair_share or 0.0, *row.points))
        widest = max(row.mean + (row.half or 0.0) for row in self.rows)
        return 1.05 * max(seen, min(widest, 1.4 * seen)) or 1.0

    def for_page(self) -> dict[str, Any]:
        """The data that the page's script needs."""
        rows = [
            vars(row) | {"parts": [{"label": p.label, "mean": p.mean, **p.style.for_page()} for p in row.parts]}
            for row in self.rows
        ]
        return {"rows": rows, "unit": self.unit, "axis": self.axis, "top": self.top if rows else 1.0}


def goodput_data(trace: Trace, summary: pl.DataFrame) -> GoodputData:
    """A row per configuration and connection; none where there are too many connections to show."""
    flows = tables.connection_names(trace)
    if len(flows) > tables.MAX_FLOWS:
        return GoodputData(())
    topology = next(iter(trace.topologies.values()))
    styles, labels = subflow_styles(topology), subflow_labels(topology)
    wanted = summary.filter(pl.col("metric").is_in(["goodput", "ideal"])).drop_nulls("mean")
    stats = {(row["config"], row["metric"], row["flow"], row["subflow"]): row for row in wanted.iter_rows(named=True)}
    values = compute(trace).filter((pl.col("metric") == "goodput") & pl.col("subflow").is_null())
    points = tables.counted(trace, values).join(trace.configs, on="run", maintain_order="left").drop_nulls("value")
    rows = []
    for config in tables.config_names(trace):
        for flow in flows:
            total = stats.get((config, "goodput", flow, None))
            if total is None:
                continue
            ideal = stats.get((config, "ideal", flow, None))
            rows.append(
                Row(
                    label=config if len(flows) == 1 else f"{config} · {flow}",
                    mean=total["mean"],
                    half=total["half"],
                    points=tuple(points.filter(config=config, flow=flow)["value"]),
                    parts=tuple(
                        Part(labels[who], row["mean"], styles[who])
                        for who in styles
                        if who[0] == flow and (row := stats.get((config, "goodput", *who)))
                    ),
                    fair_share=ideal["mean"] if ideal else None,
                )
            )
    return GoodputData(tuple(rows))
