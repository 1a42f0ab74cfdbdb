//! The doctor's findings: one line per check, printed as a table or as JSON.

use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    /// The engines run, but something limits them or may have unexpected effects.
    Warn,
    /// An engine or command does not run without this.
    Missing,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Missing => "missing",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The heading of the group to which it belongs.
    pub(super) area: Cow<'static, str>,
    /// What was checked.
    pub(super) name: &'static str,
    pub(super) status: Status,
    /// The value on this machine.
    pub(super) found: String,
    /// What the value means.
    pub(super) meaning: String,
    /// The command that fixes it.
    pub(super) remedy: Option<String>,
}

impl Finding {
    /// A finding without a problem.
    pub(super) fn ok(
        area: impl Into<Cow<'static, str>>,
        name: &'static str,
        found: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self {
            area: area.into(),
            name,
            status: Status::Ok,
            found: found.into(),
            meaning: meaning.into(),
            remedy: None,
        }
    }

    /// The same finding as a warning, with a remedy.
    pub(super) fn warn(self, remedy: impl Into<String>) -> Self {
        Self {
            status: Status::Warn,
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// The same finding as a warning that no command fixes.
    pub(super) fn warn_without_remedy(self) -> Self {
        Self {
            status: Status::Warn,
            ..self
        }
    }

    /// The same finding as something that is missing, with a remedy.
    pub(super) fn missing(self, remedy: impl Into<String>) -> Self {
        Self {
            status: Status::Missing,
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

/// The worst status of several findings.
pub(super) fn worst(findings: &[Finding]) -> Status {
    findings
        .iter()
        .map(|finding| finding.status)
        .max()
        .unwrap_or(Status::Ok)
}

/// The findings as a table with headings, at most `width` columns wide unless a word is longer.
pub(super) fn table(findings: &[Finding], width: usize) -> String {
    let names = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut area = "";
    for finding in findings {
        if finding.area != area {
            if !area.is_empty() {
                text.push('\n');
            }
            area = &finding.area;
            let _ = writeln!(text, "{area}");
        }
        line(&mut text, finding, names, width);
    }
    text
}

/// Widths of the columns before the value.
const STATUS_WIDTH: usize = 7;
const GAP: usize = 2;

fn line(text: &mut String, finding: &Finding, names: usize, width: usize) {
    let indent = GAP + STATUS_WIDTH + GAP + names + GAP;
    let status = finding.status.word();
    let head = format!(
        "{:GAP$}{status:<STATUS_WIDTH$}{:GAP$}{:<names$}{:GAP$}",
        "", "", finding.name, ""
    );
    let answer = format!("{} - {}", finding.found, finding.meaning);
    let mut body = wrapped(&answer, width.saturating_sub(indent));
    // Commands are not wrapped, so that they can be copied.
    body.extend(
        finding
            .remedy
            .iter()
            .flat_map(|remedy| remedy.lines())
            .map(|remedy| format!("-> {remedy}")),
    );
    for (number, part) in body.iter().enumerate() {
        if number == 0 {
            let _ = writeln!(text, "{head}{part}");
        } else {
            let _ = writeln!(text, "{:indent$}{part}", "");
        }
    }
}

/// Wraps `text` into lines of at most `width` columns; a longer word gets a line of its own.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_answer_decides() {
        let fine = Finding::ok("A", "one", "1", "good");
        let odd = Finding::ok("A", "two", "2", "odd").warn("mend two");
        let gone = Finding::ok("A", "three", "3", "bad").missing("mend three");
        assert_eq!(worst(&[]), Status::Ok);
        assert_eq!(worst(std::slice::from_ref(&fine)), Status::Ok);
        assert_eq!(worst(&[odd.clone(), fine.clone()]), Status::Warn);
        assert_eq!(worst(&[fine, gone, odd]), Status::Missing);
    }

    #[test]
    fn the_table_names_an_area_once_and_never_breaks_a_command() {
        let findings = [
            Finding::ok("Kernel", "version", "6.18.44", "new enough"),
            Finding::ok(
                "Kernel",
                "MPTCP",
                "0",
                "switched off, so that no socket speaks it",
            )
            .missing("sysctl -w net.mptcp.enabled=1 # a command that is longer than the line"),
        ];
        let text = table(&findings, 40);
        assert_eq!(
            text,
            "Kernel\n  \
               ok       version  6.18.44 - new enough\n  \
               missing  MPTCP    0 - switched off, so\n                    that no socket\n                    \
               speaks it\n                    \
               -> sysctl -w net.mptcp.enabled=1 # a command that is longer than the line\n"
        );
    }

    #[test]
    fn wrapping_keeps_every_word() {
        assert_eq!(wrapped("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrapped("abcdefgh i", 3), ["abcdefgh", "i"]);
        assert!(wrapped(" ", 3).is_empty());
    }
}
