//! Measures the cost of tracing per segment. Ignored by default, because it has no pass criterion; run it with
//! `cargo test -p mptcplab-bpf --test tracer_cost -- --ignored --nocapture`.

mod tracer_lab;

use std::time::Duration;

use mptcplab_bpf::tracer::TracerConfig;
use mptcplab_net::socket::Transport;
use tracer_lab::{Lab, can_run, clean, tracer};

/// About 20,000 ACKs per measurement.
const BYTES: usize = 60_000_000;

#[test]
#[ignore = "measures and prints a table"]
fn cost_per_segment() {
    if !can_run("cost_per_segment") {
        return;
    }
    println!(
        "An empty program reads 85 to 90 ns. The receiver is not watched and its segments are taken off."
    );
    for transport in [Transport::Tcp, Transport::Mptcp] {
        let Some(others) = measure(transport, "not watched", false, true, 0) else {
            return;
        };
        measure(transport, "sender, events only", true, false, others);
        measure(transport, "sender, every ACK", true, true, others);
    }
}

/// Prints the mean cost of reading the sender's socket, and returns that of a socket that is not watched, in ns.
fn measure(
    transport: Transport,
    what: &str,
    watched: bool,
    every_ack: bool,
    others_ns: u64,
) -> Option<u64> {
    let lab = Lab::new(&[Duration::from_millis(1)], clean());
    let own = [lab.client.cookie()];
    let cookies: &[u64] = if watched { &own } else { &[] };
    let config = TracerConfig {
        cookies,
        every_ack,
        run_stats: true,
        ..TracerConfig::default()
    };
    let mut tracer = tracer(what, &config)?;
    lab.connect(transport, "cubic").transfer(BYTES);
    tracer.detach();
    let mut records = 0;
    tracer.poll(&mut |_| records += 1);
    let (lost, missed) = (tracer.lost().unwrap(), tracer.missed().unwrap());
    let acks: u64 = tracer
        .sockets()
        .unwrap()
        .iter()
        .map(|s| s.counters.acks)
        .sum();
    let program = tracer.run_stats().unwrap().swap_remove(0);
    let others = program.run_count - acks;
    let looks = if watched { acks } else { others };
    let ns = (program.run_time_ns.saturating_sub(others * others_ns)) / looks;
    println!(
        "{transport:?}, {what}: {ns} ns, {looks} looks, {records} records, {lost} lost, {missed} missed"
    );
    Some(ns)
}
