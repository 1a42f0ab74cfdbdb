"""How commands print what they found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mptcplab import terminal

if TYPE_CHECKING:
    from mptcplab.results import Results
    from mptcplab.studies.agreement.judge import Agreement


def print_json(data: object) -> None:
    """JSON on stdout, for programs. What the encoding of stdout lacks is escaped, so that nothing is lost."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(data, indent=2)
    print(text)


def print_paths(key: str, paths: list[Path], *, label: str, as_json: bool) -> None:
    """A line with `label` per file, or a JSON object that has the list under `key`."""
    if as_json:
        print_json({key: [str(path) for path in paths]})
    else:
        for path in paths:
            print(f"{label}: {path}")


def show_results(results: Results, report: Path | None, *, as_json: bool, agreement: Agreement | None = None) -> None:
    """Print the summary of results; write their report, with the agreement of engines, if there is a path for it."""
    if report is not None:
        with terminal.working("writing the report"):
            _write_report(results, report, agreement)
    if as_json:
        print_json(
            {
                "results": str(results.directory),
                "report": None if report is None else str(report),
                "runs": results.runs.height,
                "problems": [run.as_dict() for run in results.excluded_runs],
                "notes": results.remarks,
                "summary": results.summary().to_dicts(),
            }
        )
        for remark in results.remarks:
            terminal.note(f"note: {remark}")
        return
    from mptcplab.report.tables import engine_comparison, headline

    terminal.print_table(headline(results, results.summary()))
    comparison = engine_comparison(results)
    if comparison is not None:
        print()
        terminal.print_table(comparison)
    for run in results.excluded_runs:
        terminal.warning(run.text)
    terminal.note(f"trace:  {results.directory}")
    if report is not None:
        terminal.note(f"report: {report}")


def _write_report(results: Results, path: Path, agreement: Agreement | None) -> None:
    if agreement is None:
        results.report(path)
        return
    from mptcplab.studies.agreement import text

    text.report(agreement, path)
