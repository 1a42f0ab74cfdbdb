//! The sampled tables of a trace: one declaration gives the row, the columns, their units, their documentation and what
//! is null on disk.
//!
//! Counters are cumulative since the start of the run, so that any window is the difference of two rows and sampling
//! loses nothing. `t_ns` is simulated (or monotonic) time since the start of the run.

use crate::view::{TableView, Values};
use serde::{Deserialize, Serialize};

/// The value in memory of what an engine cannot measure, and of the time of something that never happened.
pub const NOT_MEASURED: u64 = u64::MAX;

/// Linux' `TCP_INFINITE_SSTHRESH`.
pub const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;

/// The declaration of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The name ends with the unit, as in `t_ns`.
    pub name: &'static str,
    /// Unit for axis labels; empty for codes, indices and counts of events.
    pub unit: &'static str,
    pub doc: &'static str,
    /// The value that is null on disk.
    pub null: Option<Null>,
}

/// A value that stands for the absence of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Null {
    pub value: u64,
    /// Completes the sentence "null ...".
    pub when: &'static str,
}

/// A number type whose columns an engine outside Rust can hand over as bytes.
trait LittleEndian: Sized {
    /// All numbers of a column. Bytes after the last whole number are ignored.
    fn column(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! little_endian {
    ($($ty:ty),*) => {
        $(impl LittleEndian for $ty {
            fn column(bytes: &[u8]) -> Vec<Self> {
                const SIZE: usize = size_of::<$ty>();
                let number = |bytes: &[u8]| {
                    let mut own = [0; SIZE];
                    own.copy_from_slice(bytes);
                    Self::from_le_bytes(own)
                };
                bytes.chunks_exact(SIZE).map(number).collect()
            }
        })*
    };
}
little_endian!(u8, u32, u64, i32);

macro_rules! null {
    () => {
        None
    };
    ($value:expr, $when:literal) => {
        Some(Null {
            value: $value as u64,
            when: $when,
        })
    };
}

/// Each column is `name: type, unit, documentation`, and `value => when` if that value is null on disk.
macro_rules! table {
    ($(#[$m:meta])* $table:ident, $row:ident, $name:literal {
        $($col:ident : $ty:ty, $unit:literal, $doc:literal $(, $null:expr => $when:literal)?;)*
    }) => {
        $(#[$m])*
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        pub struct $row { $(#[doc = concat!($doc, $("; `", stringify!($null), "` ", $when,)? ".")] pub $col: $ty,)* }

        #[doc = concat!("Columns of the table `", $name, "`.")]
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $table { $(#[doc = concat!($doc, ".")] pub $col: Vec<$ty>,)* }

        impl $table {
            /// Name of the table and stem of its Parquet file.
            pub const NAME: &'static str = $name;

            pub const COLUMNS: &'static [Column] = &[$(Column {
                name: stringify!($col),
                unit: $unit,
                doc: $doc,
                null: null!($($null, $when)?),
            },)*];

            #[inline]
            pub fn push(&mut self, row: $row) { $(self.$col.push(row.$col);)* }

            /// Number of rows.
            #[must_use]
            pub fn len(&self) -> usize { self.t_ns.len() }

            #[must_use]
            pub fn is_empty(&self) -> bool { self.t_ns.is_empty() }

            /// Removes all rows and keeps the allocated memory.
            pub fn clear(&mut self) { $(self.$col.clear();)* }

            /// Moves all rows of another table to the end of this one.
            fn append(&mut self, from: &mut Self) { $(self.$col.append(&mut from.$col);)* }

            /// Removes the first rows and keeps the allocated memory.
            fn remove_first(&mut self, rows: usize) { $(self.$col.drain(..rows);)* }

            /// Allocates memory for this many more rows, so that pushing them reallocates nothing.
            pub fn reserve(&mut self, rows: usize) { $(self.$col.reserve_exact(rows);)* }

            /// Replaces a column by little-endian numbers of its type; false if there is no such column.
            fn fill(&mut self, column: &str, bytes: &[u8]) -> bool {
                match column {
                    $(stringify!($col) => self.$col = LittleEndian::column(bytes),)*
                    _ => return false,
                }
                true
            }

            /// Fills every empty column that may be null on disk with the value that is null.
            fn fill_missing(&mut self) {
                $($(if self.$col.is_empty() { self.$col = vec![$null as $ty; self.t_ns.len()]; })?)*
            }

            /// Whether all columns are equally long.
            fn is_whole(&self) -> bool {
                $(self.$col.len() == self.t_ns.len())&&*
            }

            fn view(&self) -> TableView<'_> {
                TableView {
                    name: Self::NAME,
                    columns: Self::COLUMNS,
                    values: vec![$(Values::from(&self.$col),)*],
                }
            }
        }
    };
}

table! {
    /// State of one flow (a TCP or MPTCP connection, or a UDP stream).
    FlowTable, FlowRow, "flow" {
        t_ns: u64, "ns", "time of the sample";
        flow: u32, "", "index of the flow in the run's flow list";
        delivered_bytes: u64, "bytes", "application bytes handed over in order so far";
        sent_bytes: u64, "bytes", "application bytes given to a subflow for the first time so far";
        ooo_bytes: u64, "bytes", "bytes waiting out of order in the receive buffer now", NOT_MEASURED => "where the engine cannot measure it";
        rcv_window_bytes: u64, "bytes", "receive window advertised now", NOT_MEASURED => "where the engine cannot measure it";
        reinjected_pkts: u64, "packets", "segments sent again on another subflow so far", NOT_MEASURED => "where the engine cannot measure it";
        duplicate_pkts: u64, "packets", "segments that arrived although the connection already had their data so far", NOT_MEASURED => "where the engine cannot measure it";
        blocked_ns: u64, "ns", "time so far in which data and cwnd were there but the receive window forbade to send", NOT_MEASURED => "where the engine cannot measure it";
        ooo_pkts: u64, "packets", "segments delivered so far that had waited at the connection's receiver, because they overtook others", NOT_MEASURED => "where the engine cannot measure it";
        ooo_delay_sum_ns: u64, "ns", "sum over them of the time from arrival to delivery in order", NOT_MEASURED => "where the engine cannot measure it";
        ooo_delay_max_ns: u64, "ns", "largest such time since the previous sample", NOT_MEASURED => "where the engine cannot measure it";
        reorder_depth_sum_pkts: u64, "packets", "sum over them of the segments that waited when they had arrived, themselves included", NOT_MEASURED => "where the engine cannot measure it";
        reorder_depth_max_pkts: u64, "packets", "largest such number since the previous sample", NOT_MEASURED => "where the engine cannot measure it";
    }
}

table! {
    /// State of one subflow's sender, and what its receiver saw.
    SubflowTable, SubflowRow, "subflow" {
        t_ns: u64, "ns", "time of the sample";
        flow: u32, "", "index of the flow in the run's flow list";
        subflow: u32, "", "index of the subflow in its flow";
        state: u8, "", "0 closed, 1 handshake, 2 open, 3 disorder, 4 cwr, 5 recovery, 6 loss";
        cwnd_pkts: u32, "packets", "congestion window";
        ssthresh_pkts: u32, "packets", "slow start threshold", INFINITE_SSTHRESH => "when infinite";
        inflight_pkts: u32, "packets", "packets in flight as the sender estimates";
        srtt_us: u32, "us", "smoothed RTT", 0 => "before the first sample";
        rtt_us: u32, "us", "latest RTT sample", 0 => "before the first sample";
        min_rtt_us: u32, "us", "minimum RTT of the filter window", 0 => "before the first sample";
        rto_us: u32, "us", "retransmission timeout without backoff", 0 => "where the engine has none";
        pacing_bps: u64, "bit/s", "pacing rate", 0 => "when not pacing";
        rtt_sum_us: u64, "us", "sum of all RTT samples so far";
        rtt_count: u64, "", "number of RTT samples so far";
        sent_pkts: u64, "packets", "data packets sent so far, retransmissions included";
        retx_pkts: u64, "packets", "retransmissions so far";
        acked_pkts: u64, "packets", "data packets acknowledged so far, by cumulative ACK or SACK";
        lost_pkts: u64, "packets", "packets marked lost so far";
        loss_events: u64, "", "entries into fast recovery so far";
        ecn_events: u64, "", "reductions because of ECN so far", NOT_MEASURED => "where the engine has none";
        rto_count: u64, "", "retransmission timeouts so far", NOT_MEASURED => "where the engine has none";
        rto_wait_ns: u64, "ns", "sum over timeouts of the time since the last ACK that advanced", NOT_MEASURED => "where the engine has none";
        undo_count: u64, "", "reductions undone as spurious so far", NOT_MEASURED => "where the engine has none";
        rx_pkts: u64, "packets", "data packets that reached the receiver so far, duplicates included";
        rx_wire_bytes: u64, "bytes", "layer-2 bytes of those packets";
        rx_payload_bytes: u64, "bytes", "payload bytes of those packets";
    }
}

table! {
    /// State of one directed link.
    LinkTable, LinkRow, "link" {
        t_ns: u64, "ns", "time of the sample";
        link: u32, "", "index of the link in the run's link list";
        queue_pkts: u32, "packets", "packets waiting now, the one in service not counted";
        queue_bytes: u64, "bytes", "bytes waiting now, layer-2 overhead included";
        arrived_pkts: u64, "packets", "packets that arrived so far";
        dropped_random_pkts: u64, "packets", "random losses so far, outages included";
        dropped_queue_pkts: u64, "packets", "drops by a full queue or an AQM so far";
        marked_pkts: u64, "packets", "ECN marks so far";
        departed_pkts: u64, "packets", "packets fully serialised so far";
        departed_bytes: u64, "bytes", "their layer-2 bytes";
        queue_delay_sum_ns: u64, "ns", "sum over accepted packets of the time from arrival to the start of service";
        queue_delay_max_ns: u64, "ns", "largest such time since the previous sample";
    }
}

/// Names of the subflow table's `state`, which is an index into them; the last five are Linux' `enum tcp_ca_state`.
pub const SUBFLOW_STATES: [&str; 7] = [
    "closed",
    "handshake",
    "open",
    "disorder",
    "cwr",
    "recovery",
    "loss",
];

/// Kinds of rows of the `event` table, and what the column `value` means for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A flow opened; value: 0.
    FlowStarted = 0,
    /// The first application byte was delivered; value: 0.
    FirstByte = 1,
    /// A fixed-size transfer was delivered completely; value: application bytes.
    FlowCompleted = 2,
    /// The application stopped; value: 0.
    FlowStopped = 3,
    /// A subflow finished its handshake and may carry data; value: handshake time in ns.
    SubflowAdded = 4,
    /// A subflow was removed; value: 0.
    SubflowRemoved = 5,
    /// A subflow counts as failed after timeouts in a row; value: their number.
    SubflowFailed = 6,
    /// A failed subflow made progress again; value: 0.
    SubflowRecovered = 7,
    /// Fast recovery began; value: ssthresh in packets.
    LossEvent = 8,
    /// Fast recovery or loss recovery ended; value: cwnd in packets.
    RecoveryEnded = 9,
    /// A retransmission timeout fired; value: backoff exponent.
    RtoFired = 10,
    /// A reduction because of an ECN echo; value: ssthresh in packets.
    EcnEvent = 11,
    /// A reduction was undone; value: cwnd in packets.
    Undo = 12,
    /// A link changed by its schedule; value: index of the change.
    LinkChanged = 13,
    /// A tail loss probe was sent; value: 0.
    TlpSent = 14,
    /// Slow start ended without loss (HyStart); value: ssthresh in packets.
    SlowStartExit = 15,
    /// A subflow became a backup or a regular one (MP_PRIO); value: 1 backup, 0 regular.
    PriorityChanged = 16,
    /// The socket of an MPTCP connection shows another cwnd: `TCP_INFO` of the connection, not of a subflow, which is what
    /// programs such as iperf3 read, once per second; value: bytes. Kernel engines only.
    SocketCwnd = 17,
    /// The same for the retransmissions that it shows; value: their number so far.
    SocketRetx = 18,
}

impl EventKind {
    /// Every kind with its name in files.
    pub const ALL: [(Self, &'static str); 19] = [
        (Self::FlowStarted, "flow_started"),
        (Self::FirstByte, "first_byte"),
        (Self::FlowCompleted, "flow_completed"),
        (Self::FlowStopped, "flow_stopped"),
        (Self::SubflowAdded, "subflow_added"),
        (Self::SubflowRemoved, "subflow_removed"),
        (Self::SubflowFailed, "subflow_failed"),
        (Self::SubflowRecovered, "subflow_recovered"),
        (Self::LossEvent, "loss_event"),
        (Self::RecoveryEnded, "recovery_ended"),
        (Self::RtoFired, "rto_fired"),
        (Self::EcnEvent, "ecn_event"),
        (Self::Undo, "undo"),
        (Self::LinkChanged, "link_changed"),
        (Self::TlpSent, "tlp_sent"),
        (Self::SlowStartExit, "slow_start_exit"),
        (Self::PriorityChanged, "priority_changed"),
        (Self::SocketCwnd, "socket_cwnd"),
        (Self::SocketRetx, "socket_retx"),
    ];
}

table! {
    /// Something that happened at one point in time.
    EventTable, EventRow, "event" {
        t_ns: u64, "ns", "when it happened";
        kind: u8, "", "what happened (names in EventKind)";
        flow: i32, "", "index of the flow, -1 if none";
        subflow: i32, "", "index of the subflow, -1 if none";
        link: i32, "", "index of the link, -1 if none";
        value: u64, "", "what it means depends on the kind of event";
    }
}

table! {
    /// What an application asked for (a file, a short transfer or a chunk of a video), and when it arrived. A row is
    /// written when the transfer is complete, and at the end of the run for each transfer that is not.
    TransferTable, TransferRow, "transfer" {
        t_ns: u64, "ns", "when it began: its connection's SYN, or the request of a chunk";
        flow: u32, "", "index of the flow in the run's flow list";
        transfer: u32, "", "number of the transfer in its flow, from 0";
        bytes: u64, "bytes", "application bytes to transfer";
        media_bps: u64, "bit/s", "rate at which a chunk of a video is encoded", 0 => "for everything else";
        first_byte_ns: u64, "ns", "time from the beginning to the first byte at the receiver", NOT_MEASURED => "if it never came";
        completion_ns: u64, "ns", "time from the beginning to the last byte, in order at the receiver", NOT_MEASURED => "if the run ended before";
        resent_pkts: u64, "packets", "segments sent again for it until it was complete", NOT_MEASURED => "where the engine cannot measure it";
        stall_ns: u64, "ns", "time for which the video stood still before this chunk arrived", NOT_MEASURED => "for what is no video";
    }
}

table! {
    /// Requests with their responses, and messages, on connections that last (`traffic = { requests = ... }` and `{ messages = ... }`).
    /// A row is written when the response or the message is complete, and at the end of the run for each one that is not.
    /// If no run of a sweep has rows, the file does not exist.
    RequestTable, RequestRow, "request" {
        t_ns: u64, "ns", "when the application sent the request or the message";
        flow: u32, "", "index of the flow in the run's flow list";
        request: u32, "", "number of the request or message in its flow, from 0";
        request_bytes: u64, "bytes", "application bytes of the request or message";
        response_bytes: u64, "bytes", "application bytes of the response or answer", 0 => "for a message that is not answered";
        first_byte_ns: u64, "ns", "time until the first byte of the response arrived, in order, at the end that had sent the request; of a message without answer, its first byte at the receiver", NOT_MEASURED => "if it never came";
        completion_ns: u64, "ns", "time until the last byte arrived in the same way: the response time, or the delay of the message", NOT_MEASURED => "if the run ended before";
    }
}

/// The most rows of a row group of a table's file. Readers hold whole groups in memory, and skip those of other times.
pub const MOST_ROWS_PER_GROUP: usize = 1 << 16;

/// All sampled tables of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tables {
    pub flow: FlowTable,
    pub subflow: SubflowTable,
    pub link: LinkTable,
    pub event: EventTable,
    pub transfer: TransferTable,
    pub request: RequestTable,
}

impl Tables {
    /// The number of rows of each table, in the order of [`Tables::views`].
    #[must_use]
    pub fn row_counts(&self) -> [usize; 6] {
        [
            self.flow.len(),
            self.subflow.len(),
            self.link.len(),
            self.event.len(),
            self.transfer.len(),
            self.request.len(),
        ]
    }

    /// Rows of all tables together.
    #[must_use]
    pub fn len(&self) -> usize {
        self.row_counts().iter().sum()
    }

    /// Moves all rows of other tables to the end of these.
    pub fn append(&mut self, other: &mut Self) {
        self.flow.append(&mut other.flow);
        self.subflow.append(&mut other.subflow);
        self.link.append(&mut other.link);
        self.event.append(&mut other.event);
        self.transfer.append(&mut other.transfer);
        self.request.append(&mut other.request);
    }

    /// Removes so many of the first rows of each table, in the order of [`Tables::views`], and keeps the allocated memory.
    pub fn remove_first(&mut self, counts: [usize; 6]) {
        let [flow, subflow, link, event, transfer, request] = counts;
        self.flow.remove_first(flow);
        self.subflow.remove_first(subflow);
        self.link.remove_first(link);
        self.event.remove_first(event);
        self.transfer.remove_first(transfer);
        self.request.remove_first(request);
    }

    /// Whether no table has a row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all rows and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.flow.clear();
        self.subflow.clear();
        self.link.clear();
        self.event.clear();
        self.transfer.clear();
        self.request.clear();
    }

    /// Replaces a column by little-endian numbers of its type; false if there is no such column. The columns of a table
    /// have to be equally long in the end ([`Self::is_whole`]).
    pub fn fill(&mut self, table: &str, column: &str, bytes: &[u8]) -> bool {
        match table {
            FlowTable::NAME => self.flow.fill(column, bytes),
            SubflowTable::NAME => self.subflow.fill(column, bytes),
            LinkTable::NAME => self.link.fill(column, bytes),
            EventTable::NAME => self.event.fill(column, bytes),
            TransferTable::NAME => self.transfer.fill(column, bytes),
            RequestTable::NAME => self.request.fill(column, bytes),
            _ => false,
        }
    }

    /// Makes the columns that may be null, and that nobody filled, null in all rows.
    pub fn fill_missing(&mut self) {
        self.flow.fill_missing();
        self.subflow.fill_missing();
        self.link.fill_missing();
        self.event.fill_missing();
        self.transfer.fill_missing();
        self.request.fill_missing();
    }

    /// Whether the columns of each table are equally long.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.flow.is_whole()
            && self.subflow.is_whole()
            && self.link.is_whole()
            && self.event.is_whole()
            && self.transfer.is_whole()
            && self.request.is_whole()
    }

    /// The tables in the order of their files.
    #[must_use]
    pub fn views(&self) -> [TableView<'_>; 6] {
        [
            self.flow.view(),
            self.subflow.view(),
            self.link.view(),
            self.event.view(),
            self.transfer.view(),
            self.request.view(),
        ]
    }
}
