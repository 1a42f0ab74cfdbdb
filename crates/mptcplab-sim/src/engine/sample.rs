//! Samples: the rows of flows, subflows and links.

use super::event_loop::Engine;
use super::sample_clock::SampleClock;
use crate::tcp::sender::Sender;
use crate::tcp::state::Phase;
use crate::tcp::subflow::Subflow;
use mptcplab_trace::{FlowRow, LinkRow, SubflowRow};

impl Engine<'_> {
    /// Take the samples due before `until`.
    #[inline(never)]
    pub(crate) fn sample_until(&mut self, until: u64, clock: &mut SampleClock) {
        while clock.next() < until {
            self.world.now = clock.next();
            clock.advance();
            self.world.net.settle(self.world.now);
            self.sample_flows();
            for c in 0..self.reported_conns {
                for k in 0..self.apps[c].conn.subflows.len() {
                    self.sample_subflow(c, k);
                }
            }
            for association in &self.sctp {
                association.sample_destinations(&mut self.world);
            }
            self.sample_pools();
            self.sample_links();
        }
    }

    fn sample_flows(&mut self) {
        let t_ns = self.world.now;
        for conn in self.apps[..self.reported_conns]
            .iter_mut()
            .map(|a| &mut a.conn)
        {
            let (ooo_delay_max_ns, reorder_depth_max_pkts) = conn.rx.reordering.take_largest();
            self.world.rec.tables.flow.push(FlowRow {
                t_ns,
                flow: conn.flow,
                delivered_bytes: conn.rx.delivered_bytes(),
                sent_bytes: conn.tx.sent_bytes,
                ooo_bytes: conn.rx.ooo_bytes(),
                rcv_window_bytes: conn.rx.window_bytes(),
                reinjected_pkts: conn.tx.reinjected,
                duplicate_pkts: conn.rx.duplicates.into(),
                blocked_ns: conn.tx.blocked_ns(t_ns),
                ooo_pkts: conn.rx.reordering.pkts,
                ooo_delay_sum_ns: conn.rx.reordering.delay_ns,
                ooo_delay_max_ns,
                reorder_depth_sum_pkts: conn.rx.reordering.depth_pkts,
                reorder_depth_max_pkts,
            });
        }
        for association in &mut self.sctp {
            association.sample_flow(&mut self.world);
        }
        for source in &self.udp {
            self.world.rec.tables.flow.push(FlowRow {
                t_ns,
                flow: source.flow,
                delivered_bytes: source.delivered_bytes(),
                sent_bytes: source.sent_bytes(),
                ooo_bytes: 0,
                rcv_window_bytes: 0,
                reinjected_pkts: 0,
                duplicate_pkts: 0,
                blocked_ns: 0,
                ooo_pkts: 0,
                ooo_delay_sum_ns: 0,
                ooo_delay_max_ns: 0,
                reorder_depth_sum_pkts: 0,
                reorder_depth_max_pkts: 0,
            });
        }
    }

    /// Append the current state of subflow `k` of a connection.
    pub(super) fn sample_subflow(&mut self, c: usize, k: usize) {
        let Subflow { sender, receiver } = &self.apps[c].conn.subflows[k];
        let (flow, subflow) = self.world.rec.name(sender.id);
        let (tp, count) = (&sender.sock.tp, &sender.count);
        self.world.rec.tables.subflow.push(SubflowRow {
            t_ns: self.world.now,
            flow,
            subflow,
            state: state_code(sender),
            cwnd_pkts: tp.snd_cwnd,
            ssthresh_pkts: tp.snd_ssthresh,
            inflight_pkts: sender.inflight(),
            srtt_us: tp.srtt_us >> 3,
            rtt_us: sender.rtt.latest_us,
            min_rtt_us: if tp.srtt_us == 0 { 0 } else { tp.min_rtt_us },
            rto_us: sender.rtt.rto_us,
            pacing_bps: if sender.pacing.enabled {
                tp.sk_pacing_rate * 8
            } else {
                0
            },
            rtt_sum_us: sender.rtt.sum_us,
            rtt_count: sender.rtt.count,
            sent_pkts: count.sent,
            retx_pkts: count.retransmitted,
            acked_pkts: count.acked,
            lost_pkts: count.lost,
            loss_events: count.loss_events,
            ecn_events: count.ecn_events,
            rto_count: count.rto_count,
            rto_wait_ns: count.rto_wait_ns,
            undo_count: count.undo_count,
            rx_pkts: receiver.packets,
            rx_wire_bytes: receiver.ip_bytes + receiver.packets * u64::from(sender.overhead_bytes),
            rx_payload_bytes: receiver.payload_bytes(),
        });
    }

    fn sample_links(&mut self) {
        let t_ns = self.world.now;
        for i in 0..self.link_ids.len() {
            let stats = self.world.net.link_stats(i, t_ns);
            let row = LinkRow::new(t_ns, self.link_ids[i].0, &stats);
            self.world.rec.tables.link.push(row);
        }
    }
}

/// The trace's state column: life of the subflow, then congestion state.
fn state_code(sender: &Sender) -> u8 {
    match sender.phase {
        Phase::Closed | Phase::Removed => 0,
        Phase::SynSent | Phase::JoinSent => 1,
        Phase::Established => 2 + sender.state() as u8,
    }
}
