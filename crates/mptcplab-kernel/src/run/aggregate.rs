//! Aggregates the subflows of flows in which every transfer has a connection of its own.
//!
//! As in the simulator, the row of a subflow is the sum over the sockets of all transfers, including those in progress, and
//! single sockets have neither events nor rows. All columns except what arrived come from the tracer.

use crate::plan::Plan;
use crate::protocol::SubflowSample;
use mptcplab_bpf::tracer::{Counters, Event, Sample as Record, SocketKey, Tracer, TracerError};
use mptcplab_trace::SubflowRow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The trace's value for an infinite slow start threshold.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// All aggregated flows of a run.
pub(super) struct Aggregates {
    /// Maps (source, destination) to (flow, subflow).
    names: BTreeMap<(Ipv4Addr, Ipv4Addr), (u32, u32)>,
    subflows: BTreeMap<(u32, u32), Aggregate>,
    /// The algorithm that each flow should run.
    expected: BTreeMap<u32, String>,
    /// Closed sockets that are still in the tracer's table.
    closed: Vec<SocketKey>,
    /// Algorithms that ran although others should have: (flow, subflow, name).
    unexpected: BTreeSet<(u32, u32, String)>,
}

/// One subflow of a flow, over all transfers.
#[derive(Default)]
struct Aggregate {
    /// Sockets of transfers in progress.
    live: BTreeSet<SocketKey>,
    closed: Totals,
    /// The algorithm of its sockets; empty before the first one.
    algorithm: String,
}

/// Sums of the sockets' counters.
#[derive(Clone, Copy, Default)]
struct Totals {
    counters: Counters,
    sent_pkts: u64,
    retx_pkts: u64,
    acked_pkts: u64,
    lost_pkts: u64,
}

impl Totals {
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

impl Aggregates {
    /// `algorithms` are the kernel-visible names of the plan's algorithms.
    pub(super) fn new(plan: &Plan, algorithms: &[String]) -> Self {
        let many = || {
            (0..)
                .zip(&plan.flows)
                .filter(|(_, flow)| flow.connection_per_transfer)
        };
        let subflows = || {
            many().flat_map(|(flow, planned)| {
                let ends = (0..).zip(&planned.subflows);
                ends.map(move |(subflow, ends)| ((flow, subflow), ends))
            })
        };
        let expected = many().filter_map(|(flow, planned)| {
            let name = algorithms.get(planned.algorithm?)?;
            Some((flow, name.clone()))
        });
        Self {
            names: subflows()
                .map(|(name, ends)| ((ends.source, ends.destination), name))
                .collect(),
            subflows: subflows()
                .map(|(name, _)| (name, Aggregate::default()))
                .collect(),
            expected: expected.collect(),
            closed: Vec::new(),
            unexpected: BTreeSet::new(),
        }
    }

    /// Adds a record of the tracer. Returns false if it belongs to no aggregated flow.
    pub(super) fn record(&mut self, key: &SocketKey, record: &Record) -> bool {
        let (local, remote) = (*key.local.ip(), *key.remote.ip());
        let name = self.names.get(&(local, remote)).copied();
        // Receivers have the two addresses in the opposite order.
        if name.is_none() && !self.names.contains_key(&(remote, local)) {
            return false;
        }
        let has = |wanted: Event| record.events().any(|(event, _)| event == wanted);
        if has(Event::Closed) {
            self.closed.push(*key);
        }
        let Some(name) = name else { return true };
        self.check_algorithm(name, record);
        let Some(sum) = self.subflows.get_mut(&name) else {
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

    /// Checks which algorithm the socket runs, except during the handshake: a further subflow may get its algorithm after it.
    fn check_algorithm(&mut self, (flow, subflow): (u32, u32), record: &Record) {
        if record
            .events()
            .any(|(event, _)| event == Event::Established)
        {
            return;
        }
        let name = record.congestion_control();
        if self.expected.get(&flow) != Some(&name) {
            self.unexpected.insert((flow, subflow, name.clone()));
        }
        if let Some(sum) = self.subflows.get_mut(&(flow, subflow)) {
            sum.algorithm = name;
        }
    }

    /// The row of a subflow, or `None` if it belongs to no aggregated flow. The tracer's ring must have been read.
    pub(super) fn row(
        &mut self,
        t_ns: u64,
        sample: &SubflowSample,
        tracer: &Tracer,
    ) -> Result<Option<SubflowRow>, TracerError> {
        let name = (sample.flow, sample.subflow);
        let Some(sum) = self.subflows.get(&name) else {
            return Ok(None);
        };
        let mut total = sum.closed;
        let mut live = Vec::new();
        for key in &sum.live {
            live.extend(tracer.latest(key)?);
        }
        live.iter().for_each(|record| total.add(record));
        live.iter()
            .for_each(|record| self.check_algorithm(name, record));
        let open: Vec<&Record> = live.iter().filter(|one| one.is_established()).collect();
        Ok(Some(row(t_ns, sample, &total, &open)))
    }

    /// Removes closed sockets from the tracer's table, so that it does not fill up.
    pub(super) fn forget(&mut self, tracer: &Tracer) -> Result<(), TracerError> {
        for key in self.closed.drain(..) {
            tracer.forget_closed(&key)?;
        }
        Ok(())
    }

    /// The kernel-visible names of the algorithms that the subflows of a flow ran; `None` if the flow is not aggregated.
    pub(super) fn algorithms(&self, flow: u32) -> Option<Vec<String>> {
        self.expected.get(&flow)?;
        let subflows = self.subflows.range((flow, 0)..=(flow, u32::MAX));
        Some(subflows.map(|(_, sum)| sum.algorithm.clone()).collect())
    }

    /// Algorithms that ran although others should have: (flow, subflow, found, expected).
    pub(super) fn unexpected(&self) -> impl Iterator<Item = (u32, u32, &str, &str)> {
        self.unexpected.iter().map(|(flow, subflow, name)| {
            let expected = self.expected.get(flow).map_or("", String::as_str);
            (*flow, *subflow, name.as_str(), expected)
        })
    }
}

/// Columns that are not sums have no meaning over many connections and are 0, as in the simulator.
fn row(t_ns: u64, sample: &SubflowSample, total: &Totals, open: &[&Record]) -> SubflowRow {
    let counters = &total.counters;
    SubflowRow {
        t_ns,
        flow: sample.flow,
        subflow: sample.subflow,
        // 2: open, 0: closed.
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
