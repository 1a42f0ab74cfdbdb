"""CUBIC as a fluid: the last maximum and the time since the last loss are the state, the window follows from them.

Source: Vardoyan, Hollot and Towsley, "Towards stability analysis of data transport mechanisms: a fluid model and an
application", INFOCOM 2018, without its delays: with losses at rate x p,

    dW_max/dt = -(W_max - w) x p        ds/dt = 1 - s x p        w = C (s - K)^3 + W_max,  K = cbrt(W_max (1 - beta)/C).

The Reno-friendly window of RFC 9438, section 4.3, is a separate AIMD fluid; the larger of the two windows counts. It
grows by a = 3 (1 - beta)/(1 + beta) per round trip, and by 1 once it exceeds the window before the last loss. Losses
are random: the probability that it gets there before the next loss is exp(-(1 - beta) w^2 p / a).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mptcplab.engines.fluid.network import Array, spread_of


@dataclass(frozen=True)
class Cubic:
    """Parameters of the subflows that run CUBIC: C (packets/s^3), beta, both an array over them."""

    c: Array
    beta: Array

    def window(self, estimate: Array, maximum: Array, since_s: Array) -> Array:
        """The window in packets from the Reno-friendly estimate, the last maximum and the time since the last loss."""
        curve = self.c * (since_s - self.climb_s(maximum)) ** 3 + maximum
        found: Array = np.maximum(np.maximum(curve, estimate), 1.0)
        return found

    def climb_s(self, maximum: Array) -> Array:
        """K: the time in which the window returns to the last maximum."""
        found: Array = np.cbrt(np.maximum(maximum, 0.0) * (1.0 - self.beta) / self.c)
        return found

    def growth(
        self, window: Array, state: tuple[Array, Array, Array], loss: Array, acked: Array, lost: Array
    ) -> tuple[Array, Array, Array]:
        """Derivatives of (estimate, maximum, since_s).

        `loss` is the probability, `acked` and `lost` are packets per second. A loss reduces the estimate to beta w. It
        hits larger windows more often, as in `network.spread`.
        """
        estimate, maximum, since_s = state
        spread = spread_of(self.beta)
        slow = 3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        # Losses hit windows that are larger than the mean by their spread.
        back = (1.0 - self.beta) * spread * window**2 * loss / slow
        gain = slow + (1.0 - slow) * np.exp(-back)
        fall = (estimate - self.beta * window) * spread
        return gain * acked / window - fall * lost, -(maximum - window) * lost, 1.0 - since_s * lost
