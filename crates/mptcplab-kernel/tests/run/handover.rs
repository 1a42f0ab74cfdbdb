//! Subflows that close, return and change their priority, with real sockets.

use crate::{Lab, complete_or_late, ready};

/// `gap` has no subflow for a second; `ranked` moves from path `a` to path `b` by priorities.
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
  { path = ["wifi"], stop = "1.5 s", name = "before" },
  { path = ["wifi"], start = "2.5 s", name = "after" },
]
traffic = { size = "2500 kB" }
[flows.ranked]
subflows = [
  { path = ["a"], name = "was", priority = [{ at = "3.5 s", backup = true }] },
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
    assert!(event("subflow_removed", "gap", "before") >= 3 * S / 2);
    assert!(event("subflow_added", "gap", "after") >= 5 * S / 2);
    // Without a subflow only the rest of the closed one's last window arrives, 60 packets in the queue and 13 in transit,
    // which a lost tail may delay; at the link's rate it would be 600 kB. In the end everything has arrived.
    let got = |t_ns| trace.last_flow("gap", t_ns, "delivered_bytes");
    assert!(got(3 * S / 2) > 100_000);
    let left = got(5 * S / 2) - got(2 * S);
    assert!(left <= 73 * 1428, "{left} bytes came without a subflow");
    assert_eq!(got(5 * S), 2_500_000);

    assert!(event("priority_changed", "ranked", "becomes") >= 2 * S);
    assert!(event("priority_changed", "ranked", "was") >= 7 * S / 2);
    let last = |subflow| trace.subflow("ranked", subflow, 5 * S, "rx_pkts");
    let early = |subflow| trace.last_subflow("ranked", subflow, 2 * S, "rx_pkts");
    assert!(
        early("becomes") < early("was") / 20,
        "the backup carried {} packets beside {}",
        early("becomes"),
        early("was")
    );
    assert!(last("becomes") > early("becomes") + 200);
    // Packets in transit when it became a backup have arrived half a second later.
    let quiet = trace.last_subflow("ranked", "was", 4 * S, "rx_pkts");
    assert!(last("was") - quiet < 50, "{} after {quiet}", last("was"));
    assert!(last("was") > 500);
}
