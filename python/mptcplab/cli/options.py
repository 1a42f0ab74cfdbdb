"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from mptcplab.errors import MptcplabError, with_hint

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Scenario = Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).")]
Cc = Annotated[
    list[str] | None,
    typer.Option(
        "--cc",
        metavar="NAMES",
        help="Algorithms to compare instead of those in the file, separated by commas. Parameters are written in "
        "parentheses, such as --cc 'lia,ewtcp(weight=fair)'. The simulator also "
        "takes the path of a C file, which it compiles, such as --cc ./mine.c,lia. Repeatable.",
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
Reps = Annotated[int | None, typer.Option("--reps", min=1, metavar="N", help="Repetitions of every combination.")]
SimReps = Annotated[
    int | None,
    typer.Option(
        "--sim-reps",
        min=1,
        metavar="N",
        help="Repetitions on the simulator where it runs beside another engine. --reps then counts for the other "
        "engines only.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, metavar="N", help="Seed of all random numbers.")]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration",
        metavar="TIME",
        help='Length of a run, such as "30 s": simulated time, on the kernel engine real time.',
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", min=0, metavar="N", help="Threads of the simulator; 0 is one per core.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an earlier result in --out.")]


def overrides(
    cc: list[str] | None,
    reps: int | None,
    seed: int | None,
    profile: list[str] | None,
    duration: str | None,
    settings: list[str] | None,
) -> dict[str, Any]:
    """The options that change a scenario, as keyword arguments of public functions."""
    return {
        "cc": _names(cc),
        "reps": reps,
        "seed": seed,
        "profile": _names(profile),
        "duration": duration,
        "settings": _pairs(settings),
    }


def _names(values: list[str] | None) -> list[str] | None:
    """`a,b` and repeated options mean the same; a comma in parentheses separates parameters of one name."""
    if values is None:
        return None
    parts = [part.strip() for value in values for part in re.split(r",(?![^(]*\))", value)]
    found = [part for part in parts if part]
    if not found:
        raise MptcplabError(with_hint(f"no name in this list: {','.join(values)!r}", "such as lia,olia"))
    return found


def _pairs(settings: list[str] | None) -> dict[str, str] | None:
    if settings is None:
        return None
    pairs = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise MptcplabError(
                with_hint(f"--set needs KEY=VALUE: {setting!r}", "such as --set 'links.B1.queue=1 BDP'")
            )
        pairs[key.strip()] = value.strip()
    return pairs
