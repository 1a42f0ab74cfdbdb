//! From a resolved run to the engines of its parts.

use crate::SimError;
use crate::app::App;
use crate::app::udp::{UdpConfig, UdpSource};
use crate::app::video::VideoApp;
use crate::engine::Engine;
use crate::engine::partition::Part;
use crate::engine::transfers::{MAX_AT_ONCE, Pool, PoolConfig};
use crate::mptcp::connection::{Connection, ConnectionConfig};
use crate::mptcp::scheduler::Scheduler;
use crate::net::event::{MAX_SOURCES, NEVER};
use crate::net::packet::{MAX_HOPS, MAX_SUBFLOWS};
use crate::net::{Net, Route};
use crate::sctp::{Association, AssociationConfig, DestinationConfig};
use crate::stream::DSN_MAX;
use crate::tcp::receiver::{Receiver, ReceiverConfig};
use crate::tcp::sender::{Sender, SenderConfig};
use mptcplab_cc::Sock;
use mptcplab_model::link::rng::Rng;
use mptcplab_model::link::{Aqm, Link};
use mptcplab_model::sched::{Choice, Kind};
use mptcplab_model::traffic::start;
use mptcplab_scenario::{
    Flow, LossRecovery, Run, SctpFlow, SizeLaw, Subflow, TcpFlow, Traffic, Transfers, Transport,
    UdpFlow, Video,
};
use std::collections::VecDeque;
use std::ops::Range;

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
pub(crate) fn engine<'a>(run: &'a Run, part: &Part) -> Result<Engine<'a>, SimError> {
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
            Transport::Tcp(t) => Some(Maker::new(run, f, t)),
            Transport::Sctp(_) | Transport::Udp(_) => None,
        })
        .collect::<Result<Vec<_>, _>>()?;
    let many = |maker: &&Maker<'_>| matches!(maker.t.traffic, Traffic::Transfers(_));
    for maker in tcp.iter().filter(|m| !many(m)) {
        add_connection(&mut engine, *maker, &paths)?;
    }
    engine.fixed_conns = engine.conns.len();
    engine.fixed_senders = engine.senders.len();
    for maker in tcp.iter().filter(many) {
        if let Traffic::Transfers(law) = &maker.t.traffic {
            add_pool(&mut engine, *maker, law, &paths)?;
        }
    }
    engine.first_other = engine.world.net.routes();
    let slots = engine.first_other - engine.fixed_senders;
    engine.world.rec.add_quiet_senders(slots);
    for &f in &part.flows {
        if let Transport::Sctp(s) = &run.flows[f].transport {
            add_association(&mut engine, run, f, s, &paths)?;
        }
    }
    for &f in &part.flows {
        if let Transport::Udp(u) = &run.flows[f].transport {
            add_udp(&mut engine, run, f, u, &paths);
        }
    }
    if engine.world.net.routes() > MAX_SUBFLOWS {
        return Err(SimError::Unsupported(format!(
            "more than {MAX_SUBFLOWS} subflows share links (a flow of many transfers counts {MAX_AT_ONCE} times)"
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

/// Makes the connections of a flow: its only one, or one for every transfer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maker<'a> {
    run: &'a Run,
    f: usize,
    t: &'a TcpFlow,
    mss: u16,
}

impl<'a> Maker<'a> {
    fn new(run: &'a Run, f: usize, t: &'a TcpFlow) -> Result<Self, SimError> {
        let flow = &run.flows[f];
        let mss = segment_bytes(flow, t.mss_bytes, &t.traffic)?;
        let upstream = t.scheduler.is_some_and(|s| s.kind() == Kind::Linger);
        if t.mptcp && t.options.tso == Some(true) && !upstream {
            return Err(SimError::Unsupported(format!(
                "flows.{}: tso: with MPTCP only with the scheduler linger",
                flow.name
            )));
        }
        Ok(Self { run, f, t, mss })
    }

    /// Index of the flow.
    pub(crate) fn flow(&self) -> usize {
        self.f
    }

    /// Name of the flow's algorithm.
    pub(crate) fn algorithm(&self) -> &'a str {
        &self.t.cc.name
    }

    /// Subflow `k` with its index and that of its connection. `entries`: the first links of its path and of the way
    /// back. Every transfer has random numbers of its own.
    pub(crate) fn subflow(
        &self,
        [id, conn]: [u32; 2],
        k: usize,
        [entry, back]: [u32; 2],
        transfer: Option<u32>,
    ) -> Result<(Sender, Receiver), SimError> {
        let (run, t) = (self.run, self.t);
        let (flow, subflow) = (&run.flows[self.f], &t.subflows[k]);
        let name = match transfer {
            None => format!("{}/{}", flow.name, subflow.name),
            Some(index) => format!("{}/{}/{index}", flow.name, subflow.name),
        };
        let mut sender = Sender::new(
            make_sock(run, flow, t)?,
            id,
            conn,
            subflow.backup,
            sender_config(t),
            Rng::new(run.seed, run.rep, "subflow", &name),
        );
        sender.entry = entry;
        let receiver = ReceiverConfig {
            base_rtt_ns: run.base_rtt_ns(subflow),
            ..receiver_config(run, t, conn, back)
        };
        sender.open_ns = subflow.start_ns.unwrap_or(0);
        sender.remove_ns = subflow.stop_ns.unwrap_or(NEVER);
        sender.overhead_bytes = last_overhead_bytes(run, flow, subflow)?;
        Ok((sender, Receiver::new(id, receiver)))
    }

    pub(crate) fn connection(
        &self,
        subflows: Range<usize>,
        app: App,
        start_ns: u64,
        stop_ns: u64,
    ) -> Connection {
        let t = self.t;
        Connection::new(ConnectionConfig {
            flow: self.f as u32,
            mptcp: t.mptcp,
            stale_after: t.options.stale_after,
            priorities: priorities(t, subflows.start),
            subflows,
            scheduler: Scheduler::new(
                &t.scheduler
                    .unwrap_or_else(|| Choice::new(crate::DEFAULT_SCHEDULER)),
            ),
            mss: self.mss,
            reinject: t.options.reinject,
            app,
            start_ns,
            stop_ns,
            buffer: t.rcv_buffer,
            tso: t.options.tso.unwrap_or(false),
        })
    }

    /// More transfers are under way than there is room for.
    pub(crate) fn overload(&self, now_ns: u64, most: usize) -> SimError {
        SimError::Unsupported(format!(
            "flows.{}: more than {most} transfers are under way after {:.3} s: they begin faster than the links let them \
             end\n\nhint: lower arrivals or size, or raise the rates of the links",
            self.run.flows[self.f].name,
            now_ns as f64 / 1e9
        ))
    }
}

/// The most bytes that one transfer may have.
fn largest_bytes(traffic: &Traffic) -> u64 {
    match traffic {
        Traffic::Size { bytes } => *bytes,
        Traffic::Transfers(transfers) => match transfers.size {
            SizeLaw::Fixed { bytes } => bytes,
            SizeLaw::Exponential { max_bytes, .. } | SizeLaw::Pareto { max_bytes, .. } => max_bytes,
        },
        Traffic::Bulk | Traffic::OnOff { .. } | Traffic::Video(_) => 0,
    }
}

fn add_connection(
    engine: &mut Engine<'_>,
    maker: Maker<'_>,
    paths: &Paths<'_>,
) -> Result<(), SimError> {
    let (run, t) = (maker.run, maker.t);
    let flow = &run.flows[maker.f];
    let mut rng = Rng::new(run.seed, run.rep, "flow", &flow.name);
    let start_ns = start(flow.start, &mut rng);
    let first = engine.senders.len();
    let conn = engine.conns.len() as u32;
    for (k, subflow) in t.subflows.iter().enumerate() {
        let id = add_route(engine, flow, subflow, paths)?;
        let (sender, receiver) = maker.subflow([id, conn], k, engine.world.net.entry(id), None)?;
        engine.world.rec.add_sender(maker.f as u32, k as u32);
        engine.senders.push(sender);
        engine.receivers.push(receiver);
    }
    let app = match &t.traffic {
        Traffic::Bulk => App::Bulk,
        Traffic::Size { bytes } => App::Size { bytes: *bytes },
        Traffic::OnOff { on, off } => App::OnOff { on: *on, off: *off },
        Traffic::Video(video) => add_video(engine, maker, conn, video),
        Traffic::Transfers(_) => {
            return Err(unsupported(flow, "only connection of", "many transfers"));
        }
    };
    engine.app_rng.push(rng);
    let subflows = first..engine.senders.len();
    let stop_ns = stop_of(run, flow);
    engine
        .conns
        .push(maker.connection(subflows, app, start_ns, stop_ns));
    Ok(())
}

fn add_video(engine: &mut Engine<'_>, maker: Maker<'_>, conn: u32, video: &Video) -> App {
    let delay = |path: &[usize]| -> u64 {
        let delays = path.iter().map(|&l| maker.run.links[l].config.delay_ns);
        delays.sum()
    };
    let first = &maker.t.subflows[0];
    let delays_ns = (delay(&first.path), delay(&first.reverse));
    engine
        .videos
        .push(VideoApp::new(conn, video.clone(), delays_ns));
    App::Video {
        video: engine.videos.len() as u32 - 1,
    }
}

/// A flow of many transfers, after all flows of one connection.
fn add_pool<'a>(
    engine: &mut Engine<'a>,
    maker: Maker<'a>,
    law: &Transfers,
    paths: &Paths<'_>,
) -> Result<(), SimError> {
    let flow = &maker.run.flows[maker.f];
    // What would fail later fails now.
    make_sock(maker.run, flow, maker.t)?;
    let mut rng = Rng::new(maker.run.seed, maker.run.rep, "flow", &flow.name);
    let start_ns = start(flow.start, &mut rng);
    let mut routes = Vec::new();
    for subflow in &maker.t.subflows {
        routes.push(make_route(engine, flow, subflow, paths)?);
    }
    engine.world.net.reserve_routes(routes.len() * MAX_AT_ONCE);
    engine.pools.push(Pool::new(PoolConfig {
        maker,
        routes,
        law: law.clone(),
        rng,
        start_ns,
        stop_ns: stop_of(maker.run, flow),
    }));
    Ok(())
}

/// Payload of a full segment, if the traffic can be counted in such segments.
fn segment_bytes(flow: &Flow, mss_bytes: u32, traffic: &Traffic) -> Result<u16, SimError> {
    let mss = u16::try_from(mss_bytes).map_err(|_| unsupported(flow, "mss", mss_bytes))?;
    match largest_bytes(traffic) {
        bytes if bytes.div_ceil(u64::from(mss)) >= u64::from(DSN_MAX) => {
            Err(unsupported(flow, "size", bytes))
        }
        _ => Ok(mss),
    }
}

/// Register a subflow's way there and back.
fn add_route(
    engine: &mut Engine<'_>,
    flow: &Flow,
    subflow: &Subflow,
    paths: &Paths<'_>,
) -> Result<u32, SimError> {
    let route = make_route(engine, flow, subflow, paths)?;
    Ok(engine.world.net.add_route(route))
}

fn make_route(
    engine: &mut Engine<'_>,
    flow: &Flow,
    subflow: &Subflow,
    paths: &Paths<'_>,
) -> Result<Route, SimError> {
    let hops = subflow.path.len().max(subflow.reverse.len());
    if hops > MAX_HOPS {
        return Err(unsupported(flow, "number of links of a path", hops));
    }
    let (forward, reverse) = (paths.local(&subflow.path), paths.local(&subflow.reverse));
    Ok(engine.world.net.make_route(&forward, &reverse))
}

/// Layer-2 bytes per packet on the link that ends at the receiver.
fn last_overhead_bytes(run: &Run, flow: &Flow, subflow: &Subflow) -> Result<u32, SimError> {
    let last = subflow.path.last();
    let last = last.ok_or_else(|| unsupported(flow, "path of no links", &subflow.name))?;
    Ok(run.links[*last].config.overhead_bytes)
}

/// SCTP destinations follow all TCP subflows in the order of routes.
fn add_association(
    engine: &mut Engine,
    run: &Run,
    f: usize,
    s: &SctpFlow,
    paths: &Paths<'_>,
) -> Result<(), SimError> {
    let flow = &run.flows[f];
    let mut rng = Rng::new(run.seed, run.rep, "flow", &flow.name);
    let mss = segment_bytes(flow, s.mss_bytes, &s.traffic)?;
    let index = engine.sctp.len() as u32;
    let mut destinations = Vec::with_capacity(s.destinations.len());
    for (d, subflow) in s.destinations.iter().enumerate() {
        destinations.push(DestinationConfig {
            id: add_route(engine, flow, subflow, paths)?,
            overhead_bytes: last_overhead_bytes(run, flow, subflow)?,
        });
        engine.world.rec.add_sender(f as u32, d as u32);
        engine.destinations.push((index, d as u32));
    }
    engine.sctp.push(Association::new(AssociationConfig {
        flow: f as u32,
        index,
        mss,
        traffic: s.traffic.clone(),
        start_ns: start(flow.start, &mut rng),
        stop_ns: stop_of(run, flow),
        buffer: s.rcv_buffer,
        destinations,
    }));
    Ok(())
}

/// All subflows' changes of priority in time order; those of one time in subflow order.
fn priorities(t: &TcpFlow, first: usize) -> VecDeque<(u64, usize, bool)> {
    let of_subflow = |(k, subflow): (usize, &Subflow)| {
        let changes = subflow.priorities.clone().into_iter();
        changes.map(move |change| (change.at_ns, first + k, change.backup))
    };
    let mut all: Vec<_> = t.subflows.iter().enumerate().flat_map(of_subflow).collect();
    all.sort_unstable();
    all.into()
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
        recovery: t.options.recovery,
        pacing: t.options.pacing,
        slow_start_after_idle: t.options.slow_start_after_idle,
        jitter_ns: t.options.send_jitter_ns,
        tso: t.options.tso.unwrap_or(false),
    }
}

fn receiver_config(run: &Run, t: &TcpFlow, conn: u32, entry: u32) -> ReceiverConfig {
    let max_blocks = match (t.options.recovery, t.mptcp) {
        (LossRecovery::Sack, false) => SACK_BLOCKS.0,
        (LossRecovery::Sack, true) => SACK_BLOCKS.1,
        _ => 0,
    };
    ReceiverConfig {
        delayed_acks: run.profile.delayed_acks(),
        comp_sack: t.options.comp_sack == Some(true) && max_blocks > 0,
        ack_bytes: sender_config(t).ack_header,
        data_header: sender_config(t).data_header,
        base_rtt_ns: 0,
        conn,
        entry,
        max_blocks,
    }
}

fn make_sock(run: &Run, flow: &Flow, t: &TcpFlow) -> Result<Sock, SimError> {
    let fail = |why: String| SimError::Unsupported(format!("flows.{}: cc: {why}", flow.name));
    if t.cc.kernel_name().is_some() {
        return Err(fail(format!(
            "{:?} is an algorithm of the kernel's own, which only the kernel engine runs\n\nhint: write --engine kernel, \
             or take an algorithm of `mptcplab algorithms`",
            t.cc.name
        )));
    }
    let algorithm = mptcplab_cc::find(&t.cc.name)
        .ok_or_else(|| fail(format!("there is no algorithm named {:?}", t.cc.name)))?;
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

fn add_udp(engine: &mut Engine<'_>, run: &Run, f: usize, u: &UdpFlow, paths: &Paths<'_>) {
    let flow = &run.flows[f];
    let mut rng = Rng::new(run.seed, run.rep, "flow", &flow.name);
    let start_ns = start(flow.start, &mut rng);
    let route = engine.world.net.make_route(&paths.local(&u.path), &[]);
    let id = engine.world.net.add_route(route);
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
