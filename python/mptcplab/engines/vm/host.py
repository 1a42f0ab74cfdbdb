"""Whether this machine can run the engine, and how to get what is missing."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mptcplab.capabilities import kernel_of
from mptcplab.engines import kernel
from mptcplab.engines.vm import debian, kept, qemu, snapshot
from mptcplab.engines.vm.cache import cache
from mptcplab.errors import EngineError, with_hint


@dataclass(frozen=True)
class Finding:
    """A check: what was found, and what to do if something is missing."""

    name: str
    status: str
    found: str
    meaning: str
    remedy: str = ""

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self)


def findings() -> list[Finding]:
    """All checks."""
    return [_emulator(), _compiler(), _program(), *_packages(), _cache()]


def require_available(engine: str) -> None:
    """Raise an error if this machine cannot run the engine; kernels by path need no apt."""
    checks = [_emulator(), _compiler(), _program(), _cache()]
    checks += [] if "/" in kernel_of(engine) else list(_packages())
    for check in checks:
        if check.status == "missing":
            raise EngineError(with_hint(f"the engine vm cannot run here: {check.found}: {check.meaning}", check.remedy))


def _executable(name: str, meaning: str, package: str) -> Finding:
    path = shutil.which(name)
    if path is not None:
        return Finding(name, "ok", path, meaning)
    remedy = f"install the package {package}"
    if shutil.which("apt-get"):
        remedy = f"sudo apt-get install -y --no-install-recommends {package}"
    return Finding(name, "missing", f"no program {name}", meaning, remedy)


def _emulator() -> Finding:
    return _executable(qemu.PROGRAM, "the emulator of the machine", "qemu-system-x86")


def _compiler() -> Finding:
    return _executable("cc", "compiles what keeps the emulator's threads in step", "gcc")


def _program() -> Finding:
    meaning = "the program that runs in the machine"
    if platform.machine() not in ("x86_64", "AMD64"):
        remedy = "use an amd64 machine; the simulator runs on any"
        return Finding("mptcplab-kernel", "missing", f"built for {platform.machine()}, not x86_64", meaning, remedy)
    try:
        return Finding("mptcplab-kernel", "ok", str(kernel.program()), meaning)
    except EngineError as error:
        reason, _, hint = str(error).partition("\n\nhint: ")
        return Finding("mptcplab-kernel", "missing", reason, meaning, hint)


def _packages() -> Iterator[Finding]:
    for name in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(name) is None:
            yield Finding(
                name,
                "missing",
                f"no program {name}",
                "downloads Debian's kernels",
                "run it on Debian, or give a kernel image with modules/ beside it: --engine vm:/path/to/vmlinuz",
            )
            return
    yield Finding(
        "apt", "ok", "apt-get, apt-cache, dpkg-deb", "downloads Debian's kernels; changes nothing in the system"
    )
    keys = debian.KEYRING
    meaning = "the keys with which apt verifies Debian's packages"
    if keys.is_file():
        yield Finding("keyring", "ok", str(keys), meaning)
    else:
        remedy = "sudo apt-get install -y debian-archive-keyring"
        yield Finding("keyring", "missing", f"no file {keys}", meaning, remedy)


def _cache() -> Finding:
    last = f"the {snapshot.KEPT} used last, for {kept.KEPT_DAYS} days"
    meaning = f"kernels, and in machines/ what has booted: {last}"
    path = cache()
    there = path
    while not there.exists():
        there = there.parent
    if os.access(there, os.W_OK | os.X_OK):
        return Finding("cache", "ok", str(path), meaning)
    remedy = "make it writable, or set XDG_CACHE_HOME to another directory"
    return Finding("cache", "missing", f"cannot write {path}", meaning, remedy)
