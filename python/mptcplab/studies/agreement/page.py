"""The page on how well engines agree: a matrix as Markdown, a figure, and the numbers behind both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median

from mptcplab.capabilities import engine_of
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.markdown import anchor, command, document, table
from mptcplab.markdown import figure as figure_link
from mptcplab.metrics.certainty import COINCIDE_PERCENT, ONE_TRAJECTORY
from mptcplab.output import write_text, writing
from mptcplab.studies.agreement import figure
from mptcplab.studies.agreement.chance import Chance
from mptcplab.studies.agreement.judge import DELAY, GOODPUT, JAIN, Bounds
from mptcplab.studies.agreement.matrix import Entry, Matrix, Row, counted_in_words
from mptcplab.studies.agreement.tendency import FEWEST_SCENARIOS
from mptcplab.study.verdict import Verdict
from mptcplab.text import NOT_APPLICABLE, duration, number

PAGE, NUMBERS, FIGURE = "agreement.md", "agreement.json", "goodput"
# Round-trip times that differ by less are counted as near.
NEAR_PERCENT = 5
# What the page calls a metric, with the digits and the unit of its values, and those of a difference.
_QUANTITIES = {
    GOODPUT: ("goodput", 2, " Mbit/s", 1, " %"),
    DELAY: ("mean srtt", 1, " ms", 1, " %"),
    JAIN: ("Jain's index", 3, "", 3, ""),
}

_INTRODUCTION = """\
Short versions of the papers' scenarios on two engines, `{one}` and `{other}`, by the command

```text
{command}
```

which writes this page, its figure and [{numbers}]({numbers}). Every section has the command that repeats it,
and the builds of the engines that made it: `--only SCENARIO` makes one section anew and keeps the others. Both engines
run the same file with the same random numbers. Short runs show whether the engines do the same, not what the papers
measured.{alike}

Goodput of a flow may differ by {flow:g} %{at_median}, Jain's index by {jain:g}.
± is half of the 95 % interval of the difference{over};
n are the repetitions that count.
Where the repetitions of an engine all but coincide (a standard deviation below {coincide:g} % of the mean), they are
{one_trajectory}: another build, or packets in another phase, may give another difference, nothing here says how far
from this one, and no interval is shown. If the first three of a machine are one trajectory, both engines run with
random delays behind every full link instead, as the section then says.
A verdict rests on the point estimate alone, the difference between the means, because the bounds are about means. Its
interval may reach beyond the bound, from either side. The counts therefore say how many differences are inside, or
outside, with the whole interval; nothing is decided about the others.
The mean smoothed RTT of a flow is shown where a section has it, and not judged.
Lines with "perhaps" give differences between the traces of the two engines, with figures, that may be the cause; none
of them is proven to be."""
_ALIKE = """ The packet scheduler is `linger` on both, because a kernel has one of its own, and segments leave in
groups as in Linux (`tcp.tso`), which puts ACKs together while segments are missing (`tcp.comp_sack`). Where a scenario
names no receive buffer, it grows on both as in the kernel that is compared (`tcp.like`). Four scenarios are reduced,
so that a kernel can run them in real time, or a machine in less than a day: links that never fill have a lower rate,
the links of `server` and `poisson` have a fifth of theirs and shorter queues, and there are fewer flows. Files outlast
the run.
The kernel's hosts take some microseconds to answer a packet, and not always the same. That decides in which phase
packets meet a full drop-tail queue, and whose are dropped. The simulator's `host_delay` is what both hosts took at
least (first percentiles of the time from when a packet was due until it was answered, summed over a round trip), and
its `send_jitter` is what they took longer (99th percentiles), each as the median of all round trips, or as the
scenario's own if that is larger. Where a section names no constant delay, the simulator had none, and its `send_jitter`
was the lateness of the kernel's links."""
_REAL_TIME = " The kernel runs in real time: another run, or another machine, gives other numbers."
_VIRTUAL_TIME = " The kernel runs in virtual time: another run of the same kernel gives the same numbers."

_CHANCE = """\
**How much of it is chance.** The means of a few repetitions differ even between two equal engines. By the intervals of
the {flows} flows that have one, equal engines would differ by {equal_median} at the median, {equal_beyond} of the flows
would be beyond {bound}, and the worst would be {equal_worst} apart. Here these are {median}, {beyond} and {worst}. What
chance does not explain has a standard deviation of {own} (95 % interval {interval}, by drawing the scenarios again),
which is {own_median} at the median: so far apart are the engines themselves (Paule and Mandel, "Consensus Values and
Weighting Factors", Journal of Research of the National Bureau of Standards 87(5), 1982)."""

_TENDENCIES = """\
**Whether an engine favours a kind of flow.** The table has the mean difference of goodput over all scenarios in which
such flows run, with its 95 % interval (Hartung and Knapp, "On tests of the overall treatment effect in meta-analysis
with normally distributed responses", Statistics in Medicine 20, 2001). Flows with several subflows are also listed by
the algorithm of the runs, if it ran in at least {fewest} scenarios."""

_OF_MEANS = " of the means (over pairs of repetitions where each has links of its own)"


def prepare(out: Path) -> None:
    """Create the directory of the page, so that an error comes before an hour of runs."""
    with writing(f"write the page: {out}", "choose another --out"):
        out.mkdir(parents=True, exist_ok=True)


def write(matrix: Matrix, out: Path) -> list[Path]:
    """Write page, numbers and figure into a directory; return their paths."""
    prepare(out)
    with writing(f"write the page: {out}", "choose another --out"):
        written = [out / PAGE, out / NUMBERS]
        write_text(out / NUMBERS, matrix.to_json())
        points = figure.points(matrix)
        write_text(out / PAGE, page(matrix, with_figure=bool(points)))
        if points:
            written += figure.write(points, matrix.engines, out / FIGURE)
    return written


def read(directory: Path, made_by: str) -> Matrix | None:
    """The numbers of a page that was written into a directory, if there is one; `made_by` is its command.

    Raises `MptcplabError` for numbers that are damaged, or of other engines or shorter runs.
    """
    path = directory / NUMBERS
    if not path.is_file():
        return None
    try:
        found = Matrix.from_json(path.read_text(encoding="utf-8"))
    except (KeyError, TypeError, ValueError) as error:
        raise MptcplabError(with_hint(f"{path}: not right: {error}", "leave out --only to write it anew")) from None
    if found.command != made_by:
        hint = "the same --engines and --quick, another --out, or no --only"
        raise MptcplabError(with_hint(f"{path} is of `{found.command}`, not of `{made_by}`", hint))
    return found


def page(matrix: Matrix, *, with_figure: bool) -> str:
    """The page as text."""
    bounds = matrix.bounds
    one, other = matrix.engines
    at_median = (
        ""
        if bounds.median_percent is None
        else f" and by {bounds.median_percent:g} % at the median of a section and of all"
    )
    host = f" This one: {matrix.host}." if matrix.host else ""
    has_sockets = any(engine_of(name).has_sockets for name in matrix.engines)
    time = _REAL_TIME if any(engine_of(name).real_time for name in matrix.engines) else _VIRTUAL_TIME
    introduction = _INTRODUCTION.format(
        one=one,
        other=other,
        command=matrix.command,
        numbers=NUMBERS,
        alike=f"{_ALIKE}{time}{host}" if has_sockets else "",
        over=_OF_MEANS if has_sockets else " over pairs of repetitions",
        flow=bounds.flow_percent,
        at_median=at_median,
        jain=bounds.jain,
        coincide=COINCIDE_PERCENT,
        one_trajectory=ONE_TRAJECTORY,
    )
    parts = [introduction, _verdict(matrix), *_chances(matrix), *_delays(matrix)]
    if with_figure:
        caption = f"Goodput of every flow: {one} against {other}, with bands of 5 % and 15 %."
        parts.append(figure_link(caption, FIGURE))
    parts.append(
        table(["scenario", "outcome", "worst", "median"], (_overview(entry, matrix.bounds) for entry in matrix.entries))
    )
    parts += [part for entry in matrix.compared for part in _section(entry, matrix)]
    return document("Agreement of engines", matrix.command, parts)


def _verdict(matrix: Matrix) -> str:
    return f"**Verdict: {matrix.verdict}.** {matrix.summary}"


def _chances(matrix: Matrix) -> list[str]:
    chance = matrix.chance()
    return [] if chance is None else [_chance(chance, matrix), *_tendencies(chance, matrix)]


def _tendencies(chance: Chance, matrix: Matrix) -> list[str]:
    rows = [
        [kind, str(one.flows), str(one.scenarios), f"{one.percent:+.1f} ± {one.half:.1f} %"]
        for kind, one in matrix.tendencies(chance.own).items()
    ]
    return [_TENDENCIES.format(fewest=FEWEST_SCENARIOS), table(["flows", "number", "scenarios", "difference"], rows)]


def _chance(chance: Chance, matrix: Matrix) -> str:
    most = f"{matrix.bounds.flow_percent:g} %"
    low, high = chance.own_interval
    return _CHANCE.format(
        flows=chance.flows,
        median=f"{chance.median:.1f} %",
        beyond=chance.beyond,
        worst=f"{chance.worst:.0f} %",
        equal_median=f"{chance.equal_median:.1f} %",
        equal_beyond=f"{chance.equal_beyond:.0f}",
        equal_worst=f"{chance.equal_worst:.0f} %",
        bound=most,
        own=f"{chance.own:.1f} %",
        interval=f"{low:.1f} to {high:.1f} %",
        own_median=f"{chance.own_median:.1f} %",
    )


def _delays(matrix: Matrix) -> list[str]:
    distances = matrix.delay_distances
    if not distances:
        return []
    sections = sum(bool(entry.delays) for entry in matrix.compared)
    near = sum(distance <= NEAR_PERCENT for distance in distances)
    tendency = matrix.tendency_of_delays()
    over_all = "" if tendency is None else f"; mean difference {tendency.percent:+.1f} ± {tendency.half:.1f} %"
    return [
        f"Mean smoothed RTT: {near} of {len(distances)} flows are within {NEAR_PERCENT} %; median distance "
        f"{median(distances):.1f} %, largest {max(distances):.1f} %{over_all}. Sections that have it: {sections} of "
        f"{len(matrix.compared)}."
    ]


def _overview(entry: Entry, bounds: Bounds) -> list[str]:
    summary = entry.summary(bounds)
    if entry.verdict == Verdict.NOT_TESTABLE:
        return [f"`{entry.name}`", summary, NOT_APPLICABLE, NOT_APPLICABLE]
    distances = entry.distances
    shown = [f"{of(distances):.1f} %" if distances else NOT_APPLICABLE for of in (max, median)]
    return [f"[`{entry.name}`](#{anchor(entry.name)})", summary, *shown]


def _section(entry: Entry, matrix: Matrix) -> list[str]:
    heads = ["algorithm", "quantity", *matrix.engines, "difference", "n", "verdict"]
    noise = [f"{entry.noise[:1].upper()}{entry.noise[1:]}."] if entry.noise else []
    delays = [_with_delays(entry.random_delays)] if entry.random_delays else []
    causes = ("\n".join([f"{base}:", "", *(f"- {text}" for text in texts)]) for base, texts in entry.causes.items())
    rows = table(heads, map(_row, _by_algorithm(entry)))
    return [
        f"## {entry.name}",
        f"{entry.title}.",
        command(entry.command),
        rows,
        *_wholes(entry, matrix.bounds),
        *delays,
        *noise,
        _made_with(entry),
        *causes,
    ]


def _wholes(entry: Entry, bounds: Bounds) -> list[str]:
    """How many differences are inside or outside with their whole interval, unless all are inside."""
    if all(entry.counts(metric, bounds).all_whole for metric in (GOODPUT, JAIN)):
        return []
    sentences = counted_in_words(lambda metric: entry.counts(metric, bounds), bounds)
    return [" ".join(f"{sentence}." for sentence in sentences)]


def _by_algorithm(entry: Entry) -> list[Row]:
    """All rows of an algorithm together, in the order in which algorithms ran."""
    rows = [*entry.evidence, *entry.delays]
    order = list(dict.fromkeys(row.base for row in rows))
    return sorted(rows, key=lambda row: order.index(row.base))


def _with_delays(delays: Mapping[str, int]) -> str:
    where = " and ".join(f"`{link}` ({duration(ns)})" for link, ns in delays.items())
    return (
        "Without randomness, the machine's repetitions are one trajectory. Here, both engines delay every packet at "
        f"random, by up to the time that a packet takes on the link before: behind {where}."
    )


def _made_with(entry: Entry) -> str:
    builds = ", ".join(f"`{engine}` {build}" for engine, build in entry.builds.items()) or "not recorded"
    return f"Builds: {builds}."


def _row(row: Row) -> list[str]:
    what, digits, unit, _, _ = _QUANTITIES[row.metric]
    of_flow = "" if row.flow is None else f" of `{row.flow}`"
    values = [f"{number(value, digits, unit.strip())}{unit}" for value in (row.reference, row.mean)]
    verdict = "not judged" if row.verdict is None else row.verdict
    return [row.base, f"{what}{of_flow}", *values, _difference(row), _counts(row), verdict]


def _counts(row: Row) -> str:
    return str(row.n) if row.n == row.n_reference else f"{row.n_reference}, {row.n}"


def _difference(row: Row) -> str:
    if row.difference is None:
        return NOT_APPLICABLE
    *_, digits, unit = _QUANTITIES[row.metric]
    difference = f"{row.difference:+.{digits}f}"
    if row.one_trajectory:
        return f"{difference}{unit}, {ONE_TRAJECTORY}"
    return f"{difference}{unit}" if row.half is None else f"{difference} ± {row.half:.{digits}f}{unit}"
