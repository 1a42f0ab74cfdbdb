"""A Linux kernel for a virtual machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Kernel:
    """A kernel image and the modules that a run needs."""

    # What the user wrote after "vm:".
    name: str
    # The output of `uname -r`.
    release: str
    # Debian package and version; empty for an image that was given by its path.
    package: str
    image: Path
    # Uncompressed, in the order in which they are inserted; none if all are built in.
    modules: tuple[Path, ...]
    # SHA-256 over image and modules.
    digest: str
