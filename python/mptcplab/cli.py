"""The command line: each verb is one call of the Python API, printed.

Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 a check failed, 2 error, 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mptcplab import terminal

if TYPE_CHECKING:
    from mptcplab.results import Results
    from mptcplab.studies.fidelity import Measured

app = typer.Typer(
    name="mptcplab",
    help="A laboratory for Multipath TCP congestion control.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

FAILED, ERROR, INTERRUPTED = 1, 2, 130

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Scenario = Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).", show_default=False)]
Cc = Annotated[
    list[str] | None,
    typer.Option(
        "--cc",
        metavar="NAMES",
        help="Algorithms to compare instead of the file's, separated by commas; may be repeated.",
        show_default=False,
    ),
]
ProfileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="NAMES",
        help="How ACKs are sent and counted, such as rfc,linux-legacy: the key `profile` of the scenario format.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any key of the file by its path, such as --set 'links.B1.queue=1 BDP'; KEY= removes it; may be repeated.",
        show_default=False,
    ),
]
Reps = Annotated[
    int | None,
    typer.Option("--reps", min=1, metavar="N", help="Repetitions of every combination.", show_default=False),
]
SimReps = Annotated[
    int | None,
    typer.Option(
        "--sim-reps",
        min=1,
        metavar="N",
        help="Repetitions of the simulator beside another engine, if other than --reps: a kernel takes real time.",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, metavar="N", help="Seed of everything that is random.", show_default=False),
]
Duration = Annotated[
    str | None,
    typer.Option("--duration", metavar="TIME", help='Simulated time of a run, such as "30 s".', show_default=False),
]
Jobs = Annotated[int, typer.Option("--jobs", min=0, metavar="N", help="Threads of the simulator; 0 is one per core.")]


def _version(asked: bool) -> None:
    if asked:
        from mptcplab import _core

        print(f"mptcplab {_core.version()}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


@app.command()
def run(
    scenario: Scenario,
    cc: Cc = None,
    reps: Reps = None,
    seed: Seed = None,
    profile: ProfileOption = None,
    duration: Duration = None,
    settings: Set = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAMES",
            help="What runs it: sim (simulator), kernel (real sockets on this machine; root), fluid (differential "
            "equations), or several, such as sim,fluid.",
        ),
    ] = "sim",
    traffic: Annotated[
        str, typer.Option("--traffic", metavar="NAME", help="Who sends on the kernel: own, or iperf3.")
    ] = "own",
    sim_reps: SimReps = None,
    jobs: Jobs = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Output directory. Default: results/<scenario>, with a number behind it if that exists.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a former result in --out.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write the trace and print the summary only.")] = False,
    as_json: Json = False,
) -> None:
    """Run a scenario, print the summary and write a report.

    Exit code 1 if a run does not count, 2 if one ended early: what was recorded is kept, and marked.
    """
    from mptcplab import api, errors, output

    directory = out or output.fresh_directory(scenario)
    page = None if no_report else directory / "report.html"
    try:
        with terminal.progress() as progress:
            results = api.run(
                scenario,
                cc=_split(cc),
                reps=reps,
                seed=seed,
                engine=engine,
                traffic=traffic,
                jobs=jobs,
                out=directory,
                profile=_split(profile),
                duration=duration,
                settings=_pairs(settings),
                sim_reps=sim_reps,
                force=force,
                progress=progress,
            )
    except errors.UnfinishedError as unfinished:
        _show(unfinished.results, page, as_json=as_json)
        raise
    _finish(results, page, as_json=as_json)


@app.command()
def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Directory that `mptcplab run` wrote.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Write the report of an earlier run again.

    Its summary is printed, too; the trace is only read.
    """
    from mptcplab import api

    _finish(api.load(directory), directory / "report.html", as_json=as_json)


def _finish(results: Results, report: Path | None, *, as_json: bool) -> None:
    """Show the results; exit code 1 if a run among them does not count."""
    _show(results, report, as_json=as_json)
    if results.excluded_runs:
        raise typer.Exit(FAILED)


def _show(results: Results, report: Path | None, *, as_json: bool) -> None:
    """Print the summary; write the report if asked for."""
    if report is not None:
        with terminal.working("writing the report"):
            results.report(report)
    if as_json:
        _print_json(
            {
                "results": str(results.directory),
                "report": None if report is None else str(report),
                "runs": results.runs.height,
                "problems": [problem.as_dict() for problem in results.excluded_runs],
                "summary": results.summary().to_dicts(),
            }
        )
        return
    from mptcplab.report.tables import engine_comparison, headline

    summary = results.summary()
    terminal.print_table(headline(results, summary))
    comparison = engine_comparison(results)
    if comparison is not None:
        print()
        terminal.print_table(comparison)
    for problem in results.excluded_runs:
        terminal.warning(problem.text)
    terminal.note(f"trace:  {results.directory}")
    if report is not None:
        terminal.note(f"report: {report}")


@app.command()
def reproduce(
    paper: Annotated[
        str, typer.Argument(metavar="PAPER", help="A paper below papers/, such as kim2021, or all.", show_default=False)
    ],
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="What runs it: sim, kernel (root; real time) or fluid.")
    ] = "sim",
    experiment: Annotated[
        str | None, typer.Option("--experiment", metavar="ID", help="Only this one, such as ADW-1.", show_default=False)
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A first answer: three repetitions of at most 60 s, none added. The fluid is quick without."
        ),
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=0, metavar="N", help="Runs at a time; 0 is one per core.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where results are kept and the report goes. Default: results/reproduce, with engine and quick in it.",
            show_default=False,
        ),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="DIR", help="Also write the report in Markdown, shorter.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run all experiments of a paper, judge its claims and write a report.

    What is in --out already is not run again. Exit code 1 if a claim that is expected to hold fails; with --quick that
    is a warning only, because its runs are few and short.
    """
    from mptcplab import api
    from mptcplab.studies.papers.report.verdicts import as_data, headlines, verdict_table

    # The fluid's results are the same either way.
    size = ["quick"] if quick and engine != "fluid" else []
    place = out or Path("results") / "-".join(["reproduce", *([engine] if engine != "sim" else []), *size])
    unit = "scenario s/s" if engine == "fluid" else "M packet hops/s, about"
    found = api.reproduce(
        paper,
        engine,
        experiment,
        quick=quick,
        out=place,
        docs=docs,
        jobs=jobs,
        announce=lambda what: terminal.step(what, unit=unit),
    )
    if as_json:
        _print_json(as_data(found))
    else:
        terminal.print_table(verdict_table(found))
        for line in headlines(found):
            print(line)
        terminal.note(f"report: {place / 'index.html'}")
    for claim in [judged.claim for one in found for judged in one.unexpected]:
        here = " in this quick reproduction" if quick else ""
        terminal.warning(f"{claim.id} is expected to hold, and fails{here}: {claim.statement}")
    if not quick and any(one.unexpected for one in found):
        raise typer.Exit(FAILED)


@app.command()
def check(
    scenario: Scenario,
    cc: Cc = None,
    reps: Reps = None,
    seed: Seed = None,
    profile: ProfileOption = None,
    duration: Duration = None,
    settings: Set = None,
    as_json: Json = False,
) -> None:
    """Validate a scenario and print what was understood."""
    from mptcplab import api

    overrides = api.Overrides(
        tuple(_split(cc) or ()), reps, seed, tuple(_split(profile) or ()), duration, _pairs(settings) or {}
    )
    found = api.check(scenario, overrides)
    if as_json:
        _print_json(found)
    else:
        print(found["text"].rstrip("\n"))


@app.command()
def algorithms(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show everything about this one.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the congestion control algorithms of this build."""
    from mptcplab import api, reference

    known = api.algorithms()
    chosen = known if name is None else [_named(known, name)]
    if as_json:
        _print_json(chosen if name is None else chosen[0])
    elif name is None:
        terminal.print_table(reference.algorithm_table(known))
    else:
        print(reference.algorithm_text(chosen[0]))


@app.command()
def schedulers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show everything about this one.", show_default=False)
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Simulate `scenarios/schedulers` and write the page that compares them.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where --compare writes the page and its numbers.")
    ] = Path("docs/schedulers"),
    quick: Annotated[
        bool, typer.Option("--quick", help="With --compare: simulate less, a check, not the published page.")
    ] = False,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """List the packet schedulers of the simulator.

    With --compare, hold them against what they are for; exit code 1 if a statement does not hold.
    """
    from mptcplab import api, reference
    from mptcplab.errors import MptcplabError, with_hint

    if compare and name is not None:
        raise MptcplabError(with_hint(f"--compare takes no name: {name!r}", "it compares all schedulers"))
    if compare:
        from mptcplab.studies.fidelity import SCHEDULERS, write_page

        measured = write_page(out, SCHEDULERS, quick=quick, jobs=jobs, announce=terminal.step)
        _verdicts(measured, out / SCHEDULERS.page, as_json=as_json)
        return
    known = api.schedulers()
    chosen = known if name is None else [_named(known, name, "scheduler")]
    if as_json:
        _print_json(chosen if name is None else chosen[0])
    elif name is None:
        terminal.print_table(reference.scheduler_table(known))
    else:
        print(reference.scheduler_text(chosen[0]))


@app.command()
def vectors(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of test vectors (JSON).", show_default=False)],
    as_json: Json = False,
) -> None:
    """Run test vectors against the algorithms of this build.

    Prints passed, failed and the worst error per algorithm; exit code 1 if a vector fails.
    """
    from mptcplab import api, reference

    found = api.vectors(file)
    if as_json:
        _print_json(found)
    else:
        terminal.print_table(reference.vector_table(found))
    if reference.vectors_failed(found):
        raise typer.Exit(FAILED)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from mptcplab import _core

    _print_json(json.loads(_core.schema_json()))


@app.command()
def walk(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the files go.")] = Path("walk"),
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the fading.")] = 1,
    reps: Annotated[int, typer.Option("--reps", metavar="N", help="Repetitions, each with fading of its own.")] = 1,
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
    as_json: Json = False,
) -> None:
    """Write a walk away from a Wi-Fi access point and back as files of link changes.

    Rate and loss of the Wi-Fi and of a cellular network every 100 ms, `wifi-REP.csv` and `cellular-REP.csv`, for
    `schedule_file` of a scenario's links. The coverage is assumed, with 6 s without Wi-Fi and 1 s without cellular
    network; the fading on it is random. The same options give the same bytes.
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
    written = mobility.write(out, chosen)
    if as_json:
        _print_json({"written": [str(path) for path in written]})
    else:
        for path in written:
            print(f"wrote: {path}")


@app.command(name="docs")
def docs_command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the pages go.")] = Path("docs/reference"),
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a page is not up to date.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Generate the reference pages from the sources."""
    import typer.main

    from mptcplab import reference

    commands = typer.main.get_command(app)
    stale = reference.stale_pages(out, commands) if check_only else reference.write_pages(out, commands)
    if as_json:
        _print_json({"stale" if check_only else "written": [str(path) for path in stale]})
    else:
        for path in stale:
            print(f"{'not up to date' if check_only else 'wrote'}: {path}")
    if check_only and stale:
        raise typer.Exit(FAILED)


@app.command()
def fidelity(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the page, its figures and its numbers go.")
    ] = Path("docs/fidelity"),
    quick: Annotated[bool, typer.Option("--quick", help="Simulate less: a check, not the published page.")] = False,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """Hold the simulator against theory, and write the page.

    Simulates `scenarios/fidelity`; exit code 1 if a statement does not hold.
    """
    from mptcplab.studies.fidelity import FIDELITY, write_page

    measured = write_page(out, quick=quick, jobs=jobs, announce=terminal.step)
    _verdicts(measured, out / FIDELITY.page, as_json=as_json)


@app.command()
def goals(
    cc: Annotated[
        str, typer.Argument(metavar="CC", help="An algorithm, as --cc of `run` takes it.", show_default=False)
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer networks, for a shorter time: a first look.")] = False,
    seed: Seed = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="NAME", help="How ACKs are sent and counted.", show_default=False),
    ] = None,
    jobs: Jobs = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where the page and its numbers go. Default: results/goals-<CC>, with a number behind it if that "
            "exists.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a former page in --out.")] = False,
    as_json: Json = False,
) -> None:
    """Hold an algorithm against the three design goals of RFC 6356.

    Simulates two subflows beside Reno and CUBIC over shared and separate bottlenecks, with different ratios of RTTs,
    losses and buffers, and one TCP in their place. Writes a heat map for each goal, and the worst network of each as a
    scenario file. It measures: exit code 0 whatever the verdicts are.
    """
    from mptcplab import api
    from mptcplab.studies.goals.page import as_data, lines

    with terminal.progress() as progress:
        study = api.goals(cc, out, quick=quick, seed=seed, profile=profile, jobs=jobs, force=force, progress=progress)
    if as_json:
        _print_json(as_data(study))
        return
    for line in lines(study):
        print(line)
    terminal.note(f"page: {study.page}")


@app.command()
def agree(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="SCENARIO", help="Scenario file (TOML); none with --all.", show_default=False),
    ] = None,
    engines: Annotated[
        str | None,
        typer.Option(
            "--engines",
            metavar="NAMES",
            help="sim,kernel or sim,fluid or sim,kernel,fluid; the first is the reference. Default: sim,kernel where "
            "the kernel engine can run here, else sim,fluid.",
            show_default=False,
        ),
    ] = None,
    cc: Cc = None,
    reps: Reps = None,
    seed: Seed = None,
    profile: ProfileOption = None,
    duration: Duration = None,
    settings: Set = None,
    sim_reps: SimReps = None,
    jobs: Jobs = 0,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Short versions of the scenarios of all papers on sim,kernel, and the page of them. What was ended "
            "goes on where it was.",
        ),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="With --all: shorter still, not the published page.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Output directory. Default: results/<scenario>, with a number behind it if that exists; with --all "
            "docs/agreement.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a former result in --out.")] = False,
    as_json: Json = False,
) -> None:
    """Run a scenario on several engines, and say how near they come to the first and what may be why not.

    Goodput of a flow may differ by 15 % and by 5 % at the median (not asked of the fluid), Jain's index by 0.03. Exit
    code 1 if something is outside, or if a run does not count.
    """
    from mptcplab import api, output
    from mptcplab.studies.agreement import text

    chosen = {"--engines": engines, "--cc": cc, "--reps": reps, "--seed": seed, "--profile": profile}
    chosen |= {
        "--duration": duration,
        "--set": settings,
        "--sim-reps": sim_reps,
        "--force": force or None,
        "SCENARIO": scenario,
    }
    _agree_alone(everything, quick, [name for name, value in chosen.items() if value is not None])
    if everything:
        _agree_on_all(out or Path("docs/agreement"), quick=quick, jobs=jobs, as_json=as_json)
        return
    assert scenario is not None
    directory = out or output.fresh_directory(scenario)
    with terminal.progress() as progress:
        found = api.agree(
            scenario,
            engines,
            _split(cc),
            reps,
            seed,
            jobs,
            directory,
            profile=_split(profile),
            duration=duration,
            settings=_pairs(settings),
            sim_reps=sim_reps,
            force=force,
            progress=progress,
        )
    with terminal.working("writing the report"):
        page = found.results.report(directory / "report.html")
        text.write(found, directory / "agreement.json")
    if as_json:
        _print_json(found.as_dict())
    else:
        for table in text.tables(found):
            terminal.print_table(table)
            print()
        for line in text.lines(found):
            print(line)
    for remark in (found.why, *found.results.remarks):
        if remark is not None:
            terminal.note(f"note: {remark}")
    for problem in found.results.excluded_runs:
        terminal.warning(problem.text)
    terminal.note(f"trace:  {directory}\nreport: {page}")
    if found.verdict != "holds" or found.results.excluded_runs:
        raise typer.Exit(FAILED)


def _agree_alone(everything: bool, quick: bool, others: list[str]) -> None:
    """--all decides by itself what is run; without it there is one scenario."""
    from mptcplab.errors import MptcplabError, with_hint

    if everything and others:
        raise MptcplabError(
            with_hint(f"--all chooses what it runs: {others[0]}", "give --quick, --jobs, --out or --json beside it")
        )
    if not everything and "SCENARIO" not in others:
        raise MptcplabError(with_hint("no scenario", "mptcplab agree FILE, or mptcplab agree --all"))
    if quick and not everything:
        raise MptcplabError(with_hint("--quick is for --all", "--duration and --reps make one scenario shorter"))


def _agree_on_all(out: Path, *, quick: bool, jobs: int, as_json: bool) -> None:
    """Measure the matrix and write its page; exit code 1 if something is outside its bounds."""
    from mptcplab.studies.agreement import matrix, page
    from mptcplab.study.store import Store

    page.prepare(out)
    checkpoint = Store(out / ("unfinished-quick" if quick else "unfinished"))
    found = matrix.measure(quick=quick, jobs=jobs, announce=terminal.step, checkpoint=checkpoint)
    written = page.write(found, out)
    checkpoint.clear()
    if as_json:
        _print_json({"written": [str(path) for path in written], "verdict": found.verdict})
    else:
        for line in found.lines():
            print(line)
        terminal.note(f"page: {written[0]}")
    if found.verdict != "holds":
        raise typer.Exit(FAILED)


def _verdicts(measured: list[Measured], page: Path, *, as_json: bool) -> None:
    """Print the verdicts and the path of the page; exit code 1 if a statement fails."""
    if as_json:
        _print_json({"page": str(page), "verdicts": {one.statement.name: one.finding.verdict for one in measured}})
    else:
        for one in measured:
            print(f"{one.finding.verdict}: {one.statement.title}")
        terminal.note(f"page: {page}")
    if any(one.finding.verdict == "fails" for one in measured):
        raise typer.Exit(FAILED)


@app.command()
def doctor(
    pid: Annotated[
        int | None,
        typer.Option("--pid", min=1, metavar="N", help="Also: all MPTCP connections of this process."),
    ] = None,
    connection: Annotated[
        str | None,
        typer.Option("--connection", metavar="SRC:PORT-DST:PORT", help="Also: the connection with these addresses."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help='Rate that the buffers should carry, such as "100 Mbit/s".'),
    ] = None,
    rtt: Annotated[
        str | None, typer.Option("--rtt", metavar="TIME", help='Round-trip time to carry it at, such as "50 ms".')
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what this machine can do, what stands in the way, and what mends it.

    For a live connection also its subflows, what each really runs, and why an expected one is missing. Exit code 1 if
    something is missing that the kernel engine needs.
    """
    from mptcplab import api
    from mptcplab.engines import kernel

    kernel.become("doctor", *api.doctor_options(pid, connection, rate, rtt), *_json(as_json))


cc_app = typer.Typer(
    name="cc",
    help="Load, list and unload algorithms in this machine's kernel, for any application.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.add_typer(cc_app)

CcParams = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="[NAME.]KEY=VALUE",
        help="A parameter, such as weight=fair; with its algorithm's name where several are loaded. Repeatable.",
        show_default=False,
    ),
]
CcProfile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="How ACKs are counted, as in a scenario: by packets (rfc, linux-acked), linux-legacy: coupled algorithms "
        "by ACKs, linux-pre4: all by ACKs (linux-acked).",
        show_default=False,
    ),
]
CcConnections = Annotated[
    int | None,
    typer.Option("--connections", min=1, metavar="N", help="Connections coupled at a time (4096).", show_default=False),
]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Algorithms, as `mptcplab algorithms` lists them.")]


@cc_app.command(name="load")
def cc_load(
    names: Names,
    params: CcParams = None,
    profile: CcProfile = None,
    pin: Annotated[
        bool, typer.Option("--pin", help="Return at once, and keep them until `cc unload` or the next boot.")
    ] = False,
    connections: CcConnections = None,
    as_json: Json = False,
) -> None:
    """Load algorithms into the kernel as lab_<name>; needs root.

    Without --pin the command stays, and Ctrl-C takes them away again.
    """
    from mptcplab.engines import kernel

    options = [*_setting(params, profile, connections), *(["--pin"] if pin else [])]
    kernel.become("cc", "load", *names, *options, *_json(as_json))


@cc_app.command(name="list")
def cc_list(as_json: Json = False) -> None:
    """List the algorithms that are loaded: by whom, how, and how many sockets use each."""
    from mptcplab.engines import kernel

    kernel.become("cc", "list", *_json(as_json))


@cc_app.command(name="unload")
def cc_unload(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Which ones.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are ours.")] = False,
    as_json: Json = False,
) -> None:
    """Take algorithms out of the kernel; needs root. Sockets that use one keep it until they close."""
    from mptcplab.engines import kernel

    kernel.become("cc", "unload", *(names or ()), *(["--all"] if everything else []), *_json(as_json))


@cc_app.command(name="persist")
def cc_persist(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Which ones.", show_default=False)
    ] = None,
    params: CcParams = None,
    profile: CcProfile = None,
    connections: CcConnections = None,
    show: Annotated[bool, typer.Option("--print", help="Print the unit, and change nothing.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the unit; what is loaded stays.")] = False,
    as_json: Json = False,
) -> None:
    """Load algorithms at every boot, by the systemd unit mptcplab-cc.service; needs root."""
    from mptcplab.engines import kernel

    options = [*(["--print"] if show else []), *(["--remove"] if remove else [])]
    options += _setting(params, profile, connections)
    kernel.become("cc", "persist", *(names or ()), *options, *_json(as_json))


def _setting(params: list[str] | None, profile: str | None, connections: int | None) -> list[str]:
    """How algorithms are loaded, as options of the program."""
    options = [word for param in params or () for word in ("--param", param)]
    options += [] if profile is None else ["--profile", profile]
    return options + ([] if connections is None else ["--connections", str(connections)])


def _json(asked: bool) -> list[str]:
    return ["--json"] if asked else []


def _split(values: list[str] | None) -> list[str] | None:
    """`a,b` and repeated options mean the same."""
    if values is None:
        return None
    found = [part.strip() for value in values for part in value.split(",") if part.strip()]
    if not found:
        from mptcplab.errors import MptcplabError, with_hint

        raise MptcplabError(with_hint(f"no name in this list: {','.join(values)!r}", "such as lia,olia"))
    return found


def _pairs(settings: list[str] | None) -> dict[str, str] | None:
    if settings is None:
        return None
    pairs = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            from mptcplab.errors import MptcplabError, with_hint

            raise MptcplabError(
                with_hint(f"--set needs KEY=VALUE: {setting!r}", "such as --set 'links.B1.queue=\"1 BDP\"'")
            )
        pairs[key.strip()] = value.strip()
    return pairs


def _named(known: list[dict[str, Any]], name: str, what: str = "algorithm") -> dict[str, Any]:
    for entry in known:
        if entry["name"] == name:
            return entry
    import difflib

    from mptcplab.errors import MptcplabError, with_hint

    close = difflib.get_close_matches(name, [entry["name"] for entry in known], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"`mptcplab {what}s` lists them"
    raise MptcplabError(with_hint(f"no such {what}: {name!r}", hint))


def _print_json(data: object) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def main() -> None:
    """Entry point: run the command and turn whatever happens into a message and an exit code."""
    code = _guarded()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_left()
    sys.exit(code)


def _guarded() -> int:
    from mptcplab.errors import MptcplabError

    try:
        # Without standalone mode the code of an explicit exit, or of an interrupt, is returned.
        code = app(standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Out of standalone mode the parser exits by itself for one reason only: a broken pipe.
        return _reader_left()
    except MptcplabError as error:
        return _failed(str(error))
    except Exception as error:
        # Usage errors of the command line parser say what is wrong; anything else is a bug.
        describe = getattr(error, "format_message", None)
        if describe is not None:
            return _failed(f"{describe()}\n\nhint: `mptcplab --help`, or --help after a command, shows what it takes")
        return _failed(
            f"internal error: {type(error).__name__}: {error}\n\n"
            "hint: this is a bug of mptcplab; run again with MPTCPLAB_DEBUG=1 and report what it prints"
        )
    if code == INTERRUPTED:
        terminal.error("interrupted")
    return code


def _failed(message: str) -> int:
    if os.environ.get("MPTCPLAB_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    terminal.error(message)
    return ERROR


def _reader_left() -> int:
    """The reader of our output has seen enough; that is no error, and Python must not complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
