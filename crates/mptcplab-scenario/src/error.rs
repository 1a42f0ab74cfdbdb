//! Errors of scenarios: the place, the key, the value, and what would be right.

use std::fmt;

/// The place where a value was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In the file. Lines, and columns in characters, are counted from 1.
    File { line: u32, column: u32 },
    /// In an override ([`crate::Overrides`]).
    CommandLine,
    /// A default, or the file as a whole.
    Nowhere,
}

/// One error of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as the user named it.
    pub file: String,
    /// Place of the wrong value or key.
    pub origin: Origin,
    /// Key path, e.g. `links.B1.rate`; empty for the file as a whole.
    pub key: String,
    /// What is wrong, including the value.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
}

impl Diagnostic {
    pub(crate) fn new(origin: Origin, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: String::new(),
            origin,
            key: key.into(),
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::File { line, column } => write!(f, "{}:{line}:{column}: ", self.file)?,
            Origin::CommandLine => write!(f, "command line: ")?,
            Origin::Nowhere => write!(f, "{}: ", self.file)?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The errors of a scenario: at least one [`Diagnostic`], in file order.
///
/// `Display` writes the text after `error: `, so that a caller prints `error: {error}`. Diagnostics after the first have an
/// `error: ` of their own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The errors in file order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Error {
    pub(crate) fn new(file: &str, mut diagnostics: Vec<Diagnostic>) -> Self {
        for d in &mut diagnostics {
            d.file = file.to_string();
        }
        diagnostics.sort_by_key(|d| match d.origin {
            Origin::CommandLine => (0, 0, 0),
            Origin::Nowhere => (1, 0, 0),
            Origin::File { line, column } => (2, line, column),
        });
        // A key that a sweep adds may be missing in the same way in more than one place.
        diagnostics.dedup();
        Self { diagnostics }
    }
}

/// Only this many errors are printed; the rest is counted.
const SHOWN: usize = 10;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.diagnostics.iter().take(SHOWN).enumerate() {
            if i > 0 {
                write!(f, "\n\nerror: ")?;
            }
            write!(f, "{d}")?;
        }
        match self.diagnostics.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n\n... and {more} more"),
        }
    }
}

/// The candidate that was probably meant: the only one with this word in it, or the most similar one if it is similar enough.
pub(crate) fn nearest<'a>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if wrong.chars().count() > 64 {
        return None;
    }
    let fold = |s: &str| s.to_lowercase().replace(['_', ' '], "-");
    let wrong = fold(wrong);
    let all: Vec<&str> = candidates.into_iter().collect();
    let mut containing = all
        .iter()
        .filter(|c| fold(c).split('-').any(|part| part == wrong));
    if let (Some(only), None) = (containing.next(), containing.next()) {
        return Some(only);
    }
    // Two of four letters would be half of the word.
    let allowed = match wrong.chars().count() {
        length if length <= 5 => 1,
        length => 1 + length / 4,
    };
    all.into_iter()
        .map(|c| (strsim::damerau_levenshtein(&wrong, &fold(c)), c))
        .filter(|(distance, c)| *distance <= allowed && *distance < c.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// `did you mean "lia"?`, or the list of candidates after `what`.
pub(crate) fn suggest<'a>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    what: &str,
) -> Option<String> {
    let all: Vec<&str> = candidates.into_iter().collect();
    if let Some(near) = nearest(wrong, all.iter().copied()) {
        return Some(format!("did you mean \"{near}\"?"));
    }
    (!all.is_empty()).then(|| list(what, &all))
}

/// Only this many candidates are listed; a network can have thousands of links.
const LISTED: usize = 60;
/// Width of a list, in characters.
const WIDTH: usize = 100;
/// What stands before a hint; the lines that follow the first one are indented by as much.
const HINT: &str = "hint: ";

/// `what: a, b, c` in lines that fit a hint.
pub(crate) fn list(what: &str, names: &[&str]) -> String {
    let mut text = format!("{what}:");
    let mut column = HINT.len() + text.chars().count();
    let left_out = names.len().saturating_sub(LISTED);
    let rest = (left_out > 0).then(|| format!("... and {left_out} more"));
    let shown = names.len() - left_out;
    let last = shown - usize::from(rest.is_none());
    let words = names[..shown].iter().enumerate().map(|(i, name)| match i {
        i if i == last => (*name).to_owned(),
        _ => format!("{name},"),
    });
    for word in words.chain(rest) {
        let length = 1 + word.chars().count();
        if column + length > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(HINT.len() - 1));
            column = HINT.len() - 1;
        }
        text.push(' ');
        text.push_str(&word);
        column += length;
    }
    text
}

/// The message and the hint about a name that is not among the known ones: `no algorithm "bali"`, and
/// `did you mean "balia"?` or all names. `kind` is the singular of what is named.
pub fn unknown_name<'a>(
    kind: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> (String, Option<String>) {
    let message = format!("no {kind} \"{}\"", shorten(name));
    (message, suggest(name, known, &format!("{kind}s")))
}

/// Long text shortened for a message, on one line.
pub(crate) fn shorten(text: &str) -> String {
    let mut out: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        out.push_str("...");
    }
    out.replace("\\'", "'").replace("\\\"", "\"")
}

/// A key path with one more part.
pub(crate) fn join(path: &str, key: &str) -> String {
    match path.is_empty() {
        true => key.to_string(),
        false => format!("{path}.{key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_gets_the_nearest_or_the_list() {
        let known = ["balia", "lia"];
        assert_eq!(
            unknown_name("algorithm", "bali", known),
            (
                "no algorithm \"bali\"".into(),
                Some("did you mean \"balia\"?".into())
            )
        );
        assert_eq!(
            unknown_name("scheduler", "zzzz", known).1,
            Some("schedulers: balia, lia".into())
        );
        assert_eq!(unknown_name("scheduler", "zzzz", []).1, None);
        // One letter less is "tcp", but the word stands in the other.
        assert_eq!(nearest("sctp", ["tcp", "cmt-sctp"]), Some("cmt-sctp"));
        assert_eq!(nearest("tcpp", ["tcp", "cmt-sctp"]), Some("tcp"));
    }

    #[test]
    fn a_list_is_broken_into_lines_and_ends_at_its_bound() {
        let names: Vec<String> = (1..=LISTED + 7).map(|i| format!("link{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let whole = list("links", &names[..LISTED]);
        assert!(whole.ends_with(", link59, link60"), "{whole}");
        assert!(!whole.contains("more"));
        let cut = list("links", &names);
        assert!(cut.ends_with(" link60, ... and 7 more"), "{cut}");
        for line in format!("{HINT}{cut}").lines() {
            assert!(line.len() <= WIDTH && line.len() > WIDTH / 4, "{line}");
        }
        assert!(cut.contains("\n      link"), "{cut}");
    }
}
