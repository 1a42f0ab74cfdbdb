"""Samples sorted by entity, and their bins."""

from __future__ import annotations

import numpy as np
import polars as pl

from mptcplab.report.columns import Points
from mptcplab.report.embedded import _compact
from mptcplab.report.extremes import extremes
from mptcplab.trace.samples import KEYS, Samples, _stretches

# Flow b of run 3 and flows b and a of run 7, of which a has no samples.
ENTITIES = pl.DataFrame(
    {"entity": [0, 1, 2], "owner": [0, 1, 2], "run": [3, 7, 7], "flow": ["b", "b", "a"]},
    schema_overrides={"entity": pl.UInt32, "owner": pl.UInt32},
)
ROWS = pl.DataFrame(
    {"entity": [0, 0, 0, 1, 1], "owner": [0, 0, 0, 1, 1], "t_ns": [0, 9, 20, 25, 31], "x": [5, None, 7, 8, 9]},
    schema_overrides={"entity": pl.UInt32, "owner": pl.UInt32},
)
SAMPLES = Samples("flow", ROWS, ENTITIES)


def test_a_bin_begins_with_its_first_sample_and_with_another_entity() -> None:
    starts, bins = SAMPLES.bins(pl.col("t_ns") // 10)
    # 25 is in the same bin as 20, but of another flow.
    assert starts.tolist() == [0, 2, 3, 4]
    assert bins.select("entity", "t_ns", "at").rows() == [(0, 0, 0), (0, 20, 2), (1, 25, 2), (1, 31, 3)]
    nothing = SAMPLES.with_rows(ROWS.clear())
    assert [len(part) for part in nothing.bins(pl.col("t_ns") // 10)] == [0, 0]


def test_parts_have_the_names_of_entities_that_have_rows() -> None:
    parts = [(run, names, ROWS["t_ns"][part].to_list()) for run, names, part in SAMPLES.parts(ROWS["entity"])]
    assert parts == [(3, ("b",), [0, 9, 20]), (7, ("b",), [25, 31])]
    assert list(SAMPLES.parts(ROWS["entity"].clear())) == []


def test_fewer_rows_keep_the_numbers_of_their_entities() -> None:
    assert SAMPLES.only(pl.Series([True] * 5)) is SAMPLES
    fewer = SAMPLES.only(ROWS["x"].is_not_null() & pl.Series([True, True, False, True, None]))
    assert fewer.rows["t_ns"].to_list() == [0, 25]
    spread = fewer.rows.select(fewer.spread(pl.Series("y", [4, 6, 11])), fewer.spread(pl.Series("z", [5, 5, 5])))
    assert spread.rows() == [(4, 5), (6, 5)]


def test_stretches_are_numbered_by_run_and_first_appearance() -> None:
    names = {"run": [3, 3, 3, 3, 7, 7, 7], "flow": list("bbabaab"), "subflow": list("qqpppqq")}
    rows = pl.DataFrame(names).with_columns(pl.col("flow", "subflow").cast(pl.Categorical))
    found = _stretches(rows, KEYS["subflow"])
    # Of flows, b comes first, and of subflows q.
    assert found.with_columns(pl.col("flow", "subflow").cast(pl.String)).rows() == [
        (3, "b", "q", 2, 0, 0),
        (3, "a", "p", 1, 1, 2),
        (3, "b", "p", 1, 0, 1),
        (7, "a", "p", 1, 3, 5),
        (7, "a", "q", 1, 3, 4),
        (7, "b", "q", 1, 2, 3),
    ]
    assert _stretches(rows.clear(), KEYS["subflow"]).is_empty()


def test_extremes_keep_the_order_in_which_they_occur() -> None:
    low, high, low_first = extremes(np.array([4, 2, 9, 9, 2, 6, 6, 1]), np.array([0, 2, 5, 7]))
    assert (low.tolist(), high.tolist()) == ([2, 2, 6, 1], [4, 9, 6, 1])
    # A bin of equal values has no order; either draws the same.
    assert low_first.tolist()[:2] == [False, False]
    assert extremes(np.array([1, 3, 1]), np.array([0]))[2].tolist() == [True]


def test_lines_share_their_times_and_keep_their_values_in_few_bytes() -> None:
    known: dict[tuple[int, int, int], np.ndarray] = {}
    kinds = {"u1": [0, 255, 3], "u2": [7, 256, 65_535], "u4": [1, 65_536, 2**32 - 1], "i8": [2, 2**32, 5]}
    lines = [_compact(Points(np.array([0, 10, 30]), np.array(values)), known) for values in kinds.values()]
    assert [line.values.dtype for line in lines] == [np.dtype(kind) for kind in kinds]
    assert [line.values.tolist() for line in lines] == list(kinds.values())
    assert all(line.times_us is lines[0].times_us for line in lines)
    below, other = (Points(np.array([0, at, 30]), np.array([-1, 0, 1])) for at in (10, 20))
    assert _compact(below, known).values.tolist() == [-1, 0, 1]
    assert _compact(other, known).times_us.tolist() == [0, 20, 30]
