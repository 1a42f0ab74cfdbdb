//! Subflows of connections and destinations of associations: listed in the scenario, or opened by a path manager.

use super::context::{Context, stop_ns};
use super::{mesh, path};
use crate::document::{Item, Res, Table};
use crate::error::{Diagnostic, suggest};
use crate::format::{PRIORITY, SUBFLOW};
use crate::run::{PriorityChange, Subflow};

/// Largest number of subflows of a connection.
const MAX_SUBFLOWS: usize = 8;

/// The subflows of a flow, from `path`, `paths`, `subflows` or `path_manager`.
pub(super) fn subflows(
    context: &Context<'_>,
    table: &Table<'_>,
    copy: Option<u64>,
) -> Res<Vec<Subflow>> {
    let ways: Vec<Item<'_>> = ["path", "paths", "subflows"]
        .into_iter()
        .filter_map(|key| table.get(key))
        .collect();
    match ways.as_slice() {
        [way] if way.path.ends_with(".subflows") => listed_subflows(context, table, way, copy),
        [way] => {
            let paths = written_paths(context, table, way, copy)?;
            path_manager_subflows(context, table, way, &paths)
        }
        [] => match table.get("path_manager") {
            Some(manager) => {
                path_manager_subflows(context, table, &manager, &discovered_paths(context, table)?)
            }
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

/// Refuses too many subflows; `way` is the value that asks for them.
fn check_subflow_count(way: &Item<'_>, subflows: usize) -> Res<()> {
    match subflows {
        1..=MAX_SUBFLOWS => Ok(()),
        _ => Err(way
            .error(format!("{subflows} subflows"))
            .hint(format!("a flow has 1 to {MAX_SUBFLOWS}"))),
    }
}

/// `subflows = [...]`.
fn listed_subflows(
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
    check_subflow_count(way, items.len())?;
    let (_, flow_start_ns) = table.item("start")?.span()?;
    let mut subflows: Vec<Subflow> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let subflow = listed_subflow(context, &item.table(&SUBFLOW)?, i, copy, flow_start_ns)?;
        check_ends(context, table, item, &subflow.path)?;
        if let Some(first) = subflows.first() {
            check_same_ends(context, item, &first.path, &subflow.path)?;
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
    check_subflow_count(way, items.len())?;
    let mut paths: Vec<Vec<usize>> = Vec::with_capacity(items.len());
    for item in &items {
        let path = path::resolve(context.network, item, copy)?;
        path::backwards(context.network, &path, item)?;
        check_ends(context, table, item, &path)?;
        if let Some(first) = paths.first() {
            check_same_ends(context, item, first, &path)?;
        }
        paths.push(path);
    }
    Ok(paths)
}

/// The paths between `from` and `to`, one for each pair of interfaces.
fn discovered_paths(context: &Context<'_>, table: &Table<'_>) -> Res<Vec<Vec<usize>>> {
    let (from_item, from) = end(context, table, "from")?;
    let (_, to) = end(context, table, "to")?;
    let paths = mesh::paths(context.network, from, to);
    if paths.is_empty() {
        let name = |node: usize| &context.network.nodes[node];
        let message = format!("no path leads from \"{}\" to \"{}\"", name(from), name(to));
        return Err(from_item
            .error(message)
            .hint("name two nodes that links join, each with a way back; or give path or paths"));
    }
    Ok(paths)
}

/// The node that `key` names as an end of the flow.
fn end<'a>(context: &Context<'_>, table: &Table<'a>, key: &str) -> Res<(Item<'a>, usize)> {
    let Some(item) = table.get(key) else {
        return Err(table
            .missing(key)
            .hint("a path manager needs from and to, or paths = [[\"link\", ...], ...]"));
    };
    let node = node_index(context, &item)?;
    Ok((item, node))
}

/// The subflows that the flow's path manager opens on `paths`; `way` is the value that gives the paths.
fn path_manager_subflows(
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
    // Each factor is at most 8 by its declared type, or bounded by the number of paths.
    let count = most * usize::try_from(per_path).unwrap_or(usize::MAX);
    check_subflow_count(each.as_ref().unwrap_or(way), count)?;
    // Allocates exactly `count`: collecting would allocate room for four, in each of thousands of flows.
    let mut subflows = Vec::with_capacity(count);
    for i in 0..count {
        subflows.push(subflow_on(context, way, i, &paths[i % most])?);
    }
    Ok(subflows)
}

fn subflow_on(context: &Context<'_>, way: &Item<'_>, index: usize, path: &[usize]) -> Res<Subflow> {
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

fn listed_subflow(
    context: &Context<'_>,
    table: &Table<'_>,
    index: usize,
    copy: Option<u64>,
    flow_start_ns: u64,
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
        return Err(start
            .wrong("is not before the end of the run")
            .hint("start the subflow earlier or lengthen duration"));
    }
    let (begins_ns, what) = match start_ns {
        Some(ns) if ns > flow_start_ns => (ns, "subflow's start"),
        _ => (flow_start_ns, "flow's start"),
    };
    let stop_ns = table.optional("stop", |item| stop_ns(item, begins_ns, what))?;
    let name = table.optional("name", |item| item.text().map(str::to_string))?;
    Ok(Subflow {
        name: name.unwrap_or(format!("sf{}", index + 1)),
        path,
        reverse,
        start_ns,
        stop_ns,
        backup: table.item("backup")?.boolean()?,
        priorities: table.optional("priority", priorities)?.unwrap_or_default(),
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
                .wrong("is not after the change before it")
                .hint("write changes in time order"));
        }
        let backup = table.item("backup")?.boolean()?;
        changes.push(PriorityChange { at_ns, backup });
    }
    Ok(changes)
}

/// Compares the ends of a path with `from` and `to`, if the flow has them.
pub(super) fn check_ends(
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
        if node_index(context, &item)? != node {
            let message = format!("{verb} at \"{}\", not at \"{wanted}\"", nodes[node]);
            return Err(path
                .error(message)
                .hint(format!("the flow says {key} = \"{wanted}\"")));
        }
    }
    Ok(())
}

fn node_index(context: &Context<'_>, item: &Item<'_>) -> Res<usize> {
    let nodes = &context.network.nodes;
    let wanted = item.text()?;
    let known = nodes.iter().position(|name| name == wanted);
    known.ok_or_else(|| {
        item.error(format!("no node \"{wanted}\""))
            .maybe_hint(suggest(wanted, nodes.iter().map(String::as_str), "nodes"))
    })
}

fn check_same_ends(
    context: &Context<'_>,
    item: &Item<'_>,
    first: &[usize],
    path: &[usize],
) -> Res<()> {
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
