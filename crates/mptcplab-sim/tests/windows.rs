//! Bounds of the window other than congestion: idle periods, the application, the receive window, the pacing rate.

use crate::common::{Measured, simulate_one};

const PATH: &str = r#"
duration = "6 s"
sample = "1 ms"
profile = "rfc"
cc = "reno"
[links.L]
from = "S"
to = "D"
rate = "1 Gbit/s"
delay = "20 ms"
queue = "unlimited"
[flows.f]
transport = "tcp"
paths = [["L"]]
"#;

fn cwnd(run: &Measured, ms: f64) -> u32 {
    run.at("f", 0, ms, |t| &t.cwnd_pkts)
}

#[test]
fn a_silent_period_halves_the_window_once_per_timeout() {
    // 80 packets (clamped) after the first second. RTT 40 ms, so the RTO is 240 ms, and 600 ms halve it twice.
    let on_off = [
        ("flows.f.cwnd_clamp", "80 packets"),
        ("flows.f.traffic", "{ on = \"1 s\", off = \"600 ms\" }"),
    ];
    let run = simulate_one(PATH, &on_off);
    assert_eq!(cwnd(&run, 999.0), 80);
    assert_eq!(run.at("f", 0, 1500.0, |t| &t.rto_us) / 1000, 240);
    assert_eq!(cwnd(&run, 1620.0), 20);
    let keep = [
        on_off[0],
        on_off[1],
        ("flows.f.slow_start_after_idle", "false"),
    ];
    assert_eq!(cwnd(&simulate_one(PATH, &keep), 1620.0), 80);
}

#[test]
fn a_long_silence_goes_back_to_the_initial_window_and_no_further() {
    let run = simulate_one(
        PATH,
        &[
            ("flows.f.cwnd_clamp", "80 packets"),
            ("flows.f.initial_cwnd", "6 packets"),
            ("flows.f.traffic", "{ on = \"1 s\", off = \"3 s\" }"),
        ],
    );
    assert_eq!(cwnd(&run, 4020.0), 6);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // 20 segments of receive window; slow start may open the window to twice what was in flight, not further.
    let run = simulate_one(PATH, &[("flows.f.rcv_buffer", "28960 B")]);
    let largest = run.outcome.tables.subflow.cwnd_pkts.iter().max();
    assert!(*largest.unwrap() <= 40, "cwnd {largest:?}");
    assert_eq!(
        run.outcome.tables.subflow.inflight_pkts.iter().max(),
        Some(&20)
    );
}

/// The window of `f` after one second and at the end, and the most packets in flight.
fn kept(text: &str, set: &[(&str, &str)]) -> (u32, u32, u32) {
    let run = simulate_one(text, set);
    let most = run.outcome.tables.subflow.inflight_pkts.iter().max();
    (cwnd(&run, 1000.0), cwnd(&run, 6000.0), *most.unwrap())
}

#[test]
fn a_window_is_not_reduced_to_its_use_while_the_application_waits_for_the_receiver() {
    let set = [("flows.f.rcv_buffer", "28960 B")];
    let (early, end, used) = kept(PATH, &set);
    assert!(early > used + 10, "{early} of which {used} are used");
    assert_eq!(end, early);
    // The scheduler of Linux knows how much the application has written.
    let (early, end, used) = kept(&two_paths(), &[set[0], ("scheduler", "linger")]);
    assert!(early > used + 10, "{early} of which {used} are used");
    assert_eq!(end, early);
}

/// The same path twice, for MPTCP.
fn two_paths() -> String {
    PATH.replace(
        "\"tcp\"\npaths = [[\"L\"]]",
        "\"mptcp\"\npaths = [[\"L\"], [\"L\"]]",
    )
}

/// In Linux 6.18, a window of 2486 packets after a bulk transfer over the loopback was the same after forty messages of
/// twelve packets, 50 ms apart: every ACK that may raise the window renews `snd_cwnd_stamp` (`tcp_cong_avoid`).
/// Before, it was set halfway to its use once per timeout.
#[test]
fn a_window_beyond_its_use_stays_while_acks_come() {
    // 14 segments at once, of which the initial window of 10 makes it grow beyond its use.
    let messages = (
        "flows.f.traffic",
        "{ messages = { size = \"20 kB\", interval = \"41 ms\" } }",
    );
    for (text, set) in [
        (PATH.to_owned(), &[messages][..]),
        (two_paths(), &[messages, ("scheduler", "linger")]),
    ] {
        let run = simulate_one(&text, set);
        let (early, end) = (cwnd(&run, 1000.0), cwnd(&run, 6000.0));
        assert!(end > 18 && end >= early, "{early}, then {end}");
    }
}

#[test]
fn a_fixed_receive_buffer_gives_one_window_per_round_trip() {
    let run = simulate_one(
        PATH,
        &[("flows.f.rcv_buffer", "28960 B"), ("warmup", "1 s")],
    );
    // 20 x 1448 bytes per 40.0127 ms (propagation, 1514 bytes there, 66 back).
    let expected = 20.0 * 1448.0 * 8.0 / 40.012_7 / 1000.0;
    let goodput = run.goodput("f");
    assert!(
        (goodput / expected - 1.0).abs() < 0.01,
        "{goodput}, expected {expected}"
    );
    // Blocked from the end of one burst to the first ACK of the next, that is nearly always.
    let blocked =
        run.flow_at("f", 6000.0, |t| &t.blocked_ns) - run.flow_at("f", 1000.0, |t| &t.blocked_ns);
    assert!(
        (4.9e9..=5.0e9).contains(&(blocked as f64)),
        "blocked {blocked} ns"
    );
    let free = simulate_one(PATH, &[("flows.f.cwnd_clamp", "20 packets")]);
    assert_eq!(free.flow_at("f", 6000.0, |t| &t.blocked_ns), 0);
}

#[test]
fn subflows_share_one_receive_buffer() {
    let text = PATH.replace(
        "\"tcp\"\npaths = [[\"L\"]]",
        "\"mptcp\"\npaths = [[\"L\"], [\"M\"]]",
    ) + "[links.M]\nfrom = \"S\"\nto = \"D\"\nrate = \"40 Mbit/s\"\ndelay = \"55 ms\"\n";
    // 33 segments of 1428 bytes.
    let set = [
        ("flows.f.rcv_buffer", "47124 B"),
        ("scheduler", "roundrobin"),
    ];
    let run = simulate_one(&text, &set);
    let t = &run.outcome.tables.flow;
    for i in 0..t.len() {
        let outstanding = t.sent_bytes[i] - t.delivered_bytes[i];
        assert!(
            outstanding <= 33 * 1428,
            "{outstanding} at {} ns",
            t.t_ns[i]
        );
    }
    assert!(run.last("f", 1, |t| &t.acked_pkts) > 50);
    let held = run.outcome.tables.flow.ooo_bytes.iter().max().unwrap();
    assert!((1..=33 * 1428).contains(held), "{held} bytes held");
}

/// Two paths, slower than the window of 64 segments needs.
fn two_slow_paths() -> String {
    let slow = PATH
        .replace("1 Gbit/s", "10 Mbit/s")
        .replace("unlimited", "50 packets")
        .replace(
            "\"tcp\"\npaths = [[\"L\"]]",
            "\"mptcp\"\npaths = [[\"L\"], [\"M\"]]",
        );
    slow + "[links.M]\nfrom = \"S\"\nto = \"D\"\nrate = \"9 Mbit/s\"\ndelay = \"21 ms\"\n"
}

/// Linux 7.3 in a virtual machine has smoothed round-trip times of 42 ms on kushwah2024/disjoint. What fills a gap opens half of
/// the window, and the next ACK the other half, which goes to the other path.
#[test]
fn a_filled_gap_does_not_open_the_whole_window_for_one_path() {
    let set = [
        ("flows.f.rcv_buffer", "64 kB"),
        ("flows.f.mss", "1000 B"),
        ("scheduler", "linger"),
        ("warmup", "2 s"),
    ];
    let run = simulate_one(&two_slow_paths(), &set);
    let goodput = run.goodput("f");
    assert!(goodput > 10.0, "{goodput}");
    assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 0);
}

/// kushwah2024/disjoint-file, where Linux 7.3 in a virtual machine gets 1.5 Mbit/s and sends 9 segments per second again on the other
/// path. While a subflow recovers, the sender takes the window to end too high, and the receiver drops what lies beyond.
#[test]
fn a_small_buffer_on_lossy_paths_costs_what_it_does_in_linux() {
    let text = two_slow_paths()
        .replace(
            "9 Mbit/s\"\ndelay = \"21 ms\"",
            "10 Mbit/s\"\ndelay = \"20 ms\"\nloss = \"2 %\"",
        )
        .replace("[flows.f]", "loss = \"1 %\"\n[flows.f]");
    let set = [
        ("duration", "120 s"),
        ("sample", "10 s"),
        ("flows.f.rcv_buffer", "64 kB"),
        ("flows.f.mss", "1000 B"),
        ("cc", "lia"),
        ("scheduler", "linger"),
        ("warmup", "10 s"),
    ];
    let run = simulate_one(&text, &set);
    let goodput = run.goodput("f");
    assert!((1.4..1.75).contains(&goodput), "{goodput}");
    let again = run.flow_at("f", 120_000.0, |t| &t.reinjected_pkts);
    assert!((300..1300).contains(&again), "{again} segments");
}

/// A window update comes from a subflow whose own window has doubled: subflows that have opened the window to different sizes, on
/// paths of 50 and 2 Mbit/s, do not answer one another.
#[test]
fn subflows_with_different_windows_do_not_send_more_acks_than_segments_arrive() {
    let text = two_slow_paths()
        .replace("10 Mbit/s", "50 Mbit/s")
        .replace("9 Mbit/s", "2 Mbit/s")
        .replace("50 packets", "150 packets")
        .replace("\"rfc\"", "\"linux-acked\"");
    let set = [
        ("duration", "20 s"),
        ("sample", "100 ms"),
        ("flows.f.like", "linux-6.18"),
    ];
    let run = simulate_one(&text, &set);
    for link in ["L", "M"] {
        let segments = run.link_last(link, |t| &t.departed_pkts);
        let acks = run.link_last(&format!("{link}~"), |t| &t.arrived_pkts);
        assert!(acks <= segments + 10, "{link}: {acks} ACKs for {segments}");
    }
}

#[test]
fn buffers_of_a_few_segments_keep_a_connection_going_on_lossy_paths() {
    for (bytes, least) in [(2000, 0.2), (3000, 0.3), (5000, 0.5)] {
        let buffer = format!("{bytes} B");
        let set = [
            ("flows.f.rcv_buffer", buffer.as_str()),
            ("flows.f.mss", "1000 B"),
            ("links.L.loss", "1 %"),
            ("links.L.reverse.loss", "3 %"),
        ];
        let goodput = simulate_one(&two_slow_paths(), &set).goodput("f");
        assert!(goodput > least, "{goodput} with {bytes} bytes");
    }
}

#[test]
fn automatic_buffer_reaches_the_bandwidth_delay_product() {
    let text = PATH
        .replace("1 Gbit/s", "100 Mbit/s")
        .replace("unlimited", "400 packets");
    let set = [("warmup", "2 s"), ("flows.f.cwnd_clamp", "500 packets")];
    let auto = [
        set[0],
        set[1],
        ("flows.f.rcv_buffer", "{ auto = \"6 MB\" }"),
    ];
    let run = simulate_one(&text, &auto);
    // 331 packets fill the path of 40 ms.
    assert!(
        run.goodput("f") > 0.99 * 100.0 * 1448.0 / 1514.0,
        "{}",
        run.goodput("f")
    );
    // A bound below that binds: 100 kB are 69 segments.
    let bound = [
        set[0],
        set[1],
        ("flows.f.rcv_buffer", "{ auto = \"100 kB\" }"),
    ];
    let run = simulate_one(&text, &bound);
    let expected = 69.0 * 1448.0 * 8.0 / 40.13 / 1000.0;
    assert!(
        (run.goodput("f") / expected - 1.0).abs() < 0.02,
        "{} not {expected}",
        run.goodput("f")
    );
}

#[test]
fn pacing_spreads_a_window_over_the_round_trip() {
    // 40 packets per 40 ms on a link that takes 83 in that time: packets of a burst wait for each other, paced packets
    // hardly wait, apart from the first ten, which are not paced.
    let text = PATH.replace("1 Gbit/s", "25 Mbit/s");
    let worst = |pacing: &str| {
        let set = [
            ("flows.f.pacing", pacing),
            ("flows.f.cwnd_clamp", "40 packets"),
            ("flows.f.initial_cwnd", "40 packets"),
            ("flows.f.initial_ssthresh", "2 packets"),
        ];
        let run = simulate_one(&text, &set);
        let t = &run.outcome.tables.link;
        let rows = || (0..t.len()).filter(|&i| t.link[i] == 0);
        let all = rows().map(|i| t.queue_delay_max_ns[i]).max().unwrap();
        let later = rows().filter(|&i| t.t_ns[i] > 1_000_000_000);
        let later = later.map(|i| t.queue_delay_max_ns[i]).max().unwrap();
        (all, later, run.delivered_bytes("f"))
    };
    let (burst, paced) = (worst("false"), worst("true"));
    // 39 packets of 1514 bytes at 25 Mbit/s.
    assert_eq!(burst.0, 39 * 484_480);
    assert_eq!(paced.0, 9 * 484_480);
    assert!(paced.1 < 2 * 484_480, "{} ns", paced.1);
    assert!(paced.2 as f64 > 0.95 * burst.2 as f64);
}

/// 100 segments each time, with a window that is just about full: a round trip adds a packet, whatever is left in flight when
/// the application has written everything.
#[test]
fn a_window_that_responses_fill_grows_by_one_packet_a_round_trip() {
    let set = [
        ("flows.f.initial_ssthresh", "60 packets"),
        ("duration", "3 s"),
        (
            "flows.f.traffic",
            "{ requests = { request = \"100 B\", response = \"579200 B\", think = \"1 ms\" } }",
        ),
    ];
    for cc in ["reno", "lia", "ewtcp"] {
        let run = simulate_one(PATH, &[set[0], set[1], set[2], ("cc", cc)]);
        let (from, to) = (cwnd(&run, 500.0), cwnd(&run, 2500.0));
        assert!(from >= 60, "{from}");
        // At most 50 round trips of 40 ms.
        let grown = to - from;
        assert!((25..=50).contains(&grown), "{cc}: {grown} packets");
    }
}
