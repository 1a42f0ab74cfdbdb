//! Compares the emulator with its configuration and prints a table: rate, added delay, loss, lateness, processor time.
//!
//! usage: emulator [seconds=N] [priority=N|off] [spin_us=N] [rates=N,N,...]
//!
//! Needs root (namespaces, TUN devices). Each row has two namespaces of its own with one link between them, and UDP
//! over it. `seconds` is how long a row sends (2), `priority` the emulator's real-time priority (10), `spin_us` how
//! long it spins before a release (60), `rates` the links of the first rows in Mbit/s (1,10,100). Bounds are those for
//! an idle machine: the first and last lines say how busy this one was. Exit code 1 if a bound does not hold.
//!
//! Added delay: the kernel's time of arrival at the receiver (SO_TIMESTAMPNS) less the time at which the link model,
//! without a clock, delivers packets that arrive when the sender called `send`. It includes the delays of the
//! kernel and of the emulator.

use mptcplab_emulator::{
    Clock, Emulator, LinkSetup, LogEntry, Options, Port, Report, Setup, Summary, start,
};
use mptcplab_model::link::rng::Rng;
use mptcplab_model::link::{Aqm, Link, LinkConfig, Loss, Packet, QueueLimit};
use mptcplab_net::route::Route;
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::Duration;

const MS: u64 = 1_000_000;
/// IP and UDP headers.
const HEADERS: usize = 28;
/// Layer-2 bytes per packet.
const OVERHEAD: u32 = 14;
/// When a row is over: nothing came for this long. Longer than any link of a row holds a packet.
const SILENCE: Duration = Duration::from_millis(700);
/// Sleeps of a sender are no shorter than this: it sends what is due in between at once.
const SHORTEST_SLEEP_NS: u64 = 50_000;

/// Bounds on an idle machine.
const RATE_ERROR: f64 = 0.01;
const MEDIAN_NS: i64 = 100_000;
const P99_NS: i64 = 500_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a row sends over its link.
struct Row {
    config: LinkConfig,
    /// IP bytes of a packet.
    ip_bytes: usize,
    /// When each packet is to be sent, since the first.
    sends_ns: Vec<u64>,
}

/// One packet that arrived: its place among those sent, and the kernel's time of arrival.
struct Arrived {
    number: u32,
    at_ns: u64,
}

/// What became of a row.
struct Outcome {
    /// When each packet was really sent, on the run's clock.
    sent_ns: Vec<u64>,
    arrived: Vec<Arrived>,
    report: Report,
}

fn main() -> ExitCode {
    match measure() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether all bounds hold.
fn measure() -> Result<bool, Failure> {
    let Arguments {
        options,
        seconds,
        rates,
    } = arguments()?;
    let load = || std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average before: {}", load().trim());
    let rates: Vec<_> = rates
        .into_iter()
        .map(|mbps| rate_row(mbps, seconds, options))
        .collect();
    println!();
    let delays =
        [(1, 20, 300), (10, 10, 1500), (100, 1, 1500)].map(|row| delay_row(row, seconds, options));
    println!();
    let losses = [0.001, 0.01, 0.05, 0.3].map(|p| loss_row(p, options));
    println!("\nload average after: {}", load().trim());
    let mut all_hold = true;
    for holds in rates.into_iter().chain(delays).chain(losses) {
        all_hold &= holds?;
    }
    println!(
        "{}",
        if all_hold {
            "all bounds hold"
        } else {
            "NOT ALL BOUNDS HOLD"
        }
    );
    Ok(all_hold)
}

struct Arguments {
    options: Options,
    seconds: f64,
    /// In Mbit/s.
    rates: Vec<u64>,
}

fn arguments() -> Result<Arguments, Failure> {
    let mut parsed = Arguments {
        options: Options::default(),
        seconds: 2.0,
        rates: vec![1, 10, 100],
    };
    for argument in std::env::args().skip(1) {
        let options = &mut parsed.options;
        match argument.split_once('=') {
            Some(("seconds", value)) => parsed.seconds = value.parse()?,
            Some(("priority", "off")) => options.priority = None,
            Some(("priority", value)) => options.priority = Some(value.parse()?),
            Some(("spin_us", value)) => options.spin_ns = value.parse::<u64>()? * 1000,
            Some(("rates", value)) => {
                parsed.rates = value.split(',').map(str::parse).collect::<Result<_, _>>()?
            }
            _ => {
                let hint = "seconds=N priority=N spin_us=N rates=N,N,...";
                return Err(format!("{argument:?} is no argument of this\n\nhint: {hint}").into());
            }
        }
    }
    Ok(parsed)
}

/// Half as much again as the link carries, with room for a quarter of a second, so that the link always has something
/// to send although the sender may have to wait for a processor.
fn rate_row(mbps: u64, seconds: f64, options: Options) -> Result<bool, Failure> {
    let config = LinkConfig {
        rate_bps: mbps * 1_000_000,
        delay_ns: 10 * MS,
        queue: QueueLimit::Bytes(mbps * 1_000_000 / 8 / 4),
        ..config()
    };
    let ip_bytes = 1500;
    let gap_ns = serialisation_ns(&config, ip_bytes) * 2 / 3;
    let count = (seconds * 1e9) as u64 / gap_ns;
    let row = Row {
        config,
        ip_bytes,
        sends_ns: (0..count).map(|i| i * gap_ns).collect(),
    };
    let outcome = run(&row, options)?;
    let arrived = &outcome.arrived;
    let [Some(first), Some(last)] = [arrived.first(), arrived.last()] else {
        return Err("nothing arrived".into());
    };
    let bits = (arrived.len() - 1) as f64 * f64::from(row.wire_bytes()) * 8.0;
    let achieved_bps = bits * 1e9 / (last.at_ns - first.at_ns) as f64;
    let error = achieved_bps / row.config.rate_bps as f64 - 1.0;
    let holds = error.abs() <= RATE_ERROR;
    println!(
        "{} rate {mbps:>3} Mbit/s: achieved {:.4} Mbit/s, {:+.3} % ({} packets of {})",
        mark(holds),
        achieved_bps / 1e6,
        error * 100.0,
        arrived.len(),
        row.sends_ns.len(),
    );
    describe(&outcome);
    Ok(holds)
}

/// Half of what the link carries, at irregular times.
fn delay_row(row: (u64, u64, usize), seconds: f64, options: Options) -> Result<bool, Failure> {
    let (mbps, delay_ms, ip_bytes) = row;
    let config = LinkConfig {
        rate_bps: mbps * 1_000_000,
        delay_ns: delay_ms * MS,
        queue: QueueLimit::Unlimited,
        ..config()
    };
    let serialisation = serialisation_ns(&config, ip_bytes);
    let mut rng = Rng::new(1, 0, "bench", "gaps");
    let mut next = 0;
    // Gaps between one and three serialisations: hardly ever a queue, and no beat with any timer.
    let sends_ns: Vec<u64> = std::iter::repeat_with(|| {
        next += serialisation + rng.below(2 * serialisation);
        next
    })
    .take_while(|&at| at < (seconds * 1e9) as u64)
    .collect();
    let row = Row {
        config,
        ip_bytes,
        sends_ns,
    };
    let options = Options {
        log_entries: 3 * row.sends_ns.len(),
        ..options
    };
    let outcome = run(&row, options)?;
    let ideal = ideal_ns(&row, &outcome.sent_ns);
    let mut added: Vec<i64> = outcome
        .arrived
        .iter()
        .map(|packet| packet.at_ns as i64 - ideal[packet.number as usize] as i64)
        .collect();
    added.sort_unstable();
    let complete = added.len() == row.sends_ns.len();
    let (median, p99) = (quantile(&added, 0.5), quantile(&added, 0.99));
    let holds = complete && median.abs() <= MEDIAN_NS && p99 <= P99_NS;
    println!(
        "{} delay {mbps:>3} Mbit/s, {delay_ms} ms, {ip_bytes} bytes: added median {} p99 {} max {} ({} packets of {})",
        mark(holds),
        us(median),
        us(p99),
        us(quantile(&added, 1.0)),
        added.len(),
        row.sends_ns.len(),
    );
    let read_late = read_late_ns(&outcome);
    println!(
        "     read late    p50 {} p90 {} p99 {} p99.9 {} (from the sender's clock: its own waits are in it)",
        us(quantile(&read_late, 0.5)),
        us(quantile(&read_late, 0.9)),
        us(quantile(&read_late, 0.99)),
        us(quantile(&read_late, 0.999)),
    );
    describe(&outcome);
    Ok(holds)
}

/// How long after each packet was sent the emulator read it, sorted.
fn read_late_ns(outcome: &Outcome) -> Vec<i64> {
    let arrivals = outcome.report.log.iter().filter_map(|entry| match entry {
        LogEntry::Arrival { number, at_ns, .. } => Some((*number, *at_ns)),
        LogEntry::Release { .. } => None,
    });
    let mut late: Vec<i64> = arrivals
        .map(|(number, at_ns)| at_ns as i64 - outcome.sent_ns[number as usize] as i64)
        .collect();
    late.sort_unstable();
    late
}

/// Of sorted values; the largest possible if there are none.
fn quantile(sorted: &[i64], share: f64) -> i64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(i64::MAX)
}

/// Random loss on a link that has room for everything.
fn loss_row(p: f64, options: Options) -> Result<bool, Failure> {
    let config = LinkConfig {
        rate_bps: 200_000_000,
        delay_ns: 5 * MS,
        queue: QueueLimit::Unlimited,
        loss: Loss::Bernoulli { p },
        ..config()
    };
    let row = Row {
        config,
        ip_bytes: 200,
        sends_ns: (0..20_000).map(|i| i * 50_000).collect(),
    };
    let outcome = run(&row, options)?;
    let lost = (row.sends_ns.len() - outcome.arrived.len()) as u64;
    let (low, high) = binomial_interval(row.sends_ns.len() as u64, p);
    let holds = (low..=high).contains(&lost);
    println!(
        "{} loss {p}: {lost} of {} packets lost, {:.3} %; 99 % interval {low} to {high}",
        mark(holds),
        row.sends_ns.len(),
        lost as f64 * 100.0 / row.sends_ns.len() as f64,
    );
    describe(&outcome);
    Ok(holds)
}

/// How the emulator did.
fn describe(outcome: &Outcome) {
    let report = &outcome.report;
    let link = &report.links[0];
    println!("     release late {}", summary(&link.lateness));
    println!("     wake-up late {}", summary(&report.wakeups));
    let per_packet = |ns: u64| ns as f64 / 1e3 / link.arrived_pkts.max(1) as f64;
    println!(
        "     {}; processor time per packet {:.1} us and {:.1} us of spinning, {:.0} % of one in all; longest: \
         busy {}, write {}, sample {}; not taken {}",
        report.scheduling,
        per_packet(report.cpu_ns.saturating_sub(report.spun_ns)),
        per_packet(report.spun_ns),
        report.cpu_ns as f64 * 100.0 / (report.to_ns - report.from_ns) as f64,
        us(report.worst_busy_ns as i64),
        us(report.worst_write_ns as i64),
        us(report.worst_sample_ns as i64),
        link.write_failed_pkts,
    );
}

fn summary(summary: &Summary) -> String {
    format!(
        "p50 {} p90 {} p99 {} p99.9 {} max {} ({})",
        us(summary.p50_ns as i64),
        us(summary.p90_ns as i64),
        us(summary.p99_ns as i64),
        us(summary.p999_ns as i64),
        us(summary.max_ns as i64),
        summary.count
    )
}

fn us(ns: i64) -> String {
    format!("{:.1} us", ns as f64 / 1e3)
}

fn mark(holds: bool) -> &'static str {
    if holds { "ok  " } else { "FAIL" }
}

fn config() -> LinkConfig {
    LinkConfig {
        rate_bps: 0,
        delay_ns: 0,
        overhead_bytes: OVERHEAD,
        queue: QueueLimit::Unlimited,
        aqm: Aqm::DropTail,
        ecn: false,
        loss: Loss::None,
        reorder: None,
        schedule: Vec::new(),
        trace: None,
    }
}

fn serialisation_ns(config: &LinkConfig, ip_bytes: usize) -> u64 {
    (ip_bytes as u64 + u64::from(config.overhead_bytes)) * 8_000_000_000 / config.rate_bps
}

impl Row {
    fn wire_bytes(&self) -> u32 {
        self.ip_bytes as u32 + self.config.overhead_bytes
    }
}

/// Two namespaces, the link, and a datagram socket at either end.
struct Net {
    emulator: Emulator,
    clock: Clock,
    sender: UdpSocket,
    receiver: UdpSocket,
    from: Namespace,
    ifindex: u32,
}

const FROM: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const TO: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2)), 7000);

fn network(row: &Row, options: Options) -> Result<Net, Failure> {
    let (a, b) = (Namespace::new("a")?, Namespace::new("b")?);
    let (tun_a, tun_b) = (a.tun("a0", 1500, 5000)?, b.tun("b0", 1500, 5000)?);
    let SocketAddr::V4(to) = TO else {
        return Err("an IPv4 address".into());
    };
    a.add_address(LOOPBACK_IFINDEX, FROM, 32)?;
    b.add_address(LOOPBACK_IFINDEX, *to.ip(), 32)?;
    a.replace_route(&Route::host(*to.ip(), tun_a.ifindex))?;
    b.replace_route(&Route::host(FROM, tun_b.ifindex))?;
    let sender = a.run(|| UdpSocket::bind((FROM, 7001)))??;
    let receiver = b.run(|| UdpSocket::bind(TO))??;
    // A sender that stalls would hide what the link does; a receiver that stalls would lose what came.
    let buffers = setsockopt(&sender, sockopt::SndBufForce, &50_000_000)
        .and_then(|()| setsockopt(&receiver, sockopt::RcvBufForce, &50_000_000));
    buffers.map_err(|errno| {
        format!("cannot make socket buffers larger: {errno}\n\nhint: run as root")
    })?;
    setsockopt(&receiver, sockopt::ReceiveTimestampns, &true)?;
    receiver.set_read_timeout(Some(SILENCE))?;
    let clock = Clock::starting_now();
    let ifindex = tun_a.ifindex;
    let port = |tun: mptcplab_net::Tun| Port {
        name: tun.name,
        fd: tun.fd,
    };
    let emulator = start(Setup {
        clock,
        ports: vec![port(tun_a), port(tun_b)],
        links: vec![LinkSetup {
            name: "link".to_owned(),
            from: Some(0),
            to: Some(1),
            config: row.config.clone(),
            rng: stream(),
        }],
        pairs: Vec::new(),
        options,
    })?;
    // The kernel switches time stamps on from a work queue.
    std::thread::sleep(Duration::from_millis(50));
    Ok(Net {
        emulator,
        clock,
        sender,
        receiver,
        from: a,
        ifindex,
    })
}

/// The link's random numbers.
fn stream() -> Rng {
    Rng::new(1, 0, "link", "bench")
}

fn run(row: &Row, options: Options) -> Result<Outcome, Failure> {
    let net = network(row, options)?;
    let (sent, arrived) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&net));
        let sent = send(&net, row);
        (sent, receiver.join())
    });
    let arrived = arrived.map_err(|_| "the receiver panicked")??;
    let sent_ns = sent?;
    let dropped = net.from.link_stats(net.ifindex)?.tx_dropped;
    if dropped > 0 {
        return Err(
            format!("the device dropped {dropped} packets before the emulator read them").into(),
        );
    }
    Ok(Outcome {
        sent_ns,
        arrived,
        report: net.emulator.stop()?,
    })
}

/// Send the row's packets when they are due, and take samples, a hundred per second; when each packet was sent.
fn send(net: &Net, row: &Row) -> Result<Vec<u64>, Failure> {
    let mut packet = vec![0; row.ip_bytes - HEADERS];
    let begin = net.clock.now_ns() + 5 * MS;
    let mut next_sample = begin;
    let mut sent_ns = Vec::with_capacity(row.sends_ns.len());
    for (number, at) in (0_u32..).zip(&row.sends_ns) {
        let due = begin + at;
        loop {
            let now = net.clock.now_ns();
            if now >= next_sample {
                net.emulator.sample()?;
                next_sample += 10 * MS;
            } else if due > now + SHORTEST_SLEEP_NS {
                std::thread::sleep(Duration::from_nanos(due.min(next_sample) - now));
            } else {
                break;
            }
        }
        packet[..4].copy_from_slice(&number.to_be_bytes());
        sent_ns.push(net.clock.now_ns());
        net.sender.send_to(&packet, TO)?;
    }
    Ok(sent_ns)
}

/// Until nothing comes any more.
fn receive(net: &Net) -> Result<Vec<Arrived>, Failure> {
    let mut arrived = Vec::new();
    let mut data = [0; 2048];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut empty_reads = 0;
    loop {
        let mut parts = [IoSliceMut::new(&mut data)];
        let message = recvmsg::<SockaddrIn>(
            net.receiver.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::empty(),
        );
        let message = match message {
            // Before the first packet it may take longer.
            Err(Errno::EAGAIN | Errno::EINTR) if arrived.is_empty() && empty_reads < 10 => {
                empty_reads += 1;
                continue;
            }
            Err(Errno::EAGAIN) => return Ok(arrived),
            result => result?,
        };
        let stamp = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => {
                Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
            }
            _ => None,
        });
        let offset_ns = realtime_offset_ns()?;
        let stamp = stamp.ok_or("the kernel gave no time of arrival")?;
        arrived.push(Arrived {
            number: u32::from_be_bytes([data[0], data[1], data[2], data[3]]),
            at_ns: stamp
                .saturating_sub(offset_ns)
                .saturating_sub(net.clock.zero_ns()),
        });
    }
}

/// CLOCK_REALTIME, which packets are stamped with, less CLOCK_MONOTONIC. Taken anew for each packet, as the first is
/// adjusted while it runs.
fn realtime_offset_ns() -> Result<u64, Failure> {
    let before = Clock::monotonic_ns();
    let real = clock_gettime(ClockId::CLOCK_REALTIME)?;
    let after = Clock::monotonic_ns();
    let real_ns = real.tv_sec() as u64 * 1_000_000_000 + real.tv_nsec() as u64;
    Ok(real_ns - (before + (after - before) / 2))
}

/// A packet of the ideal link.
struct Ghost {
    number: usize,
    ip_bytes: u32,
}

impl Packet for Ghost {
    fn ip_bytes(&self) -> u32 {
        self.ip_bytes
    }
    fn is_ecn_capable(&self) -> bool {
        false
    }
    fn mark_ce(&mut self) {}
    fn flow_hash(&self) -> u64 {
        0
    }
}

/// When the link delivers packets that arrive at these times.
fn ideal_ns(row: &Row, sent_ns: &[u64]) -> Vec<u64> {
    let mut link = Link::new(&row.config, stream());
    let mut delivered = vec![0; sent_ns.len()];
    let mut deliver = |link: &mut Link<Ghost>, before: u64| {
        while link.next_ns() < before {
            let now = link.next_ns();
            if let Some(ghost) = link.poll(now) {
                delivered[ghost.number] = now;
            }
        }
    };
    for (number, &now) in sent_ns.iter().enumerate() {
        deliver(&mut link, now);
        let ip_bytes = row.ip_bytes as u32;
        let _ = link.enqueue(now, Ghost { number, ip_bytes });
    }
    deliver(&mut link, u64::MAX);
    delivered
}

/// The narrowest interval of successes in `n` trials with probability `p` that leaves at most 0.5 % on either side.
fn binomial_interval(n: u64, p: f64) -> (u64, u64) {
    // In logarithms: the probability of 0 is too small for a float.
    let mut log = n as f64 * (1.0 - p).ln();
    let mut cumulative = 0.0;
    let (mut low, mut high) = (None, n);
    for k in 0..=n {
        cumulative += log.exp();
        if cumulative > 0.005 && low.is_none() {
            low = Some(k);
        }
        if cumulative >= 0.995 {
            high = k;
            break;
        }
        log += ((n - k) as f64 / (k + 1) as f64).ln() + (p / (1.0 - p)).ln();
    }
    (low.unwrap_or(0), high)
}
