//! Flows of many transfers: rows of their subflows are sums over the sockets of all transfers, those under way included,
//! as in the simulator, and none of their sockets has events or rows of its own. All but what arrived is the tracer's.

use crate::lab::wire::SubflowSample;
use crate::plan::Plan;
use mptcplab_bpf::tracer::{Counters, Event, Sample as Record, SocketKey, Tracer, TracerError};
use mptcplab_trace::SubflowRow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The trace's infinite slow start threshold.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// All such flows of a run.
pub(super) struct Sums {
    /// (source, destination) to (flow, subflow).
    names: BTreeMap<(Ipv4Addr, Ipv4Addr), (u32, u32)>,
    sums: BTreeMap<(u32, u32), Sum>,
    /// By flow: the algorithm that it should run.
    wanted: BTreeMap<u32, String>,
    /// Closed sockets that the tracer still remembers.
    closed: Vec<SocketKey>,
    /// Algorithms that ran and should not have: (flow, subflow, name).
    wrong: BTreeSet<(u32, u32, String)>,
}

/// One subflow of all transfers.
#[derive(Default)]
struct Sum {
    /// Sockets of transfers under way.
    live: BTreeSet<SocketKey>,
    closed: Total,
    /// What its sockets ran; empty before the first.
    algorithm: String,
}

/// Counters of sockets.
#[derive(Clone, Copy, Default)]
struct Total {
    counters: Counters,
    sent_pkts: u64,
    retx_pkts: u64,
    acked_pkts: u64,
    lost_pkts: u64,
}

impl Total {
    fn add(&mut self, record: &Record) {
        let (sum, more) = (&mut self.counters, &record.counters);
        sum.rtt_sum_us += more.rtt_sum_us;
        sum.rtt_count += more.rtt_count;
        sum.loss_events += more.loss_events;
        sum.ecn_events += more.ecn_events;
        sum.rto_count += more.rto_count;
        sum.rto_wait_ns += more.rto_wait_ns;
        sum.undo_count += more.undo_count;
        self.sent_pkts += u64::from(record.sent_pkts);
        self.retx_pkts += u64::from(record.retx_pkts());
        self.acked_pkts += u64::from(record.acked_pkts());
        self.lost_pkts += u64::from(record.lost_pkts);
    }
}

impl Sums {
    /// `algorithms` are the kernel-visible names of the plan's.
    pub(super) fn new(plan: &Plan, algorithms: &[String]) -> Self {
        let many = || (0..).zip(&plan.flows).filter(|(_, flow)| flow.is_many);
        let subflows = || {
            many().flat_map(|(flow, planned)| {
                let ends = (0..).zip(&planned.subflows);
                ends.map(move |(subflow, ends)| ((flow, subflow), ends))
            })
        };
        let wanted = many().filter_map(|(flow, planned)| {
            let name = algorithms.get(planned.algorithm?)?;
            Some((flow, name.clone()))
        });
        Self {
            names: subflows()
                .map(|(name, ends)| ((ends.source, ends.destination), name))
                .collect(),
            sums: subflows().map(|(name, _)| (name, Sum::default())).collect(),
            wanted: wanted.collect(),
            closed: Vec::new(),
            wrong: BTreeSet::new(),
        }
    }

    /// Takes a record of the tracer; false if it is of no such flow.
    pub(super) fn record(&mut self, key: &SocketKey, record: &Record) -> bool {
        let (local, remote) = (*key.local.ip(), *key.remote.ip());
        let name = self.names.get(&(local, remote)).copied();
        // Receivers have the two addresses the other way round.
        if name.is_none() && !self.names.contains_key(&(remote, local)) {
            return false;
        }
        let has = |wanted: Event| record.events().any(|(event, _)| event == wanted);
        if has(Event::Closed) {
            self.closed.push(*key);
        }
        let Some(name) = name else { return true };
        self.see(name, record);
        let Some(sum) = self.sums.get_mut(&name) else {
            return true;
        };
        if has(Event::Established) {
            sum.live.insert(*key);
        }
        if has(Event::Closed) {
            sum.live.remove(key);
            sum.closed.add(record);
        }
        true
    }

    /// Which algorithm the socket really runs; a further subflow may get its own right after its handshake.
    fn see(&mut self, (flow, subflow): (u32, u32), record: &Record) {
        if record
            .events()
            .any(|(event, _)| event == Event::Established)
        {
            return;
        }
        let name = record.congestion_control();
        if self.wanted.get(&flow) != Some(&name) {
            self.wrong.insert((flow, subflow, name.clone()));
        }
        if let Some(sum) = self.sums.get_mut(&(flow, subflow)) {
            sum.algorithm = name;
        }
    }

    /// The row of a subflow; none if it is of no such flow. The tracer's ring has been read.
    pub(super) fn row(
        &mut self,
        t_ns: u64,
        sample: &SubflowSample,
        tracer: &Tracer,
    ) -> Result<Option<SubflowRow>, TracerError> {
        let name = (sample.flow, sample.subflow);
        let Some(sum) = self.sums.get(&name) else {
            return Ok(None);
        };
        let mut total = sum.closed;
        let mut live = Vec::new();
        for key in &sum.live {
            live.extend(tracer.latest(key)?);
        }
        live.iter().for_each(|record| total.add(record));
        live.iter().for_each(|record| self.see(name, record));
        let open: Vec<&Record> = live.iter().filter(|one| one.is_established()).collect();
        Ok(Some(row(t_ns, sample, &total, &open)))
    }

    /// Lets the tracer forget what is closed, so that its table never fills.
    pub(super) fn forget(&mut self, tracer: &Tracer) -> Result<(), TracerError> {
        for key in self.closed.drain(..) {
            tracer.forget_closed(&key)?;
        }
        Ok(())
    }

    /// What the subflows of a flow ran, as the kernel calls it; none if it is no such flow.
    pub(super) fn algorithms(&self, flow: u32) -> Option<Vec<String>> {
        self.wanted.get(&flow)?;
        let subflows = self.sums.range((flow, 0)..=(flow, u32::MAX));
        Some(subflows.map(|(_, sum)| sum.algorithm.clone()).collect())
    }

    /// Algorithms that ran instead of what should: (flow, subflow, what ran, what should have).
    pub(super) fn wrong(&self) -> impl Iterator<Item = (u32, u32, &str, &str)> {
        self.wrong.iter().map(|(flow, subflow, name)| {
            let wanted = self.wanted.get(flow).map_or("", String::as_str);
            (*flow, *subflow, name.as_str(), wanted)
        })
    }
}

/// What is no sum has no meaning over many connections and is 0, as in the simulator.
fn row(t_ns: u64, sample: &SubflowSample, total: &Total, open: &[&Record]) -> SubflowRow {
    let counters = &total.counters;
    SubflowRow {
        t_ns,
        flow: sample.flow,
        subflow: sample.subflow,
        // Open, or closed.
        state: if open.is_empty() { 0 } else { 2 },
        cwnd_pkts: open.iter().map(|one| one.cwnd_pkts).sum(),
        ssthresh_pkts: NO_THRESHOLD,
        inflight_pkts: open.iter().map(|one| one.inflight_pkts()).sum(),
        srtt_us: 0,
        rtt_us: 0,
        min_rtt_us: 0,
        rto_us: 0,
        pacing_bps: 0,
        rtt_sum_us: counters.rtt_sum_us,
        rtt_count: counters.rtt_count,
        sent_pkts: total.sent_pkts,
        retx_pkts: total.retx_pkts,
        acked_pkts: total.acked_pkts,
        lost_pkts: total.lost_pkts,
        loss_events: counters.loss_events,
        ecn_events: counters.ecn_events,
        rto_count: counters.rto_count,
        rto_wait_ns: counters.rto_wait_ns,
        undo_count: counters.undo_count,
        rx_pkts: sample.rx_pkts,
        rx_wire_bytes: sample.rx_wire_bytes,
        rx_payload_bytes: sample.rx_payload_bytes,
    }
}
