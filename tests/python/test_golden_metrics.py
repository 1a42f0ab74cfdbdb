"""Every metric of some short runs, to ten digits: a change of a formula changes a number here, with its name.

`MPTCPLAB_GOLDEN_METRICS=write` writes the numbers anew, after a change that is meant and after one of the simulator.
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

import mptcplab
from mptcplab.metrics import REGISTRY, differences
from mptcplab.results import Results

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "metrics"
REQUESTS = '{ requests = { response = { law = "pareto", mean = "25 kB" }, think = "exponential(60 ms)" } }'
MESSAGES = '{ messages = { size = "180 bytes", interval = "21 ms", bound = "45 ms" } }'
TWO = "tests/golden/two-paths.toml"
SHORT = {"duration": "4 s", "reps": 2}
# By name: the scenario, and what is changed.
CASES: dict[str, tuple[str, dict[str, object]]] = {
    "two-paths": (TWO, {**SHORT, "cc": "olia"}),
    "requests": (TWO, {**SHORT, "settings": {"flows.mp.traffic": REQUESTS}}),
    "messages": (TWO, {**SHORT, "settings": {"flows.mp.traffic": MESSAGES}}),
    "handover": ("tests/golden/handover.toml", {"reps": 1}),
    "transfers": ("scenarios/web-and-bulk.toml", {"reps": 1, "cc": "lia", "duration": "25 s"}),
    "video": ("scenarios/video-beside-download.toml", {"reps": 1, "cc": "lia", "duration": "40 s"}),
    "shared": ("scenarios/shared-bottleneck-fairness.toml", {"reps": 1, "cc": "balia", "duration": "45 s"}),
    "separate": ("scenarios/separate-bottlenecks-fairness.toml", {"reps": 1, "cc": "lia", "duration": "15 s"}),
    "sctp": ("scenarios/cmt-sctp-against-mptcp.toml", {"reps": 1, "duration": "30 s", "cc": "lia"}),
}


def text(frame: pl.DataFrame, digits: int = 10) -> str:
    """A table as CSV."""
    numbers = [name for name, kind in frame.schema.items() if kind.is_float()]
    rounded = frame.with_columns(
        pl.col(name).map_elements(lambda value: f"{value:.{digits}g}", return_dtype=pl.String) for name in numbers
    )
    return rounded.write_csv()


def compare(name: str, found: str) -> None:
    path = GOLDEN / f"{name}.csv"
    if os.environ.get("MPTCPLAB_GOLDEN_METRICS") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, encoding="utf-8")
    wanted = path.read_text(encoding="utf-8")
    if found != wanted:
        pairs = zip(found.splitlines(), wanted.splitlines(), strict=False)
        changed = [f"  {old}\n→ {new}" for new, old in pairs if new != old]
        pytest.fail(f"{len(changed)} lines of {path.relative_to(ROOT)} differ:\n" + "\n".join(changed[:20]))


def run(scenario: str, **changes: object) -> Results:
    return mptcplab.run(ROOT / scenario, jobs=1, progress=False, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_every_metric_has_its_golden_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured at once and, if that is the right value, with every flow and link by itself."""
    scenario, changes = CASES[name]
    results = run(scenario, **changes)
    columns = ("metric", "run", "flow", "subflow", "link", "value")
    values = results.metrics().select(columns)
    compare(name, text(values.select("run", "metric", *columns[2:]).drop_nulls("value")))
    monkeypatch.setattr("mptcplab.trace.samples.BATCH_ROWS", 1)
    in_parts = Results.open(results.directory).metrics().select(columns)
    assert in_parts.sort(columns).equals(values.sort(columns))


@pytest.mark.parametrize(("name", "sim_reps"), [("pairs", None), ("means", 4)])
def test_differences_of_engines_have_their_golden_values(name: str, sim_reps: int | None) -> None:
    results = run(TWO, cc="lia", engine="sim,fluid", duration="8 s", reps=2, sim_reps=sim_reps)
    # Solvers of equations may differ between machines.
    names = ("goodput", "jain", "loss", "throughput")
    compare(f"differences-{name}", text(differences.differences(results, results.metrics(), names), digits=6))


def test_every_metric_is_shown_as_before() -> None:
    rows = [(one.name, one.title, one.unit, " ".join(one.levels), one.digits) for one in REGISTRY.values()]
    schema = ["name", "title", "unit", "levels", "digits"]
    compare("registry", text(pl.DataFrame(sorted(rows), schema=schema, orient="row")))
