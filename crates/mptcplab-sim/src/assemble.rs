//! From a resolved run to the engines of its parts.

use crate::SimError;
use crate::connection::{Connection, ConnectionConfig, DSN_MAX};
use crate::engine::Engine;
use crate::event::{MAX_SOURCES, NEVER};
use crate::net::Net;
use crate::packet::{MAX_HOPS, MAX_SUBFLOWS};
use crate::receiver::{Receiver, ReceiverConfig};
use crate::scheduler::Scheduler;
use crate::sender::{Sender, SenderConfig};
use crate::topology::Part;
use crate::traffic::draw_start;
use crate::udp::{UdpConfig, UdpSource};
use mptcplab_cc::Sock;
use mptcplab_link::rng::Rng;
use mptcplab_link::{Aqm, Link};
use mptcplab_scenario::{Flow, Run, TcpFlow, Traffic, Transport, UdpFlow};

/// IP (20), TCP (20) and timestamp (12) bytes.
const TCP_HEADER_BYTES: u16 = 52;
/// DSS option of a data packet: 32-bit DATA_ACK and data sequence mapping (RFC 8684 section 3.3).
const DSS_DATA_BYTES: u16 = 20;
/// DSS option of a pure ACK: 32-bit DATA_ACK.
const DSS_ACK_BYTES: u16 = 8;
/// SACK blocks that fit into 40 bytes of options beside timestamps, and beside timestamps and DSS.
const SACK_BLOCKS: (u8, u8) = (3, 2);

/// Where a subflow's packets go, in the indices of the part.
struct Paths<'a> {
    /// Position of every link of the run in the part.
    local: &'a [u32],
}

impl Paths<'_> {
    fn local(&self, path: &[usize]) -> Vec<u32> {
        path.iter().map(|&l| self.local[l]).collect()
    }
}

/// Build the engine of one part.
pub(crate) fn engine(run: &Run, part: &Part) -> Result<Engine, SimError> {
    if part.links.len() > MAX_SOURCES {
        return Err(SimError::Unsupported(format!(
            "more than {MAX_SOURCES} directed links are connected"
        )));
    }
    let mut local = vec![u32::MAX; run.links.len()];
    let mut links = Vec::with_capacity(part.links.len());
    for (i, &l) in part.links.iter().enumerate() {
        local[l] = i as u32;
        let link = &run.links[l];
        links.push(Link::new(
            &link.config,
            Rng::new(run.seed, run.rep, "link", &link.name),
        ));
    }
    let late_drops = part.links.iter().any(|&l| {
        matches!(
            run.links[l].config.aqm,
            Aqm::Codel { .. } | Aqm::FqCodel { .. }
        )
    });
    let mut engine = Engine::new(Net::new(links, late_drops));
    engine.link_ids = part.links.iter().map(|&l| (l as u32, 0)).collect();
    engine.has_schedules = part
        .links
        .iter()
        .any(|&l| !run.links[l].config.schedule.is_empty());
    engine.per_ack = run.per_ack;
    let paths = Paths { local: &local };
    let tcp = part
        .flows
        .iter()
        .filter_map(|&f| match &run.flows[f].transport {
            Transport::Tcp(t) => Some((f, t)),
            Transport::Udp(_) => None,
        });
    for (f, t) in tcp {
        add_connection(&mut engine, run, f, t, &paths)?;
    }
    for &f in &part.flows {
        if let Transport::Udp(u) = &run.flows[f].transport {
            add_udp(&mut engine, run, f, u, &paths);
        }
    }
    if engine.senders.len() + engine.udp.len() > MAX_SUBFLOWS {
        return Err(SimError::Unsupported(format!(
            "more than {MAX_SUBFLOWS} subflows share links"
        )));
    }
    engine.start();
    Ok(engine)
}

fn stop_of(run: &Run, flow: &Flow) -> u64 {
    flow.stop_ns
        .filter(|stop| *stop < run.duration_ns)
        .unwrap_or(NEVER)
}

fn add_connection(
    engine: &mut Engine,
    run: &Run,
    f: usize,
    t: &TcpFlow,
    paths: &Paths,
) -> Result<(), SimError> {
    let flow = &run.flows[f];
    let mut rng = Rng::new(run.seed, run.rep, "flow", &flow.name);
    let start_ns = draw_start(flow.start, &mut rng);
    let first = engine.senders.len();
    let conn = engine.conns.len() as u32;
    let mss = u16::try_from(t.mss_bytes).map_err(|_| unsupported(flow, "mss", t.mss_bytes))?;
    if let Traffic::Size { bytes } = t.traffic {
        if bytes.div_ceil(u64::from(mss)) >= u64::from(DSN_MAX) {
            return Err(unsupported(flow, "size", bytes));
        }
    }
    for (k, subflow) in t.subflows.iter().enumerate() {
        if subflow.path.len().max(subflow.reverse.len()) > MAX_HOPS {
            return Err(unsupported(
                flow,
                "number of links of a path",
                subflow.path.len(),
            ));
        }
        let id = engine
            .world
            .net
            .add_route(&paths.local(&subflow.path), &paths.local(&subflow.reverse));
        let config = sender_config(t);
        let stream = Rng::new(
            run.seed,
            run.rep,
            "subflow",
            &format!("{}/{}", flow.name, subflow.name),
        );
        let mut sender = Sender::new(
            make_sock(run, flow, t)?,
            id,
            conn,
            subflow.backup,
            config,
            stream,
        );
        let [entry, back] = engine.world.net.entry(id);
        sender.entry = entry;
        let receiver = receiver_config(run, t, conn, back);
        sender.open_ns = subflow.start_ns.unwrap_or(0);
        sender.remove_ns = subflow.stop_ns.unwrap_or(NEVER);
        let last = *subflow
            .path
            .last()
            .ok_or_else(|| unsupported(flow, "path of no links", k))?;
        sender.overhead_bytes = run.links[last].config.overhead_bytes;
        engine.world.rec.add_sender(f as u32, k as u32);
        engine.senders.push(sender);
        engine.receivers.push(Receiver::new(id, receiver));
    }
    engine.app_rng.push(rng);
    engine.conns.push(Connection::new(ConnectionConfig {
        flow: f as u32,
        mptcp: t.mptcp,
        subflows: first..engine.senders.len(),
        scheduler: Scheduler::new(t.scheduler),
        mss,
        reinject: t.options.reinject,
        traffic: t.traffic,
        start_ns,
        stop_ns: stop_of(run, flow),
        buffer: t.rcv_buffer,
    }));
    Ok(())
}

fn unsupported(flow: &Flow, what: &str, value: impl std::fmt::Display) -> SimError {
    SimError::Unsupported(format!(
        "flows.{}: {what} {value} is beyond what the simulator can represent",
        flow.name
    ))
}

fn sender_config(t: &TcpFlow) -> SenderConfig {
    let (data, ack) = if t.mptcp {
        (DSS_DATA_BYTES, DSS_ACK_BYTES)
    } else {
        (0, 0)
    };
    SenderConfig {
        mptcp: t.mptcp,
        data_header: TCP_HEADER_BYTES + data,
        ack_header: TCP_HEADER_BYTES + ack,
        initial_cwnd: t.options.initial_cwnd_pkts,
        ecn: t.options.ecn,
        pacing: t.options.pacing,
        slow_start_after_idle: t.options.slow_start_after_idle,
        jitter_ns: t.options.send_jitter_ns,
    }
}

fn receiver_config(run: &Run, t: &TcpFlow, conn: u32, entry: u32) -> ReceiverConfig {
    ReceiverConfig {
        delayed_acks: run.profile.delayed_acks(),
        ack_bytes: sender_config(t).ack_header,
        data_header: sender_config(t).data_header,
        conn,
        entry,
        max_blocks: if t.mptcp {
            SACK_BLOCKS.1
        } else {
            SACK_BLOCKS.0
        },
    }
}

fn make_sock(run: &Run, flow: &Flow, t: &TcpFlow) -> Result<Sock, SimError> {
    let fail = |why: String| SimError::Unsupported(format!("flows.{}: cc: {why}", flow.name));
    let algorithm = mptcplab_cc::find(&t.cc.name)
        .ok_or_else(|| fail(format!("there is no algorithm named {:?}", t.cc.name)))?;
    if algorithm.has_cong_control() {
        return Err(fail(format!(
            "{:?} controls its own rate, which needs delivery-rate samples",
            t.cc.name
        )));
    }
    let per_ack = run.profile.growth_per_ack(algorithm.coupled());
    let mut sock = Sock::new(algorithm, &t.cc.params, per_ack).map_err(|e| fail(e.to_string()))?;
    sock.tp.snd_cwnd = t.options.initial_cwnd_pkts;
    sock.tp.mss_cache = t.mss_bytes;
    if let Some(ssthresh) = t.options.initial_ssthresh_pkts {
        sock.tp.snd_ssthresh = ssthresh;
    }
    if let Some(clamp) = t.options.cwnd_clamp_pkts {
        sock.tp.snd_cwnd_clamp = clamp;
        sock.tp.snd_cwnd = sock.tp.snd_cwnd.min(clamp);
    }
    Ok(sock)
}

fn add_udp(engine: &mut Engine, run: &Run, f: usize, u: &UdpFlow, paths: &Paths) {
    let flow = &run.flows[f];
    let mut rng = Rng::new(run.seed, run.rep, "flow", &flow.name);
    let start_ns = draw_start(flow.start, &mut rng);
    let id = engine.world.net.add_route(&paths.local(&u.path), &[]);
    engine.udp.push(UdpSource::new(
        UdpConfig {
            flow: f as u32,
            id,
            packet_bytes: u.packet_bytes as u16,
            overhead_bytes: run.links[u.path[0]].config.overhead_bytes,
            rate_bps: u.rate_bps,
            on_off: u.on_off,
            start_ns,
            stop_ns: stop_of(run, flow),
        },
        rng,
    ));
}
