//! Turns a connection and the facts about the host into findings: what the subflows run, and why an expected subflow is
//! missing.

use super::connection::{Connection, Role, Subflow};
use super::host::{Address, Host, is_reachable};
use crate::checks::{Coupling, coupling_of};
use crate::command;
use crate::defaults::quoted;
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
        .map(|subflow| present(&area, subflow, connection, host))
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

fn present(area: &str, subflow: &Subflow, connection: &Connection, host: &Host) -> Finding {
    let found = format!(
        "{} -> {} runs {}",
        subflow.local, subflow.remote, subflow.congestion
    );
    let line = Finding::ok(area.to_owned(), "subflow", found, details(subflow));
    let first = connection.subflows.first().map(|first| &first.congestion);
    // Before the silence that follows from it; a subflow that has nothing to send is not even silent.
    if let Some((what, remedy)) = without_device(subflow.local.ip().to_canonical(), host) {
        let meaning = format!("{what}; {}", line.meaning);
        return Finding { meaning, ..line }.warn(remedy);
    }
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

/// Why nothing can leave from an address of this host, and what helps; `None` if something can.
fn without_device(ip: IpAddr, host: &Host) -> Option<(String, String)> {
    if !is_reachable(ip) {
        return None;
    }
    let is_endpoint = || host.paths.endpoints.iter().any(|one| one.address == ip);
    match host.addresses.iter().find(|address| address.ip == ip) {
        // A transparent proxy has sockets with the addresses of others, but no endpoints.
        None if is_endpoint() => Some((
            "no device of this host has its address any more".into(),
            format!("ip address add {ip}/PREFIX dev DEVICE"),
        )),
        Some(address) if !address.is_up => Some((
            format!("its device {} is down or has no link", address.device),
            format!("ip link set {} up", quoted(&address.device)),
        )),
        _ => None,
    }
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
    let is_coupled = |name: &str| coupling_of(name) == Coupling::Coupled;
    Some(match names.as_slice() {
        [name] if is_coupled(name) && host.older_loads.iter().any(|older| older == name) => line(
            "sockets of this network namespace run an earlier load of it, which is not coupled with the present one; \
             subflows that were opened before and after the last load are not coupled with each other",
        )
        .warn(format!(
            "{} cc list    # counts the sockets that use the present one; new connections do",
            command::name()
        )),
        [name] if is_coupled(name) && connection.subflows.len() > MAX_SUBFLOWS => line(&format!(
            "only {MAX_SUBFLOWS} of the {} subflows are coupled; each of the others takes the share of a whole connection, \
             even at a shared bottleneck",
            connection.subflows.len()
        ))
        .warn(limits::lower_on_both()),
        [name] if is_coupled(name) && host.uncoupled.contains_key(*name) => line(&format!(
            "coupled, except for subflows that found no place in the table: {} of all connections since it was loaded, \
             of which this connection may have some",
            host.uncoupled.get(*name).copied().unwrap_or(0)
        ))
        .warn(format!(
            "{} cc list    # counts them; a larger --connections of `cc load` makes room",
            command::name()
        )),
        [name] if is_coupled(name) => line(
            "coupled: at a shared bottleneck the subflows together take the share of one connection",
        ),
        [name] if coupling_of(name) == Coupling::Unknown => line(
            "not an algorithm of this program, but one from a C file or from another version: whether it couples the \
             subflows is not known",
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
            .map(|d| format!(" dev {}", quoted(d)))
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
            quoted(endpoint.device.as_deref().unwrap_or("DEVICE"))
        ));
    };
    if !address.is_up {
        return line(format!(
            "its device {} is down or has no link",
            address.device
        ))
        .missing(format!("ip link set {} up", quoted(&address.device)));
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
            dev = quoted(&address.device)
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
            .map(|a| {
                format!(
                    "ip mptcp endpoint add {} dev {} subflow",
                    a.ip,
                    quoted(&a.device)
                )
            })
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
mod tests;
