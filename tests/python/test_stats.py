"""Statistics over repetitions."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mptcplab.metrics.fairness import jain_index
from mptcplab.metrics.stats import summarise


def metrics(values: dict[int, float | None], name: str = "goodput") -> pl.DataFrame:
    return pl.DataFrame(
        [(run, name, "mp", None, None, value) for run, value in values.items()],
        schema={
            "run": pl.UInt32,
            "metric": pl.String,
            "flow": pl.String,
            "subflow": pl.String,
            "link": pl.String,
            "value": pl.Float64,
        },
        orient="row",
    )


def configs(labels: dict[int, str]) -> pl.DataFrame:
    return pl.DataFrame({"run": list(labels), "config": list(labels.values())}, schema_overrides={"run": pl.UInt32})


def test_the_interval_is_that_of_students_t() -> None:
    # Mean 10, s = 2, n = 4: t(0.975, 3) = 3.18245, half = 3.18245 x 2 / 2.
    frame = summarise(metrics({0: 8, 1: 9, 2: 10, 3: 13}), configs(dict.fromkeys(range(4), "lia")))
    row = frame.row(0, named=True)
    std = (14 / 3) ** 0.5
    assert row["n"] == 4
    assert row["mean"] == pytest.approx(10)
    assert row["std"] == pytest.approx(std)
    assert row["half"] == pytest.approx(3.182446 * std / 2, rel=1e-6)
    assert (row["lo"], row["hi"]) == pytest.approx((10 - row["half"], 10 + row["half"]))


def test_one_repetition_has_no_interval() -> None:
    row = summarise(metrics({0: 8}), configs({0: "lia"})).row(0, named=True)
    assert row["mean"] == 8
    assert row["half"] is None
    assert row["lo"] is None
    assert row["hi"] is None


def test_unknown_values_do_not_count_as_repetitions() -> None:
    row = summarise(metrics({0: 8, 1: None}), configs({0: "lia", 1: "lia"})).row(0, named=True)
    assert row["n"] == 1
    assert row["half"] is None


def test_configurations_stay_apart_and_in_run_order() -> None:
    frame = summarise(metrics({0: 5, 1: 7, 2: 1, 3: 3}), configs({0: "olia", 1: "olia", 2: "lia", 3: "lia"}))
    assert frame["config"].to_list() == ["olia", "lia"]
    assert frame["mean"].to_list() == [6, 2]


@given(values=st.lists(st.floats(0.001, 1e6), min_size=1, max_size=30), scale=st.floats(0.001, 1000))
def test_jain_is_between_one_nth_and_one_and_scale_free(values: list[float], scale: float) -> None:
    frame = pl.DataFrame({"x": values})
    jain = frame.select(jain_index(pl.col("x"))).item()
    assert 1 / len(values) - 1e-9 <= jain <= 1 + 1e-9
    assert frame.select(jain_index(pl.col("x") * scale)).item() == pytest.approx(jain, rel=1e-6)


def test_jain_is_one_for_equal_rates_and_one_nth_for_a_single_sender() -> None:
    assert pl.DataFrame({"x": [3.0, 3.0, 3.0]}).select(jain_index(pl.col("x"))).item() == pytest.approx(1)
    assert pl.DataFrame({"x": [5.0, 0.0, 0.0, 0.0]}).select(jain_index(pl.col("x"))).item() == pytest.approx(0.25)
