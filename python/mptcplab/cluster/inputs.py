"""What a task brings to its worker: a scenario, the files that it names, and algorithms that the build lacks."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from mptcplab import _core
from mptcplab.engines.vm.engine import job_files
from mptcplab.scratch import Scratch


@dataclass(frozen=True)
class Inputs:
    """Files by their paths relative to a directory, one of which is the scenario; sources by the algorithm's name."""

    scenario: str
    files: Mapping[str, bytes]
    algorithms: Mapping[str, tuple[str, str]]

    @classmethod
    def of(cls, scenario: Path, overrides: str = "{}") -> Inputs:
        """All that the runs of a scenario need."""
        inside, files = job_files(scenario, overrides)
        sources = _core.added_algorithms(scenario, overrides)
        return cls(inside, files, {name: (text, place) for name, place, text in sources})

    def unpack(self) -> Path:
        """Write the files to a directory of this process, compile the algorithms, and return the scenario's path."""
        for name, source in self.algorithms.items():
            _compile(name, *source)
        place = Path(_directory().name) / self.digest
        if not place.is_dir():
            with tempfile.TemporaryDirectory(dir=_directory().name) as scratch:
                new = Path(scratch) / "new"
                for name, content in self.files.items():
                    (new / name).parent.mkdir(parents=True, exist_ok=True)
                    (new / name).write_bytes(content)
                try:
                    new.rename(place)
                except OSError:
                    # Another thread was faster.
                    if not place.is_dir():
                        raise
        return place / self.scenario

    @cached_property
    def digest(self) -> str:
        """The digest of the files."""
        found = hashlib.sha256(self.scenario.encode())
        for name, content in sorted(self.files.items()):
            found.update(f"\0{name}\0{len(content)}\0".encode() + content)
        return found.hexdigest()


@cache
def _directory() -> Scratch:
    """A directory that disappears with the process."""
    return Scratch("inputs")


@cache
def _compile(name: str, text: str, place: str) -> None:
    """Compile once what many tasks bring."""
    _core.load_algorithm(name, text, place)
