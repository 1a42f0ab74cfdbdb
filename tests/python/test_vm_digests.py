"""One run on each of Debian's kernels gives what tests/kernels/digests.json has recorded for its package."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import kernel_program
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))

import digests
import run as kernels_test


# The newest first: the conformance scripts begin with the oldest, so that no worker waits while another boots a kernel.
@pytest.mark.parametrize("suite", kernels_test.MATRIX[::-1])
def test_a_run_gives_what_was_recorded_for_its_kernel(suite: str) -> None:
    package = kernel_program.virtual_kernel(suite).package
    kernel_program.program()
    before = digests.stored().get(package)
    if before is None:
        pytest.skip(f"SKIPPED, NOT TESTED: nothing is recorded for {package}; `{digests.COMMAND} {suite}` records it")
    changed = digests.differences(before, digests.measured(suite))
    assert not changed, f"{package}: {'; '.join(changed)}; if that is right: {digests.COMMAND} {suite}"


RECORD = digests.Record(
    "bookworm", "linux-image-6.1 6.1-1", "program", "QEMU 10",
    dict.fromkeys(digests.TABLES, "bytes"), {"completed_ms": 1500.0, "sf1.retx_pkts": 20},
)  # fmt: skip


def test_a_changed_digest_is_reported_with_the_numbers_that_changed() -> None:
    now = replace(
        RECORD, tables=RECORD.tables | {"flow": "others"}, numbers={"completed_ms": 1500.5, "sf1.retx_pkts": 20}
    )
    assert digests.differences(RECORD, RECORD) == []
    assert digests.differences(RECORD, now) == ["completed_ms: 1500.0 -> 1500.5", "the table flow has other bytes"]


def test_another_program_may_change_the_bytes_but_not_the_numbers() -> None:
    other = replace(RECORD, program="other", tables=dict.fromkeys(digests.TABLES, "others"))
    near = replace(other, numbers={"completed_ms": 1600.0, "sf1.retx_pkts": 30})
    far = replace(other, numbers={"completed_ms": 1800.0, "sf1.retx_pkts": 40})
    assert digests.differences(RECORD, near) == []
    assert digests.differences(RECORD, far) == ["completed_ms: 1500.0 -> 1800.0", "sf1.retx_pkts: 20 -> 40"]
