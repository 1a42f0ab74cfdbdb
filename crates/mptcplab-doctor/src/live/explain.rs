//! Turns a connection and the facts about the host into findings: what the subflows run, and why an expected subflow is
//! missing.

use super::connection::{Connection, Role, Subflow};
use super::host::{Address, Host};
use crate::checks::couples;
use crate::command;
use crate::facts::Endpoint;
use crate::finding::Finding;
use crate::limits;
use mptcplab_cc::MAX_SUBFLOWS;
use std::net::IpAddr;

/// The findings about one connection.
pub(super) fn explain(connection: &Connection, host: &Host) -> Vec<Finding> {
    let area = heading(connection);
    if connection.fallback {
        return vec![fallback(&area, connection, host)];
    }
    let mut lines: Vec<Finding> = connection
        .subflows
        .iter()
        .map(|subflow| present(&area, subflow, connection))
        .collect();
    lines.extend(coupling(&area, connection, host));
    lines.extend(absent(&area, connection, host));
    lines
}

fn heading(connection: &Connection) -> String {
    let role = match connection.role {
        Role::Client => "client",
        Role::Server => "server",
    };
    let token = connection
        .token
        .map(|token| format!(", token {token:08x}"))
        .unwrap_or_default();
    format!(
        "Connection {} -> {} ({role}{token})",
        connection.local, connection.remote
    )
}

fn fallback(area: &str, connection: &Connection, host: &Host) -> Finding {
    let runs = connection
        .subflows
        .first()
        .map_or("unknown", |subflow| subflow.congestion.as_str());
    let causes = host.counters.fallbacks();
    let why = if causes.is_empty() {
        "this host's counters show no cause".into()
    } else {
        format!(
            "this host's counters since it started show: {}",
            causes.join("; ")
        )
    };
    Finding::ok(
        area.to_owned(),
        "fallback",
        format!("plain TCP, runs {runs}"),
        why,
    )
    .missing("ss -tniM; nstat -az 'MPTcpExt*'    # also on the peer: does it use an MPTCP socket?")
}

fn present(area: &str, subflow: &Subflow, connection: &Connection) -> Finding {
    let found = format!(
        "{} -> {} runs {}",
        subflow.local, subflow.remote, subflow.congestion
    );
    let line = Finding::ok(area.to_owned(), "subflow", found, details(subflow));
    let first = connection.subflows.first().map(|first| &first.congestion);
    if subflow.timeouts_in_a_row.unwrap_or(0) > 0 {
        return line.warn(format!(
            "ping -I {} {}    # this path does not answer at present",
            subflow.local.ip(),
            subflow.remote.ip()
        ));
    }
    if subflow.state != "Established" || Some(&subflow.congestion) != first {
        return line.warn_without_remedy();
    }
    line
}

fn details(subflow: &Subflow) -> String {
    let mut parts = vec![format!("ids {}/{}", subflow.id_local, subflow.id_remote)];
    if subflow.state != "Established" {
        parts.push(format!("state {}", subflow.state));
    } else if !subflow.fully_established {
        parts.push("the peer has not confirmed it yet".into());
    }
    match (subflow.backup_local, subflow.backup_remote) {
        (true, true) => parts.push("backup for both".into()),
        (true, false) => parts.push("backup for this host".into()),
        (false, true) => parts.push("backup for the peer".into()),
        (false, false) => {}
    }
    if let Some(timeouts @ 1..) = subflow.timeouts_in_a_row {
        parts.push(format!("{timeouts} timeouts in a row"));
    }
    if let Some(cwnd) = subflow.cwnd_pkts {
        let ssthresh = subflow
            .ssthresh_pkts
            .map_or("no ssthresh yet".into(), |pkts| format!("ssthresh {pkts}"));
        parts.push(format!("cwnd {cwnd} packets, {ssthresh}"));
    }
    if let Some(srtt) = subflow.srtt_us {
        parts.push(format!("srtt {:.2} ms", f64::from(srtt) / 1000.0));
    }
    if let Some(bytes) = subflow.bytes_acked {
        let plural = if bytes == 1 { "" } else { "s" };
        parts.push(format!("{bytes} byte{plural} acknowledged"));
    }
    if let Some(packets) = subflow.retransmitted_pkts {
        let plural = if packets == 1 { "" } else { "s" };
        parts.push(format!("{packets} packet{plural} retransmitted"));
    }
    parts.join(", ")
}

/// Whether the subflows are coupled, if there are several.
fn coupling(area: &str, connection: &Connection, host: &Host) -> Option<Finding> {
    if connection.subflows.len() < 2 {
        return None;
    }
    let mut names: Vec<&str> = connection
        .subflows
        .iter()
        .map(|s| s.congestion.as_str())
        .collect();
    names.dedup();
    let line = |meaning: &str| Finding::ok(area.to_owned(), "coupling", names.join(", "), meaning);
    Some(match names.as_slice() {
        [name] if couples(name) && host.older_loads.iter().any(|older| older == name) => line(
            "sockets of this network namespace run an earlier load of it, which is not coupled with the present one; \
             subflows that were opened before and after the last load are not coupled with each other",
        )
        .warn(format!(
            "{} cc list    # counts the sockets that use the present one; new connections do",
            command::name()
        )),
        [name] if couples(name) && connection.subflows.len() > MAX_SUBFLOWS => line(&format!(
            "only {MAX_SUBFLOWS} of the {} subflows are coupled; each of the others takes the share of a whole connection, \
             even at a shared bottleneck",
            connection.subflows.len()
        ))
        .warn(limits::lower_on_both()),
        [name] if couples(name) && host.uncoupled.contains_key(*name) => line(&format!(
            "coupled, except for subflows that found no place in the table: {} of all connections since it was loaded, \
             of which this connection may have some",
            host.uncoupled.get(*name).copied().unwrap_or(0)
        ))
        .warn(format!(
            "{} cc list    # counts them; a larger --connections of `cc load` makes room",
            command::name()
        )),
        [name] if couples(name) => line(
            "coupled: at a shared bottleneck the subflows together take the share of one connection",
        ),
        [_] => line(
            "uncoupled: each subflow takes the share of a whole connection, even at a shared bottleneck",
        ),
        _ => line(
            "the subflows run different algorithms; a coupled one only considers subflows that run it",
        )
        .warn_without_remedy(),
    })
}

/// A finding for each missing subflow, or one that explains why there can be none.
fn absent(area: &str, connection: &Connection, host: &Host) -> Vec<Finding> {
    let line = |found: &str, meaning: String| {
        Finding::ok(area.to_owned(), "absent", found.to_owned(), meaning)
    };
    if host.userspace {
        let all = connection.subflows.len();
        return match all {
            0 | 1 => vec![
                line(
                    "more subflows",
                    "the path manager is in user space (net.mptcp.pm_type), so only its daemon opens subflows".into(),
                )
                .missing("systemctl status mptcp    # the service of mptcpd; or: sysctl -w net.mptcp.pm_type=0"),
            ],
            _ => Vec::new(),
        };
    }
    if connection.role == Role::Server {
        return on_server(area, connection, host).into_iter().collect();
    }
    // The kernel opens no subflow from an address of another version of IP than the peer's.
    let fits = |endpoint: &Endpoint| endpoint.address.is_ipv4() == connection.remote.is_ipv4();
    let opening = || host.paths.endpoints.iter().filter(|one| opens(one));
    let has_others = connection.subflows.len() > 1
        || opening().any(fits)
        || !spare_addresses(connection, host).is_empty();
    let unused: Vec<&Endpoint> = opening()
        .filter(|one| fits(one) || !has_others)
        .filter(|one| !starts_from(connection, one.address))
        .collect();
    if !unused.is_empty() {
        return unused
            .into_iter()
            .map(|endpoint| from_endpoint(area, endpoint, connection, host))
            .collect();
    }
    if connection.subflows.len() < 2 {
        return vec![without_endpoints(area, connection, host)];
    }
    Vec::new()
}

fn opens(endpoint: &Endpoint) -> bool {
    endpoint.flags.contains(&"subflow") || endpoint.flags.contains(&"fullmesh")
}

/// The addresses of this host from which the peer could be reached and no subflow starts.
fn spare_addresses<'a>(connection: &Connection, host: &'a Host) -> Vec<&'a Address> {
    host.addresses
        .iter()
        .filter(|a| a.is_up && a.ip.is_ipv4() == connection.remote.is_ipv4())
        .filter(|a| !starts_from(connection, a.ip))
        .collect()
}

fn starts_from(connection: &Connection, ip: IpAddr) -> bool {
    connection
        .subflows
        .iter()
        .any(|subflow| subflow.local.ip() == ip)
}

fn is_full(connection: &Connection, host: &Host) -> bool {
    let extra = connection
        .extra_subflows
        .map_or(connection.subflows.len().saturating_sub(1), usize::from);
    extra as u32 >= host.paths.subflows
}

fn from_endpoint(area: &str, endpoint: &Endpoint, connection: &Connection, host: &Host) -> Finding {
    let device = endpoint
        .device
        .as_ref()
        .map(|device| format!(" on {device}"))
        .unwrap_or_default();
    let found = format!(
        "from {}{device} (endpoint {})",
        endpoint.address, endpoint.id
    );
    let line = |meaning: String| Finding::ok(area.to_owned(), "absent", found.clone(), meaning);
    let again = format!(
        "ip mptcp endpoint delete id {id} && ip mptcp endpoint add {}{} {}    # makes the kernel try again",
        endpoint.address,
        endpoint
            .device
            .as_ref()
            .map(|d| format!(" dev {d}"))
            .unwrap_or_default(),
        endpoint.flags.join(" "),
        id = endpoint.id,
    );
    // First, because nothing else helps where the limit is reached, and the kernel has not even tried the rest.
    if is_full(connection, host) {
        let limit = match host.paths.subflows {
            1 => "1 subflow".to_owned(),
            many => format!("{many} subflows"),
        };
        let reached = format!("the limit of {limit} beyond the first is reached");
        return if host.paths.subflows < limits::COUPLED {
            line(reached).missing(limits::raise_on_both())
        } else {
            line(format!(
                "{reached}, and an algorithm couples no more than {} of them",
                limits::COUPLED
            ))
        };
    }
    let Some(address) = host.addresses.iter().find(|a| a.ip == endpoint.address) else {
        return line("no device of this host has that address".into()).missing(format!(
            "ip address add {}/PREFIX dev {}",
            endpoint.address,
            endpoint.device.as_deref().unwrap_or("DEVICE")
        ));
    };
    if !address.is_up {
        return line(format!(
            "its device {} is down or has no link",
            address.device
        ))
        .missing(format!("ip link set {} up", address.device));
    }
    if let Some(errno) = host
        .no_route
        .get(&(endpoint.address, connection.remote.ip()))
    {
        return line(format!(
            "there is no route from it to {} ({})",
            connection.remote.ip(),
            nix::errno::Errno::from_raw(*errno).desc()
        ))
        .missing(format!(
            "ip{v6} rule add from {ip} table 10{id} && ip{v6} route add default via GATEWAY dev {dev} table 10{id}",
            v6 = if endpoint.address.is_ipv6() { " -6" } else { "" },
            ip = endpoint.address,
            id = endpoint.id,
            dev = address.device
        ));
    }
    if endpoint.address.is_ipv4() != connection.remote.is_ipv4() {
        return line(format!(
            "the only known address of the peer, {}, belongs to another version of IP",
            connection.remote.ip()
        ))
        .missing(
            "ip mptcp endpoint add ADDRESS signal    # on the peer, with an address of that version",
        );
    }
    line(from_counters(host)).missing(again)
}

/// The explanation from the counters if this host's configuration is not the cause.
fn from_counters(host: &Host) -> String {
    let counters = &host.counters;
    let (sent, answered) = (counters.get("MPJoinSynTx"), counters.get("MPJoinSynAckRx"));
    let errors: Vec<String> = [
        "MPJoinSynTxCreatSkErr",
        "MPJoinSynTxBindErr",
        "MPJoinSynTxConnectErr",
        "MPJoinSynAckHMacFailure",
        "MPRstRx",
    ]
    .into_iter()
    .filter(|name| counters.get(name) > 0)
    .map(|name| format!("{name} = {}", counters.get(name)))
    .collect();
    let mut text = if sent > answered {
        format!(
            "of {sent} joins sent from this host {answered} were answered: the peer's own limit of subflows may be \
             reached, or a middlebox removes MPTCP options"
        )
    } else {
        "nothing on this host prevents it: the endpoint may have been added after the connection was opened, or its \
         subflow was closed, which the kernel does not open again, or the peer refused it: on the peer, check \
         `ip mptcp limits` and MPJoinRejected in `nstat -az`"
            .into()
    };
    if !errors.is_empty() {
        text = format!("{text} ({})", errors.join(", "));
    }
    text
}

/// A client with one subflow and no endpoint that would open another.
fn without_endpoints(area: &str, connection: &Connection, host: &Host) -> Finding {
    let line =
        |meaning: String| Finding::ok(area.to_owned(), "absent", "a second subflow", meaning);
    if host.paths.subflows == 0 {
        return line("the limit of subflows beyond the first is 0".into())
            .missing(limits::raise_on_both());
    }
    let others = spare_addresses(connection, host);
    if !others.is_empty() {
        let commands: Vec<String> = others
            .iter()
            .map(|a| format!("ip mptcp endpoint add {} dev {} subflow", a.ip, a.device))
            .collect();
        return line("this host has other addresses, but no endpoint with the flag `subflow`, which would open subflows from them".into())
            .missing(commands.join("\n"));
    }
    let announced = host.counters.get("AddAddr");
    if announced > 0 && host.paths.add_addr_accepted == 0 {
        return line(
            "peers have announced addresses, but the limit of accepted addresses (add_addr_accepted) is 0".into(),
        )
        .missing(limits::raise_on_both());
    }
    line(format!(
        "this host has only one address, and {}",
        if announced == 0 {
            "the peer has announced none"
        } else {
            "the addresses that peers announced led to no subflow"
        }
    ))
    .missing(
        "ip address add ADDRESS/PREFIX dev DEVICE && ip mptcp endpoint add ADDRESS dev DEVICE subflow\n\
         ip mptcp endpoint add ADDRESS signal    # or this on the peer, so that it announces another address",
    )
}

/// A server does not open subflows to its clients' other addresses; it can only announce its own addresses.
fn on_server(area: &str, connection: &Connection, host: &Host) -> Option<Finding> {
    if connection.subflows.len() > 1 {
        return None;
    }
    let line =
        |meaning: String| Finding::ok(area.to_owned(), "absent", "a second subflow", meaning);
    if host.paths.subflows == 0 {
        return Some(
            line("this host's limit of subflows beyond the first is 0, so it refuses joins".into())
                .missing(limits::raise_on_both()),
        );
    }
    let rejected = host.counters.get("MPJoinRejected");
    if rejected > 0 {
        let found = line(format!(
            "this host has rejected joins (MPJoinRejected = {rejected})"
        ));
        return Some(if host.paths.subflows < limits::COUPLED {
            found.missing(limits::raise_on_both())
        } else {
            found.warn_without_remedy()
        });
    }
    let announced = host
        .paths
        .endpoints
        .iter()
        .filter(|e| e.flags.contains(&"signal"))
        .count();
    let tried = host.counters.get("MPJoinSynRx");
    let meaning = if tried > 0 {
        format!(
            "{tried} joins have reached this host since it started, but none of them belongs to this connection now"
        )
    } else if announced == 0 {
        "the client has opened none, and this host announces no addresses".into()
    } else {
        format!(
            "the client has opened none to the {announced} addresses that this host announces; its own limits may prevent it"
        )
    };
    Some(line(meaning).missing(format!(
        "sudo {} doctor --pid PID    # on the client, which opens the subflows\n\
         ip mptcp endpoint add ADDRESS signal    # announces a further address of this host",
        command::name()
    )))
}

#[cfg(test)]
mod tests {
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
}
