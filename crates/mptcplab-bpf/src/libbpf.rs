//! Captures libbpf's log for error messages, instead of leaving it on stderr.

use crate::error::LoadError;
use crate::system;
use libbpf_rs::{Error, ErrorKind, PrintLevel, set_print};
use std::sync::{Mutex, Once, PoisonError};

/// Last lines of the log that an error contains.
const LOG_LINES: usize = 25;
/// Characters of a line that an error contains: the verifier prints all registers in one.
const LINE_CHARACTERS: usize = 120;
/// Bytes stored of one message: the verifier's log is long, and the reason is at its end.
const MESSAGE_BYTES: usize = 16 << 10;

/// What the verifier says after a million instructions, as an error that is called "Argument list too long".
const TOO_LARGE: &str = "BPF program is too large.";
const GAVE_UP: &str = "the verifier gave up after a million instructions: a loop has no constant bound, or there are too \
                       many paths through the program (docs/algorithm-contract.md)";

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
    keep_log();
    system::check()?;
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
    work().map_err(|error| explain(what, &error))
}

/// Keeps what libbpf says from here on, which it would write to stderr.
pub(crate) fn keep_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_print(Some((PrintLevel::Warn, append)));
    });
}

fn explain(what: &str, error: &Error) -> LoadError {
    if error.kind() == ErrorKind::PermissionDenied && !system::may_load() {
        return LoadError::Privilege;
    }
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<String> = log.lines().map(shortened).collect();
    let end = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
    let paragraph = |text: &str| match text {
        "" => String::new(),
        _ => format!("\n\n{text}"),
    };
    LoadError::Kernel {
        what: what.to_owned(),
        error: error.to_string(),
        reason: paragraph(&verdict(&log).unwrap_or_default()),
        log: paragraph(&end),
    }
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Why the verifier refused a program, after the line of the source where it did; older kernels only know the text of that
/// line. Both are in its log before the count of instructions.
fn verdict(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let end = lines.iter().rposition(|line| {
        line.strip_prefix("processed ")
            .is_some_and(|rest| rest.contains(" insns"))
    })?;
    if lines[..end].iter().any(|line| line.starts_with(TOO_LARGE)) {
        let program = lines[end..]
            .iter()
            .find_map(|line| line.strip_prefix("libbpf: prog '")?.split('\'').next());
        return Some(format!(
            "{}: {GAVE_UP}",
            program.unwrap_or("one of the programs")
        ));
    }
    let is_state = |line: &str| line.starts_with("cur state:") || line.starts_with("old state:");
    let why = lines[..end].iter().rev().find(|line| !is_state(line))?;
    let source = lines[..end]
        .iter()
        .rev()
        .find_map(|line| line.strip_prefix("; "));
    let (text, place) = source.map_or(("", ""), |line| {
        line.rsplit_once(" @ ").unwrap_or((line, ""))
    });
    let parts = [place, why, text.trim()].into_iter();
    Some(
        parts
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(": "),
    )
}

/// The error for an object without a map that bpf/glue.c defines.
pub(crate) fn missing_map(name: &str) -> Error {
    std::io::Error::other(format!("no map {name}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
libbpf: prog 'cc_cong_avoid': -- BEGIN PROG LOAD LOG --
; u64 sum = 0; while (k) { k = k * 3 + 1; } @ spin.c:60
602: (61) r3 = *(u32 *)(r10 -12)
infinite loop detected at insn 603
cur state: R0=scalar()
old state: R0=scalar()
processed 9529 insns (limit 1000000) max_states_per_insn 13
-- END PROG LOAD LOG --
libbpf: failed to load object 'x'
";

    #[test]
    fn a_refusal_names_the_line_of_the_source() {
        let expected =
            "infinite loop detected at insn 603: u64 sum = 0; while (k) { k = k * 3 + 1; }";
        assert_eq!(verdict(LOG).unwrap(), format!("spin.c:60: {expected}"));
        // Older kernels do not say where the line is.
        let older = LOG.replace(" @ spin.c:60", "");
        assert_eq!(verdict(&older).unwrap(), expected);
        assert_eq!(verdict("libbpf: failed to find BTF\n"), None);
    }

    /// The reason was the kernel's sentence, without the program, and the error was called "Argument list too long".
    #[test]
    fn a_program_that_the_verifier_cannot_follow_to_its_end_is_named() {
        let log = "\
12: (79) r2 = *(u64 *)(r10 -136)
BPF program is too large. Processed 1000001 insn
processed 1000001 insns (limit 1000000) max_states_per_insn 10
-- END PROG LOAD LOG --
libbpf: prog 'cc_cong_avoid': failed to load: -E2BIG
";
        assert_eq!(verdict(log).unwrap(), format!("cc_cong_avoid: {GAVE_UP}"));
        let short = log.rsplit_once("libbpf").unwrap().0;
        assert_eq!(
            verdict(short).unwrap(),
            format!("one of the programs: {GAVE_UP}")
        );
    }

    #[test]
    fn the_registers_of_the_verifier_do_not_fill_the_screen() {
        assert_eq!(shortened("short"), "short");
        let long = "é".repeat(500);
        assert_eq!(shortened(&long).chars().count(), LINE_CHARACTERS + 1);
    }
}
