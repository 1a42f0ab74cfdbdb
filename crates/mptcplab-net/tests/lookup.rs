//! Route lookup, in cases where a socket bound to a device would not report an error.

mod common;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use common::can_run;
use mptcplab_net::route::Route;
use mptcplab_net::{Namespace, NetError};

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 2);
const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 3);

#[test]
fn only_an_entry_of_the_tables_is_a_way() {
    if !can_run("only_an_entry_of_the_tables_is_a_way") {
        return;
    }
    let namespace = Namespace::new("lookup").unwrap();
    let one = namespace.tun("one", 1500, 100).unwrap();
    let other = namespace.tun("other", 1500, 100).unwrap();
    namespace.add_address(one.ifindex, SOURCE, 32).unwrap();
    namespace
        .add_route(&Route::host(NEIGHBOUR, one.ifindex))
        .unwrap();
    let errno =
        |destination, device| errno_of(&namespace, SOURCE.into(), IpAddr::V4(destination), device);
    assert_eq!(errno(NEIGHBOUR, None), None);
    assert_eq!(errno(NEIGHBOUR, Some(one.ifindex)), None);
    // A socket bound to the device would send its packets in these cases, although nobody receives them.
    assert_eq!(
        errno(NEIGHBOUR, Some(other.ifindex)),
        Some(libc::EHOSTUNREACH)
    );
    assert_eq!(errno(STRANGER, Some(one.ifindex)), Some(libc::EHOSTUNREACH));
    assert_eq!(errno(STRANGER, None), Some(libc::ENETUNREACH));
    let foreign = Ipv4Addr::new(192, 0, 2, 9);
    let found = namespace.lookup_route(foreign.into(), NEIGHBOUR.into(), None);
    assert!(found.is_err());
}

const SOURCE6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 1);
const NEIGHBOUR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 8, 0, 0, 0, 0, 2);
const BEHIND_BOTH6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 3);
const FORBIDDEN6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 10, 0, 0, 0, 0, 4);
const LOST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 11, 0, 0, 0, 0, 5);

#[test]
fn only_an_entry_of_the_tables_of_ipv6_is_a_way() {
    if !can_run("only_an_entry_of_the_tables_of_ipv6_is_a_way")
        || !std::path::Path::new("/proc/net/if_inet6").exists()
    {
        return;
    }
    let namespace = Namespace::new("lookup6").unwrap();
    for which in ["all", "default"] {
        let switch = format!("net.ipv6.conf.{which}.disable_ipv6");
        namespace.sysctl(&switch, 0).unwrap();
    }
    let one = namespace.tun("one", 1500, 100).unwrap();
    let other = namespace.tun("other", 1500, 100).unwrap();
    let commands = [
        format!("address add {SOURCE6}/128 dev one nodad"),
        format!("route add {NEIGHBOUR6} dev one"),
        // The better one is over the other device.
        format!("route add {BEHIND_BOTH6} dev one metric 200"),
        format!("route add {BEHIND_BOTH6} dev other metric 100"),
        format!("route add prohibit {FORBIDDEN6}"),
        format!("route add unreachable {LOST6}"),
    ];
    for command in commands {
        let words = command.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let ip = move || Command::new("ip").arg("-6").args(words).status();
        assert!(namespace.run(ip).unwrap().unwrap().success(), "{command}");
    }
    let errno = |destination: Ipv6Addr, device| {
        errno_of(&namespace, SOURCE6.into(), destination.into(), device)
    };
    assert_eq!(errno(NEIGHBOUR6, None), None);
    assert_eq!(errno(NEIGHBOUR6, Some(one.ifindex)), None);
    assert_eq!(
        errno(NEIGHBOUR6, Some(other.ifindex)),
        Some(libc::ENETUNREACH)
    );
    assert_eq!(errno(BEHIND_BOTH6, Some(one.ifindex)), None);
    assert_eq!(errno(BEHIND_BOTH6, Some(other.ifindex)), None);
    assert_eq!(errno(FORBIDDEN6, None), Some(libc::EACCES));
    assert_eq!(errno(LOST6, None), Some(libc::EHOSTUNREACH));
    let mixed = namespace.lookup_route(SOURCE.into(), NEIGHBOUR6.into(), None);
    assert!(matches!(mixed, Err(NetError::Invalid { .. })), "{mixed:?}");
}

fn errno_of(
    namespace: &Namespace,
    source: IpAddr,
    destination: IpAddr,
    device: Option<u32>,
) -> Option<i32> {
    let found = namespace.lookup_route(source, destination, device);
    found.err().and_then(|error| error.errno())
}
