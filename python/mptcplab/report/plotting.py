"""The figures of results, for one's own changes: `Results.plot`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from mptcplab.arguments import whole_number
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.metrics import summary
from mptcplab.plots.figure import WIDEST, sized
from mptcplab.plots.goodput import goodput_figure
from mptcplab.plots.over_time import PANELS, over_time
from mptcplab.report.figures import about_columns, first_repetitions
from mptcplab.report.goodput import goodput_data
from mptcplab.report.parameter_figures import curves_figure, maps_figure
from mptcplab.report.parameters import is_drawn_over_parameter, maps, nothing_to_draw, over_parameter
from mptcplab.report.request_figures import course_figure, distribution_figure, request_data
from mptcplab.report.series import plot_data
from mptcplab.text import some_of
from mptcplab.trace import samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mptcplab.trace.reader import Trace

# Width (inches) and font size (points): a page of the report, one column and two columns of a paper.
Size = Literal["page", "column", "two-columns"]
_SIZES = {"page": (WIDEST, None), "column": (3.5, 8.0), "two-columns": (7.16, 8.0)}
# So many names of configurations are shown where there are more.
_NAMED = 12
Quantity = Literal["cwnd", "rtt", "payload", "queue"]


@dataclass(frozen=True)
class Plots:
    """The figures of results. Every method returns a figure of Matplotlib, which can be changed and saved.

    `style` is "page" (as in the report), "column" or "two-columns" (of a paper); `grey` leaves out the colours, and
    dashes, markers and hatches still differ.

    >>> import mptcplab
    >>> loss = {"links.B1.loss": "0.1 %, 1 %, 5 %"}
    >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", "lia,olia", 1, duration="12 s", sweep=loss)
    >>> figure = results.plot.goodput(style="column", grey=True)
    >>> figure.axes[0].get_xlabel()
    'links.B1.loss (%)'
    """

    trace: Trace

    def goodput(self, *, style: Size = "page", grey: bool = False) -> Figure:
        """Goodput: over the parameter of a sweep, else bars with a part per subflow."""
        if is_drawn_over_parameter(self.trace):
            return self.over(style=style, grey=grey)
        data = goodput_data(self.trace, summary(self.trace))
        if not data.rows:
            raise MptcplabError(_without_goodput(self.trace))
        return _drawn(lambda width: goodput_figure(data, width), style, grey=grey)

    def over(
        self,
        parameter: str | None = None,
        metric: str = "goodput",
        *,
        flows: str | Iterable[str] | None = None,
        links: str | Iterable[str] | None = None,
        style: Size = "page",
        grey: bool = False,
    ) -> Figure:
        """A metric over a parameter of the sweep, a line with its 95 % interval per algorithm.

        Without `parameter` it is the one of numbers with the most values. A second parameter gives small multiples. A
        metric that flows do not have is drawn for every subflow of `flows`, or for every one of `links`. Values that
        are no numbers of one kind, such as 1 BDP and 50 packets, stand side by side, without lines between them.
        """
        data = over_parameter(self.trace, metric, parameter, flows, links)
        if not data.plots:
            raise nothing_to_draw(self.trace, metric, links if flows is None else flows)
        return _drawn(lambda width: curves_figure(data, width), style, grey=grey)

    def map(
        self,
        metric: str = "goodput",
        x: str | None = None,
        y: str | None = None,
        *,
        flows: str | Iterable[str] | None = None,
        links: str | Iterable[str] | None = None,
        style: Size = "page",
        grey: bool = False,
    ) -> Figure:
        """A heat map of a metric over two parameters, for every algorithm and flow, or else subflow or link."""
        data = maps(self.trace, metric, x, y, flows, links)
        if not data.maps:
            raise nothing_to_draw(self.trace, metric, links if flows is None else flows)
        return _drawn(lambda width: maps_figure(data, width), style, grey=grey)

    def response_times(
        self,
        kind: Literal["requests", "messages"] = "requests",
        *,
        over_time: bool = False,
        style: Size = "page",
        grey: bool = False,
    ) -> Figure:
        """The distribution (ECDF) of the response times of requests or of the delays of messages, per configuration.

        With `over_time`, a point per request of each configuration's first run instead.
        """
        if kind not in ("requests", "messages"):
            raise MptcplabError(with_hint(f"no such kind: {kind!r}", "one of requests, messages"))
        data = next((one for one in request_data(self.trace) if one.kind == kind), None)
        if data is None:
            hint = f"a flow has them with traffic = {{ {kind} = {{ ... }} }}"
            raise MptcplabError(with_hint(f"no {kind} were completed in a run that counts", hint))
        draw = course_figure if over_time else distribution_figure
        return _drawn(lambda width: draw(data, width), style, grey=grey)

    def over_time(
        self,
        configs: str | Iterable[str] | None = None,
        rep: int = 0,
        *,
        quantities: Quantity | Iterable[Quantity] | None = None,
        style: Size = "page",
        grey: bool = False,
    ) -> Figure:
        """Window, round-trip time, payload and queues over time: a column per configuration, as `summary` names them.

        Without `configs` all are drawn, or as many as there is room for; the figure says how many.
        `rep` counts from 0, and the figure's note from 1, as the page does.
        """
        known = self.trace.configs["config"].unique(maintain_order=True).to_list()
        several = isinstance(configs, Iterable) and not isinstance(configs, str)
        chosen: list[Any] = known if configs is None else list(configs) if several else [configs]
        if not chosen:
            raise MptcplabError(with_hint("no names of configurations", "at least one, or configs=None for all"))
        for name in chosen:
            if name not in known:
                hint = f"there are: {some_of(known, _NAMED)}"
                raise MptcplabError(with_hint(f"no such configuration: {name!r}", hint))
        rows = self.trace.configs.filter(rep=whole_number("rep", rep, 0, 100_000))
        runs = rows.filter(rows["config"].is_in(chosen))["run"].to_list()
        if not runs:
            last = max(self.trace.configs["rep"].to_list())
            raise MptcplabError(with_hint(f"no such repetition: {rep}", f"0 to {last}"))
        names: Iterable[str] = [panel.name for panel in PANELS] if quantities is None else quantities
        wanted = [names] if isinstance(names, str) else list(names)
        if not wanted:
            raise MptcplabError(with_hint("no names of quantities", "at least one, or quantities=None for all"))
        unknown = [name for name in wanted if name not in {panel.name for panel in PANELS}]
        if unknown:
            hint = f"one of {', '.join(panel.name for panel in PANELS)}"
            raise MptcplabError(with_hint(f"no such quantity: {unknown[0]!r}", hint))
        plots = plot_data(self.trace, runs)
        samples.forget(self.trace)
        columns, about = (
            first_repetitions(plots)
            if configs is None
            else ([one.column for one in plots.runs], about_columns(plots, plots.runs))
        )
        panels = [panel for panel in PANELS if panel.name in wanted and any(one.of(panel) for one in columns)]
        if not panels:
            raise MptcplabError(with_hint("no samples to draw", 'sample = "10 ms" in the scenario records them'))

        def draw(width: float) -> Figure:
            most = max(1, int(width / 3))
            return over_time(columns, panels, most_columns=most, shade=True, note=about, widest=width)

        return _drawn(draw, style, grey=grey)


def _without_goodput(trace: Trace) -> str:
    if len(trace.excluded_runs) < trace.runs.height:
        return "no flow of TCP, MPTCP or SCTP is in the window, so there is no goodput"
    return with_hint("no run counts, so there is no goodput", "Results.excluded_runs says why")


def _drawn(draw: Callable[[float], Figure], style: Size, *, grey: bool) -> Figure:
    if style not in _SIZES:
        names = ", ".join(get_args(Size))
        raise MptcplabError(with_hint(f"no such style: {style!r}", f"one of {names}"))
    width, font_pt = _SIZES[style]
    with sized(font_pt):
        figure = draw(width)
    if grey:
        _make_grey(figure)
    return figure


def _make_grey(figure: Figure) -> None:
    """Replace every colour by the grey of the same luminance."""
    for artist in figure.findobj():
        for name in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            get, put = getattr(artist, f"get_{name}", None), getattr(artist, f"set_{name}", None)
            if get is not None and put is not None:
                put(_grey(get()))


def _grey(colour: Any) -> Any:
    import numpy as np
    from matplotlib.colors import to_rgba_array

    if isinstance(colour, str) and colour in ("none", "auto"):
        return colour
    found = to_rgba_array(colour)
    if found.size == 0:
        return colour
    # Rec. 601, as `_draw_map` of the figures of parameters.
    luminance = found[:, :3] @ np.array([0.299, 0.587, 0.114])
    greys = np.column_stack([luminance, luminance, luminance, found[:, 3]])
    return tuple(greys[0]) if len(greys) == 1 else greys
