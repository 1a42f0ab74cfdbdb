"""Models of the network: filling and dropping of queues, delayed ACKs, and the effect of random losses on mean windows.

Queues are in bytes, rates in bytes per second, probabilities per packet.
"""

from __future__ import annotations

from functools import cache

import numpy as np

Array = np.ndarray

# A queue begins to drop within so many bytes of its end, or in all of it if it has fewer, because an integrator cannot
# follow a step. This is a full packet on Ethernet.
EDGE_BYTES = 1514.0
# Time constant with which the integrator's error in an empty queue disappears.
_DRAIN_S = 1e-3
# The largest drop probability: log(1 - p) has to be finite.
_MOST = 0.999_999
# Factors of the product in `spread`: the rest differs from 1 by less than rounding for `beta` up to 0.95.
_FACTORS = 400


def drop_tail(load: Array, capacity: Array, queue: Array, room: Array) -> Array:
    """Share of a load that a drop-tail queue drops: the excess (y - c)+ / y if it is full, else nothing.

    Source: the loss function of a fluid through a full buffer, as in Raina, Towsley and Wischik, "Part II: Control
    theory for buffer sizing", CCR 35(3), 2005 (their case of large buffers).

    >>> round(float(drop_tail(np.array(125.0), np.array(100.0), np.array(9e4), np.array(9e4))), 6)
    0.2
    """
    fullness = np.clip((queue - room) / np.minimum(EDGE_BYTES, room) + 1.0, 0.0, 1.0)
    excess = np.maximum(0.0, 1.0 - capacity / np.maximum(load, capacity))
    found: Array = np.minimum(fullness * excess, _MOST)
    return found


def queue_growth(admitted: Array, capacity: Array, queue: Array) -> Array:
    """dq/dt = y (1 - p) - c, and an empty queue stays empty.

    Source: Misra, Gong and Towsley, "Fluid-based analysis of a network of AQM routers", SIGCOMM 2000.
    """
    found: Array = np.maximum(admitted - capacity, -queue / _DRAIN_S)
    return found


def ack_wait(window_pkts: Array, rtt_s: Array, timer_s: float) -> Array:
    """Mean time that delayed ACKs add to a round trip.

    Of two packets the first waits for the second, at most as long as the timer; a window of one packet always waits for
    the timer. Source: RFC 5681, section 4.2, and Linux' timer of 40 ms. The wait reduces the packet rate:
    d = f (t + d) / w with f the fraction that waits, so d = t f / (w - f).
    """
    waiting = np.maximum(0.5, 1.0 / np.maximum(window_pkts, 1.0))
    apart = rtt_s * waiting / np.maximum(window_pkts - waiting, 1e-9)
    found: Array = np.minimum(waiting * timer_s, apart)
    return found


@cache
def spread(beta: float) -> float:
    """E[w^2] / E[w]^2 of a window that grows linearly and is multiplied by `beta` at random losses.

    A loss rate x p and a decrease in proportion to w make the mean decrease proportional to E[w^2], which the usual
    equations replace by E[w]^2: that gives sqrt(2/p) where the mean is 1.31/sqrt(p). With this factor they give the
    mean itself. Source: Ott, Kemperman and Mathis, "The stationary behavior of ideal TCP congestion avoidance", 1996;
    for any `beta` Guillemin, Robert and Zwart, "AIMD algorithms and exponential functionals", 2004: y = w^2 / 2 grows
    by one per packet and keeps `beta`^2, so its moments obey M(s - 1) = p (1 - beta^2s) M(s) / s with M(0) = 1, and
    the mean window is sqrt(2) / M(-1/2).

    >>> round((2 / spread(0.5)) ** 0.5, 4)
    1.3098
    """
    powers = beta ** np.arange(1, 2 * _FACTORS + 1)
    inverse = np.sqrt(np.pi) * np.prod((1.0 - powers[0::2]) / (1.0 - powers[1::2]))
    return float(inverse**2 / (2.0 * (1.0 - beta)))


_BETAS = np.linspace(0.25, 0.95, 36)


def spread_of(beta: Array) -> Array:
    """`spread` for an array of values, interpolated."""
    found: Array = np.interp(beta, _BETAS, _table())
    return found


@cache
def _table() -> Array:
    return np.array([spread(round(float(beta), 6)) for beta in _BETAS])
