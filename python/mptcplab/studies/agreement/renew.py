"""A section of the page with the simulator of today beside the machine's numbers, which stay.

A machine repeats itself to the last byte and takes hours, the simulator takes seconds and changes more often. What is
compared are means with their spreads, and the page has those of the machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from mptcplab import bundle
from mptcplab.capabilities import HOST_DELAY, SEND_JITTER, SIM
from mptcplab.metrics import compute
from mptcplab.metrics.differences import KEYS, compared, compared_runs, of_means
from mptcplab.metrics.emulation import HostTimes, noise_beside
from mptcplab.results import Results
from mptcplab.scenario import Overrides
from mptcplab.studies.agreement import matrix, phases
from mptcplab.studies.agreement.judge import COMPARED, bounds_of, with_verdicts
from mptcplab.studies.agreement.matrix import VIRTUAL, Entry, Matrix, Row
from mptcplab.study.progress import Announce, silent
from mptcplab.sweep import run

_NO_FLOW = ""


def measure(former: Matrix, *, only: Collection[str] = (), jobs: int = 0, announce: Announce = silent) -> Matrix:
    """The page with new runs of the simulator, in all sections or `only` these, where the machine's numbers allow it.

    They do not where repetitions have links of their own, or where spreads or the time that hosts took are unknown.
    """
    entries = []
    for entry in former.entries:
        if only and not any(matrix.is_named(Path(entry.name), name) for name in only):
            entries.append(entry)
            continue
        why = _obstacle(entry)
        changes = None if why else matrix.short(bundle.root() / entry.name, VIRTUAL, former.engines)
        if changes is None:
            with announce(f"{entry.name} stays as it is: {why or 'its last flow starts too late now'}"):
                entries.append(entry)
        else:
            with announce(entry.name):
                entries.append(_renewed(entry, changes, former.engines, jobs))
    return replace(former, entries=tuple(entries))


def _obstacle(entry: Entry) -> str:
    """Why an entry cannot be renewed; empty if it can."""
    if not entry.evidence:
        return "it has no numbers"
    if entry.host_delay_ns is None or entry.send_jitter_ns is None:
        return "what the machine's hosts took was not recorded"
    if any(row.spread is None and row.n > 1 and row.mean for row in (*entry.evidence, *entry.delays)):
        return "the spread of its repetitions was not recorded"
    if "--sim-reps" not in shlex.split(entry.command):
        return "every repetition has links of its own"
    return ""


def _renewed(entry: Entry, changes: Overrides, engines: tuple[str, str], jobs: int) -> Entry:
    """The same section with new runs of the simulator, with the algorithms that it has.

    `changes` make its scenario short.
    """
    path = bundle.root() / entry.name
    words = shlex.split(entry.command)
    names = words[words.index("--cc") + 1] if "--cc" in words else None
    changes = replace(changes, cc=Overrides.of(names, None, None, None, None, None).cc)
    changes = phases.delayed(changes, entry.random_delays)
    times = HostTimes(entry.host_delay_ns or 0, entry.send_jitter_ns or 0)
    settings = {
        **changes.settings,
        HOST_DELAY: f'"{times.delay_ns} ns"',
        SEND_JITTER: f'"{times.jitter_ns} ns"',
    }
    results = run(path, changes.cc or None, VIRTUAL.simulated, jobs=jobs, duration=changes.duration, settings=settings)
    found = rows((*entry.evidence, *entry.delays), engines[1], results)
    return replace(
        entry,
        evidence=matrix.evidence_of(found),
        delays=matrix.delays_of(found) if entry.delays else (),
        # They were found in the traces of both engines.
        causes={},
        noise=noise_beside(engines[1], times),
        builds={**entry.builds, SIM.name: matrix.build_of(SIM.name)},
        command=matrix.command_of_one(path, engines, changes, VIRTUAL.simulated),
    ).judged(bounds_of(*engines))


def rows(kept: Iterable[Row], engine: str, simulated: Results) -> pl.DataFrame:
    """The rows of another engine, whose numbers `kept` has, against new runs of the simulator; judged as `judge` does.

    Configurations belong to each other by their order, because the names of a flow's algorithms may have changed.
    """
    kept, first = list(kept), simulated.engines[0]
    values = compute(simulated, COMPARED).filter(pl.col("subflow").is_null(), pl.col("link").is_null())
    runs = compared_runs(simulated)
    found = values.drop_nulls("value").join(runs, on="run").with_columns(pl.col("flow").fill_null(_NO_FLOW))
    names = dict(zip(dict.fromkeys(row.base for row in kept), runs["base"].unique(maintain_order=True), strict=True))
    others = pl.DataFrame(list(_repetitions(kept, engine, names)), orient="row")
    keys = [key for key in KEYS if key != "subflow"]
    both = pl.concat(
        [found.select("rep", *keys, "value"), others.select("rep", *keys, "value")], how="vertical_relaxed"
    )
    renewed = compared(of_means(both, first, keys)).with_columns(
        pl.col("flow").replace(_NO_FLOW, None),
        pl.col("n", "n_reference").cast(pl.UInt32),
        subflow=pl.lit(None, pl.String),
    )
    return with_verdicts(renewed, first)


def _repetitions(kept: Iterable[Row], engine: str, names: dict[str, str]) -> Iterator[dict[str, object]]:
    """Repetitions that have the mean and the spread of each row."""
    for row in kept:
        for rep, value in enumerate(_with_spread(row.mean, row.spread or 0.0, row.n)):
            who = {"base": names[row.base], "metric": row.metric, "flow": row.flow or _NO_FLOW, "engine": engine}
            yield {"rep": str(rep), **who, "value": value}


def _with_spread(mean: float, spread: float, n: int) -> list[float]:
    """So many numbers with this mean and this standard deviation, in percent of the mean.

    >>> numbers = _with_spread(20.0, 10.0, 5)
    >>> round(float(np.mean(numbers)), 9), round(float(np.std(numbers, ddof=1)), 9)
    (20.0, 2.0)
    """
    if n == 1:
        return [mean]
    steps = np.arange(n) - (n - 1) / 2
    found: list[float] = (mean + abs(mean) * spread / 100 * steps / steps.std(ddof=1)).tolist()
    return found
