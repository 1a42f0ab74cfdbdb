//! Writing without a panic: a reader may close the pipe, and a disk may be full.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process;

/// Exit code of an error, as for all errors of the program.
const ERROR: i32 = 2;

/// Writes text to stdout at once. A reader that has closed the pipe wants no more, which is no error. After any other
/// error the process ends with a message, because it would otherwise claim to have printed what nobody can read.
pub fn write(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            crate::errln!(
                "error: cannot write to the standard output: {error}\n\nhint: what was asked for is done, but not \
                 printed; make room there, or print to another place"
            );
            process::exit(ERROR)
        }
        _ => {}
    }
}

/// Writes a message to stderr. Where nobody can read it, the exit code says enough.
pub fn tell(text: fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Like `eprintln!`, by [`tell`].
#[macro_export]
macro_rules! errln {
    ($($text:tt)*) => { $crate::output::tell(format_args!("{}\n", format_args!($($text)*))) };
}

/// Like `print!`, by [`write`].
#[macro_export]
macro_rules! out {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}

/// Like `println!`, by [`write`].
#[macro_export]
macro_rules! outln {
    ($($text:tt)*) => { $crate::output::write(format_args!("{}\n", format_args!($($text)*))) };
}
