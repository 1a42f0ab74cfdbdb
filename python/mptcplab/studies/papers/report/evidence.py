"""The evidence beside a verdict: what it rests on, apart from the comparisons themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mptcplab.studies.papers import before, biases, priors, sensitivity
from mptcplab.studies.papers.before import Earlier, Snapshot
from mptcplab.studies.papers.biases import Bias
from mptcplab.studies.papers.catalog import PAPERS, Experiment, Paper
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.priors import Priors
from mptcplab.studies.papers.reproduce import Reproduction
from mptcplab.studies.papers.sensitivity import Sensitivity, Study

# Smaller differences of the engines, in percent, are not worth a remark.
_REMARKABLE = 5.0


@dataclass(frozen=True)
class Background:
    """What was known before: the priors, how the engines differ, and the verdicts of an earlier version."""

    priors: Priors = field(default_factory=Priors)
    biases: tuple[Bias, ...] = ()
    earlier: Snapshot = field(default_factory=Snapshot)
    sensitivity: Study = field(default_factory=Study)


def background(reproduction: Reproduction) -> Background:
    """The background of the papers of a reproduction."""
    root = reproduction.planner.library.root
    return Background() if root is None else _background(root)


@cache
def _background(root: Path) -> Background:
    # The comparison of the engines is in the repository of which the papers are a part.
    repository = root.parent
    study = sensitivity.read(repository / sensitivity.FILE)
    return Background(priors.load(root), biases.load(repository), before.load(root), study)


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on.

    `rules` are those of the kernel behind each finding. `readings` say by name how the paper was read where it leaves
    something undefined, `scenarios` are the files whose head names the assumptions, `differences` how the kernel is
    known to differ for an algorithm, `prior` what was expected, `sensitivity` the verdicts under other choices (of this
    reproduction, or else of the documentation), and `command` repeats the verdict.
    """

    rules: tuple[str, ...]
    readings: tuple[tuple[str, str], ...]
    scenarios: tuple[str, ...]
    differences: tuple[str, ...]
    prior: str
    prior_why: str
    sensitivity: Sensitivity | None
    command: str


def evidence(reproduction: Reproduction, judged: JudgedClaim) -> Evidence:
    """The evidence of one claim."""
    known, library = background(reproduction), reproduction.planner.library
    experiments = sorted({cell.experiment for cell in judged.cells})
    used = [library.experiments[name] for name in experiments]
    prior = known.priors.of.get(judged.claim.id)
    return Evidence(
        tuple(_rules(reproduction, judged, finding.name) for finding in judged.findings),
        tuple(_readings(reproduction, judged, used)),
        tuple(dict.fromkeys(_path(one) for one in used)),
        tuple(_differences(reproduction, judged, known.biases)),
        "" if prior is None else f"{100 * prior.probability:.0f} %",
        "" if prior is None else prior.why,
        reproduction.sensitivity.claims.get(judged.claim.id) or known.sensitivity.claims.get(judged.claim.id),
        claim_command(reproduction, judged),
    )


def claim_command(reproduction: Reproduction, judged: JudgedClaim) -> str:
    """The command that runs and judges one claim."""
    planner = reproduction.planner
    options = (f" --engine {planner.engine}" if planner.engine != "sim" else "") + (" --quick" if planner.quick else "")
    return f"mptcplab reproduce {reproduction.paper.id} --claim {judged.claim.id}{options}"


def _rules(reproduction: Reproduction, judged: JudgedClaim, profile: str) -> str:
    """An ACK profile with the dialect that goes with it."""
    library = reproduction.planner.library
    if judged.claim.experiment is None or not profile:
        return profile
    dialect = library.source(library.experiments[judged.claim.experiment]).dialect_in(profile)
    return profile if dialect == "spec" else f"{profile}, dialect {dialect}"


def why_changed(paper: Paper, judged: JudgedClaim, was: Earlier | None) -> str:
    """What was changed in a claim since, with the reasons; without a change of its own, what else decided."""
    reasons = [f"{one.what}: {one.reason.rstrip('.')}" for one in paper.changes if one.claim == judged.claim.id]
    if was is None:
        reasons.insert(0, "a new claim")
    elif not reasons and judged.verdict != was.verdict:
        reasons.append("the claim is the same; what changed for all claims is above")
        experiment = paper.experiments.get(judged.claim.experiment or "")
        if experiment is not None and experiment.dialect != "spec":
            reasons.append(f"it runs in the dialect {experiment.dialect}")
    return "; ".join(reasons)


def _readings(reproduction: Reproduction, judged: JudgedClaim, used: Sequence[Experiment]) -> list[tuple[str, str]]:
    labels = {cell.label for cell in judged.cells}
    papers = [reproduction.planner.library.papers[one] for one in dict.fromkeys(one.paper for one in used)]
    found = [(one.name, one.says) for paper in papers for one in paper.readings if labels & set(one.of)]
    return found + [(one.id, one.reading) for one in used if one.reading]


def _differences(reproduction: Reproduction, judged: JudgedClaim, known: Sequence[Bias]) -> list[str]:
    """How the kernel differs for the algorithms of a claim: on its scenarios, and where it was measured apart."""
    experiments = reproduction.planner.library.experiments
    algorithms = {reproduction.planner.spec(cell).cc or "" for cell in judged.cells}
    names = {name.partition("(")[0] for name in algorithms}
    scenarios = {_path(experiments[cell.experiment]) for cell in judged.cells}
    return [
        str(one)
        for one in known
        if one.algorithm in names
        and (one.scenario in scenarios or not one.scenario.startswith(f"{PAPERS}/"))
        and one.clear
        and abs(one.percent) >= _REMARKABLE
    ]


def _path(experiment: Experiment) -> str:
    return f"{PAPERS}/{experiment.paper}/{experiment.scenario.name}"
