"""Writes the wheel: the package with its extension, the kernel engine's program, scenarios, papers and algorithms.

usage: make_wheel.py ARCH EXTENSION PROGRAM NOTICES OUT_DIR

The build backend writes the metadata. This script adds the processor for which the wheel is, and the notices of what is
compiled into it (notices.py).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = "python/mptcplab"
# Copied to `_share` of the package, where mptcplab.bundle looks for them.
SHARED = ("scenarios", "papers", "algorithms")
# Files that setup makes and git does not have.
GENERATED = Path("papers/zuhairi2022/walk")
# Among the licences of the wheel.
NOTICES = "NOTICES"


def tracked(*folders: str) -> list[Path]:
    """The files of the repository below these folders, relative to its root."""
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, check=True, capture_output=True, text=True)
    return [Path(name) for name in listed.stdout.split("\0") if name]


def fill(package: Path, extension: Path, program: Path) -> None:
    """Put everything into the folder that becomes the package `mptcplab`."""
    walk = sorted(path.relative_to(ROOT) for path in (ROOT / GENERATED).glob("*.csv"))
    if not walk:
        sys.exit(f"error: the generated walk is missing: {GENERATED}\n\nhint: make setup writes it")
    places = {file: package / file.relative_to(PYTHON) for file in tracked(PYTHON)}
    places |= {file: package / "_share" / file for file in [*tracked(*SHARED), *walk]}
    places |= {extension: package / "_core.abi3.so", program: package / "_bin" / "mptcplab-kernel"}
    for file, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, place)
    for built in (extension, program):
        places[built].chmod(0o755)


def name_processor(scratch: Path, arch: str) -> None:
    """Put `arch` into the wheel's tag, where the backend writes the processor of this machine."""
    (metadata,) = scratch.glob("*.dist-info/WHEEL")
    text, found = re.subn(r"^(Tag: .*-linux_)\w+$", rf"\g<1>{arch}", metadata.read_text(), flags=re.MULTILINE)
    if found != 1:
        sys.exit(f"error: the build backend wrote another tag than expected\n\nhint: see {metadata}:\n{text}")
    metadata.write_text(text)


def add_notices(scratch: Path, notices: Path) -> None:
    """Put the notices beside the project's own licences, and name them in the metadata as PEP 639 asks."""
    (metadata,) = scratch.glob("*.dist-info/METADATA")
    text, found = re.subn(r"^(?=License-File: )", f"License-File: {NOTICES}\n", metadata.read_text(), 1, re.MULTILINE)
    if found != 1:
        sys.exit(f"error: the build backend named no licences\n\nhint: see {metadata}:\n{text}")
    metadata.write_text(text)
    shutil.copyfile(notices, metadata.parent / "licenses" / NOTICES)


def main() -> None:
    """Fill a folder, add the metadata, and pack it."""
    arch = sys.argv[1]
    extension, program, notices, out = (Path(word).resolve() for word in sys.argv[2:])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        fill(Path(scratch) / "mptcplab", extension, program)
        backend = [str(Path(sys.executable).with_name("maturin")), "pep517", "write-dist-info"]
        command = [*backend, "--metadata-directory", scratch, "--interpreter", sys.executable]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        name_processor(Path(scratch), arch)
        add_notices(Path(scratch), notices)
        pack = [sys.executable, "-m", "wheel", "pack", "--dest-dir", str(out), scratch]
        subprocess.run(pack, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
