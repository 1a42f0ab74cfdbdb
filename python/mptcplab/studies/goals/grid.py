"""The grid of networks that the goals are measured in. `scenarios` turns a network into a scenario file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from mptcplab.errors import MptcplabError, with_hint

SHARED, DISJOINT = "shared", "disjoint"
KINDS = (SHARED, DISJOINT)
COMPETITORS = ("reno", "cubic")


@dataclass(frozen=True)
class Network:
    """One network: the kind of bottleneck, base RTT of path 2 over that of path 1, loss (%), buffer (BDP), competitor.

    The loss is random, on the bottleneck where both paths share it and otherwise on that of path 2 alone.

    >>> Network("disjoint", 5, 0.1, 0.5, "cubic").text
    'disjoint, RTT ratio 5, against cubic, loss 0.1 %, buffer 0.5 BDP'
    """

    kind: str
    rtt_ratio: float
    loss_percent: float
    buffer_bdp: float
    competitor: str

    def __post_init__(self) -> None:
        """Refuse values that no scenario can have."""
        _require(self.kind in KINDS, "kind", self.kind, f"one of {', '.join(KINDS)}")
        _require(self.competitor in COMPETITORS, "competitor", self.competitor, f"one of {', '.join(COMPETITORS)}")
        _require(self.rtt_ratio >= 1, "rtt_ratio", self.rtt_ratio, "at least 1: path 2 is the longer one")
        _require(0 <= self.loss_percent < 100, "loss_percent", self.loss_percent, "from 0 to below 100")
        _require(self.buffer_bdp > 0, "buffer_bdp", self.buffer_bdp, "above 0")

    @property
    def row(self) -> str:
        """The row of the network in a heat map."""
        return f"{self.kind}, RTT ratio {self.rtt_ratio:g}, against {self.competitor}"

    @property
    def column(self) -> str:
        """The column of the network in a heat map."""
        return f"loss {self.loss_percent:g} %, buffer {self.buffer_bdp:g} BDP"

    @property
    def text(self) -> str:
        """The network in one line."""
        return f"{self.row}, {self.column}"


@dataclass(frozen=True)
class Grid:
    """All combinations of these values, each simulated `repetitions` times for `duration_s`, `warmup_s` left out."""

    kinds: tuple[str, ...]
    rtt_ratios: tuple[float, ...]
    losses_percent: tuple[float, ...]
    buffers_bdp: tuple[float, ...]
    competitors: tuple[str, ...]
    repetitions: int
    duration_s: int
    warmup_s: int

    def __post_init__(self) -> None:
        """Refuse a grid that gives no verdicts."""
        _require(self.repetitions >= 2, "repetitions", self.repetitions, "at least 2: a verdict needs their spread")
        _require(0 <= self.warmup_s < self.duration_s, "warmup_s", self.warmup_s, f"below {self.duration_s} s")
        for name in ("kinds", "rtt_ratios", "losses_percent", "buffers_bdp", "competitors"):
            values = getattr(self, name)
            _require(len(values) > 0, name, values, "at least one value")
            _require(len(set(values)) == len(values), name, values, "each value once")
        # Networks refuse their own values; here, so that nothing is simulated before.
        _ = self.networks

    @property
    def networks(self) -> tuple[Network, ...]:
        """The networks, row by row of the heat maps."""
        rows = product(self.kinds, self.rtt_ratios, self.competitors)
        columns = tuple(product(self.losses_percent, self.buffers_bdp))
        return tuple(
            Network(kind, ratio, loss, buffer, competitor)
            for kind, ratio, competitor in rows
            for loss, buffer in columns
        )


def _require(good: bool, name: str, value: object, right: str) -> None:
    if not good:
        raise MptcplabError(with_hint(f"grid of the goals: {name} = {value!r}", right))


# The longest sawtooth of the full grid, one Reno flow of 206 packets with an RTT of up to half a second, takes some
# 45 s: a run holds several of the usual ones and at least two of these.
FULL = Grid(KINDS, (1, 2, 5), (0, 0.1, 1), (0.5, 1, 4), COMPETITORS, repetitions=6, duration_s=150, warmup_s=30)
QUICK = Grid(KINDS, (1, 5), (0, 1), (1,), COMPETITORS, repetitions=4, duration_s=60, warmup_s=15)
