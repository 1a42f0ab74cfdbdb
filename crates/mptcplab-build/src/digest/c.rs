//! Digests of C files with the headers that they can include.

use super::{Error, Sources, read_text};
use std::path::Path;

impl Sources {
    /// Adds `dir/name` and, transitively, every header in `dir` that is included with `#include "..."`.
    ///
    /// No preprocessor is run: a header counts under any `#if`, because one file has several builds. Headers in `<...>`
    /// belong to the system and do not count.
    ///
    /// # Errors
    /// [`Error::Include`] for a header that is not in `dir` and for one whose name is a macro; [`Error::Read`] and
    /// [`Error::NotText`] for a file that cannot be read.
    pub fn add_c(&mut self, dir: &Path, name: &str) -> Result<(), Error> {
        let mut open = vec![name.to_owned()];
        while let Some(file) = open.pop() {
            if self.0.contains_key(&file) {
                continue;
            }
            let text = read_text(&dir.join(&file))?;
            open.extend(headers(dir, &file, &text)?);
            self.add(&file, text.as_bytes());
        }
        Ok(())
    }
}

/// The headers that a file includes directly.
fn headers(dir: &Path, file: &str, text: &str) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for (index, operand) in (1..).zip(text.lines()).filter_map(operand) {
        let bad = |why| Error::Include {
            file: file.to_owned(),
            line: index,
            operand: operand.to_owned(),
            why,
        };
        if operand.starts_with('<') {
            continue;
        }
        let header = operand
            .strip_prefix('"')
            .and_then(|rest| rest.split_once('"'))
            .map(|(header, _)| header)
            .ok_or_else(|| bad("write the header's name in quotes"))?;
        if !dir.join(header).is_file() {
            return Err(bad(
                "no such file beside it; a system header is written in <>",
            ));
        }
        found.push(header.to_owned());
    }
    Ok(found)
}

/// The operand of `#include` in a numbered line.
fn operand((number, line): (usize, &str)) -> Option<(usize, &str)> {
    let directive = line.trim_start().strip_prefix('#')?.trim_start();
    Some((number, directive.strip_prefix("include")?.trim()))
}
