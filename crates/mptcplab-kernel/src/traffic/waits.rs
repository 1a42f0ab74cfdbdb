//! What applications wait for - a file, a short transfer, a chunk of a video - and the rows that become of it.

use super::{Connection, Context};
use crate::lab::wire::TransferSample;
use mptcplab_scenario::TcpFlow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Something that was asked for and is not complete.
#[derive(Debug)]
pub(crate) struct Wait {
    begun_ns: u64,
    bytes: u64,
    /// Of a chunk of a video: its encoding; otherwise 0.
    media_bps: u64,
    /// What its connection had sent again before.
    resent_before_pkts: u64,
    connection: Arc<Connection>,
    first_byte_ns: Option<u64>,
}

impl Wait {
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

/// What a flow waits for, by number.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<BTreeMap<u32, Wait>>);

impl Waits {
    pub(crate) fn begin(&self, transfer: u32, wait: Wait) {
        self.all().insert(transfer, wait);
    }

    /// Its first byte is at the receiver.
    pub(crate) fn first_byte(&self, transfer: u32, now_ns: u64) {
        if let Some(wait) = self.all().get_mut(&transfer) {
            wait.first_byte_ns.get_or_insert(now_ns);
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Wait>> {
        // Every change is a single insertion, removal or assignment: a poisoned lock guards a whole value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    /// Its last byte is at the receiver; what is complete after the run's end is not complete in the run.
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
        let wait = self.state.waits.all().remove(&transfer);
        if let Some(wait) = wait {
            let row = self.row(tcp, transfer, &wait);
            self.notes.transfer(TransferSample {
                completion_ns: Some(now_ns.saturating_sub(wait.begun_ns)),
                stall_ns,
                ..row
            });
        }
    }

    /// The run is over: rows of all that is not complete.
    pub(crate) fn unfinished(&self) -> Vec<TransferSample> {
        let Some(tcp) = crate::plan::tcp(&self.flow) else {
            return Vec::new();
        };
        let left = std::mem::take(&mut *self.state.waits.all());
        let rows = left
            .iter()
            .map(|(&transfer, wait)| self.row(tcp, transfer, wait));
        rows.collect()
    }

    fn row(&self, tcp: &TcpFlow, transfer: u32, wait: &Wait) -> TransferSample {
        let resent = wait.connection.resent_pkts(tcp);
        TransferSample {
            t_ns: wait.begun_ns,
            flow: self.index as u32,
            transfer,
            bytes: wait.bytes,
            media_bps: wait.media_bps,
            first_byte_ns: wait
                .first_byte_ns
                .map(|at| at.saturating_sub(wait.begun_ns)),
            completion_ns: None,
            resent_pkts: resent.map(|pkts| pkts.saturating_sub(wait.resent_before_pkts)),
            stall_ns: None,
        }
    }
}
