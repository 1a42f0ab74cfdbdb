"""Commands that run studies: `reproduce`, `fidelity`, `goals`, `agree`, `kernels`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mptcplab import terminal
from mptcplab.cli import options
from mptcplab.cli.exit_codes import FAILED
from mptcplab.cli.printing import print_json

if TYPE_CHECKING:
    from mptcplab.studies.agreement.judge import Agreement
    from mptcplab.studies.fidelity.statement import Measured
    from mptcplab.studies.papers.reproduce import Reproduction


def _leave_cores_to_runs() -> None:
    """Give Polars a quarter of the cores: the runs of a study keep all of them busy.

    Polars reads this when it is imported, and mptcplab's modules import it.
    """
    os.environ.setdefault("POLARS_MAX_THREADS", str(max(1, (os.cpu_count() or 1) // 4)))


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            metavar="PAPER",
            help="A paper such as kim2021, or all: of those in papers/ below this directory if there is such a folder, "
            "or else of those that come with mptcplab.",
        ),
    ],
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAMES",
            help="Engine to run it on: sim, vm or vm:SUITE, kernel (root; real time) or fluid. Several, such as "
            "sim,vm, give a page with their verdicts side by side.",
        ),
    ] = "sim",
    experiment: Annotated[
        str | None, typer.Option("--experiment", metavar="ID", help="Only this experiment, such as ADW-1.")
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option("--claim", metavar="ID", help="Only this claim, such as ADW-01; prints the evidence, no report."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="A first answer: provisional verdicts from three repetitions of at most 60 s. No effect on the fluid "
            "model.",
        ),
    ] = False,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help="Also judge every claim under other choices, one at a time: queues, noise, how ACKs are counted, "
            "dialect, scheduler, delays, readings. With --quick one choice of each. Simulator only.",
        ),
    ] = False,
    jobs: Annotated[
        int,
        typer.Option("--jobs", parser=options.at_least(0), metavar="N", help="Runs at a time; 0 is one per core."),
    ] = 0,
    on: options.On = None,
    store: options.Store = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=options.path,
            metavar="DIR",
            help="Directory of results and report. Default: results/reproduce, with engine and quick appended.",
        ),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", parser=options.path, metavar="DIR", help="Also write a shorter report in Markdown."),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept", help="Take the verdicts over as expected ones: rewrite `expect` in papers/*/claims.toml."
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Run a paper's experiments, judge its claims, write a report.

    Results that are already in --out are not computed again. In a full reproduction in the simulator, the exit code is
    1 if a verdict differs from the expected one, or if the numbers do not support a reason. With --quick, whose runs
    are few and short, verdicts are provisional, and the exit code is 1 if one is the opposite of the expected one. On
    other engines, this is only a warning.
    """
    _leave_cores_to_runs()
    from mptcplab import api
    from mptcplab.capabilities import directory_of
    from mptcplab.studies.papers import accept as expected
    from mptcplab.studies.papers.report.verdicts import unexpected
    from mptcplab.study.cell import work_unit
    from mptcplab.sweep import engine_names

    if accept:
        expected.check(engine, quick=quick)
    names = engine_names(engine)
    # The fluid's results are the same either way.
    size = ["quick"] if quick and names != ["fluid"] else []
    place = out or Path("results") / "-".join(
        ["reproduce", *(map(directory_of, names) if names != ["sim"] else []), *size]
    )
    units = {work_unit(name) for name in names}
    unit = units.pop() if len(units) == 1 else "units of work/s (estimated)"
    found = api.reproduce(
        paper,
        engine,
        experiment,
        claim=claim,
        quick=quick,
        sensitivity=sensitivity,
        out=place,
        docs=docs,
        jobs=jobs,
        client=on,
        store=store,
        announce=lambda what: terminal.step(what, unit=unit),
    )
    if len(names) > 1:
        _print_side_by_side(found, in_full=claim is not None, as_json=as_json)
    else:
        _print_verdicts(found, in_full=claim is not None, as_json=as_json)
    if not as_json and claim is None:
        terminal.note(f"report: {place / 'index.html'}")
    if accept:
        for line in expected.accept(found):
            print(line)
        return
    for line in unexpected(found):
        terminal.warning(line)
    if any(one.failed for one in found):
        raise typer.Exit(FAILED)


def _print_verdicts(found: list[Reproduction], *, in_full: bool, as_json: bool) -> None:
    from mptcplab.studies.papers.report.verdicts import as_data, evidence_lines, headlines, verdict_table

    if as_json:
        print_json(as_data(found))
        return
    if not in_full:
        terminal.print_table(verdict_table(found))
    for line in evidence_lines(found) if in_full else headlines(found):
        print(line)


def _print_side_by_side(found: list[Reproduction], *, in_full: bool, as_json: bool) -> None:
    from mptcplab.studies.papers.report import side_by_side as pages
    from mptcplab.studies.papers.report.verdicts import evidence_lines
    from mptcplab.studies.papers.side_by_side import side_by_side

    compared = side_by_side(found)
    if as_json:
        print_json(pages.by_engine(compared))
        return
    if in_full:
        for one in found:
            print(f"engine {one.planner.engine}")
            for line in evidence_lines([one]):
                print(line)
        return
    terminal.print_table(pages.table(compared))
    for line in pages.lines(compared):
        print(line)


def fidelity(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=options.path,
            metavar="DIR",
            help="Directory of the page, its figures and its numbers; without it docs/fidelity or docs/out-of-tree.",
        ),
    ] = None,
    out_of_tree: Annotated[
        bool,
        typer.Option("--out-of-tree", help="Compare with goodputs of the out-of-tree kernel, on scenarios of papers."),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Simulate less; this does not give the published page.")
    ] = False,
    jobs: options.Jobs = 0,
    as_json: options.Json = False,
) -> None:
    """Compare the simulator with theory and write the page.

    With --out-of-tree, the simulator is compared with the out-of-tree kernel instead. Simulates the scenarios in
    `scenarios/fidelity`, or scenarios of the papers. Exit code 1 if a statement fails.
    """
    _leave_cores_to_runs()
    from mptcplab import api

    measured = api.fidelity(out, out_of_tree=out_of_tree, quick=quick, jobs=jobs, announce=terminal.step)
    print_verdicts(*measured, as_json=as_json)


def goals(
    cc: Annotated[str, typer.Argument(metavar="CC", help="An algorithm, as --cc of `run` takes it.")],
    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="NAME", help="Engine to run it on: sim, vm or vm:SUITE, or kernel (root; real time)."
        ),
    ] = "sim",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer networks, for a shorter time.")] = False,
    seed: options.Seed = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="How ACKs are sent and counted.")
    ] = None,
    jobs: options.Jobs = 0,
    on: options.On = None,
    store: options.Store = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=options.path,
            metavar="DIR",
            help="Directory of the page and its numbers. Default: results/goals-<CC>, with the engine appended unless "
            "it is sim, and a number if that exists.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier page in --out.")] = False,
    as_json: options.Json = False,
) -> None:
    """Check an algorithm against the three design goals of RFC 6356.

    Runs two subflows beside Reno and CUBIC over shared and separate bottlenecks, with different ratios of RTTs,
    losses and buffers, and one TCP connection in their place. Writes a heat map for each goal, and the network in which
    the goal is missed most as a scenario file. Until then, measurements are kept in DIR.partial, and after an
    interruption the same command continues from them. Exit code 0 whatever the verdicts are.
    """
    _leave_cores_to_runs()
    from mptcplab import api
    from mptcplab.studies.goals.page import as_data, lines
    from mptcplab.study.cell import work_unit

    with terminal.progress(unit=work_unit("sim")) as progress:
        study = api.goals(
            cc,
            out,
            engine=engine,
            quick=quick,
            seed=seed,
            profile=profile,
            jobs=jobs,
            client=on,
            store=store,
            force=force,
            progress=progress,
        )
    if as_json:
        print_json(as_data(study))
        return
    for line in lines(study):
        print(line)
    terminal.note(f"page: {study.page}")


def agree(
    scenario: Annotated[
        Path | None,
        typer.Argument(parser=options.path, metavar="SCENARIO", help=f"{options.SCENARIO} None with --all."),
    ] = None,
    engines: Annotated[
        str | None,
        typer.Option(
            "--engines",
            metavar="NAMES",
            help="Such as sim,kernel or sim,vm:bookworm or sim,fluid, in any order. Default: sim,kernel where the "
            "kernel engine can run here, else sim,fluid.",
        ),
    ] = None,
    cc: options.Cc = None,
    reps: options.Reps = None,
    seed: options.Seed = None,
    profile: options.Profiles = None,
    duration: options.Duration = None,
    settings: options.Settings = None,
    sweep: options.Sweep = None,
    sim_reps: options.SimReps = None,
    jobs: options.Jobs = 0,
    on: options.On = None,
    store: options.Store = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Run short versions of the scenarios of all papers, on sim,kernel or two other engines, and write the "
            "page about them. "
            "An interrupted command continues where it stopped. Runs of emulated machines stay in OUT/machines; those "
            "that would now be the same are not made again.",
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="SCENARIO",
            help="With --all: run only this scenario of a paper, such as papers/kim2021/shared-60.toml; the page keeps "
            "what it had of the others. Repeatable.",
        ),
    ] = None,
    simulator_only: Annotated[
        bool,
        typer.Option(
            "--simulator-only",
            help="With --all: run only the simulator; the page keeps the numbers of an emulated machine, which would "
            "be the same again.",
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="With --all: still shorter; this does not give the published page.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=options.path,
            metavar="DIR",
            help="Output directory. Default: results/<scenario>, with a number appended if that exists; with --all "
            "docs/agreement.",
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Run a scenario on several engines and compare the results.

    The reference is the simulator or, without it, the first of kernel, vm and fluid. Possible causes of differences are
    named. A flow's goodput may differ by 15 %, the median over all flows by 5 % (no bound for the fluid model), and
    Jain's index by 0.03. Exit code 1 if something is outside these bounds, or if a run is invalid or ended early.
    """
    from mptcplab import api, output

    given = {
        "--cc": cc,
        "--reps": reps,
        "--seed": seed,
        "--profile": profile,
        "--duration": duration,
        "--set": settings,
        "--sweep": sweep,
        "--sim-reps": sim_reps,
        "--force": force or None,
        "SCENARIO": scenario,
    }
    if simulator_only and not everything:
        given["--simulator-only"] = True
    _check_agree_options(everything, quick, only, [name for name, value in given.items() if value is not None])
    if everything:
        place = out or Path("docs/agreement")
        _agree_on_all(
            place,
            engines,
            only or [],
            simulator_only=simulator_only,
            quick=quick,
            jobs=jobs,
            on=on,
            store=store,
            as_json=as_json,
        )
        return
    assert scenario is not None
    directory = out or output.fresh_directory(scenario)
    with terminal.progress() as progress:
        found = api.agree(
            scenario,
            engines,
            jobs=jobs,
            client=on,
            store=store,
            out=directory,
            sim_reps=sim_reps,
            force=force,
            progress=progress,
            **options.overrides(cc, reps, seed, profile, duration, settings, sweep),
        )
    _show_agreement(found, directory, as_json=as_json)


def kernels(
    scenario: options.Scenario,
    kernels: Annotated[
        str,
        typer.Option(
            "--kernels",
            metavar="NAMES",
            help="Two or more of Debian's suites, such as bookworm,trixie-backports, or paths of kernel images; the "
            "first is the reference.",
        ),
    ],
    cc: options.Cc = None,
    reps: options.Reps = None,
    seed: options.Seed = None,
    profile: options.Profiles = None,
    duration: options.Duration = None,
    settings: options.Settings = None,
    sweep: options.Sweep = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", parser=options.at_least(0), metavar="N", help="Machines at a time; 0 is one per core."),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=options.path,
            metavar="DIR",
            help="Output directory. Default: results/<scenario>, with a number appended if that exists.",
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Run a scenario on several kernels and compare the results.

    Each kernel runs in an emulated machine, in virtual time, with the same scenario and the same seeds. Differences
    from the first kernel are judged as `agree` judges those of engines. Exit code 1 if something is outside the bounds,
    or if a run is invalid or ended early.
    """
    from mptcplab import api, output

    directory = out or output.fresh_directory(scenario)
    with terminal.progress() as progress:
        found = api.kernels(
            scenario,
            kernels,
            jobs=jobs,
            out=directory,
            force=force,
            progress=progress,
            **options.overrides(cc, reps, seed, profile, duration, settings, sweep),
        )
    _show_agreement(found, directory, as_json=as_json)


def _show_agreement(found: Agreement, directory: Path, *, as_json: bool) -> None:
    """Write the report and print how engines agree; exit code 1 if they do not, or if a run does not count."""
    from mptcplab.studies.agreement import text
    from mptcplab.trace import machines

    with terminal.working("writing the report"):
        page = text.report(found, directory / "report.html")
        text.write(found, directory / text.FILE)
    if as_json:
        print_json(found.as_dict())
    else:
        for table in text.tables(found):
            terminal.print_table(table)
            print()
        for line in text.lines(found):
            print(line)
    booted = [f"{engine} is {kernel}" for engine, kernel in machines.kernels(found.results.runs).items()]
    for remark in (found.why, *booted, *found.results.remarks):
        if remark is not None:
            terminal.note(f"note: {remark}")
    for run in found.results.excluded_runs:
        terminal.warning(run.text)
    terminal.note(f"trace:  {directory}\nreport: {page}")
    if found.verdict != "holds" or found.results.excluded_runs:
        raise typer.Exit(FAILED)


def _check_agree_options(everything: bool, quick: bool, only: list[str] | None, others: list[str]) -> None:
    """--all excludes options that say what to run; without it there must be a scenario."""
    from mptcplab.errors import MptcplabError, with_hint

    if everything and others:
        raise MptcplabError(
            with_hint(
                f"--all chooses what it runs: {others[0]}",
                "give --engines, --only, --quick, --jobs, --on, --store, --out or --json beside it",
            )
        )
    if not everything and "SCENARIO" not in others:
        raise MptcplabError(with_hint("no scenario", "mptcplab agree FILE, or mptcplab agree --all"))
    if quick and not everything:
        raise MptcplabError(with_hint("--quick is for --all", "--duration and --reps make one scenario shorter"))
    if only and not everything:
        raise MptcplabError(with_hint("--only is for --all", f"mptcplab agree {only[0]}"))
    if "--simulator-only" in others:
        raise MptcplabError(with_hint("--simulator-only is for --all", "mptcplab run FILE runs only the simulator"))


def _agree_on_all(
    out: Path,
    engines: str | None,
    only: list[str],
    *,
    simulator_only: bool,
    quick: bool,
    jobs: int,
    on: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Compare engines on the scenarios of all papers and write the page; exit code 1 where a bound is exceeded."""
    from mptcplab import api

    found, written = api.agree_all(
        out,
        engines=engines,
        only=only,
        simulator_only=simulator_only,
        quick=quick,
        jobs=jobs,
        client=on,
        store=store,
        announce=terminal.step,
    )
    if as_json:
        print_json({"written": [str(path) for path in written], "verdict": found.verdict})
    else:
        for line in found.lines():
            print(line)
        terminal.note(f"page: {written[0]}")
    if found.verdict != "holds":
        raise typer.Exit(FAILED)


def print_verdicts(measured: list[Measured], page: Path, *, as_json: bool) -> None:
    """Print the verdicts and the path of the page; exit code 1 if a statement fails."""
    if as_json:
        print_json({"page": str(page), "verdicts": {one.statement.name: one.finding.verdict for one in measured}})
    else:
        for one in measured:
            print(f"{one.finding.verdict}: {one.statement.title}")
        terminal.note(f"page: {page}")
    if any(one.finding.verdict == "fails" for one in measured):
        raise typer.Exit(FAILED)
