//! The nodes and directed links of a scenario. Queue sizes are resolved later, because they may depend on the paths.

mod aqm;
mod impairments;
mod link;
mod queue;
mod schedule;

use crate::document::{Item, Res, Table};
use crate::error::{Diagnostic, suggest};
use crate::files::Files;
use crate::format::LINK;
use crate::names::{NAME_HINT, check_name};
use crate::run::{Flow, Link};
use link::{Direction, backward, forward};
use queue::DraftQueue;
use std::collections::BTreeMap;

/// Largest number of directed links.
const MAX_LINKS: usize = 20_000;

/// Largest number of scheduled changes of all links together; for a recorded rate there are traces.
const MAX_CHANGES: usize = 200_000;

/// Nodes and links.
pub(crate) struct Network {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<Link>,
    queues: Vec<DraftQueue>,
    /// Link name to index.
    pub(crate) index: BTreeMap<String, usize>,
    /// Number of copies of the links that have a `count`.
    pub(crate) copies: BTreeMap<String, u64>,
    node_index: BTreeMap<String, usize>,
    /// Number of scheduled changes so far.
    changes: usize,
}

/// Builds the network of a scenario.
pub(crate) fn network(top: &Table<'_>, files: &mut Files<'_>) -> Res<Network> {
    let mut network = Network {
        nodes: Vec::new(),
        links: Vec::new(),
        queues: Vec::new(),
        index: BTreeMap::new(),
        copies: BTreeMap::new(),
        node_index: BTreeMap::new(),
        changes: 0,
    };
    let listed = listed_nodes(top, &mut network)?;
    let links = top.item("links")?;
    for (name, item) in links.entries() {
        let table = item.table(&LINK)?;
        let forward = forward(&table, files)?;
        let backward = backward(&table, &forward.0, files)?;
        let count = table.optional("count", Item::int)?;
        if let Some(count) = count {
            network.copies.insert(name.to_string(), count);
        }
        for copy in 1..=count.unwrap_or(1) {
            let copy_name = count.map_or(name.to_string(), |_| format!("{name}-{copy}"));
            let from = network.end(&table, "from", count.map(|_| copy), listed)?;
            let to = network.end(&table, "to", count.map(|_| copy), listed)?;
            if from == to {
                let message = format!("\"{}\" is also where the link begins", network.nodes[to]);
                return Err(table.error("to", message).hint("a link joins two nodes"));
            }
            network.add(&table, copy_name.clone(), (from, to), &forward)?;
            if let Some(backward) = &backward {
                network.add(&table, format!("{copy_name}~"), (to, from), backward)?;
            }
        }
    }
    Ok(network)
}

/// Adds the nodes of the key `nodes`; false if the scenario does not have the key.
fn listed_nodes(top: &Table<'_>, network: &mut Network) -> Res<bool> {
    let Some(nodes) = top.get("nodes") else {
        return Ok(false);
    };
    for node in nodes.list()? {
        let name = node.text()?;
        if let Err(why) = check_name(name) {
            return Err(node.wrong(format!("is not a name: {why}")).hint(NAME_HINT));
        }
        if network.node_index.contains_key(name) {
            return Err(node.wrong("is there twice").hint("name every node once"));
        }
        network
            .node_index
            .insert(name.to_string(), network.nodes.len());
        network.nodes.push(name.to_string());
    }
    Ok(true)
}

impl Network {
    /// The other direction of a link: `X~` of `X`, and `X` of `X~`.
    pub(super) fn opposite(&self, link: usize) -> Option<usize> {
        let name = &self.links[link].name;
        let other = match name.strip_suffix('~') {
            Some(forward) => forward.to_string(),
            None => format!("{name}~"),
        };
        self.index.get(&other).copied()
    }

    /// Converts queue sizes given as time or BDP to packets or bytes.
    pub(super) fn resolve_queues(&mut self, flows: &[Flow]) -> Res<()> {
        queue::resolve(&mut self.links, &self.queues, flows)
    }

    /// The node that `key` names. It is added if the scenario does not list the nodes.
    fn end(&mut self, table: &Table<'_>, key: &str, copy: Option<u64>, listed: bool) -> Res<usize> {
        let item = table.item(key)?;
        let written = item.text()?;
        let name = match copy {
            Some(copy) => written.replace("{}", &copy.to_string()),
            None if written.contains("{}") => {
                return Err(item
                    .wrong("has a place for a number, but the link has no count")
                    .hint("add count = 10, or write the node's name"));
            }
            None => written.to_string(),
        };
        if let Some(&index) = self.node_index.get(&name) {
            return Ok(index);
        }
        if listed {
            let nodes = self.nodes.iter().map(String::as_str);
            let message = format!("\"{name}\" is not one of the nodes");
            return Err(item
                .error(message)
                .maybe_hint(suggest(&name, nodes, "nodes")));
        }
        self.node_index.insert(name.clone(), self.nodes.len());
        self.nodes.push(name);
        Ok(self.nodes.len() - 1)
    }

    fn add(
        &mut self,
        table: &Table<'_>,
        name: String,
        (from, to): (usize, usize),
        direction: &Direction,
    ) -> Res<()> {
        if self.links.len() >= MAX_LINKS {
            let message = format!("more than {MAX_LINKS} directed links");
            return Err(table.error("count", message).hint("lower the counts"));
        }
        self.changes += direction.0.schedule.len();
        if self.changes > MAX_CHANGES {
            let message = format!("more than {MAX_CHANGES} scheduled changes in all");
            return Err(table
                .error("schedule", message)
                .hint("use a trace for a rate that changes all the time"));
        }
        if self.index.contains_key(&name) {
            let message = format!("a second link \"{name}\"");
            return Err(Diagnostic::new(table.origin, &table.path, message).hint(
                "a link with a count also uses the names NAME-1, NAME-2, ...; rename one of them",
            ));
        }
        self.index.insert(name.clone(), self.links.len());
        self.links.push(Link {
            name,
            from,
            to,
            config: direction.0.clone(),
        });
        self.queues.push(direction.1.clone());
        Ok(())
    }
}
