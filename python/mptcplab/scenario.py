"""Scenario files: validation, resolved runs, and overrides of settings."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby, takewhile
from os import PathLike, fspath
from textwrap import dedent
from typing import Any

from mptcplab import _core
from mptcplab.algorithm import Algorithms, named, words
from mptcplab.arguments import texts, whole_number
from mptcplab.errors import MptcplabError, with_hint
from mptcplab.ranges import expand
from mptcplab.settings import Setting, overriding, toml_value

# The values of one key: a range ("0.01 %..5 % log 7"), a list with commas, or a list of values.
Values = str | Iterable[Setting]
# Keys whose values are names of files beside the scenario.
_FILES = ("schedule_file", "trace")
# Keys of flows whose value is a list, so that a list of values has no meaning, with such a value.
_LISTS = {"path": '["LINK", "LINK"]', "paths": '[["LINK", "LINK"], ["LINK"]]'}
# What to do instead of sweeping a key.
_NO_AXES = {
    "repetitions": "`--reps 10` makes ten runs of each value of the other keys, with different random numbers",
    "seed": "`--reps 10` makes ten runs with different random numbers",
}


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
        duration: Setting,
        settings: Mapping[str, Setting] | None,
        sweep: Mapping[str, Values] | None = None,
    ) -> Overrides:
        """Overrides from the arguments of public functions; None keeps the value of the file. C files are compiled.

        Values of `sweep` are ranges, lists with commas, or lists of values; see `mptcplab.ranges.expand`.
        """
        names, files = named(cc)
        profiles = as_names(profile, "profile", "rfc")
        for name, asked_for, found in (("cc", cc, names), ("profile", profile, profiles)):
            if asked_for is not None and not found:
                hint = f"at least one, or {name}=None for what the scenario says"
                raise MptcplabError(with_hint(f"{name}: no names: {asked_for!r}", hint))
        reps = None if reps is None else whole_number("reps", reps, 1, 100_000)
        seed = None if seed is None else whole_number("seed", seed, 0, 2**63 - 1)
        changes = {**overriding(settings), **swept(sweep)}
        given = {"cc": cc, "repetitions": reps, "seed": seed, "profile": profile, "duration": duration}
        asked = {name for name, value in given.items() if value is not None}
        if twice := sorted(asked & set(settings or ())):
            hint = "leave it out of the settings (--set), or leave out the argument of its own"
            raise MptcplabError(with_hint(f"a key is set twice: {twice[0]}", hint))
        both = sorted((asked | set(settings or ())) & set(sweep or ()))
        if both:
            raise MptcplabError(with_hint(f"a key is set and swept: {both[0]}", "give all its values in the sweep"))
        length = overriding({"duration": duration})["duration"] if duration is not None else None
        return cls(names, reps, seed, profiles, length, changes, files)

    def to_json(self) -> str:
        """As JSON; settings that are not overridden are absent."""
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

    def for_engines(self) -> str:
        """The same for runs that are kept: one algorithm is an axis of one value.

        Runs have the name of the value of this axis, with its parameters, however many algorithms a command names.
        """
        if len(self.cc) != 1:
            return self.to_json()
        return replace(self, cc=(), settings={"cc": json.dumps(self.cc), **self.settings}).to_json()

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
            listed = _listed(value) if _can_be_swept(key) else None
            options += ["--sweep", f"{key}={listed}"] if listed else ["--set", f"{key}={value}"]
        return options

    def _written(self, cc: str) -> str:
        """An algorithm as `--cc` takes it, with the path of its file where it has one."""
        name, bracket, parameters = cc.partition("(")
        return self.files.get(name, name) + bracket + parameters


def check(scenario: str | PathLike[str], overrides: Overrides | None = None) -> dict[str, Any]:
    """Validate a scenario; return `text` (a description) and `resolved` (every unit explicit, defaults filled in)."""
    if overrides is not None and not isinstance(overrides, Overrides):
        raise MptcplabError(with_hint(f"not overrides: {overrides!r}", 'mptcplab.Overrides(cc=("lia",))'))
    found: dict[str, Any] = json.loads(_core.check(fspath(scenario), (overrides or Overrides()).to_json()))
    return found


def named_files(keys: Any) -> Iterator[str]:
    """The files that a scenario names beside itself, as it names them; `keys` are those of a parsed scenario.

    >>> list(named_files({"links": {"wifi": {"schedule_file": "walk/wifi-{rep}.csv", "loss": "1 %"}}}))
    ['walk/wifi-{rep}.csv']
    """
    if isinstance(keys, Mapping):
        for key, value in keys.items():
            if key in _FILES:
                yield from ([value] if isinstance(value, str) else [one for one in value if isinstance(one, str)])
            else:
                yield from named_files(value)


def leading_comment(toml: str) -> tuple[str, tuple[str, ...]]:
    r"""The question with which the comment at the head of a file begins, and the paragraphs after it.

    Without a question it is empty. A paragraph with an indented line, such as a drawing, keeps its lines.

    >>> leading_comment("# One,\n# or two?\n#\n# Two\n# lines.\n#\n#   a -> b\n#     -> c\n\nname = 1  # not this\n")
    ('One, or two?', ('Two lines.', 'a -> b\n  -> c'))
    """
    lines = [line[1:].rstrip() for line in takewhile(lambda line: line.startswith("#"), toml.splitlines())]
    parts = [list(part) for is_text, part in groupby(lines, bool) if is_text]
    texts = [
        dedent("\n".join(part)) if any(line.startswith("  ") for line in part) else " ".join(" ".join(part).split())
        for part in parts
    ]
    question = texts.pop(0) if texts and texts[0].endswith("?") else ""
    return question, tuple(texts)


def resolved_runs(scenario: str | PathLike[str], overrides: Overrides | None = None) -> list[dict[str, Any]]:
    """Every run of a scenario with every unit explicit, and `starts_ns`: the start time that each flow draws."""
    runs: list[dict[str, Any]] = json.loads(_core.runs_json(fspath(scenario), (overrides or Overrides()).to_json()))
    return runs


def as_names(value: str | Iterable[str] | None, argument: str, such_as: str) -> tuple[str, ...]:
    """One name, several or none as a tuple; `argument` is what an error calls them."""
    if value is None:
        return ()
    return tuple(words(value, such_as, argument)) if isinstance(value, str) else tuple(texts(argument, value, such_as))


def swept(sweep: Mapping[str, Values] | None) -> dict[str, str]:
    """The values of a sweep as settings.

    >>> swept({"links.B1.delay": "5 ms..15 ms 3"})
    {'links.B1.delay': '["5 ms", "10 ms", "15 ms"]'}
    """
    if sweep is not None and not isinstance(sweep, Mapping):
        hint = 'such as sweep={"links.B1.loss": "0.01 %..5 % log 7"}'
        raise MptcplabError(with_hint(f"not a sweep: {sweep!r}", hint))
    return {str(key): _swept(str(key), values) for key, values in (sweep or {}).items()}


def _swept(key: str, values: Values) -> str:
    if not isinstance(values, Iterable) or isinstance(values, bytes):
        raise MptcplabError(with_hint(f"{key}: not a list of values: {values!r}", 'such as "1 ms, 5 ms"'))
    if key.rpartition(".")[2] in _LISTS:
        hint = f"run each value with --set '{key}={_LISTS[key.rpartition('.')[2]]}' and an --out of its own; "
        raise MptcplabError(
            with_hint(f"{key}: cannot be swept: its value is a list", hint + "`mptcplab compare` compares the results")
        )
    if not _can_be_swept(key):
        hint = (
            f"run each value with --set '{key}=VALUE' and an --out of its own; `mptcplab compare` compares the results"
        )
        raise MptcplabError(with_hint(f"{key}: cannot be swept", _NO_AXES.get(key, hint)))
    try:
        listed = expand(values)
    except MptcplabError as error:
        raise MptcplabError(f"{key}: {error}") from None
    # Texts of a sweep are as on the command line: true, 5 and minrtt need no quotes.
    return (
        "[" + ", ".join(_literal(key, one) if isinstance(values, str) else toml_value(one, key) for one in listed) + "]"
    )


def _can_be_swept(key: str) -> bool:
    """Whether the format takes a list of values of the key. Of tables and unknown keys, the scenario's check says more.

    >>> _can_be_swept("links.B1.loss"), _can_be_swept("flows.tcp.count")
    (True, False)
    """
    found = [_format()]
    for part in key.split("."):
        tables = [table for schema in found for table in _alternatives(schema)]
        found = [
            inner
            for table in tables
            for inner in (table.get("properties", {}).get(part, table.get("additionalProperties")),)
            if isinstance(inner, dict)
        ]
    kinds = [kind for schema in found for kind in _alternatives(schema)]
    return not kinds or any(kind.get("uniqueItems") or kind.get("type") == "object" for kind in kinds)


@cache
def _format() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
    found: dict[str, Any] = json.loads(_core.schema_json())
    return found


def _alternatives(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A JSON Schema and those of which a value may fit any."""
    yield schema
    for one in schema.get("anyOf", ()):
        yield from _alternatives(one)


def _literal(key: str, text: str) -> str:
    """A value as `--set` reads it: TOML, or text without quotes."""
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return toml_value(text, key)
    return text


def _listed(value: str) -> str | None:
    """A list of texts as `--sweep` takes it; None for anything else."""
    try:
        values = json.loads(value)
    except ValueError:
        return None
    if not isinstance(values, list) or not values or not all(isinstance(one, str) for one in values):
        return None
    plain = ", ".join(values)
    return plain if expand(plain) == values and not any(_literal("", one) == one for one in values) else None
