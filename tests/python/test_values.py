"""The values of cells as they are stored and read, and the pages' files."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mptcplab import bundle
from mptcplab.errors import MptcplabError, OutputError
from mptcplab.study.cell import Cell
from mptcplab.study.execute import Outcome
from mptcplab.study.measure import VALUE_COLUMNS, VALUES
from mptcplab.study.page import csv_text, find_directory, writing_page
from mptcplab.study.store import Store
from mptcplab.study.values import CellValues, DependencyRecorder, NotTestableError, StoreSource

CELL = Cell("X", "lia", "p", "rfc")


def table(*rows: tuple[int, str, str, str | None, str | None, str | None, float | None]) -> pl.DataFrame:
    """A stored table from rows: rep, span, metric, flow, subflow, link, value."""
    return pl.DataFrame(rows, schema=VALUE_COLUMNS, orient="row")


FIRST = table(
    (0, "", "goodput", "mp", None, None, 4.0),
    (1, "", "goodput", "mp", None, None, 5.0),
    (0, "", "goodput", "mp", "sf1", None, 1.0),
    (2, "", "goodput", "mp", "sf1", None, 3.0),
    (1, "bin 2", "goodput", "mp", None, None, 7.0),
    (2, "", "loss", None, None, "A", 0.5),
    (0, "", "rtt", "mp", None, None, None),
)
SECOND = table((0, "", "goodput", "mp", None, None, 8.0), (1, "", "loss", None, None, "A", 0.25))


def shown(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def test_values_are_told_apart_by_span_metric_flow_subflow_and_link() -> None:
    found = CellValues.of([FIRST])
    assert found.repetitions == 3
    assert shown(found.get("goodput", flow="mp")) == [4, 5, None]
    assert shown(found.get("goodput", flow="mp", subflow="sf1")) == [1, None, 3]
    assert shown(found.get("goodput", flow="mp", span="bin 2")) == [None, 7, None]
    assert shown(found.get("loss", link="A")) == [None, None, 0.5]
    for keys in ({}, {"flow": "tcp"}, {"flow": "mp", "link": "A"}):
        assert shown(found.get("goodput", **keys)) == [None] * 3
    assert shown(found.get("rtt", flow="mp")) == [None] * 3
    assert ("", "rtt", "mp", None, None) not in found.by_key


def test_blocks_follow_one_another_and_what_one_does_not_have_is_missing_there() -> None:
    both = CellValues.of([FIRST, SECOND])
    assert both.repetitions == 5
    assert shown(both.get("goodput", flow="mp")) == [4, 5, None, 8, None]
    assert shown(both.get("goodput", flow="mp", subflow="sf1")) == [1, None, 3, None, None]
    assert shown(both.get("loss", link="A")) == [None, None, 0.5, None, 0.25]
    assert shown(CellValues.of([SECOND, FIRST]).get("goodput", flow="mp")) == [8, None, 4, 5, None]


def test_a_table_without_rows_has_no_repetitions() -> None:
    assert CellValues.of([table()]).repetitions == 0
    assert CellValues.of([table(), SECOND]).repetitions == 2


def test_a_recorder_notes_cells_and_knows_nothing() -> None:
    recorder = DependencyRecorder()
    assert recorder.values(CELL) is None
    assert recorder.values(replace(CELL, label="olia")) is None
    assert recorder.cells == {CELL, replace(CELL, label="olia")}


@pytest.fixture
def source(tmp_path: Path) -> StoreSource:
    """Two blocks of one cell, one of another, and a cell that was refused."""
    store = Store(tmp_path / "store")
    store.prepare()
    store.put("d0", {}, **{VALUES: FIRST})
    store.put("d1", {}, **{VALUES: SECOND})
    digests = {CELL: "d0", replace(CELL, block=1): "d1", replace(CELL, label="olia"): "d1"}
    digests[replace(CELL, label="wvegas")] = "d2"
    return StoreSource(store, Outcome(digests, refused={"d2": "wvegas needs RTTs"}))


def test_a_source_joins_as_many_blocks_as_it_is_for(source: StoreSource) -> None:
    assert shown(source.values(CELL).get("goodput", flow="mp")) == [4, 5, None]
    two = StoreSource(source.store, source.outcome, blocks=2)
    assert shown(two.values(CELL).get("goodput", flow="mp")) == [4, 5, None, 8, None]
    with pytest.raises(NotTestableError, match=r"^olia.*: not run$"):
        two.values(replace(CELL, label="olia"))


def test_what_was_read_is_not_read_again_and_may_be_shared(
    source: StoreSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    original = Store.table

    def table(store: Store, digest: str, name: str) -> pl.DataFrame:
        asked.append((digest, name))
        return original(store, digest, name)

    monkeypatch.setattr(Store, "table", table)
    assert source.values(CELL) is source.values(CELL)
    two = StoreSource(source.store, source.outcome, 2, source.read)
    two.values(CELL)
    assert source.values(replace(CELL, label="olia")) is source.read["d1"]
    assert asked == [("d0", VALUES), ("d1", VALUES)]


def test_a_cell_that_was_refused_or_not_run_says_so(source: StoreSource) -> None:
    assert source.digest(CELL) == "d0"
    with pytest.raises(NotTestableError, match=r"^wvegas needs RTTs$"):
        source.values(replace(CELL, label="wvegas"))
    with pytest.raises(NotTestableError, match=r"^coupled: not run$"):
        source.digest(replace(CELL, label="coupled"))


# Pages


def test_a_directory_is_that_of_the_clone_at_hand_and_else_what_comes_with_the_package(tmp_path: Path) -> None:
    relative = Path("papers")

    def find(start: Path | None, is_complete: object = lambda place: (place / "README.md").is_file()) -> Path:
        return find_directory(relative, "such papers", is_complete, "run it in a clone", start)

    assert find(tmp_path) == bundle.root() / relative
    (tmp_path / relative).mkdir()
    (tmp_path / relative / "README.md").touch()
    assert find(tmp_path) == tmp_path / relative
    with pytest.raises(MptcplabError) as caught:
        find(tmp_path, lambda _: False)
    assert str(caught.value) == f"no such papers: {tmp_path / relative}\n\nhint: run it in a clone"


def test_a_directory_is_looked_for_below_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()
    assert find_directory(Path("papers"), "papers", Path.is_dir, "") == tmp_path / "papers"


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught, writing_page(tmp_path):
        (tmp_path / "missing" / "index.html").write_text("")
    assert str(caught.value) == (
        f"cannot write the page: {tmp_path / 'missing' / 'index.html'}: No such file or directory"
    )
    with pytest.raises(OutputError) as caught, writing_page(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(caught.value) == f"cannot write the page: {tmp_path}: No space left on device"
    with pytest.raises(ZeroDivisionError), writing_page(tmp_path):
        _ = 1 / 0


def test_a_table_has_the_same_bytes_everywhere() -> None:
    assert csv_text(("a", "b"), [(1, "x,y"), (2.5, None)]) == 'a,b\n1,"x,y"\n2.5,\n'
    assert csv_text(("a",), []) == "a\n"
