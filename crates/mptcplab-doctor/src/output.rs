//! Writing without a panic: a reader may close the pipe, and a disk may be full.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process;

/// Exit code of an error, as for all errors of the program.
const ERROR: i32 = 2;

/// Writes text to stdout at once. A reader that has closed the pipe wants no more, which is no error. After any other
/// error the process ends with a message, because it would otherwise claim to have printed what nobody can read.
pub fn write(text: fmt::Arguments<'_>) {
    let text = printable(&text.to_string());
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
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
    let text = printable(&text.to_string());
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The text without what a terminal would obey, except for the ends of lines and tabs. Every user may name processes,
/// devices and files, and root reads the names here.
fn printable(text: &str) -> String {
    escaped(text, |c| c.is_control() && !"\n\t".contains(c))
}

/// A name that somebody else chose, in one line.
pub fn in_one_line(name: &str) -> String {
    escaped(name, char::is_control)
}

fn escaped(text: &str, unwanted: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match unwanted(c) {
            true => out.extend(c.escape_debug()),
            false => out.push(c),
        }
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a user's process changed the colours of root's terminal.
    #[test]
    fn a_terminal_obeys_nothing_that_is_printed() {
        let text = "ein Name: \u{1b}[31mred\u{7}\u{9b}2J\r\n\tümlaut\u{7f}\n";
        let shown = "ein Name: \\u{1b}[31mred\\u{7}\\u{9b}2J\\r\n\tümlaut\\u{7f}\n";
        assert_eq!(printable(text), shown);
        assert_eq!(in_one_line("a\nb\tc"), "a\\nb\\tc");
    }
}
