//! Builds the engine of a part from the resolved run.

use super::event_loop::{Engine, Owner};
use super::flow_builder::{
    FlowBuilder, last_overhead_bytes, make_sock, segment_bytes, unsupported,
};
use super::partition::Part;
use super::transfer_pool::{MAX_AT_ONCE, TransferPool, TransferPoolConfig};
use crate::app::requests::Dialogue;
use crate::app::udp::{UdpConfig, UdpSource};
use crate::app::video::VideoServer;
use crate::app::{App, Kind};
use crate::control::SimError;
use crate::net::event::{MAX_LINKS, MAX_SOURCES, NEVER};
use crate::net::packet::{MAX_HOPS, MAX_SUBFLOWS};
use crate::net::{Net, Route};
use crate::sctp::{Association, AssociationConfig, DestinationConfig};
use mptcplab_model::link::rng::Rng;
use mptcplab_model::link::{Aqm, Link};
use mptcplab_model::traffic::start;
use mptcplab_scenario::{
    CcConfig, Flow, Requests, Run, SctpFlow, Subflow, TcpFlow, Traffic, Transfers, Transport,
    UdpFlow, Video,
};

/// Controls requests, and the answers to messages. The kernel engine uses the kernel's.
const BACK_ALGORITHM: &str = "reno";

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
    if part.links.len() > MAX_LINKS {
        return Err(SimError::Unsupported(format!(
            "more than {MAX_LINKS} directed links are connected"
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
            Transport::Tcp(t) => Some(FlowBuilder::new(run, f, t)),
            Transport::Sctp(_) | Transport::Udp(_) => None,
        })
        .collect::<Result<Vec<_>, _>>()?;
    let has_transfers =
        |builder: &&FlowBuilder<'_>| matches!(builder.tcp.traffic, Traffic::Transfers(_));
    // Growth by doubling would take half as much again of 10,000 flows.
    engine.apps.reserve_exact(tcp.len());
    for builder in tcp.iter().filter(|m| !has_transfers(m)) {
        add_connection(&mut engine, *builder, &paths)?;
    }
    engine.reported_conns = engine.apps.len();
    let reported_routes = engine.owners.len();
    for builder in &tcp {
        if let Traffic::Requests(Requests {
            answer: Some(_), ..
        }) = &builder.tcp.traffic
        {
            add_back(&mut engine, builder, &paths)?;
        }
    }
    engine.fixed_conns = engine.apps.len();
    engine.fixed_routes = engine.owners.len();
    for builder in tcp.iter().filter(has_transfers) {
        if let Traffic::Transfers(transfers) = &builder.tcp.traffic {
            add_pool(&mut engine, *builder, transfers, &paths)?;
        }
    }
    engine.first_non_tcp = engine.world.net.routes();
    let quiet = engine.first_non_tcp - reported_routes;
    engine.world.rec.add_quiet_senders(quiet);
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
    check_subflows(engine.world.net.routes(), &tcp)?;
    engine.start(run.duration_ns);
    Ok(engine)
}

/// Refuses more subflows than there are indices, and more than a tree has sources: it has the next packet of each that is held
/// back.
fn check_subflows(routes: usize, tcp: &[FlowBuilder<'_>]) -> Result<(), SimError> {
    let holds_back = tcp.iter().any(FlowBuilder::holds_back);
    let most = if holds_back {
        MAX_SOURCES.min(MAX_SUBFLOWS)
    } else {
        MAX_SUBFLOWS
    };
    if routes <= most {
        return Ok(());
    }
    let held = if holds_back {
        "; without send_jitter and host_delay, there can be more"
    } else {
        ""
    };
    Err(SimError::Unsupported(format!(
        "more than {most} subflows share links (a flow of many transfers counts {MAX_AT_ONCE} times){held}"
    )))
}

fn stop_of(run: &Run, flow: &Flow) -> u64 {
    flow.stop_ns
        .filter(|stop| *stop < run.duration_ns)
        .unwrap_or(NEVER)
}

fn add_connection(
    engine: &mut Engine<'_>,
    builder: FlowBuilder<'_>,
    paths: &Paths<'_>,
) -> Result<(), SimError> {
    let (run, t) = (builder.run, builder.tcp);
    let flow = &run.flows[builder.index];
    let mut rng = Rng::new(run.seed, run.rep, "flow", &flow.name);
    let start_ns = start(flow.start, &mut rng);
    let conn = engine.apps.len() as u32;
    let mut subflows = Vec::new();
    for (k, subflow) in t.subflows.iter().enumerate() {
        let id = add_route(engine, flow, subflow, paths)?;
        subflows.push(builder.subflow(id, k, engine.world.net.entry(id), None)?);
        engine.world.rec.add_sender(builder.index as u32, k as u32);
        engine.owners.push(Owner {
            conn,
            subflow: k as u32,
        });
    }
    let kind = match &t.traffic {
        Traffic::Bulk => Kind::Bulk,
        Traffic::Size { bytes } => Kind::Size { bytes: *bytes },
        Traffic::OnOff { on, off } => Kind::OnOff {
            on: *on,
            off: *off,
            active: false,
            rng,
        },
        Traffic::Video(video) => Kind::Video(Box::new(video_server(run, t, video))),
        Traffic::Requests(requests) => {
            let delay_ns = delay_ns(run, &t.subflows[0].path);
            let index = builder.index as u32;
            let dialogue = Dialogue::new(index, requests.clone(), rng, delay_ns);
            Kind::Requests(Box::new(dialogue))
        }
        Traffic::Transfers(_) => {
            return Err(unsupported(flow, "only connection of", "many transfers"));
        }
    };
    let conn = builder.connection(conn, subflows, true);
    let stop_ns = stop_of(run, flow);
    engine.apps.push(App::new(conn, kind, start_ns, stop_ns));
    Ok(())
}

/// The direction from a flow's receiver to its sender: what it carries is small, so that Reno controls it whatever controls the
/// other.
fn add_back(
    engine: &mut Engine<'_>,
    forward: &FlowBuilder<'_>,
    paths: &Paths<'_>,
) -> Result<(), SimError> {
    let (run, flow) = (forward.run, &forward.run.flows[forward.index]);
    let turned = |subflow: &Subflow| Subflow {
        // Random numbers of its own.
        name: format!("{}/back", subflow.name),
        path: subflow.reverse.clone(),
        reverse: subflow.path.clone(),
        ..subflow.clone()
    };
    let tcp = TcpFlow {
        cc: CcConfig {
            name: BACK_ALGORITHM.into(),
            params: Vec::new(),
        },
        subflows: forward.tcp.subflows.iter().map(turned).collect(),
        traffic: Traffic::Bulk,
        ..forward.tcp.clone()
    };
    let builder = FlowBuilder::new(run, forward.index, &tcp)?;
    let conn = engine.apps.len() as u32;
    let mut subflows = Vec::new();
    for (k, subflow) in tcp.subflows.iter().enumerate() {
        let id = add_route(engine, flow, subflow, paths)?;
        subflows.push(builder.subflow(id, k, engine.world.net.entry(id), None)?);
        engine.owners.push(Owner {
            conn,
            subflow: k as u32,
        });
    }
    let apps = engine.apps[..engine.reported_conns].iter_mut().enumerate();
    for (c, app) in apps.filter(|(_, app)| app.conn.flow as usize == forward.index) {
        if let Kind::Requests(dialogue) = &mut app.kind {
            dialogue.back = Some(conn);
            let back = builder.connection(conn, subflows, false);
            let kind = Kind::Back { of: c as u32 };
            engine.apps.push(App::new(back, kind, NEVER, NEVER));
            return Ok(());
        }
    }
    Ok(())
}

fn delay_ns(run: &Run, path: &[usize]) -> u64 {
    let delays = path.iter().map(|&l| run.links[l].config.delay_ns);
    delays.sum()
}

fn video_server(run: &Run, t: &TcpFlow, video: &Video) -> VideoServer {
    let first = &t.subflows[0];
    let delays = (delay_ns(run, &first.path), delay_ns(run, &first.reverse));
    VideoServer::new(video.clone(), delays)
}

/// A flow of many transfers, after all flows of one connection.
fn add_pool<'a>(
    engine: &mut Engine<'a>,
    builder: FlowBuilder<'a>,
    transfers: &Transfers,
    paths: &Paths<'_>,
) -> Result<(), SimError> {
    let flow = &builder.run.flows[builder.index];
    // Report an error of the algorithm now and not at the first transfer.
    make_sock(builder.run, flow, builder.tcp)?;
    let mut rng = Rng::new(builder.run.seed, builder.run.rep, "flow", &flow.name);
    let start_ns = start(flow.start, &mut rng);
    let mut routes = Vec::new();
    for subflow in &builder.tcp.subflows {
        routes.push(make_route(engine, flow, subflow, paths)?);
    }
    engine.world.net.reserve_routes(routes.len() * MAX_AT_ONCE);
    engine.pools.push(TransferPool::new(TransferPoolConfig {
        builder,
        routes,
        transfers: transfers.clone(),
        rng,
        start_ns,
        stop_ns: stop_of(builder.run, flow),
    }));
    Ok(())
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
