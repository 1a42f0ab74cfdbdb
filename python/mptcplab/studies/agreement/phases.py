"""Whether a difference between the simulator and a kernel depends on the phase in which packets meet a full queue.

Where packets are as regular as in an idle laboratory, microseconds decide which flow's packets a full queue drops
(Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", Internetworking: Research and Experience 3,
1992). A random delay behind a bottleneck, shorter than the time that a packet takes there, keeps the order of packets
and takes the regularity away. Both engines run with such delays: if they agree then, their timing may be what differs,
not what they model.

A scenario without randomness of its own gives a kernel in virtual time one trajectory, however often it is repeated,
and a comparison with that says nothing about another one. `docs/agreement` therefore compares such scenarios with
random delays only.

Elsewhere, only algorithms of which a flow differs much run again, and an extreme difference is smaller in new runs on
average, whatever decides it (regression towards the mean). The phases are therefore named only where an engine's
goodput changes by more than chance explains, and the sentence says what running again does by itself.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from mptcplab.capabilities import SIM, engine_of
from mptcplab.metrics.certainty import COINCIDE_PERCENT, is_one_trajectory, spreads
from mptcplab.metrics.student import t_quantile
from mptcplab.report.families import family_of
from mptcplab.studies.agreement.causes import Cause
from mptcplab.studies.agreement.judge import GOODPUT, PACKETS, judge
from mptcplab.text import duration

if TYPE_CHECKING:
    from mptcplab.results import Results
    from mptcplab.scenario import Overrides
    from mptcplab.studies.agreement.judge import Agreement
    from mptcplab.sweep import Sweep
    from mptcplab.trace.topology import Link

PHASES = "packet phases"
REGRESSION = "running again also brings an extreme difference back"


def find_causes(runs: Sweep, agreement: Agreement) -> Iterator[Cause]:
    """Run the engines that differ again with random phases, and say which goodputs that moves, and how far apart."""
    results, outside = agreement.results, list(_outside(agreement))
    if results.engines[0] != SIM.name or not outside:
        return
    delays = random_delays(results, runs)
    if not delays:
        return
    kernels = dict.fromkeys(row["engine"] for row in outside)
    runs.say(f"{SIM.name} and {', '.join(kernels)} run again, with random packet phases")
    less = replace(runs, engines=(SIM.name, *kernels), overrides=_only(runs.overrides, results, outside))
    rows = judge(_again(less, delays)).rows.filter(metric=GOODPUT)
    found = {(row["base"], row["flow"], row["engine"]): row for row in rows.to_dicts() if row["subflow"] is None}
    where = ", ".join(f"{name} {duration(delay_ns)}" for name, delay_ns in delays.items())
    for row in outside:
        again = found.get((row["base"], row["flow"], row["engine"]))
        if again is not None:
            pairs = {SIM.name: "_reference", row["engine"]: ""}
            moved = [name for name, of in pairs.items() if _moves(_Sample.of(row, of), _Sample.of(again, of))]
            if moved:
                yield Cause(row["base"], row["engine"], PHASES, row["flow"], _sentence(row, again, where, moved))
            else:
                values = _values(row, again)
                runs.say(f"{row['base']}: with random packet phases, {values}, no change beyond what chance explains")


def is_one_draw(agreement: Agreement) -> bool:
    """Whether the repetitions of a kernel are one trajectory, by the goodput of a flow."""
    first = agreement.results.engines[0]
    rows = agreement.rows.filter(pl.col("subflow").is_null(), metric=GOODPUT).to_dicts()
    kernels = [row for row in rows if engine_of(row["engine"]).has_sockets]
    return any(is_one_trajectory(row["reference"], row["mean"], **spreads(row, first)) for row in kernels)


def _outside(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Rows of the flows whose goodput on a kernel is outside the bound."""
    for _, engine, rows in agreement.outside():
        if engine_of(engine).has_sockets:
            yield from rows.filter(metric=GOODPUT).drop_nulls("difference").to_dicts()


@dataclass(frozen=True)
class _Sample:
    """A flow's goodput (Mbit/s) on one engine: mean and standard deviation over repetitions, None of fewer than two."""

    mean: float
    deviation: float | None
    n: int

    @classmethod
    def of(cls, row: dict[str, Any], which: str) -> _Sample:
        """Of the reference of a row of `differences` ("_reference"), or of the engine that is compared ("")."""
        mean, spread = float(row["reference" if which else "mean"]), row[f"spread{which}"]
        return cls(mean, None if spread is None else spread / 100 * mean, row[f"n{which}"])

    @property
    def coincides(self) -> bool:
        """Whether the repetitions are one draw, however many there are."""
        return self.deviation is not None and self.deviation < COINCIDE_PERCENT / 100 * self.mean


def _moves(before: _Sample, after: _Sample) -> bool:
    """Whether a goodput changes by at least the bound on the median difference, and by more than its 95 % interval."""
    change, half = abs(after.mean - before.mean), _half(before, after)
    least = (PACKETS.median_percent or 0) / 100 * before.mean
    return half is not None and change >= least and change > half


def _half(before: _Sample, after: _Sample) -> float | None:
    """Half of the interval of a change, by Welch; None where nothing says how far repetitions spread.

    Repetitions that coincide are one draw, of which only the other ones can say how far it may be from its mean.
    """
    drawn = [replace(sample, n=1) if sample.coincides else sample for sample in (before, after)]
    if any(sample.deviation is None for sample in drawn) or all(sample.coincides for sample in drawn):
        return None
    spread = max(sample.deviation or 0.0 for sample in drawn)
    parts = [((spread if one.coincides else one.deviation or 0.0) ** 2 / one.n, one.n - 1) for one in drawn]
    total = sum(variance for variance, _ in parts)
    known = [(variance, degrees) for variance, degrees in parts if degrees]
    if len(known) == 2:
        degrees = total**2 / sum(variance**2 / degrees for variance, degrees in known)
    else:
        [(_, degrees)] = known
    quantile = float(t_quantile(np.array([float(degrees)]))[0])
    return quantile * math.sqrt(total)


def _sentence(row: dict[str, Any], again: dict[str, Any], where: str, moved: list[str]) -> str:
    return (
        f"{PHASES}: with a random delay of up to one packet behind every full link ({where}), {_values(row, again)}, "
        f"a change beyond its 95 % interval on {' and '.join(moved)}; {REGRESSION}"
    )


def _values(row: dict[str, Any], again: dict[str, Any]) -> str:
    """What a flow gets with random phases, and what it got without."""
    change, half = again["difference"], again["half"]
    apart = "" if change is None else f" ({change:+.1f}{'' if half is None else f' ± {half:.1f}'} %)"
    return (
        f"{row['flow']} gets {again['reference']:.3g} Mbit/s on {SIM.name} and {again['mean']:.3g} on "
        f"{row['engine']}{apart}, instead of {row['reference']:.3g} and {row['mean']:.3g}"
    )


def random_delays(results: Results, sweep: Sweep) -> dict[str, int]:
    """The longest random delay (ns) behind every link of the file whose queue dropped packets in the simulator.

    Packets leave such a link no closer to each other than the smallest full one takes, so that they stay in order. A
    link that reorders packets already is left as it is. Links of a kind count for the one that the file names.
    """
    runs = results.runs.filter(engine=SIM.name)["run"].to_list()
    dropped = results.scan("link").filter(pl.col("run").is_in(runs) & (pl.col("dropped_queue_pkts") > 0))
    full = set(dropped.select(pl.col("link").cast(pl.String)).unique().collect()["link"])
    named = tomllib.loads(Path(sweep.scenario).read_text(encoding="utf-8")).get("links", {})
    own = {name for name, link in named.items() if "reorder" in link or _key(name) in sweep.overrides.settings}
    delays: dict[str, int] = {}
    for topology in (results.topologies[run] for run in runs):
        for link in topology.data_links:
            name = family_of(link.name, set(named))
            if link.name not in full or name not in named or name in own:
                continue
            sizes = [flow.frame_bytes for flow in topology.connections if any(link.name in path for path in flow.paths)]
            rate_bps = _fastest_bps(link)
            if sizes and rate_bps:
                delay_ns = int(8e9 * (min(sizes) + link.overhead_bytes) / rate_bps)
                delays[name] = min(delay_ns, delays.get(name, delay_ns))
    return delays


def _key(link: str) -> str:
    return f"links.{link}.reorder"


def _fastest_bps(link: Link) -> float | None:
    """The highest rate that a link has; None where packets leave at times of their own."""
    if link.trace is not None:
        return None
    return max([link.rate_bps, *(change.rate_bps for change in link.schedule if change.rate_bps is not None)])


def delayed(overrides: Overrides, delays: Mapping[str, int]) -> Overrides:
    """The same with every packet delayed behind these links at random, by up to so many nanoseconds."""
    random = {
        _key(name): f'{{ probability = "100 %", delay = "uniform(0 ms, {delay_ns} ns)" }}'
        for name, delay_ns in delays.items()
    }
    return replace(overrides, settings={**overrides.settings, **random})


def _only(overrides: Overrides, results: Results, outside: list[dict[str, Any]]) -> Overrides:
    """Those of a sweep without the algorithms whose flows are all inside."""
    configs = results.configs.filter(pl.col("base").is_in([row["base"] for row in outside]))
    axes = results.runs.filter(pl.col("run").is_in(configs["run"].implode()))["axes"]
    names = dict.fromkeys(name for name in (json.loads(text).get("cc") for text in axes) if name is not None)
    return replace(overrides, cc=tuple(names)) if names else overrides


def _again(runs: Sweep, delays: dict[str, int]) -> Results:
    """The runs of these engines, with random delays."""
    overrides = delayed(runs.overrides, delays)
    # Apart from the runs that this repeats, which a sweep with others would remove.
    return replace(runs, overrides=overrides, same_noise=True, lasting=None).run()
