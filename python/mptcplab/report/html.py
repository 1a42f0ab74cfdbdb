"""The page of a report: its tables, figures, data and scripts."""

from __future__ import annotations

import base64
import gzip
import json
import shlex
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab import bundle
from mptcplab.capabilities import engine_of
from mptcplab.plots.goodput import GoodputData
from mptcplab.plots.over_time import PANELS
from mptcplab.plots.styles import style
from mptcplab.report import captions, families, page, tables, topology_svg
from mptcplab.report.embedded import Embedded
from mptcplab.report.parameters import is_drawn_over_parameter, over_parameter
from mptcplab.report.series import PlotData, RunPlots
from mptcplab.scenario import Overrides, leading_comment, named_files
from mptcplab.text import counted
from mptcplab.trace import machines

if TYPE_CHECKING:
    from mptcplab.report.judged import Judged
    from mptcplab.trace.reader import Trace
    from mptcplab.trace.topology import Topology

# Parts of the page's script, in this order.
_SCRIPTS = ("data.js", "save.js", "goodput.js", "time.js", "report.js")
# Where several runs are over one another, their lines take these styles, all that there are, and then the first again.
_STYLES = 48


@dataclass(frozen=True)
class Figure:
    """A figure of the page, drawn before any script; its name is that of the file into which it is saved."""

    name: str
    title: str
    svg: str


def render(
    trace: Trace,
    summary: pl.DataFrame,
    goodput: GoodputData,
    plots: PlotData,
    samples: Embedded,
    shown_first: RunPlots | None,
    drawn: Callable[[], tuple[Sequence[Figure], str]],
    judged: Judged | None = None,
) -> str:
    """The HTML text of the report.

    `drawn` gives the figures, and the `svg` element of the run that is shown first, or an empty text. It is called when
    all else is ready, because figures may still be drawn until then. `judged` is a comparison of the engines.
    """
    headline = tables.headline(trace, summary)
    over = over_parameter(trace) if is_drawn_over_parameter(trace) else None
    # Curves and the charts of families are static; bars become interactive.
    data = page_data(goodput if over is None and not goodput.has_members else replace(goodput, rows=()), samples)
    texts = {
        "script": "\n".join(page.template_text(__package__, name) for name in _SCRIPTS),
        "plotly": _plotly_script(),
        "samples": samples.texts,
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        **_about_sweep(trace),
        **about_network(trace),
        "headline": headline,
        "about_table": captions.of_table(headline, {id(one): one for one in trace.topologies.values()}.values()),
        "all_metrics": tables.all_metrics(trace, summary),
        "warnings": [*headline.notes, *plots.notes, *samples.notes],
        "judged": judged,
        "comparison": None if judged else tables.engine_comparison(trace),
        "over": over.x.label if over else "",
        "caption": captions.of_curves(over) if over else captions.of_bars(goodput),
        "plot_notes": list(over.notes) if over else [],
        "about_time": captions.of_time(shown_first) if shown_first else "",
        "time_titles": [panel.title.lower() for panel in PANELS if shown_first and shown_first.column.of(panel)],
        "shown": shown_first,
    }
    figures, over_time = drawn()
    return page.render(__package__, "report.html", figures=figures, over_time=over_time, **texts)


def _about_sweep(trace: Trace) -> dict[str, Any]:
    """What was run, and how to run it again."""
    first = trace.runs.row(0, named=True)
    question, comments = leading_comment(first["scenario_toml"])
    return {
        "title": first["title"] or first["scenario"],
        "scenario": first["scenario"],
        "question": question,
        "source": _source(first["scenario_toml"]),
        "comments": comments,
        "facts": _facts(trace),
        "problems": [problem.text for problem in trace.excluded_runs],
        "engines": _engines(trace),
        "simulated": not any(engine_of(engine).real_time for engine in trace.engines),
        "command": command(trace),
        "merged": "merged" in _asked(trace),
        "beside": _beside(trace),
        "run": first,
        "algorithms": algorithms_run(trace),
        "toml": first["scenario_toml"],
    }


def _beside(trace: Trace) -> list[str]:
    """What the command needs besides the scenario file."""
    sources = ["the C files of algorithms"] if _asked(trace).get("files") else []
    try:
        names = dict.fromkeys(named_files(tomllib.loads(trace.runs["scenario_toml"][0])))
    except tomllib.TOMLDecodeError:
        return sources
    return [*sources, f"these files in its folder: {', '.join(names)}"] if names else sources


def about_network(trace: Trace) -> dict[str, Any]:
    """The network of the first run, with its flows."""
    topology = trace.topologies[trace.runs["run"][0]]
    shown = families.condensed(trace, topology)
    is_drawn = topology_svg.can_draw(shown)
    if not is_drawn:
        shown = families.listed(trace, topology)
    # A flow that the drawing does not put together with others looks like its line.
    styles = families.styles(trace, shown) | {
        who: look
        for who, look in families.line_styles(trace, topology).items()
        if who[0] in {flow.name for flow in shown.flows}
    }
    return {
        "topology": topology_svg.for_any_width(shown, styles) if is_drawn else "",
        "varies": len({_shape(t) for t in trace.topologies.values()}) > 1,
        "flows": topology_svg.legend(shown, styles),
        "flows_left_out": topology_svg.left_out_of_legend(shown),
        "subflows": sum(len(flow.subflows) for flow in topology.flows),
        "links": topology.data_links,
        "counted": counted,
    }


def _shape(topology: Topology) -> tuple[object, ...]:
    return tuple(topology.links.values())


def _plotly_script() -> str:
    """Plotly's script, compressed: a quarter of its size on disk, and parsed only after the text is on screen."""
    import plotly

    script = files(plotly).joinpath("package_data", "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(script, 6, mtime=0)).decode("ascii")


def _source(toml: str) -> str:
    """The source that the scenario file states; empty if it has none."""
    try:
        found = tomllib.loads(toml).get("source", "")
    except tomllib.TOMLDecodeError:
        return ""
    return found if isinstance(found, str) else ""


def _facts(trace: Trace) -> list[str]:
    runs, configs = trace.runs, tables.config_names(trace)
    *others, most = trace.configs.group_by("config").len()["len"].unique().sort()
    or_fewer = "".join(f"{n} or " for n in others)
    seconds = runs["duration_ns"].unique().sort() / 1e9
    length = " / ".join(f"{s:g} s" for s in seconds)
    warmup = max(runs["warmup_ns"]) / 1e9
    times = "\N{MULTIPLICATION SIGN}"
    return [
        f"{counted(len(configs), 'configuration')} {times} {or_fewer}{counted(most, 'repetition')}",
        f"{length} each" + (f", the first {warmup:g} s not counted" if warmup else ""),
        f"engine {_engines(trace)}",
        "ACK profile " + ", ".join(runs["profile"].unique(maintain_order=True)),
    ]


def _engines(trace: Trace) -> str:
    """The engines with their versions, and the kernels of emulated machines."""
    rows = trace.runs.select("engine", "engine_version").unique(maintain_order=True).iter_rows()
    kernels = machines.kernels(trace.runs)
    return ", ".join(" ".join([*row, *([f"({kernels[row[0]]})"] if row[0] in kernels else [])]) for row in rows)


def algorithms_run(trace: Trace) -> list[tuple[str, str]]:
    """The algorithm that every subflow really ran, as the engine recorded it: for configurations that ran the same."""
    rows = trace.configs.join(trace.runs.select("run", "cc", "subflow_cc"), on="run", maintain_order="left")
    firsts = rows.unique("config", keep="first", maintain_order=True)
    configs: dict[tuple[str, str], list[str]] = {}
    for config, cc, recorded in firsts.select("config", "cc", "subflow_cc").iter_rows():
        configs.setdefault((cc, algorithms_of(json.loads(recorded))), []).append(config)
    return [
        (names[0] if len(names) == 1 else f"{cc}, {len(names)} configurations", ran)
        for (cc, ran), names in configs.items()
    ]


def algorithms_of(recorded: Sequence[dict[str, Any]]) -> str:
    """The algorithms that subflows ran, with their parameters, from what the engine recorded of each subflow."""
    groups: dict[str, list[str]] = {}
    for entry in recorded:
        groups.setdefault(_algorithm(entry), []).append(f"{entry['flow']}/{entry['subflow']}")
    return "; ".join(f"{_shortened(who)}: {cc}" for cc, who in groups.items())


def _algorithm(entry: dict[str, Any]) -> str:
    params = entry.get("params") or {}
    pairs = params.items() if isinstance(params, dict) else params
    shown = ", ".join(f"{key} = {value}" for key, value in pairs)
    return f"{entry['cc']} ({shown})" if shown else entry["cc"]


def _shortened(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def command(trace: Trace) -> str:
    """The command that repeats this sweep."""
    asked = _asked(trace)
    if "merged" in asked:
        return shlex.join(["mptcplab", "merge", *asked["merged"], "--out", str(trace.directory)])
    verb, engines = ("agree", "--engines") if "same_noise" in asked else ("run", "--engine")
    name, toml = trace.runs["scenario"][0], trace.runs["scenario_toml"][0]
    words = ["mptcplab", verb, bundle.place(name, toml) or f"{name}.toml"]
    if trace.overrides is not None:
        words += Overrides.from_json(trace.overrides).to_options()
    if trace.engines != ["sim"]:
        words += [engines, ",".join(trace.engines)]
    for option, key in (("--traffic", "traffic"), ("--sim-reps", "sim_reps")):
        if key in asked:
            words += [option, str(asked[key])]
    return shlex.join(words)


def _asked(trace: Trace) -> dict[str, Any]:
    """What was asked for beyond the scenario's file."""
    found: dict[str, Any] = json.loads(trace.overrides or "{}")
    return found


def page_data(goodput: GoodputData, samples: Embedded) -> dict[str, Any]:
    """The data of the interactive plots: goodput, and what describes the samples over time."""
    return {
        "runs": samples.runs,
        "panels": [panel.name for panel in PANELS],
        "styles": [style(index).for_page() for index in range(_STYLES)],
        "goodput": goodput.for_page(),
    }
