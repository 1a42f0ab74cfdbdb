"""Verdicts on how well engines agree: bounds on the differences of goodput and of Jain's index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab.capabilities import engine_of
from mptcplab.metrics import compute
from mptcplab.metrics.certainty import Counts, half_of, spreads
from mptcplab.metrics.differences import differences
from mptcplab.studies.agreement.causes import Cause, find_causes
from mptcplab.study.verdict import Finding, Verdict

if TYPE_CHECKING:
    from mptcplab.results import Results

GOODPUT, DELAY, JAIN = "goodput", "srtt_mean", "jain"
# What is compared; only the first and the last are judged. The smoothed RTT is shown, because every engine samples it
# alike; the mean of single RTT samples, which engines count differently, is in the numbers.
COMPARED = (GOODPUT, DELAY, "rtt_mean", "plr", "share", JAIN)


@dataclass(frozen=True)
class Bounds:
    """Largest accepted distance from the reference: of a flow's goodput, of the median of all, of Jain's index."""

    flow_percent: float
    median_percent: float | None
    jain: float

    @property
    def text(self) -> str:
        """In words.

        >>> PACKETS.text
        "Goodput of a flow may differ by 15 % and by 5 % at the median over all flows, Jain's index by 0.03"
        """
        at_median = (
            " (the median over all flows has no bound)"
            if self.median_percent is None
            else f" and by {self.median_percent:g} % at the median over all flows"
        )
        return f"Goodput of a flow may differ by {self.flow_percent:g} %{at_median}, Jain's index by {self.jain:g}"

    def of(self, metric: str) -> float | None:
        """The bound on a single difference of a metric; None for one that is only shown."""
        return {GOODPUT: self.flow_percent, JAIN: self.jain}.get(metric)

    def verdict(self, rows: Iterable[Verdict], distances: Sequence[float]) -> Verdict:
        """The verdict on all rows and on the median of the flows' distances (%) at once; not testable without rows."""
        found = list(rows)
        return Verdict.joint([*found, *([Verdict.FAILS] if found and self.is_far(distances) else [])])

    def is_far(self, distances: Sequence[float]) -> bool:
        """Whether the median of distances (%) is beyond its bound."""
        return self.median_percent is not None and bool(distances) and median(distances) > self.median_percent


PACKETS = Bounds(flow_percent=15, median_percent=5, jain=0.03)
# A fluid is the limit of many flows (docs/fluid.md): half of few flows may well be farther than the median's bound.
FLUID = Bounds(flow_percent=15, median_percent=None, jain=0.03)


def bounds_of(*engines: str) -> Bounds:
    """The bounds between two engines."""
    return PACKETS if all(engine_of(name).has_packets for name in engines) else FLUID


@dataclass(frozen=True)
class EngineFinding(Finding):
    """The verdict on one engine against the first.

    `worst_percent` is the largest difference of a flow and `median_percent` the median over all, in percent of goodput;
    `outside` of the `judged` differences are beyond their bound, by the point estimate. `counts` says of how many the
    whole interval is on one side.
    """

    engine: str = ""
    reference: str = ""
    worst_percent: float | None = None
    median_percent: float | None = None
    outside: int = 0
    judged: int = 0
    bounds: Bounds = PACKETS
    counts: Counts = field(default_factory=Counts)

    @classmethod
    def of(cls, rows: pl.DataFrame, engine: str, reference: str) -> EngineFinding:
        """From the judged differences of an engine."""
        rows = rows.filter(engine=engine).drop_nulls("verdict")
        distances: list[float] = rows.filter(metric=GOODPUT)["difference"].abs().drop_nulls().to_list()
        worst, middle = (max(distances), median(distances)) if distances else (None, None)
        bounds = bounds_of(reference, engine)
        outside = rows.filter(verdict=Verdict.FAILS.value).height
        counts = _counts(rows, bounds, reference)
        verdict = bounds.verdict(map(Verdict, rows["verdict"]), distances)
        reason = "nothing to compare: no repetition counts on all engines"
        if rows.height:
            bound = "" if bounds.median_percent is None else f" (bound {bounds.median_percent:g} %)"
            both = f"{bounds.flow_percent:g} % and {bounds.jain:g}"
            parts = [f"{outside} of {rows.height} outside the bounds of {both} by the point estimate"]
            parts += [] if counts.unknown == counts.judged else [_wholes(counts)]
            parts += [] if worst is None else [f"goodput of a flow differs by {worst:.1f} % at most"]
            parts += [] if middle is None else [f"{middle:.1f} % at the median{bound}"]
            reason = "; ".join(parts)
        name = f"{engine} against {reference}"
        return cls(
            name,
            verdict,
            reason=reason,
            engine=engine,
            reference=reference,
            worst_percent=worst,
            median_percent=middle,
            outside=outside,
            judged=rows.height,
            bounds=bounds,
            counts=counts,
        )

    @property
    def text(self) -> str:
        """One line of text."""
        return f"{self.verdict}: {self.name}: {self.reason}"

    def as_dict(self) -> dict[str, Any]:
        """The same for programs."""
        names = ("engine", "reference", "worst_percent", "median_percent", "outside", "judged", "verdict")
        numbers = {name: getattr(self, name) for name in names}
        return numbers | {"bounds": asdict(self.bounds), "counts": asdict(self.counts)}


@dataclass(frozen=True)
class Agreement:
    """The engines compared: `rows` as of `metrics.differences.differences`, with `bound` and `verdict` where judged.

    `why` says how the engines were chosen, where the caller did not say.
    """

    results: Results
    rows: pl.DataFrame
    findings: tuple[EngineFinding, ...]
    causes: tuple[Cause, ...]
    why: str | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether every engine agrees with the first; not testable if one has nothing to compare."""
        found = [finding.verdict for finding in self.findings]
        return Verdict.NOT_TESTABLE if Verdict.NOT_TESTABLE in found else Verdict.joint(found)

    def outside(self) -> list[tuple[str, str, pl.DataFrame]]:
        """Configuration, engine and rows of everything that is outside its bound."""
        groups = self.rows.filter(verdict=Verdict.FAILS.value).group_by("base", "engine", maintain_order=True)
        return [(base, engine, rows) for (base, engine), rows in groups]

    def causes_of(self, base: str, engine: str) -> list[Cause]:
        """The possible causes of differences in one configuration."""
        return [cause for cause in self.causes if (cause.base, cause.engine) == (base, engine)]

    def as_dict(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "results": None if self.results.temporary else str(self.results.directory),
            "engines": self.results.engines,
            "engines_because": self.why,
            "verdict": self.verdict,
            "problems": [problem.as_dict() for problem in self.results.excluded_runs],
            "findings": [finding.as_dict() for finding in self.findings],
            "rows": self.rows.to_dicts(),
            "causes": [asdict(cause) for cause in self.causes],
        }


def judge(results: Results, why: str | None = None, causes: Iterable[Cause] | None = None) -> Agreement:
    """Compare and judge the traces of two engines or more; the first is the reference.

    Without `causes`, they are looked for in the traces.
    """
    first, *others = results.engines
    rows = with_verdicts(differences(results, compute(results, COMPARED), COMPARED), first)
    findings = tuple(EngineFinding.of(rows, engine, first) for engine in others)
    return Agreement(results, rows, findings, tuple(find_causes(results, rows) if causes is None else causes), why)


def _counts(rows: pl.DataFrame, bounds: Bounds, reference: str) -> Counts:
    """How many judged differences are inside and outside of their bounds."""
    found = Counts()
    for metric in (GOODPUT, JAIN):
        differences = [
            (row["difference"], half_of(row, reference)) for row in rows.filter(metric=metric).iter_rows(named=True)
        ]
        bound = bounds.of(metric)
        found += Counts() if bound is None else Counts.of(differences, bound)
    return found


def _wholes(counts: Counts) -> str:
    """How many intervals are on one side of their bound as a whole."""
    unknown = f", {counts.unknown} without an interval" if counts.unknown else ""
    return f"with the whole 95 % interval {counts.whole_outside} outside and {counts.whole_inside} inside{unknown}"


def with_verdicts(rows: pl.DataFrame, reference: str) -> pl.DataFrame:
    """Add `bound` and `verdict` to rows of `differences`; whole flows are judged, and fluids have no spreads."""
    judged = []
    for row in rows.iter_rows(named=True):
        bound = bounds_of(reference, row["engine"]).of(row["metric"]) if row["subflow"] is None else None
        # Without a difference the reference has nothing where the other engine has something.
        near = bound is not None and row["difference"] is not None and abs(row["difference"]) <= bound
        verdict = None if bound is None else Verdict.of(near).value
        judged.append(row | spreads(row, reference) | {"bound": bound, "verdict": verdict})
    return pl.DataFrame(judged, rows.schema | {"bound": pl.Float64, "verdict": pl.String})
