//! Flows: TCP, MPTCP and UDP, with their paths and everything that a flow may set.

use super::{Network, Settings, path, traffic};
use crate::error::{Diagnostic, suggest};
use crate::model::{
    CcChoice, Flow, LossRecovery, PriorityChange, RcvBuffer, Scheduler, SctpFlow, StartTime,
    Subflow, TcpFlow, TcpOptions, Traffic, Transport, UdpFlow,
};
use crate::resolve::link::named;
use crate::spec::{
    DEFAULT_UDP_PACKET_BYTES, FLOW, Field, PRIORITY, SCTP_KEYS, SUBFLOW, TCP_FIELDS, UDP_FIELDS,
};
use crate::table::{Item, Res, Table, join};
use std::cell::Cell;
use std::collections::BTreeSet;

/// More flows than this are refused.
const MAX_FLOWS: usize = 10_000;
/// More subflows of one connection are refused.
const MAX_SUBFLOWS: usize = 8;
/// Segments are counted in 32 bits, compared with a sign.
const MAX_SEGMENTS: u128 = 1 << 31;
/// Payload of a full segment: MTU 1500 less IP, TCP and timestamps (52), and the DSS option (20) (spec/scenarios.md 0.1).
const TCP_MSS_BYTES: u32 = 1448;
const MPTCP_MSS_BYTES: u32 = 1428;
/// MTU 1500 less IP (20), SCTP common header (12) and DATA chunk header (16).
const SCTP_MSS_BYTES: u32 = 1452;

/// What flows need from the rest of the scenario.
struct Context<'a> {
    top: &'a Table<'a>,
    network: &'a Network,
    duration_ns: u64,
    common: &'a [crate::value::Entry],
    /// Whether the scenario's `cc` and `scheduler` decided anything.
    used_cc: Cell<bool>,
    used_scheduler: Cell<bool>,
}

/// All flows in file order, copies expanded.
pub(super) fn flows(top: &Table<'_>, network: &Network, duration_ns: u64) -> Res<Vec<Flow>> {
    let tcp = top
        .entries
        .iter()
        .find(|e| e.key == "tcp")
        .and_then(|e| e.value.as_table());
    let context = Context {
        top,
        network,
        duration_ns,
        common: tcp.unwrap_or_default(),
        used_cc: Cell::new(false),
        used_scheduler: Cell::new(false),
    };
    let map = top.item("flows")?;
    let mut flows: Vec<Flow> = Vec::new();
    let mut names = BTreeSet::new();
    for (name, item) in named(&map) {
        let table = item.table(&FLOW)?;
        let count = table.get("count").map(|c| c.int()).transpose()?;
        for copy in 1..=count.unwrap_or(1) {
            let name = count.map_or(name.clone(), |_| format!("{name}-{copy}"));
            if flows.len() >= MAX_FLOWS {
                return Err(table
                    .error("count", format!("more than {MAX_FLOWS} flows"))
                    .hint("lower the counts"));
            }
            if !names.insert(name.clone()) {
                return Err(Diagnostic::new(table.origin, &table.path, format!("a second flow \"{name}\""))
                    .hint("a flow with a count also uses the names NAME-1, NAME-2, ...; rename one of them"));
            }
            flows.push(flow(&context, &table, name, count.map(|_| copy))?);
        }
    }
    let tcp = |flow: &Flow| matches!(flow.transport, Transport::Tcp(_));
    let mptcp = |flow: &Flow| matches!(&flow.transport, Transport::Tcp(t) if t.mptcp);
    if !context.used_cc.get() {
        unused(&context, "cc", "TCP or MPTCP", flows.iter().any(tcp))?;
    }
    if !context.used_scheduler.get() {
        unused(&context, "scheduler", "MPTCP", flows.iter().any(mptcp))?;
    }
    Ok(flows)
}

/// A common setting that no flow takes would be swept or overridden without any effect.
fn unused(context: &Context<'_>, key: &str, who: &str, any: bool) -> Res<()> {
    let Some(item) = context.top.get(key) else {
        return Ok(());
    };
    let value = item.value.quoted();
    Err(if any {
        item.error(format!(
            "{value} has no effect: every {who} flow has its own {key}"
        ))
        .hint(format!("set flows.NAME.{key}, or remove it there"))
    } else {
        item.error(format!("{value} has no effect: there is no {who} flow"))
            .hint(format!("remove {key}"))
    })
}

fn flow(context: &Context<'_>, table: &Table<'_>, name: String, copy: Option<u64>) -> Res<Flow> {
    let start = table.item("start")?;
    let (lo_ns, hi_ns) = start.span()?;
    if hi_ns >= context.duration_ns {
        let message = format!("{} is not before the end of the run", start.value.quoted());
        return Err(start
            .error(message)
            .hint("start the flow earlier or lengthen duration"));
    }
    let stop_ns = table
        .get("stop")
        .map(|item| later(&item, hi_ns, "start"))
        .transpose()?;
    let transport = table.get("transport");
    let transport = match transport.as_ref() {
        Some(item) if item.is("udp") => Transport::Udp(udp(context, table, copy)?),
        Some(item) if item.is("cmt-sctp") => Transport::Sctp(sctp(context, table, copy)?),
        _ => Transport::Tcp(tcp(context, table, transport.as_ref(), copy)?),
    };
    let start = match lo_ns == hi_ns {
        true => StartTime::At(lo_ns),
        false => StartTime::Uniform { lo_ns, hi_ns },
    };
    Ok(Flow {
        name,
        start,
        stop_ns,
        transport,
    })
}

fn later(item: &Item<'_>, start_ns: u64, what: &str) -> Res<u64> {
    match item.duration()? {
        ns if ns > start_ns => Ok(ns),
        _ => Err(item
            .error(format!(
                "{} is not after the {what} at {}",
                item.value.quoted(),
                crate::format::time(start_ns)
            ))
            .hint("write a later time")),
    }
}

/// Refuses keys of another transport.
fn foreign(table: &Table<'_>, fields: &[Field], transport: &str) -> Res<()> {
    match table
        .entries
        .iter()
        .find(|e| fields.iter().any(|f| f.key == e.key))
    {
        None => Ok(()),
        Some(entry) => {
            let article = if transport == "SCTP" { "an" } else { "a" };
            let message = format!("{article} {transport} flow has no {}", entry.key);
            let hint = match transport {
                "UDP" => "it is a setting of TCP and MPTCP flows; remove it",
                _ => "it is a setting of flows with transport = \"udp\"",
            };
            Err(
                Diagnostic::new(entry.key_origin, join(&table.path, &entry.key), message)
                    .hint(hint),
            )
        }
    }
}

fn udp(context: &Context<'_>, table: &Table<'_>, copy: Option<u64>) -> Res<UdpFlow> {
    foreign(table, TCP_FIELDS, "UDP")?;
    for key in [
        "cc",
        "scheduler",
        "subflows",
        "paths",
        "path_manager",
        "subflows_per_path",
    ] {
        if let Some(item) = table.get(key) {
            return Err(item
                .error(format!("a UDP flow has no {key}"))
                .hint("it has one path = [...] and a rate"));
        }
    }
    let Some(path) = table.get("path") else {
        return Err(table.missing("path"));
    };
    let links = path::resolve(context.network, &path, copy)?;
    check_ends(context, table, &path, &links)?;
    let Some(rate) = table.get("rate") else {
        return Err(table.missing("rate"));
    };
    let rate_bps = match rate.rate()? {
        0 => {
            return Err(rate
                .error(format!("{} sends nothing", rate.value.quoted()))
                .hint("write \"1 Mbit/s\""));
        }
        rate => rate,
    };
    let traffic = table.item("traffic")?;
    let on_off = match traffic::of(&traffic, 0)? {
        Traffic::Bulk => None,
        Traffic::OnOff { on, off } => Some((on, off)),
        Traffic::Size { .. } | Traffic::Transfers(_) => {
            let error = Diagnostic::new(
                traffic.value.origin,
                join(&traffic.path, "size"),
                "a UDP flow has no size",
            );
            return Err(error.hint("set stop, or on and off"));
        }
        Traffic::Video(_) => {
            return Err(traffic
                .error("a UDP flow has no video")
                .hint("a video measures its throughput over TCP or MPTCP"));
        }
    };
    let packet_bytes = match table.get("packet") {
        Some(item) => item.size_in(28..=9000)?,
        None => DEFAULT_UDP_PACKET_BYTES,
    };
    Ok(UdpFlow {
        rate_bps,
        packet_bytes,
        path: links,
        on_off,
    })
}

fn sctp(context: &Context<'_>, table: &Table<'_>, copy: Option<u64>) -> Res<SctpFlow> {
    foreign(table, UDP_FIELDS, "SCTP")?;
    not_of_sctp(table)?;
    let destinations = subflows(context, table, copy)?;
    let settings = Settings {
        flow: table.clone(),
        common: &[],
    };
    let mss_bytes = match settings.get("mss") {
        Some(item) => item.size_in(64..=8900)?,
        None => SCTP_MSS_BYTES,
    };
    for destination in &destinations {
        few_enough_segments(context, table, destination, mss_bytes)?;
    }
    let buffer = settings.item("rcv_buffer")?;
    let rcv_buffer = rcv_buffer(&buffer, mss_bytes)?;
    if let RcvBuffer::Auto { .. } = rcv_buffer {
        return Err(buffer
            .error("an SCTP flow's receive buffer does not grow")
            .hint("write a size, or \"unlimited\""));
    }
    let traffic = table.item("traffic")?;
    Ok(SctpFlow {
        destinations,
        traffic: match traffic::of(&traffic, 0)? {
            kind @ (Traffic::Bulk | Traffic::Size { .. }) => kind,
            Traffic::OnOff { .. } | Traffic::Transfers(_) | Traffic::Video(_) => {
                return Err(traffic
                    .error("an SCTP flow is bulk or has a size")
                    .hint("write \"bulk\" or { size = \"10 MB\" }"));
            }
        },
        rcv_buffer,
        mss_bytes,
    })
}

/// Refuses what TCP and MPTCP flows have and SCTP flows have not.
fn not_of_sctp(table: &Table<'_>) -> Res<()> {
    let tcp_only = |key: &str| TCP_FIELDS.iter().any(|f| f.key == key) && !SCTP_KEYS.contains(&key);
    for entry in table.entries {
        let hint = match entry.key.as_str() {
            "cc" | "scheduler" => "SCTP has its own; remove it",
            "path_manager" | "subflows_per_path" => "all its paths are used; write paths = [...]",
            key if tcp_only(key) => "it is a setting of TCP and MPTCP flows; remove it",
            _ => continue,
        };
        let message = format!("an SCTP flow has no {}", entry.key);
        let path = join(&table.path, &entry.key);
        return Err(Diagnostic::new(entry.key_origin, path, message).hint(hint));
    }
    let Some(list) = table.get("subflows") else {
        return Ok(());
    };
    for item in list.list()? {
        let subflow = item.table(&SUBFLOW)?;
        for key in ["start", "stop", "backup", "priority"] {
            if let Some(item) = subflow.get(key) {
                return Err(item
                    .error(format!("a destination of an SCTP flow has no {key}"))
                    .hint("all its paths are used from the beginning to the end"));
            }
        }
    }
    Ok(())
}

fn tcp(
    context: &Context<'_>,
    table: &Table<'_>,
    transport: Option<&Item<'_>>,
    copy: Option<u64>,
) -> Res<TcpFlow> {
    foreign(table, UDP_FIELDS, "TCP")?;
    let subflows = subflows(context, table, copy)?;
    let managed = table.get("path_manager");
    let several = subflows.len() > 1 || managed.is_some();
    let mptcp = transport.map_or(several, |item| item.is("mptcp"));
    if let (false, Some(item)) = (mptcp, managed) {
        return Err(item
            .error("a TCP flow has no path manager")
            .hint("remove it, or write transport = \"mptcp\""));
    }
    if let (false, Some(item)) = (mptcp || subflows.len() == 1, transport) {
        return Err(item
            .error(format!(
                "TCP uses one path, but there are {}",
                subflows.len()
            ))
            .hint("write transport = \"mptcp\", or keep one path"));
    }
    let settings = Settings {
        flow: table.clone(),
        common: context.common,
    };
    let mss_bytes = match settings.get("mss") {
        Some(item) => item.size_in(64..=8900)?,
        None if mptcp => MPTCP_MSS_BYTES,
        None => TCP_MSS_BYTES,
    };
    for subflow in &subflows {
        few_enough_segments(context, table, subflow, mss_bytes)?;
    }
    let traffic = traffic::of(&table.item("traffic")?, nominal_bps(context, &subflows))?;
    if let Traffic::Transfers(_) = traffic {
        timeless(table, &subflows)?;
    }
    let flow = TcpFlow {
        mptcp,
        cc: cc(context, table)?,
        scheduler: scheduler(context, table, mptcp)?,
        subflows,
        traffic,
        rcv_buffer: rcv_buffer(&settings.item("rcv_buffer")?, mss_bytes)?,
        mss_bytes,
        options: options(&settings)?,
    };
    recovery_fits(&settings, &flow)?;
    Ok(flow)
}

/// The textbooks' recoveries set the window themselves, and so does an algorithm that controls its rate.
fn recovery_fits(settings: &Settings<'_>, flow: &TcpFlow) -> Res<()> {
    let rate_based =
        mptcplab_cc::find(&flow.cc.name).is_some_and(mptcplab_cc::Algorithm::has_cong_control);
    if !rate_based || flow.options.recovery == LossRecovery::Sack {
        return Ok(());
    }
    let item = settings.item("recovery")?;
    let message = format!(
        "{} sets the window, and so does {}, which controls its own rate",
        item.value.quoted(),
        flow.cc.name
    );
    Err(item
        .error(message)
        .hint("use \"sack\", or a congestion control that only answers losses"))
}

fn cc(context: &Context<'_>, table: &Table<'_>) -> Res<CcChoice> {
    if let Some(item) = table.get("cc") {
        return crate::algorithm::resolve(&item);
    }
    match context.top.get("cc") {
        Some(item) => {
            context.used_cc.set(true);
            crate::algorithm::resolve(&item)
        }
        None => Err(Diagnostic::new(
            table.origin,
            join(&table.path, "cc"),
            "missing: neither the flow nor the scenario names a congestion control",
        )
        .hint("add cc = \"lia\" to the flow, or at the top of the file for all flows")),
    }
}

fn scheduler(context: &Context<'_>, table: &Table<'_>, mptcp: bool) -> Res<Option<Scheduler>> {
    let item = match table.get("scheduler") {
        Some(item) if !mptcp => {
            return Err(item
                .error("a TCP flow has no packet scheduler")
                .hint("remove it, or write transport = \"mptcp\""));
        }
        Some(item) => item,
        None => {
            context
                .used_scheduler
                .set(context.used_scheduler.get() || mptcp);
            match context.top.get("scheduler") {
                Some(item) => item,
                None => return Ok(None),
            }
        }
    };
    crate::scheduler::resolve(&item).map(Some)
}

/// The subflows, however the paths are written.
fn subflows(context: &Context<'_>, table: &Table<'_>, copy: Option<u64>) -> Res<Vec<Subflow>> {
    let ways: Vec<Item<'_>> = ["path", "paths", "subflows"]
        .into_iter()
        .filter_map(|key| table.get(key))
        .collect();
    match ways.as_slice() {
        [way] if way.path.ends_with(".subflows") => listed(context, table, way, copy),
        [way] => {
            let paths = written_paths(context, table, way, copy)?;
            managed(context, table, way, &paths)
        }
        [] => match table.get("path_manager") {
            Some(manager) => managed(context, table, &manager, &found_paths(context, table)?),
            None => Err(table
                .missing("paths")
                .hint("add path = [\"link\", ...] or paths = [[\"link\", ...], [\"link\", ...]]")),
        },
        [_, second, ..] => {
            let key = second.path.rsplit('.').next().unwrap_or_default();
            Err(Diagnostic::new(
                second.key_origin,
                &second.path,
                format!("{key} beside another way to give the paths"),
            )
            .hint("give exactly one of path, paths and subflows"))
        }
    }
}

/// Refuses as many subflows as no connection has; `way` is what asks for them.
fn few_enough(way: &Item<'_>, subflows: usize) -> Res<()> {
    match subflows {
        1..=MAX_SUBFLOWS => Ok(()),
        _ => Err(way
            .error(format!("{subflows} subflows"))
            .hint(format!("a flow has 1 to {MAX_SUBFLOWS}"))),
    }
}

/// `subflows = [...]`.
fn listed(
    context: &Context<'_>,
    table: &Table<'_>,
    way: &Item<'_>,
    copy: Option<u64>,
) -> Res<Vec<Subflow>> {
    for key in ["path_manager", "subflows_per_path"] {
        if let Some(item) = table.get(key) {
            return Err(item
                .error(format!("{key} beside subflows, which are the whole list"))
                .hint("remove it, or write paths = [[...], [...]] instead of subflows"));
        }
    }
    let items = way.list()?;
    few_enough(way, items.len())?;
    let mut subflows: Vec<Subflow> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let subflow = full_subflow(context, &item.table(&SUBFLOW)?, i, copy)?;
        check_ends(context, table, item, &subflow.path)?;
        if let Some(first) = subflows.first() {
            same_ends(context, item, &first.path, &subflow.path)?;
        }
        if subflows.iter().any(|other| other.name == subflow.name) {
            return Err(item
                .error(format!("a second subflow \"{}\"", subflow.name))
                .hint("give every subflow its own name"));
        }
        subflows.push(subflow);
    }
    Ok(subflows)
}

/// `path = [...]` or `paths = [...]`.
fn written_paths(
    context: &Context<'_>,
    table: &Table<'_>,
    way: &Item<'_>,
    copy: Option<u64>,
) -> Res<Vec<Vec<usize>>> {
    let items = match way.path.ends_with(".path") {
        true => vec![way.clone()],
        false => way.list()?,
    };
    few_enough(way, items.len())?;
    let mut paths: Vec<Vec<usize>> = Vec::with_capacity(items.len());
    for item in &items {
        let path = path::resolve(context.network, item, copy)?;
        path::backwards(context.network, &path, item)?;
        check_ends(context, table, item, &path)?;
        if let Some(first) = paths.first() {
            same_ends(context, item, first, &path)?;
        }
        paths.push(path);
    }
    Ok(paths)
}

/// The paths between `from` and `to` by pair of interfaces.
fn found_paths(context: &Context<'_>, table: &Table<'_>) -> Res<Vec<Vec<usize>>> {
    let (from_item, from) = end(context, table, "from")?;
    let (_, to) = end(context, table, "to")?;
    let paths = super::mesh::paths(context.network, from, to);
    if paths.is_empty() {
        let name = |node: usize| &context.network.nodes[node];
        let message = format!("no path leads from \"{}\" to \"{}\"", name(from), name(to));
        return Err(from_item
            .error(message)
            .hint("name two nodes that links join, each with a way back; or give path or paths"));
    }
    Ok(paths)
}

/// The node that a flow names as one of its ends.
fn end<'a>(context: &Context<'_>, table: &Table<'a>, key: &str) -> Res<(Item<'a>, usize)> {
    let Some(item) = table.get(key) else {
        return Err(table
            .missing(key)
            .hint("a path manager needs from and to, or paths = [[\"link\", ...], ...]"));
    };
    let node = known_node(context, &item)?;
    Ok((item, node))
}

/// The subflows that the flow's path manager opens on these paths; `way` is where they come from.
fn managed(
    context: &Context<'_>,
    table: &Table<'_>,
    way: &Item<'_>,
    paths: &[Vec<usize>],
) -> Res<Vec<Subflow>> {
    let manager = table.get("path_manager");
    let is = |name: &str| manager.as_ref().is_some_and(|m| m.is(name));
    let each = table.get("subflows_per_path");
    let most = match is("default") || is("ndiffports") {
        true => 1,
        false => paths.len(),
    };
    let wanted = each.as_ref().map(|item| item.int()).transpose()?;
    let per_path = match (&each, wanted) {
        (Some(item), Some(n)) if n > 1 && is("default") => {
            return Err(item
                .error(format!(
                    "{n}, but path_manager = \"default\" opens one subflow"
                ))
                .hint("write path_manager = \"ndiffports\", or remove one of them"));
        }
        (Some(item), Some(1)) if is("ndiffports") => {
            return Err(item
                .error("1, but path_manager = \"ndiffports\" opens several subflows")
                .hint("write 2 or more, or path_manager = \"default\""));
        }
        (_, Some(n)) => n,
        (_, None) if is("ndiffports") => 2,
        (_, None) => 1,
    };
    // At most 8 of each, by their types.
    let count = most * usize::try_from(per_path).unwrap_or(usize::MAX);
    few_enough(each.as_ref().unwrap_or(way), count)?;
    // Exactly as many: collecting results would make room for four, in each of thousands of flows.
    let mut subflows = Vec::with_capacity(count);
    for i in 0..count {
        subflows.push(plain_subflow(context, way, i, &paths[i % most])?);
    }
    Ok(subflows)
}

fn plain_subflow(
    context: &Context<'_>,
    way: &Item<'_>,
    index: usize,
    path: &[usize],
) -> Res<Subflow> {
    Ok(Subflow {
        name: format!("sf{}", index + 1),
        path: path.to_vec(),
        reverse: path::backwards(context.network, path, way)?,
        start_ns: None,
        stop_ns: None,
        backup: false,
        priorities: Vec::new(),
    })
}

fn full_subflow(
    context: &Context<'_>,
    table: &Table<'_>,
    index: usize,
    copy: Option<u64>,
) -> Res<Subflow> {
    let network = context.network;
    let path_item = table.item("path")?;
    let path = path::resolve(network, &path_item, copy)?;
    let reverse = match table.get("reverse") {
        None => path::backwards(network, &path, &path_item)?,
        Some(item) => {
            let reverse = path::resolve(network, &item, copy)?;
            let ((from, to), (back_from, back_to)) =
                (path::ends(network, &path), path::ends(network, &reverse));
            if (from, to) != (back_to, back_from) {
                let name = |node: usize| &network.nodes[node];
                let message = format!(
                    "leads from \"{}\" to \"{}\"",
                    name(back_from),
                    name(back_to)
                );
                return Err(item.error(message).hint(format!(
                    "the way back leads from \"{}\" to \"{}\"",
                    name(to),
                    name(from)
                )));
            }
            reverse
        }
    };
    let start = table.get("start");
    if let (Some(start), 0) = (&start, index) {
        return Err(start
            .error("the first subflow opens the connection")
            .hint("set the flow's own start instead"));
    }
    let start_ns = start.as_ref().map(|item| item.duration()).transpose()?;
    if let Some(start) = start.filter(|_| start_ns >= Some(context.duration_ns)) {
        let message = format!("{} is not before the end of the run", start.value.quoted());
        return Err(start
            .error(message)
            .hint("start the subflow earlier or lengthen duration"));
    }
    let stop_ns = table
        .get("stop")
        .map(|item| later(&item, start_ns.unwrap_or(0), "subflow's start"))
        .transpose()?;
    Ok(Subflow {
        name: table
            .get("name")
            .map(|n| n.text().map(str::to_string))
            .transpose()?
            .unwrap_or(format!("sf{}", index + 1)),
        path,
        reverse,
        start_ns,
        stop_ns,
        backup: table.item("backup")?.boolean()?,
        priorities: match table.get("priority") {
            Some(item) => priorities(&item)?,
            None => Vec::new(),
        },
    })
}

fn priorities(item: &Item<'_>) -> Res<Vec<PriorityChange>> {
    let mut changes: Vec<PriorityChange> = Vec::new();
    for entry in item.list()? {
        let table = entry.table(&PRIORITY)?;
        let at = table.item("at")?;
        let at_ns = at.duration()?;
        if changes.last().is_some_and(|before| before.at_ns >= at_ns) {
            return Err(at
                .error(format!(
                    "{} is not after the change before it",
                    at.value.quoted()
                ))
                .hint("write changes in time order"));
        }
        let backup = table.item("backup")?.boolean()?;
        changes.push(PriorityChange { at_ns, backup });
    }
    Ok(changes)
}

/// Holds a path against `from` and `to` where given.
fn check_ends(
    context: &Context<'_>,
    table: &Table<'_>,
    path: &Item<'_>,
    links: &[usize],
) -> Res<()> {
    let nodes = &context.network.nodes;
    let (from, to) = path::ends(context.network, links);
    for (key, node, verb) in [("from", from, "begins"), ("to", to, "ends")] {
        let Some(item) = table.get(key) else { continue };
        let wanted = item.text()?;
        if known_node(context, &item)? != node {
            let message = format!("{verb} at \"{}\", not at \"{wanted}\"", nodes[node]);
            return Err(path
                .error(message)
                .hint(format!("the flow says {key} = \"{wanted}\"")));
        }
    }
    Ok(())
}

fn known_node(context: &Context<'_>, item: &Item<'_>) -> Res<usize> {
    let nodes = &context.network.nodes;
    let wanted = item.text()?;
    let known = nodes.iter().position(|name| name == wanted);
    known.ok_or_else(|| {
        item.error(format!("no node \"{wanted}\""))
            .maybe_hint(suggest(wanted, nodes.iter().map(String::as_str), "nodes"))
    })
}

fn same_ends(context: &Context<'_>, item: &Item<'_>, first: &[usize], path: &[usize]) -> Res<()> {
    let name = |node: usize| &context.network.nodes[node];
    let (from, to) = path::ends(context.network, first);
    let (other_from, other_to) = path::ends(context.network, path);
    if (from, to) == (other_from, other_to) {
        return Ok(());
    }
    Err(item
        .error(format!(
            "leads from \"{}\" to \"{}\", but the first subflow from \"{}\" to \"{}\"",
            name(other_from),
            name(other_to),
            name(from),
            name(to)
        ))
        .hint("all subflows join the same two nodes"))
}

fn few_enough_segments(
    context: &Context<'_>,
    table: &Table<'_>,
    subflow: &Subflow,
    mss_bytes: u32,
) -> Res<()> {
    let fastest = |&link: &usize| {
        let config = &context.network.links[link].config;
        let later = config
            .schedule
            .iter()
            .filter_map(|change| change.rate_bps)
            .max();
        config.rate_bps.max(later.unwrap_or(0))
    };
    let Some(rate_bps) = subflow.path.iter().map(fastest).min() else {
        return Ok(());
    };
    let bits = u128::from(rate_bps) * u128::from(context.duration_ns) / 1_000_000_000;
    match bits / (8 * u128::from(mss_bytes)) < MAX_SEGMENTS {
        true => Ok(()),
        false => Err(Diagnostic::new(
            table.origin,
            &table.path,
            format!(
                "subflow {} could carry more than 2^31 segments in this run",
                subflow.name
            ),
        )
        .hint("shorten duration, lower the rate or raise mss")),
    }
}

/// Lowest rate on the first path when the run begins, in bit/s.
fn nominal_bps(context: &Context<'_>, subflows: &[Subflow]) -> u64 {
    let links = subflows.first().map_or(&[][..], |first| &first.path);
    let rates = links
        .iter()
        .map(|&link| context.network.links[link].config.rate_bps);
    rates.min().unwrap_or(0)
}

/// Every transfer opens all subflows when it begins: they have no times of their own.
fn timeless(table: &Table<'_>, subflows: &[Subflow]) -> Res<()> {
    let timed =
        |s: &&Subflow| s.start_ns.is_some() || s.stop_ns.is_some() || !s.priorities.is_empty();
    match subflows.iter().find(timed) {
        None => Ok(()),
        Some(subflow) => Err(table
            .error(
                "subflows",
                format!(
                    "subflow {} has a time, but every transfer opens its own subflows",
                    subflow.name
                ),
            )
            .hint("remove start and stop of the subflow")),
    }
}

fn rcv_buffer(item: &Item<'_>, mss_bytes: u32) -> Res<RcvBuffer> {
    let at_least_two = |item: &Item<'_>| match item.size()? {
        bytes if bytes >= 2 * u64::from(mss_bytes) => Ok(bytes),
        _ => Err(item
            .error(format!(
                "{} does not hold two segments",
                item.value.quoted()
            ))
            .hint(format!("at least \"{} bytes\"", 2 * mss_bytes))),
    };
    if item.is("unlimited") {
        return Ok(RcvBuffer::Unlimited);
    }
    if !item.is_table() {
        return at_least_two(item).map(RcvBuffer::Fixed);
    }
    let auto = Item {
        value: std::borrow::Cow::Borrowed(item.value.get("auto").unwrap_or(&item.value)),
        key_origin: item.key_origin,
        path: join(&item.path, "auto"),
    };
    at_least_two(&auto).map(|max_bytes| RcvBuffer::Auto { max_bytes })
}

fn recovery(settings: &Settings<'_>) -> Res<LossRecovery> {
    let item = settings.item("recovery")?;
    let found = LossRecovery::ALL.into_iter().find(|r| item.is(r.name()));
    found.ok_or_else(|| item.error(format!("{} is not a loss recovery", item.value.quoted())))
}

fn options(settings: &Settings<'_>) -> Res<TcpOptions> {
    let flag = |key| settings.item(key)?.boolean();
    let given = |key| settings.get(key).map(|i| i.boolean()).transpose();
    let unless = |key, word| match settings.item(key)? {
        item if item.is(word) => Ok(None),
        item => item.packets().map(Some),
    };
    let jitter = settings.item("send_jitter")?;
    let send_jitter_ns = match jitter.duration()? {
        ns if ns <= 1_000_000_000 => ns,
        _ => {
            return Err(jitter
                .error(format!("{} is out of range", jitter.value.quoted()))
                .hint("at most \"1 s\""));
        }
    };
    let stale_after = settings.get("stale_after").map(|i| i.int()).transpose()?;
    Ok(TcpOptions {
        initial_cwnd_pkts: settings.item("initial_cwnd")?.packets()?,
        initial_ssthresh_pkts: unless("initial_ssthresh", "infinite")?,
        ecn: flag("ecn")?,
        recovery: recovery(settings)?,
        pacing: flag("pacing")?,
        slow_start_after_idle: flag("slow_start_after_idle")?,
        reinject: flag("reinject")?,
        // At most 255, by its type.
        stale_after: stale_after.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        send_jitter_ns,
        tso: given("tso")?,
        comp_sack: given("comp_sack")?,
        cwnd_clamp_pkts: unless("cwnd_clamp", "none")?,
    })
}
