//! Second pass: one combination of axis values to a run, with every default filled in and every number checked
//! against the network.

mod flow;
mod link;
mod mesh;
mod path;
mod traffic;

use crate::files::Files;
use crate::model::{Profile, Run};
use crate::spec::{FLOW, SCENARIO, TCP};
use crate::table::{Item, Res, Table};
use crate::value::Value;
pub(crate) use link::Network;

/// Resolves a document without axes. `id`, `rep` and `axes` are left for the caller.
pub(crate) fn run(root: &Value, files: &mut Files<'_>) -> Res<Run> {
    let entries = root.as_table().unwrap_or_default();
    let top = Table {
        spec: &SCENARIO,
        entries,
        path: String::new(),
        origin: root.origin,
    };
    let duration = top.item("duration")?;
    let duration_ns = duration.duration()?;
    if duration_ns == 0 {
        return Err(duration
            .error(format!("{} is no time at all", duration.value.quoted()))
            .hint("write \"60 s\""));
    }
    let warmup = top.item("warmup")?;
    let warmup_ns = warmup.duration()?;
    if warmup_ns >= duration_ns {
        let message = format!(
            "{} is not shorter than the duration, {}",
            warmup.value.quoted(),
            duration.value.quoted()
        );
        return Err(warmup
            .error(message)
            .hint("shorten warmup or lengthen duration; metrics use what lies between"));
    }
    let mut network = link::network(&top, files)?;
    let flows = flow::flows(&top, &network, duration_ns)?;
    link::resolve_queues(&mut network, &flows)?;
    Ok(Run {
        id: 0,
        axes: Vec::new(),
        rep: 0,
        seed: top.item("seed")?.int()?,
        duration_ns,
        warmup_ns,
        sample_ns: sample(&top.item("sample")?)?,
        per_ack: top.item("per_ack")?.boolean()?,
        profile: profile(&top.item("profile")?)?,
        nodes: network.nodes,
        links: network.links,
        flows,
    })
}

/// How many runs each combination of axis values gets.
pub(crate) fn repetitions(root: &Value) -> Res<u64> {
    let entries = root.as_table().unwrap_or_default();
    Table {
        spec: &SCENARIO,
        entries,
        path: String::new(),
        origin: root.origin,
    }
    .item("repetitions")?
    .int()
}

/// Samples closer than this would be more numerous than packets.
const MIN_SAMPLE_NS: u64 = 10_000;

fn sample(item: &Item<'_>) -> Res<Option<u64>> {
    if item.is("off") {
        return Ok(None);
    }
    match item.duration()? {
        ns if ns >= MIN_SAMPLE_NS => Ok(Some(ns)),
        _ => Err(item
            .error(format!("{} is too short an interval", item.value.quoted()))
            .hint("at least \"10 us\"; per_ack = true records every ACK")),
    }
}

fn profile(item: &Item<'_>) -> Res<Profile> {
    let found = Profile::ALL.iter().find(|(name, _)| item.is(name));
    found
        .map(|(_, profile)| *profile)
        .ok_or_else(|| item.error(format!("{} is not a profile", item.value.quoted())))
}

/// A flow's table with the scenario's common settings behind it.
struct Settings<'a> {
    flow: Table<'a>,
    common: &'a [crate::value::Entry],
}

impl<'a> Settings<'a> {
    fn get(&self, key: &str) -> Option<Item<'a>> {
        self.flow.get(key).or_else(|| {
            let common = Table {
                spec: &TCP,
                entries: self.common,
                path: "tcp".into(),
                origin: self.flow.origin,
            };
            common.get(key)
        })
    }

    fn item(&self, key: &str) -> Res<Item<'a>> {
        debug_assert!(FLOW.field(key).is_some());
        match self.get(key) {
            Some(item) => Ok(item),
            None => self.flow.item(key),
        }
    }
}
