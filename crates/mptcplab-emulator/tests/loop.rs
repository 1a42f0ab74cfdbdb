//! The emulator's own behaviour: counters, ends, faults, bad set-ups.

mod common;

use common::{MS, address, config, link, number, numbered, packet, port, setup, unread_port};
use mptcplab_emulator::{
    Bound, Clock, Error, LinkChange, LogEntry, Options, Pair, PairStats, Scheduling, Setup,
    grant_real_time, start,
};
use mptcplab_model::link::{Change, LinkConfig, Loss, QueueLimit};
use std::io::Write;
use std::time::{Duration, Instant};

/// Wait until a condition holds, but not for ever.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{what} did not happen"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn data_packets_are_counted_by_address_pair_at_its_first_and_last_link() {
    // a > b > c, and c > a for the way back. What is for no host behind c ends at b.
    let ((a_out, a), (b_in, b)) = (port("a"), port("b"));
    let ((c_out, c), (a_in, a_back)) = (port("c"), port("a in"));
    let ports = vec![a_out, b_in, c_out, a_in];
    let lossy = LinkConfig {
        loss: Loss::Bernoulli { p: 0.25 },
        overhead_bytes: 20,
        rate_bps: 90_000_000,
        ..config()
    };
    let back = LinkConfig {
        overhead_bytes: 4,
        delay_ns: MS,
        ..config()
    };
    let links = vec![
        link("a-b", 0, 1, config()),
        link("b-c", None, 2, lossy),
        link("c-a", 2, 3, back),
    ];
    let pair = |from: (u8, u8), to: (u8, u8), links: &[usize]| Pair {
        source: address(from.0, from.1).into(),
        destination: address(to.0, to.1).into(),
        links: links.to_vec(),
    };
    let pairs = vec![
        pair((1, 1), (3, 1), &[0, 1]),
        pair((1, 2), (3, 1), &[0, 1]),
        pair((3, 1), (1, 1), &[2]),
        pair((1, 1), (2, 1), &[0]),
    ];
    let emulator = start(setup(ports, links, pairs)).expect("an emulator");

    let segment =
        |from, to, data: &[u8]| packet::ipv4(from, to, packet::TCP, 0, &packet::tcp(5, 6, data));
    for i in 0..300_usize {
        a.send(&segment(address(1, 1), address(3, 1), &vec![1; 100 + i]));
        a.send(&segment(address(1, 1), address(3, 1), &[]));
        if i % 3 == 0 {
            a.send(&segment(address(1, 2), address(3, 1), &[2; 1000]));
            a.send(&segment(address(1, 9), address(3, 1), &[3; 10]));
            a.send(&segment(address(1, 1), address(2, 1), &[5; 11]));
        }
        if i % 2 == 0 {
            c.send(&segment(address(3, 1), address(1, 1), &[4; 7]));
        }
    }
    let at_b = b.receive_all(100 + 100);
    assert_eq!(at_b.iter().filter(|packet| packet[15] == 9).count(), 100);
    a_back.receive_all(150);
    let received: Vec<_> = std::iter::from_fn(|| c.receive(500)).collect();
    let sample = emulator.sample().expect("a sample");

    let is_from = |host: u8| move |packet: &&Vec<u8>| packet[15] == host && packet.len() > 52;
    let expected = |host, sent_pkts| {
        let packets: Vec<_> = received.iter().filter(is_from(host)).collect();
        let bytes: usize = packets.iter().map(|packet| packet.len()).sum();
        PairStats {
            sent_pkts,
            rx_pkts: packets.len() as u64,
            rx_wire_bytes: (bytes + 20 * packets.len()) as u64,
            // 20 bytes IP and 32 bytes TCP header.
            rx_payload_bytes: (bytes - 52 * packets.len()) as u64,
        }
    };
    assert_eq!(sample.pairs[0], expected(1, 300));
    assert_eq!(sample.pairs[1], expected(2, 100));
    let back = PairStats {
        sent_pkts: 150,
        rx_pkts: 150,
        rx_wire_bytes: 150 * (52 + 7 + 4),
        rx_payload_bytes: 150 * 7,
    };
    assert_eq!(sample.pairs[2], back);
    let near = PairStats {
        sent_pkts: 100,
        rx_pkts: 100,
        rx_wire_bytes: 100 * (52 + 11 + 14),
        rx_payload_bytes: 100 * 11,
    };
    assert_eq!(sample.pairs[3], near);
    assert!(
        (150..280).contains(&sample.pairs[0].rx_pkts),
        "{:?}",
        sample.pairs[0]
    );

    assert_eq!(sample.links[1].arrived_pkts, 700);
    let lost = sample.links[1].dropped_random_pkts;
    assert_eq!(received.len() as u64, 700 - lost);
    assert_eq!((sample.write_failed_pkts, sample.changes.len()), (0, 0));
    let report = emulator.stop().expect("no error");
    assert_eq!(report.pairs, sample.pairs);
    let ports: Vec<_> = report
        .ports
        .iter()
        .map(|port| (port.read_pkts, port.written_pkts))
        .collect();
    assert_eq!(ports, [(900, 0), (0, 200), (150, 700 - lost), (0, 150)]);
    assert_eq!(report.scheduling, Scheduling::Normal { refused: None });
    assert_eq!((report.spin_ns, report.memory_locked), (0, false));
}

/// When packets arrived at a link.
fn arrivals(log: &[LogEntry], at: usize) -> Vec<u64> {
    let times = log.iter().filter_map(|entry| match entry {
        LogEntry::Arrival { link, at_ns, .. } if *link == at => Some(*at_ns),
        _ => None,
    });
    times.collect()
}

/// When a link's releases were due.
fn releases(log: &[LogEntry], at: usize) -> Vec<u64> {
    let times = log.iter().filter_map(|entry| match entry {
        LogEntry::Release { link, due_ns, .. } if *link == at => Some(*due_ns),
        _ => None,
    });
    times.collect()
}

#[test]
fn packets_enter_the_next_link_when_they_are_due_and_nobody_wakes_for_that() {
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let slow = LinkConfig {
        rate_bps: 8_000_000,
        delay_ns: 11 * MS,
        ..config()
    };
    let links = vec![
        link("a-r", 0, None, config()),
        link("r-s", None, None, slow),
        link("s-b", None, 1, config()),
    ];
    let way = Pair {
        source: address(1, 1).into(),
        destination: address(2, 2).into(),
        links: vec![0, 1, 2],
    };
    let emulator = start(setup(vec![a, b], links, vec![way])).expect("an emulator");
    for number in 0..200 {
        sender.send(&numbered(0, number, 100 + number as usize, 0));
        std::thread::sleep(Duration::from_micros(700));
    }
    assert_eq!(receiver.receive_all(200).len(), 200);
    let report = emulator.stop().expect("no error");
    let arrivals = |link| arrivals(&report.log, link);
    let releases = |link| releases(&report.log, link);
    assert_eq!((arrivals(1), arrivals(2)), (releases(0), releases(1)));
    assert_eq!(releases(2).len(), 200);
    let counts = [0, 1, 2].map(|link: usize| report.links[link].lateness.count);
    assert_eq!(counts, [0, 0, 200]);
    // Waking for every step would be three times as often.
    assert!(report.wakeups.count <= 220, "{:?}", report.wakeups);
}

#[test]
fn packets_that_are_read_do_not_overtake_those_between_links() {
    let ((a, at_a), (b, at_b), (c, at_c)) = (port("a"), port("b"), port("c"));
    let fast = LinkConfig {
        rate_bps: 1_000_000_000,
        queue: QueueLimit::Packets(10_000),
        ..config()
    };
    let links = vec![
        link("a-r", 0, None, fast.clone()),
        // c's own packets enter it as well.
        link("r-b", 2, 1, fast),
    ];
    let way = |net, links: &[usize]| Pair {
        source: address(net, 1).into(),
        destination: address(2, 2).into(),
        links: links.to_vec(),
    };
    let ways = vec![way(1, &[0, 1]), way(3, &[1])];
    let emulator = start(setup(vec![a, b, c], links, ways)).expect("an emulator");
    let from = |net| packet::ipv4(address(net, 1), address(2, 2), packet::UDP, 0, &[0; 40]);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..4000).for_each(|_| at_a.send(&from(1))));
        scope.spawn(|| (0..4000).for_each(|_| at_c.send(&from(3))));
        at_b.receive_all(8000);
    });
    let report = emulator.stop().expect("no error");
    let arrived = arrivals(&report.log, 1);
    let forwarded = releases(&report.log, 0);
    assert_eq!((arrived.len(), forwarded.len()), (8000, 4000));
    let exact = |time: &&u64| arrived.binary_search(time).is_ok();
    assert_eq!(forwarded.iter().filter(exact).count(), 4000);
}

#[test]
fn the_thread_wakes_in_time_for_the_last_link() {
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let delay = |delay_ms| LinkConfig {
        delay_ns: delay_ms * MS,
        ..config()
    };
    let links = vec![
        link("a-r", 0, None, delay(2)),
        link("r-b", None, 1, delay(80)),
    ];
    let way = Pair {
        source: address(1, 1).into(),
        destination: address(2, 2).into(),
        links: vec![0, 1],
    };
    let emulator = start(setup(vec![a, b], links, vec![way])).expect("an emulator");
    for number in 0..5 {
        sender.send(&numbered(0, number, 300, 0));
        receiver.receive_all(1);
    }
    let late_ns = emulator.stop().expect("no error").links[1].lateness.p50_ns;
    assert!(late_ns < 40 * MS, "{late_ns}");
}

#[test]
fn a_packet_that_ends_where_others_go_on_does_not_wait_for_them() {
    let ((a, sender), (b, receiver), (c, _c)) = (port("a"), port("b"), port("c"));
    let far = LinkConfig {
        delay_ns: 600_000 * MS,
        ..config()
    };
    let links = vec![link("a-b", 0, 1, config()), link("b-c", None, 2, far)];
    let way = |links: &[usize], host| Pair {
        source: address(1, 1).into(),
        destination: address(2, host).into(),
        links: links.to_vec(),
    };
    let ways = vec![way(&[0, 1], 3), way(&[0], 2)];
    let emulator = start(setup(vec![a, b, c], links, ways)).expect("an emulator");
    let to = |host| packet::ipv4(address(1, 1), address(2, host), packet::UDP, 0, &[0; 40]);
    for _ in 0..20 {
        sender.send(&to(3));
        sender.send(&to(2));
    }
    assert_eq!(receiver.receive_all(20).len(), 20);
    let sample = emulator.sample().expect("a sample");
    let arrived = [0, 1].map(|link: usize| sample.links[link].arrived_pkts);
    assert_eq!(arrived, [40, 20]);
}

#[test]
fn a_packet_that_no_way_leads_on_is_reported() {
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let links = vec![
        link("a-r", 0, None, config()),
        link("r-b", None, 1, config()),
    ];
    let way = Pair {
        source: address(1, 1).into(),
        destination: address(2, 2).into(),
        links: vec![0, 1],
    };
    let emulator = start(setup(vec![a, b], links, vec![way])).expect("an emulator");
    let stray = packet::ipv4(address(1, 7), address(2, 2), packet::UDP, 0, &[0; 40]);
    sender.send(&stray);
    sender.send(&numbered(0, 1, 90, 0));
    receiver.receive_all(1);
    let report = emulator.stop().expect("no error");
    assert_eq!(
        (report.ports[0].unrouted_pkts, report.links[0].arrived_pkts),
        (1, 1)
    );
    assert!(!report.judge(&Bound::default(), &[]).is_valid());
}

#[test]
fn schedules_run_on_links_without_traffic_and_are_told_in_order() {
    let change = |at_ms: u64| Change {
        at_ns: at_ms * MS,
        rate_bps: Some(at_ms * 1000),
        delay_ns: None,
        loss: None,
        up: None,
    };
    let scheduled = |times: &[u64]| LinkConfig {
        schedule: times.iter().copied().map(change).collect(),
        ..config()
    };
    let ((a, _a), (b, _b), (c, _c)) = (port("a"), port("b"), port("c"));
    let links = vec![
        link("a-b", 0, 1, scheduled(&[20, 90])),
        link("b-c", 1, 2, scheduled(&[10, 50, 3_600_000])),
    ];
    let emulator = start(setup(vec![a, b, c], links, Vec::new())).expect("an emulator");
    let mut changes = Vec::new();
    until("the last change", || {
        changes.extend(emulator.sample().expect("it runs").changes);
        changes.len() >= 4
    });
    let expected = [(1, 0, 10), (0, 0, 20), (1, 1, 50), (0, 1, 90)];
    let expected = expected.map(|(link, change, at_ms)| LinkChange {
        link,
        change,
        at_ns: at_ms * MS,
    });
    assert_eq!(changes, expected);
    let report = emulator.stop().expect("no error");
    let applied: Vec<_> = report
        .links
        .iter()
        .map(|link| link.changes_applied)
        .collect();
    assert_eq!(applied, [2, 2]);
    // Nothing to do but those changes: it slept.
    assert!(
        report.cpu_ns < (report.to_ns - report.from_ns) / 2,
        "{report:?}"
    );
}

#[test]
fn time_stands_still_before_zero() {
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let zero_ns = Clock::monotonic_ns() + 150 * MS;
    let setup = Setup {
        clock: Clock::with_zero(zero_ns),
        ..setup(vec![a, b], vec![link("a-b", 0, 1, config())], Vec::new())
    };
    let emulator = start(setup).expect("an emulator");
    sender.send(&numbered(0, 7, 1486, 0));
    until("the arrival", || {
        emulator.sample().expect("it runs").links[0].arrived_pkts == 1
    });
    let packet = receiver.receive(10_000).expect("a packet");
    assert_eq!(number(&packet), 7);
    // 1500 bytes at 50 Mbit/s, and 3 ms.
    assert!(Clock::monotonic_ns() >= zero_ns + 240_000 + 3 * MS);
    let report = emulator.stop().expect("no error");
    assert_eq!(report.from_ns, 0);
}

#[test]
fn packets_of_any_length_pass_whole() {
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let fast = LinkConfig {
        rate_bps: 2_000_000_000,
        delay_ns: 0,
        ..config()
    };
    let emulator =
        start(setup(vec![a, b], vec![link("a-b", 0, 1, fast)], Vec::new())).expect("an emulator");
    let lengths = [
        32, 1500, 2047, 2048, 2049, 9000, 60, 65_535, 2048, 33, 20_000,
    ];
    for (number, bytes) in (0..).zip(lengths) {
        let packet = numbered(3, number, bytes, 0);
        sender.send(&packet);
        assert_eq!(
            receiver.receive(10_000).as_ref(),
            Some(&packet),
            "{bytes} bytes"
        );
    }
    let report = emulator.stop().expect("no error");
    assert_eq!(report.ports[1].written_pkts, lengths.len() as u64);
}

#[test]
fn packets_that_the_destination_does_not_take_are_counted_and_condemn_the_run() {
    let ((a, sender), (b, unread)) = (port("a"), unread_port("b"));
    let fast = LinkConfig {
        rate_bps: 1_000_000_000,
        queue: QueueLimit::Unlimited,
        ..config()
    };
    let emulator =
        start(setup(vec![a, b], vec![link("a-b", 0, 1, fast)], Vec::new())).expect("an emulator");
    // More than a socket holds, and nobody reads.
    (0..2000).for_each(|number| sender.send(&numbered(0, number, 1500, 0)));
    let mut failed = 0;
    until("the last release", || {
        let sample = emulator.sample().expect("it runs");
        failed = sample.write_failed_pkts;
        sample.links[0].arrived_pkts == 2000 && {
            std::thread::sleep(Duration::from_millis(20));
            emulator.sample().expect("it runs").write_failed_pkts == failed
        }
    });
    let report = emulator.stop().expect("no error");
    let mut memory = [0; 2000];
    let arrived =
        std::iter::from_fn(|| common::read(&unread, &mut memory).map(<[u8]>::len)).count() as u64;
    let link = &report.links[0];
    assert!(link.write_failed_pkts > 1000, "{link:?}");
    assert_eq!(arrived + link.write_failed_pkts, 2000);
    assert_eq!(
        (link.released_pkts, report.ports[1].written_pkts),
        (2000, arrived)
    );
    let generous = Bound {
        floor_ns: u64::MAX,
        share: 1.0,
    };
    let verdict = report.judge(&generous, &[vec![0]]);
    assert_eq!(
        verdict.problems,
        [format!(
            "link a-b: its destination refused {} of 2000 packets, a loss that the link model did not cause",
            link.write_failed_pkts
        )]
    );
}

#[test]
fn what_no_link_can_carry_is_dropped_counted_and_told() {
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let emulator = start(setup(
        vec![a, b],
        vec![link("a-b", 0, 1, config())],
        Vec::new(),
    ))
    .expect("an emulator");
    let whole = numbered(0, 5, 400, 0);
    sender.send(&whole[..399]);
    sender.send(&[0; 30]);
    sender.send(&whole);
    receiver.send(&whole);
    assert_eq!(receiver.receive(10_000), Some(whole));
    until("the packet at b", || {
        emulator
            .sample()
            .is_ok_and(|sample| sample.links[0].arrived_pkts == 1)
    });
    let report = emulator.stop().expect("no error");
    assert_eq!(
        (report.ports[0].malformed_pkts, report.ports[0].read_pkts),
        (2, 3)
    );
    assert_eq!(
        (report.ports[1].unrouted_pkts, report.ports[1].read_pkts),
        (1, 1)
    );
    let verdict = report.judge(&Bound::default(), &[]);
    assert_eq!(verdict.problems.len(), 2, "{verdict:?}");
    assert!(
        !verdict.is_valid()
            && verdict.problems[0].starts_with("port a: 2 packets were not whole IP packets")
    );
}

#[test]
fn a_port_whose_other_end_closes_ends_the_emulator_by_name() {
    let ((a, keep), (b, _b), (c, close)) = (port("a"), port("b"), port("wifi at the client"));
    let links = vec![link("a-b", 0, 1, config()), link("c-b", 2, 1, config())];
    let emulator = start(setup(vec![a, b, c], links, Vec::new())).expect("an emulator");
    assert_eq!(emulator.fault(), None);
    drop(close);
    let gone = Error::Closed {
        port: "wifi at the client".to_owned(),
    };
    until("the end", || emulator.fault().is_some());
    assert_eq!(emulator.fault(), Some(&gone));
    assert_eq!(emulator.sample(), Err(gone.clone()));
    assert_eq!(emulator.stop(), Err(gone.clone()));
    assert!(keep.is_closed());
    assert_eq!(
        gone.to_string(),
        "port \"wifi at the client\": its device or its other end is gone"
    );
}

#[test]
fn a_destination_that_closes_ends_the_emulator_by_name() {
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let emulator = start(setup(
        vec![a, b],
        vec![link("a-b", 0, 1, config())],
        Vec::new(),
    ))
    .expect("an emulator");
    receiver.close_for_reading();
    sender.send(&numbered(0, 0, 100, 0));
    until("the end", || emulator.fault().is_some());
    assert_eq!(
        emulator.stop(),
        Err(Error::Closed {
            port: "b".to_owned()
        })
    );
}

#[test]
fn dropping_it_ends_the_thread_and_closes_the_ports() {
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let slow = LinkConfig {
        delay_ns: 3_600_000 * MS,
        ..config()
    };
    let emulator =
        start(setup(vec![a, b], vec![link("a-b", 0, 1, slow)], Vec::new())).expect("an emulator");
    sender.send(&numbered(0, 0, 100, 0));
    drop(emulator);
    assert!(sender.is_closed() && receiver.is_closed());
}

#[test]
fn samples_may_be_taken_from_several_threads_at_once() {
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let emulator = start(setup(
        vec![a, b],
        vec![link("a-b", 0, 1, config())],
        Vec::new(),
    ))
    .expect("an emulator");
    let count = |emulator: &mptcplab_emulator::Emulator| {
        let samples: Vec<_> = (0..200)
            .map(|_| emulator.sample().expect("a sample"))
            .collect();
        assert!(samples.is_sorted_by_key(|sample| sample.t_ns));
        assert!(samples.is_sorted_by_key(|sample| sample.links[0].arrived_pkts));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| count(&emulator));
        scope.spawn(|| count(&emulator));
        (0..500).for_each(|number| sender.send(&numbered(0, number, 200, 0)));
        assert_eq!(receiver.receive_all(500).len(), 500);
    });
    assert_eq!(
        emulator.sample().expect("a sample").links[0].departed_pkts,
        500
    );
}

/// What is wrong with a set-up, and what the message says.
type Case = (fn(&mut Setup), &'static str);

#[test]
fn set_ups_that_contradict_themselves_are_refused_by_name() {
    let message = |change: fn(&mut Setup)| {
        let ((a, _a), (b, _b)) = (port("a"), port("b"));
        let pair = Pair {
            source: address(1, 1).into(),
            destination: address(2, 2).into(),
            links: vec![0, 2],
        };
        let links = vec![
            link("there", 0, 1, config()),
            link("back", 1, 0, config()),
            link("on", None, 1, config()),
        ];
        let mut setup = setup(vec![a, b], links, vec![pair]);
        change(&mut setup);
        start(setup).err().map(|error| error.to_string())
    };
    assert_eq!(message(|_| ()), None);
    let cases: [Case; 10] = [
        (
            |setup| setup.links[1].to = Some(2),
            "emulator set-up: link \"back\": its to port has index 2, but there are 2 ports",
        ),
        (
            |setup| setup.links[1].from = Some(0),
            "emulator set-up: link \"back\": port \"a\" already feeds link \"there\"; a port feeds one link",
        ),
        (
            |setup| setup.pairs[0].links[0] = 9,
            "emulator set-up: pair 10.7.1.1 to 10.7.2.2: passes link 9, but there are 3 links",
        ),
        (
            |setup| setup.pairs[0].links.clear(),
            "emulator set-up: pair 10.7.1.1 to 10.7.2.2: passes no link",
        ),
        (
            |setup| setup.pairs[0].links = vec![0, 2, 0],
            "emulator set-up: pair 10.7.1.1 to 10.7.2.2: passes link \"there\" twice",
        ),
        (
            |setup| setup.pairs[0].links = vec![2, 1],
            "emulator set-up: pair 10.7.1.1 to 10.7.2.2: begins with link \"on\", which has no port there",
        ),
        (
            |setup| setup.pairs.push(setup.pairs[0].clone()),
            "emulator set-up: pair 10.7.1.1 to 10.7.2.2: is there twice; its packets would count for one of them only",
        ),
        (
            |setup| setup.options.priority = Some(100),
            "emulator set-up: priority: 100 is not a real-time priority: use 1 to 99",
        ),
        (
            |setup| setup.options.spin_percent = 91,
            "emulator set-up: spin_percent: 91 leaves the processor too little time: use at most 90",
        ),
        (
            |setup| {
                setup.ports[1].fd = std::fs::File::open("/proc/self/exe")
                    .expect("a file")
                    .into()
            },
            "port \"b\": cannot watch it: EPERM: Operation not permitted",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(message(change).as_deref(), Some(expected));
    }
}

#[test]
fn real_time_priority_is_used_or_its_refusal_reported() {
    let options = Options {
        priority: Some(7),
        lock_memory: true,
        ..Options::default()
    };
    let ((a, sender), (b, receiver)) = (port("a"), port("b"));
    let setup = Setup {
        options,
        ..setup(vec![a, b], vec![link("a-b", 0, 1, config())], Vec::new())
    };
    let emulator = start(setup).expect("an emulator");
    sender.send(&numbered(0, 1, 500, 0));
    assert_eq!(receiver.receive_all(1).len(), 1);
    let scheduling = emulator.scheduling().clone();
    let report = emulator.stop().expect("no error");
    assert_eq!(report.scheduling, scheduling);
    match &report.scheduling {
        Scheduling::RealTime { priority } => assert_eq!((*priority, report.spin_ns), (7, 60_000)),
        Scheduling::Normal { refused } => {
            let _ = writeln!(std::io::stderr(), "no real-time priority here: {refused:?}");
            assert!(refused.is_some() && report.spin_ns == 0);
        }
    }
    assert_eq!(report.memory_locked, report.memory_refused.is_none());
    assert_eq!((report.log.len(), report.links[0].lateness.count), (0, 1));
}

#[test]
fn real_time_priority_can_be_given_to_a_running_emulator() {
    let ((a, _a), (b, _b)) = (port("a"), port("b"));
    let mut emulator = start(setup(
        vec![a, b],
        vec![link("a-b", 0, 1, config())],
        Vec::new(),
    ))
    .expect("an emulator");
    let normal = Scheduling::Normal { refused: None };
    assert_eq!(emulator.refresh_scheduling(), Ok(&normal));
    if let Err(error) = grant_real_time(emulator.thread_id(), 3) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {error}");
        return;
    }
    let real_time = Scheduling::RealTime { priority: 3 };
    assert_eq!(emulator.scheduling(), &normal, "it does not know yet");
    assert_eq!(emulator.refresh_scheduling(), Ok(&real_time));
    let report = emulator.stop().expect("no error");
    assert_eq!((report.scheduling, report.spin_ns), (real_time, 60_000));
    assert_eq!(
        grant_real_time(i32::MAX, 3)
            .expect_err("no such thread")
            .to_string(),
        "emulator: cannot give the emulator real-time priority: ESRCH: No such process"
    );
}
