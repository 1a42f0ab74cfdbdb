//! The tracer on real connections, compared with the kernel's statistics and the packets on the wire.

mod tracer_lab;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mptcplab_bpf::tracer::{Event, Sample, SampleKind, Tracer, TracerConfig};
use mptcplab_net::diag::TcpSocket;
use mptcplab_net::mptcp::{self, LocalAddress, PathManager};
use mptcplab_net::socket::{self, Options, Transport};
use tracer_lab::{
    Fate, Lab, PORT, can_run, clean, client_address, records, server_address, tracer, wait_for,
};

const CA_CWR: u8 = 2;
const CA_RECOVERY: u8 = 3;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn count(records: &[Sample], event: Event) -> u64 {
    records
        .iter()
        .flat_map(Sample::events)
        .filter(|(e, _)| *e == event)
        .count() as u64
}

/// The last record of the client's socket. The socket is closed, so no further records follow.
fn closed(tracer: &mut Tracer, seen: &mut Vec<Sample>, local: Ipv4Addr) -> Sample {
    wait_for("the record of the close", || {
        seen.extend(records(tracer));
        let own = |s: &&Sample| {
            *s.key().local.ip() == local && s.events().any(|(e, _)| e == Event::Closed)
        };
        seen.iter().find(own).copied()
    })
}

#[test]
fn on_a_clean_path_every_rtt_sample_is_counted_and_nothing_else_happens() {
    const TEST: &str = "on_a_clean_path_every_rtt_sample_is_counted_and_nothing_else_happens";
    if !can_run(TEST) {
        return;
    }
    let lab = Lab::new(&[ms(3)], clean());
    let other = Lab::new(&[ms(1)], clean());
    let cookies = lab.cookies();
    let Some(mut tracer) = tracer(
        TEST,
        &TracerConfig {
            cookies: &cookies,
            ..TracerConfig::default()
        },
    ) else {
        return;
    };
    let mut connection = lab.connect(Transport::Tcp, "reno");
    let mut unwatched = other.connect(Transport::Tcp, "cubic");
    unwatched.transfer(100_000);
    connection.transfer(1_500_000);
    let info = lab.settle(0);
    drop(connection);
    let mut seen = Vec::new();
    let last = closed(&mut tracer, &mut seen, client_address(0));

    // There is one sample per advancing ACK, and one from the handshake. ACKs that arrive while the sender's socket is in use
    // may be merged into one (`tcp_add_backlog`). A busy machine sends tail loss probes, and what they repeat gives none.
    let advancing = lab.seen.advancing_acks.load(Ordering::Relaxed);
    let merged = lab.statistic("TCPBacklogCoalesce");
    let probes = lab.statistic("TCPLossProbes");
    let missing = (advancing + 1).checked_sub(last.counters.rtt_count + merged);
    assert!(
        missing.is_some_and(|missing| missing <= probes),
        "{missing:?} without a sample, {probes} probes"
    );
    assert_eq!(tracer.missed().unwrap(), 0);
    let sampled: Vec<&Sample> = seen
        .iter()
        .filter(|s| s.has_new_rtt() && s.key() == last.key())
        .collect();
    assert_eq!(sampled.len() as u64, last.counters.rtt_count);
    assert_eq!(
        sampled.iter().map(|s| u64::from(s.rtt_us)).sum::<u64>(),
        last.counters.rtt_sum_us
    );
    assert!(
        sampled.iter().all(|s| s.rtt_us >= 6000),
        "two ways of 3 ms each"
    );
    assert!(sampled.iter().all(|s| s.rtt_us >= last.min_rtt_us));
    assert!(last.handshake_ns >= 6_000_000);

    let c = last.counters;
    let reductions = [
        c.loss_events,
        c.ecn_events,
        c.local_events,
        c.rto_count,
        c.undo_count,
        c.rto_wait_ns,
    ];
    assert_eq!(reductions, [0; 6], "{c:?}");
    assert_eq!(last.kernel_delivered(), info.delivered_pkts);
    assert_eq!(
        u64::from(last.sent_pkts),
        lab.seen.data_forth.load(Ordering::Relaxed)
    );
    assert_eq!(last.acked_bytes, info.bytes_acked);
    assert_eq!(last.acked_bytes - 1, 1_500_000, "all data and the SYN");
    assert_eq!(last.cwnd_pkts, info.snd_cwnd_pkts);
    assert_eq!(last.srtt_us, info.rtt_us);
    assert_eq!(last.min_rtt_us, info.min_rtt_us);
    assert_eq!(last.congestion_control(), "reno");
    assert!(!last.is_partial() && !last.is_mptcp() && !last.has_unseen_acks());
    let rounding = last.armed_rto_us().abs_diff(last.rto_us().into());
    assert!(
        rounding <= 10_000,
        "more than the longest jiffy: {rounding} us"
    );

    let known = lab.cookies();
    assert!(
        seen.iter().all(|s| known.contains(&s.key().cookie)),
        "a socket of an unwatched namespace"
    );
    assert!(
        tracer
            .sockets()
            .unwrap()
            .iter()
            .all(|s| known.contains(&s.key().cookie))
    );
    assert_ordered(&seen);
}

fn assert_ordered(seen: &[Sample]) {
    let mut keys: Vec<_> = seen.iter().map(Sample::key).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let times: Vec<u64> = seen
            .iter()
            .filter(|s| s.key() == key)
            .map(|s| s.t_ns)
            .collect();
        assert!(times.is_sorted(), "records of {key:?} are out of order");
    }
}

/// Drops and delays packets and has an outage, always at the same packets. In addition, it drops as many of the next
/// packets as `next` says.
fn rough(next: Arc<AtomicU64>) -> tracer_lab::Policy {
    let mut dark = None;
    Box::new(move |packet| {
        if !packet.forth || !packet.has_payload() {
            return Fate::Pass;
        }
        if next.load(Ordering::Relaxed) > 0 {
            next.fetch_sub(1, Ordering::Relaxed);
            return Fate::Drop;
        }
        // The outage is longer than two timeouts of 200 ms.
        if packet.data >= 2500 {
            let since: &Instant = dark.get_or_insert_with(Instant::now);
            if since.elapsed() < ms(900) {
                return Fate::Drop;
            }
        }
        match packet.data % 400 {
            97 | 98 | 151 => Fate::Drop,
            210 => Fate::Hold(ms(25)),
            _ => Fate::Pass,
        }
    })
}

#[test]
fn on_a_rough_path_the_counters_are_those_of_the_kernel() {
    const TEST: &str = "on_a_rough_path_the_counters_are_those_of_the_kernel";
    if !can_run(TEST) {
        return;
    }
    let next = Arc::new(AtomicU64::new(0));
    let lab = Lab::new(&[ms(4)], rough(Arc::clone(&next)));
    let cookies = lab.cookies();
    let Some(mut tracer) = tracer(
        TEST,
        &TracerConfig {
            cookies: &cookies,
            ..TracerConfig::default()
        },
    ) else {
        return;
    };
    let mut connection = lab.connect(Transport::Tcp, "cubic");
    connection.transfer(5_000_000);
    lab.drain(0);
    // The last packet of a transfer is lost and the tail loss probe repairs it, as the ACK of later data shows.
    for _ in 0..3 {
        next.store(1, Ordering::Relaxed);
        connection.transfer(900);
        connection.transfer(1000);
    }
    let info = lab.settle(0);
    let key = connection.key(&lab);
    drop(connection);
    let mut seen = Vec::new();
    let last = closed(&mut tracer, &mut seen, client_address(0));
    seen.retain(|s| s.key() == key);
    assert_ordered(&seen);
    assert_eq!(tracer.lost().unwrap(), 0);

    let c = last.counters;
    assert!(
        c.loss_events > 3 && c.rto_count > 1 && c.undo_count > 0 && c.tlp_count > 0,
        "not rough enough: {c:?}"
    );
    let entries = |from: Option<u8>| {
        let wanted = |s: &&Sample| match s.kind() {
            SampleKind::CaState { from: f, to } => {
                to == CA_RECOVERY && from.is_none_or(|from| from == f)
            }
            _ => false,
        };
        seen.iter().filter(wanted).count() as u64
    };
    // The kernel's tracepoints may omit state changes, but the counters include them.
    let recoveries = lab.statistic("TCPSackRecovery");
    let unseen = tracer.unseen_states().unwrap();
    assert!(recoveries - entries(None) <= unseen);
    let repaired = lab.statistic("TCPLossProbeRecovery");
    assert_eq!(c.loss_events, recoveries - entries(Some(CA_CWR)) + repaired);
    let undone = [
        "TCPFullUndo",
        "TCPPartialUndo",
        "TCPDSACKUndo",
        "TCPLossUndo",
    ];
    assert_eq!(
        c.undo_count,
        undone.iter().map(|name| lab.statistic(name)).sum::<u64>()
    );
    assert_eq!(c.tlp_count, lab.statistic("TCPLossProbes"));
    if let Some(timeouts) = info.total_rto {
        assert_eq!(c.rto_count, u64::from(timeouts));
    }
    assert!(c.rto_wait_ns > 200_000_000 * c.rto_count, "{c:?}");
    assert_eq!((c.ecn_events, c.local_events), (0, 0));

    assert_eq!(last.kernel_delivered(), info.delivered_pkts);
    assert_eq!(last.kernel_retrans(), info.total_retrans_pkts);
    assert_eq!(last.sent_pkts, info.data_segs_out);
    assert_eq!(last.cwnd_pkts, info.snd_cwnd_pkts);
    assert_eq!(last.ssthresh_pkts, info.snd_ssthresh_pkts);
    assert_eq!(last.retx_pkts(), last.kernel_retrans());
    let retransmitted = seen
        .iter()
        .filter(|s| s.kind() == SampleKind::Retransmit)
        .count() as u32;
    assert!(retransmitted > 0 && retransmitted <= last.retx_pkts());
    assert!(
        last.counters.rtt_count > lab.seen.advancing_acks.load(Ordering::Relaxed),
        "SACKs give samples too"
    );

    // There are as many events as the counters say.
    for (event, counted) in [
        (Event::LossEvent, c.loss_events),
        (Event::Rto, c.rto_count),
        (Event::Undo, c.undo_count),
        (Event::TlpSent, c.tlp_count),
        (Event::Established, 1),
        (Event::Closed, 1),
    ] {
        assert_eq!(count(&seen, event), counted, "{event:?}");
    }
    assert!(count(&seen, Event::RecoveryEnded) > 0);
    assert_settled(&seen);
}

/// Checks that the window in the event at the end of a fast recovery is that of the next record, which may have grown
/// by one ACK.
fn assert_settled(seen: &[Sample]) {
    for pair in seen.windows(2) {
        let ended = pair[0].events().find(|(e, _)| *e == Event::RecoveryEnded);
        let undone = pair[0].events().any(|(e, _)| e == Event::Undo);
        let SampleKind::CaState { from, .. } = pair[0].kind() else {
            continue;
        };
        if let Some((_, window)) = ended.filter(|_| from == CA_RECOVERY && !undone) {
            let next = u64::from(pair[1].cwnd_pkts);
            assert!(
                (window..=window + 2).contains(&next),
                "{window}, then {next}"
            );
        }
    }
}

#[test]
fn of_an_end_that_closed_early_the_kernels_own_counters_are_still_complete() {
    const TEST: &str = "of_an_end_that_closed_early_the_kernels_own_counters_are_still_complete";
    if !can_run(TEST) {
        return;
    }
    let lab = Lab::new(&[ms(4)], clean());
    let cookies = lab.cookies();
    let Some(mut tracer) = tracer(
        TEST,
        &TracerConfig {
            cookies: &cookies,
            ..TracerConfig::default()
        },
    ) else {
        return;
    };
    let mut connection = lab.connect(Transport::Tcp, "reno");
    let data = vec![5; 400_000];
    connection.client.write_all(&data).unwrap();
    connection.client.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    connection.server.read_to_end(&mut received).unwrap();
    assert_eq!(received, data);
    lab.drain(0);
    drop(connection);
    let last = closed(&mut tracer, &mut Vec::new(), client_address(0));
    assert!(last.has_unseen_acks());
    assert!(!last.is_established());
    // The SYN and the FIN count as one byte each.
    assert_eq!(last.acked_bytes, 400_002);
    assert_eq!(
        u64::from(last.sent_pkts),
        lab.seen.data_forth.load(Ordering::Relaxed)
    );
    assert!(last.counters.rtt_count < lab.seen.advancing_acks.load(Ordering::Relaxed));
}

#[test]
fn sockets_for_which_there_is_no_room_are_counted() {
    const TEST: &str = "sockets_for_which_there_is_no_room_are_counted";
    if !can_run(TEST) {
        return;
    }
    let lab = Lab::new(&[ms(1)], clean());
    let cookies = lab.cookies();
    let config = TracerConfig {
        sockets: 2,
        cookies: &cookies,
        ..TracerConfig::default()
    };
    let Some(tracer) = tracer(TEST, &config) else {
        return;
    };
    let mut first = lab.connect(Transport::Tcp, "reno");
    first.transfer(50_000);
    assert_eq!(tracer.untracked().unwrap(), 0, "both ends have room");
    let source = SocketAddrV4::new(client_address(0), 0);
    let target = SocketAddrV4::new(server_address(0), PORT);
    let options = Options::default();
    let second = lab
        .client
        .run(|| socket::connect(Transport::Tcp, source, target, &options, ms(5000)));
    let _second = second.unwrap().unwrap();
    wait_for("both ends of the second", || {
        (tracer.untracked().unwrap() == 2).then_some(())
    });
    assert_eq!(tracer.sockets().unwrap().len(), 2);
}

#[test]
fn a_mark_is_an_ecn_event_and_no_loss_event() {
    const TEST: &str = "a_mark_is_an_ecn_event_and_no_loss_event";
    if !can_run(TEST) {
        return;
    }
    let lab = Lab::new(
        &[ms(5)],
        Box::new(|packet| {
            if packet.forth && packet.has_payload() && [150, 400].contains(&packet.data) {
                assert!(packet.is_ecn_capable());
                packet.mark();
            }
            Fate::Pass
        }),
    );
    lab.client.sysctl("net.ipv4.tcp_ecn", 1).unwrap();
    lab.server.sysctl("net.ipv4.tcp_ecn", 1).unwrap();
    let cookies = lab.cookies();
    let Some(mut tracer) = tracer(
        TEST,
        &TracerConfig {
            cookies: &cookies,
            ..TracerConfig::default()
        },
    ) else {
        return;
    };
    let mut connection = lab.connect(Transport::Tcp, "reno");
    connection.transfer(1_200_000);
    let info = lab.settle(0);
    drop(connection);
    let mut seen = Vec::new();
    let last = closed(&mut tracer, &mut seen, client_address(0));
    assert_eq!(last.counters.ecn_events, 2, "{:?}", last.counters);
    assert_eq!(
        (last.counters.loss_events, last.counters.local_events),
        (0, 0)
    );
    assert_eq!(last.delivered_ce_pkts, info.delivered_ce_pkts);
    assert!(last.delivered_ce_pkts > 0);
    let reduction = seen
        .iter()
        .find(|s| s.events().any(|(e, _)| e == Event::EcnEvent))
        .unwrap();
    let half = u64::from(reduction.prior_cwnd_pkts / 2);
    assert_eq!(
        reduction
            .events()
            .find(|(e, _)| *e == Event::EcnEvent)
            .unwrap()
            .1,
        half,
        "reno halves"
    );
}

#[test]
fn subflows_carry_their_connections_token_and_their_own_paths_delay() {
    const TEST: &str = "subflows_carry_their_connections_token_and_their_own_paths_delay";
    if !can_run(TEST) {
        return;
    }
    let drop_some: tracer_lab::Policy = Box::new(|packet| {
        let lost =
            packet.forth && packet.path == 1 && packet.has_payload() && packet.data % 100 == 20;
        if lost { Fate::Drop } else { Fate::Pass }
    });
    let lab = Lab::new(&[ms(5), ms(9)], drop_some);
    let cookies = lab.cookies();
    let Some(mut tracer) = tracer(
        TEST,
        &TracerConfig {
            cookies: &cookies,
            ..TracerConfig::default()
        },
    ) else {
        return;
    };
    let mut connection = lab.connect(Transport::Mptcp, "reno");
    // Both ends must have sent data before a subflow may be added.
    connection.transfer(10_000);
    let token = mptcp::info(&connection.client).unwrap().token;
    let second = LocalAddress {
        ip: client_address(1),
        id: 7,
        ifindex: None,
        backup: false,
    };
    let target = SocketAddrV4::new(server_address(1), PORT);
    let paths = PathManager::new(&lab.client).unwrap();
    wait_for("the second subflow", || {
        paths.subflow_create(token, second, target).ok()
    });
    // MPTCP_INFO does not tell: Linux 6.1 does not count subflows that the user-space path manager created.
    wait_for("its handshake", || {
        let sockets = lab.client.tcp_sockets().unwrap();
        let joined = |s: &&TcpSocket| s.local.ip() == client_address(1);
        let socket = sockets.iter().find(joined)?.subflow.as_ref()?;
        socket.is_fully_established().then_some(())
    });
    connection.transfer(6_000_000);
    let infos = [lab.settle(0), lab.settle(1)];
    let seen = records(&mut tracer);
    assert_ordered(&seen);
    let sockets = tracer.sockets().unwrap();
    let kernel = mptcp::full_info(&connection.client).ok();
    for (path, info) in infos.iter().enumerate() {
        let local = client_address(path);
        let socket = sockets
            .iter()
            .find(|s| *s.key().local.ip() == local)
            .unwrap();
        assert_eq!(socket.token, token);
        assert!(socket.is_mptcp());
        assert_eq!(socket.congestion_control(), "reno");
        assert_eq!(*socket.key().remote.ip(), server_address(path));
        assert_eq!(socket.local_id, [0, 7][path]);
        if let Some(kernel) = &kernel {
            let subflow = kernel
                .subflows
                .iter()
                .find(|s| *s.local.ip() == local)
                .unwrap();
            assert_eq!(socket.subflow_id, subflow.id.unwrap_or(0));
        }
        assert!(
            socket.min_rtt_us >= [10_000, 18_000][path],
            "path {path}: {}",
            socket.min_rtt_us
        );
        assert_eq!(socket.kernel_retrans(), info.total_retrans_pkts);
        assert!(
            seen.iter()
                .any(|s| s.key() == socket.key() && s.kind() == SampleKind::Ack)
        );
        let first = seen.iter().find(|s| s.key() == socket.key()).unwrap();
        assert_eq!(
            first.events().next().map(|(e, _)| e),
            Some(Event::Established)
        );
    }
    let losses = |path: usize| {
        let local = client_address(path);
        sockets
            .iter()
            .find(|s| *s.key().local.ip() == local)
            .unwrap()
            .counters
            .loss_events
    };
    assert!(losses(1) > 0, "the second path drops packets");
    assert_eq!(losses(0), 0, "the first does not");
}

#[test]
fn a_tiny_ring_loses_records_and_counts_them_but_no_counter_suffers() {
    const TEST: &str = "a_tiny_ring_loses_records_and_counts_them_but_no_counter_suffers";
    if !can_run(TEST) {
        return;
    }
    let lab = Lab::new(&[ms(3)], clean());
    let cookies = lab.cookies();
    let config = TracerConfig {
        ring_bytes: 4096,
        cookies: &cookies,
        ..TracerConfig::default()
    };
    let Some(mut tracer) = tracer(TEST, &config) else {
        return;
    };
    let mut connection = lab.connect(Transport::Tcp, "reno");
    connection.transfer(600_000);
    lab.drain(0);
    let key = connection.key(&lab);
    drop(connection);
    let advancing = lab.seen.advancing_acks.load(Ordering::Relaxed);
    let counters = wait_for("the last look", || {
        let socket = tracer.latest(&key).unwrap().unwrap();
        (socket.subflow_state() == 0).then_some(socket.counters)
    });
    assert_eq!(counters.rtt_count, advancing + 1);
    assert_eq!(tracer.counters(&key).unwrap(), Some(counters));
    let kept = records(&mut tracer).len() as u64;
    let lost = tracer.lost().unwrap();
    assert!(kept > 0 && kept <= 4096 / 288, "{kept}");
    assert!(
        lost > counters.acks - kept,
        "{lost} lost, {kept} kept, {counters:?}"
    );
}

#[test]
fn without_samples_of_acks_events_and_counters_remain() {
    const TEST: &str = "without_samples_of_acks_events_and_counters_remain";
    if !can_run(TEST) {
        return;
    }
    let lab = Lab::new(
        &[ms(3)],
        Box::new(|packet| match packet.data {
            120 if packet.forth && packet.has_payload() => Fate::Drop,
            _ => Fate::Pass,
        }),
    );
    let cookies = lab.cookies();
    let config = TracerConfig {
        every_ack: false,
        cookies: &cookies,
        ..TracerConfig::default()
    };
    let Some(mut tracer) = tracer(TEST, &config) else {
        return;
    };
    let mut connection = lab.connect(Transport::Tcp, "cubic");
    connection.transfer(700_000);
    lab.drain(0);
    drop(connection);
    let mut seen = Vec::new();
    let last = closed(&mut tracer, &mut seen, client_address(0));
    assert!(last.is_closed());
    // The receiver of a busy machine acknowledges a whole window at once, so that only the wire knows how many ACKs there are.
    let c = last.counters;
    let advancing = lab.seen.advancing_acks.load(Ordering::Relaxed);
    let merged = lab.statistic("TCPBacklogCoalesce");
    assert!(advancing > 0 && c.acks + merged >= advancing, "{c:?}");
    let probes = lab.statistic("TCPLossProbes");
    assert!(c.rtt_count + merged + probes >= advancing, "{c:?}");
    assert_eq!(last.counters.loss_events, 1);
    assert_eq!(count(&seen, Event::LossEvent), 1);
    assert!(
        seen.iter()
            .filter(|s| s.kind() == SampleKind::Ack)
            .all(|s| s.events().next().is_some())
    );
    assert!(seen.len() < 40, "{}", seen.len());
    tracer.forget_closed(&last.key()).unwrap();
    assert!(tracer.latest(&last.key()).unwrap().is_none());
    // A socket that is no longer there is not an error.
    tracer.forget_closed(&last.key()).unwrap();
}

#[test]
fn a_namespace_that_is_watched_late_begins_with_partial_counters_and_can_be_forgotten() {
    const TEST: &str =
        "a_namespace_that_is_watched_late_begins_with_partial_counters_and_can_be_forgotten";
    if !can_run(TEST) {
        return;
    }
    let lab = Lab::new(&[ms(2)], clean());
    let Some(mut tracer) = tracer(TEST, &TracerConfig::default()) else {
        return;
    };
    let mut connection = lab.connect(Transport::Tcp, "reno");
    connection.transfer(200_000);
    assert_eq!(records(&mut tracer).len(), 0);
    tracer.watch(lab.client.cookie()).unwrap();
    let before = lab.drain(0).delivered_pkts;
    connection.transfer(300_000);
    lab.drain(0);
    let key = connection.key(&lab);
    let socket = tracer.latest(&key).unwrap().unwrap();
    assert!(socket.is_partial());
    assert!(
        socket.acked_pkts() <= 300_000 / 1000,
        "{}",
        socket.acked_pkts()
    );
    assert!(socket.kernel_delivered() > before);
    // A socket of a live connection is not forgotten.
    tracer.forget_closed(&key).unwrap();
    assert!(tracer.latest(&key).unwrap().is_some());
    tracer.forget(lab.client.cookie()).unwrap();
    assert!(tracer.latest(&key).unwrap().is_none());
    assert!(tracer.sockets().unwrap().is_empty());
    records(&mut tracer);
    connection.transfer(100_000);
    assert_eq!(records(&mut tracer).len(), 0);
}

#[test]
fn an_ipv4_connection_of_an_ipv6_socket_is_followed() {
    const TEST: &str = "an_ipv4_connection_of_an_ipv6_socket_is_followed";
    if !can_run(TEST) {
        return;
    }
    let lab = Lab::new(&[ms(1)], clean());
    let cookies = lab.cookies();
    let Some(tracer) = tracer(
        TEST,
        &TracerConfig {
            cookies: &cookies,
            ..TracerConfig::default()
        },
    ) else {
        return;
    };
    let listener = lab
        .server
        .run(|| std::net::TcpListener::bind(("::", PORT)))
        .unwrap()
        .unwrap();
    let client = lab
        .client
        .run(|| std::net::TcpStream::connect((server_address(0), PORT)))
        .unwrap()
        .unwrap();
    let (server, _) = listener.accept().unwrap();
    // Here the accepting end sends.
    let mut turned = tracer_lab::Connection {
        client: server,
        server: client,
        listener,
    };
    turned.transfer(250_000);
    // A record is as of the latest ACK, and the last ones may arrive after the receiver has read everything.
    let sender = wait_for("the last ACK of the accepting end", || {
        let sockets = tracer.sockets().unwrap();
        let own = |s: &Sample| s.key().cookie == lab.server.cookie();
        sockets
            .into_iter()
            .find(|s| own(s) && s.sent_pkts >= 250_000 / 1460)
    });
    assert_eq!(*sender.key().local.ip(), server_address(0));
    assert_eq!(*sender.key().remote.ip(), client_address(0));
    assert_eq!(sender.handshake_ns, 0, "the other end began");
}

#[test]
fn run_times_are_measured_when_asked_for() {
    const TEST: &str = "run_times_are_measured_when_asked_for";
    if !can_run(TEST) {
        return;
    }
    let lab = Lab::new(&[ms(1)], clean());
    let cookies = lab.cookies();
    let config = TracerConfig {
        run_stats: true,
        cookies: &cookies,
        ..TracerConfig::default()
    };
    let Some(tracer) = tracer(TEST, &config) else {
        return;
    };
    lab.connect(Transport::Tcp, "reno").transfer(400_000);
    let stats = tracer.run_stats().unwrap();
    let names: Vec<&str> = stats.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        ["trc_ack", "trc_retransmit", "trc_ca_state", "trc_tcp_state"]
    );
    assert!(
        stats[0].run_count > 100 && stats[0].run_time_ns > 100 * stats[0].run_count / 10,
        "{stats:?}"
    );
    for p in stats.iter().filter(|p| p.run_count > 0) {
        println!(
            "{}: {} ns per run, {} runs",
            p.name,
            p.run_time_ns / p.run_count,
            p.run_count
        );
    }
}
