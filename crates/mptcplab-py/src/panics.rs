//! Panics as error messages with a source line, instead of a trace on stderr. A panic is a bug of mptcplab.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Silences panics inside [`catch`]; all others are reported as before.
pub(crate) fn install() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if CATCHING.get() {
            MESSAGE.set(Some(info.to_string().replace('\n', " ")));
        } else {
            default(info);
        }
    }));
}

/// Runs `f`; the error is the message of a panic and its source line.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    CATCHING.set(true);
    // Unwind safety: what `f` leaves half done is dropped with the sweep.
    let result = panic::catch_unwind(AssertUnwindSafe(f));
    CATCHING.set(false);
    result.map_err(|_| {
        MESSAGE
            .take()
            .unwrap_or_else(|| "panicked without a message".into())
    })
}
