//! Measures the cost of the eBPF algorithms and prints two tables.
//!
//! usage: ebpf [seconds=N] [rounds=N]
//!
//! Needs root. First, nanoseconds per ACK: every algorithm carries bulk data for `seconds` (3) over three emulated paths of
//! unlike rate and delay, with losses, so that it is in congestion avoidance with its whole table in use; the kernel's
//! run-time statistics give the time in `cc_cong_avoid`. From each an empty program's time is to be subtracted, which is
//! measured the same way. Then, goodput of plain TCP over an unshaped veth under the kernel's own reno and under
//! `lab_reno`, alternating, for `rounds` (9) rounds of a second. Exit code 1 if LIA costs more than twice what reno in eBPF
//! costs, or if the median goodput under `lab_reno` is below 95 % of the kernel's own.

use mptcplab_bpf::{Loaded, Options, load};
use mptcplab_emulator::testbed::{Connection, Path, Testbed};
use mptcplab_net::route::Route;
use mptcplab_net::socket::{self, Transport};
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PATHS: [Path; 3] = [
    Path {
        rate_mbps: 60,
        delay_ms: 2,
        loss: 0.002,
        queue_pkts: 100,
    },
    Path {
        rate_mbps: 45,
        delay_ms: 5,
        loss: 0.001,
        queue_pkts: 80,
    },
    Path {
        rate_mbps: 30,
        delay_ms: 9,
        loss: 0.001,
        queue_pkts: 60,
    },
];
const LIA_BOUND: f64 = 2.0;
const GOODPUT_BOUND: f64 = 0.95;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool> {
    let (seconds, rounds) = arguments()?;
    mptcplab_bpf::system::check()?;
    print!(
        "load average: {}",
        std::fs::read_to_string("/proc/loadavg")?
    );
    let per_ack = costs(seconds)?;
    let ratio = goodputs(rounds)?;
    print!(
        "load average: {}",
        std::fs::read_to_string("/proc/loadavg")?
    );
    Ok(per_ack <= LIA_BOUND && ratio >= GOODPUT_BOUND)
}

fn arguments() -> Result<(u64, usize)> {
    let (mut seconds, mut rounds) = (3, 9);
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            Some(("seconds", n)) => seconds = n.parse()?,
            Some(("rounds", n)) => rounds = n.parse()?,
            _ => {
                return Err(
                    format!("unknown argument {word}; usage: ebpf [seconds=N] [rounds=N]").into(),
                );
            }
        }
    }
    Ok((seconds, rounds))
}

/// One row of the first table.
struct Cost {
    name: &'static str,
    ns: f64,
    acks: u64,
    goodput_mbps: f64,
}

/// Prints the first table; gives LIA's cost over reno's.
fn costs(seconds: u64) -> Result<f64> {
    let _statistics = statistics()?;
    let testbed = Testbed::new(&PATHS);
    let mut rows = Vec::new();
    for (index, algorithm) in mptcplab_cc::algorithms().iter().enumerate() {
        let loaded = load(
            algorithm,
            &Options::named(format!("b{:x}_{index}", std::process::id() & 0xffff)),
        )?;
        let goodput_mbps = bulk(
            testbed.connect(5001, loaded.kernel_name()),
            Duration::from_secs(seconds),
        );
        let (ns, acks) = cong_avoid(&loaded);
        rows.push(Cost {
            name: algorithm.name(),
            ns,
            acks,
            goodput_mbps,
        });
    }
    let native = ["reno", "cubic"].map(|name| {
        (
            name,
            bulk(testbed.connect(5001, name), Duration::from_secs(seconds)),
        )
    });
    let of = |name: &str| {
        rows.iter()
            .find(|row| row.name == name)
            .map_or(f64::NAN, |row| row.ns)
    };
    println!(
        "\n{:<14} {:>12} {:>10} {:>10} {:>16}",
        "algorithm", "ns per ACK", "/ reno's", "ACKs", "goodput Mbit/s"
    );
    for row in &rows {
        let Cost {
            name,
            ns,
            acks,
            goodput_mbps,
        } = row;
        println!(
            "{name:<14} {ns:>12.0} {:>10.2} {acks:>10} {goodput_mbps:>16.1}",
            ns / of("reno")
        );
    }
    for (name, goodput) in native {
        println!(
            "{:<14} {:>12} {:>10} {:>10} {goodput:>16.1}",
            format!("kernel's {name}"),
            "-",
            "-",
            "-"
        );
    }
    let ratio = of("lia") / of("reno");
    println!("lia / reno in eBPF: {ratio:.2} (at most {LIA_BOUND})\n");
    Ok(ratio)
}

/// Switches the kernel's run-time statistics of eBPF on, until it is dropped.
fn statistics() -> Result<OwnedFd> {
    // SAFETY: a plain call that gives a descriptor or an error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: the descriptor was just opened and is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Nanoseconds per call of cong_avoid, and calls.
fn cong_avoid(loaded: &Loaded) -> (f64, u64) {
    let programs = loaded.programs();
    let found = programs
        .iter()
        .find(|program| program.name == "cc_cong_avoid");
    found.map_or((f64::NAN, 0), |program| {
        (
            program.run_time_ns as f64 / program.runs as f64,
            program.runs,
        )
    })
}

/// Sends as fast as it goes; gives the goodput in Mbit/s.
fn bulk(connection: Connection, length: Duration) -> f64 {
    let Connection {
        mut client,
        mut server,
    } = connection;
    client
        .set_write_timeout(Some(Duration::from_millis(200)))
        .expect("a timeout");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let data = vec![0u8; 256 << 10];
            while !stop.load(Ordering::Relaxed) {
                let _ = client.write(&data);
            }
            let _ = client.shutdown(std::net::Shutdown::Both);
        });
        let rate = receive(&mut server, length);
        stop.store(true, Ordering::Relaxed);
        rate
    })
}

fn receive(server: &mut TcpStream, length: Duration) -> f64 {
    server
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a timeout");
    let mut buffer = vec![0u8; 1 << 20];
    let (begin, mut bytes) = (Instant::now(), 0);
    while begin.elapsed() < length {
        bytes += server.read(&mut buffer).unwrap_or(0);
    }
    bytes as f64 * 8e-6 / begin.elapsed().as_secs_f64()
}

/// Prints the second table; gives the median over rounds of lab_reno's goodput over the kernel's.
fn goodputs(rounds: usize) -> Result<f64> {
    let (a, b) = (Namespace::new("a")?, Namespace::new("b")?);
    let ends = [
        (&a, Ipv4Addr::new(10, 9, 0, 1)),
        (&b, Ipv4Addr::new(10, 9, 0, 2)),
    ];
    a.veth("bulk", &b, "bulk", 1500)?;
    for (index, (host, ip)) in ends.iter().enumerate() {
        host.add_address(LOOPBACK_IFINDEX, *ip, 32)?;
        let other = ends[1 - index].1;
        host.replace_route(&Route {
            source: Some(*ip),
            ..Route::host(other, host.link_index("bulk")?)
        })?;
    }
    let reno = mptcplab_cc::find("reno").ok_or("no algorithm reno")?;
    let ours = load(reno, &Options::named(format!("b{:x}", std::process::id())))?;
    let mut ratios = Vec::new();
    println!(
        "{:>6} {:>16} {:>16} {:>8}",
        "round", "reno Mbit/s", "lab_reno Mbit/s", "ratio"
    );
    for round in 0..rounds {
        // Alternating order, so that a drift favours neither.
        let mut names = ["reno", ours.kernel_name()];
        names.rotate_left(round % 2);
        let mut rates = names.map(|name| bulk(connect(&a, &b, name), Duration::from_secs(1)));
        rates.rotate_right(round % 2);
        let ratio = rates[1] / rates[0];
        println!(
            "{round:>6} {:>16.0} {:>16.0} {ratio:>8.3}",
            rates[0], rates[1]
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!("median of lab_reno / reno: {median:.3} (at least {GOODPUT_BOUND})\n");
    Ok(median)
}

fn connect(a: &Namespace, b: &Namespace, congestion: &str) -> Connection {
    let options = socket::Options {
        congestion: Some(congestion.to_owned()),
        reset_on_close: true,
        ..socket::Options::default()
    };
    let target = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 2), 5002);
    let source = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 0);
    let listen = || socket::listen(Transport::Tcp, target, &options);
    let listener = b.run(listen).expect("the server").expect("a listener");
    let connect = || {
        socket::connect(
            Transport::Tcp,
            source,
            target,
            &options,
            Duration::from_secs(5),
        )
    };
    let client = a.run(connect).expect("the client").expect("a connection");
    let (server, _) = listener.accept().expect("an accepted connection");
    Connection { client, server }
}
