"""Tests the kernel engine on several kernels: `make test-kernels`.

Runs Debian's kernels in the virtual machines of the engine `vm`. On each kernel it loads every algorithm, makes one
MPTCP transfer with each, and checks what is left behind. Prints a table; the exit code is 1 if anything failed.

    run.py             the oldest and the newest kernel of the matrix
    run.py --all       all of them
    run.py SUITE...    the cloud kernels of these Debian suites, for example bookworm-backports or sid
    run.py --optional  succeeds and says why if this system cannot run them; with SUITE as well

The results of the machines stay in target/test-kernels.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import verdict

from mptcplab import errors
from mptcplab.engines import kernel as engine
from mptcplab.engines.vm import host, kernels, machine
from mptcplab.engines.vm.kernels import Kernel

ROOT = Path(__file__).parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
OUT = TARGET / "test-kernels"
HERE = Path(__file__).parent
# Oldest first. Debian 12 has 6.1, its backports have 6.12 (as Debian 13 does), and those of Debian 13 the newest.
MATRIX = ("bookworm", "bookworm-backports", "trixie-backports")
# A job usually takes half a minute; busy or slow hosts get many times that.
PATIENCE_S = 900.0
# Machines that share the transfers of a kernel, so that no processor of the host waits long for the other.
SHARES = 3


@dataclass(frozen=True)
class Task:
    """A job on a kernel."""

    suite: str
    name: str
    words: tuple[str, ...]

    @property
    def out(self) -> Path:
        """Where its results are."""
        return OUT / self.suite / self.name


@dataclass(frozen=True)
class Done:
    """What a job ended with."""

    task: Task
    console: str = ""
    trouble: str = ""


def main(arguments: Sequence[str]) -> int:
    """Run the tests; 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Tests the kernel engine on several kernels.")
    parser.add_argument("--all", action="store_true", help="all kernels of the matrix instead of oldest and newest")
    parser.add_argument("--optional", action="store_true", help="succeed if this system cannot run virtual machines")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="a Debian suite, such as sid")
    asked = parser.parse_args(arguments)
    suites = asked.suites or (MATRIX if asked.all else (MATRIX[0], MATRIX[-1]))
    try:
        for suite in suites:
            host.require_available(f"vm:{suite}")
            kernels.find(f"vm:{suite}")
    except errors.EngineError as error:
        if not asked.optional:
            raise
        print(
            f"{error}\n\nSKIPPED: the kernel engine was not tested on other kernels, for this reason", file=sys.stderr
        )
        return 0
    algorithms = sorted(path.stem for path in (ROOT / "algorithms").glob("*.c"))
    machines = [collected(suite, done) for suite, done in run(suites, algorithms)]
    return report(machines, algorithms)


def run(suites: Sequence[str], algorithms: Sequence[str]) -> Iterator[tuple[str, list[Done]]]:
    """Run all jobs, as many at a time as there are processors; yield those of each kernel."""
    shutil.rmtree(OUT, ignore_errors=True)
    files = {name: (HERE / name).read_bytes() for name in ("guest.sh", "two-paths.toml")}
    files |= {"busybox": busybox().read_bytes(), "algorithms": "\n".join([*algorithms, ""]).encode()}
    tasks = {suite: tasks_of(suite, algorithms) for suite in suites}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            futures = {suite: [pool.submit(done, task, files) for task in tasks[suite]] for suite in suites}
            for suite in suites:
                yield suite, [future.result() for future in futures[suite]]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def tasks_of(suite: str, algorithms: Sequence[str]) -> list[Task]:
    """The jobs on a kernel."""
    shares = [tuple(algorithms[first::SHARES]) for first in range(SHARES)]
    transfers = [Task(suite, f"transfers-{number}", ("transfers", *share)) for number, share in enumerate(shares)]
    return [Task(suite, "checks", ("checks",)), *transfers]


def run_one(job: machine.Job, out: Path, kernel: Kernel, progress: machine.Progress | None = None) -> machine.Outcome:
    """Run a job by itself."""
    program = engine.program()
    ((_, outcome),) = machine.run_jobs([job], [out], kernel=kernel, program=program, machines=1, progress=progress)
    return outcome


def exit_with(main: Callable[[], int]) -> NoReturn:
    """End the process with what `main` returns, or with an error message and 2."""
    try:
        raise SystemExit(main())
    except errors.MptcplabError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error


def done(task: Task, files: dict[str, bytes]) -> Done:
    """Run a job."""
    job = machine.Job(("sh", "/job/guest.sh", *task.words), files, 1, PATIENCE_S, "/job/busybox")
    kernel = kernels.find(f"vm:{task.suite}")
    try:
        outcome = run_one(job, task.out, kernel)
    except errors.EngineError as error:
        return Done(task, trouble=str(error))
    (task.out / "console").write_text(outcome.console)
    if outcome.code != 0:
        return Done(task, outcome.console, f"the job {task.name} ended with {outcome.code}: {outcome.stderr}")
    return Done(task, outcome.console)


def collected(suite: str, jobs: Sequence[Done]) -> verdict.Machine:
    """The results of all jobs on a kernel."""
    files = {
        str(path.relative_to(job.task.out)): path.read_bytes()
        for job in jobs
        for path in job.task.out.rglob("*")
        if path.is_file()
    }
    release = kernels.find(f"vm:{suite}").release
    console = "".join(job.console for job in jobs)
    return verdict.Machine(suite, release, files, console, tuple(job.trouble for job in jobs if job.trouble))


def report(machines: Sequence[verdict.Machine], algorithms: Sequence[str]) -> int:
    """Print the table and the failures."""
    outcomes = [verdict.judge(one, algorithms) for one in machines]
    print(verdict.table(machines, outcomes), flush=True)
    failures = [
        f"{one.kernel}: {row}: {problem}"
        for one, outcome in zip(machines, outcomes, strict=True)
        for row, cell in outcome.items()
        for problem in cell.problems
    ]
    for failure in failures:
        print(f"\nfailed: {failure}", file=sys.stderr)
    return 1 if failures or not algorithms else 0


def busybox() -> Path:
    """A busybox without libraries, which the machine would not have."""
    found = shutil.which("busybox")
    if found is None or subprocess.run(["ldd", found], capture_output=True, check=False).returncode == 0:
        raise errors.EngineError(errors.with_hint("no busybox without libraries", "scripts/vm/packages.sh installs it"))
    return Path(found)


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1:]))
