"""The page: everything in one file, no request to anywhere (a content security policy enforces it)."""

from __future__ import annotations

import base64
import gzip
import json
import shlex
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
import polars as pl

from mptcplab import text
from mptcplab.metrics import REGISTRY, compute
from mptcplab.report import picture, still, tables
from mptcplab.report.series import PANELS, PlotData, RunPlots, Series
from mptcplab.report.styles import subflow_labels, subflow_styles
from mptcplab.scenario import Overrides

if TYPE_CHECKING:
    from mptcplab.trace.reader import Trace
    from mptcplab.trace.topology import Topology

# Value of an embedded 16-bit sample that means "nothing here".
_GAP = 65535


def render(results: Trace, summary: pl.DataFrame, plots: PlotData) -> str:
    """The HTML text of the report."""
    package = files("mptcplab.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(package.joinpath("page.html").read_text(encoding="utf-8"))
    first = results.runs.row(0, named=True)
    topology = results.topologies[first["run"]]
    headline = tables.headline(results, summary)
    drawable = picture.can_draw(topology)
    data = page_data(results, summary, plots)
    return template.render(
        style=package.joinpath("page.css").read_text(encoding="utf-8"),
        script=package.joinpath("page.js").read_text(encoding="utf-8"),
        plotly=_library(),
        data=json.dumps(data, separators=(",", ":")).replace("</", "<\\/"),
        title=first["title"] or first["scenario"],
        scenario=first["scenario"],
        about=_about(first["scenario_toml"]),
        facts=_facts(results),
        headline=headline,
        everything=tables.all_metrics(results, summary),
        problems=[problem.text for problem in results.excluded_runs],
        warnings=[*headline.notes, *plots.notes],
        comparison=tables.engine_comparison(results),
        engines=_engines(results),
        simulated=results.engines == ["sim"],
        picture_wide=picture.draw(topology, wide=True) if drawable else "",
        picture_tall=picture.draw(topology, wide=False) if drawable else "",
        varies=len({_shape(t) for t in results.topologies.values()}) > 1,
        flows=subflow_legend(topology),
        links=topology.data_links,
        text=text,
        goodput=still.goodput_plot(data["goodput"]),
        over_time=still.time_plots(plots.runs[0]) if plots.runs else None,
        hatches=still.HATCHES,
        drawing={"width": still.WIDTH, "height": still.HEIGHT},
        command=command(results),
        run=first,
        algorithms=algorithms_run(results),
        toml=first["scenario_toml"],
    )


def _shape(topology: Topology) -> tuple[object, ...]:
    return tuple(topology.links.values())


def _library() -> str:
    """Plotly's script, compressed: a quarter of its size on disk, and parsed only after the text is on screen."""
    import plotly

    script = files(plotly).joinpath("package_data", "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(script, 6, mtime=0)).decode("ascii")


def _about(toml: str) -> dict[str, str]:
    """What the scenario file says about itself."""
    try:
        parsed = tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        return {}
    about = {key: parsed[key] for key in ("description", "source") if isinstance(parsed.get(key), str)}
    first = toml.lstrip().partition("\n")[0]
    # By convention a scenario file opens with the question that it answers.
    if first.startswith("#") and first.rstrip().endswith("?"):
        about["question"] = first.lstrip("# ").rstrip()
    return about


def _facts(results: Trace) -> list[str]:
    runs, configs = results.runs, tables.config_names(results)
    *others, most = results.configs.group_by("config").len()["len"].unique().sort()
    or_fewer = "".join(f"{n} or " for n in others)
    seconds = runs["duration_ns"].unique().sort() / 1e9
    length = " / ".join(f"{s:g} s" for s in seconds)
    warmup = max(runs["warmup_ns"]) / 1e9
    times = "\N{MULTIPLICATION SIGN}"
    return [
        f"{_count(len(configs), 'configuration')} {times} {or_fewer}{_count(most, 'repetition')}",
        f"{length} each" + (f", the first {warmup:g} s not counted" if warmup else ""),
        f"engine {_engines(results)}",
        "ACK profile " + ", ".join(runs["profile"].unique(maintain_order=True)),
    ]


def _engines(results: Trace) -> str:
    """The engines with their versions."""
    rows = results.runs.select("engine", "engine_version").unique(maintain_order=True).iter_rows()
    return ", ".join(" ".join(row) for row in rows)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def subflow_legend(topology: Topology) -> list[dict[str, Any]]:
    """Legend of the picture: every subflow with its line and path."""
    styles, labels = subflow_styles(topology), subflow_labels(topology)
    rows = []
    for flow in topology.flows[:40]:
        for subflow in flow.subflows:
            key = (flow.name, subflow.name)
            about = f"{flow.transport.upper()}, {flow.traffic}"
            if subflow.base_rtt_ns is not None:
                about += f", base RTT {text.duration(subflow.base_rtt_ns)}"
            about += ", backup" if subflow.backup else ""
            rows.append(
                {
                    "label": labels[key],
                    "style": styles[key],
                    "flow": flow.name,
                    "about": about,
                    "path": " → ".join(subflow.path),
                }
            )
    return rows


def algorithms_run(results: Trace) -> list[tuple[str, str]]:
    """Per configuration: the algorithm that every subflow really ran, as the engine recorded it."""
    rows = results.configs.join(results.runs.select("run", "subflow_cc"), on="run", maintain_order="left")
    firsts = rows.unique("config", keep="first", maintain_order=True)
    found = []
    for config, recorded in firsts.select("config", "subflow_cc").iter_rows():
        found.append((config, ran(json.loads(recorded))))
    return found


def ran(recorded: Sequence[dict[str, Any]]) -> str:
    """The algorithms that subflows ran, with their parameters, from what the engine recorded of each subflow."""
    groups: dict[str, list[str]] = {}
    for entry in recorded:
        groups.setdefault(_algorithm(entry), []).append(f"{entry['flow']}/{entry['subflow']}")
    return "; ".join(f"{_some(who)}: {cc}" for cc, who in groups.items())


def _algorithm(entry: dict[str, Any]) -> str:
    params = entry.get("params") or {}
    pairs = params.items() if isinstance(params, dict) else params
    shown = ", ".join(f"{key} = {value}" for key, value in pairs)
    return f"{entry['cc']} ({shown})" if shown else entry["cc"]


def _some(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def command(results: Trace) -> str:
    """The command that repeats this sweep."""
    asked = json.loads(results.overrides or "{}")
    verb, engines = ("agree", "--engines") if "same_noise" in asked else ("run", "--engine")
    words = ["mptcplab", verb, f"{results.runs['scenario'][0]}.toml"]
    if results.overrides is not None:
        words += Overrides.from_json(results.overrides).to_options()
    if results.engines != ["sim"]:
        words += [engines, ",".join(results.engines)]
    for option, key in (("--traffic", "traffic"), ("--sim-reps", "sim_reps")):
        if key in asked:
            words += [option, str(asked[key])]
    return shlex.join(words)


def page_data(results: Trace, summary: pl.DataFrame, plots: PlotData) -> dict[str, Any]:
    """What the page's script draws: the goodput plot and the series over time."""
    return {
        "panels": [{"name": p.name, "title": p.title, "unit": p.unit} for p in PANELS],
        "runs": [_run_data(run) for run in plots.runs],
        "goodput": _goodput_data(results, summary),
    }


def _run_data(run: RunPlots) -> dict[str, Any]:
    series = [_pack(s) for s in run.series]
    return {"config": run.config, "rep": run.rep, "duration": run.duration_s, "warmup": run.warmup_s, "series": series}


def _pack(series: Series) -> dict[str, Any]:
    """Values as 16-bit numbers: finer than any screen, and small."""
    finite = np.isfinite(series.values)
    peak = float(series.values[finite].max()) if finite.any() else 0.0
    scale = peak / (_GAP - 1) or 1.0
    packed = np.full(series.values.shape, _GAP, dtype="<u2")
    packed[finite] = np.round(series.values[finite] / scale)
    return {
        "panel": series.panel,
        "label": series.label,
        **series.style.for_page(),
        "start": series.start_s,
        "step": series.step_s,
        "scale": scale,
        "values": base64.b64encode(packed.tobytes()).decode("ascii"),
    }


def _goodput_data(results: Trace, summary: pl.DataFrame) -> dict[str, Any]:
    """Rows of the goodput plot: total with interval, every repetition, the split, and the fair share."""
    flows = tables.connection_names(results)
    if len(flows) > tables.MAX_FLOWS:
        return {"rows": [], "unit": REGISTRY["goodput"].unit}
    topology = next(iter(results.topologies.values()))
    styles, labels = subflow_styles(topology), subflow_labels(topology)
    wanted = summary.filter(pl.col("metric").is_in(["goodput", "ideal"]))
    lookup = {(row["config"], row["metric"], row["flow"], row["subflow"]): row for row in wanted.iter_rows(named=True)}
    values = compute(results).filter((pl.col("metric") == "goodput") & pl.col("subflow").is_null())
    points = tables.counted(results, values).join(results.configs, on="run", maintain_order="left").drop_nulls("value")
    rows = []
    for config in tables.config_names(results):
        for flow in flows:
            total = lookup.get((config, "goodput", flow, None))
            if total is None or total["mean"] is None:
                continue
            parts = [
                {"label": labels[who], "mean": row["mean"], **styles[who].for_page()}
                for who in styles
                if who[0] == flow and (row := lookup.get((config, "goodput", *who))) and row["mean"] is not None
            ]
            ideal = lookup.get((config, "ideal", flow, None))
            mine = points.filter((pl.col("config") == config) & (pl.col("flow") == flow))
            rows.append(
                {
                    "label": config if len(flows) == 1 else f"{config} · {flow}",
                    "mean": total["mean"],
                    "half": total["half"],
                    "points": mine["value"].to_list(),
                    "parts": parts,
                    "ideal": ideal["mean"] if ideal else None,
                }
            )
    return {"rows": rows, "unit": REGISTRY["goodput"].unit}
