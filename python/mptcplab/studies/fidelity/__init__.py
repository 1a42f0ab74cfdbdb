"""Fidelity: what the simulator must show before its comparisons mean anything, measured and written down.

`write_page` simulates the scenarios in scenarios/fidelity and writes the page docs/fidelity/fidelity.md; with the study
`SCHEDULERS` those in scenarios/schedulers, for docs/schedulers/schedulers.md.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from mptcplab import sweep
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.output import writing
from mptcplab.results import Results
from mptcplab.scenario import Overrides
from mptcplab.studies.fidelity import measure, page, schedulers
from mptcplab.studies.fidelity.evidence import Statement
from mptcplab.studies.fidelity.plan import Plan, Study

__all__ = ["FIDELITY", "PLANS", "SCHEDULERS", "Plan", "Study", "scenario_directory", "write_page"]

SCENARIOS = Path("scenarios") / "fidelity"
# Threads of the comparison of bytes; more than one, whatever the machine has.
_MANY_JOBS = 4


PLANS = (
    Plan(
        "square-root-law",
        "Square-root law",
        "One Reno flow under Bernoulli loss has a mean window of C/sqrt(p), with one constant C between 1.15 and 1.45 "
        "and a scatter of at most 10 % over p = 1e-4 ... 5e-3.",
        "The time-weighted mean of the window times the square root of the loss probability, on a link that is never "
        "full.",
        "square-root-law.toml",
        measure.square_root_law,
        {"reps": 3, "duration": "600 s"},
    ),
    Plan(
        "one-bdp-utilisation",
        "Utilisation with one BDP of queue",
        "One Reno flow on a clean drop-tail link with a queue of one bandwidth-delay product uses at least 98 % of it.",
        "Bytes that left the link over its rate, for three rates and three delays.",
        "one-bdp-utilisation.toml",
        measure.one_bdp_utilisation,
        {"duration": "120 s"},
    ),
    Plan(
        "two-equal-flows",
        "Two equal Reno flows",
        "Two equal Reno flows share such a link with a Jain's index of at least 0.98 over 300 s.",
        "Jain's index of the throughputs after a warm-up of 20 s, starts at random.",
        "two-equal-flows.toml",
        measure.two_equal_flows,
    ),
    Plan(
        "cubic-window-curve",
        "CUBIC between losses",
        "Between two losses CUBIC's window follows RFC 9438 within a packet.",
        "The window at every ACK against the curve that RFC 9438 derives from the window at the last loss.",
        "cubic-window-curve.toml",
        measure.cubic_window_curve,
        {"reps": 2, "duration": "150 s"},
    ),
    Plan(
        "shared-bottleneck",
        "Two subflows against one Reno flow",
        "LIA, OLIA, BALIA and EWTCP `fair` with two equal subflows through one shared bottleneck take between 0.7 and "
        "1.15 of the goodput of one Reno flow (profile `linux-acked`), and visibly less in the profile `linux-legacy`; "
        "uncoupled Reno takes 1.7 to 2.3 times it.",
        "Goodput of the multipath connection over that of the Reno flow, seed by seed, starts at random.",
        "shared-bottleneck.toml",
        measure.shared_bottleneck,
        {"reps": 18, "duration": "120 s"},
    ),
    Plan(
        "drop-tail-phase",
        "Drop-tail phase effects",
        "Where phase effects of a drop-tail queue break the statement above, they are shown and not tuned away.",
        "The same bottleneck, with simultaneous and with random starts, without and with a random delay of up to "
        "100 us before each packet sent.",
        "drop-tail-phase.toml",
        measure.drop_tail_phase,
        {"reps": 4, "duration": "100 s"},
    ),
    Plan(
        "disjoint-equal-paths",
        "Disjoint equal paths",
        "On two disjoint equal paths LIA's aggregate is at least 95 % of single-path TCP on the best path.",
        "Goodput of LIA over two paths against that of Reno on a third, equal one.",
        "disjoint-equal-paths.toml",
        measure.disjoint_equal_paths,
        {"reps": 4, "duration": "200 s"},
    ),
    Plan(
        "one-subflow-reduction",
        "One subflow is Reno",
        "With one subflow every coupled algorithm gives the same trace as its single-path reduction.",
        "The whole trace of each algorithm against that of Reno with the same seed.",
        "one-subflow-reduction.toml",
        measure.one_subflow_reduction,
        {"reps": 1, "duration": "40 s"},
    ),
    Plan(
        "same-bytes",
        "The same bytes",
        "The same scenario and seed give byte-identical traces with one and with many jobs, twice in a row.",
        f"Every file of the trace, with one job, with one job again, and with {_MANY_JOBS} jobs.",
        "same-bytes.toml",
        None,
        {"duration": "6 s"},
    ),
)

FIDELITY = Study("fidelity", SCENARIOS, page.FIDELITY, PLANS)
SCHEDULERS = Study("schedulers", schedulers.SCENARIOS, schedulers.SHEET, schedulers.PLANS)

Announce = Callable[[str], AbstractContextManager[sweep.Progress | None]]


def _silent(_: str) -> AbstractContextManager[None]:
    return nullcontext()


def write_page(
    out: Path, study: Study = FIDELITY, *, quick: bool = False, jobs: int = 0, announce: Announce = _silent
) -> list[Statement]:
    """Measure everything and write the page into a directory; return the statements with their verdicts.

    `quick` simulates less, for a test; the published page is made without it. `jobs` is the number of threads (0: all
    cores). `announce` is called with the title of each statement and gives what reports progress.
    """
    scenarios = scenario_directory(study=study)
    # Before minutes of simulation, not after.
    with writing(f"write the page: {out}", "choose another --out"):
        out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"mptcplab-{study.name}-") as scratch:
        bench = _Bench(study, scenarios, Path(scratch), quick, jobs, announce)
        statements = [bench.measured(plan) for plan in study.plans]
        # Inside, because figures are drawn from the traces.
        page.write(statements, out, study.sheet.command + (" --quick" if quick else ""), study.sheet)
    return statements


def scenario_directory(start: Path | None = None, study: Study = FIDELITY) -> Path:
    """Where the scenarios are: below the current directory, or in the repository that this package is part of."""
    places = [(start or Path.cwd()), Path(__file__).resolve().parents[4]]
    for place in places:
        if all((place / study.scenarios / plan.scenario).is_file() for plan in study.plans):
            return place / study.scenarios
    raise MptcplabError(
        with_hint(
            f"no {study.name} scenarios: {places[0] / study.scenarios}",
            f"run `{study.sheet.command}` in a clone of the repository, where they are",
        )
    )


@dataclass(frozen=True)
class _Bench:
    """Simulates what a plan asks for and measures it."""

    study: Study
    scenarios: Path
    scratch: Path
    quick: bool
    jobs: int
    announce: Announce

    def measured(self, plan: Plan) -> Statement:
        with self.announce(plan.title) as progress:
            finding = self._same_bytes(plan, progress) if plan.finding is None else self._finding(plan, progress)
        return Statement(
            plan.name,
            plan.title,
            plan.claim,
            plan.method,
            plan.scenario,
            self._command(plan),
            finding.heads,
            finding.cases,
            finding.remarks,
            finding.picture,
        )

    def _finding(self, plan: Plan, progress: sweep.Progress | None) -> measure.Finding:
        results = self._run(plan, plan.name, self.jobs, progress)
        return plan.finding(results)

    def _same_bytes(self, plan: Plan, progress: sweep.Progress | None) -> measure.Finding:
        ways = {"one job": 1, "one job again": 1, f"{_MANY_JOBS} jobs": _MANY_JOBS}
        runs = {
            what: self._run(plan, f"{plan.name}-{index}", jobs, progress).directory
            for index, (what, jobs) in enumerate(ways.items())
        }
        return measure.same_bytes(runs)

    def _run(self, plan: Plan, name: str, jobs: int, progress: sweep.Progress | None) -> Results:
        changes = plan.quick if self.quick else {}
        out = self.scratch / name
        return sweep.run(
            self.scenarios / plan.scenario,
            reps=changes.get("reps"),
            duration=changes.get("duration"),
            jobs=jobs,
            out=out,
            progress=progress,
        )

    def _command(self, plan: Plan) -> str:
        changes = plan.quick if self.quick else {}
        overrides = Overrides(reps=changes.get("reps"), duration=changes.get("duration"))
        return shlex.join(
            ["mptcplab", "run", (self.study.scenarios / plan.scenario).as_posix(), *overrides.to_options()]
        )
