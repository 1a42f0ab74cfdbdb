"""The fluid engine: the published differential equations of window algorithms on a scenario's graph.

It answers in a fraction of a second what the equations say: windows, rates and losses over time, and where they come
to rest. docs/fluid.md has the equations, their sources and their limits.
"""

from __future__ import annotations

from mptcplab.fluid.engine import run

__all__ = ["run"]
