"""The build of this process, and how another one differs: only workers of the same build give the same bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache

from mptcplab import _core, bundle
from mptcplab.capabilities import FLUID
from mptcplab.engines.digests import engine_digest, python_digest

# Packages of this one that decide numbers or write results.
_DECIDING = ("metrics", "trace", "study", "cluster", "kept.py", "sweep.py", "making.py")
# What is said of a digest.
_SHORT = 12


@cache
def own() -> dict[str, str]:
    """All that the bytes of a result depend on besides scenario and settings, by what it is."""
    import polars

    from mptcplab.engines.fluid.engine import libraries

    info = _core.build_info()
    return {
        "version": info["version"],
        "revision": info["revision"],
        "profile": info["profile"],
        "compiler": info["rustc"],
        "target": info["target"],
        "simulator": info["engine"],
        "algorithms": _algorithms(),
        "fluid": engine_digest(FLUID.name),
        "libraries": libraries(),
        "Python modules": python_digest(*_DECIDING),
        "polars": polars.__version__,
    }


def described() -> str:
    """The own build as JSON, which another process can ask for by this name."""
    return json.dumps(own())


def difference(there: Mapping[str, str]) -> str | None:
    """How another build differs from this one, with both; None if it does not.

    >>> difference(own())
    >>> difference({**own(), "polars": "0.1"}).startswith("polars 0.1 there")
    True
    """
    here = own()
    names = [name for name in here if there.get(name) != here[name]]
    if not names:
        return None
    return f"{_text(there, names)} there, {_text(here, names)} here"


def _text(build: Mapping[str, str], names: list[str]) -> str:
    return ", ".join(f"{name} {_shortened(build.get(name, 'unknown'))}" for name in names)


def _shortened(value: str) -> str:
    """Digests by their beginning."""
    return " ".join(word[:_SHORT] if len(word) == 64 else word for word in value.split(" "))


def _algorithms() -> str:
    """The digest of the algorithms of the build; those that were compiled since have their text in a task."""
    names = {path.stem for path in (bundle.root() / "algorithms").glob("*.c")}
    sources = {one["name"]: one["source"] for one in json.loads(_core.algorithms_json()) if one["name"] in names}
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()
