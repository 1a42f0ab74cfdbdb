"""Commands that generate files: `new`, `schema`, `docs`, `walk`, `completion`, `man`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mptcplab import terminal
from mptcplab.cli import options
from mptcplab.cli.exit_codes import FAILED
from mptcplab.cli.printing import print_json, print_paths
from mptcplab.errors import MptcplabError, OutputError, with_hint
from mptcplab.ranges import UNITS, quantity


def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from mptcplab import api

    print_json(api.schema())


def docs(
    context: typer.Context,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=options.path,
            metavar="DIR",
            help="Directory for the pages instead of docs/reference, without the README.",
        ),
    ] = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a page is not up to date.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Generate the reference pages from the sources.

    Also writes the README's numbers of the papers' claims.
    """
    from mptcplab import reference
    from mptcplab.studies.papers import catalog, summary

    commands = context.find_root().command
    # The README is no page that could go elsewhere.
    papers = catalog.load() if out is None else None
    place = out or _references(catalog.directory())
    if check_only:
        stale = [*reference.stale_pages(place, commands), *(summary.stale(papers) if papers else [])]
        print_paths("stale", stale, label="not up to date", as_json=as_json)
        if stale:
            raise typer.Exit(FAILED)
    else:
        written = [*reference.write_pages(place, commands), *(summary.refresh(papers) if papers else [])]
        print_paths("written", written, label="wrote", as_json=as_json)


def _references(papers: Path) -> Path:
    """The directory of the pages in the clone that has these papers, as the current directory calls it."""
    place, here = papers.parent / "docs" / "reference", Path.cwd()
    if not place.is_dir():
        hint = "run it in a clone of the repository, or give --out"
        raise OutputError(with_hint(f"no directory of pages: {place}", hint))
    return place.relative_to(here) if place.is_relative_to(here) else place


def walk(
    out: Annotated[
        Path, typer.Option("--out", parser=options.path, metavar="DIR", help="Directory for the files.")
    ] = Path("walk"),
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
    from mptcplab import api

    written = api.walk(
        out,
        seed=seed,
        reps=reps,
        duration_s=duration,
        phase_s=phase,
        phase_step_s=phase_step,
        wifi_mbps=wifi,
        cellular_mbps=cellular,
    )
    print_paths("written", written, label="wrote", as_json=as_json)


def new(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            parser=options.path,
            metavar="FILE",
            help="File to write (TOML); without it, or for -, the scenario is printed.",
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option("--title", metavar="TEXT", help="A description of one line. Default: the number of paths."),
    ] = None,
    rates: Annotated[
        str, typer.Option("--rates", metavar="LIST", help="The rate of every path; there is a path for each.")
    ] = "10 Mbit/s, 5 Mbit/s",
    delays: Annotated[
        str | None,
        typer.Option(
            "--delays",
            metavar="LIST",
            help="The one-way delay of every path; the last is repeated. Default: 10 ms, 20 ms, ...",
        ),
    ] = None,
    losses: Annotated[
        str, typer.Option("--losses", metavar="LIST", help="The random loss of every path; the last is repeated.")
    ] = "",
    queue: Annotated[str, typer.Option("--queue", metavar="SIZE", help="The queue of every path.")] = "1 BDP",
    cc: Annotated[str, typer.Option("--cc", metavar="NAMES", help="Algorithms of this build to compare.")] = "lia,olia",
    tcp: Annotated[
        int, typer.Option("--tcp", parser=options.at_least(0), metavar="N", help="TCP flows on the first path.")
    ] = 0,
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Length of a run.")] = "60 s",
    warmup: Annotated[
        str, typer.Option("--warmup", metavar="TIME", help="Time at the start that metrics ignore.")
    ] = "10 s",
    reps: Annotated[int, typer.Option("--reps", parser=options.at_least(1), metavar="N", help="Repetitions.")] = 5,
    ask: Annotated[bool, typer.Option("--ask", help="Ask for what is not given as an option.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: options.Json = False,
) -> None:
    """Write a scenario from options or answers.

    The file has comments. One MPTCP connection has a subflow on every path; TCP flows beside it are on the first path.
    """
    from mptcplab import api
    from mptcplab.algorithm import named
    from mptcplab.templates import default_delays

    if ask:
        with _until_the_end_of_input():
            unknown = _Questions(context)
            rates = unknown.text("rates", "Rates of the paths", rates)
            title = unknown.text("title", "Title", title or _of_paths(rates))
            delays = unknown.text(
                "delays", "Their one-way delays", delays or ", ".join(default_delays(_number_of(rates)))
            )
            losses = unknown.text("losses", "Their random losses (none: leave empty)", losses)
            queue = unknown.text("queue", "The queue of every path", queue)
            cc = unknown.text("cc", "Algorithms to compare", cc)
            tcp = unknown.number("tcp", "TCP flows on the first path", tcp)
            duration = unknown.text("duration", "Length of a run", duration)
            warmup = unknown.text("warmup", "Time at the start that metrics ignore", _within(warmup, duration))
            reps = unknown.number("reps", "Repetitions", reps)
            file = Path(unknown.text("file", "File", str(file or "scenario.toml")))
    if files := named(cc)[1]:
        hint = (
            f"leave it out, and give it to the command that runs the scenario: mptcplab run FILE --cc {shlex.quote(cc)}"
        )
        raise MptcplabError(with_hint(f"--cc: a scenario cannot name a C file: {', '.join(files.values())}", hint))
    made = api.new(
        title=title or _of_paths(rates),
        rates=rates,
        delays=delays,
        losses=losses,
        queue=queue,
        cc=cc,
        tcp=tcp,
        duration=duration,
        warmup=warmup,
        reps=reps,
    )
    if file is None or str(file) == "-":
        if as_json:
            print_json({"written": None, "scenario": made.to_dict()})
        else:
            print(made.to_toml(), end="")
        return
    if file.exists() and not force:
        raise OutputError(with_hint(f"file exists: {file}", "choose another name, or --force to replace it"))
    made.write(file)
    print_paths("written", [file], label="wrote", as_json=as_json)
    if not as_json:
        terminal.note(f"next:  mptcplab run {shlex.quote(str(file))}")


@dataclass(frozen=True)
class _Questions:
    """Questions for the values that the command line does not give."""

    context: typer.Context

    def text(self, parameter: str, question: str, default: str) -> str:
        """The answer, or the default if the command line gives it."""
        return str(self._answer(parameter, question, default, str))

    def number(self, parameter: str, question: str, default: int) -> int:
        """The same for a number; other answers are asked for again."""
        return int(self._answer(parameter, question, default, int))

    def _answer(self, parameter: str, question: str, default: str | int, kind: type) -> Any:
        source = self.context.get_parameter_source(parameter)
        if source is not None and source.name == "COMMANDLINE":
            return default
        return typer.prompt(question, default=default, type=kind, show_default=default != "", err=True)


@contextmanager
def _until_the_end_of_input() -> Iterator[None]:
    """Questions. The end of the input is an error, which the library of the prompts does not tell from Ctrl-C."""
    try:
        yield
    except typer.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        # The question has no end of line.
        print(file=sys.stderr)
        hint = "answer all of them, an empty line takes the default; or leave --ask out and give options"
        raise MptcplabError(with_hint("the input ended before all questions were answered", hint)) from error


def completion(
    context: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell."""
    from mptcplab.cli.completion import SHELLS, script

    if shell not in SHELLS:
        raise MptcplabError(with_hint(f"no completion for this shell: {shell!r}", f"one of {', '.join(SHELLS)}"))
    print(script(shell, context.find_root().command), end="")


def man(context: typer.Context) -> None:
    """Print the man page."""
    from mptcplab import reference

    print(reference.man_page(context.find_root().command), end="")


def _of_paths(rates: str) -> str:
    """The title of a scenario with a path for each rate.

    >>> _of_paths("10 Mbit/s, 5 Mbit/s"), _of_paths("1 Mbit/s"), _of_paths("1 Mbit/s,2 Mbit/s,3 Mbit/s")
    ('Two paths', 'One path', '3 paths')
    """
    paths = _number_of(rates)
    return {1: "One path", 2: "Two paths"}.get(paths, f"{paths} paths")


def _number_of(rates: str) -> int:
    return sum(bool(rate.strip()) for rate in rates.split(","))


def _within(warmup: str, duration: str) -> str:
    """A warm-up that is shorter than the run: this one, or a fifth of a run that is not longer.

    >>> _within("10 s", "60 s"), _within("10 s", "10 s"), _within("10 s", "500 ms")
    ('10 s', '2 s', '100 ms')
    """
    known = [quantity(text) for text in (warmup, duration)]
    if any(found is None or UNITS[found[1]][0] != "time" for found in known):
        # The scenario's check names what is no time.
        return warmup
    (ignored, unit), (lasts, of_run) = (found for found in known if found is not None)
    if ignored * UNITS[unit][1] < lasts * UNITS[of_run][1]:
        return warmup
    return f"{lasts / 5:g} {of_run}"
