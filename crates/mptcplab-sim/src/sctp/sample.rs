//! An association's rows of the trace: a destination is a subflow.

use super::association::{Association, Destination, Phase};
use crate::net::World;
use crate::net::event::NEVER;
use crate::net::record::since;
use mptcplab_trace::{FlowRow, NOT_MEASURED, SubflowRow, TransferRow};

/// Values of the subflow table's `state`.
const CLOSED: u8 = 0;
const HANDSHAKE: u8 = 1;
const OPEN: u8 = 2;
const RECOVERY: u8 = 5;
const LOSS: u8 = 6;

impl Association {
    /// Append the flow's state.
    pub(crate) fn sample_flow(&mut self, cx: &mut World) {
        let (ooo_delay_max_ns, reorder_depth_max_pkts) = self.rx.take_largest_wait();
        let data = self.rx.data();
        cx.rec.tables.flow.push(FlowRow {
            t_ns: cx.now,
            flow: self.flow,
            delivered_bytes: data.delivered_bytes(),
            sent_bytes: self.sent_bytes,
            ooo_bytes: data.ooo_bytes(),
            rcv_window_bytes: self.rx.window().unwrap_or(0),
            reinjected_pkts: self.moved_pkts,
            duplicate_pkts: data.duplicates.into(),
            blocked_ns: self.blocked_ns(cx.now),
            ooo_pkts: data.reordering.pkts,
            ooo_delay_sum_ns: data.reordering.delay_ns,
            ooo_delay_max_ns,
            reorder_depth_sum_pkts: data.reordering.depth_pkts,
            reorder_depth_max_pkts,
        });
    }

    /// Append the row of a transfer, complete now or not.
    pub(super) fn record_transfer(&self, cx: &mut World) {
        let data = self.rx.data();
        let begun = self.start_ns();
        cx.rec.tables.transfer.push(TransferRow {
            t_ns: begun,
            flow: self.flow,
            transfer: 0,
            bytes: data.transfer_bytes(),
            media_bps: 0,
            first_byte_ns: since(data.first_byte_ns, begun),
            completion_ns: since(if data.completed { cx.now } else { NEVER }, begun),
            resent_pkts: self
                .destinations
                .iter()
                .map(|d| d.count.retransmitted)
                .sum(),
            stall_ns: NOT_MEASURED,
        });
    }

    /// The run is over: a transfer that is not complete is recorded as such.
    pub(crate) fn record_unfinished(&self, cx: &mut World) {
        let data = self.rx.data();
        if self.phase != Phase::Closed && data.transfer_bytes() > 0 && !data.completed {
            self.record_transfer(cx);
        }
    }

    /// Append the state of every destination.
    pub(crate) fn sample_destinations(&self, cx: &mut World) {
        for (d, destination) in self.destinations.iter().enumerate() {
            let row = self.row(cx, d, destination);
            cx.rec.tables.subflow.push(row);
        }
    }

    fn row(&self, cx: &World, d: usize, destination: &Destination) -> SubflowRow {
        let (flow, subflow) = cx.rec.name(destination.id);
        let (rto, count) = (&destination.rto, &destination.count);
        let arrived = &self.rx.arrived[d];
        SubflowRow {
            t_ns: cx.now,
            flow,
            subflow,
            state: self.state(destination),
            cwnd_pkts: destination.window.packets(),
            ssthresh_pkts: destination.window.ssthresh_packets(),
            inflight_pkts: self.outstanding.in_flight(d).0,
            srtt_us: rto.srtt_us(),
            rtt_us: rto.latest_us,
            min_rtt_us: rto.min_us,
            rto_us: rto.base_us(),
            pacing_bps: 0,
            rtt_sum_us: rto.sum_us,
            rtt_count: rto.count,
            sent_pkts: count.sent,
            retx_pkts: count.retransmitted,
            acked_pkts: count.acked,
            lost_pkts: count.lost,
            loss_events: count.loss_events,
            ecn_events: 0,
            rto_count: count.rto_count,
            rto_wait_ns: count.rto_wait_ns,
            undo_count: 0,
            rx_pkts: arrived.packets,
            rx_wire_bytes: arrived.ip_bytes
                + arrived.packets * u64::from(destination.overhead_bytes),
            rx_payload_bytes: arrived.payload_bytes,
        }
    }

    fn state(&self, destination: &Destination) -> u8 {
        match self.phase {
            Phase::Closed => CLOSED,
            Phase::InitSent | Phase::CookieSent => HANDSHAKE,
            Phase::Established if destination.timeouts > 0 => LOSS,
            Phase::Established if destination.recovery_until.is_some() => RECOVERY,
            Phase::Established => OPEN,
        }
    }
}
