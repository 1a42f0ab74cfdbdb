"""The Python API: every command of the command line is one of these functions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from mptcplab import _core, output
from mptcplab.results import OVERRIDES, Results

PathArg = str | PathLike[str]
Progress = Callable[[int, int, float, float], None]


@dataclass(frozen=True)
class Overrides:
    """What a caller changes in a scenario without editing the file.

    `settings` maps key paths to values as they would be written in the file, such as
    `{"links.B1.queue": "1 BDP"}`.
    """

    cc: tuple[str, ...] = ()
    reps: int | None = None
    seed: int | None = None
    profile: tuple[str, ...] = ()
    duration: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Serialise for the engine; what is not overridden is absent."""
        given = {
            "cc": list(self.cc) or None,
            "reps": self.reps,
            "seed": self.seed,
            "profile": list(self.profile) or None,
            "duration": self.duration,
            "set": [list(item) for item in self.settings.items()] or None,
        }
        return json.dumps({key: value for key, value in given.items() if value is not None})

    @classmethod
    def from_json(cls, text: str) -> Overrides:
        """The inverse of `to_json`."""
        given = json.loads(text)
        return cls(
            cc=tuple(given.get("cc", ())),
            reps=given.get("reps"),
            seed=given.get("seed"),
            profile=tuple(given.get("profile", ())),
            duration=given.get("duration"),
            settings=dict(given.get("set", ())),
        )

    def to_options(self) -> list[str]:
        """The same as options of the command line."""
        options: list[str] = []
        for name, value in (
            ("--cc", ",".join(self.cc)),
            ("--reps", self.reps),
            ("--seed", self.seed),
            ("--profile", ",".join(self.profile)),
            ("--duration", self.duration),
        ):
            if value not in (None, ""):
                options += [name, str(value)]
        for key, value in self.settings.items():
            options += ["--set", f"{key}={value}"]
        return options


def _names(value: str | Iterable[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def run(
    scenario: PathArg,
    cc: str | Iterable[str] | None = None,
    reps: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    out: PathArg | None = None,
    *,
    profile: str | Iterable[str] | None = None,
    duration: str | None = None,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Simulate every run of a scenario and return its traces.

    `jobs` is the number of threads (0: all cores). Without `out` the trace lives in a temporary directory that
    disappears with the returned object. `progress` is called with (finished runs, all runs, simulated seconds,
    all simulated seconds) about five times a second.

    >>> import mptcplab
    >>> results = mptcplab.run("scenarios/dolia-scenario-1.toml", cc="lia", reps=1, duration="12 s")
    >>> results.runs["cc"].to_list()
    ['lia']
    """
    overrides = Overrides(_names(cc), reps, seed, _names(profile), duration, settings or {})

    def engine(directory: Path) -> None:
        _core.run(fspath(scenario), fspath(directory), overrides.to_json(), jobs, progress)
        output.write_text(directory / OVERRIDES, overrides.to_json() + "\n")

    if out is None:
        holder = tempfile.TemporaryDirectory(prefix="mptcplab-")
        directory = Path(holder.name) / "results"
        engine(directory)
        return Results(directory, holder)
    directory = Path(out)
    output.write_into(directory, engine, force=force)
    return Results(directory)


def load(directory: PathArg) -> Results:
    """Open the results that an earlier run left in a directory."""
    return Results.open(Path(directory))


def check(scenario: PathArg, overrides: Overrides | None = None) -> dict[str, Any]:
    """Validate a scenario; return `text` (for people) and `resolved` (every unit explicit, defaults filled in)."""
    return json.loads(_core.check(fspath(scenario), (overrides or Overrides()).to_json()))


def algorithms() -> list[dict[str, Any]]:
    """All congestion control algorithms of this build, with their parameters and documentation."""
    return json.loads(_core.algorithms_json())


def vectors(path: PathArg) -> dict[str, Any]:
    """Run a file of test vectors against the native build; return passed, failed, skipped and worst error."""
    return json.loads(_core.vectors_json(fspath(path)))
