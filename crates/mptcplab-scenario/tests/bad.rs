//! Faulty scenarios with their exact error messages: `bad/NAME.toml` and `bad/NAME.txt`.

use mptcplab_scenario::{Overrides, load, parse};
use std::path::{Path, PathBuf};

fn corpus() -> Vec<PathBuf> {
    // Cargo runs tests in the package's folder, so that messages name short paths.
    let entries = std::fs::read_dir("tests/bad").expect("the corpus is there");
    let mut files: Vec<PathBuf> = entries
        .map(|e| e.expect("a readable folder").path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files
}

#[test]
fn every_bad_scenario_gets_its_error() {
    let files = corpus();
    assert!(files.len() >= 45, "{} files", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let expected = std::fs::read_to_string(file.with_extension("txt")).unwrap_or_default();
        let got = match load(&file, &Overrides::default()) {
            Ok(_) => "no error\n".to_string(),
            Err(error) => format!("error: {error}\n"),
        };
        if got != expected {
            wrong.push(format!(
                "{}\n--- expected\n{expected}--- got\n{got}",
                file.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_error_of_the_corpus_says_what_would_be_right() {
    for file in corpus() {
        let error = load(&file, &Overrides::default()).expect_err("a bad scenario");
        for diagnostic in &error.diagnostics {
            assert!(
                diagnostic.hint.is_some(),
                "{}: no hint: {diagnostic}",
                file.display()
            );
        }
    }
}

/// Not in the corpus, because the list grows with every algorithm.
#[test]
fn an_unknown_algorithm_gets_the_list_of_those_that_exist() {
    let text = "duration = \"9 s\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"3 Mbit/s\"\ndelay = \"4 ms\"\n\
                [flows.f]\ncc = \"no-such-algorithm\"\npath = [\"a\"]\n";
    let error = parse(text, "x.toml", None, &Overrides::default())
        .expect_err("an unknown algorithm")
        .to_string();
    assert!(
        error.starts_with(
            "x.toml:8:6: flows.f.cc: no algorithm \"no-such-algorithm\"\n\nhint: algorithms: "
        ),
        "{error}"
    );
    let (_, hint) = error.split_once("hint: algorithms: ").unwrap();
    let listed: Vec<&str> = hint.split(',').map(str::trim).collect();
    let known: Vec<&str> = mptcplab_cc::algorithms().iter().map(|a| a.name()).collect();
    assert_eq!(listed, known);
    assert!(error.lines().all(|line| line.len() <= 100), "{error}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let error = |path: &Path| {
        load(path, &Overrides::default())
            .expect_err("no scenario")
            .to_string()
    };
    assert!(
        error(Path::new("tests/nowhere.toml")).starts_with("tests/nowhere.toml: cannot be read: ")
    );
    assert!(error(Path::new("tests/bad")).starts_with("tests/bad: cannot be read: "));
    let binary = std::env::temp_dir().join(format!("mptcplab-binary-{}.toml", std::process::id()));
    std::fs::write(&binary, [b'a', 0xff, 0xfe]).expect("a writable temporary folder");
    let text = error(&binary);
    std::fs::remove_file(&binary).expect("the file just written");
    assert!(text.contains(": not UTF-8 text\n\nhint: "), "{text}");
}

#[test]
fn overrides_are_checked_like_the_file() {
    let base = "duration = \"9 s\"\ncc = \"lia\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"3 Mbit/s\"\ndelay = \"4 ms\"\n\
                [flows.f]\npaths = [[\"a\"], [\"a\"]]\n";
    let set = |key: &str, value: &str| Overrides {
        set: vec![(key.into(), value.into())],
        ..Overrides::default()
    };
    let cases = [
        (
            set("links.a.rate", "3 Mbps"),
            "command line: links.a.rate: \"3 Mbps\" is not a rate\n\nhint: write \"3 Mbit/s\"",
        ),
        (
            set("links.b.rate", "3 Mbit/s"),
            "command line: links.b: no such key \"b\"\n\nhint: there are: a",
        ),
        (
            set("links.a.rat", "3 Mbit/s"),
            "command line: links.a.rat: unknown key \"rat\"\n\nhint: did you mean \"rate\"?",
        ),
        (
            set("duraton", "3 s"),
            "command line: duraton: no such key \"duraton\"\n\nhint: did you mean \"duration\"?",
        ),
        (
            set("loss", "3 %"),
            "command line: loss: no such key \"loss\"\n\nhint: write the key path links.NAME.loss",
        ),
        (
            set("links.a.cc", "olia"),
            "command line: links.a.cc: unknown key \"cc\"\n\nhint: write the key path cc, or flows.NAME.cc",
        ),
        (
            set("cc.gain", "[1, 2]"),
            "command line: cc.gain: lia has no parameter \"gain\"\n\nhint: parameters of lia: dialect",
        ),
        (
            Overrides {
                cc: Some(vec!["lia".into(), "ewtcp(weight=fair)".into()]),
                ..set("cc.gain", "3")
            },
            "command line: cc.gain: no such key \"gain\"\n\n\
             hint: write every value as an algorithm of its own, such as ewtcp(weight=fair); parameters here:\n\
             \u{20}     dialect of lia, weight of ewtcp",
        ),
        (
            Overrides {
                cc: Some(vec!["reno".into(), "westwood".into()]),
                ..set("cc.reno.gain", "3")
            },
            "command line: cc.reno: no such key \"reno\"\n\nhint: none of this list has parameters",
        ),
        (
            set("flows.f.cc.gain", "[1, 2]"),
            "command line: flows.f.cc.name: missing: it says which algorithm\n\n\
             hint: write { name = \"ewtcp\", weight = \"fair\" }",
        ),
        (
            Overrides {
                set: vec![
                    ("scheduler.penalise".into(), "false".into()),
                    ("scheduler".into(), "[\"minrtt\", \"ecf\"]".into()),
                ],
                ..Overrides::default()
            },
            "command line: scheduler.penalise: it would be lost, because scheduler is set after it\n\n\
             hint: write it as a part of the value of scheduler",
        ),
        (set("", "3 s"), "command line: no such key \"\""),
        (
            set("links.a.loss", ""),
            "command line: links.a.loss: no such key in the file, so it cannot be taken out\n\n\
             hint: KEY=VALUE sets a key, KEY= takes one out",
        ),
        (
            set("links.a.rate", " "),
            "x.toml:3:8: links.a.rate: missing: a link needs it",
        ),
        (
            set("flows.f.paths.0.0", "b"),
            "command line: flows.f.paths.0: no link \"b\"\n\nhint: links: a",
        ),
        (
            Overrides {
                cc: Some(vec!["lia".into(), "liaa".into()]),
                ..Overrides::default()
            },
            "command line: cc: no algorithm \"liaa\"\n\nhint: did you mean \"lia\"?",
        ),
        (
            Overrides {
                profile: Some(vec!["rcf".into()]),
                ..Overrides::default()
            },
            "command line: profile: \"rcf\" is not one of the choices\n\nhint: did you mean \"rfc\"?",
        ),
        (
            Overrides {
                duration: Some("10".into()),
                ..Overrides::default()
            },
            "command line: duration: \"10\" is not a duration\n\nhint: write \"10 s\"",
        ),
        (
            Overrides {
                reps: Some(0),
                ..Overrides::default()
            },
            "command line: repetitions: 0 is out of range",
        ),
        (
            Overrides {
                seed: Some(u64::MAX),
                ..Overrides::default()
            },
            "command line: seed: 18446744073709551615 is out of range",
        ),
    ];
    for (overrides, expected) in cases {
        let error = parse(base, "x.toml", None, &overrides)
            .expect_err(expected)
            .to_string();
        assert!(
            error.starts_with(expected),
            "expected {expected}\ngot {error}"
        );
    }
}
