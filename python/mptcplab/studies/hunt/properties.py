"""The properties whose violation is hunted for: the runs that each compares, and how much it is violated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.studies.hunt.network import AFTER, DURATION_S, MULTIPATH, WARMUP_S, Network, names_of_others
from mptcplab.study.values import CellValues, NotTestableError

# The runs of a network: the connection as it is, one TCP connection in its place on a path (TCP), the connection with
# its own algorithm on one path (OWN), and the network that does not change, but is from the start as it is in the end.
AS_IS, CHANGED = "as it is", "changed from the start"
TCP, OWN = "one TCP on path {}", "on path {} alone"
PATHS = (1, 2)

Measured = Mapping[str, CellValues]
# A value per repetition; at most 0 where the property holds. Raises `NotTestableError` where a run does not count.
Score = Callable[[Network, Measured], np.ndarray]


@dataclass(frozen=True)
class Property:
    """A property: what it asks for, and from which score on it is said to be violated.

    `how_much` completes the sentence that says how much: "61 % ...".
    """

    name: str
    statement: str
    how_much: str
    bound: float
    runs: tuple[str, ...]
    score: Score
    # Which networks are searched: see `network.network`.
    shared: bool = False
    changes: bool = False
    buffer: bool = False


def _of_flow(measured: Measured, run: str, metric: str, flow: str = MULTIPATH, span: str = "") -> np.ndarray:
    found = measured[run].get(metric, flow=flow, span=span)
    missing = int(np.isnan(found).sum())
    # A connection of which nothing arrives has the value 0. Without a value, a run does not count: to take it for 0
    # would show a violation that nobody measured.
    if missing:
        raise NotTestableError(f"{run}: {metric} of {flow} is missing in {missing} of {found.size} repetitions")
    return found


def _goodput(measured: Measured, run: str, flow: str = MULTIPATH, span: str = "") -> np.ndarray:
    return _of_flow(measured, run, "goodput", flow, span)


def _largest(rows: Sequence[np.ndarray]) -> np.ndarray:
    """The row, of one path or subflow, with the largest mean over the repetitions.

    The mean of the largest values of all repetitions would be larger, even where the rows differ by chance only.
    """
    return rows[int(np.argmax([row.mean() for row in rows]))]


def _best(measured: Measured, kind: str) -> np.ndarray:
    """The goodput on the path on which it is best."""
    return _largest([_goodput(measured, kind.format(path)) for path in PATHS])


def _takes_more(_: Network, measured: Measured) -> np.ndarray:
    return np.asarray(_goodput(measured, AS_IS) / _least(_best(measured, TCP)) - 1)


def _gets_less(_: Network, measured: Measured) -> np.ndarray:
    return np.asarray(1 - _goodput(measured, AS_IS) / _least(_best(measured, TCP)))


def _loses_share(network: Network, measured: Measured) -> np.ndarray:
    """The part that is missing on one path alone, on the worse of those on which there are other connections."""
    missing = [
        1 - _goodput(measured, OWN.format(number)) / _least(_goodput(measured, TCP.format(number)))
        for number, path in zip(PATHS, network.paths(), strict=True)
        if any(network.links[link].others for link in path)
    ]
    return _largest(missing) if missing else np.zeros_like(_goodput(measured, OWN.format(1)))


def _harms(network: Network, measured: Measured) -> np.ndarray:
    """The part that others lose beside two paths instead of one, minus five times what the connection gains."""
    others = names_of_others(network)
    if not others:
        return np.zeros_like(_goodput(measured, AS_IS))

    def of_others(run: str) -> np.ndarray:
        return np.asarray(np.sum([_goodput(measured, run, name) for name in others], axis=0))

    # Where the connection would have used the better of its paths only.
    alone = [OWN.format(path) for path in PATHS]
    best = alone[int(np.argmax([_goodput(measured, run).mean() for run in alone]))]
    lost = 1 - of_others(AS_IS) / _least(of_others(best))
    gained = _goodput(measured, AS_IS) / _least(_goodput(measured, best)) - 1
    return np.asarray(lost - 5 * np.maximum(gained, 0))


def _reacts_slowly(_: Network, measured: Measured) -> np.ndarray:
    return np.asarray(1 - _goodput(measured, AS_IS, span=AFTER) / _least(_goodput(measured, CHANGED, span=AFTER)))


def _oscillates(_: Network, measured: Measured) -> np.ndarray:
    """The coefficient of variation of the one-second rates, minus that of the less steady TCP in its place."""

    def variation(run: str) -> np.ndarray:
        return np.asarray(_of_flow(measured, run, "std_1s") / _least(_goodput(measured, run)))

    return np.asarray(variation(AS_IS) - _largest([variation(TCP.format(path)) for path in PATHS]))


def _is_idle(_: Network, measured: Measured) -> np.ndarray:
    """The part of the time that a subflow waits for timeouts, minus the same of one TCP on the worse of the paths."""

    def waits(run: str) -> np.ndarray:
        # The connection has a value where the run counts; then a subflow without one does not exist, as in one TCP.
        _of_flow(measured, run, "rto_time")
        lost = [measured[run].get("rto_time", flow=MULTIPATH, subflow=f"sf{number}") for number in PATHS]
        return _largest(list(np.nan_to_num(lost))) / (DURATION_S - WARMUP_S)

    return np.asarray(waits(AS_IS) - _largest([waits(TCP.format(path)) for path in PATHS]))


def _is_blocked(_: Network, measured: Measured) -> np.ndarray:
    return np.asarray(1 - _goodput(measured, AS_IS) / _least(_best(measured, OWN)))


def _least(values: np.ndarray) -> np.ndarray:
    """Against division by zero: a kilobit per second."""
    return np.asarray(np.maximum(values, 1e-3))


_TCP = (AS_IS, *(TCP.format(path) for path in PATHS))
_OWN = (AS_IS, *(OWN.format(path) for path in PATHS))
_ALONE = tuple(kind.format(path) for kind in (OWN, TCP) for path in PATHS)

PROPERTIES: Mapping[str, Property] = {
    one.name: one
    for one in (
        Property(
            "takes-more",
            "At a shared bottleneck, the connection takes no more than one TCP in its place would.",
            "more than one TCP in its place",
            0.3,
            _TCP,
            _takes_more,
            shared=True,
        ),
        Property(
            "gets-less",
            "The connection gets at least what one TCP in its place would get on the best of its paths.",
            "less than one TCP on the best path",
            0.2,
            _TCP,
            _gets_less,
        ),
        Property(
            "starves",
            "The connection gets at least a third of what one TCP in its place would get on the best of its paths.",
            "less than one TCP on the best path",
            2 / 3,
            _TCP,
            _gets_less,
        ),
        Property(
            "loses-share",
            "On one path alone, beside other connections, the connection gets at least what one TCP in its place "
            "would get.",
            "less than one TCP in its place, on one path alone",
            0.2,
            _ALONE,
            _loses_share,
        ),
        Property(
            "harms",
            "Where the second path gains the connection nothing, it takes nothing from others "
            "(Pareto; five times the connection's gain counts against what others lose).",
            "of their goodput is lost to others, without a gain",
            0.1,
            _OWN,
            _harms,
        ),
        Property(
            "slow-reaction",
            "From two seconds after a change, the connection gets what it would get had nothing changed, and the "
            "network been so from the start.",
            "less than without a change",
            0.3,
            (AS_IS, CHANGED),
            _reacts_slowly,
            changes=True,
        ),
        Property(
            "oscillates",
            "The goodput per second varies no more than that of one TCP in its place (coefficient of variation).",
            "more variation than one TCP in its place",
            0.2,
            _TCP,
            _oscillates,
        ),
        Property(
            "idle",
            "A subflow waits no longer for timeouts than one TCP in its place would (part of the time).",
            "of the time spent waiting for timeouts",
            0.2,
            _TCP,
            _is_idle,
        ),
        Property(
            "blocking",
            "With its receive buffer, the connection gets at least what it would get on the best of its paths alone.",
            "less than on the best path alone, with the same receive buffer",
            0.2,
            _OWN,
            _is_blocked,
            buffer=True,
        ),
    )
}


def property_of(name: str) -> Property:
    """The property with a name."""
    if name in PROPERTIES:
        return PROPERTIES[name]
    close = get_close_matches(name, PROPERTIES, n=1)
    hint = (
        f"did you mean {close[0]!r}? There are {', '.join(PROPERTIES)}" if close else f"one of {', '.join(PROPERTIES)}"
    )
    raise MptcplabError(with_hint(f"no such property: {name!r}", hint))


def chosen(names: Sequence[str]) -> list[Property]:
    """The properties with some names; all for none."""
    return [property_of(name) for name in names] or list(PROPERTIES.values())
