"""The reproduction in the repository's documentation: Markdown and figures. Same results, same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mptcplab import markdown
from mptcplab.markdown import escaped, table
from mptcplab.output import write_text
from mptcplab.plots.figure import save
from mptcplab.studies.papers.catalog import Experiment
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.report import charts, tables
from mptcplab.studies.papers.report.draw import draw
from mptcplab.studies.papers.report.page import combined, contradictions, expected
from mptcplab.studies.papers.report.reader import Reader, order
from mptcplab.studies.papers.report.verdicts import DEPENDENT, claim_counts
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.study.verdict import Verdict

_FIGURES = "figures"
_COMMAND = "mptcplab reproduce"
_CLAIM_HEADS = ("claim", "verdict", "statement")


def write_pages(reproductions: Sequence[Reproduction], out: Path) -> list[Path]:
    """Write `<paper>.md`, their figures and `README.md`; return their paths."""
    written: list[Path] = []
    (out / _FIGURES).mkdir(parents=True, exist_ok=True)
    for one in reproductions:
        figures = list(_figures(one))
        for stem, figure in figures:
            assert figure.chart is not None
            written += save(draw(figure.chart), out / _FIGURES / stem)
        written.append(out / f"{one.paper.id}.md")
        write_text(written[-1], _paper(one, figures))
    written.append(out / "README.md")
    write_text(written[-1], _overview(reproductions))
    return written


def _figures(reproduction: Reproduction) -> Iterator[tuple[str, charts.Figure]]:
    """The figures worth a place in the documentation, each with the stem of its files."""
    places = order(reproduction)
    for experiment in _headline_experiments(reproduction):
        reader = Reader(reproduction, experiment)
        for index, spec in enumerate(experiment.figures):
            # Time series show one repetition of many: the report has them.
            if spec.kind != "time":
                figure = charts.figure(reader, spec, places)
                if figure.chart is not None:
                    yield f"{experiment.id}-{index}".lower(), figure
    for index, figure in enumerate(combined(reproduction)):
        if figure.chart is not None:
            yield f"{reproduction.paper.id}-all-{index}", figure


def _headline_experiments(reproduction: Reproduction) -> list[Experiment]:
    """Experiments with a headline claim, and those that share a figure of the paper with one of them."""
    named = {judged.claim.experiment for judged in reproduction.claims if judged.claim.headline}
    shared = {spec.of for one in reproduction.experiments if one.id in named for spec in one.figures}
    return [
        one
        for one in reproduction.experiments
        if one.id in named or any(spec.of in shared and spec.of.startswith("Fig.") for spec in one.figures)
    ]


def _overview(reproductions: Sequence[Reproduction]) -> str:
    rows = [
        [f"[{one.paper.title}]({one.paper.id}.md)", *map(str, claim_counts(one.claims).values())]
        for one in reproductions
    ]
    parts = [
        "The experiments of the papers, run again, with a verdict on every claim from what was measured. `mptcplab "
        "reproduce all` writes the whole report: every figure, every comparison, and the commands that repeat them.",
        table(["paper", *(verdict.value for verdict in Verdict), DEPENDENT], rows),
        "## Headline claims",
    ]
    for one in reproductions:
        headlines = [judged for judged in one.claims if judged.claim.headline]
        if headlines:
            parts += [f"### {one.paper.title}", table(_CLAIM_HEADS, map(_row, headlines))]
    return markdown.document("Papers, reproduced", _COMMAND, parts)


def _paper(reproduction: Reproduction, figures: Sequence[tuple[str, charts.Figure]]) -> str:
    paper = reproduction.paper
    # The build names the machine that compiled it; the version says what was run.
    made = [f"{name} {value}" for name, value in tables.facts(reproduction).items() if name != "Build"]
    about_runs = [judged for judged in reproduction.claims if judged.claim.kind != "consistency"]
    parts = [
        f"{paper.cite}.",
        paper.about,
        f"Made with `{_command(reproduction)}`. {'; '.join(made)}.",
        ", ".join(f"{count} {name}" for name, count in claim_counts(reproduction.claims).items()) + ".",
        "## Verdicts",
        table([*_CLAIM_HEADS, "why"], ([*_row(judged), judged.claim.why] for judged in about_runs)),
    ]
    beside = list(_beside(reproduction))
    if beside:
        parts += ["## The paper's numbers beside ours", table(["from", "what", "paper", "ours", "difference"], beside)]
    if figures:
        parts += ["## Figures, from our data", *_drawn(reproduction, figures)]
    if contradictions(reproduction):
        rows = map(_row, contradictions(reproduction))
        parts += ["## Contradictions inside the paper", table(_CLAIM_HEADS, rows)]
    return markdown.document(paper.title, _COMMAND, parts)


def _command(reproduction: Reproduction) -> str:
    planner = reproduction.planner
    options = (f" --engine {planner.engine}" if planner.engine != "sim" else "") + (" --quick" if planner.quick else "")
    return f"{_COMMAND} {reproduction.paper.id}{options}"


def _row(judged: JudgedClaim) -> list[str]:
    shown = f"{judged.verdict.mark} {judged.verdict}"
    if judged.profile_dependent:
        by_profile = ", ".join(f"{finding.name}: {finding.verdict}" for finding in judged.findings)
        shown += f", {DEPENDENT} ({by_profile})"
    if judged.verdict != judged.claim.expect:
        shown += f" ({expected(judged)})"
    name = f"**{judged.claim.id}**" if judged.claim.headline else judged.claim.id
    return [name, shown, judged.claim.statement]


def _beside(reproduction: Reproduction) -> Iterator[list[str]]:
    for experiment in reproduction.experiments:
        for row in tables.beside(Reader(reproduction, experiment), reproduction.claims_about(experiment)):
            what = f"`{row.what}`" if row.verdict else row.what
            source = row.source if row.verdict else f"{experiment.id}, {row.source}"
            yield [source, what, row.paper, row.ours, row.difference]


def _drawn(reproduction: Reproduction, figures: Iterable[tuple[str, charts.Figure]]) -> Iterator[str]:
    headed = ""
    for stem, figure in figures:
        if figure.experiment != headed:
            headed = figure.experiment
            experiment = reproduction.paper.experiments.get(headed)
            yield f"### {experiment.id}: {experiment.title}" if experiment else "### Over several experiments"
            if experiment is not None and experiment.published:
                yield f"The paper: {escaped(experiment.published)}"
        yield f"{markdown.figure(figure.title, f'{_FIGURES}/{stem}')}. {figure.caption}"
        yield from (f"- {escaped(note)}" for note in figure.notes)
