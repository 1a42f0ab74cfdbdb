use super::percent::percent_for_bare_number;
use super::{DURATION, PACKETS, QueueSize, RATE, SIZE, UnitError, percent, queue, span};
use mptcplab_model::link::QueueLimit;

fn hint(result: Result<u64, UnitError>) -> String {
    result.expect_err("refused").hint
}

#[test]
fn quantities_are_exact_integers_in_their_base_unit() {
    assert_eq!(RATE.parse("10 Mbit/s"), Ok(10_000_000));
    assert_eq!(RATE.parse("1.5 MB/s"), Ok(12_000_000));
    assert_eq!(RATE.parse("0.1 kbit/s"), Ok(100));
    assert_eq!(DURATION.parse("14 ms"), Ok(14_000_000));
    // 0.1 + 0.2 has no exact double; decimals do.
    assert_eq!(DURATION.parse("0.000000300 s"), Ok(300));
    assert_eq!(DURATION.parse("1.5 min"), Ok(90_000_000_000));
    assert_eq!(SIZE.parse("64 KiB"), Ok(65_536));
    assert_eq!(SIZE.parse("64 kB"), Ok(64_000));
    assert_eq!(PACKETS.parse("7 packets"), Ok(7));
    assert_eq!(PACKETS.parse("1 packet"), Ok(1));
    assert_eq!(SIZE.parse("1 byte"), Ok(1));
}

#[test]
fn the_space_before_the_unit_may_be_missing() {
    assert_eq!(RATE.parse("10Mbit/s"), Ok(10_000_000));
    assert!(RATE.parse("10  Mbit/s").is_err());
    assert!(RATE.parse(" 10 Mbit/s").is_err());
}

#[test]
fn misspelt_units_are_put_right() {
    assert_eq!(hint(RATE.parse("7 Mbps")), "write \"7 Mbit/s\"");
    assert_eq!(hint(RATE.parse("7 gbit/s")), "write \"7 Gbit/s\"");
    assert_eq!(hint(RATE.parse("7 Kbit/s")), "write \"7 kbit/s\"");
    assert_eq!(hint(DURATION.parse("7 \u{b5}s")), "write \"7 us\"");
    assert_eq!(hint(DURATION.parse("7 MS")), "write \"7 ms\"");
    assert_eq!(hint(SIZE.parse("7 KB")), "write \"7 kB\"");
    assert_eq!(hint(SIZE.parse("7 mib")), "write \"7 MiB\"");
    assert_eq!(hint(DURATION.parse("7")), "write \"7 ms\"");
    assert_eq!(hint(DURATION.parse("0.007")), "write \"14 ms\"");
}

#[test]
fn odd_numbers_are_refused() {
    for text in [
        "", "ms", "1e3 ms", "1,5 ms", ".5 ms", "5. ms", "1.2.3 ms", "-1 ms", "+1 ms", "0x10 ms",
        "1_000 ms",
    ] {
        assert!(DURATION.parse(text).is_err(), "{text}");
    }
    assert_eq!(hint(DURATION.parse("0.5 ns")), "the finest step is 1 ns");
    assert_eq!(hint(DURATION.parse("25 h")), "a duration is at most 24 h");
    assert_eq!(
        hint(RATE.parse("999999999999999 GB/s")),
        "a rate is at most 400 Gbit/s"
    );
    assert_eq!(
        hint(PACKETS.parse("0 packets")),
        "a number of packets is 1 to 100000000 packets"
    );
}

#[test]
fn percentages_are_the_nearest_double() {
    assert_eq!(percent("0.1 %"), Ok(0.001));
    assert_eq!(percent("0.7%"), Ok(0.007));
    assert_eq!(percent("0 %"), Ok(0.0));
    assert_eq!(percent("100 %"), Ok(1.0));
    assert!(percent("100.001 %").is_err());
    assert!(percent("0.001").is_err());
}

#[test]
fn a_number_without_a_unit_may_be_a_probability_or_a_percentage() {
    for (number, write) in [
        (
            "0.001",
            r#""0.1 %" for a probability of 0.001, or "0.001 %""#,
        ),
        ("1", r#""100 %" for a probability of 1, or "1 %""#),
        ("1e-3", r#""0.1 %" for a probability of 1e-3"#),
        ("0", r#""0 %""#),
        ("0.0", r#""0 %""#),
        ("2.5", r#""2.5 %""#),
        ("250", r#""0.1 %""#),
        ("nan", r#""0.1 %""#),
        ("-0.1", r#""0.1 %""#),
    ] {
        assert_eq!(percent_for_bare_number(number), write);
    }
}

#[test]
fn a_percentage_in_text_without_a_unit_gets_the_hint_of_a_bare_number() {
    let error = percent("0.001").expect_err("no unit");
    assert_eq!(
        error.hint,
        r#"write "0.1 %" for a probability of 0.001, or "0.001 %""#
    );
    assert_eq!(
        percent("0.1 percent").expect_err("words").hint,
        r#"write "0.1 %""#
    );
}

#[test]
fn queues_come_in_four_units() {
    assert_eq!(
        queue("100 packets"),
        Ok(QueueSize::Fixed(QueueLimit::Packets(100)))
    );
    assert_eq!(
        queue("1 packet"),
        Ok(QueueSize::Fixed(QueueLimit::Packets(1)))
    );
    assert_eq!(
        queue("64 kB"),
        Ok(QueueSize::Fixed(QueueLimit::Bytes(64_000)))
    );
    assert_eq!(queue("50 ms"), Ok(QueueSize::Nanoseconds(50_000_000)));
    assert!(matches!(queue("1.5 BDP"), Ok(QueueSize::Bdp(_))));
    assert!(queue("0 BDP").is_err());
    assert!(queue("100 Mbit/s").is_err());
}

#[test]
fn a_bdp_is_rounded_up_to_packets() {
    let packets = |text: &str, rate, rtt| match queue(text) {
        Ok(QueueSize::Bdp(factor)) => factor.packets(rate, rtt, 1514),
        other => panic!("{other:?}"),
    };
    // DOL-1 in the D-OLIA paper, scenario 1: 10 Mbit/s x 14 ms and 5 Mbit/s x 24 ms are 12 and 10 packets.
    assert_eq!(packets("1 BDP", 10_000_000, 14_000_000), Some(12));
    assert_eq!(packets("1 BDP", 5_000_000, 24_000_000), Some(10));
    // 0.25 x 60 Mbit/s x 10 ms = 150 kbit = 12.38 frames.
    assert_eq!(packets("0.25 BDP", 60_000_000, 10_000_000), Some(13));
    // 1514 bytes x 8 at 12.112 Mbit/s take exactly 1 ms: no rounding up of a whole number.
    assert_eq!(packets("1 BDP", 12_112_000, 5_000_000), Some(5));
    assert_eq!(packets("0.001 BDP", 1_000_000, 0), Some(1));
    assert_eq!(
        packets(
            "999999999999999 BDP",
            400_000_000_000,
            400_000_000_000_000_000
        ),
        None
    );
}

#[test]
fn spans_are_fixed_or_uniform() {
    assert_eq!(span("3 s"), Ok((3_000_000_000, 3_000_000_000)));
    assert_eq!(span("uniform(10 ms, 2 s)"), Ok((10_000_000, 2_000_000_000)));
    assert_eq!(span("uniform (0 s,1 s)"), Ok((0, 1_000_000_000)));
    for text in [
        "uniform(1 s)",
        "uniform(1 s, 1 s)",
        "uniform(2 s, 1 s)",
        "uniform 1 s, 2 s",
        "uniform(1, 2)",
        "uniform(",
    ] {
        assert!(span(text).is_err(), "{text}");
    }
}
