"""Possible causes of a difference between two engines: each check looks for one in two sets of runs.

A cause is stated only with its figures. Figures that differ do not prove that they are why the results differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from mptcplab.capabilities import SIM, engine_of
from mptcplab.metrics import Window
from mptcplab.metrics.certainty import half_of
from mptcplab.metrics.differences import compared_runs
from mptcplab.metrics.emulation import round_trips
from mptcplab.studies.agreement import losses, slow_start
from mptcplab.study.verdict import Verdict
from mptcplab.text import duration

if TYPE_CHECKING:
    from mptcplab.results import Results
    from mptcplab.trace.topology import Flow, Subflow, Topology

# Lateness of a round trip that matters: the emulator's own bound, as part of the propagation delay.
LATE_PART = 0.05
# Part of the window that a flow may wait for the receive window before it matters.
BLOCKED_PART = 0.01
# Packets lost per loss event that differ by this factor.
BURST_FACTOR = 1.5
# Fewer loss events than this have no meaningful mean.
LEAST_EVENTS = 10
# Difference between the fractions of loss episodes that hit all flows, and the least number of episodes.
SYNCHRONY_POINTS, LEAST_EPISODES = 20, 5
# A window that begins fewer round trips than this after slow start still shows the effects of slow start.
SETTLED_ROUNDS = 50
# Windows at the end of slow start that differ by this factor.
EXIT_FACTOR = 1.5


@dataclass(frozen=True)
class Cause:
    """A possible cause in one configuration on one engine: its name, whom it concerns, and a sentence with figures."""

    base: str
    engine: str
    cause: str
    who: str
    text: str


@dataclass(frozen=True)
class Side:
    """The runs of one configuration on one engine that are compared."""

    results: Results
    engine: str
    runs: tuple[int, ...]

    @property
    def topology(self) -> Topology:
        """The resolved scenario; repetitions differ in their random numbers only."""
        return self.results.topologies[self.runs[0]]

    @cached_property
    def window(self) -> Window:
        """Growth of all counters over the window."""
        return Window(self.results, self.runs)

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The flows that react to congestion."""
        return self.topology.connections

    @property
    def has_packets(self) -> bool:
        """Whether single packets are lost and windows are whole: not in a fluid."""
        return engine_of(self.engine).has_packets

    def rows(self, table: str) -> pl.LazyFrame:
        """The rows of a table of these runs."""
        return self.results.scan(table).filter(pl.col("run").is_in(list(self.runs)))

    @cached_property
    def recorded(self) -> list[dict[str, Any]]:
        """The rows of the run table."""
        return self.results.runs.filter(pl.col("run").is_in(list(self.runs))).to_dicts()


@dataclass(frozen=True)
class Pair:
    """The reference and another engine on the same repetitions of one configuration, and the rows that compare them."""

    one: Side
    other: Side
    rows: pl.DataFrame

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both."""
        return self.one, self.other

    @property
    def have_packets(self) -> bool:
        """Whether single packets are lost and windows are whole on both: not in a fluid."""
        return all(side.has_packets for side in self.sides)

    @property
    def subflows(self) -> Iterator[tuple[Flow, Subflow, str]]:
        """Every subflow of every flow that reacts to congestion, with its name in texts."""
        for flow in self.one.flows:
            for subflow in flow.subflows:
                yield flow, subflow, f"{flow.name} {subflow.name}"

    def on_both(self, texts: Iterable[str]) -> str:
        """A text of each engine, joined."""
        return " and ".join(f"{text} on {side.engine}" for text, side in zip(texts, self.sides, strict=True))


# Whom a cause concerns, and the sentence.
Sentences = Iterator[tuple[str, str]]
Check = Callable[[Pair], Sentences]


def find_causes(results: Results, rows: pl.DataFrame) -> Iterator[Cause]:
    """All possible causes that the traces show, by configuration; `rows` are judged differences."""
    runs = compared_runs(results)
    first, *others = results.engines
    for base in runs["base"].unique(maintain_order=True):
        sides = {
            engine: Side(results, engine, tuple(sorted(runs.filter(base=base, engine=engine)["run"])))
            for engine in results.engines
        }
        # Where no run of an engine counts, nothing was compared.
        for engine in (engine for engine in others if sides[first].runs and sides[engine].runs):
            pair = Pair(sides[first], sides[engine], rows.filter(base=base, engine=engine))
            for name, check in CHECKS.items():
                yield from (Cause(base, engine, name, who, text) for who, text in check(pair))


def lateness(pair: Pair) -> Sentences:
    """The emulator released packets late: 99th percentiles along a round trip against its propagation delay."""
    for side in pair.sides:
        for flow, subflow, total in round_trips(side.topology, side.recorded):
            base = subflow.base_rtt_ns
            if base and total > LATE_PART * base:
                yield (
                    f"{flow.name} {subflow.name}",
                    f"late emulation on {side.engine}: the links of {flow.name} {subflow.name} were late by up to "
                    f"{duration(total)} in sum (99th percentiles), {100 * total / base:.0f} % of its base RTT",
                )


def receive_window(pair: Pair) -> Sentences:
    """A flow waited for its receive window for a part of the time."""
    parts = [_blocked(side) for side in pair.sides]
    for flow in pair.one.flows:
        found = [part.get(flow.name) for part in parts]
        if any(part is not None and part > BLOCKED_PART for part in found):
            shares = ("an unknown part" if part is None else f"{100 * part:.1f} %" for part in found)
            waited = pair.on_both(f"{share} of the time" for share in shares)
            yield flow.name, f"receive window: {flow.name} had to wait for it {waited}"


def _blocked(side: Side) -> dict[str, float | None]:
    part = (pl.col("blocked_ns") / 1e9 / pl.col("seconds")).mean()
    unknown = pl.col("blocked_ns").is_null().any()
    means = side.window.flow_delta.group_by("flow").agg(part=pl.when(unknown).then(None).otherwise(part))
    return dict(means.iter_rows())


def slow_start_exit(pair: Pair) -> Sentences:
    """Slow start ended without a loss (HyStart, Vegas) on one engine more often, or at another window."""
    if not pair.have_packets:
        return
    ends = [slow_start.ends(side.rows("subflow")) for side in pair.sides]
    for flow, subflow, who in pair.subflows:
        mine = [frame.filter(flow=flow.name, subflow=subflow.name) for frame in ends]
        quiet = [frame.filter(~pl.col("lost")) for frame in mine]
        counts = [frame.height for frame in quiet]
        windows: list[float | None] = [frame.select(pl.col("ssthresh_pkts").mean()).item() for frame in quiet]
        parts = [count / len(side.runs) for side, count in zip(pair.sides, counts, strict=True)]
        if parts[0] == parts[1] and not _apart(windows, EXIT_FACTOR):
            continue
        bdp = slow_start.bdp_pkts(pair.one.topology, flow, subflow)
        where = " and ".join(
            f"{count} of {len(side.runs)} runs on {side.engine}" + ("" if at is None else f" (at {at:.0f} packets)")
            for side, count, at in zip(pair.sides, counts, windows, strict=True)
        )
        size = "" if bdp is None else f"; the path holds {bdp:.0f} packets"
        yield who, f"slow start of {who} ended without a loss (HyStart or the like) in {where}{size}"


def short_warmup(pair: Pair) -> Sentences:
    """The measured window begins while slow start, or the queue that it left behind, is still there."""
    # A fluid has no threshold: then the other alone says when slow start ended.
    ages = [(side, _ages(side)) for side in pair.sides if side.has_packets]
    warmup_s = pair.one.topology.warmup_ns / 1e9
    for flow, subflow, who in pair.subflows:
        ends = []
        for side, age in ages:
            end_s, rounds = age.get((flow.name, subflow.name), (0.0, SETTLED_ROUNDS))
            if rounds < SETTLED_ROUNDS:
                when = "later" if rounds < 0 else f"{rounds:.0f} round trips earlier"
                ends.append(f"{when}, at {end_s:.1f} s, on {side.engine}")
        if ends:
            text = f"short warm-up: the window begins at {warmup_s:g} s, and slow start of {who} ended"
            yield who, f"{text} {' and '.join(ends)}"


def _ages(side: Side) -> dict[tuple[str, str], tuple[float, float]]:
    """Per subflow the latest end of slow start (s), and how many smoothed round trips before the window that was."""
    warmup_s = side.topology.warmup_ns / 1e9
    ends = slow_start.ends(side.rows("subflow")).filter(pl.col("srtt_s") > 0).sort("t_s", maintain_order=True)
    latest = ends.group_by("flow", "subflow", maintain_order=True).last()
    rows = latest.select("flow", "subflow", "t_s", rounds=(warmup_s - pl.col("t_s")) / pl.col("srtt_s"))
    return {(flow, subflow): (end_s, rounds) for flow, subflow, end_s, rounds in rows.iter_rows()}


def bursts(pair: Pair) -> Sentences:
    """Packets lost per loss event differ: the queue overflows by more at once."""
    if not pair.have_packets:
        return
    sizes = [losses.per_event(side.window.subflow_delta, LEAST_EVENTS) for side in pair.sides]
    for flow, subflow, who in pair.subflows:
        found = [size.get((flow.name, subflow.name)) for size in sizes]
        if _apart(found, BURST_FACTOR):
            yield who, f"bursts: {who} lost {pair.on_both(f'{size:.1f}' for size in found)} packets per loss event"


def synchronisation(pair: Pair) -> Sentences:
    """Losses at a full queue hit all its flows together more often on one engine."""
    if not pair.have_packets:
        return
    shared = losses.shared_queues(pair.one.topology)
    counts = [losses.episodes(side.rows("event"), side.topology, shared, _dropped(side)) for side in pair.sides]
    for link in shared:
        found = [count[link] for count in counts if link in count]
        if len(found) < len(counts) or any(count.number < LEAST_EPISODES for count in found):
            continue
        one, other = (100 * count.of_all / count.number for count in found)
        if abs(one - other) < SYNCHRONY_POINTS:
            continue
        where = pair.on_both(f"in {count.of_all} of {count.number} overflows" for count in found)
        yield link, f"loss synchronisation: at {link} all {len(shared[link])} subflows lost together {where}"


def _dropped(side: Side) -> frozenset[str]:
    """Links whose queue overflowed in the window."""
    full = side.window.link_delta.filter(pl.col("dropped_queue_pkts") > 0)
    return frozenset(full["link"])


def schedulers(pair: Pair) -> Sentences:
    """The engines did not use the same packet scheduler."""
    used = [json.loads(side.recorded[0].get("scheduler") or "{}") for side in pair.sides]
    for flow in pair.one.flows:
        names = [of.get(flow.name) for of in used]
        if None not in names and names[0] != names[1]:
            yield (
                flow.name,
                f'scheduler of {flow.name}: {pair.on_both(names)} (a scenario with scheduler = "{names[1]}" has one)',
            )


def segmentation(pair: Pair) -> Sentences:
    """A kernel sends segments in groups, whose last one asks for an ACK at once; the simulator did not."""
    simulated = next((side for side in pair.sides if side.engine == SIM.name), None)
    if simulated is None or not any(engine_of(side.engine).has_sockets for side in pair.sides):
        return
    flows = json.loads(simulated.recorded[0]["resolved"])["flows"]
    single = [flow["name"] for flow in flows if "tso" in flow and not flow["tso"]]
    if single:
        text = "TSO: the kernel sends segments in groups, the simulator did not (a scenario with tcp.tso = true does)"
        yield ", ".join(single), text


def chance(pair: Pair) -> Sentences:
    """The repetitions differ so much that there may be no difference."""
    for row in pair.rows.filter(verdict=Verdict.FAILS.value).iter_rows(named=True):
        who = row["flow"] or "Jain's index"
        if row["n"] < 2:
            yield who, f"chance: one repetition tells nothing about the spread of {who} (--reps)"
            continue
        half = half_of(row, pair.one.engine)
        if half is not None and row["difference"] is not None and half >= abs(row["difference"]):
            digits, unit = (1, " %") if row["unit"] == "%" else (3, "")
            yield (
                who,
                f"chance: the interval of {who} contains 0: {row['difference']:+.{digits}f} ± "
                f"{half:.{digits}f}{unit} over {row['n']} repetitions (--reps)",
            )


def _apart(values: Sequence[float | None], factor: float) -> bool:
    """Whether all are known and differ by more than a factor."""
    known = [value for value in values if value is not None]
    return len(known) == len(values) and max(known) > factor * min(known)


# In the order of the report: first problems of a run, then differences of the engines, then chance.
CHECKS: dict[str, Check] = {
    "lateness": lateness,
    "schedulers": schedulers,
    "segmentation": segmentation,
    "receive window": receive_window,
    "slow start exit": slow_start_exit,
    "short warm-up": short_warmup,
    "bursts": bursts,
    "loss synchronisation": synchronisation,
    "chance": chance,
}
