"""The stored values of cells, one per repetition, and the sources that they are read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import polars as pl

from mptcplab.errors import MptcplabError
from mptcplab.study.cell import Cell
from mptcplab.study.execute import Outcome
from mptcplab.study.measure import VALUES
from mptcplab.study.store import Store

# Span, metric, flow, subflow, link.
Key = tuple[str, str, str | None, str | None, str | None]


class NotTestableError(MptcplabError):
    """A statement cannot be evaluated on this engine; the text says why."""


@dataclass(frozen=True)
class CellValues:
    """The values of one cell's repetitions by span, metric, flow, subflow and link."""

    repetitions: int
    by_key: Mapping[Key, np.ndarray]

    @classmethod
    def of(cls, frames: Sequence[pl.DataFrame]) -> CellValues:
        """From the stored tables of one or more blocks of repetitions."""
        return cls.joined([cls._block(frame) for frame in frames])

    @classmethod
    def joined(cls, blocks: Sequence[CellValues]) -> CellValues:
        """The repetitions of one or more blocks, one after the other; NaN where a block has no value."""
        if len(blocks) == 1:
            return blocks[0]
        keys = dict.fromkeys(key for block in blocks for key in block.by_key)
        missing = [np.full(block.repetitions, np.nan) for block in blocks]
        pairs = list(zip(blocks, missing, strict=True))
        found = {key: np.concatenate([block.by_key.get(key, none) for block, none in pairs]) for key in keys}
        return cls(sum(block.repetitions for block in blocks), found)

    @classmethod
    def _block(cls, frame: pl.DataFrame) -> CellValues:
        repetitions = 0 if frame.is_empty() else max(frame["rep"].to_list()) + 1
        found: dict[Key, list[float]] = {}
        keys = zip(*(frame[name].to_list() for name in ("span", "metric", "flow", "subflow", "link")), strict=True)
        for key, rep, value in zip(keys, frame["rep"].to_list(), frame["value"].to_list(), strict=True):
            if value is not None:
                column = found.get(key)
                if column is None:
                    column = found[key] = [np.nan] * repetitions
                column[rep] = value
        return cls(repetitions, {key: np.array(column) for key, column in found.items()})

    def get(
        self,
        metric: str,
        *,
        flow: str | None = None,
        subflow: str | None = None,
        link: str | None = None,
        span: str = "",
    ) -> np.ndarray:
        """One value per repetition; NaN where a repetition has none."""
        found = self.by_key.get((span, metric, flow, subflow, link))
        return np.full(self.repetitions, np.nan) if found is None else found


class Source(Protocol):
    """Where the values of cells come from."""

    def values(self, cell: Cell) -> CellValues | None:
        """The values of a cell (of block 0 and its further blocks); None where they are not known yet."""


@dataclass
class DependencyRecorder:
    """A source without values that records which cells were asked for."""

    cells: set[Cell] = field(default_factory=set)

    def values(self, cell: Cell) -> CellValues | None:
        """Record the cell."""
        self.cells.add(cell)
        return None


@dataclass
class StoreSource:
    """A source over the store, for a number of blocks of repetitions.

    Sources over the same store may share what they have `read`, by digest.
    """

    store: Store
    outcome: Outcome
    blocks: int = 1
    read: dict[str, CellValues] = field(default_factory=dict)
    _known: dict[Cell, CellValues] = field(default_factory=dict)

    def values(self, cell: Cell) -> CellValues:
        """From the store. Raises `NotTestableError` where the engine refused the cell."""
        if cell not in self._known:
            digests = [self.digest(replace(cell, block=block)) for block in range(self.blocks)]
            self._known[cell] = CellValues.joined([self._block(digest) for digest in digests])
        return self._known[cell]

    def _block(self, digest: str) -> CellValues:
        if digest not in self.read:
            self.read[digest] = CellValues.of([self.store.table(digest, VALUES)])
        return self.read[digest]

    def digest(self, cell: Cell) -> str:
        """Where the store has a cell. Raises `NotTestableError` where it was not run or the engine refused it."""
        digest = self.outcome.digests.get(cell)
        if digest is None:
            raise NotTestableError(f"{cell.label}: not run")
        if digest in self.outcome.refused:
            raise NotTestableError(self.outcome.refused[digest])
        return digest
