"""What comes with the package: scenarios, papers and the sources of the algorithms.

In a clone they are the folders of the repository. An installed package has copies of them in `_share`.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any

from mptcplab.errors import with_hint

_PACKAGE = Path(__file__).resolve().parent
_SHARE = _PACKAGE / "_share"


def root() -> Path:
    """The folder that has `scenarios/`, `papers/` and `algorithms/`."""
    return _SHARE if _SHARE.is_dir() else _PACKAGE.parents[1]


def scenarios() -> list[dict[str, Any]]:
    """Every scenario: `name` (for those of papers, paper/scenario), `title`, and `path` of the file."""
    found = []
    for name, path in sorted(_files().items()):
        title = tomllib.loads(path.read_text(encoding="utf-8")).get("title", "")
        found.append({"name": name, "title": title, "path": str(path)})
    return found


def scenario(given: str) -> Path | None:
    """The file of the scenario with this name, or with this path in the repository.

    >>> scenario("dolia-scenario-1") == scenario("scenarios/dolia-scenario-1.toml")
    True
    >>> scenario("kim2021/shared-60") == scenario("papers/kim2021/shared-60.toml")
    True
    """
    name = given.removesuffix(".toml")
    for prefix in ("scenarios/", "papers/"):
        name = name.removeprefix(prefix)
    return _files().get(name)


def place(name: str, toml: str) -> str | None:
    """The path in the repository of the scenario whose file has this name and this text; None if there is none.

    >>> path = scenario("kim2021/shared-60")
    >>> place("shared-60", path.read_text(encoding="utf-8")), place("shared-60", "a file of the user's own")
    ('papers/kim2021/shared-60.toml', None)
    """
    for path in _files().values():
        if path.stem == name and path.read_text(encoding="utf-8") == toml:
            return path.relative_to(root()).as_posix()
    return None


def unknown(name: str) -> str:
    """The message about a name that no scenario has."""
    close = difflib.get_close_matches(name, _files(), n=1)
    hint = f"did you mean {close[0]!r}? `mptcplab scenarios` lists them" if close else "`mptcplab scenarios` lists them"
    return with_hint(f"no such scenario: {name!r}", f"{hint}; a file of yours is given by its path")


def _files() -> dict[str, Path]:
    """Files of scenarios by their names; other TOML files of a paper describe the paper."""
    scenarios, papers = root() / "scenarios", root() / "papers"
    places = [(scenarios, scenarios.glob("**/*.toml")), (papers, papers.glob("*/*.toml"))]
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for folder, paths in places
        for path in paths
        if path.name not in ("paper.toml", "claims.toml", "changes.toml")
    }
