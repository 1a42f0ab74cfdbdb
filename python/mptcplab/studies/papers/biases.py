"""Known differences between the simulator and the kernel, by algorithm and by scenario of the papers.

They come from the comparison of the engines below docs/agreement: `agreement.json` has every flow of every scenario,
`algorithms.toml` what was measured apart from it.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mptcplab.capabilities import engine_of
from mptcplab.metrics.certainty import ONE_TRAJECTORY, is_one_trajectory
from mptcplab.studies.papers import stored
from mptcplab.studies.papers.treatments import MULTIPATH

DIRECTORY = Path("docs") / "agreement"


@dataclass(frozen=True)
class Bias:
    """The kernel's goodput over the simulator's, minus 1, in percent: of an algorithm in one scenario.

    `half` is half of its 95 % interval; None where it was measured without one. `one_trajectory`: the repetitions of an
    engine all but coincide, so that the difference is one of a single draw.
    """

    algorithm: str
    scenario: str
    percent: float
    half: float | None
    why: str = ""
    one_trajectory: bool = False

    @property
    def clear(self) -> bool:
        """Whether it is larger than the spread of the runs, or was measured without one; never of one trajectory."""
        return not self.one_trajectory and (self.half is None or abs(self.percent) > self.half)

    def __str__(self) -> str:
        """The difference in words.

        >>> str(Bias("lia", "papers/kushwah2024/disjoint.toml", -27.6, 3.6))
        'lia gets 28 % (± 4) less in the kernel on papers/kushwah2024/disjoint.toml'
        """
        more = "more" if self.percent > 0 else "less"
        why = f": {self.why}" if self.why else ""
        size = f"{abs(self.percent):.0f} %{self._spread}"
        return f"{self.algorithm} gets {size} {more} in the kernel on {self.scenario}{why}"

    @property
    def _spread(self) -> str:
        if self.one_trajectory:
            return f" ({ONE_TRAJECTORY})"
        if self.half is None:
            return ""
        # An interval that is not empty does not look like one.
        return f" (± {self.half:.0f})" if self.half > 0.5 else f" (± {self.half:.1g})"


def load(repository: Path) -> tuple[Bias, ...]:
    """All known differences; none where the engines were not compared."""
    found: list[Bias] = []
    for name, read in (("algorithms.toml", _apart), ("agreement.json", _compared)):
        path = repository / DIRECTORY / name
        if path.is_file():
            found += stored.read(path, read)
    return tuple(found)


def _apart(text: str) -> list[Bias]:
    return [_of_entry(one) for one in tomllib.loads(text)["difference"]]


def _of_entry(one: dict[str, Any]) -> Bias:
    half = float(one["half"]) if "half" in one else None
    return Bias(one["algorithm"], one["scenario"], float(one["kernel"]), half, one.get("why", ""))


def _compared(text: str) -> list[Bias]:
    compared = json.loads(text)
    if [engine_of(name).has_sockets for name in compared["engines"]] != [False, True]:
        return []
    rows = ((entry["name"], row) for entry in compared["entries"] for row in entry["evidence"])
    return [_of_row(scenario, row) for scenario, row in rows if _counts(row)]


def _counts(row: dict[str, Any]) -> bool:
    # One repetition has no spread: its difference shows nothing.
    measured = row["difference"] is not None and row["half"] is not None
    return row["metric"] == "goodput" and row["flow"] == MULTIPATH and measured


def _of_row(scenario: str, row: dict[str, Any]) -> Bias:
    # The algorithms of a scenario in the order of its flows, the multipath connection's first.
    algorithm = row["base"].partition("+")[0]
    # Rows of earlier versions have no spreads.
    spreads = (row.get("spread_reference"), row.get("spread"))
    one = any(spread is not None for spread in spreads) and is_one_trajectory(row["reference"], row["mean"], *spreads)
    return Bias(algorithm, scenario, float(row["difference"]), float(row["half"]), one_trajectory=one)
