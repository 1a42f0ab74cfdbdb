//! A panic is a bug of mptcplab. It becomes a message with its place, instead of a traceback on stderr.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Make panics inside [`catch`] silent; all others go on as before.
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

/// Run `f`; the error is what it panicked with and where.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    CATCHING.set(true);
    // Whatever `f` has left half done is dropped with the sweep it belongs to.
    let result = panic::catch_unwind(AssertUnwindSafe(f));
    CATCHING.set(false);
    result.map_err(|_| {
        MESSAGE
            .take()
            .unwrap_or_else(|| "panicked without a message".into())
    })
}
