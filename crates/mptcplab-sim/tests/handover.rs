//! Which subflows carry the data when subflows change their priority, time out repeatedly, or are removed and added again
//! (RFC 8684 sections 3.3.6 to 3.3.8).

use crate::common::{Measured, simulate_one};
use mptcplab_trace::EventKind::{
    FlowCompleted, PriorityChanged, RtoFired, SubflowAdded, SubflowFailed, SubflowRecovered,
    SubflowRemoved,
};

/// Path one: 10 Mbit/s, RTT 32 ms; path two: 6 Mbit/s, RTT 52 ms. The second hop of path one has no queue, so that
/// an outage there loses packets and delays none.
const TWO: &str = r#"
duration = "16 s"
sample = "10 ms"
profile = "linux-acked"
cc = "reno"
[links.one]
from = "S"
to = "M"
rate = "10 Mbit/s"
delay = "15 ms"
[links.one-b]
from = "M"
to = "D"
rate = "1 Gbit/s"
delay = "1 ms"
schedule = [OUTAGE]
reverse = { schedule = [] }
[links.two]
from = "S"
to = "D"
rate = "6 Mbit/s"
delay = "26 ms"
[flows.f]
cwnd_clamp = "60 packets"
subflows = [SUBFLOWS]
"#;
const ONE: &str = "path = [\"one\", \"one-b\"]";
const OTHER: &str = "path = [\"two\"]";
/// Packets per second that fill a path.
const FULL: [f64; 2] = [10e6 / 8.0 / 1514.0, 6e6 / 8.0 / 1514.0];

fn scenario(subflows: &str, outage: &str) -> String {
    TWO.replace("SUBFLOWS", subflows).replace("OUTAGE", outage)
}

/// Packets per second that reached a subflow's receiver, over those that fill its path.
fn load(run: &Measured, subflow: u32, path: usize, from_ms: f64, to_ms: f64) -> f64 {
    let packets =
        run.at("f", subflow, to_ms, |t| &t.rx_pkts) - run.at("f", subflow, from_ms, |t| &t.rx_pkts);
    packets as f64 * 1000.0 / (to_ms - from_ms) / FULL[path]
}

/// The longest time in ms without anything delivered in order, between two times.
fn longest_stall(run: &Measured, from_ms: f64, to_ms: f64) -> f64 {
    let t = &run.outcome.tables.flow;
    let (mut longest, mut since, mut before) = (0.0_f64, from_ms, None);
    for i in 0..t.len() {
        let ms = t.t_ns[i] as f64 / 1e6;
        if ms < from_ms || ms > to_ms {
            continue;
        }
        if before != Some(t.delivered_bytes[i]) {
            before = Some(t.delivered_bytes[i]);
            since = ms;
        }
        longest = longest.max(ms - since);
    }
    longest
}

#[test]
fn a_change_of_priority_moves_the_data() {
    let subflows = format!(
        "{{ {ONE}, priority = [{{ at = \"8 s\", backup = true }}] }}, \
         {{ {OTHER}, backup = true, priority = [{{ at = \"4 s\", backup = false }}, {{ at = \"12 s\", backup = true }}] }}"
    );
    for (scheduler, cc) in [
        ("minrtt", "olia"),
        ("roundrobin", "lia"),
        ("linger", "balia"),
    ] {
        let set = [("scheduler", scheduler), ("cc", cc)];
        let run = simulate_one(&scenario(&subflows, ""), &set);
        assert_eq!(run.events("f", 0, PriorityChanged), [(8000.0, 1)]);
        assert_eq!(
            run.events("f", 1, PriorityChanged),
            [(4000.0, 0), (12_000.0, 1)]
        );
        let both = |from: f64, to: f64| [load(&run, 0, 0, from, to), load(&run, 1, 1, from, to)];
        // Path two takes over 4 s to fill under coupled growth; it only has to be in use.
        let expected: [(f64, f64, [std::ops::RangeInclusive<f64>; 2]); 4] = [
            (1000.0, 4000.0, [0.95..=1.01, 0.0..=0.0]),
            (5000.0, 8000.0, [0.5..=1.01, 0.2..=1.01]),
            // Packets in flight have arrived after a second. A former backup fills its path if it is alone.
            (9000.0, 12_000.0, [0.0..=0.0, 0.9..=1.01]),
            // Both are backups now, so both may carry data.
            (13_000.0, 16_000.0, [0.5..=1.01, 0.2..=1.01]),
        ];
        for (from, to, ranges) in expected {
            for (subflow, (got, range)) in both(from, to).iter().zip(ranges).enumerate() {
                assert!(
                    range.contains(got),
                    "{scheduler}, {cc}: subflow {subflow} at {got} of its path, {from} to {to} ms"
                );
            }
        }
    }
}

#[test]
fn an_outage_stops_a_transfer_for_a_timeout_and_not_longer() {
    let subflows = format!("{{ {ONE} }}, {{ {OTHER} }}");
    let outage = "{ at = \"5 s\", up = false }, { at = \"9 s\", up = true }";
    let run = |reinject: &str| {
        simulate_one(
            &scenario(&subflows, outage),
            &[("flows.f.reinject", reinject)],
        )
    };
    let with = run("true");
    let timeout = with.events("f", 0, RtoFired)[0].0 - 5000.0;
    // The timeout covers an RTT of 32 ms and a queue of at most 60 packets, and is at least 200 ms.
    assert!((200.0..500.0).contains(&timeout), "{timeout} ms");
    let stall = longest_stall(&with, 4900.0, 9000.0);
    // The timeout, and then one window at the rate of the other path.
    assert!(
        stall >= timeout - 20.0 && stall < timeout + 250.0,
        "{stall} ms, timeout after {timeout} ms"
    );
    assert!(longest_stall(&run("false"), 4900.0, 9500.0) > 3900.0);
}

#[test]
fn a_subflow_is_set_aside_after_as_many_timeouts_as_asked_for() {
    let subflows = format!("{{ {ONE} }}, {{ {OTHER} }}");
    let outage = "{ at = \"5 s\", up = false }, { at = \"9 s\", up = true }";
    for timeouts in [1, 2, 4] {
        let count = timeouts.to_string();
        let set = [("flows.f.stale_after", count.as_str())];
        let run = simulate_one(&scenario(&subflows, outage), &set);
        let fired = run.events("f", 0, RtoFired);
        let failed = run.events("f", 0, SubflowFailed);
        assert_eq!(failed, [(fired[timeouts - 1].0, timeouts as u64)]);
        // Each timeout before it handed over one segment, this one the rest of the window.
        let handed_over = |ms: f64| run.flow_at("f", ms, |t| &t.reinjected_pkts);
        assert!(handed_over(failed[0].0 - 10.0) < timeouts as u64);
        let all = handed_over(failed[0].0 + 2000.0);
        assert!((50..=60).contains(&all), "{timeouts}: {all}");
        let back = run.events("f", 0, SubflowRecovered);
        assert_eq!(back.len(), 1);
        assert!(back[0].0 > 9000.0);
        assert!(load(&run, 0, 0, 14_000.0, 16_000.0) > 0.95);
    }
}

/// Before: a doubtful subflow kept its oldest segment until it was given up, since it counted as the one in use.
#[test]
fn a_backup_helps_out_before_the_regular_subflow_is_given_up() {
    let subflows = format!("{{ {ONE} }}, {{ {OTHER}, backup = true }}");
    let text = scenario(&subflows, "{ at = \"5 s\", up = false }");
    let run = simulate_one(&text, &[("flows.f.stale_after", "3")]);
    let fired = run.events("f", 0, RtoFired);
    let sent = |ms: f64| run.at("f", 1, ms, |t| &t.sent_pkts);
    assert_eq!(sent(fired[0].0 - 10.0), 0);
    assert_eq!(sent(fired[1].0 - 10.0), 1);
    assert_eq!(sent(fired[2].0 - 10.0), 2);
    assert_eq!(run.events("f", 0, SubflowFailed), [(fired[2].0, 3)]);
    assert!(load(&run, 1, 1, fired[2].0 + 500.0, 16_000.0) > 0.95);
}

#[test]
fn break_before_make_loses_the_gap_and_nothing_else() {
    let subflows = format!("{{ {ONE}, stop = \"4 s\" }}, {{ {OTHER}, start = \"6 s\" }}");
    let run = simulate_one(
        &scenario(&subflows, ""),
        &[("flows.f.traffic", "{ size = \"9 MB\" }")],
    );
    assert_eq!(run.events("f", 0, SubflowRemoved)[0].0, 4000.0);
    // Two round trips of path two later, its four packets being 60 to 84 bytes long.
    let joined = run.events("f", 1, SubflowAdded)[0].0;
    assert!((6104.0..6106.0).contains(&joined), "{joined}");
    let stall = longest_stall(&run, 3000.0, 8000.0);
    // From the last packet of path one to the first of path two, 28 ms after it has joined.
    assert!((2080.0..2160.0).contains(&stall), "{stall} ms");
    assert_eq!(run.events("f", -1, FlowCompleted)[0].1, 9_000_000);
    // One initial window: its first ACK says that all the others had arrived.
    assert_eq!(run.flow_at("f", 16_000.0, |t| &t.reinjected_pkts), 10);
}

#[test]
fn make_before_break_does_not_stall() {
    let subflows = format!("{{ {ONE}, stop = \"4 s\" }}, {{ {OTHER}, start = \"3 s\" }}");
    let run = simulate_one(
        &scenario(&subflows, ""),
        &[("flows.f.traffic", "{ size = \"8 MB\" }")],
    );
    assert_eq!(run.events("f", 0, SubflowRemoved)[0].0, 4000.0);
    // The 60 packets of path one go over path two, which its own 60 packets fill for 121 ms.
    let stall = longest_stall(&run, 2000.0, 6000.0);
    assert!(stall <= 200.0, "{stall} ms");
    assert_eq!(run.events("f", -1, FlowCompleted)[0].1, 8_000_000);
}

#[test]
fn an_interface_that_returns_is_a_new_subflow_on_the_old_path() {
    let subflows = format!(
        "{{ {ONE}, stop = \"5 s\", name = \"wifi\" }}, {{ {OTHER}, name = \"lte\" }}, \
         {{ {ONE}, start = \"8 s\", name = \"wifi-again\" }}"
    );
    for cc in ["reno", "lia", "olia"] {
        let run = simulate_one(&scenario(&subflows, ""), &[("cc", cc)]);
        let joined = run.events("f", 2, SubflowAdded)[0].0;
        assert!((8064.0..8066.0).contains(&joined), "{joined}");
        assert_eq!(run.at("f", 2, 7990.0, |t| &t.state), 0);
        // It starts again with the initial window.
        assert_eq!(run.at("f", 2, joined, |t| &t.cwnd_pkts), 10);
        assert_eq!(load(&run, 0, 0, 5100.0, 16_000.0), 0.0);
        assert!(load(&run, 2, 0, 14_000.0, 16_000.0) > 0.8, "{cc}");
        assert!(longest_stall(&run, 1000.0, 16_000.0) < 200.0, "{cc}");
    }
}

/// Segments go in pairs, since the window holds two: the first of each over 50 ms, the second over 10 ms. The ACK of the first
/// announces one, and when the application has read both, 50 us later, the slow path announces two.
#[test]
fn waiting_and_blocking_are_counted_to_the_nanosecond() {
    let text = r#"
duration = "10 s"
sample = "1 s"
profile = "rfc"
cc = "reno"
scheduler = "roundrobin"
[links.slow]
from = "S"
to = "D"
rate = "100 Mbit/s"
delay = "50 ms"
[links.fast]
from = "S"
to = "D"
rate = "100 Mbit/s"
delay = "10 ms"
[flows.f]
paths = [["slow"], ["fast"]]
rcv_buffer = "2856 B"
"#;
    let run = simulate_one(text, &[]);
    let at = |ms: f64| {
        [
            run.flow_at("f", ms, |t| &t.ooo_pkts),
            run.flow_at("f", ms, |t| &t.ooo_delay_sum_ns),
            run.flow_at("f", ms, |t| &t.reorder_depth_sum_pkts),
            run.flow_at("f", ms, |t| &t.blocked_ns),
            run.flow_at("f", ms, |t| &t.delivered_bytes) / 1428,
        ]
    };
    let (from, to) = (at(2000.0), at(10_000.0));
    let grown: Vec<u64> = from.iter().zip(to).map(|(a, b)| b - a).collect();
    // A pair every 100.13 ms: 1514 bytes there and the ACK of 74 back take 127.04 us at 100 Mbit/s.
    let pairs = grown[0];
    assert!((79..=80).contains(&pairs), "{pairs} pairs");
    assert_eq!(grown[1], pairs * 39_950_000);
    assert_eq!(grown[2], pairs);
    // Both windows have room, there are always data, and two segments are not acknowledged: always blocked.
    assert_eq!(grown[3], 8_000_000_000);
    assert_eq!(grown[4], 2 * pairs);
    assert_eq!(
        run.flow_at("f", 5000.0, |t| &t.ooo_delay_max_ns),
        39_950_000
    );
    assert_eq!(run.flow_at("f", 5000.0, |t| &t.reorder_depth_max_pkts), 1);
}

/// Upstream's scheduler, and an outage that loses what is on path one.
fn upstream(stale_after: &str) -> Measured {
    let subflows = format!("{{ {ONE} }}, {{ {OTHER} }}");
    let outage = "{ at = \"5 s\", up = false }, { at = \"11 s\", up = true }";
    let set = [
        ("scheduler", "linger"),
        ("flows.f.stale_after", stale_after),
    ];
    simulate_one(&scenario(&subflows, outage), &set)
}

/// On Linux 6.18 the same outage, with a window that is not clamped, was answered after 1.25 s.
#[test]
fn upstream_moves_nothing_at_a_timeout_and_everything_after_enough_checks_without_progress() {
    // Segments of the oldest chunk of 32,728 bytes.
    const CHUNK: u64 = 23;
    for (stale_after, checks) in [("4", 5), ("3", 4)] {
        let run = upstream(stale_after);
        let failed = run.events("f", 0, SubflowFailed);
        assert_eq!(failed.len(), 1, "{stale_after}");
        let took = failed[0].0 - 5000.0;
        // Checks are 200 ms apart, or, while the other subflow has data outstanding, two RTTs of up to 173 ms.
        let (least, most) = (200.0 * f64::from(checks), 346.0 * f64::from(checks));
        assert!((least..most).contains(&took), "{stale_after}: {took} ms");

        let again = |ms: f64| run.flow_at("f", ms, |t| &t.reinjected_pkts);
        let timeout = run.events("f", 0, RtoFired)[0].0;
        assert!(timeout < failed[0].0 - 100.0);
        assert_eq!(again(timeout + 10.0), again(timeout - 10.0));
        assert!(again(timeout + 10.0) <= CHUNK, "{stale_after}");
        // As the connection's buffer is full, the other subflow is idle at some check and sends the oldest chunk.
        assert!(again(failed[0].0 - 10.0) <= 3 * CHUNK, "{stale_after}");
        // Then it sends all of it, including what the other path has delivered: several windows of 60 segments.
        assert!(again(11_000.0) > 180, "{stale_after}: {}", again(11_000.0));
        assert!(load(&run, 1, 1, failed[0].0 + 500.0, 11_000.0) > 0.95);
        assert!(load(&run, 0, 0, 14_000.0, 16_000.0) > 0.9);
    }
}

#[test]
fn upstream_sends_the_oldest_chunk_on_an_idle_subflow() {
    let run = upstream("8");
    let failed = run.events("f", 0, SubflowFailed)[0].0;
    let again: Vec<u64> = (50..(failed as u64) / 10)
        .map(|t| run.flow_at("f", t as f64 * 10.0, |t| &t.reinjected_pkts))
        .collect();
    let steps: Vec<u64> = again
        .windows(2)
        .map(|w| w[1] - w[0])
        .filter(|&n| n > 0)
        .collect();
    // The first chunk may be acknowledged in part, and what is in flight of path one may end within one.
    assert!(
        steps.len() >= 2 && steps.iter().all(|&n| n <= 23),
        "{steps:?}"
    );
    assert!(steps.contains(&23), "{steps:?}");
}

/// After `stale_after` checks, both paths that died are set aside at once, as in `mptcp_subflow_get_retrans`.
#[test]
fn upstream_sets_all_stale_subflows_aside_in_one_check() {
    let third = r#"
[links.three]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "19 ms"
schedule = [{ at = "5 s", loss = "100 %" }]
"#;
    let subflows = format!("{{ {ONE} }}, {{ {OTHER} }}, {{ path = [\"three\"] }}");
    let text = scenario(&subflows, "{ at = \"5 s\", up = false }") + third;
    let run = simulate_one(&text, &[("scheduler", "linger")]);
    let (first, third) = (
        run.events("f", 0, SubflowFailed),
        run.events("f", 2, SubflowFailed),
    );
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].0, third[0].0);
    assert!(run.events("f", 1, SubflowFailed).is_empty());
}

/// Nothing new is sent on path two before everything that is missing was sent there again.
#[test]
fn upstream_sends_the_data_of_a_removed_subflow_before_new_data() {
    let subflows = format!("{{ {ONE}, stop = \"4 s\" }}, {{ {OTHER} }}");
    let set = [
        ("scheduler", "linger"),
        ("flows.f.cwnd_clamp", "200 packets"),
    ];
    let run = simulate_one(&scenario(&subflows, ""), &set);
    // What the connection had sent or assigned when path one was removed, segments of 1428 bytes.
    let again = run.flow_at("f", 8000.0, |t| &t.reinjected_pkts);
    assert!(again > 400, "{again}");
    // What path two had been given goes before them, which takes a second. Then nothing waits any more.
    let first = longest_stall(&run, 4000.0, 5400.0);
    assert!((800.0..1300.0).contains(&first), "{first} ms");
    let second = longest_stall(&run, 5400.0, 14_000.0);
    assert!(second < 100.0, "{second} ms");
}

/// Both paths die, and the first one returns: the data of the other are sent there, without waiting for its next timeout.
#[test]
fn a_path_that_returns_takes_over_the_data_of_one_that_is_still_dead() {
    let outages = "{ at = \"3 s\", up = false }, { at = \"12 s\", up = true }";
    let subflows = format!("{{ {ONE} }}, {{ {OTHER} }}");
    let text = scenario(&subflows, outages).replace(
        "delay = \"26 ms\"",
        "delay = \"26 ms\"\nschedule = [{ at = \"4 s\", up = false }]",
    );
    for scheduler in ["minrtt", "roundrobin"] {
        let run = simulate_one(&text, &[("scheduler", scheduler), ("duration", "40 s")]);
        let recovered = run.events("f", 0, SubflowRecovered)[0].0;
        let failed = run.events("f", 1, SubflowFailed)[0].0;
        assert_eq!(failed, recovered, "{scheduler}");
        let stall = longest_stall(&run, recovered, 40_000.0);
        assert!(stall < 300.0, "{scheduler}: {stall} ms");
    }
}
