//! An algorithm in the kernel computes exactly the same as its native build.
//!
//! Every algorithm runs a lossy MPTCP transfer over two paths while each call of its hooks is recorded in the kernel; then
//! each call is repeated natively.

use mptcplab_bpf::{Loaded, Options, load, system};
use mptcplab_cc::Algorithm;
use mptcplab_cc::replay::{Op, Record};
use mptcplab_emulator::testbed::{Connection, Path, Testbed};
use std::io::{Read, Write};
use std::time::Duration;

// Where the host is busy, one ACK stands for many packets; this is still twice the ACKs that the test asks for.
const BYTES: usize = 6 << 20;
/// Testbeds at the same time.
const TESTBEDS: usize = 3;
/// Two different paths.
const PATHS: [Path; 2] = [
    Path {
        rate_mbps: 20,
        delay_ms: 4,
        loss: 0.01,
        queue_pkts: 40,
    },
    Path {
        rate_mbps: 9,
        delay_ms: 13,
        loss: 0.004,
        queue_pkts: 15,
    },
];

/// Whether the test cannot run here; prints the reason.
fn impossible() -> bool {
    let reason = system::check()
        .err()
        .map(|e| e.to_string())
        .or_else(mptcplab_emulator::testbed::missing);
    let Some(reason) = reason else { return false };
    // This bypasses the test harness, which shows the output of failed tests only.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: no eBPF or no TUN here: {reason}"
    );
    true
}

/// Sends [`BYTES`] over both paths under the congestion control and returns the records.
fn transfer(net: &Testbed, loaded: &mut Loaded) -> Vec<Record> {
    let Connection {
        mut client,
        mut server,
    } = net.connect(5001, loaded.kernel_name());
    let receiver = std::thread::spawn(move || {
        let mut received = vec![0; BYTES];
        server.read_exact(&mut received).unwrap();
        assert!(
            received
                .iter()
                .enumerate()
                .all(|(i, &byte)| byte == pattern(i)),
            "data were changed"
        );
        server.write_all(b"!").unwrap();
    });
    let mut records = Vec::new();
    let data: Vec<u8> = (0..BYTES).map(pattern).collect();
    for chunk in data.chunks(64 << 10) {
        client.write_all(chunk).unwrap();
        records.extend(loaded.records());
    }
    client.read_exact(&mut [0]).unwrap();
    receiver.join().unwrap();
    drop(client);
    std::thread::sleep(Duration::from_millis(100));
    records.extend(loaded.records());
    records
}

fn pattern(i: usize) -> u8 {
    (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[1]
}

fn check(algorithm: &'static Algorithm, options: &Options, records: &[Record]) {
    let name = algorithm.name();
    let count = |op| records.iter().filter(|r| r.op() == op).count();
    for record in records {
        if let Err(mismatch) = record.replay(algorithm, &options.params, options.growth_per_ack) {
            panic!("{name}: {mismatch}\n{record:?}");
        }
    }
    // The transfer had losses and growth, and both subflows in one table.
    let ack = if algorithm.has_cong_control() {
        Op::CongControl
    } else {
        Op::CongAvoid
    };
    assert!(count(ack) > 200, "{name}: {} ACKs", count(ack));
    assert!(
        count(Op::Ssthresh) > 3,
        "{name}: {} losses",
        count(Op::Ssthresh)
    );
    assert!(
        records.iter().any(|r| r.subflows() == 2),
        "{name}: never two subflows in the table"
    );
    assert!(
        records.iter().any(|r| r.slot == 1 && r.op() == ack),
        "{name}: one path unused"
    );
    assert!(
        records.iter().any(|r| r.windows().0 < r.windows().1),
        "{name}: no window grew"
    );
    assert_eq!(
        count(Op::PktsAcked) > 0,
        algorithm.has_pkts_acked(),
        "{name}"
    );
}

#[test]
fn native_and_kernel_agree_bit_for_bit_over_lossy_transfers() {
    if impossible() {
        return;
    }
    let algorithms: Vec<_> = mptcplab_cc::algorithms().iter().enumerate().collect();
    // A transfer mostly waits for its links, and nothing here depends on how late they are.
    std::thread::scope(|scope| {
        for part in algorithms.chunks(algorithms.len().div_ceil(TESTBEDS)) {
            scope.spawn(move || {
                let net = Testbed::new(&PATHS);
                for &(index, algorithm) in part {
                    transfer_and_replay(&net, index, algorithm);
                }
            });
        }
    });
}

fn transfer_and_replay(net: &Testbed, index: usize, algorithm: &'static Algorithm) {
    let mut options = Options {
        record: true,
        growth_per_ack: index % 2 == 1,
        connections: 4,
        ..Options::named(format!("r{:x}_{index}", std::process::id() & 0xffff))
    };
    // The values differ from the defaults, so that a parameter that is not passed on shows.
    options.params = algorithm
        .params()
        .iter()
        .map(|p| (p.name.to_owned(), p.max))
        .collect();
    let mut loaded =
        load(algorithm, &options).unwrap_or_else(|e| panic!("{}: {e}", algorithm.name()));
    let records = transfer(net, &mut loaded);
    assert_eq!(loaded.unrecorded(), 0, "{}", algorithm.name());
    assert_eq!(loaded.unplaced(), 0, "{}", algorithm.name());
    check(algorithm, &options, &records);
    if algorithm.name() == "reno" {
        let cubic = mptcplab_cc::find("cubic").unwrap();
        let differs = |r: &Record| r.replay(cubic, &[], options.growth_per_ack).is_err();
        assert!(
            records.iter().any(differs),
            "a replay cannot tell reno from cubic"
        );
    }
}
