"""Commands for results that are there already: `merge`, `compare`, `ls`."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from mptcplab import terminal
from mptcplab.cli import options
from mptcplab.cli.printing import print_json, show_results

# What `compare` shows unless asked for more, as `comparing.SHOWN` has it, whose import would be slow.
_SHOWN = "goodput, rtt_mean, retx_rate, rto_count, total_goodput, jain"

# A long hint is broken at this width.
_HINT_WIDTH = 96


def merge(
    directories: Annotated[
        list[Path], typer.Argument(parser=options.path, metavar="DIRECTORY...", help="Two results directories or more.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", parser=options.path, metavar="DIR", help="Directory for the results of all of them."),
    ],
    force: options.Force = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write the trace and print the summary only.")] = False,
    as_json: options.Json = False,
) -> None:
    """Join results in one directory and print the summary.

    A report is written as well, unless --no-report says otherwise.

    The joined directories are not changed. Runs keep the order of the directories, and a run that several of them have
    is taken once. It is an error if runs that have the same name in the tables have different settings.
    """
    from mptcplab import api

    results = api.merge(*directories, out=out, force=force)
    show_results(results, None if no_report else out / "report.html", as_json=as_json)


def compare(
    a: Annotated[Path, typer.Argument(parser=options.path, metavar="A", help="Results directory: the reference.")],
    b: Annotated[
        Path | None,
        typer.Argument(parser=options.path, metavar="B", help="Results directory that is compared with it."),
    ] = None,
    cc: Annotated[
        list[str] | None,
        typer.Option("--cc", metavar="CC,CC", help="Compare two algorithms of A instead; the first is the reference."),
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics", metavar="NAMES", help="Metrics in the table, separated by commas, or all. JSON has all."
        ),
    ] = _SHOWN,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            parser=options.path,
            metavar="FILE",
            help="Write a page with the table and figures, a single HTML file. An earlier such page is replaced.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compare two results, or two algorithms of one.

    A difference is that of B from A, in percent or in the unit of a metric that is a fraction, with its 95 % interval.
    If both have the same seeds and repetitions, these are compared in pairs, otherwise by their means (Welch). The
    command also says where scenarios, builds or engines differ.
    """
    from mptcplab import api
    from mptcplab.errors import MptcplabError, with_hint
    from mptcplab.metrics import REGISTRY, find

    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if not names:
        names_known = fill(f"all, or some of {', '.join(REGISTRY)}", _HINT_WIDTH, subsequent_indent=" " * len("hint: "))
        raise MptcplabError(with_hint(f"no metric in this list: {metrics!r}", names_known))
    chosen = list(REGISTRY) if names == ["all"] else [find(name).name for name in names]
    found = api.compare(a, b, cc=options.names(cc))
    if report is not None:
        with terminal.working("writing the report"):
            found.report(report, chosen)
    if as_json:
        print_json(found.as_dict() | {"report": None if report is None else str(report)})
        return
    terminal.print_table(found.table(chosen))
    if report is not None:
        terminal.note(f"report: {report}")


def ls(
    directory: Annotated[
        Path, typer.Argument(parser=options.path, metavar="DIRECTORY", help="Where to look, with everything below it.")
    ] = Path("results"),
    as_json: options.Json = False,
) -> None:
    """List the results below a directory.

    The finished runs of a result that is not complete are in a directory whose name ends with .partial. The command
    that began the result continues from them. To remove a result, use `rm -r`: nothing else depends on it.
    """
    from mptcplab import api, listing

    found = api.ls(directory)
    if as_json:
        print_json([one.as_dict() for one in found])
    elif found:
        terminal.print_table(listing.table(found))
    else:
        terminal.note(f"no results below {directory}")
