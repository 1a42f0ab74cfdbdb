"""Hunts: the network in which an algorithm violates a property most, as small as it can be (`mptcplab.api.hunt`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mptcplab.algorithm import in_file_name, places_of
from mptcplab.capabilities import SIM
from mptcplab.cluster.connect import Cluster
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.scenario import Overrides, check
from mptcplab.studies.hunt import network as networks
from mptcplab.studies.hunt.measure import Laboratory, changes, laboratories
from mptcplab.studies.hunt.network import COORDINATES, MULTIPATH, Network
from mptcplab.studies.hunt.properties import CHANGED, PROPERTIES, Property, chosen
from mptcplab.studies.hunt.search import Point, Search, require_optimiser
from mptcplab.studies.hunt.shrink import shrunk
from mptcplab.study.cell import run_command
from mptcplab.study.decision import ERROR
from mptcplab.study.statistics import Estimate
from mptcplab.sweep import Progress

__all__ = ["EVALUATIONS", "PROPERTIES", "Confirmation", "Finding", "Hunt", "Property", "chosen", "hunt"]

EVALUATIONS = 600
# Repetitions of the search, of which the smallest score counts: with one, the search finds accidents.
_SEARCH_REPETITIONS = 2
# Repetitions while a network is made smaller, and on other seeds than that of the search.
_SMALLER_REPETITIONS, REPETITIONS = 4, 10
# Networks of the search, the best first, that are made smaller until one is confirmed.
_CANDIDATES = 8
# A smaller network keeps this part of the score.
_KEPT = 0.8
# Between the seed of the search and that of the confirmation.
OTHER_SEEDS = 1_000_000


@dataclass(frozen=True)
class Confirmation:
    """The score on an engine with seeds that the search has not seen: its mean with an interval.

    In the simulator, the error of a 95 % interval is divided by the number of networks of which the first that is
    confirmed counts (Bonferroni's inequality). Another engine runs only that one, and the interval is that of 95 %.
    """

    engine: str
    repetitions: int
    mean: float
    low: float
    high: float

    def confirms(self, bound: float) -> bool:
        """Whether the whole interval is beyond the bound."""
        return self.low > bound


@dataclass(frozen=True)
class Finding:
    """The worst network that was found for a property.

    `score` is that of the search, and `smaller` that of the network as it was made smaller, which is `network`.
    """

    cc: str
    about: Property
    seed: int
    evaluations: int
    score: float
    network: Network
    smaller: float | None = None
    confirmations: tuple[Confirmation, ...] = ()
    # The C file from which the algorithm was compiled, as it was given; None for one of the build.
    source: str | None = None

    @property
    def violated(self) -> bool:
        """Whether the property is violated, by the search or, where there are some, by all confirmations."""
        if self.confirmations:
            return all(one.confirms(self.about.bound) for one in self.confirmations)
        return self.score > self.about.bound

    @property
    def file(self) -> str:
        """The name of the scenario file."""
        return f"{in_file_name(self.cc)}-{self.about.name}.toml"


@dataclass(frozen=True)
class Hunt:
    """What is hunted for, with how many evaluations per property."""

    cc: str
    properties: tuple[Property, ...]
    seed: int = 1
    evaluations: int = EVALUATIONS
    jobs: int = 0
    cluster: Cluster | None = None
    # Further engines that confirm what the simulator has found.
    engines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be hunted."""
        if not isinstance(self.evaluations, int) or self.evaluations < 1:
            raise MptcplabError(with_hint(f"not a number of evaluations: {self.evaluations}", "some hundred"))
        require_optimiser()


# Gets a finding, and whether that is all there is to it: what a search has found is not confirmed yet.
Found = Callable[[Finding, bool], None]


def hunt(
    asked: Hunt, found: Found = lambda _finding, _complete: None, progress: Progress | None = None
) -> list[Finding]:
    """Search, make smaller and confirm, for one property after the other; `found` gets each finding at once.

    It gets the worst network as soon as the search is over, and after Ctrl-C the worst so far.
    """
    _require_known(asked.cc)
    findings: list[Finding] = []
    with laboratories(asked.cc, asked.properties, asked.jobs, asked.cluster) as all_of_them:
        for laboratory in all_of_them:
            finding = _Single(asked, laboratory, _of_all(progress, asked, len(findings))).run(found)
            findings.append(finding)
            found(finding, True)
    return findings


@dataclass
class _Single:
    """The hunt for one property."""

    asked: Hunt
    laboratory: Laboratory
    progress: Callable[[int], None]

    def run(self, found: Found) -> Finding:
        search = Search(len(COORDINATES), self.asked.seed, self.asked.evaluations, self.progress)
        try:
            search.run(self._evaluate)
        except KeyboardInterrupt:
            if search.best is not None and np.isfinite(search.best[0]):
                found(self._finding(search), False)
            raise
        finding = self._finding(search)
        if finding.score <= self.asked_property.bound:
            return finding
        found(finding, False)
        confirmed = self._confirmed_in_simulation(finding, search)
        others = tuple(self._confirmed(confirmed.network, engine) for engine in self.asked.engines)
        return replace(confirmed, confirmations=confirmed.confirmations + others)

    @property
    def asked_property(self) -> Property:
        return self.laboratory.property

    def _network(self, point: Point) -> Network:
        kind = self.asked_property
        return networks.network(point, shared=kind.shared, changes=kind.changes, buffer=kind.buffer)

    def _evaluate(self, points: Sequence[Point]) -> list[float]:
        return self._least([self._network(point) for point in points], _SEARCH_REPETITIONS)

    def _finding(self, search: Search) -> Finding:
        assert search.best is not None
        score, point = search.best
        return Finding(
            self.asked.cc,
            self.asked_property,
            self.asked.seed,
            len(search.done),
            score,
            self._network(point),
            source=next(iter(places_of([self.asked.cc]).values()), None),
        )

    def _confirmed_in_simulation(self, finding: Finding, search: Search) -> Finding:
        """The first of the search's networks, made smaller, that other seeds confirm; the first of all if none is."""
        first: Finding | None = None
        for smaller in self._smaller_ones(finding, search):
            one = replace(smaller, confirmations=(self._confirmed(smaller.network, SIM.name, _CANDIDATES),))
            if one.violated:
                return one
            first = first or one
        return first or replace(finding, confirmations=(self._confirmed(finding.network, SIM.name, _CANDIDATES),))

    def _smaller_ones(self, finding: Finding, search: Search) -> Iterator[Finding]:
        """The same with smaller networks: the best of the search that do not owe their score to one repetition."""
        best = sorted(search.done, key=lambda one: -one[0])[:_CANDIDATES]
        found = [(score, self._network(point)) for score, point in best]
        scores = self._least([network for _, network in found])
        seen: list[Network] = []
        for score, (searched, network) in sorted(zip(scores, found, strict=True), key=lambda one: -one[0]):
            if score <= self.asked_property.bound:
                return
            small = self._shrunk(network, max(self.asked_property.bound * 1.1, _KEPT * score))
            if small not in seen:
                seen.append(small)
                yield replace(finding, score=searched, network=small, smaller=self._least([small])[0])

    def _shrunk(self, network: Network, enough: float) -> Network:
        """As small as it can be with a score of at least `enough`."""
        return shrunk(network, lambda one: self._least([one])[0] >= enough)

    def _least(self, some: Sequence[Network], repetitions: int = _SMALLER_REPETITIONS) -> list[float]:
        """The smallest score of some repetitions: what is found is to hold in all of them."""
        scores = self.laboratory.scores(some, seed=self.asked.seed, repetitions=repetitions)
        return [-np.inf if score is None else float(score.min()) for score in scores]

    def _confirmed(self, network: Network, engine: str, candidates: int = 1) -> Confirmation:
        """The score of one of so many networks of which any may be confirmed."""
        cluster = self.asked.cluster if engine == SIM.name else None
        repetitions = REPETITIONS if engine == SIM.name else _SMALLER_REPETITIONS
        own = replace(self.laboratory, engine=engine, cluster=cluster)
        score = own.scores([network], seed=self.asked.seed + OTHER_SEEDS, repetitions=repetitions)[0]
        if score is None:
            return Confirmation(engine, 0, float("nan"), float("-inf"), float("inf"))
        found = Estimate.of(score, 1 - ERROR / candidates)
        assert found.half is not None
        return Confirmation(engine, found.n, found.mean, found.mean - found.half, found.mean + found.half)


def commands(finding: Finding, file: str) -> list[str]:
    """The commands that make the runs that a finding compares, from the directory of the file.

    Without those that run the file as it is, unless the algorithm was compiled from a C file: a scenario has names of
    algorithms only, and --cc compiles a file.
    """
    found = []
    for run in finding.about.runs:
        settings = changes(finding.network, finding.cc, run)
        asked = Overrides(settings=settings)
        if finding.source is not None and run != CHANGED:
            cc = json.loads(settings.pop(f"flows.{MULTIPATH}.cc", json.dumps(finding.cc)))
            name = finding.cc.partition("(")[0]
            place = Path(finding.source)
            files = {name: str(place.absolute() if place.is_file() else place)}
            asked = Overrides(cc=(cc,), settings=settings, files=files)
        if asked != Overrides():
            found.append(f"{run}: {run_command(file, asked)}")
    return found


def _require_known(cc: str) -> None:
    """Let the parser refuse an algorithm that it does not know, in terms of the command line."""
    with laboratories(cc, [PROPERTIES["takes-more"]], 1, None) as found:
        file = found[0].directory / "known.toml"
        any_network = networks.network([0.5] * len(COORDINATES))
        file.write_text(networks.scenario(any_network, "reno", 1), encoding="utf-8")
        check(file, Overrides(settings={f"flows.{MULTIPATH}.cc": json.dumps(cc)}))


def _of_all(progress: Progress | None, asked: Hunt, before: int) -> Callable[[int], None]:
    """The progress of a hunt after some others, in networks of all."""

    def report(done: int) -> None:
        if progress is not None:
            done, of = before * asked.evaluations + done, len(asked.properties) * asked.evaluations
            progress(done, of, float(done), float(of))

    return report
