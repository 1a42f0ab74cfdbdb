"""Compare engines on one scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import fspath

from mptcplab.scenario import Overrides
from mptcplab.studies.agreement import choose, judge
from mptcplab.studies.agreement.judge import Agreement
from mptcplab.sweep import PathArg, Progress, Sweep, parse_engines


def agree(
    scenario: PathArg,
    engines: str | Iterable[str] | None = None,
    cc: str | Iterable[str] | None = None,
    reps: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    out: PathArg | None = None,
    *,
    profile: str | Iterable[str] | None = None,
    duration: str | None = None,
    settings: Mapping[str, str] | None = None,
    sim_reps: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Agreement:
    """Run a scenario on several engines, and say how near the others come to the first, and what may be why not.

    `engines` is "sim,kernel", "sim,fluid", "sim,kernel,fluid" or a list; without it sim and kernel where the kernel
    engine can run here, else sim and fluid. Everything else is as in `run`, whose errors these are, too, but that the
    kernel runs first and its noise is the simulator's `send_jitter`: how late its links were, at the median over all
    round trips (99th percentiles in sum), unless `settings` or the scenario ask for more. Goodput of a
    flow may differ by 15 % and by 5 % at the median (the fluid's median has no bound), Jain's index by 0.03.

    >>> import mptcplab
    >>> found = mptcplab.agree("scenarios/dolia-scenario-1.toml", "sim,fluid", cc="reno", reps=1, duration="12 s")
    >>> [verdict.engine for verdict in found.verdicts]
    ['fluid']
    """
    asked, why = choose.engines(engines)
    names = parse_engines(asked)
    overrides = Overrides.of(cc, reps, seed, profile, duration, settings)
    choose.refuse_early(fspath(scenario), overrides.to_json(), names)
    sweep = Sweep(fspath(scenario), overrides, names, sim_reps=sim_reps, jobs=jobs, progress=progress, same_noise=True)
    return judge.judged(sweep.run(out, force=force), why)
