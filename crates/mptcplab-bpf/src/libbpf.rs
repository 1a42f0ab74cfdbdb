//! What libbpf says goes into our errors instead of to stderr.

use crate::{LoadError, system};
use libbpf_rs::{Error, ErrorKind, PrintLevel, set_print};
use std::sync::{Mutex, Once, PoisonError};

/// Lines of the log that an error shows.
const SHOWN: usize = 25;
/// Bytes that are kept of one message: a verifier's log is long, and its end says why.
const KEPT: usize = 16 << 10;

static LOG: Mutex<String> = Mutex::new(String::new());

fn keep(_level: PrintLevel, message: String) {
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let mut start = message.len().saturating_sub(KEPT);
    while !message.is_char_boundary(start) {
        start += 1;
    }
    log.push_str(&message[start..]);
}

/// Run something of libbpf; its log becomes part of the error.
pub(crate) fn attempt<T>(
    what: &str,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, LoadError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        set_print(Some((PrintLevel::Warn, keep)));
    });
    system::check()?;
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
    work().map_err(|error| explain(what, &error))
}

fn explain(what: &str, error: &Error) -> LoadError {
    if error.kind() == ErrorKind::PermissionDenied && !system::may_load() {
        return LoadError::Privilege;
    }
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<&str> = log.lines().collect();
    LoadError::Kernel {
        what: what.to_owned(),
        error: error.to_string(),
        log: lines[lines.len().saturating_sub(SHOWN)..].join("\n"),
    }
}
