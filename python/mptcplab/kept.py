"""Runs that are finished before their sweep is: kept beside the result, and found again by the digest of each.

While results are made for `x`, every finished run is added to `x.partial`: a directory for each engine, with small
traces that are numbered in the order in which they were written. When the result is complete it has all of them, and
`x.partial` goes. After an interrupt, an error or a crash it stays, and the next run of the same scenario goes on with
it. Traces appear whole or not at all, and have the checksums of their tables.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mptcplab.capabilities import directory_of, engine_of, is_directory_of_engine
from mptcplab.errors import DamagedResultWarning, OutputError, ResultsError, with_hint
from mptcplab.output import ALL_TABLES, is_former_result, write_bytes, write_text, writing
from mptcplab.text import counted
from mptcplab.trace import checksums
from mptcplab.trace.reader import COMPLETE, tables_in

SUFFIX = ".partial"
_README, _STORE, _GONE = "README.txt", "store", "removed"
# How long a lock may be in the way that only asks whether a directory is in use.
_PATIENCE_S = 0.1
_UNFINISHED = """\
What is finished of {name}, whose command has not come to its end.

The same command goes on with it, and removes this directory when the result is complete. If you do not want it,
remove the directory; `mptcplab ls` shows what is in it.
"""
_LASTING = """\
Runs of emulated machines for {name}, whose command takes them from here as long as they would be the same.

If you do not want them, remove the directory: they are made again.
"""
# The table in which a flipped bit could be taken for another sweep's run.
_HAS_DIGESTS = ("run",)
_NUMBER = re.compile(r"\d{6}")
_INVALID = "invalid"
# The parts of a digest, in their order, as one speaks of another one.
_PARTS = ("another scenario or other settings", "another version of an algorithm", "another build or kernel")


@dataclass(frozen=True)
class Run:
    """A finished run: the directory of its trace, and its number there."""

    trace: Path
    number: int
    digest: str
    engine: str
    status: str

    @property
    def counts(self) -> bool:
        """Whether it need not be made again: it is complete, or would not count however often it is made."""
        return self.status == COMPLETE or (self.status == _INVALID and not engine_of(self.engine).real_time)


def runs_of(traces: Iterable[Path], *, checked: Sequence[str] = ALL_TABLES) -> list[Run]:
    """The runs of traces whose digests are known; warns of a trace that is damaged, and leaves it out.

    Only the tables that are `checked` are compared with their checksums.
    """
    found: list[Run] = []
    for trace in traces:
        try:
            for table in checked:
                if (trace / f"{table}.parquet").is_file():
                    checksums.verify(trace / f"{table}.parquet")
            rows = pl.read_parquet(trace / "run.parquet", columns=["run", "digest", "engine", "status"])
        except pl.exceptions.ColumnNotFoundError:
            continue
        except (ResultsError, pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).partition("\n")[0]
            reason = reason if str(trace) in reason else f"{trace}: {reason}"
            warnings.warn(f"finished runs are damaged and are made again: {reason}", DamagedResultWarning, 2)
            continue
        found += [Run(trace, *row) for row in rows.iter_rows() if row[1]]
    return found


def _runs_in_silence(traces: Iterable[Path], *, checked: Sequence[str] = _HAS_DIGESTS) -> list[Run]:
    """The same without a warning."""
    with warnings.catch_warnings(action="ignore", category=DamagedResultWarning):
        return runs_of(traces, checked=checked)


def usable(runs: Iterable[Run]) -> dict[str, Run]:
    """By digest, the runs that need not be made again."""
    return {run.digest: run for run in runs if run.counts}


def why_not(digests: Iterable[str], wanted: Iterable[str]) -> str:
    """What differs in runs that are of no use: the scenario, an algorithm, or the build."""
    known = [set(part) for part in zip(*(digest.split("-") for digest in wanted), strict=True)]
    differing = set()
    for digest in digests:
        parts = zip(digest.split("-"), known, strict=False)
        wrong = [position for position, (part, others) in enumerate(parts) if part not in others]
        # With another scenario or setting, it matters little what else is new.
        differing.add(wrong[0] if wrong else 0)
    return " and of ".join(_PARTS[position] for position in sorted(differing))


def extendable(directory: Path, wanted: Iterable[str]) -> list[Run] | None:
    """The runs of an earlier result if a sweep with the digests `wanted` has all of them, so that nothing is lost."""
    runs = former_runs(directory)
    if not runs or not {run.digest for run in runs} <= set(wanted):
        return None
    return runs_of(tables_in(directory))


def former_runs(directory: Path) -> list[Run]:
    """The runs of an earlier result if the digests of all are known; otherwise none. Checksums are not compared."""
    if not directory.is_dir() or not any(directory.iterdir()) or not is_former_result(directory):
        return []
    found: list[Run] = []
    for part in tables_in(directory):
        runs = _runs_in_silence([part], checked=())
        if not runs or len(runs) != pl.scan_parquet(part / "run.parquet").select(pl.len()).collect().item():
            return []
        found += runs
    return found


def damage(directory: Path) -> str | None:
    """Why the runs of an earlier result cannot be listed, if they are damaged."""
    if not directory.is_dir() or not any(directory.iterdir()) or not is_former_result(directory):
        return None
    for part in tables_in(directory):
        try:
            checksums.verify(part / "run.parquet")
            pl.read_parquet(part / "run.parquet")
        except (ResultsError, pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).partition("\n")[0]
            return reason if str(part) in reason else f"{part}: {reason}"
    return None


def beside(directory: Path) -> Path:
    """Where the finished runs of an unfinished result are kept."""
    return directory.with_name(directory.name + SUFFIX)


def result_of(directory: Path) -> Path:
    """The inverse of `beside`; another directory is its own."""
    return directory.with_name(directory.name.removesuffix(SUFFIX))


def is_kept(directory: Path) -> bool:
    """Whether a directory has finished runs of an unfinished result."""
    return directory.name.endswith(SUFFIX) and (directory / _README).is_file()


def traces_in(directory: Path) -> list[Path]:
    """The traces in a directory of finished runs, of all engines."""
    places = [place for place in sorted(directory.iterdir()) if place.is_dir() and is_directory_of_engine(place.name)]
    return [trace for place in places for trace in sorted(place.iterdir()) if _NUMBER.fullmatch(trace.name)]


def files_in(place: Path) -> dict[str, bytes]:
    """The files of all traces in an engine's place for finished runs, by their paths there."""
    return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


def add(place: Path, files: Mapping[str, bytes]) -> None:
    """Add traces that another machine has made to an engine's place for finished runs: see `files_in`."""
    number = max((int(trace.name) for trace in place.iterdir() if _NUMBER.fullmatch(trace.name)), default=0)
    traces: dict[str, dict[str, bytes]] = {}
    for name, content in sorted(files.items()):
        trace, _, table = name.partition("/")
        traces.setdefault(trace, {})[table] = content
    for position, tables in enumerate(traces.values(), number + 1):
        new = place / "incoming"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        for table, content in tables.items():
            write_bytes(new / table, content)
        new.rename(place / f"{position:06}")


@dataclass(frozen=True)
class Workspace:
    """A directory for finished runs that this process alone uses."""

    directory: Path

    def place(self, engine: str) -> Path:
        """Where an engine adds its finished runs."""
        place = self.directory / directory_of(engine)
        place.mkdir(exist_ok=True)
        return place

    def runs(self) -> list[Run]:
        """All finished runs; see `runs_of`, which has said by now what is damaged."""
        return _runs_in_silence(traces_in(self.directory))

    def keep_only(self, digests: Iterable[str]) -> None:
        """Remove the traces of which no run has one of these digests."""
        wanted = set(digests)
        for trace in traces_in(self.directory):
            if not any(run.digest in wanted for run in _runs_in_silence([trace])):
                _remove(trace)

    def clear(self, used: Mapping[str, Run] | set[str]) -> list[Run]:
        """Remove the traces whose runs are all used, and those that are damaged; return the runs that stay."""
        stay: list[Run] = []
        for trace in traces_in(self.directory):
            runs = _runs_in_silence([trace])
            if all(run.digest in used for run in runs):
                _remove(trace)
            else:
                stay += runs
        return stay


def _remove(trace: Path) -> None:
    """Remove a trace so that an interrupt does not leave one that looks damaged."""
    gone = trace.with_name(_GONE)
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(OSError):
        trace.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


@contextmanager
def workspace(result: Path) -> Iterator[Workspace]:
    """The directory for finished runs beside a result; at the end it is removed if no runs are in it.

    Raises `OutputError` if another process uses it, or if somebody else has made it.
    """
    with _unfinished(result) as directory:
        yield Workspace(directory)


@contextmanager
def lasting(directory: Path) -> Iterator[Workspace]:
    """A directory for runs that stay when their result is complete. Raises the same."""
    with _own_directory(directory, _LASTING.format(name=directory.name)):
        yield Workspace(directory)


@contextmanager
def stored(result: Path) -> Iterator[Path]:
    """A directory beside a result for what a study has measured, until `discard_store`. Raises the same."""
    with _unfinished(result) as directory:
        yield directory / _STORE


def discard_store(result: Path) -> None:
    """Remove what was stored for a result that is complete, unless another process uses it."""
    with suppress(OutputError), stored(result) as store:
        shutil.rmtree(store, ignore_errors=True)


def _unfinished(result: Path) -> AbstractContextManager[Path]:
    return _own_directory(beside(result), _UNFINISHED.format(name=result.name))


@contextmanager
def _own_directory(directory: Path, text: str) -> Iterator[Path]:
    lock, is_new = None, not directory.exists()
    try:
        lock = _locked(directory)
        _require_own(directory)
        try:
            with writing(f"write to {directory}", "make room there, or choose another --out"):
                write_text(directory / _README, text)
            yield directory
        finally:
            if not traces_in(directory) and not _has_files(directory / _STORE):
                shutil.rmtree(directory, ignore_errors=True)
    finally:
        if lock is not None:
            os.close(lock)
        # Interrupted before anything was in it.
        with suppress(OSError):
            if is_new:
                directory.rmdir()


def _locked(directory: Path, patience_s: float = _PATIENCE_S) -> int:
    """The open directory, which no other process has locked; it is created if necessary."""
    while True:
        with writing(f"create {directory}", "choose another --out"):
            directory.mkdir(parents=True, exist_ok=True)
            try:
                lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue
        if not _lock(lock, fcntl.LOCK_EX, patience_s):
            os.close(lock)
            hint = "wait until it has ended, or choose another --out"
            raise OutputError(with_hint(f"another run is writing to {result_of(directory)}", hint))
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), directory.stat()):
                return lock
        # The process that held it has removed it.
        os.close(lock)


@contextmanager
def only_writer(directory: Path, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Keep other commands from writing to a directory. It is created if necessary, and removed if it stays empty.

    Raises `OutputError` if another command writes there for longer than `patience_s`.
    """
    is_new = not directory.exists()
    lock = _locked(directory, patience_s)
    try:
        yield
    finally:
        with suppress(OSError):
            if is_new:
                directory.rmdir()
        os.close(lock)


def is_in_use(result: Path) -> bool:
    """Whether another process is making a result."""
    try:
        lock = os.open(beside(result), os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _lock(lock, fcntl.LOCK_SH)
    finally:
        os.close(lock)


def numbered(result: Path) -> list[Path]:
    """Directories of finished runs beside a result whose names differ in the number at their end only."""
    stem = re.sub(r"-\d+$", "", result.name)
    name = re.compile(rf"{re.escape(stem)}(-\d+)?{re.escape(SUFFIX)}")
    if not result.parent.is_dir():
        return []
    return [path for path in sorted(result.parent.iterdir()) if name.fullmatch(path.name) and is_kept(path)]


def all_of(runs: Iterable[Run]) -> str:
    """How many different runs there are, as text."""
    return counted(len({run.digest for run in runs}), "finished run")


def place_of(trace: Path) -> Path:
    """The directory, as users know it, to which a trace belongs: a result, or one of finished runs."""
    return next((place for place in trace.parents if (place / _README).is_file()), trace)


def _has_files(directory: Path) -> bool:
    return directory.is_dir() and any(directory.iterdir())


def _lock(descriptor: int, how: int, patience_s: float = 0) -> bool:
    """Lock an open directory; False if it was locked for longer than that."""
    end = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.01)
        else:
            return True


def _require_own(directory: Path) -> None:
    """Refuse a directory that is none of ours: what is in it would be read, and removed at the end."""
    hint = "move it elsewhere, or choose another --out"
    if directory.is_symlink() or not directory.is_dir():
        raise OutputError(with_hint(f"not a directory: {directory}", hint))
    if directory.stat().st_uid != os.geteuid():
        raise OutputError(with_hint(f"the directory of unfinished runs is somebody else's: {directory}", hint))
    if any(directory.iterdir()) and not (directory / _README).is_file():
        raise OutputError(with_hint(f"not a directory of unfinished runs: {directory}", hint))
