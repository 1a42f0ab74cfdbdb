//! Nothing is left behind, neither when the owner drops everything nor when it is killed in the middle of a transfer.
//!
//! The tests keep a namespace, `observer`, with one end of a veth pair whose other end is in the namespace that has to
//! disappear. The pair disappears exactly when the kernel destroys that namespace.

mod common;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{Connection, Hosts, PLANS, can_run, local_address, target, wait_for};
use mptcplab_net::mptcp::{self, PathManager};
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace, Tun};

/// Set for the process that is killed. The test that this process runs does nothing without it.
const VICTIM: &str = "MPTCPLAB_NET_TEST_VICTIM";

#[test]
fn nothing_is_left_when_everything_is_dropped() {
    if !can_run("nothing_is_left_when_everything_is_dropped") {
        return;
    }
    let observer = Namespace::new("observer").unwrap();
    let lives = Lives::new(&observer);
    assert_eq!(names(&observer), ["lo", "w-client", "w-server"]);
    drop(lives);
    wait_for("the namespaces to go", || {
        (names(&observer) == ["lo"]).then_some(())
    });
}

#[test]
fn a_namespace_lives_as_long_as_something_of_it_does() {
    if !can_run("a_namespace_lives_as_long_as_something_of_it_does") {
        return;
    }
    let observer = Namespace::new("observer").unwrap();
    let namespace = Namespace::new("kept").unwrap();
    observer.veth("w-kept", &namespace, "kept", 1500).unwrap();
    let manager = PathManager::new(&namespace).unwrap();
    let clone = namespace.clone();
    drop(namespace);
    assert_eq!(clone.links().unwrap().len(), 2);
    drop(clone);
    assert_eq!(manager.endpoints().unwrap(), []);
    // The kernel destroys namespaces with a delay, within which it would have begun.
    thread::sleep(Duration::from_millis(200));
    assert_eq!(names(&observer), ["lo", "w-kept"]);
    drop(manager);
    wait_for("the namespace to go", || {
        (names(&observer) == ["lo"]).then_some(())
    });
}

#[test]
fn nothing_is_left_when_the_process_is_killed_during_a_transfer() {
    if !can_run("nothing_is_left_when_the_process_is_killed_during_a_transfer") {
        return;
    }
    for pause_ms in [0, 7, 61] {
        let observer = Namespace::new("observer").unwrap();
        let mut victim = start_victim(&observer);
        wait_for_line(&mut victim, "transferring");
        assert_eq!(names(&observer), ["lo", "w-client", "w-server"]);
        thread::sleep(Duration::from_millis(pause_ms));
        victim.kill().unwrap();
        assert_eq!(
            victim.wait().unwrap().signal(),
            Some(libc::SIGKILL),
            "it lived until then"
        );
        wait_for("the namespaces to go", || {
            (names(&observer) == ["lo"]).then_some(())
        });
    }
}

/// The process that is killed. It starts inside the observer's namespace.
#[test]
fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let Lives {
        connection,
        tun: _tun,
        ..
    } = &Lives::new(&Namespace::current().unwrap());
    let Connection { client, server, .. } = connection;
    thread::scope(|scope| {
        scope.spawn(|| transfer(client));
        let (mut server, mut buffer) = (server, vec![0; 1 << 16]);
        server.read_exact(&mut buffer).unwrap();
        println!("transferring");
        while let Ok(1..) = server.read(&mut buffer) {}
    });
}

#[test]
fn all_of_this_works_without_privileges_over_the_host() {
    common::run_all_in_a_user_namespace("all_of_this_works_without_privileges_over_the_host");
}

/// All kinds of objects that this crate creates, in namespaces that a veth pair ties to the observer.
struct Lives {
    _hosts: Hosts,
    connection: Connection,
    _paths: PathManager,
    tun: Option<Tun>,
}

impl Lives {
    fn new(observer: &Namespace) -> Self {
        let hosts = Hosts::new();
        observer
            .veth("w-client", &hosts.client, "observer", 1500)
            .unwrap();
        observer
            .veth("w-server", &hosts.server, "observer", 1500)
            .unwrap();
        let mut connection = hosts.connect("reno");
        connection.client.write_all(b"x").unwrap();
        connection.server.read_exact(&mut [0]).unwrap();
        connection.server.write_all(b"y").unwrap();
        connection.client.read_exact(&mut [0]).unwrap();
        let paths = PathManager::new(&hosts.client).unwrap();
        let token = mptcp::info(&connection.client).unwrap().token;
        for plan in &PLANS[1..] {
            paths
                .subflow_create(token, local_address(*plan), target(*plan))
                .unwrap();
        }
        wait_for("the subflows", || {
            (mptcp::info(&connection.client).unwrap().extra_subflows == 3).then_some(())
        });
        // Where the device node cannot be opened, the rest can still be tested.
        let tun = hosts
            .client
            .tun("tun", 1500, 100)
            .inspect_err(|error| common::skipped("the TUN device", &error.to_string()))
            .ok();
        Self {
            _hosts: hosts,
            connection,
            _paths: paths,
            tun,
        }
    }
}

fn transfer(mut client: &TcpStream) {
    let payload = vec![3; 1 << 16];
    loop {
        match client.write_all(&payload) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn start_victim(observer: &Namespace) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "victim", "--nocapture"])
        .env(VICTIM, "1");
    command.stdout(Stdio::piped());
    // A process inherits the namespace of the thread that starts it.
    observer.run(|| command.spawn()).unwrap().unwrap()
}

fn wait_for_line(child: &mut Child, wanted: &str) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines
        .map_while(Result::ok)
        .any(|line| line.contains(wanted));
    assert!(found, "the other process never said {wanted:?}");
}

fn names(namespace: &Namespace) -> Vec<String> {
    let links = namespace.links().unwrap();
    assert_eq!(links[0].ifindex, LOOPBACK_IFINDEX);
    let mut names: Vec<String> = links.into_iter().map(|link| link.name).collect();
    names.sort();
    names
}
