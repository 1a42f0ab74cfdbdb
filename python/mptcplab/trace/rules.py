"""Whether the ACK profile and the algorithms of a run belong to the same kernel."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache

from mptcplab import _core

# ACK profiles of the kernels that the out-of-tree MPTCP was a patch of.
OUT_OF_TREE_PROFILES = ("linux-legacy", "linux-pre4")
DIALECT = "dialect"


def remarks(runs: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each out-of-tree profile that counts ACKs in runs whose algorithms follow another kernel's rule.

    `runs` are pairs of an ACK profile and the algorithm of every subflow, as the run table has it.
    """
    mixed: dict[str, list[str]] = {}
    for profile, subflow_cc in runs:
        if profile in OUT_OF_TREE_PROFILES:
            names = mixed.setdefault(profile, [])
            names += [name for name in _in_spec(subflow_cc) if name not in names]
    return [
        f"profile {profile} counts ACKs as the out-of-tree kernel did, but {', '.join(names)} ran by the rule of the "
        f"source; {names[0]}({DIALECT}=mptcp-0.95) is that kernel's"
        for profile, names in mixed.items()
        if names
    ]


def _in_spec(subflow_cc: str) -> list[str]:
    """Algorithms with a dialect that connections with several subflows run by the rule of the source; sorted."""
    subflows = json.loads(subflow_cc)
    count = Counter(one["flow"] for one in subflows)
    coupled = (one for one in subflows if count[one["flow"]] > 1 and one["cc"] in algorithms_with_dialect())
    return sorted({one["cc"] for one in coupled if not one["params"].get(DIALECT)})


@cache
def algorithms_with_dialect() -> frozenset[str]:
    """Algorithms of this build whose rule the out-of-tree kernel had in a variant."""
    algorithms = json.loads(_core.algorithms_json())
    return frozenset(one["name"] for one in algorithms if any(part["name"] == DIALECT for part in one["params"]))
