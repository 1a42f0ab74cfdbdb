"""Commands that generate files: `schema`, `docs`, `walk`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mptcplab.cli import options
from mptcplab.cli.exit_codes import FAILED
from mptcplab.cli.printing import print_json, print_paths


def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from mptcplab import api

    print_json(api.schema())


def docs(
    context: typer.Context,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Directory for the pages instead of docs/reference, without the README."
        ),
    ] = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a page is not up to date.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Generate the reference pages from the sources.

    The README's numbers of the papers' claims are written as well.
    """
    from mptcplab import reference
    from mptcplab.studies.papers import catalog, summary

    commands, place = context.find_root().command, out or Path("docs/reference")
    # The README is no page that could go elsewhere.
    papers = catalog.load() if out is None else None
    if check_only:
        stale = [*reference.stale_pages(place, commands), *(summary.stale(papers) if papers else [])]
        print_paths("stale", stale, label="not up to date", as_json=as_json)
        if stale:
            raise typer.Exit(FAILED)
    else:
        written = [*reference.write_pages(place, commands), *(summary.refresh(papers) if papers else [])]
        print_paths("written", written, label="wrote", as_json=as_json)


def walk(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory for the files.")] = Path("walk"),
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the fading.")] = 1,
    reps: Annotated[int, typer.Option("--reps", metavar="N", help="Repetitions, each with its own fading.")] = 1,
    duration: Annotated[str, typer.Option("--duration-s", metavar="S", help="Length in seconds.")] = "60",
    phase: Annotated[
        str, typer.Option("--phase-s", metavar="S", help="Where in the walk of 60 s it begins, in seconds.")
    ] = "0",
    phase_step: Annotated[
        str, typer.Option("--phase-step-s", metavar="S", help="How much later each repetition begins, in seconds.")
    ] = "0",
    wifi: Annotated[str, typer.Option("--wifi-mbps", metavar="MBPS", help="Full rate of the Wi-Fi.")] = "11",
    cellular: Annotated[
        str, typer.Option("--cellular-mbps", metavar="MBPS", help="Full rate of the cellular network.")
    ] = "5.5",
    as_json: options.Json = False,
) -> None:
    """Write the link changes of a walk out of Wi-Fi and back.

    The walk leads away from a Wi-Fi access point and back to it. The files `wifi-REP.csv` and `cellular-REP.csv` have
    rate and loss of the two networks every 100 ms, for `schedule_file` of a scenario's links. The coverage is assumed,
    with 6 s without Wi-Fi and 1 s without cellular network; the fading is random. The same options give the same bytes.
    """
    from mptcplab import mobility

    numbers = {
        "duration_s": duration,
        "phase_s": phase,
        "phase_step_s": phase_step,
        "wifi_mbps": wifi,
        "cellular_mbps": cellular,
    }
    chosen = mobility.Walk(
        seed=seed, repetitions=reps, **{name: mobility.number(name, text) for name, text in numbers.items()}
    )
    print_paths("written", mobility.write(out, chosen), label="wrote", as_json=as_json)
