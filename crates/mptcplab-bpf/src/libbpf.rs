//! Captures libbpf's log for error messages, instead of leaving it on stderr.

use crate::error::LoadError;
use crate::system;
use libbpf_rs::{Error, ErrorKind, PrintLevel, set_print};
use std::sync::{Mutex, Once, PoisonError};

/// Last lines of the log that an error contains.
const LOG_LINES: usize = 25;
/// Bytes stored of one message: the verifier's log is long, and the reason is at its end.
const MESSAGE_BYTES: usize = 16 << 10;

static LOG: Mutex<String> = Mutex::new(String::new());

fn append(_level: PrintLevel, message: String) {
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let mut start = message.len().saturating_sub(MESSAGE_BYTES);
    while !message.is_char_boundary(start) {
        start += 1;
    }
    log.push_str(&message[start..]);
}

/// Runs `work`; if it fails, the error contains the log that libbpf wrote meanwhile.
pub(crate) fn with_log<T>(
    what: &str,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, LoadError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        set_print(Some((PrintLevel::Warn, append)));
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
        log: lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"),
    }
}

/// The error for an object without a map that bpf/glue.c defines.
pub(crate) fn missing_map(name: &str) -> Error {
    std::io::Error::other(format!("no map {name}")).into()
}
