"""Scenario files: validation, resolved runs, and overrides of settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

from mptcplab import _core
from mptcplab.algorithm import Algorithms, named


@dataclass(frozen=True)
class Overrides:
    """Changes to a scenario without editing its file.

    `settings` maps key paths to values as they would be written in the file, such as
    `{"links.B1.queue": "1 BDP"}`.
    """

    cc: tuple[str, ...] = ()
    reps: int | None = None
    seed: int | None = None
    profile: tuple[str, ...] = ()
    duration: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    # Places of the sources of algorithms in `cc` that are not in the build, by name.
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cc: Algorithms | None,
        reps: int | None,
        seed: int | None,
        profile: str | Iterable[str] | None,
        duration: str | None,
        settings: Mapping[str, str] | None,
    ) -> Overrides:
        """Overrides from the arguments of public functions; None keeps the value of the file. C files are compiled."""
        names, files = named(cc)
        return cls(names, reps, seed, as_names(profile), duration, settings or {}, files)

    def to_json(self) -> str:
        """JSON for the engines; settings that are not overridden are absent."""
        given = {
            "cc": list(self.cc) or None,
            "reps": self.reps,
            "seed": self.seed,
            "profile": list(self.profile) or None,
            "duration": self.duration,
            "set": [list(item) for item in self.settings.items()] or None,
            "files": dict(self.files) or None,
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
            files=given.get("files", {}),
        )

    def to_options(self) -> list[str]:
        """The same as options of the command line."""
        options: list[str] = []
        for name, value in (
            ("--cc", ",".join(self._written(one) for one in self.cc)),
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

    def _written(self, cc: str) -> str:
        """An algorithm as `--cc` takes it, with the path of its file where it has one."""
        name, bracket, parameters = cc.partition("(")
        return self.files.get(name, name) + bracket + parameters


def check(scenario: str | PathLike[str], overrides: Overrides | None = None) -> dict[str, Any]:
    """Validate a scenario; return `text` (a description) and `resolved` (every unit explicit, defaults filled in)."""
    return json.loads(_core.check(fspath(scenario), (overrides or Overrides()).to_json()))


def resolved_runs(scenario: str | PathLike[str], overrides: Overrides | None = None) -> list[dict[str, Any]]:
    """Every run of a scenario with every unit explicit, and `starts_ns`: the start time that each flow draws."""
    return json.loads(_core.runs_json(fspath(scenario), (overrides or Overrides()).to_json()))


def as_names(value: str | Iterable[str] | None) -> tuple[str, ...]:
    """One name, several or none as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
