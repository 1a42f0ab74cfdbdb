//! Transfers that are not yet complete (a file, a short transfer, a chunk of a video), and their rows in the trace.

use super::connection::Connection;
use mptcplab_scenario::TcpFlow;
use mptcplab_trace::{NOT_MEASURED, TransferRow};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A transfer that was requested and is not complete.
#[derive(Debug)]
pub(crate) struct PendingTransfer {
    begun_ns: u64,
    bytes: u64,
    /// The bit rate of the encoding for a chunk of a video; 0 otherwise.
    media_bps: u64,
    /// Segments that its connection had retransmitted before.
    resent_before_pkts: u64,
    connection: Arc<Connection>,
    first_byte_ns: Option<u64>,
}

impl PendingTransfer {
    /// For a transfer with a connection of its own.
    pub(crate) fn new(begun_ns: u64, bytes: u64, connection: &Arc<Connection>) -> Self {
        Self {
            begun_ns,
            bytes,
            media_bps: 0,
            resent_before_pkts: 0,
            connection: Arc::clone(connection),
            first_byte_ns: None,
        }
    }

    /// For a chunk of a video.
    pub(crate) fn chunk(self, media_bps: u64, resent_before_pkts: u64) -> Self {
        Self {
            media_bps,
            resent_before_pkts,
            ..self
        }
    }

    /// The row of a transfer that is not complete.
    pub(super) fn row(&self, tcp: &TcpFlow, flow: usize, transfer: u32) -> TransferRow {
        let since = |at: u64| at.saturating_sub(self.begun_ns);
        let resent = self.connection.resent_pkts(tcp);
        TransferRow {
            t_ns: self.begun_ns,
            flow: flow as u32,
            transfer,
            bytes: self.bytes,
            media_bps: self.media_bps,
            first_byte_ns: self.first_byte_ns.map_or(NOT_MEASURED, since),
            completion_ns: NOT_MEASURED,
            resent_pkts: resent.map_or(NOT_MEASURED, |pkts| {
                pkts.saturating_sub(self.resent_before_pkts)
            }),
            stall_ns: NOT_MEASURED,
        }
    }
}

/// The pending transfers of a flow, by number.
#[derive(Debug, Default)]
pub(crate) struct PendingTransfers(Mutex<BTreeMap<u32, PendingTransfer>>);

impl PendingTransfers {
    pub(crate) fn begin(&self, transfer: u32, pending: PendingTransfer) {
        self.all().insert(transfer, pending);
    }

    /// Notes that the first byte of a transfer has arrived.
    pub(crate) fn first_byte(&self, transfer: u32, now_ns: u64) {
        if let Some(pending) = self.all().get_mut(&transfer) {
            pending.first_byte_ns.get_or_insert(now_ns);
        }
    }

    /// Removes a transfer, if it is pending.
    pub(super) fn remove(&self, transfer: u32) -> Option<PendingTransfer> {
        self.all().remove(&transfer)
    }

    /// Removes all transfers.
    pub(super) fn take(&self) -> BTreeMap<u32, PendingTransfer> {
        std::mem::take(&mut *self.all())
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, PendingTransfer>> {
        // Every change is a single insertion, removal or assignment: a poisoned lock guards a whole value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
