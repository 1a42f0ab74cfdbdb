"""What results are where: results, finished runs of unfinished results, and what killed processes left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from mptcplab import kept
from mptcplab.capabilities import is_directory_of_engine
from mptcplab.errors import MptcplabError, ResultsError, with_hint
from mptcplab.output import is_left_behind, is_unfinished
from mptcplab.paths import path_of
from mptcplab.terminal import note
from mptcplab.text import Table, counted, size
from mptcplab.trace.reader import COMPLETE, label, require_readable_name, tables_in

_COLUMNS = ("engine", "build", "scenario", "cc", "axes", "rep", "seed", "status")


@dataclass(frozen=True)
class Found:
    """A results directory, or one with runs of an unfinished result.

    `state` is "complete", "in use" (a process is making it), "unfinished" (some runs of a result that is not complete),
    "not counted" (some runs do not count), "left behind" (of a process that was killed), "damaged" or
    "unreadable" (this user may not read it).
    """

    directory: str
    state: str
    scenario: str
    engines: tuple[str, ...]
    algorithms: tuple[str, ...]
    configurations: int
    repetitions: int
    runs: int
    bytes: int
    builds: tuple[str, ...]
    remark: str

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self)


def ls(directory: str | PathLike[str] = "results") -> list[Found]:
    """All results below a directory, by their paths.

    >>> import mptcplab, tempfile
    >>> place = tempfile.mkdtemp()
    >>> _ = mptcplab.run("scenarios/dolia-scenario-1.toml", "lia", 2, duration="12 s", out=f"{place}/demo")
    >>> [(found.state, found.algorithms, found.repetitions) for found in mptcplab.ls(place)]
    [('complete', ('lia',), 2)]
    """
    place = path_of(directory, "directory")
    if not place.is_dir():
        what = "not a directory" if place.exists() else "no such directory"
        raise ResultsError(with_hint(f"{what}: {place}", "name a directory with results below it"))
    unreadable: dict[Path, OSError] = {}
    found = [_found(path) for path in sorted(_results(place, unreadable))]
    for closed, error in unreadable.items():
        reason = f"cannot look into a directory: {closed}: {error.strerror}"
        if closed == place:
            raise ResultsError(with_hint(reason, "name a directory that you may read"))
        note(f"note: {reason}")
    return found


def table(found: list[Found]) -> Table:
    """The same as a table."""
    head = ("Directory", "Status", "Scenario", "Engines", "Algorithms", "Repetitions", "Runs", "Size", "Build")
    rows = [
        (
            one.directory,
            one.state,
            one.scenario,
            ", ".join(one.engines),
            ", ".join(one.algorithms),
            f"{one.repetitions:,}",
            f"{one.runs:,}",
            size(one.bytes),
            " | ".join(build.partition(",")[0] for build in one.builds),
        )
        for one in found
    ]
    notes = tuple(f"{one.directory}: {one.remark}" for one in found if one.remark)
    return Table(tuple((name, "") for name in head), tuple(rows), notes)


def _results(place: Path, unreadable: dict[Path, OSError]) -> Iterator[Path]:
    """The results directories at and below a place; directories that cannot be read are added with their errors."""
    try:
        if _is_result(place) or kept.is_kept(place):
            yield place
            return
        below = sorted(path for path in place.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError as error:
        unreadable[place] = error
        return
    for path in below:
        if not path.name.startswith("."):
            yield from _results(path, unreadable)


def _is_result(place: Path) -> bool:
    if (place / "run.parquet").is_file():
        return True
    below = [path for path in place.iterdir() if is_directory_of_engine(path.name)]
    return not kept.is_kept(place) and any((path / "run.parquet").is_file() for path in below)


def _found(place: Path) -> Found:
    unfinished = kept.is_kept(place)
    try:
        require_readable_name(place)
        traces = kept.traces_in(place) if unfinished else tables_in(place)
        frames = [pl.scan_parquet(trace / "run.parquet").select(_COLUMNS).collect() for trace in traces]
        rows = pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(_COLUMNS, pl.String))
    except (pl.exceptions.PolarsError, OSError, MptcplabError) as error:
        remark = str(error).partition("\n")[0]
        state = "unreadable" if isinstance(error, PermissionError) else "damaged"
        return Found(str(place), state, "", (), (), 0, 0, 0, _bytes(place), (), remark)
    bad = rows.filter(pl.col("status") != COMPLETE).height
    labels = rows.select("cc", "axes", "engine").unique(maintain_order=True)
    repetitions = rows.group_by("cc", "axes", "engine").len()["len"].max()
    state, remark = "complete", ""
    if bad:
        state, remark = (
            "not counted",
            f"{counted(bad, 'run')} of {rows.height:,} {'does' if bad == 1 else 'do'} not count",
        )
    if unfinished and kept.is_in_use(kept.result_of(place)):
        state, remark = "in use", "a command is making it"
    elif unfinished:
        state, remark = "unfinished", "the same command goes on with it; remove it if you do not want it"
    elif is_unfinished(place):
        # Its runs may all be complete, but it has not all that it was to have.
        state, remark = "unfinished", "an error ended its command; it has what was there by then"
    elif is_left_behind(place):
        state, remark = "left behind", "by a run that was killed; the next run into the same directory puts it right"
    return Found(
        directory=str(place),
        state=state,
        scenario=_listed(rows["scenario"]),
        engines=tuple(rows["engine"].unique(maintain_order=True)),
        algorithms=tuple(rows["cc"].unique(maintain_order=True)),
        configurations=len({label(cc, axes) for cc, axes, _ in labels.iter_rows()}),
        repetitions=int(repetitions) if isinstance(repetitions, int) else 0,
        runs=rows.height,
        bytes=_bytes(place),
        builds=tuple(rows["build"].unique(maintain_order=True)),
        remark=remark,
    )


def _listed(names: pl.Series) -> str:
    return ", ".join(names.unique(maintain_order=True))


def _bytes(place: Path) -> int:
    total = 0
    for parent, _, files in os.walk(place):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118
            except OSError:
                continue
    return total
