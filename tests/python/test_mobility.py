"""The generator of walks: the assumed coverage, its fading, and files that scenarios read."""

from __future__ import annotations

import decimal
import hashlib
import statistics
from decimal import Decimal
from itertools import islice
from pathlib import Path

import pytest

import mptcplab
from mptcplab import mobility
from mptcplab.errors import OutputError
from mptcplab.mobility import CELLULAR, WIFI, Walk

COMMITTED = Path(__file__).parents[2] / "scenarios/traces/walk"


def rows(text: str) -> list[tuple[int, int, int]]:
    """Time in ms, rate in bit/s and loss in packets per million of every change, empty fields filled in."""
    found: list[tuple[int, int, int]] = []
    for line in text.splitlines()[2:]:
        at_ms, rate, loss = line.split(",")
        before = found[-1] if found else (0, 0, 0)
        found.append((int(at_ms), int(rate or before[1]), int(loss or before[2])))
    return found


@pytest.mark.parametrize(
    ("radio", "at_s", "factor", "loss_ppm"),
    [
        (WIFI, "0", "1", 500),
        (WIFI, "21", "0.675", 5250),
        (WIFI, "28", "0.25", 30_000),
        (WIFI, "29.9", "0.155", 30_000),
        (WIFI, "30", "0", 0),
        (WIFI, "35.9", "0", 0),
        (WIFI, "36", "0.3", 10_000),
        (WIFI, "40", "0.65", 5250),
        (WIFI, "59.9", "1", 500),
        (WIFI, "81", "0.675", 5250),
        (CELLULAR, "19.9", "0.95", 500),
        (CELLULAR, "20", "0.8", 500),
        (CELLULAR, "40.5", "0", 0),
        (CELLULAR, "41", "0.9", 500),
    ],
)
def test_coverage_is_that_of_the_table(radio: mobility.Radio, at_s: str, factor: str, loss_ppm: int) -> None:
    assert mobility.coverage(radio, int(1000 * Decimal(at_s))) == (Decimal(factor), loss_ppm)


def test_the_means_are_those_of_the_ideal_allocation() -> None:
    """0.749 of the Wi-Fi and 0.868 of the cellular rate, before fading."""
    for radio, mean in ((WIFI, 0.749), (CELLULAR, 0.868)):
        factors = [float(mobility.coverage(radio, ms)[0]) for ms in range(0, 60_000, mobility.STEP_MS)]
        assert statistics.fmean(factors) == pytest.approx(mean, abs=0.002)


@pytest.mark.parametrize("radio", [WIFI, CELLULAR])
def test_fading_has_its_deviation_and_correlation(radio: mobility.Radio) -> None:
    with decimal.localcontext(decimal.Context(prec=28)):
        logs = [float(factor.ln()) for factor in islice(mobility.fading(radio, "test/0"), 6000)]
    deviation = float(radio.deviation)
    # 6000 steps that are correlated over 10 are worth about 300: 3 standard errors of each.
    assert statistics.fmean(logs) == pytest.approx(-(deviation**2) / 2, abs=3 * deviation / 300**0.5)
    assert statistics.pstdev(logs) == pytest.approx(deviation, rel=0.13)
    assert statistics.correlation(logs[:-1], logs[1:]) == pytest.approx(0.9, abs=0.02)


def test_files_are_the_same_everywhere_whatever_the_caller_does_with_decimals() -> None:
    text = mobility.changes(WIFI, Walk(seed=1), 0)
    assert text == (COMMITTED / "wifi-0.csv").read_text()
    assert mobility.changes(CELLULAR, Walk(seed=1), 4) == (COMMITTED / "cellular-4.csv").read_text()
    with decimal.localcontext(decimal.Context(prec=6, rounding=decimal.ROUND_UP)):
        assert mobility.changes(WIFI, Walk(seed=1), 0) == text
    texts = {
        mobility.changes(radio, Walk(seed=seed), rep) for radio in (WIFI, CELLULAR) for seed in (1, 2) for rep in (0, 1)
    }
    assert len({hashlib.sha256(text.encode()).digest() for text in texts}) == 8


def test_fading_never_exceeds_its_cap_and_gives_no_rate_without_coverage() -> None:
    options = Walk(seed=3, duration_s=Decimal(120), wifi_mbps=Decimal(20), cellular_mbps=Decimal(3))
    for radio, full in ((WIFI, 20_000_000), (CELLULAR, 3_600_000)):
        found = rows(mobility.changes(radio, options, 0))
        assert max(rate for _, rate, _ in found) == full
        assert all(at_ms % mobility.STEP_MS == 0 and rate % 1000 == 0 for at_ms, rate, _ in found)
        gaps = [at_ms for at_ms, rate, _ in found if rate == 0]
        assert gaps == ([30_000, 90_000] if radio is WIFI else [40_000, 100_000])


def test_a_repetition_begins_later_in_the_walk_by_the_step() -> None:
    options = Walk(phase_s=Decimal(2), phase_step_s=Decimal(4), repetitions=15, duration_s=Decimal(15))
    for rep in (0, 4, 6):
        gone = [at_ms for at_ms, rate, _ in rows(mobility.changes(WIFI, options, rep)) if rate == 0]
        start_ms = 2000 + 4000 * rep
        assert gone == ([30_000 - start_ms] if 15_000 < start_ms < 30_000 else [])
        assert f"from {start_ms} ms" in mobility.changes(WIFI, options, rep).splitlines()[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [("repetitions", 0), ("duration_s", Decimal(0)), ("phase_s", Decimal("0.05")), ("wifi_mbps", Decimal(0))],
)
def test_invalid_options_of_a_walk_are_named(field: str, value: object) -> None:
    with pytest.raises(mptcplab.MptcplabError, match=rf"walk: {field}: .* (out of range|no multiple)"):
        Walk(**{field: value})
    with pytest.raises(mptcplab.MptcplabError, match="walk: phase_s: 'soon' is not a number"):
        mobility.number("phase_s", "soon")


def test_a_scenario_reads_what_was_written(tmp_path: Path) -> None:
    written = mobility.write(tmp_path / "walk", Walk(repetitions=2, duration_s=Decimal(40)))
    assert [path.name for path in written] == ["wifi-0.csv", "cellular-0.csv", "wifi-1.csv", "cellular-1.csv"]
    scenario = tmp_path / "s.toml"
    scenario.write_text("""
duration = "40 s"
repetitions = 2
cc = "lia"
[links.wifi]
from = "S"
to = "D"
rate = "11 Mbit/s"
delay = "45 ms"
queue = "100 packets"
schedule_file = "walk/wifi-{rep}.csv"
[links.cellular]
from = "S"
to = "D"
rate = "5.5 Mbit/s"
delay = "75 ms"
queue = "460 packets"
schedule_file = "walk/cellular-{rep}.csv"
[flows.f]
paths = [["wifi"], ["cellular"]]
""")
    results = mptcplab.run(scenario, out=tmp_path / "out")
    flow = results.scan("flow").collect()
    at = {
        (run, t_ns // 10**9): delivered
        for run, t_ns, delivered in flow.select("run", "t_ns", "delivered_bytes").iter_rows()
        if t_ns % 10**9 == 0
    }
    for run in (0, 1):
        # Six seconds without Wi-Fi: what arrives is at most what the cellular network carries at its best.
        assert 0 < at[run, 36] - at[run, 31] < 5 * 1.2 * 5.5e6 / 8
        assert at[run, 16] > at[run, 36] - at[run, 20]
    assert at[0, 40] != at[1, 40]


def test_setup_makes_the_walk_that_the_papers_scenarios_name(tmp_path: Path) -> None:
    """Its bytes are those that the published results were simulated with."""
    root = COMMITTED.parents[2]
    wanted = "--reps 15 --seed 1 --duration-s 36 --phase-s 40 --phase-step-s 4"
    for name in ("moving", "moving-video"):
        comment = (root / f"papers/zuhairi2022/{name}.toml").read_text().partition("\nname")[0]
        assert f"papers/zuhairi2022/walk {wanted}" in " ".join(comment.replace("#", "").split())
    assert f'"{wanted}"' in (root / "scripts/setup.sh").read_text()
    walk = Walk(seed=1, repetitions=15, duration_s=Decimal(36), phase_s=Decimal(40), phase_step_s=Decimal(4))
    written = sorted(mobility.write(tmp_path, walk), key=lambda path: path.name)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in written)).hexdigest()
    assert digest == "fd5663b72dbc9c4ccb60194ba8718b1bb329b990279a3ba3b4ad8a5f9dbde0da"


def test_a_walk_replaces_files_of_walks_and_no_others(tmp_path: Path) -> None:
    """A recording of one's own that was called wifi-0.csv was lost."""
    mptcplab.walk(tmp_path, duration_s=5, seed=1)
    first = (tmp_path / "wifi-0.csv").read_bytes()
    mptcplab.walk(tmp_path, duration_s=5, seed=2)
    assert (tmp_path / "wifi-0.csv").read_bytes() != first
    (tmp_path / "cellular-0.csv").write_text("at_ms,rate_bps\n0,7000000\n")
    second = (tmp_path / "wifi-0.csv").read_bytes()
    with pytest.raises(OutputError, match=r"a file that no walk has written: .*cellular-0.csv"):
        mptcplab.walk(tmp_path, duration_s=5, seed=3)
    assert (tmp_path / "wifi-0.csv").read_bytes() == second
