//! The header comment of an algorithm's C file: a title line, then headings with text.

/// Headings of a complete header comment, in this order.
const HEADINGS: [&str; 9] = [
    "Idea",
    "Equations",
    "States",
    "Parameters' source",
    "Deviations",
    "On one path",
    "Good at",
    "Bad at",
    "Reference",
];

/// The part of a file's header comment that the registry contains.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// What follows the name in the title line.
    pub title: String,
    /// Headings and their text, in the order of the file.
    pub sections: Vec<(String, String)>,
    /// What is missing or in the wrong place, if anything is.
    pub incomplete: Option<String>,
}

impl Header {
    /// Reads the first block comment: a title line, then headings `Name: text`, continued by indented lines.
    ///
    /// A draft need not have them all. What is missing is recorded; `make setup` warns of it, and the tests demand it.
    pub fn parse(file: &str) -> Self {
        let comment = file
            .split_once("/*")
            .and_then(|(_, rest)| rest.split_once("*/"))
            .map_or("", |(comment, _)| comment);
        let mut title = String::new();
        let mut sections: Vec<(String, String)> = Vec::new();
        for line in comment.lines() {
            let line = line.trim_start().strip_prefix('*').unwrap_or(line);
            if let Some((name, rest)) = heading(line) {
                sections.push((name.to_owned(), rest.trim().to_owned()));
            } else if let Some((_, body)) = sections.last_mut() {
                body.push('\n');
                body.push_str(
                    line.strip_prefix("   ")
                        .unwrap_or(line.trim_start())
                        .trim_end(),
                );
            } else if title.is_empty() {
                title = line.trim().to_owned();
            }
        }
        for (_, body) in &mut sections {
            *body = body.trim().to_owned();
        }
        let incomplete = incomplete(&title, &sections);
        let title = match title.split_once(": ") {
            Some((_, rest)) => rest.to_owned(),
            None if title.is_empty() => "(no title)".to_owned(),
            None => title,
        };
        Self {
            title,
            sections,
            incomplete,
        }
    }
}

/// A heading and the text behind it, if the line begins with one.
fn heading(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix(' ')
        .and_then(|line| line.split_once(':'))
        .filter(|(name, _)| HEADINGS.contains(name))
}

/// What a header comment lacks of a title line and [`HEADINGS`] in their order.
fn incomplete(title: &str, sections: &[(String, String)]) -> Option<String> {
    let found: Vec<&str> = sections.iter().map(|(name, _)| name.as_str()).collect();
    if !title.is_empty() && found == HEADINGS {
        return None;
    }
    let no_title = title.is_empty().then_some("the title line");
    let absent = HEADINGS.iter().filter(|name| !found.contains(name));
    let missing: Vec<&str> = no_title.into_iter().chain(absent.copied()).collect();
    Some(if missing.is_empty() {
        format!("each heading once, in this order: {}", HEADINGS.join(", "))
    } else {
        format!("missing: {}", missing.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header comment with these headings, each with a text of its own in two lines.
    fn file(title: &str, headings: &[&str]) -> String {
        let sections: String = headings
            .iter()
            .map(|name| format!(" * {name}: about\n *   {name}\n"))
            .collect();
        format!("// SPDX\n/*\n * {title}\n *\n{sections} */\n#include \"cc.h\"\n")
    }

    #[test]
    fn a_complete_header_has_a_title_and_its_sections() {
        let header = Header::parse(&file("my-rule: a rule of mine", &HEADINGS));
        assert_eq!(header.title, "a rule of mine");
        assert_eq!(header.incomplete, None);
        assert_eq!(header.sections.len(), HEADINGS.len());
        let states = (String::from("States"), String::from("about\nStates"));
        assert_eq!(header.sections[2], states);
    }

    #[test]
    fn a_draft_says_what_is_missing() {
        let incomplete =
            |title, headings: &[&str]| Header::parse(&file(title, headings)).incomplete;
        let says = |text: &str| Some(text.to_owned());
        assert_eq!(
            incomplete("my-rule: a rule", &HEADINGS[..7]),
            says("missing: Bad at, Reference")
        );
        assert_eq!(incomplete("", &HEADINGS), says("missing: the title line"));
        let mut swapped = HEADINGS;
        swapped.swap(0, 1);
        let order = incomplete("my-rule: a rule", &swapped).unwrap();
        assert!(
            order.ends_with(
                "in this order: Idea, Equations, States, Parameters' source, \
             Deviations, On one path, Good at, Bad at, Reference"
            ),
            "{order}"
        );
        let without = Header::parse("#include \"cc.h\"\n");
        assert_eq!(without.title, "(no title)");
        assert!(
            without
                .incomplete
                .unwrap()
                .starts_with("missing: the title line, Idea, ")
        );
    }
}
