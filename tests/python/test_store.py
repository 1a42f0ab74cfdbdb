"""The store of studies: what was changed behind its back is noticed, named and computed again."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mptcplab import output
from mptcplab.errors import DamagedResultWarning, OutputError
from mptcplab.study import store as module
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


def test_the_order_of_names_in_a_record_carries_nothing(store: Store) -> None:
    path = store.directory / "one.json"
    content = json.loads(path.read_text())
    path.write_text(
        json.dumps(dict(sorted(content.items(), reverse=True)) | {"record": {"seeds": [3, 5], "engine": "sim"}})
    )
    with warnings.catch_warnings(action="error"):
        assert store.has("one", "values", "course")
    assert store.record("one") == RECORD


def test_a_result_that_is_altered_while_it_is_used_is_an_error(store: Store) -> None:
    path = store.directory / "one.values.parquet"
    pl.DataFrame({"a": [9.5, 2.5]}).write_parquet(path)
    with pytest.raises(OutputError, match=r"damaged: .*one\.values\.parquet: .*SHA-256.*\n\nhint: the same command"):
        store.table("one", "values")


VALUES, COURSE, RECORDED = "one.values.parquet", "one.course.parquet", "one.json"


def sealed(store: Store, **changes: object) -> None:
    """Change the record's file, with the checksum of what is written."""
    path = store.directory / RECORDED
    content = {**json.loads(path.read_text()), **changes}
    del content["sha256"]
    path.write_text(json.dumps({"sha256": module._checksum(content), **content}))


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        (RECORDED, lambda path: path.write_text("{"), "not JSON: Expecting property name"),
        (RECORDED, lambda path: path.write_text("[]"), "its content does not match its SHA-256"),
        (RECORDED, lambda path: path.write_text('{"record": {}}'), "its content does not match its SHA-256"),
        (RECORDED, lambda path: path.unlink(), "No such file or directory"),
        (VALUES, lambda path: path.unlink(), "No such file or directory"),
        (VALUES, lambda path: path.write_bytes(b""), "its content does not match the SHA-256 in one.json"),
    ],
)
def test_what_is_read_although_it_is_damaged_is_an_error_that_names_it(
    store: Store, name: str, damage: Callable[[Path], object], message: str
) -> None:
    path = store.directory / name
    damage(path)
    with pytest.raises(OutputError) as caught:
        store.table("one", "values")
    assert str(caught.value).startswith(f"a stored result is damaged: {path}: {message}")
    assert str(caught.value).endswith("\n\nhint: the same command computes it again")
    # Another table and the record do not depend on this one.
    if name == RECORDED:
        with pytest.raises(OutputError, match=r"a stored result is damaged: .*one\.json: "):
            store.record("one")
    else:
        assert store.record("one") == RECORD
        assert store.table("one", "course")["t"].to_list() == [1, 2, 3]


def test_a_table_that_the_record_does_not_know_is_none_of_the_result(store: Store) -> None:
    sealed(store, tables={"values": json.loads((store.directory / RECORDED).read_text())["tables"]["values"]})
    with warnings.catch_warnings(action="error"):
        assert store.has("one", "values")
        assert not store.has("one", "values", "course")
    with pytest.raises(OutputError, match=r"one\.course\.parquet: its content does not match the SHA-256 in one\.json"):
        store.table("one", "course")


def test_a_warning_of_damage_is_about_the_place_that_asks(store: Store) -> None:
    (store.directory / VALUES).unlink()
    with pytest.warns(DamagedResultWarning) as caught:
        assert not store.has("one")
    assert [one.filename for one in caught] == [__file__]


def test_a_result_need_not_have_tables_and_a_table_that_is_none_is_left_out(store: Store) -> None:
    store.put("two", {"b": 1})
    store.put("three", {"c": 2}, values=None, course=pl.DataFrame({"t": [4]}))
    assert store.digests() == ["one", "three", "two"]
    assert sorted(store.files()) == [COURSE, RECORDED, VALUES, "three.course.parquet", "three.json", "two.json"]
    assert store.has("two")
    assert store.has("three", "course")
    assert not store.has("three", "values")
    assert store.record("two") == {"b": 1}


def test_a_store_is_prepared_as_often_as_anybody_likes_and_what_is_in_it_stays(store: Store, tmp_path: Path) -> None:
    store.prepare()
    assert store.has("one", "values")
    deep = Store(tmp_path / "some" / "where")
    deep.prepare()
    assert deep.digests() == []
    (tmp_path / "file").write_text("")
    blocked = Store(tmp_path / "file" / "store")
    with pytest.raises(OutputError) as caught:
        blocked.prepare()
    assert str(caught.value) == (
        f"cannot store results in {blocked.directory}: Not a directory\n\nhint: choose another --out"
    )


def test_nothing_is_left_of_a_store_that_is_cleared(store: Store) -> None:
    assert store.unfinished == store.directory.with_name("store.unfinished")
    store.unfinished.mkdir()
    (store.unfinished / "trace").write_text("x")
    store.clear()
    assert not store.directory.exists()
    assert not store.unfinished.exists()
    # What is not there need not be removed.
    store.clear()


@pytest.mark.parametrize(("durable", "waits"), [(True, 3), (False, 0)])
def test_a_durable_store_waits_for_the_disk_with_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool, waits: int
) -> None:
    waited: list[Path] = []
    monkeypatch.setattr(output, "synchronize", waited.append)
    one, other = (Store(tmp_path / name, durable=durable) for name in ("one", "other"))
    for each in (one, other):
        each.prepare()
    one.put("a", RECORD, values=pl.DataFrame({"a": [1]}), course=pl.DataFrame({"b": [2]}))
    assert len(waited) == waits
    other.take_over(one.files())
    assert len(waited) == 2 * waits
    assert Store(tmp_path).durable


def refuse(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """No file of this name can be written; returns the names of those that are."""
    written: list[str] = []

    def write(path: Path, content: Any, *, durable: bool) -> None:
        if path.name == name:
            raise OSError(28, "No space left on device")
        written.append(path.name)
        real[path.suffix](path, content, durable=durable)

    real: dict[str, Callable[..., None]] = {".parquet": output.write_bytes, ".json": output.write_text}
    monkeypatch.setattr(module, "write_text", write)
    monkeypatch.setattr(module, "write_bytes", write)
    return written


@pytest.mark.parametrize("name", ["two.values.parquet", "two.course.parquet", "two.json"])
def test_a_new_result_without_room_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = store.files()
    refuse(monkeypatch, name)
    table = pl.DataFrame({"a": [1]})
    with pytest.raises(OutputError) as caught:
        store.put("two", RECORD, values=table, course=table)
    assert str(caught.value) == (
        f"cannot store a result in {store.directory}: No space left on device\n\n"
        "hint: what is stored stays: run the same command again when there is room, or choose another --out"
    )
    assert store.files() == before


def test_an_earlier_result_stays_if_there_is_no_room_for_the_same_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, RECORDED)
    with pytest.raises(OutputError, match="No space left"):
        store.put("one", RECORD, values=pl.DataFrame({"a": [1.5, 2.5]}), course=pl.DataFrame({"t": [1, 2, 3]}))
    assert store.has("one", "values", "course")


def test_the_record_is_written_last(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written = refuse(monkeypatch, "")
    store.put("a", RECORD, values=pl.DataFrame({"a": [1]}), course=pl.DataFrame({"b": [2]}))
    assert written == ["a.values.parquet", "a.course.parquet", "a.json"]
    files = store.files()
    monkeypatch.undo()

    names: list[str] = []
    other = Store(tmp_path / "other")
    other.prepare()
    monkeypatch.setattr(module, "write_bytes", lambda path, *_, **__: names.append(path.name))
    other.take_over({name: files[name] for name in sorted(files)})
    assert names == ["a.course.parquet", "a.values.parquet", COURSE, VALUES, "a.json", RECORDED]


def test_results_of_another_store_are_as_good_as_its_own(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = Store(tmp_path / "other")
    other.prepare()
    other.take_over(store.files())
    assert other.has("one", "values", "course")
    assert other.files() == store.files()
    refuse(monkeypatch, VALUES)
    with pytest.raises(OutputError) as caught:
        other.take_over(store.files())
    assert str(caught.value) == (
        f"cannot store a result in {other.directory}: No space left on device\n\n"
        "hint: what is stored stays: run the same command again when there is room, or choose another --out"
    )
