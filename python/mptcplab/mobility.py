"""Link changes of a phone that is carried away from a Wi-Fi access point and back, with a cellular network.

The model is assumed, not measured: coverage as a table over a period of 60 s, and fading whose logarithm is a
first-order autoregressive process. Arithmetic is decimal, which is correctly rounded on every machine, and the random
generator is part of this file: the same options and seed give the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation, localcontext
from pathlib import Path

from mptcplab.errors import MptcplabError, OutputError, with_hint
from mptcplab.output import writing

PERIOD_MS = 60_000
STEP_MS = 100
# Correlation of the fading from one step to the next.
_RHO = Decimal("0.9")
_ARITHMETIC = Context(prec=28, rounding=ROUND_HALF_EVEN)
# Longer walks would give needlessly large files.
MAX_DURATION_S = 3600
MAX_MBPS = 1_000_000


@dataclass(frozen=True)
class Stage:
    """A part of the period: rate factor and loss at its start and its end, linear in between."""

    start_s: int
    end_s: int
    factor: tuple[str, str]
    loss_ppm: tuple[int, int]


@dataclass(frozen=True)
class Radio:
    """A network along the walk: coverage by stage, and its fading."""

    name: str
    stages: tuple[Stage, ...]
    # Standard deviation of the logarithm of the fading, and the largest rate factor.
    deviation: Decimal
    cap: Decimal


WIFI = Radio(
    "wifi",
    (
        Stage(0, 16, ("1", "1"), (500, 500)),
        Stage(16, 26, ("1", "0.35"), (500, 10_000)),
        Stage(26, 30, ("0.35", "0.15"), (30_000, 30_000)),
        # No coverage, then scanning, association and DHCP.
        Stage(30, 36, ("0", "0"), (0, 0)),
        Stage(36, 44, ("0.30", "1"), (10_000, 500)),
        Stage(44, 60, ("1", "1"), (500, 500)),
    ),
    Decimal("0.20"),
    Decimal(1),
)
CELLULAR = Radio(
    "cellular",
    (
        Stage(0, 20, ("0.95", "0.95"), (500, 500)),
        Stage(20, 40, ("0.80", "0.80"), (500, 500)),
        # The change of cell.
        Stage(40, 41, ("0", "0"), (0, 0)),
        Stage(41, 60, ("0.90", "0.90"), (500, 500)),
    ),
    Decimal("0.25"),
    Decimal("1.2"),
)


@dataclass(frozen=True)
class Walk:
    """Options of a walk: full rates of the networks in Mbit/s; repetition i begins at `phase_s + i * phase_step_s`."""

    seed: int = 1
    repetitions: int = 1
    duration_s: Decimal = Decimal(60)
    phase_s: Decimal = Decimal(0)
    phase_step_s: Decimal = Decimal(0)
    wifi_mbps: Decimal = Decimal(11)
    cellular_mbps: Decimal = Decimal("5.5")

    def __post_init__(self) -> None:
        bounds: dict[str, tuple[Decimal | int, Decimal | int, Decimal | int]] = {
            "seed": (self.seed, 0, 2**64 - 1),
            "repetitions": (self.repetitions, 1, 10_000),
            "duration_s": (self.duration_s, Decimal("0.1"), MAX_DURATION_S),
            "phase_s": (self.phase_s, 0, MAX_DURATION_S),
            "phase_step_s": (self.phase_step_s, 0, MAX_DURATION_S),
            "wifi_mbps": (self.wifi_mbps, Decimal("0.001"), MAX_MBPS),
            "cellular_mbps": (self.cellular_mbps, Decimal("0.001"), MAX_MBPS),
        }
        for name, (value, least, most) in bounds.items():
            if not least <= value <= most:
                raise MptcplabError(with_hint(f"walk: {name}: {value} is out of range", f"{least} to {most}"))
        for name in ("duration_s", "phase_s", "phase_step_s"):
            if (getattr(self, name) * 1000) % STEP_MS:
                text = f"walk: {name}: {getattr(self, name)} is no multiple of the step"
                raise MptcplabError(with_hint(text, f"whole steps of {STEP_MS} ms"))


def number(name: str, text: str) -> Decimal:
    """Parse a decimal number for the field `name` of a `Walk`."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise MptcplabError(with_hint(f"walk: {name}: {text!r} is not a number", "write digits, e.g. 5.5"))
    return value


# How a file begins.
_HEAD = "# mptcplab walk: "


def write(directory: Path, walk: Walk) -> list[Path]:
    """Write `wifi-REP.csv` and `cellular-REP.csv` for every repetition; a scenario's `schedule_file` reads them.

    Files of an earlier walk are replaced, and no others.
    """
    texts = {
        directory / f"{radio.name}-{rep}.csv": changes(radio, walk, rep)
        for rep in range(walk.repetitions)
        for radio in (WIFI, CELLULAR)
    }
    with writing(f"write to {directory}", "choose another --out"):
        directory.mkdir(parents=True, exist_ok=True)
        for path in texts:
            if path.exists() and not path.read_bytes().startswith(_HEAD.encode("ascii")):
                raise OutputError(with_hint(f"a file that no walk has written: {path}", "choose another --out"))
        for path, text in texts.items():
            path.write_text(text, encoding="ascii", newline="\n")
    return list(texts)


def changes(radio: Radio, walk: Walk, rep: int) -> str:
    """The changes of one network in one repetition, as CSV: a line where rate or loss changes."""
    with localcontext(_ARITHMETIC):
        return "\n".join(_lines(radio, walk, rep)) + "\n"


def _lines(radio: Radio, walk: Walk, rep: int) -> Iterator[str]:
    full_bps = 1_000_000 * (walk.wifi_mbps if radio is WIFI else walk.cellular_mbps)
    start_ms = int(1000 * (walk.phase_s + rep * walk.phase_step_s))
    yield f"{_HEAD}{radio.name}, seed {walk.seed}, repetition {rep}, from {start_ms} ms of the walk"
    yield "at_ms,rate_bps,loss_ppm"
    factors = fading(radio, f"{walk.seed}/{rep}/{radio.name}")
    before: tuple[int | None, int | None] = (None, None)
    for at_ms in range(0, int(1000 * walk.duration_s), STEP_MS):
        factor, loss_ppm = coverage(radio, start_ms + at_ms)
        faded = min(radio.cap, factor * next(factors))
        # Whole kbit/s are fine enough and readable.
        now = (1000 * int(faded * full_bps / 1000), loss_ppm)
        if now != before:
            fields = ["" if new == old else str(new) for new, old in zip(now, before, strict=True)]
            yield ",".join([str(at_ms), *fields])
        before = now


def coverage(radio: Radio, at_ms: int) -> tuple[Decimal, int]:
    """Rate factor without fading, and loss in packets per million, at a time of the walk."""
    tau_ms = at_ms % PERIOD_MS
    stage = next(stage for stage in radio.stages if tau_ms < 1000 * stage.end_s)
    done_ms, length_ms = tau_ms - 1000 * stage.start_s, 1000 * (stage.end_s - stage.start_s)
    first, last = (Decimal(value) for value in stage.factor)
    from_ppm, to_ppm = stage.loss_ppm
    factor = (first * (length_ms - done_ms) + last * done_ms) / length_ms
    return factor, from_ppm + (to_ppm - from_ppm) * done_ms // length_ms


def fading(radio: Radio, stream: str) -> Iterator[Decimal]:
    """Factors exp(z - deviation^2 / 2) of mean 1: z is normal, and correlated from step to step."""
    normals = _normals(stream)
    fresh = radio.deviation * (1 - _RHO * _RHO).sqrt()
    z = radio.deviation * next(normals)
    while True:
        yield (z - radio.deviation * radio.deviation / 2).exp()
        z = _RHO * z + fresh * next(normals)


def _normals(stream: str) -> Iterator[Decimal]:
    """Standard normal numbers by Marsaglia's polar method."""
    words = _words(int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "big"))
    while True:
        u, v = (Decimal(next(words)) / 2**63 - 1 for _ in range(2))
        square = u * u + v * v
        if 0 < square < 1:
            scale = (-2 * square.ln() / square).sqrt()
            yield u * scale
            yield v * scale


def _words(state: int) -> Iterator[int]:
    """SplitMix64 (Steele, Lea & Flood 2014): 64-bit words."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        word = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        yield word ^ (word >> 31)
