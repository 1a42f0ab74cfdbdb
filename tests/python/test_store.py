"""The store of studies: what was changed behind its back is noticed, named and computed again."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

import polars as pl
import pytest

from mptcplab.errors import DamagedResultWarning, OutputError
from mptcplab.study.store import Store

RECORD = {"engine": "sim", "seeds": [3, 5]}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one result of two tables."""
    made = Store(tmp_path / "store")
    made.prepare()
    made.put("one", RECORD, values=pl.DataFrame({"a": [1.5, 2.5]}), course=pl.DataFrame({"t": [1, 2, 3]}))
    return made


def test_a_result_is_what_was_put(store: Store) -> None:
    with warnings.catch_warnings(action="error"):
        assert store.has("one", "values", "course")
        assert not store.has("one", "other")
        assert not store.has("two")
    assert store.record("one") == RECORD
    assert store.table("one", "values")["a"].to_list() == [1.5, 2.5]


@pytest.mark.parametrize("name", ["one.json", "one.values.parquet", "one.course.parquet"])
@pytest.mark.parametrize("damage", ["empty", "truncated", "missing"])
def test_damage_is_named_and_a_new_result_heals_it(store: Store, name: str, damage: str) -> None:
    path = store.directory / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "empty" else content[: len(content) // 2])
    if (name, damage) == ("one.json", "missing"):
        # Without its record there is no result, as after a kill between table and record.
        assert not store.has("one", "values")
    else:
        with pytest.warns(DamagedResultWarning, match=f"damaged and is computed again: .*{name}"):
            assert not store.has("one", "values")
    store.put("one", RECORD, values=pl.DataFrame({"a": [1.5, 2.5]}), course=pl.DataFrame({"t": [1, 2, 3]}))
    with warnings.catch_warnings(action="error"):
        assert store.has("one", "values", "course")
    assert path.read_bytes() == content


def test_no_flipped_bit_goes_unnoticed(store: Store) -> None:
    """300 bits of all files, each flipped alone; JSON's white space carries nothing and may change."""
    chance = random.Random(4)
    paths = sorted(store.directory.iterdir())
    for _ in range(300):
        path = chance.choice(paths)
        content = path.read_bytes()
        position, bit = chance.randrange(len(content)), 1 << chance.randrange(8)
        path.write_bytes(content[:position] + bytes([content[position] ^ bit]) + content[position + 1 :])
        if path.suffix == ".json" and _means(path.read_bytes()) == _means(content):
            assert store.has("one", "values", "course")
        else:
            with pytest.warns(DamagedResultWarning, match=path.name):
                assert not store.has("one", "values", "course")
        path.write_bytes(content)


def _means(content: bytes) -> object:
    try:
        return json.loads(content)
    except ValueError:
        return None


def test_a_result_that_is_altered_while_it_is_used_is_an_error(store: Store) -> None:
    path = store.directory / "one.values.parquet"
    pl.DataFrame({"a": [9.5, 2.5]}).write_parquet(path)
    with pytest.raises(OutputError, match=r"damaged: .*one\.values\.parquet: .*SHA-256.*\n\nhint: the same command"):
        store.table("one", "values")
