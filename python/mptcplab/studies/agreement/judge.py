"""How near is near enough: bounds on the differences of goodput and of Jain's index, and the verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab.capabilities import ENGINES
from mptcplab.metrics.differences import differences
from mptcplab.studies.agreement.causes import Finding, findings

if TYPE_CHECKING:
    from mptcplab.results import Results

WITHIN, OUTSIDE = "within", "outside"
GOODPUT, JAIN = "goodput", "jain"
# What is compared; only the first and the last are judged. The smoothed RTT is shown, because every engine samples it
# alike; the mean of single RTT samples, which engines count differently, is in the numbers.
COMPARED = (GOODPUT, "srtt_mean", "rtt_mean", "plr", "share", JAIN)


@dataclass(frozen=True)
class Bounds:
    """Largest accepted distance from the reference: of a flow's goodput, of the median of all, of Jain's index."""

    flow_percent: float
    median_percent: float | None
    jain: float

    def of(self, metric: str) -> float | None:
        """The bound on a single difference of a metric; None for what is only shown."""
        return {GOODPUT: self.flow_percent, JAIN: self.jain}.get(metric)


PACKETS = Bounds(flow_percent=15, median_percent=5, jain=0.03)
# A fluid is the limit of many flows (docs/fluid.md): half of few flows may well be farther than the median's bound.
FLUID = Bounds(flow_percent=15, median_percent=None, jain=0.03)


def bounds_of(engines: tuple[str, str]) -> Bounds:
    """What holds between two engines."""
    return PACKETS if all(ENGINES[name].has_packets for name in engines) else FLUID


@dataclass(frozen=True)
class Verdict:
    """One engine against the first: the flow that is farthest off and the median over all, in percent of goodput."""

    engine: str
    reference: str
    worst_percent: float | None
    median_percent: float | None
    outside: int
    judged: int
    bounds: Bounds

    @property
    def agrees(self) -> bool:
        """Whether everything that is judged is within its bound, and something was judged at all."""
        return self.judged > 0 and self.outside == 0 and self.median_within

    @property
    def median_within(self) -> bool:
        """Whether the median is; where it has no bound it always is."""
        bound = self.bounds.median_percent
        return bound is None or self.median_percent is None or self.median_percent <= bound

    @property
    def text(self) -> str:
        """One line for people."""
        who = f"{self.engine} against {self.reference}"
        if not self.judged:
            return f"{who}: nothing to compare: no repetition counts on all engines"
        bound = self.bounds
        median = "" if bound.median_percent is None else f" (bound {bound.median_percent:g} %)"
        parts = [f"{self.outside} of {self.judged} outside the bounds of {bound.flow_percent:g} % and {bound.jain:g}"]
        if self.worst_percent is not None:
            parts.append(f"goodput of a flow differs by {self.worst_percent:.1f} % at most")
        if self.median_percent is not None:
            parts.append(f"{self.median_percent:.1f} % at the median{median}")
        return f"{who} {'agrees' if self.agrees else 'does not agree'}: {'; '.join(parts)}"

    def as_dict(self) -> dict[str, Any]:
        """The same for programs."""
        numbers = {name: getattr(self, name) for name in ("worst_percent", "median_percent", "outside", "judged")}
        bounds = {
            "flow_percent": self.bounds.flow_percent,
            "median_percent": self.bounds.median_percent,
            "jain": self.bounds.jain,
        }
        return {"engine": self.engine, "reference": self.reference, **numbers, "bounds": bounds, "agrees": self.agrees}


@dataclass(frozen=True)
class Agreement:
    """What came out: `rows` as of `metrics.engines.differences`, with `bound` and `verdict` (null where not judged).

    `why` says how the engines were chosen, where the caller did not say.
    """

    results: Results
    rows: pl.DataFrame
    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    why: str | None = None

    @property
    def agrees(self) -> bool:
        """Whether every engine agrees with the first."""
        return all(verdict.agrees for verdict in self.verdicts)

    def outside(self) -> list[tuple[str, str, pl.DataFrame]]:
        """Configuration, engine and rows of everything that is outside its bound."""
        groups = self.rows.filter(verdict=OUTSIDE).group_by("base", "engine", maintain_order=True)
        return [(base, engine, rows) for (base, engine), rows in groups]

    def causes(self, base: str, engine: str) -> list[Finding]:
        """What the traces of one configuration show that may explain a difference."""
        return [finding for finding in self.findings if (finding.base, finding.engine) == (base, engine)]

    def as_dict(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "results": None if self.results.holder else str(self.results.directory),
            "engines": self.results.engines,
            "engines_because": self.why,
            "agrees": self.agrees,
            "problems": [problem.as_dict() for problem in self.results.excluded_runs],
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
            "rows": self.rows.to_dicts(),
            "causes": [finding.as_dict() for finding in self.findings],
        }


def judged(results: Results, why: str | None = None) -> Agreement:
    """Compare and judge the traces of two engines or more; the first is the reference."""
    rows = with_verdicts(differences(results, results.metrics(COMPARED), COMPARED), results.engines[0])
    first, *others = results.engines
    verdicts = tuple(_verdict(rows.filter(engine=engine), engine, first) for engine in others)
    return Agreement(results, rows, verdicts, tuple(findings(results, rows)), why)


def with_verdicts(rows: pl.DataFrame, reference: str) -> pl.DataFrame:
    """Add `bound` and `verdict` to rows of `differences`."""
    pairs = rows.select("metric", "engine").unique(maintain_order=True).rows()
    schema = {"metric": pl.String, "engine": pl.String, "bound": pl.Float64}
    bounds = [(metric, engine, bounds_of((reference, engine)).of(metric)) for metric, engine in pairs]
    found = rows.join(pl.DataFrame(bounds, schema, orient="row"), on=["metric", "engine"], maintain_order="left")
    # Only whole flows are judged: subflows have `share`.
    bound = pl.when(pl.col("subflow").is_null()).then("bound")
    # Without a difference the reference has nothing where the other engine has something.
    near = (pl.col("difference").abs() <= pl.col("bound")).fill_null(False)
    verdict = pl.when(near).then(pl.lit(WITHIN)).otherwise(pl.lit(OUTSIDE))
    found = found.with_columns(bound=bound)
    return found.with_columns(verdict=pl.when(pl.col("bound").is_not_null()).then(verdict))


def _verdict(rows: pl.DataFrame, engine: str, reference: str) -> Verdict:
    judged_rows = rows.drop_nulls("verdict")
    distance = judged_rows.filter(metric=GOODPUT)["difference"].abs().drop_nulls()
    return Verdict(
        engine,
        reference,
        distance.max(),
        distance.median(),
        judged_rows.filter(verdict=OUTSIDE).height,
        judged_rows.height,
        bounds_of((reference, engine)),
    )
