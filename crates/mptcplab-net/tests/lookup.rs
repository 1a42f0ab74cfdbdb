//! Route lookup, in cases where a socket bound to a device would not report an error.

mod common;

use std::net::Ipv4Addr;

use common::can_run;
use mptcplab_net::Namespace;
use mptcplab_net::route::Route;

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
    let errno = |destination, device| {
        let found = namespace.lookup_route(SOURCE, destination, device);
        found.err().and_then(|error| error.errno())
    };
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
    assert!(namespace.lookup_route(foreign, NEIGHBOUR, None).is_err());
}
