//! What the sockets of MPTCP connections show of themselves: the cwnd and the retransmissions in `TCP_INFO`, which programs
//! that know nothing of subflows read and print, such as iperf3.

use crate::traffic::Context;
use mptcplab_net::{TcpInfo, mptcp};
use mptcplab_scenario::Transport;
use mptcplab_trace::{EventKind, EventRow};
use std::collections::BTreeMap;

/// The interval of iperf3's lines.
const INTERVAL_NS: u64 = 1_000_000_000;

/// The values that were shown last, by flow: cwnd in bytes, and retransmissions.
#[derive(Debug, Default)]
pub(super) struct Shown {
    next_ns: u64,
    last: BTreeMap<usize, [u64; 2]>,
}

impl Shown {
    /// Reads the sockets if it is time, and returns what changed.
    pub(super) fn changes(&mut self, t_ns: u64, contexts: &[Context]) -> Vec<EventRow> {
        if t_ns < self.next_ns {
            return Vec::new();
        }
        self.next_ns = t_ns - t_ns % INTERVAL_NS + INTERVAL_NS;
        contexts
            .iter()
            .filter_map(|context| Some((context.index, read(context)?)))
            .flat_map(|(flow, values)| self.changes_of(t_ns, flow, values))
            .collect()
    }

    fn changes_of(&mut self, t_ns: u64, flow: usize, values: [u64; 2]) -> Vec<EventRow> {
        let last = self.last.insert(flow, values);
        let kinds = [EventKind::SocketCwnd, EventKind::SocketRetx];
        (0..)
            .zip(kinds)
            .filter(|&(at, _): &(usize, _)| last.is_none_or(|last| last[at] != values[at]))
            .map(|(at, kind)| EventRow {
                t_ns,
                kind: kind as u8,
                flow: flow as i32,
                subflow: -1,
                link: -1,
                value: values[at],
            })
            .collect()
    }
}

/// Reads the sender's socket of a flow that is one MPTCP connection, while it is open.
fn read(context: &Context) -> Option<[u64; 2]> {
    let Transport::Tcp(tcp) = &context.flow.transport else {
        return None;
    };
    if !tcp.mptcp || context.plan.connection_per_transfer {
        return None;
    }
    let socket = context.state.connection.sender.get()?;
    mptcp::tcp_info(socket).ok().map(|info| values(&info))
}

fn values(info: &TcpInfo) -> [u64; 2] {
    let cwnd_bytes = u64::from(info.snd_cwnd_pkts) * u64::from(info.snd_mss_bytes);
    [cwnd_bytes, info.total_retrans_pkts.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_is_an_event() {
        let mut shown = Shown::default();
        let mut changes = |t_ns, flow, values| -> Vec<(u8, i32, u64)> {
            let events = shown.changes_of(t_ns, flow, values);
            assert!(events.iter().all(|event| event.t_ns == t_ns));
            events
                .iter()
                .map(|event| (event.kind, event.flow, event.value))
                .collect()
        };
        assert_eq!(changes(5, 2, [14_480, 0]), [(17, 2, 14_480), (18, 2, 0)]);
        assert_eq!(changes(6, 2, [14_480, 0]), []);
        assert_eq!(changes(7, 2, [28_960, 0]), [(17, 2, 28_960)]);
        assert_eq!(changes(7, 4, [14_480, 3]), [(17, 4, 14_480), (18, 4, 3)]);
        assert_eq!(changes(8, 2, [28_960, 3]), [(18, 2, 3)]);
    }

    #[test]
    fn sockets_are_read_once_per_second() {
        let mut shown = Shown::default();
        let times = [
            0,
            10,
            999_999_999,
            1_000_000_010,
            1_010_000_000,
            2_000_000_000,
        ];
        let read = times.map(|t_ns| {
            let before = shown.next_ns;
            shown.changes(t_ns, &[]);
            shown.next_ns != before
        });
        assert_eq!(read, [true, false, false, true, false, true]);
    }
}
