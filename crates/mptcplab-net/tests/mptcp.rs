//! Real MPTCP connections between two namespaces: they have exactly the chosen subflows, on the chosen paths, with the
//! chosen algorithm, and every operation on a live subflow works.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, TcpStream};
use std::thread;
use std::time::Duration;

use common::{
    Connection, Hosts, MTU_BYTES, PATIENCE, PLANS, PORT, Plan, can_run, local_address, options,
    socket_from, source, target, v4, wait_for,
};
use mptcplab_net::diag::{MptcpSubflow, TcpSocket};
use mptcplab_net::mptcp::{
    self, Endpoint, Event, EventKind, Events, Limits, LocalAddress, PathManager, Subflow,
};
use mptcplab_net::socket::{self, Transport};
use mptcplab_net::{Namespace, NetError};

/// IPv4, TCP and the timestamps that every segment carries.
const HEADER_BYTES: u32 = 52;
/// Ethernet, IPv4 and TCP with all options.
const MOST_HEADER_BYTES: u64 = 14 + 20 + 60;
const PAYLOAD_BYTES: usize = 1_000_003;
/// The path manager may act once data have been sent in both directions.
const FIRST_BYTES: usize = 10;

#[test]
fn a_connection_has_exactly_the_chosen_subflows_on_their_paths() {
    let Some((hosts, mut connection, _paths)) = joined("reno") else {
        return;
    };
    exchange(&mut connection);
    let full = mptcp::full_info(&connection.client).unwrap();
    assert_eq!(full.mptcp.extra_subflows, 3);
    assert_eq!(full.subflows.len(), PLANS.len());
    for plan in PLANS {
        let subflow = subflow_of(&full.subflows, plan);
        assert_eq!(subflow.remote, target(plan));
        assert_eq!(
            subflow.tcp.snd_mss_bytes,
            MTU_BYTES[plan.path] - HEADER_BYTES,
            "{subflow:?}"
        );
        assert_eq!(subflow.tcp.pmtu_bytes, MTU_BYTES[plan.path]);
        let socket = socket_of(&hosts.client, plan);
        assert_eq!(mptcp_of(&socket).id_local, plan.id);
        assert_eq!(mptcp_of(&socket).is_join(), plan.id != 0);
        assert_eq!(mptcp_of(&socket).token_local, Some(full.mptcp.token));
        assert_eq!(mptcp_of(&peer_of(&hosts.server, plan)).id_remote, plan.id);
    }
}

#[test]
fn each_device_carries_the_bytes_of_its_own_subflows_and_no_others() {
    let Some((hosts, mut connection, _paths)) = joined("reno") else {
        return;
    };
    wait_for("data on every regular subflow", || {
        exchange(&mut connection);
        let subflows = mptcp::full_info(&connection.client).unwrap().subflows;
        let mut regular = PLANS.into_iter().filter(|plan| !plan.backup);
        regular
            .all(|plan| subflow_of(&subflows, plan).tcp.bytes_sent > 0)
            .then_some(())
    });
    let subflows = wait_for("all acknowledgements", || {
        let subflows = mptcp::full_info(&connection.client).unwrap().subflows;
        subflows
            .iter()
            .all(|subflow| subflow.tcp.unacked_pkts == 0)
            .then_some(subflows)
    });
    for path in [0, 1] {
        let stats = hosts.client.link_stats(hosts.client_devices[path]).unwrap();
        let on_path = PLANS.into_iter().filter(|plan| plan.path == path);
        let payload: u64 = on_path
            .map(|plan| subflow_of(&subflows, plan).tcp.bytes_sent)
            .sum();
        let most = payload + MOST_HEADER_BYTES * stats.tx_packets;
        assert!(
            (payload..most).contains(&stats.tx_bytes),
            "path {path}: {payload} B of data, {stats:?}"
        );
    }
}

#[test]
fn counters_of_the_connection_and_of_its_subflows_agree_with_what_was_sent() {
    let Some((hosts, mut connection, _paths)) = joined("reno") else {
        return;
    };
    exchange(&mut connection);
    let full = wait_for("the last acknowledgement", || {
        let full = mptcp::full_info(&connection.client).unwrap();
        (full.mptcp.write_seq == full.mptcp.snd_una).then_some(full)
    });
    // Linux before 6.5 does not count bytes at the connection's level.
    if let Some(bytes) = full.mptcp.bytes_acked {
        assert_eq!(bytes, (FIRST_BYTES + PAYLOAD_BYTES) as u64);
        assert_eq!(
            full.mptcp.bytes_received,
            Some((FIRST_BYTES / 2 + PAYLOAD_BYTES / 2) as u64)
        );
    }
    let carried: u64 = full
        .subflows
        .iter()
        .map(|subflow| subflow.tcp.bytes_sent - subflow.tcp.bytes_retrans)
        .sum();
    assert!(
        carried >= PAYLOAD_BYTES as u64,
        "{carried} B on the subflows"
    );
    for plan in PLANS {
        let by_diag = wait_for("tcp_info in the dump", || {
            socket_of(&hosts.client, plan).tcp
        });
        let by_option = subflow_of(
            &mptcp::full_info(&connection.client).unwrap().subflows,
            plan,
        )
        .tcp;
        assert_eq!(by_diag.bytes_sent, by_option.bytes_sent);
        assert_eq!(by_diag.snd_mss_bytes, by_option.snd_mss_bytes);
    }
    let whole = hosts.client.mptcp_sockets().unwrap();
    let whole: Vec<_> = whole
        .iter()
        .filter_map(|socket| Some((v4(socket.remote), socket.info?.token)))
        .collect();
    assert_eq!(whole, [(target(PLANS[0]), full.mptcp.token)]);
}

#[test]
fn every_subflow_runs_the_algorithm_that_was_asked_for() {
    let Some((hosts, mut connection, _paths)) = joined("reno") else {
        return;
    };
    let algorithms = |namespace: &Namespace| -> Vec<String> {
        let sockets = namespace.tcp_sockets().unwrap();
        sockets
            .into_iter()
            .filter(|socket| socket.subflow.is_some())
            .filter_map(|socket| socket.congestion)
            .collect()
    };
    assert_eq!(algorithms(&hosts.client), ["reno"; 4]);
    assert_eq!(algorithms(&hosts.server), ["reno"; 4]);
    socket::set_congestion(&connection.client, "cubic").unwrap();
    assert_eq!(socket::congestion(&connection.client).unwrap(), "cubic");
    exchange(&mut connection);
    assert_eq!(algorithms(&hosts.client), ["cubic"; 4]);
    assert_eq!(
        algorithms(&hosts.server),
        ["reno"; 4],
        "the peer's choice is its own"
    );
}

#[test]
fn an_unknown_algorithm_is_refused_by_name() {
    if !can_run("an_unknown_algorithm_is_refused_by_name") {
        return;
    }
    let hosts = Hosts::new();
    let listen = || socket::listen(Transport::Mptcp, target(PLANS[0]), &options("no_such_one"));
    let error = hosts.server.run(listen).unwrap().unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENOENT));
    assert!(error.to_string().contains("no_such_one"), "{error}");
    assert!(
        error
            .hint()
            .unwrap()
            .contains("tcp_available_congestion_control")
    );
    let listen = || {
        socket::listen(
            Transport::Tcp,
            target(PLANS[0]),
            &options("a_name_too_long_"),
        )
    };
    assert!(matches!(
        hosts.server.run(listen).unwrap(),
        Err(NetError::Invalid { .. })
    ));
}

#[test]
fn a_backup_subflow_carries_nothing_new_until_it_is_made_a_regular_one() {
    let Some((hosts, mut connection, paths)) = joined("reno") else {
        return;
    };
    let backup = PLANS[3];
    exchange(&mut connection);
    let full = mptcp::full_info(&connection.client).unwrap();
    let subflow = subflow_of(&full.subflows, backup);
    // On a machine that stalls, the connection sends data again over any subflow; nothing else may use the backup. Linux
    // 6.1 does not report how much it sent again.
    let carried = subflow.tcp.bytes_sent - subflow.tcp.bytes_retrans;
    let sent_again = full.mptcp.bytes_retrans.unwrap_or(PAYLOAD_BYTES as u64 / 4);
    assert!(
        carried <= sent_again,
        "{carried} B on the backup, {sent_again} B sent again"
    );
    assert!(mptcp_of(&socket_of(&hosts.client, backup)).is_backup_local());
    assert!(mptcp_of(&peer_of(&hosts.server, backup)).is_backup_remote());
    assert!(!mptcp_of(&socket_of(&hosts.client, PLANS[2])).is_backup_local());

    paths
        .set_backup(full.mptcp.token, subflow.local, subflow.remote, false)
        .unwrap();
    wait_for("the peer to hear of it", || {
        (!mptcp_of(&peer_of(&hosts.server, backup)).is_backup_remote()).then_some(())
    });
    assert!(!mptcp_of(&socket_of(&hosts.client, backup)).is_backup_local());
    wait_for("data on the former backup", || {
        exchange(&mut connection);
        let full = mptcp::full_info(&connection.client).unwrap();
        (subflow_of(&full.subflows, backup).tcp.bytes_sent > 0).then_some(())
    });

    paths
        .set_backup(full.mptcp.token, subflow.local, subflow.remote, true)
        .unwrap();
    wait_for("the peer to hear of it again", || {
        mptcp_of(&peer_of(&hosts.server, backup))
            .is_backup_remote()
            .then_some(())
    });
}

#[test]
fn a_destroyed_subflow_goes_alone_and_the_others_carry_on() {
    let Some((hosts, mut connection, paths)) = joined("reno") else {
        return;
    };
    let full = mptcp::full_info(&connection.client).unwrap();
    let gone = subflow_of(&full.subflows, PLANS[1]);
    paths
        .subflow_destroy(full.mptcp.token, gone.local, gone.remote)
        .unwrap();
    let left = wait_for("the subflow to go", || {
        let left = mptcp::full_info(&connection.client).unwrap().subflows;
        (left.len() == 3).then_some(left)
    });
    assert!(
        left.iter()
            .all(|subflow| *subflow.local.ip() != PLANS[1].local),
        "{left:?}"
    );
    wait_for("its socket to go", || {
        socket_from(&hosts.client.tcp_sockets().unwrap(), PLANS[1].local)
            .is_none()
            .then_some(())
    });
    exchange(&mut connection);
    let error = paths
        .subflow_destroy(full.mptcp.token, gone.local, gone.remote)
        .unwrap_err();
    assert_eq!(error.errno(), Some(libc::ESRCH), "{error}");
    paths
        .subflow_create(full.mptcp.token, local_address(PLANS[1]), target(PLANS[1]))
        .unwrap();
    wait_for("the subflow again", || {
        (mptcp::info(&connection.client).unwrap().extra_subflows == 3).then_some(())
    });
    exchange(&mut connection);
}

#[test]
fn a_subflow_that_cannot_be_is_refused_with_the_reason() {
    let Some((_hosts, connection, paths)) = joined("reno") else {
        return;
    };
    let token = mptcp::info(&connection.client).unwrap().token;
    let error = paths
        .subflow_create(token ^ 1, local_address(PLANS[1]), target(PLANS[1]))
        .unwrap_err();
    assert!(
        matches!(
            &error,
            NetError::Kernel {
                message: Some(_),
                ..
            }
        ),
        "the kernel says why: {error:?}"
    );
    assert!(
        error.to_string().contains(&format!("{:#010x}", token ^ 1)),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("pm_type"));
    let twice = LocalAddress {
        id: 77,
        ..local_address(PLANS[1])
    };
    let error = paths
        .subflow_create(token, twice, target(PLANS[1]))
        .unwrap_err();
    assert_eq!(
        error.errno(),
        Some(libc::EINVAL),
        "one number per address: {error}"
    );
}

#[test]
fn several_subflows_share_one_pair_of_addresses() {
    let Some((_hosts, mut connection, paths)) = joined("reno") else {
        return;
    };
    let token = mptcp::info(&connection.client).unwrap().token;
    for _ in 0..2 {
        paths
            .subflow_create(token, local_address(PLANS[2]), target(PLANS[2]))
            .unwrap();
    }
    wait_for("six subflows", || {
        (mptcp::info(&connection.client).unwrap().extra_subflows == 5).then_some(())
    });
    exchange(&mut connection);
    let subflows = mptcp::full_info(&connection.client).unwrap().subflows;
    let ports: Vec<u16> = subflows
        .iter()
        .filter(|subflow| *subflow.local.ip() == PLANS[2].local)
        .map(|subflow| subflow.local.port())
        .collect();
    assert_eq!(ports.len(), 3);
    assert!(
        ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2],
        "{ports:?}"
    );
}

#[test]
fn the_servers_limits_bound_the_subflows() {
    if !can_run("the_servers_limits_bound_the_subflows") {
        return;
    }
    let hosts = Hosts::new();
    let manager = PathManager::new(&hosts.server).unwrap();
    assert_eq!(
        manager.limits().unwrap(),
        Limits {
            subflows: 7,
            add_addr_accepted: 3
        }
    );
    manager
        .set_limits(Limits {
            subflows: 1,
            add_addr_accepted: 0,
        })
        .unwrap();
    assert_eq!(
        manager.limits().unwrap(),
        Limits {
            subflows: 1,
            add_addr_accepted: 0
        }
    );
    let error = manager
        .set_limits(Limits {
            subflows: 9,
            add_addr_accepted: 0,
        })
        .unwrap_err();
    assert!(error.to_string().contains("subflows: 9"), "{error}");

    let mut connection = hosts.connect("reno");
    exchange(&mut connection);
    let paths = PathManager::new(&hosts.client).unwrap();
    let token = mptcp::info(&connection.client).unwrap().token;
    for plan in &PLANS[1..] {
        paths
            .subflow_create(token, local_address(*plan), target(*plan))
            .unwrap();
    }
    wait_for("the refusals", || {
        (mptcp::info(&connection.server).unwrap().extra_subflows == 1).then_some(())
    });
    exchange(&mut connection);
    assert_eq!(mptcp::info(&connection.server).unwrap().extra_subflows, 1);
}

#[test]
fn events_tell_of_each_subflow_as_it_comes_and_goes() {
    if !can_run("events_tell_of_each_subflow_as_it_comes_and_goes") {
        return;
    }
    let hosts = Hosts::new();
    let paths = PathManager::new(&hosts.client).unwrap();
    let mut events = paths.events().unwrap();
    let mut events_of_server = PathManager::new(&hosts.server).unwrap().events().unwrap();
    let mut connection = hosts.connect("reno");
    exchange(&mut connection);
    let token = mptcp::info(&connection.client).unwrap().token;
    let token_of_server = mptcp::info(&connection.server).unwrap().token;
    let mut expect = |kind| expect_event(&mut events, token, kind);
    assert_eq!(
        expect(EventKind::Established).remote,
        Some(target(PLANS[0]))
    );
    for plan in &PLANS[1..] {
        paths
            .subflow_create(token, local_address(*plan), target(*plan))
            .unwrap();
        let event = expect(EventKind::SubflowEstablished);
        assert_eq!(event.remote, Some(target(*plan)));
        assert_eq!(event.local.map(|address| *address.ip()), Some(plan.local));
        assert_eq!((event.local_id, event.backup), (Some(plan.id), Some(false)));
        let event = expect_event(
            &mut events_of_server,
            token_of_server,
            EventKind::SubflowEstablished,
        );
        assert_eq!(event.local, Some(target(*plan)));
        let backup = mptcp_of(&socket_of(&hosts.client, *plan)).is_backup_local();
        assert_eq!(
            (event.remote_id, event.backup),
            (Some(plan.id), Some(backup)),
            "{event:?}"
        );
        assert!(
            backup == plan.backup || !common::kernel_is_at_least(6, 12),
            "{plan:?}"
        );
    }
    let subflow = subflow_of(
        &mptcp::full_info(&connection.client).unwrap().subflows,
        PLANS[2],
    );
    paths
        .subflow_destroy(token, subflow.local, subflow.remote)
        .unwrap();
    assert_eq!(expect(EventKind::SubflowClosed).local, Some(subflow.local));
    drop(connection);
    expect(EventKind::Closed);
    assert_eq!(
        events.next(Duration::ZERO).unwrap().map(|event| event.kind),
        None
    );
}

#[test]
fn endpoints_are_listed_as_they_were_added_and_those_with_ports_are_refused() {
    if !can_run("endpoints_are_listed_as_they_were_added_and_those_with_ports_are_refused") {
        return;
    }
    let hosts = Hosts::new();
    let manager = PathManager::new(&hosts.server).unwrap();
    assert_eq!(manager.endpoints().unwrap(), []);
    let first = Endpoint {
        id: Some(5),
        subflow: true,
        fullmesh: true,
        backup: true,
        ..Endpoint::new(PLANS[1].remote)
    };
    let second = Endpoint {
        id: Some(9),
        signal: true,
        ifindex: Some(hosts.server_devices[1]),
        ..Endpoint::new(PLANS[2].remote)
    };
    let of_ipv6 = Endpoint {
        id: Some(7),
        subflow: true,
        backup: true,
        ..Endpoint::new(Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1))
    };
    manager.endpoint_add(&second).unwrap();
    manager.endpoint_add(&first).unwrap();
    assert_eq!(manager.endpoints().unwrap(), [first, second]);
    // A kernel without IPv6 refuses it.
    if std::path::Path::new("/proc/net/if_inet6").exists() {
        manager.endpoint_add(&of_ipv6).unwrap();
        assert_eq!(manager.endpoints().unwrap(), [first, of_ipv6, second]);
        manager.endpoint_remove(7).unwrap();
    }
    let error = manager
        .endpoint_add(&Endpoint {
            port: Some(5001),
            ..Endpoint::new(PLANS[3].remote)
        })
        .unwrap_err();
    assert!(matches!(error, NetError::Invalid { .. }), "{error:?}");
    assert!(error.to_string().contains("5001"), "{error}");
    manager.endpoint_remove(5).unwrap();
    assert_eq!(manager.endpoints().unwrap(), [second]);
    manager.endpoints_flush().unwrap();
    assert_eq!(manager.endpoints().unwrap(), []);
}

#[test]
fn the_kernels_own_path_manager_joins_from_endpoints() {
    if !can_run("the_kernels_own_path_manager_joins_from_endpoints") {
        return;
    }
    let hosts = Hosts::new();
    hosts.client.sysctl("net.mptcp.pm_type", 0).unwrap();
    let manager = PathManager::new(&hosts.client).unwrap();
    manager
        .set_limits(Limits {
            subflows: 2,
            add_addr_accepted: 0,
        })
        .unwrap();
    // The kernel joins the address with which the connection began, so the other path needs a route to it.
    let route = mptcplab_net::route::Route::host(PLANS[0].remote, hosts.client_devices[0]);
    hosts.client.replace_route(&route).unwrap();
    let endpoint = Endpoint {
        id: Some(3),
        subflow: true,
        ..Endpoint::new(PLANS[3].local)
    };
    manager.endpoint_add(&endpoint).unwrap();
    let mut connection = hosts.connect("reno");
    exchange(&mut connection);
    wait_for("the join", || {
        (mptcp::info(&connection.client).unwrap().extra_subflows == 1).then_some(())
    });
    let socket = socket_of(&hosts.client, PLANS[3]);
    assert_eq!(
        (v4(socket.remote), mptcp_of(&socket).id_local),
        (target(PLANS[0]), 3)
    );
}

#[test]
fn a_peer_without_mptcp_shows_as_a_fallback() {
    if !can_run("a_peer_without_mptcp_shows_as_a_fallback") {
        return;
    }
    let hosts = Hosts::new();
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT);
    let listener = hosts
        .server
        .run(|| socket::listen(Transport::Tcp, any, &options("reno")))
        .unwrap()
        .unwrap();
    let connect = |transport| {
        let connect = || {
            socket::connect(
                transport,
                source(PLANS[1]),
                target(PLANS[1]),
                &options("reno"),
                PATIENCE,
            )
        };
        hosts.client.run(connect).unwrap().unwrap()
    };
    let fallen = connect(Transport::Mptcp);
    let (accepted, _) = listener.accept().unwrap();
    assert!(socket::is_mptcp_fallback(&fallen).unwrap());
    assert!(socket::is_mptcp_fallback(&accepted).unwrap());
    for error in [
        mptcp::info(&fallen).map(drop).unwrap_err(),
        mptcp::full_info(&fallen).map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, NetError::Fallback { .. }), "{error:?}");
    }
    let plain = connect(Transport::Tcp);
    assert!(socket::is_mptcp_fallback(&plain).unwrap());
    assert_eq!(
        mptcp::tcp_info(&plain).unwrap().snd_mss_bytes,
        MTU_BYTES[1] - HEADER_BYTES
    );
    assert!(
        matches!(mptcp::info(&plain), Err(NetError::Fallback { .. })),
        "the kernel answers alike"
    );

    hosts.client.sysctl("net.mptcp.enabled", 0).unwrap();
    let open = || {
        socket::connect(
            Transport::Mptcp,
            source(PLANS[1]),
            target(PLANS[1]),
            &options("reno"),
            PATIENCE,
        )
    };
    let error = hosts.client.run(open).unwrap().unwrap_err();
    assert!(
        error.hint().unwrap().contains("net.mptcp.enabled"),
        "{error}"
    );
}

#[test]
fn a_connection_can_begin_without_waiting_and_tells_how_it_ended() {
    if !can_run("a_connection_can_begin_without_waiting_and_tells_how_it_ended") {
        return;
    }
    let hosts = Hosts::new();
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT);
    let listener = hosts
        .server
        .run(|| socket::listen(Transport::Mptcp, any, &options("reno")))
        .unwrap()
        .unwrap();
    let begin = |port: u16| {
        let target = SocketAddrV4::new(*target(PLANS[1]).ip(), port);
        let from = SocketAddrV4::new(*source(PLANS[1]).ip(), 23_456);
        let begin = || socket::begin_connect(Transport::Mptcp, from, target, &options("reno"));
        hosts.client.run(begin).unwrap().unwrap()
    };
    let stream = begin(PORT);
    wait_for("the connection", || stream.peer_addr().ok());
    assert!(stream.take_error().unwrap().is_none());
    let (_accepted, peer) = listener.accept().unwrap();
    assert_eq!(peer.port(), 23_456);
    drop(stream);
    // Nothing listens on that port.
    let refused = begin(PORT + 1);
    let error = wait_for("the refusal", || refused.take_error().unwrap());
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_connection_that_did_not_fall_back_says_so() {
    let Some((_hosts, connection, _paths)) = joined("reno") else {
        return;
    };
    assert!(!socket::is_mptcp_fallback(&connection.client).unwrap());
    assert!(!socket::is_mptcp_fallback(&connection.server).unwrap());
}

#[test]
fn all_of_this_works_without_privileges_over_the_host() {
    common::run_all_in_a_user_namespace("all_of_this_works_without_privileges_over_the_host");
}

/// The next event of a kind; all before it must be of the same connection.
fn expect_event(events: &mut Events, token: u32, kind: EventKind) -> Event {
    wait_for("an event", || {
        let event = events.next(PATIENCE).unwrap()?;
        // Listeners belong to no connection.
        assert!([0, token].contains(&event.token), "{event:?}");
        (event.kind == kind).then_some(event)
    })
}

/// Two hosts and a connection with all subflows of the plans established; `None` where this machine does not allow it.
fn joined(congestion: &str) -> Option<(Hosts, Connection, PathManager)> {
    if !can_run(thread::current().name().unwrap_or("a test")) {
        return None;
    }
    let hosts = Hosts::new();
    let mut connection = hosts.connect(congestion);
    exchange_bytes(&mut connection, FIRST_BYTES);
    let paths = PathManager::new(&hosts.client).unwrap();
    let token = mptcp::info(&connection.client).unwrap().token;
    for plan in &PLANS[1..] {
        paths
            .subflow_create(token, local_address(*plan), target(*plan))
            .unwrap();
    }
    wait_for("all subflows, on both sides", || {
        let is_whole = |socket: &TcpStream| mptcp::info(socket).unwrap().extra_subflows == 3;
        (is_whole(&connection.client) && is_whole(&connection.server)).then_some(())
    });
    settle_backups(&hosts, &connection, &paths);
    Some((hosts, connection, paths))
}

/// Linux 6.1 joins backups as regular subflows, so they become backups only after they have joined.
fn settle_backups(hosts: &Hosts, connection: &Connection, paths: &PathManager) {
    let full = mptcp::full_info(&connection.client).unwrap();
    for plan in PLANS.into_iter().filter(|plan| plan.backup) {
        if !mptcp_of(&socket_of(&hosts.client, plan)).is_backup_local() {
            let subflow = subflow_of(&full.subflows, plan);
            paths
                .set_backup(full.mptcp.token, subflow.local, subflow.remote, true)
                .unwrap();
        }
        wait_for("the peer to know of the backup", || {
            mptcp_of(&peer_of(&hosts.server, plan))
                .is_backup_remote()
                .then_some(())
        });
    }
}

/// Sends the payload from the client and half as much in return, and compares every byte.
fn exchange(connection: &mut Connection) {
    exchange_bytes(connection, PAYLOAD_BYTES);
}

fn exchange_bytes(connection: &mut Connection, forth_bytes: usize) {
    let forth: Vec<u8> = (0..forth_bytes).map(|index| (index % 251) as u8).collect();
    let back: Vec<u8> = (0..forth_bytes / 2)
        .map(|index| (index % 241) as u8)
        .collect();
    let Connection { client, server, .. } = connection;
    let (mut client, mut server) = (&*client, &*server);
    thread::scope(|scope| {
        scope.spawn(|| client.write_all(&forth).unwrap());
        let mut arrived = vec![0; forth.len()];
        server.read_exact(&mut arrived).unwrap();
        assert!(arrived == forth, "the bytes arrive as they were sent");
    });
    thread::scope(|scope| {
        scope.spawn(|| server.write_all(&back).unwrap());
        let mut arrived = vec![0; back.len()];
        client.read_exact(&mut arrived).unwrap();
        assert!(arrived == back, "the bytes come back as they were sent");
    });
}

fn subflow_of(subflows: &[Subflow], plan: Plan) -> Subflow {
    let found: Vec<&Subflow> = subflows
        .iter()
        .filter(|subflow| *subflow.local.ip() == plan.local)
        .collect();
    assert_eq!(
        found.len(),
        1,
        "one subflow from {}: {subflows:?}",
        plan.local
    );
    *found[0]
}

fn socket_of(namespace: &Namespace, plan: Plan) -> TcpSocket {
    let sockets = namespace.tcp_sockets().unwrap();
    socket_from(&sockets, plan.local)
        .unwrap_or_else(|| panic!("no socket from {}: {sockets:?}", plan.local))
        .clone()
}

/// The server's socket of a plan.
fn peer_of(namespace: &Namespace, plan: Plan) -> TcpSocket {
    let sockets = namespace.tcp_sockets().unwrap();
    socket_from(&sockets, plan.remote)
        .unwrap_or_else(|| panic!("no socket at {}: {sockets:?}", plan.remote))
        .clone()
}

fn mptcp_of(socket: &TcpSocket) -> MptcpSubflow {
    socket
        .subflow
        .unwrap_or_else(|| panic!("{socket:?} is no subflow"))
}
