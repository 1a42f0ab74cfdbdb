"""The window algorithms as rules of a fluid: the increase per acknowledged packet and the decrease per loss.

Each rule is two small functions of the windows w, round-trip times tau (s), rates x = w / tau (packets/s), loss
probabilities p and packets counted between losses of all subflows of its connections. `c.sum` and `c.max` run over the
subflows of a connection, `c.n` is their number. With one subflow all are Reno.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mptcplab.engines.fluid.network import Array


@dataclass(frozen=True)
class Coupled:
    """State of all subflows of the connections that run one algorithm; the last axis is over subflows."""

    w: Array
    tau: Array
    x: Array
    p: Array
    # Packets between two losses, which is 1/p in equilibrium; 1 if the rule does not count them.
    interval: Array
    # Subflows of the connection that may send.
    n: Array
    active: Array
    # Position of the first subflow of each connection, and which connection each belongs to.
    starts: Array
    owner: Array
    params: dict[str, float | str] = field(default_factory=dict)

    def sum(self, values: Array) -> Array:
        """Sum over the connection, for each of its subflows."""
        return np.add.reduceat(values, self.starts, axis=-1)[..., self.owner]

    def max(self, values: Array) -> Array:
        """Maximum over the connection, for each of its subflows."""
        return np.maximum.reduceat(values, self.starts, axis=-1)[..., self.owner]


Formula = Callable[[Coupled], Array]


@dataclass(frozen=True)
class Rule:
    """One algorithm: its increase per acknowledged packet, its decrease per loss, and its least ssthresh."""

    increase: Formula
    decrease: Formula
    # With several subflows; with one it is 2.
    floor: float
    # Whether the decrease is a fraction of the sum of the windows, so that random losses spread the sum.
    of_sum: bool = False
    # Whether it counts packets between losses.
    counts: bool = False


def reno_increase(c: Coupled) -> Array:
    """1/w: Kelly, "Mathematical modelling of the Internet", 1999; Misra, Gong and Towsley, SIGCOMM 2000."""
    return 1.0 / c.w


def reno_decrease(c: Coupled) -> Array:
    """w/2, as Reno. Windows are whole packets and the remaining half is rounded down: 1/4 more on average."""
    return c.w / 2.0 + 0.25


def ewtcp_increase(c: Coupled) -> Array:
    """a/w, a = 1/sqrt(n), or 1/n^2 (`weight=fair`): Wischik et al., NSDI 2011, after Honda et al. 2009."""
    weight = c.params["weight"]
    powers = {"sqrt": -0.5, "fair": -2.0}
    found: Array = (c.n ** powers[weight] if weight in powers else np.where(c.n > 1, weight, 1.0)) / c.w
    return found


def coupled_increase(c: Coupled) -> Array:
    """1/W, W the sum of the windows: Kelly and Voice, CCR 35(2), 2005; Wischik et al., NSDI 2011."""
    return 1.0 / c.sum(c.w)


def coupled_decrease(c: Coupled) -> Array:
    """W/2, but at least one packet remains."""
    return np.minimum(c.sum(c.w) / 2.0, c.w - 1.0)


def semicoupled_increase(c: Coupled) -> Array:
    """min(a/W, 1/w): Wischik et al., NSDI 2011."""
    return np.where(c.n > 1, np.minimum(c.params["a"] / c.sum(c.w), 1.0 / c.w), 1.0 / c.w)


def lia_increase(c: Coupled) -> Array:
    """min(max w/tau^2 / X^2, 1/w), X the sum of the rates: RFC 6356, section 3.

    The fluid is that of Peng, Walid, Hwang and Low, "Multipath TCP: analysis, design, and implementation", ToN 24(1),
    2016.
    """
    found: Array = np.minimum(c.max(c.w / c.tau**2) / c.sum(c.x) ** 2, 1.0 / c.w)
    return found


# A subflow within this fraction of its connection's largest window, or quality, belongs in part to the largest: the
# rule is discontinuous, and an integrator cannot follow a jump.
_NEAR = 0.1


def olia_increase(c: Coupled) -> Array:
    """(w/tau^2) / X^2 + alpha/w, the best subflows being those with the largest l / tau^2.

    Source: Khalili, Gast, Popovic and Le Boudec, "MPTCP is not Pareto-optimal", ToN 21(5), 2013. alpha moves windows
    from the subflows with the largest window, M, to the best ones that are not in M, C: 1/(n |C|) and -1/(n |M|). Their
    fluid is a differential inclusion, with 1/p for the packets l between two losses. Here a subflow enters and leaves
    a set gradually (`_NEAR`), and l is the mean number of packets since the last loss: dl/dt = x (1 - p) - x p l, which
    rests at 1/p (the algorithm takes the previous interval if that was longer). Otherwise a queue that is full only
    for a moment would change the sets faster than a sender learns of any loss.
    """
    found: Array = c.w / c.tau**2 / c.sum(c.x) ** 2 + _olia_alpha(c) / c.w
    return found


def _olia_alpha(c: Coupled) -> Array:
    best = _is_largest(c, c.interval / c.tau**2)
    largest = _is_largest(c, c.w)
    collected = best * (1.0 - largest)
    towards = collected / np.maximum(c.sum(collected), 1e-12)
    away = largest / np.maximum(c.sum(largest), 1e-12)
    found: Array = c.max(collected) * (towards - away) / c.n
    return found


def _is_largest(c: Coupled, values: Array) -> Array:
    """Degree to which each is the largest of its connection: 1 for the largest, 0 from `_NEAR` below it."""
    values = values * c.active
    found: Array = c.active * np.clip(1.0 - (1.0 - values / np.maximum(c.max(values), 1e-300)) / _NEAR, 0.0, 1.0)
    return found


def balia_increase(c: Coupled) -> Array:
    """The step x / (tau X^2) (1 + alpha)/2 (4 + alpha)/5 with alpha = max x / x: Peng et al., ToN 24(1), 2016."""
    alpha = c.max(c.x) / c.x
    found: Array = c.x / (c.tau * c.sum(c.x) ** 2) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
    return found


def balia_decrease(c: Coupled) -> Array:
    """w/2 min(alpha, 3/2)."""
    found: Array = c.w / 2.0 * np.minimum(c.max(c.x) / c.x, 1.5)
    return found


RULES: dict[str, Rule] = {
    "reno": Rule(reno_increase, reno_decrease, 2.0),
    "ewtcp": Rule(ewtcp_increase, reno_decrease, 1.0),
    "coupled": Rule(coupled_increase, coupled_decrease, 1.0, of_sum=True),
    "semicoupled": Rule(semicoupled_increase, reno_decrease, 1.0),
    "lia": Rule(lia_increase, reno_decrease, 2.0),
    "olia": Rule(olia_increase, reno_decrease, 1.0, counts=True),
    "balia": Rule(balia_increase, balia_decrease, 1.0),
}

CUBIC = "cubic"


def modelled() -> list[str]:
    """Names of the algorithms with a published fluid model."""
    return sorted([*RULES, CUBIC])


def values(algorithm: dict[str, Any], choice: dict[str, Any]) -> dict[str, float | str]:
    """Parameters of a flow's algorithm by name, with defaults filled in; enumerated values as words."""
    found = {}
    for param in algorithm["params"]:
        raw = choice["params_raw"].get(param["name"], param["default"])
        words = {value: word for word, value in param["values"].items()}
        found[param["name"]] = words.get(raw, raw / param["scale"])
    return found
