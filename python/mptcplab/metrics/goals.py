"""The three design goals of RFC 6356 (section 1) as predicates on measured numbers, each with its margin.

The functions take means over simulated runs, and raise `MptcplabError` for one that is not a number. A margin is a
fraction of the goal's reference, positive if the goal is met; it is None if the goal asks for nothing.

With e the tolerance, REF-TCP(r) the same scenario with the multipath connection replaced by one TCP on path r:

1. improve: goodput(mp) >= (1 - e) max over r of goodput(REF-TCP(r));
2. do no harm: for every path r and every competitor c behind the bottleneck of r,
   goodput(c beside mp) >= (1 - e) goodput(c in REF-TCP(r));
3. balance congestion: where the largest loss of mp's bottlenecks exceeds 1.5 times the smallest, mp must not load the
   worst bottleneck more than uncoupled Reno does, and goals 1 and 2 must be met.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mptcplab.errors import MptcplabError, with_hint

_T = TypeVar("_T")

# The names of the goals.
IMPROVE, DO_NO_HARM, BALANCE = "improve", "do no harm", "balance"
TOLERANCE = 0.05
# Losses closer together than this factor count as balanced.
IMBALANCE = 1.5


@dataclass(frozen=True)
class GoalResult:
    """Whether a goal is met, and by which margin.

    `margin` is a fraction of the goal's reference (0.1: a tenth of it), at least 0 exactly if the goal is met, and None
    if it asks for nothing (then it is met). `text` says in one line what decided.
    """

    name: str
    met: bool
    margin: float | None
    text: str


@dataclass(frozen=True)
class Balance(GoalResult):
    """The result of goal 3 and its parts.

    `cbi` is the smallest loss over the largest (1: balanced; None: nothing was lost, or there is one bottleneck);
    `worst` is the bottleneck with the largest loss; `shift` is the fraction of uncoupled Reno's load that was moved
    away from it.
    """

    cbi: float | None
    worst: str | None
    shift: float | None


def improve(goodput: float, single_paths: Mapping[str, float], tolerance: float = TOLERANCE) -> GoalResult:
    """Goal 1: the multipath flow gets at least what one TCP would get on the best of its paths.

    `goodput` is that of the multipath flow, `single_paths` that of the TCP which takes its place, by path; all in one
    unit. The margin is goodput / best - (1 - tolerance).

    >>> improve(9.7, {"wifi": 10.0, "lte": 4.0}).text
    '0.97 of one TCP on wifi'
    """
    if not single_paths:
        raise MptcplabError(with_hint("goal 1 needs the goodput of one TCP on each path: none given", "run REF-TCP"))
    _require_number(goodput, "goal 1: goodput of the multipath flow")
    for path, single in single_paths.items():
        _require_number(single, f"goal 1: goodput of one TCP on {path!r}")
    best = max(single_paths, key=lambda path: single_paths[path])
    if single_paths[best] <= 0:
        return GoalResult(IMPROVE, True, None, "one TCP gets nothing on any path")
    part = goodput / single_paths[best]
    return _result(IMPROVE, part - (1 - tolerance), f"{part:.2f} of one TCP on {best}")


def do_no_harm(
    beside_mp: Mapping[str, float],
    beside_tcp: Mapping[str, Mapping[str, float]],
    competitors: Mapping[str, Collection[str]],
    tolerance: float = TOLERANCE,
) -> GoalResult:
    """Goal 2: no competitor gets less than beside one TCP on any of the paths that lead through its bottleneck.

    `beside_mp` is the goodput of every competitor beside the multipath flow; `beside_tcp` by path r that of every
    competitor in REF-TCP(r); `competitors` by path the flows that share a bottleneck with it. The margin is the
    smallest goodput(beside mp) / goodput(beside TCP) - (1 - tolerance). A competitor that gets nothing beside one
    TCP cannot be harmed and does not count.

    >>> do_no_harm({"x": 3.0, "y": 6.0}, {"a": {"x": 4.0, "y": 9.0}, "b": {"x": 9.0, "y": 6.0}},
    ...            {"a": ["x"], "b": ["y"]}).text
    'x gets 0.75 of what one TCP on a leaves it'
    """
    parts = []
    for path, names in competitors.items():
        alone = _known(beside_tcp, path, "goal 2: REF-TCP of path")
        for name in names:
            reference = _number(alone, name, f"goal 2: REF-TCP({path}), goodput of competitor")
            if reference > 0:
                parts.append((_number(beside_mp, name, "goal 2: goodput of competitor") / reference, name, path))
    if not parts:
        return GoalResult(DO_NO_HARM, True, None, "no competitor that could be harmed")
    part, name, path = min(parts)
    return _result(DO_NO_HARM, part - (1 - tolerance), f"{name} gets {part:.2f} of what one TCP on {path} leaves it")


def balance(
    losses: Mapping[str, float],
    loads: Mapping[str, float],
    uncoupled_loads: Mapping[str, float],
    others: Sequence[GoalResult],
) -> Balance:
    """Goal 3: congestion is moved away from the worst bottleneck, at least compared with uncoupled Reno.

    `losses` is the loss of each bottleneck of the multipath flow, `loads` the flow's throughput there and
    `uncoupled_loads` the same with uncoupled Reno, all by link; `others` are the results of goals 1 and 2. It asks
    for nothing where the largest loss is at most 1.5 times the smallest. The margin is the shift
    1 - load / uncoupled load on the worst bottleneck, or the margin of goal 1 or 2 where that is smaller.

    >>> balance({"l1": 0.02, "l2": 0.01}, {"l1": 3.0, "l2": 9.0}, {"l1": 4.0, "l2": 6.0}, []).text
    'l1 loses most (balance 0.50) and carries 0.75 of the uncoupled load'
    """
    for link, loss in losses.items():
        _require_number(loss, f"goal 3: loss of link {link!r}")
    worst = max(losses, key=lambda link: losses[link], default=None)
    cbi = None
    if worst is not None and len(losses) > 1 and losses[worst] > 0:
        cbi = min(losses.values()) / losses[worst]
    if worst is None or cbi is None or losses[worst] <= IMBALANCE * min(losses.values()):
        return Balance(BALANCE, True, None, "no bottleneck loses clearly more than another", cbi, worst, None)
    reference = _number(uncoupled_loads, worst, "goal 3: uncoupled load of link")
    if reference <= 0:
        return Balance(BALANCE, True, None, f"uncoupled Reno leaves {worst} alone", cbi, worst, None)
    part = _number(loads, worst, "goal 3: load of link") / reference
    shift = 1 - part
    text = f"{worst} loses most (balance {cbi:.2f}) and carries {part:.2f} of the uncoupled load"
    failed = [other for other in others if not other.met]
    if failed:
        text += f"; {failed[0].name} fails"
    margin = min([shift, *(other.margin for other in others if other.margin is not None)])
    return Balance(BALANCE, margin >= 0, margin, text, cbi, worst, shift)


def _result(name: str, margin: float, text: str) -> GoalResult:
    return GoalResult(name, margin >= 0, margin, text)


def _number(values: Mapping[str, float], key: str, what: str) -> float:
    found = _known(values, key, what)
    _require_number(found, f"{what} {key!r}")
    return found


def _require_number(value: float, what: str) -> None:
    """Refuse NaN: every comparison with it is false, so that a goal would seem to ask for nothing."""
    if math.isnan(value):
        raise MptcplabError(with_hint(f"{what} is not a number", "give the mean over runs that count"))


def _known(values: Mapping[str, _T], key: str, what: str) -> _T:
    try:
        return values[key]
    except KeyError:
        have = ", ".join(map(repr, values)) or "nothing"
        raise MptcplabError(with_hint(f"{what} {key!r} is missing", f"given were: {have}")) from None
