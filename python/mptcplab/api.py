"""The Python API: every command of the command line is one of these functions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mptcplab import _core
from mptcplab.engines import kernel
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.results import Results
from mptcplab.scenario import Overrides, as_names, check
from mptcplab.studies.agreement.compare import agree
from mptcplab.sweep import PathArg, Progress, parse_engines, run

if TYPE_CHECKING:
    from mptcplab.studies.goals import Grid, Study
    from mptcplab.studies.papers.reproduce import Reproduction
    from mptcplab.study.progress import Announce

__all__ = [
    "Overrides",
    "agree",
    "algorithms",
    "cc_list",
    "cc_load",
    "cc_persist",
    "cc_unload",
    "check",
    "doctor",
    "doctor_options",
    "goals",
    "load",
    "reproduce",
    "run",
    "schedulers",
    "schema",
    "vectors",
]


def reproduce(
    paper: str,
    engine: str = "sim",
    experiment: str | None = None,
    *,
    quick: bool = False,
    out: PathArg = Path("results") / "reproduce",
    docs: PathArg | None = None,
    jobs: int = 0,
    announce: Announce | None = None,
) -> list[Reproduction]:
    """Run the experiments of a paper of `papers/` ("all": of all) and judge its claims; write the report to `out`.

    Results are kept in `out`/store by a digest of what decides them, so that a reproduction that was stopped goes on
    where it was, and a changed input makes only what it touches anew. `quick` gives a first answer: few and short
    repetitions, none added; the fluid, which is quick anyhow, gives all of it. `docs` is a directory for a shorter
    report in Markdown, as the documentation has it. `announce` is called with what is being done and gives a context
    that reports progress. The fluid takes processes for several jobs: a script needs `if __name__ == "__main__":`
    around the call, or `jobs=1`.
    """
    from mptcplab.studies.papers import catalog, report
    from mptcplab.studies.papers.reproduce import reproduce as run_papers
    from mptcplab.study.progress import silent

    engines = parse_engines(engine)
    if len(engines) > 1:
        raise MptcplabError(with_hint(f"one engine at a time: {engine!r}", "`mptcplab agree` compares engines"))
    library = catalog.load()
    chosen = library.choose(paper)
    if experiment is not None and paper == "all":
        raise MptcplabError(with_hint(f"an experiment is one of a paper's: {experiment!r}", "name the paper, not all"))
    found = run_papers(
        library,
        chosen,
        engines[0],
        Path(out),
        experiment=experiment,
        quick=quick,
        jobs=jobs,
        announce=announce or silent,
    )
    words = ["mptcplab", "reproduce", paper, *(["--engine", engine] if engine != "sim" else [])]
    words += [*(["--experiment", experiment] if experiment else []), *(["--quick"] if quick else [])]
    report.write(found, Path(out), shlex.join(words))
    if docs is not None:
        report.write_docs(found, Path(docs))
    return found


def load(directory: PathArg) -> Results:
    """Open the results that an earlier run left in a directory."""
    return Results.open(Path(directory))


def goals(
    cc: str,
    out: PathArg | None = None,
    *,
    quick: bool = False,
    grid: Grid | None = None,
    seed: int | None = None,
    profile: str | None = None,
    jobs: int = 0,
    force: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Hold one algorithm against the three design goals of RFC 6356 on a grid of networks; write the page.

    `out` is the directory of the page, its pictures and its numbers (default: results/goals-<cc>, with a number behind
    it if that exists); `force` replaces a former study there. `quick` measures fewer networks, for a shorter time;
    `grid` gives them itself. `jobs` and `progress` are as in `run`.
    """
    from mptcplab.studies.goals import write_study

    return write_study(
        cc, out, quick=quick, grid=grid, seed=seed, profile=profile, jobs=jobs, force=force, progress=progress
    )


def algorithms() -> list[dict[str, Any]]:
    """All congestion control algorithms of this build, with their parameters and documentation."""
    return json.loads(_core.algorithms_json())


def schedulers() -> list[dict[str, Any]]:
    """All packet schedulers of the simulator, with their parameters and documentation."""
    return json.loads(_core.schedulers_json())


def vectors(path: PathArg) -> dict[str, Any]:
    """Run a file of test vectors against the native build; return passed, failed, skipped and worst error."""
    return json.loads(_core.vectors_json(fspath(path)))


def doctor(
    pid: int | None = None, connection: str | None = None, rate: str | None = None, rtt: str | None = None
) -> dict[str, Any]:
    """What this machine can do and what stands in the way: `ready`, and one entry of `findings` per check.

    With `pid`, or with `connection` such as "10.0.0.1:40000-10.0.0.2:443", also the live MPTCP connections of that
    process or that connection. `rate` and `rtt` (such as "100 Mbit/s" and "50 ms") ask whether the buffers carry them.
    """
    return kernel.ask("doctor", "--json", *doctor_options(pid, connection, rate, rtt), accept=(0, 1))


def doctor_options(pid: int | None, connection: str | None, rate: str | None, rtt: str | None) -> list[str]:
    """What `doctor` was asked, as options of the program."""
    asked = {"--pid": pid, "--connection": connection, "--rate": rate, "--rtt": rtt}
    return [word for name, value in asked.items() if value is not None for word in (name, str(value))]


def cc_load(names: str | Iterable[str], params: Mapping[str, Any] | None = None, profile: str | None = None) -> Any:
    """Load algorithms into this machine's kernel as lab_<name>, until `cc_unload` or a restart; needs root.

    `profile` says how ACKs are counted, as in a scenario.
    """
    return kernel.ask("cc", "load", *as_names(names), *_setting(params, profile), "--pin", "--json")


def cc_list() -> Any:
    """What is loaded: name, by whom, how many sockets use it, what it counts, parameters that are not the default."""
    return kernel.ask("cc", "list", "--json")


def cc_unload(names: str | Iterable[str] | None = None) -> Any:
    """Take algorithms out of the kernel again (without names: all of ours); needs root."""
    return kernel.ask("cc", "unload", *(as_names(names) or ("--all",)), "--json")


def cc_persist(names: str | Iterable[str], params: Mapping[str, Any] | None = None, profile: str | None = None) -> Any:
    """Install a systemd unit that loads algorithms at boot, as `cc_load` does; needs root."""
    return kernel.ask("cc", "persist", *as_names(names), *_setting(params, profile), "--json")


def _setting(params: Mapping[str, Any] | None, profile: str | None) -> list[str]:
    """How algorithms are loaded, as options of the program."""
    options = [word for name, value in (params or {}).items() for word in ("--param", f"{name}={value}")]
    return options if profile is None else [*options, "--profile", profile]


def schema() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
    return json.loads(_core.schema_json())
