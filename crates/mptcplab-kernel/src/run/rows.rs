//! Makes the rows of the trace from the lab's samples and the tracer's records and counters.
//!
//! Per-ACK rows show a subflow just before the ACK was processed, as the tracepoint does. In them the receiver's columns
//! (`rx_*`) are those of the last regular sample.

use super::aggregate::Aggregates;
use super::skipped_programs::SkippedPrograms;
use crate::plan::Plan;
use crate::protocol::{FlowSample, Sample, SubflowSample, Traffic};
use mptcplab_bpf::tracer::{
    Event as TracerEvent, Sample as Record, SampleKind, SocketKey, Tracer, TracerError,
};
use mptcplab_trace::{EventKind, EventRow, FlowRow, NOT_MEASURED, SubflowRow, Tables};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Makes the rows of one run.
pub(super) struct Rows {
    pub(super) tables: Tables,
    zero_ns: u64,
    per_ack: bool,
    /// Maps (source, destination) to (flow, subflow).
    subflows: BTreeMap<(Ipv4Addr, Ipv4Addr), (u32, u32)>,
    /// For each flow, the cookie of the namespace where it begins, and its port.
    senders: Vec<(u64, u16)>,
    /// (source, destination) by flow and subflow.
    ends: Vec<Vec<(Ipv4Addr, Ipv4Addr)>>,
    /// With iperf3, which has a second connection between the same addresses: records of subflows whose port is not known yet.
    unplaced: Option<Vec<Record>>,
    /// The last sample of each subflow.
    last: BTreeMap<(u32, u32), SubflowSample>,
    /// Per-ACK rows that are newer than the last sample.
    waiting: Vec<SubflowRow>,
    /// Events that are newer than the last sample.
    events: Vec<EventRow>,
    /// Flows in which every transfer has a connection.
    pub(super) aggregates: Aggregates,
    /// Number of records from the tracer.
    pub(super) records: u64,
    /// Number of reductions because a queue of this machine was full, for which the trace has no column.
    pub(super) local_events: u64,
    skipped: SkippedPrograms,
}

impl Rows {
    /// `cookies` are those of the namespaces, by node.
    pub(super) fn new(
        plan: &Plan,
        algorithms: &[String],
        cookies: &[u64],
        (zero_ns, per_ack): (u64, bool),
        traffic: Traffic,
    ) -> Self {
        let pair = |ends: &crate::plan::Endpoints| (ends.source, ends.destination);
        let ends: Vec<Vec<_>> = plan
            .flows
            .iter()
            .map(|flow| flow.subflows.iter().map(pair).collect())
            .collect();
        let named = ends.iter().enumerate().flat_map(|(flow, pairs)| {
            pairs
                .iter()
                .enumerate()
                .map(move |(subflow, &pair)| (pair, (flow as u32, subflow as u32)))
        });
        Self {
            tables: Tables::default(),
            zero_ns,
            per_ack,
            subflows: named.collect(),
            senders: plan
                .flows
                .iter()
                .map(|flow| (cookies[flow.from], flow.port))
                .collect(),
            ends,
            unplaced: (traffic == Traffic::Iperf3).then(Vec::new),
            last: BTreeMap::new(),
            waiting: Vec::new(),
            events: Vec::new(),
            aggregates: Aggregates::new(plan, algorithms),
            records: 0,
            local_events: 0,
            skipped: SkippedPrograms::default(),
        }
    }

    /// Why the run is invalid, if the kernel skipped a program of an algorithm.
    pub(super) fn skipped_program(&self) -> Option<String> {
        self.skipped.reason(self.zero_ns)
    }

    /// Adds a record of the tracer.
    pub(super) fn record(&mut self, record: &Record) {
        self.records += 1;
        self.skipped.check(record);
        let key = record.key();
        if self.aggregates.record(&key, record) {
            let local = |(event, _): &(TracerEvent, u64)| *event == TracerEvent::LocalEvent;
            self.local_events += record.events().filter(local).count() as u64;
            return;
        }
        // Receivers have the two addresses in the opposite order.
        let Some(&(flow, subflow)) = self.subflows.get(&(*key.local.ip(), *key.remote.ip())) else {
            return;
        };
        match (&mut self.unplaced, port_of(&self.last, (flow, subflow))) {
            (Some(unplaced), 0) => unplaced.push(*record),
            (Some(_), known) if known != key.local.port() => {}
            _ => self.place(record, flow, subflow),
        }
    }

    /// Adds the records of subflows whose port a sample tells for the first time.
    fn place_earlier(&mut self, samples: &[SubflowSample]) {
        for sample in samples {
            let subflow = (sample.flow, sample.subflow);
            if sample.port == 0 || port_of(&self.last, subflow) != 0 {
                continue;
            }
            let Some(unplaced) = &mut self.unplaced else {
                return;
            };
            let subflows = &self.subflows;
            let is_here = |record: &Record| {
                let key = record.key();
                subflows.get(&(*key.local.ip(), *key.remote.ip())) == Some(&subflow)
            };
            let (here, others) = unplaced.drain(..).partition::<Vec<_>, _>(is_here);
            *unplaced = others;
            for record in here {
                if record.key().local.port() == sample.port {
                    self.place(&record, sample.flow, sample.subflow);
                }
            }
        }
    }

    /// Adds a record of a subflow.
    fn place(&mut self, record: &Record, flow: u32, subflow: u32) {
        let t_ns = record.t_ns.saturating_sub(self.zero_ns);
        for (event, value) in record.events() {
            let Some(kind) = kind(event) else {
                self.local_events += u64::from(event == TracerEvent::LocalEvent);
                continue;
            };
            let (flow, subflow) = (flow as i32, subflow as i32);
            self.events.push(EventRow {
                t_ns,
                kind: kind as u8,
                flow,
                subflow,
                link: -1,
                value,
            });
        }
        if self.per_ack && record.kind() == SampleKind::Ack {
            let row = per_ack(
                (t_ns, flow, subflow),
                record,
                self.last.get(&(flow, subflow)),
            );
            self.waiting.push(row);
        }
    }

    /// Adds an event that the lab reported.
    pub(super) fn event(&mut self, row: EventRow) {
        self.events.push(row);
    }

    /// Adds a sample of the lab, completed with the tracer's present counters. The ring must have been read.
    pub(super) fn sample(&mut self, sample: Sample, tracer: &Tracer) -> Result<(), TracerError> {
        self.place_earlier(&sample.subflows);
        self.events.extend(sample.events);
        self.flush(sample.t_ns);
        let t_ns = sample.t_ns;
        for (flow, row) in (0..).zip(&sample.flows) {
            self.tables.flow.push(flow_row((t_ns, flow), row));
        }
        for row in sample.transfers {
            self.tables.transfer.push(row);
        }
        for row in sample.requests {
            self.tables.request.push(row);
        }
        for subflow in sample.subflows {
            if let Some(row) = self.aggregates.row(t_ns, &subflow, tracer)? {
                self.tables.subflow.push(row);
                continue;
            }
            let known = match self.socket(&subflow) {
                Some(key) => tracer.latest(&key)?,
                None => None,
            };
            self.tables
                .subflow
                .push(subflow_row(t_ns, &subflow, known.as_ref()));
            self.last.insert((subflow.flow, subflow.subflow), subflow);
        }
        for row in sample.links {
            self.tables.link.push(row);
        }
        Ok(())
    }

    /// Moves rows and events up to a time into the tables, in the order of time.
    pub(super) fn flush(&mut self, until_ns: u64) {
        self.waiting.sort_by_key(|row| row.t_ns);
        let newer = self.waiting.partition_point(|row| row.t_ns <= until_ns);
        self.waiting
            .drain(..newer)
            .for_each(|row| self.tables.subflow.push(row));
        self.events.sort_by_key(|row| row.t_ns);
        let newer = self.events.partition_point(|row| row.t_ns <= until_ns);
        self.events
            .drain(..newer)
            .for_each(|row| self.tables.event.push(row));
    }

    fn socket(&self, subflow: &SubflowSample) -> Option<SocketKey> {
        let (cookie, port) = *self.senders.get(subflow.flow as usize)?;
        let (source, destination) = *self
            .ends
            .get(subflow.flow as usize)?
            .get(subflow.subflow as usize)?;
        (subflow.port != 0).then(|| SocketKey {
            cookie,
            local: SocketAddrV4::new(source, subflow.port),
            remote: SocketAddrV4::new(destination, port),
        })
    }
}

/// The port of a subflow's sender; 0 before a sample has told it.
fn port_of(last: &BTreeMap<(u32, u32), SubflowSample>, subflow: (u32, u32)) -> u16 {
    last.get(&subflow).map_or(0, |last| last.port)
}

/// The trace's kind of an event; `None` for events that the trace does not have.
fn kind(event: TracerEvent) -> Option<EventKind> {
    match event {
        TracerEvent::Established => Some(EventKind::SubflowAdded),
        TracerEvent::LossEvent => Some(EventKind::LossEvent),
        TracerEvent::RecoveryEnded => Some(EventKind::RecoveryEnded),
        TracerEvent::Rto => Some(EventKind::RtoFired),
        TracerEvent::EcnEvent => Some(EventKind::EcnEvent),
        TracerEvent::Undo => Some(EventKind::Undo),
        TracerEvent::TlpSent => Some(EventKind::TlpSent),
        // The thread that removes a subflow reports it.
        TracerEvent::Closed | TracerEvent::LocalEvent => None,
    }
}

fn flow_row((t_ns, flow): (u64, u32), sample: &FlowSample) -> FlowRow {
    let known = |value: Option<u64>| value.unwrap_or(NOT_MEASURED);
    FlowRow {
        t_ns,
        flow,
        delivered_bytes: sample.delivered_bytes,
        sent_bytes: sample.sent_bytes,
        ooo_bytes: known(sample.ooo_bytes),
        rcv_window_bytes: known(sample.rcv_window_bytes),
        reinjected_pkts: known(sample.reinjected_pkts),
        duplicate_pkts: known(sample.duplicate_pkts),
        blocked_ns: known(sample.blocked_ns),
        // The kernel counts reordered packets for a whole host only, and does not measure their delay.
        ooo_pkts: NOT_MEASURED,
        ooo_delay_sum_ns: NOT_MEASURED,
        ooo_delay_max_ns: NOT_MEASURED,
        reorder_depth_sum_pkts: NOT_MEASURED,
        reorder_depth_max_pkts: NOT_MEASURED,
    }
}

/// The tracer has no record of a socket before the end of its handshake; the counters are 0 until then.
fn subflow_row(t_ns: u64, s: &SubflowSample, known: Option<&Record>) -> SubflowRow {
    let counters = known.map(|record| record.counters).unwrap_or_default();
    let from_tracer = |get: fn(&Record) -> u32| known.map_or(0, get);
    // The kernel's counters include the handshake; this is what they had counted when it was over.
    let before = |kernel: fn(&Record) -> u32, ours: fn(&Record) -> u32| {
        known.map_or(0, |record| {
            u64::from(kernel(record).wrapping_sub(ours(record)))
        })
    };
    SubflowRow {
        t_ns,
        flow: s.flow,
        subflow: s.subflow,
        state: s.state,
        cwnd_pkts: s.cwnd_pkts,
        ssthresh_pkts: s.ssthresh_pkts,
        inflight_pkts: s.inflight_pkts,
        srtt_us: s.srtt_us,
        rtt_us: from_tracer(|record| record.rtt_us),
        min_rtt_us: s.min_rtt_us,
        rto_us: s.rto_us,
        pacing_bps: if known.is_some_and(|record| record.pacing_bps() > 0) {
            s.pacing_bps
        } else {
            0
        },
        rtt_sum_us: counters.rtt_sum_us,
        rtt_count: counters.rtt_count,
        sent_pkts: s.sent_pkts,
        retx_pkts: s
            .retrans_pkts
            .saturating_sub(before(Record::kernel_retrans, Record::retx_pkts)),
        acked_pkts: s
            .delivered_pkts
            .saturating_sub(before(Record::kernel_delivered, Record::acked_pkts)),
        lost_pkts: from_tracer(|record| record.lost_pkts).into(),
        loss_events: counters.loss_events,
        ecn_events: counters.ecn_events,
        rto_count: counters.rto_count,
        rto_wait_ns: counters.rto_wait_ns,
        undo_count: counters.undo_count,
        rx_pkts: s.rx_pkts,
        rx_wire_bytes: s.rx_wire_bytes,
        rx_payload_bytes: s.rx_payload_bytes,
    }
}

fn per_ack(
    (t_ns, flow, subflow): (u64, u32, u32),
    record: &Record,
    last: Option<&SubflowSample>,
) -> SubflowRow {
    let seen = last.cloned().unwrap_or_default();
    let counters = &record.counters;
    SubflowRow {
        t_ns,
        flow,
        subflow,
        state: record.subflow_state(),
        cwnd_pkts: record.cwnd_pkts,
        ssthresh_pkts: record.ssthresh_pkts,
        inflight_pkts: record.inflight_pkts(),
        srtt_us: record.srtt_us,
        rtt_us: record.rtt_us,
        min_rtt_us: record.min_rtt_us,
        rto_us: record.rto_us(),
        pacing_bps: record.pacing_bps(),
        rtt_sum_us: counters.rtt_sum_us,
        rtt_count: counters.rtt_count,
        sent_pkts: record.sent_pkts.into(),
        retx_pkts: record.retx_pkts().into(),
        acked_pkts: record.acked_pkts().into(),
        lost_pkts: record.lost_pkts.into(),
        loss_events: counters.loss_events,
        ecn_events: counters.ecn_events,
        rto_count: counters.rto_count,
        rto_wait_ns: counters.rto_wait_ns,
        undo_count: counters.undo_count,
        rx_pkts: seen.rx_pkts,
        rx_wire_bytes: seen.rx_wire_bytes,
        rx_payload_bytes: seen.rx_payload_bytes,
    }
}
