"""Figures for papers and slides: PNG and SVG, one per question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mptcplab.metrics import REGISTRY, compute
from mptcplab.report import tables
from mptcplab.report.series import PANELS, Panel, PlotData, RunPlots, counted_peak
from mptcplab.report.styles import subflow_labels, subflow_styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mptcplab.trace.reader import Trace

_INK, _SOFT = "#1c1f23", "#7a828c"
# The same bytes for the same data: no date, fixed ids.
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
RC = {
    "svg.hashsalt": "mptcplab",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "path.simplify_threshold": 0.5,
}
MAX_PANELS = 12


def write_figures(results: Trace, summary: pl.DataFrame, plots: PlotData, directory: Path) -> list[Path]:
    """Write goodput.{png,svg} and one figure over time per quantity; return their paths."""
    import matplotlib as mpl

    directory.mkdir(exist_ok=True)
    written: list[Path] = []
    with mpl.rc_context(RC):
        figure = goodput_figure(results, summary)
        if figure is not None:
            written += save(figure, directory / "goodput")
        firsts = list({run.config: run for run in reversed(plots.runs)}.values())[::-1][:MAX_PANELS]
        for panel in PANELS:
            if any(series.panel == panel.name for run in firsts for series in run.series):
                written += save(time_figure(firsts, panel), directory / panel.name)
    return written


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG; return the paths."""
    paths = []
    for kind, metadata in _METADATA.items():
        path = stem.with_suffix(f".{kind}")
        partial = path.with_name(path.name + ".partial")
        figure.savefig(partial, format=kind, dpi=150, metadata=metadata)
        partial.replace(path)
        paths.append(path)
    return paths


def goodput_figure(results: Trace, summary: pl.DataFrame) -> Figure | None:
    """Bars split by subflow, every repetition as a point, and the 95 % interval of the total."""
    from matplotlib.figure import Figure

    configs, flows = tables.config_names(results), tables.connection_names(results)
    if len(flows) > tables.MAX_FLOWS:
        return None
    topology = next(iter(results.topologies.values()))
    styles, labels = subflow_styles(topology), subflow_labels(topology)
    rows = [(config, flow) for config in configs for flow in flows]
    goodput = summary.filter(pl.col("metric") == "goodput")
    stats = {(r["config"], r["flow"], r["subflow"]): r for r in goodput.iter_rows(named=True)}
    points = compute(results).filter((pl.col("metric") == "goodput") & pl.col("subflow").is_null())
    points = tables.counted(results, points).join(results.configs, on="run", maintain_order="left").drop_nulls("value")
    figure = Figure(figsize=(6.4, 0.9 + 0.34 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for position, (config, flow) in enumerate(rows):
        left = 0.0
        for who in (key for key in styles if key[0] == flow):
            mean = (stats.get((config, *who)) or {}).get("mean") or 0.0
            shade = styles[who]
            axes.barh(
                position,
                mean,
                left=left,
                height=0.62,
                facecolor=shade.light + "44",
                edgecolor=shade.light,
                hatch=shade.pattern * 2,
                label=labels[who] if config == configs[0] else None,
            )
            left += mean
        mine = points.filter((pl.col("config") == config) & (pl.col("flow") == flow))["value"].to_numpy()
        axes.plot(mine, np.full(mine.shape, position), "o", mfc="none", mec=_INK, ms=3.5, alpha=0.7)
        total = stats.get((config, flow, None))
        if total and total["mean"] is not None:
            axes.errorbar(total["mean"], position, xerr=total["half"], fmt="|", color=_INK, capsize=3)
    axes.set_yticks(range(len(rows)), [c if len(flows) == 1 else f"{c} · {f}" for c, f in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"{REGISTRY['goodput'].title} ({REGISTRY['goodput'].unit})")
    if len(styles) > 1:
        figure.legend(loc="outside upper center", ncols=min(len(styles), 5), frameon=False, handlelength=1.6)
    return figure


def time_figure(runs: list[RunPlots], panel: Panel) -> Figure:
    """One quantity over time: a small plot per configuration, first repetition, common axes."""
    from matplotlib.figure import Figure

    columns = min(3, len(runs))
    lines = -(-len(runs) // columns)
    width, height = 3.1 * columns + 0.4, 1.75 * lines + 0.8
    figure = Figure(figsize=(width, height))
    # Fixed margins: a layout engine would draw everything twice.
    margins = {"left": 0.65 / width, "right": 1 - 0.1 / width, "bottom": 0.5 / height, "top": 1 - 0.55 / height}
    spaces = {"wspace": 0.08, "hspace": 0.25}
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False, gridspec_kw=margins | spaces)
    handles = {}
    for axes, run in zip(grid.flat, runs, strict=False):
        for series in (s for s in run.series if s.panel == panel.name):
            at = series.start_s + series.step_s * np.arange(series.values.size)
            (line,) = axes.plot(
                at, series.values, color=series.style.light, linestyle=series.style.mpl_dash, linewidth=0.8
            )
            handles.setdefault(series.label, line)
        if run.warmup_s > 0:
            axes.axvspan(0, run.warmup_s, color=_SOFT, alpha=0.15, linewidth=0)
        axes.set_title(run.config, fontsize=9)
    # Last, because a limit ends the automatic scaling of all of them.
    grid[0, 0].set_ylim(0, counted_peak(runs, panel) * 1.05 or None)
    for spare in grid.flat[len(runs) :]:
        spare.set_visible(False)
    figure.supxlabel("Time (s)", fontsize=9, y=0.06 / height, va="bottom")
    figure.supylabel(f"{panel.title} ({panel.unit})", fontsize=9, x=0.06 / width, ha="left")
    figure.legend(handles.values(), handles.keys(), loc="upper center", ncols=min(len(handles), 6), frameon=False)
    return figure
