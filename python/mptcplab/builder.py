"""Scenarios that are built in Python, from dictionaries or from text, beside those in files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from mptcplab import bundle
from mptcplab import scenario as files
from mptcplab.arguments import named_in_errors
from mptcplab.errors import MptcplabError, ScenarioError, with_hint
from mptcplab.output import write_text, writing
from mptcplab.paths import path_of
from mptcplab.scenario import Overrides
from mptcplab.scratch import Scratch
from mptcplab.settings import Setting, toml_key, toml_value

_HINT = "the path of a file, a mptcplab.Scenario, or a dictionary of its keys"
# Tables that a file writes as sections, one for each of their entries.
_SECTIONS = ("links", "flows")


@dataclass(frozen=True, repr=False)
class Scenario:
    """A scenario: links and the flows on them, with the keys of docs/reference/scenario-format.md.

    Methods return a changed copy. `mptcplab.run` takes it instead of a file. It is checked as a file is: by `check`, by
    `write`, and before it runs.

    >>> scenario = (
    ...     Scenario(duration="30 s", repetitions=2, cc=["lia", "olia"])
    ...     .link("B1", "S", "D", rate="10 Mbit/s", delay="5 ms", loss="0.1 %")
    ...     .link("B2", "S", "D", rate="5 Mbit/s", delay="10 ms")
    ...     .flow("mp", [["B1"], ["B2"]])
    ... )
    >>> print(scenario.to_toml().splitlines()[0])
    duration = "30 s"
    """

    keys: dict[str, Any] = field(default_factory=dict)
    # The text that was parsed, with its comments, until something changes.
    text: str | None = None
    name: str = "scenario"
    # The directory of the files that it names.
    directory: Path = field(default_factory=Path)

    def __init__(
        self,
        keys: Mapping[str, Setting] | None = None,
        *,
        text: str | None = None,
        name: str = "scenario",
        directory: str | PathLike[str] = ".",
        **more: Setting,
    ) -> None:
        if keys is not None and not isinstance(keys, Mapping):
            hint = "Scenario.from_file(path), Scenario.from_toml(text), or Scenario({...}) with the keys of a scenario"
            raise MptcplabError(with_hint(f"not the keys of a scenario: {keys!r}", hint))
        object.__setattr__(self, "keys", _copied({**(keys or {}), **more}))
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "name", str(self.keys.get("name", name)))
        object.__setattr__(self, "directory", path_of(directory, "directory"))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Scenario:
        """Read a scenario file. Raises `ScenarioError` if it is not one."""
        file = Path(_found(path_of(path, "path")))
        files.check(file)
        text = file.read_text(encoding="utf-8")
        return cls(tomllib.loads(text), text=text, name=file.stem, directory=file.parent)

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario", directory: str | PathLike[str] = ".") -> Scenario:
        """Parse the text of a scenario file; `directory` has the files that it names. Raises `ScenarioError`."""
        if not isinstance(text, str):
            hint = "the text of a scenario file; Scenario.from_file(path) reads a file"
            raise MptcplabError(with_hint(f"text: not a text: {text!r}", hint))
        made = cls(None, text=text, name=name, directory=directory)
        made.check()
        return cls(tomllib.loads(text), text=text, name=name, directory=directory)

    @classmethod
    def from_dict(cls, keys: Mapping[str, Setting], *, directory: str | PathLike[str] = ".") -> Scenario:
        """A scenario from a dictionary, as a TOML parser returns it for a file. Raises `ScenarioError`."""
        made = cls(keys, directory=directory)
        made.check()
        return made

    def set(self, changes: Mapping[str, Setting] | None = None, /, **keys: Setting) -> Scenario:
        """A copy with other values: keys as arguments, or key paths such as `{"links.B1.loss": "1 %"}`; None removes.

        >>> Scenario().link("A", "S", "D", rate="9 Mbit/s", delay="4 ms").set({"links.A.loss": "1 %"}).keys["links"]
        {'A': {'from': 'S', 'to': 'D', 'rate': '9 Mbit/s', 'delay': '4 ms', 'loss': '1 %'}}
        """
        if changes is not None and not isinstance(changes, Mapping):
            hint = 'a dictionary, such as {"links.A.loss": "1 %"}, or keys as arguments'
            raise MptcplabError(with_hint(f"not changes of a scenario: {changes!r}", hint))
        changed = _copied(self.keys)
        for path, value in {**(changes or {}), **keys}.items():
            _put(changed, path, value)
        return self._changed(changed)

    def link(
        self,
        name: str,
        source: str,
        target: str,
        *,
        rate: Setting = None,
        delay: str | float | timedelta | list[str],
        **keys: Setting,
    ) -> Scenario:
        """A copy with a link and its reverse direction; other keys such as `loss` and `queue` are as in a file.

        A link with a `trace` has no `rate`.

        >>> Scenario().link("A", "S", "D", trace="phone.trace", delay="4 ms").keys["links"]
        {'A': {'from': 'S', 'to': 'D', 'delay': '4 ms', 'trace': 'phone.trace'}}
        """
        given = {"from": source, "to": target, "rate": rate, "delay": delay, **keys}
        return self._with("links", name, given)

    def flow(
        self, name: str, paths: Iterable[str] | Iterable[Iterable[str]] | None = None, **keys: Setting
    ) -> Scenario:
        """A copy with a flow: `paths` is a list of links for TCP, or a list of such lists for several subflows.

        >>> Scenario().flow("tcp", ["A", "B"], cc="reno").keys["flows"]
        {'tcp': {'path': ['A', 'B'], 'cc': 'reno'}}
        """
        given: dict[str, Any] = {}
        if paths is not None:
            listed = _listed(paths)
            given["path" if all(isinstance(one, str) for one in listed) else "paths"] = listed
        return self._with("flows", name, {**given, **keys})

    def _with(self, table: str, name: str, keys: Mapping[str, Any]) -> Scenario:
        if not isinstance(name, str):
            raise MptcplabError(with_hint(f"not the name of a {table[:-1]}: {name!r}", 'a text, such as "B1"'))
        if name in self.keys.get(table, {}):
            hint = f'set({{"{table}.{name}.KEY": VALUE}}) changes it'
            raise MptcplabError(with_hint(f"there is a {table[:-1]} of this name already: {name!r}", hint))
        changed = _copied(self.keys)
        changed.setdefault(table, {})[name] = {key: value for key, value in keys.items() if value is not None}
        return self._changed(changed)

    def _changed(self, keys: dict[str, Any]) -> Scenario:
        return Scenario(keys, name=self.name, directory=self.directory)

    def check(self, overrides: Overrides | None = None) -> dict[str, Any]:
        """Validate it; return `text` (a description) and `resolved` (every unit explicit, defaults filled in)."""
        with named_in_errors(getattr(overrides, "settings", None)), source(self) as path:
            return files.check(path, overrides)

    def to_dict(self) -> dict[str, Any]:
        """Its keys, as a TOML parser would return them."""
        return tomllib.loads(self.to_toml())

    def to_toml(self) -> str:
        """It as the text of a file: the text that was read, or one that is made from the keys."""
        return self.text if self.text is not None else _document(self.keys)

    def write(self, path: str | PathLike[str]) -> Path:
        """Check it and write it as a TOML file; return the path."""
        file = path_of(path, "path")
        self.check()
        with writing(f"write {file}", "choose another path"):
            write_text(file, self.to_toml())
        return file

    def __repr__(self) -> str:
        links, flows = (list(self.keys.get(table, {})) for table in _SECTIONS)
        return f"Scenario({self.name!r}, links={links}, flows={flows})"

    def _repr_html_(self) -> str:
        """The picture of the topology, for notebooks."""
        from mptcplab.report.notebook import scenario_html

        with source(self) as path:
            try:
                runs = files.resolved_runs(path)
            except ScenarioError as error:
                return scenario_html(self, None, str(error))
        return scenario_html(self, runs[0], None)


ScenarioArg = str | PathLike[str] | Scenario | Mapping[str, Any]


@contextmanager
def source(scenario: ScenarioArg) -> Iterator[str]:
    """The path of a scenario's file; for one without a file, of one that exists as long as the context.

    Errors about it then name the scenario, not the file.
    """
    if isinstance(scenario, Mapping):
        scenario = Scenario(scenario)
    if not isinstance(scenario, Scenario):
        if not isinstance(scenario, str | PathLike):
            raise MptcplabError(with_hint(f"not a scenario: {scenario!r}", _HINT))
        if isinstance(scenario, str) and "\n" in scenario:
            hint = "mptcplab.Scenario.from_toml(text) takes the text of a scenario"
            raise MptcplabError(with_hint(f"not the path of a scenario: {scenario.partition(chr(10))[0]!r} ...", hint))
        yield _found(scenario)
        return
    with Scratch("scenario") as directory:
        path = Path(directory) / f"{_stem(scenario.name)}.toml"
        path.write_text(scenario.to_toml(), encoding="utf-8")
        for name in files.named_files(_parsed(scenario)):
            # `{rep}` stands for the number of the repetition.
            for found in scenario.directory.glob(name.replace("{rep}", "*")) if name and name[0] != "/" else ():
                place = path.parent / found.relative_to(scenario.directory)
                if ".." not in place.parts and not place.exists():
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.symlink_to(found.resolve())
        try:
            yield str(path)
        except ScenarioError as error:
            raise ScenarioError(str(error).replace(str(path), f"<{scenario.name}>")) from None


def _listed(paths: Iterable[str] | Iterable[Iterable[str]]) -> list[str | list[str]]:
    """The links of a path, or the paths of several subflows."""
    if isinstance(paths, Iterable) and not isinstance(paths, str | bytes):
        found = list(paths)
        if all(isinstance(one, Iterable) and not isinstance(one, bytes) for one in found):
            return [one if isinstance(one, str) else list(one) for one in found]
    link = paths if isinstance(paths, str) else "B1"
    raise MptcplabError(with_hint(f"not paths: {paths!r}", f'a list of links: ["{link}"], or of such lists'))


def _found(scenario: str | PathLike[str]) -> str:
    """The path of a file, or of the scenario of the package that has this name; a name that nothing has is an error."""
    file, given = path_of(scenario, "scenario"), fspath(scenario)
    if file.exists():
        if not file.is_file() and not file.is_dir():
            hint = "write it to a file, which is read more than once; mptcplab.Scenario.from_toml takes a text"
            raise ScenarioError(with_hint(f"{given}: a pipe or a device, not a file", hint))
        return given
    found = bundle.scenario(given)
    if found is not None:
        return str(found)
    if Path(given).suffix or Path(given).is_absolute():
        return given
    raise ScenarioError(bundle.unknown(given))


def _parsed(scenario: Scenario) -> dict[str, Any]:
    """Its keys; none where the text is not TOML, which the check says."""
    try:
        return scenario.to_dict()
    except tomllib.TOMLDecodeError:
        return {}


def _stem(name: str) -> str:
    return name if name and not set(name) & set("/\\\0") else "scenario"


def _copied(keys: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that shares nothing that can change, and in which what can be read once is a list."""
    for key in keys:
        if not isinstance(key, str):
            raise MptcplabError(with_hint(f"not a key of a scenario: {key!r}", 'a text, such as "duration"'))
    return {key: _copy(value) for key, value in keys.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _copied(value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_copy(one) for one in value]
    return value


def _put(keys: dict[str, Any], path: str, value: Setting) -> None:
    if not isinstance(path, str):
        raise MptcplabError(with_hint(f"not a key of a scenario: {path!r}", 'a text, such as "links.B1.loss"'))
    *parents, last = path.split(".")
    here = keys
    for part in parents:
        if value is None and part not in here:
            return
        here = here.setdefault(part, {})
        if not isinstance(here, dict):
            raise MptcplabError(with_hint(f"not a table: {part!r} in {path!r}", "such as links.B1.loss"))
    if value is None:
        here.pop(last, None)
    else:
        here[last] = value


def _document(keys: Mapping[str, Any]) -> str:
    """A scenario as TOML: plain keys first, then a section per table, and one per link and flow."""
    plain = {key: value for key, value in keys.items() if not isinstance(value, Mapping) and value is not None}
    parts = [_lines(plain, "")]
    for key, value in keys.items():
        if not isinstance(value, Mapping):
            continue
        if key in _SECTIONS:
            parts += [
                f"[{toml_key(key)}.{toml_key(name)}]\n{_lines(table, f'{key}.{name}')}"
                if isinstance(table, Mapping)
                else f"[{toml_key(key)}]\n{_lines({name: table}, key)}"
                for name, table in value.items()
            ]
        else:
            parts.append(f"[{toml_key(key)}]\n{_lines(value, key)}")
    return "\n".join(part for part in parts if part)


def _lines(keys: Mapping[str, Any], place: str) -> str:
    given = {key: value for key, value in keys.items() if value is not None}
    return "".join(
        f"{toml_key(key)} = {toml_value(value, f'{place}.{key}'.lstrip('.'))}\n" for key, value in given.items()
    )
