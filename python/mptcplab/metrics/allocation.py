"""Max-min fair rates of a network given as capacities and paths: of whole connections, or of every subflow.

Max-min is lexicographic over connections, and a multipath connection may split its rate in any way. It is solved by
linear programs, each of which raises the smallest rate as far as possible and freezes the connections that cannot rise.
The proportionally fair allocation is in `proportional.py`; what a scenario's network is, in `ideals.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

# Relative size below which a dual value counts as zero.
_SLACK = 1e-7
# Rates below this part of the largest link are found in a unit of their own: the solver has a tolerance of 1e-7.
_SMALL = 1e-3

Key = TypeVar("Key", bound=Hashable)
Paths = Sequence[tuple[str, ...]]
# The paths of every connection as tuples of link positions.
Shape = tuple[tuple[tuple[int, ...], ...], ...]
# Groups of connections that a solver remembers: a study measures thousands of runs on few networks.
REMEMBERED = 4096


def max_min(capacities: Mapping[str, float], connections: Mapping[Key, Paths]) -> dict[Key, float]:
    """Max-min fair rate of every connection, in the unit of the capacities.

    `connections` gives each one the paths (tuples of link names) over which it may split.

    >>> rates = max_min({"a": 10.0, "b": 10.0}, {"mp": [("a",), ("b",)], "tcp": [("a",)]})
    >>> {name: round(rate, 6) for name, rate in rates.items()}
    {'mp': 10.0, 'tcp': 10.0}
    """
    return by_component(capacities, connections, _lexicographic)


def max_min_subflows(capacities: Mapping[str, float], connections: Mapping[Key, Paths]) -> dict[Key, tuple[float, ...]]:
    """Max-min fair rate of every path of every connection, with each subflow a flow of its own.

    This is what uncoupled subflows get that share fairly; the connection gets the sum.

    >>> rates = max_min_subflows({"a": 10.0, "b": 10.0}, {"mp": [("a",), ("b",)], "tcp": [("a",)]})
    >>> {name: [round(rate, 6) for rate in each] for name, each in rates.items()}
    {'mp': [5.0, 10.0], 'tcp': [5.0]}
    """
    rates = max_min(capacities, split(connections))
    return {name: tuple(rates[name, index] for index in range(len(paths))) for name, paths in connections.items()}


def split(connections: Mapping[Key, Paths]) -> dict[tuple[Key, int], Paths]:
    """Every path as a connection of its own, named by its connection and its position there."""
    return {(name, index): (path,) for name, paths in connections.items() for index, path in enumerate(paths)}


def by_component(
    capacities: Mapping[str, float],
    connections: Mapping[Key, Paths],
    solve: Callable[[tuple[float, ...], Shape, tuple[int, ...]], tuple[float, ...]],
) -> dict[Key, float]:
    """Solve every group of connections that share links on its own.

    Connections on the same paths have the same rate, which is computed once: `solve` takes the capacities of a group's
    links, all different paths of its connections, and how many are on each, and returns a rate for each.
    """
    rates: dict[Key, float] = {}
    for names in components(connections):
        links = sorted({link for name in names for path in connections[name] for link in path})
        index = {link: position for position, link in enumerate(links)}
        room = tuple(capacities[link] for link in links)
        shape = tuple(tuple(tuple(index[link] for link in path) for path in connections[name]) for name in names)
        alike = Counter(shape)
        found = dict(zip(alike, solve(room, tuple(alike), tuple(alike.values())), strict=True))
        rates.update((name, found[paths]) for name, paths in zip(names, shape, strict=True))
    return rates


def components(connections: Mapping[Key, Paths]) -> list[list[Key]]:
    """Connections grouped by shared links: groups do not influence one another."""
    parent = {name: name for name in connections}

    def root(name: Key) -> Key:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    owner: dict[str, Key] = {}
    for name, paths in connections.items():
        for path in paths:
            for link in path:
                parent[root(name)] = root(owner.setdefault(link, name))
    groups: dict[Key, list[Key]] = {}
    for name in connections:
        groups.setdefault(root(name), []).append(name)
    return list(groups.values())


@lru_cache(REMEMBERED)
def _lexicographic(room: tuple[float, ...], shape: Shape, counts: tuple[int, ...]) -> tuple[float, ...]:
    """Rates of each of so many connections with the same paths."""
    scale = max(room) or 1.0
    used = [link for path in shape[0] for link in path]
    if len(shape) == 1 and len(set(used)) == len(used):
        # On paths of their own: the solver would only take time to load.
        return (sum(min(room[link] / scale for link in path) for path in shape[0]) / counts[0] * scale,)
    return _iterated(room, shape, counts, scale)


def _iterated(room: tuple[float, ...], shape: Shape, counts: tuple[int, ...], scale: float) -> tuple[float, ...]:
    """Iterated linear program, in which `scale` is the unit of rates."""
    import numpy as np
    from scipy.optimize import linprog

    owners = [who for who, paths in enumerate(shape) for _ in paths]
    paths = [path for paths in shape for path in paths]
    usage = np.zeros((len(room), len(paths) + 1))
    for column, (who, path) in enumerate(zip(owners, paths, strict=True)):
        for link in path:
            usage[link, column] += counts[who]
    belongs = np.zeros((len(shape), len(paths) + 1))
    belongs[owners, range(len(paths))] = 1
    cost = np.zeros(len(paths) + 1)
    cost[-1] = -1.0
    capacity = np.array(room) / scale
    # What each connection would get without the others, at most.
    alone = [float(sum(min(capacity[list(path)]) for path in own)) for own in shape]
    frozen: dict[int, float] = {}
    while len(frozen) < len(shape):
        free = [who for who in range(len(shape)) if who not in frozen]
        most = min(alone[who] for who in free)
        if most == 0:
            frozen |= {who: 0.0 for who in free if alone[who] == 0}
            continue
        at_least = -belongs[free]
        at_least[:, -1] = 1.0
        # The solver's tolerance is absolute. No connection gets more than `most` in this round, so that the unit may be
        # as small, and links that could carry twice that of every path need not be larger.
        is_small = most < _SMALL
        unit = most if is_small else 1.0
        limits = np.minimum(capacity, 2 * usage.sum() * most) / unit if is_small else capacity
        solution = linprog(
            cost,
            A_ub=np.vstack([usage, at_least]),
            b_ub=np.concatenate([limits, np.zeros(len(free))]),
            A_eq=belongs[list(frozen)] if frozen else None,
            b_eq=[rate / unit for rate in frozen.values()] or None,
        )
        if not solution.success:
            raise ArithmeticError(f"max-min linear program failed: {solution.message}")
        # A positive dual value proves that the connection cannot rise; the duals of a round add up to 1.
        duals = -solution.ineqlin.marginals[len(room) :]
        stuck = [who for who, dual in zip(free, duals, strict=True) if dual > _SLACK]
        frozen |= dict.fromkeys(stuck or free, float(solution.x[-1]) * unit)
    return tuple(frozen[who] * scale for who in range(len(shape)))
