//! Every algorithm under every profile of ACK counting, and what the profile does to its growth.

use crate::common::{Measured, simulate_one};
use mptcplab_cc::{Algorithm, algorithms};

/// Two private paths that are never full; congestion avoidance from 20 packets on.
const SCENARIO: &str = r#"
duration = "5 s"
sample = "1 s"
[tcp]
initial_ssthresh = "20 packets"
[links.a]
from = "S"
to = "D"
rate = "1 Gbit/s"
delay = "20 ms"
[links.b]
from = "S"
to = "D"
rate = "1 Gbit/s"
delay = "23 ms"
[flows.f]
transport = "mptcp"
paths = [["a"], ["b"]]
"#;

/// These algorithms use delays or rates, once per round, or the clock. They do not count ACKs.
const COUNT_NO_ACKS: [&str; 6] = ["bbr", "cmpbbr", "cubic", "mcompound", "vegas", "wvegas"];

fn run(algorithm: &Algorithm, profile: &str) -> Measured {
    let settings = [("cc", algorithm.name()), ("profile", profile)];
    simulate_one(SCENARIO, &settings)
}

/// Packets above the threshold, of both subflows.
fn growth(run: &Measured) -> f64 {
    let cwnd = |subflow| f64::from(run.last("f", subflow, |t| &t.cwnd_pkts));
    cwnd(0) + cwnd(1) - 40.0
}

#[test]
fn a_profile_halves_the_growth_of_those_whom_it_makes_count_acks() {
    let mut counted = 0;
    for algorithm in algorithms() {
        let name = algorithm.name();
        let [rfc, acked, legacy, pre4] =
            ["rfc", "linux-acked", "linux-legacy", "linux-pre4"].map(|p| run(algorithm, p));
        for one in [&rfc, &acked, &legacy, &pre4] {
            assert!(one.delivered_bytes("f") > 1_000_000, "{name}");
        }
        // linux-legacy is one of its neighbours, whichever of them this algorithm belongs to.
        let same = if algorithm.coupled() { &pre4 } else { &acked };
        assert!(
            legacy.outcome.tables == same.outcome.tables,
            "{name}: linux-legacy"
        );
        if COUNT_NO_ACKS.contains(&name) {
            continue;
        }
        assert!(growth(&pre4) > 0.0, "{name}: {}", growth(&pre4));
        let per_packet = growth(&acked) / growth(&rfc);
        assert!(
            (0.85..=1.1).contains(&per_packet),
            "{name}: {per_packet} of rfc"
        );
        let per_ack = growth(&pre4) / growth(&acked);
        assert!(
            (0.4..=0.65).contains(&per_ack),
            "{name}: {per_ack} of linux-acked"
        );
        counted += 1;
    }
    assert!(counted >= 12, "only {counted} algorithms count ACKs");
}
