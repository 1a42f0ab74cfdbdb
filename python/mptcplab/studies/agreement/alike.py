"""Settings with which the simulator does what a kernel does, so that only what is not meant to differ is compared."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable

from mptcplab.capabilities import KERNEL, engine_of, is_machine
from mptcplab.engines.vm import kernels

# The kernels that `tcp.like` knows, newest first, and the first version that behaves as each.
_LIKE = (((7, 1), "linux-7.3"), ((0, 0), "linux-6.18"))


def settings(engines: Iterable[str]) -> dict[str, str]:
    """Keys to set in all engines; none where no kernel takes part. The last kernel of several decides."""
    releases = [_release(name) for name in engines if engine_of(name).has_sockets]
    return {**KERNEL.behaves_as, "tcp.like": f'"{like(releases[-1])}"'} if releases else {}


def like(release: str) -> str:
    """The value of `tcp.like` for a kernel, by the output of `uname -r`.

    >>> like("6.1.0-50-cloud-amd64"), like("7.0.9"), like("7.3.4+deb13-cloud-amd64"), like("10.2.0-rc1")
    ('linux-6.18', 'linux-6.18', 'linux-7.3', 'linux-7.3')
    """
    found = re.match(r"(\d+)\.(\d+)", release)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    return next(name for first, name in _LIKE if version >= first)


def _release(engine: str) -> str:
    return kernels.find(engine).release if is_machine(engine) else platform.release()
