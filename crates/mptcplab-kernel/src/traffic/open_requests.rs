//! Requests and messages that are under way on a connection that lasts, and their rows in the trace.

use mptcplab_model::traffic::Request;
use mptcplab_trace::{NOT_MEASURED, RequestRow};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The open requests of a flow. The end that asks adds them before it writes them; the other end takes them in order when it
/// has read them.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Those whose answers are not complete, by number.
    open: BTreeMap<u32, RequestRow>,
    /// Those that the other end has not read completely.
    unread: VecDeque<Request>,
}

impl OpenRequests {
    pub(super) fn add(&self, flow: usize, request: Request) {
        let mut inner = self.inner();
        inner.unread.push_back(request);
        inner.open.insert(
            request.index,
            RequestRow {
                t_ns: request.at_ns,
                flow: flow as u32,
                request: request.index,
                request_bytes: request.bytes,
                response_bytes: request.answer_bytes.unwrap_or(0),
                first_byte_ns: NOT_MEASURED,
                completion_ns: NOT_MEASURED,
            },
        );
    }

    /// The request that the other end reads next.
    pub(super) fn next_unread(&self) -> Option<Request> {
        self.inner().unread.front().copied()
    }

    /// The other end has read all of the request that `next_unread` returned.
    pub(super) fn note_read(&self) {
        self.inner().unread.pop_front();
    }

    /// The first byte arrived that counts for a request: of its response, or of the message itself.
    pub(super) fn note_first_byte(&self, request: u32, now_ns: u64) {
        if let Some(row) = self.inner().open.get_mut(&request) {
            if row.first_byte_ns == NOT_MEASURED {
                row.first_byte_ns = now_ns.saturating_sub(row.t_ns);
            }
        }
    }

    /// Removes a request that is complete, and returns its row.
    pub(super) fn complete(&self, request: u32, now_ns: u64) -> Option<RequestRow> {
        let row = self.inner().open.remove(&request)?;
        Some(RequestRow {
            completion_ns: now_ns.saturating_sub(row.t_ns),
            ..row
        })
    }

    /// The rows of those that are not complete; they are removed.
    pub(super) fn take(&self) -> Vec<RequestRow> {
        let open = std::mem::take(&mut self.inner().open);
        open.into_values().collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No code that can panic runs between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
