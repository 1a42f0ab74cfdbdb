"""Short versions of the scenarios of all papers on two engines, which of them agree, and what an engine refuses."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from mptcplab import bundle
from mptcplab.capabilities import KERNEL, SIM, engine_of
from mptcplab.cluster.connect import Cluster
from mptcplab.engines.digests import engine_digest, python_digest
from mptcplab.errors import REFUSALS, EngineError, MptcplabError, ScenarioError, UnfinishedError, with_hint
from mptcplab.metrics import emulation
from mptcplab.metrics.certainty import Counts, is_one_trajectory
from mptcplab.scenario import Overrides, check
from mptcplab.studies.agreement import alike, phases, reduced, tendency, text
from mptcplab.studies.agreement.chance import Chance, Difference, of_differences
from mptcplab.studies.agreement.compare import judged
from mptcplab.studies.agreement.judge import DELAY, GOODPUT, JAIN, Agreement, Bounds, bounds_of, judge
from mptcplab.study import workers
from mptcplab.study.cell import algorithm_digests, digest_of, resolved_runs, topology
from mptcplab.study.progress import Announce, silent
from mptcplab.study.store import Store
from mptcplab.study.verdict import Finding, Verdict
from mptcplab.sweep import Progress, Sweep, parse_engines, run

ENGINES = (SIM.name, KERNEL.name)
# Packet hops per second that two processors emulate together without being late: of scenarios with 44, 5, 3 and 3
# thousand all runs counted, of those with 46, 30, 23 and 22 thousand none did.
MOST_HOPS_PER_S = 65_000
# Each is a set of processes that have to wake up in time.
MOST_AT_ONCE = 6
# So many repetitions of a machine show whether they are one trajectory.
_FIRST_REPETITIONS = 3
# Of the digest of a build, on the page.
BUILD_DIGITS = 12
# Kinds of flows.
ALL_FLOWS, SEVERAL, ONE = "all", "with several subflows", "with one subflow"
# Modules that decide an entry besides the engines.
_DECIDING = (
    *("studies/agreement", "metrics", "metrics/differences.py", "metrics/stats.py", "metrics/student.py"),
    *("sweep.py", "engines/kernel.py", "trace"),
)


@dataclass(frozen=True)
class Size:
    """The size of a short version: seconds after the last flow starts (a quarter is warm-up), repetitions, algorithms.

    `simulated` repetitions are the simulator's beside a kernel. `algorithms` are the first that a scenario names; None
    means all. A scenario whose last flow starts later than `latest_start_s` is left out.
    """

    seconds: int
    repetitions: int
    simulated: int
    algorithms: int | None
    latest_start_s: int


# A kernel in real time takes about 70 and less than 5 minutes for all papers.
FULL, QUICK = Size(70, 4, 15, 1, latest_start_s=120), Size(6, 1, 1, 1, latest_start_s=15)
# In virtual time it costs computation instead, so that runs are shorter and more of them run. Those of the simulator
# cost next to nothing beside a machine's, and with many of them the spread of a difference is the machine's alone.
VIRTUAL = Size(30, 10, 100, None, latest_start_s=120)


@dataclass(frozen=True)
class Row:
    """Goodput (Mbit/s) or mean smoothed RTT (ms) of one flow on both engines or, without a flow, Jain's index.

    `verdict` is None where nothing is judged. The spreads are in percent of the means, and None where they were not
    recorded.
    """

    base: str
    metric: str
    flow: str | None
    reference: float
    mean: float
    difference: float | None
    half: float | None
    n_reference: int
    n: int
    verdict: Verdict | None
    spread_reference: float | None = None
    spread: float | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Row:
        """The inverse of `asdict`; rows of earlier versions have no spreads."""
        verdict = data["verdict"]
        return cls(**{**data, "verdict": None if verdict is None else Verdict(verdict)})

    @property
    def one_trajectory(self) -> bool:
        """Whether the repetitions of an engine are one draw, so that the difference has no interval."""
        return is_one_trajectory(self.reference, self.mean, self.spread_reference, self.spread)

    @property
    def interval(self) -> float | None:
        """Half of the interval of the difference; None if it has none."""
        return None if self.one_trajectory else self.half


@dataclass(frozen=True)
class Entry(Finding):
    """One scenario: its name is its file, its evidence the rows; not testable where it has none, with the reason.

    `command` is what was run, `causes` possible causes by configuration, `noise` how much of it the simulator had;
    `disturbed`: a run did not count.
    """

    title: str = ""
    command: str = ""
    causes: Mapping[str, list[str]] = field(default_factory=dict)
    noise: str = ""
    disturbed: bool = False
    # The kernels that ran it.
    kernels: tuple[str, ...] = ()
    # The first digits of the digest of what ran, by engine.
    builds: Mapping[str, str] = field(default_factory=dict)
    # Round-trip times, which are shown beside the evidence and not judged.
    delays: tuple[Row, ...] = ()
    # What the simulator's hosts took; None where it was not recorded.
    host_delay_ns: int | None = None
    send_jitter_ns: int | None = None
    # The longest random delay (ns) of packets behind these links, on both engines, without which a kernel's repetitions
    # are one trajectory.
    random_delays: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Entry:
        """The inverse of `asdict`; entries of earlier versions have no round-trip times."""
        rows = {key: tuple(map(Row.from_dict, data.get(key, ()))) for key in ("evidence", "delays")}
        return cls(**data | rows | {"verdict": Verdict(data["verdict"]), "kernels": tuple(data["kernels"])})

    def judged(self, bounds: Bounds) -> Entry:
        """The entry with the verdict on its rows and on the median of its flows, as `mptcplab agree` gives it."""
        if not self.evidence:
            return self
        rows = (row.verdict for row in self.evidence if row.verdict is not None)
        return replace(self, verdict=bounds.verdict(rows, self.distances))

    def summary(self, bounds: Bounds) -> str:
        """The outcome in a line."""
        if self.verdict == Verdict.NOT_TESTABLE:
            return f"{self.verdict}: {self.reason}"
        bad = sum(row.verdict == Verdict.FAILS for row in self.flows)
        unfair = any(row.verdict == Verdict.FAILS for row in self.evidence if row.metric != GOODPUT)
        number, most = len(self.flows), f"{bounds.flow_percent:g} %"
        if number == 1:
            flows = f"its flow is outside {most}" if bad else f"its flow is within {most}"
        else:
            flows = f"{bad} of {number} flows outside {most}" if bad else f"all {number} flows within {most}"
        counts = self.counts(GOODPUT, bounds)
        if counts.unknown < number:
            whole = counts.whole_outside if bad else counts.whole_inside
            with_it = f"{'with' if whole else 'not with'} the" if number == 1 else f"{whole} with the"
            flows += f" ({with_it} whole interval)"
        others = ["Jain's index is outside"] if unfair else []
        if bounds.is_far(self.distances):
            whose = "its distance of" if number == 1 else "the median of" if bad else "their median"
            others.append(f"{whose} {median(self.distances):.1f} % is beyond {bounds.median_percent:g} %")
        if bad:
            told = ", and ".join([", ".join([flows, *others[:-1]]), *others[-1:]])
        else:
            told = ", but ".join([flows, *([" and ".join(others)] if others else [])])
        return f"{self.verdict}: {told}"

    def counts(self, metric: str, bounds: Bounds) -> Counts:
        """How many differences of goodput or of Jain's index are inside and outside of their bound."""
        rows = [row for row in self.evidence if row.metric == metric]
        bound = bounds.of(metric)
        return Counts() if bound is None else Counts.of([(row.difference, row.interval) for row in rows], bound)

    @property
    def distances(self) -> list[float]:
        """The distances between the goodputs of both engines, in percent."""
        return [abs(row.difference) for row in self.flows if row.difference is not None]

    @property
    def flows(self) -> list[Row]:
        """The rows of flows."""
        return [row for row in self.evidence if row.metric == GOODPUT]


@dataclass(frozen=True)
class Matrix:
    """All scenarios on two engines."""

    engines: tuple[str, str]
    command: str
    entries: tuple[Entry, ...]

    def entry(self, name: str) -> Entry | None:
        """The scenario of a name."""
        return next((entry for entry in self.entries if entry.name == name), None)

    @property
    def compared(self) -> tuple[Entry, ...]:
        """The scenarios with numbers."""
        return tuple(entry for entry in self.entries if entry.verdict != Verdict.NOT_TESTABLE)

    @property
    def host(self) -> str:
        """The kernels that ran them; empty where none did."""
        return ", ".join(dict.fromkeys(kernel for entry in self.entries for kernel in entry.kernels))

    def flows(self) -> list[tuple[Entry, Row]]:
        """Every flow of every scenario."""
        return [(entry, row) for entry in self.compared for row in entry.flows]

    @property
    def median_percent(self) -> float | None:
        """Median distance of the goodputs."""
        distances = [distance for entry in self.compared for distance in entry.distances]
        return median(distances) if distances else None

    @property
    def delay_distances(self) -> list[float]:
        """The distances between the mean smoothed RTTs of all flows, in percent."""
        rows = (row for entry in self.compared for row in entry.delays)
        return [abs(row.difference) for row in rows if row.difference is not None]

    @property
    def verdict(self) -> Verdict:
        """Whether every scenario, and the median of all flows, are within their bounds."""
        distances = [distance for entry in self.compared for distance in entry.distances]
        return self.bounds.verdict((entry.verdict for entry in self.compared), distances)

    @property
    def bounds(self) -> Bounds:
        """The bounds between both engines."""
        return bounds_of(*self.engines)

    def chance(self) -> Chance | None:
        """What chance does to the differences of the flows that have an interval; None with too few scenarios."""
        known = [difference for _, difference in self._known(lambda entry: entry.flows)]
        return of_differences(known, self.bounds.flow_percent)

    def tendencies(self, own: float) -> dict[str, tendency.Tendency]:
        """What the second engine gives flows of a kind on average more than the first, in percent, by the kind's name.

        `own` is the standard deviation of the engines' own differences. Kinds of too few scenarios are left out.
        """
        kinds: dict[str, list[Difference]] = {ALL_FLOWS: [], SEVERAL: [], ONE: []}
        algorithms: dict[str, list[Difference]] = {}
        for row, difference in self._known(lambda entry: entry.flows):
            several = has_several_subflows(difference.scenario, row.flow)
            kinds[ALL_FLOWS].append(difference)
            kinds[SEVERAL if several else ONE].append(difference)
            if several:
                algorithms.setdefault(f"{SEVERAL}, {row.base}", []).append(difference)
        kinds |= dict(sorted(algorithms.items(), key=lambda item: -len(item[1])))
        found = {kind: tendency.of_differences(some, own) for kind, some in kinds.items()}
        return {kind: one for kind, one in found.items() if one is not None}

    def tendency_of_delays(self) -> tendency.Tendency | None:
        """How much longer the mean smoothed RTTs of the second engine are on average; None with too few scenarios."""
        known = [difference for _, difference in self._known(lambda entry: entry.delays)]
        chance = of_differences(known, self.bounds.flow_percent)
        return None if chance is None else tendency.of_differences(known, chance.own)

    def _known(self, rows: Callable[[Entry], Iterable[Row]]) -> Iterator[tuple[Row, Difference]]:
        """The differences in these rows of all scenarios that have an interval."""
        for entry in self.compared:
            for row in rows(entry):
                if row.difference is not None and row.interval:
                    yield row, Difference(entry.name, row.difference, row.interval, min(row.n, row.n_reference))

    def counts(self, metric: str) -> Counts:
        """How many differences of goodput or of Jain's index are inside and outside of their bound."""
        return sum((entry.counts(metric, self.bounds) for entry in self.compared), Counts())

    @property
    def summary(self) -> str:
        """The outcome in a few sentences."""
        fail = sum(entry.verdict == Verdict.FAILS for entry in self.compared)
        failed = f"{fail} of them {'fails' if fail == 1 else 'fail'}"
        ran = f"{len(self.compared)} of {len(self.entries)} scenarios ran on both engines; {failed}"
        counts = counted_in_words(self.counts, self.bounds, self.median_percent)
        return " ".join(f"{sentence}." for sentence in (ran, *counts))

    def lines(self) -> list[str]:
        """A line per scenario for the terminal, and one for all."""
        lines = [f"{entry.name}: {entry.summary(self.bounds)}" for entry in self.entries]
        return [*lines, f"{self.verdict}: {self.summary}"]

    def to_json(self) -> str:
        """All numbers of the page."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Matrix:
        """The inverse of `to_json`; entries are judged anew, because earlier versions left out the median."""
        data = json.loads(text)
        one, other = data["engines"]
        entries = (Entry.from_dict(entry).judged(bounds_of(one, other)) for entry in data["entries"])
        return cls((one, other), data["command"], tuple(entries))


def has_several_subflows(scenario: str, flow: str | None) -> bool:
    """Whether a flow of a scenario, whose name is its path in the repository, has more than one subflow."""
    flows = topology(bundle.root() / scenario).connections
    return any(one.name == flow and len(one.paths) > 1 for one in flows)


def counted_in_words(
    counts: Callable[[str], Counts], bounds: Bounds, median_percent: float | None = None
) -> Iterator[str]:
    """How many goodputs and Jain's indices are inside and outside of their bounds; `counts` has those of a metric."""
    flows, indices = counts(GOODPUT), counts(JAIN)
    if flows.judged:
        distance = "" if median_percent is None else f"; median distance {median_percent:.1f} %"
        what = "flow" if flows.judged == 1 else "flows"
        yield flows.text(what, f"{bounds.flow_percent:g} %") + distance
    if indices.judged:
        what = "comparison" if indices.judged == 1 else "comparisons"
        yield f"Jain's index: {indices.text(what, f'{bounds.jain:g}')}"


def measure(
    *,
    quick: bool = False,
    jobs: int = 0,
    cluster: Cluster | None = None,
    announce: Announce = silent,
    scenarios: Iterable[Path] | None = None,
    engines: tuple[str, str] = ENGINES,
    checkpoint: Store | None = None,
    machine_runs: Path | None = None,
    only: Collection[str] = (),
    former: Matrix | None = None,
) -> Matrix:
    """Run a short version of every scenario of every paper (or of `scenarios`) on two engines.

    What is in `checkpoint` is not run again, and what is measured goes there at once; the caller clears it in the end.
    Runs of emulated machines stay in `machine_runs`, from where later calls take those that would be the same.
    With `only`, just the scenarios of these names are run; the entries of the others are those of `former`.
    Raises `EngineError` if an engine cannot run here at all, or fails; what it refuses of one scenario is an entry.
    """
    parse_engines(engines)
    paths = _of_papers() if scenarios is None else list(scenarios)
    chosen = _chosen(paths, only)
    runner = _Runner(_size(engines, quick), engines, jobs, cluster, announce, checkpoint, machine_runs)
    new = dict(zip(chosen, runner.entries(chosen), strict=True))
    entries = tuple(new.get(path) or _kept(path, former) for path in paths)
    return Matrix(engines, command_of(engines, quick=quick), entries)


def require_known(only: Collection[str]) -> None:
    """Raise `MptcplabError` for a name that no scenario of the papers has."""
    _chosen(_of_papers(), only)


def command_of(engines: tuple[str, str], *, quick: bool) -> str:
    """The command that makes all entries."""
    words = ["mptcplab", "agree", "--all", *(["--engines", ",".join(engines)] if engines != ENGINES else [])]
    return shlex.join([*words, *(["--quick"] if quick else [])])


def _chosen(paths: Sequence[Path], only: Collection[str]) -> list[Path]:
    """The scenarios of these names, or all without names; raises `MptcplabError` for a name that is none of them.

    The end of a path is enough, because commands are not only given in the repository.
    """
    wanted: set[Path] = set()
    for name in only:
        found = [path for path in paths if is_named(path, name)]
        if not found:
            names = ["/".join(path.parts[-3:]) for path in paths]
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.4) or names[:1]
            raise MptcplabError(with_hint(f"not a scenario of the papers: {name}", f"did you mean {close[0]}?"))
        wanted.update(found)
    return [path for path in paths if not only or path in wanted]


def is_named(path: Path, name: str) -> bool:
    """Whether a scenario's path ends with this name."""
    return path.parts[-len(Path(name).parts) :] == Path(name).parts


def _kept(path: Path, former: Matrix | None) -> Entry:
    """What an earlier page has of a scenario."""
    name = _name(path)
    entry = former.entry(name) if former is not None else None
    return entry or Entry(name, Verdict.NOT_TESTABLE, reason="not run yet")


def _name(path: Path) -> str:
    """The name of a scenario's entry, which is the same in every working directory: its path in the repository.

    A file that is not in the repository has the path by which it was given.
    """
    file = path.resolve()
    return (file.relative_to(bundle.root()) if file.is_relative_to(bundle.root()) else path).as_posix()


@dataclass(frozen=True)
class _Runner:
    """Runs all scenarios."""

    size: Size
    engines: tuple[str, str]
    jobs: int
    cluster: Cluster | None
    announce: Announce
    checkpoint: Store | None
    machine_runs: Path | None

    def entries(self, paths: Sequence[Path]) -> list[Entry]:
        """All scenarios, in their order: some at a time, and alone those of which a run did not count."""
        found = {path: entry for path in paths if (entry := self._stored(path)) is not None}
        missing = [path for path in paths if path not in found]
        loads = {path: _load(path, self.size, self.engines, self.jobs) for path in missing}
        # What runs in real time is the same at once as alone, and leaves the processors idle; others use all of them.
        real_time = _has_real_time(self.engines)
        jobs = 1 if real_time else self.jobs
        new = workers.each(
            lambda path: self._measured(path, jobs, None),
            missing,
            MOST_AT_ONCE if real_time or not _has_sockets(self.engines) else 1,
            load=loads.__getitem__,
            capacity=MOST_HOPS_PER_S,
        )
        for path, entry in new:
            with self.announce(_name(path)):
                found[path] = entry
        for path in paths:
            if found[path].disturbed:
                with self.announce(f"{_name(path)}, alone") as progress:
                    found[path] = self._measured(path, self.jobs, progress)
        return [found[path] for path in paths]

    def _measured(self, path: Path, jobs: int, progress: Progress | None) -> Entry:
        lasting = None
        if self.machine_runs is not None and not _has_real_time(self.engines):
            lasting = self.machine_runs / _name(path).replace("/", "-")
        how = _How(self.size, self.engines, jobs, progress, self.cluster, lasting)
        if self.checkpoint is None:
            return _entry(path, how)
        # Computed first, because a file may change while it is run.
        digest = self._digest(path)
        entry = _entry(path, how)
        # An entry without numbers takes little time to find again.
        if entry.evidence and self._digest(path) == digest:
            self.checkpoint.prepare()
            self.checkpoint.put(digest, asdict(entry))
        return entry

    def _stored(self, path: Path) -> Entry | None:
        """The entry that an earlier run left of a scenario."""
        if self.checkpoint is None or not self.checkpoint.has(digest := self._digest(path)):
            return None
        with self.announce(f"{_name(path)}, measured before"):
            return Entry.from_dict(self.checkpoint.record(digest))

    def _digest(self, path: Path) -> str:
        """Of everything that decides an entry."""
        try:
            changes = short(path, self.size, self.engines)
            runs: object = None if changes is None else [check(path, changes), resolved_runs(path, changes)]
        except ScenarioError as error:
            runs = str(error)
        engines = [engine_digest(engine) for engine in self.engines]
        own = python_digest(*_DECIDING)
        return digest_of(_name(path), runs, asdict(self.size), engines, algorithm_digests(), own)


def _size(engines: Iterable[str], quick: bool) -> Size:
    if quick:
        return QUICK
    return VIRTUAL if _has_sockets(engines) and not _has_real_time(engines) else FULL


def _has_real_time(engines: Iterable[str]) -> bool:
    return any(engine_of(name).real_time for name in engines)


def _has_sockets(engines: Iterable[str]) -> bool:
    return any(engine_of(name).has_sockets for name in engines)


def _load(path: Path, size: Size, engines: tuple[str, str], jobs: int) -> float:
    """Packet hops per second that a kernel would carry, as the simulator counts them; 0 where none runs.

    A scenario that the simulator cannot run goes alone.
    """
    if not _has_real_time(engines):
        return 0
    try:
        changes = short(path, size, engines)
        if changes is None:
            return 0
        settings = {**changes.settings, "sample": '"off"'}
        results = run(path, changes.cc or None, 1, jobs=jobs, duration=changes.duration, settings=settings)
    except (ScenarioError, EngineError):
        return MOST_HOPS_PER_S
    hops = results.link.group_by("run", "link").agg(pl.col("departed_pkts").max())["departed_pkts"].sum()
    return float(hops) / (float(results.runs["duration_ns"].sum()) / 1e9)


def _of_papers() -> list[Path]:
    """The scenario files of all papers, each once, in the order of their experiments."""
    from mptcplab.studies.papers import catalog

    here = Path.cwd()
    files = dict.fromkeys(experiment.scenario for experiment in catalog.load().experiments.values())
    return [path.relative_to(here) if path.is_relative_to(here) else path for path in files]


@dataclass(frozen=True)
class _How:
    """How one scenario is run; `lasting` is where the runs of emulated machines stay."""

    size: Size
    engines: tuple[str, str]
    jobs: int
    progress: Progress | None
    cluster: Cluster | None = None
    lasting: Path | None = None


def _entry(path: Path, how: _How) -> Entry:
    """Run one scenario."""
    # What is known of it so far.
    entry = Entry(_name(path), Verdict.NOT_TESTABLE, command=command_of_one(path, how.engines))
    try:
        changes = short(path, how.size, how.engines)
        if changes is None:
            latest_s = how.size.latest_start_s
            return replace(entry, reason=f"left out, because its last flow starts later than {latest_s} s")
        sim_reps = how.size.simulated if _has_sockets(how.engines) and is_one_network(path, changes) else None
        entry = replace(entry, command=command_of_one(path, how.engines, changes, sim_reps))
        entry = replace(entry, title=check(path, changes)["resolved"]["title"])
        runs = Sweep(
            str(path),
            changes,
            parse_engines(how.engines),
            sim_reps=sim_reps,
            jobs=how.jobs,
            progress=how.progress,
            cluster=how.cluster,
            lasting=how.lasting,
        )
        if delays := _needed_delays(runs):
            changes = phases.delayed(changes, delays)
            command = command_of_one(path, how.engines, changes, sim_reps)
            entry = replace(entry, command=command, random_delays=delays)
            # Apart from the first repetitions, which a sweep with others would remove.
            lasting = None if how.lasting is None else how.lasting.with_name(f"{how.lasting.name}-phases")
            runs = replace(runs, overrides=changes, lasting=lasting)
        found = judged(runs)
    except UnfinishedError as error:
        return replace(entry, reason=f"not counted: {_first_line(error)}", disturbed=True)
    except REFUSALS as error:
        return replace(entry, reason=f"refused: {_first_line(error)}")
    return _with_numbers(entry, found, how.engines)


def _needed_delays(runs: Sweep) -> dict[str, int]:
    """The random delays (ns), by link, without which the repetitions of an emulated machine are one trajectory."""
    is_short = (runs.overrides.reps or 0) <= _FIRST_REPETITIONS
    if runs.sim_reps is None or is_short or _has_real_time(runs.engines):
        return {}
    # The runs of all repetitions stay, which an interrupted command may have made.
    few = replace(runs, overrides=replace(runs.overrides, reps=_FIRST_REPETITIONS), same_noise=True, prunes=False)
    first = judge(few.run())
    return phases.random_delays(first.results, runs) if phases.is_one_draw(first) else {}


def command_of_one(
    path: Path, engines: Iterable[str], changes: Overrides | None = None, sim_reps: int | None = None
) -> str:
    """The command that repeats an entry."""
    options = [] if changes is None else changes.to_options()
    options += [] if sim_reps is None else ["--sim-reps", str(sim_reps)]
    return shlex.join(["mptcplab", "agree", _name(path), "--engines", ",".join(engines), *options])


def build_of(engine: str) -> str:
    """The first digits of the digest of what an engine runs now."""
    return digest_of(engine_digest(engine), algorithm_digests())[:BUILD_DIGITS]


def _with_numbers(entry: Entry, found: Agreement, engines: tuple[str, str]) -> Entry:
    """The entry of a scenario that both engines ran."""
    rows, problems = evidence_of(found.rows), found.results.excluded_runs
    entry = replace(entry, kernels=_kernels(found), disturbed=bool(problems))
    if not rows:
        reasons = dict.fromkeys(problem.reason for problem in problems)
        return replace(entry, reason=f"not counted: {'; '.join(reasons)}", disturbed=True)
    times = emulation.simulated_host_times(found.results)
    entry = replace(
        entry,
        evidence=rows,
        causes={base: text.cause_lines(found.causes_of(base, engine)) for base, engine, _ in found.outside()},
        noise=emulation.noise_note(found.results) or "",
        builds={engine: build_of(engine) for engine in engines},
        delays=delays_of(found.rows),
        host_delay_ns=times.delay_ns,
        send_jitter_ns=times.jitter_ns,
    )
    return entry.judged(bounds_of(*engines))


def short(path: Path, size: Size, engines: Sequence[str]) -> Overrides | None:
    """The overrides that make a scenario short and the same for both engines; None where it cannot be so short.

    A run ends some seconds after its last flow began, and all of them count but a quarter. As many algorithms of the
    file as `size` says are taken; of other axes the first value.
    """
    smaller = reduced.settings(path) if _has_sockets(engines) else {}
    runs = resolved_runs(path, Overrides(reps=size.repetitions, settings=smaller))
    last_s = max(start for run in runs for start in run["starts_ns"]) / 1e9
    if last_s > size.latest_start_s:
        return None
    # A start within the first quarter leaves enough.
    last_s = 0 if last_s <= size.seconds / 4 else ceil(last_s)
    settings = {"warmup": f'"{1000 * last_s + 250 * size.seconds} ms"'}
    settings |= {**alike.settings(engines), **smaller} if _has_sockets(engines) else {}
    settings |= {key: json.dumps(value) for key, value in runs[0]["axes"].items() if key not in ("cc", "profile")}
    names = list(dict.fromkeys(run["axes"]["cc"] for run in runs if "cc" in run["axes"]))
    return Overrides(
        tuple(names[: size.algorithms]),
        size.repetitions,
        duration=f"{last_s + size.seconds} s",
        settings=settings,
    )


def is_one_network(path: Path, changes: Overrides) -> bool:
    """Whether all repetitions have the same links: if not, only pairs of repetitions can be compared."""
    networks = [run["links"] for run in resolved_runs(path, changes)]
    return all(network == networks[0] for network in networks)


def evidence_of(rows: pl.DataFrame) -> tuple[Row, ...]:
    """What is judged."""
    return _rows_of(rows.drop_nulls("verdict").filter(pl.col("metric").is_in([GOODPUT, JAIN])))


def delays_of(rows: pl.DataFrame) -> tuple[Row, ...]:
    """The round-trip times of whole flows."""
    return _rows_of(rows.filter(pl.col("subflow").is_null(), metric=DELAY))


def _rows_of(rows: pl.DataFrame) -> tuple[Row, ...]:
    names = [one.name for one in fields(Row)]
    return tuple(map(Row.from_dict, rows.select(names).iter_rows(named=True)))


def _kernels(found: Agreement) -> tuple[str, ...]:
    """The kernels that ran, by the names that they report."""
    runs = found.results.runs
    hosts = [json.loads(text) for text in runs["host"]] if "host" in runs.columns else []
    return tuple(dict.fromkeys(f"Linux {host['kernel']}" for host in hosts if host.get("kernel")))


def _first_line(error: Exception) -> str:
    """The first line of a message, without the hint."""
    return str(error).splitlines()[0]
