//! The changes that a digest notices, and those that it ignores.

use mptcplab_build::{Error, Sources, dependencies};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn sources(parts: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::new();
    for (name, contents) in parts {
        sources.add(name, contents.as_bytes());
    }
    sources
}

fn digest(parts: &[(&str, &str)]) -> String {
    sources(parts).digest()
}

/// A directory with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, contents) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    dir
}

fn c_sources(files: &[(&str, &str)], name: &str) -> Result<Sources, Error> {
    let dir = folder(files);
    let mut sources = Sources::new();
    sources.add_c(dir.path(), name)?;
    Ok(sources)
}

fn names(sources: &Sources) -> Vec<&str> {
    sources.names().collect()
}

#[test]
fn the_digest_is_sha_256_over_lengths_names_and_contents() {
    // printf '\1\0\0\0\0\0\0\0a\2\0\0\0\0\0\0\0xy\3\0\0\0\0\0\0\0b.h\0\0\0\0\0\0\0\0' | sha256sum
    let expected = "a83448fae3daf4be5bf55dd2d2fa1f1ea738ace736e5194001eb4eca00cbd289";
    assert_eq!(digest(&[("a", "xy"), ("b.h", "")]), expected);
    // printf '' | sha256sum
    assert_eq!(
        digest(&[]),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

#[test]
fn the_order_of_adding_and_adding_twice_are_not_seen() {
    let once = digest(&[("a", "1"), ("b", "22"), ("c", "333")]);
    assert_eq!(digest(&[("c", "333"), ("a", "1"), ("b", "22")]), once);
    assert_eq!(
        digest(&[("b", "22"), ("a", "1"), ("b", "22"), ("c", "333")]),
        once
    );
}

#[test]
fn names_contents_and_where_one_ends_are_seen() {
    let all = [
        digest(&[("a", "bc")]),
        digest(&[("a", "bd")]),
        digest(&[("b", "bc")]),
        digest(&[("ab", "c")]),
        digest(&[("a", ""), ("b", "c")]),
        digest(&[("a", "b"), ("c", "")]),
        digest(&[("b", "a"), ("c", "")]),
        digest(&[("a", "bc"), ("d", "")]),
    ];
    for (i, one) in all.iter().enumerate() {
        for other in &all[i + 1..] {
            assert_ne!(one, other);
        }
    }
}

#[test]
fn a_c_file_counts_with_the_headers_it_reaches_and_no_others() {
    let files = [
        (
            "rule.c",
            "/* rule */\n#include \"model.h\"\n#include \"state.h\"\nint x;\n",
        ),
        (
            "model.h",
            "#include <stdint.h>\n  #  include \"cc.h\" // bridge\n",
        ),
        ("state.h", "#include \"model.h\"\n"),
        // Under a condition, and in an include cycle.
        (
            "cc.h",
            "#ifdef OTHER\n#include\"deep.h\"\n#endif\n#include \"model.h\"\n",
        ),
        ("deep.h", "#define included \"unused.h\"\n"),
        ("unused.h", "int unused;\n"),
        ("other.c", "#include \"unused.h\"\n"),
    ];
    let rule = c_sources(&files, "rule.c").unwrap();
    assert_eq!(
        names(&rule),
        ["cc.h", "deep.h", "model.h", "rule.c", "state.h"]
    );
    let other = c_sources(&files, "other.c").unwrap();
    assert_eq!(names(&other), ["other.c", "unused.h"]);

    // An edit changes exactly the digests of the files that include it.
    let edited = |name: &str| {
        let mut files = files;
        let file = files.iter_mut().find(|(n, _)| *n == name).unwrap();
        file.1 = "int edited;\n";
        let digest = |name| c_sources(&files, name).unwrap().digest();
        (
            digest("rule.c") != rule.digest(),
            digest("other.c") != other.digest(),
        )
    };
    assert_eq!(edited("deep.h"), (true, false));
    assert_eq!(edited("state.h"), (true, false));
    assert_eq!(edited("unused.h"), (false, true));
    assert_eq!(edited("other.c"), (false, true));
}

#[test]
fn an_include_that_cannot_be_followed_is_an_error_with_its_line() {
    let missing = c_sources(&[("a.c", "\n\n#include \"gone.h\"\n")], "a.c").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "a.c:3: cannot follow #include \"gone.h\": no such file beside it; a system header is written in <>"
    );
    let text = "#define H \"b.h\"\n#include H\n";
    let by_macro = c_sources(&[("a.c", text), ("b.h", "")], "a.c").unwrap_err();
    assert_eq!(
        by_macro.to_string(),
        "a.c:2: cannot follow #include H: write the header's name in quotes"
    );
    let none = c_sources(&[], "b.c").unwrap_err();
    assert!(
        matches!(&none, Error::Read { path, .. } if path.ends_with("b.c")),
        "{none}"
    );
}

/// A workspace where `top` depends on `mid` and, through it, on `low`.
const WORKSPACE: [(&str, &str); 12] = [
    (
        "crates/mptcplab-top/Cargo.toml",
        "[package]\nname = \"mptcplab-top\"\n\n[dependencies]\nserde = \"1\"\n\
         mptcplab-mid = { workspace = true, features = [\"x\"] }\n",
    ),
    (
        "crates/mptcplab-mid/Cargo.toml",
        "[package]\nname = \"mptcplab-mid\"\n\n[dependencies]\nmptcplab-low.workspace = true\n\n\
         [dev-dependencies]\nmptcplab-bench.workspace = true\n\n[build-dependencies]\nmptcplab-tool.workspace = true\n",
    ),
    ("crates/mptcplab-mid/build.rs", "fn main() {}"),
    ("crates/mptcplab-mid/README.md", "words"),
    ("crates/mptcplab-mid/src/lib.rs", "mod deep;"),
    ("crates/mptcplab-mid/src/deep/tests/mod.rs", "// a module"),
    ("crates/mptcplab-mid/src/notes.txt", "words"),
    ("crates/mptcplab-mid/native/glue.c", "int glue;"),
    ("crates/mptcplab-mid/tests/all.rs", "// a test"),
    ("crates/mptcplab-mid/benches/speed.rs", "// a benchmark"),
    ("crates/mptcplab-mid/examples/demo.rs", "// an example"),
    ("crates/mptcplab-low/Cargo.toml", "[dependencies]\n"),
];

fn crate_sources(root: &Path) -> Sources {
    let mut sources = Sources::new();
    sources.add_crate(root, "mptcplab-mid").unwrap();
    sources
}

#[test]
fn a_crate_counts_with_what_is_compiled_into_it() {
    let root = folder(&WORKSPACE);
    let before = crate_sources(root.path());
    assert_eq!(
        names(&before),
        [
            "crates/mptcplab-mid/Cargo.toml",
            "crates/mptcplab-mid/build.rs",
            "crates/mptcplab-mid/native/glue.c",
            "crates/mptcplab-mid/src/deep/tests/mod.rs",
            "crates/mptcplab-mid/src/lib.rs",
        ]
    );
    let elsewhere = folder(&WORKSPACE);
    assert_eq!(crate_sources(elsewhere.path()).digest(), before.digest());

    let mid = root.path().join("crates/mptcplab-mid");
    for indifferent in ["README.md", "tests/all.rs", "src/notes.txt"] {
        fs::write(mid.join(indifferent), "changed").unwrap();
    }
    assert_eq!(crate_sources(root.path()).digest(), before.digest());
    fs::write(mid.join("native/glue.c"), "int glue2;").unwrap();
    assert_ne!(crate_sources(root.path()).digest(), before.digest());
}

#[test]
fn a_crate_is_made_of_its_dependencies_and_theirs() {
    let root = folder(&WORKSPACE);
    let of = |name| Vec::from_iter(dependencies(root.path(), name).unwrap());
    assert_eq!(of("mptcplab-top"), ["mptcplab-low", "mptcplab-mid"]);
    assert_eq!(of("mptcplab-mid"), ["mptcplab-low"]);
    assert!(of("mptcplab-low").is_empty());
    let none = dependencies(root.path(), "mptcplab-none").unwrap_err();
    assert!(none.to_string().contains("mptcplab-none"), "{none}");
}

#[test]
fn the_manifests_of_this_workspace_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = Vec::from_iter(dependencies(&root, "mptcplab-sim").unwrap());
    let wanted = ["build", "cc", "model", "prefetch", "scenario", "trace"];
    assert_eq!(found, wanted.map(|name| format!("mptcplab-{name}")));
}
