//! Flows: transport, paths, traffic and times.

mod context;
mod mesh;
mod path;
mod requests;
mod sctp;
mod subflows;
mod tcp;
mod traffic;
mod transport;
mod udp;

use super::network::Network;
use crate::document::{Item, Res, Table};
use crate::error::Diagnostic;
use crate::format::FLOW;
use crate::run::{Flow, StartTime, Transport};
use context::{Context, stop_ns};
use std::cell::Cell;
use std::collections::BTreeSet;

/// Largest number of flows.
const MAX_FLOWS: usize = 10_000;

/// All flows in file order, with copies expanded.
pub(super) fn flows(top: &Table<'_>, network: &Network, duration_ns: u64) -> Res<Vec<Flow>> {
    let tcp = top.entries.iter().find(|e| e.key == "tcp");
    let tcp = tcp.and_then(|entry| entry.value.as_table());
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
    for (name, item) in map.entries() {
        let table = item.table(&FLOW)?;
        let count = table.optional("count", Item::int)?;
        for copy in 1..=count.unwrap_or(1) {
            let name = count.map_or(name.to_string(), |_| format!("{name}-{copy}"));
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
        refuse_unused(&context, "cc", "TCP or MPTCP", flows.iter().any(tcp))?;
    }
    if !context.used_scheduler.get() {
        refuse_unused(&context, "scheduler", "MPTCP", flows.iter().any(mptcp))?;
    }
    Ok(flows)
}

/// Refuses a common setting that no flow uses, because sweeping or overriding it would have no effect.
fn refuse_unused(context: &Context<'_>, key: &str, who: &str, any: bool) -> Res<()> {
    let Some(item) = context.top.get(key) else {
        return Ok(());
    };
    let (why, hint) = match any {
        true => (
            format!("every {who} flow has its own {key}"),
            format!("set flows.NAME.{key}, or remove it there"),
        ),
        false => (format!("there is no {who} flow"), format!("remove {key}")),
    };
    Err(item.wrong(format!("has no effect: {why}")).hint(hint))
}

fn flow(context: &Context<'_>, table: &Table<'_>, name: String, copy: Option<u64>) -> Res<Flow> {
    let start = table.item("start")?;
    let (lo_ns, hi_ns) = start.span()?;
    if hi_ns >= context.duration_ns {
        return Err(start
            .wrong("is not before the end of the run")
            .hint("start the flow earlier or lengthen duration"));
    }
    let stop_ns = table.optional("stop", |item| stop_ns(item, hi_ns, "start"))?;
    let transport = table.get("transport");
    let transport = match transport.as_ref() {
        Some(item) if item.is("udp") => Transport::Udp(udp::resolve(context, table, copy)?),
        Some(item) if item.is("cmt-sctp") => Transport::Sctp(sctp::resolve(context, table, copy)?),
        _ => Transport::Tcp(tcp::resolve(context, table, transport.as_ref(), copy)?),
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
