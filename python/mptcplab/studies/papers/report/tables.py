"""Tables beside the figures of an experiment: the paper's numbers, ideals, what ran, and how to repeat it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mptcplab.report.html import algorithms_of
from mptcplab.scenario import leading_comment
from mptcplab.studies.papers.catalog import PAPERS, Experiment, FigureSpec
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.predicate import Fact
from mptcplab.studies.papers.report.reader import Reader, flow_label, metric_label, sorted_by
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.study.cell import Cell, RunSpec, run_command
from mptcplab.study.statistics import Estimate
from mptcplab.study.values import NotTestableError
from mptcplab.text import NOT_APPLICABLE

IDEALS = {
    "maxmin_connection": "max-min per connection",
    "maxmin_subflow": "max-min per subflow",
    "propfair": "proportional fairness",
}


@dataclass(frozen=True)
class Beside:
    """A number of the paper and ours; `difference` in percent of the paper's, as text."""

    source: str
    what: str
    paper: str
    ours: str
    difference: str
    # Whether the comparison of a claim is true; None if the number is that of a figure or table.
    held: bool | None = None


def beside(reader: Reader, claims: Iterable[JudgedClaim]) -> list[Beside]:
    """The numbers that the paper prints in figures and claims, with ours."""
    rows = [row for spec in reader.experiment.figures for row in _printed(reader, spec)]
    for judged in claims:
        if judged.claim.kind == "number":
            rows += [_claimed(judged, fact) for fact in judged.findings[0].evidence]
    return rows


def _printed(reader: Reader, spec: FigureSpec) -> list[Beside]:
    rows = []
    for quantity, paper in reader.published(spec).items():
        title, unit = metric_label(spec.metric)
        span = _span_text(reader.experiment, quantity.span)
        where = ", ".join(part for part in (quantity.cc, flow_label(quantity.flow), quantity.point, span) if part)
        what = f"{title} of {where}" + (f" ({unit})" if unit else "")
        try:
            ours = Estimate.of(reader.values(spec.metric, quantity))
        except NotTestableError as error:
            reason = str(error).partition("\n")[0]
            rows.append(Beside(spec.of, what, f"{paper:g}", f"not measured: {reason}", NOT_APPLICABLE))
            continue
        rows.append(Beside(spec.of, what, f"{paper:g}", str(ours), difference(ours.mean, paper)))
    return rows


def _span_text(experiment: Experiment, span: str) -> str:
    if not span:
        return ""
    begin, end = experiment.spans[span]
    return f"{begin:g} to {end:g} s"


def difference(ours: float, paper: float) -> str:
    """The distance of our number from the paper's, in percent of the paper's.

    >>> difference(9.0, 12.0), difference(1.0, 0.0)
    ('-25 %', '–')
    >>> difference(9.72, 9.76), difference(3.0, 3.0)
    ('-0.4 %', '0 %')
    """
    if not paper:
        return NOT_APPLICABLE
    percent = 100 * (ours / paper - 1)
    digits = 0 if abs(percent) >= 9.95 else 1
    shown = f"{percent:+.{digits}f} %"
    return "0 %" if shown in ("+0.0 %", "-0.0 %") else shown


def _claimed(judged: JudgedClaim, fact: Fact) -> Beside:
    ours, paper = (_own_value(text) for text in (fact.left_value, fact.right_value))
    shown = NOT_APPLICABLE
    if fact.operator == "==" and ours is not None and paper is not None:
        shown = difference(ours, paper)
    if fact.operator == "in":
        expected = fact.right_value.replace(", ", " to ")
    else:
        # The paper's own digits, where its side is a number.
        right = fact.right if _own_value(fact.right) is not None else fact.right_value
        expected = right if fact.operator == "==" else f"{fact.operator} {right}"
    return Beside(judged.claim.id, fact.left, expected, fact.left_value, shown, fact.held)


def _own_value(shown: str) -> float | None:
    """The sample's own value of what a fact shows, without its interval."""
    try:
        return float(shown.partition(" ")[0])
    except ValueError:
        return None


def ideals(reader: Reader) -> list[tuple[str, list[str]]]:
    """Per flow (or group of like flows): the paper's ideal and the allocations of theory, in Mbit/s of link rate."""
    experiment, flows = reader.experiment, [flow.name for flow in reader.topology.connections]
    if not experiment.ideal and len(flows) < 2:
        return []
    rows = []
    for name in dict.fromkeys(_group(flow, flows) for flow in flows):
        paper = experiment.ideal.get(name)
        cells = [NOT_APPLICABLE if paper is None else f"{paper:g}"]
        for kind in IDEALS:
            try:
                cells.append(f"{reader.ideal(kind, name):.4g}")
            except NotTestableError:
                cells.append(NOT_APPLICABLE)
        rows.append((name, cells))
    return rows if any(cell != NOT_APPLICABLE for _, cells in rows for cell in cells) else []


def _group(name: str, names: Sequence[str]) -> str:
    """NAME of flows NAME-1, NAME-2, ..., where there are several."""
    stem, _, number = name.rpartition("-")
    alike = [one for one in names if re.fullmatch(rf"{re.escape(stem)}-\d+", one)]
    return stem if number.isdigit() and len(alike) > 1 else name


@dataclass(frozen=True)
class Ran:
    """One algorithm (or other treatment) of an experiment: what its subflows ran, or why the engine refused it."""

    label: str
    what: str
    refused: str
    problems: tuple[str, ...]


def what_ran(reader: Reader, places: Mapping[str, int]) -> list[Ran]:
    """The algorithms that really ran for each treatment of the experiment, as read back from the engine."""
    return [_ran(reader, label) for label in sorted_by(places, reader.own.algorithms)]


def _ran(reader: Reader, label: str) -> Ran:
    cells = [cell for cell in reader.cells() if cell.label == label]
    refusals: list[str] = []
    records = []
    for cell in cells:
        try:
            records.append(reader.record(cell))
        except NotTestableError as error:
            point = f"{cell.point}: " if cell.point else ""
            refusals.append(point + str(error).partition("\n")[0])
    what = algorithms_of(records[0]["subflow_cc"]) if records else ""
    problems = [problem for record in records for problem in record["problems"]]
    return Ran(label, what, "; ".join(dict.fromkeys(refusals)), tuple(dict.fromkeys(problems)))


def commands(reader: Reader) -> list[str]:
    """The commands that repeat the cells of an experiment: those that differ in the algorithm only as one."""
    planner, places = reader.reproduction.planner, {label: place for place, label in enumerate(reader.own.labels)}
    groups: dict[tuple[object, ...], list[RunSpec]] = {}
    for cell in sorted(reader.cells(), key=lambda cell: places[cell.point]):
        spec = planner.spec(cell)
        groups.setdefault((spec.settings, spec.cc is None), []).append(spec)
    found = (_command(specs, reader.experiment.paper, planner.engine) for specs in groups.values())
    return list(dict.fromkeys(found))


def _command(specs: Sequence[RunSpec], paper: str, engine: str) -> str:
    first = specs[0]
    cc = dict.fromkeys(spec.cc for spec in specs if spec.cc is not None)
    path = Path(PAPERS) / paper / first.scenario.name
    return run_command(str(path), first.overrides(*cc), *(["--engine", engine] if engine != "sim" else []))


@dataclass(frozen=True)
class Comment:
    """The comment at the head of a scenario file: the question, and further paragraphs."""

    file: str
    experiments: tuple[str, ...]
    question: str
    paragraphs: tuple[str, ...]


def comments(experiments: Iterable[Experiment]) -> list[Comment]:
    """The leading comment of every scenario file, once, with the experiments that use it."""
    users: dict[Path, list[str]] = {}
    for experiment in experiments:
        users.setdefault(experiment.scenario, []).append(experiment.id)
    found = []
    for path, names in users.items():
        question, paragraphs = leading_comment(path.read_text(encoding="utf-8"))
        found.append(Comment(path.name, tuple(names), question, paragraphs))
    return found


def facts(reproduction: Reproduction) -> dict[str, str]:
    """The origin of a paper's results: engine, version, build, ACK profiles, dialect, seeds, repetitions."""
    outcome = reproduction.outcome
    records = [reproduction.store.record(one) for one in sorted(set(outcome.digests.values()) - set(outcome.refused))]
    reps = sorted({reproduction.planner.repetitions(one) for one in reproduction.experiments})
    found = {
        "Engine": _all(f"{record['engine']} {record['engine_version']}" for record in records),
        "Build": _all(record["build"] for record in records),
        "ACK profile": _all(record["profile"] for record in records),
        "Dialect": _all(reproduction.planner.library.source(one).dialect for one in reproduction.experiments),
        "Seed": _all(record["seed"] for record in records),
        "Repetitions": ", ".join(map(str, reps)),
    }
    return {name: value for name, value in found.items() if value}


def _all(values: Iterable[object]) -> str:
    return ", ".join(sorted({str(value) for value in values}))


def refused(reader: Reader) -> list[tuple[Cell, str]]:
    """The cells of an experiment that the engine refused, with its reason."""
    outcome = reader.reproduction.outcome
    return [
        (cell, outcome.refused[digest])
        for cell, digest in sorted(outcome.digests.items())
        if cell.experiment == reader.own.id and digest in outcome.refused
    ]
