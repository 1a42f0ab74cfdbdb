"""Output directories and files: nothing is overwritten unless asked for, and no incomplete file is left behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mptcplab.capabilities import is_directory_of_engine
from mptcplab.errors import OutputError, with_hint

TABLES = ("run", "flow", "subflow", "link", "event", "transfer")
DERIVED = (
    "overrides.json",
    "report.html",
    "summary.csv",
    "summary.json",
    "metrics.csv",
    "comparison.csv",
    "agreement.json",
    "figures",
)


class PartialOutputError(Exception):
    """Raised by a writer that failed, with the error as its cause, but left a directory to be kept."""


def fresh_directory(scenario: Path, root: Path = Path("results")) -> Path:
    """`root/<scenario>`, with the first free number appended if that exists."""
    number = 1
    while True:
        name = scenario.stem if number == 1 else f"{scenario.stem}-{number}"
        candidate = root / name
        if not candidate.exists() and not candidate.with_name(name + ".partial").exists():
            return candidate
        number += 1


def is_former_result(directory: Path) -> bool:
    """Whether a directory holds an earlier result of mptcplab and nothing else."""
    entries = {entry.name for entry in directory.iterdir()}
    engines = {name for name in entries if is_directory_of_engine(name)}
    if engines:
        return entries <= engines | set(DERIVED) and all(is_former_result(directory / engine) for engine in engines)
    known = {f"{table}.parquet" for table in TABLES} | set(DERIVED)
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


def write_into(
    directory: Path,
    write: Callable[[Path], None],
    *,
    force: bool,
    is_former: Callable[[Path], bool] = is_former_result,
) -> None:
    """Let `write` create `directory`; an earlier result is removed only after the new one is complete.

    If `write` raises anything but `PartialOutputError`, the new directory is removed again.
    """
    require_writable(directory, force=force, is_former=is_former)
    made = _make_parents(directory.parent)
    former = directory.with_name(f"{directory.name}.former-{os.getpid()}")
    if directory.exists():
        directory.rename(former)
    try:
        write(directory)
    except PartialOutputError:
        if former.exists():
            shutil.rmtree(former)
        raise
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        if former.exists():
            former.rename(directory)
        for parent in made:
            if not any(parent.iterdir()):
                parent.rmdir()
        raise
    if former.exists():
        shutil.rmtree(former)


@contextmanager
def writing(what: str, hint: str) -> Iterator[None]:
    """Raise `OutputError` ("cannot `what`: reason") if the operating system refuses to write."""
    try:
        yield
    except OSError as error:
        raise OutputError(with_hint(f"cannot {what}: {error.strerror}", hint)) from error


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader never sees an incomplete one."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Like `write_text`, for bytes."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _make_parents(parent: Path) -> list[Path]:
    """Create missing parents; return those created, innermost first, so that a failure can remove them."""
    missing: list[Path] = []
    at = parent
    while not at.exists():
        missing.append(at)
        at = at.parent
    with writing(f"create output directory: {parent}", "choose another --out"):
        parent.mkdir(parents=True, exist_ok=True)
    return missing
