"""Installs the package into the Python that runs this, as a pointer to python/ with the metadata of pyproject.toml.

The build backend would compile the extension once more for an editable installation, so that only the metadata are left
to it, and the wheel around them is written here (PEP 660). Needs maturin and pip.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(command: list[str]) -> None:
    """Run a command, whose output is shown only if it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(
            f"{done.stdout}{done.stderr}error: the package cannot be installed: {' '.join(command)}\n\n"
            "hint: the cause is above"
        )


def editable_wheel(folder: Path) -> Path:
    """Write the wheel into `folder` and return its path."""
    maturin = Path(sys.executable).with_name("maturin")
    backend = [str(maturin), "pep517", "write-dist-info", "--metadata-directory", str(folder)]
    run([*backend, "--interpreter", sys.executable])
    (metadata,) = folder.glob("*.dist-info")
    name = metadata.name.removesuffix(".dist-info")
    wheel = folder / f"{name}-py3-none-any.whl"
    contents = {"mptcplab.pth": f"{ROOT / 'python'}\n".encode()}
    contents |= {str(path.relative_to(folder)): path.read_bytes() for path in metadata.rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in contents.items():
            archive.writestr(path, data)
        record = f"{metadata.name}/RECORD"
        archive.writestr(record, "".join(f"{path},,\n" for path in [*contents, record]))
    return wheel


def main() -> None:
    """Replace an earlier installation."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = editable_wheel(Path(folder))
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run([*pip, "install", "--no-deps", "--force-reinstall", str(wheel)])


if __name__ == "__main__":
    main()
