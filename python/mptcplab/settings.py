"""Values of a scenario's keys, from Python: as they are written in the file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cache
from numbers import Integral, Real
from typing import Any

from mptcplab import _core
from mptcplab.errors import MptcplabError, with_hint

# A value of a key. A list is a sweep where the key takes one value. None takes the key out.
Setting = str | int | float | bool | timedelta | None | Iterable[Any] | Mapping[str, Any]
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# Patterns of the JSON Schema of scenarios that are of durations, and what they do not have.
_DURATION, _NO_DURATION = "(ns|us|ms|s|min|h)", "packets"


def overriding(settings: Mapping[str, Setting] | None) -> dict[str, str]:
    """Settings as the command line's `--set` takes them.

    >>> overriding({"links.B1.loss": ["0.01 %", "0.1 %"], "tcp.tso": True, "flows.mp.stop": 30.0})
    {'links.B1.loss': '["0.01 %", "0.1 %"]', 'tcp.tso': 'true', 'flows.mp.stop': '30 s'}
    """
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        hint = 'a mapping such as settings={"links.B1.queue": "1 BDP"}'
        raise MptcplabError(with_hint(f"not settings: {settings!r}", hint))
    return {str(key): _override(str(key), value) for key, value in settings.items()}


def _override(key: str, value: Setting) -> str:
    # Text is taken as the command line takes it: TOML, or a value without quotes.
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    written = toml_value(value, key)
    # A duration alone needs no quotes.
    return json.loads(written) if isinstance(value, Real | timedelta) and written.startswith('"') else written


def toml_value(value: Any, key: str) -> str:
    """A value as TOML; a number for a duration counts seconds, as everywhere in Python.

    >>> toml_value({"name": "codel", "target": timedelta(milliseconds=5)}, "links.B1.aqm")
    '{ name = "codel", target = "5 ms" }'
    """
    if isinstance(value, timedelta):
        return _seconds(value.total_seconds(), key)
    if type(value).__name__ == "timedelta64":
        return _seconds(_of_numpy(value, key), key)
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Real):
        return _number(value, key)
    if isinstance(value, Mapping):
        entries = (f"{toml_key(str(name))} = {toml_value(one, f'{key}.{name}')}" for name, one in value.items())
        return "{ " + ", ".join(entries) + " }" if value else "{}"
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return "[" + ", ".join(toml_value(one, key) for one in value) + "]"
    hint = "text with a unit, a number, a truth value, a list, a dictionary, or None to take the key out"
    raise MptcplabError(with_hint(f"{key}: not a value of a scenario: {value!r} ({type(value).__name__})", hint))


def toml_key(key: str) -> str:
    """A key, in quotes where TOML needs them."""
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _number(value: Real, key: str) -> str:
    if not math.isfinite(value):
        raise MptcplabError(with_hint(f"{key}: not a finite number: {value!r}", "such as 0.5"))
    if is_duration(key):
        return _seconds(float(value), key)
    return str(int(value)) if isinstance(value, Integral) else repr(float(value))


def _of_numpy(value: Any, key: str) -> float:
    """The seconds of a `numpy.timedelta64`, which NumPy counts among the whole numbers."""
    nanoseconds = value.astype("timedelta64[ns]")
    if str(nanoseconds) == "NaT":
        raise MptcplabError(with_hint(f"{key}: not a duration: {value!r}", "such as 0.5 or timedelta(seconds=5)"))
    return int(nanoseconds.astype("int64")) / 1e9


def _seconds(seconds: float, key: str) -> str:
    """A duration in the largest unit that needs no fraction."""
    nanoseconds = round(seconds * 1e9)
    if seconds and not nanoseconds:
        raise MptcplabError(with_hint(f"{key}: shorter than a nanosecond: {seconds!r} s", "1e-9 or more, or 0"))
    for size, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if nanoseconds % size == 0:
            return f'"{nanoseconds // size} {unit}"'
    return f'"{nanoseconds} ns"'


def is_duration(key: str) -> bool:
    """Whether a key path of a scenario takes a duration and no plain number.

    >>> is_duration("flows.mp.stop"), is_duration("flows.mp.count"), is_duration("links.B1.queue")
    (True, False, False)
    """
    here: dict[str, Any] = _schema()
    for part in key.split("."):
        found = _children(here, part)
        if found is None:
            return False
        here = found
    patterns = [str(one.get("pattern", "")) for one in _alternatives(here)]
    return any(_DURATION in pattern and _NO_DURATION not in pattern for pattern in patterns)


def _children(schema: dict[str, Any], part: str) -> dict[str, Any] | None:
    """What a key of a table is; of a list of tables, a key of each."""
    for one in _alternatives(schema):
        if isinstance(one.get("items"), dict) and (found := _children(one["items"], part)) is not None:
            return found
        named = one.get("properties", {}).get(part)
        if named is not None:
            return dict(named)
        others = one.get("additionalProperties")
        if isinstance(others, dict):
            return others
    return None


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [schema, *(found for one in schema.get("anyOf", ()) for found in _alternatives(one))]


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(_core.schema_json())
    return schema
