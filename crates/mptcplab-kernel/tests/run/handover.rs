//! Subflows that close, return and change their priority, with real sockets.

use crate::{Lab, complete_or_late, ready};

/// `gap` has no subflow from 1 s on, and another one from 2.5 s on; `ranked` moves from path `a` to path `b` by priorities.
///
/// Linux closes a subflow behind the data that its scheduler has given to it, and a new priority leaves these data where
/// they are. That is up to 650 kB here, for which `wifi` takes half a second, and longer where the emulation is late. The
/// test leaves a second for it.
const HANDOVER: &str = r#"
duration = "5 s"
sample = "20 ms"
cc = "reno"
[tcp]
stale_after = 2
[links.wifi]
from = "S"
to = "D"
rate = "10 Mbit/s"
delay = "7 ms"
queue = "60 packets"
[links.a]
from = "S"
to = "E"
rate = "8 Mbit/s"
delay = "9 ms"
queue = "60 packets"
[links.b]
from = "S"
to = "E"
rate = "6 Mbit/s"
delay = "11 ms"
queue = "60 packets"
[flows.gap]
subflows = [
  { path = ["wifi"], stop = "1 s", name = "before" },
  { path = ["wifi"], start = "2.5 s", name = "after" },
]
traffic = { size = "2200 kB" }
[flows.ranked]
subflows = [
  { path = ["a"], name = "was", priority = [{ at = "3 s", backup = true }] },
  { path = ["b"], name = "becomes", backup = true, priority = [{ at = "2 s", backup = false }] },
]
"#;
const S: u64 = 1_000_000_000;

#[test]
fn a_connection_outlives_its_subflows_and_follows_their_priorities() {
    let Some(_alone) = ready("a_connection_outlives_its_subflows") else {
        return;
    };
    let lab = Lab::new(HANDOVER);
    let outcome = lab.run();
    let trace = lab.trace();
    complete_or_late(&trace, outcome.code);

    let event = |kind, flow, subflow| trace.first_event(kind, flow, subflow).expect("an event");
    assert!(event("subflow_removed", "gap", "before") >= S);
    assert!(event("subflow_added", "gap", "after") >= 5 * S / 2);
    // `before` alone could bring 2.5 MB by then, but it ends with what it was given, and the rest waits for `after`.
    let got = |t_ns| trace.last_flow("gap", t_ns, "delivered_bytes");
    assert!(got(S) > 100_000);
    let late = got(5 * S / 2) - got(2 * S);
    assert_eq!(late, 0, "{late} bytes came without a subflow");
    assert!(trace.subflow("gap", "after", 5 * S, "rx_payload_bytes") > 100_000);
    assert_eq!(got(5 * S), 2_200_000);

    assert!(event("priority_changed", "ranked", "becomes") >= 2 * S);
    assert!(event("priority_changed", "ranked", "was") >= 3 * S);
    let last = |subflow| trace.subflow("ranked", subflow, 5 * S, "rx_pkts");
    let early = |subflow| trace.last_subflow("ranked", subflow, 2 * S, "rx_pkts");
    assert!(
        early("becomes") < early("was") / 20,
        "the backup carried {} packets beside {}",
        early("becomes"),
        early("was")
    );
    assert!(last("becomes") > early("becomes") + 200);
    // A regular subflow brings some 500 packets in this time.
    let quiet = trace.last_subflow("ranked", "was", 17 * S / 4, "rx_pkts");
    assert!(last("was") - quiet < 50, "{} after {quiet}", last("was"));
    assert!(last("was") > 500);
}
