"""Reduced versions of papers' scenarios, which a kernel can run in real time, or a machine in less than a day.

None of the changes affects what limits the flows: where links fill, their queues shrink with their rates.
"""

from __future__ import annotations

from pathlib import Path

# By paper and scenario: keys to set in both engines. Links that never fill, because loss is what limits their flows, at
# a rate that one thread can move; fewer of the many flows that come and go; a fifth of the rate of the links that they
# fill, and of the queues; no waiting for late flows; and files that outlast the run, because what a faster engine has
# behind it when the window begins would count against it.
_FILES = ("dumbbell-file", "dumbbell-file-beside-tcp", "disjoint-file")
_FIFTH = {"rate": '"20 Mbit/s"', "queue": '"33 packets"'}
_SLOW = {f"links.L{i}.{key}": value for i in (1, 2) for key, value in _FIFTH.items()}
_LEVELS = '{ levels = [{ rate = "2 / s", lasts = "6 s" }, { rate = "12 / s", lasts = "6 s" }] }'
_SETTINGS = {
    ("wischik2011", "rtt-mismatch"): {"links.wifi.rate": '"100 Mbit/s"', "links.3g.rate": '"100 Mbit/s"'},
    ("wischik2011", "three-losses"): {f"links.p{i}.rate": '"100 Mbit/s"' for i in (1, 2, 3)},
    **{("kushwah2024", name): {"flows.mp.traffic": '{ size = "200 MB" }'} for name in _FILES},
    ("wischik2011", "server"): _SLOW
    | {"flows.m.count": "2", "flows.ta.count": "2", "flows.tb.count": "3", "flows.m.start": '"uniform(2 s, 3 s)"'},
    ("wischik2011", "poisson"): _SLOW | {"flows.short.traffic.arrivals": _LEVELS},
}


def settings(scenario: Path) -> dict[str, str]:
    """Keys of a scenario and the values that reduce its load; none for most scenarios."""
    return _SETTINGS.get((scenario.parent.name, scenario.stem), {})
