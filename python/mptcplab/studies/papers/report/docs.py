"""The reproduction in the repository's documentation: Markdown and figures. Same results, same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mptcplab import markdown
from mptcplab.markdown import escaped, table
from mptcplab.output import write_text
from mptcplab.plots.figure import save
from mptcplab.studies.papers.before import Snapshot
from mptcplab.studies.papers.catalog import Experiment
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.classes import CONTRADICTIONS, OURS, PAPERS, ClaimClass, group_of
from mptcplab.studies.papers.priors import Priors, calibration, quality
from mptcplab.studies.papers.report import charts, tables
from mptcplab.studies.papers.report.draw import draw
from mptcplab.studies.papers.report.entries import claim_table, entries
from mptcplab.studies.papers.report.evidence import background, evidence, why_changed
from mptcplab.studies.papers.report.page import CITE, combined, quick_note
from mptcplab.studies.papers.report.reader import Reader, order
from mptcplab.studies.papers.report.verdicts import (
    class_text,
    count_rows,
    dependence,
    expected_errors,
    named,
    verdicts_json,
)
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.studies.papers.sensitivity import REPETITIONS, Study

_FIGURES = "figures"
_COMMAND = "mptcplab reproduce"
_CHANGES = "changes"
_HEADINGS = {PAPERS: "The paper's claims", OURS: "Our own claims", CONTRADICTIONS: "Contradictions inside the paper"}


def write_page(reproduction: Reproduction, out: Path) -> list[Path]:
    """Write `<paper>.md` and its figures; return their paths."""
    (out / _FIGURES).mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    figures = list(_figures(reproduction))
    for stem, figure in figures:
        assert figure.chart is not None
        written += save(draw(figure.chart), out / _FIGURES / stem)
    written.append(out / f"{reproduction.paper.id}.md")
    write_text(written[-1], _paper(reproduction, figures))
    return written


def write_overview(reproductions: Sequence[Reproduction], out: Path) -> list[Path]:
    """Write `README.md` and what else is about all papers; return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    pages = {"README.md": _overview(reproductions), "verdicts.json": verdicts_json(reproductions)}
    earlier = background(reproductions[0]).earlier
    if earlier.claims:
        pages[f"{_CHANGES}.md"] = _changes(reproductions, earlier)
    for name, text in pages.items():
        write_text(out / name, text)
    return [out / name for name in pages]


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
    known = background(reproductions[0])
    claims = [judged for one in reproductions for judged in one.claims]
    headlines = [one for one in reproductions if any(judged.claim.headline for judged in one.claims)]
    sections = {
        "How to read it": _meanings(),
        "Counts": [_counts(reproductions), dependence(reproductions), expected_errors(reproductions)],
        "Priors": list(_priors(known.priors, claims)),
        "Other choices": [_other_choices(known.sensitivity, reproductions)],
        "Headline claims": [part for one in headlines for part in _headlines(one)],
        "How to cite": [CITE],
    }
    pages = [f"- [{one.paper.title}]({one.paper.id}.md): {escaped(one.paper.cite)}" for one in reproductions]
    if known.earlier.claims:
        pages.append(f"- [What changed since version {known.earlier.version}]({_CHANGES}.md)")
    parts = [
        "The experiments of the papers, run again, with a verdict on every claim from what was measured. `mptcplab "
        "reproduce all` writes the whole report: every figure, every comparison, and the commands that repeat them.",
        "\n".join([*pages, *_contents(sections)]),
        *_written(sections),
    ]
    return markdown.document("Papers, reproduced", _COMMAND, parts)


def _headlines(reproduction: Reproduction) -> list[str]:
    chosen = [judged for judged in reproduction.claims if judged.claim.headline]
    return [f"### {reproduction.paper.title}", claim_table(reproduction, chosen)]


def _counts(reproductions: Sequence[Reproduction]) -> str:
    titles = {one.paper.id: f"[{one.paper.title}]({one.paper.id}.md)" for one in reproductions}
    rows = [
        [named(reproductions, titles.get(name, name)), *map(str, [*row, sum(row)])]
        for name, row in count_rows(reproductions)
    ]
    return table(["claims", *ClaimClass, "total"], rows)


def _meanings() -> list[str]:
    lines = [f"- {one.mark} **{one}**: {one.meaning}" for one in ClaimClass]
    return [
        "\n".join(lines),
        "The *rules* are those of a kernel: how it counts ACKs (the profile), and how its algorithms differ from their "
        "sources (the dialect). The rules of the paper's kernel decide. Claims about order are judged under those of "
        "today's kernels as well. A *reading* says how something was implemented that the paper leaves undefined: the "
        "verdict is about that reading. A *prior* is the probability that we gave a claim before mptcplab ran it. A "
        "*margin* is how far a comparison is inside its bound, with the interval that decides: in the unit of the "
        "values compared (Mbit/s for goodput, ms for round-trip times), and as a part of the ratio where it says "
        '"equal within".',
    ]


def _other_choices(stored: Study, reproductions: Sequence[Reproduction]) -> str:
    """How the verdicts hang on what papers leave open and on what is ours."""
    found = dict(stored.claims)
    for repro in reproductions:
        found |= repro.sensitivity.claims
    if not found:
        return "No verdict was judged under other choices: `mptcplab reproduce all --sensitivity` does that."
    robust = sum(one.robust for one in found.values())
    turned = sum(bool(one.turned_by) for one in found.values())
    return (
        f"{len(found)} claims were judged again with one choice changed at a time: the queues of bottlenecks, the "
        "noise of senders, how ACKs are counted, the dialect, the scheduler, the direction of delays, and the readings "
        f"of algorithms that a paper leaves undefined. {robust} are *robust*: every choice that changes their runs "
        f"gives the same verdict. {turned} are turned by a choice: the opposite is decided. The others stay open "
        f"under some choices; {REPETITIONS} repetitions each, fewer than the verdicts themselves rest on, leave more "
        "open. Of a claim that stays open, *as measured* says on which side of the bound the measured values are. "
        "`mptcplab reproduce all --sensitivity` judges all of them again."
    )


def _priors(known: Priors, claims: Sequence[JudgedClaim]) -> Iterator[str]:
    scored = known.scored(claims)
    yield quality(known, scored)
    if not scored:
        return
    rows = [
        [
            f"{100 * one.low:.0f} to {100 * one.high:.0f} %",
            str(one.count),
            f"{100 * one.mean:.0f} %",
            f"{100 * one.held:.0f} %",
        ]
        for one in calibration(scored)
    ]
    yield table(["prior", "claims", "mean prior", "reproduced"], rows)


def _changes(reproductions: Sequence[Reproduction], earlier: Snapshot) -> str:
    """The table of every claim before and after, and why it changed."""
    rows, changed = [], 0
    for one in reproductions:
        for judged in one.claims:
            was = earlier.claims.get(judged.claim.id)
            changed += was is not None and was.verdict != judged.verdict
            name = f"[{judged.claim.id}]({one.paper.id}.md#{markdown.anchor(judged.claim.id)})"
            rows.append(
                [
                    name,
                    "" if was is None else was.verdict,
                    judged.verdict,
                    class_text(judged, evidence(one, judged)),
                    why_changed(one.paper, judged, was),
                ]
            )
    parts = [
        f"Every claim in version {earlier.version} (commit {earlier.commit[:7]}, {earlier.date}) and today. {changed} "
        f"of {len(rows)} verdicts are other ones.",
        "\n".join(f"- {text}" for text in earlier.since),
        table(["claim", f"version {earlier.version}", "today", "class today", "changes of the claim, and why"], rows),
    ]
    return markdown.document(f"Verdicts since version {earlier.version}", _COMMAND, parts)


def _paper(reproduction: Reproduction, figures: Sequence[tuple[str, charts.Figure]]) -> str:
    paper = reproduction.paper
    # The build names the machine that compiled it; the version says what was run.
    made = [f"{name} {value}" for name, value in tables.facts(reproduction).items() if name != "Build"]
    groups = {
        group: [j for j in reproduction.claims if group_of(j) == group] for group in (PAPERS, OURS, CONTRADICTIONS)
    }
    sections: dict[str, list[str]] = {"Counts": [_counts([reproduction]), dependence([reproduction])]}
    if paper.readings:
        sections["Readings"] = ["\n".join(f"- {one.name}: {escaped(one.says)}." for one in paper.readings)]
    for group, claims in groups.items():
        if claims:
            sections[_HEADINGS[group]] = [claim_table(reproduction, claims)]
    sections["Evidence"] = list(entries(reproduction, reproduction.claims))
    beside = list(_beside(reproduction))
    if beside:
        heads = ["from", "what", "paper", "ours", "difference"]
        sections["The paper's numbers beside ours"] = [table(heads, beside)]
    if figures:
        sections["Figures, from our data"] = list(_drawn(reproduction, figures))
    sections["How to cite"] = [f"The paper: {escaped(paper.cite)}. {CITE}"]
    parts = [
        f"{paper.cite}.",
        paper.about,
        f"Made with `{_command(reproduction)}`. {'; '.join(made)}. [All papers](README.md).",
        quick_note(reproduction),
        "\n".join(_contents(sections)),
        *_written(sections),
    ]
    return markdown.document(paper.title, _COMMAND, parts)


def _contents(sections: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"- [{title}](#{markdown.anchor(title)})" for title in sections]


def _written(sections: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for title, parts in sections.items():
        yield f"## {title}"
        yield from (part for part in parts if part)


def _command(reproduction: Reproduction) -> str:
    planner = reproduction.planner
    options = (f" --engine {planner.engine}" if planner.engine != "sim" else "") + (" --quick" if planner.quick else "")
    return f"{_COMMAND} {reproduction.paper.id}{options}"


def _beside(reproduction: Reproduction) -> Iterator[list[str]]:
    for experiment in reproduction.experiments:
        for row in tables.beside(Reader(reproduction, experiment), reproduction.claims_about(experiment)):
            of_claim = row.held is not None
            what = f"`{row.what}`" if of_claim else row.what
            source = row.source if of_claim else f"{experiment.id}, {row.source}"
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
