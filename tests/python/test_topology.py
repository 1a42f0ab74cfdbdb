"""What a resolved scenario says about sizes of packets, on each engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mptcplab
from mptcplab.engines.fluid.graph import Graph
from mptcplab.study.cell import resolved_runs
from mptcplab.trace.topology import Topology

SCENARIO = """\
duration = "10 s"
cc = "lia"
links.a = { from = "S", to = "D", rate = "7 Mbit/s", delay = "3 ms" }
links.b = { from = "S", to = "D", rate = "5 Mbit/s", delay = "9 ms" }
[flows.mp]
subflows = [{ path = ["a"] }, { path = ["b"] }]
[flows.like]
like = "linux-6.18"
mss = "1000 bytes"
subflows = [{ path = ["b"] }, { path = ["a"] }]
[flows.tcp]
path = ["a"]
mss = "900 bytes"
"""


@pytest.fixture
def resolved(tmp_path: Path) -> dict[str, object]:
    path = tmp_path / "sizes.toml"
    path.write_text(SCENARIO)
    return resolved_runs(path, mptcplab.Overrides())[0]


@pytest.mark.parametrize(
    ("engine", "sizes"),
    [("sim", [1500, 1076, 952]), ("fluid", [1500, 1076, 952]), ("kernel", [1504, 1076, 952])],
)
def test_packets_are_as_long_as_the_options_of_the_engine(
    resolved: dict[str, object], engine: str, sizes: list[int]
) -> None:
    topology = Topology.from_json(json.dumps(resolved), engine)
    assert [flow.frame_bytes for flow in topology.flows] == sizes


def test_the_equations_have_the_sizes_of_the_simulator(resolved: dict[str, object]) -> None:
    graph = Graph.of(resolved)
    assert [(s.data_bytes, s.ack_bytes) for s in graph.subflows] == [(1500, 60)] * 2 + [(1076, 64)] * 2 + [(952, 52)]
