"""Reduced versions of papers' scenarios, which a kernel can run in real time and which stay comparable when short.

None of the changes affects what limits the flows.
"""

from __future__ import annotations

from pathlib import Path

# By paper and scenario: keys to set in both engines. Links that never fill, because loss is what limits their flows, at
# a rate that one thread can move; fewer of the many flows that come and go; and files that outlast the run, because
# what a faster engine has behind it when the window begins would count against it.
_FILES = ("dumbbell-file", "dumbbell-file-beside-tcp", "disjoint-file")
_SETTINGS = {
    ("wischik2011", "rtt-mismatch"): {"links.wifi.rate": '"100 Mbit/s"', "links.3g.rate": '"100 Mbit/s"'},
    ("wischik2011", "three-losses"): {f"links.p{i}.rate": '"100 Mbit/s"' for i in (1, 2, 3)},
    **{("kushwah2024", name): {"flows.mp.traffic": '{ size = "200 MB" }'} for name in _FILES},
    ("wischik2011", "server"): {"flows.m.count": "2", "flows.ta.count": "2", "flows.tb.count": "3"},
}


def settings(scenario: Path) -> dict[str, str]:
    """Keys of a scenario and the values that reduce its load; none for most scenarios."""
    return _SETTINGS.get((scenario.parent.name, scenario.stem), {})
