//! Conformance tests: packet-by-packet scripts, in the manner of packetdrill, that a reader can check against the RFC or the
//! Linux function that each of them names.
//!
//! The scripts (`tests/conformance/*.script` of the repository) drive the real sender or receiver of the simulator and play its
//! peer. `README.md` beside them explains their format. The crate compiles this module into its own unit tests (`cargo test -p mptcplab-sim --lib
//! conformance`), because nothing outside the crate reaches a sender.

mod wire;

use std::path::Path;

/// Every script, or those whose names have `MPTCPLAB_SCRIPT` in them.
#[test]
fn the_simulator_follows_the_scripts() {
    let wanted = std::env::var("MPTCPLAB_SCRIPT").unwrap_or_default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
    let (mut played, mut failures) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".script") && name.contains(&wanted) {
            played += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            if let Err(failure) = wire::outcome(&text) {
                failures.push(format!("tests/conformance/{name}, {failure}"));
            }
        }
    }
    failures.sort();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(played > 0, "no script has {wanted:?} in its name");
}

/// Without SACK, a sender counts duplicate ACKs, and only those that answer a segment.
#[test]
fn window_updates_do_not_count_as_duplicates() {
    let three = |end: &str| {
        format!(
            "! recovery = \"newreno\"\n! initial_cwnd = \"10 packets\"\n! silent\n\
             200 < ack 0{end}\n210 < ack 0{end}\n220 < ack 0{end}\n220 = state "
        )
    };
    wire::outcome(&(three(" update") + "open\n")).unwrap();
    wire::outcome(&(three("") + "recovery\n")).unwrap();
}

/// RFC 8985 section 6.2: a D-SACK widens the reordering window for 16 recoveries. Before it segment 0 arrives late, because a D-SACK
/// counts only where reordering was seen; and the recovery that it undoes is not one of the sixteen (`tcp_try_undo_recovery`).
#[test]
fn a_wider_reordering_window_lasts_for_sixteen_recoveries() {
    let mut text = String::from(
        "! cwnd_clamp = \"2 packets\"\n! initial_cwnd = \"2 packets\"\n! silent\n\
         200 < ack 0 sack 1:2\n210 < ack 2 stamp 100\n\
         310 < ack 2 sack 3:4\n340 = state recovery reo_wnd_mult 1\n\
         470 < ack 5 dsack 2:3\n470 = state open reo_wnd_mult 2\n",
    );
    for k in 1..=17 {
        let (una, at) = (2 + 3 * k, 310 + 260 * k);
        let mult = if k <= 16 { 2 } else { 1 };
        // The first of two segments is missing; with the wider window it is lost after 50 ms, not after 25.
        text += &format!(
            "{at} < ack {una} sack {}:{}\n{} = state {} reo_wnd_mult {mult}\n{} = state recovery\n{} < ack {}\n",
            una + 1,
            una + 2,
            at + 40,
            if k <= 16 { "disorder" } else { "recovery" },
            at + 60,
            at + 160,
            una + 3,
        );
    }
    wire::outcome(&text).unwrap();
}

/// The scripts would be worth nothing if a wrong line passed.
#[test]
fn a_wrong_line_fails() {
    let begins = "100 > 0:10\n200 < ack 1\n200 > 10:12\n";
    for (wrong, hint) in [
        ("100 > 0:9\n", "line 1: expected 0:9"),
        (
            "100 > 0:10\n150 > nothing\n200 < ack 1\n300 = cwnd 11\n",
            "line 4: unexpected 10:12",
        ),
        (
            "100 > 0:10\n200 < ack 1\n201 > 10:12\n",
            "line 3: sent at 200",
        ),
        (
            "100 > 0:10\n200 < ack 1\n",
            "after the last line: unexpected 10:12",
        ),
        (&format!("{begins}200 = cwnd 12"), "line 4: cwnd is 11"),
        (&format!("{begins}200 = srtt 99.9"), "line 4: srtt is 100.0"),
    ] {
        let failure = wire::outcome(wrong).expect_err(wrong);
        assert!(failure.starts_with(hint), "{wrong}: {failure}");
    }
    wire::outcome(begins).unwrap();
}
