"""The design goals of RFC 6356, held against one algorithm on a grid of networks (`mptcplab.api.goals`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mptcplab import output
from mptcplab.studies.goals import page
from mptcplab.studies.goals.grid import FULL, QUICK, Grid
from mptcplab.studies.goals.scenarios import Setting
from mptcplab.studies.goals.study import Study, resolve, simulate

if TYPE_CHECKING:
    from mptcplab.sweep import PathArg, Progress

__all__ = ["FULL", "QUICK", "Grid", "Study", "write_study"]


def write_study(
    cc: str,
    out: PathArg | None,
    *,
    quick: bool,
    grid: Grid | None,
    seed: int | None,
    profile: str | None,
    jobs: int,
    force: bool,
    progress: Progress | None,
) -> Study:
    """Measure, judge and write everything down; see `mptcplab.api.goals`."""
    chosen = grid or (QUICK if quick else FULL)
    setting = resolve(chosen, Setting(cc, seed, profile))
    command = None if grid is not None else page.command(setting, quick=quick)
    studies: list[Study] = []

    def write(directory: Path) -> None:
        studies.append(simulate(directory, chosen, setting, jobs=jobs, progress=progress))
        page.write(studies[0], command)

    directory = output.fresh_directory(Path(f"goals-{_slug(cc)}.toml")) if out is None else Path(out)
    # Around the simulation, too: what cannot be written is refused before minutes of it, not after.
    output.write_into(directory, write, force=force, is_former=page.is_former)
    return studies[0]


def _slug(cc: str) -> str:
    """An algorithm with its parameters as part of a file name.

    >>> _slug("ewtcp(weight=0.5)")
    'ewtcp-weight-0-5'
    """
    return re.sub(r"\W+", "-", cc).strip("-")
