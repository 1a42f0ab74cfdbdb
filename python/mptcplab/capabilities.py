"""The capabilities of each engine, stated once; all other modules read them here.

The engines themselves refuse settings of a scenario, with the line: `mptcplab-kernel` and `engines.fluid.unsupported`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

OWN_TRAFFIC = "own"
SEND_JITTER = "tcp.send_jitter"
HOST_DELAY = "tcp.host_delay"


@dataclass(frozen=True)
class Engine:
    """An engine. Settings are key paths of a scenario, with values as they are written in the file."""

    name: str
    # Single packets, ACKs and timeouts; otherwise rates and windows that are real numbers.
    has_packets: bool = True
    # A run takes as long as the scenario's duration, and no two runs have the same bytes.
    real_time: bool = False
    needs_root: bool = False
    # Real sockets on emulated links, which are late now and then.
    has_sockets: bool = False
    # It runs inside the Python interpreter, so that threads do not make it faster.
    in_python: bool = False
    # Programs that may send and receive (`--traffic`); the first is the default.
    traffic: tuple[str, ...] = (OWN_TRAFFIC,)
    # It refuses these settings with any other value.
    requires: Mapping[str, str] = field(default_factory=dict)
    # It always behaves as the simulator does with these settings.
    behaves_as: Mapping[str, str] = field(default_factory=dict)

    @property
    def repetitions_differ(self) -> bool:
        """Whether random numbers affect a run: the equations of a fluid use only the probability of a loss."""
        return self.has_packets


SIM = Engine("sim")
KERNEL = Engine(
    "kernel",
    real_time=True,
    needs_root=True,
    has_sockets=True,
    traffic=(OWN_TRAFFIC, "iperf3"),
    # Its packets already have jitter, and it cannot add any. The default, "auto", adds none here either.
    requires={SEND_JITTER: '"0 s"', HOST_DELAY: '"0 s"'},
    # Linux has one MPTCP scheduler, sends segments in groups (TSO) and compresses SACKs.
    behaves_as={"scheduler": '"linger"', "tcp.tso": "true", "tcp.comp_sack": "true"},
)
# The same program in an emulated machine, in whose time nothing else happens: no root, and the same bytes every time.
VM = replace(KERNEL, name="vm", real_time=False, needs_root=False, traffic=(OWN_TRAFFIC,))
FLUID = Engine("fluid", has_packets=False, in_python=True)

# In the order in which they run and in which results list them.
ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (SIM, KERNEL, VM, FLUID)}

# A machine's kernel follows this in the name of an engine: "vm:bookworm", or the path of an image.
_MACHINE = f"{VM.name}:"
# The newest kernel of Debian's stable release.
DEFAULT_KERNEL = "trixie-backports"
_DIRECTORY = re.compile(rf"{VM.name}-[a-z0-9.-]+$")


def full_name(name: str) -> str:
    """The name of an engine in traces: `vm` alone is that of its default kernel."""
    return _MACHINE + DEFAULT_KERNEL if name == VM.name else name


def machine_with(kernel: str) -> str:
    """The name of the engine with a kernel: a suite of Debian, or the path of an image."""
    return kernel if is_machine(kernel) else _MACHINE + kernel


def is_machine(name: str) -> bool:
    """Whether an engine is an emulated machine with some kernel."""
    return name == VM.name or name.startswith(_MACHINE)


def kernel_of(name: str) -> str:
    """The kernel of an emulated machine: a suite of Debian, or the path of an image."""
    return full_name(name).removeprefix(_MACHINE)


def engine_of(name: str) -> Engine:
    """The engine of a name such as "sim" or "vm:bookworm"."""
    return replace(VM, name=full_name(name)) if is_machine(name) else ENGINES[name]


def in_order(names: Iterable[str]) -> list[str]:
    """Engines in the order in which they run; several machines as they are given."""
    kinds = list(ENGINES)
    return sorted(names, key=lambda name: kinds.index(VM.name if is_machine(name) else name))


def directory_of(name: str) -> str:
    """The name of an engine's directory among the results of several."""
    if not is_machine(name):
        return name
    kernel = kernel_of(name)
    words = re.sub(r"[^a-z0-9.]+", "-", kernel.lower().rpartition("/")[2]).strip("-.")
    # Images in different places have the same file name.
    apart = f"-{hashlib.sha256(kernel.encode()).hexdigest()[:8]}" if words != kernel else ""
    return f"{VM.name}-{words}{apart}"


def is_directory_of_engine(name: str) -> bool:
    """Whether a directory among results may be one engine's."""
    return name in ENGINES or _DIRECTORY.match(name) is not None
