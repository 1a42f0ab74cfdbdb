//! Runs scenarios that are given as text, and reads numbers from the results.

use mptcplab_scenario::{Overrides, Sweep, parse};
use mptcplab_sim::{Control, Outcome, simulate};
use mptcplab_trace::EventKind;

const SEND_JITTER: &str = "send_jitter";

/// A TCP flow `f` over A (10 Mbit/s, 1 ms) and the fast hop B with a one-way delay and a schedule; `flow` is the rest of
/// its table. Every segment is acknowledged.
pub(crate) fn over_two_hops(sample_ms: u32, delay_ms: u32, schedule: &str, flow: &str) -> String {
    format!(
        r#"
duration = "30 s"
sample = "{sample_ms} ms"
profile = "rfc"
cc = "reno"
[links.A]
from = "S"
to = "M"
rate = "10 Mbit/s"
delay = "1 ms"
queue = "unlimited"
[links.B]
from = "M"
to = "D"
rate = "1 Gbit/s"
delay = "{delay_ms} ms"
schedule = [{schedule}]
reverse = {{ schedule = [] }}
[flows.f]
transport = "tcp"
paths = [["A", "B"]]
{flow}
"#
    )
}

/// Parses a scenario and overrides keys. Packets leave at once, so that their times can be worked out by hand, unless the
/// scenario or an override says otherwise.
pub(crate) fn sweep(text: &str, set: &[(&str, &str)]) -> Sweep {
    let says_jitter =
        text.contains(SEND_JITTER) || set.iter().any(|(k, _)| k.ends_with(SEND_JITTER));
    let exact = (!says_jitter).then_some(("tcp.send_jitter", "0 s"));
    let set = exact
        .iter()
        .chain(set)
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    match parse(
        text,
        "test.toml",
        None,
        &Overrides {
            set,
            ..Overrides::default()
        },
    ) {
        Ok(sweep) => sweep,
        Err(e) => panic!("{e}"),
    }
}

/// Simulates every run of a scenario.
pub(crate) fn simulate_all(text: &str, set: &[(&str, &str)]) -> Vec<Measured> {
    let sweep = sweep(text, set);
    sweep
        .runs
        .iter()
        .map(|run| Measured {
            run: run.clone(),
            outcome: simulate(run, &Control::default()).unwrap(),
        })
        .collect()
}

/// Simulates the first run of a scenario.
pub(crate) fn simulate_one(text: &str, set: &[(&str, &str)]) -> Measured {
    simulate_all(text, set).swap_remove(0)
}

/// A run and its outcome.
pub(crate) struct Measured {
    pub(crate) run: mptcplab_scenario::Run,
    pub(crate) outcome: Outcome,
}

impl Measured {
    fn flow_index(&self, name: &str) -> u32 {
        self.run
            .flows
            .iter()
            .position(|f| f.name == name)
            .unwrap_or_else(|| panic!("no flow {name}")) as u32
    }

    /// The row of a flow at a time.
    fn flow_row(&self, flow: u32, t_ns: u64) -> usize {
        let t = &self.outcome.tables.flow;
        (0..t.len())
            .find(|&i| t.flow[i] == flow && t.t_ns[i] == t_ns)
            .unwrap()
    }

    fn delivered(&self, flow: u32, t_ns: u64) -> u64 {
        self.outcome.tables.flow.delivered_bytes[self.flow_row(flow, t_ns)]
    }

    /// Goodput after the warm-up, Mbit/s.
    pub(crate) fn goodput(&self, flow: &str) -> f64 {
        let f = self.flow_index(flow);
        let bytes = self.delivered(f, self.run.duration_ns) - self.delivered(f, self.run.warmup_ns);
        bytes as f64 * 8e3 / (self.run.duration_ns - self.run.warmup_ns) as f64
    }

    /// Bytes a flow delivered in all.
    pub(crate) fn delivered_bytes(&self, flow: &str) -> u64 {
        self.delivered(self.flow_index(flow), self.run.duration_ns)
    }

    /// Bytes a flow sent in all.
    pub(crate) fn sent_bytes(&self, flow: &str) -> u64 {
        let row = self.flow_row(self.flow_index(flow), self.run.duration_ns);
        self.outcome.tables.flow.sent_bytes[row]
    }

    /// Mean of a subflow column over the samples after the warm-up.
    pub(crate) fn mean(
        &self,
        flow: &str,
        subflow: u32,
        column: impl Fn(&mptcplab_trace::SubflowTable, usize) -> f64,
    ) -> f64 {
        let f = self.flow_index(flow);
        let t = &self.outcome.tables.subflow;
        let rows: Vec<f64> = (0..t.len())
            .filter(|&i| {
                t.flow[i] == f && t.subflow[i] == subflow && t.t_ns[i] >= self.run.warmup_ns
            })
            .map(|i| column(t, i))
            .collect();
        rows.iter().sum::<f64>() / rows.len() as f64
    }

    /// Last row of a subflow.
    pub(crate) fn last<T: Copy>(
        &self,
        flow: &str,
        subflow: u32,
        column: impl Fn(&mptcplab_trace::SubflowTable) -> &Vec<T>,
    ) -> T {
        let f = self.flow_index(flow);
        let t = &self.outcome.tables.subflow;
        let i = (0..t.len())
            .rev()
            .find(|&i| t.flow[i] == f && t.subflow[i] == subflow)
            .unwrap();
        column(t)[i]
    }

    /// Share of a link's capacity used after the warm-up.
    pub(crate) fn utilisation(&self, link: &str) -> f64 {
        let l = self.run.links.iter().position(|k| k.name == link).unwrap();
        let t = &self.outcome.tables.link;
        let at = |time: u64| {
            (0..t.len())
                .find(|&i| t.link[i] == l as u32 && t.t_ns[i] == time)
                .map(|i| t.departed_bytes[i])
                .unwrap()
        };
        let bytes = at(self.run.duration_ns) - at(self.run.warmup_ns);
        let seconds = (self.run.duration_ns - self.run.warmup_ns) as f64 / 1e9;
        bytes as f64 * 8.0 / seconds / self.run.links[l].config.rate_bps as f64
    }
}

impl Measured {
    /// When something happened to a subflow, and the event's value: (ms, value).
    pub(crate) fn events(&self, flow: &str, subflow: i32, kind: EventKind) -> Vec<(f64, u64)> {
        let f = self.flow_index(flow) as i32;
        let e = &self.outcome.tables.event;
        (0..e.len())
            .filter(|&i| e.kind[i] == kind as u8 && e.flow[i] == f && e.subflow[i] == subflow)
            .map(|i| (e.t_ns[i] as f64 / 1e6, e.value[i]))
            .collect()
    }

    /// A subflow column's value in its last row at or before a time in ms.
    pub(crate) fn at<T: Copy>(
        &self,
        flow: &str,
        subflow: u32,
        ms: f64,
        column: impl Fn(&mptcplab_trace::SubflowTable) -> &Vec<T>,
    ) -> T {
        let f = self.flow_index(flow);
        let t = &self.outcome.tables.subflow;
        let i = (0..t.len())
            .rev()
            .find(|&i| {
                t.flow[i] == f && t.subflow[i] == subflow && t.t_ns[i] as f64 <= ms * 1e6 + 0.5
            })
            .unwrap();
        column(t)[i]
    }

    /// A flow column's value in its last row at or before a time in ms.
    pub(crate) fn flow_at(
        &self,
        flow: &str,
        ms: f64,
        column: impl Fn(&mptcplab_trace::FlowTable) -> &Vec<u64>,
    ) -> u64 {
        let f = self.flow_index(flow);
        let t = &self.outcome.tables.flow;
        let i = (0..t.len())
            .rev()
            .find(|&i| t.flow[i] == f && t.t_ns[i] as f64 <= ms * 1e6 + 0.5)
            .unwrap();
        column(t)[i]
    }

    /// A link column's last value.
    pub(crate) fn link_last<T: Copy>(
        &self,
        link: &str,
        column: impl Fn(&mptcplab_trace::LinkTable) -> &Vec<T>,
    ) -> T {
        let l = self.run.links.iter().position(|k| k.name == link).unwrap() as u32;
        let t = &self.outcome.tables.link;
        let i = (0..t.len()).rev().find(|&i| t.link[i] == l).unwrap();
        column(t)[i]
    }
}

/// Jain's fairness index.
pub(crate) fn jain(x: &[f64]) -> f64 {
    let sum: f64 = x.iter().sum();
    sum * sum / (x.len() as f64 * x.iter().map(|v| v * v).sum::<f64>())
}

/// Runs a long flow `f` over a scenario like [`over_two_hops`] whose link A marks instead of dropping. Returns the run and
/// the time and threshold of every reduction. Reductions halve the window at most once per round trip of 82 ms, without
/// a loss.
pub(crate) fn halved_by_marks(text: &str) -> (Measured, Vec<(f64, u64)>) {
    let text = text
        .replace(
            "queue = \"unlimited\"",
            "queue = \"unlimited\"\naqm = \"codel\"\necn = true",
        )
        .replace("traffic = { size = \"1448 B\" }", "ecn = true");
    let run = simulate_one(&text, &[]);
    let marks = run.events("f", 0, EventKind::EcnEvent);
    assert!(marks.len() > 5, "{marks:?}");
    for pair in marks.windows(2) {
        assert!(
            pair[1].0 - pair[0].0 > 82.0,
            "two reductions in an RTT: {pair:?}"
        );
    }
    for (ms, ssthresh) in &marks {
        let before = run.at("f", 0, ms - 1.0, |t| &t.cwnd_pkts);
        assert!(
            u64::from(before / 2).abs_diff(*ssthresh) <= 1,
            "{before} to {ssthresh}"
        );
    }
    assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 0);
    assert_eq!(run.link_last("A", |t| &t.dropped_queue_pkts), 0);
    (run, marks)
}
