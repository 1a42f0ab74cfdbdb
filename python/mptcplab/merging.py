"""Results that are joined: the runs of several results directories in one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from mptcplab import _core, output
from mptcplab.capabilities import directory_of, in_order, is_machine
from mptcplab.errors import MixedResultsWarning, MptcplabError, ResultsError, with_hint
from mptcplab.output import ALL_TABLES, require_writable, write_into, write_text
from mptcplab.paths import path_of
from mptcplab.results import Results
from mptcplab.terminal import note
from mptcplab.text import counted
from mptcplab.trace import checksums
from mptcplab.trace.reader import OVERRIDES, label, tables_in

PathArg = str | PathLike[str]
# Keys of a resolved run that differ between the runs of one configuration.
_OF_ONE_RUN = ("run", "rep", "seed", "axes")
# The digest of an algorithm's C file, at the end of a path.
_SOURCE = ".source"
_COLUMNS = ("run", "engine", "build", "cc", "axes", "rep", "seed", "resolved", "host", "events", "packet_hops")


@dataclass(frozen=True)
class _Run:
    """A run of one of the results."""

    trace: Path
    row: Mapping[str, Any]

    @property
    def label(self) -> str:
        return label(self.row["cc"], self.row["axes"])

    @property
    def identity(self) -> tuple[object, ...]:
        """The same for copies of one run; two measurements on a kernel differ in their record or their counts.

        A point of a sweep and the same settings outside of it are two configurations, of which none may lose a run.
        """
        names = ("engine", "build", "rep", "seed", "host", "events", "packet_hops")
        return (self.label, json.dumps(setup(self.row["resolved"])), *(self.row[name] for name in names))


def merge(*directories: PathArg, out: PathArg, force: bool = False) -> Results:
    """Join the results of several directories in `out`, and return them; the directories stay as they are.

    Runs are in the order of the directories; a run that several directories have is taken once. It is an error if runs
    that have the same name in the tables have different settings. Warns of different builds.
    If the same call has joined the same runs before, its result stays; `force` replaces an earlier result in `out`.

    >>> import mptcplab, tempfile
    >>> place, scenario = tempfile.mkdtemp(), "scenarios/dolia-scenario-1.toml"
    >>> for cc in ("lia", "olia"):
    ...     _ = mptcplab.run(scenario, cc, 1, duration="12 s", out=f"{place}/{cc}")
    >>> mptcplab.merge(f"{place}/lia", f"{place}/olia", out=f"{place}/both").runs["cc"].to_list()
    ['lia', 'olia']
    """
    if len(directories) < 2:
        raise MptcplabError(with_hint("nothing to merge", "name two results directories or more"))
    places = [path_of(directory, "directories") for directory in directories]
    target = output.place(out)
    if any(place.resolve() == target.resolve() for place in places):
        raise MptcplabError(
            with_hint(f"the merged results would replace a part of them: {target}", "choose another --out")
        )
    runs = list(_distinct(run for place in places for run in _runs_of(place)))
    asked = json.dumps({"merged": [str(place) for place in places], **_machines(runs)}) + "\n"
    if not force and _has(target, runs, asked):
        note(f"nothing to join: {target} has these {counted(len(runs), 'run')}; --force joins them again")
        return Results.open(target)
    require_writable(target, force=force)
    _require_one_meaning(runs)
    _warn_of_builds(runs)
    write_into(target, lambda new: _write(new, runs, asked), force=force)
    return Results.open(target)


def setup(resolved: str) -> dict[str, Any]:
    """A resolved run without what differs between the runs of one configuration."""
    return {key: value for key, value in json.loads(resolved).items() if key not in _OF_ONE_RUN}


def setup_differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two resolved runs differ, as texts. Links and flows are called by their names.

    >>> list(setup_differences({"links": [{"name": "A", "rate_bps": 1}]}, {"links": [{"name": "A", "rate_bps": 2}]}))
    ['links.A.rate_bps: 1 and 2']
    """
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(str(key), one.get(key), other.get(key)) for key in dict.fromkeys([*one, *other])]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        names = [part["name"] if isinstance(part, dict) and "name" in part else str(at) for at, part in enumerate(one)]
        pairs = list(zip(names, one, other, strict=True))
    elif one != other and path.endswith(_SOURCE) and isinstance(one, str) and isinstance(other, str):
        digests = f"{one[:8]} and {other[:8]}"
        yield f"{path.removesuffix(_SOURCE)}: two C files of one name (their SHA-256 begins with {digests})"
        return
    elif one != other:
        texts = (json.dumps(value) for value in (one, other))
        yield f"{path}: " + " and ".join(text if len(text) <= 60 else f"{text[:57]}..." for text in texts)
        return
    else:
        return
    for name, mine, theirs in pairs:
        yield from setup_differences(mine, theirs, f"{path}.{name}" if path else name)


def _has(directory: Path, runs: Sequence[_Run], asked: str) -> bool:
    """Whether a former call has joined these runs there; it may have been killed before it wrote the report."""
    if not (directory / OVERRIDES).is_file() or not output.is_former_result(directory):
        return False
    if (directory / OVERRIDES).read_text(encoding="utf-8") != asked:
        return False
    wanted = [run.identity for engine in _engines(runs) for run in runs if run.row["engine"] == engine]
    return [run.identity for run in _runs_of(directory)] == wanted


def _runs_of(directory: Path) -> Iterator[_Run]:
    # Raises for what is no results directory.
    Results.open(directory)
    for part in tables_in(directory):
        for table in ALL_TABLES:
            if (part / f"{table}.parquet").is_file():
                checksums.verify(part / f"{table}.parquet")
        rows = pl.scan_parquet(part / "run.parquet")
        missing = [name for name in _COLUMNS if name not in rows.collect_schema().names()]
        if missing:
            hint = "run its scenario again with this version"
            raise ResultsError(with_hint(f"written by another version of mptcplab, without {missing[0]}: {part}", hint))
        yield from (_Run(part, row) for row in rows.select(_COLUMNS).collect().iter_rows(named=True))


def _distinct(runs: Iterable[_Run]) -> Iterator[_Run]:
    seen: set[object] = set()
    for run in runs:
        if run.identity not in seen:
            seen.add(run.identity)
            yield run


def _require_one_meaning(runs: Iterable[_Run]) -> None:
    """Raise an error if runs with the same name in the tables have different settings."""
    first: dict[tuple[str, str], _Run] = {}
    for run in runs:
        other = first.setdefault((run.label, run.row["engine"]), run)
        difference = next(setup_differences(setup(other.row["resolved"]), setup(run.row["resolved"])), None)
        if difference is not None:
            hint = "`mptcplab compare` compares them; runs of a --sweep over a key have its values in their names"
            message = f"{run.label} is not the same in {other.trace} and {run.trace}: {difference}"
            raise ResultsError(with_hint(message, hint))


def _warn_of_builds(runs: Iterable[_Run]) -> None:
    by_engine: dict[str, set[str]] = {}
    for run in runs:
        by_engine.setdefault(run.row["engine"], set()).add(run.row["build"])
    for engine, builds in by_engine.items():
        if len(builds) > 1:
            text = f"runs on {engine} are of {counted(len(builds), 'build')}: {'; '.join(sorted(builds))}"
            warnings.warn(text, MixedResultsWarning, 3)


def _machines(runs: Iterable[_Run]) -> dict[str, list[str]]:
    """The order of emulated machines, which directories do not have."""
    names = list(dict.fromkeys(directory_of(run.row["engine"]) for run in runs if is_machine(run.row["engine"])))
    return {"machines": names} if len(names) > 1 else {}


def _engines(runs: Iterable[_Run]) -> list[str]:
    return in_order(dict.fromkeys(run.row["engine"] for run in runs))


def _write(directory: Path, runs: Sequence[_Run], asked: str) -> None:
    engines = _engines(runs)
    several = len(engines) > 1
    if several:
        directory.mkdir()
    for engine in engines:
        chosen = [(run.trace, run.row["run"]) for run in runs if run.row["engine"] == engine]
        _core.merge_traces(chosen, directory / directory_of(engine) if several else directory)
    write_text(directory / OVERRIDES, asked)
