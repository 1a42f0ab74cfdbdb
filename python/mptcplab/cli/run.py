"""Commands that run or check one scenario: `run`, `report`, `check`."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mptcplab import terminal
from mptcplab.cli import options
from mptcplab.cli.exit_codes import FAILED
from mptcplab.cli.printing import print_json, show_results

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mptcplab.results import Results
    from mptcplab.studies.agreement.judge import Agreement


def run(
    scenario: options.Scenario,
    cc: options.Cc = None,
    reps: options.Reps = None,
    seed: options.Seed = None,
    profile: options.Profiles = None,
    duration: options.Duration = None,
    settings: options.Settings = None,
    sweep: options.Sweep = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAMES",
            help="Engine to run it on: sim (simulator), vm (real sockets of a stock kernel in virtual time; vm:SUITE "
            "names one of Debian's, vm:PATH an image), kernel (real sockets on this machine; root), fluid "
            "(differential equations), or several, such as sim,vm:bookworm.",
        ),
    ] = "sim",
    traffic: Annotated[
        str, typer.Option("--traffic", metavar="NAME", help="Program that sends on the kernel: own, or iperf3.")
    ] = "own",
    sim_reps: options.SimReps = None,
    jobs: options.Jobs = 0,
    on: options.On = None,
    store: options.Store = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=options.path,
            metavar="DIR",
            help="Output directory. Default: results/<scenario>, or with a number appended if that has other runs.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace an earlier result in --out, or without --out that of the same runs, and make all runs again.",
        ),
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write the trace and print the summary only.")] = False,
    as_json: options.Json = False,
) -> None:
    """Run a scenario, print the summary and write a report.

    The directory of the result has the trace, one Parquet file per table, and with the report the metrics as CSV.
    Finished runs are kept in DIR.partial until the result is complete: after Ctrl-C, an error or a crash, the same
    command continues from them. If the directory already has some of the runs that the command asks for, and no
    others, the command makes only the missing ones: --reps 20 after --reps 5 makes 15. It then writes the report
    again, or removes it with --no-report.

    The exit code is 0 if all runs are valid, 1 if a run is invalid and the summary leaves it out, 2 after an error, 130
    after Ctrl-C, 143 after SIGTERM, and 129 after SIGHUP. A run that ended early is an error, but its trace up to then
    is kept and marked.
    """
    from mptcplab import api, errors, output

    numbered = output.Numbered(scenario)
    reported = _reported([out] if out else takewhile(Path.exists, numbered.candidates()))
    try:
        with terminal.progress() as progress:
            results = api.run(
                scenario,
                engine=engine,
                traffic=traffic,
                jobs=jobs,
                client=on,
                store=store,
                out=out or numbered,
                sim_reps=sim_reps,
                force=force,
                progress=progress,
                **options.overrides(cc, reps, seed, profile, duration, settings, sweep),
            )
    except errors.UnfinishedError as unfinished:
        kept = unfinished.results
        show_results(kept, None if no_report else kept.directory / "report.html", as_json=as_json)
        raise
    page = None if no_report else results.directory / "report.html"
    if results.directory.resolve() in reported - _reported([results.directory]) and no_report:
        terminal.note(f"the report of the earlier runs was removed; `mptcplab report {results.directory}` writes one")
    _finish(results, page, as_json=as_json)


def report(
    directory: Annotated[
        Path, typer.Argument(parser=options.path, metavar="DIRECTORY", help="Directory that `mptcplab run` wrote.")
    ],
    as_json: options.Json = False,
) -> None:
    """Write the report of an earlier run again.

    Prints the summary as well. The trace is only read. If `agree` made the result, the engines are judged again. Exit
    code 1 if a run is invalid or ended early.
    """
    from mptcplab import api
    from mptcplab.studies.agreement import text

    results = api.load(directory)
    _finish(results, directory / "report.html", as_json=as_json, agreement=text.stored(results))


def check(
    scenario: options.Scenario,
    cc: options.Cc = None,
    reps: options.Reps = None,
    seed: options.Seed = None,
    profile: options.Profiles = None,
    duration: options.Duration = None,
    settings: options.Settings = None,
    sweep: options.Sweep = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAMES", help="Engines whose limits are checked: sim, fluid, or both.")
    ] = "sim",
    as_json: options.Json = False,
) -> None:
    """Validate a scenario and print how it was understood.

    Whatever `run` would refuse is an error here. The engines kernel and vm cannot be checked, because a kernel refuses
    what it cannot do only when the run starts.
    """
    from mptcplab import api

    changes = options.overrides(cc, reps, seed, profile, duration, settings, sweep)
    found = api.check(scenario, engine=engine, **changes)
    if as_json:
        print_json(found)
    else:
        print(found["text"].rstrip("\n"))
    for remark in found["notes"]:
        terminal.note(f"note: {remark}")


def _reported(directories: Iterable[Path]) -> set[Path]:
    """Those that have a report."""
    return {one.resolve() for one in directories if (one / "report.html").is_file()}


def _finish(results: Results, report: Path | None, *, as_json: bool, agreement: Agreement | None = None) -> None:
    """Show the results; exit code 1 if one of their runs does not count."""
    show_results(results, report, as_json=as_json, agreement=agreement)
    if results.excluded_runs:
        raise typer.Exit(FAILED)
