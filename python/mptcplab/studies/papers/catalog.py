"""The papers of `papers/`, with their experiments and claims, read strictly.

`papers/<id>/paper.toml` describes the experiments, `claims.toml` the claims, and `changes.toml`, if there is one, what
was changed in the claims; the scenario files are beside them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from mptcplab.arguments import text
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.studies.papers import changes
from mptcplab.studies.papers.changes import Change
from mptcplab.studies.papers.predicate import parse
from mptcplab.studies.papers.reasons import NO_REASON, Reason, read_reason
from mptcplab.study.page import find_directory
from mptcplab.study.verdict import Verdict

PAPERS = Path("papers")
# Repetitions up to which a claim that stays open gets more, and the most that an experiment may have.
MOST_REPETITIONS = 30
Profile = Literal["rfc", "linux-acked", "linux-legacy", "linux-pre4"]
# How ACKs are counted on today's kernels.
TODAY = "linux-acked"
# The parameter `dialect` of the algorithms that have it: their source's rule, or the out-of-tree kernel's.
Dialect = Literal["spec", "mptcp-0.95"]

T = TypeVar("T")
# The ACK profile and the dialect of a paper, unless an experiment has others.
_Rules = tuple[Profile, Dialect]


@dataclass(frozen=True)
class Point:
    """One point of a sweep: its label, where it lies on the axis, and what it changes in the scenario."""

    label: str
    x: float
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sweep:
    """A varied quantity: the axis' title with its unit, and the points in order."""

    axis: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class FigureSpec:
    """A figure of the paper, to be drawn from our data.

    `kind`: "box" (one box per algorithm and flow), "bars" (means with intervals; subflows are stacked where `stack`),
    "time" (cwnd, RTT and throughput of one repetition), "sweep" (a line per algorithm over the sweep), "spans" (a line
    per algorithm and flow over the bins of a run). `of` names the paper's figure. `flows` may name a flow, a group or
    a subflow as FLOW/SUBFLOW. `published` are values that the paper prints, by algorithm (and, with several flows,
    ALGORITHM FLOW).
    """

    kind: Literal["box", "bars", "time", "sweep", "spans"]
    of: str
    metric: str = ""
    flows: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    title: str = ""
    stack: bool = False
    published: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper: a scenario file, what is compared in it, and what the paper says about it."""

    id: str
    paper: str
    title: str
    where: str
    scenario: Path
    profile: Profile
    dialect: Dialect = "spec"
    algorithms: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    repetitions: int = 10
    sample: str = "1 s"
    # What the paper calls ideal, in Mbit/s of link rate, by flow.
    ideal: Mapping[str, float] = field(default_factory=dict)
    # Flows (or FLOW/SUBFLOW) that Jain's index is over, by the name of the set: groups, of which the mean is taken.
    fairness: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    published: str = ""
    sweep: Sweep | None = None
    # Other settings of the whole experiment, by name.
    variants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Parts of a run that claims look at, by name ("bin 0", "phase 2"): begin and end in s.
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    figures: tuple[FigureSpec, ...] = ()
    # Another experiment whose runs this one looks at, instead of runs of its own.
    view_of: str = ""
    # How the experiment reads what the paper describes in more than one way.
    reading: str = ""
    # A sensitivity study sets these: a further parameter of the algorithm of a treatment, by the treatment's label, and
    # the scheduler of connections that have none.
    parameters: Mapping[str, str] = field(default_factory=dict)
    scheduler: str = ""

    @property
    def points(self) -> tuple[Point, ...]:
        """The points of the sweep; none without one."""
        return self.sweep.points if self.sweep else ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the points; an empty one stands for the only point of an experiment without a sweep."""
        return tuple(point.label for point in self.points) or ("",)

    def dialect_in(self, profile: str) -> Dialect:
        """The dialect of all algorithms in an ACK profile: the paper's goes with its own profile only."""
        return self.dialect if profile == self.profile else "spec"

    def point(self, label: str) -> Point:
        """The sweep point with this label."""
        return {point.label: point for point in self.points}[label]


@dataclass(frozen=True)
class Claim:
    """A checkable statement of a paper, or of ours about it.

    `kind`: "shape" (about order), "number" (with a relative `tolerance`), "consistency" (between printed numbers; needs
    no run). `expect` is what the last full reproduction in the simulator found, a mark for regressions; `why` explains
    it, in words that rest on the predicate `why_if`. `cannot_fail` says why the claim is no test of the paper: it holds
    by construction, or the scenario was calibrated for it.
    """

    id: str
    origin: Literal["paper", "lab"]
    kind: Literal["shape", "number", "consistency"]
    statement: str
    predicate: str
    expect: Verdict
    experiment: str | None = None
    where: str = ""
    published: str = ""
    tolerance: float | None = None
    headline: bool = False
    cannot_fail: Literal["", "by construction", "calibrated"] = ""
    why: Reason = NO_REASON
    why_if: str = ""


@dataclass(frozen=True)
class Reading:
    """How treatments are run that a paper does not define completely: one reading of several.

    `others` are parameters of the algorithm that stand for other readings.
    """

    of: tuple[str, ...]
    name: str
    says: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper: its experiments, claims and the changes of its claims, in file order."""

    id: str
    title: str
    cite: str
    about: str
    directory: Path
    experiments: Mapping[str, Experiment]
    claims: tuple[Claim, ...]
    changes: tuple[Change, ...] = ()
    readings: tuple[Reading, ...] = ()

    def experiment(self, name: str) -> Experiment:
        """The experiment of this name, or an error that lists them."""
        if name in self.experiments:
            return self.experiments[name]
        known = ", ".join(self.experiments)
        raise MptcplabError(with_hint(f"no such experiment of {self.id}: {name!r}", f"one of {known}"))

    def claim(self, name: str) -> Claim:
        """The claim of this name, or an error that lists them."""
        found = {claim.id: claim for claim in self.claims}
        if name in found:
            return found[name]
        raise MptcplabError(with_hint(f"no such claim of {self.id}: {name!r}", f"one of {', '.join(found)}"))


@dataclass(frozen=True)
class Library:
    """All papers of a directory."""

    papers: Mapping[str, Paper] = field(default_factory=dict)
    # Where they were read from; the priors and the verdicts of earlier versions are beside them.
    root: Path | None = None

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """All experiments of all papers by name: a claim may look at another paper's."""
        return {name: experiment for paper in self.papers.values() for name, experiment in paper.experiments.items()}

    def source(self, experiment: Experiment) -> Experiment:
        """The experiment whose runs this one looks at: itself, unless it is a view of another."""
        return self.experiments[experiment.view_of] if experiment.view_of else experiment

    def choose(self, name: str) -> list[Paper]:
        """The paper of this name, or all of them."""
        text("paper", name, "kim2021")
        if name == "all":
            return list(self.papers.values())
        if name in self.papers:
            return [self.papers[name]]
        known = ", ".join(self.papers)
        hint = f"all, or one of {known}; one of your own is a folder with a paper.toml, in papers/ below this directory"
        raise MptcplabError(with_hint(f"no such paper: {name!r}", hint))


def directory(start: Path | None = None) -> Path:
    """The directory of the papers."""
    hint = "run it in a clone of the repository, where they are"
    return find_directory(PAPERS, "papers", lambda place: any(place.glob("*/paper.toml")), hint, start)


def load(root: Path | None = None) -> Library:
    """Read every paper below `root`, or say what is wrong in which file."""
    found = directory() if root is None else root
    papers = [_paper(path.parent) for path in sorted(found.glob("*/paper.toml"))]
    _once("experiment", [(name, paper.directory / "paper.toml") for paper in papers for name in paper.experiments])
    _once("claim", [(claim.id, paper.directory / "claims.toml") for paper in papers for claim in paper.claims])
    library = Library({paper.id: paper for paper in papers}, found)
    for paper in papers:
        for claim in paper.claims:
            if claim.experiment is not None and claim.experiment not in library.experiments:
                where = paper.directory / "claims.toml"
                raise MptcplabError(f"{where}: {claim.id}: experiment: no such experiment: {claim.experiment!r}")
    return library


def _once(what: str, names: Iterable[tuple[str, Path]]) -> None:
    """Refuse a name that there is twice: results and verdicts are found by it."""
    known: dict[str, Path] = {}
    for name, path in names:
        if name in known:
            hint = f"every {what} of all papers has a name of its own; the other one is in {known[name]}"
            raise MptcplabError(with_hint(f"{path}: {what} {name}: there is another one of this name", hint))
        known[name] = path


def _paper(folder: Path) -> Paper:
    table, claims = (_Table.of(folder / name) for name in ("paper.toml", "claims.toml"))
    rules: _Rules = (table.value("profile", Profile), table.value("dialect", Dialect, "spec"))
    read = tuple(_claim(part) for part in claims.rows("claim"))
    return table.read(
        Paper,
        id=folder.name,
        directory=folder,
        experiments={name: _experiment(folder, rules, part) for name, part in table.parts("experiments").items()},
        claims=read,
        changes=_changes(folder / "changes.toml", read),
        readings=tuple(part.read(Reading) for part in table.rows("readings")),
    )


def _claim(table: _Table) -> Claim:
    claim = table.read(Claim)
    for key in ("predicate", "why_if"):
        text = getattr(claim, key)
        if text:
            table.checked(key, parse, text)
    if claim.cannot_fail and not claim.why.pieces:
        raise table.wrong("cannot_fail", claim.cannot_fail, "explained by why")
    if claim.why_if and not claim.why.pieces:
        raise table.wrong("why_if", claim.why_if, "the condition of a why")
    return claim


def _changes(path: Path, claims: tuple[Claim, ...]) -> tuple[Change, ...]:
    if not path.is_file():
        return ()
    table = _Table.of(path)
    found = tuple(part.read(Change) for part in table.rows("change"))
    table.done()
    changes.check(path, found, {claim.id: _parts(claim) for claim in claims})
    return found


def _parts(claim: Claim) -> changes.Parts:
    tolerance = "" if claim.tolerance is None else f"{claim.tolerance:g}"
    return {"predicate": claim.predicate, "statement": claim.statement, "kind": claim.kind, "tolerance": tolerance}


def _experiment(folder: Path, rules: _Rules, table: _Table) -> Experiment:
    scenario = folder / table.value("scenario", str)
    if not scenario.is_file():
        raise table.wrong("scenario", scenario.name, "a file beside paper.toml")
    phases, bins = (table.value(key, list, []) for key in ("phases", "bins"))
    spans = {f"phase {i}": _span(table, "phases", pair) for i, pair in enumerate(phases, 1)}
    spans |= {f"bin {i}": _span(table, "bins", edges) for i, edges in enumerate(pairwise(bins))}
    points = tuple(part.read(Point) for part in table.rows("sweep"))
    for at, point in enumerate(points):
        if point.label in (other.label for other in points[:at]):
            raise table.wrong(f"sweep[{at}].label", point.label, "another one for every point")
    repetitions = table.value("repetitions", int, 10)
    if not 1 <= repetitions <= MOST_REPETITIONS:
        raise table.wrong("repetitions", str(repetitions), f"from 1 to {MOST_REPETITIONS}")
    axis = table.value("sweep_axis", str, "")
    return table.read(
        Experiment,
        id=table.name.removeprefix("experiments."),
        paper=folder.name,
        scenario=scenario,
        profile=table.value("profile", Profile, rules[0]),
        dialect=table.value("dialect", Dialect, rules[1]),
        repetitions=repetitions,
        sweep=Sweep(axis, points) if points else None,
        spans=spans,
        parameters={},
        scheduler="",
        figures=tuple(part.read(FigureSpec) for part in table.rows("figures")),
    )


def _span(table: _Table, key: str, pair: Any) -> tuple[float, float]:
    begin, end = (float(edge) for edge in pair)
    if not begin < end:
        raise table.wrong(key, str(list(pair)), "times in s that go up")
    return begin, end


class _Table:
    """A TOML table whose every key has to be asked for: what is left over is a mistake in the file."""

    def __init__(self, path: Path, name: str, data: Mapping[str, Any]) -> None:
        self.path, self.name, self.data = path, name, data
        self.left = set(data)

    @classmethod
    def of(cls, path: Path) -> _Table:
        try:
            return cls(path, "", tomllib.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise MptcplabError(f"no such file: {path}") from None
        except tomllib.TOMLDecodeError as error:
            raise MptcplabError(f"{path}: {error}") from None

    def read(self, cls: type[T], **known: Any) -> T:
        """An instance of a dataclass: a field that is not `known` is the key of its name. No key may be left over."""
        types = get_type_hints(cls)
        for one in fields(cls):  # type: ignore[arg-type]
            if one.name not in known:
                default = [one.default_factory()] if one.default_factory is not MISSING else [one.default]
                known[one.name] = self.value(one.name, types[one.name], *(d for d in default if d is not MISSING))
        self.done()
        return cls(**known)

    def done(self) -> None:
        """Refuse keys that nobody asked for."""
        if self.left:
            raise MptcplabError(f"{self.path}: {self._path(min(self.left))}: unknown key")

    def value(self, key: str, type_: Any, *default: Any) -> Any:
        self.left.discard(key)
        if key not in self.data:
            if default:
                return default[0]
            raise MptcplabError(f"{self.path}: {self._path(key)}: missing")
        found = self.data[key]
        words = get_args(type_) if get_origin(type_) is Literal else tuple(Verdict) if type_ is Verdict else ()
        if words:
            if found not in words:
                raise self.wrong(key, str(found), "one of " + ", ".join(words))
            return Verdict(found) if type_ is Verdict else found
        right, convert = _CONVERSIONS[type_]
        try:
            return self.checked(key, convert, found)
        except (AttributeError, TypeError, ValueError):
            raise self.wrong(key, str(found), right) from None

    def checked(self, key: str, read: Callable[[Any], Any], found: Any) -> Any:
        """What `read` makes of a value; what it says is wrong is said with the place."""
        try:
            return read(found)
        except MptcplabError as error:
            name = self.data.get("id")
            raise MptcplabError(f"{self.path}: {name + ': ' if name else ''}{self._path(key)}: {error}") from None

    def parts(self, key: str) -> dict[str, _Table]:
        parts = self.value(key, dict, {})
        return {name: _Table(self.path, f"{key}.{name}", part) for name, part in parts.items()}

    def rows(self, key: str) -> list[_Table]:
        return [_Table(self.path, f"{self._path(key)}[{i}]", row) for i, row in enumerate(self.value(key, list, []))]

    def wrong(self, key: str, value: str, right: str) -> MptcplabError:
        return MptcplabError(with_hint(f"{self.path}: {self._path(key)}: not right: {value!r}", f"it is {right}"))

    def _path(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key


def _only(*types: type) -> Callable[[Any], Any]:
    """Refuses all other types; a truth value is no number."""

    def check(value: Any) -> Any:
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise TypeError
        return value

    return check


_text, _number, _list = _only(str), _only(int, float), _only(list)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_text(part) for part in _list(value))


def _settings(value: Any) -> dict[str, str]:
    return {name: _toml_value(part) for name, part in value.items()}


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


# By type: what the value in the file has to be, and how it is read.
_CONVERSIONS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    str: ("a text", lambda value: _text(value).strip()),
    str | None: ("a text", lambda value: _text(value) or None),
    Reason: ("a text", lambda value: read_reason(" ".join(_text(value).split()))),
    bool: ("true or false", _only(bool)),
    int: ("a whole number", _only(int)),
    float: ("a number", _number),
    float | None: ("a number", lambda value: float(_number(value))),
    list: ("a list", _list),
    dict: ("a table", _only(dict)),
    tuple[str, ...]: ("a list of texts", _texts),
    Mapping[str, str]: ("a table of settings", _settings),
    Mapping[str, float]: ("a table of numbers", lambda v: {name: float(_number(part)) for name, part in v.items()}),
    Mapping[str, Mapping[str, str]]: (
        "a table of tables of settings",
        lambda v: {name: _settings(part) for name, part in v.items()},
    ),
    Mapping[str, tuple[tuple[str, ...], ...]]: (
        "a table of lists of lists",
        lambda v: {name: tuple(_texts(group) for group in _list(groups)) for name, groups in v.items()},
    ),
}
