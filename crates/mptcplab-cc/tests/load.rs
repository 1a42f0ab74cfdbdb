//! Algorithms that are compiled while the program runs.

use mptcplab_cc::{
    Conn, LoadError, Sock, added, algorithms, compile_library, find, load, load_library,
};
use std::fs;
use std::path::Path;

/// The template for coupled algorithms under another name.
fn template(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../algorithms/template-coupled.c");
    let text = fs::read_to_string(path).unwrap();
    text.replace("template_coupled", name)
        .replace("TEMPLATE_COUPLED", &name.to_uppercase())
}

/// Windows of the two subflows of a connection after 400 ACKs and a loss of the first.
fn windows(name: &str) -> [u32; 2] {
    let algorithm = find(name).unwrap();
    let mut conn = Conn::new();
    let mut socks = [16u32, 40].map(|cwnd| {
        let mut sock = Sock::new(algorithm, &[], false).unwrap();
        sock.tp.snd_cwnd = cwnd;
        sock.tp.snd_ssthresh = cwnd;
        sock.tp.srtt_us = (30_000 + cwnd * 500) << 3;
        sock.tp.is_cwnd_limited = true;
        sock
    });
    for (slot, sock) in (0..).zip(&mut socks) {
        sock.init(&mut conn, slot);
        sock.set_usable(&mut conn, true);
    }
    for k in 0..400u32 {
        for (sock, acked) in socks.iter_mut().zip([1, 2]) {
            sock.cong_avoid(&mut conn, k, acked);
        }
        if k == 150 {
            let ssthresh = socks[0].ssthresh(&mut conn);
            socks[0].tp.snd_cwnd = ssthresh;
            socks[0].tp.snd_ssthresh = ssthresh;
        }
    }
    socks.map(|sock| sock.tp.snd_cwnd)
}

#[test]
fn a_loaded_algorithm_does_what_the_same_file_does_in_the_build() {
    let loaded = load("sharer", &template("sharer"), "sharer.c").unwrap();
    assert_eq!(loaded.name(), "sharer");
    assert!(loaded.coupled());
    assert_eq!(loaded.params()[0].name, "least_share");
    assert_eq!(loaded.fields()[0].unit, "packets");
    assert_eq!(
        loaded.title(),
        find("template-coupled").unwrap().title(),
        "the header comment is read"
    );
    assert_eq!(windows("sharer"), windows("template-coupled"));
    assert!(added().iter().any(|a| a.name() == "sharer"));
    assert!(algorithms().iter().all(|a| a.name() != "sharer"));
}

#[test]
fn a_file_that_changed_replaces_the_earlier_one_and_has_another_digest() {
    let first = load("again", &template("again"), "again.c").unwrap();
    let before = (first.source(), windows("again"));
    let changed = template("again").replace("AGAIN_FLOOR 1u", "AGAIN_FLOOR 30u");
    let second = load("again", &changed, "again.c").unwrap();
    assert_ne!(second.source(), before.0);
    assert!(
        windows("again")[0] > before.1[0],
        "the floor of 30 packets counts"
    );
    let third = load("again", &template("again"), "elsewhere/again.c").unwrap();
    assert_eq!((third.source(), windows("again")), before);
    assert_eq!(added().iter().filter(|a| a.name() == "again").count(), 1);
}

#[test]
fn a_library_that_was_compiled_before_is_the_same_algorithm() {
    let text = template("carried");
    let library =
        std::env::temp_dir().join(format!("mptcplab-test-{}-carried.so", std::process::id()));
    compile_library("carried", &text, "dir/carried.c", &library).unwrap();
    assert!(
        find("carried").is_none(),
        "compiling registers nothing in this process"
    );
    let carried = load_library("carried", &text, "/job/carried.c", &library).unwrap();
    fs::remove_file(&library).unwrap();
    assert_eq!(windows("carried"), windows("template-coupled"));
    assert_eq!(carried.file(), Some(("/job/carried.c", text.as_str())));
    assert_eq!(find("lia").unwrap().file(), None);
    let source = carried.source();
    assert_eq!(
        load("carried", &text, "carried.c").unwrap().source(),
        source
    );

    let error = load_library(
        "carried",
        &text,
        "carried.c",
        Path::new("/nowhere/carried.so"),
    );
    let message = error.unwrap_err().to_string();
    assert!(message.starts_with("carried.c: "), "{message}");
}

fn refused(name: &str, text: &str) -> String {
    let error: LoadError = load(name, text, &format!("dir/{name}.c")).expect_err("must be refused");
    assert!(find(name).is_none_or(|a| algorithms().iter().any(|b| std::ptr::eq(a, b))));
    error.to_string()
}

#[test]
fn a_file_that_cannot_be_used_is_refused_with_its_place() {
    let text = refused("Bad_Name", "");
    assert!(
        text.starts_with("dir/Bad_Name.c: \"Bad_Name\" cannot be an algorithm's name"),
        "{text}"
    );
    assert_eq!(
        refused("olia", &template("olia")),
        "dir/olia.c: olia is an algorithm of this build\n\nhint: give the file another name"
    );
    let text = refused("silent", "#include \"cc.h\"\nCC_UNCOUPLED(silent);\n");
    assert!(
        text.starts_with("dir/silent.c: no CC_REGISTER(silent, ...)"),
        "{text}"
    );

    let faulty = template("faulty").replace(
        "#include \"cc.h\"",
        "#include \"cc.h\"\nint f(void) { return nonsense; }",
    );
    let line = 1 + faulty
        .lines()
        .position(|line| line.contains("nonsense"))
        .unwrap();
    let text = refused("faulty", &faulty);
    assert!(
        text.starts_with("dir/faulty.c does not compile\n\n"),
        "{text}"
    );
    assert!(text.contains(&format!("dir/faulty.c:{line}:")), "{text}");

    let hooks = [
        (".ssthresh", ".ssthresh = cc_reno_ssthresh, "),
        (".undo_cwnd", ".undo_cwnd = cc_reno_undo_cwnd, "),
        (".cong_avoid", ".cong_avoid = cc_reno_cong_avoid, "),
    ];
    for (name, _) in hooks {
        let others = hooks.iter().filter(|(other, _)| *other != name);
        let others: String = others.map(|(_, line)| *line).collect();
        let without =
            format!("#include \"cc.h\"\nCC_UNCOUPLED(without);\nCC_REGISTER(without, {others});\n");
        let text = refused("without", &without);
        let wanted = format!("dir/without.c: CC_REGISTER has no {name}");
        assert!(text.starts_with(&wanted), "{text}");
    }

    let rounded = template("rounded").replace(
        "#include \"cc.h\"",
        "#include \"cc.h\"\nu32 half_more(u32 n);\nu32 half_more(u32 n) { return 1.5 * n; }",
    );
    let text = refused("rounded", &rounded);
    assert!(text.contains("the kernel has no floating point"), "{text}");

    let foreign = template("foreign").replace("\"cc.h\"", "\"elsewhere.h\"");
    let text = refused("foreign", &foreign);
    assert!(text.contains("elsewhere.h"), "{text}");
    assert!(
        text.contains("hint: an algorithm includes cc.h or other headers"),
        "{text}"
    );

    let undefined = template("undefined").replace(
        "#include \"cc.h\"",
        "#include \"cc.h\"\nu32 nowhere(void);\nu32 undefined_call(void);\nu32 undefined_call(void) { return nowhere(); }",
    );
    assert!(
        refused("undefined", &undefined).contains("nowhere"),
        "the linker's message"
    );
}

#[test]
fn nothing_is_left_in_the_temporary_directory() {
    load("tidy", &template("tidy"), "tidy.c").unwrap();
    let prefix = format!("mptcplab-cc-{}-", std::process::id());
    // Other tests of this program may be compiling, but not for ever.
    for _ in 0..200 {
        let left = fs::read_dir(std::env::temp_dir())
            .unwrap()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
            .count();
        if left == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("a directory of a compilation was left behind");
}
