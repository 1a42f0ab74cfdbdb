"""The pages of a reproduction: one self-contained file per paper, without scripts or requests to anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mptcplab.plots.svg import inline
from mptcplab.report import page, topology_svg
from mptcplab.studies.papers.catalog import Experiment, FigureSpec
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.classes import ClaimClass, class_counts, class_of
from mptcplab.studies.papers.planner import QUICK_ALLOWANCE, QUICK_SECONDS
from mptcplab.studies.papers.predicate import Fact
from mptcplab.studies.papers.priors import Priors, quality
from mptcplab.studies.papers.report import charts, tables
from mptcplab.studies.papers.report.draw import draw
from mptcplab.studies.papers.report.evidence import Evidence, background, evidence
from mptcplab.studies.papers.report.reader import Reader, order
from mptcplab.studies.papers.report.verdicts import count_rows, dependence, expected_errors, is_literal, margin
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.study.decision import ERROR

CITE = (
    "To cite a verdict, name the claim, the version of mptcplab and the commit of the page, for example: DUB-08, "
    "mptcplab 0.1.0, docs/papers/dubey2023.md at commit 69a84db. The command of each entry repeats it."
)
# With more comparisons than this, a claim shows them only when asked.
_MANY_FACTS = 8


def paper_page(reproduction: Reproduction, command: str) -> str:
    """The HTML text of one paper."""
    places = order(reproduction)
    return _render(
        "paper.html",
        title=reproduction.paper.title,
        paper=reproduction.paper,
        facts=tables.facts(reproduction),
        quick=quick_note(reproduction),
        command=command,
        counts=count_rows([reproduction]),
        dependence=dependence([reproduction]),
        cite=CITE,
        evidence=_evidence([reproduction]),
        headlines=[judged for judged in reproduction.claims if judged.claim.headline],
        unexpected=reproduction.unexpected,
        sections=[_Section(reproduction, one, places) for one in reproduction.experiments],
        combined=[_drawn(figure, f"all-{i}") for i, figure in enumerate(combined(reproduction))],
        contradictions=contradictions(reproduction),
        contradiction_counts=class_counts(contradictions(reproduction)),
        comments=tables.comments(reproduction.experiments),
        error=ERROR,
    )


def index_page(reproductions: Sequence[Reproduction], command: str) -> str:
    """The HTML text of the page over all papers."""
    return _render(
        "index.html",
        title="Papers reproduced",
        reproductions=reproductions,
        quick=quick_note(reproductions[0]) if reproductions else "",
        command=command,
        counts=count_rows(reproductions),
        evidence=_evidence(reproductions),
        papers={one.paper.id: one.paper for one in reproductions},
        dependence=dependence(reproductions),
        priors=_priors(reproductions),
        cite=CITE,
        unexpected=[(one.paper, judged) for one in reproductions for judged in one.unexpected],
        errors=expected_errors(reproductions),
        engine=", ".join(dict.fromkeys(one.planner.engine for one in reproductions)),
    )


def _priors(reproductions: Sequence[Reproduction]) -> str:
    """How good the priors were."""
    known = background(reproductions[0]).priors if reproductions else Priors()
    return quality(known, known.scored(judged for one in reproductions for judged in one.claims))


def _evidence(reproductions: Sequence[Reproduction]) -> dict[str, Evidence]:
    """The evidence by claim."""
    return {judged.claim.id: evidence(one, judged) for one in reproductions for judged in one.claims}


def quick_note(reproduction: Reproduction) -> str:
    """What the verdicts of a quick reproduction are worth; nothing for a full one."""
    planner = reproduction.planner
    if not planner.quick:
        return ""
    most = max((planner.repetitions(one) for one in reproduction.experiments), default=0)
    return (
        f"A quick reproduction: at most {most} repetitions, and no more than {QUICK_SECONDS:g} s measured where the "
        "length of a run decides nothing. Its verdicts are provisional. Where runs are shorter, a claim is "
        f"decided only if its margin also exceeds {100 * QUICK_ALLOWANCE:g} % of the compared quantities."
    )


def _render(name: str, **context: Any) -> str:
    style = page.template_text(__package__, "papers.css")
    functions = (expected, reason, side, share, sign, margin, class_of)
    helpers: dict[str, Any] = {function.__name__: function for function in functions} | {"many_facts": _MANY_FACTS}
    return page.render(__package__, name, style, classes=tuple(ClaimClass), **helpers, **context)


def expected(judged: JudgedClaim) -> str:
    """Compares the verdict with that of the last full reproduction in the simulator."""
    return f"expected: {judged.claim.expect}" if judged.changed else "as expected"


def reason(judged: JudgedClaim) -> str:
    """The reason with its numbers; where these or the verdict are not what it explains, it says so."""
    if not judged.why:
        return ""
    if judged.changed:
        return f"Written for another verdict ({judged.claim.expect}): {judged.why}"
    return judged.why if judged.why_fits else f"These words no longer fit the numbers: {judged.why}"


def side(fact: Fact, right: bool) -> str:
    """One side of a comparison: what it is, and its value unless that says the same."""
    text, value = (fact.right, fact.right_value) if right else (fact.left, fact.left_value)
    return text if is_literal(text) else f"{text} = {value}"


def sign(operator: str) -> str:
    """A comparison as it is printed.

    >>> sign("<="), sign("in")
    ('≤', 'in')
    """
    return {"<=": "≤", ">=": "≥", "==": "=", "!=": "≠"}.get(operator, operator)


def share(value: float) -> str:
    """A part in percent.

    >>> share(1.0), share(0.9763)
    ('100 %', '97.6 %')
    """
    return f"{100 * value:.3g} %"


def contradictions(reproduction: Reproduction) -> list[JudgedClaim]:
    """Claims about whether what a paper prints fits together."""
    return [judged for judged in reproduction.claims if judged.claim.kind == "consistency"]


def combined(reproduction: Reproduction) -> list[charts.Figure]:
    """The figures that a paper draws over several experiments, whole."""
    groups: dict[tuple[str, str, str], list[tuple[Reader, FigureSpec]]] = {}
    for experiment in reproduction.experiments:
        for spec in experiment.figures:
            # What has no number of its own (a control, a section) is not one figure of the paper.
            if spec.kind in ("box", "bars", "sweep") and spec.of.startswith(("Fig.", "Table")):
                key = (charts.common_name(spec), spec.kind, spec.metric)
                groups.setdefault(key, []).append((Reader(reproduction, experiment), spec))
    several = [group for group in groups.values() if len({reader.experiment.id for reader, _ in group}) > 1]
    places = order(reproduction)
    return [charts.combined(group, places) for group in several]


@dataclass(frozen=True)
class Drawn:
    """A figure with its drawing."""

    figure: charts.Figure
    svg: str

    @property
    def rows(self) -> list[charts.Row]:
        """The numbers of the figure."""
        return self.figure.chart.rows() if self.figure.chart is not None else []


def _drawn(figure: charts.Figure, name: str) -> Drawn:
    svg = "" if figure.chart is None else inline(draw(figure.chart), name, figure.title)
    return Drawn(figure, svg)


class _Section:
    """The section of one experiment."""

    def __init__(self, reproduction: Reproduction, experiment: Experiment, places: Mapping[str, int]) -> None:
        self.experiment, self.places = experiment, places
        self.reader = Reader(reproduction, experiment)
        self.topology = self.reader.topology
        self.drawable = topology_svg.can_draw(self.topology)
        mine = reproduction.claims_about(experiment)
        self.claims = [judged for judged in mine if judged.claim.kind != "consistency"]
        self.counts = class_counts(self.claims)
        self.beside = tables.beside(self.reader, self.claims)
        self.ideals = tables.ideals(self.reader)
        self.ideal_names = tuple(tables.IDEALS.values())
        self.ran = tables.what_ran(self.reader, places)
        self.commands = tables.commands(self.reader)
        self.legend = topology_svg.legend(self.topology)

    @property
    def network(self) -> str:
        """The topology, for wide and for narrow screens."""
        return topology_svg.for_any_width(self.topology)

    def figures(self) -> Iterator[Drawn]:
        """The figures of the experiment, one after the other."""
        for index, spec in enumerate(self.experiment.figures):
            yield _drawn(charts.figure(self.reader, spec, self.places), f"{self.experiment.id}-{index}")

    @property
    def refusals(self) -> list[tuple[str, str]]:
        """Refused cells by reason: which, and why."""
        ordered = sorted(tables.refused(self.reader), key=lambda pair: pair[1])
        return [
            (", ".join(_cell_name(cell) for cell, _ in some), reason)
            for reason, some in groupby(ordered, key=lambda pair: pair[1])
        ]


def _cell_name(cell: Any) -> str:
    parts = (cell.label, cell.point, cell.variant, cell.profile)
    return " ".join(part for part in parts if part)
