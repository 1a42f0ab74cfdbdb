"""What is known of a part's mutants before they are tried."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """The keys of the survivors that are listed, and whether these alone are tried, or all but these."""

    keys: Collection[str]
    again: bool

    def survived(self, key: str) -> bool | None:
        """Whether a mutant counts as a survivor without being tried; None if it is tried."""
        listed = key in self.keys
        return None if listed == self.again else listed
