"""Commands that the kernel engine's program carries out: `doctor` and the group `cc`.

The program of `cc` replaces this process, so that its output, its signals and its exit code are those of the command.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mptcplab.cli import options
from mptcplab.cli.examples import epilog
from mptcplab.cli.exit_codes import FAILED
from mptcplab.cli.printing import print_json
from mptcplab.errors import EngineError, MptcplabError, with_hint

Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="[NAME.]KEY=VALUE",
        help="A parameter, such as weight=fair; with its algorithm's name where several are loaded. Repeatable.",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="How ACKs are counted, as in a scenario: acknowledged packets (rfc, linux-acked), ACKs for coupled "
        "algorithms (linux-legacy), or ACKs for all (linux-pre4). Default: linux-acked.",
    ),
]
Connections = Annotated[
    int | None,
    typer.Option(
        "--connections", parser=options.at_least(1), metavar="N", help="Connections coupled at a time (4096)."
    ),
]
Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Algorithms, as `mptcplab algorithms` lists them, or paths of C files."),
]
OptionalNames = Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Names of algorithms.")]
LoadedNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME...", help="Names of algorithms, or paths of C files that were loaded."),
]

_HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
cc = typer.Typer(
    name="cc",
    help="Load, list and unload algorithms in this machine's kernel.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings=_HELP,
)


def doctor(
    pid: Annotated[
        int | None,
        typer.Option(
            "--pid", parser=options.at_least(1), metavar="N", help="Also check all MPTCP connections of this process."
        ),
    ] = None,
    connection: Annotated[
        str | None,
        typer.Option(
            "--connection", metavar="SRC:PORT-DST:PORT", help="Also check the connection with these addresses."
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help='Rate that the buffers should carry, such as "100 Mbit/s".'),
    ] = None,
    rtt: Annotated[
        str | None, typer.Option("--rtt", metavar="TIME", help='Round-trip time to carry it at, such as "50 ms".')
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check what this machine can do and what is missing.

    Checks what the kernel engine and the engine vm need, and says how to fix what is missing. The engine vm needs no
    privileges. For a live connection, it also lists the subflows, what each really runs, and why an expected one is
    missing. Exit code 1 if something is missing that the kernel engine needs.
    """
    from mptcplab import api
    from mptcplab.engines import kernel

    if as_json:
        found = api.doctor(pid, connection, rate, rtt)
        print_json(found)
        checks = [*found.get("findings", []), *found.get("connection_findings", [])]
        if any(check["status"] == "missing" for check in checks):
            raise typer.Exit(FAILED)
        return
    asked = api.doctor_options(pid, connection, rate, rtt)
    try:
        kernel.program()
    except EngineError:
        _print_machine()
        raise
    kernel.require_valid("doctor", *asked)
    code = kernel.call("doctor", *asked)
    if code in (0, FAILED):
        _print_machine()
    if code:
        raise typer.Exit(code)


def _print_machine() -> None:
    """Print what the engine vm needs, in the form in which the program prints its checks."""
    from mptcplab.engines.vm import host

    found = host.findings()
    ready = all(check.status == "ok" for check in found)
    print(f"\nengine vm (real sockets in virtual time, without root): {'ready' if ready else 'not ready'}")
    width = max(len(check.name) for check in found)
    for check in found:
        print(f"  {check.status:<8}{check.name:<{width}}  {check.found}")
        if check.remedy:
            print(f"  {'':<8}{'':<{width}}  {check.meaning}\n  {'':<8}{'':<{width}}  -> {check.remedy}")


@cc.command(epilog=epilog("cc load"), context_settings=_HELP)
def load(
    names: Names,
    params: Params = None,
    profile: Profile = None,
    pin: Annotated[
        bool, typer.Option("--pin", help="Return at once; the algorithms stay until `cc unload` or the next boot.")
    ] = False,
    connections: Connections = None,
    as_json: options.Json = False,
) -> None:
    """Load algorithms into the kernel as lab_<name>; needs root.

    Without --pin, the command keeps running, and the algorithms are unloaded when it ends.
    """
    _exec("load", names, *_loading(params, profile, connections), *_flag("--pin", pin), as_json=as_json)


@cc.command(name="list", epilog=epilog("cc list"), context_settings=_HELP)
def list_loaded(as_json: options.Json = False) -> None:
    """List the loaded algorithms and what uses them; needs root.

    Also shows what congestion avoidance counts, and the parameters that differ from their defaults.
    """
    _exec("list", None, as_json=as_json)


@cc.command(epilog=epilog("cc unload"), context_settings=_HELP)
def unload(
    names: LoadedNames = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All that operators loaded, but not those of runs.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Unload algorithms from the kernel; needs root. Sockets that use one keep it until they close."""
    _require_one(names, "--all", everything, "cc unload")
    _exec("unload", names, *_flag("--all", everything), as_json=as_json)


@cc.command(epilog=epilog("cc persist"), context_settings=_HELP)
def persist(
    names: OptionalNames = None,
    params: Params = None,
    profile: Profile = None,
    connections: Connections = None,
    show: Annotated[bool, typer.Option("--print", help="Print the unit, and change nothing.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the unit; what is loaded stays.")] = False,
    as_json: options.Json = False,
) -> None:
    """Load algorithms at every boot, by a systemd unit; needs root.

    The unit is mptcplab-cc.service.
    """
    _require_one(names, "--remove", remove, "cc persist")
    loading = _loading(params, profile, connections)
    if remove and (show or loading):
        given = "--print" if show else loading[0]
        raise MptcplabError(with_hint(f"--remove and {given} exclude each other", "leave one of them out"))
    if show and as_json:
        raise MptcplabError(with_hint("--print prints the unit, which is no JSON: --json", "leave one of them out"))
    _exec("persist", names, *_flag("--print", show), *_flag("--remove", remove), *loading, as_json=as_json)


def _loading(params: list[str] | None, profile: str | None, connections: int | None) -> list[str]:
    """How algorithms are loaded, as options of the program."""
    words = [word for param in params or () for word in ("--param", param)]
    words += [] if profile is None else ["--profile", profile]
    return words + ([] if connections is None else ["--connections", str(connections)])


def _flag(name: str, given: bool) -> list[str]:
    return [name] if given else []


def _require_one(names: list[str] | None, flag: str, given: bool, command: str) -> None:
    """Names, or the option in their place, but not both."""
    if bool(names) == given:
        what = f"{flag} and names exclude each other: {', '.join(names)}" if names else f"no name, and no {flag}"
        raise MptcplabError(with_hint(f"{command}: {what}", f"`mptcplab {command} --help` shows what it takes"))


def _exec(command: str, names: list[str] | None, *options: str, as_json: bool) -> None:
    from mptcplab.engines import kernel

    words = ["cc", command, *options, *_flag("--json", as_json)]
    kernel.require_valid(*words)
    # A name may begin with a dash.
    kernel.replace_process(*words, *(["--", *names] if names else []))
