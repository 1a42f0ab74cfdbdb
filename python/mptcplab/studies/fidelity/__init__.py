"""Fidelity: properties that the simulator needs for its comparisons to be meaningful, measured and written to a page.

`write_page` simulates the scenarios in scenarios/fidelity and writes the page docs/fidelity/fidelity.md; with the study
`SCHEDULERS` those in scenarios/schedulers, for docs/schedulers/schedulers.md; with `OUT_OF_TREE` scenarios of the
papers, for docs/out-of-tree/out-of-tree.md.
"""

from __future__ import annotations

from pathlib import Path

from mptcplab.output import writing
from mptcplab.scenario import Overrides
from mptcplab.scratch import Scratch
from mptcplab.studies.fidelity import measure, out_of_tree, page, schedulers
from mptcplab.studies.fidelity.statement import Measured, Statement, Study
from mptcplab.study.cell import run_command
from mptcplab.study.page import find_directory
from mptcplab.study.progress import Announce, silent
from mptcplab.sweep import Progress, run

__all__ = [
    *("FIDELITY", "OUT_OF_TREE", "SCHEDULERS", "STATEMENTS"),
    *("Measured", "Statement", "Study", "scenario_directory", "write_page"),
]

STATEMENTS = (
    Statement(
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
    Statement(
        "one-bdp-utilisation",
        "Utilisation with one BDP of queue",
        "One Reno flow on a clean drop-tail link with a queue of one bandwidth-delay product uses at least 98 % of it.",
        "Bytes that left the link over its rate, for three rates and three delays.",
        "one-bdp-utilisation.toml",
        measure.one_bdp_utilisation,
        {"duration": "120 s"},
    ),
    Statement(
        "two-equal-flows",
        "Two equal Reno flows",
        "Two equal Reno flows share such a link with a Jain's index of at least 0.98 over 300 s.",
        "Jain's index of the throughputs after a warm-up of 20 s, starts at random.",
        "two-equal-flows.toml",
        measure.two_equal_flows,
    ),
    Statement(
        "cubic-window-curve",
        "CUBIC between losses",
        "Between two losses CUBIC's window follows RFC 9438 within a packet.",
        "The window at every ACK against the curve that RFC 9438 derives from the window at the last loss; "
        "717/1024 of that are kept, as in Linux.",
        "cubic-window-curve.toml",
        measure.cubic_window_curve,
        {"reps": 2, "duration": "150 s"},
    ),
    Statement(
        "shared-bottleneck",
        "Two subflows against one Reno flow",
        "LIA, OLIA, BALIA and EWTCP `fair` with two equal subflows through one shared bottleneck take between 0.7 and "
        "1.15 of the goodput of one Reno flow (profile `linux-acked`), and visibly less in the profile `linux-legacy`; "
        "uncoupled Reno takes 1.7 to 2.3 times it.",
        "Goodput of the multipath connection over that of the Reno flow, seed by seed, starts at random.",
        "shared-bottleneck.toml",
        measure.shared_bottleneck,
        {"reps": 6, "duration": "120 s"},
    ),
    Statement(
        "equal-flows",
        "Equal flows lose equally",
        "With the noise that the simulator has by default, flows of equal algorithm, delay and packet size lose the "
        "same part of their packets at a full drop-tail queue. The ratio of these parts is within 10 %, for 1.5 to "
        "1000 Mbit/s, round-trip times of 10 to 200 ms, queues of 0.25 to 2 BDP, Reno and CUBIC, and an ACK for every "
        "segment and for every second one.",
        "Packets marked lost over packets sent, after the warm-up. Each bottleneck has as many subflows as TCP "
        "connections. Subflows of LIA are coupled, so that its connections are compared with each other; their ratios "
        "are shown and decide nothing.",
        "equal-flows.toml",
        measure.equal_flows,
        {"reps": 2, "duration": "30 s"},
    ),
    Statement(
        "drop-tail-phase",
        "Drop-tail phase effects",
        "Where phase effects of a drop-tail queue break the statement above, they are shown and not tuned away.",
        "The same bottleneck, with simultaneous and with random starts, without and with a random delay of up to "
        "100 us before each packet sent.",
        "drop-tail-phase.toml",
        measure.drop_tail_phase,
        {"reps": 4, "duration": "100 s"},
    ),
    Statement(
        "disjoint-equal-paths",
        "Disjoint equal paths",
        "On two disjoint equal paths LIA's aggregate is at least 95 % of single-path TCP on the best path.",
        "Goodput of LIA over two paths against that of Reno on a third, equal one.",
        "disjoint-equal-paths.toml",
        measure.disjoint_equal_paths,
        {"reps": 4, "duration": "200 s"},
    ),
    Statement(
        "one-subflow-reduction",
        "One subflow is Reno",
        "With one subflow every coupled algorithm gives the same trace as its single-path reduction.",
        "The whole trace of each algorithm against that of Reno with the same seed.",
        "one-subflow-reduction.toml",
        measure.one_subflow_reduction,
        {"reps": 1, "duration": "40 s"},
    ),
    Statement(
        "same-bytes",
        "The same bytes",
        "The same scenario and seed give byte-identical traces with one and with many jobs, twice in a row.",
        f"Every file of the trace, with one job, with one job again, and with {measure.MANY_JOBS} jobs.",
        "same-bytes.toml",
        measure.same_bytes,
        {"duration": "6 s"},
        jobs=(1, 1, measure.MANY_JOBS),
    ),
)

FIDELITY = Study(
    "fidelity",
    "Fidelity",
    "This page checks properties without which the simulator's comparisons would mean nothing: known laws of TCP, the\n"
    "design goals of Multipath TCP, and repeatable results.",
    "mptcplab fidelity",
    Path("scenarios") / "fidelity",
    STATEMENTS,
)
SCHEDULERS = Study(
    "schedulers",
    "Schedulers",
    "This page checks whether the packet schedulers serve their purposes.",
    "mptcplab schedulers --compare",
    Path("scenarios") / "schedulers",
    schedulers.STATEMENTS,
)
OUT_OF_TREE = Study(
    "out-of-tree",
    "The out-of-tree kernel",
    "How near the simulator comes to the out-of-tree kernel (multipath-tcp.org), which four of the papers ran.\n"
    "The goodputs of that kernel were reported by a user who ran these experiments on it; they are stored in\n"
    "`python/mptcplab/studies/fidelity/out_of_tree.csv`. Goodputs that papers print are compared on\n"
    "[the pages of the papers](../papers/README.md).",
    "mptcplab fidelity --out-of-tree",
    out_of_tree.SCENARIOS,
    out_of_tree.STATEMENTS,
)


def write_page(
    out: Path, study: Study = FIDELITY, *, quick: bool = False, jobs: int = 0, announce: Announce = silent
) -> list[Measured]:
    """Measure everything and write the page into a directory; return the statements with their verdicts.

    `quick` simulates less, for a test; the published page is made without it. `jobs` is the number of threads (0: all
    cores). `announce` is called with the title of each statement and gives a context that reports progress.
    """
    scenarios = scenario_directory(study=study)
    # Checked before minutes of simulation.
    with writing(f"write the page: {out}", "choose another --out"):
        out.mkdir(parents=True, exist_ok=True)
    measured = []
    with Scratch(study.name) as scratch:
        for statement in study.statements:
            with announce(statement.title) as progress:
                measured.append(_measured(study, statement, scenarios, Path(scratch), quick, jobs, progress))
        # Inside, because figures are drawn from the traces.
        page.write(study, measured, out, study.command + (" --quick" if quick else ""))
    return measured


def scenario_directory(start: Path | None = None, study: Study = FIDELITY) -> Path:
    """The directory of a study's scenarios."""
    return find_directory(
        study.scenarios,
        f"{study.name} scenarios",
        lambda place: all((place / statement.scenario).is_file() for statement in study.statements),
        f"run `{study.command}` in a clone of the repository, where they are",
        start,
    )


def _measured(
    study: Study, one: Statement, scenarios: Path, scratch: Path, quick: bool, jobs: int, progress: Progress | None
) -> Measured:
    changes = one.quick if quick else {}
    reps, duration = changes.get("reps"), changes.get("duration")
    overrides = Overrides.of(one.cc or None, reps, None, one.profile or None, duration, one.settings)
    results = [
        run(
            scenarios / one.scenario,
            cc=overrides.cc or None,
            profile=overrides.profile or None,
            settings=overrides.settings,
            reps=overrides.reps,
            duration=overrides.duration,
            jobs=own or jobs,
            out=scratch / f"{one.name}-{index}",
            progress=progress,
        )
        for index, own in enumerate(one.jobs)
    ]
    command = run_command((study.scenarios / one.scenario).as_posix(), overrides)
    return Measured(one, command, one.measure(*results))
