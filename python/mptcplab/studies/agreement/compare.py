"""Compare engines on one scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from mptcplab.algorithm import Algorithms
from mptcplab.arguments import named_in_errors
from mptcplab.builder import ScenarioArg, source
from mptcplab.capabilities import full_name
from mptcplab.cluster.connect import ClientArg, connected
from mptcplab.engines import kernel
from mptcplab.errors import EngineError, MptcplabError, with_hint
from mptcplab.scenario import Overrides, Values
from mptcplab.settings import Setting
from mptcplab.sweep import PathArg, Progress, Sweep, check_jobs, parse_engines
from mptcplab.terminal import note, shown

if TYPE_CHECKING:
    from mptcplab.studies.agreement.judge import Agreement

_SUCH_AS = "two or more, such as sim,kernel, sim,vm or sim,fluid"


def agree(
    scenario: ScenarioArg,
    engines: str | Iterable[str] | None = None,
    cc: Algorithms | None = None,
    reps: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    out: PathArg | None = None,
    *,
    profile: str | Iterable[str] | None = None,
    duration: str | float | timedelta | None = None,
    settings: Mapping[str, Setting] | None = None,
    sweep: Mapping[str, Values] | None = None,
    sim_reps: int | None = None,
    client: ClientArg | None = None,
    store: str | None = None,
    force: bool = False,
    progress: Progress | bool | None = None,
) -> Agreement:
    """Run a scenario on several engines, compare the others with one, and list possible causes of differences.

    `engines` is "sim,kernel", "sim,vm:bookworm", "sim,fluid", "sim,kernel,fluid" or a list; without it sim and kernel
    where the kernel engine can run here, else sim and fluid. The reference is the simulator, or without it the first of
    kernel, vm and fluid; of several machines, the first that is named. Everything else is as in `run`, errors included,
    except that a kernel runs first, and the simulator's hosts take as long as the kernel's did to answer a packet:
    `host_delay` is what both took at least (first percentiles), `send_jitter` what they took longer (99th percentiles),
    each the median over all round trips, unless `settings` or the scenario ask for more. Goodput of a flow may differ
    by 15 % and by 5 % at the median (the fluid's median has no bound), Jain's index by 0.03. Where a flow differs more
    from a kernel, both run again with a random delay behind every full link. If its goodput then changes by more than
    its 95 % interval, the phase in which packets arrive may be the cause.

    >>> import mptcplab
    >>> found = mptcplab.agree("scenarios/dolia-scenario-1.toml", "sim,fluid", cc="reno", reps=1, duration="12 s")
    >>> [finding.engine for finding in found.findings]
    ['fluid']
    """
    asked, why = chosen_or_default(engines)
    names = parse_engines(asked)
    overrides = Overrides.of(cc, reps, seed, profile, duration, settings, sweep)
    check_jobs(jobs)
    with (
        named_in_errors(settings, sweep),
        connected(client, store, names, jobs=jobs, say=note) as cluster,
        source(scenario) as path,
        shown(progress) as update,
    ):
        runs = Sweep(path, overrides, names, sim_reps=sim_reps, jobs=jobs, progress=update, cluster=cluster)
        return judged(runs, out, why, force=force)


def judged(runs: Sweep, out: PathArg | None = None, why: str | None = None, *, force: bool = False) -> Agreement:
    """Run a sweep on several engines, with the same noise on all, and judge it; `why` is why these engines."""
    from mptcplab.studies.agreement import phases
    from mptcplab.studies.agreement.judge import judge

    found = judge(replace(runs, same_noise=True).run(out, force=force), why)
    return replace(found, causes=(*found.causes, *phases.find_causes(runs, found)))


def chosen_or_default(asked: str | Iterable[str] | None) -> tuple[list[str], str | None]:
    """The engines, and why where nobody asked: the kernel where it can run, else the fluid, beside the simulator."""
    if asked is None:
        return _default()
    if not isinstance(asked, str | Iterable):
        raise MptcplabError(with_hint(f"not engines: {asked!r}", _SUCH_AS))
    names = asked.split(",") if isinstance(asked, str) else list(asked)
    names = [full_name(name.strip()) for name in names if name.strip()]
    if len(set(names)) < 2:
        raise MptcplabError(with_hint(f"nothing to compare with: engines {','.join(names)!r}", _SUCH_AS))
    return names, None


def _default() -> tuple[list[str], str]:
    try:
        kernel.require_available()
    except EngineError as error:
        reason = str(error).splitlines()[0]
        return ["sim", "fluid"], f"comparing sim and fluid, because kernel is out of reach: {reason}"
    return ["sim", "kernel"], "comparing sim and kernel, because kernel can run here"
