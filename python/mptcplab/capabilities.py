"""The capabilities of each engine, stated once; all other modules read them here.

The engines themselves refuse settings of a scenario, with the line: `mptcplab-kernel` and `engines.fluid.unsupported`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OWN_TRAFFIC = "own"
SEND_JITTER = "tcp.send_jitter"


@dataclass(frozen=True)
class Engine:
    """An engine. Settings are key paths of a scenario, with values as they are written in the file."""

    name: str
    # Single packets, ACKs and timeouts; otherwise rates and windows that are real numbers.
    has_packets: bool = True
    # A run takes as long as the scenario's duration, and no two runs have the same bytes.
    real_time: bool = False
    needs_root: bool = False
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
    traffic=(OWN_TRAFFIC, "iperf3"),
    # Its packets already have jitter, and it cannot add any. The default, "auto", adds none here either.
    requires={SEND_JITTER: '"0 s"'},
    # Linux has one MPTCP scheduler, sends segments in groups (TSO) and compresses SACKs.
    behaves_as={"scheduler": '"linger"', "tcp.tso": "true", "tcp.comp_sack": "true"},
)
FLUID = Engine("fluid", has_packets=False, in_python=True)

# In the order in which they run and in which results list them.
ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (SIM, KERNEL, FLUID)}
