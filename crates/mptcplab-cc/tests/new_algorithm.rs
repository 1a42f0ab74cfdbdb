//! A new algorithm is one new file: a renamed copy of a template, or a draft, is found, compiled and registered.

use std::fs;
use std::path::Path;
use std::process::Command;

/// No header comment and nothing that is not needed.
const DRAFT: &str = r#"#include "cc.h"
CC_UNCOUPLED(draft);
CC_REGISTER(draft,
	    .ssthresh = cc_reno_ssthresh,
	    .cong_avoid = cc_reno_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
"#;

#[test]
fn a_copied_template_and_a_draft_appear_after_a_build() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Beside the build's other products: the dependencies stay compiled from one run of the test to the next.
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-algorithm");
    let algorithms = scratch.join("algorithms");
    let _ = fs::remove_dir_all(&algorithms);
    fs::create_dir_all(&algorithms).unwrap();
    for entry in fs::read_dir(crate_dir.join("../../algorithms")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, algorithms.join(path.file_name().unwrap())).unwrap();
    }
    let copy = |template: &str, name: &str| {
        let text = fs::read_to_string(algorithms.join(format!("{template}.c"))).unwrap();
        let stem = template.replace('-', "_");
        let text = text.replace(&stem, name);
        let text = text.replace(&stem.to_uppercase(), &name.to_uppercase());
        fs::write(algorithms.join(format!("{name}.c")), text).unwrap();
    };
    copy("template", "halver");
    copy("template-coupled", "sharer");
    fs::write(algorithms.join("draft.c"), DRAFT).unwrap();

    // A package of its own that only asks the registry; the same dependencies, so it builds offline.
    let package = scratch.join("ask");
    fs::create_dir_all(package.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"ask\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nmptcplab-cc = {{ path = {crate_dir:?} }}\n"
    );
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::copy(
        crate_dir.join("../../Cargo.lock"),
        package.join("Cargo.lock"),
    )
    .unwrap();
    let main = "fn main() { for name in [\"halver\", \"sharer\", \"draft\"] { \
                let a = mptcplab_cc::find(name).expect(\"found\"); \
                println!(\"{} {} {} {} {}\", a.name(), a.params().len(), a.coupled(), a.title(), a.incomplete().is_some()); } }\n";
    fs::write(package.join("src/main.rs"), main).unwrap();

    let output = Command::new(env!("CARGO"))
        .args(["run", "--offline", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .env("MPTCPLAB_ALGORITHMS_DIR", &algorithms)
        .env("CARGO_TARGET_DIR", scratch.join("target"))
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(
        stdout.lines().collect::<Vec<_>>(),
        [
            "halver 2 false additive increase, multiplicative decrease with free constants false",
            "sharer 1 true Reno weighted by the packets between losses false",
            "draft 0 false (no title) true",
        ]
    );
}
