"""Commands that list and test what this build has: `scenarios`, `algorithms`, `schedulers`, `vectors`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mptcplab import terminal
from mptcplab.cli import options
from mptcplab.cli.exit_codes import FAILED
from mptcplab.cli.printing import print_json
from mptcplab.cli.studies import print_verdicts

if TYPE_CHECKING:
    from mptcplab.text import Table

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Describe only this one, in full.")]


def scenarios(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Print the file of only this one.")] = None,
    as_json: options.Json = False,
) -> None:
    """List the scenarios that come with the package.

    The commands that take a SCENARIO take these names.
    """
    from mptcplab import api, bundle
    from mptcplab.errors import ScenarioError
    from mptcplab.scenario import named_files
    from mptcplab.text import Table

    known = api.scenarios()
    if name is not None:
        known = [entry for entry in known if entry["name"] == name]
        if not known:
            raise ScenarioError(bundle.unknown(name))
    if as_json:
        print_json(known if name is None else known[0])
    elif name is None:
        rows = tuple((entry["name"], entry["title"]) for entry in known)
        terminal.print_table(Table((("Scenario", ""), ("Title", "")), rows, ()))
    else:
        file = Path(known[0]["path"])
        text = file.read_text(encoding="utf-8")
        print(text, end="")
        if needed := list(named_files(tomllib.loads(text))):
            terminal.note(f"note: it names these files, which a copy needs beside it: {', '.join(needed)}")
            terminal.note(f"from: {file.parent}")


def algorithms(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Describe only this one, in full: a name, or the path of a C file."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the congestion control algorithms of this build."""
    from mptcplab import api, reference

    if name is not None and name.endswith(".c"):
        (found,) = api.algorithms(name)
        if as_json:
            print_json(found)
        else:
            print(reference.file_text(found))
        return
    known = api.algorithms()
    _list(known, name, "algorithm", reference.algorithm_table, reference.algorithm_text, as_json=as_json)


def schedulers(
    name: Name = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Simulate `scenarios/schedulers` and write the page that compares them.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=options.path,
            metavar="DIR",
            help="Where --compare writes the page and its numbers. Default: docs/schedulers.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="With --compare: simulate less; this does not give the published page.")
    ] = False,
    jobs: options.Jobs = 0,
    as_json: options.Json = False,
) -> None:
    """List the packet schedulers of the simulator.

    With --compare, check whether each scheduler serves its purpose; exit code 1 if a statement does not hold.
    """
    from mptcplab import api, reference
    from mptcplab.errors import MptcplabError, with_hint

    if compare and name is not None:
        raise MptcplabError(with_hint(f"--compare takes no name: {name!r}", "it compares all schedulers"))
    if not compare and (quick or jobs or out is not None):
        given = "--quick" if quick else "--jobs" if jobs else "--out"
        raise MptcplabError(with_hint(f"{given} needs --compare", "add --compare, or leave it out"))
    if compare:
        place = out or Path("docs/schedulers")
        print_verdicts(*api.compare_schedulers(place, quick=quick, jobs=jobs, announce=terminal.step), as_json=as_json)
        return
    known = api.schedulers()
    _list(known, name, "scheduler", reference.scheduler_table, reference.scheduler_text, as_json=as_json)


def vectors(
    file: Annotated[Path, typer.Argument(parser=options.path, metavar="FILE", help="File of test vectors (JSON).")],
    as_json: options.Json = False,
) -> None:
    """Run test vectors against the algorithms of this build.

    Prints passed, failed and the worst error per algorithm; exit code 1 if a vector fails.
    """
    from mptcplab import api, reference

    found = api.vectors(file)
    if as_json:
        print_json(found)
    else:
        terminal.print_table(reference.vector_table(found))
    if reference.vectors_failed(found):
        raise typer.Exit(FAILED)


def _list(
    known: list[dict[str, Any]],
    name: str | None,
    kind: str,
    table: Callable[[list[dict[str, Any]]], Table],
    text: Callable[[dict[str, Any]], str],
    *,
    as_json: bool,
) -> None:
    """Print all algorithms or schedulers, or everything about one."""
    entry = None if name is None else _named(known, name, kind)
    if as_json:
        print_json(known if entry is None else entry)
    elif entry is None:
        terminal.print_table(table(known))
    else:
        print(text(entry))


def _named(known: list[dict[str, Any]], name: str, kind: str) -> dict[str, Any]:
    for entry in known:
        if entry["name"] == name:
            return entry
    from mptcplab import _core
    from mptcplab.errors import MptcplabError

    raise MptcplabError(_core.unknown_name(kind, name, [entry["name"] for entry in known]))
