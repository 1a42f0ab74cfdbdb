"""Whether a difference from a kernel is put down to the phase of packets: on a link where phases lock a flow out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from mptcplab.scenario import Overrides
from mptcplab.studies.agreement import phases
from mptcplab.studies.agreement.judge import Agreement
from mptcplab.sweep import Sweep

# Two connections with packets of 1514 bytes (0.9 ms at 13.5 Mbit/s) on the wire and nearly the same RTT, and a third
# that is alone on one of several links of a kind.
SCENARIO = """
name = "phases"
duration = "24 s"
warmup = "4 s"
cc = "reno"
profile = "rfc"

[links.a]
from = "x"
to = "m"
rate = "100 Mbit/s"
delay = "1 ms"

[links.b]
from = "y"
to = "m"
rate = "100 Mbit/s"
delay = "1.3 ms"

[links.neck]
from = "m"
to = "n"
rate = "13.5 Mbit/s"
delay = "9 ms"
queue = "14 packets"

[links.many]
count = 2
from = "v"
to = "w"
rate = "5 Mbit/s"
delay = "7 ms"
queue = "5 packets"

[flows.one]
path = ["a", "neck"]

[flows.two]
path = ["b", "neck"]
start = "0.4 s"

[flows.three]
path = ["many-2"]
"""


@pytest.fixture
def runs(tmp_path: Path) -> Sweep:
    """Regular packets: the simulator adds no noise."""
    file = tmp_path / "phases.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    return Sweep(str(file), Overrides(reps=2, settings={"tcp.send_jitter": '"0 s"'}), ("sim",))


def outside(runs: Sweep, engine: str = "kernel", verdict: str = "fails") -> tuple[Agreement, dict[str, float]]:
    """The simulator's goodputs, and a kernel that has a third of each."""
    results = runs.run()
    values = results.metrics(["goodput"]).filter(pl.col("subflow").is_null() & pl.col("link").is_null())
    means = dict(values.group_by("flow").agg(pl.col("value").mean()).iter_rows())
    base = results.configs["base"][0]
    rows = pl.DataFrame(
        [
            {
                "base": base,
                "engine": engine,
                "metric": "goodput",
                "flow": flow,
                "reference": mean,
                "mean": mean / 3,
                "difference": -67.0,
                "verdict": verdict,
            }
            for flow, mean in sorted(means.items())
        ]
    )
    return Agreement(results, rows, (), ()), means


def test_random_delays_are_as_long_as_a_packet_takes_and_only_behind_full_links(runs: Sweep) -> None:
    results = runs.run()
    found = phases.random_delays(results, runs)
    # 1500 + 14 bytes; `neck` and one of `many` drop packets, the links before `neck` do not.
    assert found == {"neck": 897_185, "many": 2_422_400}


def test_a_link_that_reorders_by_itself_keeps_its_delays(runs: Sweep, tmp_path: Path) -> None:
    file = tmp_path / "phases.toml"
    reorder = 'queue = "14 packets"\nreorder = { probability = "1 %", delay = "2 ms" }'
    file.write_text(SCENARIO.replace('queue = "14 packets"', reorder), encoding="utf-8")
    assert list(phases.random_delays(runs.run(), runs)) == ["many"]


def test_a_link_that_an_option_makes_reorder_keeps_its_delays(runs: Sweep) -> None:
    reorder = {"links.many.reorder": '{ probability = "1 %", delay = "2 ms" }'}
    reordering = replace(runs, overrides=replace(runs.overrides, settings=runs.overrides.settings | reorder))
    assert list(phases.random_delays(reordering.run(), reordering)) == ["neck"]


def test_goodputs_that_move_with_random_phases_are_named_with_both_values(runs: Sweep) -> None:
    agreement, before = outside(runs)
    found = {cause.who: cause for cause in phases.find_causes(runs, agreement)}
    # Phases decide between the two at `neck`; the third is alone.
    assert set(found) == {"one", "two"}
    for who, cause in found.items():
        assert (cause.engine, cause.cause) == ("kernel", phases.PHASES)
        assert f"instead of {before[who]:.3g} Mbit/s" in cause.text
        assert "(neck 897.2 µs, many 2.422 ms)" in cause.text
        assert cause.text.endswith(f"kernel gave it {before[who] / 3:.3g} without")


@pytest.mark.parametrize(("engine", "verdict"), [("fluid", "fails"), ("kernel", "holds")])
def test_only_what_is_outside_on_a_kernel_is_looked_into(runs: Sweep, engine: str, verdict: str) -> None:
    agreement, _ = outside(runs, engine, verdict)
    assert list(phases.find_causes(runs, agreement)) == []
