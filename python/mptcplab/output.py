"""Output directories and files: nothing is overwritten unless asked for, and no incomplete file is left behind."""

from __future__ import annotations

import glob
import itertools
import os
import platform
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from os import PathLike
from pathlib import Path

from mptcplab.capabilities import is_directory_of_engine
from mptcplab.errors import LeftoverWarning, MptcplabError, OutputError, with_hint
from mptcplab.paths import path_of

TABLES = ("run", "flow", "subflow", "link", "event", "transfer")
# Exist only where they have rows.
OPTIONAL_TABLES = ("request",)
ALL_TABLES = (*TABLES, *OPTIONAL_TABLES)
DERIVED = (
    "overrides.json",
    "checksums.json",
    "report.html",
    "summary.csv",
    "summary.json",
    "metrics.csv",
    "comparison.csv",
    "families.csv",
    "agreement.json",
    "figures",
)


# What a file is called until it is whole.
_PARTIAL = ".partial"
# Directories beside a result: a new one that is being written, and one that is being replaced, with the process.
_NEW, _FORMER = ".new-", ".former-"
# What an incomplete result is called beside an earlier one.
_UNFINISHED = ".unfinished"
_LEFT = re.compile(
    rf"(?P<kind>{re.escape(_NEW)}|{re.escape(_FORMER)})(?P<process>\d+)(-(?P<start>\d+))?(-n(?P<place>[0-9a-f]+))?"
    r"(\.partial)?"
)
# In /proc/PID/stat, after the name.
_START = 19


class PartialOutputError(Exception):
    """Raised by a writer that failed, with the error as its cause, but left a directory to be kept: `directory`."""

    directory: Path


@dataclass(frozen=True)
class Numbered:
    """A directory for results that is named after a scenario: `root/<scenario>`, or with a number appended."""

    scenario: Path
    root: Path = Path("results")

    def candidates(self) -> Iterator[Path]:
        """All such directories: the first, then that with 2 appended, and so on."""
        stem = self.scenario.stem.encode("utf-8", "replace").decode("utf-8")
        yield self.root / stem
        for number in itertools.count(2):
            yield self.root / f"{stem}-{number}"


def place(out: str | PathLike[str]) -> Path:
    """The directory that `--out` names. Results replace a directory by its name, so a link counts for what it names."""
    path = path_of(out, "out")
    return path.resolve() if path.is_symlink() else path


def fresh_directory(scenario: Path, root: Path = Path("results")) -> Path:
    """`root/<scenario>`, with the first free number appended if that exists."""
    return next(directory for directory in Numbered(scenario, root).candidates() if not directory.exists())


def is_former_result(directory: Path) -> bool:
    """Whether a directory holds an earlier result of mptcplab and nothing else.

    A killed process may have left a file there that it had begun to derive from the traces.
    """
    entries = {entry.name for entry in directory.iterdir()} - {f"{name}{_PARTIAL}" for name in DERIVED}
    engines = {name for name in entries if is_directory_of_engine(name)}
    if engines:
        return entries <= engines | set(DERIVED) and all(is_former_result(directory / engine) for engine in engines)
    known = {f"{table}.parquet" for table in ALL_TABLES} | set(DERIVED)
    return "run.parquet" in entries and entries <= known


def require_writable(directory: Path, *, force: bool, is_former: Callable[[Path], bool] = is_former_result) -> None:
    """Refuse an output directory whose contents would be lost; `is_former` says whether --force may replace them."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise OutputError(with_hint(f"output is not a directory: {directory}", "choose another --out"))
    if not any(directory.iterdir()):
        return
    if not force:
        raise OutputError(
            with_hint(
                f"output directory is not empty: {directory}",
                "choose another --out, or --force to replace an earlier result",
            )
        )
    if not is_former(directory):
        raise OutputError(
            with_hint(
                f"output directory holds files other than an earlier result: {directory}",
                "--force replaces results of mptcplab only; choose another --out",
            )
        )


def require_name(
    directory: Path, refused: type[MptcplabError] = OutputError, hint: str = "choose another --out"
) -> None:
    """Refuse a name that is no text."""
    try:
        str(directory).encode()
    except UnicodeEncodeError as error:
        shown = str(directory).encode("utf-8", "backslashreplace").decode("utf-8")
        raise refused(with_hint(f"not a name in UTF-8: {shown}", hint)) from error


def write_into(
    directory: Path,
    write: Callable[[Path], None],
    *,
    force: bool,
    is_former: Callable[[Path], bool] = is_former_result,
) -> None:
    """Let `write` create a directory beside `directory`, which it replaces when it is complete.

    If `write` raises `PartialOutputError`, what it created is kept: as `directory`, or as `directory.unfinished` beside
    an earlier result, which then stays; the error's `directory` says where. After any other error nothing is left.
    What runs that were killed have left is put right first.
    """
    require_name(directory)
    put_right(directory)
    require_writable(directory, force=force, is_former=is_former)
    made = _missing(directory.parent)
    new = directory.with_name(f"{directory.name}{_NEW}{_process()}")
    try:
        with writing(f"create output directory: {directory.parent}", "choose another --out"):
            directory.parent.mkdir(parents=True, exist_ok=True)
        write(new)
    except PartialOutputError as partial:
        partial.directory = _keep_unfinished(new, directory)
        raise
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        for parent in made:
            # What another run has begun there stays.
            with suppress(OSError):
                parent.rmdir()
        raise
    _replace(directory, new)


def _replace(directory: Path, new: Path) -> None:
    """Put `new` in the place of `directory`. If this is interrupted, `put_right` finds the former one."""
    former = directory.with_name(f"{directory.name}{_FORMER}{_process()}")
    if directory.exists():
        directory.rename(former)
    new.rename(directory)
    try:
        shutil.rmtree(former, ignore_errors=True)
    finally:
        # If an interrupt came meanwhile.
        shutil.rmtree(former, ignore_errors=True)


def _keep_unfinished(new: Path, directory: Path) -> Path:
    """Give an incomplete result a name of its own where an earlier one stays; return it."""
    if not directory.exists() or not any(directory.iterdir()):
        _replace(directory, new)
        return directory
    number, kept = 1, directory.with_name(f"{directory.name}{_UNFINISHED}")
    while kept.exists():
        number += 1
        kept = directory.with_name(f"{directory.name}{_UNFINISHED}-{number}")
    new.rename(kept)
    return kept


def put_right(directory: Path) -> None:
    """Clear away what killed processes left of runs into `directory`; say so where something had been lost."""
    if not directory.parent.is_dir():
        return
    for left in sorted(directory.parent.glob(f"{glob.escape(directory.name)}.*")):
        found = _LEFT.fullmatch(left.name.removeprefix(directory.name))
        if found is None or not left.is_dir() or _is_alive(found):
            continue
        if left.is_symlink() or left.stat().st_uid != os.geteuid():
            # Whoever put it there could choose what the result is.
            warnings.warn(f"not what a run of this user left, and left alone: {left}", LeftoverWarning, 3)
            continue
        kind = found["kind"]
        if kind == _FORMER and not directory.exists():
            left.rename(directory)
            warnings.warn(f"a run was killed; its former result is back: {directory}", LeftoverWarning, 3)
            continue
        shutil.rmtree(left, ignore_errors=True)
        if kind == _NEW:
            warnings.warn(f"a run was killed; what it left is removed: {left}", LeftoverWarning, 3)


def is_unfinished(directory: Path) -> bool:
    """Whether a directory is an incomplete result beside an earlier one."""
    return re.search(rf"{re.escape(_UNFINISHED)}(-\d+)?$", directory.name) is not None


def is_left_behind(directory: Path) -> bool:
    """Whether a directory is what a killed process left of a run: a new result, or a former one it had moved aside."""
    found = _LEFT.search(directory.name)
    return found is not None and found.end() == len(directory.name) and not _is_alive(found)


def _process() -> str:
    """This process: its identifier, when it began, because identifiers are used again, and where it has that one."""
    start = _start(os.getpid())
    own = f"{os.getpid()}" if start is None else f"{os.getpid()}-{start}"
    return f"{own}-n{_place()}"


@cache
def _place() -> str:
    """The host and the container of this process: others have processes with the same identifiers."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return sha256(f"{platform.node()} {namespace}".encode()).hexdigest()[:8]


def _start(process: int) -> str | None:
    """When a process began, in clock ticks since the boot; None if there is none or if it cannot be known."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[_START]


def _is_alive(left: re.Match[str]) -> bool:
    """Whether the process that a directory is named after lives; what is known of no other place is taken to live."""
    if left["place"] not in (None, _place()):
        return True
    process = int(left["process"])
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    now = _start(process)
    return left["start"] is None or now is None or now == left["start"]


@contextmanager
def writing(what: str, hint: str) -> Iterator[None]:
    """Raise `OutputError` ("cannot `what`: reason") if the operating system refuses to write."""
    try:
        yield
    except OSError as error:
        raise OutputError(with_hint(f"cannot {what}: {error.strerror}", hint)) from error


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a file so that a reader never sees an incomplete one; `durable` also after a power failure."""
    write_bytes(path, text.encode(), durable=durable)


def write_lines(path: Path, pieces: Iterable[str]) -> None:
    """Like `write_text`, for a text in pieces."""
    with whole(path) as partial, partial.open("x", encoding="utf-8", newline="") as file:
        file.writelines(pieces)


def write_bytes(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Like `write_text`, for bytes."""
    with whole(path) as partial:
        with partial.open("xb") as file:
            file.write(content)
        if durable:
            synchronize(partial)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a name to write to, and the file the name `path` if nothing fails."""
    partial = path.with_name(path.name + _PARTIAL)
    # What a killed process or somebody else left under this name is not written to: it may be a link.
    partial.unlink(missing_ok=True)
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def synchronize(path: Path) -> None:
    """Wait until the content of a file is on the disk: a rename may be there before it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _missing(parent: Path) -> list[Path]:
    """The directories that do not exist yet, innermost first, so that a failure can remove them."""
    missing: list[Path] = []
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    return missing
