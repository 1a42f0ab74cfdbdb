"""What a call of `reproduce` asks for."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from mptcplab.capabilities import SIM
from mptcplab.errors import MptcplabError, with_hint


@dataclass(frozen=True)
class Asked:
    """One paper or all, or a part of one; see `api.reproduce`."""

    paper: str
    experiment: str | None = None
    claim: str | None = None
    quick: bool = False
    sensitivity: bool = False

    def check(self, engine: str, *, docs: bool) -> None:
        """Raise an error for what does not go together; `docs` says whether pages in Markdown are to be written."""
        if self.experiment is not None and self.paper == "all":
            what = f"an experiment is one of a paper's: {self.experiment!r}"
            raise MptcplabError(with_hint(what, "name the paper, not all"))
        if self.claim is not None and (self.paper == "all" or self.experiment is not None or docs):
            hint = "name its paper, without an experiment or docs"
            raise MptcplabError(with_hint(f"one claim is run by itself: {self.claim!r}", hint))
        if self.sensitivity and engine != SIM.name:
            hint = "leave out the engine, or the sensitivity"
            raise MptcplabError(with_hint(f"other choices are simulated, not run on {engine}", hint))

    def is_reference(self, engine: str) -> bool:
        """Whether this is what expected verdicts are about."""
        return engine == SIM.name and not self.quick and self.experiment is None

    def command(self, engine: str) -> str:
        """The command that asks for the same."""
        words = ["mptcplab", "reproduce", self.paper, *(["--engine", engine] if engine != SIM.name else [])]
        words += [*(["--experiment", self.experiment] if self.experiment else []), *(["--quick"] if self.quick else [])]
        return shlex.join([*words, *(["--sensitivity"] if self.sensitivity else [])])
