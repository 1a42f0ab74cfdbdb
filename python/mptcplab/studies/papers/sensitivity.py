"""The sensitivity of verdicts: every claim judged again under one other choice at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from mptcplab.cluster.connect import Cluster
from mptcplab.output import write_text
from mptcplab.studies.papers import stored
from mptcplab.studies.papers.catalog import Claim, Library, Paper
from mptcplab.studies.papers.choices import Choice, choices, one_per_axis
from mptcplab.studies.papers.claims import ClaimJudge, JudgedClaim
from mptcplab.studies.papers.planner import Planner
from mptcplab.study.cell import Cell, RunSpec
from mptcplab.study.execute import Executor, Outcome
from mptcplab.study.progress import Announce
from mptcplab.study.store import Store
from mptcplab.study.verdict import Verdict

# Repetitions under every choice: fewer than the verdicts themselves rest on.
REPETITIONS = 4
# What the documentation shows, in the repository of which the papers are a part.
FILE = Path("docs") / "papers" / "sensitivity.json"


@dataclass(frozen=True)
class Answer:
    """The verdict on a claim under one choice, and whether the claim is true of what was measured."""

    axis: str
    value: str
    verdict: Verdict
    held: bool | None = None

    @property
    def measured(self) -> Verdict:
        """The verdict, or, where it is open, what the measured values say without regard to chance."""
        if self.verdict != Verdict.OPEN or self.held is None:
            return self.verdict
        return Verdict.HOLDS if self.held else Verdict.FAILS


@dataclass(frozen=True)
class Sensitivity:
    """The verdict on a claim, and those under the choices that change its runs."""

    verdict: Verdict
    answers: tuple[Answer, ...]

    @property
    def total(self) -> int:
        """The number of verdicts: the claim's own, and one per choice."""
        return 1 + len(self.answers)

    def count(self, verdict: Verdict) -> int:
        """How many of them are this verdict."""
        return [self.verdict, *(one.verdict for one in self.answers)].count(verdict)

    @property
    def turned_by(self) -> list[Answer]:
        """The choices under which the opposite is decided."""
        opposite = {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS}.get(self.verdict)
        return [one for one in self.answers if one.verdict == opposite]

    @property
    def robust(self) -> bool:
        """Whether every choice gives the same verdict."""
        return self.verdict in (Verdict.HOLDS, Verdict.FAILS) and self.count(self.verdict) == self.total

    @property
    def same_as_measured(self) -> int:
        """The number of choices that leave the claim open, with values that agree with its own verdict."""
        return sum(one.verdict == Verdict.OPEN and one.measured == self.verdict != Verdict.OPEN for one in self.answers)

    @property
    def measured_otherwise(self) -> list[Answer]:
        """The choices whose values disagree with the claim's own verdict, decided or not."""
        opposite = {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS}.get(self.verdict)
        return [one for one in self.answers if one.measured == opposite]

    @property
    def short(self) -> str:
        """The same verdict in how many, and the axes that turn it, for a table."""
        axes = ", ".join(dict.fromkeys(one.axis for one in self.turned_by))
        same = f"{self.verdict} in {self.count(self.verdict)} of {self.total}"
        if self.robust:
            return f"robust, {same}"
        more = f", and as measured in {self.same_as_measured} more" if self.same_as_measured else ""
        return f"{same}{more}" + (f"; turned by {axes}" if axes else "")

    def __str__(self) -> str:
        counts = f"holds in {self.count(Verdict.HOLDS)} of {self.total}, fails in {self.count(Verdict.FAILS)}"
        if self.robust:
            return f"robust: {counts}"
        undecided = [one.measured for one in self.answers if one.verdict == Verdict.OPEN and one.held is not None]
        if undecided:
            counts += f", and as measured holds in {undecided.count(Verdict.HOLDS)} more"
            counts += f" and fails in {undecided.count(Verdict.FAILS)} more"
        names: dict[str, list[str]] = {}
        for one in self.turned_by:
            names.setdefault(one.axis, []).append(one.value)
        turned = "; ".join(f"{axis} {', '.join(values)}" for axis, values in names.items())
        return f"{counts}; turned by {turned}" if turned else f"{counts}; turned by none"


@dataclass(frozen=True)
class Study:
    """The sensitivity of claims by name, and how many repetitions each choice had."""

    claims: Mapping[str, Sensitivity] = field(default_factory=dict)
    repetitions: int = REPETITIONS

    def to_json(self) -> str:
        """The text of the file that `read` reads."""
        claims = {
            name: {"verdict": one.verdict, "answers": [[a.axis, a.value, a.verdict, a.held] for a in one.answers]}
            for name, one in self.claims.items()
        }
        return json.dumps({"repetitions": self.repetitions, "claims": claims}, indent=1, ensure_ascii=False) + "\n"


def read(path: Path) -> Study:
    """A stored study; an empty one without the file."""
    if not path.is_file():
        return Study()
    return stored.read(path, _study, "write it again with mptcplab reproduce all --sensitivity")


def _study(text: str) -> Study:
    data = json.loads(text)
    claims = {
        name: Sensitivity(Verdict(one["verdict"]), tuple(Answer(a, v, Verdict(w), h) for a, v, w, h in one["answers"]))
        for name, one in data["claims"].items()
    }
    return Study(claims, int(data["repetitions"]))


def write(study: Study, path: Path) -> None:
    """Store a study; claims of the file that it does not have stay."""
    before = read(path)
    write_text(path, replace(study, claims={**before.claims, **study.claims}).to_json())


def judge_again(
    planner: Planner,
    paper: Paper,
    judged: Iterable[JudgedClaim],
    store: Store,
    jobs: int,
    announce: Announce,
    cluster: Cluster | None,
) -> Study:
    """The sensitivity of judged claims of a paper, on the engine of the planner."""
    claims = {one.claim.id: one for one in judged}
    return SensitivityStudy(planner, paper).run(claims, store, jobs, announce, cluster)


class _Key(NamedTuple):
    """A cell under the choice with this number."""

    choice: int
    cell: Cell


@dataclass(frozen=True)
class SensitivityStudy:
    """Judges claims of a paper under each choice; a quick reproduction has one choice per axis."""

    base: Planner
    paper: Paper

    @cached_property
    def choices(self) -> list[Choice]:
        """The choices."""
        found = choices(self.paper)
        return one_per_axis(found) if self.base.quick else found

    @cached_property
    def planners(self) -> list[Planner]:
        """A planner for each choice."""
        return [
            Planner(self._library(choice), self.base.engine, self.base.quick, REPETITIONS) for choice in self.choices
        ]

    def _library(self, choice: Choice) -> Library:
        """The papers with their experiments as the choice has them."""
        papers = {
            name: replace(
                paper,
                experiments={
                    key: choice.change(experiment, self.base.topology(experiment))
                    for key, experiment in paper.experiments.items()
                },
            )
            for name, paper in self.base.library.papers.items()
        }
        return Library(papers, self.base.library.root)

    def spec(self, key: _Key) -> RunSpec:
        """The runs of a cell under a choice."""
        return self.planners[key.choice].spec(key.cell)

    def wanted(self, claims: Iterable[Claim]) -> dict[str, dict[int, frozenset[Cell]]]:
        """By claim, the choices that change its runs, with the cells that it needs under each."""
        found: dict[str, dict[int, frozenset[Cell]]] = {}
        known: dict[tuple[int, Cell], bool] = {}
        judges = [ClaimJudge(planner, _no_results(planner)) for planner in self.planners]
        for claim in claims:
            if claim.experiment is None:
                continue
            for number, judge in enumerate(judges):
                cells = judge.own_cells(claim)
                if any(self._changes(number, cell, known) for cell in cells):
                    found.setdefault(claim.id, {})[number] = cells
        return found

    def _changes(self, number: int, cell: Cell, known: dict[tuple[int, Cell], bool]) -> bool:
        """Whether a choice changes the runs of a cell; one repetition tells."""
        if (number, cell) not in known:
            with_choice = self.planners[number].spec(cell)
            without = self.base.spec(self._without(cell, number))
            known[number, cell] = _first_run(with_choice) != _first_run(without)
        return known[number, cell]

    def _without(self, cell: Cell, number: int) -> Cell:
        """The cell as the paper has it: an ACK profile of the choice's is the paper's own there."""
        changed = self.planners[number].library.experiments[cell.experiment].profile
        own = self.base.library.experiments[cell.experiment].profile
        return replace(cell, profile=own) if cell.profile == changed else cell

    def run(
        self,
        judged: Mapping[str, JudgedClaim],
        store: Store,
        jobs: int,
        announce: Announce,
        cluster: Cluster | None,
    ) -> Study:
        """Run what the store does not have, and judge. `judged` are the verdicts without any choice."""
        claims = {name: one.claim for name, one in judged.items()}
        wanted = self.wanted(claims.values())
        keys = {_Key(number, cell) for some in wanted.values() for number, cells in some.items() for cell in cells}
        about = f"{self.paper.id}: {len(keys)} cells under {len(self.choices)} other choices"
        with announce(about) as progress:
            executor: Any = Executor(
                self.spec,  # type: ignore[arg-type]
                self.base.engine,
                store,
                jobs,
                progress,
                cluster=cluster,
            )
            executor.make(sorted(keys))
        outcomes = self._outcomes(executor.outcome)
        answers: dict[str, list[Answer]] = {name: [] for name in wanted}
        with announce(f"{self.paper.id}: verdicts under other choices") as progress:
            for number, choice in enumerate(self.choices):
                judge = ClaimJudge(
                    self.planners[number],
                    Executor(self.planners[number].spec, self.base.engine, store, jobs, None, outcomes[number]),
                )
                for name, some in wanted.items():
                    if number in some:
                        found = judge.own_finding(claims[name])
                        answers[name].append(Answer(choice.axis, choice.value, found.verdict, found.held))
                if progress is not None:
                    progress(number + 1, len(self.choices), float(number + 1), float(len(self.choices)))
        return Study({name: Sensitivity(judged[name].verdict, tuple(some)) for name, some in answers.items()})

    def _outcomes(self, outcome: Outcome) -> list[Outcome]:
        """What each choice's judge may read."""
        found = [Outcome(refused=outcome.refused) for _ in self.choices]
        for key, digest in outcome.digests.items():
            found[key.choice].digests[key.cell] = digest  # type: ignore[attr-defined]
        return found


def _no_results(planner: Planner) -> Executor:
    """An executor whose results nobody asks for."""
    return Executor(planner.spec, planner.engine, Store(Path()), 1, None)


def _first_run(spec: RunSpec) -> Any:
    return replace(spec, repetitions=1).resolved()
