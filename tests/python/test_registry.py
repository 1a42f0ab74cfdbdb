"""What the registry says of every metric: how many decimals tables show, and whether it needs samples."""

from __future__ import annotations

import pytest

from mptcplab.metrics import REGISTRY
from mptcplab.metrics.registry import metric

DIGITS = {
    0: [
        "hol_bytes",
        "messages",
        "messages_open",
        "reorder_depth_max",
        "requests",
        "requests_open",
        "transfers",
        "transfers_open",
    ],
    1: [
        "cwnd_mean",
        "decrease_mild",
        "duplicates",
        "ecn_events",
        "iperf_cwnd_range",
        "iperf_retr",
        "loss_events",
        "message_gap",
        "message_late",
        "message_max",
        "message_mean",
        "message_p50",
        "message_p95",
        "message_p99",
        "not_recovered",
        "ooo_delay",
        "ooo_delay_max",
        "pps",
        "queue_delay_max",
        "queue_mean",
        "reinjected",
        "reorder_depth",
        "response_late",
        "response_max",
        "response_mean",
        "response_p50",
        "response_p95",
        "response_p99",
        "retx",
        "rto_count",
        "rtt_mean",
        "rtt_p50",
        "rtt_p95",
        "srtt_mean",
        "stalls",
        "switches",
        "undo",
        "utilisation",
    ],
    2: [
        "agr_bf",
        "convergence",
        "equal_share",
        "friendliness",
        "goodput",
        "ideal",
        "ideal_propfair",
        "ideal_subflow",
        "media_rate",
        "ooo_share",
        "queue_delay_mean",
        "ratio",
        "receiver_rate",
        "recovery_time",
        "responsiveness",
        "retx_rate",
        "rtt_correlation",
        "sender_rate",
        "stall_time",
        "std_1s",
        "throughput",
        "total_goodput",
    ],
    3: [
        "agr_bf_capacity",
        "blk_time",
        "cbi",
        "jain",
        "jain_weighted",
        "loss",
        "loss_queue",
        "loss_random",
        "marked",
        "pkt_share",
        "plr",
        "ratio_wire",
        "rto_time",
        "share",
        "startup_delay",
    ],
    4: ["ftt", "transfer_mean", "transfer_p50", "transfer_p95", "transfer_p99"],
}
NEED_SAMPLES = [
    "convergence",
    "cwnd_mean",
    "decrease_mild",
    "hol_bytes",
    "not_recovered",
    "ooo_delay_max",
    "queue_delay_max",
    "queue_mean",
    "receiver_rate",
    "recovery_time",
    "reorder_depth_max",
    "responsiveness",
    "rtt_correlation",
    "rtt_p50",
    "rtt_p95",
    "srtt_mean",
    "std_1s",
]


def test_tables_show_as_many_decimals_as_a_metric_has_meaning() -> None:
    found: dict[int, list[str]] = {}
    for name in sorted(REGISTRY):
        found.setdefault(REGISTRY[name].digits, []).append(name)
    assert found == DIGITS


def test_the_metrics_that_are_absent_without_samples_are_these() -> None:
    assert sorted(name for name, one in REGISTRY.items() if one.needs_samples) == NEED_SAMPLES


@pytest.mark.parametrize(
    ("prefix", "statistics"),
    [
        ("response", ["mean", "p50", "p95", "p99", "max"]),
        ("message", ["mean", "p50", "p95", "p99", "max"]),
        ("transfer", ["mean", "p50", "p95", "p99"]),
    ],
)
def test_all_statistics_of_a_time_define_it_alike(prefix: str, statistics: list[str]) -> None:
    """The definitions of the 95th and 99th percentiles left out a part of what the time is."""
    found = {name: one.doc for name, one in REGISTRY.items() if one.unit in ("s", "ms")}
    definitions = {name: doc.partition(" from ")[2] for name, doc in found.items() if name.startswith(f"{prefix}_")}
    names = [f"{prefix}_{statistic}" for statistic in statistics]
    assert [name for name in definitions if name != "message_gap"] == names
    (definition,) = {definitions[name] for name in names}
    assert definition.endswith(" only.")


def test_a_metric_has_its_function_s_documentation_and_a_name_of_its_own() -> None:
    @metric("of_this_test", "Of this test", "s", ("flow",))
    def described(window: object) -> None:
        """What it is."""

    try:
        found = REGISTRY["of_this_test"]
        assert (found.doc, found.digits, found.needs_samples) == ("What it is.", 2, False)
        with pytest.raises(ValueError, match="registered twice: of_this_test"):
            metric("of_this_test", "Another", "s", ("flow",))(found.compute)
        assert REGISTRY["of_this_test"] is found
    finally:
        del REGISTRY["of_this_test"]
