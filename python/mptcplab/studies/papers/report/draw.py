"""Charts as Matplotlib figures: one grammar of axes, sizes in inches, so that labels never meet."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from mptcplab.report.figures import RC
from mptcplab.report.styles import style
from mptcplab.studies.papers.report.charts import PANELS, Chart, Course, Grouped, Line, Lines, Mark, Panel
from mptcplab.studies.papers.report.reader import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, PAPER = "#1c1f23", "#7a828c", "#ffffff"
LOOK: dict[str, Any] = {
    **RC,
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "hatch.linewidth": 0.7,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}
# The widest figure that a page shows at full size, and what a letter takes of it.
_WIDEST, _LETTER = 9.6, 0.078
_LEFT, _RIGHT, _LEGEND_ROW = 0.86, 0.14, 0.24
# Courses side by side, and the part of a run whose values decide their scale.
_MOST_COLUMNS, _SETTLED = 5, 0.8
_MARKERS = ("o", "s", "^", "v", "P", "X", "<", ">", "p", "h", "*")
_PAPER_MARK = {"marker": "D", "markersize": 6, "markerfacecolor": "none", "markeredgecolor": INK, "linestyle": "none"}


def draw(chart: Chart) -> Figure:
    """The figure of a chart; to be called and saved within Matplotlib's `rc_context(LOOK)`."""
    if isinstance(chart, Grouped):
        return _Groups(chart).draw()
    return _lines(chart) if isinstance(chart, Lines) else _course(chart)


def wrapped(label: str, most: int = 10) -> str:
    """A long name over several lines, broken where it has a mark.

    >>> print(wrapped("ewtcp(weight=fair)"))
    ewtcp
    (weight=
    fair)
    """
    lines = [""]
    for part in re.findall(r"\(?[^-(@=_ ]*[-@=_ ]?", label):
        if lines[-1] and part and len(lines[-1] + part) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip(" ") for line in lines)


def _width(label: str) -> float:
    return _LETTER * max(map(len, label.split("\n")))


class _Groups:
    """Boxes or bars: groups side by side, in as many rows as the page needs; x is in inches."""

    _GAP, _HEIGHT, _TOP = 0.2, 2.2, 0.12

    def __init__(self, chart: Grouped) -> None:
        self.chart = chart
        self.names = [] if chart.legend else [mark.label for _, marks in chart.groups for mark in marks]
        self.upright = any(len(name) > 4 for name in self.names)
        self.slot = max(0.24, 0 if self.upright else 0.05 + max(map(_width, self.names), default=0.0))
        self.rows = self._rows()
        widest = max(sum(self._group_width(group) for group in row) for row in self.rows)
        room = _WIDEST - _LEFT - _RIGHT
        self.stretch = min(max(1.5, 1.8 / widest), room / widest)
        self.inside = widest * self.stretch

    def _group_width(self, group: tuple[str, tuple[Mark, ...]]) -> float:
        return max(len(group[1]) * self.slot, _width(wrapped(group[0])) + 0.05) + self._GAP

    def _rows(self) -> list[list[tuple[str, tuple[Mark, ...]]]]:
        room, rows, used = _WIDEST - _LEFT - _RIGHT, [[]], 0.0
        for group in self.chart.groups:
            width = self._group_width(group)
            if rows[-1] and used + width > room:
                rows.append([])
                used = 0.0
            rows[-1].append(group)
            used += width
        return rows

    def _under(self) -> float:
        """Room below the axes for the names of marks and groups."""
        marks = 0.0 if not any(self.names) else (max(map(_width, self.names)) if self.upright else 0.16)
        groups = 0.16 * max(wrapped(label).count("\n") + 1 for label, _ in self.chart.groups)
        return 0.1 + marks + groups + 0.06

    def draw(self) -> Figure:
        """All rows with the same scale of y."""
        from matplotlib.figure import Figure

        handles = self._handles()
        width = _LEFT + self.inside + _RIGHT
        columns, head = _legend_size(handles, width)
        row_height = self._HEIGHT + self._under()
        height = head + len(self.rows) * (row_height + self._TOP)
        figure = Figure(figsize=(width, height))
        low, high = self._range()
        for index, row in enumerate(self.rows):
            top = height - head - index * (row_height + self._TOP) - self._TOP
            box = (_LEFT / width, (top - self._HEIGHT) / height, self.inside / width, self._HEIGHT / height)
            axes = figure.add_axes(box)
            axes.set(xlim=(0, self.inside), ylim=(low, high))
            axes.set_ylabel(self.chart.axis)
            self._fill(axes, row)
        _legend(figure, handles, columns, height)
        return figure

    def _range(self) -> tuple[float, float]:
        values: list[float] = [self.chart.reference] if self.chart.reference is not None else []
        for _, marks in self.chart.groups:
            for mark in marks:
                values += [] if mark.values is None else mark.values.tolist()
                values += [] if mark.published is None else [mark.published]
                if mark.values is not None and self.chart.kind == "bars":
                    estimate = Estimate.of(mark.values)
                    values.append(estimate.mean + (estimate.half or 0.0))
        low, high = min(values), max(values)
        if self.chart.kind == "bars" or low < 0.5 * high:
            return min(0.0, 1.05 * low), (1.06 * high or 1.0)
        margin = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
        return low - margin, high + margin

    def _fill(self, axes: Axes, row: Sequence[tuple[str, tuple[Mark, ...]]]) -> None:
        _grid(axes, "y")
        if self.chart.reference is not None:
            axes.axhline(self.chart.reference, color=INK, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1)
        ticks, left = [], 0.0
        for label, marks in row:
            width = self._group_width((label, marks)) * self.stretch
            step = self.slot * self.stretch
            first = left + (width - step * len(marks)) / 2 + step / 2
            for index, mark in enumerate(marks):
                self._mark(axes, first + index * step, mark, 0.72 * step)
                ticks.append((first + index * step, mark.label))
            self._group_name(axes, left + width / 2, label)
            left += width
            if label != row[-1][0]:
                axes.axvline(left, color=SOFT, linewidth=0.5, alpha=0.5)
        if any(self.names):
            axes.set_xticks([x for x, _ in ticks], [name for _, name in ticks], rotation=90 if self.upright else 0)
        else:
            axes.set_xticks([])
        axes.tick_params(axis="x", length=0, pad=3)

    def _group_name(self, axes: Axes, x: float, label: str) -> None:
        names = self._under() - 0.16 * max(wrapped(text).count("\n") + 1 for text, _ in self.chart.groups) - 0.06
        axes.annotate(
            wrapped(label),
            (x, 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -72 * names),
            textcoords="offset points",
            ha="center",
            va="top",
            fontweight="bold",
            annotation_clip=False,
        )

    def _mark(self, axes: Axes, x: float, mark: Mark, width: float) -> None:
        look = style(mark.place)
        if mark.values is not None and self.chart.kind == "box":
            _box(axes, x, mark.values, width, look.light)
        elif mark.values is not None:
            hatch = _hatch(mark.place) if self.chart.legend else ""
            _bar(axes, x, mark, width, look.light, hatch, [name for name, _ in self._parts()])
        if mark.values is not None:
            spread = np.linspace(-0.22, 0.22, len(mark.values)) * width if len(mark.values) > 1 else [0.0]
            axes.plot(
                x + np.asarray(spread),
                mark.values,
                linestyle="none",
                marker="o",
                markersize=2.6,
                markerfacecolor=INK,
                markeredgewidth=0,
                alpha=0.6,
                zorder=4,
            )
        if mark.published is not None:
            axes.plot([x], [mark.published], zorder=5, **_PAPER_MARK)

    def _parts(self) -> list[tuple[str, float]]:
        """The subflows that bars are made of, each name once."""
        found = {name: 0.0 for _, marks in self.chart.groups for mark in marks for name, _ in mark.parts}
        return list(found.items())

    def _handles(self) -> list[tuple[Any, str]]:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        marks = [mark for _, some in self.chart.groups for mark in some]
        handles: list[tuple[Any, str]] = []
        if self.chart.legend:
            for mark in {mark.algorithm: mark for mark in marks}.values():
                look = style(mark.place)
                hatch = _hatch(mark.place) if self.chart.kind == "bars" else ""
                handles.append((_filled(Patch, look.light, hatch), mark.algorithm))
        for index, (name, _) in enumerate(self._parts()):
            handles.append((_filled(Patch, SOFT, _hatch(index)), name))
        if any(mark.published is not None for mark in marks):
            handles.append((Line2D([], [], **_PAPER_MARK), "paper"))
        return handles


def _box(axes: Axes, x: float, values: np.ndarray, width: float, colour: str) -> None:
    line = {"color": colour, "linewidth": 1.2}
    axes.boxplot(
        [values],
        positions=[x],
        widths=[width],
        manage_ticks=False,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": colour + "40", "edgecolor": colour, "linewidth": 1.2},
        medianprops={"color": colour, "linewidth": 2.2},
        whiskerprops=line,
        capprops=line,
        zorder=3,
    )


def _bar(axes: Axes, x: float, mark: Mark, width: float, colour: str, hatch: str, names: Sequence[str]) -> None:
    assert mark.values is not None
    estimate = Estimate.of(mark.values)
    bottom = 0.0
    for name, mean in mark.parts or (("", estimate.mean),):
        pattern = _hatch(names.index(name)) if name else hatch
        _filled(partial(axes.bar, x, mean, bottom=bottom, width=width, zorder=2), colour, pattern)
        bottom += mean
    if estimate.half is not None:
        axes.errorbar(x, estimate.mean, yerr=estimate.half, color=INK, capsize=3, linewidth=1.3, zorder=5)


def _hatch(index: int) -> str:
    """Twice as dense as usual, for narrow bars; not of dots, each of which is a shape of its own in SVG."""
    pattern = style(index).pattern
    return pattern if pattern == "." else pattern * 2


def _filled(make: Callable[..., Any], colour: str, hatch: str) -> tuple[Any, Any]:
    """A tinted area and its outline with a hatch: one patch would make its hatch as transparent as the tint in SVG."""
    tint = make(facecolor=colour + "59", edgecolor="none", linewidth=0)
    return tint, make(facecolor="none", edgecolor=colour, linewidth=1.1, hatch=hatch)


def _grid(axes: Axes, axis: str) -> None:
    axes.set_axisbelow(True)
    axes.grid(axis=axis, color=SOFT, alpha=0.25, linewidth=0.6)  # type: ignore[arg-type]


def _legend_size(handles: Sequence[tuple[Any, str]], width: float) -> tuple[int, float]:
    """Columns of a legend, and the room that it takes above the axes."""
    if not handles:
        return 1, 0.0
    longest = 0.55 + max(_width(label) for _, label in handles)
    columns = max(1, min(len(handles), int((width - 0.1) / longest)))
    return columns, _LEGEND_ROW * -(-len(handles) // columns) + 0.06


def _legend(figure: Figure, handles: Sequence[tuple[Any, str]], columns: int, height: float) -> None:
    if handles:
        figure.legend(
            [handle for handle, _ in handles],
            [label for _, label in handles],
            loc="upper left",
            bbox_to_anchor=(0.0, 1.0 - 0.02 / height),
            ncols=columns,
            frameon=False,
            borderaxespad=0.2,
            borderpad=0,
        )


def _lines(chart: Lines) -> Figure:
    """Panels side by side with the same scale of y."""
    from matplotlib.figure import Figure

    columns = min(len(chart.panels), 3)
    rows = -(-len(chart.panels) // columns)
    inside = min(5.0, (_WIDEST - _LEFT - _RIGHT - 0.2 * (columns - 1)) / columns)
    width = _LEFT + columns * inside + 0.2 * (columns - 1) + _RIGHT
    handles = _line_handles(chart)
    legend_columns, head = _legend_size(handles, width)
    title = 0.26 if any(panel.title for panel in chart.panels) else 0.1
    inner, under = 2.4, 0.5
    height = head + rows * (title + inner + under)
    figure = Figure(figsize=(width, height))
    low, high = _line_range(chart)
    for index, panel in enumerate(chart.panels):
        row, column = divmod(index, columns)
        x = _LEFT + column * (inside + 0.2)
        y = height - head - row * (title + inner + under) - title - inner
        axes = figure.add_axes((x / width, y / height, inside / width, inner / height))
        _fill_panel(axes, chart, panel)
        axes.set_ylim(low, high)
        _ticks(axes, chart, inside)
        axes.set_xlabel(chart.x_axis)
        if column == 0:
            axes.set_ylabel(chart.axis)
        else:
            axes.tick_params(axis="y", labelleft=False)
    _legend(figure, handles, legend_columns, height)
    return figure


def _fill_panel(axes: Axes, chart: Lines, panel: Panel) -> None:
    _grid(axes, "both")
    if chart.reference is not None:
        axes.axhline(chart.reference, color=INK, linewidth=0.9, linestyle=(0, (5, 3)))
    for line in panel.lines:
        estimates = [Estimate.of(values) for values in line.values]
        means = np.array([one.mean for one in estimates])
        halves = np.array([one.half or 0.0 for one in estimates])
        look = _line_look(line)
        axes.fill_between(line.x, means - halves, means + halves, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(line.x, means, **look)
    if panel.published:
        axes.plot([x for x, _ in panel.published], [y for _, y in panel.published], zorder=5, **_PAPER_MARK)
    axes.set_title(panel.title, loc="left", fontweight="bold")


def _line_look(line: Line) -> dict[str, Any]:
    look = style(line.place)
    marker = _MARKERS[line.place % len(_MARKERS)]
    return {"color": look.light, "linestyle": look.mpl_dash, "linewidth": 1.4, "marker": marker, "markersize": 4.5}


def _line_handles(chart: Lines) -> list[tuple[Any, str]]:
    from matplotlib.lines import Line2D

    lines = {line.algorithm: line for panel in chart.panels for line in panel.lines}
    ordered = sorted(lines.values(), key=lambda line: line.place)
    handles: list[tuple[Any, str]] = [(Line2D([], [], **_line_look(line)), line.algorithm) for line in ordered]
    owners = list(dict.fromkeys(panel.published_of for panel in chart.panels if panel.published))
    if owners:
        handles.append((Line2D([], [], **_PAPER_MARK), f"paper ({', '.join(owners)})"))
    return handles


def _line_range(chart: Lines) -> tuple[float, float]:
    values = [chart.reference] if chart.reference is not None else []
    for panel in chart.panels:
        values += [value for _, value in panel.published]
        for line in panel.lines:
            for estimate in map(Estimate.of, line.values):
                # A band that is far wider than its line must not squeeze all others.
                half = min(estimate.half or 0.0, abs(estimate.mean))
                values += [estimate.mean - half, estimate.mean + half]
    low, high = min(values), max(values)
    if low < 0.5 * high:
        return min(0.0, 1.05 * low), 1.06 * high or 1.0
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _ticks(axes: Axes, chart: Lines, inches: float) -> None:
    """A label at every point, except where two would meet."""
    xs = [x for x, _ in chart.ticks]
    if chart.scale == "symlog":
        axes.set_xscale("symlog", linthresh=min(x for x in xs if x > 0), linscale=0.5)
    elif chart.scale == "log":
        axes.set_xscale("log")
    pad = 0.04
    shown = _scaled(axes, np.array(xs, dtype=float))
    first, last = shown.min(), shown.max()
    span = (last - first) or 1.0
    limits = axes.transScale.inverted().transform([(first - pad * span, 1), (last + pad * span, 1)])
    axes.set_xlim(limits[0, 0], limits[1, 0])
    axes.minorticks_off()
    kept: list[tuple[float, str]] = []
    taken = -np.inf
    for position, (x, label) in sorted(zip(shown, chart.ticks, strict=True)):
        at = (position - first) / span * inches / (1 + 2 * pad)
        if at - _width(label) / 2 >= taken:
            kept.append((x, label))
            taken = at + _width(label) / 2 + 0.04
    axes.set_xticks([x for x, _ in kept], [label for _, label in kept])


def _scaled(axes: Axes, xs: np.ndarray) -> np.ndarray:
    return axes.transScale.transform(np.column_stack([xs, np.ones_like(xs)]))[:, 0]


def _course(chart: Course) -> Figure:
    """A column per algorithm: window, RTT, throughput; the scale of a quantity is the same in all of them."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    per_row = -(-len(chart.columns) // -(-len(chart.columns) // _MOST_COLUMNS))
    strips = [chart.columns[i : i + per_row] for i in range(0, len(chart.columns), per_row)]
    gap, inner, between, title, under = 0.2, 1.15, 0.14, 0.28, 0.5
    inside = min(4.4, (_WIDEST - _LEFT - _RIGHT - gap * (per_row - 1)) / per_row)
    width = _LEFT + per_row * inside + gap * (per_row - 1) + _RIGHT
    series = {label: look for _, some in chart.columns for label, look, _ in some}
    handles = [
        (Line2D([], [], color=look.light, linestyle=look.mpl_dash, linewidth=1.4), label)
        for label, look in series.items()
    ]
    columns, head = _legend_size(handles, width)
    strip_height = title + len(PANELS) * inner + (len(PANELS) - 1) * between + under
    height = head + len(strips) * strip_height
    figure = Figure(figsize=(width, height))
    peaks = _peaks(chart)
    tables = [table for _, some in chart.columns for *_, table in some]
    begin, end = min(table["t_s"].min() for table in tables), max(table["t_s"].max() for table in tables)  # type: ignore[type-var]
    for strip_index, strip in enumerate(strips):
        top = height - head - strip_index * strip_height - title
        for column, (algorithm, lines) in enumerate(strip):
            for row, (name, label) in enumerate(PANELS):
                bottom = top - (row + 1) * inner - row * between
                x = _LEFT + column * (inside + gap)
                axes = figure.add_axes((x / width, bottom / height, inside / width, inner / height))
                _grid(axes, "both")
                for _, look, table in lines:
                    at, values = table["t_s"].to_numpy(), table[name].to_numpy()
                    axes.plot(at, values, color=look.light, linestyle=look.mpl_dash, linewidth=0.9)
                # Set, not found: a quantity without values at first must not be stretched over the whole run.
                axes.set(xlim=(begin, end), ylim=(0, peaks[name]))
                axes.tick_params(labelleft=column == 0, labelbottom=row == len(PANELS) - 1)
                if column == 0:
                    axes.set_ylabel(label.replace(" (", "\n("))
                if row == 0:
                    axes.set_title(algorithm, loc="left", fontweight="bold")
            axes.set_xlabel("Time (s)")
    _legend(figure, handles, columns, height)
    return figure


def _peaks(chart: Course) -> Mapping[str, float]:
    """The top of each panel: slow start may leave the picture, so that what comes after it can be seen."""
    tables = [table for _, some in chart.columns for *_, table in some]
    end = max(table["t_s"].max() for table in tables)  # type: ignore[type-var]
    settled = [table.filter(pl.col("t_s") >= (1 - _SETTLED) * end) for table in tables]  # type: ignore[operator]
    found = {}
    for name, _ in PANELS:
        peaks = [table[name].max() for table in settled]
        found[name] = 1.08 * max((peak for peak in peaks if peak is not None), default=0.0) or 1.0  # type: ignore[type-var]
    return found
