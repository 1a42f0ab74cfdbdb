//! Requests and messages over real sockets that last, compared with the simulator.

use crate::trace::Request;
use crate::{Host, Lab, complete_or_late, ready, simulated};
use mptcplab_scenario::Run;
use mptcplab_trace::{NOT_MEASURED, Tables};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

/// Requests one after the other and at random times, echoes, and messages that are just delivered; each flow has its own
/// sizes, and each link its own delay.
const DIALOGUES: &str = r#"
duration = "4 s"
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
[flows.page]
paths = [["wide"], ["narrow"]]
start = "0.2 s"
stop = "3.5 s"
traffic = { requests = { response = { law = "pareto", mean = "30 kB", shape = 1.6, most = "200 kB" }, request = "333 bytes", think = "70 ms" } }
[flows.rpc]
path = ["narrow"]
cc = "cubic"
stop = "3.6 s"
traffic = { requests = { response = "2345 bytes", request = { law = "exponential", mean = "900 bytes" }, arrivals = "12 / s" } }
[flows.ssh]
paths = [["narrow"], ["wide"]]
cc = "olia"
stop = "3.4 s"
traffic = { messages = { size = "71 bytes", answer = "118 bytes", interval = "60 ms" } }
[flows.game]
path = ["third"]
cc = "reno"
stop = "3.3 s"
traffic = { messages = { size = "231 bytes", interval = "30 ms" } }
"#;

fn requests_of((run, tables): &(Run, Tables), flow: &str) -> BTreeMap<u64, Request> {
    let flow = run.flows.iter().position(|one| one.name == flow);
    let known = |value: u64, none: u64| Some(value).filter(|&value| value != none);
    let table = &tables.request;
    let mine = (0..table.len()).filter(|&row| Some(table.flow[row] as usize) == flow);
    mine.map(|row| {
        let request = Request {
            t_ns: table.t_ns[row],
            request_bytes: table.request_bytes[row],
            response_bytes: known(table.response_bytes[row], 0),
            first_byte_ns: known(table.first_byte_ns[row], NOT_MEASURED),
            completion_ns: known(table.completion_ns[row], NOT_MEASURED),
        };
        (table.request[row].into(), request)
    })
    .collect()
}

/// Settings with which the simulator schedules and acknowledges as the kernel does.
const LIKE_KERNEL: &[(&str, &str)] = &[
    ("tcp.send_jitter", "0 s"),
    ("tcp.tso", "true"),
    ("tcp.comp_sack", "true"),
    ("scheduler", "linger"),
];

/// Medians of the times in both engines, of the requests after the first three, before which subflows join.
fn medians(here: &BTreeMap<u64, Request>, there: &BTreeMap<u64, Request>) -> (u64, u64) {
    let median = |of: &BTreeMap<u64, Request>| {
        let mut times: Vec<u64> = of
            .values()
            .skip(3)
            .filter_map(|r| r.completion_ns)
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    (median(here), median(there))
}

#[test]
fn requests_and_messages_are_those_of_the_simulator_and_take_about_as_long() {
    let Some(_alone) = ready("requests_are_those_of_the_simulator") else {
        return;
    };
    let before = Host::now();
    let lab = Lab::new(DIALOGUES);
    let outcome = lab.run();
    let trace = lab.trace();
    complete_or_late(&trace, outcome.code);
    before.comes_back(&[outcome.id]);
    let simulated = simulated(DIALOGUES, LIKE_KERNEL);

    // The least that a request takes: its path there and back, or one way.
    for (flow, least, least_ms) in [
        ("page", 15, 12),
        ("rpc", 25, 34),
        ("ssh", 40, 12),
        ("game", 90, 9),
    ] {
        let (here, there) = (trace.requests(flow), requests_of(&simulated, flow));
        assert!(here.len() > least, "{flow}: {}", here.len());
        let mut asked = 0;
        for (number, one) in &here {
            if let Some(other) = there.get(number) {
                assert_eq!(one.request_bytes, other.request_bytes, "{flow} {number}");
                assert_eq!(one.response_bytes, other.response_bytes, "{flow} {number}");
            }
            // All that was asked for before the stop is answered before the end.
            let (first, done) = (
                one.first_byte_ns.expect("a byte"),
                one.completion_ns.expect("an end"),
            );
            assert!(
                first <= done && done >= least_ms * MS,
                "{flow} {number}: {first}, {done}"
            );
            asked += match flow {
                "page" | "rpc" => one.response_bytes.expect("a response"),
                _ => one.request_bytes,
            };
        }
        assert_eq!(
            trace.flow(flow, 4_000 * MS, "delivered_bytes"),
            asked,
            "{flow}"
        );
        let (kernel, sim) = medians(&here, &there);
        println!(
            "{flow}: {} requests, median {kernel} ns here, {sim} ns in the simulator",
            here.len()
        );
        // A machine under load delays everything by milliseconds.
        if trace.is_on_time() {
            assert!(
                kernel.abs_diff(sim) < 8 * MS + sim / 4,
                "{flow}: {kernel} and {sim}"
            );
        }
    }
    // Times of messages at an interval are exact, whatever became of the ones before.
    let game = trace.requests("game");
    let times: Vec<u64> = game.values().map(|one| one.t_ns).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 30 * MS));
}
