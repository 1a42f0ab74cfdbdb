"""What `papers/` holds: for every paper its experiments and its claims, read strictly.

`papers/<id>/paper.toml` describes the experiments, `claims.toml` the claims; the scenario files are beside them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mptcplab.errors import MptcplabError, with_hint

PAPERS = Path("papers")
PROFILES = ("rfc", "linux-acked", "linux-legacy", "linux-pre4")
# How ACKs are counted on today's kernels.
TODAY = "linux-acked"
KINDS = ("shape", "number", "consistency")
EXPECTATIONS = ("holds", "fails", "inconclusive", "not testable")
FIGURES = ("box", "bars", "time", "sweep", "spans")


@dataclass(frozen=True)
class Point:
    """One point of a sweep: its label, where it lies on the axis, and what it changes in the scenario."""

    label: str
    x: float
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Sweep:
    """What is varied: the axis' title with its unit, and the points in order."""

    axis: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class FigureSpec:
    """A figure of the paper, to be drawn from our data.

    `kind`: "box" (one box per algorithm and flow), "bars" (means with intervals; subflows are stacked where `stack`),
    "time" (cwnd, RTT and throughput of one repetition), "sweep" (a line per algorithm over the sweep), "spans" (a line
    per algorithm and flow over the bins of a run). `of` names the paper's figure. `flows` may name a flow, a group or
    a subflow as FLOW/SUBFLOW.
    """

    kind: str
    of: str
    metric: str
    flows: tuple[str, ...]
    algorithms: tuple[str, ...]
    title: str
    stack: bool
    # Values that the paper prints, by algorithm (and, with several flows, ALGORITHM FLOW).
    published: Mapping[str, float]


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper: a scenario file, what is compared in it, and what the paper says about it."""

    id: str
    paper: str
    title: str
    where: str
    scenario: Path
    algorithms: tuple[str, ...]
    settings: Mapping[str, str]
    profile: str
    repetitions: int
    sample: str
    # What the paper calls ideal, in Mbit/s of link rate, by flow.
    ideal: Mapping[str, float]
    # Flows (or FLOW/SUBFLOW) that Jain's index is over, by the name of the set: groups, of which the mean is taken.
    fairness: Mapping[str, tuple[tuple[str, ...], ...]]
    published: str
    sweep: Sweep | None
    # Other settings of the whole experiment, by name.
    variants: Mapping[str, Mapping[str, str]]
    # Parts of a run that claims look at, by name ("bin 0", "phase 2"): begin and end in s.
    spans: Mapping[str, tuple[float, float]]
    figures: tuple[FigureSpec, ...]
    # Another experiment whose runs this one looks at, instead of runs of its own.
    view_of: str | None

    @property
    def points(self) -> tuple[Point | None, ...]:
        """The points of the sweep; None stands for the only one."""
        return self.sweep.points if self.sweep else (None,)

    def point(self, label: str) -> Point:
        """The sweep point with this label."""
        for point in self.sweep.points if self.sweep else ():
            if point.label == label:
                return point
        raise KeyError(label)


@dataclass(frozen=True)
class Claim:
    """A checkable statement of a paper, or of ours about it.

    `kind`: "shape" (about order), "number" (with a relative `tolerance`), "consistency" (between printed numbers; needs
    no run). `expect` is what a full reproduction in the simulator finds; `why` explains it.
    """

    id: str
    experiment: str | None
    where: str
    origin: str
    kind: str
    statement: str
    predicate: str
    published: str
    tolerance: float | None
    headline: bool
    expect: str
    why: str


@dataclass(frozen=True)
class Paper:
    """A paper: its experiments and claims, in file order."""

    id: str
    title: str
    cite: str
    about: str
    directory: Path
    experiments: Mapping[str, Experiment]
    claims: tuple[Claim, ...]

    def experiment(self, name: str) -> Experiment:
        """The experiment of this name, or an error that lists them."""
        if name in self.experiments:
            return self.experiments[name]
        known = ", ".join(self.experiments)
        raise MptcplabError(with_hint(f"no such experiment of {self.id}: {name!r}", f"one of {known}"))


@dataclass(frozen=True)
class Library:
    """All papers of a directory."""

    papers: Mapping[str, Paper] = field(default_factory=dict)

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """All experiments of all papers by name: a claim may look at another paper's."""
        return {name: experiment for paper in self.papers.values() for name, experiment in paper.experiments.items()}

    def choose(self, name: str) -> list[Paper]:
        """The paper of this name, or all of them."""
        if name == "all":
            return list(self.papers.values())
        if name in self.papers:
            return [self.papers[name]]
        known = ", ".join(self.papers)
        raise MptcplabError(with_hint(f"no such paper: {name!r}", f"all, or one of {known}"))


def directory(start: Path | None = None) -> Path:
    """Where the papers are: below the current directory, or in the repository that this package is part of."""
    places = [start or Path.cwd(), Path(__file__).resolve().parents[4]]
    for place in places:
        if any((place / PAPERS).glob("*/paper.toml")):
            return place / PAPERS
    raise MptcplabError(
        with_hint(f"no papers: {places[0] / PAPERS}", "run it in a clone of the repository, where they are")
    )


def load(root: Path | None = None) -> Library:
    """Read every paper below `root`, or say what is wrong in which file."""
    found = directory() if root is None else root
    papers = [_paper(path.parent) for path in sorted(found.glob("*/paper.toml"))]
    library = Library({paper.id: paper for paper in papers})
    for paper in papers:
        for claim in paper.claims:
            if claim.experiment is not None and claim.experiment not in library.experiments:
                where = paper.directory / "claims.toml"
                raise MptcplabError(f"{where}: {claim.id}: experiment: no such experiment: {claim.experiment!r}")
    return library


def _paper(folder: Path) -> Paper:
    table = _Table(folder / "paper.toml", "", _toml(folder / "paper.toml"))
    profile = table.word("profile", PROFILES)
    paper = Paper(
        folder.name,
        table.text("title"),
        table.text("cite"),
        table.text("about"),
        folder,
        {one.id: one for one in (_experiment(folder, profile, part) for part in table.tables("experiments"))},
        tuple(_claim(part) for part in _Table(folder / "claims.toml", "", _toml(folder / "claims.toml")).rows("claim")),
    )
    table.done()
    return paper


def _experiment(folder: Path, profile: str, table: _Table) -> Experiment:
    scenario = folder / table.text("scenario")
    if not scenario.is_file():
        raise table.wrong("scenario", scenario.name, "a file beside paper.toml")
    spans = {f"phase {i + 1}": _span(table, "phases", pair) for i, pair in enumerate(table.list("phases"))}
    for i, begin in enumerate(table.list("bins")[:-1]):
        spans[f"bin {i}"] = _span(table, "bins", [begin, table.list("bins")[i + 1]])
    experiment = Experiment(
        id=table.name.removeprefix("experiments."),
        paper=folder.name,
        title=table.text("title"),
        where=table.text("where"),
        scenario=scenario,
        algorithms=tuple(table.list("algorithms")),
        settings=table.settings("settings"),
        profile=table.word("profile", PROFILES, profile),
        repetitions=int(table.number("repetitions", 10)),
        sample=table.text("sample", "1 s"),
        ideal={name: float(rate) for name, rate in table.dict("ideal").items()},
        fairness={name: tuple(tuple(group) for group in groups) for name, groups in table.dict("fairness").items()},
        published=table.text("published", ""),
        sweep=_sweep(table),
        variants={name: _texts(table, "variants", part) for name, part in table.dict("variants").items()},
        spans=spans,
        figures=tuple(_figure(part) for part in table.rows("figures")),
        view_of=table.text("view_of", "") or None,
    )
    table.done()
    return experiment


def _span(table: _Table, key: str, pair: Any) -> tuple[float, float]:
    begin, end = (float(edge) for edge in pair)
    if not begin < end:
        raise table.wrong(key, str(pair), "times in s that go up")
    return begin, end


def _sweep(table: _Table) -> Sweep | None:
    points = []
    for part in table.rows("sweep"):
        points.append(Point(part.text("label"), part.number("x"), part.settings("settings")))
        part.done()
    axis = table.text("sweep_axis", "")
    return Sweep(axis, tuple(points)) if points else None


def _figure(table: _Table) -> FigureSpec:
    figure = FigureSpec(
        kind=table.word("kind", FIGURES),
        of=table.text("of"),
        metric=table.text("metric", ""),
        flows=tuple(table.list("flows")),
        algorithms=tuple(table.list("algorithms")),
        title=table.text("title", ""),
        stack=bool(table.value("stack", False)),
        published={name: float(value) for name, value in table.dict("published").items()},
    )
    table.done()
    return figure


def _claim(table: _Table) -> Claim:
    tolerance = table.value("tolerance", None)
    claim = Claim(
        id=table.text("id"),
        experiment=table.text("experiment", "") or None,
        where=table.text("where", ""),
        origin=table.word("origin", ("paper", "lab")),
        kind=table.word("kind", KINDS),
        statement=table.text("statement"),
        predicate=table.text("predicate"),
        published=table.text("published", ""),
        tolerance=None if tolerance is None else float(tolerance),
        headline=bool(table.value("headline", False)),
        expect=table.word("expect", EXPECTATIONS),
        why=table.text("why", "").strip(),
    )
    table.done()
    return claim


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MptcplabError(f"no such file: {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise MptcplabError(f"{path}: {error}") from None


def _texts(table: _Table, key: str, part: Any) -> dict[str, str]:
    if not isinstance(part, dict):
        raise table.wrong(key, str(part), "a table of settings")
    return {name: _toml_value(value) for name, value in part.items()}


def _toml_value(value: Any) -> str:
    """A setting as it would be written in a scenario file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml_value(part)}" for key, part in value.items()) + " }"
    return repr(value)


class _Table:
    """A TOML table whose every key has to be asked for: what is left over is a mistake of the file."""

    def __init__(self, path: Path, name: str, data: Mapping[str, Any]) -> None:
        self.path, self.name, self.data = path, name, data
        self.left = set(data)

    def value(self, key: str, *default: Any) -> Any:
        self.left.discard(key)
        if key in self.data:
            return self.data[key]
        if default:
            return default[0]
        raise MptcplabError(f"{self.path}: {self._path(key)}: missing")

    def text(self, key: str, *default: str) -> str:
        found = self.value(key, *default)
        if not isinstance(found, str):
            raise self.wrong(key, str(found), "a text")
        return found

    def number(self, key: str, *default: float) -> float:
        found = self.value(key, *default)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self.wrong(key, str(found), "a number")
        return found

    def word(self, key: str, words: Iterable[str], *default: str) -> str:
        found = self.text(key, *default)
        if found not in words:
            raise self.wrong(key, found, "one of " + ", ".join(words))
        return found

    def list(self, key: str) -> list[Any]:
        found = self.value(key, [])
        if not isinstance(found, list):
            raise self.wrong(key, str(found), "a list")
        return found

    def dict(self, key: str) -> dict[str, Any]:
        found = self.value(key, {})
        if not isinstance(found, dict):
            raise self.wrong(key, str(found), "a table")
        return found

    def settings(self, key: str) -> dict[str, str]:
        return _texts(self, key, self.value(key, {}))

    def tables(self, key: str) -> list[_Table]:
        return [_Table(self.path, f"{key}.{name}", part) for name, part in self.dict(key).items()]

    def rows(self, key: str) -> list[_Table]:
        return [_Table(self.path, f"{self._path(key)}[{i}]", row) for i, row in enumerate(self.list(key))]

    def done(self) -> None:
        if self.left:
            raise MptcplabError(f"{self.path}: {self._path(sorted(self.left)[0])}: unknown key")

    def wrong(self, key: str, value: str, right: str) -> MptcplabError:
        return MptcplabError(with_hint(f"{self.path}: {self._path(key)}: not right: {value!r}", f"it is {right}"))

    def _path(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key
