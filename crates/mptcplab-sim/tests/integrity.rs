//! Whatever the network does, a transfer arrives complete, once and in order, and packets are conserved
//! (the engine asserts conservation in builds with debug assertions, as test builds are).

use crate::common::{Measured, simulate_one};
use mptcplab_trace::EventKind;

/// A small generator of its own, so that a failing case can be named by its number.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

fn scheduler_names() -> Vec<&'static str> {
    let all = mptcplab_model::sched::declarations().iter();
    all.map(|d| d.name).collect()
}

/// A random network of up to four different paths, and a transfer over them. In every third case all links reorder
/// packets, and in every fourth case priorities change.
fn scenario(case: u64) -> (String, u64) {
    let mut d = Draw(case.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // Drawn from a stream of its own, so that the other cases stay as they are.
    let mut reordering =
        (case % 3 == 1).then(|| Draw(case.wrapping_mul(0xd134_2543_de82_ef95) | 1));
    let paths = 1 + d.below(4);
    let bytes = 1 + d.below(3_000_000);
    let mut text = format!(
        "duration = \"2000 s\"\nsample = \"off\"\nseed = {case}\nprofile = \"{}\"\n",
        d.pick(&["rfc", "linux-acked", "linux-legacy", "linux-pre4"])
    );
    for i in 0..paths {
        text += &format!(
            "[links.L{i}]\nfrom = \"S\"\nto = \"D\"\nrate = \"{} kbit/s\"\ndelay = \"{} ms\"\nqueue = \"{} packets\"\nloss = \"{} %\"\n",
            500 + d.below(20_000),
            1 + d.below(120),
            1 + d.below(60),
            d.below(12)
        );
        let aqm = d.pick(&["drop-tail", "red", "codel", "fq-codel"]);
        let ecn = aqm != "drop-tail" && d.below(2) == 0;
        let mut held_up = || {
            reordering.as_mut().map_or(String::new(), |d| {
                format!(
                    "reorder = {{ probability = \"{} %\", delay = \"uniform(0 ms, {} ms)\" }}",
                    1 + d.below(60),
                    1 + d.below(150)
                )
            })
        };
        let (there, back) = (held_up(), held_up());
        let comma = if back.is_empty() { "" } else { ", " };
        text += &format!(
            "aqm = \"{aqm}\"\necn = {ecn}\n{there}\nreverse = {{ loss = \"{} %\", queue = \"{} packets\"{comma}{back} }}\n",
            d.below(8),
            2 + d.below(50)
        );
        if d.below(3) == 0 {
            let down = 1 + d.below(5);
            text += &format!(
                "schedule = [{{ at = \"{down} s\", up = false }}, {{ at = \"{} s\", up = true, delay = \"{} ms\" }}]\n",
                down + 1 + d.below(9),
                1 + d.below(90)
            );
        }
    }
    text += &format!(
        "[flows.f]\ntraffic = {{ size = \"{bytes} B\" }}\ncc = \"{}\"\n",
        d.pick(&["reno", "cubic", "lia", "olia", "balia", "wvegas", "coupled"])
    );
    text += &format!("ecn = {}\npacing = {}\n", d.below(2) == 0, d.below(3) == 0);
    if d.below(2) == 0 {
        text += &format!("send_jitter = \"{} us\"\n", 1 + d.below(900));
    }
    text += &format!(
        "rcv_buffer = {}\n",
        d.pick(&[
            "\"unlimited\"",
            "\"6 kB\"",
            "\"30 kB\"",
            "{ auto = \"2 MB\" }"
        ])
    );
    if paths == 1 {
        text += "transport = \"mptcp\"\n";
    }
    let scheduler = d.pick(&scheduler_names());
    text += &format!("scheduler = \"{scheduler}\"\n");
    if scheduler == "linger" && case % 2 == 0 {
        text += "tso = true\n";
    }
    if case % 3 == 1 {
        text += "comp_sack = true\n";
    }
    // Again from a stream of its own: every fourth case has changes of priority and subflows that are given up late.
    let mut ranking = (case % 4 == 2).then(|| Draw(case.wrapping_mul(0xa076_1d64_78bd_642f) | 1));
    if let Some(d) = &mut ranking {
        text += &format!("stale_after = {}\n", 1 + d.below(5));
    }
    text += "subflows = [\n";
    for i in 0..paths {
        let stop = if i > 0 && d.below(3) == 0 {
            format!(", stop = \"{} s\"", 2 + d.below(20))
        } else {
            String::new()
        };
        let priority = ranking.as_mut().map_or(String::new(), priorities);
        text += &format!("  {{ path = [\"L{i}\"]{stop}{priority} }},\n");
    }
    text += "]\n";
    (text, bytes)
}

/// Three changes of a subflow's priority, and whether it begins as a backup.
fn priorities(d: &mut Draw) -> String {
    let mut at = 0;
    let mut change = || {
        at += 1 + d.below(9000);
        format!("{{ at = \"{at} ms\", backup = {} }}", d.below(2) == 0)
    };
    let changes = [change(), change(), change()];
    format!(
        ", backup = {}, priority = [{}]",
        d.below(2) == 0,
        changes.join(", ")
    )
}

fn completions(run: &Measured) -> Vec<u64> {
    let e = &run.outcome.tables.event;
    (0..e.len())
        .filter(|&i| e.kind[i] == EventKind::FlowCompleted as u8)
        .map(|i| e.value[i])
        .collect()
}

#[test]
fn transfers_arrive_complete_and_once() {
    for case in 0..4000 {
        let (text, bytes) = scenario(case);
        let run = simulate_one(&text, &[]);
        assert_eq!(run.delivered_bytes("f"), bytes, "case {case}:\n{text}");
        assert_eq!(completions(&run), [bytes], "case {case}:\n{text}");
    }
}

#[test]
fn transfers_without_sack_arrive_complete_and_once() {
    // The networks and transfers are the same, so every recovery meets reordering, marks, jitter, pauses and lost ACKs.
    let mut met = [0; 3];
    for case in 0..360 {
        let (text, bytes) = scenario(case);
        for (i, recovery) in ["tahoe", "reno", "newreno"].into_iter().enumerate() {
            let text = text.replace(
                "[flows.f]\n",
                &format!("[flows.f]\nrecovery = \"{recovery}\"\n"),
            );
            let run = simulate_one(&text, &[]);
            assert_eq!(run.delivered_bytes("f"), bytes, "case {case}:\n{text}");
            assert_eq!(completions(&run), [bytes], "case {case}:\n{text}");
            met[i] += run.events("f", 0, EventKind::LossEvent).len();
        }
    }
    assert!(met.iter().all(|n| *n > 1000), "few losses met: {met:?}");
}

/// Several different flows on a shared network of two stages: S to M over `A` links, M to D over `B` links.
fn crowd(case: u64) -> String {
    let mut d = Draw(case.wrapping_mul(0xd1b5_4a32_d192_ed03) | 1);
    let (first, second) = (1 + d.below(3), 1 + d.below(3));
    let mut text = format!(
        "duration = \"{} s\"\nsample = \"100 ms\"\nseed = {case}\nprofile = \"{}\"\n",
        3 + d.below(12),
        d.pick(&["rfc", "linux-acked", "linux-legacy", "linux-pre4"])
    );
    for (stage, count, from, to) in [("A", first, "S", "M"), ("B", second, "M", "D")] {
        for i in 0..count {
            text += &format!(
                "[links.{stage}{i}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{} kbit/s\"\ndelay = \"{} us\"\nqueue = \"{} packets\"\naqm = \"{}\"\nloss = \"{} %\"\n",
                300 + d.below(30_000),
                100 + d.below(60_000),
                1 + d.below(200),
                d.pick(&["drop-tail", "drop-tail", "red", "codel", "fq-codel"]),
                d.below(3)
            );
        }
    }
    for f in 0..1 + d.below(6) {
        let path = |d: &mut Draw| format!("[\"A{}\", \"B{}\"]", d.below(first), d.below(second));
        if d.below(5) == 0 {
            text += &format!(
                "[flows.f{f}]\ntransport = \"udp\"\npath = {}\nrate = \"{} kbit/s\"\npacket = \"{} bytes\"\n",
                path(&mut d),
                50 + d.below(4000),
                60 + d.below(1400)
            );
            continue;
        }
        let subflows: Vec<String> = (0..1 + d.below(4))
            .map(|i| {
                let backup = i > 0 && d.below(4) == 0;
                format!("{{ path = {}, backup = {backup} }}", path(&mut d))
            })
            .collect();
        let cc = d.pick(&[
            "reno",
            "cubic",
            "lia",
            "olia",
            "balia",
            "wvegas",
            "coupled",
            "semicoupled",
            "ewtcp",
        ]);
        let names = scheduler_names();
        let scheduler = d.pick(&names);
        text += &format!(
            "[flows.f{f}]\ntransport = \"mptcp\"\ncc = \"{cc}\"\nscheduler = \"{scheduler}\"\nstart = \"uniform(0 s, 1 s)\"\npacing = {}\ntraffic = {}\nsubflows = [{}]\n",
            d.below(3) == 0,
            d.pick(&[
                "\"bulk\"",
                "{ on = \"300 ms\", off = \"uniform(0 s, 900 ms)\" }",
                "{ size = \"150 kB\" }"
            ]),
            subflows.join(", ")
        );
    }
    text
}

#[test]
fn crowds_keep_within_their_links_and_repeat() {
    for case in 0..600 {
        let text = crowd(case);
        let run = simulate_one(&text, &[]);
        for link in run.run.links.iter() {
            let used = run.utilisation(&link.name);
            assert!(
                used <= 1.001,
                "case {case}: {} used {used}\n{text}",
                link.name
            );
        }
        let flows = &run.outcome.tables.flow;
        for i in 0..flows.len() {
            assert!(
                flows.delivered_bytes[i] <= flows.sent_bytes[i],
                "case {case}: more arrived than was sent\n{text}"
            );
        }
        if case % 10 == 0 {
            let again = simulate_one(&text, &[]);
            assert!(
                run.outcome.tables == again.outcome.tables,
                "case {case} does not repeat\n{text}"
            );
        }
    }
}
