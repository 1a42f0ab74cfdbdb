//! Random valid scenarios in the simulator: every run ends, conserves packets (the engine asserts it in builds with debug
//! assertions), counts nothing backwards, and delivers a transfer completely and once.

use mptcplab_scenario::{Overrides, Run};
use mptcplab_sim::{Control, Outcome, simulate};
use mptcplab_trace::EventKind;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Choices from the fuzzer's bytes; after their end, everything is the first choice.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn byte(&mut self) -> u64 {
        self.0.next().copied().map_or(0, u64::from)
    }

    fn below(&mut self, count: u64) -> u64 {
        (self.byte() << 8 | self.byte()) % count
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.byte() as usize % of.len()]
    }

    fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }
}

/// What a flow must have delivered at the end; `None` for a flow that has no fixed size.
struct Scenario {
    text: String,
    sizes: Vec<Option<u64>>,
}

/// Simulates the scenario that the bytes choose.
pub fn simulation(bytes: &[u8]) {
    let Scenario { text, sizes } = Scenario::choose(&mut Choices(bytes.iter()));
    let sweep = mptcplab_scenario::parse(&text, "any.toml", None, &Overrides::default())
        .unwrap_or_else(|error| panic!("not a valid scenario: {error}\n{text}"));
    let run = &sweep.runs[0];
    let outcome = simulate(run, &Control::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    check(run, &outcome, &sizes).unwrap_or_else(|why| panic!("{why}\n{text}"));
}

impl Scenario {
    fn choose(c: &mut Choices<'_>) -> Self {
        let links = 1 + c.below(4);
        let mut text = format!(
            "duration = \"900 s\"\nsample = \"off\"\nseed = {}\nprofile = \"{}\"\n",
            c.below(1000),
            c.pick(&["linux-acked", "rfc", "linux-legacy", "linux-pre4"])
        );
        for link in 0..links {
            Self::link(&mut text, link, c);
        }
        let flows = 1 + c.below(3);
        let mut sizes = Vec::new();
        for flow in 0..flows {
            if flow > 0 && c.byte() % 4 == 3 {
                let (rate, stop) = (20 + c.below(700), 1 + c.below(20));
                let _ = write!(
                    text,
                    "[flows.f{flow}]\ntransport = \"udp\"\npath = [\"L{}\"]\nrate = \"{rate} kbit/s\"\nstop = \"{stop} s\"\n",
                    c.below(links)
                );
                sizes.push(None);
            } else {
                sizes.push(Some(Self::tcp(&mut text, flow, links, c)));
            }
        }
        Self { text, sizes }
    }

    fn link(text: &mut String, link: u64, c: &mut Choices<'_>) {
        let aqm = c.pick(&["drop-tail", "red", "codel", "fq-codel"]);
        let ecn = aqm != "drop-tail" && c.flag();
        let _ = write!(
            text,
            "[links.L{link}]\nfrom = \"S\"\nto = \"D\"\nrate = \"{} kbit/s\"\ndelay = \"{} us\"\nqueue = \"{} packets\"\n\
             loss = \"{} %\"\naqm = \"{aqm}\"\necn = {ecn}\n",
            300 + c.below(30_000),
            10 + c.below(60_000),
            1 + c.below(90),
            c.below(12)
        );
        if c.flag() {
            let _ = writeln!(
                text,
                "reorder = {{ probability = \"{} %\", delay = \"uniform(0 ms, {} ms)\" }}",
                1 + c.below(60),
                1 + c.below(150)
            );
        }
        let _ = writeln!(
            text,
            "reverse = {{ loss = \"{} %\", queue = \"{} packets\" }}",
            c.below(8),
            2 + c.below(50)
        );
        if c.flag() {
            let down = 1 + c.below(5);
            let _ = writeln!(
                text,
                "schedule = [{{ at = \"{down} s\", up = false }}, {{ at = \"{} s\", up = true, rate = \"{} kbit/s\" }}]",
                down + 1 + c.below(9),
                200 + c.below(9000)
            );
        }
    }

    /// A transfer. Returns its size.
    fn tcp(text: &mut String, flow: u64, links: u64, c: &mut Choices<'_>) -> u64 {
        let bytes = 1 + c.below(60_000) * (1 + c.below(8));
        let algorithms: Vec<&str> = mptcplab_cc::algorithms().iter().map(|a| a.name()).collect();
        let schedulers: Vec<&str> = mptcplab_model::sched::declarations()
            .iter()
            .map(|one| one.name)
            .collect();
        let paths = 1 + c.below(3.min(links));
        let _ = write!(
            text,
            "[flows.f{flow}]\ntransport = \"mptcp\"\ntraffic = {{ size = \"{bytes} B\" }}\ncc = \"{}\"\nscheduler = \"{}\"\n\
             start = \"{} ms\"\npacing = {}\necn = {}\nrcv_buffer = {}\nsubflows = [\n",
            c.pick(&algorithms),
            c.pick(&schedulers),
            c.below(3000),
            c.flag(),
            c.flag(),
            c.pick(&[
                "\"unlimited\"",
                "\"6 kB\"",
                "\"30 kB\"",
                "{ auto = \"2 MB\" }"
            ]),
        );
        for subflow in 0..paths {
            // The first one stays to the end, so that the transfer can be completed.
            let (backup, stop) = match subflow {
                0 => (false, String::new()),
                _ if c.flag() => (c.flag(), format!(", stop = \"{} s\"", 4 + c.below(20))),
                _ => (c.flag(), String::new()),
            };
            let link = c.below(links);
            let _ = writeln!(
                text,
                "  {{ path = [\"L{link}\"], backup = {backup}{stop} }},"
            );
        }
        text.push_str("]\n");
        bytes
    }
}

fn check(run: &Run, outcome: &Outcome, sizes: &[Option<u64>]) -> Result<(), String> {
    let flows = &outcome.tables.flow;
    let mut last: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for row in 0..flows.len() {
        let now = (flows.delivered_bytes[row], flows.sent_bytes[row]);
        let before = last.insert(flows.flow[row], now).unwrap_or_default();
        if now.0 < before.0 || now.1 < before.1 || now.0 > now.1 {
            return Err(format!("flow {}: {before:?} then {now:?}", flows.flow[row]));
        }
    }
    let links = &outcome.tables.link;
    for row in 0..links.len() {
        let gone = links.dropped_random_pkts[row] + links.dropped_queue_pkts[row];
        if gone + links.departed_pkts[row] > links.arrived_pkts[row] {
            return Err(format!("link {}: more left than arrived", links.link[row]));
        }
    }
    let events = &outcome.tables.event;
    for (flow, size) in (0_u32..).zip(sizes) {
        let Some(size) = *size else { continue };
        let completed: Vec<u64> = (0..events.len())
            .filter(|&row| events.kind[row] == EventKind::FlowCompleted as u8)
            .filter(|&row| i64::from(events.flow[row]) == i64::from(flow))
            .map(|row| events.value[row])
            .collect();
        let delivered = last.get(&flow).map_or(0, |&(delivered, _)| delivered);
        if completed != [size] || delivered != size {
            let name = &run.flows[usize::try_from(flow).unwrap_or(0)].name;
            return Err(format!(
                "{name}: {size} bytes, of which {delivered} arrived; completions {completed:?}"
            ));
        }
    }
    Ok(())
}
