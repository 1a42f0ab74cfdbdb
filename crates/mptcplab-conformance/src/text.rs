//! What was sent, in the words of a script.

use std::fmt::Write as _;

/// Data segments, each with whether it was sent before, as ranges: `0:10`, `again 3:4`.
pub fn data(sent: impl IntoIterator<Item = (u32, bool)>) -> Vec<String> {
    let mut ranges: Vec<(u32, u32, bool)> = Vec::new();
    for (seq, is_again) in sent {
        match ranges.last_mut() {
            Some((_, end, again)) if *end == seq && *again == is_again => *end += 1,
            _ => ranges.push((seq, seq + 1, is_again)),
        }
    }
    let text = |(start, end, again): (u32, u32, bool)| {
        let word = if again { "again " } else { "" };
        format!("{word}{start}:{end}")
    };
    ranges.into_iter().map(text).collect()
}

/// An ACK that a receiver sent, in segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    pub first: u32,
    pub dsack: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    /// It echoes a mark of ECN.
    pub echoes: bool,
    /// The timestamp that it echoes, in ms.
    pub stamp_ms: u64,
    /// The receive window.
    pub window: u32,
}

impl Ack {
    /// Timestamp and window only if the script's line has them.
    #[must_use]
    pub fn text(&self, like: Option<&str>) -> String {
        let mut text = format!("ack {}", self.first);
        for (name, blocks) in [("dsack", self.dsack.as_slice()), ("sack", &self.sack)] {
            if !blocks.is_empty() {
                let _ = write!(text, " {name}");
                for (start, end) in blocks {
                    let _ = write!(text, " {start}:{end}");
                }
            }
        }
        let wants = |word: &str| like.is_none_or(|line| line.contains(word));
        if self.echoes {
            text.push_str(" ece");
        }
        if wants("stamp") {
            let _ = write!(text, " stamp {}", self.stamp_ms);
        }
        if wants("window") {
            let _ = write!(text, " window {}", self.window);
        }
        text
    }
}
