"""The pages about several engines: a table of the verdicts side by side, and what was measured where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from mptcplab import markdown
from mptcplab.capabilities import directory_of
from mptcplab.markdown import escaped
from mptcplab.output import write_text
from mptcplab.report import page
from mptcplab.studies.papers.catalog import Paper
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.report import tables
from mptcplab.studies.papers.report.evidence import evidence
from mptcplab.studies.papers.report.page import quick_note
from mptcplab.studies.papers.report.verdicts import as_data, measured
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.studies.papers.side_by_side import Compared, Relation, SideBySide
from mptcplab.study.page import writing_page
from mptcplab.text import Table

_ABOUT = (
    "The same experiments on several engines, with the verdict of each on every claim that needs a run, under the "
    "paper's own rules."
)


def write(found: Sequence[SideBySide], out: Path, command: str, docs: Path | None = None) -> Path:
    """Write `index.html` and `verdicts.json` into `out`, and with `docs` a page in Markdown per paper there.

    The pages of every engine are in its directory below `out`. Returns the path of `index.html`.
    """
    with writing_page(out):
        write_text(out / "verdicts.json", _json(found))
        write_text(out / "index.html", _html(found, command))
    if docs is not None:
        with writing_page(docs):
            docs.mkdir(parents=True, exist_ok=True)
            for one in found:
                write_text(docs / f"{_paper(one).id}-engines.md", _markdown(one, command))
    return out / "index.html"


def _paper(one: SideBySide) -> Paper:
    return one.reproductions[0].paper


def table(found: Sequence[SideBySide]) -> Table:
    """How many claims of each paper have the same verdict on all engines, and how many another one."""
    heads = [("Paper", ""), *((one.capitalize().replace(" on ", "\non "), "") for one in Relation), ("Total", "")]
    rows = [(_paper(one).id, *map(str, _counts(one))) for one in found]
    return Table(tuple(heads), tuple(rows), ())


def _counts(one: SideBySide) -> list[int]:
    return [*(len(one.with_relation(relation)) for relation in Relation), len(one.claims)]


def lines(found: Sequence[SideBySide]) -> list[str]:
    """One line per claim with opposite verdicts."""
    return [
        f"{claim.claim.id}  {_verdicts(claim, one)}: {claim.claim.statement}"
        for one in found
        for claim in one.with_relation(Relation.OPPOSITE)
    ]


def _verdicts(claim: Compared, one: SideBySide) -> str:
    verdicts = (judged.findings[0].text for judged in claim.judged)
    return ", ".join(f"{verdict} on {engine}" for verdict, engine in zip(verdicts, one.engines, strict=True))


def by_engine(found: Sequence[SideBySide]) -> dict[str, Any]:
    """Every claim with its findings, by engine and paper, for programs."""
    together = zip(*(one.reproductions for one in found), strict=True)
    return {some[0].planner.engine: as_data(some) for some in together}


def _json(found: Sequence[SideBySide]) -> str:
    rows = [
        {
            "paper": _paper(one).id,
            "claim": claim.claim.id,
            "statement": claim.claim.statement,
            "expect": claim.claim.expect,
            "relation": claim.relation,
            "schedulers": one.schedulers(claim),
            "engines": {
                engine: {
                    "verdict": judged.verdict,
                    "provisional": judged.provisional,
                    "repetitions": judged.findings[0].repetitions,
                    "measured": measured(judged.findings[0]),
                }
                for engine, judged in zip(one.engines, claim.judged, strict=True)
            },
        }
        for one in found
        for claim in one.claims
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def _html(found: Sequence[SideBySide], command: str) -> str:
    engines = found[0].engines
    return page.render(
        __package__,
        "side_by_side.html",
        page.template_text(__package__, "papers.css"),
        title="Papers on several engines",
        about=_ABOUT,
        command=command,
        papers=found,
        engines=engines,
        directories=[directory_of(engine) for engine in engines],
        notes=list(dict.fromkeys(note for one in found for note in _notes(one))),
        ran=[f"{_paper(one).id}: {text}" for one in found for text in _ran(one)],
        relations=tuple(Relation),
        same=Relation.SAME,
        counts=[(_paper(one), _counts(one)) for one in found],
        measured=lambda judged: measured(judged.findings[0]),
        remarks=_remarks,
    )


def _ran(one: SideBySide) -> Iterator[str]:
    """What ran on every engine, as it was recorded."""
    for reproduction in one.reproductions:
        facts = tables.facts(reproduction)
        yield facts.get("Engine") or reproduction.planner.engine


def _notes(one: SideBySide) -> list[str]:
    """What the verdicts of quick reproductions are worth."""
    return list(dict.fromkeys(filter(None, map(quick_note, one.reproductions))))


def _remarks(claim: Compared, one: SideBySide) -> list[str]:
    """What else was different, or is known to differ, where the verdicts are not the same."""
    schedulers = [
        f"Packet scheduler of {flow}: " + ", ".join(f"{name} on {engine}" for engine, name in names.items())
        for flow, names in one.schedulers(claim).items()
    ]
    return schedulers + [f"Known: {text}" for text in _differences(claim, one)]


def _differences(claim: Compared, one: SideBySide) -> list[str]:
    """What is known about the engines' differences for the algorithms of a claim, where the verdicts are opposite."""
    if claim.relation != Relation.OPPOSITE:
        return []
    known = (evidence(*pair).differences for pair in zip(one.reproductions, claim.judged, strict=True))
    return list(dict.fromkeys(chain.from_iterable(known)))


def _markdown(one: SideBySide, command: str) -> str:
    paper = _paper(one)
    differing = [claim for claim in one.claims if claim.relation != Relation.SAME]
    parts = [
        f"[{paper.title}]({paper.id}.md): {escaped(paper.cite)}.",
        _ABOUT,
        *_notes(one),
        "\n".join(f"- {text}" for text in _ran(one)),
        markdown.table([*map(str.capitalize, Relation), "Total"], [list(map(str, _counts(one)))]),
        "## Verdicts",
        markdown.table(["claim", *one.engines, "statement"], [_row(claim) for claim in one.claims]),
        *(["## Where they differ"] if differing else []),
        *chain.from_iterable(_entry(claim, one) for claim in differing),
    ]
    return markdown.document(f"{paper.title}: {' and '.join(one.engines)}", command, parts)


def _row(claim: Compared) -> list[str]:
    name = (
        claim.claim.id if claim.relation == Relation.SAME else f"[{claim.claim.id}](#{markdown.anchor(_head(claim))})"
    )
    return [name, *(f"{one.verdict.mark} {one.verdict}" for one in claim.judged), claim.claim.statement]


def _head(claim: Compared) -> str:
    return f"{claim.claim.id}: {claim.relation}"


def _entry(claim: Compared, one: SideBySide) -> Iterator[str]:
    yield f"### {_head(claim)}"
    yield escaped(claim.claim.statement)
    pairs = zip(one.reproductions, claim.judged, strict=True)
    found = [_engine_line(*pair) for pair in pairs]
    yield "\n".join([*found, *(f"- {escaped(text)}." for text in _remarks(claim, one))])


def _engine_line(reproduction: Reproduction, judged: JudgedClaim) -> str:
    finding = judged.findings[0]
    count = f", {finding.repetitions} repetitions" if finding.repetitions > 1 else ""
    shown = measured(finding)
    return f"- {reproduction.planner.engine}{count}: {finding.text}" + (f": `{shown}`" if shown else "")
