//! What the doctor found: one line per question, as a table for people and as JSON for programs.

use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// The engines run, but with less than they could have, or something waits to surprise.
    Warn,
    /// An engine or command does not run without it.
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

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Heading under which the answer stands.
    pub(super) area: Cow<'static, str>,
    /// What was looked at.
    pub(super) name: &'static str,
    /// How bad it is.
    pub(super) status: Status,
    /// The value on this machine.
    pub(super) found: String,
    /// What the value means.
    pub(super) meaning: String,
    /// The command that mends it.
    pub(super) remedy: Option<String>,
}

impl Finding {
    /// All is well.
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

    /// The same line as a warning, with what to do.
    pub(super) fn warn(self, remedy: impl Into<String>) -> Self {
        Self {
            status: Status::Warn,
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// A warning that no command mends.
    pub(super) fn worth_knowing(self) -> Self {
        Self {
            status: Status::Warn,
            ..self
        }
    }

    /// The same line as something that is needed and missing, with what to do.
    pub(super) fn missing(self, remedy: impl Into<String>) -> Self {
        Self {
            status: Status::Missing,
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

/// The worst of several answers.
pub(super) fn worst(findings: &[Finding]) -> Status {
    findings
        .iter()
        .map(|finding| finding.status)
        .max()
        .unwrap_or(Status::Ok)
}

/// Findings under their headings, at most `width` columns wide where words allow.
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

/// Columns before the found value: status, name, and the gaps.
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
    // A command is never broken: it is there to be copied.
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

/// The words of `text` in lines of at most `width` columns (one longer word stands alone).
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
