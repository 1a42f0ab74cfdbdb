//! Corner cases that were wrong once.

use crate::common::{simulate_one, sweep};
use mptcplab_sim::{Control, SimError, simulate};
use mptcplab_trace::EventKind;

const TWO_PATHS: &str = r#"
duration = "60 s"
warmup = "10 s"
sample = "off"
[links.A]
from = "S"
to = "D"
rate = "20 Mbit/s"
delay = "50 ms"
queue = "160 packets"
loss = "0.5 %"
[links.B]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "10 ms"
queue = "40 packets"
"#;

fn two_paths(flow: &str) -> String {
    format!("{TWO_PATHS}[flows.f]\n{flow}\n")
}

/// Before: the window of 64 kB, scaled for gigabytes, was advertised as 0 and nothing was ever sent.
#[test]
fn a_huge_receive_buffer_starts_small_but_starts() {
    let flow = r#"cc = "reno"
rcv_buffer = { auto = "4 GB" }
paths = [["A"], ["B"]]"#;
    let run = simulate_one(&two_paths(flow), &[]);
    assert!(run.goodput("f") > 7.0, "goodput {}", run.goodput("f"));
}

/// Before: the joins waited for a connection that nobody was opening any more.
#[test]
fn the_next_subflow_opens_the_connection_if_the_first_never_did() {
    let flow = r#"cc = "reno"
traffic = { size = "200 kB" }
subflows = [
  { name = "gone", path = ["A"], stop = "60 ms" },
  { name = "stays", path = ["B"] },
]"#;
    let run = simulate_one(&two_paths(flow), &[]);
    assert_eq!(run.delivered_bytes("f"), 200_000);
    // The SYN of A needs 100 ms; at 60 ms B opens instead, and is ready one round trip of 20 ms later.
    let e = &run.outcome.tables.event;
    let added: Vec<(i32, u64)> = (0..e.len())
        .filter(|&i| e.kind[i] == EventKind::SubflowAdded as u8)
        .map(|i| (e.subflow[i], e.t_ns[i] / 1_000_000))
        .collect();
    assert_eq!(added, [(1, 80)]);
}

/// Before: an idle backup counted with a window of 1 on a short path, and took 40 to 75 % of the rate.
#[test]
fn an_idle_backup_does_not_hold_back_the_subflow_in_use() {
    let alone = two_paths("cc = \"lia\"\ntransport = \"mptcp\"\npaths = [[\"A\"]]")
        .replace("40 packets", "41 packets");
    let flow = r#"cc = "lia"
subflows = [{ path = ["A"] }, { path = ["B"], backup = true }]"#;
    let with_backup = two_paths(flow);
    for cc in ["lia", "olia", "balia"] {
        let reference = simulate_one(&alone, &[("flows.f.cc", cc)]).goodput("f");
        let measured = simulate_one(&with_backup, &[("flows.f.cc", cc)]);
        assert_eq!(
            measured.last("f", 1, |t| &t.sent_pkts),
            0,
            "{cc}: the backup was used"
        );
        let ratio = measured.goodput("f") / reference;
        assert!(
            (0.9..1.1).contains(&ratio),
            "{cc}: {ratio} of what it gets without the backup"
        );
    }
}

/// Before: a UDP stream stopped without an event.
#[test]
fn a_udp_stream_says_when_it_stops() {
    let flow = r#"transport = "udp"
path = ["B"]
rate = "1 Mbit/s"
packet = "1000 bytes"
stop = "12.5 s""#;
    let run = simulate_one(&two_paths(flow), &[]);
    let e = &run.outcome.tables.event;
    let stopped: Vec<u64> = (0..e.len())
        .filter(|&i| e.kind[i] == EventKind::FlowStopped as u8)
        .map(|i| e.t_ns[i])
        .collect();
    assert_eq!(stopped, [12_500_000_000]);
}

/// CUBIC's HyStart leaves slow start on a deep buffer before anything is lost, and the trace says when.
#[test]
fn an_early_end_of_slow_start_is_an_event() {
    let flow = r#"cc = ["cubic", "reno"]
transport = "tcp"
path = ["B"]"#;
    let deep = two_paths(flow).replace("40 packets", "4000 packets");
    let exits = |cc: &str| {
        let run = simulate_one(&deep, &[("flows.f.cc", cc)]);
        let e = &run.outcome.tables.event;
        let kind = EventKind::SlowStartExit as u8;
        (0..e.len())
            .filter(|&i| e.kind[i] == kind)
            .map(|i| (e.t_ns[i], e.value[i]))
            .collect::<Vec<_>>()
    };
    // 8 Mbit/s x 20 ms is 13 packets: slow start doubles 10, 20, 40 and finds the delay up by more than 4 ms.
    let cubic = exits("cubic");
    assert_eq!(cubic.len(), 1, "{cubic:?}");
    assert!(
        cubic[0].0 < 500_000_000 && (16..100).contains(&cubic[0].1),
        "{cubic:?}"
    );
    assert_eq!(exits("reno"), []);
}

/// Data sequence numbers count segments, in 32 bits.
#[test]
fn a_transfer_that_cannot_be_counted_is_an_error() {
    let simulate = |traffic: &str| {
        let text = two_paths(&format!(
            "cc = \"reno\"\npath = [\"A\"]\ntraffic = {traffic}"
        ));
        simulate(
            &sweep(&text, &[("duration", "1 s"), ("warmup", "0 s")]).runs[0],
            &Control::default(),
        )
    };
    let huge = "900000 GB";
    for traffic in [
        format!(r#"{{ size = "{huge}" }}"#),
        format!(r#"{{ arrivals = "1 / s", size = "{huge}" }}"#),
        format!(
            r#"{{ requests = {{ response = {{ law = "pareto", mean = "9 kB", most = "{huge}" }}, think = "1 s" }} }}"#
        ),
    ] {
        let outcome = simulate(&traffic);
        assert!(
            matches!(outcome, Err(SimError::Unsupported(_))),
            "{traffic}"
        );
    }
}
