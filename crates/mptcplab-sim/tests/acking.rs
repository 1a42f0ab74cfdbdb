//! Acknowledgements, the growth of slow start that follows from them, and the throughput of a full link.

use crate::common::simulate_one;
use mptcplab_trace::EventKind::FirstByte;

/// RTT 100 ms at 1 Gbit/s: every window is one burst, well separated from the next.
const WIDE: &str = r#"
duration = "2 s"
sample = "1 ms"
profile = "rfc"
cc = "reno"
[links.L]
from = "S"
to = "D"
rate = "1 Gbit/s"
delay = "50 ms"
[flows.f]
transport = "tcp"
paths = [["L"]]
"#;

#[test]
fn slow_start_begins_with_ten_and_doubles_every_round_trip() {
    for profile in ["rfc", "linux-acked"] {
        let run = simulate_one(WIDE, &[("profile", profile)]);
        for (round, window) in [10, 20, 40, 80, 160, 320].into_iter().enumerate() {
            // The connection is established at 100 ms. The middle of a round lies between two bursts.
            let ms = 150.0 + 100.0 * round as f64;
            let cwnd = run.at("f", 0, ms, |t| &t.cwnd_pkts);
            assert_eq!(cwnd, window, "{profile}, round {round}");
            let sent = run.at("f", 0, ms, |t| &t.sent_pkts);
            assert_eq!(sent, u64::from(2 * window - 10), "{profile}, round {round}");
        }
    }
}

#[test]
fn quick_acks_then_every_second_segment_and_a_40_ms_timer() {
    // 37 segments in bursts of 10, 20 and 7: 22 ACKs of one segment, of which six open the window, 4 and 3 of two, and the
    // last one alone.
    let size = format!("{{ size = \"{} B\" }}", 37 * 1448);
    let acks = |profile: &str| {
        let run = simulate_one(WIDE, &[("profile", profile), ("flows.f.traffic", &size)]);
        // The SYN/ACK is not an ACK of data.
        let back = run.link_last("L~", |t| &t.arrived_pkts) - 1;
        (back, run)
    };
    assert_eq!(acks("rfc").0, 37);
    let (delayed, run) = acks("linux-acked");
    assert_eq!(delayed, 22 + 4 + 3 + 1);
    // The last burst leaves at 300 ms; its last segment is acknowledged 50 + 40 + 50 ms later.
    assert_eq!(run.at("f", 0, 439.0, |t| &t.acked_pkts), 36);
    assert_eq!(run.at("f", 0, 441.0, |t| &t.acked_pkts), 37);
    assert_eq!(run.last("f", 0, |t| &t.retx_pkts), 0);
}

/// 10 Mbit/s, RTT 20 ms, kept full by a window of 60 packets: 17 on the way, 43 waiting.
const FULL: &str = r#"
duration = "12 s"
warmup = "2 s"
profile = "linux-acked"
cc = "reno"
[links.L]
from = "S"
to = "D"
rate = "10 Mbit/s"
delay = "10 ms"
[flows.f]
transport = "tcp"
paths = [["L"]]
cwnd_clamp = "60 packets"
"#;

#[test]
fn a_full_link_delivers_its_rate_less_headers() {
    for (transport, payload) in [("tcp", 1448.0), ("mptcp", 1428.0)] {
        let text = FULL.replace("\"tcp\"", &format!("\"{transport}\""));
        let run = simulate_one(&text, &[]);
        let expected = 10.0 * payload / 1514.0;
        // Ten seconds have room for 8256 packets, give or take one at the ends.
        let goodput = run.goodput("f");
        assert!(
            (goodput - expected).abs() < 10.0 * 2.0 / 8256.0,
            "{transport}: {goodput}, expected {expected}"
        );
        assert_eq!(run.last("f", 0, |t| &t.lost_pkts), 0);
        // 60 packets take 1.2112 ms each. An ACK for two packets changes the RTT by the time of one.
        let srtt = f64::from(run.last("f", 0, |t| &t.srtt_us));
        assert!(
            (srtt - 60.0 * 1211.2).abs() < 2.0 * 1211.2,
            "srtt {srtt} us"
        );
    }
}

#[test]
fn rtt_samples_and_counters_agree_with_the_packets() {
    let run = simulate_one(FULL, &[("profile", "rfc")]);
    let (sent, acked) = (
        run.last("f", 0, |t| &t.sent_pkts),
        run.last("f", 0, |t| &t.acked_pkts),
    );
    let inflight = u64::from(run.last("f", 0, |t| &t.inflight_pkts));
    assert_eq!(sent, acked + inflight);
    assert_eq!(inflight, 60);
    // Every segment has an ACK and so a sample, and the handshake has one more.
    assert_eq!(run.last("f", 0, |t| &t.rtt_count), acked + 1);
    let rx = run.last("f", 0, |t| &t.rx_pkts);
    assert_eq!(run.last("f", 0, |t| &t.rx_payload_bytes), rx * 1448);
    assert_eq!(run.last("f", 0, |t| &t.rx_wire_bytes), rx * 1514);
    assert_eq!(run.delivered_bytes("f"), rx * 1448);
    assert_eq!(run.events("f", -1, FirstByte).len(), 1);
}
