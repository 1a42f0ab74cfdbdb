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

/// RFC 8985 section 6.2: a D-SACK widens the reordering window for 16 recoveries. Seventeen of them, each undone by an old timestamp
/// so that the window stays at ten packets. The simulator narrows the window when the 17th ends, the RFC when the 16th does.
#[test]
fn a_wider_reordering_window_lasts_for_sixteen_recoveries() {
    let mut text = String::from("! cwnd_clamp = \"10 packets\"\n! silent\n");
    for k in 0..17 {
        let (una, at) = (12 * k, 200 * k + 200);
        let wide = if k == 0 {
            format!("{at} = reo_wnd_mult 1\n{at} < ack 0 dsack 0:1 sack 1:2\n")
        } else {
            format!("{at} < ack {una} sack {}:{}\n", una + 1, una + 2)
        };
        // Two segments of limited transmit, and the retransmission; everything arrives a round trip later.
        text += &format!(
            "{wide}{at} < ack {una} sack {0}:{1}\n{at} < ack {una} sack {0}:{2}\n{at} = state recovery reo_wnd_mult 2\n\
             {3} < ack {4} stamp 0\n{3} = state open cwnd 10 reo_wnd_mult {5}\n",
            una + 1,
            una + 3,
            una + 4,
            at + 100,
            una + 12,
            if k < 16 { 2 } else { 1 },
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
