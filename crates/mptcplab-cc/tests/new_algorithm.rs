//! A new algorithm is one new file: a copy of the template under another name is found, compiled and registered.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn a_copied_template_appears_after_a_build() {
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
    let template = fs::read_to_string(algorithms.join("template.c")).unwrap();
    fs::write(
        algorithms.join("halver.c"),
        template
            .replace("template", "halver")
            .replace("TEMPLATE", "HALVER"),
    )
    .unwrap();

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
    let main = "fn main() { let a = mptcplab_cc::find(\"halver\").expect(\"found\"); \
                println!(\"{} {} {}\", a.name(), a.params().len(), a.title()); }\n";
    fs::write(package.join("src/main.rs"), main).unwrap();

    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .env("MPTCPLAB_ALGORITHMS_DIR", &algorithms)
        .env("CARGO_TARGET_DIR", scratch.join("target"))
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        stdout.trim(),
        "halver 2 additive increase, multiplicative decrease with free constants"
    );
}
