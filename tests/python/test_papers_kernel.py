"""Every experiment's scenario that the kernel engine can run, in a short version, on real sockets."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from kernel_program import need_root, program
from tiny_paper import one_experiment

import mptcplab
from mptcplab.errors import MptcplabError, UnfinishedError
from mptcplab.studies.agreement import reduced
from mptcplab.studies.papers import catalog

# Flows that start late in the paper start at once here, a little apart.
AT_ONCE = {
    "scalable": {f"flows.tcp{i}": (f"{i / 10:g} s", "1.9 s") for i in range(2, 6)},
    "server": {"flows.m": ("0 s", None), "flows.ta": ("1 s", None), "flows.tb": ("1.1 s", None)},
    "static": {"flows.mp": ("0.1 s", None)},
    "static-video": {"flows.mp": ("0.1 s", None)},
    "moving": {"flows.mp": ("0.1 s", None)},
    "moving-video": {"flows.mp": ("0.1 s", None)},
}
SECONDS = 2.0
AT_A_TIME = 4
# A lost SYN is sent again after one second and then after two, and a busy machine is late with all of it.
PATIENT_SECONDS = 12.0
SILENT = "flows without data"

pytestmark = pytest.mark.kernel


def scenarios() -> list[Path]:
    return sorted({experiment.scenario for experiment in catalog.load().experiments.values()})


def short(scenario: Path, seconds: float) -> mptcplab.Results:
    settings = {"tcp.send_jitter": '"0 s"', "duration": f'"{seconds:g} s"', "sample": '"100 ms"'}
    settings |= reduced.settings(scenario)
    if "\nwarmup" in scenario.read_text():
        settings["warmup"] = '"0.5 s"'
    for flow, (start, stop) in AT_ONCE.get(scenario.stem, {}).items():
        settings[f"{flow}.start"] = f'"{start}"'
        if stop is not None:
            settings[f"{flow}.stop"] = f'"{stop}"'
    fixed = "\ncc = " not in scenario.read_text().partition("[links")[0]
    return mptcplab.run(scenario, cc=None if fixed else "lia", reps=1, engine="kernel", settings=settings)


def outcome(scenario: Path, seconds: float = SECONDS) -> str:
    """What is wrong with a scenario's run on the kernel; empty if every connection carried data as it should."""
    try:
        results = short(scenario, seconds)
    except UnfinishedError as error:
        return f"ended early: {error}"
    except MptcplabError as error:
        return f"refused: {error}"
    silent = results.metrics(["pps"]).filter(pl.col("subflow").is_null() & (pl.col("value").fill_null(0) <= 0))
    if not silent.is_empty():
        return f"{SILENT}: {silent['flow'].to_list()}"
    asked = {flow.name: flow.cc for flow in results.topologies[0].connections}
    for entry in json.loads(results.runs["subflow_cc"][0]):
        if entry["cc"] != asked[entry["flow"]].partition("(")[0]:
            return f"{entry['flow']}/{entry['subflow']} ran {entry['cc']}, not {asked[entry['flow']]}"
    shown = set(results.metrics(["iperf_retr"])["flow"])
    own = {flow.name for flow in results.topologies[0].connections if flow.transport == "mptcp" and flow.is_greedy}
    return "" if shown == own else f"sockets of {sorted(shown)}, not of {sorted(own)}"


def test_the_papers_scenarios_run_on_the_kernel() -> None:
    program()
    need_root()
    chosen = scenarios()
    # Runs at once do not disturb each other but for their timing, which nothing here is about.
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = dict(zip(chosen, pool.map(outcome, chosen), strict=True))
    again = {path: outcome(path, PATIENT_SECONDS) for path, text in found.items() if text.startswith(SILENT)}
    assert not {path.stem: text for path, text in (found | again).items() if text}


def test_a_paper_is_reproduced_on_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program()
    need_root()
    judged = one_experiment("kernel", tmp_path, monkeypatch)
    # Either the run counts and both last hops carried data, or its emulation was late and nothing is concluded.
    reason = judged.findings[0].reason
    assert judged.verdict == "holds" or "missing" in reason or "no value" in reason
