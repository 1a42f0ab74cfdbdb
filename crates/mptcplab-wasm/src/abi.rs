//! The functions that a page calls. Texts are UTF-8 in the module's memory.
//!
//! The page asks [`input`] for room and writes a text there; [`open`] reads it. Every other function leaves its text, JSON or an
//! error message, where [`output`] and [`output_len`] say, until the next call. A function returns 0 for success and 1 for an
//! error. After a panic, which the page learns through `panicked`, the module must not be used again.
//!
//! No pointer is ever read here. The page gets addresses and lengths of vectors that this module owns, and the only risk of an
//! address is that the page keeps it after the next call, when the vector may have moved; that can show the page wrong
//! numbers but cannot break this module. The page must not write anywhere but to the room that `input` gave it.

use crate::{catalog, session};
use mptcplab_scenario::Sweep;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Once;

/// Results of functions.
const SUCCESS: u32 = 0;
const FAILURE: u32 = 1;

// SAFETY: both are functions of the page, outside this module's memory, which they only read.
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// A chunk of samples at this address; 0 stops the run. The page must not call back.
    safe fn deliver(address: *const u8, bytes: usize) -> u32;
    /// A message at this address: the program broke.
    safe fn panicked(address: *const u8, bytes: usize);
}

#[derive(Default)]
struct State {
    input: Vec<u8>,
    output: Vec<u8>,
    /// The scenario that is open. A run has its own reference, so that nothing is borrowed while it goes on.
    sweep: Option<Rc<Sweep>>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

// SAFETY, for all of the names below: nothing else in the program has them, which the linker checks.

/// Room for a text of this many bytes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn input(bytes: usize) -> *mut u8 {
    report_panics();
    STATE.with_borrow_mut(|state| {
        state.input.clear();
        state.input.resize(bytes, 0);
        state.input.as_mut_ptr()
    })
}

/// The address of the text that the last call left.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn output() -> *const u8 {
    STATE.with_borrow(|state| state.output.as_ptr())
}

/// Its length in bytes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn output_len() -> usize {
    STATE.with_borrow(|state| state.output.len())
}

/// Leaves the catalog of the build.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn catalog() -> u32 {
    report_panics();
    leave(Ok(catalog::catalog().to_string()))
}

/// Parses the request in the input and leaves the resolved sweep.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn open() -> u32 {
    report_panics();
    let request = STATE.with_borrow(|state| String::from_utf8_lossy(&state.input).into_owned());
    let opened = session::open(&request).map(|sweep| {
        let plan = session::plan(&sweep).to_string();
        STATE.with_borrow_mut(|state| state.sweep = Some(Rc::new(sweep)));
        plan
    });
    leave(opened)
}

/// Simulates a run of the open scenario, delivers its samples, and leaves its totals.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn simulate(run: u32) -> u32 {
    report_panics();
    let sweep = STATE.with_borrow(|state| state.sweep.clone());
    let done = sweep
        .ok_or("no scenario is open".to_owned())
        .and_then(|sweep| {
            let run = session::run_of(&sweep, run)?;
            session::simulate(run, &mut |bytes| deliver(bytes.as_ptr(), bytes.len()) != 0)
        });
    leave(done.map(|totals| totals.to_string()))
}

fn leave(result: Result<String, String>) -> u32 {
    let code = if result.is_ok() { SUCCESS } else { FAILURE };
    let text = result.unwrap_or_else(|message| message);
    STATE.with_borrow_mut(|state| state.output = text.into_bytes());
    code
}

fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let message = info.to_string();
            panicked(message.as_ptr(), message.len());
        }));
    });
}
