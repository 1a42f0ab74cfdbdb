"""Expectations of each claim from before mptcplab ran it, by theory and a scratch model, and how right they were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.studies.papers import stored
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.classes import ClaimClass, class_of

FILE = "priors.json"
# A forecast that knows nothing scores this.
IGNORANT = 0.25
_EDGES = (0.0, 0.1, 0.3, 0.7, 0.9, 1.0)


@dataclass(frozen=True)
class Prior:
    """The probability that a claim holds, and the reason for it."""

    probability: float
    why: str = ""


@dataclass(frozen=True)
class Priors:
    """The priors by claim, and the date on which they were written."""

    written: str = ""
    of: Mapping[str, Prior] = field(default_factory=dict)

    def scored(self, claims: Iterable[JudgedClaim]) -> list[tuple[float, bool]]:
        """Probability and outcome of the claims that had a prior and were decided by measurements."""
        outcomes = {ClaimClass.REPRODUCED: True, ClaimClass.REFUTED: False}
        found = ((self.of.get(judged.claim.id), outcomes.get(class_of(judged))) for judged in claims)
        return [(prior.probability, held) for prior, held in found if prior is not None and held is not None]


def load(papers: Path) -> Priors:
    """The priors below the papers' directory; none without the file."""
    path = papers / FILE
    if not path.is_file():
        return Priors()
    priors = stored.read(path, _priors, "it has written, and priors with id, probability_true and why")
    for name, prior in priors.of.items():
        if not 0 <= prior.probability <= 1:
            hint = "a probability lies between 0 and 1"
            raise MptcplabError(with_hint(f"{path}: {name}: not right: {prior.probability:g}", hint))
    return priors


def _priors(text: str) -> Priors:
    data = json.loads(text)
    found = {one["id"]: Prior(float(one["probability_true"]), one["why"].strip()) for one in data["priors"]}
    return Priors(data["written"], found)


def brier(scored: Sequence[tuple[float, bool]]) -> float:
    """The mean squared distance of the probabilities from what came out: 0 is perfect, 0.25 knows nothing.

    >>> brier([(0.9, True), (0.8, False)]) == (0.1**2 + 0.8**2) / 2
    True
    """
    return sum((probability - held) ** 2 for probability, held in scored) / len(scored)


def quality(known: Priors, scored: Sequence[tuple[float, bool]]) -> str:
    """How good the priors of some claims were, in words."""
    if not scored:
        return "There are no priors for claims that measurements decided."
    held = sum(outcome for _, outcome in scored) / len(scored)
    return (
        f"On {known.written}, before mptcplab ran the experiments, we wrote down how probable it is that each claim "
        "holds when it is repeated as its paper describes it; theory and a scratch model were the grounds. Of the "
        f"claims that were decided by measurements, {len(scored)} had a prior. The Brier score, the mean squared "
        f"distance of the probability from what came out, is {brier(scored):.3f}. Saying 50 % of every claim scores "
        f"{IGNORANT:g}, and saying the part that was reproduced ({100 * held:.0f} %) of each {held * (1 - held):.3f}."
    )


@dataclass(frozen=True)
class Bin:
    """The claims whose prior lies between two probabilities: how many, the mean prior, and the part that held."""

    low: float
    high: float
    count: int
    mean: float
    held: float


def calibration(scored: Sequence[tuple[float, bool]]) -> list[Bin]:
    """How often claims of about the same prior held; the last bin includes its upper end."""
    bins = []
    for low, high in pairwise(_EDGES):
        inside = [one for one in scored if low <= one[0] < high or one[0] == high == _EDGES[-1]]
        if inside:
            count = len(inside)
            mean, held = (sum(one[i] for one in inside) / count for i in (0, 1))
            bins.append(Bin(low, high, count, mean, held))
    return bins
