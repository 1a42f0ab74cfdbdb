"""The kernel engine: finds and runs the program `mptcplab-kernel`, and translates its progress and errors.

The program itself deals with sockets, namespaces and eBPF.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import queue
import re
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from mptcplab.capabilities import OWN_TRAFFIC
from mptcplab.engines.process import die_with_parent, end
from mptcplab.errors import (
    COMMAND_LINE,
    EngineError,
    MptcplabError,
    OutputError,
    RefusedError,
    ScenarioError,
    with_hint,
)
from mptcplab.scratch import Scratch

Progress = Callable[[int, int, float, float], None]

# The name under which the program runs for its users, who read it in what it tells them to type.
_COMMAND = "mptcplab"
# The environment variable that names another program than the one that setup built.
OVERRIDE = "MPTCPLAB_KERNEL"
_HOME = Path(__file__).parents[1] / "_bin"
BUILT = _HOME / "mptcplab-kernel"
# Written by scripts/setup.sh: why it did not build the program, and in the second line what to do.
NOT_BUILT = _HOME / "not-built.txt"

_ROOT_PURPOSE = (
    "loading congestion control and tracing as eBPF, and the real-time priority of the link emulator; "
    "all else of a run is unprivileged"
)
# Exit code of a complete sweep with a run that does not count.
_DOES_NOT_COUNT = 1
# Bits of the kernel's capability sets (linux/capability.h).
_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 21, 38, 39
# Of a file's capabilities: a program has them without asking for them.
_EFFECTIVE = 1
# Time that the program has to clean up after an interrupt before it is killed; it needs a fraction of a second.
_GRACE_S = 15.0
# How an error begins if the kernel does not take an algorithm of a run, whose name there begins with `RUN_PREFIX`
# (crates/mptcplab-bpf/src/registered.rs).
_REFUSED_ALGORITHM = re.compile(r"the kernel refused \S+ as mpl_")
# What it says of a disk that is full or broken, or of a file that may not grow, as Rust writes errors of the system.
_OF_THE_DISK = re.compile(rf"\(os error ({errno.ENOSPC}|{errno.EIO}|{errno.EDQUOT}|{errno.EFBIG})\)")
# The end of an error about its options.
_ABOUT_ITSELF = re.compile(r"(\n\nUsage: .*)?\n\nFor more information, try '--help'\.$", re.DOTALL)
_POLL_S = 0.1


def program() -> Path:
    """The path of the program; raises an error that says why there is none and what to do."""
    named = os.environ.get(OVERRIDE)
    if named:
        path = Path(named)
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise EngineError(
                with_hint(f"no such program: {path} (from {OVERRIDE})", f"unset {OVERRIDE}, or give its path")
            )
        return path
    if BUILT.is_file():
        return BUILT
    state = "not built yet"
    remedy = "make setup, which says if packages are missing; if it is running already, wait until it has ended"
    if NOT_BUILT.is_file():
        reason, _, remedy = NOT_BUILT.read_text(encoding="utf-8").strip().partition("\n")
        state = f"not built: {reason}"
    raise EngineError(
        with_hint(f"the kernel engine is {state}", f"{remedy}\n      `--engine sim` (the default) works without it")
    )


def require_available() -> None:
    """Raise an error if the kernel engine cannot run here; the message says why."""
    program()
    require_privileges()


def require_privileges() -> None:
    """Raise an error if this user may not load eBPF programs."""
    held = _capabilities()
    if held is None or held >> _CAP_SYS_ADMIN & 1 or _suffice(held) or _suffice(_file_capabilities(program())):
        return
    raise EngineError(
        with_hint(
            "the kernel engine needs root (or CAP_BPF and CAP_PERFMON)",
            f"sudo {_typed()} run ... --engine kernel\n      root is for {_ROOT_PURPOSE}\n"
            "      `--engine sim` needs no privileges; `mptcplab doctor` shows what this user may do",
        )
    )


def _suffice(held: int) -> bool:
    return bool(held >> _CAP_BPF & held >> _CAP_PERFMON & 1)


def _file_capabilities(path: Path) -> int:
    """Capabilities that a program has by its file (`setcap`), whoever starts it."""
    try:
        content = os.getxattr(path, "security.capability")
    except OSError:
        return 0
    # struct vfs_cap_data of linux/capability.h.
    flags, low, _, high, _ = struct.unpack_from("<5I", content.ljust(20, b"\0"))
    return low | high << 32 if flags & _EFFECTIVE else 0


def _capabilities() -> int | None:
    """Effective capabilities of this process; None if they cannot be read."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return None


def run(
    scenario: str,
    place: Path,
    overrides: str,
    *,
    only: Sequence[int] | None = None,
    digests: Sequence[str] = (),
    algorithms: Path | None = None,
    traffic: str = OWN_TRAFFIC,
    progress: Progress | None = None,
) -> None:
    """Run the runs of a scenario, or only those of some numbers, and add their traces to the directory `place`.

    `digests` are those of all runs, and `algorithms` is the directory of those that are not in the build (`compiled`).
    Raises EngineError, or ScenarioError if the engine refuses the scenario. If a run ended early, its trace up to then
    is in `place` nevertheless. A complete run that does not count raises nothing; its row in the run table says so.
    """
    words = ["run", "--scenario", scenario, "--overrides", overrides, "--out", str(place)]
    # For a program file with capabilities, from which the kernel takes the signal of `die_with_parent`.
    words += ["--parent", str(os.getpid())]
    if algorithms is not None:
        words += ["--algorithms", str(algorithms)]
    if traffic != OWN_TRAFFIC:
        words += ["--traffic", traffic]
    if only is not None:
        words += ["--run", ",".join(map(str, only))]

    def report(message: Mapping[str, Any]) -> None:
        if progress is not None and message.get("type") == "progress":
            progress(message["done_runs"], message["total_runs"], message["done_s"], message["total_s"])

    with Scratch("kernel") as directory:
        listed = Path(directory) / "digests.txt"
        listed.write_text("\n".join(digests), encoding="utf-8")
        code, stderr = _run_program([*words, "--digests", str(listed), "--json-progress"], report)
    if code not in (0, _DOES_NOT_COUNT):
        raise failure(stderr, code, scenario)


def query(*words: str, accept: Iterable[int] = (0,), about: str | None = None) -> Any:
    """Run a command of the program that prints one JSON document; return it. `about` is the file in question."""
    done = subprocess.run([_typed(), *words], executable=program(), capture_output=True, text=True, check=False)
    if done.returncode not in set(accept):
        raise failure(done.stderr, done.returncode, about)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise EngineError(f"mptcplab-kernel {words[0]}: not JSON: {done.stdout[:200]!r}: {error}") from error


def require_valid(*words: str) -> None:
    """Raise the error of a command whose options are wrong, in words of the command line; `words` are without names.

    The program reads its options in their order, and with --help as the last it does nothing else.
    """
    done = subprocess.run([program(), *words, "--help"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        command = " ".join(itertools.takewhile(lambda word: not word.startswith("-"), words))
        raise _with_own_hint(failure(done.stderr, done.returncode), f"mptcplab {command} --help")


def call(*words: str) -> int:
    """Run a command of the program, which prints its own text; return the exit code."""
    sys.stdout.flush()
    return subprocess.run([_typed(), *words], executable=program(), check=False).returncode


def replace_process(*words: str) -> NoReturn:
    """Replace this process by the program, with its output, its signals and its exit code."""
    os.execv(program(), [_typed(), *words])


def _typed() -> str:
    """The command as the program names it in remedies.

    By its path, because the PATH of sudo does not have the environment in which it is installed.
    """
    command = Path(sys.executable).with_name(_COMMAND)
    return str(command) if command.is_file() else _COMMAND


def _with_own_hint(error: MptcplabError, command: str) -> MptcplabError:
    """The same error with a hint, if it has none."""
    if "\n\nhint: " in str(error):
        return error
    return type(error)(with_hint(str(error), f"`{command}` shows what it takes"))


def _run_program(words: list[str], report: Callable[[Mapping[str, Any]], None]) -> tuple[int, str]:
    """Run the program, pass the JSON lines that it prints to `report`; return its exit code and its stderr."""
    # In its own process group, so that it receives Ctrl-C only once, from this process.
    child = subprocess.Popen(
        [program(), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        process_group=0,
        preexec_fn=die_with_parent,
    )
    try:
        stderr: list[str] = []
        readers = (_Reader(child.stdout), _Reader(child.stderr, stderr.append))
        for line in readers[0].lines():
            message = _message(line)
            if message is not None:
                report(message)
        code = child.wait()
    except BaseException:
        end(child, signal.SIGINT, _GRACE_S)
        raise
    for reader in readers:
        reader.join()
    if code == -signal.SIGINT or code == 128 + signal.SIGINT:
        raise KeyboardInterrupt
    return code, "".join(stderr)


class _Reader(threading.Thread):
    """Reads a pipe to its end, so that the other side never blocks, and passes the lines on.

    It is a thread because a blocking read cannot always be interrupted: a library may have asked the kernel to restart
    it after a signal.
    """

    def __init__(self, pipe: IO[str] | None, take: Callable[[str], None] | None = None) -> None:
        super().__init__(daemon=True)
        assert pipe is not None
        self.pipe = pipe
        self.waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.take = take or self.waiting.put
        self.start()

    def run(self) -> None:
        with self.pipe:
            for line in self.pipe:
                self.take(line)
        self.waiting.put(None)

    def lines(self) -> Iterator[str]:
        """Every line as it arrives; an interrupt is noticed after `_POLL_S` at the latest."""
        while True:
            try:
                line = self.waiting.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            if line is None:
                return
            yield line


def _message(line: str) -> Mapping[str, Any] | None:
    """A line of JSON as an object; None for anything else, such as the output of a library."""
    try:
        found = json.loads(line)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def failure(stderr: str, code: int, file: str | None = None) -> MptcplabError:
    """An exception with everything after the first `error:` on the program's stderr."""
    _, marked, text = f"\n{stderr}".partition("\nerror: ")
    text = text.rstrip() if marked else stderr.strip()
    # What the parser of its command line says about itself is not what the user typed.
    text = _ABOUT_ITSELF.sub("", text)
    if not text:
        how = f"signal {-code} ended it" if code < 0 else f"its exit code was {code}"
        killed = code == -signal.SIGKILL
        hint = "`dmesg` says whether memory ran out" if killed else "`mptcplab doctor` checks the machine"
        return EngineError(with_hint(f"mptcplab-kernel ended without a message; {how}", hint))
    # An error that begins with a position in the user's file, or what the user changes in it, is about that file.
    if file is not None and text.startswith((f"{file}:", f"{file} does not compile", COMMAND_LINE)):
        return ScenarioError(text)
    if _OF_THE_DISK.search(text):
        return OutputError(text)
    return RefusedError(text) if _REFUSED_ALGORITHM.match(text) else EngineError(text)
