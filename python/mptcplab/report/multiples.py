"""Where small multiples stand: a row of plots per flow, a column per value of a second parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from mptcplab.plots.figure import LEFT, LINE, RIGHT, broken, lines_in, text_width

_GAP, _BETWEEN, _TITLE = 0.2, 0.16, 0.28
_HIGH, _LOW = 3.0, 1.9
# The least distance of the numbers below two plots.
_SPACE = 0.08


@dataclass(frozen=True)
class Place:
    """Where a plot stands, and whether none is below it."""

    across: int
    down: int
    is_lowest: bool


@dataclass(frozen=True)
class Multiples:
    """The sizes of small multiples (inches), their titles, and how many are side by side and below each other.

    A flow has several rows where its plots would be too narrow side by side.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    across: int
    gap: float
    inside: float
    high: float
    titled: float
    titles: dict[tuple[str, str], str]

    @classmethod
    def of(
        cls, rows: Sequence[str], columns: Sequence[str], width: float, ticks: Sequence[str], narrowest: float
    ) -> Self:
        """The layout in a figure of that width, with these texts below every plot, which needs a width of its own."""
        numbers = [text_width(text) / 2 for text in ticks]
        gap = max(_GAP, numbers[0] + numbers[-1] + _SPACE)
        room = width - LEFT - max(RIGHT, numbers[-1])
        most = max(1, int((room + gap) / (narrowest + gap)))
        lines = -(-len(columns) // most)
        across = -(-len(columns) // lines)
        inside = (room - gap * (across - 1)) / across
        high = _HIGH if len(rows) == len(columns) == 1 else _LOW
        high = min(high, max(1.4, 0.72 * inside))
        names = {(row, column): (row if len(rows) > 1 else "", column) for row in rows for column in columns}
        titles = {key: broken("  ".join(filter(None, name)), inside) for key, name in names.items()}
        titled = _TITLE + LINE * (max(map(lines_in, titles.values()), default=1) - 1)
        titled = titled if any(titles.values()) else 0.1
        return cls(tuple(rows), tuple(columns), across, gap, inside, high, titled, titles)

    @property
    def lines(self) -> int:
        """The rows that each flow has."""
        return -(-len(self.columns) // self.across)

    @property
    def down(self) -> int:
        """All rows."""
        return len(self.rows) * self.lines

    @property
    def row_height(self) -> float:
        """The height of a plot with its title and the distance to the next one."""
        return self.titled + self.high + _BETWEEN

    def place(self, of_row: str, of_column: str) -> Place:
        """Where the plot of a flow and of a value of the second parameter stands."""
        row, column = self.rows.index(of_row), self.columns.index(of_column)
        line, across = divmod(column, self.across)
        is_last_row = row == len(self.rows) - 1
        return Place(across, row * self.lines + line, is_last_row and column + self.across >= len(self.columns))
