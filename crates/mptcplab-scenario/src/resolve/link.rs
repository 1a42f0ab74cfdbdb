//! Links: both directions of each, with queues resolved once the paths are known.

use crate::error::{Diagnostic, Origin, suggest};
use crate::files::Files;
use crate::mahimahi::MTU_BYTES;
use crate::model::{Flow, Link, largest_base_rtts_ns};
use crate::spec::{
    AQM, CHANGE, CODEL_FIELDS, DEFAULT_OVERHEAD_BYTES, FQ_FIELDS, Field, GILBERT_ELLIOTT, LINK,
    RED_FIELDS, REORDER, REVERSE, TRACE_OVERHEAD_BYTES,
};
use crate::table::{Item, Res, Table};
use crate::units::QueueSize;
use crate::validate::{NAME_HINT, check_name};
use crate::value::Value;
use mptcplab_model::link::{Aqm, Change, DeliveryTrace, LinkConfig, Loss, QueueLimit, Reorder};
use std::collections::BTreeMap;

/// More directed links than this are refused.
const MAX_LINKS: usize = 20_000;
/// Scheduled changes of all links together; a recorded rate belongs into a trace.
const MAX_CHANGES: usize = 200_000;
/// Propagation delays beyond an hour are a mistake in the unit.
const MAX_DELAY_NS: u64 = 3_600_000_000_000;
/// A full packet without its layer-2 overhead.
const FULL_PACKET_BYTES: u64 = 1500;

/// Nodes and links, with the queues still as written.
pub(crate) struct Network {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<Link>,
    queues: Vec<DraftQueue>,
    /// Link name to index.
    pub(crate) index: BTreeMap<String, usize>,
    /// Number of copies of the links that have a `count`.
    pub(crate) copies: BTreeMap<String, u64>,
    node_index: BTreeMap<String, usize>,
    /// Scheduled changes so far.
    changes: usize,
}

/// A queue that may still depend on the paths over its link.
#[derive(Clone)]
struct DraftQueue {
    /// `None`: unlimited.
    size: Option<QueueSize>,
    /// Where it was written, its key and its text, for errors.
    origin: Origin,
    key: String,
    written: String,
}

/// Builds the graph.
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
    for (name, item) in named(&links) {
        let table = item.table(&LINK)?;
        let forward = direction(&table, None, false, files)?;
        let backward = backward(&table, &forward.0, files)?;
        let count = table.get("count").map(|c| c.int()).transpose()?;
        if let Some(count) = count {
            network.copies.insert(name.clone(), count);
        }
        for copy in 1..=count.unwrap_or(1) {
            let copy_name = count.map_or(name.clone(), |_| format!("{name}-{copy}"));
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

/// The entries of a table of user-given names.
pub(crate) fn named<'a>(map: &'a Item<'_>) -> impl Iterator<Item = (String, Item<'a>)> {
    map.value
        .as_table()
        .unwrap_or_default()
        .iter()
        .map(|entry| {
            let item = Item {
                value: std::borrow::Cow::Borrowed(&entry.value),
                key_origin: entry.key_origin,
                path: crate::table::join(&map.path, &entry.key),
            };
            (entry.key.clone(), item)
        })
}

/// Takes over `nodes`; says whether it was given.
fn listed_nodes(top: &Table<'_>, network: &mut Network) -> Res<bool> {
    let Some(nodes) = top.get("nodes") else {
        return Ok(false);
    };
    for node in nodes.list()? {
        let name = node.text()?;
        if let Err(why) = check_name(name) {
            let message = format!("{} is not a name: {why}", node.value.quoted());
            return Err(node.error(message).hint(NAME_HINT));
        }
        if network.node_index.contains_key(name) {
            return Err(node
                .error(format!("{} is there twice", node.value.quoted()))
                .hint("name every node once"));
        }
        network
            .node_index
            .insert(name.to_string(), network.nodes.len());
        network.nodes.push(name.to_string());
    }
    Ok(true)
}

impl Network {
    /// The node named by `key`, made where nodes are not listed.
    fn end(&mut self, table: &Table<'_>, key: &str, copy: Option<u64>, listed: bool) -> Res<usize> {
        let item = table.item(key)?;
        let written = item.text()?;
        let name = match copy {
            Some(copy) => written.replace("{}", &copy.to_string()),
            None if written.contains("{}") => {
                return Err(item
                    .error(format!(
                        "{} has a place for a number, but the link has no count",
                        item.value.quoted()
                    ))
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

/// A direction's configuration, and its queue as written.
type Direction = (LinkConfig, DraftQueue);

fn backward(
    table: &Table<'_>,
    forward: &LinkConfig,
    files: &mut Files<'_>,
) -> Res<Option<Direction>> {
    let both = table.item("loss_both")?;
    let loss_both = both.boolean()?;
    let Some(item) = table.get("reverse") else {
        let defaults = Table {
            spec: &REVERSE,
            entries: &[],
            path: crate::table::join(&table.path, "reverse"),
            origin: table.origin,
        };
        return direction(&defaults, Some(forward), loss_both, files).map(Some);
    };
    if item.is_table() {
        let reverse = item.table(&REVERSE)?;
        if let (true, Some(loss)) = (loss_both, reverse.get("loss")) {
            return Err(loss
                .error("a loss of its own, but the link has loss_both")
                .hint("remove one of them"));
        }
        return direction(&reverse, Some(forward), loss_both, files).map(Some);
    }
    match item.boolean()? {
        false if loss_both => Err(both
            .error("true, but there is no way back (reverse = false)")
            .hint("remove one of them")),
        false => Ok(None),
        true => Err(item
            .error("true says nothing")
            .hint("leave reverse out for the usual way back, or write { rate = \"1 Mbit/s\" }")),
    }
}

/// One direction; `forward` is what a reverse direction takes over, with `loss_both` also its random loss.
fn direction(
    table: &Table<'_>,
    forward: Option<&LinkConfig>,
    loss_both: bool,
    files: &mut Files<'_>,
) -> Res<Direction> {
    let trace = table
        .get("trace")
        .map(|item| files.trace(&item))
        .transpose()?;
    let rate_bps = match (table.get("rate"), &trace) {
        (Some(rate), Some(_)) => {
            return Err(rate
                .error("a rate and a trace at once")
                .hint("the trace gives the rate; remove one of them"));
        }
        (Some(rate), None) => positive_rate(&rate)?,
        (None, Some(trace)) => crate::mahimahi::mean_rate_bps(trace),
        (None, None) => match forward {
            Some(forward) if forward.trace.is_none() => forward.rate_bps,
            Some(_) => {
                let error = table.missing("rate");
                return Err(error.hint("the forward direction follows a trace; write reverse = { rate = \"10 Mbit/s\" } or { trace = \"FILE\" }"));
            }
            None => return Err(table.missing("rate")),
        },
    };
    let delay_ns = match (table.get("delay"), forward) {
        (None, Some(forward)) => forward.delay_ns,
        _ => bounded_delay(&table.item("delay")?)?,
    };
    let overhead_bytes = match (table.get("overhead"), forward) {
        (Some(item), _) => item.size_in(0..=1000)?,
        (None, Some(forward))
            if forward.overhead_bytes != default_overhead_bytes(&forward.trace) =>
        {
            forward.overhead_bytes
        }
        (None, _) => default_overhead_bytes(&trace),
    };
    let written = own_schedule(table, trace.is_some(), files)?;
    let schedule = match (written, forward) {
        (Some(changes), _) => changes,
        (None, Some(forward)) => inherited_schedule(table, forward, loss_both),
        (None, None) => Vec::new(),
    };
    let aqm = aqm(&table.item("aqm")?)?;
    let ecn = table.item("ecn")?;
    if ecn.boolean()? && aqm == Aqm::DropTail {
        return Err(ecn
            .error("a drop-tail queue never marks packets")
            .hint("add aqm = \"red\", \"codel\" or \"fq-codel\""));
    }
    let queue = table.item("queue")?;
    let config = LinkConfig {
        rate_bps,
        delay_ns,
        overhead_bytes,
        queue: QueueLimit::Unlimited,
        aqm,
        ecn: ecn.boolean()?,
        loss: match (table.get("loss"), forward) {
            (None, Some(forward)) if loss_both => forward.loss,
            _ => loss(&table.item("loss")?)?,
        },
        reorder: match table.get("reorder") {
            Some(item) => reorder(&item)?,
            None => None,
        },
        schedule,
        trace,
    };
    let queue = DraftQueue {
        size: if queue.is("unlimited") {
            None
        } else {
            Some(queue.queue()?)
        },
        origin: queue.value.origin,
        key: queue.path.clone(),
        written: queue.value.quoted(),
    };
    Ok((config, queue))
}

fn default_overhead_bytes(trace: &Option<DeliveryTrace>) -> u32 {
    match trace {
        Some(_) => TRACE_OVERHEAD_BYTES,
        None => DEFAULT_OVERHEAD_BYTES,
    }
}

fn positive_rate(item: &Item<'_>) -> Res<u64> {
    match item.rate()? {
        0 => Err(item
            .error(format!("{} lets nothing through", item.value.quoted()))
            .hint(
                "a link needs a rate; schedule = [{ at = \"10 s\", up = false }] makes an outage",
            )),
        rate => Ok(rate),
    }
}

fn bounded_delay(item: &Item<'_>) -> Res<u64> {
    match item.duration()? {
        ns if ns <= MAX_DELAY_NS => Ok(ns),
        _ => Err(item
            .error(format!("{} is out of range", item.value.quoted()))
            .hint("a delay is at most 1 h")),
    }
}

pub(super) fn loss(item: &Item<'_>) -> Res<Loss> {
    if !item.is_table() {
        return Ok(match item.percent()? {
            0.0 => Loss::None,
            p => Loss::Bernoulli { p },
        });
    }
    let table = Table {
        spec: &GILBERT_ELLIOTT,
        entries: item
            .value
            .get("gilbert_elliott")
            .and_then(Value::as_table)
            .unwrap_or_default(),
        path: crate::table::join(&item.path, "gilbert_elliott"),
        origin: item.key_origin,
    };
    let percent = |key| table.item(key)?.percent();
    Ok(Loss::GilbertElliott {
        p: percent("p")?,
        r: percent("r")?,
        loss_good: percent("loss_good")?,
        loss_bad: percent("loss_bad")?,
    })
}

/// `None` where the probability is 0: a link that never holds up a packet is one without reordering.
fn reorder(item: &Item<'_>) -> Res<Option<Reorder>> {
    let table = item.table(&REORDER)?;
    let probability = table.item("probability")?.percent()?;
    let delay = table.item("delay")?;
    let (min_extra_delay_ns, max_extra_delay_ns) = delay.span()?;
    let error = |why: &str| delay.error(format!("{} {why}", delay.value.quoted()));
    if max_extra_delay_ns == 0 {
        return Err(error("holds up nothing")
            .hint("write how much longer a chosen packet takes, e.g. \"5 ms\""));
    }
    if max_extra_delay_ns > MAX_DELAY_NS {
        return Err(error("is out of range").hint("a delay is at most 1 h"));
    }
    Ok((probability > 0.0).then_some(Reorder {
        probability,
        min_extra_delay_ns,
        max_extra_delay_ns,
    }))
}

/// The changes that a direction has itself, in the scenario or in a file.
fn own_schedule(
    table: &Table<'_>,
    follows_trace: bool,
    files: &mut Files<'_>,
) -> Res<Option<Vec<Change>>> {
    match (table.get("schedule"), table.get("schedule_file")) {
        (Some(_), Some(file)) => Err(file
            .error("a schedule and a file of one")
            .hint("keep one of schedule and schedule_file")),
        (Some(item), None) => schedule(&item, follows_trace).map(Some),
        (None, Some(file)) => {
            let changes = files.schedule(&file)?;
            match follows_trace && changes.iter().any(|change| change.rate_bps.is_some()) {
                true => Err(file
                    .error(format!(
                        "{} changes the rate, but the link follows a trace",
                        file.value.quoted()
                    ))
                    .hint("only delay, loss and up can change here")),
                false => Ok(Some(changes)),
            }
        }
        (None, None) => Ok(None),
    }
}

fn schedule(item: &Item<'_>, follows_trace: bool) -> Res<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    for entry in item.list()? {
        let table = entry.table(&CHANGE)?;
        let at = table.item("at")?;
        let at_ns = at.duration()?;
        if changes.last().is_some_and(|earlier| earlier.at_ns > at_ns) {
            return Err(at
                .error(format!(
                    "{} is before the change above it",
                    at.value.quoted()
                ))
                .hint("write changes in time order"));
        }
        let rate = table.get("rate");
        if let (Some(rate), true) = (&rate, follows_trace) {
            return Err(rate
                .error("a rate, but the link follows a trace")
                .hint("only delay, loss and up can change here"));
        }
        let change = Change {
            at_ns,
            rate_bps: rate.map(|i| i.rate()).transpose()?,
            delay_ns: table.get("delay").map(|i| bounded_delay(&i)).transpose()?,
            loss: table.get("loss").map(|i| loss(&i)).transpose()?,
            up: table.get("up").map(|i| i.boolean()).transpose()?,
        };
        if changes_nothing(&change) {
            let error = Diagnostic::new(entry.value.origin, &entry.path, "a change of nothing");
            return Err(error.hint("add rate, delay, loss or up"));
        }
        changes.push(change);
    }
    Ok(changes)
}

fn changes_nothing(change: &Change) -> bool {
    change.rate_bps.is_none()
        && change.delay_ns.is_none()
        && change.loss.is_none()
        && change.up.is_none()
}

/// The forward direction's changes as far as they hold for both: a property that the reverse sets itself stays, and
/// random loss is on the forward direction only (spec/scenarios.md 0.2), unless the link has `loss_both`.
fn inherited_schedule(reverse: &Table<'_>, forward: &LinkConfig, loss_both: bool) -> Vec<Change> {
    let own_rate = reverse.get("rate").is_some() || reverse.get("trace").is_some();
    let own_delay = reverse.get("delay").is_some();
    let changes = forward.schedule.iter().map(|change| Change {
        at_ns: change.at_ns,
        rate_bps: change.rate_bps.filter(|_| !own_rate),
        delay_ns: change.delay_ns.filter(|_| !own_delay),
        loss: change.loss.filter(|_| loss_both),
        up: change.up,
    });
    changes.filter(|change| !changes_nothing(change)).collect()
}

fn aqm(item: &Item<'_>) -> Res<Aqm> {
    let no_entries = [];
    let (name, table) = match item.is_table() {
        true => {
            let table = item.table(&AQM)?;
            (table.item("name")?.text()?.to_string(), table)
        }
        false => {
            let entries = &no_entries[..];
            (
                item.text()?.to_string(),
                Table {
                    spec: &AQM,
                    entries,
                    path: item.path.clone(),
                    origin: item.key_origin,
                },
            )
        }
    };
    match name.as_str() {
        "red" => {
            own_keys(&table, &name, &[RED_FIELDS])?;
            red(&table)
        }
        "codel" => {
            own_keys(&table, &name, &[CODEL_FIELDS])?;
            let (target_ns, interval_ns) = codel(&table)?;
            Ok(Aqm::Codel {
                target_ns,
                interval_ns,
            })
        }
        "fq-codel" => {
            own_keys(&table, &name, &[CODEL_FIELDS, FQ_FIELDS])?;
            let (target_ns, interval_ns) = codel(&table)?;
            Ok(Aqm::FqCodel {
                target_ns,
                interval_ns,
                flows: u32::try_from(table.item("flows")?.int()?)
                    .map_err(|_| table.error("flows", "too many"))?,
                quantum_bytes: table.item("quantum")?.size_in(64..=1_000_000)?,
            })
        }
        _ => own_keys(&table, &name, &[]).map(|()| Aqm::DropTail),
    }
}

/// Refuses the parameters of another queue management.
fn own_keys(table: &Table<'_>, name: &str, groups: &[&[Field]]) -> Res<()> {
    let own: Vec<&str> = groups
        .iter()
        .flat_map(|g| g.iter())
        .map(|f| f.key)
        .collect();
    match table
        .entries
        .iter()
        .find(|e| e.key != "name" && !own.contains(&e.key.as_str()))
    {
        None => Ok(()),
        Some(entry) => {
            let error = Diagnostic::new(
                entry.key_origin,
                crate::table::join(&table.path, &entry.key),
                format!("\"{name}\" has no such parameter"),
            );
            Err(match own.is_empty() {
                true => error.hint(format!("\"{name}\" has no parameters")),
                false => error.hint(format!("parameters of \"{name}\": {}", own.join(", "))),
            })
        }
    }
}

fn red(table: &Table<'_>) -> Res<Aqm> {
    let (min, max) = (table.item("min")?, table.item("max")?);
    let (min_pkts, max_pkts) = (min.packets()?, max.packets()?);
    if min_pkts >= max_pkts {
        let message = format!(
            "{} is not more than min, {}",
            max.value.quoted(),
            min.value.quoted()
        );
        return Err(table
            .error("max", message)
            .hint("max is usually three times min"));
    }
    Ok(Aqm::Red {
        min_pkts: f64::from(min_pkts),
        max_pkts: f64::from(max_pkts),
        max_p: table.item("max_p")?.percent()?,
        weight: table.item("weight")?.fraction()?,
    })
}

fn codel(table: &Table<'_>) -> Res<(u64, u64)> {
    let (target, interval) = (table.item("target")?, table.item("interval")?);
    let (target_ns, interval_ns) = (target.duration()?, interval.duration()?);
    if target_ns == 0 || target_ns >= interval_ns {
        let message = format!(
            "{} is not between 0 and the interval, {}",
            target.value.quoted(),
            interval.value.quoted()
        );
        return Err(table
            .error("target", message)
            .hint("the target is usually a twentieth of the interval"));
    }
    Ok((target_ns, interval_ns))
}

/// Turns queues given as time or BDP into packets or bytes.
pub(crate) fn resolve_queues(network: &mut Network, flows: &[Flow]) -> Res<()> {
    let base_rtts = largest_base_rtts_ns(&network.links, flows);
    for ((link, draft), base_rtt_ns) in network.links.iter_mut().zip(&network.queues).zip(base_rtts)
    {
        link.config.queue = limit(link, draft, base_rtt_ns)?;
    }
    Ok(())
}

fn limit(link: &Link, draft: &DraftQueue, base_rtt_ns: Option<u64>) -> Res<QueueLimit> {
    let config = &link.config;
    let frame_bytes = FULL_PACKET_BYTES + u64::from(config.overhead_bytes);
    let written = &draft.written;
    let error = |message: String| Diagnostic::new(draft.origin, &draft.key, message);
    let bytes = match draft.size {
        None => return Ok(QueueLimit::Unlimited),
        Some(QueueSize::Fixed(QueueLimit::Bytes(bytes))) => bytes,
        Some(QueueSize::Fixed(limit)) => return Ok(limit),
        Some(QueueSize::Bdp(factor)) => {
            let base_rtt_ns = base_rtt_ns.ok_or_else(|| {
                error(format!(
                    "{written}, but no TCP path crosses \"{}\", so it has no RTT",
                    link.name
                ))
                .hint("write the size in packets, e.g. \"100 packets\"")
            })?;
            let packets = factor.packets(config.rate_bps, base_rtt_ns, frame_bytes);
            let packets = packets.and_then(|p| u32::try_from(p).ok());
            return packets.map(QueueLimit::Packets).ok_or_else(|| {
                error(format!("{written} is more than 4 billion packets"))
                    .hint("lower rate, delay or factor")
            });
        }
        Some(QueueSize::Nanoseconds(ns)) => {
            let bits_times_ns = u128::from(config.rate_bps) * u128::from(ns);
            u64::try_from(bits_times_ns.div_ceil(8_000_000_000)).unwrap_or(u64::MAX)
        }
    };
    match bytes >= frame_bytes {
        true => Ok(QueueLimit::Bytes(bytes)),
        false => Err(error(format!(
            "{written} is {bytes} bytes, less than one full packet ({frame_bytes} bytes)"
        ))
        .hint("a queue holds at least one packet")),
    }
}

const _: () = assert!(
    MTU_BYTES == FULL_PACKET_BYTES + TRACE_OVERHEAD_BYTES as u64,
    "an opportunity of a trace lets exactly one full packet leave"
);
