"""CUBIC's window between two losses against RFC 9438, evaluated from the trace of every ACK.

The reference of an epoch is max(W_cubic(t), W_est(t)). The trace shows whole packets: the window lies in
[cwnd, cwnd + 1), and so does the window at the loss, from which the whole curve follows. Its hidden fraction is the
one free parameter of an epoch, fitted between 0 and 1. Where the trace cannot tell whether fast convergence acted,
because window and last maximum are the same whole number, the epoch is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

# RFC 9438, sections 4.2 (C), 4.6 (beta_cubic), 4.3 (alpha_cubic), 4.7 (fast convergence). Linux keeps 717 of
# 1024 parts, and so does algorithms/cubic.c, where the RFC has 0.7: of 2000 packets that is 0.4 packets more.
C = 0.4
BETA = 717 / 1024
ALPHA = 3 * (1 - BETA) / (1 + BETA)
CONVERGED = (1 + BETA) / 2
# Epochs with fewer ACKs show no curve.
_MIN_ACKS = 20
_NS = 1e9
_REDUCTIONS = ("loss_event", "rto_fired", "ecn_event", "undo")


@dataclass(frozen=True)
class Epoch:
    """Congestion avoidance between two losses: seconds since its start, windows in packets, one value per ACK."""

    seconds: np.ndarray
    cwnd: np.ndarray
    curve: np.ndarray
    estimate: np.ndarray

    @property
    def reference(self) -> np.ndarray:
        """The window that RFC 9438 prescribes."""
        found: np.ndarray = np.maximum(self.curve, self.estimate)
        return found

    @property
    def residual(self) -> np.ndarray:
        """Distance of the reference from [cwnd, cwnd + 1), positive where the window is too large."""
        reference = self.reference
        found: np.ndarray = np.maximum(self.cwnd - reference, 0) - np.maximum(reference - self.cwnd - 1, 0)
        return found

    @property
    def deviation(self) -> float:
        """Largest distance, packets."""
        return float(np.abs(self.residual).max())


@dataclass(frozen=True)
class Acks:
    """The trace of one subflow: one row per ACK."""

    seconds: np.ndarray
    cwnd: np.ndarray
    acked: np.ndarray
    open: np.ndarray

    @classmethod
    def of(cls, rows: pl.DataFrame) -> Acks:
        """From rows of the subflow table in time order."""
        return cls(
            rows["t_ns"].to_numpy() / _NS,
            rows["cwnd_pkts"].to_numpy().astype(np.float64),
            rows["acked_pkts"].to_numpy().astype(np.float64),
            (rows["state"].cast(pl.String) == "open").to_numpy(),
        )


def epochs(rows: pl.DataFrame, events: pl.DataFrame) -> tuple[list[Epoch], int]:
    """The epochs of one subflow that can be compared, and the number that the trace leaves undecided."""
    acks = Acks.of(rows)
    cuts = events.filter(pl.col("kind").cast(pl.String).is_in(_REDUCTIONS)).sort("t_ns")
    times, kinds = cuts["t_ns"].to_numpy() / _NS, cuts["kind"].cast(pl.String).to_list()
    found, undecided = [], 0
    maxima: tuple[tuple[float, float], ...] = ()
    for begin, end, kind in zip(times, times[1:], kinds, strict=False):
        first, last = np.searchsorted(acks.seconds, [begin, end])
        if kind != "loss_event" or first == 0:
            maxima = ()
            continue
        whole = acks.cwnd[first - 1]
        maxima = _next_maxima(whole, maxima)
        inside = np.arange(first, last)[acks.open[first:last]]
        if inside.size < _MIN_ACKS:
            continue
        if len(maxima) > 1:
            undecided += 1
            continue
        found.append(_fitted(acks, inside, whole, converging=maxima[0][0] < whole))
    return found, undecided


def _next_maxima(whole: float, former: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    """Ranges in which W_max may lie after a loss at a window of [whole, whole + 1), given those before it."""
    plain, converged = (whole, whole + 1), (CONVERGED * whole, CONVERGED * (whole + 1))
    if not former:
        return (plain, converged)
    below = any(whole < high for _, high in former)
    reached = any(whole + 1 > low for low, _ in former)
    return tuple(span for span, possible in ((plain, reached), (converged, below)) if possible)


def _fitted(acks: Acks, inside: np.ndarray, whole: float, *, converging: bool) -> Epoch:
    """The epoch with the hidden fraction of the window at the loss that fits best."""

    def at(fraction: float) -> Epoch:
        return _epoch(acks, inside, whole + fraction, converging=converging)

    middle = at(0.5)
    per_packet = float(np.mean(at(1.0).reference - at(0.0).reference))
    miss = float(np.median(middle.cwnd + 0.5 - middle.reference))
    return at(float(np.clip(0.5 + miss / max(per_packet, 0.1), 0.0, 1.0)))


def _epoch(acks: Acks, inside: np.ndarray, prior: float, *, converging: bool) -> Epoch:
    seconds = acks.seconds[inside] - acks.seconds[inside[0]]
    cwnd, start = acks.cwnd[inside], BETA * prior
    maximum = CONVERGED * prior if converging else prior
    k = np.cbrt((maximum - start) / C)
    # Half a packet stands for the fraction that the trace does not show.
    window = np.concatenate([[start], cwnd[:-1] + 0.5])
    share = np.diff(acks.acked[inside], prepend=acks.acked[inside[0]]) / window
    return Epoch(seconds, cwnd, C * (seconds - k) ** 3 + maximum, _reno_estimate(start, prior, share))


def _reno_estimate(start: float, prior: float, share: np.ndarray) -> np.ndarray:
    """W_est (RFC 9438, equation 4): alpha_cubic per window of ACKs, 1 once the window before the loss is reached."""
    grown = start + ALPHA * np.cumsum(share)
    reached = int(np.searchsorted(grown, prior))
    if reached < grown.size:
        grown[reached:] = grown[reached] + np.cumsum(share[reached:]) - share[reached]
    return grown
