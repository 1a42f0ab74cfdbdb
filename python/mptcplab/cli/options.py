"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mptcplab.algorithm import words
from mptcplab.ranges import assign


def at_least(smallest: int) -> Callable[[str], int]:
    """How a number is read. The parser has a way of its own, whose words change with its version."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise typer.BadParameter(f"not a whole number: {text!r}") from None
        if number < smallest:
            raise typer.BadParameter(f"{number} is less than {smallest}")
        return number

    return read


def path(text: str) -> Path:
    """Read a path. An empty one, such as of a variable that is not set, would be the current directory."""
    if not str(text):
        raise typer.BadParameter("an empty path; . is the current directory")
    return Path(text)


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SCENARIO = "Scenario file (TOML), or the name of one that comes with the package; `mptcplab scenarios` lists them."
Scenario = Annotated[Path, typer.Argument(parser=path, metavar="SCENARIO", help=SCENARIO)]
Cc = Annotated[
    list[str] | None,
    typer.Option(
        "--cc",
        metavar="NAMES",
        help="Algorithms to compare instead of those in the file, separated by commas. Parameters are written in "
        "parentheses, such as --cc 'lia,ewtcp(weight=fair)'. The path of a C file is compiled, such as "
        "--cc ./mine.c,lia; the kernel and vm need clang for it. Repeatable.",
    ),
]
Profiles = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="NAMES",
        help="How ACKs are sent and counted, such as rfc,linux-legacy: the key `profile` of the scenario format.",
    ),
]
Profile = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="How ACKs are sent and counted.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any key of the file by its path, such as --set 'links.B1.queue=1 BDP'. Text needs no further quotes. "
        "KEY= removes the key. Repeatable.",
    ),
]
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="KEY=VALUES",
        help="Run every value of a key: a range such as --sweep 'links.B1.loss=0.01 %..5 % log 7' (7 values whose "
        "ratios are equal; without log, their differences are), or a list such as "
        "--sweep 'links.B1.delay=5 ms, 20 ms'. The values of a range are rounded to three digits. Repeatable: all "
        "combinations are run.",
    ),
]
Reps = Annotated[
    int | None, typer.Option("--reps", parser=at_least(1), metavar="N", help="Repetitions of every combination.")
]
SimReps = Annotated[
    int | None,
    typer.Option(
        "--sim-reps",
        parser=at_least(1),
        metavar="N",
        help="Repetitions on the simulator where it runs beside another engine. --reps then counts for the other "
        "engines only.",
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", parser=at_least(0), metavar="N", help="Seed of all random numbers.")
]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration",
        metavar="TIME",
        help='Length of a run, such as "30 s": simulated time or, on the kernel engine, real time.',
    ),
]
Jobs = Annotated[
    int, typer.Option("--jobs", parser=at_least(0), metavar="N", help="Threads of the simulator; 0 is one per core.")
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="dask[:ADDRESS]",
        help="Run on a Dask cluster, given by the address of its scheduler, such as dask:tcp://10.0.0.1:8786; dask "
        "alone starts as many workers on this machine as --jobs says. The engines kernel and vm do not run there.",
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="With --on, where workers leave finished runs: a path or a URL that they and this machine reach, such as "
        "s3://bucket/mptcplab. Runs that are found there are not made again.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an earlier result in --out.")]


def overrides(
    cc: list[str] | None,
    reps: int | None,
    seed: int | None,
    profile: list[str] | None,
    duration: str | None,
    settings: list[str] | None,
    sweep: list[str] | None = None,
) -> dict[str, Any]:
    """The options that change a scenario, as keyword arguments of public functions."""
    return {
        "cc": names(cc),
        "reps": reps,
        "seed": seed,
        "profile": names(profile, "rfc,linux-legacy", "profile"),
        "duration": duration,
        "settings": None if settings is None else assign(settings, "--set"),
        "sweep": None if sweep is None else assign(sweep, "--sweep"),
    }


def names(values: list[str] | None, such_as: str = "lia,olia", option: str = "cc") -> list[str] | None:
    """`a,b` and repeated options mean the same."""
    return None if values is None else [name for value in values for name in words(value, such_as, option)]
