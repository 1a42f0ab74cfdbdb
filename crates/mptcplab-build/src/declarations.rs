//! The declarations that an algorithm's C file must have, and the flags with which it is compiled natively.

/// Flags of every native build of an algorithm, apart from optimisation and include paths.
///
/// Hooks have the kernel's signatures, so parameters may be unused; state words are read as the algorithm's struct, as in
/// the kernel.
pub const NATIVE_FLAGS: [&str; 6] = [
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
    "-fno-strict-aliasing",
];

/// How clang compiles algorithms and tracers for the kernel. `-mcpu=v3` because the verifier refuses code for v1 and v2 that
/// it accepts for v3.
pub const BPF_FLAGS: [&str; 11] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g",
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
    "-fno-strict-aliasing",
];

/// A declaration that is missing or wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct Flaw {
    pub message: String,
    pub hint: &'static str,
}

/// Checks that the text of an algorithm's file says how it is coupled, and registers the algorithm once under its name.
///
/// # Errors
/// The first [`Flaw`]. A shared library that lacks the registered object would link, but could not be loaded.
pub fn check_declarations(name: &str, text: &str) -> Result<(), Flaw> {
    let wanted = name.replace('-', "_");
    check_registration(&wanted, text)?;
    let coupling =
        ["CC_UNCOUPLED", "CC_COUPLED", "CC_SHARED"].map(|kind| format!("{kind}({wanted}"));
    if coupling.iter().any(|line| text.contains(line)) {
        return Ok(());
    }
    Err(Flaw {
        message: format!("none of {}", coupling.map(|c| c + "...)").join(", ")),
        hint: "say whether the algorithm sees its siblings, as algorithms/template-coupled.c does",
    })
}

fn check_registration(wanted: &str, text: &str) -> Result<(), Flaw> {
    let line = format!("CC_REGISTER({wanted}, ...)");
    match registered(text)[..] {
        [found] if found == wanted => Ok(()),
        [] => Err(Flaw {
            message: format!("no {line}"),
            hint: "end the file as algorithms/template.c ends",
        }),
        [found] => Err(Flaw {
            message: format!("CC_REGISTER({found}, ...), wanted {line}"),
            hint: "the file's name is the algorithm's; in C '-' is '_'",
        }),
        ref many => Err(Flaw {
            message: format!("{} times CC_REGISTER, wanted once", many.len()),
            hint: "one file is one algorithm; what differs can be a parameter (CC_PARAMS)",
        }),
    }
}

fn registered(text: &str) -> Vec<&str> {
    text.split("CC_REGISTER(")
        .skip(1)
        .filter_map(|rest| rest.split([',', ')']).next())
        .map(str::trim)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        check_declarations("my-rule", text)
            .expect_err("a flaw")
            .message
    }

    #[test]
    fn a_file_says_how_it_is_coupled_and_registers_itself_once() {
        let good = "CC_COUPLED(my_rule);\nCC_REGISTER(my_rule, .ssthresh = f);\n";
        assert_eq!(check_declarations("my-rule", good), Ok(()));
        assert_eq!(
            message("CC_REGISTER(my_rule, .a = 1)"),
            "none of CC_UNCOUPLED(my_rule...), CC_COUPLED(my_rule...), CC_SHARED(my_rule...)"
        );
        assert_eq!(
            message("CC_COUPLED(my_rule);"),
            "no CC_REGISTER(my_rule, ...)"
        );
        // A file that was renamed.
        assert_eq!(
            message("CC_COUPLED(other); CC_REGISTER(other, .a = 1)"),
            "CC_REGISTER(other, ...), wanted CC_REGISTER(my_rule, ...)"
        );
        assert_eq!(
            message("CC_COUPLED(my_rule); CC_REGISTER(my_rule) CC_REGISTER(my_rule)"),
            "2 times CC_REGISTER, wanted once"
        );
    }
}
