"""The application: its commands in their order, and errors as messages and exit codes."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from mptcplab import terminal
from mptcplab.cli import generate, hunting, kernel, lists, results, run, studies
from mptcplab.cli.examples import epilog
from mptcplab.cli.exit_codes import ERROR, INTERRUPTED

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# What a full or broken disk answers, and a file that may not grow.
_OUTPUT_REFUSED = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})

_HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
_GREETING = """\
mptcplab compares congestion control algorithms for Multipath TCP.

  mptcplab run dolia-scenario-1     run a scenario, print a table, write a report
  mptcplab scenarios                what else comes with the package
  mptcplab new my-scenario.toml     write a scenario of your own
  mptcplab algorithms               what can be compared
  mptcplab reproduce all --quick    six papers, in a few minutes
  mptcplab doctor                   what this machine can do

`mptcplab --help` lists all commands, `mptcplab COMMAND --help` the options of one with examples."""

app = typer.Typer(
    name="mptcplab",
    help="A laboratory for Multipath TCP congestion control.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=_HELP,
)


def _version(asked: bool) -> None:
    if asked:
        from mptcplab import _core
        from mptcplab.cli import about

        print(f"mptcplab {_core.version()}", *about.lines(), sep="\n")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(_GREETING)


for _command in (
    run.run,
    generate.new,
    run.report,
    run.check,
    results.merge,
    results.compare,
    results.ls,
    lists.scenarios,
    lists.algorithms,
    lists.schedulers,
    lists.vectors,
    studies.reproduce,
    studies.fidelity,
    studies.goals,
    hunting.hunt,
    studies.agree,
    studies.kernels,
    kernel.doctor,
    generate.schema,
    generate.walk,
    generate.docs,
    generate.completion,
    generate.man,
):
    app.command(context_settings=_HELP, epilog=epilog(_command.__name__))(_command)
app.add_typer(kernel.cc)


def main() -> None:
    """Entry point: run the command; errors become messages and exit codes."""
    if sys.stdout is None:
        # The caller has closed it; what is printed is lost, as the caller wants.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    _print_everything()
    if sys.stderr is sys.__stderr__ and sys.stderr is not None:
        sys.stderr = _Messages(sys.stderr)
    code = _run_command()
    _only_note_signals()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _ignore_closed_pipe()
    except OSError as error:
        code = _cannot_print(error)
    sys.exit(code)


class _Messages(io.TextIOWrapper):
    """The standard error. No command fails because nobody can read its messages: on a full disk they are lost."""

    def __init__(self, stderr: TextIO) -> None:
        raw = _Lossy(stderr.fileno(), "w", closefd=False)
        super().__init__(io.BufferedWriter(raw), stderr.encoding, "backslashreplace", line_buffering=True)


class _Lossy(io.FileIO):
    """A file that takes everything, whether it can be written or not."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _print_everything() -> None:
    """Let the output have question marks for what its encoding lacks, such as dashes in ASCII or names of files."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Warnings of this package as its other messages; those of libraries concern developers."""
    if category.__module__.startswith("mptcplab"):
        terminal.warning(str(message))


class _TerminatedError(KeyboardInterrupt):
    """The process is asked to end, by SIGTERM or because its terminal has gone; everything is as after Ctrl-C."""


# The signal that has ended the command.
_received: list[int] = []
# After an interrupt that got lost, the next one comes after so many seconds.
_AGAIN_S = 0.01
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _end(number: int, _: object) -> None:
    _received.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else _TerminatedError


def _note(number: int, _: object) -> None:
    _received.append(number)


def _end_in_order() -> None:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does: what is finished is kept, and nothing else is left."""
    # With nohup, SIGHUP stays ignored.
    _handle(_end, signal.SIG_DFL, signal.default_int_handler, _note)
    if threading.current_thread() is threading.main_thread():
        sys.unraisablehook = _interrupt_again


def _only_note_signals() -> None:
    """From here on a signal changes nothing, so that what is being printed is printed to its end."""
    _handle(_note, _end)


def _handle(handler: Callable[[int, object], None], *former: object) -> None:
    """Handle the signals that end a command so, if they were handled in one of the former ways."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _ENDING:
        if signal.getsignal(number) in former:
            signal.signal(number, handler)


def _interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt that arrived in a destructor, whose errors Python prints and forgets."""
    interrupt = lost.exc_value
    if not isinstance(interrupt, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        sys.__unraisablehook__(lost)
        return

    def interrupt_again(*_: object) -> None:
        raise interrupt

    signal.signal(signal.SIGALRM, interrupt_again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


def _run_command() -> int:
    warnings.showwarning = _show_warning
    _received.clear()
    _end_in_order()
    try:
        code = _code_of_command()
    except KeyboardInterrupt:
        # It came between the end of the command and the report of its error.
        code = INTERRUPTED
    if code != INTERRUPTED:
        return code
    _only_note_signals()
    number = _received[-1] if _received else signal.SIGINT
    terminal.error("interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}")
    return 128 + number


def _code_of_command() -> int:
    from mptcplab.arguments import of_options

    try:
        # Without standalone mode the code of an explicit exit, or of an interrupt, is returned.
        with of_options():
            return app(standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BaseException as error:
        # An interrupt that comes while a library is being loaded ends as an error of that library, and one that comes
        # to Python called by a library of Rust as a panic, which is no Exception.
        if _received:
            return INTERRUPTED
        _only_note_signals()
        return _code_of(error)


def _code_of(error: BaseException) -> int:
    """Print the message of an error; return its exit code."""
    from mptcplab.errors import MptcplabError

    if isinstance(error, BrokenPipeError | SystemExit):
        # Out of standalone mode the parser calls exit for one reason only: a broken pipe.
        return _ignore_closed_pipe()
    if isinstance(error, MptcplabError):
        return _fail(str(error))
    if isinstance(error, OSError) and error.filename is not None:
        # The operating system refuses a file or directory, which is nobody's bug.
        hint = "check that it exists and that you may use it"
        return _fail(f"cannot use a file: {error.filename}: {error.strerror}\n\nhint: {hint}")
    if isinstance(error, OSError) and error.errno in _OUTPUT_REFUSED:
        return _cannot_print(error)
    # Usage errors of the command line parser say what is wrong; anything else is a bug.
    describe = getattr(error, "format_message", None)
    if describe is not None and type(error).__name__ == "NoArgsIsHelpError":
        # A group of commands without one of them: its message is the help.
        print(describe(), file=sys.stderr)
        return ERROR
    if describe is not None:
        return _fail(f"{describe()}\n\nhint: `{_command_of(error)} --help` shows what it takes")
    return _internal(error)


def _command_of(error: BaseException) -> str:
    """The command whose usage is wrong, as it is typed."""
    names: list[str] = []
    context = getattr(error, "ctx", None)
    # The name of the outermost is that of the program file.
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    return " ".join(["mptcplab", *names])


def _internal(error: BaseException) -> int:
    return _fail(
        f"internal error: {type(error).__name__}: {error}\n\n"
        "hint: this is a bug of mptcplab; run again with MPTCPLAB_DEBUG=1 and report what it prints"
    )


def _cannot_print(error: OSError) -> int:
    """The disk behind the output is full or broken: the buffer is given up, or Python complains at exit."""
    _discard_output()
    return _fail(
        f"cannot write to the standard output: {error.strerror}\n\nhint: make room there, or print to another place"
    )


def _fail(message: str) -> int:
    if os.environ.get("MPTCPLAB_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    terminal.error(message)
    return ERROR


def _ignore_closed_pipe() -> int:
    """The reader of stdout closed it, which is no error: Python must not complain at exit."""
    _discard_output()
    return 0


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
