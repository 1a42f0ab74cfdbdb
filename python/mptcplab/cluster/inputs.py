"""What a task brings to its worker: a scenario, the files that it names, and algorithms that the build lacks."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from mptcplab import _core
from mptcplab.engines.vm.engine import job_files
from mptcplab.errors import EngineError, with_hint
from mptcplab.scratch import Scratch

# Algorithms that tasks have brought to this process, as they are now; a later task may bring another version of one.
_loaded: dict[str, tuple[str, str]] = {}
# Held as long as a task needs the versions that it brought.
_loading = threading.RLock()


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

    @contextmanager
    def unpacked(self) -> Iterator[Path]:
        """The scenario's path, with all files beside it; meanwhile, this process has the versions of the algorithms.

        Tasks that bring algorithms wait for each other: a process has one version of each.
        """
        with _loading if self.algorithms else nullcontext():
            for name, source in self.algorithms.items():
                if _loaded.get(name) != source:
                    _loaded.pop(name, None)
                    _core.load_algorithm(name, *source)
                    _loaded[name] = source
            yield self._written() / self.scenario

    def _written(self) -> Path:
        """A directory of this process with the files."""
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
        return place

    @cached_property
    def digest(self) -> str:
        """The digest of the files."""
        found = hashlib.sha256(self.scenario.encode())
        for name, content in sorted(self.files.items()):
            found.update(f"\0{name}\0{len(content)}\0".encode() + content)
        return found.hexdigest()


def other_work(digest: str) -> EngineError:
    """A task would run something else than it was made for, whose digest is this."""
    hint = "this is a bug of mptcplab; please report it with the command"
    return EngineError(with_hint(f"a worker would run something else than {digest}", hint))


@cache
def _directory() -> Scratch:
    """A directory that disappears with the process."""
    return Scratch("inputs")
