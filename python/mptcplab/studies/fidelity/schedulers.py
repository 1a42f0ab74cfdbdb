"""The purposes of packet schedulers: a slow path that blocks the window, short transfers under loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from mptcplab.results import Results
from mptcplab.studies.fidelity.measure import axes, cases_of
from mptcplab.studies.fidelity.statement import Case, Measurement, Statement
from mptcplab.study.statistics import Bound

SCENARIOS = Path("scenarios") / "schedulers"

# What the schedulers that avoid blocking are compared with.
UNPENALISED = ("minrtt(opportunistic=false, penalise=false)", "minrtt(penalise=false)")
AVOIDING = ("blest", "ecf")
REDUNDANT = "redundant"
PERCENTILE = 99


def blocking(results: Results) -> Measurement:
    """Goodput of every scheduler, and of those that avoid blocking over minRTT without penalisation."""
    whole = results.metrics(["goodput"]).filter(pl.col("subflow").is_null()).select("run", "value")
    goodput = axes(results).join(whole, on="run", maintain_order="left").select("rep", "scheduler", "value")
    cases = list(cases_of(goodput, ("scheduler",), "Mbit/s"))
    for scheduler in AVOIDING:
        for other in UNPENALISED:
            quotient = _over(goodput, scheduler, other)
            bound = Bound(low=1.0, each=True)
            cases.append(Case((f"{scheduler} over {other}",), quotient, "1", bound, digits=2))
    remarks = (
        "A scheduler that uses the slow path gets less than the fast path alone would give, unless something repairs "
        "the window that it blocks. Redundant uses both and blocks neither: the slow path's copies are late.",
    )
    return Measurement(("scheduler",), tuple(cases), remarks)


def redundant(results: Results) -> Measurement:
    """The 99th percentile of the transfers' times, and redundant's over each other's."""
    slowest = _percentiles(results)
    cases = list(cases_of(slowest, ("scheduler",), "ms", digits=0))
    for other in slowest["scheduler"].unique(maintain_order=True):
        if other != REDUNDANT:
            bound = Bound(high=1.0)
            quotient = _over(slowest, REDUNDANT, other)
            cases.append(Case((f"{REDUNDANT} over {other}",), quotient, "1", bound, digits=2))
    remarks = (
        "The time is that from the established connection to the last byte delivered in order: a lost SYN takes a "
        "second with every scheduler, and two of a hundred are lost. With larger transfers the copies take the "
        "windows that new data would need, and redundant is the slowest.",
    )
    return Measurement(("scheduler",), tuple(cases), remarks)


def _percentiles(results: Results) -> pl.DataFrame:
    """rep, scheduler and the percentile of a run's transfers, ms."""
    when, kind = pl.col("t_ns").cast(pl.Float64), pl.col("kind").cast(pl.String)
    events = results.scan("event").select("run", pl.col("flow").cast(pl.String), kind=kind, t_ns=when)
    connected = pl.col("t_ns").filter(pl.col("kind") == "subflow_added").min()
    done = pl.col("t_ns").filter(pl.col("kind") == "flow_completed").max()
    transfers = events.filter(pl.col("flow").is_not_null()).group_by("run", "flow")
    # A transfer that did not finish is slower than any.
    times = transfers.agg(value=((done - connected) / 1e6).fill_null(float("inf")))
    slowest = times.group_by("run").agg(pl.col("value").quantile(PERCENTILE / 100, "linear"))
    return axes(results).join(slowest.collect(), on="run", maintain_order="left").select("rep", "scheduler", "value")


def _over(frame: pl.DataFrame, one: str, other: str) -> tuple[float, ...]:
    """Quotient of two schedulers, repetition by repetition."""
    of = {name: frame.filter(scheduler=name).sort("rep")["value"].to_numpy() for name in (one, other)}
    return tuple(np.divide(of[one], of[other]).tolist())


STATEMENTS = (
    Statement(
        "blocking",
        "A slow path that blocks the window",
        "With one path ten times slower and a receive buffer of 64 kB, BLEST and ECF have more goodput than minRTT "
        "without penalisation, with and without its opportunistic retransmission.",
        "Goodput after the warm-up; the quotients repetition by repetition.",
        "blocking.toml",
        blocking,
        {"reps": 2, "duration": "20 s"},
    ),
    Statement(
        "redundant",
        "Short transfers under loss",
        "Redundant has the lowest 99th percentile of short transfers' times under 2 % loss.",
        "Per repetition the 99th percentile over a thousand transfers, and redundant's over that of each other.",
        "redundant.toml",
        redundant,
        {"reps": 1},
    ),
)
