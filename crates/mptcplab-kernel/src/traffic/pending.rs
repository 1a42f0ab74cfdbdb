//! Transfers that are not yet complete (a file, a short transfer, a chunk of a video), and their rows in the trace.

use super::connection::Connection;
use super::context::Context;
use crate::protocol::TransferSample;
use mptcplab_scenario::TcpFlow;
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

    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, PendingTransfer>> {
        // Every change is a single insertion, removal or assignment: a poisoned lock guards a whole value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    /// Reports that the last byte of a transfer has arrived, unless it arrived after the end of the run.
    pub(super) fn complete(
        &self,
        tcp: &TcpFlow,
        transfer: u32,
        now_ns: u64,
        stall_ns: Option<u64>,
    ) {
        if now_ns > self.end_ns {
            return;
        }
        let pending = self.state.pending.all().remove(&transfer);
        if let Some(pending) = pending {
            let row = self.row(tcp, transfer, &pending);
            self.reporter.transfer(TransferSample {
                completion_ns: Some(now_ns.saturating_sub(pending.begun_ns)),
                stall_ns,
                ..row
            });
        }
    }

    /// The rows of the transfers that were not complete at the end of the run.
    pub(crate) fn unfinished(&self) -> Vec<TransferSample> {
        let Some(tcp) = crate::plan::tcp(&self.flow) else {
            return Vec::new();
        };
        let left = std::mem::take(&mut *self.state.pending.all());
        let rows = left
            .iter()
            .map(|(&transfer, pending)| self.row(tcp, transfer, pending));
        rows.collect()
    }

    fn row(&self, tcp: &TcpFlow, transfer: u32, pending: &PendingTransfer) -> TransferSample {
        let resent = pending.connection.resent_pkts(tcp);
        TransferSample {
            t_ns: pending.begun_ns,
            flow: self.index as u32,
            transfer,
            bytes: pending.bytes,
            media_bps: pending.media_bps,
            first_byte_ns: pending
                .first_byte_ns
                .map(|at| at.saturating_sub(pending.begun_ns)),
            completion_ns: None,
            resent_pkts: resent.map(|pkts| pkts.saturating_sub(pending.resent_before_pkts)),
            stall_ns: None,
        }
    }
}
