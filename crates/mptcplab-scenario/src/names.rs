//! Names of scenarios, nodes, links, flows and subflows.

pub(crate) const NAME_HINT: &str =
    "1 to 64 letters, digits, - and _, beginning with a letter or digit";

/// Checks a name. Names are used in file names, key paths and plots.
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("it is empty");
    }
    if name.len() > 64 {
        return Err("it is too long");
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err("it begins with the wrong character");
    }
    match name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    {
        true => Ok(()),
        false => Err("it has other characters"),
    }
}
