"""One function per statement: results in, cases with bounds out. The bounds are those that the project set itself."""

from __future__ import annotations

import numpy as np
import polars as pl

from mptcplab.output import TABLES
from mptcplab.results import Results
from mptcplab.studies.fidelity import cubic, figures
from mptcplab.studies.fidelity.statement import Case, Measurement, Plot, joined
from mptcplab.study.statistics import Bound
from mptcplab.study.verdict import Verdict
from mptcplab.trace.reader import axes_of
from mptcplab.trace.topology import Link

MULTIPATH, TCP = "mp", "tcp"


# --- Per-run values ---------------------------------------------------------------------------------


def axes(results: Results) -> pl.DataFrame:
    """run, rep and one column per axis value, named by the last part of the axis."""
    rows = [
        {"run": run, "rep": rep, "cc": cc} | {key.split(".")[-1]: value for key, value in axes_of(axes).items()}
        for run, rep, cc, axes in results.runs.select("run", "rep", "cc", "axes").iter_rows()
    ]
    return pl.DataFrame(rows, schema_overrides={"run": pl.UInt32})


def _metric(results: Results, name: str, **entity: str) -> pl.DataFrame:
    """One value per run of a metric and an entity, with the axes."""
    values = results.metrics([name]).filter(**entity) if entity else results.metrics([name])
    return axes(results).join(values.select("run", "value"), on="run", maintain_order="left")


def cases_of(
    frame: pl.DataFrame, by: tuple[str, ...], unit: str, bound: Bound | None = None, digits: int = 3
) -> tuple[Case, ...]:
    """A case per combination of axis values, in file order."""
    grouped = frame.group_by(by, maintain_order=True).agg("value")
    return tuple(Case(tuple(row[:-1]), tuple(row[-1]), unit, bound, digits) for row in grouped.iter_rows())


def _quotients(results: Results) -> pl.DataFrame:
    """Goodput of the multipath connection over that of TCP, per run."""
    whole = results.metrics(["goodput"]).filter(pl.col("subflow").is_null())
    flows = whole.pivot(on="flow", index="run", values="value", maintain_order=True)
    quotient = flows.select("run", value=pl.col(MULTIPATH) / pl.col(TCP))
    return axes(results).join(quotient, on="run", maintain_order="left")


# --- Single path ------------------------------------------------------------------------------------

SQRT_CONSTANT = (1.15, 1.45)
SQRT_SCATTER = 0.10


def square_root_law(results: Results) -> Measurement:
    """C = mean window times sqrt(p), and how far each p is from the mean of them."""
    percent = pl.col("loss").str.strip_suffix(" %").cast(pl.Float64)
    windows = _metric(results, "cwnd_mean").with_columns(p=percent / 100)
    constants = windows.with_columns(value=pl.col("value") * pl.col("p").sqrt())
    cases = list(cases_of(constants, ("profile", "loss"), "C", Bound(*SQRT_CONSTANT)))
    for profile in constants["profile"].unique(maintain_order=True):
        means = [case.mean for case in cases if case.labels[0] == profile]
        scatter = max(abs(mean / float(np.mean(means)) - 1) for mean in means)
        cases.append(Case((profile, "scatter"), (scatter,), "of C", Bound(high=SQRT_SCATTER)))
    remarks = (
        "Theory: losses at equal distances give C = sqrt(3/2) = 1.225 (Mathis et al. 1997), independent losses 1.31 "
        "(Ott, Kemperman, Mathis 1996). C falls a little with p: the window does not grow during the round trip of "
        "recovery, which counts for more the shorter the cycles are, and half a window is rounded down.",
        "The last rows give the largest distance of any C of a profile from their mean.",
    )
    caption = "Mean window of a Reno flow against the loss probability, with the bounds and the theory."
    plot = Plot("square-root-law", caption, lambda: figures.square_root_law(windows, SQRT_CONSTANT))
    return Measurement(("profile", "loss"), tuple(cases), remarks, plot)


def one_bdp_utilisation(results: Results) -> Measurement:
    """Part of the link's rate that was used after the warm-up."""
    used = _metric(results, "utilisation", link="neck")
    bound = Bound(low=98.0, each=True)
    remarks = ("Nothing is random, so each case is one run without an interval.",)
    return Measurement(
        ("profile", "rate", "delay"), cases_of(used, ("profile", "rate", "delay"), "%", bound, digits=2), remarks
    )


def two_equal_flows(results: Results) -> Measurement:
    """Jain's index of the two flows' throughput."""
    index = _metric(results, "jain").with_columns(flows=pl.lit("two Reno flows"))
    caption = "Windows of the two flows in the first repetition, second minute."
    plot = Plot("two-equal-flows", caption, lambda: figures.two_equal_flows(results))
    cases = cases_of(index, ("flows",), "Jain's index", Bound(low=0.98, each=True), digits=4)
    remarks = ("Every overflow hits both flows, so their windows move together: drop-tail and equal round-trip times.",)
    return Measurement(("flows",), cases, remarks, plot)


# The verdict depends on the flows with an even ACK clock and a constant RTT; the others are only shown.
CURVES = ("long", "middle", "short")
OTHER_CURVES = ("bunched", "queue")


def cubic_window_curve(results: Results) -> Measurement:
    """Largest distance between window and curve over all ACKs of all epochs."""
    columns = ("run", "t_ns", "flow", "state", "cwnd_pkts", "acked_pkts")
    acks = results.scan("subflow").select(columns).with_columns(pl.col("flow").cast(pl.String)).collect()
    events = results.event.with_columns(pl.col("flow").cast(pl.String))
    cases, counted, examples = [], [], {}
    for flow in (*CURVES, *OTHER_CURVES):
        worst, compared, undecided = [], 0, 0
        for run in results.runs["run"]:
            mine = {"run": run, "flow": flow}
            found, open_cases = cubic.epochs(acks.filter(**mine), events.filter(**mine))
            worst.append(max(epoch.deviation for epoch in found))
            compared, undecided = compared + len(found), undecided + open_cases
            if run == 0:
                examples[flow] = max(found, key=_instructive)
        counted.append(f"{flow} {compared} ({undecided})")
        bound = Bound(high=1.0, each=True, shown=flow in OTHER_CURVES)
        cases.append(Case((flow,), tuple(worst), "packets", bound, digits=2))
    remarks = (
        "The reference is max(W_cubic(t), W_est(t)) with t from the first ACK after recovery. The trace shows whole "
        "packets, so the distance is that of the reference from [cwnd, cwnd+1); the fraction of a packet that is "
        "hidden at the loss is fitted per epoch between 0 and 1. A value is the worst ACK of a repetition.",
        f"Epochs compared, in brackets those left out because whole packets do not tell whether fast convergence "
        f"acted: {joined(counted)}.",
        "`bunched` and `queue` decide nothing: RFC 9438 does not set the window to the curve but steers it towards "
        "W_cubic(t + RTT), ACK by ACK. When ACKs come in one bunch per round trip the window climbs in steps, and "
        "when a loss has just emptied half a queue the smoothed RTT is too long for a moment. The test "
        "`crates/mptcplab-sim/tests/cubic.rs` follows that rule itself, ACK by ACK, on such links too.",
    )
    caption = "One long epoch of each deciding flow: the window, what RFC 9438 prescribes, and their distance."
    plot = Plot("cubic-window-curve", caption, lambda: figures.cubic_epochs(examples, CURVES))
    return Measurement(("flow",), tuple(cases), remarks, plot)


def _instructive(epoch: cubic.Epoch) -> float:
    """Long epochs make good figures, above all those that the curve and W_est share."""
    curved = float(np.mean(epoch.curve >= epoch.estimate))
    return float(epoch.seconds[-1]) * (0.5 + min(curved, 1 - curved))


# --- Multipath --------------------------------------------------------------------------------------

ONE_SHARE, TWO_SHARES = (0.7, 1.15), (1.7, 2.3)
FAIR = ("lia", "olia", "balia", "ewtcp(weight=fair)")
# "Visibly less": the profile linux-legacy may leave at most this part of what linux-acked gives.
VISIBLY_LESS = 0.85
MODERN, LEGACY = "linux-acked", "linux-legacy"


def share_bound(cc: str, profile: str) -> Bound | None:
    """The band for an algorithm's share; it decides in the profile for which it is stated."""
    band = ONE_SHARE if cc in FAIR else TWO_SHARES if cc == "reno" else None
    return None if band is None else Bound(*band, shown=profile != MODERN)


def shared_bottleneck(results: Results) -> Measurement:
    """Ratio of goodputs per algorithm and profile, and the legacy profile against today's, seed by seed."""
    ratios = _quotients(results)
    shares = tuple(
        Case(case.labels, case.values, case.unit, share_bound(*case.labels))
        for case in cases_of(ratios, ("cc", "profile"), "x TCP")
    )
    index = {case.labels: np.array(case.values) for case in shares}
    weaker = tuple(
        Case(
            (cc, f"{LEGACY} / {MODERN}"),
            tuple((index[cc, LEGACY] / index[cc, MODERN]).tolist()),
            "x",
            Bound(high=VISIBLY_LESS),
        )
        for cc in FAIR
    )
    strays = [
        f"{c.labels[0]} in {c.labels[1]} ({c.mean:.2f})" for c in shares if not c.decides and c.verdict == Verdict.FAILS
    ]
    remarks = [
        f"The bands are stated for the profile {MODERN}; the other profiles are compared with them in brackets. "
        f"The last rows divide, seed by seed, what an algorithm takes in {LEGACY} by what it takes in {MODERN}; "
        f'"visibly less" is taken to mean at most {VISIBLY_LESS}.',
        "`coupled`, `semicoupled`, `wvegas` and `cubic` have no bound here. SEMICOUPLED aims above one share by "
        "design (`mptcplab algorithms semicoupled`), wVegas yields to whoever fills the queue, and two CUBIC flows "
        "compete with a Reno flow that is slower than either.",
    ]
    if strays:
        remarks.append(f"Outside their band in another profile: {joined(strays)}.")
    caption = "Goodput of two subflows over that of one Reno flow: means with 95 % intervals, every seed a faint dot."
    plot = Plot(
        "shared-bottleneck", caption, lambda: figures.shares(shares, (("1 share", ONE_SHARE), ("2 shares", TWO_SHARES)))
    )
    return Measurement(("algorithm", "profile"), shares + weaker, tuple(remarks), plot)


START = {"0 s": "together", "uniform(0 s, 2 s)": "up to 2 s apart"}
JITTER = {"0 s": "none", "100 us": "100 us", "auto": "by default"}
# The variant that leaves the fewest patterns.
_LOOSE = ("up to 2 s apart", "by default")


def drop_tail_phase(results: Results) -> Measurement:
    """The same ratios with and without random starts and jitter."""
    ratios = _quotients(results).with_columns(
        start=pl.col("start").replace_strict(START), jitter=pl.col("send_jitter").replace_strict(JITTER)
    )
    cases = []
    for case in cases_of(ratios, ("cc", "profile", "start", "jitter"), "x TCP"):
        band = share_bound(case.labels[0], "")
        cases.append(Case(case.labels, case.values, case.unit, band))
    caption = "Each seed is a faint dot; where all seeds coincide nothing was random."
    plot = Plot("drop-tail-phase", caption, lambda: figures.phases(cases, {"reno": TWO_SHARES}, ONE_SHARE))
    return Measurement(("algorithm", "profile", "start", "jitter"), tuple(cases), _phase_remarks(cases), plot)


def _phase_remarks(cases: list[Case]) -> tuple[str, ...]:
    """The effect of the phase in words, with the measured numbers."""
    index = {case.labels: case for case in cases}
    frozen = [case for case in cases if case.identical]
    changes = [
        f"{cc} in {profile} {case.mean:.2f} becomes {_with_interval(index[cc, profile, *_LOOSE])}"
        for case, (cc, profile, *_) in ((case, case.labels) for case in frozen)
    ]
    strays = [f"{', '.join(case.labels)}: {case.mean:.2f}" for case in cases if case.verdict == Verdict.FAILS]
    ewtcp = [value for case in cases if case.labels[0].startswith("ewtcp") for value in case.values]
    return (
        f"Without random starts and jitter nothing is random: all repetitions of {len(frozen)} cases are the same run, "
        "one pattern of drops that repeats, whose ratio tells about the phase and not about the algorithm. With "
        f"random starts and the jitter of the default, {'; '.join(changes)}.",
        "Random starts draw another pattern for each seed: means become meaningful, single runs scatter. Jitter of "
        "100 us, a quarter of a packet's time on this link, changes little; with the default, ten packet times, the "
        "two profiles come close to each other.",
        "Why EWTCP suffers most: its subflows grow by 1/4 packet per round trip each. If losses fall on packets "
        "independently, windows go with the square root of that and two subflows make one share; if every overflow "
        "hits all flows at once, windows go with the growth itself and they make half a share. Single runs reach from "
        f"{min(ewtcp):.2f} to {max(ewtcp):.2f}.",
        f"Outside the band of the statement above: {'; '.join(strays) or 'none'}.",
    )


# Equal flows lose equally if the ratio of their losses is within this.
EQUAL = (0.9, 1.1)
# The noise for which the bound is stated; the other is shown.
NOISE = "auto"
_SUBFLOWS, _CONNECTIONS = "subflows / TCP", "later / earlier connections"


def equal_flows(results: Results) -> Measurement:
    """Ratios of the losses of equal flows: subflows over TCP; connections over others where the algorithm couples."""
    lost = axes(results).join(_losses(results), on="run", maintain_order="left")
    coupled = pl.col("cc").is_in(FAIR)
    ratios = lost.with_columns(
        compared=pl.when(coupled).then(pl.lit(_CONNECTIONS)).otherwise(pl.lit(_SUBFLOWS)),
        value=pl.when(coupled).then(pl.col("two") / pl.col("one")).otherwise(pl.col("both") / pl.col("tcp")),
    )
    by = ("bottleneck", "cc", "compared", "profile", "send_jitter")
    cases = tuple(
        Case(case.labels, case.values, case.unit, Bound(*EQUAL, shown=not _decides_equality(case.labels)))
        for case in cases_of(ratios, by, "x")
    )
    unequal = lost.filter(coupled).with_columns(value=pl.col("both") / pl.col("tcp"))
    caption = "Ratio of the losses of equal flows, without and with noise; every seed is a faint dot."
    plot = Plot("equal-flows", caption, lambda: figures.equal_flows(cases, EQUAL))
    remarks = (_frozen_remark(cases), _unequal_remark(cases_of(unequal, ("profile", "send_jitter"), "x")))
    return Measurement(("bottleneck", "algorithm", "compared", "profile", "noise"), cases, remarks, plot)


def _decides_equality(labels: tuple[str, ...]) -> bool:
    """Connections that couple their subflows are too few for their ratios to be known well enough."""
    return labels[2] == _SUBFLOWS and labels[-1] == NOISE


def _losses(results: Results) -> pl.DataFrame:
    """Per run and bottleneck: the part of their packets that TCP and the connections of either kind lost on it."""
    topology = results.topologies[results.runs["run"][0]]
    where = [
        (
            flow.name,
            subflow.name,
            subflow.path[0],
            _bottleneck(topology.links[subflow.path[0]]),
            flow.name.split("-")[1],
        )
        for flow in topology.connections
        for subflow in flow.subflows
    ]
    places = pl.DataFrame(where, schema=("flow", "subflow", "link", "bottleneck", "kind"), orient="row")
    counted = pl.col("sent_pkts", "lost_pkts")
    rows = results.scan("subflow").filter(pl.col("t_ns") >= topology.warmup_ns)
    counts = rows.group_by("run", "flow", "subflow").agg(counted.max() - counted.min()).collect()
    found = counts.with_columns(pl.col("flow", "subflow").cast(pl.String)).join(places, on=("flow", "subflow"))
    both = found.filter(pl.col("kind") != TCP).with_columns(kind=pl.lit("both"))
    keys = ("run", "link", "bottleneck")
    sums = pl.concat([found, both]).group_by(*keys, "kind").agg(counted.sum())
    part = sums.with_columns(value=pl.col("lost_pkts") / pl.col("sent_pkts"))
    return part.pivot(on="kind", index=keys, values="value").sort("run", "link")


def _bottleneck(link: Link) -> str:
    return f"{link.rate_bps / 1e6:g} Mbit/s, {2e-6 * link.delay_ns:g} ms, {link.queue}"


def _frozen_remark(cases: tuple[Case, ...]) -> str:
    """How far from 1 the ratios are without noise and with it."""
    without = [case.mean for case in cases if case.labels[-1] != NOISE]
    noisy = [case.mean for case in cases if case.decides]
    outside = sum(not EQUAL[0] <= mean <= EQUAL[1] for mean in without)
    return (
        f"Starts are fixed, so that without noise every case is one pattern of drops: {outside} of {len(without)} "
        f"ratios are outside the bound, and they reach from {min(without):.2f} to {max(without):.2f}. With noise, "
        f"those that decide reach from {min(noisy):.2f} to {max(noisy):.2f}."
    )


def _unequal_remark(cases: tuple[Case, ...]) -> str:
    """What flows lose that are not equal: coupled subflows, whose windows are smaller than TCP's."""
    found = [f"{case.mean:.2f} in {case.labels[0]} with noise {case.labels[1]}" for case in cases]
    return (
        "Flows with different windows need not lose equally, and nothing here is bounded; LIMITATIONS.md says what "
        "remains, under regular packet timing. On average over the bottlenecks, "
        f"the part that LIA's subflows lose is {joined(found)} times what TCP loses."
    )


def _with_interval(case: Case) -> str:
    return f"{case.mean:.2f}" if case.half is None else f"{case.mean:.2f} ± {case.half:.2f}"


def disjoint_equal_paths(results: Results) -> Measurement:
    """LIA's goodput over two paths against TCP's over one."""
    cases = cases_of(_quotients(results), ("loss",), "x TCP", Bound(low=0.95))
    remarks = (
        "Without random loss each subflow fills its own link. With random loss the fluid model gives LIA exactly "
        "TCP's goodput; windows that fluctuate apart raise max(w/rtt^2)/(sum w/rtt)^2, hence the excess.",
    )
    return Measurement(("random loss",), cases, remarks)


# --- Exactness --------------------------------------------------------------------------------------

_COMPARED = ("flow", "subflow", "link", "event", "transfer")
_CONTROL = "cubic"


def differing_rows(one: pl.DataFrame, other: pl.DataFrame) -> int:
    """Number of rows in which two tables differ.

    >>> differing_rows(pl.DataFrame({"a": [1, 2, None]}), pl.DataFrame({"a": [1, 3, None]}))
    1
    """
    common = min(one.height, other.height)
    pairs = pl.concat([one.head(common), other.head(common).rename(lambda name: f"other {name}")], how="horizontal")
    unequal = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"other {name}")) for name in one.columns)
    found: int = pairs.select(unequal.sum()).item() + abs(one.height - other.height)
    return found


def one_subflow_reduction(results: Results) -> Measurement:
    """Rows of the trace that differ from Reno's, per algorithm."""
    frame = axes(results)
    differ = dict.fromkeys(frame["run"], 0)
    reno = dict(frame.filter(cc="reno").select("rep", "run").iter_rows())
    rows = 0
    for name in _COMPARED:
        table = results.scan(name).with_columns(pl.col(pl.Categorical).cast(pl.String)).collect()
        parts = {key: part.drop("run") for (key,), part in table.partition_by("run", as_dict=True).items()}
        # A run may have no rows in a table, such as that of transfers.
        parts = dict.fromkeys(differ, table.clear().drop("run")) | parts
        rows += sum(parts[run].height for run in reno.values())
        for run, rep in frame.select("run", "rep").iter_rows():
            differ[run] += differing_rows(parts[reno[rep]], parts[run])
    counts = frame.with_columns(value=pl.col("run").replace_strict(differ, return_dtype=pl.Float64))
    same = Bound(high=0, each=True)
    cases = [
        case
        for case in cases_of(counts, ("cc",), "rows differ", same, digits=0)
        if case.labels[0] not in ("reno", _CONTROL)
    ]
    control = cases_of(counts.filter(cc=_CONTROL), ("cc",), "rows differ", Bound(low=1, each=True), digits=0)[0]
    cases.append(Case((f"{_CONTROL} (control: must differ)",), control.values, control.unit, control.bound, 0))
    losses = results.metrics(["loss_events"]).filter(flow=MULTIPATH).filter(pl.col("subflow").is_null())
    met = losses.filter(pl.col("run").is_in(list(reno.values())))["value"].sum()
    remarks = (
        f"Compared are all columns of the tables {joined(_COMPARED)}, with a row for every ACK: {rows:,} rows, in "
        f"which the flow met {met:.0f} losses. A value is the number of rows that differ from Reno's.",
        "wVegas on one path is Vegas with one bound and a drain of its own, not Reno; its rule is tested in "
        "`crates/mptcplab-cc/tests/wvegas.rs` and by the test vectors.",
    )
    return Measurement(("algorithm",), tuple(cases), remarks)


# Threads of the comparison of bytes; more than one, whatever the machine has.
MANY_JOBS = 4


def same_bytes(first: Results, again: Results, with_many_jobs: Results) -> Measurement:
    """Whether the files of several runs of one scenario are the same."""
    reference = first.directory
    bound = Bound(high=0, each=True)
    cases = []
    for what, results in (("one job again", again), (f"{MANY_JOBS} jobs", with_many_jobs)):
        for table in TABLES:
            mine, theirs = ((at / f"{table}.parquet").read_bytes() for at in (results.directory, reference))
            cases.append(Case((what, table), (float(_differing_bytes(mine, theirs)),), "bytes differ", bound, 0))
    heights = joined(
        f"{pl.scan_parquet(reference / f'{table}.parquet').select(pl.len()).collect().item():,} of {table}"
        for table in TABLES
    )
    return Measurement(("run", "table"), tuple(cases), (f"Compared with the files of: one job. Rows: {heights}.",))


def _differing_bytes(one: bytes, other: bytes) -> int:
    common = min(len(one), len(other))
    a, b = (np.frombuffer(data, np.uint8, common) for data in (one, other))
    return int(np.count_nonzero(a != b)) + abs(len(one) - len(other))
