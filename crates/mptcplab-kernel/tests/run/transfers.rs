//! Short transfers, files and video over real sockets, compared with the simulator.

use crate::trace::{Trace, Transfer};
use crate::{Host, Lab, complete_or_late, finish, lab_of, ready, simulated, wait_for_progress};
use mptcplab_scenario::Run;
use mptcplab_trace::{NOT_MEASURED, Tables};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// The transfers of `web` start at random times on different paths, those of `again` one after the other; the second one of
/// `long` is never complete.
const TRANSFERS: &str = r#"
duration = "4.5 s"
sample = "50 ms"
cc = "lia"
[links.wide]
from = "S"
to = "D"
rate = "12 Mbit/s"
delay = "6 ms"
queue = "60 packets"
[links.narrow]
from = "S"
to = "D"
rate = "5 Mbit/s"
delay = "17 ms"
queue = "40 packets"
[links.third]
from = "S"
to = "E"
rate = "3 Mbit/s"
delay = "9 ms"
queue = "30 packets"
[flows.web]
paths = [["wide"], ["narrow"]]
start = "0.2 s"
stop = "3.5 s"
traffic = { size = { law = "pareto", mean = "90 kB", shape = 1.6, most = "500 kB" }, arrivals = "9 / s" }
[flows.again]
path = ["narrow"]
cc = "cubic"
traffic = { size = { law = "exponential", mean = "25 kB" }, gap = "130 ms" }
[flows.long]
path = ["third"]
cc = "reno"
traffic = { size = "1 MB", gap = "0.2 s" }
"#;

/// Leaves out the random delays that stand for the kernel's own.
const EXACT: &[(&str, &str)] = &[("tcp.send_jitter", "0 s")];

/// Its transfers of a flow, by their number.
fn transfers_of((run, tables): &(Run, Tables), flow: &str) -> BTreeMap<u64, Transfer> {
    let flow = run.flows.iter().position(|one| one.name == flow);
    let known = |value: u64| Some(value).filter(|&value| value != NOT_MEASURED);
    let table = &tables.transfer;
    let mine = (0..table.len()).filter(|&row| Some(table.flow[row] as usize) == flow);
    mine.map(|row| {
        let transfer = Transfer {
            t_ns: table.t_ns[row],
            bytes: table.bytes[row],
            media_bps: known(table.media_bps[row]),
            first_byte_ns: known(table.first_byte_ns[row]),
            completion_ns: known(table.completion_ns[row]),
            resent_pkts: known(table.resent_pkts[row]),
            stall_ns: known(table.stall_ns[row]),
        };
        (table.transfer[row].into(), transfer)
    })
    .collect()
}

/// Median difference between the completion times in the two engines, in ns.
fn median_delay(here: &BTreeMap<u64, Transfer>, there: &BTreeMap<u64, Transfer>) -> i64 {
    let difference = |(number, one): (&u64, &Transfer)| {
        let other = there.get(number)?;
        Some(one.completion_ns? as i64 - other.completion_ns? as i64)
    };
    let mut all: Vec<i64> = here.iter().filter_map(difference).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

#[test]
fn transfers_are_those_of_the_simulator_and_take_about_as_long() {
    let Some(_alone) = ready("transfers_are_those_of_the_simulator") else {
        return;
    };
    let before = Host::now();
    let lab = Lab::new(TRANSFERS);
    let outcome = lab.run();
    let trace = lab.trace();
    complete_or_late(&trace, outcome.code);
    before.comes_back(&[outcome.id]);
    let host: serde_json::Value = serde_json::from_str(&trace.run().text("host")).expect("JSON");
    let late_ns = host["samples"]["transfer_late_max_ns"].as_u64();
    let late_ns = late_ns.expect("a number");
    let simulated = simulated(TRANSFERS, EXACT);
    let here = |flow: &str| trace.transfers(flow);
    let there = |flow: &str| transfers_of(&simulated, flow);

    // The same transfers: of random times each, of those that wait for one another as many as there was time for.
    let (web, expected) = (here("web"), there("web"));
    assert!(web.keys().eq(expected.keys()) && web.len() > 15);
    for flow in ["web", "again", "long"] {
        let expected = there(flow);
        for (number, one) in here(flow) {
            if let Some(other) = expected.get(&number) {
                assert_eq!(one.bytes, other.bytes, "{flow} {number}");
            }
            assert_eq!((one.media_bps, one.stall_ns), (None, None));
        }
    }
    for (number, one) in &web {
        let due_ns = expected[number].t_ns;
        assert!(
            (due_ns..=due_ns + late_ns).contains(&one.t_ns),
            "{number} began at {} instead of {due_ns} ns",
            one.t_ns
        );
        // A round trip of 12 ms, then 6 ms for the first byte, then the rest at 17 Mbit/s at most.
        let first_ns = one.first_byte_ns.expect("a first byte");
        let least_ns = 18 * MS + (one.bytes - 1_428.min(one.bytes)) * 8_000 / 17;
        let done_ns = one.completion_ns.expect("an end");
        assert!(
            first_ns >= 18 * MS && done_ns >= least_ns.max(first_ns),
            "{number}: {first_ns} and {done_ns} ns for {} bytes",
            one.bytes
        );
    }
    let again = here("again");
    for (one, next) in again.values().zip(again.values().skip(1)) {
        let idle_ns = next.t_ns - (one.t_ns + one.completion_ns.expect("an end"));
        assert!(
            idle_ns >= 130 * MS,
            "the next came {idle_ns} ns after the end"
        );
    }
    // 1 MB at 3 Mbit/s takes 2.7 s and more; then the second.
    let long = here("long");
    let ends: Vec<bool> = long
        .values()
        .map(|one| one.completion_ns.is_some())
        .collect();
    assert_eq!(ends, [true, false]);

    if trace.is_on_time() {
        // MPTCP's first segment goes alone, a round trip (12 ms) in which the simulator sends ten and which the window's
        // growth lacks as well; queues differ by a packet or two (1 ms each on `wide`, 2.4 ms on `narrow`).
        let delay = median_delay(&web, &expected);
        assert!(
            (0..28 * MS as i64).contains(&delay),
            "web: {delay} ns later"
        );
        let delay = median_delay(&again, &there("again"));
        assert!(delay.unsigned_abs() < 5 * MS, "again: {delay} ns later");
        assert!(again.len().abs_diff(there("again").len()) <= 1);
        let delay = median_delay(&long, &there("long"));
        assert!(delay.unsigned_abs() < 50 * MS, "long: {delay} ns later");
    }
    sums_are_those_of_all_connections(&trace, &web);
}

fn sums_are_those_of_all_connections(trace: &Trace, web: &BTreeMap<u64, Transfer>) {
    let end = 9 * S / 2;
    let bytes: u64 = web.values().map(|one| one.bytes).sum();
    assert_eq!(trace.flow("web", end, "delivered_bytes"), bytes);
    assert_eq!(trace.flow("web", end, "sent_bytes"), bytes);
    let sum = |column| -> u64 {
        let of = |name| trace.subflow("web", name, end, column);
        of("sf1") + of("sf2")
    };
    assert!(sum("rx_payload_bytes") >= bytes);
    assert!(trace.subflow("web", "sf2", end, "rx_pkts") > 10);
    assert!(sum("sent_pkts") >= sum("rx_pkts") && sum("rx_pkts") >= sum("acked_pkts"));
    assert!(sum("acked_pkts") >= bytes / 1_428);
    // A round trip's sample for each handshake at least.
    assert!(trace.subflow("web", "sf1", end, "rtt_count") >= web.len() as u64);
    let resent: u64 = web.values().map(|one| one.resent_pkts.expect("told")).sum();
    assert!(resent >= sum("retx_pkts"), "{resent} {}", sum("retx_pkts"));
    // All are over, and no events but the flow's.
    assert_eq!(trace.state("web", "sf1", end), "closed");
    assert_eq!(trace.events("flow_started", "web", None), 1);
    assert_eq!(trace.events("flow_stopped", "web", None), 1);
    for kind in [
        "subflow_added",
        "loss_event",
        "first_byte",
        "flow_completed",
    ] {
        assert_eq!(trace.events(kind, "web", None), 0, "{kind}");
    }
    let cc = trace.run().text("subflow_cc");
    for (flow, subflow, name) in [
        ("web", "sf1", "lia"),
        ("web", "sf2", "lia"),
        ("again", "sf1", "cubic"),
        ("long", "sf1", "reno"),
    ] {
        let expected =
            format!(r#"{{"flow":"{flow}","subflow":"{subflow}","cc":"{name}","params":{{}}}}"#);
        assert!(cc.contains(&expected), "{cc}");
    }
}

/// `show` is watched beside a bulk flow; `file` has a path of its own.
const VIDEO: &str = r#"
duration = "5 s"
sample = "50 ms"
cc = "lia"
scheduler = "linger"
[links.wide]
from = "S"
to = "D"
rate = "4 Mbit/s"
delay = "6 ms"
queue = "40 packets"
[links.narrow]
from = "S"
to = "D"
rate = "2 Mbit/s"
delay = "15 ms"
queue = "30 packets"
[links.third]
from = "S"
to = "E"
rate = "3 Mbit/s"
delay = "9 ms"
queue = "30 packets"
[flows.show]
paths = [["wide"], ["narrow"]]
start = "0.2 s"
traffic = { video = { chunk = "0.5 s", buffer = "1.5 s", ladder = ["200 kbit/s", "600 kbit/s", "1200 kbit/s"] } }
[flows.bulk]
path = ["wide"]
cc = "cubic"
start = "2 s"
[flows.file]
path = ["third"]
cc = "reno"
start = "0.3 s"
traffic = { size = "350 kB" }
"#;

#[test]
fn a_video_is_asked_for_chunk_by_chunk_and_a_file_has_its_time() {
    let Some(_alone) = ready("a_video_is_asked_for_chunk_by_chunk") else {
        return;
    };
    let lab = Lab::new(VIDEO);
    let outcome = lab.run();
    let trace = lab.trace();
    complete_or_late(&trace, outcome.code);
    let simulated = simulated(VIDEO, EXACT);

    let (show, expected) = (trace.transfers("show"), transfers_of(&simulated, "show"));
    assert!(show.keys().copied().eq(0..show.len() as u64));
    for (number, chunk) in &show {
        let bps = chunk.media_bps.expect("a chunk");
        assert!([200_000, 600_000, 1_200_000].contains(&bps), "{bps}");
        assert_eq!(chunk.bytes, bps / 16, "half a second of {bps} bit/s");
        let is_last = *number + 1 == show.len() as u64;
        assert!(chunk.completion_ns.is_some() || is_last, "{number}");
        assert_eq!(chunk.stall_ns.is_some(), chunk.completion_ns.is_some());
        if let Some(done_ns) = chunk.completion_ns {
            // The request takes 6 ms, the first byte as long, and 6 Mbit/s carry the rest.
            let least_ns = 12 * MS + (chunk.bytes - 1_428) * 8_000 / 6;
            assert!(done_ns >= least_ns, "{number}: {done_ns} ns");
        }
    }
    // Never more than the buffer holds: from the third on, a chunk is asked for when half a second was watched.
    let asked: Vec<u64> = show.values().map(|chunk| chunk.t_ns).collect();
    let begun = asked[0] + show[&0].completion_ns.expect("complete");
    for (k, at) in (3..).zip(asked.iter().skip(3)) {
        let earliest = begun + (k - 2) * S / 2;
        assert!(at + MS >= earliest, "chunk {k} was asked for at {at} ns");
    }
    let delivered = trace.flow("show", 5 * S, "delivered_bytes");
    let whole = show.values().filter(|one| one.completion_ns.is_some());
    let whole: u64 = whole.map(|one| one.bytes).sum();
    let all: u64 = show.values().map(|one| one.bytes).sum();
    assert!((whole..=all).contains(&delivered));
    assert_eq!(trace.events("first_byte", "show", None), 1);
    assert_eq!(trace.events("subflow_added", "show", Some("sf2")), 1);

    let (file, other) = (trace.transfers("file"), transfers_of(&simulated, "file"));
    assert_eq!((file.len(), file[&0].bytes), (1, 350_000));
    assert_eq!(trace.events("flow_completed", "file", None), 1);
    if trace.is_on_time() {
        // The first chunk meets nobody: the same encoding, and a round trip (12 ms) for MPTCP's first segment. All
        // others may differ; but both engines play on.
        assert_eq!(show[&0].media_bps, expected[&0].media_bps);
        let late = show[&0].completion_ns.expect("complete") as i64
            - expected[&0].completion_ns.expect("complete") as i64;
        assert!((0..28 * MS as i64).contains(&late), "{late} ns later");
        assert!(show.len().abs_diff(expected.len()) <= 2);
        // Alone on its path, with a second's slow start and its losses.
        let delay = median_delay(&file, &other);
        assert!(delay.unsigned_abs() < 60 * MS, "file: {delay} ns later");
    }
}

/// Both ends of many connections, some of whose subflows can never answer again, go with their processes.
#[test]
fn nothing_is_left_of_transfers_that_are_broken_off() {
    let Some(_alone) = ready("nothing_is_left_of_transfers_that_are_broken_off") else {
        return;
    };
    let before = Host::now();
    let dead = "delay = \"17 ms\"\nschedule = [{ at = \"0.6 s\", up = false }]";
    let scenario = TRANSFERS.replace("delay = \"17 ms\"", dead);
    for (signal, code) in [
        (Signal::SIGINT, Some(130)),
        (Signal::SIGTERM, Some(143)),
        (Signal::SIGKILL, None),
    ] {
        let lab = Lab::new(&scenario);
        let mut child = lab.command("{}").spawn().expect("the program");
        wait_for_progress(&mut child, 1.0);
        let (supervisor, inner) = (child.id(), lab_of(child.id()));
        kill(Pid::from_raw(supervisor as i32), signal).expect("the supervisor is there");
        assert_eq!(finish(child).code, code);
        let deadline = Instant::now() + Duration::from_secs(5);
        while std::path::Path::new(&format!("/proc/{inner}")).exists() {
            assert!(Instant::now() < deadline, "the lab outlives its supervisor");
            std::thread::sleep(Duration::from_millis(10));
        }
        before.comes_back(&[supervisor]);
    }
}
