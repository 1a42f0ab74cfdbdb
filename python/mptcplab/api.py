"""The public functions: every command of the command line calls one of them and prints what it returns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mptcplab import _core, bundle, kept, mobility
from mptcplab.algorithm import Algorithm, Algorithms, files_of, named
from mptcplab.arguments import named_in_errors, texts, whole_number
from mptcplab.arguments import text as text_of
from mptcplab.builder import Scenario, ScenarioArg, source
from mptcplab.capabilities import FLUID, SIM, directory_of, engine_of, is_machine, machine_with
from mptcplab.cluster.connect import ClientArg, connected
from mptcplab.comparing import compare
from mptcplab.declarations import declared
from mptcplab.engines import kernel, sim
from mptcplab.engines.vm import host
from mptcplab.engines.vm import kernels as machine_kernels
from mptcplab.errors import MptcplabError, ScenarioError, with_hint
from mptcplab.listing import ls
from mptcplab.merging import merge
from mptcplab.paths import path_of
from mptcplab.results import Results
from mptcplab.scenario import Overrides, Values, as_names
from mptcplab.scenario import check as check_file
from mptcplab.settings import Setting, overriding
from mptcplab.studies.agreement.compare import agree
from mptcplab.sweep import PathArg, Progress, check_jobs, engine_names, parse_engines, run
from mptcplab.terminal import note, shown
from mptcplab.trace import schedules
from mptcplab.trace.topology import Topology

if TYPE_CHECKING:
    from mptcplab.studies.agreement.judge import Agreement
    from mptcplab.studies.agreement.matrix import Matrix
    from mptcplab.studies.fidelity.statement import Measured
    from mptcplab.studies.fidelity.statement import Study as FidelityStudy
    from mptcplab.studies.goals import Grid, Study
    from mptcplab.studies.hunt import Finding
    from mptcplab.studies.papers.reproduce import Reproduction
    from mptcplab.study.progress import Announce

__all__ = [
    "Overrides",
    "agree",
    "agree_all",
    "algorithms",
    "cc_list",
    "cc_load",
    "cc_persist",
    "cc_unload",
    "check",
    "compare",
    "compare_schedulers",
    "doctor",
    "doctor_options",
    "fidelity",
    "goals",
    "hunt",
    "kernels",
    "load",
    "ls",
    "merge",
    "new",
    "reproduce",
    "run",
    "scenarios",
    "schedulers",
    "schema",
    "vectors",
    "walk",
]


def check(
    scenario: ScenarioArg,
    overrides: Overrides | None = None,
    *,
    cc: Algorithms | None = None,
    reps: int | None = None,
    seed: int | None = None,
    profile: str | Iterable[str] | None = None,
    duration: str | float | timedelta | None = None,
    settings: Mapping[str, Setting] | None = None,
    sweep: Mapping[str, Values] | None = None,
    engine: str | Iterable[str] = SIM.name,
) -> dict[str, Any]:
    """Validate a scenario; return `text` (a description), `resolved` (every unit explicit) and `notes`.

    In `resolved`, defaults are filled in; `notes` are lines about what is allowed but probably not meant.
    Settings that `engine` refuses are errors as well: "sim", "fluid", or both. The other engines refuse theirs when
    they start, and are an error here. Everything else is as in `run`; `overrides` has all of it in one object.
    """
    changes = Overrides.of(cc, reps, seed, profile, duration, settings, sweep)
    if overrides is not None:
        if changes != Overrides():
            hint = "give one of them: the overrides, or cc, reps, settings and so on"
            raise MptcplabError(with_hint("overrides, and arguments beside them", hint))
        changes = overrides
    names = engine_names(engine)
    for name in names:
        if engine_of(name).has_sockets:
            hint = "check it for sim, fluid, or both; a kernel refuses what it cannot do when `run` starts it"
            raise MptcplabError(with_hint(f"the limits of the engine {name} cannot be checked without a run", hint))
    # Of overrides, it is not known yet whether they are any.
    set_there = getattr(overrides, "settings", settings)
    with named_in_errors(set_there, sweep), source(scenario) as path:
        found = check_file(path, changes)
        if SIM.name in names:
            sim.reject_unsupported(path, changes.to_json())
        if FLUID.name in names:
            from mptcplab.engines.fluid.engine import reject_unsupported

            reject_unsupported(path, changes.to_json())
    scenarios = (Topology.from_json(json.dumps(one["scenario"])) for one in found["resolved"]["combinations"])
    return {**found, "notes": schedules.remarks(scenarios)}


def new(
    *,
    title: str = "A new scenario",
    rates: str | Iterable[str] = ("10 Mbit/s", "5 Mbit/s"),
    delays: str | Iterable[str] | None = None,
    losses: str | Iterable[str] = (),
    queue: str = "1 BDP",
    cc: Algorithms = ("lia", "olia"),
    tcp: int = 0,
    duration: str | float | timedelta = "60 s",
    warmup: str | float | timedelta = "10 s",
    reps: int = 5,
) -> Scenario:
    """A first scenario, as commented text: an MPTCP connection over a path for every rate, and TCP flows on the first.

    Without `delays` they are 10 ms, 20 ms, ... Where there are fewer delays or losses than rates, the last is repeated.

    >>> new(rates="10 Mbit/s, 5 Mbit/s", delays="5 ms").to_dict()["flows"]["mp"]
    {'paths': [['path1'], ['path2']]}
    """
    from mptcplab import templates

    listed = _parts(rates, "rates", "10 Mbit/s, 5 Mbit/s")
    text = templates.scenario(
        title=text_of("title", title, "Two paths, one lossy?"),
        rates=listed,
        delays=templates.default_delays(len(listed)) if delays is None else _parts(delays, "delays", "10 ms, 20 ms"),
        losses=_parts(losses, "losses", "0.1 %, 1 %"),
        queue=text_of("queue", queue, "1 BDP"),
        cc=named(cc)[0],
        tcp=whole_number("tcp", tcp, 0, 10_000),
        duration=overriding({"duration": duration})["duration"],
        warmup=overriding({"warmup": warmup})["warmup"],
        reps=whole_number("reps", reps, 1, 100_000),
    )
    try:
        return Scenario.from_toml(text, name=templates.name_of(title))
    except ScenarioError as error:
        raise ScenarioError(templates.of_arguments(str(error))) from None


def _parts(values: str | Iterable[str], name: str, such_as: str) -> list[str]:
    """The texts of an argument that is a list, or a text with commas."""
    listed = values.split(",") if isinstance(values, str) else texts(name, values, such_as)
    return [part.strip() for part in listed if part.strip()]


def walk(
    out: PathArg = Path("walk"),
    *,
    seed: int = 1,
    reps: int = 1,
    duration_s: str | float = "60",
    phase_s: str | float = "0",
    phase_step_s: str | float = "0",
    wifi_mbps: str | float = "11",
    cellular_mbps: str | float = "5.5",
) -> list[Path]:
    """Write the link changes of a walk out of Wi-Fi and back, for `schedule_file` of links; return the files.

    Numbers may be texts, which are exact. See `mptcplab walk --help`.
    """
    numbers = {
        "duration_s": duration_s,
        "phase_s": phase_s,
        "phase_step_s": phase_step_s,
        "wifi_mbps": wifi_mbps,
        "cellular_mbps": cellular_mbps,
    }
    exact = {name: mobility.number(name, str(value)) for name, value in numbers.items()}
    chosen = mobility.Walk(
        seed=whole_number("seed", seed, 0, 2**64 - 1), repetitions=whole_number("reps", reps, 1, 10_000), **exact
    )
    return mobility.write(path_of(out, "out"), chosen)


def reproduce(
    paper: str,
    engine: str = "sim",
    experiment: str | None = None,
    *,
    claim: str | None = None,
    quick: bool = False,
    sensitivity: bool = False,
    out: PathArg = Path("results") / "reproduce",
    docs: PathArg | None = None,
    jobs: int = 0,
    client: ClientArg | None = None,
    store: str | None = None,
    announce: Announce | None = None,
) -> list[Reproduction]:
    """Run the experiments of a paper ("all": of all) and judge its claims; write the report to `out`.

    The papers are those of `papers/` below the current directory, or of the package if that has none.
    `out`/store has every result under a digest of its inputs, so that an interrupted reproduction continues where it
    stopped, and only results whose inputs changed are computed again. `quick` gives a first answer: few and short
    repetitions, none added; it does not affect the fluid engine. `docs` is a directory for a shorter report in
    Markdown. With `sensitivity` every claim is judged again under one other choice at a time, such as another queue;
    the simulator only. With `claim` only that claim is run and judged, and no report is written. `announce` is called
    with the name of each step and returns a context that reports progress. The fluid uses processes for several jobs: a
    script needs `if __name__ == "__main__":` around the call, or `jobs=1`. `client` and `store` are as in `run`.

    Several engines, as in "sim,vm", run one after the other, each into a directory of its own below `out`; the page
    there has their verdicts side by side, and `docs` gets such a page per paper and nothing else. The reproductions of
    the first engine are returned first.
    """
    from mptcplab.studies.papers import catalog, report
    from mptcplab.studies.papers.asked import Asked
    from mptcplab.studies.papers.reproduce import reproduce as run_papers
    from mptcplab.study.progress import silent

    check_jobs(jobs)
    directory, place = path_of(out, "out"), None if docs is None else path_of(docs, "docs")
    engines = parse_engines(engine)
    library = catalog.load()
    chosen = library.choose(paper)
    asked = Asked(paper, experiment, claim, quick, sensitivity)
    asked.check(engine, docs=docs is not None)
    # Before anything is written.
    for one in chosen:
        if claim is not None:
            one.claim(claim)
        elif experiment is not None:
            one.experiment(experiment)
    if place is not None and len(engines) == 1:
        report.check_docs(place, is_reference=asked.is_reference(engine))

    say = announce or silent

    def on(engine: str, directory: Path, docs: Path | None) -> list[Reproduction]:
        with (
            kept.only_writer(directory),
            connected(client, store, engines, jobs=jobs, say=note) as cluster,
            report.Pages(directory, asked.command(engine), docs) as pages,
        ):
            found = run_papers(
                library,
                chosen,
                engine,
                directory,
                experiment=experiment,
                claim=claim,
                quick=quick,
                sensitivity=sensitivity,
                jobs=jobs,
                cluster=cluster,
                announce=(lambda what: say(f"{engine}, {what}")) if len(engines) > 1 else say,
                finished=pages.add if claim is None else lambda _: None,
            )
            if claim is None:
                if sensitivity:
                    report.write_sensitivity(found, directory, docs)
                pages.finish(found)
        return found

    if len(engines) == 1:
        return on(engines[0], directory, place)
    found = [one for name in engines for one in on(name, directory / directory_of(name), None)]
    if claim is None:
        report.write_side_by_side(found, directory, asked.command(",".join(engines)), place)
    return found


def kernels(
    scenario: ScenarioArg,
    kernels: str | Iterable[str],
    cc: Algorithms | None = None,
    reps: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    out: PathArg | None = None,
    *,
    profile: str | Iterable[str] | None = None,
    duration: str | float | timedelta | None = None,
    settings: Mapping[str, Setting] | None = None,
    sweep: Mapping[str, Values] | None = None,
    force: bool = False,
    progress: Progress | bool | None = None,
) -> Agreement:
    """Run a scenario with the same seeds on several kernels in virtual time, and compare the others with the first.

    `kernels` is "bookworm,trixie-backports" (suites of Debian, or paths of kernel images) or a list. Everything else is
    as in `run`, and differences are judged as in `agree`.
    """
    names = _parts(kernels, "kernels", "bookworm,trixie-backports")
    if len(set(names)) < 2:
        hint = "two or more, such as bookworm,trixie-backports"
        raise MptcplabError(with_hint(f"nothing to compare with: kernels {','.join(names)!r}", hint))
    return agree(
        scenario,
        [machine_with(name) for name in names],
        cc,
        reps,
        seed,
        jobs,
        out,
        profile=profile,
        duration=duration,
        settings=settings,
        sweep=sweep,
        force=force,
        progress=progress,
    )


def load(directory: PathArg) -> Results:
    """Open the results that an earlier call or command wrote to a directory, as `run` returns them."""
    return Results.open(directory)


def agree_all(
    out: PathArg = Path("docs") / "agreement",
    *,
    engines: str | Iterable[str] | None = None,
    only: str | Iterable[str] = (),
    simulator_only: bool = False,
    quick: bool = False,
    jobs: int = 0,
    client: ClientArg | None = None,
    store: str | None = None,
    announce: Announce | None = None,
) -> tuple[Matrix, list[Path]]:
    """Compare two engines on short versions of the scenarios of all papers; write the page and return its files.

    `engines` is "sim,kernel" (the default) or, such as "sim,vm:bookworm", one that needs no root and repeats exactly.
    `only` has scenarios, such as "papers/kim2021/shared-60.toml", to which the runs are limited; of the others the page
    keeps what it had, which must be of the same engines and as long. With `simulator_only`, only the simulator runs,
    and the page that is there keeps the numbers of the machine.

    Finished scenarios are stored below `out` until the page is written, so that an interrupted call continues where it
    stopped. Runs of emulated machines stay in `out`/machines, and only those that would now differ are made again.
    `quick` shortens the runs further. `jobs`, `client`, `store` and `announce` are as in `reproduce`.
    """
    from mptcplab.studies.agreement import matrix, page, renew
    from mptcplab.study.progress import silent
    from mptcplab.study.store import Store

    check_jobs(jobs)
    names = parse_engines(engines if engines is not None else matrix.ENGINES)
    if len(names) != 2:
        raise MptcplabError(with_hint(f"not two engines: {','.join(names)}", "such as sim,kernel or sim,vm"))
    directory = path_of(out, "out")
    pair, chosen, kind = (
        (names[0], names[1]),
        as_names(only, "only", "papers/kim2021/shared-60.toml"),
        "-quick" if quick else "",
    )
    matrix.require_known(chosen)
    page.prepare(directory)
    former = page.read(directory, matrix.command_of(pair, quick=quick)) if chosen or simulator_only else None
    if simulator_only:
        if former is None or not is_machine(pair[1]):
            hint = "run it without --simulator-only, with --engines sim,vm"
            raise MptcplabError(with_hint(f"no numbers of a machine in {directory}", hint))
        with kept.only_writer(directory):
            found = renew.measure(former, only=chosen, jobs=jobs, announce=announce or silent)
            return found, page.write(found, directory)
    # A few scenarios have a place of their own: what an interrupted call over all of them left must stay.
    checkpoint = Store(directory / f"unfinished{kind}{'-only' if chosen else ''}")
    with kept.only_writer(directory), connected(client, store, names, jobs=jobs, say=note) as cluster:
        found = matrix.measure(
            quick=quick,
            jobs=jobs,
            cluster=cluster,
            announce=announce or silent,
            engines=pair,
            checkpoint=checkpoint,
            machine_runs=directory / f"machines{kind}",
            only=chosen,
            former=former,
        )
        written = page.write(found, directory)
        checkpoint.clear()
    return found, written


def fidelity(
    out: PathArg | None = None,
    *,
    out_of_tree: bool = False,
    quick: bool = False,
    jobs: int = 0,
    announce: Announce | None = None,
) -> tuple[list[Measured], Path]:
    """Compare the simulator with theory on `scenarios/fidelity`; write the page and return its path.

    With `out_of_tree`, compare it with goodputs of the out-of-tree kernel on scenarios of the papers instead. `out` is
    the page's directory, by default docs/fidelity or docs/out-of-tree. `quick` simulates less. `jobs` and `announce`
    are as in `reproduce`.
    """
    from mptcplab.studies.fidelity import FIDELITY, OUT_OF_TREE

    study = OUT_OF_TREE if out_of_tree else FIDELITY
    directory = Path("docs") / study.name if out is None else out
    return _measured(study, directory, quick=quick, jobs=jobs, announce=announce)


def compare_schedulers(
    out: PathArg = Path("docs") / "schedulers", *, quick: bool = False, jobs: int = 0, announce: Announce | None = None
) -> tuple[list[Measured], Path]:
    """Check whether each scheduler serves its purpose, on `scenarios/schedulers`; see `fidelity`."""
    from mptcplab.studies.fidelity import SCHEDULERS

    return _measured(SCHEDULERS, out, quick=quick, jobs=jobs, announce=announce)


def _measured(
    study: FidelityStudy, out: PathArg, *, quick: bool, jobs: int, announce: Announce | None
) -> tuple[list[Measured], Path]:
    from mptcplab.studies.fidelity import write_page
    from mptcplab.study.progress import silent

    check_jobs(jobs)
    directory = path_of(out, "out")
    measured = write_page(directory, study, quick=quick, jobs=jobs, announce=announce or silent)
    return measured, directory / study.page


def goals(
    cc: str,
    out: PathArg | None = None,
    *,
    engine: str = "sim",
    quick: bool = False,
    grid: Grid | None = None,
    seed: int | None = None,
    profile: str | None = None,
    jobs: int = 0,
    client: ClientArg | None = None,
    store: str | None = None,
    force: bool = False,
    progress: Progress | bool | None = None,
) -> Study:
    """Check one algorithm against the three design goals of RFC 6356 on a grid of networks; write the page.

    `cc` is a name, or the path of a C file (not on a cluster). `engine` is one that has packets: sim, vm or kernel.
    `out` is the directory of the page, its figures and its numbers (default: results/goals-<cc>, with the engine
    appended unless it is the simulator, and a number if that exists); `force` replaces an earlier study there. Until
    the study is complete, what is measured is kept in `out`.partial, and the same call goes on with it. `quick`
    measures fewer networks, for a shorter time; `grid` sets the networks. `jobs`, `client`, `store` and `progress` are
    as in `run`.
    """
    from mptcplab.studies.goals import write_study

    check_jobs(jobs)
    if grid is not None and not hasattr(grid, "networks"):
        raise MptcplabError(with_hint(f"grid: not a grid: {grid!r}", "a mptcplab.studies.goals.Grid"))
    directory = None if out is None else path_of(out, "out")
    name = _one_algorithm(cc, client)
    Overrides.of(None, None, seed, profile, None, None)
    asked = _one_engine_with_packets(engine)
    with (
        named_in_errors(),
        connected(client, store, [asked], jobs=jobs, say=note) as cluster,
        shown(progress) as update,
    ):
        return write_study(
            name,
            directory,
            engine=asked,
            quick=quick,
            grid=grid,
            seed=seed,
            profile=profile,
            jobs=jobs,
            cluster=cluster,
            force=force,
            progress=update,
        )


def hunt(
    cc: str,
    properties: str | Iterable[str] | None = None,
    out: PathArg = Path("results") / "hunt",
    *,
    evaluations: int | None = None,
    seed: int = 1,
    confirm: str | Iterable[str] | None = None,
    jobs: int = 0,
    client: ClientArg | None = None,
    store: str | None = None,
    progress: Progress | bool | None = None,
) -> list[Finding]:
    """Search for the networks in which an algorithm violates properties most; write them to `out`.

    `cc` is a name, or the path of a C file (not on a cluster). `properties` is "takes-more,harms" or a list; all
    without it. For each, the search tries `evaluations` networks; the worst one is made smaller and simulated with
    other seeds and, with `confirm`, on other engines, such as "vm". The same `seed` and `evaluations` find the same. A
    directory collects the findings of several hunts. `jobs`, `client`, `store` and `progress` are as in `run`. An
    interrupt leaves the worst network so far in `out`.
    """
    from mptcplab.studies import hunt as hunting
    from mptcplab.studies.hunt import page

    check_jobs(jobs)
    directory = path_of(out, "out")
    name = _one_algorithm(cc, client)
    Overrides.of(None, None, seed, None, None, None)
    engines = () if confirm is None else parse_engines(confirm)
    if SIM.name in engines:
        hint = "name the other engines only, such as vm"
        raise MptcplabError(with_hint("the simulator cannot confirm what it has found itself: 'sim'", hint))
    for engine in engines:
        if not engine_of(engine).has_packets:
            hint = "vm or kernel: repetitions on the fluid engine are all the same, so that they have no interval"
            raise MptcplabError(with_hint(f"an engine without packets cannot confirm anything: {engine!r}", hint))
    asked = hunting.Hunt(
        name,
        tuple(hunting.chosen(as_names(properties, "properties", "starves"))),
        seed,
        hunting.EVALUATIONS if evaluations is None else evaluations,
        jobs,
        engines=engines,
    )
    for machine in filter(is_machine, engines):
        # A kernel that does not exist is refused before the search.
        machine_kernels.find(machine)
    # Before the directory is made.
    Scenario(duration="9 s").link("A", "S", "D", rate="1 Mbit/s", delay="1 ms").flow("f", ["A"]).check(
        Overrides(cc=(name,))
    )
    page.prepare(directory)
    with connected(client, store, [SIM.name], jobs=jobs, say=note) as cluster, shown(progress) as update:
        return hunting.hunt(replace(asked, cluster=cluster), partial(page.add, directory), update)


def _one_engine_with_packets(engine: str) -> str:
    """The full name of one engine that this machine can run, and whose repetitions differ."""
    names = engine_names(engine)
    if len(names) > 1:
        raise MptcplabError(with_hint(f"engine: more than one: {engine!r}", "make a study on each of them"))
    if not engine_of(names[0]).has_packets:
        hint = "sim, vm or kernel: repetitions on the fluid engine are all the same, so that they give no verdicts"
        raise MptcplabError(with_hint(f"engine: it has no packets: {engine!r}", hint))
    (name,) = parse_engines(names)
    return name


def _one_algorithm(cc: str, client: ClientArg | None) -> str:
    """The name of one algorithm; a C file is compiled, which the workers of a cluster cannot do."""
    names, files = named(cc)
    if len(names) != 1:
        raise MptcplabError(with_hint(f"one algorithm at a time: {cc!r}", "such as lia, or 'ewtcp(weight=fair)'"))
    if files and client is not None:
        hint = "leave --on out, or put its file into algorithms/"
        raise MptcplabError(with_hint(f"a cluster runs algorithms of the build only: {cc!r}", hint))
    return names[0]


def algorithms(path: PathArg | None = None) -> list[dict[str, Any]]:
    """All congestion control algorithms of this build, with their parameters and documentation.

    With `path`, that of a C file only, which is compiled; its values are as written there. Raises as
    `Algorithm.from_file`.
    """
    if path is not None:
        return [declared(Algorithm.from_file(path))]
    known: list[dict[str, Any]] = json.loads(_core.algorithms_json())
    return known


def scenarios() -> list[dict[str, Any]]:
    """The scenarios that come with the package: name, title and the path of the file; see `run`."""
    return bundle.scenarios()


def schedulers() -> list[dict[str, Any]]:
    """All packet schedulers of the simulator, with their parameters and documentation."""
    known: list[dict[str, Any]] = json.loads(_core.schedulers_json())
    return known


def vectors(path: PathArg) -> dict[str, Any]:
    """Run a file of test vectors against the native build; return passed, failed, skipped and worst error."""
    file = path_of(path, "path")
    if not file.is_file():
        hint = "a file of test vectors (JSON), such as crates/mptcplab-cc/tests/data/vectors.json"
        raise ScenarioError(with_hint(f"{'not a file' if file.exists() else 'no such file'}: {file}", hint))
    try:
        found: dict[str, Any] = json.loads(_core.vectors_json(file))
    except MptcplabError as error:
        if "hint:" in str(error):
            raise
        hint = "crates/mptcplab-cc/tests/data/vectors.json is one"
        raise type(error)(with_hint(str(error), hint)) from error
    return found


def doctor(
    pid: int | None = None, connection: str | None = None, rate: str | None = None, rtt: str | None = None
) -> dict[str, Any]:
    """Check what this machine can do: `ready`, and one entry of `findings` per check.

    With `pid`, or with `connection` such as "10.0.0.1:40000-10.0.0.2:443", it also checks the live MPTCP connections of
    that process or that connection. With `rate` and `rtt` (such as "100 Mbit/s" and "50 ms") it checks whether the
    buffers are large enough. `vm` has one entry per thing that the engine vm needs; `ready` is about the engine kernel.
    """
    asked = doctor_options(pid, connection, rate, rtt)
    kernel.require_valid("doctor", *asked)
    found = kernel.query("doctor", "--json", *asked, accept=(0, 1))
    return {**found, "vm": [check.as_dict() for check in host.findings()]}


def doctor_options(pid: int | None, connection: str | None, rate: str | None, rtt: str | None) -> list[str]:
    """The arguments of `doctor` as options of the program."""
    if pid is not None and connection is not None:
        hint = "leave one of them out: a connection is checked by its addresses, all of a process by its number"
        raise MptcplabError(with_hint(f"pid and connection exclude each other: {pid} and {connection!r}", hint))
    if (rate is None) != (rtt is None):
        given = f"rate without rtt: {rate!r}" if rtt is None else f"rtt without rate: {rtt!r}"
        raise MptcplabError(with_hint(given, 'give both, such as "100 Mbit/s" and "50 ms"'))
    asked = {"--pid": pid, "--connection": connection, "--rate": rate, "--rtt": rtt}
    return [word for name, value in asked.items() if value is not None for word in (name, str(value))]


def cc_load(names: Algorithms, params: Mapping[str, Any] | None = None, profile: str | None = None) -> Any:
    """Load algorithms into this machine's kernel as lab_<name>, until `cc_unload` or a restart; needs root.

    Each is a name, the path of a C file or an `Algorithm`; what is not in the build is compiled, which needs clang.
    `profile` says how ACKs are counted, as in a scenario.
    """
    with files_of(names) as words:
        return kernel.query("cc", "load", *words, *_setting(params, profile), "--pin", "--json")


def cc_list() -> Any:
    """The loaded algorithms: name, owner, number of sockets, what it counts, parameters that are not the default."""
    return kernel.query("cc", "list", "--json")


def cc_unload(names: str | Iterable[str] | None = None) -> Any:
    """Unload algorithms from the kernel (without names: all that mptcplab loaded); needs root."""
    return kernel.query("cc", "unload", *(as_names(names, "names", "olia") or ("--all",)), "--json")


def cc_persist(names: str | Iterable[str], params: Mapping[str, Any] | None = None, profile: str | None = None) -> Any:
    """Install a systemd unit that loads algorithms at boot, as `cc_load` does; needs root."""
    return kernel.query("cc", "persist", *as_names(names, "names", "olia"), *_setting(params, profile), "--json")


def _setting(params: Mapping[str, Any] | None, profile: str | None) -> list[str]:
    """How algorithms are loaded, as options of the program."""
    options = [word for name, value in (params or {}).items() for word in ("--param", f"{name}={value}")]
    return options if profile is None else [*options, "--profile", profile]


def schema() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
    found: dict[str, Any] = json.loads(_core.schema_json())
    return found
