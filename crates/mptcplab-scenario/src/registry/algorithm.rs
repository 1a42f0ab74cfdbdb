//! Congestion controls, checked against the registered algorithms.

use super::parameters::{self, Form};
use crate::document::{Item, Res, Value};
use crate::error::{Diagnostic, join, unknown_name};
use crate::run::{CcConfig, KERNEL_CC};
use mptcplab_cc::Algorithm;

/// Linux' `TCP_CA_NAME_MAX` without the terminating zero.
const MAX_KERNEL_NAME: usize = 15;

const FORM: Form = Form {
    one: "an algorithm",
    which: "it says which algorithm",
    name: "\"lia\"",
    call: "\"ewtcp(weight=fair)\"",
    table: "{ name = \"ewtcp\", weight = \"fair\" }",
};

/// The congestion control that a value names.
pub(crate) fn resolve(item: &Item<'_>) -> Res<CcConfig> {
    let written = parameters::read(item, &FORM)?;
    check(
        item,
        (&written.name, &written.name_value),
        written.parameters,
    )
}

/// The names of an algorithm's parameters; none for what is no algorithm of this build.
pub(crate) fn parameters(name: &str) -> Vec<&'static str> {
    mptcplab_cc::find(name).map_or_else(Vec::new, |found| {
        found.params().iter().map(|spec| spec.name).collect()
    })
}

fn check(
    item: &Item<'_>,
    (name, written): (&str, &Value),
    parameters: Vec<(String, Value)>,
) -> Res<CcConfig> {
    if let Some(kernel) = name.strip_prefix(KERNEL_CC) {
        return kernel_algorithm(item, (kernel, written), &parameters);
    }
    let Some(algorithm) = mptcplab_cc::find(name) else {
        let added = mptcplab_cc::added();
        let names = mptcplab_cc::algorithms()
            .iter()
            .chain(added.iter().copied())
            .map(Algorithm::name);
        let names: Vec<&str> = names.collect();
        let (message, hint) = unknown_name("algorithm", name, names.iter().copied());
        let hint = several(name, &names).or_else(|| c_file(name)).or(hint);
        return Err(Diagnostic::new(written.origin, &item.path, message).maybe_hint(hint));
    };
    Ok(CcConfig {
        name: name.to_string(),
        params: parameters::check(item, name, algorithm.params(), parameters)?,
    })
}

/// The hint for a list of algorithms in one text.
fn several(text: &str, known: &[&str]) -> Option<String> {
    let names: Vec<&str> = text
        .split([',', ' '])
        .filter(|name| !name.is_empty())
        .collect();
    let all_known = names.len() > 1 && names.iter().all(|name| known.contains(name));
    all_known.then(|| {
        let (listed, joined) = (names.join("\", \""), names.join(","));
        format!("write cc = [\"{listed}\"], or --cc {joined} on the command line")
    })
}

/// The hint for the path of a C file: which files there are, only the command line knows.
fn c_file(name: &str) -> Option<String> {
    name.ends_with(".c").then(|| {
        "a C file is given on the command line, as in --cc ./my-rule.c, and in Python as \
         Algorithm.from_file(path)"
            .to_owned()
    })
}

/// One of the kernel's own algorithms, such as `kernel:cubic`. Only the kernel that will run it knows whether it exists.
fn kernel_algorithm(
    item: &Item<'_>,
    (name, written): (&str, &Value),
    parameters: &[(String, Value)],
) -> Res<CcConfig> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    if name.is_empty() || name.len() > MAX_KERNEL_NAME || !name.chars().all(allowed) {
        let message = format!(
            "{} is not the name of a kernel's algorithm",
            written.quoted()
        );
        return Err(Diagnostic::new(written.origin, &item.path, message).hint(
            "write \"kernel:cubic\"; sysctl net.ipv4.tcp_available_congestion_control lists them",
        ));
    }
    if let Some((key, value)) = parameters.first() {
        let message = format!("{KERNEL_CC}{name} takes no parameters");
        return Err(
            Diagnostic::new(value.origin, join(&item.path, key), message).hint(format!(
                "remove {key}; only algorithms of `mptcplab algorithms` have parameters"
            )),
        );
    }
    Ok(CcConfig {
        name: format!("{KERNEL_CC}{name}"),
        params: Vec::new(),
    })
}
