"""The command `hunt`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mptcplab import terminal
from mptcplab.cli import options
from mptcplab.cli.printing import print_json


def hunt(
    cc: Annotated[str, typer.Argument(metavar="CC", help="An algorithm, as --cc of `run` takes it.")],
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAMES",
            help="Properties whose violation is searched for: takes-more, gets-less, starves, loses-share, harms, "
            "slow-reaction, oscillates, idle, blocking. Default: all, one after the other. Repeatable.",
        ),
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(
            "--evaluations",
            parser=options.at_least(1),
            metavar="N",
            help="Networks to try for each property. Default: 600.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option("--seed", parser=options.at_least(0), metavar="N", help="Seed of the search and of the runs."),
    ] = 1,
    confirm: Annotated[
        str | None,
        typer.Option(
            "--confirm", metavar="NAMES", help="Engines that have to confirm what the simulator finds, such as vm."
        ),
    ] = None,
    jobs: options.Jobs = 0,
    on: options.On = None,
    store: options.Store = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", parser=options.path, metavar="DIR", help="Directory that collects the findings of hunts."
        ),
    ] = Path("results/hunt"),
    as_json: options.Json = False,
) -> None:
    """Search for the network in which an algorithm does worst.

    The search chooses the rates, delays, queues and losses of two paths with a common first link, the TCP connections
    on them and when these start; for slow-reaction also a change of the network, and for blocking a receive buffer. The
    worst network is made smaller as long as the violation stays, and simulated again with ten other seeds; if these do
    not confirm it, the next worst is tried. Writes the network's scenario file and a page. The same seed and number of
    evaluations find the same network. Ctrl-C leaves the worst network so far. Exit code 0 whatever is found. Needs the
    package cma (pip install 'mptcplab[hunt]').
    """
    from mptcplab import api
    from mptcplab.studies.hunt import page

    with terminal.progress("networks", "networks/s") as progress:
        names = None if properties is None else [name for value in properties for name in value.split(",")]
        findings = api.hunt(
            cc,
            names,
            out,
            evaluations=evaluations,
            seed=seed,
            confirm=confirm,
            jobs=jobs,
            client=on,
            store=store,
            progress=progress,
        )
    if as_json:
        print_json({"page": str(out / page.PAGE), "findings": [page.as_data(one) for one in findings]})
        return
    for one in findings:
        print(page.line(one))
    terminal.note(f"page: {out / page.PAGE}")
