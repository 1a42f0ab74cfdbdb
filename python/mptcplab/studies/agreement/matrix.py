"""Short versions of the scenarios of all papers on two engines: what agrees, what does not, what an engine refuses."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from mptcplab import _core, sweep
from mptcplab.capabilities import KERNEL
from mptcplab.errors import EngineError, ScenarioError, UnfinishedError
from mptcplab.metrics import emulation
from mptcplab.scenario import Overrides
from mptcplab.studies.agreement import lighter, packing, show
from mptcplab.studies.agreement.compare import agree
from mptcplab.studies.agreement.judge import GOODPUT, JAIN, OUTSIDE, Agreement, bounds_of
from mptcplab.studies.agreement.kept import Kept

COMPARED, REFUSED, NOT_COUNTED, LEFT_OUT = "compared", "refused", "not counted", "left out"
ENGINES = ("sim", "kernel")
# Modules that decide an entry besides the engines.
_DECIDING = (
    "studies/agreement",
    "metrics",
    "metrics/differences.py",
    "metrics/stats.py",
    "sweep.py",
    "engines/kernel.py",
    "trace",
)
# An entry, and the kernels that ran it.
Measured = tuple["Entry", list[str]]
Announce = Callable[[str], AbstractContextManager[sweep.Progress | None]]


@dataclass(frozen=True)
class Size:
    """How short: seconds behind the start of the last flow, of which a quarter is warm-up; repetitions; algorithms.

    `simulated` repetitions are the simulator's beside a kernel. A scenario whose last flow starts later than
    `patience_s` is left out.
    """

    seconds: int
    repetitions: int
    simulated: int
    algorithms: int
    patience_s: int


# The kernel takes real time: about 70 and less than 5 minutes for all papers.
FULL, QUICK = Size(70, 4, 15, 1, patience_s=120), Size(6, 1, 1, 1, patience_s=15)


@dataclass(frozen=True)
class Row:
    """What both engines made of one flow's goodput (Mbit/s) or, without a flow, of Jain's index."""

    base: str
    metric: str
    flow: str | None
    reference: float
    mean: float
    difference: float | None
    half: float | None
    n_reference: int
    n: int
    verdict: str


@dataclass(frozen=True)
class Likely:
    """What may explain that a configuration is outside its bounds."""

    base: str
    causes: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """One scenario: its file, the command that was run, and what came out; `reason` says why nothing did.

    `noise` is how much of it the simulator had; `disturbed`: a run did not count.
    """

    scenario: str
    title: str
    command: str
    status: str
    reason: str = ""
    rows: tuple[Row, ...] = ()
    likely: tuple[Likely, ...] = ()
    noise: str = ""
    disturbed: bool = False

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Entry:
        """The inverse of `asdict`."""
        rows = tuple(Row(**row) for row in data["rows"])
        likely = tuple(Likely(part["base"], tuple(part["causes"])) for part in data["likely"])
        return cls(**(data | {"rows": rows, "likely": likely}))


@dataclass(frozen=True)
class Matrix:
    """All scenarios. `host` names the kernel that ran them; empty where none did."""

    engines: tuple[str, str]
    command: str
    host: str
    entries: tuple[Entry, ...]

    @property
    def compared(self) -> tuple[Entry, ...]:
        """The scenarios with numbers."""
        return tuple(entry for entry in self.entries if entry.status == COMPARED)

    def flows(self) -> list[tuple[Entry, Row]]:
        """Every flow of every scenario."""
        return [(entry, row) for entry in self.compared for row in entry.rows if row.metric == GOODPUT]

    @property
    def median_percent(self) -> float | None:
        """Median distance of the goodputs."""
        distances = [abs(row.difference) for _, row in self.flows() if row.difference is not None]
        return median(distances) if distances else None

    @property
    def agrees(self) -> bool:
        """Whether every row is within its bound, the median is, and there is a row at all."""
        rows = [row for entry in self.compared for row in entry.rows]
        most, found = bounds_of(self.engines).median_percent, self.median_percent
        near = most is None or found is None or found <= most
        return bool(rows) and near and all(row.verdict != OUTSIDE for row in rows)

    def lines(self) -> list[str]:
        """A line per scenario for the terminal."""
        return [f"{entry.scenario}: {summary(entry)}" for entry in self.entries]

    def to_json(self) -> str:
        """Everything that the page is made of."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Matrix:
        """The inverse of `to_json`."""
        data = json.loads(text)
        entries = tuple(Entry.from_dict(entry) for entry in data["entries"])
        return cls(tuple(data["engines"]), data["command"], data["host"], entries)


def summary(entry: Entry) -> str:
    """What came out, in a line."""
    if entry.status != COMPARED:
        return f"{entry.status}: {entry.reason}"
    bad = sum(row.verdict == OUTSIDE for row in entry.rows)
    return f"{bad} of {len(entry.rows)} outside" if bad else f"all {len(entry.rows)} within"


def _silent(_: str) -> AbstractContextManager[None]:
    return nullcontext()


def measure(
    *,
    quick: bool = False,
    jobs: int = 0,
    announce: Announce = _silent,
    scenarios: Iterable[Path] | None = None,
    engines: tuple[str, str] = ENGINES,
    kept: Kept | None = None,
) -> Matrix:
    """Run a short version of every scenario of every paper (or of `scenarios`) on two engines.

    What is in `kept` is not run again, and what is measured goes there at once; the caller clears it in the end.
    Raises `EngineError` if the kernel engine cannot run here at all; what it refuses of one scenario is an entry.
    """
    if "kernel" in engines:
        from mptcplab.engines import kernel

        kernel.require_available()
    paths = _of_papers() if scenarios is None else list(scenarios)
    found = _Run(QUICK if quick else FULL, engines, jobs, announce, kept).entries(paths)
    command = "mptcplab agree --all" + (" --quick" if quick else "")
    hosts = dict.fromkeys(host for _, kernels in found for host in kernels)
    return Matrix(engines, command, ", ".join(hosts), tuple(entry for entry, _ in found))


@dataclass(frozen=True)
class _Run:
    """How all scenarios are run."""

    size: Size
    engines: tuple[str, str]
    jobs: int
    announce: Announce
    kept: Kept | None

    def entries(self, paths: Sequence[Path]) -> list[Measured]:
        """All scenarios, in their order: some at a time, and alone those of which a run did not count."""
        found = {path: entry for path in paths if (entry := self._former(path)) is not None}
        missing = [path for path in paths if path not in found]
        new = packing.run_all(
            [_load(path, self.size, self.engines, self.jobs) for path in missing],
            lambda i: self._measured(missing[i], 1 if "kernel" in self.engines else self.jobs, None),
            lambda i: self.announce(missing[i].as_posix()),
        )
        found |= dict(zip(missing, new, strict=True))
        for path in paths:
            if found[path][0].disturbed:
                with self.announce(f"{path.as_posix()}, alone") as progress:
                    found[path] = self._measured(path, self.jobs, progress)
        return [found[path] for path in paths]

    def _measured(self, path: Path, jobs: int, progress: sweep.Progress | None) -> Measured:
        if self.kept is None:
            return _entry(path, self.size, self.engines, jobs, progress)
        # Before, because a file may change while it is run.
        digest = self._digest(path)
        entry, kernels = _entry(path, self.size, self.engines, jobs, progress)
        # What has no numbers is soon found out again.
        if entry.status == COMPARED and self._digest(path) == digest:
            self.kept.put(digest, {"entry": asdict(entry), "kernels": kernels})
        return entry, kernels

    def _former(self, path: Path) -> Measured | None:
        """What a run that was ended has left of a scenario."""
        data = self.kept.get(self._digest(path)) if self.kept is not None else None
        if data is None:
            return None
        with self.announce(f"{path.as_posix()}, kept from a run that was ended"):
            return Entry.from_dict(data["entry"]), data["kernels"]

    def _digest(self, path: Path) -> str:
        """Of everything that decides an entry."""
        from mptcplab.studies.papers import cells

        try:
            changes = short(path, self.size, self.engines)
            what = (
                None if changes is None else [f(str(path), changes.to_json()) for f in (_core.check, _core.runs_json)]
            )
        except ScenarioError as error:
            what = str(error)
        parts = [
            path.as_posix(),
            what,
            asdict(self.size),
            [cells.engine_digest(engine) for engine in self.engines],
            cells.algorithm_digests(),
            cells.python_digest(*_DECIDING),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _load(path: Path, size: Size, engines: tuple[str, str], jobs: int) -> float:
    """Packet hops per second that a kernel would carry, as the simulator counts them; 0 where none runs.

    What the simulator cannot tell goes alone.
    """
    if "kernel" not in engines:
        return 0
    try:
        changes = short(path, size, engines)
        if changes is None:
            return 0
        settings = {**changes.settings, "sample": '"off"'}
        results = sweep.run(path, changes.cc, 1, jobs=jobs, duration=changes.duration, settings=settings)
    except (ScenarioError, EngineError, UnfinishedError):
        return packing.MOST_HOPS_PER_S
    hops = results.link.group_by("run", "link").agg(pl.col("departed_pkts").max())["departed_pkts"].sum()
    return float(hops) / (results.runs["duration_ns"].sum() / 1e9)


def _of_papers() -> list[Path]:
    """The scenario files of all papers, each once, in the order of their experiments."""
    from mptcplab.studies.papers import catalog

    here = Path.cwd()
    files = dict.fromkeys(experiment.scenario for experiment in catalog.load().experiments.values())
    return [path.relative_to(here) if path.is_relative_to(here) else path for path in files]


def _entry(path: Path, size: Size, engines: tuple[str, str], jobs: int, progress: sweep.Progress | None) -> Measured:
    """Run one scenario; also the kernels that did."""
    name, title = path.as_posix(), ""
    words = ["mptcplab", "agree", name, "--engines", ",".join(engines)]
    command = shlex.join(words)
    try:
        changes = short(path, size, engines)
        if changes is None:
            reason = f"its last flow starts later than {size.patience_s} s"
            return Entry(name, title, command, LEFT_OUT, reason), []
        sim_reps = size.simulated if "kernel" in engines and _is_one_network(path, changes) else None
        options = changes.to_options() + (["--sim-reps", str(sim_reps)] if sim_reps else [])
        command = shlex.join([*words, *options])
        title = json.loads(_core.check(str(path), changes.to_json()))["resolved"]["title"]
        found = agree(
            path,
            engines,
            changes.cc,
            changes.reps,
            jobs=jobs,
            duration=changes.duration,
            settings=changes.settings,
            sim_reps=sim_reps,
            progress=progress,
        )
    except UnfinishedError as error:
        return Entry(name, title, command, NOT_COUNTED, _line(error), disturbed=True), []
    except (ScenarioError, EngineError) as error:
        return Entry(name, title, command, REFUSED, _line(error)), []
    rows = _rows(found)
    if not rows:
        reasons = dict.fromkeys(problem.reason for problem in found.results.excluded_runs)
        return Entry(name, title, command, NOT_COUNTED, "; ".join(reasons), disturbed=True), _kernels(found)
    likely = tuple(Likely(base, tuple(show.told(found.causes(base, engine)))) for base, engine, _ in found.outside())
    disturbed = bool(found.results.excluded_runs)
    told = emulation.told(found.results) or ""
    return Entry(name, title, command, COMPARED, "", rows, likely, told, disturbed), _kernels(found)


def short(path: Path, size: Size, engines: Sequence[str]) -> Overrides | None:
    """What makes a scenario short and the same for both engines; None where it cannot be as short as that.

    A run ends some seconds after its last flow began, and all of them count but a quarter. The first algorithms of the
    file are taken; of other axes the first value.
    """
    runs = json.loads(_core.runs_json(str(path), json.dumps({"reps": size.repetitions})))
    last_s = max(start for run in runs for start in run["starts_ns"]) / 1e9
    if last_s > size.patience_s:
        return None
    # A start within the first quarter leaves enough.
    last_s = 0 if last_s <= size.seconds / 4 else ceil(last_s)
    settings = {"warmup": f'"{1000 * last_s + 250 * size.seconds} ms"'}
    settings |= {**KERNEL.behaves_as, **lighter.settings(path)} if "kernel" in engines else {}
    settings |= {key: json.dumps(value) for key, value in runs[0]["axes"].items() if key not in ("cc", "profile")}
    names = list(dict.fromkeys(run["axes"]["cc"] for run in runs if "cc" in run["axes"]))
    return Overrides(
        tuple(names[: size.algorithms]),
        size.repetitions,
        duration=f"{last_s + size.seconds} s",
        settings=settings,
    )


def _is_one_network(path: Path, changes: Overrides) -> bool:
    """Whether all repetitions have the same links: if each has its own, only pairs tell of the engines."""
    networks = [run["links"] for run in json.loads(_core.runs_json(str(path), changes.to_json()))]
    return all(network == networks[0] for network in networks)


def _rows(found: Agreement) -> tuple[Row, ...]:
    fields = Row.__dataclass_fields__
    judged = found.rows.drop_nulls("verdict")
    rows = [row for row in judged.iter_rows(named=True) if row["metric"] in (GOODPUT, JAIN)]
    return tuple(Row(**{name: row[name] for name in fields}) for row in rows)


def _kernels(found: Agreement) -> list[str]:
    """The kernels that ran, as they name themselves."""
    runs = found.results.runs
    hosts = [json.loads(text) for text in runs["host"]] if "host" in runs.columns else []
    return list(dict.fromkeys(f"Linux {host['kernel']}" for host in hosts if host.get("kernel")))


def _line(error: Exception) -> str:
    """The first line of a message, without the hint."""
    return str(error).splitlines()[0]
