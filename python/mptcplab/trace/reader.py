"""The traces of a sweep: tables on disk, opened as data frames."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from mptcplab.capabilities import ENGINES, VM, is_directory_of_engine
from mptcplab.errors import ResultsError, with_hint
from mptcplab.output import ALL_TABLES, OPTIONAL_TABLES, TABLES, require_name
from mptcplab.trace import checksums, equilibria, machines, optional, rules, schedules
from mptcplab.trace.topology import Topology

if TYPE_CHECKING:
    from mptcplab.scratch import Scratch

# The label of a combination of axis values: the algorithm, and the values of other axes.
CONFIG = "config"
COMPLETE = "complete"
# Keys of a resolved run, with their values, that differ between repetitions and are not part of a topology. Quotation
# marks within a text are escaped, so that this is never a part of a name.
_OF_ONE_RUN = re.compile(r'"(run|rep|seed)":\d+,')
# The caller's overrides, stored beside the trace so that the report can name the command.
OVERRIDES = "overrides.json"


@dataclass(frozen=True)
class ExcludedRun:
    """A run that does not count: it ended early ("partial"), or its links were emulated too late ("invalid")."""

    run: int
    config: str
    rep: int
    engine: str
    status: str
    reason: str

    @property
    def text(self) -> str:
        """One line that says why the run does not count."""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.config}, repetition {self.rep + 1} ({self.engine}) is {self.status} and not counted{why}"

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self)


def require_readable_name(directory: Path) -> None:
    """Raise `ResultsError` for a name that is no text, which Polars cannot take."""
    require_name(directory, ResultsError, "rename the directory; in a locale without UTF-8, set LC_ALL=C.UTF-8")


# Columns without which a file is another table, by the table that it should be.
_KEYS = {"flow": ("run", "t_ns", "flow"), "subflow": ("run", "t_ns", "subflow"), "link": ("run", "t_ns", "link")}


def _check_readable(directory: Path) -> None:
    """Raise `ResultsError` for overrides that are no JSON, and for tables that are no Parquet or other tables."""
    require_readable_name(directory)
    overrides = directory / OVERRIDES
    if overrides.is_file():
        try:
            json.loads(overrides.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ResultsError(with_hint(f"not JSON: {overrides}: {error}", checksums.RESTORE)) from error
    for part in tables_in(directory) if directory.is_dir() else ():
        for file in (part / f"{table}.parquet" for table in ALL_TABLES):
            if not file.is_file():
                continue
            try:
                # Not its schema alone: a signal that arrives while Polars reads that is a panic of Polars.
                columns = pl.read_parquet(file, n_rows=0).columns
            except (pl.exceptions.PolarsError, OSError) as error:
                # Where it is known what was written, that is the better message.
                checksums.verify(file)
                reason = str(error).partition("\n")[0]
                hint = checksums.RESTORE
                raise ResultsError(with_hint(f"cannot read results: {file}: {reason}", hint)) from error
            missing = [name for name in _KEYS.get(file.stem, ()) if name not in columns]
            if missing:
                checksums.verify(file)
                reason = f"it has no column {missing[0]}"
                raise ResultsError(with_hint(f"cannot read results: {file}: {reason}", checksums.RESTORE))


@dataclass(frozen=True)
class _Part:
    """A directory of tables that one engine wrote, and the offset that makes its run numbers unique."""

    directory: Path
    offset: int
    # Tables whose checksum has been compared.
    verified: set[str] = field(default_factory=set)

    def has(self, table: str) -> bool:
        """Whether it has the table; only those that are optional may be missing."""
        return table not in OPTIONAL_TABLES or (self.directory / f"{table}.parquet").is_file()

    def scan(self, table: str) -> pl.LazyFrame:
        path = self.directory / f"{table}.parquet"
        if table not in self.verified:
            checksums.verify(path)
            self.verified.add(table)
        lazy = pl.scan_parquet(path)
        if self.offset == 0:
            return lazy
        return lazy.with_columns((pl.col("run") + self.offset).cast(pl.UInt32))


@dataclass(frozen=True)
class Trace:
    """The traces of a sweep.

    A directory holds the tables themselves, or a directory of tables for each engine that ran the sweep (`sim`,
    `kernel`, `vm-bookworm`). Then run numbers continue from one engine to the next, and every table has the rows of all
    engines.
    """

    directory: Path
    # Keeps a temporary directory until the last reader is gone.
    temporary: Scratch | None = None

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Open a results directory; raise `ResultsError` if there is none, or if a file of it cannot be read."""
        _check_readable(directory)
        if not directory.is_dir():
            hint = "`mptcplab run` prints where it wrote them"
            begun = directory.with_name(f"{directory.name}.partial")
            if begun.is_dir():
                hint = f"it is not complete: the command that writes it goes on with the finished runs in {begun}"
            raise ResultsError(with_hint(f"no such results directory: {directory}", hint))
        trace = cls(directory)
        for part in tables_in(directory):
            missing = [table for table in TABLES if not (part / f"{table}.parquet").is_file()]
            if missing:
                unfinished = any(place.name.endswith(".partial") for place in (directory, part))
                hint = "give the directory that `mptcplab run` wrote"
                if unfinished:
                    hint = "it keeps finished runs of a command that was interrupted, which goes on with them"
                raise ResultsError(with_hint(f"not a results directory: {part}: {missing[0]}.parquet is missing", hint))
        try:
            _ = trace.runs
        except pl.exceptions.PolarsError as error:
            raise ResultsError(f"cannot read results: {directory / 'run.parquet'}: {error}") from error
        return trace

    def scan(self, table: str, runs: Sequence[int] | None = None) -> pl.LazyFrame:
        """A table as a lazy frame, for queries that need few columns of a large trace.

        With `runs`, only the rows of runs of these numbers: row groups of others are not read.
        """
        if table not in ALL_TABLES:
            raise ResultsError(with_hint(f"no such table: {table!r}", f"one of {', '.join(ALL_TABLES)}"))
        frames = [part.scan(table) for part in self._parts if part.has(table)]
        if not frames:
            return optional.without_rows(table)
        lazy = frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal")
        if runs is None or (len(runs) >= self.runs.height and set(runs).issuperset(self.runs["run"])):
            return lazy
        if not runs:
            return lazy.clear()
        return lazy.filter(pl.col("run").is_between(min(runs), max(runs)) & pl.col("run").is_in(list(runs)))

    @cached_property
    def _parts(self) -> list[_Part]:
        parts, offset = [], 0
        for directory in tables_in(self.directory):
            parts.append(part := _Part(directory, offset))
            last = part.scan("run").select(pl.col("run").max()).collect().item()
            offset = offset if last is None else last + 1
        return parts

    @cached_property
    def cache(self) -> dict[str, Any]:
        """Intermediate results of other modules, under their own keys."""
        return {}

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row per run: scenario, algorithm, axes, repetition, seed, versions."""
        runs = self.scan("run").collect()
        # Sorting copies the scenario of every run.
        return runs if runs["run"].is_sorted() else runs.sort("run")

    @cached_property
    def engines(self) -> list[str]:
        """Engines that wrote these traces, in the order of their runs."""
        return self.runs["engine"].unique(maintain_order=True).to_list()

    @cached_property
    def excluded_runs(self) -> list[ExcludedRun]:
        """Runs that do not count: they are left out of the summary, and the report names them."""
        if "status" not in self.runs.columns:
            return []
        bad = self.runs.filter(pl.col("status").fill_null(COMPLETE) != COMPLETE).select(
            "run", "rep", "engine", "status", "status_reason"
        )
        labels = dict(self.configs.select("run", CONFIG).iter_rows())
        return [
            ExcludedRun(run, labels[run], rep, engine, status, reason or "")
            for run, rep, engine, status, reason in bad.iter_rows()
        ]

    @cached_property
    def remarks(self) -> list[str]:
        """Remarks, one line each: about busy machines, equilibria, rules of different kernels, and late changes."""
        solved = pl.lit(False)
        if "host" in self.runs.columns:
            solved = pl.col("host").str.contains('"equilibrium"', literal=True)
        records = self.runs.filter(solved)
        labels = dict(self.configs.select("run", CONFIG).iter_rows())
        emulated = _columns(self.runs.filter(pl.col("engine").str.starts_with(VM.name)), "run", "host")
        return [
            *checksums.remarks(tables_in(self.directory)),
            *machines.remarks((labels[run], json.loads(host or "{}")) for run, host in emulated),
            *equilibria.remarks([(labels[run], json.loads(host)) for run, host in _columns(records, "run", "host")]),
            *rules.remarks(_columns(self.runs.filter(~solved), "profile", "subflow_cc")),
            *schedules.remarks({id(one): one for one in self.topologies.values()}.values()),
        ]

    @cached_property
    def flow(self) -> pl.DataFrame:
        """Samples of the flows."""
        return self.scan("flow").collect()

    @cached_property
    def subflow(self) -> pl.DataFrame:
        """Samples of the subflows."""
        return self.scan("subflow").collect()

    @cached_property
    def link(self) -> pl.DataFrame:
        """Samples of the directed links."""
        return self.scan("link").collect()

    @cached_property
    def event(self) -> pl.DataFrame:
        """Events."""
        return self.scan("event").collect()

    @cached_property
    def transfer(self) -> pl.DataFrame:
        """Files, short transfers and chunks of videos: when they were requested, and how long they took."""
        return self.scan("transfer").collect()

    @cached_property
    def requests(self) -> pl.DataFrame:
        """Requests and messages on connections that last: when they were sent, and how long they took."""
        return self.scan("request").collect()

    @property
    def overrides(self) -> str | None:
        """The overrides of the scenario, as JSON; None if the directory does not have them."""
        path = self.directory / OVERRIDES
        return path.read_text(encoding="utf-8") if path.is_file() else None

    @cached_property
    def topologies(self) -> dict[int, Topology]:
        """The resolved scenario of every run. Repetitions share one object, as they have the same topology."""
        distinct: dict[str, Topology] = {}
        found = {}
        for run, text, engine in self.runs.select("run", "resolved", "engine").iter_rows():
            key = engine + hashlib.sha256(_OF_ONE_RUN.sub("", text).encode()).hexdigest()
            if key not in distinct:
                distinct[key] = Topology.from_json(text, engine)
            found[run] = distinct[key]
        return found

    @cached_property
    def configs(self) -> pl.DataFrame:
        """run, rep, `config` (shared by the repetitions of one combination of axis values), `base`, `engine`.

        If several engines ran, `config` is `base` with the engine appended, and the rows of one combination are
        neighbours.
        """
        several = len(self.engines) > 1
        labelled = []
        for run, rep, cc, axes, engine in self.runs.select("run", "rep", "cc", "axes", "engine").iter_rows():
            base = label(cc, axes)
            labelled.append((run, rep, f"{base} ({engine})" if several else base, base, engine))
        first = {base: position for position, base in reversed(list(enumerate(row[3] for row in labelled)))}
        labelled.sort(key=lambda row: (first[row[3]], self.engines.index(row[4]), row[0]))
        return pl.DataFrame(
            labelled,
            schema={
                "run": self.runs.schema["run"],
                "rep": self.runs.schema["rep"],
                CONFIG: pl.String,
                "base": pl.String,
                "engine": pl.String,
            },
            orient="row",
        )


def _columns(rows: pl.DataFrame, *names: str) -> Iterator[tuple[Any, ...]]:
    """The values of some columns, row by row; none if there are no rows."""
    return rows.select(names).iter_rows() if len(rows) else iter(())


def tables_in(directory: Path) -> list[Path]:
    """The directories with tables: the directory itself, or one below it for each engine."""
    if (directory / "run.parquet").is_file():
        return [directory]
    found = {path.name: path for path in directory.iterdir() if path.is_dir() and is_directory_of_engine(path.name)}
    own = [[name] if name != VM.name else _machines(directory, found) for name in ENGINES]
    return [found[name] for names in own for name in names if name in found] or [directory]


def _machines(directory: Path, found: Iterable[str]) -> list[str]:
    """The directories of emulated machines: in the order in which they ran, others by name."""
    asked = directory / OVERRIDES
    ran = json.loads(asked.read_text(encoding="utf-8")).get("machines", []) if asked.is_file() else []
    return [*ran, *sorted(name for name in found if name not in ENGINES and name not in ran)]


def axes_of(text: str) -> dict[str, str]:
    """The axis values of a run from its `axes` column (a JSON object or a list of pairs)."""
    parsed = json.loads(text)
    pairs = parsed.items() if isinstance(parsed, dict) else parsed
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in pairs}


def label(cc: str, axes: str) -> str:
    """The name of a combination of axis values."""
    others = [f"{key} = {value}" for key, value in axes_of(axes).items() if key != "cc"]
    return ", ".join([*([cc] if cc else []), *others])
