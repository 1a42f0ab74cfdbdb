"""The verdict on a statement, and the finding that it is part of: the same four words in every study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """The verdict of the measurements on a statement."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "open"
    NOT_TESTABLE = "not testable"

    @property
    def mark(self) -> str:
        """A symbol for each verdict, so that colour alone never carries it."""
        return {"holds": "✓", "fails": "✕", "open": "?"}.get(self, "\N{EN DASH}")

    @classmethod
    def of(cls, decided: bool | None) -> Verdict:
        """The verdict on a statement that is true, false, or not decided by the repetitions (None)."""
        return {True: cls.HOLDS, False: cls.FAILS, None: cls.OPEN}[decided]

    @classmethod
    def joint(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """The verdict on all of several statements at once; what is not testable has no say.

        >>> Verdict.joint([Verdict.HOLDS, Verdict.NOT_TESTABLE]).value, Verdict.joint([]).value
        ('holds', 'not testable')
        """
        found = set(verdicts)
        return next((one for one in (cls.FAILS, cls.OPEN, cls.HOLDS) if one in found), cls.NOT_TESTABLE)


@dataclass(frozen=True)
class Finding:
    """A judged statement.

    `evidence` are the comparisons or cases behind the verdict, with their margins and intervals, and `repetitions` the
    number of those that decided. `reason` says in a line what decided, or why nothing could be decided. A `provisional`
    verdict is one of fewer and shorter runs than those that the statement is about. `held` says whether the statement
    is true of what was measured, decided or not; None where this is not known.
    """

    name: str
    verdict: Verdict
    evidence: tuple[Any, ...] = ()
    reason: str = ""
    repetitions: int = 0
    provisional: bool = False
    held: bool | None = field(default=None, kw_only=True)

    @property
    def text(self) -> str:
        """The verdict in words."""
        return f"{'provisional: ' if self.provisional else ''}{self.verdict}"


def counts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """The number of statements with each verdict, in the order of the vocabulary."""
    found = Counter(verdicts)
    return {verdict.value: found[verdict] for verdict in Verdict}
