"""What the socket of an MPTCP connection shows of itself, to iperf3 for example, which knows nothing of subflows.

Only the kernel engines have such sockets. They are read once per second, and values of the whole run count.
"""

from __future__ import annotations

import polars as pl

from mptcplab.metrics.registry import metric
from mptcplab.metrics.window import FLOW, Window


@metric("iperf_cwnd_range", "Range of the socket's cwnd", "kB", ("flow",), digits=1)
def iperf_cwnd_range(window: Window) -> pl.DataFrame:
    """Largest minus smallest congestion window that the MPTCP connection's own socket shows (1 kB is 1000 bytes).

    This is the `Cwnd` that iperf3 prints each second. Kernel engines only.
    """
    shown = _shown(window, "socket_cwnd")
    return shown.group_by(FLOW, maintain_order=True).agg(value=(pl.col("value").max() - pl.col("value").min()) * 1e-3)


@metric("iperf_retr", "Retransmissions of the socket", "packets", ("flow",), digits=1)
def iperf_retr(window: Window) -> pl.DataFrame:
    """Retransmissions that the MPTCP connection's own socket shows at the end of the run.

    This is the sum of the `Retr` that iperf3 prints each second. Kernel engines only.
    """
    return _shown(window, "socket_retx").group_by(FLOW, maintain_order=True).agg(pl.col("value").max())


def _shown(window: Window, kind: str) -> pl.DataFrame:
    """run, flow and value of what sockets showed."""
    return window.events(kind).select("run", "flow", pl.col("value").cast(pl.Int64))
