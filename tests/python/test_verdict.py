"""What counts as a failure of the tests on distribution kernels (tests/kernels/verdict.py), on simulated traces."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import polars as pl
import pytest

import mptcplab

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/kernels"))

import run as kernels_test  # noqa: E402
import verdict  # noqa: E402

TABLES = ("run", "flow", "subflow", "event")
KERNEL = "6.1.0-50-cloud-amd64"


@pytest.fixture(scope="module")
def good() -> dict[str, pl.DataFrame]:
    """The tables of a transfer with LIA, as if the kernel engine had made them."""
    results = mptcplab.run(ROOT / "tests/kernels/two-paths.toml", cc="lia")
    tables = {table: pl.read_parquet(results.directory / f"{table}.parquet") for table in TABLES}
    said = {"engine": "kernel", "status": "complete", "status_reason": ""}
    tables["run"] = tables["run"].with_columns(**{column: pl.lit(value) for column, value in said.items()})
    return tables


def problems(good: dict[str, pl.DataFrame], **changed: pl.DataFrame) -> str:
    return "\n".join(verdict.judge_trace(good | changed, "lia").problems)


def test_a_good_transfer_passes_and_shows_its_goodput(good: dict[str, pl.DataFrame]) -> None:
    outcome = verdict.judge_trace(good, "lia")

    assert outcome.problems == ()
    assert outcome.shown.endswith(" Mbit/s")
    assert 8 < float(outcome.shown.split()[0]) < 11


def test_a_trace_of_the_simulator_fails(good: dict[str, pl.DataFrame]) -> None:
    run = good["run"].with_columns(engine=pl.lit("sim"))

    assert problems(good, run=run) == "the trace is of the engine sim"


def test_a_run_that_does_not_count_fails_with_its_reason(good: dict[str, pl.DataFrame]) -> None:
    run = good["run"].with_columns(status=pl.lit("invalid"), status_reason=pl.lit("p99 was 3 ms"))

    assert problems(good, run=run) == "the run is invalid: p99 was 3 ms"


def test_one_subflow_under_another_algorithm_fails(good: dict[str, pl.DataFrame]) -> None:
    ran = json.loads(good["run"]["subflow_cc"][0])
    ran[1]["cc"] = "cubic"
    run = good["run"].with_columns(subflow_cc=pl.lit(json.dumps(ran)))

    assert "'sf2': 'cubic'" in problems(good, run=run)


def test_a_subflow_that_is_not_in_the_record_fails(good: dict[str, pl.DataFrame]) -> None:
    ran = json.loads(good["run"]["subflow_cc"][0])[:1]
    run = good["run"].with_columns(subflow_cc=pl.lit(json.dumps(ran)))

    assert problems(good, run=run) == "the subflows ran {'sf1': 'lia'}"


def test_an_idle_subflow_fails(good: dict[str, pl.DataFrame]) -> None:
    idle = pl.col("subflow").cast(pl.String) == "sf2"
    subflow = good["subflow"].with_columns(
        rx_payload_bytes=pl.when(idle).then(pl.lit(20_000, pl.UInt64)).otherwise("rx_payload_bytes")
    )

    assert "less than 50000 bytes: sf2" in problems(good, subflow=subflow)


def test_a_subflow_without_a_row_per_ack_fails(good: dict[str, pl.DataFrame]) -> None:
    second = pl.col("subflow").cast(pl.String) == "sf2"
    sampled = pl.col("t_ns") % 100_000_000 == 0
    subflow = good["subflow"].filter(~second | sampled)

    assert "less than 300 rows per ACK: sf2" in problems(good, subflow=subflow)


def test_one_missing_byte_fails(good: dict[str, pl.DataFrame]) -> None:
    flow = good["flow"].with_columns(delivered_bytes=pl.min_horizontal("delivered_bytes", pl.lit(2_999_999, pl.UInt64)))

    assert "2999999} instead of 3000000 bytes" in problems(good, flow=flow)


def test_a_transfer_that_does_not_complete_fails(good: dict[str, pl.DataFrame]) -> None:
    event = good["event"].filter(pl.col("kind").cast(pl.String) != "flow_completed")

    assert "starts and completes once" in problems(good, event=event)


@pytest.mark.parametrize(("factor", "shown"), [(3, "50%"), (0.3, "100 %")])
def test_a_goodput_that_cannot_be_right_fails(good: dict[str, pl.DataFrame], factor: float, shown: str) -> None:
    event = good["event"].with_columns(t_ns=(pl.col("t_ns") * factor).cast(pl.UInt64))

    assert "is not between" in problems(good, event=event)
    assert shown in problems(good, event=event)


# --- machines ----------------------------------------------------------------------------------------


def machine(files: dict[str, bytes], console: str = "", *troubles: str) -> verdict.Machine:
    return verdict.Machine("bookworm", KERNEL, files, console, troubles)


def files_of(tables: dict[str, pl.DataFrame]) -> dict[str, bytes]:
    files = {"dmesg": b"[1.0] Linux version 6.1"}
    for step in ("doctor", "cc", "killed", "run-lia"):
        files |= {f"{step}/{name}": text for name, text in (("status", b"0"), ("stderr", b""), ("left", b""))}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        files[f"run-lia/trace/000001/{name}.parquet"] = buffer.getvalue()
    return files


def failed(machine: verdict.Machine) -> dict[str, str]:
    outcomes = verdict.judge(machine, ["lia"])
    return {row: "\n".join(outcome.problems) for row, outcome in outcomes.items() if outcome.problems}


def test_a_machine_without_problems_passes(good: dict[str, pl.DataFrame]) -> None:
    assert failed(machine(files_of(good))) == {}


def test_a_step_that_fails_shows_its_output(good: dict[str, pl.DataFrame]) -> None:
    files = files_of(good) | {"cc/status": b"2", "cc/stderr": b"error: no BTF"}

    assert failed(machine(files)) == {"cc load, list, unload": "exit code 2:\nerror: no BTF"}


def test_an_object_left_behind_on_the_host_fails(good: dict[str, pl.DataFrame]) -> None:
    files = files_of(good) | {"run-lia/left": b"congestion control: mpl_1a2b_lia\n"}

    assert failed(machine(files)) == {"lia": "left behind: congestion control: mpl_1a2b_lia"}


def test_an_algorithm_without_a_result_fails(good: dict[str, pl.DataFrame]) -> None:
    files = {name: content for name, content in files_of(good).items() if not name.startswith("run-lia")}

    assert failed(machine(files)) == {"lia": "it was not run"}


def test_a_missing_table_fails(good: dict[str, pl.DataFrame]) -> None:
    files = {name: content for name, content in files_of(good).items() if "event" not in name}

    assert "the trace cannot be read" in failed(machine(files))["lia"]


def test_a_warning_of_the_kernel_fails_even_if_all_steps_passed(good: dict[str, pl.DataFrame]) -> None:
    warning = b"[9.1] WARNING: CPU: 0 PID: 93 at net/mptcp/protocol.c:1300"
    files = files_of(good) | {"dmesg": warning}

    assert failed(machine(files)) == {"boot": f"the kernel complains: {warning.decode()}"}


def test_a_warning_on_the_console_of_any_machine_fails(good: dict[str, pl.DataFrame]) -> None:
    console = "[3.1] test: run-lia\n[5.0] BUG: sleeping function called from invalid context\n[5.0] Call Trace:\n"

    assert failed(machine(files_of(good), console)) == {
        "boot": "the kernel complains: [5.0] BUG: sleeping function called from invalid context"
    }


def test_a_crash_is_reported_once(good: dict[str, pl.DataFrame]) -> None:
    files = {name: content for name, content in files_of(good).items() if name.startswith(("doctor", "cc", "killed"))}

    assert failed(machine(files, "", "virtual machine: it ended")) == {"boot": "virtual machine: it ended"}


def test_the_exit_code_is_that_of_the_worst_machine(
    good: dict[str, pl.DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    well = machine(files_of(good))
    ill = machine(files_of(good) | {"doctor/status": b"1", "doctor/stdout": b"no TUN"})

    assert kernels_test.report([well], ["lia"]) == 0
    assert kernels_test.report([well, ill], ["lia"]) == 1
    out, err = capsys.readouterr()
    assert "FAILED" in out
    assert f"failed: {KERNEL}: doctor: exit code 1:\nno TUN" in err


def test_no_algorithm_at_all_is_a_failure(good: dict[str, pl.DataFrame]) -> None:
    assert kernels_test.report([machine(files_of(good))], []) == 1
