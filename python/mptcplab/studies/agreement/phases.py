"""Whether a difference between the simulator and a kernel depends on the phase in which packets meet a full queue.

Where packets are as regular as in an idle laboratory, microseconds decide which flow's packets a full queue drops
(Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", Internetworking: Research and Experience 3,
1992). A random delay behind a bottleneck, shorter than the time that a packet takes there, keeps the order of packets
and takes the regularity away. If this changes what the simulator gets, the engines' timing matters, not what they
model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from mptcplab.capabilities import SEND_JITTER, SIM, engine_of
from mptcplab.metrics import values_of
from mptcplab.metrics.emulation import simulated_jitter_ns
from mptcplab.report.families import family_of
from mptcplab.studies.agreement.causes import Cause
from mptcplab.studies.agreement.judge import GOODPUT, PACKETS
from mptcplab.text import duration

if TYPE_CHECKING:
    from mptcplab.results import Results
    from mptcplab.studies.agreement.judge import Agreement
    from mptcplab.sweep import Sweep
    from mptcplab.trace.topology import Link

PHASES = "packet phases"


def find_causes(runs: Sweep, agreement: Agreement) -> Iterator[Cause]:
    """Run the simulator again with random phases if it differs from a kernel, and say which goodputs that moves."""
    results = agreement.results
    kernels = [rows for _, engine, rows in agreement.outside() if engine_of(engine).has_sockets]
    outside = [row for rows in kernels for row in rows.filter(metric=GOODPUT).drop_nulls("difference").to_dicts()]
    if results.engines[0] != SIM.name or not outside:
        return
    delays = random_delays(results, runs)
    if not delays:
        return
    means = _means(_again(runs, results, delays))
    where = ", ".join(f"{name} {duration(delay_ns)}" for name, delay_ns in delays.items())
    for row in outside:
        mean = means.get((row["base"], row["flow"]))
        # A mean that moves by less than the bound on the median of all differences says nothing.
        if mean is not None and 100 * abs(mean / row["reference"] - 1) >= PACKETS.median_percent:
            yield Cause(
                row["base"],
                row["engine"],
                PHASES,
                row["flow"],
                f"{PHASES}: on {SIM.name}, {row['flow']} gets {mean:.3g} instead of {row['reference']:.3g} Mbit/s "
                f"with a random delay of up to one packet behind every full link ({where}); {row['engine']} gave it "
                f"{row['mean']:.3g} without",
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


def _again(runs: Sweep, results: Results, delays: dict[str, int]) -> Results:
    """The simulator's runs with the same noise as before, and random delays."""
    settings = {
        **runs.overrides.settings,
        SEND_JITTER: f'"{simulated_jitter_ns(results)} ns"',
        **{
            _key(name): f'{{ probability = "100 %", delay = "uniform(0 ms, {delay_ns} ns)" }}'
            for name, delay_ns in delays.items()
        },
    }
    reps = runs.overrides.reps if runs.sim_reps is None else runs.sim_reps
    overrides = replace(runs.overrides, reps=reps, settings=settings)
    return replace(
        runs,
        overrides=overrides,
        engines=(SIM.name,),
        sim_reps=None,
        same_noise=False,
        lasting=None,
        progress=None,
    ).run()


def _means(results: Results) -> dict[tuple[str, str], float]:
    """Mean goodput (Mbit/s) by configuration and flow."""
    values = values_of(results, GOODPUT).filter(pl.col("subflow").is_null() & pl.col("link").is_null())
    found = values.drop_nulls("value").join(results.configs.select("run", "base"), on="run")
    means = found.group_by("base", "flow").agg(pl.col("value").mean())
    return {(base, flow): value for base, flow, value in means.iter_rows()}
