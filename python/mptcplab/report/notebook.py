"""What notebooks show: the table of results, the picture of a scenario."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from mptcplab.plots.styles import css_palette
from mptcplab.report import families, tables, topology_svg
from mptcplab.text import counted
from mptcplab.trace.topology import Topology

if TYPE_CHECKING:
    from mptcplab.text import Table
    from mptcplab.trace.reader import Trace

# The colours of a page, for a figure by itself, on a background of its own. The colours that a notebook has for tables
# must not take effect there: those of a dark JupyterLab are white text on dark rows.
_STYLE = (
    ".mptcplab {{ --ink: #1c1f23; --soft: #59616b; --page: #ffffff; --pipe: #e4e7eb; --host: #1c1f23; "
    "--host-ink: #ffffff; {palette} background: var(--page); color: var(--ink); padding: 8px; }}"
    ".mptcplab table {{ color: inherit !important; }} .mptcplab tr {{ background: none !important; }} "
    ".mptcplab svg {{ display: block; }} .mptcplab svg.tall {{ display: none; }} "
    ".mptcplab .pipe {{ fill: none; stroke: var(--pipe); stroke-width: 16; stroke-linecap: round; }} "
    ".mptcplab .flow {{ fill: none; stroke-width: 2.6; }} "
    ".mptcplab .label {{ font: 13px sans-serif; fill: var(--soft); paint-order: stroke; stroke: var(--page); "
    "stroke-width: 4px; stroke-linejoin: round; }} .mptcplab .label .name {{ font-weight: 700; fill: var(--ink); }} "
    ".mptcplab .label .tag {{ font-weight: 600; }} .mptcplab .host {{ fill: var(--host); }} "
    ".mptcplab .host-name {{ fill: var(--host-ink); font: 700 15px sans-serif; }} .mptcplab .router {{ "
    "fill: var(--page); stroke: var(--soft); stroke-width: 1.5; }} .mptcplab .router-name {{ fill: var(--ink); "
    "font: 14px sans-serif; }} .mptcplab th, .mptcplab td {{ text-align: right; padding: 2px 8px; "
    "white-space: pre-line; }} .mptcplab .hint {{ color: var(--soft); }}"
)


def _framed(body: str) -> str:
    style = _STYLE.format(palette=css_palette(dark=False))
    return f'<div class="mptcplab"><style>{style}</style>{body}</div>'


def scenario_html(scenario: Any, run: dict[str, Any] | None, error: str | None) -> str:
    """The picture of a scenario's first run, or why there is none."""
    title = escape(str(scenario.keys.get("title", scenario.name)))
    if run is None:
        return _framed(f"<b>{title}</b><pre>{escape(error or '')}</pre>")
    topology = Topology.from_json(json.dumps(run))
    if not topology_svg.can_draw(topology):
        links, flows = len(topology.data_links), len(topology.flows)
        return _framed(
            f"<b>{title}</b><p>{counted(links, 'link')}, {counted(flows, 'flow')}: too many for a picture</p>"
        )
    return _framed(f"<b>{title}</b>{topology_svg.draw(topology, wide=True)}")


def results_html(trace: Trace) -> str:
    """The table that the command line prints, and where the files are."""
    from mptcplab.metrics import summary

    table = tables.headline(trace, summary(trace))
    notes = "".join(f'<div class="hint">note: {escape(note)}</div>' for note in table.notes)
    problems = "".join(f"<div><b>warning:</b> {escape(problem.text)}</div>" for problem in trace.excluded_runs)
    facts = counted(trace.runs.height, "run") + (f" in {trace.directory}" if trace.temporary is None else "")
    some = families.has_families(trace)
    hint = "families(), " if some else ""
    more = f"<div class='hint'>{escape(facts)}; summary(), {hint}metrics(), report() and plot have more</div>"
    return _framed(_table(table) + problems + notes + more)


def _table(table: Table) -> str:
    head = "".join(
        f"<th>{escape(' '.join(name.split()))}{f'<br>{escape(unit)}' if unit else ''}</th>" for name, unit in table.head
    )
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
