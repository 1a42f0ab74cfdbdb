//! Findings about made-up connections and hosts.

use super::super::counters::Counters;
use super::*;
use crate::facts::PathManagement;
use crate::finding::Status;

fn subflow(local: &str, ids: (u8, u8)) -> Subflow {
    Subflow {
        local: local.parse().unwrap(),
        remote: "10.0.1.2:443".parse().unwrap(),
        id_local: ids.0,
        id_remote: ids.1,
        state: "Established".into(),
        congestion: "lab_olia".into(),
        backup_local: false,
        backup_remote: false,
        fully_established: true,
        cwnd_pkts: Some(17),
        ssthresh_pkts: None,
        srtt_us: Some(23_450),
        bytes_acked: Some(99),
        retransmitted_pkts: Some(3),
        delivery_rate_bps: None,
        timeouts_in_a_row: Some(0),
    }
}

fn client(subflows: Vec<Subflow>) -> Connection {
    Connection {
        local: "10.0.1.1:40000".parse().unwrap(),
        remote: "10.0.1.2:443".parse().unwrap(),
        token: Some(0xab),
        role: Role::Client,
        state: "Established".into(),
        fallback: false,
        extra_subflows: Some(u8::try_from(subflows.len() - 1).unwrap()),
        add_addr_accepted: Some(0),
        add_addr_signalled: Some(0),
        subflows,
    }
}

fn one() -> Connection {
    client(vec![subflow("10.0.1.1:40000", (0, 0))])
}

/// Two devices, an endpoint on the second, room for three more subflows.
fn host() -> Host {
    let address = |ip: [u8; 4], device: &str| Address {
        ip: ip.into(),
        device: device.into(),
        is_up: true,
    };
    Host {
        addresses: vec![
            address([10, 0, 1, 1], "eth0"),
            address([10, 0, 2, 1], "wlan0"),
        ],
        paths: PathManagement {
            subflows: 3,
            add_addr_accepted: 0,
            endpoints: vec![Endpoint {
                address: [10, 0, 2, 1].into(),
                id: 4,
                flags: vec!["subflow"],
                device: Some("wlan0".into()),
            }],
        },
        ..Host::default()
    }
}

/// The only line about what is absent.
fn absence(connection: &Connection, host: &Host) -> Finding {
    let lines: Vec<Finding> = explain(connection, host)
        .into_iter()
        .filter(|line| line.name == "absent")
        .collect();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert_eq!(lines[0].status, Status::Missing);
    lines[0].clone()
}

#[test]
fn a_whole_connection_lacks_nothing() {
    let both = client(vec![
        subflow("10.0.1.1:40000", (0, 0)),
        subflow("10.0.2.1:41000", (4, 0)),
    ]);
    let lines = explain(&both, &host());
    assert!(
        lines.iter().all(|line| line.status == Status::Ok),
        "{lines:#?}"
    );
    assert_eq!(
        lines[0].found,
        "10.0.1.1:40000 -> 10.0.1.2:443 runs lab_olia"
    );
    assert!(
        lines[0]
            .meaning
            .contains("cwnd 17 packets, no ssthresh yet, srtt 23.45 ms")
    );
    assert!(lines[2].meaning.starts_with("coupled"));
    assert_eq!(
        lines[0].area,
        "Connection 10.0.1.1:40000 -> 10.0.1.2:443 (client, token 000000ab)"
    );
}

/// A subflow that had nothing to send was called ok although its device was down.
#[test]
fn a_subflow_whose_device_is_down_is_a_warning() {
    let both = client(vec![
        subflow("10.0.1.1:40000", (0, 0)),
        subflow("10.0.2.1:41000", (4, 0)),
    ]);
    let mut down = host();
    down.addresses[1].is_up = false;
    let lines = explain(&both, &down);
    assert_eq!(
        (lines[0].status, lines[1].status),
        (Status::Ok, Status::Warn)
    );
    assert!(
        lines[1]
            .meaning
            .starts_with("its device wlan0 is down or has no link; ids 4/0, "),
        "{}",
        lines[1].meaning
    );
    assert_eq!(lines[1].remedy.as_deref(), Some("ip link set wlan0 up"));
    down.addresses.pop();
    let lines = explain(&both, &down);
    assert_eq!(
        (lines[0].status, lines[1].status),
        (Status::Ok, Status::Warn)
    );
    assert!(
        lines[1]
            .meaning
            .starts_with("no device of this host has its address any more; ")
    );
    assert_eq!(
        lines[1].remedy.as_deref(),
        Some("ip address add 10.0.2.1/PREFIX dev DEVICE")
    );
    // The addresses of a transparent proxy's clients are on no device.
    down.paths.endpoints.clear();
    assert_eq!(explain(&both, &down)[1].status, Status::Ok);
}

/// Whoever makes a network namespace may call a device `x;reboot`, and root is told to copy the command.
#[test]
fn the_name_of_a_device_is_one_word_of_a_command() {
    let mut down = host();
    for name in ["x;reboot", "$(id)"] {
        down.addresses[1].device = name.into();
        down.addresses[1].is_up = false;
        let quoted = format!("ip link set '{name}' up");
        assert_eq!(absence(&one(), &down).remedy, Some(quoted));
        let mut bare = down.clone();
        bare.addresses[1].is_up = true;
        bare.paths.endpoints.clear();
        let quoted = format!("ip mptcp endpoint add 10.0.2.1 dev '{name}' subflow");
        assert_eq!(absence(&one(), &bare).remedy, Some(quoted));
    }
}

/// Connections inside of one host have addresses that no other host can reach.
#[test]
fn a_subflow_of_loopback_needs_no_device() {
    let mut inside = subflow("127.0.0.1:40000", (0, 0));
    inside.remote = "127.0.0.1:443".parse().unwrap();
    let mut mapped = subflow("10.0.1.1:40001", (1, 0));
    mapped.local = "[::ffff:10.0.1.1]:40001".parse().unwrap();
    let lines = explain(&client(vec![inside, mapped]), &host());
    assert_eq!((lines[0].status, lines[1].status), (Status::Ok, Status::Ok));
}

/// A coupled algorithm of one's own was called uncoupled.
#[test]
fn whether_an_algorithm_of_ones_own_couples_is_not_claimed() {
    let mut both = client(vec![
        subflow("10.0.1.1:40000", (0, 0)),
        subflow("10.0.2.1:41000", (4, 0)),
    ]);
    let coupling = |connection: &Connection| {
        let lines = explain(connection, &host());
        (lines[2].status, lines[2].meaning.clone())
    };
    for (name, meaning) in [
        ("lab_mine", "not an algorithm of this program"),
        ("cubic", "uncoupled: "),
        ("lab_reno", "uncoupled: "),
        ("lab_olia", "coupled: "),
    ] {
        for subflow in &mut both.subflows {
            subflow.congestion = name.into();
        }
        let (status, said) = coupling(&both);
        assert_eq!(status, Status::Ok, "{name}");
        assert!(said.starts_with(meaning), "{name}: {said}");
    }
}

#[test]
fn sockets_of_an_earlier_load_are_a_warning() {
    let both = client(vec![
        subflow("10.0.1.1:40000", (0, 0)),
        subflow("10.0.2.1:41000", (4, 0)),
    ]);
    let reloaded = Host {
        older_loads: vec!["lab_olia".into()],
        ..host()
    };
    let lines = explain(&both, &reloaded);
    assert_eq!((lines[2].name, lines[2].status), ("coupling", Status::Warn));
    assert!(lines[2].meaning.contains("earlier load"));
}

/// Nine subflows were called coupled, of which the ninth grew like a connection of its own.
#[test]
fn a_connection_with_more_subflows_than_can_be_coupled_is_not_called_coupled() {
    let with = |count: u8| {
        let local = |n: u8| format!("10.0.{}.1:{}", n + 1, 40_000 + u16::from(n));
        client((0..count).map(|n| subflow(&local(n), (n, 0))).collect())
    };
    let coupling = |connection: &Connection| {
        let lines = explain(connection, &host());
        let line = lines.iter().find(|line| line.name == "coupling");
        line.cloned().unwrap()
    };
    assert_eq!(coupling(&with(8)).status, Status::Ok);
    let nine = coupling(&with(9));
    assert_eq!(nine.status, Status::Warn);
    assert!(
        nine.meaning.starts_with("only 8 of the 9 subflows"),
        "{}",
        nine.meaning
    );
    assert!(nine.remedy.unwrap().contains("limits set subflows 7 "));
    let mut other = with(9);
    for subflow in &mut other.subflows {
        subflow.congestion = "cubic".into();
    }
    assert_eq!(coupling(&other).status, Status::Ok);
}

#[test]
fn subflows_that_the_table_had_no_place_for_are_a_warning() {
    let both = client(vec![
        subflow("10.0.1.1:40000", (0, 0)),
        subflow("10.0.2.1:41000", (4, 0)),
    ]);
    let mut full = host();
    full.uncoupled.insert("lab_lia".into(), 5);
    assert_eq!(explain(&both, &full)[2].status, Status::Ok);
    full.uncoupled.insert("lab_olia".into(), 3);
    let line = explain(&both, &full)[2].clone();
    assert_eq!((line.name, line.status), ("coupling", Status::Warn));
    assert!(line.meaning.contains("table: 3 of all"), "{}", line.meaning);
}

/// The missing route was named first, and its remedy led to nothing.
#[test]
fn a_reached_limit_comes_before_everything_else() {
    let mut full = host();
    full.paths.subflows = 0;
    full.addresses.pop();
    full.no_route.insert(
        ([10, 0, 2, 1].into(), [10, 0, 1, 2].into()),
        libc::ENETUNREACH,
    );
    assert_eq!(absence(&one(), &full).remedy, Some(limits::raise_on_both()));
}

/// The remedy was a limit of 8, although this connection had reached it, or could have had it only uncoupled.
#[test]
fn a_limit_that_is_as_high_as_it_should_be_is_not_raised() {
    let with = |extra: u8| {
        let local = |n: u8| format!("10.0.{}.1:{}", n + 100, 40_000 + u16::from(n));
        client((0..=extra).map(|n| subflow(&local(n), (n, 0))).collect())
    };
    for (limit, remedy) in [(6, Some(limits::raise_on_both())), (7, None), (8, None)] {
        let mut full = host();
        full.paths.subflows = limit.into();
        let lines = explain(&with(limit), &full);
        let found = lines.iter().find(|line| line.name == "absent").unwrap();
        assert!(found.meaning.contains("is reached"), "{found:?}");
        assert_eq!(found.remedy, remedy, "{limit}");
    }
}

#[test]
fn each_cause_is_told_from_the_others() {
    let mut gone = host();
    gone.addresses.pop();
    assert!(
        absence(&one(), &gone)
            .meaning
            .contains("no device of this host has that address")
    );

    let mut down = host();
    down.addresses[1].is_up = false;
    assert_eq!(
        absence(&one(), &down).remedy.as_deref(),
        Some("ip link set wlan0 up")
    );

    let mut full = host();
    full.paths.subflows = 0;
    assert!(
        absence(&one(), &full)
            .meaning
            .contains("limit of 0 subflows")
    );

    let mut stray = host();
    stray.no_route.insert(
        ([10, 0, 2, 1].into(), [10, 0, 1, 2].into()),
        libc::ENETUNREACH,
    );
    let found = absence(&one(), &stray);
    assert!(
        found
            .meaning
            .contains("no route from it to 10.0.1.2 (Network is unreachable)")
    );
    assert!(
        found
            .remedy
            .unwrap()
            .contains("ip rule add from 10.0.2.1 table 104")
    );

    let mut dropped = host();
    dropped.counters = Counters::parse("MPTcpExt: MPJoinSynTx MPJoinSynAckRx\nMPTcpExt: 5 2\n");
    assert!(
        absence(&one(), &dropped)
            .meaning
            .contains("of 5 joins sent from this host 2 were answered")
    );

    assert!(absence(&one(), &host()).meaning.contains(
        "or the peer refused it: on the peer, check `ip mptcp limits` and MPJoinRejected"
    ));
}

#[test]
fn without_endpoints_the_command_names_the_unused_address() {
    let mut bare = host();
    bare.paths.endpoints.clear();
    assert_eq!(
        absence(&one(), &bare).remedy.as_deref(),
        Some("ip mptcp endpoint add 10.0.2.1 dev wlan0 subflow")
    );
    bare.addresses.pop();
    assert!(
        absence(&one(), &bare)
            .meaning
            .contains("only one address, and the peer has announced none")
    );
    bare.counters = Counters::parse("MPTcpExt: AddAddr\nMPTcpExt: 2\n");
    assert!(
        absence(&one(), &bare)
            .meaning
            .contains("limit of accepted addresses (add_addr_accepted) is 0")
    );
}

const HERE6: &str = "2001:db8:2::1";

/// The same over IPv6: the connection uses the first device, and there is an endpoint on the second.
fn over_ipv6() -> (Connection, Host) {
    let mut first = subflow("[2001:db8:1::1]:40000", (0, 0));
    first.remote = "[2001:db8:1::2]:443".parse().unwrap();
    let mut connection = client(vec![first.clone()]);
    (connection.local, connection.remote) = (first.local, first.remote);
    let mut host = host();
    for (address, ip) in host.addresses.iter_mut().zip(["2001:db8:1::1", HERE6]) {
        address.ip = ip.parse().unwrap();
    }
    host.paths.endpoints[0].address = HERE6.parse().unwrap();
    (connection, host)
}

/// The doctor denied an endpoint with an IPv6 address, and told the operator to add it.
#[test]
fn an_endpoint_of_ipv6_is_explained_like_any_other() {
    let (one, host) = over_ipv6();
    let found = absence(&one, &host);
    assert!(
        found.meaning.contains("nothing on this host prevents it"),
        "{found:?}"
    );
    assert_eq!(found.found, format!("from {HERE6} on wlan0 (endpoint 4)"));

    let mut stray = host.clone();
    stray
        .no_route
        .insert((HERE6.parse().unwrap(), one.remote.ip()), libc::ENETUNREACH);
    let remedy = absence(&one, &stray).remedy.unwrap();
    assert!(
        remedy.starts_with("ip -6 rule add from 2001:db8:2::1 table 104 && ip -6 route add"),
        "{remedy}"
    );

    let mut none = host;
    none.paths.endpoints.clear();
    assert_eq!(
        absence(&one, &none).remedy.as_deref(),
        Some("ip mptcp endpoint add 2001:db8:2::1 dev wlan0 subflow")
    );
}

#[test]
fn an_endpoint_of_the_other_version_of_ip_is_not_missed_beside_one_that_fits() {
    let both = client(vec![
        subflow("10.0.1.1:40000", (0, 0)),
        subflow("10.0.2.1:41000", (4, 0)),
    ]);
    let mut host = host();
    host.paths.endpoints.push(Endpoint {
        address: HERE6.parse().unwrap(),
        id: 5,
        flags: vec!["subflow"],
        device: Some("wlan0".into()),
    });
    let lines = explain(&both, &host);
    assert!(
        lines.iter().all(|line| line.status == Status::Ok),
        "{lines:#?}"
    );
    assert_eq!(
        absence(&one(), &host).found,
        "from 10.0.2.1 on wlan0 (endpoint 4)"
    );
    host.paths.endpoints.remove(0);
    assert_eq!(
        absence(&one(), &host).remedy.as_deref(),
        Some("ip mptcp endpoint add 10.0.2.1 dev wlan0 subflow")
    );
    host.addresses[1].ip = HERE6.parse().unwrap();
    assert!(
        absence(&one(), &host)
            .meaning
            .contains("another version of IP")
    );
}

#[test]
fn user_space_is_asked_where_it_manages_paths() {
    let userspace = Host {
        userspace: true,
        ..host()
    };
    assert!(absence(&one(), &userspace).meaning.contains("daemon"));
}

#[test]
fn a_server_is_sent_to_its_client() {
    let server = Connection {
        role: Role::Server,
        ..one()
    };
    let remedy = absence(&server, &host()).remedy.unwrap();
    assert!(
        remedy.starts_with("sudo ") && remedy.contains(" doctor --pid PID    # on the client"),
        "{remedy}"
    );
    let mut strict = host();
    strict.counters = Counters::parse("MPTcpExt: MPJoinRejected\nMPTcpExt: 6\n");
    assert!(
        absence(&server, &strict)
            .meaning
            .contains("MPJoinRejected = 6")
    );
}

#[test]
fn a_fallen_back_connection_shows_the_counted_causes_and_nothing_else() {
    let fallen = Connection {
        fallback: true,
        ..one()
    };
    let mut with = host();
    with.counters = Counters::parse("MPTcpExt: MPCapableFallbackSYNACK\nMPTcpExt: 1\n");
    let lines = explain(&fallen, &with);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].status, Status::Missing);
    assert!(lines[0].meaning.contains("MPCapableFallbackSYNACK = 1"));
}

#[test]
fn subflows_that_differ_or_are_silent_are_marked() {
    let mut odd = subflow("10.0.2.1:41000", (4, 0));
    odd.congestion = "cubic".into();
    let mut silent = subflow("10.0.3.1:42000", (5, 0));
    silent.timeouts_in_a_row = Some(4);
    silent.backup_local = true;
    let lines = explain(
        &client(vec![subflow("10.0.1.1:40000", (0, 0)), odd, silent]),
        &host(),
    );
    assert_eq!(lines[0].status, Status::Ok);
    assert_eq!(lines[1].status, Status::Warn);
    assert!(
        lines[2]
            .meaning
            .contains("backup for this host, 4 timeouts in a row")
    );
    assert!(
        lines[2]
            .remedy
            .as_deref()
            .unwrap()
            .starts_with("ping -I 10.0.3.1 10.0.1.2")
    );
    assert!(lines[3].meaning.contains("different algorithms"));
}
