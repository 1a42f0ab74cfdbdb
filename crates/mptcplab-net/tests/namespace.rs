//! Namespaces, devices, addresses and routes, checked by what the kernel does with them.

mod common;

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::thread;

use common::{PATIENCE, can_run, options, wait_for};
use mptcplab_net::address::Address;
use mptcplab_net::route::{Metrics, Route};
use mptcplab_net::socket::{self, Options, Transport};
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace, NetError, mptcp, userns};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 2);
const IP_AND_UDP_BYTES: usize = 28;

#[test]
fn a_namespace_is_new_quiet_and_without_a_name_in_the_file_system() {
    if !can_run("a_namespace_is_new_quiet_and_without_a_name_in_the_file_system") {
        return;
    }
    let (one, other) = (
        Namespace::new("one").unwrap(),
        Namespace::new("other").unwrap(),
    );
    let host = Namespace::current().unwrap();
    assert_ne!(one.cookie(), other.cookie());
    assert_ne!(one.inode(), other.inode());
    assert_ne!(one.cookie(), host.cookie());
    assert_eq!(
        std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino(),
        host.inode(),
        "the caller stayed"
    );
    let links = one.links().unwrap();
    assert_eq!(links.len(), 1, "{links:?}");
    assert!(links[0].name == "lo" && links[0].is_up && links[0].ifindex == LOOPBACK_IFINDEX);
    assert_eq!(
        one.read_sysctl("net.ipv6.conf.all.disable_ipv6").unwrap(),
        "1"
    );
    assert_eq!(
        one.read_sysctl("net.ipv6.conf.default.disable_ipv6")
            .unwrap(),
        "1"
    );
}

#[test]
fn tasks_and_threads_run_inside_and_their_panics_come_out() {
    if !can_run("tasks_and_threads_run_inside_and_their_panics_come_out") {
        return;
    }
    let namespace = Namespace::new("inside").unwrap();
    let inode = || std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
    assert_eq!(namespace.run(inode).unwrap(), namespace.inode());
    assert_eq!(
        namespace.spawn("worker", inode).unwrap().join().unwrap(),
        namespace.inode()
    );
    assert_ne!(inode(), namespace.inode());
    let name = || thread::current().name().map(String::from);
    assert_eq!(
        namespace
            .spawn("worker-7", name)
            .unwrap()
            .join()
            .unwrap()
            .as_deref(),
        Some("worker-7")
    );
    let outcome = thread::spawn(move || namespace.run(|| panic!("in the task"))).join();
    assert_eq!(
        outcome.unwrap_err().downcast_ref::<&str>(),
        Some(&"in the task")
    );
}

#[test]
fn sysctls_are_the_namespaces_own_and_errors_name_key_and_value() {
    if !can_run("sysctls_are_the_namespaces_own_and_errors_name_key_and_value") {
        return;
    }
    let (one, other) = (
        Namespace::new("one").unwrap(),
        Namespace::new("other").unwrap(),
    );
    let before = Namespace::current()
        .unwrap()
        .read_sysctl("net.ipv4.ip_forward")
        .unwrap();
    one.sysctl("net.ipv4.ip_forward", 1).unwrap();
    one.sysctl("net.ipv4.tcp_rmem", "4096 131072 33554432")
        .unwrap();
    assert_eq!(one.read_sysctl("net.ipv4.ip_forward").unwrap(), "1");
    assert_eq!(
        one.read_sysctl("net.ipv4.tcp_rmem").unwrap(),
        "4096\t131072\t33554432"
    );
    assert_eq!(one.tcp_counter("TCPMemoryPressures").unwrap(), Some(0));
    assert_eq!(one.tcp_counter("NoSuchCounter").unwrap(), None);
    other.sysctl("net.ipv4.ip_forward", 0).unwrap();
    assert_eq!(one.read_sysctl("net.ipv4.ip_forward").unwrap(), "1");
    assert_eq!(
        Namespace::current()
            .unwrap()
            .read_sysctl("net.ipv4.ip_forward")
            .unwrap(),
        before
    );
    let error = one
        .sysctl("net.ipv4.tcp_rmem", "many")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("net.ipv4.tcp_rmem=many") && error.contains("one"),
        "{error}"
    );
    let error = one.read_sysctl("net.ipv4.no_such_key").unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENOENT), "{error}");
    for key in ["kernel.panic", "net.ipv4./../../kernel/panic", "net..ipv4"] {
        assert!(
            matches!(one.sysctl(key, 1), Err(NetError::Invalid { .. })),
            "{key}"
        );
    }
    let error = one
        .sysctl("net.ipv4.tcp_congestion_control", "reno")
        .unwrap_err();
    assert!(error.to_string().contains("TCP_CONGESTION"), "{error}");
}

#[test]
fn packets_go_from_one_tun_device_to_the_other_whole_and_unsegmented() {
    if !can_tun("packets_go_from_one_tun_device_to_the_other_whole_and_unsegmented") {
        return;
    }
    let (near, far) = (
        Namespace::new("near").unwrap(),
        Namespace::new("far").unwrap(),
    );
    let out = near.tun("out", 1500, 1000).unwrap();
    let into = far.tun("into", 1400, 900).unwrap();
    assert_eq!(out.name, "out");
    let link = near
        .links()
        .unwrap()
        .into_iter()
        .find(|link| link.name == "out")
        .unwrap();
    assert_eq!(
        (
            link.ifindex,
            link.mtu_bytes,
            link.txqueuelen_pkts,
            link.is_up
        ),
        (out.ifindex, 1500, 1000, true)
    );
    near.add_address(LOOPBACK_IFINDEX, NEAR, 32).unwrap();
    far.add_address(into.ifindex, FAR, 32).unwrap();
    near.add_route(&Route {
        source: Some(NEAR),
        ..Route::host(FAR, out.ifindex)
    })
    .unwrap();
    far.add_route(&Route::host(NEAR, into.ifindex)).unwrap();

    let (sender, receiver) = (udp(&near, NEAR), udp(&far, FAR));
    let message: Vec<u8> = (0..1300).map(|index| (index % 251) as u8).collect();
    sender
        .send_to(&message, receiver.local_addr().unwrap())
        .unwrap();
    let (mut out_file, mut into_file) = (File::from(out.fd), File::from(into.fd));
    let packet = wait_for("the packet", || next_packet(&mut out_file));
    assert_eq!(packet.len(), message.len() + IP_AND_UDP_BYTES);
    assert_eq!(packet[12..16], NEAR.octets());
    assert_eq!(packet[16..20], FAR.octets());
    assert_eq!(next_packet(&mut out_file), None, "nothing else was sent");
    into_file.write_all(&packet).unwrap();
    let mut arrived = [0; 2000];
    let (length, from) = receiver.recv_from(&mut arrived).unwrap();
    assert_eq!(from, sender.local_addr().unwrap());
    assert_eq!(arrived[..length], message);
    assert_eq!(near.link_stats(out.ifindex).unwrap().tx_packets, 1);
    assert_eq!(
        far.link_stats(into.ifindex).unwrap().rx_bytes,
        packet.len() as u64
    );
}

#[test]
fn what_a_tun_device_cannot_queue_is_counted_as_dropped() {
    if !can_tun("what_a_tun_device_cannot_queue_is_counted_as_dropped") {
        return;
    }
    let namespace = Namespace::new("full").unwrap();
    let tun = namespace.tun("narrow", 1500, 3).unwrap();
    namespace.add_address(LOOPBACK_IFINDEX, NEAR, 32).unwrap();
    namespace.add_route(&Route::host(FAR, tun.ifindex)).unwrap();
    let sender = udp(&namespace, NEAR);
    for _ in 0..10 {
        sender.send_to(b"eleven byte", (FAR, 9)).unwrap();
    }
    assert_eq!(namespace.link_stats(tun.ifindex).unwrap().tx_dropped, 7);
    let mut file = File::from(tun.fd);
    let kept = std::iter::from_fn(|| next_packet(&mut file)).count();
    assert_eq!(kept, 3);
    drop(file);
    assert_eq!(
        namespace.links().unwrap().len(),
        1,
        "the device goes with its descriptor"
    );
}

#[test]
fn a_device_name_that_cannot_be_is_refused_before_the_kernel_is_asked() {
    if !can_tun("a_device_name_that_cannot_be_is_refused_before_the_kernel_is_asked") {
        return;
    }
    let namespace = Namespace::new("names").unwrap();
    for name in ["", "sixteen-letters-", "a/b", "tun%d", "a b"] {
        let error = namespace.tun(name, 1500, 100).unwrap_err();
        assert!(matches!(error, NetError::Invalid { .. }), "{name}: {error}");
    }
    let _taken = namespace.tun("fifteen-letters", 1500, 100).unwrap();
    let error = namespace.tun("fifteen-letters", 1500, 100).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EBUSY), "{error}");
    assert!(
        error.to_string().contains("fifteen-letters in names"),
        "{error}"
    );
}

#[test]
fn addresses_are_listed_as_they_were_added() {
    if !can_run("addresses_are_listed_as_they_were_added") {
        return;
    }
    let namespace = Namespace::new("addresses").unwrap();
    let lo = |ip, prefix_len| Address {
        ifindex: LOOPBACK_IFINDEX,
        ip,
        prefix_len,
    };
    let localhost = lo(Ipv4Addr::LOCALHOST, 8);
    assert_eq!(namespace.addresses().unwrap(), [localhost]);
    namespace.add_address(LOOPBACK_IFINDEX, FAR, 32).unwrap();
    namespace.add_address(LOOPBACK_IFINDEX, NEAR, 24).unwrap();
    assert_eq!(
        namespace.addresses().unwrap(),
        [lo(NEAR, 24), lo(FAR, 32), localhost]
    );
    assert_eq!(
        namespace.routes().unwrap(),
        [],
        "no route to the prefix comes with it"
    );
    let error = namespace
        .add_address(LOOPBACK_IFINDEX, FAR, 32)
        .unwrap_err();
    assert_eq!(error.errno(), Some(libc::EEXIST), "{error}");
    assert!(matches!(
        namespace.add_address(LOOPBACK_IFINDEX, FAR, 33),
        Err(NetError::Invalid { .. })
    ));
    namespace
        .delete_address(LOOPBACK_IFINDEX, NEAR, 24)
        .unwrap();
    assert_eq!(namespace.addresses().unwrap(), [lo(FAR, 32), localhost]);
    let error = namespace
        .delete_address(LOOPBACK_IFINDEX, NEAR, 24)
        .unwrap_err();
    assert_eq!(error.errno(), Some(libc::EADDRNOTAVAIL), "{error}");
}

#[test]
fn routes_are_listed_with_every_metric_that_they_were_added_with() {
    let Some((near, _far, devices)) =
        pair("routes_are_listed_with_every_metric_that_they_were_added_with")
    else {
        return;
    };
    let metrics = Metrics {
        mtu_bytes: Some(1401),
        mtu_is_locked: true,
        advmss_bytes: Some(1302),
        initcwnd_pkts: Some(13),
        cwnd_clamp_pkts: Some(214),
        ssthresh_pkts: Some(115),
        initrwnd_pkts: Some(16),
        quickack: true,
        ecn: true,
        rto_min_ms: Some(317),
    };
    let full = Route {
        source: Some(NEAR),
        metrics,
        ..Route::host(FAR, devices.0)
    };
    let plain = Route::host(Ipv4Addr::new(10, 9, 0, 3), devices.0);
    let routed = Route {
        destination: Ipv4Addr::new(10, 10, 0, 0),
        prefix_len: 16,
        gateway: Some(FAR),
        ..Route::host(FAR, devices.0)
    };
    near.add_route(&full).unwrap();
    near.add_route(&plain).unwrap();
    near.add_route(&routed).unwrap();
    assert_eq!(
        near.routes().unwrap(),
        [full.clone(), plain.clone(), routed.clone()]
    );
    assert_eq!(
        near.add_route(&plain).unwrap_err().errno(),
        Some(libc::EEXIST)
    );

    let changed = Metrics {
        mtu_bytes: Some(1200),
        ..Metrics::default()
    };
    near.replace_route(&Route {
        metrics: changed.clone(),
        ..full.clone()
    })
    .unwrap();
    assert_eq!(near.routes().unwrap()[0].metrics, changed);
    near.delete_route(FAR, 32).unwrap();
    assert_eq!(near.routes().unwrap(), [plain, routed]);
    assert_eq!(
        near.delete_route(FAR, 32).unwrap_err().errno(),
        Some(libc::ESRCH)
    );
}

#[test]
fn the_kernels_own_words_are_in_the_error() {
    let Some((near, _far, devices)) = pair("the_kernels_own_words_are_in_the_error") else {
        return;
    };
    let crooked = Route {
        prefix_len: 24,
        ..Route::host(FAR, devices.0)
    };
    let error = near.add_route(&crooked).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EINVAL));
    let NetError::Kernel {
        message: Some(message),
        ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert!(message.contains("prefix"), "{message}");
    let text = error.to_string();
    assert!(
        text.contains("10.8.0.2/24") && text.contains(message) && text.contains("in near"),
        "{text}"
    );
}

#[test]
fn tcp_takes_its_first_window_its_segments_and_ecn_from_the_route() {
    let name = "tcp_takes_its_first_window_its_segments_and_ecn_from_the_route";
    let Some((near, far, devices)) = pair(name) else {
        return;
    };
    let metrics = Metrics {
        mtu_bytes: Some(1210),
        initcwnd_pkts: Some(23),
        ecn: true,
        ..Metrics::default()
    };
    near.add_route(&Route {
        source: Some(NEAR),
        metrics,
        ..Route::host(FAR, devices.0)
    })
    .unwrap();
    let back = Metrics {
        initcwnd_pkts: Some(31),
        ecn: true,
        ..Metrics::default()
    };
    far.add_route(&Route {
        metrics: back,
        ..Route::host(NEAR, devices.1)
    })
    .unwrap();
    let (here, there) = (SocketAddrV4::new(NEAR, 4001), SocketAddrV4::new(FAR, 4002));
    let listener = far
        .run(|| socket::listen(Transport::Tcp, there, &options("reno")))
        .unwrap()
        .unwrap();
    let stream = near
        .run(|| socket::connect(Transport::Tcp, here, there, &options("reno"), PATIENCE))
        .unwrap()
        .unwrap();
    assert_eq!(
        stream.local_addr().unwrap(),
        here.into(),
        "bound to the source that was asked for"
    );
    let (accepted, _) = listener.accept().unwrap();
    let (ours, theirs) = (
        mptcp::tcp_info(&stream).unwrap(),
        mptcp::tcp_info(&accepted).unwrap(),
    );
    assert_eq!((ours.snd_cwnd_pkts, ours.snd_mss_bytes), (23, 1210 - 52));
    // The MSS that the client's SYN announced also limits the server's segments.
    assert_eq!(
        (theirs.snd_cwnd_pkts, theirs.snd_mss_bytes),
        (31, 1210 - 52)
    );
    const ECN: u8 = 8;
    assert_eq!((ours.options & ECN, theirs.options & ECN), (ECN, ECN));
    assert!(!ours.has_ssthresh());
}

#[test]
fn a_route_clamps_the_window_of_later_connections_to_its_destination() {
    let Some((near, far, devices)) =
        pair("a_route_clamps_the_window_of_later_connections_to_its_destination")
    else {
        return;
    };
    let metrics = Metrics {
        cwnd_clamp_pkts: Some(17),
        ssthresh_pkts: Some(12),
        ..Metrics::default()
    };
    near.sysctl("net.ipv4.tcp_no_ssthresh_metrics_save", 0)
        .unwrap();
    near.add_route(&Route {
        metrics,
        ..Route::host(FAR, devices.0)
    })
    .unwrap();
    far.add_route(&Route::host(NEAR, devices.1)).unwrap();
    let transfer = || {
        let (here, there) = (SocketAddrV4::new(NEAR, 0), SocketAddrV4::new(FAR, 4003));
        let reno = Options {
            congestion: Some("reno".into()),
            ..Options::default()
        };
        let listener = far
            .run(|| socket::listen(Transport::Tcp, there, &reno))
            .unwrap()
            .unwrap();
        let connect = || socket::connect(Transport::Tcp, here, there, &reno, PATIENCE);
        let mut stream = near.run(connect).unwrap().unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let first = mptcp::tcp_info(&stream).unwrap();
        let payload = vec![5; 3_000_000];
        thread::scope(|scope| {
            scope.spawn(|| stream.write_all(&payload).unwrap());
            accepted.read_exact(&mut vec![0; payload.len()]).unwrap();
        });
        let last = mptcp::tcp_info(&stream).unwrap();
        // The connection is closed in order and not reset, so that the kernel remembers the destination.
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(accepted.read(&mut [0]).unwrap(), 0);
        drop(accepted);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        (first, last)
    };
    transfer();
    let (first, last) = transfer();
    assert_eq!((first.snd_ssthresh_pkts, last.snd_cwnd_pkts), (12, 17));
}

#[test]
fn a_veth_pair_joins_two_namespaces_until_it_is_removed() {
    let Some((near, far, devices)) = pair("a_veth_pair_joins_two_namespaces_until_it_is_removed")
    else {
        return;
    };
    near.add_route(&Route::host(FAR, devices.0)).unwrap();
    far.add_route(&Route::host(NEAR, devices.1)).unwrap();
    let (one, other) = (udp(&near, NEAR), udp(&far, FAR));
    one.send_to(b"ping", other.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 10];
    assert_eq!(
        other.recv_from(&mut buffer).unwrap(),
        (4, one.local_addr().unwrap())
    );
    near.set_link_up(devices.0, false).unwrap();
    assert!(!near.links().unwrap()[1].is_up);
    assert_eq!(near.routes().unwrap(), [], "routes go with the device");
    let error = near.add_route(&Route::host(FAR, devices.0)).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENETDOWN), "{error}");
    near.set_link_up(devices.0, true).unwrap();
    near.delete_link(devices.0).unwrap();
    assert_eq!(
        (near.links().unwrap().len(), far.links().unwrap().len()),
        (1, 1),
        "both ends are gone"
    );
    assert_eq!(
        near.link_stats(devices.0).unwrap_err().errno(),
        Some(libc::ENODEV)
    );
}

#[test]
fn a_buffer_that_the_machine_does_not_grant_is_refused() {
    if !can_run("a_buffer_that_the_machine_does_not_grant_is_refused") {
        return;
    }
    let namespace = Namespace::new("buffers").unwrap();
    let listen = |options: Options| {
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        namespace
            .run(move || socket::listen(Transport::Mptcp, at, &options))
            .unwrap()
    };
    let small = Options {
        send_buffer_bytes: Some(50_000),
        receive_buffer_bytes: Some(60_000),
        ..Options::default()
    };
    listen(small).unwrap();
    let error = listen(Options {
        send_buffer_bytes: Some(1 << 30),
        ..Options::default()
    })
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("1073741824") && error.contains("net.core.wmem_max"),
        "{error}"
    );
    let error = listen(Options {
        receive_buffer_bytes: Some(1 << 30),
        ..Options::default()
    })
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("net.core.rmem_max") && error.contains("net.ipv4.tcp_rmem"),
        "{error}"
    );
}

#[test]
fn the_inodes_of_a_process_name_its_sockets_in_the_dump() {
    if !can_run("the_inodes_of_a_process_name_its_sockets_in_the_dump") {
        return;
    }
    let namespace = Namespace::new("inodes").unwrap();
    let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4004);
    let _listener = namespace
        .run(|| socket::listen(Transport::Tcp, at, &options("reno")))
        .unwrap()
        .unwrap();
    let sockets = namespace.tcp_sockets().unwrap();
    assert_eq!(sockets.len(), 1, "{sockets:?}");
    assert_eq!((sockets[0].local, sockets[0].remote.port()), (at.into(), 0));
    assert_eq!(sockets[0].state, mptcplab_net::TcpState::Listen);
    let ours = mptcplab_net::diag::socket_inodes(std::process::id()).unwrap();
    assert!(
        ours.contains(&sockets[0].inode),
        "{} in {ours:?}",
        sockets[0].inode
    );
    let error = mptcplab_net::diag::socket_inodes(u32::MAX).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENOENT), "{error}");
    assert!(error.hint().unwrap().contains("running process"));
}

#[test]
fn a_connection_that_nobody_answers_ends_in_time() {
    if !can_tun("a_connection_that_nobody_answers_ends_in_time") {
        return;
    }
    let namespace = Namespace::new("silence").unwrap();
    let tun = namespace.tun("hole", 1500, 100).unwrap();
    namespace.add_address(LOOPBACK_IFINDEX, NEAR, 32).unwrap();
    namespace.add_route(&Route::host(FAR, tun.ifindex)).unwrap();
    let (here, there) = (SocketAddrV4::new(NEAR, 0), SocketAddrV4::new(FAR, 1));
    let patience = std::time::Duration::from_millis(50);
    let connect = || socket::connect(Transport::Mptcp, here, there, &options("reno"), patience);
    let error = namespace.run(connect).unwrap().unwrap_err();
    assert_eq!(error.errno(), Some(libc::ETIMEDOUT), "{error}");
    assert!(error.to_string().contains("10.8.0.2:1"), "{error}");
}

#[test]
fn a_process_with_threads_is_told_that_it_cannot_enter_a_user_namespace() {
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let other = thread::spawn(move || wait.recv().is_err());
    let error = userns::enter().unwrap_err();
    assert!(
        error.hint().unwrap().contains("single thread"),
        "{error}: {:?}",
        error.hint()
    );
    drop(stop);
    assert!(other.join().unwrap());
}

#[test]
fn all_of_this_works_without_privileges_over_the_host() {
    common::run_all_in_a_user_namespace("all_of_this_works_without_privileges_over_the_host");
}

/// Two namespaces with a veth pair between them and an address each, and the indices of the devices.
fn pair(test: &str) -> Option<(Namespace, Namespace, (u32, u32))> {
    if !can_run(test) {
        return None;
    }
    let (near, far) = (
        Namespace::new("near").unwrap(),
        Namespace::new("far").unwrap(),
    );
    let devices = near.veth("v-near", &far, "v-far", 1500).unwrap();
    near.add_address(devices.0, NEAR, 32).unwrap();
    far.add_address(devices.1, FAR, 32).unwrap();
    // For the route with a gateway, which must be reachable.
    Some((near, far, devices))
}

fn can_tun(test: &str) -> bool {
    can_run(test)
        && match Namespace::new("probe").unwrap().tun("probe", 1500, 10) {
            Ok(_) => true,
            Err(error) => {
                common::skipped(test, &format!("{error}; {}", error.hint().unwrap_or("")));
                false
            }
        }
}

fn udp(namespace: &Namespace, ip: Ipv4Addr) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind((ip, 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The next packet that waits at a TUN device.
fn next_packet(file: &mut File) -> Option<Vec<u8>> {
    let mut packet = vec![0; 70_000];
    match file.read(&mut packet) {
        Ok(length) => {
            packet.truncate(length);
            Some(packet)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}
