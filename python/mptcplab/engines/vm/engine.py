"""A sweep on a stock kernel in emulated machines: one machine per run, and one trace of all."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mptcplab import _core
from mptcplab.engines import kernel as program
from mptcplab.engines.compiled import compiled
from mptcplab.engines.vm import kernels, machine, speed
from mptcplab.engines.vm.kernels import Kernel
from mptcplab.engines.vm.outcome import Outcome
from mptcplab.engines.vm.prepared import Preparation
from mptcplab.errors import EngineError, MptcplabError, ScenarioError, with_hint
from mptcplab.scratch import Scratch
from mptcplab.trace import machines

Progress = Callable[[int, int, float, float], None]

# Exit code of a complete run that does not count.
_DOES_NOT_COUNT = 1
# Host seconds after which a machine is given up: at least, and for each second of the run.
_PATIENCE_S, _PATIENCE_PER_S = 300.0, 120.0
# Where the machine has its files, where it writes the trace, and the name that the program gives to its first trace.
_JOB, _TRACE, _FIRST = "/job", "trace", "000001"
# Where it has algorithms that are not in the build, relative to its files.
_ALGORITHMS = ".algorithms"


def run(
    scenario: str,
    place: Path,
    overrides: str,
    *,
    engine: str,
    only: Sequence[int] | None = None,
    digests: Sequence[str] = (),
    jobs: int = 0,
    progress: Progress | None = None,
) -> None:
    """Run the runs of a scenario, or only those of some numbers, on the kernel of an engine such as "vm:bookworm".

    The trace of each is added to the directory `place` as soon as its machine has ended; `digests` are those of all
    runs. At most `jobs` machines run at once (0: one per core), which does not affect the traces. Raises what the
    engine `kernel` raises. If a run ended early, its trace up to then is in `place`.
    """
    runs = json.loads(_core.runs_json(scenario, overrides))
    numbers = list(range(len(runs)) if only is None else only)
    kernel = kernels.find(engine)
    sweep = _Sweep(scenario, runs, kernel, engine, digests)
    planned = sweep.jobs(overrides, numbers)
    report = _Report([runs[number] for number in numbers], progress)
    with Scratch("vm") as scratch:
        outs = [Path(scratch) / str(number) for number in numbers]
        outcomes = machine.run_jobs(
            planned,
            outs,
            kernel=kernel,
            program=program.program(),
            machines=min(jobs or os.cpu_count() or 1, len(numbers)),
            progress=report.message,
        )
        for position, outcome in _closing(outcomes):
            trace = outs[position] / _TRACE / _FIRST
            has_trace = (trace / "run.parquet").is_file()
            if has_trace:
                sweep.keep(numbers[position], trace, outcome, place)
            sweep.check(numbers[position], outcome, has_trace=has_trace)
            report.ended(position)


def _closing(outcomes: Iterator[tuple[int, Outcome]]) -> Iterator[tuple[int, Outcome]]:
    """The same; machines that still run are ended as soon as nobody asks for more."""
    close = getattr(outcomes, "close", None)
    try:
        yield from outcomes
    finally:
        if close is not None:
            close()


def machine_seed(seed: int, repetition: int) -> int:
    """The seed of a machine: it depends on what the random streams of a scenario depend on, and on nothing else."""
    return int.from_bytes(hashlib.sha256(f"mptcplab vm {seed} {repetition}".encode()).digest()[:8], "big")


def job_files(scenario: Path, overrides: str) -> tuple[str, dict[str, bytes]]:
    """The path of the scenario in the machine, relative to its directory of files, and all files that it needs."""
    named = _core.scenario_files(scenario, overrides)
    for name in named:
        if Path(name).is_absolute():
            raise ScenarioError(
                with_hint(
                    f"{scenario}: a file by its absolute path, which a machine does not have: {name}",
                    "write the path relative to the scenario file",
                )
            )
    home = scenario.absolute().parent
    # `..` is taken as it is written, because the machine has no symbolic links.
    places = {name: Path(os.path.normpath(home / name)) for name in named}
    root = Path(os.path.commonpath([home, *(path.parent for path in places.values())]))
    inside = (home / scenario.name).relative_to(root)
    files = {str(inside): scenario.read_bytes()}
    files |= {str(place.relative_to(root)): (home / name).read_bytes() for name, place in places.items()}
    return str(inside), files


@dataclass(frozen=True)
class _Sweep:
    """The runs of a scenario on one kernel."""

    scenario: str
    runs: Sequence[Mapping[str, Any]]
    kernel: Kernel
    engine: str
    digests: Sequence[str]

    def jobs(self, overrides: str, numbers: Sequence[int]) -> list[machine.Job]:
        """A job for each of some runs."""
        inside, files = job_files(Path(self.scenario), overrides)
        preparations = self._preparations(overrides, numbers)
        words = ["run", "--in-machine", "--scenario", f"{_JOB}/{inside}", "--overrides", overrides]
        if any(preparation.files for preparation in preparations):
            words += ["--algorithms", f"{_JOB}/{_ALGORITHMS}"]
        return [
            machine.Job(
                arguments=(*words, "--run", str(number), "--out", f"/out/{_TRACE}", "--json-progress"),
                files=files,
                seed=self._seed(self.runs[number]),
                patience_s=_PATIENCE_S + _PATIENCE_PER_S * self.runs[number]["duration_ns"] / 1e9,
                preparation=preparation,
            )
            for number, preparation in zip(numbers, preparations, strict=True)
        ]

    def _preparations(self, overrides: str, numbers: Sequence[int]) -> list[Preparation]:
        """What the machine of each run loads, which does not depend on how many runs there are.

        Raises the error for a scenario that no kernel can run.
        """
        made = compiled(self.scenario, overrides)
        words = ["preparations", "--scenario", self.scenario, "--overrides", overrides]
        loads: tuple[str, ...] = ()
        files: dict[str, bytes] = {}
        if made is not None:
            words += ["--algorithms", str(made.directory)]
            loads = ("--algorithms", f"{_JOB}/{_ALGORITHMS}")
            files = {f"{_ALGORITHMS}/{name}": content for name, content in made.files().items()}
        found = program.query(*words, "--run", ",".join(map(str, numbers)), about=self.scenario)
        return [Preparation(("prepare", "--in-machine", "--preparation", text, *loads), files) for text in found]

    def check(self, position: int, outcome: Outcome, *, has_trace: bool) -> None:
        """Raise an error for a run that failed."""
        if outcome.code in (0, _DOES_NOT_COUNT) and has_trace:
            return
        if outcome.code in (0, _DOES_NOT_COUNT):
            error: MptcplabError = EngineError(
                with_hint("the machine sent no trace", "this is a bug of mptcplab; please report it with the scenario")
            )
        else:
            error = program.failure(_on_this_side(outcome.stderr, self.scenario), outcome.code, self.scenario)
        if isinstance(error, ScenarioError):
            raise error
        raise type(error)(f"run {position} ({self._label(position)}) on {self.kernel.release}: {error}")

    def keep(self, position: int, trace: Path, outcome: Outcome, place: Path) -> None:
        """Add the trace of a run to the directory `place`."""
        place.mkdir(parents=True, exist_ok=True)
        number = pl.read_parquet(trace / "run.parquet", columns=["run"]).item()
        texts = self._texts(position, trace, outcome)
        _core.merge_traces([(trace, number)], next_trace(place), [texts])

    def _texts(self, position: int, trace: Path, outcome: Outcome) -> dict[str, str]:
        """What the run table says in addition to what the program in the machine knows."""
        row = pl.read_parquet(trace / "run.parquet", columns=["host", "status", "status_reason"]).row(0, named=True)
        host = json.loads(row["host"] or "{}")
        host["vm"] = {
            "kernel": self.kernel.name,
            "release": self.kernel.release,
            "package": self.kernel.package,
            "kernel_digest": self.kernel.digest,
            "emulator": machine.versions(),
            "seed": self._seed(self.runs[position]),
            "clock": f"virtual: {speed.INSTRUCTIONS_PER_NS} instructions take one nanosecond",
            "virtual_ns": outcome.virtual_ns,
            "busy_share": outcome.busy_share,
        }
        digest = self.digests[position] if self.digests else ""
        texts = {"engine": self.engine, "host": json.dumps(host), "digest": digest}
        busy = machines.too_busy(outcome.busy_share)
        if busy is not None:
            texts |= {"status": "invalid", "status_reason": "; ".join(filter(None, (row["status_reason"], busy)))}
        return texts

    def _seed(self, run: Mapping[str, Any]) -> int:
        return machine_seed(run["seed"], run["rep"])

    def _label(self, position: int) -> str:
        """The values that distinguish a run from the others of its sweep."""
        run = self.runs[position]
        axes = run.get("axes") or {}
        pairs = axes.items() if isinstance(axes, Mapping) else axes
        return ", ".join([*(f"{key} = {value}" for key, value in pairs), f"repetition {run['rep']}"])


def next_trace(place: Path) -> Path:
    """The path of the next trace in a directory of finished runs."""
    return place / f"{max((int(path.name) for path in place.iterdir() if path.name.isdecimal()), default=0) + 1:06}"


def _on_this_side(stderr: str, scenario: str) -> str:
    """What the program in the machine says, with the scenario's path as the user wrote it."""
    inside = rf"{_JOB}/(\S*/)?{re.escape(Path(scenario).name)}"
    return re.sub(inside, lambda _: scenario, stderr)


class _Report:
    """Progress of all machines as progress of the sweep."""

    def __init__(self, runs: Sequence[Mapping[str, Any]], progress: Progress | None) -> None:
        self.seconds = [run["duration_ns"] / 1e9 for run in runs]
        self.reached = [0.0] * len(runs)
        self.done = 0
        self.progress = progress

    def message(self, position: int, message: Mapping[str, Any]) -> None:
        """A line that the program in a machine has printed."""
        if message.get("type") == "progress":
            self.reached[position] = min(float(message["done_s"]), self.seconds[position])
            self._tell()

    def ended(self, position: int) -> None:
        """A run has ended."""
        self.reached[position] = self.seconds[position]
        self.done += 1
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(self.done, len(self.seconds), sum(self.reached), sum(self.seconds))
