//! Random impairments on every path in both directions: compares the counters of all sockets with the namespace's
//! statistics.
//!
//! TRACER_SEEDS=FIRST..LAST runs other seeds than the few of a normal test.

mod tracer_lab;

use std::time::{Duration, Instant};

use mptcplab_bpf::tracer::{Sample, SampleKind, TracerConfig};
use mptcplab_net::socket::Transport;
use tracer_lab::{Fate, Lab, Policy, can_run, records, tracer, wait_for};

const CA_CWR: u8 = 2;
const CA_RECOVERY: u8 = 3;

/// Numbers that depend on the seed only (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn troubled(seed: u64) -> Policy {
    let mut random = Random(seed);
    // Shares of packets, in thousandths.
    let (dropped, held, marked) = (random.below(25), random.below(25), 2 * random.below(2));
    let mut dark_until = Instant::now();
    Box::new(move |packet| {
        // The kernel counts timeouts of the handshake; the tracer does not.
        if packet.is_syn() {
            return Fate::Pass;
        }
        if packet.forth && packet.has_payload() && random.below(2500) == 0 {
            dark_until = Instant::now() + Duration::from_millis(random.below(700));
        }
        let at = random.below(1000);
        if packet.forth && Instant::now() < dark_until || at < dropped {
            return Fate::Drop;
        }
        if at < dropped + held {
            return Fate::Hold(Duration::from_millis(1 + random.below(80)));
        }
        if packet.is_ecn_capable() && at < dropped + held + marked {
            packet.mark();
        }
        Fate::Pass
    })
}

fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("TRACER_SEEDS").ok();
    let parse = |text: String| {
        let (first, last) = text.split_once("..")?;
        Some(first.parse().ok()?..last.parse().ok()?)
    };
    given.and_then(parse).unwrap_or(1..4)
}

#[test]
fn in_random_trouble_the_counters_are_those_of_the_kernel() {
    const TEST: &str = "in_random_trouble_the_counters_are_those_of_the_kernel";
    if !can_run(TEST) {
        return;
    }
    for seed in seeds() {
        run(TEST, seed);
    }
}

fn run(test: &str, seed: u64) {
    let lab = Lab::new(&[Duration::from_millis(3 + seed % 9)], troubled(seed));
    let ecn = u64::from(seed % 3 == 0);
    for host in [&lab.client, &lab.server] {
        host.sysctl("net.ipv4.tcp_ecn", ecn).unwrap();
    }
    let cookies = lab.cookies();
    let Some(mut tracer) = tracer(
        test,
        &TracerConfig {
            cookies: &cookies,
            ..TracerConfig::default()
        },
    ) else {
        return;
    };
    let congestion = ["reno", "cubic"][(seed % 2) as usize];
    let mut connection = lab.connect(Transport::Tcp, congestion);
    connection.transfer(1_200_000);
    for bytes in [500, 1400, 30_000, 700] {
        connection.transfer(bytes);
    }
    let info = lab.settle(0);
    let key = connection.key(&lab);
    drop(connection);
    let last = wait_for("the close", || {
        tracer
            .latest(&key)
            .unwrap()
            .filter(|s| s.subflow_state() == 0)
    });
    let mut seen = records(&mut tracer);
    seen.retain(|s| s.key() == key);
    let c = last.counters;
    let context = format!("seed {seed}: {c:?}");
    println!("{context}");
    let entries = |wanted: u8, origin: Option<u8>| {
        let matches = |s: &&Sample| match s.kind() {
            SampleKind::CaState { from, to } => {
                to == wanted && origin.is_none_or(|origin| origin == from)
            }
            _ => false,
        };
        seen.iter().filter(matches).count() as u64
    };
    let sum = |names: &[&str]| names.iter().map(|name| lab.statistic(name)).sum::<u64>();
    assert_eq!(
        (tracer.lost().unwrap(), tracer.missed().unwrap()),
        (0, 0),
        "{context}"
    );
    // The kernel also counts an undo that restores nothing because an ECN echo came in between. The tracer does not,
    // like the simulator.
    let undone = sum(&[
        "TCPFullUndo",
        "TCPPartialUndo",
        "TCPDSACKUndo",
        "TCPLossUndo",
    ]);
    let forfeited = undone - c.undo_count;
    assert!(forfeited <= c.ecn_events, "{undone} undone, {context}");
    assert_eq!(c.tlp_count, sum(&["TCPLossProbes"]), "{context}");
    // The kernel's tracepoints may omit state changes, but the counters include them.
    let unseen = tracer.unseen_states().unwrap();
    let recoveries = sum(&["TCPSackRecovery"]);
    assert!(
        recoveries - entries(CA_RECOVERY, None) <= unseen,
        "{context}"
    );
    let repaired = sum(&["TCPLossProbeRecovery"]);
    assert_eq!(
        c.loss_events,
        recoveries - entries(CA_RECOVERY, Some(CA_CWR)) + repaired,
        "{context}"
    );
    assert_eq!(c.ecn_events, entries(CA_CWR, None) - repaired, "{context}");
    assert_eq!(c.local_events, 0, "{context}");
    if let Some(timeouts) = info.total_rto {
        assert_eq!(c.rto_count, u64::from(timeouts), "{context}");
    }
    assert_eq!(last.kernel_delivered(), info.delivered_pkts, "{context}");
    assert_eq!(last.kernel_retrans(), info.total_retrans_pkts, "{context}");
    assert_eq!(last.cwnd_pkts, info.snd_cwnd_pkts, "{context}");
}
