//! The emulator between real TUN devices, in namespaces of its own. Needs root (or the same privileges in a user
//! namespace) and /dev/net/tun; without them the tests say so and pass.

mod common;

use common::{MS, config, link, replay, rng};
use mptcplab_emulator::{Clock, Emulator, Error, LinkSetup, Options, Pair, Port, Setup, start};
use mptcplab_model::link::{Aqm, LinkConfig, Loss, QueueLimit};
use mptcplab_net::route::Route;
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace, Tun};
use nix::errno::Errno;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// `a` and `b`, whose links meet in between. Ports, in order: a's, b's.
struct Net {
    a: Namespace,
    b: Namespace,
    /// Of the ports.
    ifindices: [u32; 2],
}

const A: Ipv4Addr = Ipv4Addr::new(10, 7, 1, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 7, 2, 2);

/// The network and its ports' descriptors, or `None` without the privileges.
fn network(mtu_bytes: u32) -> Option<(Net, Vec<Port>)> {
    let missing = Namespace::new("probe")
        .and_then(|probe| probe.tun("probe", 1500, 10))
        .err();
    if let Some(error) = missing {
        // Past the harness, which shows the output of failed tests only.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no TUN devices in namespaces here: {error}"
        );
        return None;
    }
    let namespace = |name| Namespace::new(name).expect("a namespace");
    let (a, b) = (namespace("a"), namespace("b"));
    let tun = |of: &Namespace, name: &str| of.tun(name, mtu_bytes, 5000).expect("a TUN device");
    let tuns = [tun(&a, "a0"), tun(&b, "b0")];
    let ifindices = [0, 1].map(|i: usize| tuns[i].ifindex);
    for (end, ip, other, ifindex) in [(&a, A, B, ifindices[0]), (&b, B, A, ifindices[1])] {
        end.add_address(LOOPBACK_IFINDEX, ip, 32)
            .expect("an address");
        let route = Route {
            source: Some(ip),
            ..Route::host(other, ifindex)
        };
        end.replace_route(&route).expect("a route");
    }
    let port = |Tun { name, fd, .. }| Port { name, fd };
    Some((
        Net { a, b, ifindices },
        tuns.into_iter().map(port).collect(),
    ))
}

/// a > r, r > a, r > b, b > r.
fn links(configs: [LinkConfig; 4]) -> Vec<LinkSetup> {
    let ends = [
        ("a-r", Some(0), None),
        ("r-a", None, Some(0)),
        ("r-b", None, Some(1)),
        ("b-r", Some(1), None),
    ];
    let link = |((name, from, to), config)| link(name, from, to, config);
    ends.into_iter().zip(configs).map(link).collect()
}

fn emulator(ports: Vec<Port>, links: Vec<LinkSetup>) -> Emulator {
    let pair = |source, destination, links: [usize; 2]| Pair {
        source: Ipv4Addr::into(source),
        destination: Ipv4Addr::into(destination),
        links: links.to_vec(),
    };
    start(Setup {
        clock: Clock::starting_now(),
        ports,
        links,
        pairs: vec![pair(A, B, [0, 2]), pair(B, A, [3, 1])],
        options: Options {
            priority: None,
            log_entries: 1_000_000,
            ..Options::default()
        },
    })
    .expect("an emulator")
}

/// The byte at a place of the stream.
fn pattern(place: usize) -> u8 {
    (place ^ ((place >> 9) * 7)) as u8
}

/// Sends so many bytes from a to b over TCP; they are compared where they arrive.
fn transfer(net: &Net, bytes: usize) {
    let listener = net
        .b
        .run(|| TcpListener::bind(SocketAddr::from((B, 5001))))
        .expect("inside")
        .expect("a listener");
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("the stream");
        received
    });
    let connected = net
        .a
        .run(|| TcpStream::connect_timeout(&SocketAddr::from((B, 5001)), Duration::from_secs(10)));
    let mut stream = connected.expect("inside").expect("a connection");
    let sent: Vec<u8> = (0..bytes).map(pattern).collect();
    stream.write_all(&sent).expect("the stream");
    drop(stream);
    assert!(
        receiver.join().expect("no panic") == sent,
        "the bytes are those that were sent"
    );
}

/// A counter of /proc/net/netstat.
fn counter(namespace: &Namespace, name: &str) -> u64 {
    let read = || std::fs::read_to_string("/proc/thread-self/net/netstat");
    let text = namespace.run(read).expect("inside").expect("netstat");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let value = lines.chunks(2).find_map(|pair| {
        let column = pair[0].iter().position(|column| *column == name)?;
        pair[1][column].parse().ok()
    });
    value.unwrap_or_else(|| panic!("no counter {name}"))
}

#[test]
fn a_tcp_transfer_over_two_hops_does_what_the_model_says() {
    let Some((net, ports)) = network(1500) else {
        return;
    };
    for end in [&net.a, &net.b] {
        end.sysctl("net.ipv4.tcp_ecn", 1).expect("ECN");
    }
    let configs = [
        LinkConfig {
            rate_bps: 40_000_000,
            delay_ns: 4 * MS,
            loss: Loss::Bernoulli { p: 0.004 },
            queue: QueueLimit::Packets(50),
            ..config()
        },
        LinkConfig {
            rate_bps: 9_000_000,
            delay_ns: 2 * MS,
            ..config()
        },
        LinkConfig {
            rate_bps: 20_000_000,
            delay_ns: 7 * MS,
            overhead_bytes: 24,
            aqm: Aqm::Codel {
                target_ns: 2 * MS,
                interval_ns: 20 * MS,
            },
            ecn: true,
            ..config()
        },
        LinkConfig {
            rate_bps: 5_000_000,
            delay_ns: MS,
            queue: QueueLimit::Bytes(60_000),
            ..config()
        },
    ];
    let emulator = emulator(ports, links(configs.clone()));
    let bytes = 3_000_000;
    transfer(&net, bytes);
    // The last ACKs are on their way.
    std::thread::sleep(Duration::from_millis(100));
    let devices = [(&net.a, net.ifindices[0]), (&net.b, net.ifindices[1])]
        .map(|(namespace, ifindex)| namespace.link_stats(ifindex).expect("counters"));
    let marks_seen = counter(&net.b, "InCEPkts");
    let report = emulator.stop().expect("no error");

    for (index, config) in configs.iter().enumerate() {
        let name = &report.links[index].name;
        let logged = replay::logged(&report.log, index);
        let (replayed, stats) =
            replay::replayed(&report.log, index, config, rng(name), report.to_ns);
        assert_eq!(logged, replayed, "{name}");
        assert_eq!(
            report.links[index].dropped_random_pkts,
            stats.dropped_random_pkts
        );
        assert_eq!(
            (
                report.links[index].write_failed_pkts,
                report.links[index].in_transit_pkts
            ),
            (0, 0),
            "{name}"
        );
    }
    for (port, device) in report.ports.iter().zip(devices) {
        assert_eq!(
            (device.tx_dropped, device.rx_dropped, device.rx_errors),
            (0, 0, 0),
            "{}",
            port.name
        );
        assert_eq!(
            (device.tx_packets, device.rx_packets),
            (port.read_pkts, port.written_pkts),
            "{}",
            port.name
        );
        assert_eq!(port.malformed_pkts + port.unrouted_pkts, 0, "{}", port.name);
    }
    let [there, back] = [report.pairs[0], report.pairs[1]];
    assert!(there.rx_payload_bytes >= bytes as u64, "{there:?}");
    let lost = report.links[0].dropped_random_pkts + report.links[0].dropped_queue_pkts;
    assert!(
        lost > 0 && there.rx_pkts + lost + report.links[2].dropped_queue_pkts >= there.sent_pkts,
        "{report:?}"
    );
    // 20 bytes IP, 32 bytes TCP with timestamps, and 24 bytes of overhead; SACK is only on pure ACKs.
    assert_eq!(
        there.rx_wire_bytes,
        there.rx_payload_bytes + there.rx_pkts * 76
    );
    assert_eq!(back.sent_pkts, 0, "ACKs are not data");
    // A host answers from when a packet was due, late or not. It answers no more packets than reach it.
    for (index, answering) in [(0, false), (1, true), (2, true), (3, false)] {
        let link = &report.links[index];
        let (answers, late) = (link.answers, link.lateness);
        assert_eq!(answers.count > 0, answering, "{} {answers:?}", link.name);
        assert!(answers.count <= late.count, "{answers:?}");
        assert!(
            answers.p1_ns <= answers.p50_ns && answers.p50_ns <= answers.p99_ns,
            "{answers:?}"
        );
        assert!(
            !answering || answers.p1_ns > late.p1_ns,
            "{answers:?} {late:?}"
        );
    }
    assert!(marks_seen > 0, "{report:?}");
    assert_eq!(
        marks_seen, report.links[2].marked_pkts,
        "the kernel accepted every marked packet"
    );
}

#[test]
fn large_packets_pass_whole_and_datagrams_are_data() {
    let Some((net, ports)) = network(9000) else {
        return;
    };
    let emulator = emulator(ports, links([config(), config(), config(), config()]));
    let udp = |namespace: &Namespace, ip| {
        let socket = namespace.run(|| UdpSocket::bind(SocketAddr::from((ip, 6001))));
        socket.expect("inside").expect("a socket")
    };
    let (from, to) = (udp(&net.a, A), udp(&net.b, B));
    to.set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    let mut memory = [0; 10_000];
    for length in [8972, 1, 4000, 0] {
        let data: Vec<u8> = (0..length).map(pattern).collect();
        from.send_to(&data, (B, 6001)).expect("room");
        let (bytes, sender) = to.recv_from(&mut memory).expect("a datagram");
        assert_eq!(
            (sender, &memory[..bytes]),
            (SocketAddr::from((A, 6001)), &data[..])
        );
    }
    let pair = emulator.stop().expect("no error").pairs[0];
    assert_eq!(
        (pair.sent_pkts, pair.rx_pkts, pair.rx_payload_bytes),
        (4, 4, 12_973)
    );
    assert_eq!(pair.rx_wire_bytes, 12_973 + 4 * (28 + 14));
}

/// The error that ends the emulator.
fn end(emulator: Emulator) -> Error {
    let begin = Instant::now();
    while emulator.fault().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it goes on");
        std::thread::sleep(Duration::from_millis(2));
    }
    emulator.stop().expect_err("an error")
}

#[test]
fn a_device_that_is_removed_ends_the_emulator_by_name() {
    let Some((net, ports)) = network(1500) else {
        return;
    };
    let emulator = emulator(ports, links([config(), config(), config(), config()]));
    net.b.delete_link(net.ifindices[1]).expect("a removal");
    let port = "b0".to_owned();
    assert_eq!(end(emulator), Error::Closed { port });
}

#[test]
fn a_device_that_goes_down_ends_the_emulator_by_name() {
    let Some((net, ports)) = network(1500) else {
        return;
    };
    let emulator = emulator(ports, links([config(), config(), config(), config()]));
    net.b.set_link_up(net.ifindices[1], false).expect("down");
    let socket = net
        .a
        .run(|| UdpSocket::bind(SocketAddr::from((A, 0))))
        .expect("inside")
        .expect("a socket");
    socket.send_to(b"x", (B, 9)).expect("room");
    let failed = Error::Port {
        port: "b0".to_owned(),
        action: "write a packet",
        errno: Errno::EIO,
    };
    assert_eq!(end(emulator), failed);
}

#[test]
fn the_devices_vanish_with_the_emulator() {
    let Some((net, ports)) = network(1500) else {
        return;
    };
    let emulator = emulator(ports, links([config(), config(), config(), config()]));
    let names = |namespace: &Namespace| -> Vec<String> {
        let links = namespace.links().expect("a list");
        links.into_iter().map(|link| link.name).collect()
    };
    assert!(names(&net.b).contains(&"b0".to_owned()));
    emulator.stop().expect("no error");
    assert!(
        !names(&net.b).contains(&"b0".to_owned()),
        "{:?}",
        names(&net.b)
    );
}
