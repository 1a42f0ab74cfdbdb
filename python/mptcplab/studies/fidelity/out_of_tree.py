"""The simulator against the out-of-tree kernel: goodputs that were measured on that kernel, in `out_of_tree.csv`.

The scenarios are those of the papers. An empty number of runs in the file means that it is not known.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

import polars as pl

from mptcplab.results import Results
from mptcplab.studies.fidelity.measure import MULTIPATH, axes
from mptcplab.studies.fidelity.statement import Case, Measurement, Quick, Statement
from mptcplab.study.statistics import Bound

SCENARIOS = Path("papers")
DIALECT = "dialect=mptcp-0.95"
# Parts of the kernel's goodput by which the simulator may differ.
TOLERANCE = 0.10
# The value of `send_jitter` that decides.
DEFAULT = "auto"
QUICK: Quick = {"reps": 2, "duration": "30 s"}


@dataclass(frozen=True)
class Reference:
    """A goodput that was measured on that kernel, of the connection `mp` of a scenario."""

    scenario: str
    cc: str
    profile: str
    goodput_mbps: float
    runs: int | None
    source: str

    def bound(self, decides: bool) -> Bound:
        """Within the tolerance. A single run of the kernel decides nothing."""
        low, high = ((1 + sign * TOLERANCE) * self.goodput_mbps for sign in (-1, 1))
        return Bound(low, high, shown=not decides or self.runs == 1)

    def difference(self, measured: Sequence[float]) -> str:
        """How far the mean of what was simulated is from it, in percent."""
        return f"{100 * (sum(measured) / len(measured) / self.goodput_mbps - 1):+.1f} %"


@cache
def references() -> tuple[Reference, ...]:
    """All of them, in the order of the file."""
    text = files("mptcplab.studies.fidelity").joinpath("out_of_tree.csv").read_text(encoding="utf-8")
    return tuple(
        Reference(
            row["scenario"],
            row["cc"],
            row["profile"],
            float(row["goodput_mbps"]),
            int(row["runs"]) if row["runs"] else None,
            row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def chosen(scenario: str, profile: str) -> tuple[Reference, ...]:
    """The references of one scenario in one ACK profile."""
    return tuple(one for one in references() if (one.scenario, one.profile) == (scenario, profile))


def measure(
    scenario: str, profile: str, jitters: tuple[str, ...], remarks: tuple[str, ...], results: Results
) -> Measurement:
    """Goodput of the multipath connection per algorithm and noise, with the kernel's as its bound."""
    algorithms = {
        run: flow.cc.partition("(")[0]
        for run, topology in results.topologies.items()
        for flow in topology.flows
        if flow.name == MULTIPATH
    }
    whole = results.metrics(["goodput"]).filter(pl.col("subflow").is_null(), flow=MULTIPATH).select("run", "value")
    goodput = axes(results).drop("cc").join(whole, on="run", maintain_order="left")
    goodput = goodput.with_columns(cc=pl.col("run").replace_strict(algorithms, return_dtype=pl.String))
    cases = []
    for one in chosen(scenario, profile):
        for jitter in jitters:
            values = goodput.filter(cc=one.cc, send_jitter=jitter)["value"].to_list()
            labels = (one.cc, jitter, one.source, f"{one.goodput_mbps:g}", one.difference(values))
            cases.append(Case(labels, tuple(values), "Mbit/s", one.bound(jitter == DEFAULT), digits=1))
    heads = ("algorithm", "send_jitter", "source", "that kernel, Mbit/s", "difference")
    return Measurement(heads, tuple(cases), remarks)


def _statement(
    name: str,
    title: str,
    scenario: str,
    profile: str,
    less: str | None,
    *remarks: str,
    settings: Mapping[str, str] | None = None,
) -> Statement:
    """A statement on one scenario: with the default noise, and, if `less` is given, with that and without any."""
    jitters = (DEFAULT,) if less is None else ("0 s", less, DEFAULT)
    of_scenario: Callable[..., Measurement] = partial(measure, scenario, profile, jitters, remarks)
    return Statement(
        name,
        title,
        f"With that kernel's dialect, the ACK profile `{profile}` and the simulator's default noise (`send_jitter`), "
        f"goodput is within {100 * TOLERANCE:g} % of the kernel's.",
        "Goodput of the multipath connection after the warm-up"
        + (", with queues that drop at random." if less is None else ", also with less noise and without any."),
        scenario,
        of_scenario,
        QUICK,
        cc=tuple(f"{one.cc}({DIALECT})" for one in chosen(scenario, profile)),
        profile=profile,
        settings={
            **(settings or {}),
            "tcp.send_jitter": "[" + ", ".join(f'"{jitter}"' for jitter in jitters) + "]",
        },
    )


def _drops_at_random(*links: str) -> dict[str, str]:
    """Settings with which each packet of a link is dropped independently of the others: RED with a long queue."""
    red = '{ name = "red", min = "10 packets", max = "150 packets", max_p = "2 %" }'
    return {f"links.{link}.{key}": value for link in links for key, value in (("queue", '"400 packets"'), ("aqm", red))}


# A packet's time at the bottleneck's rate.
_AT_60_MBPS, _AT_10_MBPS = "200 us", "1200 us"

STATEMENTS = (
    _statement(
        "shared",
        "Two subflows and two TCPs on one bottleneck",
        "kim2021/shared-60.toml",
        "linux-legacy",
        _AT_60_MBPS,
        "Without noise, the phase of the drop-tail queue decides which packets are lost, and the multipath connection "
        "gets more than on that kernel, whose packets never come so evenly.",
    ),
    _statement(
        "private",
        "wVegas on two private, lossy paths",
        "lubna2021/private-paths.toml",
        "linux-legacy",
        _AT_10_MBPS,
        "wVegas drains a path when the queueing delay of a round is twice its smallest. Delays that repeat to the "
        "microsecond make the smallest one tiny, and the drains frequent. Goodput therefore depends on the noise of "
        "the delays, which is not known for that kernel.",
    ),
    _statement(
        "shared-per-segment",
        "The shared bottleneck with one ACK per segment",
        "kim2021/shared-60.toml",
        "rfc",
        _AT_60_MBPS,
        "One run of that kernel; the bounds are shown and decide nothing. LIA took more than either TCP there. With "
        "equal loss rates, RFC 6356 would give it a third of the link, 20 Mbit/s, which the next section shows. Why "
        "that run got more than its rule's own share is not known. It is none of the choices that the description "
        "leaves open: with the default noise, and `--set` of a queue of 25 or 1000 packets (`links.SB.queue`), CUBIC "
        "beside it (`flows.h3.cc`, `flows.h5.cc`), bursts (`flows.h3.tso`, `flows.h5.tso`) or NewReno's recovery "
        "(`tcp.recovery`) added to the command above, LIA gets 16.6 to 17.7 Mbit/s.",
    ),
    _statement(
        "shared-random",
        "The shared bottleneck with one ACK per segment and random drops",
        "kim2021/shared-60.toml",
        "rfc",
        None,
        "Losses that are independent give LIA the third of the link that RFC 6356 gives it, 20 Mbit/s.",
        settings=_drops_at_random("SB"),
    ),
    _statement(
        "separate-per-segment",
        "Two bottlenecks with one ACK per segment",
        "kim2021/separate-60.toml",
        "rfc",
        _AT_60_MBPS,
        "One run of that kernel for each algorithm; the bounds are shown and decide nothing. LIA's goodput there is "
        "that of the square-root law for independent losses: a third of each link, 40 Mbit/s in all. Where the flows "
        "of a link lose together, windows go with the growth instead, and it gets a fifth, 24 Mbit/s. More noise moves "
        "the simulator from the second value towards the first, and random drops lead there (next section).",
    ),
    _statement(
        "separate-random",
        "Two bottlenecks with one ACK per segment and random drops",
        "kim2021/separate-60.toml",
        "rfc",
        None,
        "With losses that are independent LIA gets what it got on that kernel: the difference in the section before "
        "this one comes from flows that lose in the same overflow of a drop-tail queue. On two "
        "paths with equal windows and RTTs BALIA's rule is LIA's, so the two goodputs of that kernel differ by 15 % "
        "for another reason than the rule. A single run is not nearer to its mean than that.",
        settings=_drops_at_random("N1", "N2"),
    ),
)
