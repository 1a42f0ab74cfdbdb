"""How a job in a virtual machine ended, and what it left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mptcplab.engines.vm import mailbox
from mptcplab.errors import EngineError, OutputError


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    # Exit code of the program; 128 plus the signal if it was killed.
    code: int
    stderr: str
    # Messages of the kernel during the job.
    console: str
    # The machine's time that the job took.
    virtual_ns: int
    # The share of that time in which the machine's processor was not idle.
    busy_share: float


def outcome(box: mailbox.Mailbox, console: str, out: Path | None = None) -> Outcome:
    """The outcome that is in the mailbox; what the job left in /out is written to `out`."""
    found: dict[str, bytes] = {}
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        for name, content in mailbox.unpack(box.result()):
            kind, _, path = name.partition("/")
            if kind != "out":
                found[name] = content
            elif path and out is not None:
                _write(out, path, content)
    except OSError as error:
        raise OutputError(f"{error.filename or out}: {error.strerror}") from error
    virtual_ns = int(found["virtual_ns"])
    return Outcome(
        code=int(found["code"]),
        stderr=found["stderr"].decode(errors="replace"),
        console=console,
        virtual_ns=virtual_ns,
        busy_share=int(found["busy_ns"]) / max(1, virtual_ns),
    )


def _write(directory: Path, path: str, content: bytes) -> None:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise EngineError(f"virtual machine: its result contains the path {path}")
    target = directory / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
